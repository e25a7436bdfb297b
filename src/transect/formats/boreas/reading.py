"""Reading a drive: calibration, tables, and the images and clouds whose names are their times."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import FrameError, ParseError
from transect.recording import FrameTree, Loss, Parsed, Recording, Role, Source, Stream
from transect.recording.arrow import PAYLOAD
from transect.types import Image, PointCloud, RadarSpectrum

from ..shared.clouds import cloud_table
from ..shared.file_heads import XYZ
from ..shared.images import decode_image, file_table, image_loader
from . import APPLANIX, SOLUTION, Attitude, pose_files, unit_of
from .calibration import CAMERA, Calibration, read_calibration
from .tables import imu_stream, pose_stream, record_stream

LIDAR, RADAR, AEVA = "lidar", "radar", "aeva"
IMUS: Mapping[str, tuple[str, Role]] = {
    "applanix/imu": (APPLANIX, "derived"),
    "applanix/imu_raw": ("imu_raw", "measurement"),
    "imu/dmu_imu": ("dmu", "measurement"),
    "imu/dmu_imu_infilled": ("dmu", "derived"),
    "imu/aeva_imu": ("imu", "measurement"),
}
"""Files of inertial data, their frame, and whether they are measured or made of what was."""
_DOPPLER = (*XYZ, "velocity", "intensity", "quality", "reflectivity", "time")
POINTS = {
    LIDAR: np.dtype([(name, "<f4") for name in (*XYZ, "intensity", "ring", "time")]),
    AEVA: np.dtype([*((name, "<f4") for name in _DOPPLER), ("flags", "<u8")]),
}
"""What a point in a `.bin` is; `time` is in seconds after the time of the scan."""
METADATA = 11
"""Bytes at the start of a row of a radar image: int64 time, uint16 encoder, and one whose meaning changed."""
ENCODER = 5600
"""Steps of a turn."""
UPGRADE_NS, BIN_WIDTHS = 1_632_182_400 * NS, (0.0596, 0.04381)
"""When the radar was exchanged (2021-09-21), and its metres per range bin before and after."""


def read(source: Source, attitude: Attitude) -> Recording:
    """Read what is there of a drive; a folder with only `applanix/` is enough."""
    calibration = read_calibration(source)
    streams = [
        *_pose_streams(source, calibration.frames, attitude),
        *(imu_stream(source, name, f"{name}.csv", *IMUS[name]) for name in IMUS if f"{name}.csv" in source),
        *_wheel(source),
        *_sensor_streams(source, calibration),
    ]
    if not streams and not calibration.frames.frames:
        raise ParseError(f"{source.path} holds nothing of a Boreas drive", where=str(source.path))
    return Recording(
        source.stem,
        tuple(streams),
        frames=calibration.frames,
        cameras=calibration.cameras,
        format="boreas",
        source=source,
        reader_losses=tuple(calibration.losses),
    )


def _pose_streams(source: Source, frames: FrameTree, attitude: Attitude) -> list[Stream]:
    """Return the solution of the navigation unit, named such that it is the first truth, and the sensors'."""
    streams: list[Stream] = []
    for file in pose_files(source):
        whole = file.endswith(SOLUTION)
        sensor = APPLANIX if whole else PurePosixPath(file).stem.removesuffix("_poses")
        name = APPLANIX if whole else file.removesuffix(".csv")
        streams.append(pose_stream(source, name, file, sensor, _place_of(sensor, frames), attitude))
    return streams


def _place_of(sensor: str, frames: FrameTree) -> Floats | None:
    """Return ``T_applanix_sensor``, or None where the calibration does not tell."""
    try:
        return np.eye(4) if sensor == APPLANIX else frames.lookup(APPLANIX, sensor)
    except FrameError:
        return None


def _wheel(source: Source) -> list[Stream]:
    file = f"{APPLANIX}/dmi.csv"
    return [record_stream(source, file.removesuffix(".csv"), file, "wheel")] if file in source else []


# Images and clouds


