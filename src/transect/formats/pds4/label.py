"""Parsing of labels in XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from transect.base.xml import load_xml
from transect.errors import ParseError

NAMESPACE = "{http://pds.nasa.gov/pds4/pds/v1}"
MAX_FIELDS = 100_000
"""Largest number of fields of a table after expanding repeated groups."""
TABLES = ("Table_Delimited", "Table_Character", "Table_Binary", "Inventory")
DELIMITERS = {"Comma": ",", "Horizontal Tab": "\t", "Semicolon": ";", "Vertical Bar": "|"}
_FIELD = re.compile(r"Field_(Delimited|Character|Binary)").fullmatch
_GROUP = re.compile(r"Group_Field_(Delimited|Character|Binary)").fullmatch


@dataclass(frozen=True)
class Bits:
    """Bits of a packed field: first and last, counted from 1 at the most significant."""

    first: int
    last: int


@dataclass(frozen=True)
class LabelField:
    """One column of a table."""

    name: str
    data_type: str
    location: int = 0  # First byte, counted from 1, and number of bytes; 0 in delimited tables
    length: int = 0
    unit: str = ""
    description: str = ""
    missing: tuple[str, ...] = ()  # Special constants, as in the label
    scale: float = 1.0  # Value = stored * scale + offset
    offset: float = 0.0
    bits: Bits | None = None  # Bits in a packed field


@dataclass(frozen=True)
class ArrayAxis:
    """One axis of an array, the slowest first."""

    name: str
    elements: int


@dataclass(frozen=True)
class DataObject:
    """One object in a file: a table, an array, a header or text."""

    kind: str  # `Table_Delimited`, `Array_2D_Image`, `Header`, ...
    name: str
    offset: int  # First byte, counted from 0
    length: int | None = None  # Bytes, if in the label
    records: int = 0
    record_length: int = 0
    delimiter: str = ","
    fields: tuple[LabelField, ...] = ()
    axes: tuple[ArrayAxis, ...] = ()
    element: LabelField | None = None  # Element of an array


@dataclass(frozen=True)
class DataFile:
    """A file that a label describes, by its name in the label's folder."""

    name: str
    parts: tuple[DataObject, ...]


@dataclass(frozen=True)
class ProductLabel:
    """A product."""

    lid: str
    vid: str
    title: str
    kind: str  # `Product_Observational`, ...
    files: tuple[DataFile, ...]
    context: Mapping[str, str] = field(default_factory=dict[str, str])


def parse_label(content: bytes, name: str) -> ProductLabel:
    """Read a label.

    Raises
    ------
    ParseError
        With the line, if it is no label, or describes what cannot be.
    """
    root = load_xml(content, name)
    kind = root.tag.removeprefix(NAMESPACE)
    if not root.tag.startswith(NAMESPACE) or not kind.startswith("Product_"):
        raise ParseError(f"{name} is no PDS4 label", where=name, why=f"it is a {root.tag}")
    reader = _LabelParser(name)
    area = root.find(f"{NAMESPACE}Identification_Area")
    areas = (each for each in root if _tag(each).startswith("File_Area"))
    files = tuple(reader.file(each) for each in areas if each.find(f"{NAMESPACE}File") is not None)
    said = {key: reader.text(area, key) for key in ("logical_identifier", "version_id", "title")}
    return ProductLabel(
        said["logical_identifier"], said["version_id"], said["title"], kind, files, _context(root, reader)
    )


def _tag(element: Any) -> str:
    return element.tag.removeprefix(NAMESPACE) if isinstance(element.tag, str) else ""


def _context(root: Any, reader: _LabelParser) -> dict[str, str]:
    """Return mission, target and instrument of the observation, if known."""
    found: dict[str, str] = {}
    for path, key in (("Investigation_Area/name", "mission"), ("Target_Identification/name", "target")):
        element = root.find(".//" + "/".join(NAMESPACE + part for part in path.split("/")))
        if element is not None and element.text:
            found[key] = element.text.strip()
    for component in root.iter(f"{NAMESPACE}Observing_System_Component"):
        if reader.text(component, "type").lower() == "instrument":
            found["instrument"] = reader.text(component, "name")
    return found


