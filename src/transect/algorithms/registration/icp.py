"""ICP as in PCL, CloudCompare and libpointmatcher (Table 5 of CDFF), and a test of ambiguity.

Each iteration pairs every source point with the nearest sink point, selects pairs, and moves the source by
the best fit. The libraries differ in the points that they use, the selection of pairs, the cost, and the
convergence criterion. All of them work on one scale, so they need a good initial guess.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.geometry import align, rotations, se3

PairSelection = Callable[[Floats], Mask]
"""Takes the distances (n,) of all pairs, and returns which pairs are used."""
MotionFit = Callable[[Floats, Ints], Floats | None]
"""Takes points (k, 3) and the rows (k,) of their matches, and returns a motion (4, 4), or None."""
ConvergenceTest = Callable[[Floats, float], bool]
"""Takes a motion (4, 4) and the RMS distance (m) before it, and returns whether ICP has converged."""


@dataclass(frozen=True)
class AmbiguitySettings:
    """Settings of the search for an alternative pose."""

    min_points: int = 2000  # of each cloud; single corners are too few to test for ambiguity
    restart_voxels: float = 3.0  # offset of the restarts, in six directions
    max_source_points: int = 2000
    max_sink_points: int = 15000
    points_per_normal: int = 7  # as of `IcpMatcher`
    pair_fraction: float = 0.85  # of the nearest pairs, which are used; as of `IcpMatcher`
    max_iterations: int = 20
    # Convergence: mean step over the last ones
    min_step_m: float = 0.002
    min_step_rad: float = 0.02
    averaged_steps: int = 3


AMBIGUITY = AmbiguitySettings()


@dataclass(frozen=True)
class IcpResult:
    """Pose of the source in the sink, and convergence."""

    matrix: Floats  # T_sink_source (4, 4)
    converged: bool
    iterations: int


def run_icp(
    source: Floats,
    sink: Floats,
    initial: Floats,
    select_pairs: PairSelection,
    fit_motion: MotionFit,
    has_converged: ConvergenceTest,
    max_iterations: int,
    min_pairs: int = 10,
) -> IcpResult:
    """Align a source (n, 3) to a sink (m, 3), starting from ``T_sink_source``.

    It fails if fewer than `min_pairs` pairs are selected.
    """
    from scipy.spatial import KDTree

    tree, T_sink_source = KDTree(sink), initial
    for step in range(max_iterations):
        moved = se3.apply(T_sink_source, source)
        found = tree.query(moved)
        distance, match = np.asarray(found[0]), np.asarray(found[1], dtype=np.int64)
        used = select_pairs(distance)
        if np.count_nonzero(used) < min_pairs:
            return IcpResult(T_sink_source, False, step)
        motion = fit_motion(moved[used], match[used])
        if motion is None:
            return IcpResult(T_sink_source, False, step)
        T_sink_source = motion @ T_sink_source
        if has_converged(motion, float(np.sqrt(np.mean(distance[used] ** 2)))):
            return IcpResult(T_sink_source, True, step + 1)
    return IcpResult(T_sink_source, False, max_iterations)


# Selection of pairs


def select_near_pairs(max_distance_m: float) -> PairSelection:
    """Select pairs at most `max_distance_m` apart."""
    return lambda distance: distance <= max_distance_m


def select_nearest_pairs(fraction: float) -> PairSelection:
    """Select this fraction of the pairs, the nearest ones."""
    return lambda distance: distance <= np.quantile(distance, fraction)


# Cost


def point_to_point(sink: Floats) -> MotionFit:
    """Minimise distances between points (Umeyama)."""

    def fit_motion(points: Floats, match: Ints) -> Floats | None:
        try:
            return align.umeyama(points, sink[match]).matrix
        except GeometryError:  # collinear
            return None

    return fit_motion


def point_to_plane(sink: Floats, normals: Floats) -> MotionFit:
    """Minimise distances to the tangent planes of the matches, linearised for small angles."""

    def fit_motion(points: Floats, match: Ints) -> Floats | None:
        normal = normals[match]
        jacobian = np.concatenate([normal, np.cross(points, normal)], axis=1)
        offset = np.einsum("ni,ni->n", normal, sink[match] - points)
        solved = np.linalg.lstsq(jacobian.T @ jacobian, jacobian.T @ offset, rcond=1e-12)[0]
        return se3.from_matrix(rotations.matrix_from_rotation_vector(solved[3:]), solved[:3])

    return fit_motion


# Convergence


@dataclass
class SmallStep:
    """PCL: the squared step (m^2) and 1 - cos of the angle are small, or the error is stationary."""

    step: float  # limit of both
    change: float  # limit of the relative change of the mean squared distance
    previous: float = np.inf

    def __call__(self, motion: Floats, rms: float) -> bool:
        turned = 1 - (np.trace(motion[:3, :3]) - 1) / 2
        previous_square, self.previous = self.previous, rms**2
        small = turned <= self.step and motion[:3, 3] @ motion[:3, 3] <= self.step
        return bool(small or abs(self.previous - previous_square) < self.change * previous_square)


@dataclass
class SmallImprovement:
    """CloudCompare: the RMS distance decreases by less than a limit, or increases."""

    min_gain_m: float
    previous: float = np.inf

    def __call__(self, motion: Floats, rms: float) -> bool:
        gain, self.previous = self.previous - rms, rms
        return gain < self.min_gain_m


@dataclass
class SmallMeanStep:
    """libpointmatcher: the mean of the last steps is below a limit, in m and in rad."""

    translation: float
    rotation: float
    length: int
    last: deque[tuple[float, float]] = field(default_factory=deque[tuple[float, float]])

    def __call__(self, motion: Floats, rms: float) -> bool:
        angle = float(np.linalg.norm(rotations.rotation_vector_from_matrix(motion[:3, :3])))
        self.last.append((float(np.linalg.norm(motion[:3, 3])), angle))
        if len(self.last) > self.length:
            self.last.popleft()
        moved, turned = np.mean(self.last, axis=0)
        return bool(len(self.last) == self.length and moved < self.translation and turned < self.rotation)


# Selection of points


def sample_points(points: Floats, max_count: int, rng: np.random.Generator) -> Floats:
    """Return at most `max_count` of the points (n, 3), at random."""
    if len(points) <= max_count:
        return points
    return points[np.sort(rng.choice(len(points), max_count, replace=False))]


def sample_surface(
    points: Floats, size: int, fraction: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return a random fraction of points (n, 3), with normals (k, 3) of boxes of at most `size` points.

    Boxes are split at the median of their longest side until they are small enough.
    """
    order, starts = _split_boxes(points, size)
    count = np.diff(np.append(starts, len(points)))
    box = np.repeat(np.arange(len(starts)), count)
    sorted_points = points[order]
    mean = np.add.reduceat(sorted_points, starts) / count[:, None]
    offset = sorted_points - mean[box]
    scatter = np.add.reduceat(np.einsum("ni,nj->nij", offset, offset), starts)
    normals = np.linalg.eigh(scatter)[1][:, :, 0][box]
    chosen = (rng.random(len(points)) < fraction) & (count[box] > 2)
    return sorted_points[chosen], normals[chosen]


