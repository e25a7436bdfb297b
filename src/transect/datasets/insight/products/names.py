"""File names of IDA products (SIS 4.1.3, Table 8) and the application identifiers they carry (Table 6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from transect.base.clocks import NS, iso_from_ns

from .clock import sol_of_sclk, utc_from_sclk

APIDS = {84: "CollisionDatabase", 85: "History", 86: "Parameters", 87: "SciHi", 88: "SciLo", 89: "Status"}
"""Application identifiers of the IDA (SIS Table 6)."""

ARM_FLOAT = "006_arm_float.txt"
SYSTEM_FLOAT = "000_system_float.txt"
PARAMETERS = "012.txt"
SCIENCE = "eu.csv"
COORDINATES = "ida_sc_coordinates.csv"

Kind = Literal["status", "history", "parameters", "science", "coordinates", "label", "picture"]

_NAME = re.compile(
    r"(?P<letter>a)(?P<apid>\d{4})_(?P<start_sol>\d{4})_(?P<start_sclk>\d{9,10})_(?P<end_sclk>\d{9,10})"
    r"_(?P<time_tag>\d{12})_(?P<product>[\w.-]+)",
    re.IGNORECASE,
)
CAMERAS = {"C": "ICC", "D": "IDC"}
"""The context camera and the one on the forearm, by the first letter of their pictures' names."""
_PICTURE = re.compile(
    r"(?P<camera>[CD])\d{3}\w(?P<sol>\d{4})_(?P<sclk>\d{9,10})EDR_F\d{4}_\d{4}\w{1,3}\.(?:png|jpe?g|img)",
    re.IGNORECASE,
)
"""As InSight's raw pictures are published: D000M0789_666569938EDR_F0000_2696M_.PNG. The SIS does not say."""


@dataclass(frozen=True)
class ProductName:
    """The fields of a product's file name, in their order."""

    apid: int  # application identifier, see `APIDS`
    start_sol: int  # sol on which the data began; landing day is sol 0
    # start_sclk, end_sclk: whole seconds of the spacecraft clock of the earliest and the latest packet
    start_sclk: int
    end_sclk: int
    # `yymmddhhmmss` UTC. The SIS calls it the start of acquisition, but its own examples carry the time of
    # a later event (4.5 and 5.5 h after the start SCLK): never take it for the start.
    time_tag: str
    product: str  # product identifier with the extension, e.g. `006_arm_float.txt`.
    letter: str = "A"  # `A` for the IDA; labels use lower case

    def __str__(self) -> str:
        return (
            f"{self.letter}{self.apid:04d}_{self.start_sol:04d}_{self.start_sclk:09d}_{self.end_sclk:09d}"
            f"_{self.time_tag}_{self.product}"
        )

    @property
    def identifier(self) -> str:
        """Product part of the logical identifier: the lower-case name without its extension (SIS 4.1.1)."""
        return str(self).rpartition(".")[0].lower()


def parse_name(name: str) -> ProductName | None:
    """Return the fields of a file name (folders before it are ignored), or None if it is not a product's."""
    match = _NAME.fullmatch(name.rpartition("/")[2])
    if match is None:
        return None
    fields = match.groupdict()
    apid, sol, start, end = (int(fields[key]) for key in ("apid", "start_sol", "start_sclk", "end_sclk"))
    return ProductName(apid, sol, start, end, fields["time_tag"], fields["product"], fields["letter"])


@dataclass(frozen=True)
class PictureName:
    """What the name of a raw picture says: camera (`IDC`, `ICC`), sol, and whole seconds of the SCLK."""

    camera: str
    sol: int
    sclk: int

    def numbered(self, number: int) -> str:
        """Return the name of a picture; the number tells those of one second apart."""
        letter = next(letter for letter, camera in CAMERAS.items() if camera == self.camera)
        return f"{letter}000M{self.sol:04d}_{self.sclk:09d}EDR_F0000_{number % 10_000:04d}M_.PNG"


def parse_picture(name: str) -> PictureName | None:
    """Return what a file name says of a raw picture, or None if it is not one's."""
    match = _PICTURE.fullmatch(name.rpartition("/")[2])
    if match is None:
        return None
    return PictureName(CAMERAS[match["camera"].upper()], int(match["sol"]), int(match["sclk"]))


def picture_stem(name: str) -> str:
    """Return the name of a raw picture's file without folder and suffix; "" if it is none's."""
    return name.rpartition("/")[2].rpartition(".")[0] if parse_picture(name) else ""


def kind_of_name(name: str) -> Kind | None:
    """Return what a file's name says that it holds, or None if it says nothing."""
    base = name.rpartition("/")[2].lower()
    if base == COORDINATES:
        return "coordinates"
    if parse_picture(base):
        return "picture"
    parsed = parse_name(base)
    if parsed is None:
        return None
    if parsed.product.endswith(".xml"):
        return "label"
    if parsed.product.endswith(".csv"):
        return "science"
    by_apid: dict[int, Kind] = {85: "history", 86: "parameters", 89: "status"}
    return by_apid.get(parsed.apid) if parsed.product.endswith(".txt") else None


def new_name(apid: int, product: str, t_ns: tuple[int, int], sol: int | None = None) -> ProductName:
    """Return a name for data that came without one; its time tag is the UTC of the last sample, to 3 minutes.

    Parameters
    ----------
    apid, product
        See `ProductName`.
    t_ns : tuple of int
        First and last SCLK in nanoseconds.
    sol : int or None
        Of the first sample; None to compute it.
    """
    start, end = (max(0, t // NS) for t in t_ns)
    tag = re.sub(r"\D", "", iso_from_ns(utc_from_sclk(end * NS), 0))[2:]
    sol = max(0, sol_of_sclk(t_ns[0])) if sol is None else sol
    return ProductName(apid, sol, start, end, tag, product)
