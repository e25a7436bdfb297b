"""`--offset STREAM=SECONDS|auto`: a stream's clock mapped to that of the others.

The offset is what is added to the stream's times, and to those of frames that move as it says. `auto`
estimates it from a common signal of two sensors: the rate of turn, else the speed.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS, decimal_from_ns, ns_from_decimal
from transect.errors import GeometryError, TimeError, UsageError, did_you_mean
from transect.recording import Parsed, Recording, Stream, arrow
from transect.recording.arrow import LOG_NS, T_NS
from transect.recording.stream import Row

AUTO = "auto"
Offset = int | Literal["auto"]
"""Nanoseconds to add to a stream's times, or `AUTO`."""
MIN_CORRELATION = 0.5
"""Minimum correlation of two signals that measure the same motion."""


class OffsetError(UsageError):
    """An offset that cannot be read, found or applied."""


@dataclass(frozen=True)
class ClockMapping:
    """The offset of a stream's clock, its target clock, and how it was determined."""

    stream: str
    # Clocks
    before: str
    after: str
    offset_ns: int  # added to its times
    # For `auto`: the stream that was correlated, and the signal; else ""
    reference: str = ""
    signal: str = ""
    # For `auto`: correlation at the offset, and height of that peak above the next one
    correlation: float | None = None
    confidence: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the mapping as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        sign = "" if self.offset_ns < 0 else "+"
        moved = f"{self.stream}: {sign}{decimal_from_ns(self.offset_ns)} s"
        moved += f", {self.before} -> {self.after}" if self.before != self.after else ""
        if not self.reference:
            return moved
        return (
            f"{moved}, by the {self.signal} of {self.reference} "
            f"(correlation {self.correlation:.3f}, confidence {self.confidence:.2f})"
        )


def offset_hint(streams: Mapping[str, Sequence[str]]) -> str:
    """Return the options that map the clock with the fewest streams to the others; streams by clock."""
    fewest = min(streams.values(), key=len)
    auto = " ".join(f"--offset {shlex.quote(f'{name}=auto')}" for name in fewest)
    return f"{auto}  finds it by the motion; a number in place of auto is in seconds"


def parse_offsets(texts: Iterable[str]) -> dict[str, Offset]:
    """Read `STREAM=SECONDS` and `STREAM=auto`; seconds become ns by decimal arithmetic."""
    offsets: dict[str, Offset] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.rpartition("="))
        if not (name and equals):
            raise OffsetError(
                f"--offset {text} is not STREAM=SECONDS", hint=_either(text.partition("=")[0].strip())
            )
        if name in offsets:
            raise OffsetError(f"--offset {name} is given twice")
        offsets[name] = AUTO if value.lower() == AUTO else _seconds(text, value)
    return offsets


def _seconds(text: str, value: str) -> int:
    try:
        return ns_from_decimal(value)
    except TimeError as error:
        name = text.rpartition("=")[0].strip()
        raise OffsetError(f"--offset {text} is neither seconds nor auto", hint=_either(name)) from error


def _either(name: str) -> str:
    if not name:
        return "the name of a stream comes first, as in --offset Imu=0.25"
    return f"--offset {shlex.quote(f'{name}=0.25')} or --offset {shlex.quote(f'{name}=auto')}"


