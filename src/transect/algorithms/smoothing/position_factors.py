"""Measured positions, hung on the keyframes nearest to them in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.geometry import interpolation, rotations, se3
from transect.types import Record

from ..fusion.innovation_gate import POWER, USUAL, limit, minimal_detectable
from ..fusion.measurements import FLAT_STD, Place
from ..fusion.quality import Tally
from .odometry_paths import PlanarPath, PosePath

CORRELATED = 30.0
"""Seconds over which errors of a fix that is no RTK fix are alike: the ionosphere and multipath."""
COMMON_PART = 0.75
"""Of a fix's variance is in common with those before and after, where errors last."""
GATE = 16.27
"""Of the NIS of a position in three dimensions: of those that fit, one in a thousand exceeds it."""
ON_THE_WAY = 0.05
"""Relative error of the motion between a keyframe and a position near it."""


@dataclass(frozen=True, eq=False)
class Hung:
    """Positions of points that are fixed to the bodies of keyframes.

    Attributes
    ----------
    keyframe : (m,)
        Index of the nearest.
    arm : (m, 3)
        Where the point is in that body's axes, m.
    position, sigma : (m, 3)
        Where it was measured, and one sigma, m.
    """

    keyframe: Ints
    arm: Floats
    position: Floats
    sigma: Floats

    def __len__(self) -> int:
        return len(self.keyframe)

    def predict(self, poses: Floats, covariances: Floats) -> tuple[Floats, Floats]:
        """Return the points (m, 3) by poses (n, 4, 4) of the keyframes, and their covariances (m, 3, 3).

        `covariances` (n, 6, 6) are of translation, then rotation vector, in the poses' frame.
        """
        return move_points(poses[self.keyframe], covariances[self.keyframe], self.arm)


@dataclass(frozen=True, eq=False)
class Judged:
    """How well positions fit.

    Attributes
    ----------
    nis : (m,)
        Of each position against all others, 3 degrees of freedom.
    used : (m,)
        Which were not left out.
    detectable : (m,)
        Size in m of the error that would be found with a probability of 0.8, in its worst direction.
    """

    nis: Floats
    used: NDArray[np.bool_]
    detectable: Floats

    def part(self, part: slice) -> Judged:
        """Return those of some positions."""
        return Judged(self.nis[part], self.used[part], self.detectable[part])

    def __str__(self) -> str:
        if not len(self.nis):
            return "no positions"
        below, left_out = np.mean(self.nis <= limit(USUAL, 3)), np.count_nonzero(~self.used)
        usual, worst = np.median(self.detectable), np.max(self.detectable)
        return (
            f"{len(self.nis)} positions, {below:.1%} of their NIS below the 95 % limit, {left_out} left out; "
            f"an error of {usual:.3g} m (at the worst time {worst:.3g} m) "
            f"is found with a probability of {POWER:g}"
        )


def join(parts: Sequence[Judged]) -> Judged:
    """Return all of them as one."""
    if not parts:
        return Judged(np.zeros(0), np.zeros(0, np.bool_), np.zeros(0))
    return Judged(*(np.concatenate([getattr(each, f.name) for each in parts]) for f in fields(Judged)))


def judge(hung: Hung, used: NDArray[np.bool_], poses: Floats, covariances: Floats) -> Judged:
    """Hold each position against the solution by all others.

    A position that took part has drawn the solution towards itself. What it is off by then has the covariance
    ``R - P``, and the NIS by that is the NIS of the innovation had it been left out, ``R (R - P)^-1 r``,
    whose covariance is ``R (R - P)^-1 R``.
    """
    found, P = hung.predict(poses, covariances)
    R = hung.sigma[:, :, None] ** 2 * np.eye(3)
    # Robust weights may let P exceed R a little; a hundredth of the noise is always left.
    left = np.where(used[:, None, None], _at_least(R - P, 0.01 * R), R + P)
    off = hung.position - found
    nis = np.einsum("ni,ni->n", off, np.linalg.solve(left, off[..., None])[..., 0])
    innovation = np.where(used[:, None, None], R @ np.linalg.solve(left, R), left)
    return Judged(nis, used, np.array([minimal_detectable(each) for each in innovation]))


def innovations(places: Sequence[Place], judged: Judged, t_ns: int) -> Record | None:
    """Return how positions fitted, by sensor and in the words of the filter; None if there were none."""
    values: dict[str, Any] = {}
    sensors = np.array([each.sensor for each in places])
    for name, tally in tallies(places, judged).items():
        values[f"{name}_count"] = float(tally.count)
        values[f"{name}_below"] = float(tally.below)
        values[f"{name}_refused"] = float(tally.refused)
        values[f"{name}_nis"] = tally.nis
        values[f"{name}_detectable"] = float(np.max(judged.detectable[sensors == name]))
    return Record(values, t_ns=t_ns) if values else None


