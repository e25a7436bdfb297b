"""Reader of SDI data sets: lasers, navigation, payload, radar and video."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from transect import robots
from transect.base.clocks import ns_from_decimal
from transect.base.file_bytes import Content
from transect.errors import ParseError
from transect.formats.calibration.text_dialects import camera_from_matlab
from transect.recording import FrameTree, Loss, Parsed, Recording, Robot, Source, Stream, cache
from transect.robots.beams import assemble_sweeps
from transect.types import CameraModel, Image, LaserScan, RadarRange, RadarSpectrum, RigidBodyState

from .. import catalogue
from . import (
    CALIBRATION,
    CALIBRATION_FILE,
    CALIBRATION_IMAGES,
    CALIBRATION_RESULT,
    CAMERAS,
    FOLDERS,
    LASERS,
    NAV,
    PAYLOAD,
    RANGES,
    SPECTRUM,
    log_of,
    tables,
)
from .lines import BlockReader, read_log
from .tables import LINES, SENSORS, payload_block
from .video import CALIBRATION_LOG, calibration_table, loader, video_table

BODY, NAVIGATION, RADAR = "Body", "Navigation", "Radar"
_TAGS = {
    **{laser: laser.removeprefix("Laser").lower() for laser in LASERS},
    "VideoIR": "infrared",
    "VideoVisual": "visual",
}
_FIRST_STAMP = re.compile(rb"\s*\*?(\d+\.\d+)\s")
_CLIPPED = (
    "VideoIR: the calibration is for {} x {} pixels; clipped images (511 x 398 of 640 x 480) have no camera "
    "model, as the position of the clip is unknown"
)


def read(source: Source, *, sweeps: bool = False) -> Recording:
    """Read a data set."""
    entry = catalogue.find_by_name(source.stem) or _entry_by_time(source)
    robot = robots.load("argo")
    cameras, refused = _cameras(source, robot)
    lasers = [
        _log_stream(source, laser, LaserScan, tables.laser_block, tag=_TAGS[laser], frame=laser)
        for laser in LASERS
        if _has(source, laser)
    ]
    streams = [assemble_sweeps(laser) for laser in lasers] if sweeps else lasers
    streams += [_nav(source)] if _has(source, NAV) else []
    streams += _payload(source) if _has(source, PAYLOAD) else []
    streams += _radar(source)
    streams += [_video(source, camera, cameras) for camera in CAMERAS if _has_images(source, camera)]
    streams += _calibration(source, cameras)
    return Recording(
        name=source.stem,
        streams=tuple(streams),
        frames=_frames(robot, streams),
        cameras=cameras,
        robot=robot,
        conditions=entry.facts() if entry else {},
        format="sdi",
        source=source,
        notes=_notes(source, entry, cameras["VideoIR"]),
        reader_losses=(*_missing_logs(source), *refused),
    )


def _has(source: Source, folder: str) -> bool:
    return log_of(source, folder) in source


def _has_images(source: Source, camera: str) -> bool:
    return _has(source, camera) or f"{camera}/Images" in source.folders


def _missing_logs(source: Source) -> list[Loss]:
    """Return the losses of missing logs; those of cameras are reported by their streams."""
    folders = [folder for folder in FOLDERS if folder in source.folders and folder not in CAMERAS]
    return [Loss(log_of(source, f), "the log is missing", count=0) for f in folders if not _has(source, f)]


def _parse(source: Source, file: str, parser: str, block: BlockReader) -> dict[str, Parsed]:
    def build(content: Content) -> Iterator[Mapping[str, Parsed]]:
        return read_log(content, file, block)

    # The name of the file is part of the losses, hence of the key.
    return cache.parse_many_pieces(source, file, f"sdi.{parser}/2 {file}", build)


def _log_stream(source: Source, folder: str, kind: type, block: BlockReader, **attributes: Any) -> Stream:
    file = log_of(source, folder)

    def load() -> Parsed:
        return _parse(source, file, block.__name__, block)[tables.TABLE]

    return Stream(folder, kind, load, **attributes)


def _nav(source: Source) -> Stream:
    """Return the localisation, a 2 cm RTK solution (section 2.2.6): the reference of the data set."""
    return _log_stream(
        source, NAV, RigidBodyState, tables.nav_block, role="truth", frame=NAVIGATION, child=BODY
    )


def _radar(source: Source) -> list[Stream]:
    """Return the radar's streams; its ranges are the peaks of its spectra (section 3.2.4)."""
    streams: list[Stream] = []
    if _has(source, RANGES):
        streams.append(
            _log_stream(source, RANGES, RadarRange, tables.radar_block, role="derived", frame=RADAR)
        )
    if _has(source, SPECTRUM):
        streams.append(_log_stream(source, SPECTRUM, RadarSpectrum, tables.spectrum_block, frame=RADAR))
    return streams


