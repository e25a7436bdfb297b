"""Contexts, tables and pictures of the arm's labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO

from transect.archive.contents.files import ImageArray
from transect.archive.identifiers import Lid
from transect.archive.labels.areas import LabelSubject, ProductContext, utc_text
from transect.archive.labels.disciplines import Mission
from transect.archive.labels.objects import DataObject, HeaderObject, TableField, TableObject
from transect.base.clocks import NS
from transect.datasets.insight.products.columns import (
    BY_NAME,
    CODES,
    FORCES,
    MAX_HEATER_CURRENT_A,
    plain_name,
)
from transect.datasets.insight.products.names import ProductName, sclk_text, sol_of_sclk, utc_from_sclk
from transect.datasets.insight.products.writing import coordinates_csv
from transect.errors import ParseError
from transect.recording import Source
from transect.recording.stream import Sample
from transect.recording.text import line_pieces

BUNDLE = Lid("urn:nasa:pds:insight_ida")
DOCUMENTS = Lid("urn:nasa:pds:insight_documents:document_ida")
"""Primary in the bundle of all documents of InSight, secondary in this one (4.5)."""
SIS = DOCUMENTS.child("insight_ida_bundle_sis")
MISSION = LabelSubject("InSight", "Mission", Lid("urn:nasa:pds:context:investigation:mission.insight"))
LANDER = LabelSubject(
    "InSight Mars Lander Spacecraft",
    "Spacecraft",
    Lid("urn:nasa:pds:context:instrument_host:spacecraft.insight"),
)
"""Named as it is registered. It is registered as a lander, for which the information model of this archive
(1.11.1.0) has no word."""
ARM = LabelSubject(
    "Instrument Deployment Arm", "Instrument", Lid("urn:nasa:pds:context:instrument:ida.insight")
)
CAMERAS = {
    "IDC": LabelSubject(
        "InSight Deployment Camera", "Instrument", Lid("urn:nasa:pds:context:instrument:idc.insight")
    ),
    "ICC": LabelSubject(
        "InSight Context Camera", "Instrument", Lid("urn:nasa:pds:context:instrument:icc.insight")
    ),
}
MARS = LabelSubject("Mars", "Planet", Lid("urn:nasa:pds:context:target:planet.mars"))
PHASE = "SURFACE MISSION"
DAY_NS = 86_400 * NS


@dataclass(frozen=True)
class ProductSpan:
    """Start and stop of the data of a product on the spacecraft clock, ns."""

    start_ns: int
    stop_ns: int

    @staticmethod
    def of(name: ProductName, first_ns: int, last_ns: int) -> ProductSpan:
        """Return the times of the data, or of the name if the data have another origin (Table 12)."""
        start, stop = name.start_sclk * NS, name.end_sclk * NS
        near = start - DAY_NS <= first_ns and last_ns <= stop + DAY_NS
        return ProductSpan(first_ns, last_ns) if near else ProductSpan(start, stop)

    @property
    def sol(self) -> int:
        """Sol of the start."""
        return sol_of_sclk(self.start_ns)

    @property
    def utc(self) -> tuple[str, str]:
        """Start and stop in UTC, in the format of labels."""
        return utc_text(utc_from_sclk(self.start_ns)), utc_text(utc_from_sclk(self.stop_ns))


def arm_context(
    product_type: str,
    span: ProductSpan,
    sol: int,
    levels: tuple[str, ...],
    purpose: str = "Science",
    comment: str = "",
    instrument: LabelSubject = ARM,
) -> ProductContext:
    """Return the context of a product of the arm or a camera; `sol` is the sol of its start.

    Counts of the spacecraft clock include the partition, and sols are a pair, as required by 3.3.1.
    """
    counts = sclk_text(span.start_ns), sclk_text(span.stop_ns)
    sols = sol, max(sol, sol_of_sclk(span.stop_ns))
    said = Mission(PHASE, product_type, counts, sols=sols).element()
    return ProductContext(
        span.utc, levels, purpose, (MISSION,), (LANDER, instrument), (MARS,), (said,) if said else (), comment
    )


INVALID = "-99999.0000"
"""invalid_constant of the forces in appendix E; "not measured" in other columns."""
JOINTS = {
    "enc": "angle by the encoder", "pot": "angle by the potentiometer",
    "tcase": "measured motor case temperature", "trotor": "computed motor rotor temperature",
    "cur": "motor current", "volt": "motor voltage",
    "v": "velocity", "tau": "torque",
}  # fmt: skip
"""Description of the columns of each joint, by prefix."""
SCALAR_DESCRIPTIONS = {
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
"""Regular expressions of fields, by type."""


def data_type(name: str) -> str:
    """Return the type of a field in appendix E; other fields are text."""
    if name not in BY_NAME:
        return "ASCII_String"
    if name == "stat":
        return "UTF8_String"
    return "ASCII_Integer" if name in CODES else "ASCII_Real"


def unit(name: str, heater_ampere: bool = True) -> str:
    """Return the unit of a field in appendix E, corrected for the angles `th_*` and the heater current."""
    if name == "htr_cur":
        return "A" if heater_ampere else "mA"
    if name.startswith("th_"):
        return "rad"
    return printed_unit(name)


def printed_unit(name: str) -> str:
    """Return the printed unit of a field in appendix E."""
    word = BY_NAME[name].header_unit if name in BY_NAME else ""
    return {"C": "degC", "": "none"}.get(word, word)


def describe(name: str) -> str:
    """Return the description of a field."""
    if name not in BY_NAME:
        return "not described by the SIS"
    if name in SCALAR_DESCRIPTIONS:
        return SCALAR_DESCRIPTIONS[name]
    axis, _, how = name.partition("_")
    if how:
        sensor, _, deflected = how.partition("_")
        what = "orientation" if axis == "th" else f"{axis.upper()} location"
        bent = "deflected " if deflected else ""
        return f"{bent}{what} of tool as Cartesian coordinates in IDA frame using {SENSORS[sensor]}"
    return f"joint {name[-1]} {JOINTS[name[:-1]]}"


@dataclass(frozen=True)
class ScienceTable:
    """A table of the recording: its heading, and all valid records.

    Invalid lines, which were reported when the recording was read, are omitted.
    """

    source: Source
    file: str

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write heading and records with CRLF in pieces of a few megabytes; return their descriptions."""
        heading, seen = b"", _TableStatistics()
        for piece in line_pieces(self.source.content(self.file), self.file):
            lines = bytes(piece.data).decode("utf-8", "replace").splitlines()
            if not heading and lines:
                seen = _TableStatistics([plain_name(word) for word in lines[0].split(",")])
                heading = f"{lines.pop(0)}\r\n".encode()
                out.write(heading)
            out.write("".join(f"{line}\r\n" for line in seen.records(lines)).encode())
        if not heading:
            raise ParseError(f"{self.file} has no lines", where=self.file)
        return [
            HeaderObject(len(heading), description="Column headings", ascii=heading.isascii()),
            TableObject("Table_Delimited", len(heading), seen.count, seen.fields(), 0, "TABLE"),
        ]


