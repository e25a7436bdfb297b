"""Odometry as paths: the motion between any two times, and its derivative by the calibration of wheels.

A path is stored as cumulative sums over its samples, so that the motion from a to b is a difference of two
interpolated rows: keyframes can be chosen later, without a loop over samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.errors import TimeError
from transect.geometry import interpolation, planar, rotations, se3

from ..fusion.events import OdometryStep
from ..fusion.wheel_starts import WheelSpeedNoise, WheelStartDetector
from ..fusion.wheel_updates import WHEEL_JUMP_S

CALIBRATION_SIZE = 4
"""Calibration of wheels: relative errors of length and turn, curvature in rad/m, sideslip angle in rad."""
ROTATE_LEFT = np.array([[0.0, 1.0], [-1.0, 0.0]])
"""Rotates rows (n, 2) by a right angle to the left."""
MANOEUVRE_NS = 10 * NS
"""Time after a start in which the robot may manoeuvre, and wheels may not measure that it reverses."""
CONSTANT_OUTSIDE = interpolation.Limits(beyond_ns=2**62)
"""The body stands before and after a path; `known` tells that it was not measured there."""


@dataclass(frozen=True, eq=False)
class PathSegments:
    """Planar motions between m pairs of times."""

    motion: Floats  # (m, 3), x, y in m and heading in rad of the later pose in the earlier
    calibration_jacobian: Floats  # (m, 3, 4)
    distance: Floats  # (m,), m, forwards and backwards counted positive
    manoeuvre_distance: Floats  # (m,), m of it in manoeuvres, in which wheels may slip or reverse
    manoeuvre_turn: Floats  # (m,), rad of it
    jump: Floats  # (m,), m by which it may be wrong because the wheel speed jumped
    speed_variance: Floats  # (m,), m2, of measured white noise of the speed, see `WheelSpeedNoise`
    seconds: Floats  # (m,)
    known: Mask  # (m,), whether it was measured without a gap


@dataclass(frozen=True, eq=False)
class PlanarPath:
    """Planar odometry."""

    t_ns: Ints  # (n,)
    # (n, 13) cumulative sums: pose x, y, heading; forward distance; derivative of the end by the errors of
    # turns and of curvature (2 each); distance over squared trust, with which the variance grows; manoeuvre
    # distance and turn, jump and speed variance as in `PathSegments`.
    sums: Floats
    gap_count: Ints  # (n,), number of gaps until then

    @classmethod
    def from_steps(cls, steps: Sequence[OdometryStep]) -> PlanarPath:
        """Return the path of steps in the order of time, with gaps between steps that are not consecutive."""
        t_ns, transforms, gap_count = _join(steps)
        twist = se3.log(transforms)
        motion = twist[:, [0, 1, 5]]
        pose, driven = planar.integrate(motion), _cumulative_sum(motion[:, 0])
        across = np.diff(pose[:, :2], axis=0) @ ROTATE_LEFT
        by_turn = _cumulative_sum(_midpoints(pose[:, 2])[:, None] * across)
        by_curvature = _cumulative_sum(_midpoints(driven)[:, None] * across)
        distance = np.hypot(*motion[:, :2].T) / _trusts(steps, t_ns) ** 2
        uncertain = _cumulative_sum(_uncertain_motion(t_ns, transforms, motion))
        columns = [pose, driven, by_turn, by_curvature, _cumulative_sum(distance), uncertain]
        return cls(t_ns, np.column_stack(columns), gap_count)

    def poses(self, t_ns: Ints) -> Floats:
        """Return poses (m, 3) at times (m,), in the path's own frame."""
        return interpolation.interpolate_columns(self.t_ns, self.sums[:, :3], t_ns, CONSTANT_OUTSIDE)

    def between(self, from_ns: Ints, to_ns: Ints) -> PathSegments:
        """Return the motions from times (m,) to times (m,), which may be earlier."""
        a, b = (
            interpolation.interpolate_columns(self.t_ns, self.sums, each, CONSTANT_OUTSIDE)
            for each in (from_ns, to_ns)
        )
        R_back = np.swapaxes(planar.rotations_from_headings(a[:, 2]), -1, -2)
        translation, turn = b[:, :2] - a[:, :2], b[:, 2] - a[:, 2]
        by_turn = b[:, 4:6] - a[:, 4:6] - a[:, 2:3] * (translation @ ROTATE_LEFT)
        by_curvature = b[:, 6:8] - a[:, 6:8] - a[:, 3:4] * (translation @ ROTATE_LEFT)
        J = np.zeros((len(turn), 3, CALIBRATION_SIZE))
        J[:, :2] = R_back @ np.stack([translation, by_turn, by_curvature, translation @ ROTATE_LEFT], axis=-1)
        J[:, 2, 1:3] = np.column_stack([turn, b[:, 3] - a[:, 3]])
        motion = np.column_stack([np.einsum("nij,nj->ni", R_back, translation), turn])
        known = _without_gap(
            self.t_ns, self.gap_count, np.minimum(from_ns, to_ns), np.maximum(from_ns, to_ns)
        )
        seconds = np.abs(to_ns - from_ns) * 1e-9
        distance, manoeuvre, manoeuvre_turn, jump, speed_variance = np.abs(b[:, 8:] - a[:, 8:]).T
        return PathSegments(
            motion, J, distance, manoeuvre, manoeuvre_turn, jump, speed_variance, seconds, known
        )


