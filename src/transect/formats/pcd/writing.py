"""Writing point clouds as files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from transect.base.files import file_paths, refuse_existing, write_bytes
from transect.errors import UnsupportedError, UsageError
from transect.recording import Recording
from transect.types import PointCloud

from ..shared.clouds import encode_cloud
from ..shared.file_heads import CLOUD_SUFFIXES
from ..shared.payloads import good_payloads, not_written, payload_bytes, time_names


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write streams of point clouds as PCD files named by their time; a path like `a.ply` takes one cloud."""
    clouds = [s for s in recording.streams if s.type is PointCloud]
    if not clouds:
        raise UnsupportedError(f"{recording.name} has no point clouds to write")
    said = not_written(recording, clouds)
    if path.suffix.lower() in CLOUD_SUFFIXES:
        samples = [sample for stream in clouds for sample in stream]
        if len(samples) != 1:
            raise UsageError(
                f"{len(samples)} point clouds do not fit in one file", hint="give a folder's name"
            )
        write_bytes(path, encode_cloud(samples[0].value, path.suffix.lower()))
        return tuple(said)
    refuse_existing(path)
    folders = file_paths(stream.name for stream in clouds) if len(clouds) > 1 else [""]
    for stream, folder in zip(clouds, folders, strict=True):
        names, sentences = time_names(stream)
        said += sentences
        for sample, data in good_payloads(stream, partial(payload_bytes, recording, suffix=".pcd"), said):
            write_bytes(path / folder / f"{names[sample.index]}.pcd", data)
    return tuple(said)
