"""What both kinds of stores share: payloads as files, conditions of queries, areas that hold sites."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from transect.base import files

from .place import WGS84, Area, Site
from .product import Payload, Product
from .store import ProductQuery, StoreError

_PIECE_BYTES = 1 << 20
_NAME = re.compile(r"([0-9a-f]{64})\.[a-z0-9_]{1,16}").fullmatch


class PayloadFolder:
    """A folder of payloads.

    A payload is first written under a temporary name (`stage`), and gets its own by a rename (`place`), which
    the store does while it alone may write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path_of(self, payload: Payload) -> Path:
        """Return where a payload is, or would be."""
        return self.folder / payload.sha256[:2] / f"{payload.sha256}.{payload.format}"

    def stage(self, content: bytes | Path, payload: Payload) -> Path:
        """Write a payload to a temporary file, down to the disk, and return it.

        Raises
        ------
        StoreError
            If the bytes are not those that the payload describes.
        """
        target = self.path_of(payload)
        temporary = files.temporary_name(target)
        digest = sha256()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as out:
                for piece in pieces_of(content):
                    digest.update(piece)
                    out.write(piece)
                out.flush()
                os.fsync(out.fileno())
                size = out.tell()
            if (digest.hexdigest(), size) != (payload.sha256, payload.size):
                raise StoreError("the file is not what the product describes", where=str(content))
        except OSError as error:
            temporary.unlink(missing_ok=True)
            what = "the payload could not be written"
            raise StoreError(what, where=str(target), why=str(error)) from error
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def place(self, staged: Path, payload: Payload) -> None:
        """Give a payload that was staged its name."""
        target = self.path_of(payload)
        os.replace(staged, target)
        for folder in (target.parent, self.folder):
            files.synchronise(folder)

    def read(self, payload: Payload) -> Iterator[bytes]:
        """Give the bytes of a payload, in pieces."""
        path = self.path_of(payload)
        try:
            yield from pieces_of(path)
        except OSError as error:
            raise StoreError("its payload cannot be read", where=str(path), why=str(error)) from error

    def remove(self, payload: Payload) -> None:
        """Remove a payload that nobody has any more."""
        self.path_of(payload).unlink(missing_ok=True)

    def orphans(self, known: set[str]) -> list[Path]:
        """Return payloads whose hash is not known, and what killed writers left more than a day ago."""
        found: list[Path] = []
        with suppress(FileNotFoundError):
            for folder in sorted(self.folder.iterdir()):
                if len(folder.name) == 2 and folder.is_dir():
                    files.remove_stale_files(folder)
                    named = ((path, _NAME(path.name)) for path in sorted(folder.iterdir()))
                    found += [path for path, name in named if name and name[1] not in known]
        return found


def pieces_of(content: bytes | Path, size: int = _PIECE_BYTES) -> Iterator[bytes]:
    """Give bytes, or those of a file, in pieces of at most `size`."""
    if isinstance(content, bytes):
        yield from (content[start : start + size] for start in range(0, len(content), size))
        return
    with content.open("rb") as stream:
        yield from iter(lambda: stream.read(size), b"")


Found = tuple[int | None, str, str]
"""When a product ends, its id and its document."""
_MAX_SITE_SIZE_DEG = 5.0
"""Sites are smaller than this."""
_BOX_SCALE = 1.01
"""Enlargement of the box in the site's frame; its results are compared with the area exactly."""


def conditions(wanted: ProductQuery, form: str) -> tuple[list[str], list[Any]]:
    """Return the conditions of a query but for the area, and their values.

    Parameters
    ----------
    form : str
        How a condition is written: `{} {} ?` for column and relation.
    """
    relations: list[tuple[str, str, Any]] = [(name, "=", value) for name, value in wanted.words.items()]
    if wanted.time is not None:
        relations += [("t1_ns", ">=", wanted.time[0]), ("t0_ns", "<", wanted.time[1])]
    if wanted.min_quality is not None:
        relations.append(("score", ">=", wanted.min_quality))
    return [form.format(name, relation) for name, relation, _ in relations], [
        value for *_, value in relations
    ]


def newest_first(found: Iterable[Found], latest: int | None) -> Iterator[str]:
    """Give the documents of what ends last first, then by id."""
    rows = sorted(set(found), key=lambda row: (row[0] is None, -(row[0] or 0), row[1]))
    return (document for _, _, document in rows[:latest])


def area_in_site(area: Area, site: Site) -> Area | None:
    """Return a box in a site's frame that holds an area of longitude and latitude; None if it is far away."""
    if site.origin is None or site.body != WGS84:
        return None
    longitude, latitude = site.origin
    near = Area(
        longitude - _MAX_SITE_SIZE_DEG,
        latitude - _MAX_SITE_SIZE_DEG,
        longitude + _MAX_SITE_SIZE_DEG,
        latitude + _MAX_SITE_SIZE_DEG,
    )
    if not area.meets(near):
        return None
    from transect.geometry.geodesy import local_from_geodetic

    x0, y0 = max(area.x0, near.x0), max(area.y0, near.y0, -90.0)
    x1, y1 = min(area.x1, near.x1), min(area.y1, near.y1, 90.0)
    points = [
        (math.radians(y), math.radians(x), 0.0)
        for x in (x0, (x0 + x1) / 2, x1)
        for y in (y0, (y0 + y1) / 2, y1)
    ]
    local = local_from_geodetic(points, origin_of(site))
    middle = (local.min(0) + local.max(0)) / 2
    half_size = (local.max(0) - local.min(0)) / 2 * _BOX_SCALE + 1.0
    low, high = middle - half_size, middle + half_size
    return Area(float(low[0]), float(low[1]), float(high[0]), float(high[1]), site.crs)


def meets_on_earth(area: Area, site: Site, document: str) -> bool:
    """Return whether a product in a site has its box, in longitude and latitude, in an area."""
    place = Product.from_document(document).place
    if place is None or place.site != site:
        return False
    from transect.geometry.geodesy import geodetic_from_local

    found = geodetic_from_local([(x, y, 0.0) for x, y in place.points], origin_of(site))
    ys, xs = [math.degrees(v) for v in found[:, 0]], [math.degrees(v) for v in found[:, 1]]
    return area.meets(Area(min(xs), min(ys), max(xs), max(ys)))


def origin_of(site: Site) -> tuple[float, float, float]:
    """Return latitude and longitude in radians, and the height 0."""
    longitude, latitude = site.origin or (math.nan, math.nan)
    return math.radians(latitude), math.radians(longitude), 0.0
