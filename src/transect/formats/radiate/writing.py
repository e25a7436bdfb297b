"""A RADIATE folder, written: files numbered as they were, and a list of frames and times for each folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from transect.base import files
from transect.base.clocks import decimal_from_ns
from transect.base.files import refuse_existing
from transect.errors import ParseError, UnsupportedError, UsageError
from transect.recording import Recording, Sample, Source, Stream
from transect.types import Image, Imu, NavFix, PointCloud, RadarSpectrum, Twist

from ..shared.clouds.plain import text_of
from ..shared.images import encode_image
from ..shared.payloads import good_payloads, payload_bytes, source_file
from ..shared.rows import one_unit
from . import CAMERAS, CARTESIAN, GPS, LIDAR, POLAR, SUFFIXES
from .gps import LINES, packets_of
from .reading import ANNOTATIONS, CONFIGURATION, META

_FINE, _COARSE = 15, 5
"""Decimals of positions and covariances, and of everything else."""
_INDENTED = (2, 3, 8, 9, 11, 12, 14, 15)
"""Lines that begin with a blank: the second and third of each matrix."""


def write_folder(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write what RADIATE has a folder for; return what it has not."""
    folders = _folders(recording)
    packets = [s for s in recording.streams if s.type in (NavFix, Imu, Twist)]
    if not folders and not packets:
        raise UsageError(f"{recording.name} has no radar, lidar, stereo or GPS/IMU to write as RADIATE")
    refuse_existing(path)
    said = [
        f"{s.name}: RADIATE has no folder for it"
        for s in recording.streams
        if s not in packets and s not in folders.values()
    ]
    for folder, stream in folders.items():
        said += _write_payloads(recording, stream, path, folder)
    return (*said, *_write_packets(packets, path), *_write_description(recording, folders.get(POLAR), path))


def _folders(recording: Recording) -> dict[str, Stream]:
    """Choose a stream for each folder: the one of its name, else the first of its type and tag."""
    wanted: dict[str, Callable[[Stream], bool]] = {
        POLAR: lambda s: s.type is RadarSpectrum and s.loader is not None,
        CARTESIAN: lambda s: s.type is Image and s.name == CARTESIAN,
        LIDAR: lambda s: s.type is PointCloud,
        **{folder: lambda s, tag=tag: s.type is Image and s.tag == tag for folder, tag in CAMERAS.items()},
    }
    chosen: dict[str, Stream] = {}
    for folder, fits in wanted.items():
        streams = sorted((s for s in recording.streams if fits(s)), key=lambda s: s.name != folder)
        chosen |= {folder: streams[0]} if streams else {}
    return chosen


def _write_payloads(recording: Recording, stream: Stream, path: Path, folder: str) -> list[str]:
    said: list[str] = []
    frames = _frame_names(recording, stream)
    kept: list[tuple[str, int]] = []
    for sample, data in good_payloads(stream, partial(_payload, recording, folder=folder), said):
        frame = frames[sample.index]
        files.write_bytes(path / folder / f"{frame}{SUFFIXES[folder]}", data)
        kept.append((frame, sample.t_ns))
    _write_index(path / f"{folder}.txt", kept)
    return said


def _frame_names(recording: Recording, stream: Stream) -> list[str]:
    """Return the frames' own numbers where they come from a RADIATE folder, else 000001, 000002, ..."""
    names = [source_file(recording, sample) for sample in stream] if recording.format == "radiate" else []
    stems = [PurePosixPath(name).stem for name in names if name is not None]
    own = len(stems) == len(stream) == len(set(stems))
    return stems if own else [f"{i:06d}" for i in range(1, len(stream) + 1)]


def _write_index(file: Path, frames: Sequence[tuple[str, int]]) -> None:
    lines = [f"Frame: {frame} Time: {decimal_from_ns(t)}\n" for frame, t in frames]
    files.write_text(file, "".join(lines))


