"""Writing images and point clouds as a folder each."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from transect.base.files import refuse_existing, write_bytes
from transect.errors import UnsupportedError
from transect.recording import Recording, Sample
from transect.types import Image, PointCloud

from .._payloads import good_payloads, payload_bytes, payload_suffix, time_names
from ..calibration.model import Calibration, Edge
from ..calibration.writing import write_calibration


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write images and clouds, a folder per stream, named by their times, and a calibration.yml."""
    chosen = [s for s in recording.streams if s.type in (Image, PointCloud) and s.loader is not None]
    if not chosen:
        raise UnsupportedError(f"{recording.name} has neither images nor point clouds to write")
    refuse_existing(path)
    said = [
        f"{s.name} is a {s.type.__name__} and was not written" for s in recording.streams if s not in chosen
    ]
    for stream in chosen:
        names, sentences = time_names(stream)
        said += sentences
        for sample, (suffix, data) in good_payloads(stream, partial(_payload, recording), said):
            write_bytes(path / stream.name / f"{names[sample.index]}{suffix}", data)
    if recording.cameras:
        edges: list[Edge] = [
            (e.parent, e.child, e.matrix) for e in recording.frames.edges if e.matrix is not None
        ]
        data = write_calibration(Calibration(recording.cameras, tuple(edges)), "opencv")
        write_bytes(path / "calibration.yml", data)
    return tuple(said)


def _payload(recording: Recording, sample: Sample) -> tuple[str, bytes]:
    suffix = payload_suffix(recording, sample)
    return suffix, payload_bytes(recording, sample, suffix)
