"""A product: a result with time, place, quality, and the record of what it was made from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from transect.base.tables import html_table, size_text
from transect.errors import ParseError, UsageError
from transect.types.provenance import Provenance, SourceFile

from .place import Place

_FORMAT = re.compile(r"[a-z0-9][a-z0-9_]{0,15}").fullmatch


@dataclass(frozen=True)
class Payload:
    """The bytes of a product: how many, which, and what reads them."""

    sha256: str
    size: int  # bytes
    format: str  # suffix of the file: `tif`, `ply`, `parquet`, `png`, `tum`

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise UsageError("the hash of a payload is 64 hexadecimal digits", why=f"it is {self.sha256!r}")
        if self.size < 0:
            raise UsageError(f"a payload cannot have {self.size} bytes")
        if not _FORMAT(self.format):
            hint = "small letters and digits, as the suffix of a file"
            raise UsageError(f"{self.format!r} is no format of a payload", hint=hint)

    @staticmethod
    def of(content: bytes | Path, format: str) -> Payload:
        """Return what is said of some bytes, or of a file; a large file is read in pieces."""
        if isinstance(content, bytes):
            return Payload(sha256(content).hexdigest(), len(content), format)
        digest, size = sha256(), 0
        with content.open("rb") as stream:
            while piece := stream.read(1 << 20):
                digest.update(piece)
                size += len(piece)
        return Payload(digest.hexdigest(), size, format)


def _no_quality() -> dict[str, float]:
    return {}


@dataclass(frozen=True)
class Product:
    """A result, without its bytes.

    Its identity is the hash of all that it says, payload and provenance included: the same result is the same
    product in every store, and a product never changes.
    """

    kind: str  # what it is: `DEM`, `Trajectory`, `PointCloud`, `Run`,
    payload: Payload
    name: str = ""  # the port that gave it, or what a person calls it
    # "" where that is not known
    robot: str = ""
    mission: str = ""
    frame: str = ""
    clock: str = "utc"  # of its times; products of different clocks are never compared by time
    # The time that it is about, both included
    t0_ns: int | None = None
    t1_ns: int | None = None
    place: Place | None = None
    # `score` in [0, 1] says how far it can be trusted; others are what was measured: `rmse_m`,
    # `coverage`
    quality: Mapping[str, float] = field(default_factory=_no_quality)
    # Its `parents` are products; `parameters` are all other inputs that determine the bytes
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        if not self.kind:
            raise UsageError("a product needs a kind", hint="DEM, Trajectory, PointCloud, ...")
        if (self.t0_ns is None) != (self.t1_ns is None):
            raise UsageError("the time of a product has only one end")
        if self.t0_ns is not None and self.t1_ns is not None and self.t0_ns > self.t1_ns:
            raise UsageError("the time of a product ends before it begins")
        if wrong := [name for name, value in self.quality.items() if not math.isfinite(value)]:
            hint = "leave out what was not measured"
            raise UsageError(f"the quality {wrong[0]!r} of a product is no number", hint=hint)
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise UsageError(f"the score of a product is {self.score:g}", hint="0 is useless, 1 is trusted")

    @property
    def score(self) -> float | None:
        """How far it can be trusted, in [0, 1]; None if nobody said."""
        return self.quality.get("score")

    def _repr_html_(self) -> str:

        rows = [(name, text) for name, text in zip(HEADINGS, row_of(self), strict=True) if text]
        rows += [(name, f"{value:g}") for name, value in self.quality.items() if name != "score"]
        return html_table(f"{self.kind} {self.name}", [("", ""), *rows])

    @cached_property
    def id(self) -> str:
        """The sha256 of `document`, 64 hexadecimal digits."""
        return sha256(self.document.encode()).hexdigest()

    @cached_property
    def document(self) -> str:
        """All that it says, as JSON; equal products have equal documents."""
        content = {
            "kind": self.kind,
            "payload": asdict(self.payload),
            "name": self.name,
            "robot": self.robot,
            "mission": self.mission,
            "frame": self.frame,
            "clock": self.clock,
            "time_ns": None if self.t0_ns is None else [self.t0_ns, self.t1_ns],
            "place": None if self.place is None else self.place.to_dict(),
            "quality": {name: float(value) for name, value in self.quality.items()},
            "provenance": self.provenance.to_dict(),
        }
        try:
            return json.dumps(
                content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
            )
        except (TypeError, ValueError) as error:
            hint = "numbers, texts, lists and mappings of them; no NaN"
            raise UsageError("the product says what JSON cannot hold", why=str(error), hint=hint) from error

    @staticmethod
    def from_document(text: str) -> Product:
        """Return the product that a document describes.

        Raises
        ------
        ParseError
            For anything that `document` cannot have been.
        """
        try:
            content = json.loads(text)
            t0_ns, t1_ns = content["time_ns"] or (None, None)
            place, record = content["place"], content["provenance"]
            return Product(
                content["kind"], Payload(**content["payload"]), content["name"], content["robot"],
                content["mission"], content["frame"], content["clock"], t0_ns, t1_ns,
                Place.from_dict(place) if place else None, content["quality"], provenance_from(record),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, UsageError) as error:
            raise ParseError("this is not the document of a product", why=str(error)) from error


def provenance_from(record: Mapping[str, Any]) -> Provenance:
    """Return the provenance that plain values, as `asdict` gives them, describe."""
    fields = {name: record[name] for name in ("tool", "format", "command", "parameters")}
    sources = tuple(SourceFile(**source) for source in record["sources"])
    return Provenance(sources=sources, parents=tuple(record["parents"]), **fields)


HEADINGS = ("id", "kind", "name", "robot", "time", "place", "score", "size", "format")
SHORT_ID_DIGITS = 12
"""Digits of an id that are shown; six are enough to name a product."""


def row_of(product: Product) -> tuple[str, ...]:
    """Return the cells of a product, under `HEADINGS`."""
    return (
        product.id[:SHORT_ID_DIGITS], product.kind, product.name, product.robot, when_text(product),
        where_text(product),
        "" if product.score is None else f"{product.score:.2f}", size_text(product.payload.size),
        product.payload.format,
    )  # fmt: skip


def when_text(product: Product) -> str:
    """Return when a product is about: its start, and how long it lasts."""
    from transect.base.clocks import iso_from_ns, text_from_ns

    if product.t0_ns is None or product.t1_ns is None:
        return ""
    utc = product.clock == "utc"
    begin = iso_from_ns(product.t0_ns, 0) if utc else text_from_ns(product.t0_ns, product.clock)
    lasted = (product.t1_ns - product.t0_ns) / 1e9
    return f"{begin} + {lasted:.4g} s" if lasted and product.clock != "index" else begin


def where_text(product: Product) -> str:
    """Return where a product is: its coordinate reference system, and two corners."""
    if product.place is None:
        return ""
    box = product.place.box
    return f"{product.place.crs} {box.x0:.6g},{box.y0:.6g} {box.x1:.6g},{box.y1:.6g}"
