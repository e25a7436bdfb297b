"""Noise of an inertial sensor, from the longest interval in which it was at rest.

Steady driving looks like a noisier sensor: a limit on the noise level cannot separate the two. Motion excites
several axes together, while the noise of each axis is independent. A second is at rest only if the axes of
one of the two sensors cannot be predicted from each other (squared multiple correlation, from 1 Hz up), and
if no other sensor measured motion.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.errors import GeometryError, StreamError
from transect.geometry import geodesy
from transect.recording import Recording, Stream
from transect.types import Imu, NavFix, Odometry, Pose, Twist, WheelState

from .noise import AllanDeviation, NoiseModel, allan_deviation, noise_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class MotionSettings:
    """When a stream of wheels, poses or fixes shows motion."""

    window_s: float = 2.0
    min_speed_mps: float = 0.02  # slower wheels stand still
    min_displacement_m: float = 0.3  # over `window_s`; fixes at rest drift less
    min_sigmas: float = 4.0  # significance of a change of the mean over half of `window_s`


MOTION = MotionSettings()


@dataclass(frozen=True, eq=False)
class MeasuredMotion:
    """When a stream measured motion."""

    stream: str
    windows: Ints  # (n, 2), start and end, ns


def find_motion(recording: Recording, clock: str) -> list[MeasuredMotion]:
    """Return when the robot moved according to each stream of a clock that measures motion."""
    found: list[MeasuredMotion] = []
    for stream in recording:
        if stream.clock != clock or stream.role in ("estimate", "derived") or len(stream) < 2:
            continue
        moved = _moving_windows(stream)
        if moved is not None:
            found.append(MeasuredMotion(stream.name, moved))
    return found


def overlaps(motion: MeasuredMotion, starts: Ints, ends: Ints) -> Mask:
    """Return which spans from `starts` (m,) to `ends` (m,), ns, overlap with motion."""
    if not len(motion.windows):
        return np.zeros(len(starts), np.bool_)
    first, last = motion.windows[np.argsort(motion.windows[:, 0], kind="stable")].T
    latest = np.maximum.accumulate(last)
    before = np.searchsorted(first, ends, side="right")
    return (before > 0) & (latest[np.maximum(before - 1, 0)] >= starts)


def _moving_windows(stream: Stream) -> Ints | None:
    """Return windows of motion (n, 2); None for a stream that measures no motion."""
    t_ns = stream.t_ns
    order = np.argsort(t_ns, kind="stable")
    if issubclass(stream.type, WheelState):
        if "wheel_velocity" not in stream.columns:
            return None
        speeds = np.asarray(stream["wheel_velocity"], np.float64).reshape(len(stream), -1)
        return _fast(t_ns[order], speeds[order])
    if issubclass(stream.type, Odometry | Twist) and "vx" in stream.columns:
        names = [each for each in ("vx", "vy") if each in stream.columns]
        return _fast(t_ns[order], stream.array(*names)[order])
    if issubclass(stream.type, NavFix):
        return _displaced(t_ns[order], _local(stream)[order])
    if issubclass(stream.type, Odometry | Pose) and {"x", "y"} <= {*stream.columns}:
        return _displaced(t_ns[order], stream.array("x", "y")[order])
    return None


def _local(stream: Stream) -> Floats:
    geodetic = np.column_stack([stream.array("lat", "lon"), np.zeros(len(stream))])
    known = np.flatnonzero(np.isfinite(geodetic).all(axis=1))
    if not len(known):
        return np.full((len(geodetic), 2), np.nan)
    return geodesy.local_from_geodetic(geodetic, geodetic[known[0]])[:, :2]


def _noise(values: Floats) -> float:
    """Return the standard deviation of white noise in values (n, k), from their second differences."""
    bent = np.diff(values[np.isfinite(values).all(axis=1)], n=2, axis=0)
    return float(np.median(np.abs(bent)) / 0.6745 / np.sqrt(6)) if len(bent) else 0.0


def _fast(t_ns: Ints, speeds: Floats) -> Ints:
    """Return windows around samples whose mean speed over a second is significant."""
    half = round(MOTION.window_s * NS / 4)
    first, last = np.searchsorted(t_ns, t_ns - half), np.searchsorted(t_ns, t_ns + half, side="right")
    known = np.isfinite(speeds)
    total = np.concatenate([np.zeros((1, speeds.shape[1])), np.cumsum(np.where(known, speeds, 0.0), axis=0)])
    count = np.concatenate([np.zeros((1, speeds.shape[1])), np.cumsum(known, axis=0)])
    numbers = np.maximum(count[last] - count[first], 1)
    mean = np.abs(total[last] - total[first]) / numbers
    limit = MOTION.min_speed_mps + MOTION.min_sigmas * _noise(speeds) / np.sqrt(numbers)
    moving = (mean > limit).any(axis=1)
    return np.column_stack([t_ns - half, t_ns + half])[moving]


def _displaced(t_ns: Ints, positions: Floats) -> Ints:
    """Return windows between whose ends positions (n, 2) change significantly."""
    span = round(MOTION.window_s * NS)
    later = np.searchsorted(t_ns, t_ns + span)
    pairs = np.flatnonzero(later < len(t_ns))
    later = later[pairs]
    moved = np.linalg.norm(positions[later] - positions[pairs], axis=1)
    # A displacement over a gap does not show when it happened.
    near = t_ns[later] - t_ns[pairs] < 2 * span
    limit = MOTION.min_displacement_m + MOTION.min_sigmas * np.sqrt(2) * _noise(positions)
    moving = near & (moved > limit)
    return np.column_stack([t_ns[pairs], t_ns[later]])[moving]


AXES = ("gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z")
UNITS = {"gyro": "rad/s", "acc": "m/s2"}


@dataclass(frozen=True)
class RestSettings:
    """When an inertial sensor is at rest."""

    window_s: float = 1.0  # over which noise is estimated
    max_noise_ratio: float = 2.0  # of the standard deviation of a window at rest to that of a quiet one
    quiet_percentile: float = 10  # of the windows' standard deviations, which is taken as noise
    min_rest_s: float = 5.0
    max_coherence: float = 0.1  # squared multiple correlation of one axis with the others at rest
    coherence_windows: int = 3  # over which that is averaged
    max_gap_steps: float = 5.0  # median sample steps without a sample within an interval


REST = RestSettings()


@dataclass(frozen=True)
class RestInterval:
    """Samples [first, last) of a stream, in which an IMU was at rest."""

    first: int
    last: int
    seconds: float
    noise: Floats  # (6,), standard deviation of gyroscope (rad/s) and accelerometer (m/s2) over a second


@dataclass(frozen=True)
class AxisNoise:
    """Allan deviation of one axis, and the model that was fitted to it."""

    allan: AllanDeviation
    model: NoiseModel

    @property
    def walk_limit(self) -> float:
        """Random walk K, or its upper limit if the record is too short to determine it."""
        if np.isfinite(self.model.walk):
            return self.model.walk
        return float(self.allan.deviation[-1] * np.sqrt(3 / self.allan.tau[-1]))


@dataclass(frozen=True)
class ImuNoiseReport:
    """The noise of an inertial stream; `rest` is its [first, last) samples."""

    stream: str
    rest: tuple[int, int]
    samples: int
    seconds: float
    rate: float
    axes: Mapping[str, AxisNoise]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, with the curves, by name."""
        axes = {
            name: {
                "unit": unit_of(name),
                "N": axis.model.white,
                "B": axis.model.instability,
                "K": axis.model.walk,
                "K_limit": axis.walk_limit,
                "minimum_tau_s": axis.model.tau,
                "deviation": axis.allan.deviation,
                "low": axis.allan.low,
                "high": axis.allan.high,
            }
            for name, axis in self.axes.items()
        }
        return {
            "stream": self.stream,
            "rest": {"first": self.rest[0], "last": self.rest[1], "seconds": self.seconds},
            "samples": self.samples,
            "rate_hz": self.rate,
            "tau_s": next(iter(self.axes.values())).allan.tau,
            "axes": axes,
            "notes": self.notes,
        }

    def kalibr(self) -> str:
        """Return an IMU file for Kalibr."""
        topic = self.stream if self.stream.startswith("/") else f"/{self.stream.lower()}"
        return kalibr_text(self.axes, self.rate, topic)

    def figure(self, name: str) -> Figure:
        """Return a figure of the Allan deviations of all axes with the fitted models.

        `name` is the recording's.
        """
        from transect.draw.evaluation import AllanCurve, allan_figure

        panels: dict[str, dict[str, AllanCurve]] = {"gyroscope [rad/s]": {}, "accelerometer [m/s$^2$]": {}}
        for axis_name, axis in self.axes.items():
            sensor, letter = axis_name.split("_")
            panel = next(label for label in panels if label.startswith(sensor))
            a, m = axis.allan, axis.model
            panels[panel][letter] = AllanCurve(
                a.tau, a.deviation, a.low, a.high, m.white, m.instability, m.walk
            )
        title = f"{name}: {self.stream}, {self.seconds:.0f} s at {self.rate:.4g} Hz"
        return allan_figure(panels, title=title)


