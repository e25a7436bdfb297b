"""The YAML file that describes an archive, validated with line numbers."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from transect.base import plugins, yaml_fields
from transect.base.yaml_parts import Lines, YamlPart, parse, refuse
from transect.errors import ParseError, UsageError

from ..contents.files import DOCUMENTS
from ..identifiers import STAND_IN, Lid, Vid, file_name_problem, identifier_part

STAND_IN_WORD = "stand-in"
GENERAL = "general"
"""The generic archive profile; others are those of missions."""
InvestigationType = Literal[
    "Mission", "Observing Campaign", "Individual Investigation", "Field Campaign", "Other Investigation"
]
HostType = Literal["Rover", "Lander", "Spacecraft", "Aircraft", "Balloon", "Earth-based", "Suborbital Rocket"]
LevelType = Literal["Raw", "Partially Processed", "Calibrated", "Derived"]
PurposeType = Literal[
    "Science", "Engineering", "Navigation", "Calibration", "Checkout", "Observation Geometry",
    "Supporting Observation",
]  # fmt: skip
_FORMAT = re.compile(r"%[+-]?\d+(\.\d+)?[doxfeEs]").fullmatch
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?").fullmatch
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z").fullmatch
_DOI = re.compile(r"10\.\S+/\S+").fullmatch


def _check_lid(part: YamlPart, lid: str) -> None:
    if lid:
        try:
            Lid(lid)
        except UsageError as error:
            part.child("lid").wrong(f"{error.what}: {error.why}", error.hint)


def _check_vid(part: YamlPart, vid: str) -> None:
    if vid:
        try:
            Vid.parse(vid)
        except UsageError as error:
            part.child("vid").wrong(error.what, error.hint)


def _check_named(part: YamlPart, name: str) -> None:
    if not name.strip():
        part.child("name").wrong("the name is empty", "say what it is called")


def date_text(value: Any) -> str:
    """Return a date as text; YAML makes dates of what looks like one."""
    if isinstance(value, dt.datetime):
        utc = value.astimezone(dt.UTC) if value.tzinfo else value
        return utc.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
    return value.isoformat() if isinstance(value, dt.date) else "" if value is None else str(value)


def _check_date(part: YamlPart, key: str, value: Any) -> None:
    if value not in (None, "") and not _DATE(date_text(value)):
        part.child(key).wrong(f"{key} is {date_text(value)!r}, and no date", "2024-05-01")


@dataclass(frozen=True)
class BundleText:
    """Name and citation of the bundle."""

    name: str
    title: str
    description: str = ""
    authors: str = ""
    year: int = 0
    doi: str = ""
    keywords: list[str] = field(default_factory=list[str])
    vid: str = ""

    def check(self, part: YamlPart) -> None:
        """Report a name that identifiers cannot have."""
        if self.name != identifier_part(self.name):
            what = f"the name {self.name!r} cannot stand in an identifier"
            part.child("name").wrong(what, f"write {identifier_part(self.name)}")
        if self.doi and not _DOI(self.doi):
            part.child("doi").wrong(f"{self.doi!r} is no DOI", "10.17189/1234")
        _check_vid(part, self.vid)


@dataclass(frozen=True)
class InvestigationText:
    """The campaign or mission; with a lid it is registered, without it gets a product of its own."""

    name: str
    type: InvestigationType = "Field Campaign"
    description: str = ""
    start: Any = None
    stop: Any = None
    lid: str = ""

    def check(self, part: YamlPart) -> None:
        """Report wrong dates and identifiers."""
        _check_named(part, self.name)
        _check_lid(part, self.lid)
        _check_date(part, "start", self.start)
        _check_date(part, "stop", self.stop)


@dataclass(frozen=True)
class HostText:
    """The robot."""

    name: str
    type: HostType = "Rover"
    description: str = ""
    lid: str = ""

    def check(self, part: YamlPart) -> None:
        """Report a wrong identifier."""
        _check_named(part, self.name)
        _check_lid(part, self.lid)


@dataclass(frozen=True)
class InstrumentText:
    """A sensor and its streams."""

    name: str
    streams: list[str]
    description: str = ""
    lid: str = ""

    def check(self, part: YamlPart) -> None:
        """Report a wrong identifier."""
        _check_named(part, self.name)
        _check_lid(part, self.lid)


@dataclass(frozen=True)
class TargetText:
    """The observed target."""

    name: str = "Earth"
    type: str = "Planet"
    description: str = ""
    lid: str = ""

    def check(self, part: YamlPart) -> None:
        """Report a wrong identifier."""
        _check_named(part, self.name)
        _check_lid(part, self.lid)


@dataclass(frozen=True)
class MissionText:
    """A phase of a surface mission, and its sols."""

    phase: str = ""
    start_sol: int | None = None
    stop_sol: int | None = None


@dataclass(frozen=True)
class ColumnText:
    """Description of a column."""

    short = "description"
    description: str = ""
    format: str = ""

    def check(self, part: YamlPart) -> None:
        """Report an invalid format."""
        if self.format and not _FORMAT(self.format):
            part.child("format").wrong(f"{self.format!r} is no format of a field", '"%9.4f"')


@dataclass(frozen=True)
class StreamText:
    """Description of a stream; missing fields are taken from the recording."""

    level: LevelType | None = None
    title: str = ""
    description: str = ""
    skip: bool = False
    every: int = 1
    vid: str = ""
    columns: dict[str, ColumnText] = field(default_factory=dict[str, ColumnText])

    def check(self, part: YamlPart) -> None:
        """Report numbers that cannot be meant."""
        if self.every < 1:
            part.child("every").wrong(f"every is {self.every}", "1 takes all, 10 each tenth")
        _check_vid(part, self.vid)


@dataclass(frozen=True)
class DocumentText:
    """A document, a video or a picture that belongs to the archive."""

    file: str
    title: str
    description: str = ""
    authors: str = ""
    date: Any = None

    def check(self, part: YamlPart) -> None:
        """Report a file that no archive takes."""
        name = Path(self.file).name
        if why := file_name_problem(name):
            hint = "rename it: letters, digits, _ and -"
            part.child("file").wrong(f"{name!r} is no name for a file of an archive: {why}", hint)
        elif Path(name).suffix.lower() not in DOCUMENTS:
            hint = f"known are {', '.join(sorted(DOCUMENTS))}"
            part.child("file").wrong(f"documents of this type cannot be archived: {name}", hint)
        _check_date(part, "date", self.date)


@dataclass(frozen=True)
class ArchiveText:
    """The description of an archive."""

    bundle: BundleText
    created: Any
    investigation: InvestigationText
    host: HostText
    recording: str = ""
    profile: str = GENERAL
    results: list[str] = field(default_factory=list[str])
    products: str = ""
    simulated: bool = False
    authority: str = STAND_IN_WORD
    target: TargetText = field(default_factory=TargetText)
    instruments: list[InstrumentText] = field(default_factory=list[InstrumentText])
    mission: MissionText = field(default_factory=MissionText)
    purpose: PurposeType = "Science"
    streams: dict[str, StreamText] = field(default_factory=dict[str, StreamText])
    documents: list[DocumentText] = field(default_factory=list[DocumentText])
    browse: int = 1
    readme: str = ""

    def check(self, part: YamlPart) -> None:
        """Report what types alone cannot say."""
        if not _TIME(date_text(self.created)):
            part.child("created").wrong(
                f"created is {date_text(self.created)!r}, and no time", '"2024-05-01T12:00:00Z", in UTC'
            )
        if self.profile != GENERAL and self.profile not in plugins.strings("archives"):
            known = ", ".join((GENERAL, *plugins.names("archives")))
            part.child("profile").wrong(f"there is no profile {self.profile!r}", f"one of {known}")
        if not (self.recording or self.results or self.products):
            part.wrong("nothing is to be archived", "name a recording:, results: or products:")
        if self.authority != STAND_IN_WORD:
            _check_authority(part.child("authority"), self.authority)

    @property
    def is_stand_in(self) -> bool:
        """Whether no authority is given."""
        return self.authority == STAND_IN_WORD

    @property
    def prefix(self) -> str:
        """Prefix of all identifiers."""
        return STAND_IN if self.is_stand_in else self.authority


def _check_authority(part: YamlPart, authority: str) -> None:
    try:
        right = Lid(f"{authority}:x").level == "bundle"
    except UsageError:
        right = False
    if not right:
        what = f"{authority!r} is no authority"
        part.wrong(what, f"urn:nasa:pds, urn:esa:psa, ..., or {STAND_IN_WORD}")


@dataclass(frozen=True)
class ArchiveConfig:
    """A parsed file with its lines."""

    said: ArchiveText
    file: Path
    lines: Lines

    def path(self, name: str) -> Path:
        """Return a path that the file names, from its own folder."""
        return self.file.parent / name

    def error(self, what: str, *steps: str | int, why: str = "", hint: str = "") -> ParseError:
        """Return an error about a part of the file."""
        return ParseError(what, where=self.lines.place(steps), why=why, hint=hint)


def read_config(path: Path) -> ArchiveConfig:
    """Read the description of an archive.

    Raises
    ------
    ParseError
        That names every problem with its line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParseError(f"{path} cannot be read", where=str(path), why=str(error)) from error
    return parse_config(text, path)


def parse_config(text: str, path: Path) -> ArchiveConfig:
    """Parse the description of an archive from text; `path` is its file."""
    data, lines = parse(text, str(path))
    part = YamlPart(data, (), lines)
    said = yaml_fields.read(part, ArchiveText, "the archive")
    refuse(part.problems, str(path))
    assert said is not None
    return ArchiveConfig(said, path, lines)
