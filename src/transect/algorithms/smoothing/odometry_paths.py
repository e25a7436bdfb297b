"""Odometry as paths: the motion between any two times, and what a miscalibrated robot does to it.

A path is kept as running sums over its samples, so that the motion from a to b is a difference of two
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

from ..fusion.measurements import Step
from ..fusion.wheel_updates import LEAP, Pace, Shaking

CALIBRATION = 4
"""Numbers that are learnt of wheels: relative errors of lengths and of turns, a curvature in rad/m, and the
angle in rad from the heading to the way, as on a slope."""
ACROSS = np.array([[0.0, 1.0], [-1.0, 0.0]])
"""Turns rows (n, 2) by a right angle to the left."""
MANOEUVRE_NS = 10 * NS
"""After setting off: a body that stood may be shunting, and wheels may not see that it goes back."""
HELD = interpolation.Limits(beyond_ns=2**62)
"""Outside its samples a path stands still; `known` says that it was not measured there."""


@dataclass(frozen=True, eq=False)
class Span:
    """Planar motions between pairs of times.

    Attributes
    ----------
    motion : (m, 3)
        x, y in metres and heading in rad of the later pose in the earlier.
    by_calibration : (m, 3, 4)
        Its derivative by the `CALIBRATION` numbers.
    travelled : (m,)
        Metres on the way, back and forth counted.
    doubted, doubted_turn : (m,)
        Metres and radians of it soon after wheels set off, when they may slip, and mistake their direction.
    leapt : (m,)
        Metres by which the way may be wrong because wheels leapt.
    shaken : (m,)
        Variance of the way, m2, by how unevenly wheels say it: see `Shaking`.
    seconds : (m,)
    known : (m,)
        Whether the path was measured all the way.
    """

    motion: Floats
    by_calibration: Floats
    travelled: Floats
    doubted: Floats
    doubted_turn: Floats
    leapt: Floats
    shaken: Floats
    seconds: Floats
    known: Mask


@dataclass(frozen=True, eq=False)
class PlanarPath:
    """Planar odometry.

    Attributes
    ----------
    t_ns : (n,)
    sums : (n, 13)
        Pose x, y, heading; way driven forwards; two vectors that say how errors of turns and of curvature
        move the end; way with all its parts counted positive, by which the variance grows, and so longer
        where wheels are not trusted; and of what is in doubt, see `Span`.
    broken : (n,)
        Number of times until then that nothing was measured.
    """

    t_ns: Ints
    sums: Floats
    broken: Ints

    @classmethod
    def of(cls, steps: Sequence[Step]) -> PlanarPath:
        """Return the path of steps in the order of time, broken where one does not begin at the last."""
        t_ns, transforms, broken = _join(steps)
        twist = se3.log(transforms)
        motion = twist[:, [0, 1, 5]]
        pose, driven = planar.integrate(motion), _sum_up(motion[:, 0])
        across = np.diff(pose[:, :2], axis=0) @ ACROSS
        by_turn = _sum_up(_take_middles(pose[:, 2])[:, None] * across)
        by_bend = _sum_up(_take_middles(driven)[:, None] * across)
        travelled = np.hypot(*motion[:, :2].T) / _trusts(steps, t_ns) ** 2
        doubts = _sum_up(_doubts(t_ns, transforms, motion))
        return cls(
            t_ns, np.column_stack([pose, driven, by_turn, by_bend, _sum_up(travelled), doubts]), broken
        )

    def poses(self, t_ns: Ints) -> Floats:
        """Return poses (m, 3) at times (m,), in a frame of the path's own."""
        return interpolation.interpolate_columns(self.t_ns, self.sums[:, :3], t_ns, HELD)

    def between(self, from_ns: Ints, to_ns: Ints) -> Span:
        """Return the motions from times (m,) to times (m,), which may be earlier."""
        a, b = (
            interpolation.interpolate_columns(self.t_ns, self.sums, each, HELD) for each in (from_ns, to_ns)
        )
        back = np.swapaxes(planar.rotations_from_headings(a[:, 2]), -1, -2)
        moved, turn = b[:, :2] - a[:, :2], b[:, 2] - a[:, 2]
        wound = b[:, 4:6] - a[:, 4:6] - a[:, 2:3] * (moved @ ACROSS)
        bent = b[:, 6:8] - a[:, 6:8] - a[:, 3:4] * (moved @ ACROSS)
        by = np.zeros((len(turn), 3, CALIBRATION))
        by[:, :2] = back @ np.stack([moved, wound, bent, moved @ ACROSS], axis=-1)
        by[:, 2, 1:3] = np.column_stack([turn, b[:, 3] - a[:, 3]])
        motion = np.column_stack([np.einsum("nij,nj->ni", back, moved), turn])
        way = np.abs(b[:, 8:] - a[:, 8:])
        known = _are_measured(self.t_ns, self.broken, np.minimum(from_ns, to_ns), np.maximum(from_ns, to_ns))
        seconds = np.abs(to_ns - from_ns) * 1e-9
        travelled, doubted, doubted_turn, leapt, shaken = way.T
        return Span(motion, by, travelled, doubted, doubted_turn, leapt, shaken, seconds, known)


