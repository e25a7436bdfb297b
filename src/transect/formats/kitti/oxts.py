"""KITTI's oxts packets: thirty numbers a file; into positions, inertial data and velocities, and back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS, Clock
from transect.base.units import DEGREES
from transect.recording import Parsed, Source, Stream, arrow
from transect.types import Imu, NavFix, Twist

from ..shared.rows import MAX_PACKET_BYTES, Packets, column_or_nan, from_si_exactly, invert, read_packets
from .calibration import IMU
from .poses import TimedFiles

OXTS = (
    *("lat", "lon", "alt", "roll", "pitch", "yaw", "vn", "ve", "vf", "vl", "vu", "ax", "ay", "az"),
    *("af", "al", "au", "wx", "wy", "wz", "wf", "wl", "wu", "pos_accuracy", "vel_accuracy"),
    *("navstat", "numsats", "posmode", "velmode", "orimode"),
)
"""The values of a packet in the order of KITTI's dataformat.txt."""
MEASURED = OXTS.index("pos_accuracy")
"""The measured values; accuracies and modes follow."""
MAX_STEP_CHANGE_RATIO = 1e-6
"""Relative difference of successive steps between packets on a straight line, due to rounding."""
_MODES = ("navstat", "posmode", "velmode", "orimode")
_LEVELLED = ("af", "al", "au", "wf", "wl", "wu")
_VELOCITY = {"vx": "vf", "vy": "vl", "vz": "vu", "vn": "vn", "ve": "ve", "std": "vel_accuracy"}
Part = Callable[[Mapping[str, Floats]], tuple[dict[str, Any], dict[str, str]]]


def oxts_streams(source: Source, files: Callable[[], TimedFiles], clock: Clock) -> list[Stream]:
    """Return the positions, inertial data and velocities of the unit; packets are read once."""

    @cache
    def packets() -> Packets:
        timed = files()
        found = read_packets(source, list(timed.t_ns), list(timed.t_ns.values()), len(OXTS))
        notes = (*timed.notes, *_describe_filled(found.t_ns, found.values))
        return replace(found, losses=(*timed.losses, *found.losses), notes=notes)

    return [
        Stream(name, kind, partial(_table, packets, part), clock=clock, frame=IMU)
        for name, kind, part, numbers in _PARTS
        if _is_given(source, numbers)
    ]


