"""Clocks of InSight (SIS 3.3.1): the text of the spacecraft clock (SCLK), and the UTC and the sol of a count.

The SIS has `[p/]ddddddddd[-fffff]`: partition, whole seconds, and fractions of 1/65536 s. It prints one pair
of SCLK and UTC (appendix E). Here UTC is extrapolated from that pair at the rate of UTC: accurate to a second
on that day, and to 3 minutes in the mission, since the clock drifts and its SPICE kernel is not available.
The SIS counts sols from landing day, sol 0, and gives no local times.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from transect.base.clocks import NS, iso_from_ns, ns_from_iso
from transect.recording import Loss, Source

from .columns import BY_NAME, plain_name

TICKS_PER_SECOND = 65_536
FIRST_PARTITION = 1
"""InSight's clock was never reset: all of its counts are in the first partition."""
PAIR_NS = (615_088_547 * NS, ns_from_iso("2019-06-29T13:56:40.702Z"))
"""SCLK and UTC of the label in SIS appendix E."""
SOL_0_NS = ns_from_iso("2018-11-26T05:10:50.336Z")
"""Midnight before the landing, in the mean solar time of the landing site (135.97 degrees east)."""
SOL_NS = 88_775_244_147_000
"""A mean solar day of Mars."""


def sclk_text(t_ns: int, partition: int | None = FIRST_PARTITION, *, whole: bool = False) -> str:
    """Format a count as in the SIS.

    Parameters
    ----------
    t_ns : int
        SCLK in nanoseconds, not negative; rounded to ticks of 1/65536 s.
    partition : int or None
        None omits it, as in appendix E; 3.3.1 then requires it in a separate attribute.
    whole : bool
        Omit the fraction: whole seconds, truncated.
    """
    ticks = t_ns // NS * TICKS_PER_SECOND if whole else (2 * t_ns * TICKS_PER_SECOND + NS) // (2 * NS)
    prefix = "" if partition is None else f"{partition}/"
    return f"{prefix}{ticks // TICKS_PER_SECOND:09d}" + ("" if whole else f"-{ticks % TICKS_PER_SECOND:05d}")


def utc_from_sclk(t_ns: int) -> int:
    """Return UTC (ns since 1970) of an SCLK (ns), to a second on sol 209 and to 3 minutes in the mission."""
    sclk, utc = PAIR_NS
    return t_ns - sclk + utc


def sol_of_utc(utc_ns: int) -> int:
    """Return the sol of a time (ns since 1970) in local mean solar time; landing day is sol 0."""
    return (utc_ns - SOL_0_NS) // SOL_NS


def sol_of_sclk(t_ns: int) -> int:
    """Return the sol of an SCLK (ns); within 3 minutes of midnight it may be off by one."""
    return sol_of_utc(utc_from_sclk(t_ns))


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
"""Names of InSight's published raw pictures: D000M0789_666569938EDR_F0000_2696M_.PNG; not in the SIS."""


@dataclass(frozen=True)
class ProductName:
    """The fields of a product's file name, in their order."""

    apid: int  # application identifier, see `APIDS`
    start_sol: int  # sol on which the data began; landing day is sol 0
    # start_sclk, end_sclk: whole seconds of the spacecraft clock of the earliest and the latest packet
    start_sclk: int
    end_sclk: int
    # `yymmddhhmmss` UTC. Documented as the start of acquisition, but in the examples of the SIS it is 4.5 and
    # 5.5 h after the start SCLK; do not use it as the start
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
    """Fields of the name of a raw picture: camera (`IDC`, `ICC`), sol, and whole seconds of the SCLK."""

    camera: str
    sol: int
    sclk: int

    def numbered(self, number: int) -> str:
        """Return the name of a picture; the number distinguishes pictures within one second."""
        letter = next(letter for letter, camera in CAMERAS.items() if camera == self.camera)
        return f"{letter}000M{self.sol:04d}_{self.sclk:09d}EDR_F0000_{number % 10_000:04d}M_.PNG"


def parse_picture(name: str) -> PictureName | None:
    """Return the fields of the name of a raw picture, or None for other names."""
    match = _PICTURE.fullmatch(name.rpartition("/")[2])
    if match is None:
        return None
    return PictureName(CAMERAS[match["camera"].upper()], int(match["sol"]), int(match["sclk"]))