@dataclass(frozen=True, eq=False)
class PosePath:
    """Odometry in six degrees of freedom.

    Attributes
    ----------
    t_ns : (n,)
    positions, orientations : (n, 3), (n, 4)
        In a frame of the path's own.
    spread : (n, 6, 6)
        Sum of the covariances of the steps, each in the axes of the body.
    broken : (n,)
        Number of times until then that nothing was measured.
    """

    t_ns: Ints
    positions: Floats
    orientations: Floats
    spread: Floats
    broken: Ints

    @classmethod
    def of(cls, steps: Sequence[Step], per_metre: float, per_radian: float) -> PosePath:
        """Return the path of steps; those that tell no covariance have errors relative to their size."""
        t_ns, transforms, broken = _join(steps)
        poses = np.empty((len(t_ns), 4, 4))
        poses[0] = np.eye(4)
        for i, each in enumerate(transforms):
            poses[i + 1] = poses[i] @ each
        usual = _usual_covariances(transforms, per_metre, per_radian)
        told = {step.t_ns: step.covariance for step in steps if step.covariance is not None}
        each = np.array([told.get(t, usual[i]) for i, t in enumerate(t_ns[1:].tolist())]).reshape(-1, 6, 6)
        each = each / _trusts(steps, t_ns)[:, None, None] ** 2
        attitudes, places = se3.to_quaternion(poses)
        return cls(t_ns, places, attitudes, _sum_up(each), broken)

    def poses(self, t_ns: Ints) -> Floats:
        """Return poses (m, 4, 4) at times (m,), in a frame of the path's own."""
        place, turned = interpolation.interpolate_poses(
            self.t_ns, self.positions, self.orientations, t_ns, HELD
        )
        return se3.from_quaternion(turned, place)

    def between(self, from_ns: Ints, to_ns: Ints) -> tuple[Floats, Floats, Mask]:
        """Return T_from_to (m, 4, 4), its covariance (m, 6, 6), and whether it was measured all the way."""
        sums = self.spread.reshape(-1, 36)
        a, b = (interpolation.interpolate_columns(self.t_ns, sums, each, HELD) for each in (from_ns, to_ns))
        known = _are_measured(self.t_ns, self.broken, np.minimum(from_ns, to_ns), np.maximum(from_ns, to_ns))
        moved = se3.invert(self.poses(from_ns)) @ self.poses(to_ns)
        grown = np.where(to_ns < from_ns, -1.0, 1.0)[:, None] * (b - a)
        return moved, grown.reshape(-1, 6, 6), known


def _doubts(t_ns: Ints, transforms: Floats, motion: Floats) -> Floats:
    """Return what is in doubt of each step (n, 4): m and rad after setting off, m of leaps, m2 of shaking."""
    pace, shaking, doubts, until = Pace(), Shaking(), np.zeros((len(motion), 4)), -np.inf
    for i, transform in enumerate(transforms):
        step = Step("", int(t_ns[i]), int(t_ns[i + 1]), transform, planar=True)
        pace.take(step)
        shaking.take(step)
        until = t_ns[i] + MANOEUVRE_NS if pace.sets_off else until
        if t_ns[i] < until:
            doubts[i, :2] = np.hypot(*motion[i, :2]), abs(motion[i, 2])
        doubts[i, 2:] = pace.leap * LEAP, shaking.density * (t_ns[i + 1] - t_ns[i]) / NS
    return doubts


def _join(steps: Sequence[Step]) -> tuple[Ints, Floats, Ints]:
    """Return times (n,), transforms (n - 1, 4, 4) between them, and how often the steps were broken (n,)."""
    if not steps:
        raise TimeError("there is no odometry to make a path of")
    t_ns, transforms, broken = [steps[0].since_ns], list[Floats](), [0]
    for step in steps:
        if step.t_ns <= t_ns[-1]:
            continue  # it overlaps what is known: two sources of one name
        if step.since_ns > t_ns[-1]:
            t_ns.append(step.since_ns)
            transforms.append(np.eye(4))
            broken.append(broken[-1] + 1)
        t_ns.append(step.t_ns)
        transforms.append(step.transform)
        broken.append(broken[-1])
    return np.array(t_ns), np.array(transforms).reshape(-1, 4, 4), np.array(broken)


def _trusts(steps: Sequence[Step], t_ns: Ints) -> Floats:
    """Return how far each step (n - 1,) of a joined path is trusted."""
    told = {step.t_ns: step.trust for step in steps}
    return np.array([told.get(t, 1.0) for t in t_ns[1:].tolist()])


def _are_measured(t_ns: Ints, broken: Ints, from_ns: Ints, to_ns: Ints) -> Mask:
    """Tell of each span (m,) whether a path was measured from its beginning to its end."""
    first = np.searchsorted(t_ns, from_ns, side="right") - 1
    last = np.searchsorted(t_ns, to_ns, side="left")
    inside = (first >= 0) & (last < len(t_ns))
    return inside & (broken[np.minimum(last, len(t_ns) - 1)] == broken[np.maximum(first, 0)])


def _usual_covariances(transforms: Floats, per_metre: float, per_radian: float) -> Floats:
    """Return covariances (n, 6, 6) of steps whose sigma grows with the root of the way and of the turn."""
    way = np.linalg.norm(transforms[:, :3, 3], axis=1)
    turn = np.linalg.norm(rotations.rotation_vector_from_matrix(transforms[:, :3, :3]), axis=1)
    place = (per_metre**2 * way + 1e-6)[:, None] * np.ones(3)
    angle = (per_radian**2 * (turn + way / 10) + 1e-8)[:, None] * np.ones(3)
    return np.einsum("ni,ij->nij", np.concatenate([place, angle], axis=1), np.eye(6))


def _sum_up(steps: Floats) -> Floats:
    return np.concatenate([np.zeros((1, *steps.shape[1:])), np.cumsum(steps, axis=0)])


def _take_middles(values: Floats) -> Floats:
    return (values[1:] + values[:-1]) / 2