def _sensor_streams(source: Source, calibration: Calibration) -> list[Stream]:
    """Return the streams of the sensors' folders that are there."""
    model = calibration.cameras.get(CAMERA)
    kinds: dict[str, tuple[type, str, Callable[[Mapping[str, Any]], Any]]] = {
        CAMERA: (Image, ".png", image_loader(source, CAMERA, model)),
        LIDAR: (PointCloud, ".bin", partial(_load_points, source, LIDAR)),
        RADAR: (RadarSpectrum, ".png", partial(_load_radar, source, calibration.range_offset)),
        AEVA: (PointCloud, ".bin", partial(_load_points, source, AEVA)),
    }
    return [
        Stream(
            sensor,
            kind,
            partial(_timed_files, source, sensor, suffix),
            frame=sensor,
            camera=sensor if sensor == CAMERA and model else "",
            loader=loader,
        )
        for sensor, (kind, suffix, loader) in kinds.items()
        if sensor in source.folders and _files(source, sensor, suffix)
    ]


def _files(source: Source, sensor: str, suffix: str) -> list[str]:
    """Return the files right in a folder: radar/ can hold folders of images that were made of its own."""
    test = re.compile(rf"{sensor}/[^/]+{re.escape(suffix)}").fullmatch
    return [name for name in source.under(sensor) if test(name)]


def _timed_files(source: Source, sensor: str, suffix: str) -> Parsed:
    """Return the files of a sensor in the order of the times that they are called by."""
    files = _files(source, sensor, suffix)
    stems = {name: PurePosixPath(name).stem for name in files}
    good = [name for name, stem in stems.items() if re.fullmatch(r"[0-9]{10,19}", stem)]
    lost = [name for name in files if name not in set(good)]
    losses = [Loss(lost[0], "its name is no time", count=len(lost))] if lost else []
    timed = sorted((int(stems[name]) * unit_of(stems[name]), name) for name in good)
    times, names = [t for t, _ in timed], [name for _, name in timed]
    if suffix != ".bin":
        return Parsed(file_table(np.array(times, np.int64), names), tuple(losses))
    clouds = cloud_table(source, times, names, ["float32"] * (POINTS[sensor].itemsize // 4))
    return Parsed(clouds.table, (*losses, *clouds.losses))


def _load_points(source: Source, sensor: str, row: Mapping[str, Any]) -> PointCloud:
    """Load a scan; the points of a cut one that are whole."""
    data, kind = source.buffer(row[PAYLOAD]), POINTS[sensor]
    rows = np.frombuffer(data, kind, len(data) // kind.itemsize)
    fields = {
        name: np.ascontiguousarray(rows[name]) for name in kind.names or () if name not in ("x", "y", "z")
    }
    after = np.nan_to_num(fields.pop("time").astype(np.float64) * NS, posinf=0.0, neginf=0.0)
    fields["t_offset_ns"] = np.round(np.clip(after, -(2.0**62), 2.0**62)).astype(np.int64)
    points = np.column_stack([rows[axis] for axis in XYZ])
    return PointCloud(points, fields, t_ns=row["t_ns"], frame=sensor)


def _load_radar(source: Source, range_offset: float | None, row: Mapping[str, Any]) -> RadarSpectrum:
    """Load a polar image: rows are bearings from x (forward) towards y (right) of the radar, whose z is down.

    The middle of the first bin is half a bin away, unless the calibration has an offset.
    """
    name, t_ns = row[PAYLOAD], row["t_ns"]
    image = decode_image(source.buffer(name), name).data
    if image.ndim != 2 or image.dtype != np.uint8 or image.shape[1] <= METADATA:
        raise ParseError(
            f"{name} is no polar radar image", where=name, why=f"it is {image.dtype} of {image.shape}"
        )
    steps = np.ascontiguousarray(image[:, 8:10]).view("<u2")[:, 0]
    bin_width = BIN_WIDTHS[t_ns > UPGRADE_NS]
    return RadarSpectrum(
        reflectivity=image[:, METADATA:],
        angle=steps * (2 * np.pi / ENCODER),
        bin_width=bin_width,
        range_offset=-bin_width / 2 if range_offset is None else range_offset - bin_width,
        t_ns=t_ns,
        frame=RADAR,
    )
