"""Writer of SDI data sets: rows of tables as lines of logs, with images beside them (3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect import robots
from transect.base.arrays import Floats
from transect.base.clocks import NS, decimal_from_ns
from transect.base.files import atomic_write, refuse_existing, write_bytes, write_text
from transect.base.units import DEGREES, unit_of
from transect.errors import UnsupportedError
from transect.formats.calibration.text_dialects import matlab_from_camera
from transect.formats.shared.payloads import good_payloads, payload_bytes
from transect.formats.shared.rows import from_si_exactly, invert
from transect.recording import Recording, Sample, Stream, arrow
from transect.recording.arrow import LOG_NS, T_NS
from transect.types import Image, LaserScan, Pose, RadarRange, RadarSpectrum, RigidBodyState, Twist
from transect.types.returns import BEYOND_MAXIMUM, NO_RETURN, NOT_VALID

from . import (
    CALIBRATION,
    CALIBRATION_FILE,
    CALIBRATION_IMAGES,
    CALIBRATION_RESULT,
    CAMERAS,
    LASERS,
    LOGS,
    NAV,
    PAYLOAD,
    RANGES,
    SPECTRUM,
    text,
)
from .lines import LogProblems
from .tables import (
    LASER_WORD,
    LINES,
    NAV_COLUMNS,
    NAV_WORD,
    RADAR_WORD,
    SENSOR_WORD,
    SENSORS,
    STATES,
    PayloadLine,
    PayloadSensor,
    RangeUnit,
    bin_widths,
    in_units,
    known_units,
    metres,
    radar,
)
from .video import CALIBRATION_LOG, IMAGES, VIDEO_WORD

TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(LASERS, (LaserScan,)),
    NAV: (RigidBodyState, Pose),
    RANGES: (RadarRange,),
    SPECTRUM: (RadarSpectrum,),
    **dict.fromkeys((*CAMERAS, CALIBRATION_IMAGES), (Image,)),
    **{part.stream: (part.type,) for part in (*LINES, *SENSORS)},
}
"""Types of stream that can be written under each name."""
COLUMNS: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        LASERS, frozenset({*LaserScan.units(), "end_angle", "range_unit"} - {"remission", "time_increment"})
    ),
    NAV: frozenset({*RigidBodyState.units(), *NAV_COLUMNS}),
    RANGES: frozenset({*RadarRange.units(), "range_unit"}),
    SPECTRUM: frozenset(RadarSpectrum.units()),
    **{line.stream: frozenset(Twist.units() if line.type is Twist else line.columns) for line in LINES},
    **{sensor.stream: frozenset({sensor.column}) for sensor in SENSORS},
}
"""Columns that the lines of each stream can represent."""


def write_dataset(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording as an SDI data set; see `transect.datasets.marulan.logs.write`."""
    refuse_existing(path)
    refused = {stream.name: _refusal(stream) for stream in recording}
    written = [stream for stream in recording if not refused[stream.name]]
    if not written:
        raise UnsupportedError(
            f"nothing of {recording.name} can be written as an SDI dataset",
            why="; ".join(refused.values()) or "it has no streams",
        )
    losses = [sentence for sentence in refused.values() if sentence]
    for stream in written:
        if stream.name in _WRITERS:
            _write_log(stream, path / stream.name / LOGS[stream.name])
        elif stream.type is Image:
            losses += _write_images(recording, stream, path)
    _write_payload([stream for stream in written if stream.name.startswith(f"{PAYLOAD}/")], path)
    losses += _write_calibration(recording, path)
    return (*losses, *_list_lost_columns(written))


def _refusal(stream: Stream) -> str:
    """Return why a stream cannot be written, "" if it can."""
    if stream.type not in TYPES.get(stream.name, ()):
        return f"{stream.name} ({stream.type.__name__}) has no place in an SDI dataset"
    if stream.clock != "utc" and stream.name != CALIBRATION_IMAGES:
        return f"{stream.name} runs on the {stream.clock} clock, SDI logs know only Unix time"
    if not len(stream) and not stream.name.startswith(f"{PAYLOAD}/"):
        return f"{stream.name} has no samples, so it gets no log"
    if stream.name == SPECTRUM and not is_this_radar(stream.table):
        return f"{SPECTRUM}: its range bins are not those of the Argo's radar, which the format implies"
    return ""


def _write_log(stream: Stream, path: Path, chunk_rows: int = 4096) -> None:
    with atomic_write(path) as file:
        for start in range(0, len(stream), chunk_rows):
            file.write(text.file_bytes(_WRITERS[stream.name](stream.table.slice(start, chunk_rows))))


def _write_payload(streams: list[Stream], path: Path) -> None:
    if any(len(stream) for stream in streams):
        lines = payload_lines({stream.name: stream.table for stream in streams})
        write_bytes(path / PAYLOAD / LOGS[PAYLOAD], text.file_bytes(lines))


