"""Detection of wrong units: accelerations in g, angular rates in deg/s, stamps in ms or us.

Each check takes a stream and returns a finding, or None if the samples agree with the declared unit or do not
determine it.
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
from .arrow import T_NS, LazyColumns
from .stream import Stream

if TYPE_CHECKING:
    from .recording import Recording

STANDARD_GRAVITY = 9.80665  # m/s2
ACCELERATION, RATE = ("acc_x", "acc_y", "acc_z"), ("gyro_x", "gyro_y", "gyro_z")


@dataclass(frozen=True)
class UnitCheckSettings:
    """Settings of the checks of units, grouped by check."""

    # Windows of samples
    min_samples: int = 10  # Samples of a stream that is checked
    window_s: float = 1.0  # Averaging accelerations over a window cancels motion and vibration, not gravity
    min_window_samples: int = 5
    max_window_samples: int = 1 << 18  # With more, the stamps are wrong: no IMU is that fast
    max_windows: int = 500  # Windows per stream, spread over the recording

    # Accelerometers
    max_gravity_difference: float = 0.1  # Relative, of the mean acceleration from gravity in another unit
    max_mean_variation: float = 0.1  # Of the window means, 10th to 90th percentile relative to the median
    max_scatter_steps: int = 1000  # Steps between samples per window for the sample scatter

    # Gyroscopes
    tilt_s: float = 2.0  # Time over which rates are integrated and compared with the motion of gravity
    gravity_s: float = 0.2  # Time over which gravity is averaged at both ends of a tilt
    min_tilts: int = 3  # Comparisons required for a finding
    max_tilts: int = 100  # Comparisons per stream
    integration_steps: int = 100  # Rotations per tilt
    max_force_deviation: float = 0.2  # Relative, of an acceleration that is still considered gravity
    # Contradiction between rates and gravity; a bias of 0.12 rad/s, more than any gyroscope has, causes less
    min_contradiction_rad: float = 0.3
    max_remaining_ratio: float = 0.2  # Contradiction in deg/s, relative to the one in rad/s
    # Over one second; at one turn per second accelerations differ from those of a body at rest
    max_sustained_rate_rad_s: float = 2 * math.pi

    # Stamps
    min_stamps: int = 20
    suspect_rate_hz: float = 2e3  # Too fast for a date in the 1970s if another unit gives a plausible date
    min_rate_hz: float = 0.5  # Of a sensor in the corrected unit
    min_imu_rate_hz: float = 0.2
    first_year: int = 1980  # Plausible dates
    last_year: int = 2100


SETTINGS = UnitCheckSettings()


@dataclass(frozen=True)
class UnitFinding:
    """A declared unit that the samples contradict."""

    stream: str  # Name of the stream
    check: str  # `acceleration unit`, `rate unit` or `stamp unit`
    start_ns: int  # First and last sample that show it, on the stream's clock
    end_ns: int
    value: float  # Measured value
    unit: str  # Declared unit of the value
    reason: str  # Why the unit is impossible
    hint: str  # The probable unit

    def __str__(self) -> str:
        return f"{self.stream}: {self.reason}; {self.hint}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return asdict(self)


def find_implausible(recording: Recording) -> Iterator[UnitFinding]:
    """Yield the findings of all checks in the measurements of a recording."""
    for stream in recording.streams:
        if stream.role == "measurement" and stream.clock != "index":
            for check in CHECKS:
                if found := check(stream):
                    yield found


# Accelerometers

OTHER_UNITS = {
    1.0: "g",
    990.0: "milli-g or cm/s2",
    STANDARD_GRAVITY**2: "m/s2 that was converted from g twice",
}
"""Gravity on Earth in other units. Gravity of other bodies in m/s2 is not confused with them: 1.62 on the
Moon, 1.35 on Titan, 0.28 on Ceres."""


def check_acceleration_unit(stream: Stream) -> UnitFinding | None:
    """Find accelerations that are not in m/s2: their mean is gravity on Earth in another unit.

    Accelerations without gravity have a mean near 0 and are accepted, as are those whose mean varies by more
    than a tenth, for example in free fall.
    """
    if not _has(stream, ACCELERATION):
        return None
    windows = _Windows.of(stream, SETTINGS.window_s, SETTINGS.window_s, SETTINGS.max_windows)
    _, mean = windows.means(ACCELERATION)
    if not len(mean):
        return None
    norms = np.linalg.norm(mean, axis=1)
    median = float(np.median(norms))
    low, high = np.percentile(norms, [10, 90])
    near = SETTINGS.max_gravity_difference
    unit = next((name for gravity, name in OTHER_UNITS.items() if abs(median / gravity - 1) <= near), None)
    if unit is None or high - low > SETTINGS.max_mean_variation * median or _scatter(windows) > median:
        return None
    reason = f"its mean acceleration is {median:.2f}, and m/s2 was declared: on Earth it is 9.8, on Mars 3.7"
    return UnitFinding(
        stream.name, "acceleration unit", *_span(stream), median, "m/s2", reason, f"it is probably in {unit}"
    )


def _scatter(windows: _Windows) -> float:
    """Return the root mean square difference between successive accelerations, over sqrt(2)."""
    parts = (windows.values(ACCELERATION, bounds) for bounds in windows.bounds)
    squares = [np.sum(np.diff(part[: SETTINGS.max_scatter_steps], axis=0) ** 2, axis=1) for part in parts]
    return float(np.sqrt(np.nanmedian(np.concatenate(squares)) / 2))


# Gyroscopes


def check_rate_unit(stream: Stream) -> UnitFinding | None:
    """Find angular velocities that are in deg/s where rad/s was declared.

    The direction of gravity in the sensor frame must rotate as the gyroscopes measure. Rotation about the
    vertical does not change it, and is only detected if it is faster than one turn per second.
    """
    if not _has(stream, (*ACCELERATION, *RATE)):
        return None
    windows = _Windows.of(stream, SETTINGS.window_s, SETTINGS.window_s, SETTINGS.max_windows)
    times, mean = windows.means((*ACCELERATION, *RATE))
    if not len(mean):
        return None
    forces, rates = mean[:, :3], np.linalg.norm(mean[:, 3:], axis=1)
    fast = rates > SETTINGS.max_sustained_rate_rad_s
    if np.count_nonzero(fast) >= SETTINGS.min_tilts and _are_near_median(forces[fast], forces):
        value, at = float(rates.max()), times[fast]
        reason = f"it turns by {value:.3g} rad/s on average over a second, and no acceleration shows it"
        return UnitFinding(
            stream.name, "rate unit", int(at[0]), int(at[-1]), value, "rad/s", reason, _IN_DEGREES
        )
    return _check_tilts(stream, float(np.median(np.linalg.norm(forces, axis=1))))


_IN_DEGREES = "it is probably in deg/s"


def _are_near_median(forces: Floats, all_forces: Floats) -> bool:
    """Return whether accelerations (n, 3) have about the median norm; a lever of 5 cm would add 2 m/s2."""
    median = float(np.median(np.linalg.norm(all_forces, axis=1)))
    ratio = np.linalg.norm(forces, axis=1) / max(median, 1e-9)
    return bool((np.abs(ratio - 1) < SETTINGS.max_force_deviation).all())


def _check_tilts(stream: Stream, gravity: float) -> UnitFinding | None:
    """Compare the rotation of gravity in the sensor frame with the integrated rates in either unit."""
    tilt_s = SETTINGS.tilt_s
    windows = _Windows.of(stream, tilt_s + SETTINGS.gravity_s, tilt_s, SETTINGS.max_tilts)
    ends = _bounds(stream, windows.starts + tilt_s)
    heads = _bounds(stream, windows.starts + SETTINGS.gravity_s)
    errors: list[tuple[float, float, float]] = []  # start in s, error in rad/s and in deg/s
    for start, (a, b), head, end in zip(windows.starts, windows.bounds, heads, ends, strict=True):
        if min(head - a, b - end) < SETTINGS.min_tilts:
            continue
        forces = (windows.values(ACCELERATION, each) for each in ((a, head), (end, b)))
        before, after = (np.mean(each, axis=0) for each in forces)
        rates = windows.values(RATE, (a, end))
        norms = np.linalg.norm([before, after], axis=1)
        is_gravity = (np.abs(norms / gravity - 1) < SETTINGS.max_force_deviation).all()
        if not is_gravity or not np.isfinite(rates).all():
            continue
        predicted = [_rotate_back(before, rates * scale) for scale in (1.0, np.pi / 180)]
        errors.append((float(start), _angle(predicted[0], after), _angle(predicted[1], after)))
    if len(errors) < SETTINGS.min_tilts:
        return None
    as_declared, in_degrees = (float(np.median([each[i] for each in errors])) for i in (1, 2))
    if (
        as_declared < SETTINGS.min_contradiction_rad
        or in_degrees > SETTINGS.max_remaining_ratio * as_declared
    ):
        return None
    reason = (
        f"its rates turn it by {as_declared:.2g} rad in {tilt_s:g} s against what gravity shows, in deg/s "
        f"by {in_degrees:.2g} rad"
    )
    since, until = (int(stream.t_ns[0] + each[0] * NS) for each in (errors[0], errors[-1]))
    until += round(tilt_s * NS)
    return UnitFinding(stream.name, "rate unit", since, until, as_declared, "rad", reason, _IN_DEGREES)


def _rotate_back(direction: Floats, rates: Floats) -> Floats:
    """Return a direction (3,) fixed in space after the body rotated with rates (n, 3) for `tilt_s`."""
    from transect.geometry import rotations

    parts = np.array_split(rates, min(len(rates), SETTINGS.integration_steps))
    steps = np.array([np.mean(part, axis=0) * (SETTINGS.tilt_s * len(part) / len(rates)) for part in parts])
    for R in rotations.matrix_from_rotation_vector(-steps):
        direction = R @ direction
    return direction


def _angle(a: Floats, b: Floats) -> float:
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))


# Stamps

MAX_RATE_HZ = {
    "Imu": 5e4,
    "NavFix": 1e3,
    "Image": 1e5,
    "PointCloud": 1e3,
    "LaserScan": 1e4,
    "WheelState": 2e4,
}
"""Upper limits by the name of the type; other types have none."""
FACTORS = {10**3: ("us", "ms"), 10**6: ("ms", "us"), 10**9: ("s", "ns")}
"""Possible errors of stamps: the unit that was taken for ns, and the one that was taken for s."""


def check_stamp_unit(stream: Stream) -> UnitFinding | None:
    """Find stamps in ms or us that were taken for ns or s: no sensor has such a high or low rate.

    The date alone is not sufficient, because simulated recordings may start in 1970.
    """
    timing = stream.timing
    if timing.count < SETTINGS.min_stamps or not np.isfinite(timing.rate):
        return None
    fastest = MAX_RATE_HZ.get(stream.type.__name__, np.inf)
    is_misdated = stream.clock == "utc" and not _has_date(stream, 1)
    is_misdated = is_misdated and any(_has_date(stream, factor) for factor in FACTORS)
    limit = min(fastest, SETTINGS.suspect_rate_hz) if is_misdated else fastest
    slowest = SETTINGS.min_imu_rate_hz
    if timing.rate > limit and np.isfinite(fastest):
        fitting = [
            factor
            for factor in FACTORS
            if SETTINGS.min_rate_hz <= timing.rate / factor <= fastest and _has_date(stream, factor)
        ]
        units = " or ".join(FACTORS[f][0] for f in fitting) or "another unit"
        reason = f"{timing.rate:.3g} samples in a second: no {stream.type.__name__} is that fast"
        hint = f"its stamps are probably in {units}, and were taken for ns"
    elif stream.type.__name__ == "Imu" and timing.rate < slowest and _is_regular(stream):
        fitting = [f for f in FACTORS if slowest <= timing.rate * f <= fastest]
        units = " or ".join(FACTORS[f][1] for f in fitting) or "another unit"
        reason = f"a sample every {1 / timing.rate:.3g} s: no Imu is that slow"
        hint = f"its stamps are probably in {units}, and were taken for s"
    else:
        return None
    return UnitFinding(stream.name, "stamp unit", *_span(stream), timing.rate, "Hz", reason, hint)


def _has_date(stream: Stream, factor: int) -> bool:
    """Return whether stamps times a factor have a plausible date; always true on clocks without dates."""
    if stream.clock != "utc":
        return True
    year = int(stream.timing.start_ns or 0) * factor / NS / (365.25 * 86400) + 1970
    return SETTINGS.first_year <= year <= SETTINGS.last_year


def _is_regular(stream: Stream) -> bool:
    """Return whether most steps between the first stamps are equal within 50 %."""
    steps = np.diff(LazyColumns(stream.table, T_NS)[: arrow.BLOCK_ROWS])
    return bool(np.percentile(np.abs(steps / np.median(steps) - 1), 75) < 0.5)


CHECKS: tuple[Callable[[Stream], UnitFinding | None], ...] = (
    check_stamp_unit,
    check_acceleration_unit,
    check_rate_unit,
)


# Windows


def _has(stream: Stream, names: tuple[str, ...]) -> bool:
    """Return whether a stream is an IMU with these columns, enough samples and sorted times."""
    if stream.type.__name__ != "Imu" or not set(names) <= set(stream.columns):
        return False
    if len(stream) < SETTINGS.min_samples:
        return False
    t_ns, start_ns, end_ns = LazyColumns(stream.table, T_NS), *_span(stream)
    ordered = all((np.diff(t_ns[a:b]) >= 0).all() for a, b in arrow.block_ranges(0, len(t_ns)))
    return ordered and end_ns > start_ns


@dataclass(frozen=True)
class _Windows:
    """Windows of equal length, spread over a stream with sorted times."""

    stream: Stream
    starts: Floats  # (n,), seconds since the first sample
    bounds: Ints  # (n, 2), first sample of each window, and the first after it

    @staticmethod
    def of(stream: Stream, seconds: float, step: float, most: int) -> _Windows:
        """Return windows of a length every `step` seconds, evenly subsampled to at most `most`."""
        start_ns, end_ns = _span(stream)
        count = max(0, math.ceil(((end_ns - start_ns) / NS - 0.99 * seconds) / step))
        stride = max(1, -(-count // most))
        starts = step * np.arange(0, count, stride, dtype=np.float64)
        bounds = _bounds(stream, np.concatenate([starts, starts + seconds])).reshape(2, -1).T
        usable = bounds[:, 1] - bounds[:, 0] <= SETTINGS.max_window_samples
        return _Windows(stream, starts[usable], bounds[usable])

    def values(self, names: tuple[str, ...], bounds: tuple[int, int] | Ints) -> Floats:
        """Return (n, k) samples of k columns."""
        return LazyColumns(self.stream.table, *names)[int(bounds[0]) : int(bounds[1])]

    def means(self, names: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return times (n,) in ns and means (n, k) of the windows in which all k columns are finite."""
        full = self.bounds[:, 1] - self.bounds[:, 0] >= SETTINGS.min_window_samples
        each = [np.mean(self.values(names, bounds), axis=0) for bounds in self.bounds[full]]
        mean = np.array(each).reshape(-1, len(names))
        measured = np.isfinite(mean).all(axis=1)
        return _span(self.stream)[0] + self.starts[full][measured] * NS, mean[measured]


def _bounds(stream: Stream, seconds: Floats) -> Ints:
    """Return the index of the first sample at or after each time (n,), in seconds since the first sample."""
    t_ns, start_ns = LazyColumns(stream.table, T_NS), _span(stream)[0]
    found = np.zeros(len(seconds), np.int64)
    for a, b in arrow.block_ranges(0, len(t_ns), overlap=0):
        found += np.searchsorted((t_ns[a:b] - start_ns) / NS, seconds)
    return found


def _span(stream: Stream) -> tuple[int, int]:
    return int(stream.timing.start_ns or 0), int(stream.timing.end_ns or 0)
