"""Reader of sequences of the Rosario data set."""

from __future__ import annotations

from functools import partial
from typing import Any

from transect import robots
from transect.formats.nmea.reading import stamped_stream
from transect.formats.shared.file_groups import file_table
from transect.formats.shared.file_heads import is_paper, suffix_of
from transect.formats.shared.images import image_loader, stamps_of_names
from transect.recording import Loss, Parsed, Recording, Source, Stream, cache
from transect.types import Image, Imu, Pose, WheelState

from ..catalogue import entry_of
from .calibration import StereoImuCalibration, read_calibration
from .files import LOGS, File, Sequence, choose_sequence, find_sequences, kind_of
from .tables import is_telegram, read_imu, read_odometry, read_odometry_raw, read_truth

_IMAGE = r"(?i){}_(?P<s>[0-8]?\d{{1,9}})(?:\.(?P<f>\d{{1,9}}))?\.png"
_NO_OFFSETS = "Imu: no offsets are known, none are subtracted"
_STRAIGHT = "Odometry/Raw: straight ahead is -5.67 units of steering, which the cleaned log does not contain"
_ANTENNA = (
    "GroundTruth is the track of the GPS antenna, 1.8 m ahead of base_link, in the axes of the robot at the "
    "start, from the antenna's first position (4.7, see errata)"
)


def read(source: Source, sequence: str | int | None = None) -> Recording:
    """Read a sequence."""
    chosen = choose_sequence(find_sequences(source), sequence, str(source.path))
    robot = robots.load("weeder")
    calibration, calibration_name = _calibration(chosen)
    cameras = {**robot.cameras, **calibration.cameras}
    streams = [
        *_image_streams(source, chosen, cameras),
        *_imu_streams(chosen, calibration),
        *_gps_streams(chosen),
        *_wheel_streams(chosen),
        *_truth_streams(chosen),
    ]
    entry = entry_of(chosen.name)
    return Recording(
        name=chosen.name,
        streams=tuple(streams),
        frames=calibration.frames(robot.frames, calibration_name),
        cameras=cameras,
        robot=robot,
        conditions=entry.facts() if entry else {},
        format="rosario",
        source=source,
        notes=(*_notes(chosen, calibration), *_unread(source, chosen)),
        reader_losses=(*calibration.losses, *_unnamed_images(chosen)),
    )


def _calibration(chosen: Sequence) -> tuple[StereoImuCalibration, str]:
    if "calibration" not in chosen.files:
        return StereoImuCalibration(), ""
    source, name = chosen.files["calibration"]
    source.record_read(name)
    return read_calibration(source.document(name), name), name


def _image_streams(source: Source, chosen: Sequence, cameras: Any) -> list[Stream]:
    streams: list[Stream] = []
    for side in ("left", "right"):
        names = [name for name in chosen.images if name.rpartition("/")[2].lower().startswith(side)]
        if names:
            camera = cameras.get(side)
            frame = f"{side}_camera"
            streams.append(
                Stream(
                    f"Zed/{side.capitalize()}",
                    Image,
                    partial(_image_table, names, side),
                    tag=side,
                    frame=frame,
                    loader=image_loader(source, frame=frame, camera=camera),
                    camera=side,
                )
            )
    return streams


def _image_table(names: list[str], side: str) -> Parsed:
    t_ns, matched, _ = stamps_of_names(names, _IMAGE.format(side))
    return Parsed(file_table(t_ns, matched))


def _unnamed_images(chosen: Sequence) -> list[Loss]:
    """Return the loss of images whose name is not a time."""
    _, _, others = stamps_of_names(chosen.images, _IMAGE.format("(?:left|right)"))
    return [Loss(others[0], "the name is not <camera>_<seconds>.png", count=len(others))] if others else []


def _imu_streams(chosen: Sequence, calibration: StereoImuCalibration) -> list[Stream]:
    if "imu" not in chosen.files:
        return []
    source, name = chosen.files["imu"]
    gyro, acc = calibration.gyro_offset, calibration.acc_offset
    offsets = {
        key: [float(v) for v in values]
        for key, values in (("gyro_offset", gyro), ("acc_offset", acc))
        if values is not None
    }
    build = partial(read_imu, file=name, gyro_offset=gyro, acc_offset=acc)
    load = partial(cache.parse_pieces, source, name, f"rosario.imu/1 {offsets}", build)
    return [Stream("Imu", Imu, load, frame="imu", meta=offsets)]


def _gps_streams(chosen: Sequence) -> list[Stream]:
    if "gps" not in chosen.files:
        return []
    return [stamped_stream(*chosen.files["gps"], kind) for kind in ("fix", "velocity")]


def _wheel_streams(chosen: Sequence) -> list[Stream]:
    """Return the cleaned and the raw log of the motors; if both exist, the cleaned one is derived."""
    streams: list[Stream] = []
    for kind, name in (("odometry_raw", "Odometry/Raw"), ("odometry", "Odometry")):
        if kind in chosen.files:
            role = "derived" if streams else "measurement"
            streams.append(
                Stream(name, WheelState, partial(_wheels, chosen.files[kind]), role=role, frame="base_link")
            )
    return streams


def _wheels(file: File) -> Parsed:
    source, name = file
    raw = is_telegram(source.head(name))
    build = partial(read_odometry_raw if raw else read_odometry, file=name)
    return cache.parse_pieces(source, name, f"rosario.{'odometry_raw' if raw else 'odometry'}/1", build)


def _truth_streams(chosen: Sequence) -> list[Stream]:
    if "truth" not in chosen.files:
        return []
    source, name = chosen.files["truth"]
    load = partial(cache.parse_pieces, source, name, "rosario.truth/1", partial(read_truth, file=name))
    return [Stream("GroundTruth", Pose, load, role="truth", frame="world", child="gps")]


def _unread(source: Source, chosen: Sequence) -> list[str]:
    """Return a note on text files beside the logs of a sequence with other names."""
    folders = {name.rpartition("/")[0] for kind, (_, name) in chosen.files.items() if kind in LOGS}
    others = [
        name
        for name in source.names
        if name.rpartition("/")[0] in folders
        and suffix_of(name) in (".log", ".txt", ".csv")
        and not (kind_of(name) or is_paper(name))
    ]
    known = ", ".join(f"{kind}.log" for kind in LOGS)
    return [f"not read: {', '.join(others)}: the logs of a sequence are called {known}"] if others else []


def _notes(chosen: Sequence, calibration: StereoImuCalibration) -> tuple[str, ...]:
    notes: list[str] = []
    if "imu" in chosen.files:
        known = calibration.gyro_offset is not None or calibration.acc_offset is not None
        notes.append("Imu: the calibration file's offsets are subtracted" if known else _NO_OFFSETS)
    if "calibration" not in chosen.files:
        notes.append("no calibration file: cameras are the robot's, and the pose of the IMU is unknown")
    if "odometry_raw" in chosen.files:
        notes.append(_STRAIGHT)
    return (*notes, _ANTENNA) if "truth" in chosen.files else tuple(notes)
