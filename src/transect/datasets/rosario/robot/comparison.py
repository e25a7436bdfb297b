"""Wheel odometry beside RTK: lengths, and what is left between the two tracks once they are aligned.

The published odometry has no times. Both were recorded at once, so the odometry's samples are put 0.1 s apart
(4.4.1: 10 Hz) and moved as a whole until its speed correlates best with that of RTK (`associate`).
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

from .geometry import FASTEST, antenna_from_base, local_from_fixes, path_headings

FARTHEST_NS = 10 * NS
"""How far the beginnings of two logs that were started together may be apart."""
GAP_NS = NS
"""Between odometry samples further apart than this the robot is nowhere known."""
TURN_NS = 30 * NS
"""A 180 degree turn with its manoeuvring takes about this long."""
TURNED = np.pi / 2
"""Rad; what turns further than this within `TURN_NS` is a turn."""


@dataclass(frozen=True)
class Track:
    """Positions over time."""

    t_ns: Ints  # (n,), sorted
    positions: Floats  # (n, 3), metres
    headings: Floats | None = None  # (n,) or None, rad from x to y, unwrapped; of base_link

    def length(self, dimensions: int = 3) -> float:
        """Length of the path in metres, in 2 or 3 dimensions; gaps are bridged by straight lines."""
        known = self.positions[np.isfinite(self.positions).all(axis=1), :dimensions]
        return float(np.linalg.norm(np.diff(known, axis=0), axis=1).sum())

    def carry(self, lever: Floats) -> Track:
        """Return the track of a point fixed at `lever` (3,) in base_link; headings must be known."""
        if self.headings is None:
            raise GeometryError("a track without headings cannot be carried to another point")
        return Track(self.t_ns, antenna_from_base(self.positions, self.headings, lever), self.headings)


@dataclass(frozen=True)
class Residual:
    """What is left between an odometry and RTK."""

    rmse: float  # root mean square distance of the pairs, metres; NaN without any
    pairs: int
    pieces: int  # how many pieces were aligned, each by itself
    alignment: str  # by which transform


def associate(truth: Track, odometry: Floats, rate: float) -> tuple[Ints, TimeOffset]:
    """Give times to the positions (m, 3) of an odometry that has none but its rate.

    Parameters
    ----------
    truth : Track
        RTK, recorded at the same time.
    rate : float
        Samples per second of the odometry.

    Returns
    -------
    t_ns : (m,) int64 array
        On RTK's clock.
    found : TimeOffset
        How long after RTK's first fix the odometry begins, and how well the speeds correlate then.
    """
    start = int(truth.t_ns[0])
    even = np.round(np.arange(len(odometry)) * (NS / rate)).astype(np.int64)
    fix_ns, fix_speed = _speeds(truth.t_ns - start, truth.positions)
    wheel_ns, wheel_speed = _speeds(even, odometry)
    found = correlation.time_offset(fix_ns, fix_speed, wheel_ns, wheel_speed, max_offset_ns=FARTHEST_NS)
    return start + even + found.offset_ns, found


def _speeds(t_ns: Ints, positions: Floats) -> tuple[Ints, Floats]:
    """Horizontal speed half-way between samples, in m/s; NaN where the position jumps."""
    step = np.linalg.norm(np.diff(positions[:, :2], axis=0), axis=1)
    dt = np.diff(t_ns)
    speed = np.divide(step * NS, dt, out=np.full(len(dt), np.nan), where=dt > 0)
    return t_ns[:-1] + dt // 2, np.where(speed <= FASTEST, speed, np.nan)


def absolute_error(odometry: Track, truth: Track) -> Residual:
    """ATE of Sturm et al. (2012): distances of the positions after Horn's alignment of the whole track."""
    pairs = _pairs(odometry, truth)
    try:
        fit, alignment = align.horn(*pairs), "Horn, SE(3)"
    except GeometryError:
        # Tracks along one line leave the roll about it open; a turn about the vertical is still fixed.
        fit, alignment = align.yaw(*pairs), "yaw and translation, since the track is a line"
    return Residual(fit.rmse, fit.pairs, 1, alignment)


def turn_error(odometry: Track, truth: Track) -> Residual:
    """Distances of the horizontal positions on the turns, each aligned by itself.

    On a turn the antenna swings out while the wheels do not, and within seconds odometry hardly drifts: this
    is where the lever arm shows.
    """
    flat = Track(truth.t_ns, truth.positions * (1.0, 1.0, 0.0))
    source, target = _pairs(odometry, flat)
    fits: list[Alignment] = []
    for begin, end in turns(odometry):
        inside = (truth.t_ns >= begin) & (truth.t_ns < end) & np.isfinite(source).all(axis=1)
        if np.count_nonzero(inside) >= 2:
            fits.append(align.yaw(source[inside] * (1.0, 1.0, 0.0), target[inside]))
    pairs = sum(fit.pairs for fit in fits)
    squares = sum(fit.pairs * fit.rmse**2 for fit in fits)
    rmse = float(np.sqrt(squares / pairs)) if pairs else float("nan")
    return Residual(rmse, pairs, len(fits), "yaw and translation in the plane, turn by turn")