class _LabelParser:
    """Reads elements of one label; errors name their line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.repetitions = 0

    def text(self, element: Any, tag: str, otherwise: str = "") -> str:
        found = None if element is None else element.find(NAMESPACE + tag)
        return found.text.strip() if found is not None and found.text else otherwise

    def number(self, element: Any, tag: str, otherwise: int | None = None) -> int:
        text = self.text(element, tag)
        if not text and otherwise is not None:
            return otherwise
        if not re.fullmatch(r"[+]?\d{1,15}", text):
            raise self.error(element, f"{tag} of {_tag(element)} is {text!r}, and no count")
        return int(text)

    def real(self, element: Any, tag: str, otherwise: float) -> float:
        text = self.text(element, tag)
        try:
            return float(text) if text else otherwise
        except ValueError:
            raise self.error(element, f"{tag} of {_tag(element)} is {text!r}, and no number") from None

    def error(self, element: Any, what: str) -> ParseError:
        return ParseError(what, where=f"{self.name}:{element.sourceline}")

    def file(self, area: Any) -> DataFile:
        name = self.text(area.find(f"{NAMESPACE}File"), "file_name")
        path = PurePosixPath(name)
        if not path.name or path.is_absolute() or ".." in path.parts or "\\" in name:
            raise self.error(area, f"the file name {name!r} leads elsewhere")
        parts = (self.part(each) for each in area if _tag(each) not in ("File", ""))
        return DataFile(name, tuple(part for part in parts if part is not None))

    def part(self, element: Any) -> DataObject | None:
        kind = _tag(element)
        offset = self.number(element, "offset", 0)
        length = self.text(element, "object_length")
        named = self.text(element, "local_identifier") or self.text(element, "name") or kind
        part = DataObject(kind, named, offset, self.number(element, "object_length") if length else None)
        if kind in TABLES:
            return self.table(element, part)
        if kind.startswith("Array"):
            return self.array(element, part)
        return part if kind in ("Header", "Stream_Text") else None

    def table(self, element: Any, part: DataObject) -> DataObject:
        how = element.find(f"{NAMESPACE}Record_{part.kind.removeprefix('Table_')}")
        if how is None:
            how = element.find(f"{NAMESPACE}Record_Delimited")
        if how is None:
            raise self.error(element, f"{part.name} has no Record_* element")
        self.repetitions = 0
        fields = tuple(islice(self.fields(how, 0), MAX_FIELDS + 1))
        if len(fields) > MAX_FIELDS:
            raise self.error(how, f"{part.name} has more than {MAX_FIELDS} fields")
        word = self.text(element, "field_delimiter", "Comma")
        delimiter = next((sign for each, sign in DELIMITERS.items() if each.lower() == word.lower()), "")
        if not delimiter:
            raise self.error(element, f"{word!r} is no delimiter")
        return replace(
            part, records=self.number(element, "records"), record_length=self.number(how, "record_length", 0),
            delimiter=delimiter, fields=_distinct(fields),
        )  # fmt: skip

    def fields(self, parent: Any, base: int) -> Iterator[LabelField]:
        """Yield the fields of a record or group after `base` bytes, with repeated groups expanded."""
        for element in parent:
            tag = _tag(element)
            if _FIELD(tag):
                yield from self.field(element, base)
            elif _GROUP(tag):
                yield from self.group(element, base)

    def group(self, element: Any, base: int) -> Iterator[LabelField]:
        times = self.number(element, "repetitions")
        self.repetitions += times  # those of a group in a group count each time
        if self.repetitions > MAX_FIELDS:
            raise self.error(element, f"its groups repeat more than {MAX_FIELDS} times in all")
        start = base + self.number(element, "group_location", 1) - 1
        step = self.number(element, "group_length", 0) // max(times, 1)
        for number in range(times):
            for each in self.fields(element, start + number * step):
                yield replace(each, name=f"{each.name}_{number + 1}") if times > 1 else each

    def field(self, element: Any, base: int) -> Iterator[LabelField]:
        missing = _special(element)
        location = self.number(element, "field_location", 0)
        whole = LabelField(
            self.text(element, "name"), self.text(element, "data_type"), location + base if location else 0,
            self.number(element, "field_length", 0), self.text(element, "unit"),
            " ".join(self.text(element, "description").split()), missing,
            self.real(element, "scaling_factor", 1.0), self.real(element, "value_offset", 0.0),
        )  # fmt: skip
        packed = element.find(f"{NAMESPACE}Packed_Data_Fields")
        if packed is None:
            yield whole
            return
        for bits in packed.iterfind(f"{NAMESPACE}Field_Bit"):
            part = Bits(self.number(bits, "start_bit_location"), self.number(bits, "stop_bit_location"))
            if not 1 <= part.first <= part.last <= 8 * whole.length or part.last - part.first > 62:
                raise self.error(bits, f"bits {part.first} to {part.last} of {whole.length} bytes")
            named = self.text(bits, "name")
            kind = self.text(bits, "data_type")
            unit = self.text(bits, "unit")
            yield replace(whole, name=named, data_type=kind, unit=unit, bits=part, missing=())

    def array(self, element: Any, part: DataObject) -> DataObject:
        stored = element.find(f"{NAMESPACE}Element_Array")
        found = [
            (
                self.number(each, "sequence_number"),
                self.text(each, "axis_name"),
                self.number(each, "elements"),
            )
            for each in element.iterfind(f"{NAMESPACE}Axis_Array")
        ]
        if stored is None or not found:
            raise self.error(element, f"{part.name} does not say what it consists of")
        order = self.text(element, "axis_index_order", "Last Index Fastest")
        axes = [ArrayAxis(name, size) for _, name, size in sorted(found)]
        if order.lower().startswith("first"):
            axes.reverse()
        missing = _special(element)
        kind = LabelField(
            part.name, self.text(stored, "data_type"), unit=self.text(stored, "unit"), missing=missing,
            scale=self.real(stored, "scaling_factor", 1.0), offset=self.real(stored, "value_offset", 0.0),
        )  # fmt: skip
        return replace(part, axes=tuple(axes), element=kind)


def _special(element: Any) -> tuple[str, ...]:
    """Return the special constants for missing values, without limits of the valid range."""
    constants = element.find(f"{NAMESPACE}Special_Constants")
    found = () if constants is None else constants
    return tuple(each.text.strip() for each in found if each.text and not _tag(each).startswith("valid_"))


def _distinct(fields: tuple[LabelField, ...]) -> tuple[LabelField, ...]:
    """Return the fields with unique names."""
    seen: dict[str, int] = {}
    named: list[LabelField] = []
    for number, each in enumerate(fields, 1):
        plain = each.name or f"field_{number}"
        seen[plain] = seen.get(plain, 0) + 1
        named.append(replace(each, name=plain if seen[plain] == 1 else f"{plain} ({seen[plain]})"))
    return tuple(named)
