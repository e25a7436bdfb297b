"""Iterative closest points as three libraries do it: PCL, CloudCompare and libpointmatcher (CDFF's Table 5).

Each step pairs every point of the source with the nearest of the sink, keeps some pairs, moves the source by
what fits these best, and asks whether that was enough. The libraries differ in which points take part, which
pairs are kept, what a good fit is, and when it ends. All of them do it on one scale, so they must begin near.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.geometry import align, rotations, se3

LEAST_PAIRS = 10
"""Fewer pairs of points do not tell a motion from chance."""

Keep = Callable[[Floats], Mask]
"""Takes the distances (n,) of all points to their partners, and returns which pairs count."""
Fit = Callable[[Floats, Ints], Floats | None]
"""Takes points (k, 3) and the rows (k,) of their partners, and returns a motion (4, 4), or None."""
Settled = Callable[[Floats, float], bool]
"""Takes a motion (4, 4) and the root mean square distance (m) before it; returns whether that was enough."""


@dataclass(frozen=True)
class Closest:
    """``T_sink_source`` (4, 4), whether the last steps were small, and how many steps there were."""

    matrix: Floats
    converged: bool
    iterations: int


def iterate(
    source: Floats, sink: Floats, begin: Floats, keep: Keep, fit: Fit, settled: Settled, most: int
) -> Closest:
    """Lay the source (n, 3) on the sink (m, 3), from ``T_sink_source`` on, in `most` steps at most."""
    from scipy.spatial import KDTree

    tree, place = KDTree(sink), begin
    for step in range(most):
        moved = se3.apply(place, source)
        found = tree.query(moved)
        distance, partner = np.asarray(found[0]), np.asarray(found[1], dtype=np.int64)
        used = keep(distance)
        if np.count_nonzero(used) < LEAST_PAIRS:
            return Closest(place, False, step)
        motion = fit(moved[used], partner[used])
        if motion is None:
            return Closest(place, False, step)
        place = motion @ place
        if settled(motion, float(np.sqrt(np.mean(distance[used] ** 2)))):
            return Closest(place, True, step + 1)
    return Closest(place, False, most)


# Which pairs count


def keep_near(reach: float) -> Keep:
    """Keep pairs at most `reach` metres apart."""
    return lambda distance: distance <= reach


def keep_nearest(share: float) -> Keep:
    """Keep this share of the pairs, those that are nearest."""
    return lambda distance: distance <= np.quantile(distance, share)


# What fits best


def fit_points(sink: Floats) -> Fit:
    """Least distances between points and partners."""

    def fit(points: Floats, partner: Ints) -> Floats | None:
        try:
            return align.umeyama(points, sink[partner]).matrix
        except GeometryError:  # all on a line
            return None

    return fit


def fit_planes(sink: Floats, normals: Floats) -> Fit:
    """Least distances of the points from the planes through their partners; a small turn, made linear."""

    def fit(points: Floats, partner: Ints) -> Floats | None:
        normal = normals[partner]
        slopes = np.concatenate([normal, np.cross(points, normal)], axis=1)
        away = np.einsum("ni,ni->n", normal, sink[partner] - points)
        solved = np.linalg.lstsq(slopes.T @ slopes, slopes.T @ away, rcond=1e-12)[0]
        return se3.from_matrix(rotations.matrix_from_rotation_vector(solved[3:]), solved[:3])

    return fit


# When it ends


@dataclass
class SmallStep:
    """PCL: the square of the step (m^2) and 1 - cos of the turn are small, or the error stays as it is.

    Attributes
    ----------
    step : float
        Limit of both.
    change : float
        Limit of the change of the mean square distance, as a share of it.
    """

    step: float
    change: float
    before: float = np.inf

    def __call__(self, motion: Floats, rms: float) -> bool:
        turned = 1 - (np.trace(motion[:3, :3]) - 1) / 2
        square, self.before = self.before, rms**2
        small = turned <= self.step and motion[:3, 3] @ motion[:3, 3] <= self.step
        return bool(small or abs(self.before - square) < self.change * square)


@dataclass
class LittleGain:
    """CloudCompare: the root mean square distance falls by less than `least` metres, or grows."""

    least: float
    before: float = np.inf

    def __call__(self, motion: Floats, rms: float) -> bool:
        gain, self.before = self.before - rms, rms
        return gain < self.least


@dataclass
class CalmSteps:
    """libpointmatcher: the mean of the last steps is below a limit, in metres and in radians."""

    translation: float
    rotation: float
    length: int
    last: deque[tuple[float, float]] = field(default_factory=deque[tuple[float, float]])

    def __call__(self, motion: Floats, rms: float) -> bool:
        turn = float(np.linalg.norm(rotations.rotation_vector_from_matrix(motion[:3, :3])))
        self.last.append((float(np.linalg.norm(motion[:3, 3])), turn))
        if len(self.last) > self.length:
            self.last.popleft()
        moved, turned = np.mean(self.last, axis=0)
        return bool(len(self.last) == self.length and moved < self.translation and turned < self.rotation)


# Which points take part


def pick(points: Floats, most: int, rng: np.random.Generator) -> Floats:
    """Return at most so many of the points (n, 3), chosen at random."""
    if len(points) <= most:
        return points
    return points[np.sort(rng.choice(len(points), most, replace=False))]


def sample_surface(
    points: Floats, size: int, share: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return a random share of points (n, 3), with normals (k, 3) of the boxes of `size` points they are in.

    Boxes are halved at the median of their longest side until they are small enough.
    """
    order, starts = _boxes(points, size)
    count = np.diff(np.append(starts, len(points)))
    box = np.repeat(np.arange(len(starts)), count)
    sorted_points = points[order]
    mean = np.add.reduceat(sorted_points, starts) / count[:, None]
    away = sorted_points - mean[box]
    scatter = np.add.reduceat(np.einsum("ni,nj->nij", away, away), starts)
    normals = np.linalg.eigh(scatter)[1][:, :, 0][box]
    chosen = (rng.random(len(points)) < share) & (count[box] > 2)
    return sorted_points[chosen], normals[chosen]


def _boxes(points: Floats, size: int) -> tuple[Ints, Ints]:
    """Return an order (n,) of the points by boxes of at most `size`, and where in it each box begins."""
    order, starts = np.arange(len(points)), np.zeros(1, np.int64)
    while (count := np.diff(np.append(starts, len(points)))).max() > size:
        part = points[order]
        longest = np.argmax(np.maximum.reduceat(part, starts) - np.minimum.reduceat(part, starts), axis=1)
        box = np.repeat(np.arange(len(starts)), count)
        order = order[np.lexsort((part[np.arange(len(part)), longest[box]], box))]
        middle = (starts + count // 2)[count > size]
        starts = np.sort(np.concatenate([starts, middle]))
    return order, starts
