"""Growth: a bundle against an older one. What keeps its version must keep its bytes; versions only rise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from .files import md5_of
from .integrity import Seen
from .problems import Problem, problem


def growth_problems(
    old: Sequence[Seen], old_root: Path, new: Sequence[Seen], new_root: Path
) -> Iterator[Problem]:
    """Give what must not happen between two states of an archive.

    A label or file that differs although its version is the same; a product that is gone; a version below
    that of the older state.
    """
    before = {each.lidvid: each for each in old if each.lid}
    highest: dict[str, Seen] = {}
    for each in old:
        if (each.lid and each.version > highest.get(each.lid, each).version) or each.lid not in highest:
            highest[each.lid] = each
    present = {each.lidvid for each in new}
    for each in new:
        if (same := before.get(each.lidvid)) is not None:
            yield from _find_changed(same, old_root, each, new_root)
        elif each.lid in highest and each.version <= highest[each.lid].version:
            text = f"version {each.vid} is not above {highest[each.lid].vid}, which the older archive has"
            yield problem("integrity.version_not_raised", text, file=each.name)
    for lidvid, each in before.items():
        if lidvid not in present:
            text = f"{lidvid} of the older archive is gone"
            yield problem("integrity.member_not_found", text, severity="warning", file=each.name)


def _find_changed(old: Seen, old_root: Path, new: Seen, new_root: Path) -> Iterator[Problem]:
    files = [(old.name, new.name), *zip(sorted(old.files), sorted(new.files), strict=False)]
    for a, b in files:
        before, now = old_root / a, new_root / b
        if before.is_file() and now.is_file() and not _same(before, now):
            text = f"{b} has other bytes than in the older archive, but still the version {new.vid}"
            yield problem(
                "integrity.version_reused", text, file=new.name, data="" if b == new.name else b,
                cause=f"{new.lid} needs a version above {new.vid}, and so do its collection and bundle",
            )  # fmt: skip


def _same(a: Path, b: Path) -> bool:
    return a.stat().st_size == b.stat().st_size and md5_of(a) == md5_of(b)
