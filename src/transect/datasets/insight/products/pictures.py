"""Raw pictures of InSight's cameras: image files as published, and arrays with a label as archived."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from transect.base.clocks import NS
from transect.formats.shared.images import file_table, image_loader, image_size
from transect.recording import Recording, Source, Stream
from transect.recording.arrow import PAYLOAD
from transect.types import CameraModel, Image

from .names import parse_picture, picture_stem

ARRAY = ".img"


def read_pictures(
    source: Source, files: Sequence[str], cameras: Mapping[str, CameraModel]
) -> Iterator[tuple[Stream, str]]:
    """Give the pictures of each camera, and what is to be said of them ("" for nothing)."""
    taken = [(name, file) for file in files if (name := parse_picture(file))]
    for camera in sorted({name.camera for name, _ in taken}):
        pictures = sorted((name.sclk * NS, file) for name, file in taken if name.camera == camera)
        yield _stream(source, camera, pictures, cameras.get(camera))


def _stream(
    source: Source, camera: str, pictures: Sequence[tuple[int, str]], model: CameraModel | None
) -> tuple[Stream, str]:
    """Return the stream of a camera; its model is used if the pictures have that size."""
    files = [file for _, file in pictures]
    size = image_size(source.head(files[0]))
    frame = model.frame if model else ""
    fits = model is not None and size == (model.width, model.height)
    stream = Stream(
        camera, Image, file_table(np.array([t_ns for t_ns, _ in pictures], np.int64), files), clock="sclk",
        frame=frame, loader=_loader(source, frame, model if fits else None), camera=camera if fits else "",
    )  # fmt: skip
    if fits or model is None or size is None:
        return stream, ""
    return stream, f"{camera}: pictures of {size[0]} x {size[1]} pixels, which its model does not fit"


def _loader(source: Source, frame: str, camera: CameraModel | None) -> Callable[[Mapping[str, Any]], Image]:
    """Return what loads a picture: an image file, or an array by the label beside it."""
    load_file = image_loader(source, frame, camera)

    @functools.cache
    def labelled(folder: str) -> Recording:
        from transect.formats.pds4.reading import read

        return read(source.at(folder) if folder else source)

    def load(row: Mapping[str, Any]) -> Image:
        folder, _, name = row[PAYLOAD].rpartition("/")
        if not name.lower().endswith(ARRAY):
            return load_file(row)
        image = labelled(folder)[picture_stem(name).lower()][0].payload
        return dataclasses.replace(image, t_ns=row["t_ns"], frame=frame, camera=camera)

    return load