def _payload(recording: Recording, sample: Sample, folder: str) -> bytes:
    """Return a payload's own file where it comes from RADIATE, else encode it as RADIATE does."""
    own = recording.format == "radiate" and source_file(recording, sample) is not None
    if own or folder not in (POLAR, LIDAR):
        return payload_bytes(recording, sample, SUFFIXES[folder])
    return _polar_image(sample.value) if folder == POLAR else _cloud_text(sample.value)


def _polar_image(spectrum: RadarSpectrum) -> bytes:
    pixels = spectrum.reflectivity
    if pixels.ndim != 2 or pixels.dtype != np.uint8:
        raise UnsupportedError("RADIATE's radar images are whole turns of 8 bits")
    return encode_image(Image(np.ascontiguousarray(pixels.T)), ".png")


def _cloud_text(cloud: PointCloud) -> bytes:
    """Return lines of x,y,z,intensity,ring."""
    columns = dict(zip("xyz", cloud.points.T, strict=True))
    for name in ("intensity", "ring"):
        columns[name] = cloud.fields.get(name, np.full(len(cloud), np.nan))
    return text_of({name: np.asarray(values, np.float64) for name, values in columns.items()}, ",")


def _write_packets(streams: Sequence[Stream], path: Path) -> list[str]:
    """Write one GPS_IMU_Twist folder: the first stream of each kind that shares the times of the first."""
    chosen = one_unit(streams)
    if chosen:
        rows = packets_of(chosen.get(NavFix), chosen.get(Imu), chosen.get(Twist))
        frames = [f"{i:06d}" for i in range(1, len(rows) + 1)]
        for frame, row in zip(frames, rows, strict=True):
            files.write_text(path / GPS / f"{frame}.txt", _packet(row))
        times = next(iter(chosen.values())).t_ns.tolist()
        _write_index(path / f"{GPS}.txt", list(zip(frames, times, strict=True)))
    others = [s.name for s in streams if s not in chosen.values()]
    return [f"{name}: RADIATE has one GPS/IMU with one time axis" for name in others]


def _packet(row: NDArray[np.float64]) -> str:
    """Return a packet's 18 lines."""
    lines: list[str] = []
    at = 0
    for number, width in enumerate(LINES):
        digits = _COARSE if number in (4, 5, 6, 16, 17) else _FINE
        blank = " " if number in _INDENTED else ""
        lines.append(blank + ",".join(_text(v, digits) for v in row[at : at + width].tolist()) + " \n")
        at += width
    return "".join(lines)


def _text(value: float, digits: int) -> str:
    """Return a number as RADIATE prints it, with more digits only where it would not read back the same."""
    text = f"{value:.{digits}f}"
    return text if float(text) == value or value != value else repr(value)


def _copy_description(source: Source, path: Path) -> list[str]:
    said: list[str] = []
    for name in (n for n in (*CONFIGURATION, META, ANNOTATIONS) if n in source):
        try:
            data = source.read(name)
        except ParseError as error:
            said.append(f"{name} is not carried: {error.what}")
            continue
        files.write_bytes(path / name, data)
    return said


def _write_description(recording: Recording, polar: Stream | None, path: Path) -> list[str]:
    """Copy calibration, weather and annotations of a RADIATE recording, or write what is known of another."""
    if recording.format == "radiate" and recording.source is not None:
        return _copy_description(recording.source, path)
    weather = {"name": recording.name, "type": str(recording.conditions.get("weather", ""))}
    files.write_text(path / META, json.dumps(weather))
    if first := next(good_payloads(polar or (), lambda sample: sample.value, []), None):
        spectrum: RadarSpectrum = first[1]
        azimuths, cells = spectrum.reflectivity.shape
        text = f"range_res: {spectrum.bin_width!r}, range_cells: {cells}, azimuth_cells: {azimuths}"
        files.write_text(path / CONFIGURATION[0], f"radar_calib: {{{text}}}\n")
    return ["cameras are not written to RADIATE's calibration"] if recording.cameras else []
