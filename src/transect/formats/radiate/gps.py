"""RADIATE's GPS_IMU_Twist files: 55 numbers in 18 lines, one file per sample.

=====  ====================================================================================================
lines
=====  ====================================================================================================
1      latitude, longitude (degrees), altitude (m)
2-4    covariance of the position, m2: east, north, up, as ROS has it
5      attitude x, y, z, w; its reference is not documented, and it is not the course: kept as it stands
6      angular velocity, rad/s, x forward, y right, z down
7      acceleration without gravity, m/s2, same axes
8-16   covariances of attitude, angular velocity and acceleration
17     velocity north, east, down, m/s
18     angular velocity again
=====  ====================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS, Clock
from transect.base.units import DEGREES
from transect.recording import Parsed, Source, Stream, arrow
from transect.types import Imu, NavFix, Twist

from ..shared.rows import Packets, column_or_nan, from_si_exactly, read_packets

if TYPE_CHECKING:
    from .folders import FrameTimes

    Frames = Callable[[], FrameTimes]

Part = Callable[[Floats], tuple[dict[str, Any], dict[str, str], tuple[str, ...]]]
PACKET_FIELDS = 55
LINES = (3, 3, 3, 3, 4, *(3 for _ in range(13)))
"""Numbers per line."""
_FIX, _COVARIANCE = slice(0, 3), slice(3, 12)
_ATTITUDE, _GYRO, _ACC = slice(12, 16), slice(16, 19), slice(19, 22)
_IMU_COVARIANCES = {
    "orientation_covariance": slice(22, 31),
    "gyro_covariance": slice(31, 40),
    "acc_covariance": slice(40, 49),
}
_VELOCITY, _TURN = slice(49, 52), slice(52, 55)
_NO_GRAVITY = "the accelerations of RADIATE's inertial unit are without gravity"


def gps_streams(
    source: Source, name: str, index: Frames, others: Sequence[Frames], clock: Clock
) -> list[Stream]:
    """Return positions, inertial data and velocities; the files are read once, when first asked for.

    Parameters
    ----------
    name : str
        Name of the folder.
    index : callable
        Gives its frames.
    others : sequence of callable
        Give the frames of the other sensors on that clock, to compare times with.
    """

    @cache
    def packets() -> Packets:
        frames = index()
        found = read_packets(source, frames.files, frames.t_ns.tolist(), PACKET_FIELDS)
        notes = (*frames.notes, *_apart(name, frames, [other() for other in others]))
        return replace(found, losses=(*frames.losses, *found.losses), notes=notes)

    parts: tuple[tuple[str, type, str, Part], ...] = (
        ("fix", NavFix, "gps", _fix),
        ("imu", Imu, "imu", _imu),
        ("velocity", Twist, "NED", _velocity),
    )
    return [
        Stream(f"{name}/{part}", kind, partial(_table, packets, columns), clock=clock, frame=frame)
        for part, kind, frame, columns in parts
    ]


def _apart(name: str, index: FrameTimes, others: list[FrameTimes]) -> list[str]:
    """Return a note if the times of a sensor do not overlap those of any other."""
    rest = np.concatenate([other.t_ns for other in others] or [np.zeros(0, np.int64)])
    if not len(index.t_ns) or not len(rest):
        return []
    late, early = int(index.t_ns.min() - rest.max()), int(rest.min() - index.t_ns.max())
    if max(late, early) <= 0:
        return []
    return [f"{name} does not overlap the other sensors: {max(late, early) / NS:.3f} s lie between them"]


def _table(packets: Callable[[], Packets], part: Part) -> Parsed:
    found = packets()
    columns, units, more = part(found.values)
    return Parsed(arrow.table(found.t_ns, columns, units=units), found.losses, (*found.notes, *more))


def _fix(values: Floats) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    latitude, longitude, altitude = values[:, _FIX].T
    east, north, up = np.sqrt(np.where(values[:, 3:12:4] >= 0, values[:, 3:12:4], np.nan)).T
    columns = {"lat": DEGREES.to_si(latitude), "lon": DEGREES.to_si(longitude), "alt": altitude}
    columns |= {"std_north": north, "std_east": east, "std_down": up}
    columns |= {"position_covariance": values[:, _COVARIANCE]}
    return columns, {**NavFix.units(), "position_covariance": "m2"}, ()


def _imu(values: Floats) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    columns: dict[str, Any] = {f"acc_{a}": v for a, v in zip("xyz", values[:, _ACC].T, strict=True)}
    columns |= {f"gyro_{a}": v for a, v in zip("xyz", values[:, _GYRO].T, strict=True)}
    columns |= {f"q{a}": v for a, v in zip("xyzw", values[:, _ATTITUDE].T, strict=True)}
    columns |= {name: values[:, where] for name, where in _IMU_COVARIANCES.items()}
    return columns, Imu.units(), (_NO_GRAVITY,)


def _velocity(values: Floats) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """The velocity is in NED, the angular velocity in the body frame, and therefore has another name."""
    columns = {f"v{a}": v for a, v in zip("xyz", values[:, _VELOCITY].T, strict=True)}
    turns = {f"body_w{a}": v for a, v in zip("xyz", values[:, _TURN].T, strict=True)}
    return {**columns, **turns}, {**Twist.units(), **dict.fromkeys(turns, "rad/s")}, ()


def packets_of(fix: Stream | None, imu: Stream | None, velocity: Stream | None) -> Floats:
    """Return (n, 55) packets from streams of equal times, the inverse of `gps_streams`; NaN if unknown."""
    first = next(stream for stream in (fix, imu, velocity) if stream is not None)
    rows = np.full((len(first), PACKET_FIELDS), np.nan)
    if fix is not None:
        lat, lon = column_or_nan(fix, "lat"), column_or_nan(fix, "lon")
        angles = [from_si_exactly(angle, DEGREES) for angle in (lat, lon)]
        rows[:, _FIX] = np.column_stack([*angles, column_or_nan(fix, "alt")])
        rows[:, _COVARIANCE] = _covariance(fix)
    if imu is not None:
        rows[:, _ACC], rows[:, _GYRO] = _vector(imu, "acc_{}"), _vector(imu, "gyro_{}")
        rows[:, _ATTITUDE] = _vector(imu, "q{}", "xyzw")
        for name, where in _IMU_COVARIANCES.items():
            rows[:, where] = imu.column(name) if name in imu.columns else 0.0
    if velocity is not None:
        rows[:, _VELOCITY], rows[:, _TURN] = _vector(velocity, "v{}"), _vector(velocity, "body_w{}")
    return rows


def _vector(stream: Stream, pattern: str, axes: str = "xyz") -> Floats:
    return np.column_stack([column_or_nan(stream, pattern.format(axis)) for axis in axes])


def _covariance(fix: Stream) -> Floats:
    if "position_covariance" in fix.columns:
        return fix.column("position_covariance")
    rows = np.zeros((len(fix), 9))
    rows[:, ::4] = np.column_stack([column_or_nan(fix, f"std_{a}") for a in ("east", "north", "down")]) ** 2
    return rows
