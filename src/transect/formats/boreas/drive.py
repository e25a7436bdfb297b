"""Reading a drive: calibration, tables, and the images and clouds whose names are their times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.base.file_bytes import Content
from transect.errors import FrameError, ParseError, TransectError
from transect.geometry import se3
from transect.recording import FrameTree, Loss, Parsed, Recording, Role, Source, Stream, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.text import line_pieces
from transect.types import CameraModel, Image, PointCloud, Pose, RadarSpectrum

from ..calibration.model import camera, documents, numbers
from ..kitti.poses import is_rotation, with_quaternions
from ..shared.clouds import cloud_table
from ..shared.file_groups import file_table
from ..shared.file_heads import XYZ
from ..shared.images import decode_image, image_loader
from ..shared.rows import exact_stamps, lines_lost, only_file, read_lines
from ..tum import pose_table
from . import APPLANIX, CALIB, SOLUTION, Attitude, pose_files, result_rows, rows_of, unit_of, unit_of_head
from .tables import imu_stream, in_one_unit, pose_stream, record_stream

CAMERA = "camera"
PLACES = (
    *("T_applanix_lidar.txt", "T_camera_lidar.txt", "T_radar_lidar.txt", "T_aeva_lidar.txt"),
    *("T_applanix_dmu.txt", "T_applanix_wheel.txt", "T_imu_aeva.txt"),
)
"""`T_a_b.txt` takes points of b to a; `imu` is the inertial unit in the Aeva lidar."""
PROJECTION, INTRINSICS, OTHERS = "P_camera.txt", "camera0_intrinsics.yaml", "misc_calibrations.yaml"


@dataclass
class BoreasCalibration:
    """Content of calib/."""

    # Rooted at `applanix`: x to the right, y forward, z up
    frames: FrameTree = field(default_factory=FrameTree)
    # The rectified camera, if it is known
    cameras: dict[str, CameraModel] = field(default_factory=dict[str, CameraModel])
    # Metres; range of bin i of the radar, counted from 0, is ``i * bin_width + range_offset``
    range_offset: float | None = None
    losses: list[Loss] = field(default_factory=list[Loss])


def read_calibration(source: Source) -> BoreasCalibration:
    """Read the files that are there; a bad one is a loss."""
    found = BoreasCalibration()
    for file in (*PLACES, PROJECTION, OTHERS):
        name = f"{CALIB}/{file}"
        if name not in source:
            continue
        source.record_read(name)
        try:
            _add(source, name, found)
        except (TransectError, ValueError, TypeError, LookupError, OverflowError) as error:
            reason = getattr(error, "why", "") or getattr(error, "what", "") or str(error)
            found.losses.append(Loss(name, reason))
    return found


def _add(source: Source, name: str, found: BoreasCalibration) -> None:
    """Add the content of one file."""
    if name.endswith(PROJECTION):
        P = _matrix(source, name, 3)
        found.cameras[CAMERA] = camera(CAMERA, _image_size(source), P[:, :3].copy(), P=P)
    elif name.endswith(OTHERS):
        offset = documents(source.document(name), name)[0].get("radar_offset")
        found.range_offset = None if offset is None else float(numbers(offset, what="radar_offset"))
    else:
        _, parent, child = PurePosixPath(name).stem.split("_")
        _place(parent, child, _matrix(source, name, 4), name, found.frames)


def _place(parent: str, child: str, T_parent_child: Floats, name: str, frames: FrameTree) -> None:
    """Add an edge; one to a frame that has a parent already is turned round."""
    if child in frames and frames.parent_of(child) is not None:
        frames.add_static(child, parent, se3.invert(T_parent_child), source=name)
    else:
        frames.add_static(parent, child, T_parent_child, source=name)


def _matrix(source: Source, name: str, rows: int) -> Floats:
    """Return the first rows of a matrix of four columns."""
    words = source.text(name).split()
    if len(words) not in (12, 16) or len(words) < 4 * rows:
        raise ValueError(f"it does not hold {rows} x 4 numbers")
    return numbers([words[4 * i : 4 * i + 4] for i in range(rows)], rows, 4, what="the matrix")


def _image_size(source: Source) -> tuple[float, float]:
    """Return width and height, 0 if unknown; rectification does not change the size."""
    name = f"{CALIB}/{INTRINSICS}"
    if name not in source:
        return 0.0, 0.0
    source.record_read(name)
    width, height = numbers(documents(source.document(name), name)[0].get("image_size"), 2, what="image_size")
    return float(width), float(height)


WORLD = "odom"
_TAIL_BYTES = 4096


def read_result(source: Source) -> Recording:
    """Read one trajectory.

    The benchmark asks for poses of the frame `applanix`, and in the plane for those of `radar`.
    """
    name = only_file(source)
    stream = Stream(
        "Trajectory",
        Pose,
        lambda: cache.parse_pieces(source, name, "boreas.result/1", partial(parse_result, file=name)),
        role="estimate",
        frame=WORLD,
        child="radar" if _is_planar(source, name) else "applanix",
    )
    return Recording(source.stem, (stream,), format="boreas", source=source)


def _is_planar(source: Source, name: str) -> bool:
    """Return whether the first poses and the last turn about z only, and stay at z = 0."""
    rows = [*result_rows(source.head(name)), *rows_of(bytes(source.content(name)[-_TAIL_BYTES:]), 13)[-1:]]
    return all(row[9:] == (0.0, 0.0, 1.0, 0.0) for row in rows)


def parse_result(content: Content, file: str) -> Iterator[Parsed]:
    """Parse lines of a time and the upper 3 x 4 of ``T_vehicle_world``, row by row, in metres.

    Poses are that of the vehicle in the world, so each matrix is inverted.
    """
    unit, first = unit_of_head(bytes(content[:_TAIL_BYTES])), np.zeros(0, np.int64)
    for piece in line_pieces(content, file):
        tokens, lines, losses = read_lines(piece, file, (13,))
        t_ns, lines, bad = exact_stamps(tokens, 0, lines, file, unit)
        first = np.append(first, t_ns[:1])[:1]
        same = in_one_unit(t_ns, first)
        bad += lines_lost(tokens, lines[~same], "the time is in another unit than the first", file)
        t_ns, lines = t_ns[same], lines[same]
        given = tokens.block(1, 12, lines).reshape(-1, 3, 4)
        usable = is_rotation(given[:, :, :3])
        losses += [*bad, *lines_lost(tokens, lines[~usable], "the matrix is no rotation", file)]
        R_inverse = np.swapaxes(given[usable][:, :, :3], 1, 2)
        poses = np.concatenate([R_inverse, -R_inverse @ given[usable][:, :, 3:]], axis=2)
        yield Parsed(pose_table(t_ns[usable], with_quaternions(poses)), tuple(losses))


LIDAR, RADAR, AEVA = "lidar", "radar", "aeva"
IMUS: Mapping[str, tuple[str, Role]] = {
    "applanix/imu": (APPLANIX, "derived"),
    "applanix/imu_raw": ("imu_raw", "measurement"),
    "imu/dmu_imu": ("dmu", "measurement"),
    "imu/dmu_imu_infilled": ("dmu", "derived"),
    "imu/aeva_imu": ("imu", "measurement"),
}
"""Files of inertial data, their frame, and whether they are measured or derived."""
_DOPPLER = (*XYZ, "velocity", "intensity", "quality", "reflectivity", "time")
POINTS = {
    LIDAR: np.dtype([(name, "<f4") for name in (*XYZ, "intensity", "ring", "time")]),
    AEVA: np.dtype([*((name, "<f4") for name in _DOPPLER), ("flags", "<u8")]),
}
"""Fields of a point in a `.bin`; `time` is in seconds after the time of the scan."""
METADATA_BYTES = 11
"""Bytes at the start of a row of a radar image: int64 time, uint16 encoder, and one whose meaning changed."""
ENCODER_STEPS_PER_TURN = 5600
"""Steps of a turn."""
RADAR_UPGRADE_NS, BIN_WIDTHS_M = 1_632_182_400 * NS, (0.0596, 0.04381)
"""When the radar was exchanged (2021-09-21), and its metres per range bin before and after."""


def read(source: Source, attitude: Attitude = "auto") -> Recording:
    """Read a drive (a folder with `applanix/` is sufficient), or a result of the odometry benchmark.

    Parameters
    ----------
    attitude : {"auto", "devkit"}
        How roll and pitch of poses in UTM (the first release) are read: in the axes of the car, in which they
        are; or as the development kit pyboreas reads them, to get its numbers.
    """
    if len(source.names) == 1 and not pose_files(source) and result_rows(source.head(source.names[0])):
        return read_result(source)
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
    """Return ``T_applanix_sensor``, or None if it is not in the calibration."""
    try:
        return np.eye(4) if sensor == APPLANIX else frames.lookup(APPLANIX, sensor)
    except FrameError:
        return None


def _wheel(source: Source) -> list[Stream]:
    file = f"{APPLANIX}/dmi.csv"
    return [record_stream(source, file.removesuffix(".csv"), file, "wheel")] if file in source else []


# Images and clouds


def _sensor_streams(source: Source, calibration: BoreasCalibration) -> list[Stream]:
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
    if image.ndim != 2 or image.dtype != np.uint8 or image.shape[1] <= METADATA_BYTES:
        raise ParseError(
            f"{name} is no polar radar image", where=name, why=f"it is {image.dtype} of {image.shape}"
        )
    steps = np.ascontiguousarray(image[:, 8:10]).view("<u2")[:, 0]
    bin_width = BIN_WIDTHS_M[t_ns > RADAR_UPGRADE_NS]
    return RadarSpectrum(
        reflectivity=image[:, METADATA_BYTES:],
        angle=steps * (2 * np.pi / ENCODER_STEPS_PER_TURN),
        bin_width=bin_width,
        range_offset=-bin_width / 2 if range_offset is None else range_offset - bin_width,
        t_ns=t_ns,
        frame=RADAR,
    )
