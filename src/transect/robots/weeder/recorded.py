"""The models of the weeding robot on a recording's streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import StreamError
from transect.geometry import geodesy, planar, rotations
from transect.recording import Parsed, Recording, Robot, Stream, arrow
from transect.types import NavFix, Odometry, Pose, WheelState

from .antenna import local_from_fixes
from .comparison import Residual, Track, absolute_error, associate, turn_error
from .geometry import BASE, Geometry
from .odometry import Form, motion, path_headings

POSITION, QUATERNION = ("x", "y", "z"), ("qx", "qy", "qz", "qw")
WHEELS = {"wheel_velocity", "steering"}


@dataclass(frozen=True)
class Comparison:
    """A recording's wheel odometry beside its RTK track.

    Attributes
    ----------
    odometry_m, rtk_2d_m, rtk_3d_m : float
        Lengths of the paths.
    point : str
        The frame whose track RTK is: the antenna's.
    whole, whole_at_base : Residual
        ATE with the odometry carried to `point`, and left at base_link.
    turning, turning_at_base : Residual
        The same on the turns only.
    notes : tuple of str
        Where the odometry, its times and its headings come from.
    """

    odometry_m: float
    rtk_2d_m: float
    rtk_3d_m: float
    point: str
    whole: Residual
    whole_at_base: Residual
    turning: Residual
    turning_at_base: Residual
    notes: tuple[str, ...]


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
    carried = odometry.carried(recording.frames.lookup(BASE, point)[:3, 3])
    return Comparison(
        odometry.length(),
        truth.length(2),
        truth.length(3),
        point,
        absolute_error(carried, truth),
        absolute_error(odometry, truth),
        turn_error(carried, truth),
        turn_error(odometry, truth),
        notes,
    )


def wheel_odometry(recording: Recording, form: Form = "scripts") -> Stream:
    """Return the odometry, integrated from a recording's wheels and steering, as a stream of role estimate.

    Of the raw and the cleaned log the cleaned one is taken; in the raw one the steering's zero is taken off.
    Samples without a speed or an angle are left out, and counted in a note.
    """
    found = [s for s in recording if s.type is WheelState and set(s.columns) >= WHEELS]
    if not found:
        raise StreamError(
            f"{recording.name} has no wheels to integrate", why="no WheelState with speeds and steering"
        )
    wheels = min(found, key=lambda s: "telegram" in s.columns)
    if wheels.seams:
        raise StreamError(
            f"{wheels.name} was joined from several recordings", hint="integrate each of them by itself"
        )
    path = _integrate(wheels, Geometry.of(_robot(recording)), form)
    name = f"Odometry/{form.capitalize()}"
    return Stream(name, Odometry, path, clock=wheels.clock, role="estimate", frame="odom", child=BASE)


def _integrate(wheels: Stream, geometry: Geometry, form: Form) -> Parsed:
    order = np.argsort(wheels.t_ns, kind="stable")
    speeds, steering = np.asarray(wheels["wheel_velocity"])[order], np.asarray(wheels["steering"])[order]
    if "telegram" in wheels.columns:
        steering = steering - geometry.steering(geometry.steering_zero_raw)
    known = np.isfinite(speeds).all(axis=1) & np.isfinite(steering)
    t_ns = wheels.t_ns[order][known]
    v, w = motion(speeds[known], steering[known], geometry, form)
    nothing = np.zeros(len(t_ns))
    motions = planar.motions_from_rates(t_ns, np.column_stack([v, nothing, w]))
    x, y, heading = planar.integrate(motions)[: len(t_ns)].T
    turn = rotations.quaternion_from_euler("z", heading[:, None])
    columns = {"x": x, "y": y, "z": nothing, **dict(zip(QUATERNION, turn.T, strict=True))}
    columns |= {"vx": v, "vy": nothing, "vz": nothing, "wx": nothing, "wy": nothing, "wz": w}
    lost = int(np.count_nonzero(~known))
    notes = (f"{wheels.name}: {lost} samples without speed or steering are not integrated",) if lost else ()
    return Parsed(arrow.table(t_ns, columns, units=Odometry.units()), (), notes)


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


def _robot(recording: Recording) -> Robot:
    if recording.robot is None:
        raise StreamError(
            f"it is not known which robot recorded {recording.name}",
            hint="a recording.yaml beside the data can say so: `robot: weeder`, or one of your own",
        )
    return recording.robot


def _truth_stream(recording: Recording) -> Stream:
    truth = recording.truth
    if truth is not None and set(POSITION) <= set(truth.columns):
        return truth
    fixes = next((s for s in recording if s.type is NavFix and len(s)), None)
    if fixes is None:
        raise StreamError(f"{recording.name} has no RTK track", why="it has neither a true track nor fixes")
    return antenna_track(fixes)


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
        t_ns, note = _find_times(_robot(recording), truth, track.positions)
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