def _payload(source: Source) -> list[Stream]:
    @functools.cache
    def parsed() -> dict[str, Parsed]:
        return _parse(source, log_of(source, PAYLOAD), payload_block.__name__, payload_block)

    return [
        Stream(part.stream, part.type, lambda name=part.stream: parsed()[name], frame=BODY)
        for part in (*LINES, *SENSORS)
    ]


def _video(source: Source, camera: str, cameras: Mapping[str, CameraModel]) -> Stream:
    return Stream(
        camera,
        Image,
        functools.partial(video_table, source, camera),
        tag=_TAGS[camera],
        frame=camera,
        loader=loader(source, camera, cameras.get(camera), thermal=camera == "VideoIR"),
        camera=camera,
    )


def _calibration(source: Source, cameras: Mapping[str, CameraModel]) -> list[Stream]:
    """Return the images of a camera calibration (section 4.4.1)."""
    if CALIBRATION_IMAGES not in source.folders:
        return []
    camera = _calibrated_camera(source)
    return [
        Stream(
            CALIBRATION_IMAGES,
            Image,
            functools.partial(calibration_table, source, CALIBRATION),
            clock="utc" if f"{CALIBRATION}/{CALIBRATION_LOG}" in source else "index",
            tag="calibration",
            frame=camera,
            loader=loader(source, camera, cameras.get(camera), thermal=camera == "VideoIR"),
            camera=camera,
        )
    ]


def _calibrated_camera(source: Source) -> str:
    """Return the camera of a calibration set: the one with images."""
    return next((camera for camera in CAMERAS if _has_images(source, camera)), "VideoVisual")


def _cameras(source: Source, robot: Robot) -> tuple[dict[str, CameraModel], list[Loss]]:
    """Return the calibrations of the report, or those in the data set.

    A calibration set has one; a data set with images of another camera has one beside the images.
    """
    cameras, losses = dict(robot.cameras), list[Loss]()
    files = {CALIBRATION_RESULT: _calibrated_camera(source)}
    files |= {f"{camera}/{CALIBRATION_FILE}": camera for camera in CAMERAS}
    for file, name in files.items():
        if file not in source:
            continue
        try:
            cameras[name] = camera_from_matlab(source.text(file), name, file)
        except ParseError as error:
            losses.append(Loss(file, f"{error.what}: {error.why}"))
        else:
            source.record_read(file)
    return cameras, losses


def _frames(robot: Robot, streams: list[Stream]) -> FrameTree:
    """Return the robot's frames, with the pose of the body in the Navigation frame by Nav."""
    frames = robot.frames.copy()
    for nav in (stream for stream in streams if stream.name == NAV):
        frames.add_lazy(NAVIGATION, BODY, functools.partial(_poses, nav), source=NAV)
    return frames


def _poses(nav: Stream) -> tuple[Any, Any, Any]:
    return nav.t_ns, nav.array("x", "y", "z"), nav.array("qx", "qy", "qz", "qw")


def _entry_by_time(source: Source) -> catalogue.SdiEntry | None:
    """Return the catalogue entry of a renamed or cut data set, by its first stamp."""
    for log in (log_of(source, folder) for folder in FOLDERS):
        if log in source and (match := _FIRST_STAMP.match(source.head(log, 64))):
            return catalogue.find_by_time(ns_from_decimal(match[1].decode()))
    return None


def _notes(source: Source, entry: catalogue.SdiEntry | None, infrared: CameraModel) -> tuple[str, ...]:
    notes = [f"the report says: {note}" for note in entry.notes] if entry else []
    if missing := [folder for folder in _list_expected(entry) if folder not in source.folders]:
        notes.append(f"missing: {', '.join(missing)}")
    if _has_images(source, "VideoIR") and CALIBRATION_IMAGES not in source.folders:
        notes.append(_CLIPPED.format(infrared.width, infrared.height))
    return tuple(notes)


def _list_expected(entry: catalogue.SdiEntry | None) -> tuple[str, ...]:
    """Return the folders that a data set should have (sections 3.2.6 and 4.4)."""
    absent = {PAYLOAD} if entry is None or entry.kind != "dynamic" else set[str]()
    if entry and entry.kind == "calibration":
        absent |= {SPECTRUM}
        if entry.name != "RangeSensorsCalibration":
            camera = "VideoIR" if entry.name.startswith("IR") else "VideoVisual"
            absent |= {NAV, RANGES, *(other for other in CAMERAS if other != camera)}
    return tuple(folder for folder in FOLDERS if folder not in absent)
