"""Units that cannot be what was declared: accelerations in g, rates in deg/s, stamps in ms or us.

Each check takes a stream and returns a finding, or None: where the samples cannot tell, nothing is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS

from . import arrow
from .arrow import T_NS, Rows
from .stream import Stream

if TYPE_CHECKING:
    from .recording import Recording

ACCELERATION, RATE = ("acc_x", "acc_y", "acc_z"), ("gyro_x", "gyro_y", "gyro_z")
LEAST_IN_WINDOW, MOST_IN_WINDOW = 5, 1 << 18
"""Samples; where there are more, stamps are wrong: no IMU is that fast."""


@dataclass(frozen=True)
class Finding:
    """Something in a stream that cannot be as declared."""

    stream: str  # Its name
    check: str  # What was looked at: `acceleration unit`, `rate unit` or `stamp unit`
    start_ns: int  # The samples that show it, on the stream's clock
    end_ns: int
    value: float  # What was measured
    unit: str  # Of the value, as declared
    reason: str  # Why it cannot be, in words
    hint: str  # What it probably is

    def __str__(self) -> str:
        return f"{self.stream}: {self.reason}; {self.hint}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return asdict(self)


def find_implausible(recording: Recording) -> Iterator[Finding]:
    """Yield what the checks find in the measurements of a recording."""
    for stream in recording.streams:
        if stream.role == "measurement" and stream.clock != "index":
            for check in CHECKS:
                if found := check(stream):
                    yield found


# Accelerometers

STANDARD_GRAVITY = 9.80665
WINDOW_S = 1.0
"""Seconds over which accelerations are averaged: motion and vibration cancel, gravity stays."""
LEAST_SAMPLES = 10
"""In all windows together."""
NEAR, STEADY = 0.1, 0.1
"""Relative: how near a mean acceleration must be to a gravity in another unit, and how much it may vary."""
OTHER_UNITS = {
    1.0: "g",
    990.0: "milli-g or cm/s2",
    STANDARD_GRAVITY**2: "m/s2 that was converted from g twice",
}
"""Numbers that gravity has on Earth where m/s2 was declared. On the Moon it is 1.62, on Titan 1.35 m/s2, on
Ceres 0.28: none of these is among them."""


def check_acceleration_unit(stream: Stream) -> Finding | None:
    """Find accelerations that are not in m/s2: their mean is gravity on Earth in another unit.

    An IMU in m/s2 whose gravity was taken off has a mean near 0, and nothing is found; nor where the mean
    varies by more than a tenth, as in a fall.
    """
    if not _has(stream, ACCELERATION):
        return None
    windows = _Windows.of(stream, WINDOW_S, WINDOW_S, MOST_WINDOWS)
    _, mean = windows.means(ACCELERATION)
    if not len(mean):
        return None
    sizes = np.linalg.norm(mean, axis=1)
    usual = float(np.median(sizes))
    low, high = np.percentile(sizes, [10, 90])
    unit = next((name for number, name in OTHER_UNITS.items() if abs(usual / number - 1) <= NEAR), None)
    if unit is None or high - low > STEADY * usual or _scatter(windows) > usual:
        return None
    reason = f"its mean acceleration is {usual:.2f}, and m/s2 was declared: on Earth it is 9.8, on Mars 3.7"
    return Finding(
        stream.name, "acceleration unit", *_span(stream), usual, "m/s2", reason, f"it is probably in {unit}"
    )


def _scatter(windows: _Windows) -> float:
    """Return how much accelerations vary from one sample to the next, root mean square."""
    parts = (windows.values(ACCELERATION, bounds) for bounds in windows.bounds)
    squares = [np.sum(np.diff(part[:MOST_STEPS], axis=0) ** 2, axis=1) for part in parts]
    return float(np.sqrt(np.nanmedian(np.concatenate(squares)) / 2))


# Gyroscopes

TILT_S = 2.0
"""Seconds over which rates are summed up and compared with how gravity moves in the sensor."""
MEASURED_S = 0.2
"""Seconds of accelerations that tell gravity at both ends."""
LEAST_TILTS, MOST_TILTS = 3, 100
"""Comparisons that a finding needs, and that are made."""
TILT_STEPS = 100
"""Rotations into which one of them is split."""
CALM = 0.2
"""Part of gravity by which an acceleration may differ in size, if gravity is what is felt."""
MISSED = 0.3
"""rad by which gravity must contradict the rates: a bias of 0.12 rad/s is less, and no gyroscope has more."""
BETTER = 0.2
"""Part of that contradiction which may remain if the rates are in deg/s."""
FASTEST = 2 * np.pi
"""rad/s, sustained for a second; at a turn per second accelerations leave those of a body at rest."""


def check_rate_unit(stream: Stream) -> Finding | None:
    """Find angular velocities that are in deg/s where rad/s was declared.

    Gravity, as accelerometers feel it, turns in the sensor as the gyroscopes say: not at all if it only turns
    about the vertical, which therefore shows nothing unless it is faster than a turn per second.
    """
    if not _has(stream, (*ACCELERATION, *RATE)):
        return None
    windows = _Windows.of(stream, WINDOW_S, WINDOW_S, MOST_WINDOWS)
    times, mean = windows.means((*ACCELERATION, *RATE))
    if not len(mean):
        return None
    forces, rates = mean[:, :3], np.linalg.norm(mean[:, 3:], axis=1)
    fast = rates > FASTEST
    if np.count_nonzero(fast) >= LEAST_TILTS and _are_calm(forces[fast], forces):
        value, at = float(rates.max()), times[fast]
        reason = f"it turns by {value:.3g} rad/s on average over a second, and no acceleration shows it"
        return Finding(stream.name, "rate unit", int(at[0]), int(at[-1]), value, "rad/s", reason, _IN_DEGREES)
    return _check_tilts(stream, float(np.median(np.linalg.norm(forces, axis=1))))


_IN_DEGREES = "it is probably in deg/s"


def _are_calm(forces: Floats, among: Floats) -> bool:
    """Tell whether accelerations (n, 3) have the usual size: a lever of 5 cm would add 2 m/s2, or a fifth."""
    usual = float(np.median(np.linalg.norm(among, axis=1)))
    return bool((np.abs(np.linalg.norm(forces, axis=1) / max(usual, 1e-9) - 1) < CALM).all())


def _check_tilts(stream: Stream, usual: float) -> Finding | None:
    """Compare how gravity, of a `usual` size, moved in the sensor with what the rates say in either unit."""
    windows = _Windows.of(stream, TILT_S + MEASURED_S, TILT_S, MOST_TILTS)
    ends = _bounds(stream, windows.starts + TILT_S)
    heads = _bounds(stream, windows.starts + MEASURED_S)
    missed: list[tuple[float, float, float]] = []
    for start, (a, b), head, end in zip(windows.starts, windows.bounds, heads, ends, strict=True):
        if min(head - a, b - end) < LEAST_TILTS:
            continue
        forces = (windows.values(ACCELERATION, each) for each in ((a, head), (end, b)))
        before, after = (np.mean(each, axis=0) for each in forces)
        rates = windows.values(RATE, (a, end))
        sizes = np.linalg.norm([before, after], axis=1)
        # Only where gravity is what is felt, and all is measured.
        if not (np.abs(sizes / usual - 1) < CALM).all() or not np.isfinite(rates).all():
            continue
        by = [_turn(before, rates * scale) for scale in (1.0, np.pi / 180)]
        missed.append((float(start), _angle(by[0], after), _angle(by[1], after)))
    if len(missed) < LEAST_TILTS:
        return None
    as_declared, in_degrees = (float(np.median([each[i] for each in missed])) for i in (1, 2))
    if as_declared < MISSED or in_degrees > BETTER * as_declared:
        return None
    reason = (
        f"its rates turn it by {as_declared:.2g} rad in {TILT_S:g} s against what gravity shows, in deg/s "
        f"by {in_degrees:.2g} rad"
    )
    since, until = (int(stream.t_ns[0] + each[0] * NS) for each in (missed[0], missed[-1]))
    until += round(TILT_S * NS)
    return Finding(stream.name, "rate unit", since, until, as_declared, "rad", reason, _IN_DEGREES)


def _turn(direction: Floats, rates: Floats) -> Floats:
    """Return a direction (3,) that stays in space, in a body that turns by rates (n, 3) for `TILT_S`."""
    parts = np.array_split(rates, min(len(rates), TILT_STEPS))
    steps = np.array([np.mean(part, axis=0) * (TILT_S * len(part) / len(rates)) for part in parts])
    from transect.geometry import rotations

    for R in rotations.matrix_from_rotation_vector(-steps):
        direction = R @ direction
    return direction


def _angle(a: Floats, b: Floats) -> float:
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))


# Stamps

LEAST_STAMPS = 20
FASTEST_RATE = {
    "Imu": 5e4,
    "NavFix": 1e3,
    "Image": 1e5,
    "PointCloud": 1e3,
    "LaserScan": 1e4,
    "WheelState": 2e4,
}
"""Hz, by the name of the type; faster than any sensor of these types. Of others nothing is known."""
SUSPECT_RATE = 2e3
"""Hz that are too fast on a date of the 1970s, if a factor makes it one of our days."""
LEAST_RATE, SLOWEST_IMU = 0.5, 0.2
"""Hz that a sensor has in the right unit, and that are too slow for an IMU."""
YEARS = 1980, 2100
FACTORS = {10**3: ("us", "ms"), 10**6: ("ms", "us"), 10**9: ("s", "ns")}
"""By how much stamps can be wrong: the unit that was taken for ns, and the one that was taken for s."""


def check_stamp_unit(stream: Stream) -> Finding | None:
    """Find stamps in ms or us that were taken for ns or s: no sensor is that fast, or that slow.

    The date alone tells nothing, for a simulated day may begin in 1970.
    """
    timing = stream.timing
    if timing.count < LEAST_STAMPS or not np.isfinite(timing.rate):
        return None
    fastest = FASTEST_RATE.get(stream.type.__name__, np.inf)
    dated = stream.clock == "utc" and not _has_date(stream, 1) and any(_has_date(stream, f) for f in FACTORS)
    if timing.rate > (min(fastest, SUSPECT_RATE) if dated else fastest) and np.isfinite(fastest):
        fitting = [f for f in FACTORS if LEAST_RATE <= timing.rate / f <= fastest and _has_date(stream, f)]
        units = " or ".join(FACTORS[f][0] for f in fitting) or "another unit"
        reason = f"{timing.rate:.3g} samples in a second: no {stream.type.__name__} is that fast"
        hint = f"its stamps are probably in {units}, and were taken for ns"
    elif stream.type.__name__ == "Imu" and timing.rate < SLOWEST_IMU and _is_regular(stream):
        fitting = [f for f in FACTORS if SLOWEST_IMU <= timing.rate * f <= fastest]
        units = " or ".join(FACTORS[f][1] for f in fitting) or "another unit"
        reason = f"a sample every {1 / timing.rate:.3g} s: no Imu is that slow"
        hint = f"its stamps are probably in {units}, and were taken for s"
    else:
        return None
    return Finding(stream.name, "stamp unit", *_span(stream), timing.rate, "Hz", reason, hint)


def _has_date(stream: Stream, factor: int) -> bool:
    """Tell whether stamps that are a factor larger are of these years; on other clocks every time may be."""
    if stream.clock != "utc":
        return True
    year = int(stream.timing.start_ns or 0) * factor / NS / (365.25 * 86400) + 1970
    return YEARS[0] <= year <= YEARS[1]


def _is_regular(stream: Stream) -> bool:
    """Tell whether most steps between the first stamps are alike."""
    steps = np.diff(Rows(stream.table, T_NS)[: arrow.BLOCK])
    return bool(np.percentile(np.abs(steps / np.median(steps) - 1), 75) < 0.5)


CHECKS: tuple[Callable[[Stream], Finding | None], ...] = (
    check_stamp_unit,
    check_acceleration_unit,
    check_rate_unit,
)


# Windows

MOST_WINDOWS = 500
"""Windows that are looked at, spread over the recording."""
MOST_STEPS = 1000
"""In a window, from one sample to the next."""


def _has(stream: Stream, names: tuple[str, ...]) -> bool:
    """Tell whether a stream is an IMU with these columns, and long enough in samples that come in order."""
    if stream.type.__name__ != "Imu" or not set(names) <= set(stream.columns) or len(stream) < LEAST_SAMPLES:
        return False
    t_ns, start_ns, end_ns = Rows(stream.table, T_NS), *_span(stream)
    ordered = all((np.diff(t_ns[a:b]) >= 0).all() for a, b in arrow.block_ranges(0, len(t_ns)))
    return ordered and end_ns > start_ns


@dataclass(frozen=True)
class _Windows:
    """Windows of equal length, spread over a stream whose samples come in order."""

    stream: Stream
    starts: Floats  # (n,), seconds since the first sample
    bounds: Ints  # (n, 2), the first sample of each, and the first behind it

    @staticmethod
    def of(stream: Stream, seconds: float, step: float, most: int) -> _Windows:
        """Return windows of a length, one every `step` seconds, or fewer, if these are more than `most`."""
        start_ns, end_ns = _span(stream)
        count = max(0, math.ceil(((end_ns - start_ns) / NS - 0.99 * seconds) / step))
        stride = max(1, -(-count // most))
        starts = step * np.arange(0, count, stride, dtype=np.float64)
        bounds = _bounds(stream, np.concatenate([starts, starts + seconds])).reshape(2, -1).T
        usable = bounds[:, 1] - bounds[:, 0] <= MOST_IN_WINDOW
        return _Windows(stream, starts[usable], bounds[usable])

    def values(self, names: tuple[str, ...], bounds: tuple[int, int] | Ints) -> Floats:
        """Return (n, k) samples of k columns."""
        return Rows(self.stream.table, *names)[int(bounds[0]) : int(bounds[1])]

    def means(self, names: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return times (n,) in ns and means (n, k) of those windows in which all k columns are measured."""
        full = self.bounds[:, 1] - self.bounds[:, 0] >= LEAST_IN_WINDOW
        each = [np.mean(self.values(names, bounds), axis=0) for bounds in self.bounds[full]]
        mean = np.array(each).reshape(-1, len(names))
        measured = np.isfinite(mean).all(axis=1)
        return _span(self.stream)[0] + self.starts[full][measured] * NS, mean[measured]


def _bounds(stream: Stream, seconds: Floats) -> Ints:
    """Return the first sample at each of some times (n,), or behind it, counted from the first sample."""
    t_ns, start_ns = Rows(stream.table, T_NS), _span(stream)[0]
    found = np.zeros(len(seconds), np.int64)
    for a, b in arrow.block_ranges(0, len(t_ns), overlap=0):
        found += np.searchsorted((t_ns[a:b] - start_ns) / NS, seconds)
    return found


def _span(stream: Stream) -> tuple[int, int]:
    return int(stream.timing.start_ns or 0), int(stream.timing.end_ns or 0)
