"""Writing grid maps as GeoTIFF."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.clocks import NS
from transect.base.files import file_paths, refuse_existing, write_bytes
from transect.errors import UnsupportedError, UsageError
from transect.recording import Recording
from transect.types import GridMap

from ..shared.payloads import good_payloads, not_written, time_names
from . import SUFFIXES
from .reading import FRAME, import_rasterio


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
    said = not_written(recording, maps)
    if path.suffix.lower() in SUFFIXES:
        if len(samples) > 1:
            raise UsageError(f"{len(samples)} maps do not fit in one file", hint="give a folder's name")
        write_bytes(path, encode_geotiff(samples[0][1].value))
        return tuple(said)
    refuse_existing(path)
    places = file_paths(stream.name for stream in maps)
    for stream, place in zip(maps, places, strict=True):
        names, sentences = time_names(stream)
        said += sentences
        single = len(stream) == 1 and stream.t_ns[0] % NS == 0 and stream.clock == "index"
        for sample, data in good_payloads(stream, lambda sample: encode_geotiff(sample.value), said):
            write_bytes(path / (f"{place}.tif" if single else f"{place}/{names[sample.index]}.tif"), data)
    return tuple(said)
