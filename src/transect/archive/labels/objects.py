"""Objects in a file, and the elements that describe them: headers, tables, arrays, text, encoded images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..xml import LabelElement, group, leaf

CRLF = "Carriage-Return Line-Feed"
TEXT_STANDARD = {True: "7-Bit ASCII Text", False: "UTF-8 Text"}
"""By whether all signs are ASCII."""


def _no_constants() -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class TableField:
    """A column of a table."""

    name: str
    data_type: str  # `ASCII_Real`, `IEEE754LSBSingle`, ...
    unit: str = ""
    description: str = ""
    # bytes: of a binary field or one of fixed width; the most in a delimited one, 0 where nobody measured
    length: int = 0
    location: int = 0  # first byte in its record or group, counted from 1; 0 in delimited tables
    format: str = ""  # as C prints it, `%9.4f`
    # special constants as the file spells them: `missing_constant`, ...
    constants: Mapping[str, str] = field(default_factory=_no_constants)


@dataclass(frozen=True)
class FieldGroup:
    """Columns that repeat."""

    repetitions: int
    fields: tuple[TableField | FieldGroup, ...]
    name: str = ""
    description: str = ""
    length: int = 0  # bytes of all repetitions; 0 in delimited tables
    location: int = 0  # as of a field


@dataclass(frozen=True)
class HeaderObject:
    """Bytes before a table that name its columns."""

    length: int
    offset: int = 0
    description: str = "Names of the columns"
    ascii: bool = True


@dataclass(frozen=True)
class TableObject:
    """Records of one kind."""

    kind: Literal["Table_Delimited", "Table_Binary", "Table_Character"]
    offset: int  # first byte in the file
    records: int
    fields: tuple[TableField | FieldGroup, ...]
    # bytes of a record with its delimiter; the most in a delimited table, 0 where nobody measured
    record_length: int = 0
    identifier: str = "table"  # what other parts of the label call it
    description: str = ""
    delimiter: str = "Comma"  # between the fields of a delimited table, as labels spell it


@dataclass(frozen=True)
class ArrayObject:
    """Array elements, the last axis fastest."""

    kind: str  # `Array_2D_Image`, `Array_3D_Image`, `Array_2D`, `ArrayObject`, ...
    offset: int
    data_type: str
    axes: tuple[tuple[str, int], ...]  # names and numbers of elements
    unit: str = ""
    identifier: str = "image"
    description: str = ""
    constants: Mapping[str, str] = field(default_factory=_no_constants)


@dataclass(frozen=True)
class TextObject:
    """Lines of text, ended by CRLF."""

    length: int
    offset: int = 0
    ascii: bool = True
    identifier: str = "text"
    description: str = ""


@dataclass(frozen=True)
class EncodedImage:
    """A picture in a format of its own: `PNG`, `JPEG`, ..."""

    encoding: str
    length: int
    identifier: str = "picture"
    description: str = ""


@dataclass(frozen=True)
class InventoryTable:
    """The members of a collection, a record each."""

    records: int
    longest: int


DataObject = HeaderObject | TableObject | ArrayObject | TextObject | EncodedImage | InventoryTable


def element_of(thing: DataObject) -> LabelElement:
    """Return the element that describes something in a file."""
    return _WRITERS[type(thing)](thing)


def _byte(tag: str, value: int) -> LabelElement | None:
    return leaf(tag, value, unit="byte")


def _header(header: HeaderObject) -> LabelElement:
    return group(
        "Header", _byte("offset", header.offset), _byte("object_length", header.length),
        leaf("parsing_standard_id", TEXT_STANDARD[header.ascii]), leaf("description", header.description),
    )  # fmt: skip


def _table(table: TableObject) -> LabelElement:
    if table.kind == "Table_Delimited":
        return _describe_delimited(table)
    record = group(
        table.kind.replace("Table", "Record"),
        *_counts(table.fields),
        _byte("record_length", table.record_length),
        (_column(each, table.kind, number) for number, each in enumerate(table.fields, 1)),
    )
    return group(
        table.kind, leaf("local_identifier", table.identifier), _byte("offset", table.offset),
        leaf("records", table.records), leaf("description", table.description),
        leaf("record_delimiter", CRLF) if table.kind == "Table_Character" else None, record,
    )  # fmt: skip


def _describe_delimited(table: TableObject) -> LabelElement:
    record = group(
        "Record_Delimited",
        *_counts(table.fields),
        _byte("maximum_record_length", table.record_length) if table.record_length else None,
        (_column(each, table.kind, number) for number, each in enumerate(table.fields, 1)),
    )
    return group(
        "Table_Delimited", leaf("local_identifier", table.identifier), _byte("offset", table.offset),
        leaf("parsing_standard_id", "PDS DSV 1"), leaf("description", table.description),
        leaf("records", table.records), leaf("record_delimiter", CRLF),
        leaf("field_delimiter", table.delimiter), record,
    )  # fmt: skip


def _counts(fields: tuple[TableField | FieldGroup, ...]) -> tuple[LabelElement | None, LabelElement | None]:
    groups = sum(isinstance(each, FieldGroup) for each in fields)
    return leaf("fields", len(fields) - groups), leaf("groups", groups)


def _column(column: TableField | FieldGroup, kind: str, number: int) -> LabelElement:
    ending = kind.removeprefix("Table_")
    fixed = ending != "Delimited"
    if isinstance(column, FieldGroup):
        return group(
            f"Group_Field_{ending}", leaf("name", column.name), leaf("group_number", number),
            leaf("repetitions", column.repetitions), *_counts(column.fields),
            leaf("description", column.description),
            _byte("group_location", column.location) if fixed else None,
            _byte("group_length", column.length) if fixed else None,
            (_column(each, kind, inner) for inner, each in enumerate(column.fields, 1)),
        )  # fmt: skip
    longest = _byte("maximum_field_length", column.length) if not fixed and column.length else None
    return group(
        f"Field_{ending}", leaf("name", column.name), leaf("field_number", number),
        _byte("field_location", column.location) if fixed else None, leaf("data_type", column.data_type),
        _byte("field_length", column.length) if fixed else longest, leaf("field_format", column.format),
        leaf("unit", column.unit), leaf("description", column.description), _constants(column.constants),
    )  # fmt: skip


def _constants(constants: Mapping[str, str]) -> LabelElement | None:
    """Return special constants in the order in which the core wants them."""
    known = [leaf(name, constants[name]) for name in CONSTANTS if name in constants]
    return group("Special_Constants", known) if known else None


CONSTANTS = (
    "saturated_constant", "missing_constant", "error_constant", "invalid_constant", "unknown_constant",
    "not_applicable_constant", "valid_maximum", "high_instrument_saturation",
    "high_representation_saturation", "valid_minimum", "low_instrument_saturation",
    "low_representation_saturation",
)  # fmt: skip


def _array(array: ArrayObject) -> LabelElement:
    axes = (
        group("Axis_Array", leaf("axis_name", name), leaf("elements", size), leaf("sequence_number", number))
        for number, (name, size) in enumerate(array.axes, 1)
    )
    return group(
        array.kind, leaf("local_identifier", array.identifier), _byte("offset", array.offset),
        leaf("axes", len(array.axes)), leaf("axis_index_order", "Last Index Fastest"),
        leaf("description", array.description),
        group("Element_Array", leaf("data_type", array.data_type), leaf("unit", array.unit)), axes,
        _constants(array.constants),
    )  # fmt: skip


def _text(text: TextObject) -> LabelElement:
    return group(
        "Stream_Text", leaf("local_identifier", text.identifier), _byte("offset", text.offset),
        _byte("object_length", text.length), leaf("parsing_standard_id", TEXT_STANDARD[text.ascii]),
        leaf("description", text.description), leaf("record_delimiter", CRLF),
    )  # fmt: skip


def _picture(picture: EncodedImage) -> LabelElement:
    return group(
        "Encoded_Image", leaf("local_identifier", picture.identifier), _byte("offset", 0),
        _byte("object_length", picture.length), leaf("encoding_standard_id", picture.encoding),
        leaf("description", picture.description),
    )  # fmt: skip


def _inventory(inventory: InventoryTable) -> LabelElement:
    members = (
        ("Member Status", "ASCII_String", 1),
        ("LIDVID_LID", "ASCII_LIDVID_LID", MAX_MEMBER_CHARACTERS),
    )
    fields = (
        group(
            "Field_Delimited", leaf("name", name), leaf("field_number", number), leaf("data_type", kind),
            _byte("maximum_field_length", length),
        )
        for number, (name, kind, length) in enumerate(members, 1)
    )  # fmt: skip
    record = group(
        "Record_Delimited", leaf("fields", 2), leaf("groups", 0),
        _byte("maximum_record_length", inventory.longest), fields,
    )  # fmt: skip
    return group(
        "Inventory", _byte("offset", 0), leaf("parsing_standard_id", "PDS DSV 1"),
        leaf("records", inventory.records), leaf("record_delimiter", CRLF), leaf("field_delimiter", "Comma"),
        record, leaf("reference_type", "inventory_has_member_product"),
    )  # fmt: skip


MAX_MEMBER_CHARACTERS = 255
_WRITERS: dict[type, Callable[[Any], LabelElement]] = {
    HeaderObject: _header, TableObject: _table, ArrayObject: _array, TextObject: _text,
    EncodedImage: _picture,
    InventoryTable: _inventory,
}  # fmt: skip