def unit_of(axis: str) -> str:
    """Return the unit of an axis such as ``gyro_x``."""
    return UNITS[axis.partition("_")[0]]


def imu_of(recording: Recording, name: str | None = None) -> Stream:
    """Return the IMU of a recording: the one of that name, or the only one."""
    if name is not None:
        chosen = recording[name]
        if not issubclass(chosen.type, Imu):
            raise StreamError(f"{chosen.name} is not an IMU", why=f"its samples are {chosen.type.__name__}")
        return chosen
    found = [s for s in recording if issubclass(s.type, Imu) and len(s)]
    if len(found) != 1:
        what = "several IMUs" if found else "no IMU"
        names = ", ".join(s.name for s in found or recording)
        hint = " or ".join(f"--stream {shlex.quote(s.name)}" for s in found)
        raise StreamError(
            f"{recording.name} has {what}", why=names, hint=hint or "allan takes a stream of type Imu"
        )
    return found[0]


def analyse_imu(
    stream: Stream, *, whole: bool = False, motions: Sequence[MeasuredMotion] = ()
) -> ImuNoiseReport:
    """Return the noise of all axes of an IMU at rest.

    Samples with NaN are ignored.

    Parameters
    ----------
    whole : bool
        Use all samples, not only the longest rest.
    motions : sequence of MeasuredMotion
        Motion measured by other sensors, which excludes rest.
    """
    t_ns, values = stream.t_ns, stream.array(*AXES)
    order = np.argsort(t_ns, kind="stable")
    known = order[np.isfinite(values[order]).all(axis=1)]
    notes = [f"{len(t_ns) - len(known)} samples not measured: ignored"] if len(known) < len(t_ns) else []
    t_ns, values = t_ns[known], values[known]
    first, last = 0, len(t_ns)
    if not whole:
        rest = longest_rest(t_ns, values[:, :3], values[:, 3:], motions)
        first, last = rest.first, rest.last
    t_ns, values = t_ns[first:last], values[first:last]
    axes = imu_noise(t_ns, values[:, :3], values[:, 3:])
    rate = rate_of(t_ns)
    return ImuNoiseReport(stream.name, (first, last), len(known), len(t_ns) / rate, rate, axes, tuple(notes))


