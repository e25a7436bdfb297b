"""GeoTIFF rasters: elevation models and other maps, with their coordinate reference system.

Each file is a stream of one GridMap on the `index` clock. Cells without a value are NaN. A band without a
name is `elevation` if it is the only one, else `band_1`, `band_2`, ... Needs rasterio, the extra `[geo]`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ..shared.file_heads import IMAGE_SUFFIXES, suffix_counts, suffix_of
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

SUFFIXES = (".tif", ".tiff")
_PIXEL_SCALE, _TIE_POINT, _TRANSFORM, _GEO_KEYS = 33_550, 33_922, 34_264, 34_735
_GEO_TAGS = {_PIXEL_SCALE, _TIE_POINT, _TRANSFORM, _GEO_KEYS}


def recognises(source: Source) -> Match:
    """Say whether these are TIFF files that know where they are."""
    counts = suffix_counts(source)
    if not any(counts[s] for s in SUFFIXES):
        return no("no .tif files")
    if any(counts[s] for s in IMAGE_SUFFIXES if s not in SUFFIXES):
        return no("it has .tif files but also other images")
    files = [name for name in source.names if suffix_of(name) in SUFFIXES]
    located = [_is_located(source.head(name)) for name in files[:8]]
    if True in located:
        return Match(0.6, f"{len(files)} georeferenced TIFF files")
    if None in located:
        return Match(0.3, f"{len(files)} TIFF files")
    return no("it has .tif files, but they are not georeferenced")


def _is_located(head: bytes) -> bool | None:
    """Tell whether a TIFF has georeference tags; None where its directory is not among the first bytes."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(head[:4])
    if order is None:
        return False
    at = struct.unpack(f"{order}I", head[4:8])[0] if len(head) >= 8 else 0
    if at + 2 > len(head):
        return None
    count = struct.unpack_from(f"{order}H", head, at)[0]
    ends = min(count, (len(head) - at - 2) // 12)
    tags = {struct.unpack_from(f"{order}H", head, at + 2 + 12 * i)[0] for i in range(ends)}
    return bool(tags & _GEO_TAGS)


def read(source: Source) -> Recording:
    """Read rasters; the cells of each are loaded when they are asked for."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write every map as a GeoTIFF: one to a path that ends in .tif, several into a folder."""
    from . import writing

    return writing.write(recording, path)
