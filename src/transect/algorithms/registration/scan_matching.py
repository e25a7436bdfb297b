"""Correlative matching of planar scans with a likelihood field, and poses in the plane.

The search is a branch and bound over poses: Olson, "Real-time correlative scan matching" (ICRA 2009); Hess et
al., "Real-time loop closure in 2D LIDAR SLAM" (ICRA 2016). Likelihood field: Thrun et al., "Probabilistic
robotics", section 6.4. A planar pose (3,) is x and y in m and the heading in rad.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Mask
from transect.base.cache_folder import load_compiled

MIN_MATCH_SIGMA = np.array([0.01, 0.01, 0.002])  # m, m, rad
PLANAR_AXES = np.array([0, 1, 5])  # x, y and heading in a 6-vector


@dataclass(frozen=True, eq=False)
class ScanMatch:
    """The pose at which a scan fits a field best."""

    pose: Floats  # (3,) of the body in the frame of the field
    covariance: Floats  # (3, 3) in the axes of the field
    score: float  # 0 to 1: mean value of the field at the points
    second_best_ratio: float = 0.0  # score of the best separate pose over this score; 0 without one
    rejected_odometry: Floats = field(default_factory=lambda: np.zeros(3))
    """Contradiction (3,), m, m and rad, of an odometry that the match overrides."""
    odometry_gain: Floats = field(default_factory=lambda: np.zeros((3, 3)))
    """Fraction (3, 3) of the odometry's motion in the pose; 0 if it was not fused with odometry."""


@dataclass(frozen=True)
class SearchWindow:
    """Poses within a radius and an angle to each side of a pose (3,)."""

    pose: Floats
    radius_m: float
    half_angle_rad: float


@dataclass(frozen=True)
class LikelihoodFieldSettings:
    """Settings of a likelihood field, and of matching with it."""

    cell_m: float = 0.05  # edge of a cell
    sigma_m: float = 0.08  # distance from a wall at which the value falls to exp(-1/2)
    inlier_value: int = 128  # of 255: smallest value on a wall

    # Search
    max_pyramid_levels: int = 6
    max_expansions: int = 100_000  # nodes of the search tree; with more, a match is ambiguous
    max_refinement_steps: int = 20
    separation_m: float = 1.0  # from which on a pose is separate from the best one
    separation_rad: float = 0.2

    # Covariance of a match
    independent_points: float = 15.0  # effective sample size: errors of neighbouring points are correlated
    point_noise_m: float = 0.03  # sigma of a point from its wall
    min_curvature_ratio: float = 3e-4  # of the score, relative to that of points that all constrain it


LIKELIHOOD_FIELD = LikelihoodFieldSettings()


