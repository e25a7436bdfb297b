"""SciHi and SciLo tables: the 58 fields of appendix E, the lines of the file as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from transect.errors import ParseError
from transect.formats.ida.columns import BY_NAME, CODES, FORCES, HEATER_MAX_A, bare_name
from transect.recording import Source

from ..labels.objects import DataObject, Field, Header, Table

INVALID = "-99999.0000"
"""invalid_constant of the forces in appendix E; where another column has it, it was not measured."""
JOINTS = {
    "enc": "angle by the encoder", "pot": "angle by the potentiometer",
    "tcase": "measured motor case temperature", "trotor": "computed motor rotor temperature",
    "cur": "motor current", "volt": "motor voltage",
    "v": "velocity", "tau": "torque",
}  # fmt: skip
"""What is said of each joint, by how its columns are called."""
WHOLES = {
    "time": "time, spacecraft clock",
    "elapsed_time": "time since the readings began",
    "tgrapple": "grapple motor temperature",
    "stat": "bit-mapped status word (SIS Table 13)",
    "tool": "currently selected tool (SIS Table 14)",
    "Fr": "radial force at the tool in cylindrical coordinates",
    "Ft": "transverse force at the tool in cylindrical coordinates",
    "Fz": "vertical force at the tool in cylindrical coordinates",
    "htr_cur": "sum of heater currents",
    "grapple_phase": "grapple phase (SIS Table 15)",
}
SENSORS = {"enc": "joint encoder readings", "pot": "joint potentiometer readings"}
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_WORDS = {
    "UTF8_String": r"(?:0[xX][0-9a-fA-F]+|\d+(?:\.0*)?)", "ASCII_Integer": r"[+-]?\d+",
    "ASCII_String": r"[\x20-\x21\x23-\x2b\x2d-\x7e]*",
}  # fmt: skip
"""What fields may hold, by their types."""


def data_type(name: str) -> str:
    """Return the type of a field as appendix E has it; fields that it has not are text."""
    if name not in BY_NAME:
        return "ASCII_String"
    if name == "stat":
        return "UTF8_String"
    return "ASCII_Integer" if name in CODES else "ASCII_Real"


def unit(name: str, heater_ampere: bool = True) -> str:
    """Return the unit of a field as appendix E has it, but for angles `th_*` and the heaters' current."""
    if name == "htr_cur":
        return "A" if heater_ampere else "mA"
    if name.startswith("th_"):
        return "rad"
    return printed_unit(name)


def printed_unit(name: str) -> str:
    """Return the unit of a field as appendix E prints it."""
    word = BY_NAME[name].header_unit if name in BY_NAME else ""
    return {"C": "degC", "": "none"}.get(word, word)


def describe(name: str) -> str:
    """Return what a field holds."""
    if name not in BY_NAME:
        return "not described by the SIS"
    if name in WHOLES:
        return WHOLES[name]
    axis, _, how = name.partition("_")
    if how:
        sensor, _, deflected = how.partition("_")
        what = "orientation" if axis == "th" else f"{axis.upper()} location"
        bent = "deflected " if deflected else ""
        return f"{bent}{what} of tool as Cartesian coordinates in IDA frame using {SENSORS[sensor]}"
    return f"joint {name[-1]} {JOINTS[name[:-1]]}"


@dataclass(frozen=True)
class ScienceTable:
    """A table as it came: its heading, and all lines that are records.

    Lines that are none, which reading the recording has reported, are left out.
    """

    source: Source
    file: str

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write heading and records, lines ended by CRLF; return what they are."""
        lines = self.source.text(self.file).splitlines()
        if not lines:
            raise ParseError(f"{self.file} is empty", where=self.file)
        names = [bare_name(word) for word in lines[0].split(",")]
        heading = lines[0].encode() + b"\r\n"
        out.write(heading)
        records = list(_records(lines[1:], names))
        out.write("".join(f"{line}\r\n" for line in records).encode())
        fields = _fields(names, records)
        return [
            Header(len(heading), description="Column headings", ascii=heading.isascii()),
            Table("Table_Delimited", len(heading), len(records), fields, 0, "TABLE"),
        ]


def _records(lines: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """Give the lines that have a number, or a status word, in each field; any text in fields of others."""
    words = (_WORDS.get(data_type(name), _NUMBER) for name in names)
    fits = re.compile(",".join(rf" *{word} *" for word in words)).fullmatch
    return (line for line in lines if fits(line))


def _fields(names: Sequence[str], records: Sequence[str]) -> tuple[Field, ...]:
    """Return the fields; constants stand in those columns that have them, and always in the forces."""
    missing: set[str] = set()
    ampere = True
    heater = names.index("htr_cur") if "htr_cur" in names else None
    for line in records:
        if INVALID in line:
            words = line.split(",")
            missing |= {name for name, word in zip(names, words, strict=True) if word.strip() == INVALID}
        if heater is not None and ampere:
            ampere = float(line.rsplit(",", len(names) - heater)[1]) <= HEATER_MAX_A
    constants = {name: {"missing_constant": INVALID} for name in missing}
    constants |= {name: {"invalid_constant": INVALID} for name in FORCES}
    return tuple(
        Field(name, data_type(name), unit(name, ampere), describe(name), constants=constants.get(name, {}))
        for name in names
    )