def picture_stem(name: str) -> str:
    """Return the name of a raw picture's file without folder and suffix; "" for other names."""
    return name.rpartition("/")[2].rpartition(".")[0] if parse_picture(name) else ""


def kind_of_name(name: str) -> Kind | None:
    """Return the kind of a file by its name, or None."""
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
    """Return a new product name; its time tag is the UTC of the last sample, accurate to 3 minutes.

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


HEAD_BYTES = 4096
"""Bytes of a text that determine its kind."""
_STATUS = re.compile(rb"\b(ra|sys)[ _]status\.", re.IGNORECASE)
_POINTS = re.compile(rb"points? before latest", re.IGNORECASE)
_SETS = re.compile(rb"^\s*Parameter Set\s*:", re.IGNORECASE | re.MULTILINE)


@dataclass
class Products:
    """The files of a recording, by kind; each list in the order of the spacecraft clock."""

    status: list[str] = field(default_factory=list[str])
    history: list[str] = field(default_factory=list[str])
    parameters: list[str] = field(default_factory=list[str])
    science: list[str] = field(default_factory=list[str])
    coordinates: list[str] = field(default_factory=list[str])
    label: list[str] = field(default_factory=list[str])
    picture: list[str] = field(default_factory=list[str])
    others: list[str] = field(default_factory=list[str])
    losses: list[Loss] = field(default_factory=list[Loss])

    def label_of(self, name: str) -> str | None:
        """Return the label beside a file: the same name in any case, with the extension .xml."""
        return self._labels.get(_without_suffix(name))

    def lone_labels(self) -> list[str]:
        """Return the labels whose file is missing."""
        data = [*self.science, *self.status, *self.history, *self.parameters, *self.coordinates]
        unread = [*self.others, *(loss.file for loss in self.losses)]
        described = {_without_suffix(name) for name in (*data, *unread)}
        return [label for stem, label in self._labels.items() if stem not in described]

    @functools.cached_property
    def _labels(self) -> dict[str, str]:
        return {_without_suffix(label): label for label in self.label}


def kind_of_content(head: bytes) -> Kind | None:
    """Return the kind of a text by its first bytes."""
    if _POINTS.search(head):
        return "history"
    if _SETS.search(head):
        return "parameters"
    if _STATUS.search(head):
        return "status"
    first = head.decode("utf-8", "replace").partition("\n")[0]
    names = {plain_name(heading) for heading in first.split(",")}
    if "x_coord" in names:
        return "coordinates"
    return "science" if len(names & BY_NAME.keys()) > 20 else None


def sort_products(source: Source) -> Products:
    """Sort the files of a source by kind; the content takes precedence over the name."""
    products = Products()
    for name in sorted(source.names, key=_order):
        if parse_picture(name):
            products.picture.append(name)
            continue
        if not name.lower().endswith((".txt", ".csv", ".xml")):
            products.others.append(name)
            continue
        named = kind_of_name(name)
        kind = named if named == "label" else kind_of_content(source.head(name, HEAD_BYTES)) or named
        if named and kind != "label" and not source.size(name):
            products.losses.append(Loss(name, "the file is empty", count=0))
        elif kind in ("status", "history") and not _STATUS.search(source.buffer(name)):
            products.losses.append(Loss(name, "it holds neither ra_status nor sys_status", count=0))
        elif kind:
            getattr(products, kind).append(name)
        else:
            products.others.append(name)
    return products


def _order(name: str) -> tuple[int, int, str, str]:
    parsed = parse_name(name)
    return (parsed.start_sclk, parsed.end_sclk, parsed.time_tag, name) if parsed else (0, 0, "", name)


def _without_suffix(name: str) -> str:
    return name.rpartition(".")[0].lower()


def mentions(source: Source, names: Iterable[str], prefix: str) -> bool:
    """Whether any of the status texts has keys of a prefix (`ra_status`, `sys_status`)."""
    pattern = re.compile(rb"\b" + prefix.encode().replace(b"_", b"[ _]") + rb"\.", re.IGNORECASE)
    return any(pattern.search(source.buffer(name)) for name in names)
