"""A scan on the map, and the motion while it was swept: eighteen unknowns, found together.

A sensor that is shaken moves otherwise during a scan than since the one before. Straightened by that motion,
the sides of a scan lie some centimetres too high or too low; ground holds a scan far more firmly in height
than along itself, so that the whole gives way sideways, by several centimetres. The sides tell: cut into
slices by time, each of which says how it wants to move, a scan shows how fast the sensor turned, and that it
did not turn evenly: wheels that go over stones shake it five times a second. How fast it went on is told
better by the scan before: both velocities are tied by how quickly bodies change theirs.

Where a beam meets the ground aslant, only what faces the sensor is seen of it. What falls away behind each
rise is hidden, so that such ground seems to lie higher than it does when the sensor has come near, and most
where it slopes away. A scan that is laid on it comes to lie too far ahead: by 3 mm on rough ground, in each
step the same way, which is a scale of 0.1 %. So points that are met aslant are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.geometry import rotations, se3

from ..clouds.deskewing import transform_each
from ..registration.gicp import NEIGHBOURS, Aligned, Limits, Prepared, describe, thin_and_meet

SLICES = 16
"""Of a scan, with as many points each: short enough that each is rigid."""
ASLANT = 0.13
"""Sine of the angle between beam and surface, 7.5 degrees, below which a point is left out."""
ENOUGH = 20
"""Points of a thinned slice, the steepest, that are kept in any case: fewer hold it badly."""
ACCELERATION = (0.5, 1.0)
"""Sigma, m/s2 and rad/s2, of what lies between the velocity in a scan and that since the one before."""
UNEVEN = (0.5, 8.0)
"""Sigma, rad/s2 and rad/s3, of how turns grow with the square and the cube of time."""
SHARED = 1000.0
"""Variances are so much larger than if the errors of points were independent (`unsteadiness`)."""
FULL, SHORTER = 5, 0.7
"""Steps of full length; later ones are ever shorter, since points change to and fro between two partners."""
DAMPING = 1e-3
"""Keeps a motion that nothing holds where it is, as in the library."""
ORDER = 1 + len(UNEVEN)
"""The highest power of time by which the sensor moves about its middle."""
FREE = np.flatnonzero([[True] * 6] * 2 + [[False] * 3 + [True] * 3] * (ORDER - 1))
"""Of the coefficients (ORDER + 1, 6) of all powers, the unknowns: of high ones only turns are felt."""


class Target(Protocol):
    """What a scan is laid on."""

    def align(self, scan: Prepared, guess: ArrayLike, limits: Limits | None = None) -> Aligned: ...


@dataclass(frozen=True, eq=False)
class Slice:
    """Points of a part of a scan, thinned, which were measured so many seconds after its middle."""

    cloud: Prepared
    seconds: float


@dataclass(frozen=True, eq=False)
class Before:
    """The pose (4, 4) of the scan before, and how long ago its middle was, s."""

    pose: Floats
    seconds: float

    def velocity_to(self, pose: Floats) -> Floats:
        """Return the mean velocity (6,) since then, in the sensor's axes."""
        return se3.log(se3.invert(self.pose) @ pose) / self.seconds