def tallies(places: Sequence[Place], judged: Judged) -> dict[str, Tally]:
    """Return, by sensor, how many positions fitted."""
    sensors = np.array([each.sensor for each in places])
    found: dict[str, Tally] = {}
    for name in sorted(set(sensors.tolist())):
        some = sensors == name
        nis = judged.nis[some]
        below, refused = np.count_nonzero(nis <= limit(USUAL, 3)), np.count_nonzero(~judged.used[some])
        found[name] = Tally(len(nis), int(below), int(refused), float(np.mean(nis)) / 3)
    return found


def _at_least(matrices: Floats, floor: Floats) -> Floats:
    """Return symmetric matrices (m, 3, 3), no eigenvalue less than the smallest on `floor`'s diagonal."""
    values, axes = np.linalg.eigh(matrices)
    least = np.min(np.diagonal(floor, axis1=1, axis2=2), axis=1)[:, None]
    return np.einsum("nij,nj,nkj->nik", axes, np.maximum(values, least), axes)


def move_points(poses: Floats, covariances: Floats, arms: Floats) -> tuple[Floats, Floats]:
    """Return points (m, 3) that are fixed to bodies at `arms` (m, 3), and their covariances (m, 3, 3)."""
    reach = np.einsum("nij,nj->ni", poses[:, :3, :3], arms)
    by = np.concatenate([np.tile(np.eye(3), (len(arms), 1, 1)), -rotations.skew(reach)], axis=2)
    return poses[:, :3, 3] + reach, by @ covariances @ np.swapaxes(by, -1, -2)


def hang(
    places: Sequence[Place],
    times: Ints,
    path: PlanarPath | PosePath,
    along: Floats | None = None,
    *,
    widen: bool = True,
) -> Hung:
    """Hang places on keyframes at `times` (n,); the way between the two is the path's.

    `along` (n - 1,) is one sigma of the way between keyframes, m, where the path is the wheels'. `widen`:
    fixes that err alike have sigmas for which all of them together are worth one.
    """
    inside = [each for each in places if times[0] <= each.t_ns <= times[-1]]
    at = np.array([each.t_ns for each in inside], dtype=np.int64)
    if not inside:
        return Hung(np.zeros(0, np.int64), *(np.zeros((0, 3)) for _ in range(3)))
    near = interpolation.nearest_index(times, at)
    lever = np.array([each.lever for each in inside])
    T_near_there = _between(path, times[near], at)
    way = np.linalg.norm(T_near_there[:, :3, 3], axis=1)
    if along is not None:
        within = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(along) - 1)
        share = np.abs(at - times[near]) / np.diff(times)[within]
        way = np.hypot(way, share * along[within] / ON_THE_WAY)
    sigma = np.array([each.std for each in inside])
    sigma = sigma * _widen_repeated(inside) if widen else np.minimum(sigma, FLAT_STD)
    if widen:
        sigma = np.hypot(sigma, [np.zeros(3) if each.lasting is None else each.lasting for each in inside])
    return Hung(
        near,
        se3.apply(T_near_there, lever),
        np.array([each.position for each in inside]),
        np.hypot(sigma, ON_THE_WAY * way[:, None]),
    )


def common_variance(places: Sequence[Place], *, followed: bool) -> Floats:
    """Return the variance (3,) of what fixes err alike, m2, that their sigmas do not have: no fix shows it.

    `followed`: an IMU is all that is beside them, so that sigmas were not widened for it.
    """
    return (
        np.median([_common_of(each, followed=followed) for each in places], axis=0) if places else np.zeros(3)
    )


def _common_of(place: Place, *, followed: bool) -> Floats:
    stated = COMMON_PART * np.minimum(place.std, FLAT_STD) ** 2 if followed else np.zeros(3)
    if place.lasting is not None:
        return np.array([*place.lasting[:2] ** 2, place.lasting[2] ** 2 if place.has_height else stated[2]])
    return stated if not place.white or not place.has_height else np.zeros(3)


def _between(path: PlanarPath | PosePath, from_ns: Ints, to_ns: Ints) -> Floats:
    if isinstance(path, PosePath):
        return path.between(from_ns, to_ns)[0]
    x, y, heading = path.between(from_ns, to_ns).motion.T
    turned = rotations.quaternion_from_euler("z", heading[:, None])
    return se3.from_quaternion(turned, np.column_stack([x, y, np.zeros_like(x)]))


def _widen_repeated(places: Sequence[Place]) -> Floats:
    """Return by how much (m, 3) to widen sigmas: n fixes with one error are worth one, not n."""
    at = np.array([each.t_ns for each in places])
    step = np.median(np.diff(at)) * 1e-9 if len(at) > 1 else CORRELATED
    alike = np.sqrt(max(1.0, 2 * CORRELATED / max(float(step), 1e-3)))
    wide = np.where([each.white for each in places], 1.0, alike)
    held = [each.has_height for each in places]
    return np.column_stack([wide, wide, np.where(held, wide, 1.0)])
