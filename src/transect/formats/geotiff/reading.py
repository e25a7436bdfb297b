"""Reading GeoTIFF rasters."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import MissingExtraError, ParseError
from transect.recording import Loss, Recording, Source, Stream
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer
from transect.types import GridMap

from ..shared.file_groups import Group, group_files
from ..shared.file_heads import suffix_of
from ..shared.images import check_table
from . import SUFFIXES

MAX_PACKED = 2_000
"""No compression of GeoTIFF packs better than this; a header that claims more cells is not believed."""
FRAME = "FRAME"
"""The tag that names the frame of a local map."""


def import_rasterio() -> Any:
    """Return rasterio; raise if it is not installed."""
    try:
        import rasterio
    except ImportError as error:
        raise MissingExtraError("rasterio", "geo") from error
    return rasterio


def read(source: Source) -> Recording:
    """Read rasters; the cells of each are loaded when they are asked for."""
    import_rasterio()
    files = [name for name in source.names if suffix_of(name) in SUFFIXES]
    streams = tuple(_stream(source, group) for group in group_files(files, "Map"))
    return Recording(name=source.stem, streams=streams, format="geotiff", source=source)


def _stream(source: Source, group: Group) -> Stream:
    def load(row: Mapping[str, Any]) -> GridMap:
        return decode_geotiff(source.buffer(row[PAYLOAD]), row[PAYLOAD], t_ns=row["t_ns"])

    def check(name: str) -> tuple[Loss, ...]:
        """Look at a header; a file that is no raster is left out."""
        with _open_one(source.buffer(name), name):
            return ()

    table = partial(check_table, group.t_ns, group.files, check)
    return Stream(group.name, GridMap, table, clock=group.clock, loader=load)


@contextmanager
def _open_one(data: Buffer, name: str) -> Generator[Any]:
    rasterio = import_rasterio()
    if not len(data):
        raise ParseError(f"{name} is empty", where=name, why="it has 0 bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            with rasterio.io.MemoryFile(bytes(data)) as file, file.open(driver="GTiff") as raster:
                claimed = raster.width * raster.height * sum(np.dtype(d).itemsize for d in raster.dtypes)
                if claimed > MAX_PACKED * len(data):
                    raise ParseError(
                        f"{name} claims more cells than it can hold",
                        where=name,
                        why=f"{raster.width} x {raster.height} x {raster.count} cells in {len(data)} bytes",
                    )
                yield raster
    except (rasterio.errors.RasterioError, ValueError, TypeError) as error:
        raise ParseError(f"{name} cannot be read as GeoTIFF", where=name, why=str(error)) from error


def decode_geotiff(data: Buffer, name: str, t_ns: int = 0) -> GridMap:
    """Decode a GeoTIFF; raise ParseError with the reason where that is not possible."""
    with _open_one(data, name) as raster:
        titles = _titles(raster.descriptions)
        layers = {title: _layer(raster, band) for band, title in enumerate(titles, 1)}
        crs = raster.crs.to_string() if raster.crs else ""
        a, b, c, d, e, f = tuple(raster.transform)[:6]
        return GridMap(layers, (a, b, c, d, e, f), crs, raster.tags().get(FRAME, ""), t_ns)


def _titles(descriptions: tuple[str | None, ...]) -> list[str]:
    if len(descriptions) == 1:
        return [descriptions[0] or "elevation"]
    titles = [text or f"band_{number}" for number, text in enumerate(descriptions, 1)]
    return titles if len(set(titles)) == len(titles) else [f"band_{i + 1}" for i in range(len(titles))]


def _layer(raster: Any, band: int) -> NDArray[Any]:
    """Return one band, scaled as the file says, NaN where it has no value."""
    values = raster.read(band)
    scale, offset = raster.scales[band - 1], raster.offsets[band - 1]
    missing = raster.read_masks(band) == 0
    if (scale, offset) != (1.0, 0.0):
        values = values * scale + offset
    if values.dtype.kind == "f":
        values[missing] = np.nan
        return values
    if not missing.any():
        return values
    wide = values.astype(np.float32 if values.dtype.itemsize <= 2 else np.float64)
    wide[missing] = np.nan
    return wide
