"""The vehicle's own data, `Payload/PayloadData1.txt`: five types of line in one log (document 004, 3.2.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.units import to_si, unit_of
from transect.recording import arrow
from transect.recording.text import Tokens
from transect.types import Record, Twist

from .lines import Problems, sound_lines

SENSOR_WORD = b"SENSOR_DATA"


@dataclass(frozen=True)
class Line:
    """A type of line that is a stream of its own: its TEXT_TYPE, and the columns of its numbers."""

    stream: str
    word: bytes
    columns: tuple[str, ...]
    type: type = Record


@dataclass(frozen=True)
class Sensor:
    """One of the numbered sensors of SENSOR_DATA lines; `unit` is that of the log."""

    stream: str
    column: str
    unit: str
    type: type = Record


LINES = (
    Line("Payload/ServoSetpoint", b"SERVO_SETPOINT_DATA", ("choke_position", "throttle_position")),
    Line("Payload/VelocityTurnRate", b"VELOCITY_TURN_RATE_DATA", ("vx", "wz"), Twist),
    Line(
        "Payload/Brakes",
        b"BRAKE_DATA",
        ("left_position", "right_position", "left_pressure", "right_pressure"),
    ),
    Line(
        "Payload/ActuatorSetpoint",
        b"ACTUATOR_SETPOINT_DATA",
        ("choke", "throttle", "left_brake", "right_brake"),
    ),
)
SENSORS = (
    Sensor("Payload/Engine", "angular_velocity", "rpm"),
    Sensor("Payload/Gearbox", "angular_velocity", "rpm"),
    Sensor("Payload/Battery12V", "voltage", "V"),
    Sensor("Payload/Battery24V", "voltage", "V"),
    Sensor("Payload/WheelLeft", "angular_velocity", "rad/s"),
    Sensor("Payload/WheelRight", "angular_velocity", "rad/s"),
)
"""By their number in the line."""


def payload_block(tokens: Tokens, problems: Problems) -> Mapping[str, pa.Table]:
    """Read payload lines into one table per stream."""
    kinds = {line.word: tokens.equals(1, line.word) for line in LINES}
    is_sensor = tokens.equals(1, SENSOR_WORD)
    known = np.logical_or.reduce([*kinds.values(), is_sensor])
    problems.passed(tokens, np.arange(len(tokens.line)), known, "the type of the line is not known")
    tables = {line.stream: _table(tokens, np.flatnonzero(kinds[line.word]), line, problems) for line in LINES}
    return {**tables, **_sensor_tables(tokens, np.flatnonzero(is_sensor), problems)}


def _table(tokens: Tokens, lines: NDArray[np.int64], line: Line, problems: Problems) -> pa.Table:
    lines, t_ns = sound_lines(tokens, lines, problems, words=1, width=2 + len(line.columns))
    columns = {name: tokens.column(2 + i, lines) for i, name in enumerate(line.columns)}
    if line.type is Twist:
        unknown = np.full(len(lines), np.nan)
        columns = {name: columns.get(name, unknown) for name in ("vx", "vy", "vz", "wx", "wy", "wz")}
    return arrow.table(t_ns, columns, units=Twist.units() if line.type is Twist else None)


def _sensor_tables(tokens: Tokens, lines: NDArray[np.int64], problems: Problems) -> dict[str, pa.Table]:
    lines, t_ns = sound_lines(tokens, lines, problems, words=1, width=4)
    number, value = tokens.column(2, lines), tokens.column(3, lines)
    known = np.isin(number, range(len(SENSORS)))
    problems.passed(tokens, lines, known, f"the sensor's number is none of 0 to {len(SENSORS) - 1}")
    return {
        sensor.stream: arrow.table(
            t_ns[number == i],
            {sensor.column: to_si(value[number == i], sensor.unit)},
            units={sensor.column: unit_of(sensor.unit).si},
        )
        for i, sensor in enumerate(SENSORS)
    }
