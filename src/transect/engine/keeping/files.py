"""Images, clouds and maps of a port as a file each."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.files import write_bytes
from transect.formats._clouds import encode_cloud
from transect.formats._images import encode_image
from transect.formats.geotiff.writing import encode_geotiff
from transect.types import DepthMap, GridMap, Image, PointCloud

PNG_TYPES = ("uint8", "uint16")
"""What PNG holds without loss; other pixels go to TIFF."""


@dataclass(frozen=True)
class Coding:
    """How a value becomes a file: its content and suffix, and whether a single one needs no folder."""

    encode: Callable[[Any], tuple[str, bytes]]
    alone: bool


def _image(image: Image) -> tuple[str, bytes]:
    if image.data.dtype == np.bool_:
        image = Image(image.data.astype(np.uint8) * np.uint8(255), image.mode)
    suffix = ".png" if image.data.dtype.name in PNG_TYPES else ".tiff"
    return suffix, encode_image(image, suffix)


def _depth(depth: DepthMap) -> tuple[str, bytes]:
    return ".tiff", encode_image(Image(np.asarray(depth.data, np.float32)), ".tiff")


CODINGS: dict[type, Coding] = {
    Image: Coding(_image, alone=False),
    DepthMap: Coding(_depth, alone=False),
    PointCloud: Coding(lambda cloud: (".ply", encode_cloud(cloud, ".ply")), alone=True),
    GridMap: Coding(lambda grid: (".tif", encode_geotiff(grid)), alone=True),
}


class FileSink:
    """One file per value, named by its time: `PORT/<t_ns>.ply`; a single cloud or map is `PORT.ply`."""

    def __init__(self, base: Path, coding: Coding) -> None:
        self._base, self._coding = base, coding
        self._files: list[Path] = []

    def add(self, t_ns: int, value: Any) -> None:
        """Write one value; a second one at the same time gets a number behind its time."""
        suffix, data = self._coding.encode(value)
        path, number = self._base / f"{t_ns}{suffix}", 2
        while path.exists():
            path, number = self._base / f"{t_ns}_{number}{suffix}", number + 1
        write_bytes(path, data)
        self._files.append(path)

    def close(self) -> list[Path]:
        """Return the files, a single one moved out of its folder where it can stand alone."""
        if len(self._files) != 1 or not self._coding.alone:
            return self._files
        file = self._files[0]
        alone = self._base.with_name(f"{self._base.name}{file.suffix}")
        os.replace(file, alone)
        self._base.rmdir()
        return [alone]
