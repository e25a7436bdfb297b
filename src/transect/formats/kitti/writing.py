"""KITTI's layouts, written: a raw drive, an odometry sequence, or a pose file.

A recording whose images and clouds share one time axis that is not UTC becomes an odometry sequence
(`times.txt`, `image_0/000000.png`), everything else a raw drive (`image_00/timestamps.txt`,
`image_00/data/0000000000.png`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transect.base import files
from transect.base.clocks import decimal_from_ns, iso_from_ns
from transect.base.files import refuse_existing
from transect.errors import FrameError, UsageError
from transect.geometry import rotations
from transect.recording import Recording, Sample, Stream
from transect.types import Image, Imu, NavFix, PointCloud, Pose, Twist

from ..calibration.model import projection
from ..shared.clouds import encode_cloud
from ..shared.interface import Note
from ..shared.payloads import good_payloads, payload_bytes, source_file
from ..shared.rows import column_or_nan, float_texts, new_file, one_unit, text_rows
from . import CAMERAS
from .calibration import FILES, IMU, VELO
from .oxts import list_left_out, packets_of
from .poses import SECONDS, STAMPS


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write images, clouds, oxts and poses in KITTI's layout; poses alone become one file (`.txt`)."""
    frames = [s for s in recording.streams if s.type in (Image, PointCloud)]
    packets = [s for s in recording.streams if s.type in (NavFix, Imu, Twist)]
    poses = [s for s in recording.streams if s.type is Pose and "qw" in s.columns]
    if not (frames or packets or poses):
        raise UsageError(f"{recording.name} has no images, clouds, positions or poses to write as KITTI")
    others = [s for s in recording.streams if s not in (*frames, *packets, *poses)]
    notes = [f"{s.name}: KITTI has no place for {s.type.__name__}" for s in others]
    if not frames and not packets:
        _write_poses(poses[0], new_file(path, f"{recording.name}.txt"))
        notes += _tell_rounding(poses[:1])
        return (*notes, *(f"{s.name}: a KITTI pose file holds one trajectory" for s in poses[1:]))
    refuse_existing(path)
    notes += _write_frames(recording, frames, path)
    notes += _write_packets(packets, path)
    names = files.file_paths(stream.name.removeprefix("poses/").replace("/", "_") for stream in poses)
    for stream, name in zip(poses, names, strict=True):
        _write_poses(stream, path / f"{name}.txt")
    return (*notes, *_tell_rounding(poses))


def _tell_rounding(poses: Sequence[Stream]) -> list[str]:
    return [Note(f"{s.name}: attitudes are written as matrices, which moves the last digits") for s in poses]


def _is_sequence(frames: Sequence[Stream]) -> bool:
    """Return whether all images and clouds share one time axis that does not name a day."""
    return bool(frames) and all(
        s.clock == "device" and np.array_equal(s.t_ns, frames[0].t_ns) for s in frames
    )


def _number(images: Sequence[Stream]) -> dict[int, Stream]:
    """Return image streams by camera number: the one in the stream's name, else the next unused one."""
    numbers = {int(s.name[6:]): s for s in images if s.name in CAMERAS}
    for stream in images:
        if stream not in numbers.values():
            numbers[next(i for i in range(len(images) + 4) if i not in numbers)] = stream
    return numbers


def _write_frames(recording: Recording, frames: Sequence[Stream], path: Path) -> list[str]:
    sequence = _is_sequence(frames)
    cameras = _number([s for s in frames if s.type is Image])
    clouds = [s for s in frames if s.type is PointCloud]
    style = "image_{}" if sequence else "image_{:02d}"
    folders = {style.format(number): stream for number, stream in cameras.items()}
    folders |= {"velodyne" if sequence else "velodyne_points": clouds[0]} if clouds else {}
    notes = [f"{s.name}: KITTI has one lidar" for s in clouds[1:]]
    if clouds and (rest := _other_fields(clouds[0])):
        notes.append(f"{clouds[0].name}: KITTI's points have no place for {', '.join(rest)}")
    for folder, stream in folders.items():
        if sequence:
            _write_numbered(recording, stream, path / folder, notes)
        else:
            kept = _write_counted(recording, stream, path / folder / "data", notes)
            notes += _write_stamps(kept, path / folder / STAMPS)
    if sequence:
        lines = [decimal_from_ns(t) + "\n" for t in frames[0].t_ns.tolist()]
        files.write_text(path / SECONDS, "".join(lines))
    return notes + _write_calibration(recording, cameras, path, sequence)


def _other_fields(stream: Stream) -> list[str]:
    """Return the fields of a stream's first cloud that are not its intensity."""
    _, cloud = next(good_payloads(stream, lambda sample: sample.value, []), (None, None))
    return [] if cloud is None else [name for name in cloud.fields if name != "intensity"]


def _write_numbered(recording: Recording, stream: Stream, folder: Path, notes: list[str]) -> None:
    """Write a sequence's images or clouds, numbered by their lines in the common times.txt."""
    for sample, data in good_payloads(stream, partial(_payload, recording), notes):
        files.write_bytes(folder / f"{sample.index:06d}{_suffix(stream)}", data)


