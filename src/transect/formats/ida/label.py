"""The PDS4 label beside an IDA table (SIS appendix E): what it says of the table's columns and layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transect.errors import ParseError
from transect.recording.source import Buffer

_FIELD_DELIMITERS = {"comma": ",", "semicolon": ";", "horizontal tab": "\t", "vertical bar": "|"}
_RECORD_DELIMITERS = {"carriage-return line-feed": "\r\n", "line-feed": "\n"}
MAX_BYTES = 16 * 2**20
"""A label larger than this is not one."""


@dataclass(frozen=True)
class Field:
    """One column of a delimited table.

    Attributes
    ----------
    name, data_type, unit, description : str
        As in the label.
    invalid : tuple of str
        Texts that stand for "no value" (Special_Constants).
    """

    name: str
    data_type: str
    unit: str = ""
    description: str = ""
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Label:
    """The delimited table that a label describes.

    Attributes
    ----------
    file_name : str
        The data file's name.
    fields : tuple of Field
    delimiter : str
        Between fields.
    line_end : str
    offset : int
        Bytes before the first record: the length of the header.
    records : int
    properties : mapping of str to str
        Identifier, title, times, SCLK and sol, by the names of their elements.
    """

    file_name: str
    fields: tuple[Field, ...]
    delimiter: str
    line_end: str
    offset: int
    records: int
    properties: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(field.name for field in self.fields)


_PROPERTIES = (
    *("logical_identifier", "version_id", "title", "start_date_time", "stop_date_time"),
    *("product_type_name", "spacecraft_clock_start", "spacecraft_clock_stop", "start_sol_number"),
)


def parse_label(content: Buffer, name: str) -> Label:
    """Read a label; network, DTD and entities are refused.

    Raises
    ------
    ParseError
        If it is not well-formed, has a DTD, or describes no delimited table.
    """
    root = _root(content, name)
    table = root.find(".//{*}Table_Delimited")
    if table is None:
        raise ParseError(f"{name} describes no delimited table", where=name, why="it has no Table_Delimited")
    delimiter = _text(table, "field_delimiter").lower()
    line_end = _text(table, "record_delimiter").lower()
    properties = {key: _text(root, key) for key in _PROPERTIES}
    return Label(
        file_name=_text(root, "file_name"),
        fields=tuple(_field(element) for element in table.iterfind(".//{*}Field_Delimited")),
        delimiter=_FIELD_DELIMITERS.get(delimiter, ","),
        line_end=_RECORD_DELIMITERS.get(line_end, "\r\n"),
        offset=_number(table, "offset", name),
        records=_number(table, "records", name),
        properties={key: text for key, text in properties.items() if text},
    )


def _root(content: Buffer, name: str) -> Any:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    if len(content) > MAX_BYTES:
        raise ParseError(f"{name} is too large for a label", where=name, why=f"it has {len(content)} bytes")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(bytes(content), parser)
    except etree.XMLSyntaxError as error:
        raise ParseError(f"{name} is not well-formed XML", where=name, why=str(error)) from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise ParseError(
            f"{name} has a document type", where=name, why="labels have none; entities are unsafe"
        )
    return root


def _field(element: Any) -> Field:
    constants = element.iterfind("{*}Special_Constants/{*}*")
    unit = _text(element, "unit")
    return Field(
        name=_text(element, "name"),
        data_type=_text(element, "data_type"),
        unit="" if unit == "none" else unit,
        description=_text(element, "description"),
        invalid=tuple((constant.text or "").strip() for constant in constants),
    )


def _text(element: Any, name: str) -> str:
    found = element.find(f".//{{*}}{name}")
    return "" if found is None else (found.text or "").strip()


def _number(element: Any, name: str, file: str) -> int:
    text = _text(element, name)
    if not text.isdecimal() or len(text) > 18:
        raise ParseError(f"{name} of the table is not a number", where=file, why=f"it is {text!r}")
    return int(text)