def longest_rest(
    t_ns: Ints, gyro: Floats, acc: Floats, motions: Sequence[MeasuredMotion] = ()
) -> RestInterval:
    """Return the longest interval in which gyroscope and accelerometer stay within their noise.

    Their axes are not coherent in it, and no other sensor measured motion.

    Parameters
    ----------
    t_ns : (n,)
        Sorted times.
    gyro, acc : (n, 3)
        rad/s and m/s2; NaN ends an interval.
    motions : sequence of MeasuredMotion
        Motion measured by other sensors.

    Notes
    -----
    A window of a second is quiet if the standard deviation of no axis exceeds twice its tenth percentile over
    all windows, and if no mean changes by more than that from one window to the next, or from the median rate
    of the gyroscope.

    Raises
    ------
    GeometryError
        If there are fewer than two seconds of samples, or no rest is as long as `RestSettings.min_rest_s`.
    """
    step = float(np.median(np.diff(t_ns))) if len(t_ns) > 1 else 0.0
    size = max(5, round(REST.window_s * NS / step)) if step > 0 else 0
    count = len(t_ns) // size if size else 0
    if count < 2:
        raise GeometryError("the samples are too few to find a rest", why=f"there are {len(t_ns)}")
    used = count * size
    windows = np.hstack([gyro, acc])[:used].reshape(count, size, len(AXES))
    spread, mean = windows.std(axis=1), windows.mean(axis=1)
    moved = _coherent(windows)
    starts, ends = t_ns[:used:size], t_ns[size - 1 : used : size]
    movers = {each.stream: overlaps(each, starts, ends) for each in motions}
    for mask in movers.values():
        moved |= mask
    noise = np.nanpercentile(spread[~moved] if not moved.all() else spread, REST.quiet_percentile, axis=0)
    quiet = (spread <= REST.max_noise_ratio * noise).all(axis=1) & ~_gaps(t_ns[:used], size, step)
    even = _steady(quiet, mean, noise) if quiet.any() else quiet
    runs = _runs(even & ~moved)
    first, last = runs[0] if runs else (0, 0)
    end = last * size
    if not runs or (t_ns[end - 1] - t_ns[first * size]) / NS < min(REST.min_rest_s, used * step / NS / 2):
        raise _never_at_rest(t_ns, size, runs, _runs(even), movers)
    return RestInterval(first * size, end, float(t_ns[end - 1] - t_ns[first * size]) / NS, noise)