class LikelihoodField:
    """Grid of values from 0 to 255 that fall off with the distance from walls.

    Parameters
    ----------
    walls : (n, 2)
        Points on walls, m.
    """

    def __init__(self, walls: Floats, settings: LikelihoodFieldSettings = LIKELIHOOD_FIELD) -> None:
        stamp = load_compiled(__name__, "matching").stamp

        cell_m, sigma_m, self.settings = settings.cell_m, settings.sigma_m, settings
        margin = 4 * sigma_m
        self.cell_m, self.sigma_m = cell_m, sigma_m
        self.origin = np.floor(walls.min(axis=0) - margin)
        size = np.ceil((walls.max(axis=0) + margin - self.origin) / cell_m).astype(np.int64)
        self.grid: NDArray[np.uint8] = np.zeros((size[1], size[0]), np.uint8)
        stamp(self.grid, (walls - self.origin) / cell_m, sigma_m / cell_m)
        self._pyramid: NDArray[np.uint8] = np.zeros((0, 0, 0), np.uint8)

    def pyramid(self, count: int) -> NDArray[np.uint8]:
        """Return maxima (count or more, H, W) over squares of 2^level cells, with a margin in front."""
        if len(self._pyramid) < count:
            rows, columns = self.grid.shape
            margin = 1 << (count - 1)
            levels = np.zeros((count, rows + margin, columns + margin), np.uint8)
            levels[0, margin:, margin:] = self.grid
            for level in range(1, count):
                step, previous = 1 << (level - 1), levels[level - 1]
                np.maximum(previous, _shifted(previous, step, 0), out=levels[level])
                np.maximum(levels[level], _shifted(previous, 0, step), out=levels[level])
                np.maximum(levels[level], _shifted(previous, step, step), out=levels[level])
            self._pyramid = levels
        return self._pyramid

    def search(
        self,
        points: Floats,
        window: SearchWindow,
        min_score: float,
        max_second_best_ratio: float = 1.0,
    ) -> ScanMatch | None:
        """Return the best pose of points (n, 2) in a window, None if no pose scores `min_score`.

        Parameters
        ----------
        max_second_best_ratio : float
            The second best pose is reported if its score is at least this fraction of the best; 1 to skip it.
        """
        search = load_compiled(__name__, "matching").search

        size = 2 * int(np.ceil(window.radius_m / self.cell_m)) + 1
        pyramid = self.pyramid(int(np.clip(size.bit_length() - 1, 2, self.settings.max_pyramid_levels)))
        margin = 1 << (len(pyramid) - 1)
        radius = max(float(np.percentile(np.linalg.norm(points, axis=1), 90)), 1.0)
        step = self.cell_m / radius
        count = int(np.ceil(window.half_angle_rad / step))
        angles = window.pose[2] + step * np.arange(-count, count + 1)
        first = (window.pose[:2] - self.origin) / self.cell_m + margin - (size - 1) / 2
        found = search(
            pyramid, points / self.cell_m, angles, first, size, min_score, max_second_best_ratio,
            np.array([self.settings.separation_m / self.cell_m, self.settings.separation_rad]),
            self.settings.max_expansions,
        )  # fmt: skip
        if found[0, 0] == 0.0:
            return None
        position = (first - margin + found[0, 2:]) * self.cell_m + self.origin
        match = self.refine(points, np.array([*position, angles[int(found[0, 1])]]))
        return ScanMatch(match.pose, match.covariance, match.score, float(found[1, 0] / found[0, 0]))

    def refine(self, points: Floats, pose: Floats) -> ScanMatch:
        """Return the best pose of points (n, 2) near a pose (3,), by Gauss-Newton."""
        refine = load_compiled(__name__, "matching").refine

        start = np.array([*(pose[:2] - self.origin) / self.cell_m, pose[2]])
        found = refine(self.grid, points / self.cell_m, start, self.settings.max_refinement_steps)
        best = np.array([*found[:2] * self.cell_m + self.origin, found[2]])
        return ScanMatch(best, self._covariance(points, found[:3]), float(found[3]))

    def score(self, points: Floats, pose: Floats) -> float:
        """Return the score, 0 to 1, of points (n, 2) of a body at a pose (3,)."""
        refine = load_compiled(__name__, "matching").refine

        start = np.array([*(pose[:2] - self.origin) / self.cell_m, pose[2]])
        return float(refine(self.grid, points / self.cell_m, start, 0)[3])

    def inliers(self, points: Floats, pose: Floats) -> Mask:
        """Return which points (n, 2) of a body at a pose (3,) are on walls."""
        column, row = (
            np.floor((transform_points(points, pose) - self.origin) / self.cell_m).astype(np.int64).T
        )
        rows, columns = self.grid.shape
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        value = self.grid[row.clip(0, rows - 1), column.clip(0, columns - 1)]
        return inside & (value > self.settings.inlier_value)

    def inflate_covariance(self, match: ScanMatch) -> ScanMatch:
        """Return a match with its covariance scaled to the distances of its points from the walls.

        Points at a distance of n sigma score 1 / sqrt(1 + n^2 / sigma^2).
        """
        noise = self.sigma_m**2 * (1.0 / max(match.score, 0.1) ** 2 - 1.0)
        return replace(match, covariance=match.covariance * max(noise / self.settings.point_noise_m**2, 1.0))

    def _covariance(self, points: Floats, pose: Floats) -> Floats:
        """Return the covariance (3, 3) of a pose from the curvature of the score."""
        curvature = load_compiled(__name__, "matching").curvature

        lever = max(float(np.sqrt(np.mean(points**2) * 2)), 1.0)
        scale = np.array([1.0, 1.0, self.cell_m / lever])
        curvatures = curvature(self.grid, points / self.cell_m, pose, scale * self.sigma_m / self.cell_m)
        values, vectors = np.linalg.eigh(scale[:, None] * curvatures * scale)
        limits = self.settings
        information = np.maximum(
            values, limits.min_curvature_ratio * len(points) * (self.cell_m / self.sigma_m) ** 2
        )
        correlation = max(len(points) / limits.independent_points, 1.0)
        scale_factor = (limits.point_noise_m / self.sigma_m) ** 2 * correlation
        found = (vectors / information) @ vectors.T * scale_factor
        units = np.array([self.cell_m, self.cell_m, self.cell_m / lever])
        return units[:, None] * found * units + np.diag(MIN_MATCH_SIGMA**2)


def _shifted(grid: NDArray[np.uint8], rows: int, columns: int) -> NDArray[np.uint8]:
    """Return a grid whose cells have the value `rows` and `columns` further on; 0 beyond the edge."""
    moved = np.zeros_like(grid)
    moved[: grid.shape[0] - rows, : grid.shape[1] - columns] = grid[rows:, columns:]
    return moved


def relative_pose(first: Floats, second: Floats) -> Floats:
    """Return the motion (3,) from one pose (3,) to another, in the axes of the first."""
    c, s = np.cos(first[2]), np.sin(first[2])
    x, y, turn = second - first
    return np.array([c * x + s * y, c * y - s * x, (turn + np.pi) % (2 * np.pi) - np.pi])


def compose(first: Floats, motion: Floats) -> Floats:
    """Return the pose (3,) after a motion (3,) in the axes of a pose (3,)."""
    c, s = np.cos(first[2]), np.sin(first[2])
    x, y, turn = motion
    return np.array([first[0] + c * x - s * y, first[1] + s * x + c * y, first[2] + turn])


def transform_points(points: Floats, pose: Floats) -> Floats:
    """Transform points (n, 2) from the frame of a body at a pose (3,)."""
    return points @ lift_pose(pose)[:2, :2].T + pose[:2]


def lift_pose(pose: Floats) -> Floats:
    """Return a planar pose (3,) as a transform (4, 4)."""
    c, s = np.cos(pose[2]), np.sin(pose[2])
    lifted = np.eye(4)
    lifted[:2, :2] = ((c, -s), (s, c))
    lifted[:2, 3] = pose[:2]
    return lifted


def flatten_pose(transform: Floats) -> Floats:
    """Return the planar pose (3,) of a transform (4, 4)."""
    return np.array([*transform[:2, 3], np.arctan2(transform[1, 0], transform[0, 0])])


def lift_covariance(covariance: Floats, heading: float, out_of_plane_sigma: float = 1e-3) -> Floats:
    """Return a planar covariance (3, 3) in the axes of the plane as (6, 6) in the axes of the body.

    Height, roll and pitch have the same sigma, in m and rad.
    """
    c, s = np.cos(heading), np.sin(heading)
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    lifted = np.diag(np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0]) * out_of_plane_sigma**2)
    lifted[np.ix_(PLANAR_AXES, PLANAR_AXES)] = turn @ covariance @ turn.T
    return lifted
