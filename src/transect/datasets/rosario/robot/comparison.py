"""Wheel odometry compared with RTK: lengths, and residuals of the aligned tracks.

The published odometry has no times. As both were recorded simultaneously, its samples are spaced by 0.1 s
(4.4.1: 10 Hz), with the offset of the best correlation of its speed with that of RTK (`find_sample_times`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import GeometryError, StreamError
from transect.geometry import align, correlation, geodesy, robust, rotations
from transect.geometry.align import Alignment
from transect.geometry.correlation import TimeOffset
from transect.geometry.interpolation import Limits, interpolate_columns
from transect.recording import Parsed, Recording, Robot, Stream, arrow
from transect.robots.ackermann import BASE, Form, known_robot, wheel_odometry
from transect.types import NavFix, Odometry, Pose

from .geometry import MAX_SPEED_M_S, antenna_from_base, local_from_fixes, path_headings


@dataclass(frozen=True)
class ComparisonSettings:
    """Numbers of the comparison."""

    max_offset_ns: int = 10 * NS  # Offset of two logs that were started together.
    max_gap_ns: int = NS  # Interval of odometry samples that is interpolated.
    turn_ns: int = 30 * NS  # Duration of a 180 degree turn with its manoeuvres.
    min_turn_rad: float = np.pi / 2  # Heading change in this time that is a turn.


SETTINGS = ComparisonSettings()


@dataclass(frozen=True)
class PlanarTrack:
    """Positions over time, with planar headings."""

    t_ns: Ints  # (n,), sorted
    positions: Floats  # (n, 3), m
    headings: Floats | None = None  # (n,) or None, rad from x to y, unwrapped; of base_link

    def length(self, dimensions: int = 3) -> float:
        """Return the length of the path in 2 or 3 dimensions, m; gaps are bridged by straight lines."""
        known = self.positions[np.isfinite(self.positions).all(axis=1), :dimensions]
        return float(np.linalg.norm(np.diff(known, axis=0), axis=1).sum())

    def shift(self, lever: Floats) -> PlanarTrack:
        """Return the track of a point fixed at `lever` (3,) in base_link; headings must be known."""
        if self.headings is None:
            raise GeometryError("a track without headings cannot be shifted to another point")
        positions = antenna_from_base(self.positions, self.headings, lever)
        return PlanarTrack(self.t_ns, positions, self.headings)


@dataclass(frozen=True)
class AlignmentResidual:
    """Residual of an odometry aligned to RTK."""

    rmse: float  # root mean square distance of the pairs, m; NaN without any
    pairs: int
    pieces: int  # number of separately aligned pieces
    alignment: str  # description of the transform


def find_sample_times(
    truth: PlanarTrack, odometry: Floats, rate: float, max_offset_ns: int = SETTINGS.max_offset_ns
) -> tuple[Ints, TimeOffset]:
    """Estimate the times of the positions (m, 3) of an odometry with a known rate.

    Parameters
    ----------
    truth : PlanarTrack
        RTK, recorded at the same time.
    rate : float
        Rate of the odometry, Hz.

    Returns
    -------
    t_ns : (m,) int64 array
        Times on RTK's clock.
    found : TimeOffset
        Offset of the odometry's start after RTK's first fix, and the correlation of the speeds.
    """
    start = int(truth.t_ns[0])
    even = np.round(np.arange(len(odometry)) * (NS / rate)).astype(np.int64)
    fix_ns, fix_speed = _speeds(truth.t_ns - start, truth.positions)
    wheel_ns, wheel_speed = _speeds(even, odometry)
    found = correlation.time_offset(fix_ns, fix_speed, wheel_ns, wheel_speed, max_offset_ns=max_offset_ns)
    return start + even + found.offset_ns, found


def _speeds(t_ns: Ints, positions: Floats) -> tuple[Ints, Floats]:
    """Return horizontal speeds between samples, m/s, and their times; NaN where the position jumps."""
    step = np.linalg.norm(np.diff(positions[:, :2], axis=0), axis=1)
    dt = np.diff(t_ns)
    speed = np.divide(step * NS, dt, out=np.full(len(dt), np.nan), where=dt > 0)
    return t_ns[:-1] + dt // 2, np.where(speed <= MAX_SPEED_M_S, speed, np.nan)


def absolute_error(odometry: PlanarTrack, truth: PlanarTrack) -> AlignmentResidual:
    """Return the ATE (Sturm et al. 2012): distances after Horn's alignment of the whole track."""
    pairs = _pairs(odometry, truth)
    try:
        fit, alignment = align.horn(*pairs), "Horn, SE(3)"
    except GeometryError:
        # The roll about a straight track is not observable, while the yaw is.
        fit, alignment = align.yaw(*pairs), "yaw and translation, since the track is a line"
    return AlignmentResidual(fit.rmse, fit.pairs, 1, alignment)


