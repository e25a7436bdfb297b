"""SciHi and SciLo tables: the 58 fields of appendix E, the lines of the file as they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO

from transect.archive.labels.objects import DataObject, Field, Header, Table
from transect.datasets.insight.products.columns import BY_NAME, CODES, FORCES, HEATER_MAX_A, bare_name
from transect.errors import ParseError
from transect.recording import Source
from transect.recording.text import line_pieces

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
    "time": "time of the readings",
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
        """Write heading and records, lines ended by CRLF, a few megabytes at a time; return what they are."""
        heading, seen = b"", _Seen()
        for piece in line_pieces(self.source.content(self.file), self.file):
            lines = bytes(piece.data).decode("utf-8", "replace").splitlines()
            if not heading and lines:
                seen = _Seen([bare_name(word) for word in lines[0].split(",")])
                heading = f"{lines.pop(0)}\r\n".encode()
                out.write(heading)
            out.write("".join(f"{line}\r\n" for line in seen.records(lines)).encode())
        if not heading:
            raise ParseError(f"{self.file} has no lines", where=self.file)
        return [
            Header(len(heading), description="Column headings", ascii=heading.isascii()),
            Table("Table_Delimited", len(heading), seen.count, seen.fields(), 0, "TABLE"),
        ]


@dataclass
class _Seen:
    """What was seen of a table so far: records, columns that were not measured, the heaters' unit."""

    names: Sequence[str] = ()
    count: int = 0
    missing: set[str] = field(default_factory=set[str])
    ampere: bool = True

    @cached_property
    def _fits(self) -> Callable[[str], object]:
        words = (_WORDS.get(data_type(name), _NUMBER) for name in self.names)
        return re.compile(",".join(rf" *{word} *" for word in words)).fullmatch

    def records(self, lines: Sequence[str]) -> list[str]:
        """Return the lines that have a number in each field, or a status word; any text in unknown ones."""
        kept = [line for line in lines if self._fits(line)]
        self.count += len(kept)
        heater = len(self.names) - self.names.index("htr_cur") if "htr_cur" in self.names else 0
        for line in kept:
            if INVALID in line:
                words = zip(self.names, line.split(","), strict=True)
                self.missing |= {name for name, word in words if word.strip() == INVALID}
            if heater and self.ampere:
                self.ampere = float(line.rsplit(",", heater)[1]) <= HEATER_MAX_A
        return kept

    def fields(self) -> tuple[Field, ...]:
        """Return the fields; constants stand in those columns that have them, and always in the forces."""
        constants = {name: {"missing_constant": INVALID} for name in self.missing}
        constants |= {name: {"invalid_constant": INVALID} for name in FORCES}
        return tuple(
            Field(
                name, data_type(name), unit(name, self.ampere), describe(name),
                constants=constants.get(name, {}),
            )
            for name in self.names
        )  # fmt: skip
