"""Labels among each other: identifiers, versions, members, references, and files that belong to none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from .inventory import Member
from .problems import Problem, problem
from .references import version_of


@dataclass(frozen=True)
class Seen:
    """What is kept of a label when it was checked."""

    name: str  # path from the folder that is validated
    kind: str
    lid: str
    vid: str
    model: str
    files: tuple[str, ...] = ()  # files that it names, from the same folder, whether they are there or not
    members: tuple[Member, ...] = ()
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


def common_problems(labels: Sequence[Seen]) -> Iterator[Problem]:
    """Give what labels that are checked together must not share: an identifier, a file; and mixed models."""
    by_id: dict[str, list[Seen]] = defaultdict(list)
    by_file: dict[str, list[Seen]] = defaultdict(list)
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
class Archive:
    """The labels of a bundle or a collection."""

    labels: Sequence[Seen]
    root: Seen | None  # the bundle, or the collection, that is validated
    strict: bool = True  # whether a member that is not there is an error
    elsewhere: Sequence[Seen] = ()  # labels that count as being there, and are not judged
    _found: dict[str, list[Seen]] = field(default_factory=lambda: defaultdict(list), init=False)

    def __post_init__(self) -> None:
        for each in (*self.labels, *self.elsewhere):
            self._found[each.lid].append(each)

    def problems(self) -> Iterator[Problem]:
        """Give what is wrong with members and references."""
        for each in self.labels:
            if each.members:
                yield from self._members(each)
        yield from self._find_unreferenced()
        yield from self._references()

    def _members(self, parent: Seen) -> Iterator[Problem]:
        for member in parent.members:
            where = {"file": parent.name, "line": member.line, "record": member.record}
            for each in self._found_problems(member, parent):
                yield replace(each, **where)

    def _found_problems(self, member: Member, parent: Seen) -> Iterator[Problem]:
        """Give what is wrong with the products that a member is: none, several, or of another family."""
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

    def _find_unreferenced(self) -> Iterator[Problem]:
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

    def _references(self) -> Iterator[Problem]:
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

    def context_problems(self) -> Iterator[Problem]:
        """Give context products that the products of a collection name, and the collection does not."""
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


def unlabelled(files: Iterable[str], labels: Iterable[Seen]) -> Iterator[Problem]:
    """Give a warning for each file that no label names."""
    named = {file for each in labels for file in each.files} | {each.name for each in labels}
    for file in files:
        if file not in named:
            yield problem("file.not_referenced_in_label", f"{file} is described by no label", file=file)