def _write_images(recording: Recording, stream: Stream, path: Path) -> list[str]:
    """Write a camera's images and its log; return sentences about losses."""
    calibration = stream.name == CALIBRATION_IMAGES
    folder = path / (CALIBRATION if calibration else stream.name)
    losses: list[str] = []
    lines: list[str] = []
    names: dict[str, str] = {}
    for sample, data in good_payloads(stream, partial(payload_bytes, recording, suffix=".bmp"), losses):
        name = f"image{len(lines) + 1:03d}.bmp" if calibration else _image_name(sample, names)
        write_bytes(folder / IMAGES / name, data)
        lines.append(f"*{_decimal(sample.t_ns)} {VIDEO_WORD.decode()} {name}\n")
    if stream.clock == "utc":
        write_text(folder / (CALIBRATION_LOG if calibration else LOGS[stream.name]), "".join(lines))
    return losses


def _decimal(t_ns: int) -> str:
    """Return decimal seconds with three decimals, or with nine if three are not enough."""
    return decimal_from_ns(t_ns, 3 if t_ns % (NS // 1000) == 0 else 9)


def _image_name(sample: Sample, names: dict[str, str]) -> str:
    """Return the name of an image: that of its file if it is valid, else by its time (section 3.2.5).

    `names` maps used names to payloads; another payload gets another name.
    """
    payload = str(sample.row.get(arrow.PAYLOAD, sample.index))
    base = payload.rpartition("/")[2]
    is_valid = base.lower().endswith(".bmp") and not set(base) & set(" \t\r\n,;*")
    stem = base[:-4] if is_valid else "Image" + _decimal(sample.t_ns).replace(".", "-0")
    name, number = f"{stem}.bmp", 1
    while names.setdefault(name.lower(), payload) != payload:
        number += 1
        name = f"{stem}_{number}.bmp"
    return name


def _write_calibration(recording: Recording, path: Path) -> list[str]:
    """Write `Calib_Results.m` of a calibration set, and beside images with another calibration than SDI's."""
    losses: list[str] = []
    usual = robots.load("argo").cameras
    calibrated = recording[CALIBRATION_IMAGES].camera if CALIBRATION_IMAGES in recording else ""
    for name, camera in recording.cameras.items():
        if name == calibrated:
            write_text(path / CALIBRATION_RESULT, matlab_from_camera(camera))
        elif name in usual and name in recording and not camera.same_as(usual[name]):
            write_text(path / name / CALIBRATION_FILE, matlab_from_camera(camera))
        elif name not in usual or not camera.same_as(usual[name]):
            losses.append(f"the calibration of {name} is not written: readers will use the report's, if any")
    if recording.robot is not None and recording.robot.name != "argo":
        losses.append(f"the frames of {recording.robot.name} are not written: readers will use the Argo's")
    return losses


def _list_lost_columns(streams: list[Stream]) -> list[str]:
    """Return sentences about columns without a field in the log."""
    losses: list[str] = []
    for stream in streams:
        extra = [c for c in stream.table.column_names if c == LOG_NS]
        extra += [c for c in stream.columns if c not in COLUMNS.get(stream.name, ())]
        losses += [f"{stream.name}: {', '.join(extra)} not written"] if extra else []
    return losses


def _get(table: pa.Table, name: str, default: float = np.nan) -> Floats:
    """Return a column, or the default if the table has none."""
    return arrow.numbers(table, name) if name in table.column_names else np.full(table.num_rows, default)


def laser_lines(table: pa.Table) -> pa.Array:
    """Return laser scans as RANGE_DATA lines, with ranges in their recorded unit.

    A missing return is the error code of the laser, or that of a SICK laser; a range that is missing for
    another reason, without a code, is `nan`.
    """
    ranges, offsets = arrow.lists_of(table, "ranges")
    start, increment, counts = _get(table, "start_angle"), _get(table, "angle_increment"), np.diff(offsets)
    end = _get(table, "end_angle") if "end_angle" in table.column_names else start + increment * (counts - 1)
    unit = _unit_types(table)
    logged = _in_unit(ranges, np.repeat(unit, counts))
    if "range_error" in table.column_names:
        logged = _with_codes(logged, arrow.lists_of(table, "range_error")[0], np.repeat(unit, counts))
    head = [text.numbers(values) for values in (start, increment, end, unit, counts)]
    stamps = text.stamps(arrow.numbers(table, T_NS))
    return text.lines(stamps, LASER_WORD.decode(), *head, text.lists(text.numbers(logged), offsets))


def _with_codes(logged: Floats, errors: NDArray[Any], unit: NDArray[Any]) -> Floats:
    """Return logged numbers, with a SICK laser's error code in place of NaN."""
    code = np.where(np.isin(errors, NO_RETURN) & (errors < BEYOND_MAXIMUM), NOT_VALID, errors)
    number = np.where(unit == RangeUnit.MILLIMETRES, code, in_units(code / 100, unit))
    return np.where(np.isnan(logged) & (code >= BEYOND_MAXIMUM), number, logged)


def _unit_types(table: pa.Table) -> NDArray[np.int64]:
    """Return the RangeUnitTypes (n,) of rows, metres if unknown."""
    unit = _get(table, "range_unit", RangeUnit.METRES)
    return np.where(known_units(unit), unit, RangeUnit.METRES).astype(np.int64)


def _in_unit(ranges: Floats, unit: NDArray[Any]) -> Floats:
    return invert(metres, ranges, in_units(ranges, unit), unit)


def radar_lines(table: pa.Table) -> pa.Array:
    """Return radar ranges as RANGE_REFLECTIVITY_DATA lines: one range, no increment, the end is the start."""
    unit, angle = _unit_types(table), text.numbers(_get(table, "angle"))
    distance = text.numbers(_in_unit(_get(table, "range"), unit))
    stamps, reflectivity = text.stamps(arrow.numbers(table, T_NS)), text.numbers(_get(table, "reflectivity"))
    return text.lines(
        stamps, RADAR_WORD.decode(), angle, "0", angle, text.numbers(unit), "1", distance, reflectivity
    )


def spectrum_lines(table: pa.Table) -> pa.Array:
    """Return radar spectra as lines: the angle in degrees, then the bins."""
    reflectivity, offsets = arrow.lists_of(table, "reflectivity")
    angle = _get(table, "angle")
    degrees = from_si_exactly(angle, DEGREES)
    stamps, bins = text.stamps(arrow.numbers(table, T_NS)), text.lists(text.numbers(reflectivity), offsets)
    return text.lines(stamps, text.numbers(degrees), bins)


def is_this_radar(table: pa.Table) -> bool:
    """Return whether spectra have the bin width and offset that readers assume."""
    _, offsets = arrow.lists_of(table, "reflectivity")
    expected = bin_widths(np.maximum(np.diff(offsets), 1), LogProblems(""))
    width, offset = _get(table, "bin_width"), _get(table, "range_offset")
    return bool(
        np.allclose(width, expected, rtol=1e-9) and np.allclose(offset, radar().range_offset, rtol=1e-9)
    )


def nav_lines(table: pa.Table) -> pa.Array:
    """Return poses as NAV_DATA lines; missing columns are NaN."""
    known = {**_nav_from_pose(table), **{n: _get(table, n) for n in NAV_COLUMNS if n in table.column_names}}
    values = np.column_stack([known[name] for name in NAV_COLUMNS])
    covariance = np.full((len(values), STATES**2), np.nan)
    if "covariance" in table.column_names:
        recorded = arrow.numbers(table, "covariance")
        if recorded.shape == covariance.shape:
            covariance = recorded
    stamps = text.stamps(arrow.numbers(table, T_NS))
    return text.lines(stamps, NAV_WORD.decode(), text.rows(np.hstack([values, covariance])))


def _nav_from_pose(table: pa.Table) -> dict[str, Floats]:
    """Return the twelve states from the canonical columns of a pose and its velocities."""
    from transect.geometry import rotations

    q = np.column_stack([_get(table, name) for name in ("qx", "qy", "qz", "qw")])
    roll, pitch, yaw = rotations.euler_from_quaternion("rpy", q).T
    wx, wy, wz = (_get(table, name) for name in ("wx", "wy", "wz"))
    with np.errstate(divide="ignore", invalid="ignore"):
        droll = (wx * np.cos(yaw) + wy * np.sin(yaw)) / np.cos(pitch)
    dpitch, dyaw = wy * np.cos(yaw) - wx * np.sin(yaw), wz + droll * np.sin(pitch)
    moved = [_get(table, name) for name in ("x", "y", "z", "vx", "vy", "vz")]
    return dict(zip(NAV_COLUMNS, [*moved, roll, pitch, yaw, droll, dpitch, dyaw], strict=True))


def payload_lines(tables: Mapping[str, pa.Table]) -> pa.Array:
    """Return the tables of the Payload streams as one log: by time, each stream's rows in their order."""
    texts = [_payload_rows(line, tables[line.stream]) for line in LINES if line.stream in tables]
    texts += [_sensor_rows(i, s, tables[s.stream]) for i, s in enumerate(SENSORS) if s.stream in tables]
    names = [part.stream for part in (*LINES, *SENSORS) if part.stream in tables]
    # A clock that jumps back must not reorder a stream: rows are merged by the latest time so far.
    latest = [np.maximum.accumulate(arrow.numbers(tables[name], T_NS)) for name in names]
    order = np.argsort(np.concatenate(latest), kind="stable")
    return pa.concat_arrays(texts).take(arrow.from_numpy(order))


def _payload_rows(line: PayloadLine, table: pa.Table) -> pa.Array:
    values = [text.numbers(_get(table, name)) for name in line.columns]
    return text.lines(text.stamps(arrow.numbers(table, T_NS)), line.word.decode(), *values)


def _sensor_rows(number: int, sensor: PayloadSensor, table: pa.Table) -> pa.Array:
    si = _get(table, sensor.column)
    value = from_si_exactly(si, unit_of(sensor.unit))
    stamps = text.stamps(arrow.numbers(table, T_NS))
    return text.lines(stamps, SENSOR_WORD.decode(), str(number), text.numbers(value))


_WRITERS: dict[str, Callable[[pa.Table], pa.Array]] = {
    **dict.fromkeys(LASERS, laser_lines),
    NAV: nav_lines,
    RANGES: radar_lines,
    SPECTRUM: spectrum_lines,
}