def apply_offsets(
    recording: Recording, offsets: Mapping[str, Offset], reference: str | None = None
) -> tuple[Recording, dict[str, ClockMapping]]:
    """Move streams in time, onto the clock of the others, and with them the frames whose poses they give.

    Parameters
    ----------
    recording : Recording
    offsets : mapping of str to int or "auto"
        Stream name to nanoseconds.
    reference : str, optional
        The stream whose clock counts, and that `auto` is held against; by default the main clock of the
        streams that are not moved, and the measurement on it that shows the same motion best.

    Returns
    -------
    recording : Recording
        The mappings are in its `clock_offsets` and notes.
    mappings : dict of str to ClockMapping
        By stream name.
    """
    moved: dict[str, Offset] = {_stream(recording, name).name: offset for name, offset in offsets.items()}
    others = recording.replace(streams=tuple(s for s in recording if s.name not in moved))
    base = _stream(recording, reference) if reference else None
    clock = base.clock if base else others.clock if len(others) else recording.clock
    against = [base] if base else [s for s in others if s.clock == clock and s.role == "measurement"]
    mappings = {name: _mapping(recording[name], offset, clock, against) for name, offset in moved.items()}
    streams = tuple(_move(s, mappings[s.name]) if s.name in mappings else s for s in recording)
    known = {name: mapping.offset_ns for name, mapping in mappings.items()}
    frames = recording.frames
    for mapping in mappings.values():
        frames = frames.shift(mapping.stream, mapping.offset_ns, mapping.after)
    changed = recording.replace(
        streams=streams,
        frames=frames,
        notes=(*recording.notes, *map(str, mappings.values())),
        clock_offsets={**recording.clock_offsets, **known},
    )
    return changed, mappings


def _stream(recording: Recording, name: str) -> Stream:
    if name not in recording:
        known = [stream.name for stream in recording]
        raise OffsetError(
            f"--offset {name}: {recording.name} has no such stream", hint=did_you_mean(name, known)
        )
    return recording[name]


def _mapping(stream: Stream, offset: Offset, clock: str, against: list[Stream]) -> ClockMapping:
    if offset != AUTO:
        return ClockMapping(stream.name, stream.clock, clock, offset)
    return _estimate(stream, clock, [other for other in against if other.name != stream.name])


class MotionSignal(NamedTuple):
    """A signal of motion: its name, sorted times in ns, and values (rad/s or m/s)."""

    name: str
    t_ns: Ints
    values: Floats


def _estimate(stream: Stream, clock: str, against: list[Stream]) -> ClockMapping:
    """Correlate with the first signal in common; of the streams that have it, the one with most samples."""
    own = list(signals_of(stream))
    if not own:
        raise OffsetError(
            f"--offset {stream.name}=auto: it shows no motion",
            why=f"a {stream.type.__name__} with these columns has neither rate of turn nor speed",
            hint=f"--offset {stream.name}=SECONDS",
        )
    ordered = sorted(against, key=lambda other: (-len(other), other.name))
    for signal in own:
        for other in ordered:
            if known := next((s for s in signals_of(other) if s.name == signal.name), None):
                return _correlate(stream, clock, signal, other, known)
    raise OffsetError(
        f"--offset {stream.name}=auto: nothing to hold it against",
        why=f"no measurement on the {clock} clock shows its {' or '.join(signal.name for signal in own)}",
        hint=f"--offset {stream.name}=SECONDS",
    )


def _correlate(
    stream: Stream, clock: str, own: MotionSignal, other: Stream, known: MotionSignal
) -> ClockMapping:
    option = f"--offset {stream.name}=auto, by the {own.name} of {other.name}"
    hint = f"--offset {stream.name}=SECONDS"
    try:
        from transect.geometry.correlation import time_offset

        found = time_offset(known.t_ns, known.values, own.t_ns, own.values)
    except GeometryError as error:
        raise OffsetError(f"{option}: {error.what}", why=error.why, hint=error.hint or hint) from error
    if found.correlation < MIN_CORRELATION or found.confidence <= 0:
        raise OffsetError(
            f"{option}: no offset can be told",
            why=f"the best correlation is {found.correlation:.2f}, its confidence {found.confidence:.2f}",
            hint=hint,
        )
    return ClockMapping(
        stream.name,
        stream.clock,
        clock,
        found.offset_ns,
        other.name,
        own.name,
        found.correlation,
        found.confidence,
    )


def signals_of(stream: Stream) -> Iterator[MotionSignal]:
    """Yield the motion signals of a stream, the best first: `rate of turn` (rad/s), `speed` (m/s).

    Measured signals come before differences of poses.
    """
    _, order = np.unique(stream.t_ns, return_index=True)
    if len(order) < 2:
        return
    for name, columns, size in _SIGNALS:
        if set(columns) <= set(stream.columns):
            values = stream.array(*columns)[order]
            if size is _wheels or values.shape[1] == len(columns):  # others have a list for each wheel
                yield MotionSignal(name, *size(stream.t_ns[order], values))


