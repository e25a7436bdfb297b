"""Writing SDI datasets: every log in the report's line forms, images beside them (document 004, 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

from transect import robots
from transect.base.clocks import NS, decimal_from_ns
from transect.base.files import atomic_write, refuse_existing, write_bytes, write_text
from transect.errors import UnsupportedError
from transect.recording import Recording, Sample, Stream, arrow
from transect.recording.arrow import LOG_NS
from transect.types import Image, LaserScan, Pose, RadarRange, RadarSpectrum, RigidBodyState, Twist

from .._payloads import good_payloads, payload_bytes
from ..calibration.matlab import matlab_from_camera
from . import (
    CALIBRATION,
    CALIBRATION_IMAGES,
    CALIBRATION_RESULT,
    CAMERAS,
    LASERS,
    LOGS,
    NAV,
    PAYLOAD,
    RANGES,
    SPECTRUM,
)
from . import logs as logs
from . import text as text
from .payload import LINES, SENSORS
from .tables import NAV_COLUMNS
from .video import CALIBRATION_LOG, IMAGES, VIDEO_WORD

ROWS = 4096
"""Rows that are turned into text together."""

TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(LASERS, (LaserScan,)),
    NAV: (RigidBodyState, Pose),
    RANGES: (RadarRange,),
    SPECTRUM: (RadarSpectrum,),
    **dict.fromkeys((*CAMERAS, CALIBRATION_IMAGES), (Image,)),
    **{part.stream: (part.type,) for part in (*LINES, *SENSORS)},
}
"""Which types of stream can be written under each name."""
COLUMNS: dict[str, frozenset[str]] = {
    **dict.fromkeys(LASERS, frozenset({*LaserScan.units(), "end_angle", "range_unit"} - {"remission"})),
    NAV: frozenset({*RigidBodyState.units(), *NAV_COLUMNS}),
    RANGES: frozenset({*RadarRange.units(), "range_unit"}),
    SPECTRUM: frozenset(RadarSpectrum.units()),
    **{line.stream: frozenset(Twist.units() if line.type is Twist else line.columns) for line in LINES},
    **{sensor.stream: frozenset({sensor.column}) for sensor in SENSORS},
}
"""Columns that the lines of each stream can carry."""

_WRITERS: dict[str, Callable[[pa.Table], pa.Array]] = {
    **dict.fromkeys(LASERS, logs.laser_lines),
    NAV: logs.nav_lines,
    RANGES: logs.radar_lines,
    SPECTRUM: logs.spectrum_lines,
}


def write_dataset(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording as an SDI dataset; see `transect.formats.sdi.write`."""
    refuse_existing(path)
    refused = {stream.name: _refusal(stream) for stream in recording}
    carried = [stream for stream in recording if not refused[stream.name]]
    if not carried:
        raise UnsupportedError(
            f"nothing of {recording.name} can be written as an SDI dataset",
            why="; ".join(refused.values()) or "it has no streams",
        )
    said = [sentence for sentence in refused.values() if sentence]
    for stream in carried:
        if stream.name in _WRITERS:
            _write_log(stream, path / stream.name / LOGS[stream.name])
        elif stream.type is Image:
            said += _write_images(recording, stream, path)
    _write_payload([stream for stream in carried if stream.name.startswith(f"{PAYLOAD}/")], path)
    said += _write_calibration(recording, path)
    return (*said, *_list_uncarried(carried))


def _refusal(stream: Stream) -> str:
    """Return why a stream cannot be written, "" if it can."""
    if stream.type not in TYPES.get(stream.name, ()):
        return f"{stream.name} ({stream.type.__name__}) has no place in an SDI dataset"
    if stream.clock != "utc" and stream.name != CALIBRATION_IMAGES:
        return f"{stream.name} runs on the {stream.clock} clock, SDI logs know only Unix time"
    if not len(stream) and not stream.name.startswith(f"{PAYLOAD}/"):
        return f"{stream.name} has no samples, so it gets no log"
    if stream.name == SPECTRUM and not logs.is_this_radar(stream.table):
        return f"{SPECTRUM}: its range bins are not those of the Argo's radar, which the format implies"
    return ""


def _write_log(stream: Stream, path: Path) -> None:
    with atomic_write(path) as file:
        for start in range(0, len(stream), ROWS):
            file.write(text.file_bytes(_WRITERS[stream.name](stream.table.slice(start, ROWS))))


def _write_payload(streams: list[Stream], path: Path) -> None:
    if any(len(stream) for stream in streams):
        lines = logs.payload_lines({stream.name: stream.table for stream in streams})
        write_bytes(path / PAYLOAD / LOGS[PAYLOAD], text.file_bytes(lines))


def _write_images(recording: Recording, stream: Stream, path: Path) -> list[str]:
    """Write a camera's images and its log; return what could not be written."""
    calibration = stream.name == CALIBRATION_IMAGES
    folder = path / (CALIBRATION if calibration else stream.name)
    said: list[str] = []
    lines: list[str] = []
    names: dict[str, str] = {}
    for sample, data in good_payloads(stream, partial(payload_bytes, recording, suffix=".bmp"), said):
        name = f"image{len(lines) + 1:03d}.bmp" if calibration else _image_name(sample, names)
        write_bytes(folder / IMAGES / name, data)
        lines.append(f"*{_decimal(sample.t_ns)} {VIDEO_WORD.decode()} {name}\n")
    if stream.clock == "utc":
        write_text(folder / (CALIBRATION_LOG if calibration else LOGS[stream.name]), "".join(lines))
    return said


def _decimal(t_ns: int) -> str:
    """Return decimal seconds with three decimals, or with all nine where three are not enough."""
    return decimal_from_ns(t_ns, 3 if t_ns % (NS // 1000) == 0 else 9)


def _image_name(sample: Sample, names: dict[str, str]) -> str:
    """Return the name of an image: that of its file if it fits, else made from its time (section 3.2.5).

    `names` says which payload each name was given to; another one gets another name.
    """
    payload = str(sample.row.get(arrow.PAYLOAD, sample.index))
    base = payload.rpartition("/")[2]
    kept = base.lower().endswith(".bmp") and not set(base) & set(" \t\r\n,;*")
    stem = base[:-4] if kept else "Image" + _decimal(sample.t_ns).replace(".", "-0")
    name, number = f"{stem}.bmp", 1
    while names.setdefault(name.lower(), payload) != payload:
        number += 1
        name = f"{stem}_{number}.bmp"
    return name


def _write_calibration(recording: Recording, path: Path) -> list[str]:
    """Write `Calib_Results.m` of a calibration set; say which calibrations have no place in the format."""
    said: list[str] = []
    usual = robots.load("argo").cameras
    calibrated = recording[CALIBRATION_IMAGES].camera if CALIBRATION_IMAGES in recording else ""
    for name, camera in recording.cameras.items():
        if name == calibrated:
            write_text(path / CALIBRATION_RESULT, matlab_from_camera(camera))
        elif name not in usual or not camera.same_as(usual[name]):
            said.append(f"the calibration of {name} is not carried: readers will take the report's, if any")
    if recording.robot is not None and recording.robot.name != "argo":
        said.append(f"the frames of {recording.robot.name} are not carried: readers will take the Argo's")
    return said


def _list_uncarried(streams: list[Stream]) -> list[str]:
    """Say which columns of the streams a log has no field for."""
    said: list[str] = []
    for stream in streams:
        extra = [c for c in stream.table.column_names if c == LOG_NS]
        extra += [c for c in stream.columns if c not in COLUMNS.get(stream.name, ())]
        said += [f"{stream.name}: {', '.join(extra)} not carried"] if extra else []
    return said
