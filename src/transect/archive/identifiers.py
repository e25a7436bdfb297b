"""Identifiers of products: LIDs, VIDs, both together, and names of files that an archive may have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from transect.base.files import file_name
from transect.errors import UsageError

Level = Literal["bundle", "collection", "product"]

AGENCIES = ("nasa:pds", "esa:psa", "jaxa:darts", "ros:rssa", "isro:isda", "kari:kpds")
"""Authorities that the core's Schematron accepts: `urn:nasa:pds:...`."""
STAND_IN = "urn:nasa:pds"
"""Prefix of identifiers without an authority; such bundles cannot be submitted."""
MAX_PART_CHARACTERS = 255
_LEVELS: dict[int, Level] = {4: "bundle", 5: "collection", 6: "product"}
_PART = re.compile(r"[a-z0-9._-]+").fullmatch
_VID = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)").fullmatch
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\.[A-Za-z0-9]+").fullmatch
_RESERVED = re.compile(r"aux|con|core|nul|prn|com[1-9]|lpt[1-9]", re.IGNORECASE).fullmatch
_RULE = "urn:nasa:pds:bundle[:collection[:product]]; small letters, digits and . _ - between colons"


@dataclass(frozen=True, order=True)
class Lid:
    """A logical identifier, common to all versions of a product."""

    text: str  # `urn:AGENCY:AUTHORITY:BUNDLE[:COLLECTION[:PRODUCT]]`

    def __post_init__(self) -> None:
        if why := _lid_problem(self.text):
            raise UsageError(f"{self.text!r} is no logical identifier", why=why, hint=_RULE)

    def __str__(self) -> str:
        return self.text

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts between the colons, `urn` first."""
        return tuple(self.text.split(":"))

    @property
    def level(self) -> Level:
        """The kind of object, by the number of parts."""
        return _LEVELS[len(self.parts)]

    @property
    def name(self) -> str:
        """The last part."""
        return self.parts[-1]

    @property
    def parent(self) -> Lid | None:
        """The collection of a product, the bundle of a collection; None for a bundle."""
        return None if self.level == "bundle" else Lid(":".join(self.parts[:-1]))

    def child(self, name: str) -> Lid:
        """Return the identifier of a member."""
        return Lid(f"{self.text}:{name}")

    def is_member_of(self, parent: Lid) -> bool:
        """Return whether this is of something in a bundle or a collection, at any depth."""
        return self.text.startswith(f"{parent.text}:")

    @property
    def is_accepted(self) -> bool:
        """Whether the core's Schematron accepts whose it is."""
        return ":".join(self.parts[1:3]) in AGENCIES

    def at(self, vid: Vid) -> Lidvid:
        """Return one version of it."""
        return Lidvid(self, vid)


def _lid_problem(text: str) -> str:
    """Return the problem of a logical identifier, "" if nothing is."""
    if len(text) > MAX_PART_CHARACTERS:
        return f"it has {len(text)} characters, more than {MAX_PART_CHARACTERS}"
    parts = text.split(":")
    if parts[0] != "urn" or len(parts) not in _LEVELS:
        return f"it has {len(parts)} parts" if parts[0] == "urn" else "it does not begin with urn:"
    wrong = next((part for part in parts if not _PART(part)), None)
    return "" if wrong is None else f"the part {wrong!r} has other signs, or none"


@dataclass(frozen=True, order=True)
class Vid:
    """A version: starts at 1.0; changed data increment the major, changed labels the minor number."""

    major: int = 1
    minor: int = 0

    @staticmethod
    def parse(text: str) -> Vid:
        """Parse a version such as `1.0`."""
        found = _VID(text)
        if not found:
            raise UsageError(f"{text!r} is no version", hint="two whole numbers, such as 1.0")
        return Vid(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def next_major(self) -> Vid:
        """The version after a change of the data."""
        return Vid(self.major + 1, 0)

    @property
    def next_minor(self) -> Vid:
        """The version after a change of the label alone."""
        return Vid(self.major, self.minor + 1)


@dataclass(frozen=True, order=True)
class Lidvid:
    """One version of a product."""

    lid: Lid
    vid: Vid

    @staticmethod
    def parse(text: str) -> Lidvid:
        """Parse an identifier such as `urn:nasa:pds:bundle::1.0`."""
        lid, sign, vid = text.partition("::")
        if not sign:
            raise UsageError(f"{text!r} says no version", hint=f"{text}::1.0")
        return Lidvid(Lid(lid), Vid.parse(vid))

    def __str__(self) -> str:
        return f"{self.lid}::{self.vid}"


def identifier_part(name: str) -> str:
    """Return one part of an identifier for any name: small letters, digits and . _ -, nothing else.

    A file may be called by it, too.
    """
    plain = re.sub(r"[^a-z0-9._-]+", "_", file_name(name.lower())).strip("._-") or "unnamed"
    return f"{plain}_" if is_reserved(plain) else plain  # files are called by it


def product_part(file: str) -> str:
    """Return the part of an identifier for a file: its name in small letters, without the suffix."""
    stem, dot, _ = file.rpartition(".")
    return identifier_part(stem if dot else file)


def identifier_parts(names: Iterable[str]) -> list[str]:
    """Return one part of an identifier for each name, no two alike."""
    used: set[str] = set()
    parts: list[str] = []
    for name in names:
        plain = free = identifier_part(name)
        number = 2
        while free in used:
            free, number = f"{plain}_{number}", number + 1
        used.add(free)
        parts.append(free)
    return parts


def is_reserved(name: str) -> bool:
    """Return whether some systems reserve what stands before the first dot of a name, in any case."""
    return _RESERVED(name.partition(".")[0]) is not None


def file_name_problem(name: str) -> str:
    """Return why a file of an archive cannot have a name, "" if it can."""
    if len(name) > MAX_PART_CHARACTERS:
        return f"it has {len(name)} characters, more than {MAX_PART_CHARACTERS}"
    if name.lower() == "a.out" or is_reserved(name):
        return "some systems reserve it"
    if not _FILE(name):
        return "letters, digits and _ - . are allowed, a letter or digit first, and a suffix"
    return ""
