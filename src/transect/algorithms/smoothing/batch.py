"""Smoothing a whole recording at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import TimeError, TransectError
from transect.geometry import interpolation, se3
from transect.types import Trajectory

from .._gtsam import gtsam
from ..fusion.measurements import Place
from .factor_graph import (
    SmootherNoise,
    Stretch,
    UnsettledError,
    covariances_of,
    poses_of,
    solve,
    stretch_of,
    widen,
)
from .imu_preintegration import turns_of
from .initial_values import guess, path_poses
from .observations import Evidence, check_overlap, keyframe_times
from .odometry_paths import CALIBRATION, PlanarPath, PosePath
from .position_factors import GATE, Judged, judge
from .variance_components import weigh
from .wheel_cross_validation import learn_wheel_factor

LEAST_PLACES = 3


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Keyframes of a smoothed recording.

    Attributes
    ----------
    times : (n,)
        Of the keyframes, ns.
    path : PlanarPath or PosePath
        Dead reckoning, for the way between them.
    turns : PosePath or None
        Gyroscopes, for the attitude between them; a path in the plane does not tell it.
    poses : (n, 4, 4)
    covariances : (n, 6, 6)
        Translation, then rotation vector, in the poses' frame.
    calibration : (n, 4)
        Of the wheels, as in `CALIBRATION`; empty without them.
    places : tuple of Place
        All positions in this time, m of them.
    judged : Judged
        How they fitted, those that were left out among them.
    biases : (6,) or None
        Of the IMU, m/s2 then rad/s, at the middle keyframe.
    factors : mapping of str to float
        On the variances of errors that were weighed, by their names (`weighing`).
    velocities : (n, 3) or None
        In the poses' frame, m/s, where sources were weighed.
    """

    times: Ints
    path: PlanarPath | PosePath
    turns: PosePath | None
    poses: Floats
    covariances: Floats
    calibration: Floats
    places: tuple[Place, ...]
    judged: Judged
    biases: Floats | None = None
    factors: Mapping[str, float] = field(default_factory=dict[str, float])
    velocities: Floats | None = None

    def at(self, t_ns: Ints) -> tuple[Floats, Floats]:
        """Return poses (m, 4, 4) and covariances (m, 6, 6) at times (m,) from the first keyframe to the last.

        Between keyframes the body goes as dead reckoning and gyroscopes say, and what these miss of the next
        keyframe is spread evenly in time. Where sources were weighed, none of them is followed: wheels that
        slip for a moment would leave the way. The body glides then, with the velocities of the keyframes.
        """
        around = interpolation.bracket(self.times, t_ns, interpolation.Limits(otherwise="error"))
        left, right = self.poses[around.left], self.poses[around.right]
        since = self.times[around.left]
        there, next_one = (self._motions_between(since, each) for each in (t_ns, self.times[around.right]))
        missed = se3.log(se3.invert(left @ next_one) @ right)
        weight = around.fraction[:, None]
        poses = left @ there @ se3.exp(weight * missed)
        if self.velocities is not None:
            poses[:, :3, 3] = self._glide(around, t_ns)
        share = weight[:, :, None]
        spread = (1 - share) * self.covariances[around.left] + share * self.covariances[around.right]
        return poses, spread

    def _glide(self, around: interpolation.Bracket, t_ns: Ints) -> Floats:
        """Return places (m, 3) on cubic curves through the keyframes, with their velocities."""
        assert self.velocities is not None
        seconds = ((self.times[around.right] - self.times[around.left]) * 1e-9)[:, None]
        u = around.fraction[:, None]
        p0, p1 = self.poses[around.left, :3, 3], self.poses[around.right, :3, 3]
        v0, v1 = (self.velocities[each] * seconds for each in (around.left, around.right))
        rise = p1 - p0
        return p0 + u * (v0 + u * ((3 * rise - 2 * v0 - v1) + u * (v0 + v1 - 2 * rise)))

    def _motions_between(self, from_ns: Ints, to_ns: Ints) -> Floats:
        """Return the motions (m, 4, 4) between times (m,) by dead reckoning and gyroscopes."""
        moved = se3.invert(path_poses(self.path, from_ns)) @ path_poses(self.path, to_ns)
        if self.turns is not None:
            turned = self.turns.between(from_ns, to_ns)[0]
            moved[:, :3, :3] = turned[:, :3, :3]
        return moved

    def trajectory(self, t_ns: Ints, frame: str, child: str) -> Trajectory:
        """Return poses at times (m,) as a trajectory."""
        poses, covariances = self.at(t_ns)
        attitudes, places = se3.to_quaternion(poses)
        return Trajectory(t_ns, places, attitudes, covariances, frame, child)


