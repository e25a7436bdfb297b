"""Writing images and point clouds as a folder each."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from transect.base.files import file_paths, refuse_existing, write_bytes
from transect.errors import UnsupportedError
from transect.recording import Recording
from transect.types import Image, PointCloud

from ..calibration.model import Calibration, static_edges
from ..calibration.writing import write_calibration
from ..shared.payloads import good_payloads, not_written, payload_file, time_names


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write images and clouds, a folder per stream, named by their times, and a calibration.yml."""
    chosen = [s for s in recording.streams if s.type in (Image, PointCloud) and s.loader is not None]
    if not chosen:
        raise UnsupportedError(f"{recording.name} has neither images nor point clouds to write")
    refuse_existing(path)
    said = not_written(recording, chosen)
    folders = file_paths(stream.name for stream in chosen)
    for stream, folder in zip(chosen, folders, strict=True):
        names, sentences = time_names(stream)
        said += sentences
        for sample, (suffix, data) in good_payloads(stream, partial(payload_file, recording), said):
            write_bytes(path / folder / f"{names[sample.index]}{suffix}", data)
    if recording.cameras:
        calibration = Calibration(recording.cameras, static_edges(recording.frames))
        data = write_calibration(calibration, "opencv")
        write_bytes(path / "calibration.yml", data)
    return tuple(said)