def _split_boxes(points: Floats, size: int) -> tuple[Ints, Ints]:
    """Return an order (n,) of the points by boxes of at most `size` points, and the start of each box."""
    order, starts = np.arange(len(points)), np.zeros(1, np.int64)
    while (count := np.diff(np.append(starts, len(points)))).max() > size:
        ordered = points[order]
        longest = np.argmax(
            np.maximum.reduceat(ordered, starts) - np.minimum.reduceat(ordered, starts), axis=1
        )
        box = np.repeat(np.arange(len(starts)), count)
        order = order[np.lexsort((ordered[np.arange(len(ordered)), longest[box]], box))]
        middle = (starts + count // 2)[count > size]
        starts = np.sort(np.concatenate([starts, middle]))
    return order, starts


# Ambiguity


class AlternativePose(NamedTuple):
    """The best alternative pose."""

    ratio: float  # its RMS distance over that of the result
    distance: float  # from the result, m


def find_alternative_pose(
    source: Floats, sink: Floats, found: Floats, voxel: float, settings: AmbiguitySettings = AMBIGUITY
) -> AlternativePose | None:
    """Restart ICP around ``T_sink_source`` (4, 4); return the best alternative, None without one.

    On repetitive ground ICP converges from any start, with full overlap and well constrained, but half a
    metre off. A restart a few voxels away then finds a pose that fits as well or better; around the correct
    pose all alternatives fit much worse.

    Parameters
    ----------
    source, sink : (n, 3), (m, 3) array
    voxel : float
        Distance of a separate pose, m.
    """
    from scipy.spatial import KDTree

    if min(len(source), len(sink)) < settings.min_points:
        return None
    rng = np.random.default_rng(0)
    source_sample = sample_points(source, settings.max_source_points, rng)
    sink_points = sample_points(sink, settings.max_sink_points, rng)
    sink_sample, normals = sample_surface(sink_points, settings.points_per_normal, 1.0, rng)
    tree, fit_motion = KDTree(sink_sample), point_to_plane(sink_sample, normals)

    def trimmed_rms(T_sink_source: Floats) -> float:
        distance = np.asarray(tree.query(se3.apply(T_sink_source, source_sample))[0])
        near = distance <= np.quantile(distance, settings.pair_fraction)
        return float(np.sqrt(np.mean(distance[near] ** 2)))

    alternatives: list[AlternativePose] = []
    rms, centre = trimmed_rms(found), source_sample.mean(axis=0)
    for axis in (*np.eye(3), *-np.eye(3)):
        initial = found.copy()
        initial[:3, 3] += settings.restart_voxels * voxel * axis
        converged = SmallMeanStep(settings.min_step_m, settings.min_step_rad, settings.averaged_steps)
        T_sink_source = run_icp(
            source_sample,
            sink_sample,
            initial,
            select_nearest_pairs(settings.pair_fraction),
            fit_motion,
            converged,
            settings.max_iterations,
        ).matrix
        distance_m = float(np.linalg.norm(se3.apply(T_sink_source, centre) - se3.apply(found, centre)))
        if distance_m > voxel:
            alternatives.append(
                AlternativePose(trimmed_rms(T_sink_source) / rms if rms > 0 else np.inf, distance_m)
            )
    return min(alternatives, default=None)
