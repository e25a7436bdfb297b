"""Writer of Rosario sequences, in the layout of the published scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import decimal_from_ns
from transect.base.files import refuse_existing, write_bytes, write_text
from transect.errors import FrameError
from transect.formats.nmea.writing import log_text, satellite_streams
from transect.formats.shared.interface import Note
from transect.formats.shared.payloads import good_payloads, payload_bytes
from transect.formats.shared.rows import column_or_nan, float_texts, invert, text_rows
from transect.recording import Recording, Stream
from transect.types import CameraModel, Image, Imu, Pose, WheelState

from ..catalogue import entry_of
from ..robot.geometry import M_S2_PER_MILLI_G, RAD_S_PER_DEG_S
from .calibration import CAMERAS, calibration_text
from .tables import RAW, are_rpm, count_fast, has_own_coding, telegram_fields, weeder, wheel_motion


def write_sequence(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording to a new folder; return a sentence for each loss."""
    refuse_existing(path)
    entry = entry_of(recording.name)
    number = f"{entry.number:02d}" if entry else _digits(recording.name)
    folder = path / f"sequence{number}"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = _choose(recording)
    losses: list[str] = []
    for side in (side for side in ("left", "right") if side in chosen):
        losses += _write_images(recording, chosen[side], side, folder / "zed")
    if "imu" in chosen:
        write_bytes(folder / "imu.log", _imu_text(chosen["imu"]))
    if "fix" in chosen or "velocity" in chosen:
        write_bytes(folder / "gps.log", log_text(chosen.get("fix"), chosen.get("velocity"), stamped=True))
    for key in ("wheels", "wheels_raw"):
        if key in chosen:
            name, text = _wheel_text(chosen[key])
            write_bytes(folder / name, text)
    if "truth" in chosen:
        truth = chosen["truth"]
        columns = [_stamps(truth), *(float_texts(column_or_nan(truth, axis)) for axis in "xyz")]
        write_bytes(path / f"sequence{number}_gt.txt", text_rows(columns))
    write_text(path / f"calibration{number}.yaml", _calibration_text(recording, chosen))
    return (*losses, *_list_losses(recording, chosen))


def _digits(name: str) -> str:
    """Return the two digits of a recording's name, 00 without any, if it is not one of the six."""
    match = re.fullmatch(r"sequence(\d\d)", name)
    return match[1] if match else "00"


def _choose(recording: Recording) -> dict[str, Stream]:
    """Return the streams that can be written, by part of the sequence."""
    chosen: dict[str, Stream] = {}
    for stream in recording:
        part = _part_of(stream)
        if part and stream.clock == "utc":
            chosen.setdefault(part, stream)
    fix, velocity = satellite_streams(recording)
    for part, stream in (("fix", fix), ("velocity", velocity)):
        if stream is not None and stream.clock == "utc":
            chosen[part] = stream
    return chosen


def _part_of(stream: Stream) -> str:
    if stream.role == "truth":
        return "truth" if stream.type is Pose else ""
    if stream.type is Image:
        return stream.tag if stream.tag in ("left", "right") else ""
    if stream.type is WheelState and "wheel_velocity" in stream.columns:
        pair = stream["wheel_velocity"].shape[1:] == (2,)
        return ("wheels_raw" if "telegram" in stream.columns else "wheels") if pair else ""
    return "imu" if stream.type is Imu else ""