def _write_counted(recording: Recording, stream: Stream, folder: Path, notes: list[str]) -> Stream:
    """Write a drive's images or clouds, counted from 0; return the samples that were written."""
    keep = np.zeros(len(stream), dtype=bool)
    good = good_payloads(stream, partial(_payload, recording), notes)
    for number, (sample, data) in enumerate(good):
        files.write_bytes(folder / f"{number:010d}{_suffix(stream)}", data)
        keep[sample.index] = True
    return stream.take(keep)


def _suffix(stream: Stream) -> str:
    return ".png" if stream.type is Image else ".bin"


def _payload(recording: Recording, sample: Sample) -> bytes:
    """Return an image as PNG, a cloud as float32 x y z intensity; original files of KITTI unchanged."""
    own = recording.format == "kitti" and source_file(recording, sample) is not None
    if sample.stream.type is Image or own:
        return payload_bytes(recording, sample, _suffix(sample.stream))
    cloud: PointCloud = sample.value
    intensity = cloud.fields.get("intensity", np.full(len(cloud), np.nan))
    return encode_cloud(PointCloud(cloud.points, {"intensity": intensity}), ".bin")


def _write_stamps(stream: Stream, file: Path) -> list[str]:
    lines = [iso_from_ns(t, 9).replace("T", " ") + "\n" for t in stream.t_ns.tolist()]
    files.write_text(file, "".join(lines))
    utc = stream.clock == "utc"
    return [] if utc else [Note(f"{stream.name}: times of the {stream.clock} clock become dates of 1970")]


def _write_packets(streams: Sequence[Stream], path: Path) -> list[str]:
    """Write one oxts folder: the first position, inertial and velocity streams that share their times."""
    chosen, notes = one_unit(streams), list[str]()
    if chosen:
        rows = packets_of(chosen.get(NavFix), chosen.get(Imu), chosen.get(Twist))
        for number, row in enumerate(rows):
            text = " ".join(float_texts(row)) + "\n"
            files.write_text(path / "oxts" / "data" / f"{number:010d}.txt", text)
        notes = _write_stamps(next(iter(chosen.values())), path / "oxts" / STAMPS)
    for stream in chosen.values():
        if rest := list_left_out(stream):
            notes.append(f"{stream.name}: KITTI's packets have no place for {', '.join(rest)}")
    others = [s.name for s in streams if s not in chosen.values()]
    return notes + [f"{name}: a KITTI drive has one oxts unit with one time axis" for name in others]


def _write_poses(stream: Stream, file: Path) -> None:
    """Write twelve numbers a line, and the times beside them."""
    rows = _matrices(stream).reshape(len(stream), 12)
    files.write_bytes(file, text_rows([float_texts(rows[:, i]) for i in range(12)]))
    if stream.clock != "index":
        times = "".join(decimal_from_ns(t) + "\n" for t in stream.t_ns.tolist())
        files.write_text(file.with_name(f"{file.stem}_times.txt"), times)


def _matrices(stream: Stream) -> NDArray[np.float64]:
    q = np.column_stack([column_or_nan(stream, name) for name in ("qx", "qy", "qz", "qw")])
    R = np.full((len(stream), 3, 3), np.nan)
    known = np.isfinite(q).all(axis=1)
    R[known] = rotations.matrix_from_quaternion(q[known])
    return np.concatenate([R, stream.array("x", "y", "z")[:, :, None]], axis=2)


def _write_calibration(
    recording: Recording, cameras: dict[int, Stream], path: Path, sequence: bool
) -> list[str]:
    """Write the rectified cameras, and the extrinsics of the lidar and the inertial unit."""
    models = {i: recording.cameras[s.camera] for i, s in sorted(cameras.items()) if s.camera}
    lines: list[str] = []
    for number, model in models.items():
        if model.width and not sequence:
            lines.append(_line(f"S_rect_{number:02d}", np.array([model.width, model.height], float)))
        lines.append(_line(f"P{number}" if sequence else f"P_rect_{number:02d}", projection(model)))
    origin = next((s.frame for s in cameras.values() if re.fullmatch("image_00?", s.frame)), "image_00")
    velo, imu = _transform(recording, origin, VELO), _transform(recording, VELO, IMU)
    if velo is not None and sequence:
        lines.append(_line("Tr", velo[:3]))
    elif velo is not None:
        _write_transform(path / FILES[2], velo)
    if imu is not None:
        _write_transform(path / FILES[3], imu)
    if lines:
        files.write_text(path / FILES[1 if sequence else 0], "".join(lines))
    return [
        f"{m.name}: KITTI's images are rectified, its distortion is left out"
        for m in models.values()
        if m.distortion != "none"
    ]


def _line(label: str, values: NDArray[np.float64]) -> str:
    return f"{label}: {' '.join(float_texts(values.reshape(-1)))}\n"


def _transform(recording: Recording, target: str, source: str) -> NDArray[np.float64] | None:
    try:
        return recording.frames.lookup(target, source)
    except FrameError:
        return None


def _write_transform(file: Path, T: NDArray[np.float64]) -> None:
    files.write_text(file, _line("R", T[:3, :3]) + _line("T", T[:3, 3]))