def smooth(
    evidence: Evidence,
    noise: SmootherNoise | None = None,
    spacing: float = 0.5,
    *,
    learn: bool = False,
    start: Floats | None = None,
) -> Smoothed:
    """Return the motion that fits everything that was measured best.

    Parameters
    ----------
    evidence : Evidence
        Dead reckoning, and what there is of positions and inertial samples. Without positions the result
        begins at the origin, looking along x.
    noise : SmootherNoise, optional
    spacing : float
        Seconds between keyframes.
    learn : bool
        Whether noise is learnt: that of the wheels from positions, where wheels are all that tells the
        motion; that of wheels and of an odometry beside them from how they and an IMU agree.
    start : (4, 4) array, optional
        T_map_body at the first of the steps that a filter followed; see `Follower`.

    Raises
    ------
    TransectError
        If there is no dead reckoning, if positions and dead reckoning have no time in common, or if there are
        too few of them to tell the heading.
    """
    weighed = learn and evidence.can_be_weighed
    noise = replace(noise or SmootherNoise(), weighed=weighed)
    evidence = evidence if weighed else evidence.leave_out_doubted()
    check_overlap(evidence)
    first, last = evidence.reckoning
    if last <= first:
        raise TimeError("the dead reckoning has no duration")
    times = keyframe_times(first, last, spacing, evidence.times)
    stretch = stretch_of(evidence, times, noise)
    everything = stretch.hung
    if evidence.places:
        _refuse_few(len(everything), len(evidence.places), "are in the time of the dead reckoning")
    values = first_values(stretch, guess(stretch.path, times, everything, start))
    if weighed:
        try:
            noise, values = weigh(evidence, noise, times, values)
        except UnsettledError:  # as told, then, and without what is in doubt
            return smooth(evidence, noise, spacing, start=start)
    solved = _solve_without_outliers(evidence, noise, times, values)
    if learn and not weighed:
        noise = _learn_noise(evidence, noise, solved)
        solved = _solve_without_outliers(evidence, noise, times, solved.values)
    return _read_solution(evidence, solved, noise)


def _read_solution(evidence: Evidence, solved: Solved, noise: SmootherNoise) -> Smoothed:
    stretch, values, extract = solved.stretch, solved.values, gtsam().utilities.extractVectors
    wheels = extract(values, "c").reshape(-1, CALIBRATION)
    return Smoothed(
        stretch.times,
        stretch.path,
        turns_of(evidence.inertial) if stretch.inertial and isinstance(stretch.path, PlanarPath) else None,
        poses_of(values),
        widen(solved.covariances, evidence),
        wheels,
        tuple(solved.places),
        solved.judged,
        _biases(values, stretch) if stretch.inertial else None,
        noise.factors,
        extract(values, "v").reshape(-1, 3) if noise.weighed else None,
    )


def _refuse_few(good: int, given: int, what: str) -> None:
    if good < LEAST_PLACES:
        raise TransectError(
            "there are too few positions to smooth with",
            why=f"{good} of {given} {what}, {LEAST_PLACES} are needed",
        )


def first_values(stretch: Stretch, poses: Floats) -> Any:
    """Return a guess of all variables by poses (n, 4, 4) of the keyframes."""
    g = gtsam()
    values = g.Values()
    speeds = np.gradient(poses[:, :3, 3], (stretch.times - stretch.times[0]) * 1e-9, axis=0)
    for i, pose in enumerate(poses):
        values.insert(g.symbol("x", stretch.first + i), g.Pose3(pose))
        if stretch.straying and i in stretch.straying.seen:
            values.insert(g.symbol("y", stretch.first + i), g.Pose3(pose))
            if stretch.straying.wander is not None:
                values.insert(g.symbol("s", stretch.first + i), np.zeros(6))
        if stretch.links:
            values.insert(g.symbol("c", stretch.first + i), np.zeros(CALIBRATION))
        if stretch.inertial:
            values.insert(g.symbol("v", stretch.first + i), speeds[i])
            values.insert(g.symbol("b", stretch.first + i), g.imuBias.ConstantBias())
    return values


def _learn_noise(evidence: Evidence, noise: SmootherNoise, solved: Solved) -> SmootherNoise:
    """Return the noise with that of the wheels as positions show it, where nothing else tells the motion."""
    if not evidence.places or evidence.inertial or evidence.motion or solved.stretch.links is None:
        return noise
    kept = replace(evidence, places=_choose(solved.places, solved.used))
    factor = learn_wheel_factor(kept, noise, solved.stretch, solved.values)
    return replace(noise, wheels=noise.wheels.times(float(np.sqrt(factor))))


@dataclass(frozen=True, eq=False)
class Solved:
    """A graph, its solution, its poses' covariances (n, 6, 6), and which positions were used in it."""

    stretch: Stretch
    values: Any
    covariances: Floats
    places: Sequence[Place]
    used: Mask
    judged: Judged


def _choose(places: Sequence[Place], used: Mask) -> list[Place]:
    return [place for place, good in zip(places, used, strict=True) if good]


def _solve_without_outliers(evidence: Evidence, noise: SmootherNoise, times: Ints, values: Any) -> Solved:
    """Solve, leave out positions that do not fit the others, and solve again."""
    stretch = stretch_of(evidence, times, noise)
    everything = stretch.hung
    inside = [each for each in evidence.places if times[0] <= each.t_ns <= times[-1]]
    used = np.ones(len(everything), dtype=np.bool_)
    while True:
        values = solve(stretch, values)
        covariances = covariances_of(stretch, values)
        judged = judge(everything, used, poses_of(values), covariances)
        kept = used & (judged.nis <= GATE)
        if (kept == used).all():
            return Solved(stretch, values, covariances, inside, used, replace(judged, used=used))
        used = kept
        _refuse_few(int(used.sum()), len(used), "fit the dead reckoning")
        stretch = stretch_of(replace(evidence, places=_choose(inside, used)), times, noise)


def _biases(values: Any, stretch: Stretch) -> Floats:
    middle = stretch.first + len(stretch.times) // 2
    return np.asarray(values.atConstantBias(gtsam().symbol("b", middle)).vector())