@dataclass(frozen=True, eq=False)
class Sweep:
    """Where a sensor was while it scanned.

    Attributes
    ----------
    pose : (4, 4)
        ``T_target_sensor`` at the middle of the scan.
    motion : (ORDER, 6)
        About the middle, in the sensor's axes: by seconds, their squares and their cubes.
    span : (2,)
        Seconds from the middle between which that holds; before and after by the velocity of the middle.
    half_ns : int
        From the scan's time to its middle.
    """

    pose: Floats
    motion: Floats
    span: tuple[float, float]
    half_ns: int

    def poses_at(self, offset_ns: Ints) -> Floats:
        """Return ``T_target_sensor`` (n, 4, 4) so many ns (n,) after the scan's time."""
        return self.pose @ se3.exp(self._twists_to(offset_ns))

    def straighten(self, points: Floats, offset_ns: Ints) -> Floats:
        """Return points (n, 3), measured so many ns (n,) after the scan's time, as they were at that time."""
        [begin] = self.poses_at(np.zeros(1, np.int64))
        return se3.apply(se3.invert(begin) @ self.pose, transform_each(points, self._twists_to(offset_ns)))

    def _twists_to(self, offset_ns: Ints) -> Floats:
        """Return how the sensor moved (n, 6) since the middle."""
        seconds = (offset_ns - self.half_ns) / NS
        within = np.clip(seconds, *self.span)
        return _powers(within) @ self.motion + (seconds - within)[:, None] * self.motion[0]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A scan on its target.

    Attributes
    ----------
    aligned : Aligned
        Of the whole scan at its middle.
    motion : (ORDER, 6)
        Of the sensor about its middle, in its own axes: by seconds, their squares and their cubes.
    clouds, seconds, bends : sequence of Prepared, (k,), (k, 4, 4)
        Its slices, when each was measured, and how it moves to lie straight with the others.
    """

    aligned: Aligned
    motion: Floats
    clouds: Sequence[Prepared]
    seconds: Floats
    bends: Floats

    @property
    def velocity(self) -> Floats:
        """(6,) at the middle."""
        return self.motion[0]

    def sweep(self, half_ns: int) -> Sweep:
        """Return where the sensor was during the scan, whose middle is so many ns after its time."""
        span = float(self.seconds[0]), float(self.seconds[-1])
        return Sweep(self.aligned.T_target_source, self.motion, span, half_ns)

    @property
    def points(self) -> Floats:
        """(n, 3), straightened to the middle."""
        return np.concatenate([se3.apply(T, c.points) for T, c in zip(self.bends, self.clouds, strict=True)])

    @property
    def share(self) -> float:
        """Of the points, that have a partner."""
        return self.aligned.inliers / max(sum(len(cloud) for cloud in self.clouds), 1)

    def fits(self, least_share: float) -> bool:
        """Tell whether it came to rest, with so large a share."""
        return self.aligned.converged and self.share >= least_share


def cut(points: Floats, seconds: Floats | None, voxel: float) -> list[Slice]:
    """Return slices of points (n, 3) by their seconds (n,) from the middle; one slice if these are None.

    Points that the sensor met aslant are left out as long as enough are kept, and slices of which too few
    are left, unless all are such.
    """
    when = np.zeros(len(points)) if seconds is None else seconds
    order = np.argsort(when, kind="stable")
    rows = [part for part in np.array_split(order, 1 if seconds is None else SLICES) if len(part)]
    thinned = [thin_and_meet(points[part], voxel) for part in rows]
    clouds = [describe(places[are_steep(sine)]) for places, sine in thinned]
    slices = [Slice(cloud, float(when[part].mean())) for cloud, part in zip(clouds, rows, strict=True)]
    return [each for each in slices if len(each.cloud) > NEIGHBOURS] or slices


def are_steep(sine: Floats) -> Mask:
    """Tell which points (n,) of a slice are not met aslant, by the sines of their angles; `ENOUGH` always."""
    return sine >= np.sort(sine)[-ENOUGH:][:1].min(initial=ASLANT)


def bend(motion: Floats, seconds: Floats) -> Floats:
    """Return how the sensor moved (k, 4, 4) so many seconds (k,) after its middle, by a motion (ORDER, 6)."""
    return se3.exp(_powers(seconds) @ motion)


def _powers(seconds: Floats) -> Floats:
    """Return seconds (n,), their squares and so on (n, ORDER)."""
    return seconds[:, None] ** np.arange(1, ORDER + 1)


def fit(
    target: Target, slices: Sequence[Slice], guess: Floats, velocity: Floats, before: Before, limits: Limits
) -> Fitted:
    """Find the pose of a scan's middle and the motion during it, by Gauss and Newton.

    Parameters
    ----------
    slices : sequence of Slice
        Straightened to the middle by a velocity.
    guess : (4, 4)
        ``T_target_scan`` to begin with.
    velocity : (6,)
        By which they were straightened, in the sensor's axes.
    before : Before
    limits : Limits

    Returns
    -------
    Fitted
    """
    steady = np.zeros((ORDER, 6))
    steady[0] = velocity
    pose, motion, once = guess, steady, replace(limits, iterations=1)
    clouds, seconds = [each.cloud for each in slices], np.array([each.seconds for each in slices])
    bends = np.tile(np.eye(4), (len(slices), 1, 1))
    rests, iteration, total = False, 0, _Sum.of((), seconds[:0])
    while not rests and iteration < limits.iterations:
        parts = [target.align(cloud, T, once) for cloud, T in zip(clouds, pose @ bends, strict=True)]
        total = _Sum.of(parts, seconds)
        step = total.step(before, pose, motion) * SHORTER ** max(iteration - FULL, 0)
        pose, motion = pose @ se3.exp(step[0]), motion + step[1:]
        bends = bend(motion - steady, seconds)
        moved, turned = np.linalg.norm(step[0, :3]), np.linalg.norm(step[0, 3:])
        rests, iteration = bool(moved < limits.translation and turned < limits.rotation), iteration + 1
    hessian, gradient = total.hessian[:6, :6], total.gradient[:6]
    aligned = Aligned(rigid(pose), rests, iteration, total.inliers, total.error, hessian, gradient)
    return Fitted(aligned, motion, clouds, seconds, bends)


@dataclass(frozen=True, eq=False)
class _Sum:
    """What all slices say: half the sum of squares, its curvature (18, 18) and its slope (18,)."""

    hessian: Floats
    gradient: Floats
    error: float
    inliers: int

    @classmethod
    def of(cls, parts: Sequence[Aligned], seconds: Floats) -> _Sum:
        """Return the sum over slices, which were measured so many seconds (k,) after the middle."""
        powers = seconds ** np.arange(ORDER + 1)[:, None]
        curves = np.array([part.hessian for part in parts]).reshape(-1, 6, 6)
        slopes = np.array([part.gradient for part in parts]).reshape(-1, 6)
        size = 6 * (ORDER + 1)
        hessian = np.einsum("is,js,skl->ikjl", powers, powers, curves).reshape(size, size)
        error, inliers = sum(part.error for part in parts), sum(part.inliers for part in parts)
        return cls(hessian[FREE[:, None], FREE], (powers @ slopes).reshape(size)[FREE], error, inliers)

    def step(self, before: Before, pose: Floats, motion: Floats) -> Floats:
        """Return the step (ORDER + 1, 6) to the best pose and motion.

        The velocity is tied to the mean one since the scan before, and turns are as even as the scan allows.
        """
        size, rest = len(FREE), len(FREE) - 12
        sigma = np.repeat(ACCELERATION, 3) * before.seconds / 2
        tie = np.hstack([-np.eye(6) / before.seconds, np.eye(6), np.zeros((6, rest))]) / sigma[:, None]
        apart = (motion[0] - before.velocity_to(pose)) / sigma
        even = np.concatenate([np.zeros(12), np.repeat(UNEVEN, 3) ** -2.0])
        weight = SHARED * 2 * self.error / max(3 * self.inliers - size, 1)
        hessian = self.hessian + weight * (tie.T @ tie + np.diag(even)) + DAMPING * np.eye(size)
        found = np.concatenate([np.zeros(6), motion.ravel()])[FREE]
        slope = self.gradient + weight * (tie.T @ apart + even * found)
        step = np.zeros(6 * (ORDER + 1))
        step[FREE] = np.linalg.solve(hessian, -slope)
        return step.reshape(ORDER + 1, 6)


def rigid(transform: Floats) -> Floats:
    """Return a transform (4, 4) whose rotation is one again: errors of rounding double with each product."""
    return se3.from_matrix(rotations.nearest_rotation(transform[:3, :3]), transform[:3, 3])
