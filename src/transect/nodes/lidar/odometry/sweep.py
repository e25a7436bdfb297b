"""A scan on the map, and the motion while it was swept: twelve unknowns, found together.

A sensor that is shaken moves otherwise during a scan than since the one before. Straightened by that motion,
the sides of a scan lie some centimetres too high or too low; ground holds a scan far more firmly in height
than along itself, so that the whole gives way sideways, by several centimetres. The sides tell: cut into
slices by time, each of which says how it wants to move, a scan shows how fast the sensor turned. How fast it
went on is told better by the scan before: both velocities are tied by how quickly bodies change theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry import rotations, se3
from transect.nodes.registration._small_gicp import Aligned, Limits, Prepared, thin

SLICES = 8
"""Of a scan, with as many points each: short enough that each is rigid."""
ACCELERATION = (0.5, 1.0)
"""Sigma, m/s2 and rad/s2, of what lies between the velocity in a scan and that since the one before."""
SHARED = 1000.0
"""Variances are so much larger than if the errors of points were independent (`unsteadiness`)."""
FULL, SHORTER = 5, 0.7
"""Steps of full length; later ones are ever shorter, since points change to and fro between two partners."""
DAMPING = 1e-3
"""Keeps a motion that nothing holds where it is, as in the library."""


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
class Fitted:
    """A scan on its target.

    Attributes
    ----------
    aligned : Aligned
        Of the whole scan at its middle.
    velocity : (6,)
        During the scan.
    clouds, bends : sequence of Prepared, (k, 4, 4)
        Its slices, and how each moves to lie straight with the others.
    """

    aligned: Aligned
    velocity: Floats
    clouds: Sequence[Prepared]
    bends: Floats

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
    """Return slices of points (n, 3) by their seconds (n,) from the middle; one slice if these are None."""
    if seconds is None:
        return [Slice(thin(points, voxel), 0.0)]
    order = np.argsort(seconds, kind="stable")
    parts = zip(*(np.array_split(each[order], SLICES) for each in (points, seconds)), strict=True)
    return [Slice(thin(part, voxel), float(when.mean())) for part, when in parts if len(part)]


def fit(
    target: Target, slices: Sequence[Slice], guess: Floats, velocity: Floats, before: Before, limits: Limits
) -> Fitted:
    """Find the pose of a scan's middle and the velocity during it, by Gauss and Newton.

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
    pose, change, once = guess, np.zeros(6), replace(limits, iterations=1)
    clouds, seconds = [each.cloud for each in slices], np.array([each.seconds for each in slices])
    bends = np.tile(np.eye(4), (len(slices), 1, 1))
    rests, iteration, total = False, 0, _Sum.of((), seconds[:0])
    while not rests and iteration < limits.iterations:
        parts = [target.align(cloud, T, once) for cloud, T in zip(clouds, pose @ bends, strict=True)]
        total = _Sum.of(parts, seconds)
        step = total.step(before, pose, velocity + change) * SHORTER ** max(iteration - FULL, 0)
        pose, change = pose @ se3.exp(step[:6]), change + step[6:]
        bends = se3.exp(seconds[:, None] * change)
        moved, turned = np.linalg.norm(step[:3]), np.linalg.norm(step[3:6])
        rests, iteration = bool(moved < limits.translation and turned < limits.rotation), iteration + 1
    hessian, gradient = total.hessian[:6, :6], total.gradient[:6]
    aligned = Aligned(rigid(pose), rests, iteration, total.inliers, total.error, hessian, gradient)
    return Fitted(aligned, velocity + change, clouds, bends)


@dataclass(frozen=True, eq=False)
class _Sum:
    """What all slices say: half the sum of squares, its curvature (12, 12) and its slope (12,)."""

    hessian: Floats
    gradient: Floats
    error: float
    inliers: int

    @classmethod
    def of(cls, parts: Sequence[Aligned], seconds: Floats) -> _Sum:
        """Return the sum over slices, which were measured so many seconds (k,) after the middle."""
        powers = np.stack([np.ones(len(seconds)), seconds])
        curves = np.array([part.hessian for part in parts]).reshape(-1, 6, 6)
        slopes = np.array([part.gradient for part in parts]).reshape(-1, 6)
        hessian = np.einsum("is,js,skl->ikjl", powers, powers, curves).reshape(12, 12)
        error, inliers = sum(part.error for part in parts), sum(part.inliers for part in parts)
        return cls(hessian, (powers @ slopes).reshape(12), error, inliers)

    def step(self, before: Before, pose: Floats, velocity: Floats) -> Floats:
        """Return the step (12,) to the best pose and velocity, which is tied to the mean one since before."""
        sigma = np.repeat(ACCELERATION, 3) * before.seconds / 2
        tie = np.hstack([-np.eye(6) / before.seconds, np.eye(6)]) / sigma[:, None]
        apart = (velocity - before.velocity_to(pose)) / sigma
        weight = SHARED * 2 * self.error / max(3 * self.inliers - 12, 1)
        hessian = self.hessian + weight * tie.T @ tie + DAMPING * np.eye(12)
        slope = self.gradient + weight * tie.T @ apart
        return np.asarray(np.linalg.solve(hessian, -slope), dtype=np.float64)


def rigid(transform: Floats) -> Floats:
    """Return a transform (4, 4) whose rotation is one again: errors of rounding double with each product."""
    return se3.from_matrix(rotations.nearest_rotation(transform[:3, :3]), transform[:3, 3])