def turns(odometry: Track) -> Ints:
    """Begin and end (k, 2) in ns of the 30 s in which an odometry with headings turns most, turn by turn."""
    if odometry.headings is None or not len(odometry.t_ns):
        return np.zeros((0, 2), np.int64)
    since = odometry.t_ns - odometry.t_ns[0]
    inside = since + TURN_NS <= since[-1]
    later = np.interp(since[inside] + TURN_NS, since, odometry.headings)
    turned = np.abs(later - odometry.headings[inside])
    peaks = [
        begin + int(np.argmax(turned[begin:end]))
        for begin, end in zip(*robust.runs(turned > TURNED), strict=True)
    ]
    begins = odometry.t_ns[np.array(peaks, dtype=np.int64)]
    return np.column_stack([begins, begins + TURN_NS])


def _pairs(odometry: Track, truth: Track) -> tuple[Floats, Floats]:
    """Odometry at the times of the truth, and the truth; NaN where the odometry has a gap or ends."""
    limits = Limits(gap_ns=GAP_NS)
    return interpolate_columns(odometry.t_ns, odometry.positions, truth.t_ns, limits), truth.positions


POSITION, QUATERNION = ("x", "y", "z"), ("qx", "qy", "qz", "qw")
WHEELS = {"wheel_velocity", "steering"}
RTK = "Rtk"
"""The stream of a track that a receiver measured."""


@dataclass(frozen=True)
class Comparison:
    """A recording's wheel odometry beside its RTK track."""

    # odometry_m, rtk_2d_m, rtk_3d_m: lengths of the paths; NaN without RTK
    odometry_m: float
    rtk_2d_m: float
    rtk_3d_m: float
    # truth_2d_m, truth_3d_m: lengths of the true track, where there is one beside RTK's; else NaN
    truth_2d_m: float
    truth_3d_m: float
    reference: str  # the stream that the odometry is held against: the true track, else RTK
    point: str  # the frame whose track that is: of RTK the antenna's
    # whole, whole_at_base: ATE with the odometry carried to `point`, and left at base_link
    whole: Residual
    whole_at_base: Residual
    # turning, turning_at_base: the same on the turns only
    turning: Residual
    turning_at_base: Residual
    notes: tuple[str, ...]  # where the odometry, its times and its headings come from


def compare(recording: Recording, form: Form = "scripts") -> Comparison:
    """Hold a recording's wheel odometry against its RTK track.

    Parameters
    ----------
    recording : Recording
        With wheels and steering, or an odometry; and with a true track, or fixes.
    form : {"paper", "scripts"}
        Of the odometry, where it is made from the wheels.
    """
    truth_stream = _truth_stream(recording)
    truth = _positions(truth_stream)
    odometry, notes = _odometry_track(recording, truth, truth_stream.clock, form)
    point = truth_stream.child or BASE
    carried = odometry.carry(recording.frames.lookup(BASE, point)[:3, 3])
    measured = _rtk_stream(recording, truth_stream)
    rtk = None if measured is None else _positions(measured)
    own = None if measured is truth_stream else truth
    return Comparison(
        odometry.length(),
        *_lengths(rtk),
        *_lengths(own),
        truth_stream.name,
        point,
        absolute_error(carried, truth),
        absolute_error(odometry, truth),
        turn_error(carried, truth),
        turn_error(odometry, truth),
        notes,
    )


def antenna_track(fixes: Stream, utm: bool = False) -> Stream:
    """Return fixes as positions in metres: east, north, up from the first one, or UTM.

    Heights are above the ellipsoid where the fixes know the geoid, else as they came.
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
    """Return what a receiver measured, None if nothing did; the published truth is RTK's track itself."""
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


def _lengths(track: Track | None) -> tuple[float, float]:
    """Return the lengths of a track in 2 and 3 dimensions, NaN without one."""
    return (np.nan, np.nan) if track is None else (track.length(2), track.length(3))


def _positions(stream: Stream) -> Track:
    order = np.argsort(stream.t_ns, kind="stable")
    return Track(stream.t_ns[order], stream.array(*POSITION)[order])


def _odometry_track(
    recording: Recording, truth: Track, clock: str, form: Form
) -> tuple[Track, tuple[str, ...]]:
    """Return the odometry with times of the truth's clock and headings, and how it came by them."""
    stream, notes = _odometry_stream(recording, form)
    track = _positions(stream)
    if stream.clock == "index" and stream.clock != clock:
        t_ns, note = _find_times(known_robot(recording), truth, track.positions)
        track, notes = Track(t_ns, track.positions), [*notes, note]
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
        notes = [*notes, "headings are the direction of the odometry's path, turned round when it backs up"]
    return Track(track.t_ns, track.positions, headings), tuple(notes)


def _odometry_stream(recording: Recording, form: Form) -> tuple[Stream, list[str]]:
    """Return the odometry as it was recorded, else integrated from the wheels."""
    for stream in recording:
        if stream.type is Odometry and stream.role != "truth" and set(POSITION) <= set(stream.columns):
            return stream, [f"odometry is {stream.name}, as recorded", *stream.parsed.notes]
    stream = wheel_odometry(recording, form)
    whose = {"paper": "the paper's", "scripts": "the published scripts'"}[form]
    return stream, [f"odometry is integrated from the wheels in {whose} form", *stream.parsed.notes]


def _find_times(robot: Robot, truth: Track, positions: Floats) -> tuple[NDArray[np.int64], str]:
    rate = robot.constants.get("odometry_rate")
    if rate is None:
        raise StreamError(
            "the odometry has no times, and its rate is not known",
            hint=f"give {robot.name} the constant odometry_rate",
        )
    t_ns, found = associate(truth, positions, float(rate))
    note = (
        f"odometry has no times: {rate:g} Hz are assumed, beginning {found.offset_ns / NS:+.2f} s after RTK, "
        f"where the speeds correlate best ({found.correlation:.2f})"
    )
    return t_ns, note
