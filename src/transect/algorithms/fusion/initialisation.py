"""How a fusion begins: which way is up, and which way the body looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import align, interpolation, rotations, se3

from . import error_state as ekf
from .heading_alignment import Aligned, align_by_acceleration
from .measurements import Event, Inertial, Place, Step

LEVELLING = 0.5
"""Seconds of inertial measurements that tell up."""
LEAST_WAY = 3.0
"""Metres between places that tell a heading."""
STANDING = 1e-3, 1e-3
"""Metres and radians: a body whose wheels did less than this in every step stands."""
SURE_HEADING = 0.2
"""rad: one sigma of a heading that a way by places gives, to begin with it."""
MAX_REFITS, OUTLIER_SIGMAS = 10, 3.0
"""Refits without outliers until the heading is sure; an outlier is not in the nearer half, nor within so many
sigmas."""
HEADING_STD = 0.5
"""rad. The way tells the heading better, but its places are used again by the filter."""
CHEAP_GYRO = 5e-3
"""rad/s: one sigma of the biases of gyroscopes that nothing but positions is beside."""
ALIGNED_OVER = 20.0
"""Seconds that tell the heading of a body with an IMU and positions alone; what is older is forgotten."""
SILENT_NS = NS // 5
"""Over a longer gap of an IMU its motion is not known."""
VELOCITY_STD = 1.0
"""m/s: one sigma of a first velocity by wheels, or of a body of which nothing says that it moves."""
SPEED_OVER, BRAKING = 1.0, 2.0
"""Seconds of places that tell a first velocity, and m/s2 by which it may have changed meanwhile."""
ATTITUDE_STD = 0.02
"""rad, of an attitude that a receiver told without its deviation."""


@dataclass(frozen=True)
class Priors:
    """Standard deviations at the start; the parameters of the node `ErrorStateFilter` say what each means."""

    gyro_bias: float = 2e-3  # rad/s
    force_bias: float = 0.05  # m/s2
    scale: float = 0.05
    slip: float = 0.03
    steer: float = 0.1
    side: float = 0.02  # rad
    bend: float = 0.02  # rad/m
    tilt: float = 0.05  # rad


@dataclass(frozen=True, eq=False)
class Beginning:
    """Pose T_map_body (4, 4) at a time, and one sigma of its position (m), heading and tilt (rad).

    `aligned` is what is known besides, where an IMU and positions are all that there is.
    """

    t_ns: int
    pose: Floats
    place_std: float
    heading_std: float
    tilt_std: float
    aligned: Aligned | None = None


def level(inertial: Sequence[Inertial]) -> Floats:
    """Return the rotation R_level_body (3, 3) without heading: gravity alone tells it."""
    x, y, z = np.mean([each.force for each in inertial], axis=0)
    roll, pitch = np.arctan2(y, z), np.arctan2(-x, np.hypot(y, z))
    return rotations.matrix_from_euler("rpy", [roll, pitch, 0.0])


def track(steps: Sequence[Step]) -> tuple[Ints, Floats]:
    """Return times (n,) and poses (n, 4, 4) of a dead reckoning; over gaps it is taken to stand."""
    times, poses = [steps[0].since_ns], [np.eye(4)]
    for step in steps:
        times.append(step.t_ns)
        poses.append(poses[-1] @ step.transform)
    return np.array(times, np.int64), np.stack(poses)


def by_way(steps: Sequence[Step], places: Sequence[Place], tilt: Floats) -> tuple[int, Floats] | None:
    """Return since when, and T_map_body (4, 4) then, from places along a way; None if it is too short.

    Parameters
    ----------
    tilt : (3, 3)
        Rotation R_level_body at the start.
    """
    if not steps or len(places) < 2:
        return None
    t_ns, poses = track(steps)
    seen = [each for each in places if t_ns[0] <= each.t_ns <= t_ns[-1]]
    if len(seen) < 2 or _extent(np.stack([each.position for each in seen])) < LEAST_WAY:
        return None
    levelled = se3.from_matrix(tilt, np.zeros(3)) @ poses
    points = np.stack([se3.apply(levelled, each.lever) for each in seen])[np.arange(len(seen))]
    antenna = np.stack(
        [
            interpolation.interpolate_columns(t_ns, points[i], np.array([each.t_ns]))[0]
            for i, each in enumerate(seen)
        ]
    )
    positions = np.stack([each.position for each in seen])
    stated = float(np.median([each.std[:2].max() for each in seen]))
    kept = np.ones(len(seen), np.bool_)
    for _ in range(MAX_REFITS):
        found = align.yaw(antenna[kept], positions[kept])
        missed = np.linalg.norm((positions - antenna @ found.rotation.T - found.translation)[:, :2], axis=1)
        if _heading_std(antenna[kept], missed[kept], stated) <= SURE_HEADING:
            return int(t_ns[0]), se3.from_matrix(found.rotation, found.translation) @ levelled[0]
        kept = missed <= max(OUTLIER_SIGMAS * stated, float(np.median(missed)))
        if np.count_nonzero(kept) < 2 or _extent(positions[kept]) < LEAST_WAY:
            return None
    return None


def _heading_std(antenna: Floats, missed: Floats, stated: float) -> float:
    """Return one sigma (rad) of the heading of a path (n, 3) that was laid on n places.

    Their noise is what they state (m), or what they miss the path by, (n,) m, if that is more.
    """
    noise = float(np.sqrt(np.sum(missed**2) / max(2 * len(missed) - 3, 1)))
    reach = np.sqrt(np.sum((antenna[:, :2] - antenna[:, :2].mean(axis=0)) ** 2))
    return max(stated, noise) / max(float(reach), 1e-9)


def _extent(positions: Floats) -> float:
    return float(np.linalg.norm(positions[:, :2] - positions[0, :2], axis=1).max())


def begin(events: Sequence[Event], priors: Priors, *, by_places: bool) -> Beginning | None:
    """Return where a body begins, by what was measured so far; None if that does not tell it yet.

    Parameters
    ----------
    by_places : bool
        Whether it begins in the frame of the places, else where it stands, looking along x.
    """
    inertial = [each for each in events if isinstance(each, Inertial)]
    span = (events[-1].t_ns - events[0].t_ns) / NS if events else 0.0
    if span < LEVELLING:
        return None
    first = [each for each in inertial if each.t_ns <= events[0].t_ns + LEVELLING * NS]
    tilt, tilt_std = (level(first), priors.tilt) if first else (np.eye(3), priors.tilt)
    if not by_places:
        return Beginning(events[0].t_ns, se3.from_matrix(tilt, np.zeros(3)), 1e-3, 1e-3, tilt_std)
    places = [each for each in events if isinstance(each, Place)]
    told = next((each for each in places if each.attitude is not None), None)
    if told is not None and told.attitude is not None:
        R = rotations.matrix_from_quaternion(told.attitude)
        pose = se3.from_matrix(R, told.position - R @ told.lever)
        return Beginning(told.t_ns, pose, float(told.std.max()), ATTITUDE_STD, ATTITUDE_STD)
    found = by_way(_one_sensor(events), places, tilt)
    if found is None:
        return None
    return Beginning(found[0], found[1], 1.0 + float(places[0].std.max()), HEADING_STD, tilt_std)


def begin_alone(
    events: Sequence[Event], priors: Priors, gravity: float, *, knows_forward: bool
) -> Beginning | None:
    """Return where a body with an IMU and positions alone begins; None if that is not known yet."""
    inertial = [each for each in events if isinstance(each, Inertial)]
    places = [each for each in events if isinstance(each, Place)]
    if not inertial or not places:
        return None
    tilt = level([each for each in inertial if each.t_ns <= inertial[0].t_ns + LEVELLING * NS])
    told = next((each for each in places if each.attitude is not None), None)
    if told is not None:
        knows_speed = places[-1].t_ns - told.t_ns >= LEVELLING * NS
        return begin(events, priors, by_places=True) if knows_speed else None
    found = align_by_acceleration(inertial, places, tilt, gravity, knows_forward=knows_forward)
    if found is None:
        return None
    place_std = 1.0 + float(places[0].std[:2].max())
    return Beginning(found.t_ns, found.pose, place_std, HEADING_STD, priors.tilt, found)


def recent(events: Sequence[Event]) -> list[Event]:
    """Return the events of the last seconds, from the last gap of the IMU on."""
    times = np.array([each.t_ns for each in events if isinstance(each, Inertial)], np.int64)
    if not len(times):
        return list(events)
    gaps = np.flatnonzero(np.diff(times) > SILENT_NS)
    since = max(int(times[gaps[-1] + 1]) if len(gaps) else 0, int(times[-1] - ALIGNED_OVER * NS))
    return [each for each in events if each.t_ns >= since]


def _one_sensor(events: Sequence[Event]) -> list[Step]:
    """Return the steps of the first sensor that has any; wheels and odometry before `motion`."""
    steps = [each for each in events if isinstance(each, Step)]
    wheels = [each for each in steps if each.sensor != "motion"]
    return wheels or steps


def first_state(begun: Beginning, events: Sequence[Event], priors: Priors) -> ekf.State:
    """Return the state at the beginning; gyroscopes of a standing body tell their bias."""
    R = begun.pose[:3, :3]
    standing = _rates_at_rest(events)
    variances = np.zeros(ekf.SIZE)
    variances[ekf.POSITION] = begun.place_std**2
    velocity, velocity_std = _first_velocity(begun, events)
    variances[ekf.VELOCITY] = velocity_std**2 if standing is None else 1e-4
    gyro_std = priors.gyro_bias if standing is None else 0.1 * priors.gyro_bias
    if begun.aligned is not None:
        gyro_std = max(gyro_std, CHEAP_GYRO)
    variances[ekf.GYRO_BIAS], variances[ekf.FORCE_BIAS] = gyro_std**2, priors.force_bias**2
    variances[[ekf.SCALE, ekf.SLIP, ekf.STEER, ekf.SIDE, ekf.BEND]] = (
        np.array([priors.scale, priors.slip, priors.steer, priors.side, priors.bend]) ** 2
    )
    P = np.diag(variances)
    tilt = np.diag([begun.tilt_std, begun.tilt_std, begun.heading_std]) ** 2
    P[ekf.ATTITUDE, ekf.ATTITUDE] = tilt
    bias = np.zeros(3) if standing is None else standing
    if begun.aligned is not None:
        velocity, bias = begun.aligned.velocity, begun.aligned.gyro_bias
    return ekf.State(begun.t_ns, begun.pose[:3, 3].copy(), R.copy(), velocity, P, bias)


def _rates_at_rest(events: Sequence[Event]) -> Floats | None:
    """Return the mean angular velocity (3,) of the levelling time if wheels stood through it; else None."""
    until = events[0].t_ns + LEVELLING * NS
    steps = [each for each in _one_sensor(events) if each.t_ns <= until]
    rates = [each.rate for each in events if isinstance(each, Inertial) and each.t_ns <= until]
    moved = [_size(each.transform) for each in steps]
    if len(steps) < 3 or not rates or any(m > STANDING[0] or a > STANDING[1] for m, a in moved):
        return None
    return np.mean(rates, axis=0)


def _size(transform: Floats) -> tuple[float, float]:
    turned = rotations.rotation_vector_from_matrix(transform[:3, :3])
    return float(np.linalg.norm(transform[:3, 3])), float(np.linalg.norm(turned))


def _first_velocity(begun: Beginning, events: Sequence[Event]) -> tuple[Floats, float]:
    """Return the velocity (3,) in the map at the beginning, and one sigma of it (m/s).

    A log may begin in the middle of a drive. The first step after the beginning tells how fast, and without
    steps the places do, as far as nothing braked between them.
    """
    step = next((each for each in _one_sensor(events) if each.t_ns > begun.t_ns), None)
    if step is not None:
        seconds = (step.t_ns - step.since_ns) / NS
        return begun.pose[:3, :3] @ step.transform[:3, 3] / seconds, VELOCITY_STD
    places = [each for each in events if isinstance(each, Place) and each.t_ns >= begun.t_ns]
    soon = [each for each in places if each.t_ns <= begun.t_ns + SPEED_OVER * NS]
    last = (soon if len(soon) > 1 else places)[-1] if places else None
    if last is None or last.t_ns == places[0].t_ns:
        return np.zeros(3), VELOCITY_STD
    seconds = (last.t_ns - places[0].t_ns) / NS
    noise = np.hypot(places[0].std.max(), last.std.max()) / seconds
    return (last.position - places[0].position) / seconds, float(np.hypot(noise, BRAKING * seconds))
