"""References of one label: identifiers, context products, and the members of collections and bundles."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from transect.archive.identifiers import Lid, Vid
from transect.base.xml import local_name
from transect.errors import TransectError, UsageError
from transect.formats.pds4.label import NAMESPACE

from .files import find_file
from .labels import IdentifierReference, Label, child_line, text_of
from .problems import ValidationProblem, problem

REGISTERED = "registered_context_products.json"
_CONTEXT = re.compile(
    r"is_.*|.*_to_(target|investigation|instrument|instrument_host|other|facility|telescope|airborne|laboratory"
    r"|observatory|context)"
).fullmatch


@dataclass(frozen=True)
class RegisteredProduct:
    """A context product that the Engineering Node knows."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    versions: frozenset[str]

    def has(self, vid: str) -> bool:
        """Return whether there is, or was, a version: the list has the newest ones."""
        return vid in self.versions or version_of(vid) <= max(map(version_of, self.versions), default=())


def version_of(vid: str) -> tuple[int, ...]:
    """Return a version as numbers that compare; nothing for what is none."""
    parts = vid.split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()


@dataclass
class ContextCatalogue:
    """All context products, by identifier without a version."""

    # whether the list of those that are registered is among them; else nothing is known of others
    is_complete: bool = True
    products: dict[str, RegisteredProduct] = field(default_factory=dict[str, RegisteredProduct])

    def __bool__(self) -> bool:
        return bool(self.products)

    def add(self, path: Path) -> list[str]:
        """Add the products of a file as NASA distributes it; returns their identifiers."""
        try:
            entries = json.loads(path.read_bytes())["Product_Context"]
            read = [
                (
                    str(each["lidvid"]),
                    tuple(map(str, each.get("name", ()))),
                    tuple(map(str, each.get("type", ()))),
                )
                for each in entries
            ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TransectError(
                "the list of context products cannot be read", where=str(path), why=repr(error),
                hint=f"it should look like NASA's {REGISTERED}",
            ) from error  # fmt: skip
        for lidvid, names, types in read:
            lid, _, vid = lidvid.partition("::")
            known = self.products.get(lid.lower(), RegisteredProduct((), (), frozenset()))
            self.products[lid.lower()] = RegisteredProduct(
                (*known.names, *names), (*known.types, *types), known.versions | {vid}
            )
        return [lidvid for lidvid, *_ in read]


def find_context(folders: Iterable[Path]) -> Path | None:
    """Return the list of context products in, or beside, one of the folders of schemas."""
    places = (place / REGISTERED for folder in folders for place in (folder, folder.resolve().parent))
    return next((path for path in places if path.is_file()), None)


def context_problems(
    label: Label, context: ContextCatalogue, mismatches: bool
) -> Iterator[ValidationProblem]:
    """Yield the context products that a label names and nobody registered, or registered otherwise."""
    for each in label.references:
        if not _CONTEXT(each.type) or (each.type.endswith("_to_other") and ":context:" not in each.target):
            continue
        known = context.products.get(each.lid.lower())
        if known is None and not context.is_complete:
            continue
        vid = each.target.partition("::")[2]
        if known is None or (vid and not known.has(vid)):
            text = f"the context product {each.target} is not registered; --add-context FILE names more"
            yield problem("label.context_ref_not_found", text, line=each.line)
        elif mismatches:
            yield from _mismatches(each, known)


def _mismatches(reference: IdentifierReference, known: RegisteredProduct) -> Iterator[ValidationProblem]:
    """Yield a warning if the element that holds a reference has another name or type than is registered."""
    holder = reference.element.getparent()
    name, type_ = text_of(holder, "name"), text_of(holder, "type")
    for said, registered, what in ((name, known.names, "name"), (type_, known.types, "type")):
        if not said or not (name and type_):
            continue
        if what == "type" and local_name(holder) == "Observing_System_Component":
            continue  # whose types changed from model to model
        if said.lower() not in [each.lower() for each in registered]:
            shown = ", ".join(registered[:3]) or "none"
            yield problem(
                "label.context_ref_mismatch", line=child_line(holder, what),
                text=f"the {what} of {reference.lid} is {said!r}, but {shown} is registered",
            )  # fmt: skip


def local_problems(label: Label) -> Iterator[ValidationProblem]:
    """Yield references to objects of the label that it does not have."""
    known = {(each.text or "").strip() for each in label.root.iter(f"{NAMESPACE}local_identifier")}
    for each in label.root.iter(f"{NAMESPACE}local_identifier_reference"):
        identifier = (each.text or "").strip()
        if identifier not in known:
            yield problem(
                "label.local_identifier_not_found",
                f"no object has the local_identifier {identifier!r}",
                line=each.sourceline or 0,
            )


def identifier_problems(label: Label) -> Iterator[ValidationProblem]:
    """Yield problems of the identifier and version of a label."""
    area = label.area
    parsers = {"logical_identifier": (label.lid, Lid), "version_id": (label.vid, Vid.parse)}
    for tag, (text, parse) in parsers.items() if area is not None else ():
        try:
            if text:
                parse(text)
        except UsageError as error:
            why = f": {error.why}" if error.why else ""
            yield problem("validation.invalid_label", f"{error.what}{why}", line=child_line(area, tag))


MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class MemberEntry:
    """One member, with its version if it is said.

    Attributes
    ----------
    place : str
        For people: `record 3`, or `line 40`.
    """

    lid: str
    vid: str
    primary: bool
    line: int
    record: int = 0

    @property
    def name(self) -> str:
        """As it was written."""
        return f"{self.lid}::{self.vid}" if self.vid else self.lid


def members_of(label: Label) -> list[MemberEntry]:
    """Return the members that a bundle or a collection names; none for other products."""
    if label.kind == "Product_Bundle":
        return list(_entries(label))
    if label.kind == "Product_Collection":
        return [member for path in _inventories(label) for member in _records(path)]
    return []


def _entries(label: Label) -> Iterator[MemberEntry]:
    for element in label.root.iter(f"{NAMESPACE}Bundle_Member_Entry"):
        written = text_of(element, "lidvid_reference") or text_of(element, "lid_reference")
        lid, _, vid = written.partition("::")
        primary = text_of(element, "member_status").lower() != "secondary"
        if lid:
            yield MemberEntry(lid, vid, primary, element.sourceline or 0)


def _inventories(label: Label) -> Iterator[Path]:
    for entry in label.files:
        path, _ = find_file(label, entry)
        if path is not None and entry.area.find(f"{NAMESPACE}Inventory") is not None:
            yield path


def _records(path: Path) -> Iterator[MemberEntry]:
    if path.stat().st_size > MAX_BYTES:
        return
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        status, _, written = line.decode("utf-8", "replace").partition(",")
        lid, _, vid = written.strip().strip('"').partition("::")
        if lid:
            yield MemberEntry(
                lid.strip(), vid.strip(), status.strip().strip('"').upper().startswith("P"), 0, number
            )


def count_problems(label: Label) -> Iterator[ValidationProblem]:
    """Yield inventories with another number of records than the label says.

    How a collection fits together is checked also where data files are not looked into.
    """
    for entry in label.files if label.kind == "Product_Collection" else ():
        inventory = entry.area.find(f"{NAMESPACE}Inventory")
        path, _ = find_file(label, entry)
        if path is None or inventory is None or path.stat().st_size > MAX_BYTES:
            continue
        declared = text_of(inventory, "records")
        found = sum(1 for _ in _records(path))
        if declared.isdecimal() and found and int(declared) not in (0, found):
            text = f"records is {declared}, but the inventory has {found}"
            yield problem("table.records_mismatch", text, data=entry.name, line=entry.line)


def inventory_problems(label: Label) -> Iterator[ValidationProblem]:
    """Yield duplicate members, and records of neither a primary nor a secondary member."""
    counted = Counter(each.name for each in members_of(label))
    for each in members_of(label):
        if counted.pop(each.name, 1) > 1:
            yield problem(
                "inventory.duplicate_lidvid", f"{each.name} is named more than once", line=each.line
            )
    for path in _inventories(label) if label.kind == "Product_Collection" else ():
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            status = line.decode("utf-8", "replace").partition(",")[0].strip().strip('"')
            if status and not status.upper().startswith(("P", "S")):
                text = f"the member status {status!r} should be P or S"
                yield problem("inventory_table.invalid_member_status", text, data=path.name, record=number)