def turn_error(odometry: PlanarTrack, truth: PlanarTrack) -> AlignmentResidual:
    """Return the distances of the horizontal positions on the turns, each aligned separately.

    On turns the lever arm of the antenna is observable, and odometry drifts little within seconds.
    """
    flat = PlanarTrack(truth.t_ns, truth.positions * (1.0, 1.0, 0.0))
    source, target = _pairs(odometry, flat)
    fits: list[Alignment] = []
    for begin, end in turns(odometry):
        inside = (truth.t_ns >= begin) & (truth.t_ns < end) & np.isfinite(source).all(axis=1)
        if np.count_nonzero(inside) >= 2:
            fits.append(align.yaw(source[inside] * (1.0, 1.0, 0.0), target[inside]))
    pairs = sum(fit.pairs for fit in fits)
    squares = sum(fit.pairs * fit.rmse**2 for fit in fits)
    rmse = float(np.sqrt(squares / pairs)) if pairs else float("nan")
    return AlignmentResidual(rmse, pairs, len(fits), "yaw and translation in the plane, turn by turn")


def turns(odometry: PlanarTrack) -> Ints:
    """Return start and end (k, 2), ns, of the 30 s with the largest heading change of each turn."""
    if odometry.headings is None or not len(odometry.t_ns):
        return np.zeros((0, 2), np.int64)
    since = odometry.t_ns - odometry.t_ns[0]
    inside = since + SETTINGS.turn_ns <= since[-1]
    later = np.interp(since[inside] + SETTINGS.turn_ns, since, odometry.headings)
    change = np.abs(later - odometry.headings[inside])
    peaks = [
        begin + int(np.argmax(change[begin:end]))
        for begin, end in zip(*robust.runs(change > SETTINGS.min_turn_rad), strict=True)
    ]
    begins = odometry.t_ns[np.array(peaks, dtype=np.int64)]
    return np.column_stack([begins, begins + SETTINGS.turn_ns])


def _pairs(odometry: PlanarTrack, truth: PlanarTrack) -> tuple[Floats, Floats]:
    """Return the odometry at the times of the truth, and the truth; NaN in gaps of the odometry."""
    limits = Limits(gap_ns=SETTINGS.max_gap_ns)
    return interpolate_columns(odometry.t_ns, odometry.positions, truth.t_ns, limits), truth.positions


POSITION, QUATERNION = ("x", "y", "z"), ("qx", "qy", "qz", "qw")
WHEELS = {"wheel_velocity", "steering"}
RTK = "Rtk"
"""Stream of the track of a receiver."""


@dataclass(frozen=True)
class OdometryComparison:
    """Wheel odometry of a recording compared with its RTK track."""

    odometry_m: float  # length
    rtk_2d_m: float  # length; NaN without RTK
    rtk_3d_m: float
    truth_2d_m: float  # length of a ground truth that is not the RTK track; else NaN
    truth_3d_m: float
    reference: str  # stream of the reference: ground truth, else RTK
    point: str  # frame of the reference: the antenna for RTK
    whole: AlignmentResidual  # ATE of the odometry at `point`
    whole_at_base: AlignmentResidual  # ATE of the odometry at base_link
    turning: AlignmentResidual  # the same on turns only
    turning_at_base: AlignmentResidual
    notes: tuple[str, ...]  # sources of the odometry, its times and its headings


def compare(recording: Recording, form: Form = "scripts") -> OdometryComparison:
    """Compare the wheel odometry of a recording with its RTK track.

    Parameters
    ----------
    recording : Recording
        With wheels and steering, or an odometry; and with a ground truth track, or fixes.
    form : {"paper", "scripts"}
        Form of the odometry if it is computed from the wheels.
    """
    truth_stream = _truth_stream(recording)
    truth = _positions(truth_stream)
    odometry, notes = _odometry_track(recording, truth, truth_stream.clock, form)
    point = truth_stream.child or BASE
    at_point = odometry.shift(recording.frames.lookup(BASE, point)[:3, 3])
    measured = _rtk_stream(recording, truth_stream)
    rtk = None if measured is None else _positions(measured)
    own = None if measured is truth_stream else truth
    return OdometryComparison(
        odometry.length(),
        *_lengths(rtk),
        *_lengths(own),
        truth_stream.name,
        point,
        absolute_error(at_point, truth),
        absolute_error(odometry, truth),
        turn_error(at_point, truth),
        turn_error(odometry, truth),
        notes,
    )


