"""Collections and bundles: which products they have, as inventories and member entries say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transect.formats.pds4.label import NAMESPACE

from .files import find_file
from .labels import Label, text_of
from .problems import Problem, problem

MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class Member:
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


def members_of(label: Label) -> list[Member]:
    """Return the members that a bundle or a collection names; none for other products."""
    if label.kind == "Product_Bundle":
        return list(_entries(label))
    if label.kind == "Product_Collection":
        return [member for path in _inventories(label) for member in _records(path)]
    return []


def _entries(label: Label) -> Iterator[Member]:
    for element in label.root.iter(f"{NAMESPACE}Bundle_Member_Entry"):
        written = text_of(element, "lidvid_reference") or text_of(element, "lid_reference")
        lid, _, vid = written.partition("::")
        primary = text_of(element, "member_status").lower() != "secondary"
        if lid:
            yield Member(lid, vid, primary, element.sourceline or 0)


def _inventories(label: Label) -> Iterator[Path]:
    for entry in label.files:
        path, _ = find_file(label, entry)
        if path is not None and entry.area.find(f"{NAMESPACE}Inventory") is not None:
            yield path


def _records(path: Path) -> Iterator[Member]:
    if path.stat().st_size > MAX_BYTES:
        return
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        status, _, written = line.decode("utf-8", "replace").partition(",")
        lid, _, vid = written.strip().strip('"').partition("::")
        if lid:
            yield Member(
                lid.strip(), vid.strip(), status.strip().strip('"').upper().startswith("P"), 0, number
            )


def count_problems(label: Label) -> Iterator[Problem]:
    """Give inventories with another number of records than the label says.

    How a collection fits together is checked also where data files are not looked into.
    """
    for entry in label.files if label.kind == "Product_Collection" else ():
        inventory = entry.area.find(f"{NAMESPACE}Inventory")
        path, _ = find_file(label, entry)
        if path is None or inventory is None or path.stat().st_size > MAX_BYTES:
            continue
        said = text_of(inventory, "records")
        found = sum(1 for _ in _records(path))
        if said.isdecimal() and found and int(said) not in (0, found):
            text = f"records is {said}, but the inventory has {found}"
            yield problem("table.records_mismatch", text, data=entry.name, line=entry.line)


def inventory_problems(label: Label) -> Iterator[Problem]:
    """Give members that are named twice, and records that are of neither a primary nor a secondary member."""
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