def _norm(t_ns: Ints, vectors: Floats) -> tuple[Ints, Floats]:
    return t_ns, np.linalg.norm(vectors, axis=1)


def _turning(t_ns: Ints, quaternions: Floats) -> tuple[Ints, Floats]:
    from transect.geometry import rotations

    return _per_second(t_ns, rotations.angle_between(quaternions[1:], quaternions[:-1]))


def _attitude_turning(t_ns: Ints, angles: Floats) -> tuple[Ints, Floats]:
    from transect.geometry import rotations

    return _turning(t_ns, rotations.quaternion_from_euler("rpy", angles))


def _moving(t_ns: Ints, positions: Floats) -> tuple[Ints, Floats]:
    return _per_second(t_ns, np.linalg.norm(np.diff(positions, axis=0), axis=1))


def _geodetic_moving(t_ns: Ints, points: Floats) -> tuple[Ints, Floats]:
    from transect.geometry import geodesy

    return _moving(t_ns, geodesy.ecef_from_geodetic(points))


def _wheels(t_ns: Ints, speeds: Floats) -> tuple[Ints, Floats]:
    return t_ns, np.abs(speeds.reshape(len(t_ns), -1).mean(axis=1))


def _per_second(t_ns: Ints, steps: Floats) -> tuple[Ints, Floats]:
    """Rates half-way between samples."""
    dt = np.diff(t_ns)
    return t_ns[:-1] + dt // 2, steps * NS / dt


_SIGNALS: tuple[tuple[str, tuple[str, ...], Callable[[Ints, Floats], tuple[Ints, Floats]]], ...] = (
    ("rate of turn", ("gyro_x", "gyro_y", "gyro_z"), _norm),
    ("rate of turn", ("wx", "wy", "wz"), _norm),
    ("speed", ("vx", "vy", "vz"), _norm),
    ("speed", ("wheel_velocity",), _wheels),
    ("rate of turn", ("qx", "qy", "qz", "qw"), _turning),
    ("rate of turn", ("roll", "pitch", "yaw"), _attitude_turning),
    ("speed", ("x", "y", "z"), _moving),
    ("speed", ("lat", "lon", "alt"), _geodetic_moving),
)


def _move(stream: Stream, mapping: ClockMapping) -> Stream:
    """Return a stream with its times moved; columns and payloads are still loaded when asked for."""
    return stream.replace(
        source=lambda: _move_table(stream, mapping),
        clock=mapping.after,
        loader=_move_loader(stream.loader, mapping.offset_ns) if stream.loader else None,
    )


def _move_table(stream: Stream, mapping: ClockMapping) -> Parsed:
    parsed, table = stream.parsed, stream.table
    table = _with_times(table, T_NS, stream.t_ns + mapping.offset_ns)
    if stream.log_ns is not None and _is_logged_on(stream, mapping):
        table = _with_times(table, LOG_NS, stream.log_ns + mapping.offset_ns)
    return dataclasses.replace(parsed, table=table)


def _with_times(table: Any, name: str, times: Ints) -> Any:
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), arrow.from_numpy(times))


def _is_logged_on(stream: Stream, mapping: ClockMapping) -> bool:
    """Return whether log times were on a stream's old clock, and change with it.

    On the same clock they stay: when a sample arrived does not depend on how late its stamp was.
    """
    if stream.log_ns is None or mapping.before == mapping.after or not len(stream):
        return False
    delay = float(np.median(stream.log_ns - stream.t_ns))
    return abs(delay) < abs(delay - mapping.offset_ns)


def _move_loader(load: Callable[[Row], Any], offset_ns: int) -> Callable[[Row], Any]:
    """Return a loader that finds the payload by its old time and stamps it with the new one."""

    def loaded(row: Row) -> Any:
        value = load({**row, T_NS: row[T_NS] - offset_ns})
        stamped = dataclasses.is_dataclass(value) and hasattr(value, "t_ns")
        return dataclasses.replace(value, t_ns=row[T_NS]) if stamped else value  # pyright: ignore[reportArgumentType]

    return loaded