def _gaps(t_ns: Ints, size: int, step: float) -> Mask:
    """Return for each window whether a gap is in it, or before it."""
    jump = np.diff(t_ns, prepend=t_ns[0]) > REST.max_gap_steps * step
    return np.asarray(jump.reshape(-1, size).any(axis=1))


def _steady(quiet: Mask, mean: Floats, noise: Floats) -> Mask:
    """Return the quiet windows whose mean equals that of the window before, and whose rates the median."""
    median_rate = np.median(mean[quiet, :3], axis=0)
    turning = (np.abs(mean[:, :3] - median_rate) > REST.max_noise_ratio * noise[:3]).any(axis=1)
    moved = (np.abs(np.diff(mean, axis=0, prepend=mean[:1])) > REST.max_noise_ratio * noise).any(axis=1)
    return quiet & ~turning & ~moved


def _runs(good: Mask) -> list[tuple[int, int]]:
    """Return [first, last) of all runs of True, the longest first."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]).astype(np.int8)))
    pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return sorted(pairs, key=lambda run: (run[0] - run[1], run[0]))


def _coherent(windows: Floats) -> Mask:
    """Return for each of n windows (n, m, 6) whether the axes of both sensors are coherent.

    One sensor alone may mix its axes: those of the ADIS16405's accelerometer at rest are correlated by 0.3.
    """
    values = windows - windows.mean(axis=1, keepdims=True)
    return np.minimum(_coherence(values[:, :, :3]), _coherence(values[:, :, 3:])) > REST.max_coherence


def _coherence(values: Floats) -> Floats:
    """Return the largest squared multiple correlation of one axis with the others, over several windows each.

    `values` (n, m, 3) have zero mean; the correlation is adjusted for the number of samples.
    """
    windows = REST.coherence_windows
    squares = np.pad(
        np.nan_to_num(np.einsum("nmi,nmj->nij", values, values)), ((windows // 2,) * 2, (0, 0), (0, 0))
    )
    total = np.sum([squares[i : i + len(values)] for i in range(windows)], axis=0)
    size = np.sqrt(np.einsum("nii->ni", total))
    size[size == 0] = 1.0
    inverse = np.linalg.pinv(total / (size[:, :, None] * size[:, None, :]), hermitian=True)
    squared = 1 - 1 / np.maximum(np.einsum("nii->ni", inverse), 1.0)
    count, k = windows * values.shape[1], values.shape[2]
    return np.max(1 - (1 - squared) * (count - 1) / (count - k), axis=1)


def _never_at_rest(
    t_ns: Ints,
    size: int,
    rests: Sequence[tuple[int, int]],
    even: Sequence[tuple[int, int]],
    movers: Mapping[str, Mask],
) -> GeometryError:
    """Return why there is no rest: the longest one, or what moved in the longest steady interval."""

    def describe(run: tuple[int, int]) -> str:
        seconds = (t_ns[run[1] * size - 1] - t_ns[run[0] * size]) / NS
        return f"{seconds:.1f} s, from {(t_ns[run[0] * size] - t_ns[0]) / NS:.1f} s after the first sample"

    reasons = [f"the longest rest is {describe(rests[0])}" if rests else "no second is at rest"]
    if even:
        moved = [name for name, mask in movers.items() if mask[slice(*even[0])].any()]
        who = (
            f"{' and '.join(moved)} moved"
            if moved
            else "its axes are coherent, as those of a moving body are"
        )
        reasons.append(f"in the longest steady interval ({describe(even[0])}) {who}")
    return GeometryError(
        f"the sensor was never at rest for {REST.min_rest_s:g} s",
        why="; ".join(reasons),
        hint="record a minute or more at rest; --whole uses all samples",
    )


def imu_noise(t_ns: Ints, gyro: Floats, acc: Floats) -> dict[str, AxisNoise]:
    """Return Allan deviation and noise model of all axes; the samples are taken as evenly spaced.

    Parameters
    ----------
    t_ns : (n,)
    gyro, acc : (n, 3)
        rad/s and m/s2, at rest.
    """
    rate = rate_of(t_ns)
    together = allan_deviation(np.hstack([gyro, acc]), rate)
    found: dict[str, AxisNoise] = {}
    for k, name in enumerate(AXES):
        one = AllanDeviation(together.tau, together.deviation[:, k], together.low[:, k], together.high[:, k])
        found[name] = AxisNoise(one, noise_model(one))
    return found


def rate_of(t_ns: Ints) -> float:
    """Return samples per second."""
    span = int(t_ns[-1]) - int(t_ns[0]) if len(t_ns) > 1 else 0
    if span <= 0:
        raise GeometryError("the samples have no duration", why=f"{len(t_ns)} samples in {span} ns")
    return (len(t_ns) - 1) * NS / span


def kalibr_text(axes: Mapping[str, AxisNoise], rate: float, topic: str) -> str:
    """Return a Kalibr-style IMU file: means over the axes.

    K is an upper limit if the record is too short to determine it.
    """
    lines: list[str] = []
    for called, sensor, unit in (("gyro", "gyroscope", "rad/s"), ("acc", "accelerometer", "m/s^2")):
        chosen = [axis for name, axis in axes.items() if name.startswith(called)]
        white = float(np.mean([axis.model.white for axis in chosen]))
        walk = float(np.mean([axis.walk_limit for axis in chosen]))
        seen = all(np.isfinite(axis.model.walk) for axis in chosen)
        if not np.isfinite(white):
            raise GeometryError(f"the {sensor} shows no white noise", hint="--figure shows the curve")
        note = "" if seen else "; upper limit, the record is too short for some axis to determine it"
        lines.append(f"{sensor}_noise_density: {white:.6e}  # {unit} / sqrt(Hz)")
        lines.append(f"{sensor}_random_walk: {walk:.6e}  # {unit} * sqrt(Hz){note}")
    return "\n".join([*lines, f"rostopic: {topic}", f"update_rate: {rate:.6g}  # Hz"]) + "\n"
