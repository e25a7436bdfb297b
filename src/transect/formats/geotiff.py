"""GeoTIFF rasters: elevation models and other maps, with their coordinate reference system.

Each file is a stream of one GridMap on the `index` clock. Cells without a value are NaN. A band without a
name is `elevation` if it is the only one, else `band_1`, `band_2`, ... Needs rasterio, the extra `[geo]`.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS
from transect.base.files import file_paths, refuse_existing, write_bytes
from transect.errors import MissingExtraError, ParseError, UnsupportedError, UsageError
from transect.recording import Loss, Recording, Source, Stream
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer
from transect.types import GridMap

from .recognition import GEOTIFF_SUFFIXES
from .shared.file_groups import FileGroup, check_table, group_files
from .shared.file_heads import suffix_of
from .shared.payloads import good_payloads, not_written, time_names

MAX_COMPRESSION_RATIO = 2_000
"""Upper limit of the compression of GeoTIFF; headers with more cells are refused."""
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
    """Read rasters; their cells are loaded on access."""
    import_rasterio()
    files = [name for name in source.names if suffix_of(name) in GEOTIFF_SUFFIXES]
    streams = tuple(_stream(source, group) for group in group_files(files, "Map"))
    return Recording(name=source.stem, streams=streams, format="geotiff", source=source)


def _stream(source: Source, group: FileGroup) -> Stream:
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
                if claimed > MAX_COMPRESSION_RATIO * len(data):
                    raise ParseError(
                        f"{name} claims more cells than it can hold",
                        where=name,
                        why=f"{raster.width} x {raster.height} x {raster.count} cells in {len(data)} bytes",
                    )
                yield raster
    except (rasterio.errors.RasterioError, ValueError, TypeError) as error:
        raise ParseError(f"{name} cannot be read as GeoTIFF", where=name, why=str(error)) from error


def decode_geotiff(data: Buffer, name: str, t_ns: int = 0) -> GridMap:
    """Decode a GeoTIFF; raise ParseError with the reason if that is impossible."""
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
    """Return one band with the scale of the file, and NaN for missing values."""
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


def encode_geotiff(grid: GridMap) -> bytes:
    """Encode a map as a deflated GeoTIFF, a band per layer with its name, NaN for no value."""
    rasterio = import_rasterio()
    if not grid.layers:
        raise UnsupportedError("a map without layers cannot be written as GeoTIFF")
    arrays = [np.asarray(layer) for layer in grid.layers.values()]
    dtype = np.result_type(*arrays)
    dtype = np.dtype(np.uint8) if dtype == np.bool_ else dtype
    height, width = arrays[0].shape
    profile: dict[str, Any] = {
        "driver": "GTiff",
        "height": height,
        "width": width,
        "count": len(arrays),
        "dtype": dtype.name,
        "crs": grid.crs or None,
        "transform": rasterio.Affine(*grid.transform),
        "compress": "deflate",
        "predictor": 1 if dtype.kind == "f" else 2,
        "nodata": float("nan") if dtype.kind == "f" else None,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            with rasterio.io.MemoryFile() as file:
                with file.open(**profile) as raster:
                    if grid.frame:
                        raster.update_tags(**{FRAME: grid.frame})
                    for band, (name, values) in enumerate(zip(grid.layers, arrays, strict=True), 1):
                        raster.write(values.astype(dtype), band)
                        raster.set_band_description(band, name)
                return bytes(file.read())
    except (rasterio.errors.RasterioError, ValueError, TypeError) as error:
        raise UnsupportedError("the map cannot be written as GeoTIFF", why=str(error)) from error


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write every map as a GeoTIFF: one to a path that ends in .tif, several into a folder."""
    maps = [s for s in recording.streams if s.type is GridMap]
    samples = [(stream, sample) for stream in maps for sample in stream]
    if not samples:
        raise UnsupportedError(f"{recording.name} has no maps to write")
    notes = not_written(recording, maps)
    if path.suffix.lower() in GEOTIFF_SUFFIXES:
        if len(samples) > 1:
            raise UsageError(f"{len(samples)} maps do not fit in one file", hint="give a folder's name")
        write_bytes(path, encode_geotiff(samples[0][1].value))
        return tuple(notes)
    refuse_existing(path)
    places = file_paths(stream.name for stream in maps)
    for stream, place in zip(maps, places, strict=True):
        names, sentences = time_names(stream)
        notes += sentences
        single = len(stream) == 1 and stream.t_ns[0] % NS == 0 and stream.clock == "index"
        for sample, data in good_payloads(stream, lambda sample: encode_geotiff(sample.value), notes):
            write_bytes(path / (f"{place}.tif" if single else f"{place}/{names[sample.index]}.tif"), data)
    return tuple(notes)