@dataclass
class _TableStatistics:
    """Number of records, columns with missing values, and unit of the heater current."""

    names: Sequence[str] = ()
    count: int = 0
    missing: set[str] = field(default_factory=set[str])
    ampere: bool = True

    @cached_property
    def _fits(self) -> Callable[[str], object]:
        words = (_WORDS.get(data_type(name), _NUMBER) for name in self.names)
        return re.compile(",".join(rf" *{word} *" for word in words)).fullmatch

    def records(self, lines: Sequence[str]) -> list[str]:
        """Return the lines with valid numbers and status words; unknown fields may be any text."""
        kept = [line for line in lines if self._fits(line)]
        self.count += len(kept)
        heater = len(self.names) - self.names.index("htr_cur") if "htr_cur" in self.names else 0
        for line in kept:
            if INVALID in line:
                words = zip(self.names, line.split(","), strict=True)
                self.missing |= {name for name, word in words if word.strip() == INVALID}
            if heater and self.ampere:
                self.ampere = float(line.rsplit(",", heater)[1]) <= MAX_HEATER_CURRENT_A
        return kept

    def fields(self) -> tuple[TableField, ...]:
        """Return the fields, with special constants where values are missing, and always for the forces."""
        constants = {name: {"missing_constant": INVALID} for name in self.missing}
        constants |= {name: {"invalid_constant": INVALID} for name in FORCES}
        return tuple(
            TableField(
                name, data_type(name), unit(name, self.ampere), describe(name),
                constants=constants.get(name, {}),
            )
            for name in self.names
        )  # fmt: skip


NAMES = ("x_coord", "y_coord", "z_coord")


@dataclass(frozen=True)
class CoordinateTable:
    """`ida_sc_coordinates.csv`: a heading, and a record of three numbers."""

    place: Sequence[float]  # the origin of the lander frame in the payload frame, m

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write heading and record; return their descriptions."""
        heading, record = coordinates_csv(self.place).encode().splitlines(keepends=True)
        out.write(heading + record)
        about = "coordinate of the origin of the lander frame in the payload frame"
        fields = tuple(TableField(name, "ASCII_Real", "mm", f"{name[0]} {about}") for name in NAMES)
        return [
            HeaderObject(len(heading), description="Column headings"),
            TableObject("Table_Delimited", len(heading), 1, fields, 0, "TABLE"),
        ]


@dataclass(frozen=True)
class FileCopy:
    """An unchanged file of the recording."""

    source: Source
    file: str

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Copy the bytes."""
        out.write(self.source.buffer(self.file))
        return []


@dataclass(frozen=True)
class Photograph:
    """A picture of a camera, loaded when it is written; band sequential."""

    sample: Sample

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the pixels; return the array."""
        image = self.sample.payload
        return ImageArray(image.data, description=f"Image of the camera, {image.mode}").write(out)