@dataclass(frozen=True, eq=False)
class PosePath:
    """Odometry in six degrees of freedom."""

    t_ns: Ints  # (n,)
    positions: Floats  # (n, 3), in the path's own frame
    orientations: Floats  # (n, 4)
    covariance_sums: Floats  # (n, 6, 6), of the steps, each in the axes of the body
    gap_count: Ints  # (n,), number of gaps until then

    @classmethod
    def from_steps(cls, steps: Sequence[OdometryStep], per_metre: float, per_radian: float) -> PosePath:
        """Return the path of steps. Those without covariance have errors that grow with their size."""
        t_ns, transforms, gap_count = _join(steps)
        poses = np.empty((len(t_ns), 4, 4))
        poses[0] = np.eye(4)
        for i, each in enumerate(transforms):
            poses[i + 1] = poses[i] @ each
        default = _default_covariances(transforms, per_metre, per_radian)
        given = {step.t_ns: step.covariance for step in steps if step.covariance is not None}
        covariances = [given.get(t, default[i]) for i, t in enumerate(t_ns[1:].tolist())]
        scaled = np.array(covariances).reshape(-1, 6, 6) / _trusts(steps, t_ns)[:, None, None] ** 2
        orientations, positions = se3.to_quaternion(poses)
        return cls(t_ns, positions, orientations, _cumulative_sum(scaled), gap_count)

    def poses(self, t_ns: Ints) -> Floats:
        """Return poses (m, 4, 4) at times (m,), in the path's own frame."""
        position, orientation = interpolation.interpolate_poses(
            self.t_ns, self.positions, self.orientations, t_ns, CONSTANT_OUTSIDE
        )
        return se3.from_quaternion(orientation, position)

    def between(self, from_ns: Ints, to_ns: Ints) -> tuple[Floats, Floats, Mask]:
        """Return T_from_to (m, 4, 4), its covariance (m, 6, 6), and whether it was measured without a gap."""
        sums = self.covariance_sums.reshape(-1, 36)
        a, b = (
            interpolation.interpolate_columns(self.t_ns, sums, each, CONSTANT_OUTSIDE)
            for each in (from_ns, to_ns)
        )
        known = _without_gap(
            self.t_ns, self.gap_count, np.minimum(from_ns, to_ns), np.maximum(from_ns, to_ns)
        )
        transform = se3.invert(self.poses(from_ns)) @ self.poses(to_ns)
        covariance = np.where(to_ns < from_ns, -1.0, 1.0)[:, None] * (b - a)
        return transform, covariance.reshape(-1, 6, 6), known