def antenna_track(fixes: Stream, utm: bool = False) -> Stream:
    """Return fixes as positions, m: east, north, up from the first one, or UTM.

    Heights are above the ellipsoid if the fixes have the geoid separation, else unchanged.
    """
    points = fixes.array("lat", "lon", "alt")
    if "geoid_separation" in fixes.columns:
        points[:, 2] += np.nan_to_num(fixes["geoid_separation"])
    if utm:
        positions, zone = geodesy.utm_from_geodetic(points)
        frame = f"utm {zone}"
    else:
        (positions, _), frame = local_from_fixes(points), "enu"
    table = arrow.table(fixes.t_ns, dict(zip(POSITION, positions.T, strict=True)), units=Pose.units())
    return fixes.replace(
        name=f"{fixes.name}/{'Utm' if utm else 'Enu'}",
        type=Pose,
        source=Parsed(table),
        role="derived",
        frame=frame,
        child=fixes.frame,
    )


def _truth_stream(recording: Recording) -> Stream:
    truth = recording.truth
    if truth is not None and set(POSITION) <= set(truth.columns):
        return truth
    fixes = next((s for s in recording if s.type is NavFix and len(s)), None)
    if fixes is None:
        raise StreamError(f"{recording.name} has no RTK track", why="it has neither a true track nor fixes")
    return antenna_track(fixes)


def _rtk_stream(recording: Recording, truth: Stream) -> Stream | None:
    """Return the track of a receiver, None without one; the published truth is the RTK track itself."""
    poses = next((s for s in recording if s.name == RTK and set(POSITION) <= set(s.columns)), None)
    if truth.type is NavFix or truth.role != "truth" or (poses is not None and _is_copy(truth, poses)):
        return truth
    if poses is not None:
        return poses
    fixes = next((s for s in recording if s.type is NavFix and len(s)), None)
    return None if fixes is None else antenna_track(fixes)


def _is_copy(truth: Stream, measured: Stream) -> bool:
    return np.array_equal(truth.t_ns, measured.t_ns) and np.array_equal(
        truth.array(*POSITION), measured.array(*POSITION), equal_nan=True
    )


def _lengths(track: PlanarTrack | None) -> tuple[float, float]:
    """Return the lengths of a track in 2 and 3 dimensions, NaN without one."""
    return (np.nan, np.nan) if track is None else (track.length(2), track.length(3))


def _positions(stream: Stream) -> PlanarTrack:
    order = np.argsort(stream.t_ns, kind="stable")
    return PlanarTrack(stream.t_ns[order], stream.array(*POSITION)[order])


def _odometry_track(
    recording: Recording, truth: PlanarTrack, clock: str, form: Form
) -> tuple[PlanarTrack, tuple[str, ...]]:
    """Return the odometry with headings and times on the clock of the truth, and notes on their sources."""
    stream, notes = _odometry_stream(recording, form)
    track = _positions(stream)
    if stream.clock == "index" and stream.clock != clock:
        t_ns, note = _find_times(known_robot(recording), truth, track.positions)
        track, notes = PlanarTrack(t_ns, track.positions), [*notes, note]
    elif stream.clock != clock:
        raise StreamError(
            f"{stream.name} is on the {stream.clock} clock, RTK on {clock}",
            why="samples of different clocks cannot be paired",
        )
    if set(QUATERNION) <= set(stream.columns):
        order = np.argsort(stream.t_ns, kind="stable")
        headings = np.unwrap(rotations.euler_from_quaternion("rpy", stream.array(*QUATERNION)[order])[:, 2])
    else:
        headings = path_headings(track.positions)
        notes = [*notes, "headings are the direction of the odometry's path, reversed when it backs up"]
    return PlanarTrack(track.t_ns, track.positions, headings), tuple(notes)


def _odometry_stream(recording: Recording, form: Form) -> tuple[Stream, list[str]]:
    """Return the recorded odometry, else that of the wheels."""
    for stream in recording:
        if stream.type is Odometry and stream.role != "truth" and set(POSITION) <= set(stream.columns):
            return stream, [f"odometry is {stream.name}, as recorded", *stream.parsed.notes]
    stream = wheel_odometry(recording, form)
    whose = {"paper": "the paper's", "scripts": "the published scripts'"}[form]
    return stream, [f"odometry is integrated from the wheels in {whose} form", *stream.parsed.notes]


def _find_times(robot: Robot, truth: PlanarTrack, positions: Floats) -> tuple[NDArray[np.int64], str]:
    rate = robot.constants.get("odometry_rate")
    if rate is None:
        raise StreamError(
            "the odometry has no times, and its rate is unknown",
            hint=f"give {robot.name} the constant odometry_rate",
        )
    t_ns, found = find_sample_times(truth, positions, float(rate))
    note = (
        f"odometry has no times: {rate:g} Hz are assumed, starting {found.offset_ns / NS:+.2f} s after RTK, "
        f"where the speeds correlate best ({found.correlation:.2f})"
    )
    return t_ns, note
