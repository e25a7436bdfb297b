"""Writing point clouds as files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from transect.base.files import refuse_existing, write_bytes
from transect.errors import UnsupportedError, UsageError
from transect.recording import Recording, Stream
from transect.types import PointCloud

from .._clouds import encode_cloud
from .._heads import CLOUD_SUFFIXES
from .._payloads import good_payloads, payload_bytes, time_names


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write streams of point clouds as PCD files named by their time; a path like `a.ply` takes one cloud."""
    clouds = [s for s in recording.streams if s.type is PointCloud]
    if not clouds:
        raise UnsupportedError(f"{recording.name} has no point clouds to write")
    said = [
        f"{s.name} is a {s.type.__name__} and was not written" for s in recording if s.type is not PointCloud
    ]
    if path.suffix.lower() in CLOUD_SUFFIXES:
        _write_one(clouds, path)
        return tuple(said)
    refuse_existing(path)
    for stream in clouds:
        names, sentences = time_names(stream)
        said += sentences
        folder = path if len(clouds) == 1 else path / stream.name
        for sample, data in good_payloads(stream, partial(payload_bytes, recording, suffix=".pcd"), said):
            write_bytes(folder / f"{names[sample.index]}.pcd", data)
    return tuple(said)


def _write_one(clouds: Sequence[Stream], path: Path) -> None:
    samples = [sample for stream in clouds for sample in stream]
    if len(samples) != 1:
        raise UsageError(f"{len(samples)} point clouds do not fit in one file", hint="give a folder's name")
    write_bytes(path, encode_cloud(samples[0].value, path.suffix.lower()))