def _uncertain_motion(t_ns: Ints, transforms: Floats, motion: Floats) -> Floats:
    """Return (n, 4): m and rad of each step after a start, m of jumps, and m2 of speed noise."""
    starts, speed_noise = WheelStartDetector(), WheelSpeedNoise()
    result, manoeuvre_end = np.zeros((len(motion), 4)), -np.inf
    for i, transform in enumerate(transforms):
        step = OdometryStep("", int(t_ns[i]), int(t_ns[i + 1]), transform, planar=True)
        starts.add(step)
        speed_noise.add(step)
        manoeuvre_end = t_ns[i] + MANOEUVRE_NS if starts.starts else manoeuvre_end
        if t_ns[i] < manoeuvre_end:
            result[i, :2] = np.hypot(*motion[i, :2]), abs(motion[i, 2])
        result[i, 2:] = starts.jump * WHEEL_JUMP_S, speed_noise.density * (t_ns[i + 1] - t_ns[i]) / NS
    return result


def _join(steps: Sequence[OdometryStep]) -> tuple[Ints, Floats, Ints]:
    """Return times (n,), transforms (n - 1, 4, 4) between them, and the number of gaps until then (n,)."""
    if not steps:
        raise TimeError("there is no odometry to make a path of")
    t_ns, transforms, gap_count = [steps[0].start_ns], list[Floats](), [0]
    for step in steps:
        if step.t_ns <= t_ns[-1]:
            continue  # it overlaps the last one: two sources of one name
        if step.start_ns > t_ns[-1]:
            t_ns.append(step.start_ns)
            transforms.append(np.eye(4))
            gap_count.append(gap_count[-1] + 1)
        t_ns.append(step.t_ns)
        transforms.append(step.transform)
        gap_count.append(gap_count[-1])
    return np.array(t_ns), np.array(transforms).reshape(-1, 4, 4), np.array(gap_count)


def _trusts(steps: Sequence[OdometryStep], t_ns: Ints) -> Floats:
    """Return the trust of each step (n - 1,) of a joined path."""
    given = {step.t_ns: step.trust for step in steps}
    return np.array([given.get(t, 1.0) for t in t_ns[1:].tolist()])


def _without_gap(t_ns: Ints, gap_count: Ints, from_ns: Ints, to_ns: Ints) -> Mask:
    """Return for each interval (m,) whether a path was measured from its start to its end."""
    first = np.searchsorted(t_ns, from_ns, side="right") - 1
    last = np.searchsorted(t_ns, to_ns, side="left")
    inside = (first >= 0) & (last < len(t_ns))
    return inside & (gap_count[np.minimum(last, len(t_ns) - 1)] == gap_count[np.maximum(first, 0)])


def _default_covariances(transforms: Floats, per_metre: float, per_radian: float) -> Floats:
    """Return covariances (n, 6, 6) of steps whose sigma grows with the root of distance and turn."""
    distance = np.linalg.norm(transforms[:, :3, 3], axis=1)
    turn = np.linalg.norm(rotations.rotation_vector_from_matrix(transforms[:, :3, :3]), axis=1)
    translation = (per_metre**2 * distance + 1e-6)[:, None] * np.ones(3)
    rotation = (per_radian**2 * (turn + distance / 10) + 1e-8)[:, None] * np.ones(3)
    return np.einsum("ni,ij->nij", np.concatenate([translation, rotation], axis=1), np.eye(6))


def _cumulative_sum(steps: Floats) -> Floats:
    return np.concatenate([np.zeros((1, *steps.shape[1:])), np.cumsum(steps, axis=0)])


def _midpoints(values: Floats) -> Floats:
    return (values[1:] + values[:-1]) / 2