def _describe_filled(t_ns: Ints, values: Floats) -> Iterator[str]:
    """Yield what to say of packets that were interpolated over a hole, stamps included, as KITTI does.

    Such packets lie on straight lines between their neighbours in all that is measured. What a sensor says
    never does.
    """
    numbers = np.column_stack([(t_ns - t_ns[:1]) / NS, values[:, :MEASURED]])
    steps = np.diff(numbers, axis=0)
    straight = np.abs(np.diff(steps, axis=0)) <= MAX_STEP_CHANGE_RATIO * np.abs(steps[1:])
    filled = straight.all(axis=1) & ((steps[1:] != 0).sum(axis=1) >= MEASURED // 2)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], filled, [False]]).astype(np.int8)))
    for first, last in edges.reshape(-1, 2):
        seconds = (t_ns[last + 1] - t_ns[first]) / NS
        yield (
            f"oxts: {last - first} packets from number {first + 1} on lie on straight lines in all their "
            f"numbers: they were interpolated, and nothing was measured for {seconds:.2f} s"
        )


def _is_given(source: Source, numbers: Collection[str]) -> bool:
    """Return whether a unit measured some of these values, judged by its first and last packet.

    Who writes a drive without, say, positions, has NaN for them: one packet needs all thirty numbers.
    """
    packets = [name for name in source.under("oxts/data") if name.endswith(".txt")]
    for name in {*packets[:1], *packets[-1:]}:
        tokens = source.head(name, MAX_PACKET_BYTES).split()
        known = dict(zip(OXTS, tokens, strict=False))
        if len(tokens) != len(OXTS) or any(known[number].lower() != b"nan" for number in numbers):
            return True
    return not packets


def _table(packets: Callable[[], Packets], part: Part) -> Parsed:
    found = packets()
    columns, units = part(found.columns(OXTS))
    return Parsed(arrow.table(found.t_ns, columns, units=units), found.losses, found.notes)


def _yaw(yaw: Floats) -> Floats:
    """Turn KITTI's yaw (from east, counter-clockwise) into ours (from north, clockwise), and ours into it."""
    return np.pi / 2 - yaw


def _fix(p: Mapping[str, Floats]) -> tuple[dict[str, Any], dict[str, str]]:
    """KITTI's body is x forward, y left, z up in ENU; ours is NED, in which pitch turns the other way."""
    columns = {
        "lat": DEGREES.to_si(p["lat"]),
        "lon": DEGREES.to_si(p["lon"]),
        "alt": p["alt"],
        **dict.fromkeys(("std_north", "std_east", "std_down"), p["pos_accuracy"]),
        "roll": p["roll"],
        "pitch": -p["pitch"],
        "yaw": _yaw(p["yaw"]),
        "satellites": p["numsats"],
        **{name: p[name] for name in _MODES},
    }
    return columns, NavFix.units()


def _imu(p: Mapping[str, Floats]) -> tuple[dict[str, Any], dict[str, str]]:
    acc = {f"acc_{a}": p[f"a{a}"] for a in "xyz"}
    gyro = {f"gyro_{a}": p[f"w{a}"] for a in "xyz"}
    levelled = {f"levelled_{name}": p[name] for name in _LEVELLED}
    units = {f"levelled_{name}": "m/s2" if name[0] == "a" else "rad/s" for name in _LEVELLED}
    return {**acc, **gyro, **levelled}, {**Imu.units(), **units}


def _velocity(p: Mapping[str, Floats]) -> tuple[dict[str, Any], dict[str, str]]:
    columns = {ours: p[theirs] for ours, theirs in _VELOCITY.items()}
    return columns, {**Twist.units(), "vn": "m/s", "ve": "m/s", "std": "m/s"}


_PARTS: tuple[tuple[str, type, Part, tuple[str, ...]], ...] = (
    ("oxts/fix", NavFix, _fix, (*OXTS[:6], "pos_accuracy", "numsats", *_MODES)),
    ("oxts/imu", Imu, _imu, ("ax", "ay", "az", "wx", "wy", "wz", *_LEVELLED)),
    ("oxts/velocity", Twist, _velocity, tuple(_VELOCITY.values())),
)
"""Streams of a unit, and the values of a packet in each."""


_CARRIED: dict[type, tuple[str, ...]] = {
    NavFix: ("lat", "lon", "alt", "roll", "pitch", "yaw", "std_north", "satellites", *_MODES),
    Imu: tuple(f"{kind}_{axis}" for kind in ("acc", "gyro") for axis in "xyz"),
    Twist: tuple(_VELOCITY),
}
"""Columns that packets can represent."""


def list_left_out(stream: Stream) -> list[str]:
    """Return the columns of a stream that packets cannot represent: they have one accuracy for all axes."""

    def is_carried(name: str) -> bool:
        if name in ("std_east", "std_down") and "std_north" in stream.columns:
            return np.array_equal(stream[name], stream["std_north"], equal_nan=True)
        return name in _CARRIED[stream.type] or name.removeprefix("levelled_") in _LEVELLED

    return [name for name in stream.columns if not is_carried(name)]


def packets_of(fix: Stream | None, imu: Stream | None, velocity: Stream | None) -> Floats:
    """Return (n, 30) packets from streams of equal times, the inverse of `oxts_streams`; NaN if unknown."""
    known: dict[str, Floats] = {}
    if fix is not None:
        lat, lon, yaw = (column_or_nan(fix, name) for name in ("lat", "lon", "yaw"))
        known |= {"lat": from_si_exactly(lat, DEGREES)}
        known |= {"lon": from_si_exactly(lon, DEGREES)}
        known |= {"yaw": invert(_yaw, yaw, _yaw(yaw)), "pitch": -column_or_nan(fix, "pitch")}
        same = {"alt": "alt", "roll": "roll", "pos_accuracy": "std_north", "numsats": "satellites"}
        same |= {name: name for name in _MODES}
        known |= {theirs: column_or_nan(fix, ours) for theirs, ours in same.items()}
    if imu is not None:
        known |= {f"a{a}": column_or_nan(imu, f"acc_{a}") for a in "xyz"}
        known |= {f"w{a}": column_or_nan(imu, f"gyro_{a}") for a in "xyz"}
        known |= {name: column_or_nan(imu, f"levelled_{name}") for name in _LEVELLED}
    if velocity is not None:
        known |= {theirs: column_or_nan(velocity, ours) for ours, theirs in _VELOCITY.items()}
    count = len(next(iter(known.values())))
    return np.column_stack([known.get(name, np.full(count, np.nan)) for name in OXTS])
