"""Which version something has: what changed since the one before, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import md5
from pathlib import Path

from transect.errors import UsageError

from .existing import Existing
from .identifiers import Lidvid, Vid
from .labels.areas import Change
from .labels.products import Version, Written

DATA, LABEL, MEMBERS = "data changed", "label changed", "members changed"


@dataclass(frozen=True)
class Outcome:
    """A version of something, and its label."""

    lidvid: Lidvid
    label: str
    change: str  # since the version before


@dataclass(frozen=True)
class Versioning:
    """What versions are decided by."""

    date: str  # of this build, for histories

    def decide(
        self,
        wanted: Lidvid | None,
        first: Lidvid,
        previous: Existing | None,
        major: bool,
        render: Callable[[Version], str],
        why: str = DATA,
    ) -> Outcome:
        """Return the version of something whose label `render` writes.

        The next major version if the data changed (`major`), the next minor one if only the label did, the
        same one, byte by byte, if nothing did.

        Parameters
        ----------
        wanted : Lidvid or None
            The version that a person asked for.
        first : Lidvid
            Its version if there was none before.
        """
        if previous is None:
            lidvid = wanted or first
            return Outcome(lidvid, render(Version(lidvid.vid)), "new")
        before = previous.lidvid.vid
        same = render(Version(before, previous.history))
        unchanged = not major and same.encode() == previous.label.read_bytes()
        if unchanged and (wanted is None or wanted.vid == before):
            return Outcome(previous.lidvid, same, "none")
        natural = before.next_major if major else before.next_minor
        vid = natural if wanted is None else _refuse_reuse(wanted, before, major)
        change = Change(self.date, vid, why if major else LABEL)
        history = (change, *previous.history)
        return Outcome(first.lid.at(vid), render(Version(vid, history)), "major" if major else "minor")


def _refuse_reuse(wanted: Lidvid, before: Vid, major: bool) -> Vid:
    if wanted.vid > before:
        return wanted.vid
    what = f"{wanted} is there already, with other {'data' if major else 'labels'}"
    if wanted.vid < before:
        what = f"{wanted.lid} is there already as version {before}"
    raise UsageError(
        what, where=str(wanted), why="a version never changes",
        hint=f"leave its version out, or name {before.next_major if major else before.next_minor}",
    )  # fmt: skip


def data_changed(files: Sequence[Written], previous: Existing | None) -> bool:
    """Tell whether a product's files are others than before: names or bytes."""
    if previous is None:
        return False
    before = {
        name: known or _md5_of(previous.label.parent / name) for name, (known, _) in previous.files.items()
    }
    return {each.name: each.md5 for each in files} != before


def with_times_kept(files: Sequence[Written], previous: Existing | None) -> list[Written]:
    """Return files of which those that are as they were keep the time of their creation."""
    known = {} if previous is None else previous.files
    return [
        replace(each, created=known[each.name][1])
        if each.name in known and known[each.name][0] == each.md5 and known[each.name][1]
        else each
        for each in files
    ]


def _md5_of(path: Path) -> str:
    digest = md5(usedforsecurity=False)
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