def _list_losses(recording: Recording, chosen: dict[str, Stream]) -> Iterator[str]:
    written = {stream.name for stream in chosen.values()}
    for stream in recording:
        if stream.name not in written:
            yield f"{stream.name} ({stream.type.__name__}) cannot be written to a Rosario sequence"
    for part, stream in chosen.items():
        if part not in ("fix", "velocity") and (stream.t_ns % 1000).any():
            yield Note(f"{stream.name}: times are written to the microsecond")
        if stream.type is Image and (same := len(stream) - len(np.unique(stream.t_ns // 1000))):
            yield f"{stream.name}: {same} images have the time of another one, to the microsecond: lost"
    truth = chosen.get("truth")
    if truth is not None and truth.child not in ("", "gps"):
        yield Note(f"{truth.name} is of {truth.child}; a Rosario sequence has the track of the antenna")
    if truth is not None and "qw" in truth.columns:
        yield f"{truth.name}: the attitude cannot be written to a Rosario sequence"
    for side, camera in _cameras(recording, chosen).items():
        if np.any(camera.coefficients[4:]):
            yield f"the {side} camera has more than four distortion coefficients"


def _write_images(recording: Recording, stream: Stream, side: str, folder: Path) -> list[str]:
    stamps, losses = _stamps(stream), list[str]()
    for sample, data in good_payloads(stream, partial(payload_bytes, recording, suffix=".png"), losses):
        write_bytes(folder / f"{side}_{stamps[sample.index]}.png", data)
    return losses


def _imu_text(stream: Stream) -> bytes:
    """Return `imu.log`, with the offsets that the reader subtracted."""
    gyro_offset, acc_offset = (stream.meta.get(f"{name}_offset", (0.0, 0.0, 0.0)) for name in ("gyro", "acc"))
    columns = [
        *(
            _raw_texts(stream, f"gyro_{axis}", RAD_S_PER_DEG_S, offset)
            for axis, offset in zip("xyz", gyro_offset, strict=True)
        ),
        *(
            _raw_texts(stream, f"acc_{axis}", M_S2_PER_MILLI_G, offset)
            for axis, offset in zip("xyz", acc_offset, strict=True)
        ),
    ]
    others = [stream.column(name) for name in ("undocumented_1", "undocumented_2") if name in stream.columns]
    # Lines without the two tokens have them empty, and are written without them.
    return text_rows([_stamps(stream), *others, *columns]).replace(b"   ", b" ")


def _raw_texts(stream: Stream, name: str, unit: float, offset: float) -> list[str]:
    """Return a column in the log's unit: with twelve digits if they are exact, else with all."""
    values = column_or_nan(stream, name)
    with np.errstate(over="ignore"):
        guess = values / unit + offset
    raw = invert(lambda r: unit * (r - offset), values, guess)
    short = np.array([float(f"{value:.12g}") for value in raw.tolist()])
    return float_texts(np.where(unit * (short - offset) == values, short, raw))


def _wheel_text(stream: Stream) -> tuple[str, bytes]:
    """Return the name and the text of the motors' log: raw telegrams, or the cleaned form in RPM or m/s."""
    raw, unit = _raw_wheels(stream)
    stamps = _stamps(stream)
    if "telegram" in stream.columns:
        telegrams = [
            _patch(text, row) for text, row in zip(stream.column("telegram"), raw.tolist(), strict=True)
        ]
        return "odometry_raw.log", text_rows([stamps, telegrams])
    direction = [f"{value:.0f}" for value in raw[:, 3].tolist()]
    text = text_rows([stamps, *(float_texts(column) for column in raw[:, :3].T), direction])
    return "odometry.log", text.replace(b"\n", b"\r\n") if unit == "rpm" else text


def _raw_wheels(stream: Stream) -> tuple[Floats, str]:
    """Return left, right, steering, direction (n, 4) in log units; unchanged rows are raw values."""
    speeds, steering = np.asarray(stream["wheel_velocity"], np.float64), column_or_nan(stream, "steering")
    raw = np.column_stack([column_or_nan(stream, name) for name in RAW])
    coded = "telegram" in stream.columns or has_own_coding(raw[:, 3])
    unit = stream.units.get("left_raw") or ("rpm" if are_rpm(*count_fast(speeds)) else "m/s")
    forwards, backwards = (0.0, 1.0) if coded else (1.0, -1.0)
    # The reader stores the direction as the sign of the speeds, at rest as that of zero.
    direction = np.where(np.signbit(speeds).any(axis=1), backwards, forwards)
    rim_speed, steering_unit = weeder().rim_speed if unit == "rpm" else 1.0, weeder().steering_unit
    computed = np.column_stack([np.abs(speeds) / rim_speed, steering / steering_unit, direction])
    motion_of_raw = np.column_stack(wheel_motion(raw, unit == "rpm", coded))
    motion = np.column_stack([speeds, steering])
    unchanged = np.isclose(motion_of_raw, motion, rtol=1e-12, atol=0.0, equal_nan=True).all(axis=1)
    unchanged &= ~np.isnan(raw[:, 3])
    return np.where(unchanged[:, None], raw, computed), unit


def _patch(telegram: str, values: Sequence[float]) -> str:
    """Return a telegram with its changed values, of four, replaced."""
    token, fields = telegram.split()[0], telegram.split()[1].split(",")
    *indices, direction = telegram_fields(fields)
    for index, value in zip(indices, values[:3], strict=True):
        if float(fields[index]) != value:
            fields[index] = repr(value)
    fields[direction] = f"{values[3]:.0f}{fields[direction][1:]}"
    return f"{token} {','.join(fields)}"


def _cameras(recording: Recording, chosen: dict[str, Stream]) -> dict[str, CameraModel]:
    """Return the camera models of the pair: those of the image streams, else those named left and right."""
    names = {side: chosen[side].camera if side in chosen else side for side in CAMERAS.values()}
    return {side: recording.cameras[name] for side, name in names.items() if name in recording.cameras}


def _calibration_text(recording: Recording, chosen: dict[str, Stream]) -> str:
    edges = [("base_link", "imu"), ("base_link", "gps"), *(("imu", f"{s}_camera") for s in CAMERAS.values())]
    transforms: dict[tuple[str, str], Any] = {}
    for frame, child in edges:
        try:
            transforms[frame, child] = recording.frames.lookup(frame, child)
        except FrameError:
            continue
    offsets = chosen["imu"].meta if "imu" in chosen else {}
    cameras = _cameras(recording, chosen)
    return calibration_text(cameras, transforms, offsets.get("gyro_offset"), offsets.get("acc_offset"))


def _stamps(stream: Stream) -> list[str]:
    return [decimal_from_ns(t, 6) for t in stream.t_ns.tolist()]
