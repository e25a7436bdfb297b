"""Referential integrity: identifiers, versions, members and references of all labels together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .files import md5_of
from .problems import ValidationProblem, problem
from .references import MemberEntry, version_of


@dataclass(frozen=True)
class LabelSummary:
    """What is kept of a label when it was checked."""

    name: str  # path from the folder that is validated
    kind: str
    lid: str
    vid: str
    model: str
    files: tuple[str, ...] = ()  # files that it names, from the same folder, whether they are there or not
    members: tuple[MemberEntry, ...] = ()
    references: tuple[tuple[str, int], ...] = ()  # of its `Reference_List`
    context: frozenset[str] = frozenset()  # identifiers of context products that it names
    listed: frozenset[str] = frozenset()

    @property
    def lidvid(self) -> str:
        """Identifier and version."""
        return f"{self.lid}::{self.vid}"

    @property
    def version(self) -> tuple[int, ...]:
        """Major and minor version; nothing sorts before anything."""
        return version_of(self.vid)


def common_problems(labels: Sequence[LabelSummary]) -> Iterator[ValidationProblem]:
    """Yield what labels that are checked together must not share: an identifier, a file; and mixed models."""
    by_id: dict[str, list[LabelSummary]] = defaultdict(list)
    by_file: dict[str, list[LabelSummary]] = defaultdict(list)
    for each in labels:
        if each.lid:
            by_id[each.lidvid].append(each)
        for file in set(each.files):
            by_file[file].append(each)
    for lidvid, same in by_id.items():
        for each in same[1:]:
            yield problem(
                "label.duplicate_identifier", f"{lidvid} is also that of {same[0].name}", file=each.name
            )
    for file, every in by_file.items():
        same = [each for each in every if each.kind == "Product_Observational"]  # documents may share figures
        others = [each for each in same if each.lid != same[0].lid]
        for each in others:
            text = f"{file} is also described by {same[0].name}"
            yield problem("label.file_areas_duplicated_reference", text, file=each.name)
    models = sorted({each.model for each in labels if each.model})
    if len(models) > 1:
        text = f"the labels are of several information models: {', '.join(models)}"
        yield problem("integrity.pds4_version_mismatch", text)


@dataclass
class LabelSet:
    """The labels of a bundle or a collection."""

    labels: Sequence[LabelSummary]
    root: LabelSummary | None  # the bundle, or the collection, that is validated
    strict: bool = True  # whether a member that does not exist is an error
    elsewhere: Sequence[LabelSummary] = ()  # labels that count as being there, and are not judged
    _found: dict[str, list[LabelSummary]] = field(default_factory=lambda: defaultdict(list), init=False)

    def __post_init__(self) -> None:
        for each in (*self.labels, *self.elsewhere):
            self._found[each.lid].append(each)

    def problems(self) -> Iterator[ValidationProblem]:
        """Yield problems of members and references."""
        for each in self.labels:
            if each.members:
                yield from self._members(each)
        yield from self._find_unreferenced()
        yield from self._references()

    def _members(self, parent: LabelSummary) -> Iterator[ValidationProblem]:
        for member in parent.members:
            where = {"file": parent.name, "line": member.line, "record": member.record}
            for each in self._found_problems(member, parent):
                yield replace(each, **where)

    def _found_problems(self, member: MemberEntry, parent: LabelSummary) -> Iterator[ValidationProblem]:
        """Yield problems of the products that a member is: none, several, or of another family."""
        same = self._found.get(member.lid, [])
        found = [each for each in same if not member.vid or each.vid == member.vid]
        names = ", ".join(each.name for each in found)
        if member.primary and not member.vid and parent.kind == "Product_Collection":
            yield problem("integrity.missing_version", f"the primary member {member.lid} has no version")
        if not found and member.primary:
            known = f"; there is version {', '.join(each.vid for each in same)}" if same else ""
            severity = "error" if self.strict else "warning"
            text = f"the member {member.name} is not there{known}"
            yield problem("integrity.member_not_found", text, severity=severity)
        if found and member.primary and not member.lid.startswith(f"{parent.lid}:"):
            text = f"the primary member {member.name} should begin with {parent.lid}:"
            yield problem("integrity.missing_parent_prefix", text)
        if len(found) > 1 and member.vid:
            yield problem("integrity.duplicate_members", f"{member.name} is several products: {names}")
        elif len({each.vid for each in found}) < len(found):
            yield problem("integrity.duplicate_versions", f"{member.name} has one version twice: {names}")

    def _find_unreferenced(self) -> Iterator[ValidationProblem]:
        named = {member.name for each in self.labels for member in each.members}
        for each in self.labels:
            if (
                each is self.root
                or each.kind == "Product_Bundle"
                or each.lidvid in named
                or each.lid in named
            ):
                continue
            parent = "bundle" if each.kind == "Product_Collection" else "collection"
            if parent == "bundle" and self.root is not None and self.root.kind == "Product_Collection":
                continue
            text = f"{each.lidvid} is a member of no {parent} here"
            yield problem("integrity.unreferenced_member", text, file=each.name)

    def _references(self) -> Iterator[ValidationProblem]:
        base = ":".join(self.root.lid.split(":")[:4]) if self.root is not None else ""
        if not base:
            return
        versions = {each.lidvid for each in (*self.labels, *self.elsewhere)}
        for each in self.labels:
            if not each.lid.startswith(base):
                continue
            for target, line in dict.fromkeys(each.references):
                lid, _, vid = target.partition("::")
                known = target in versions if vid else lid in self._found
                if not known and (vid or lid.startswith(base)):
                    text = f"{target} is not here"
                    yield problem("integrity.reference_not_found", text, file=each.name, line=line)

    def context_problems(self) -> Iterator[ValidationProblem]:
        """Yield context products that the products of a collection name, and the collection does not."""
        for parent in self.labels:
            if parent.kind != "Product_Collection":
                continue
            inside = [each for each in self.labels if each.lid.startswith(f"{parent.lid}:")]
            missing = (
                frozenset[str]().union(*(each.context for each in inside)) - parent.context - parent.listed
            )
            for lid in sorted(missing):
                text = f"{lid} is a context of its products, but not of the collection"
                yield problem("integrity.missing_context_reference", text, file=parent.name)


def unlabelled(files: Iterable[str], labels: Iterable[LabelSummary]) -> Iterator[ValidationProblem]:
    """Yield a warning for each file that no label names."""
    named = {file for each in labels for file in each.files} | {each.name for each in labels}
    for file in files:
        if file not in named:
            yield problem("file.not_referenced_in_label", f"{file} is described by no label", file=file)


def growth_problems(
    old: Sequence[LabelSummary], old_root: Path, new: Sequence[LabelSummary], new_root: Path
) -> Iterator[ValidationProblem]:
    """Yield what must not happen between two states of an archive.

    A label or file that differs although its version is the same; a product that is gone; a version below
    that of the older state.
    """
    before = {each.lidvid: each for each in old if each.lid}
    highest: dict[str, LabelSummary] = {}
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


def _find_changed(
    old: LabelSummary, old_root: Path, new: LabelSummary, new_root: Path
) -> Iterator[ValidationProblem]:
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
