"""Errors of point clouds and reconstructed models: against a reference cloud, a height map, or the ground.

The error of a model's point is its distance to the ground along the ground's normal: its height over the map
times the cosine of the map's slope there. Coverage counts squares of ground that the cameras could see: in a
picture, near enough, and not occluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Mask
from transect.errors import GeometryError
from transect.geometry import align, interpolation, se3
from transect.geometry.array_checks import floats, measured_rows
from transect.geometry.rasters import ELEVATION, HeightRaster, cell_size, centres_of, heights_of
from transect.geometry.rotations import rotation_vector_from_matrix
from transect.recording import Recording
from transect.types import GridMap, PointCloud

from .height_maps import HeightStatistics, Score, score_at

DISTANCES = (0.05, 0.1, 0.2)  # m; thresholds of completeness and accuracy


@dataclass(frozen=True)
class IcpSettings:
    """Registration of a cloud with its reference before both are compared."""

    iterations: int = 30
    convergence: float = 1e-6  # m and rad; largest component of the last step
    max_points: int = 20_000  # more do not improve the registration
    search_radius: float = 10.0  # maximum distance of a correspondence, in median spacings of the reference


ICP = IcpSettings()


@dataclass(frozen=True)
class Registration:
    """The rigid motion that was applied to an estimate."""

    matrix: Floats  # (4, 4) float64; ``T_reference_estimate``
    searched: bool = False  # false if it was given
    rmse: float = float("nan")  # m, residual distance of correspondences; NaN if it was given

    @property
    def distance(self) -> float:
        """Metres by which the origin is moved."""
        return float(np.linalg.norm(self.matrix[:3, 3]))

    @property
    def angle(self) -> float:
        """Radians by which it is turned."""
        return float(np.linalg.norm(rotation_vector_from_matrix(self.matrix[:3, :3])))


@dataclass(frozen=True)
class CloudErrors:
    """Distances between a cloud and its reference, in metres."""

    distance: Floats  # (n,), from each measured point of the estimate to the nearest of the reference
    back: Floats  # (m,), from each point of the reference to the nearest of the estimate
    scores: tuple[Score, ...]  # one per threshold
    registration: Registration

    @property
    def mean(self) -> float:
        """Mean of `distance`."""
        return float(self.distance.mean())

    @property
    def median(self) -> float:
        """Median of `distance`."""
        return float(np.median(self.distance))

    @property
    def p90(self) -> float:
        """90th percentile of `distance`."""
        return float(np.percentile(self.distance, 90))


@dataclass(frozen=True)
class CloudMapErrors:
    """Height differences of a cloud to a height map."""

    difference: Floats  # (n,), height of each point above the map, m; NaN if either is not measured
    statistics: HeightStatistics
    # By distance (m): fraction of the map's measured cells with a point within it
    completeness: tuple[tuple[float, float], ...]


def cloud_errors(
    reference: PointCloud,
    estimate: PointCloud,
    distances: Sequence[float] = DISTANCES,
    *,
    register: bool = True,
    T_reference_estimate: ArrayLike | None = None,
    search_radius: float | None = None,
) -> CloudErrors:
    """Compare a cloud with a reference cloud.

    Parameters
    ----------
    distances : sequence of float
        Thresholds (m) of completeness and accuracy.
    register : bool
        Remove the small rigid motion that fits best, starting from the given one.
    T_reference_estimate : (4, 4), optional
        A known registration; by default both are in one frame.
    search_radius : float, optional
        Maximum distance (m) of a correspondence; ten median spacings of the reference by default.
    """
    from scipy.spatial import KDTree

    truth, points = _measured_points("reference", reference), _measured_points("estimate", estimate)
    tree = KDTree(truth)
    start = np.eye(4) if T_reference_estimate is None else floats("T", T_reference_estimate, (4, 4))
    found = Registration(start)
    if register:
        found = _register(
            truth, tree, points, start, search_radius or ICP.search_radius * _spacing(truth, tree)
        )
    moved = se3.apply(found.matrix, points)
    to_truth = np.asarray(tree.query(moved)[0])
    to_estimate = np.asarray(KDTree(moved).query(truth)[0])
    scores = tuple(score_at(distance, to_estimate, to_truth) for distance in distances)
    return CloudErrors(to_truth, to_estimate, scores, found)


def cloud_map_errors(
    reference: GridMap,
    estimate: PointCloud,
    distances: Sequence[float] | None = None,
    *,
    T_reference_estimate: ArrayLike | None = None,
    layer: str = ELEVATION,
) -> CloudMapErrors:
    """Compare a cloud with a height map: heights above it, bilinear between cells.

    Parameters
    ----------
    distances : sequence of float, optional
        Thresholds (m) of completeness; one and two cells of the map by default.
    T_reference_estimate : (4, 4), optional
        Transform of the points to the map's frame, in which z is up.
    """
    from scipy.spatial import KDTree

    motion = np.eye(4) if T_reference_estimate is None else floats("T", T_reference_estimate, (4, 4))
    points = se3.apply(motion, floats("estimate", estimate.points, ("n", 3)))
    ground = heights_of(reference, layer)
    difference = points[:, 2] - ground.at(points[:, 0], points[:, 1])
    statistics = HeightStatistics.of(difference)
    known = np.isfinite(ground.values)
    x, y = centres_of(reference, ground.values)
    cells = np.column_stack([x[known], y[known], ground.values[known]])
    to_points = np.asarray(KDTree(points[measured_rows(points)]).query(cells)[0])
    thresholds = distances or [n * cell_size(reference) for n in (1.0, 2.0)]
    return CloudMapErrors(
        difference, statistics, tuple((d, float(np.mean(to_points <= d))) for d in thresholds)
    )


def _measured_points(called: str, cloud: PointCloud) -> Floats:
    points = floats(called, cloud.points, ("n", 3))
    points = points[measured_rows(points)]
    if not len(points):
        raise GeometryError(f"the {called} has no measured points")
    return points


def _spacing(points: Floats, tree: Any) -> float:
    """Return the median distance in metres of points to their nearest neighbour."""
    subset = points[:: max(len(points) // ICP.max_points, 1)]
    return float(np.median(tree.query(subset, k=2)[0][:, 1]))


def _register(truth: Floats, tree: Any, points: Floats, start: Floats, radius: float) -> Registration:
    """Register points with the reference by point-to-point ICP (Besl, McKay 1992)."""
    subset, motion, rmse = points[:: max(len(points) // ICP.max_points, 1)], start, float("nan")
    for _ in range(ICP.iterations):
        moved = se3.apply(motion, subset)
        distance, match = tree.query(moved)
        near = np.asarray(distance) <= radius
        if near.sum() < 3:
            raise GeometryError(
                f"the clouds do not overlap: {int(near.sum())} points have a match within {radius:.3g} m",
                hint="give T_reference_estimate, or a larger search_radius",
            )
        step = align.umeyama(moved[near], truth[match[near]])
        motion, rmse = step.matrix @ motion, step.rmse
        if max(abs(se3.log(step.matrix))) < ICP.convergence:
            break
    return Registration(motion, True, rmse)


Cells = NDArray[np.int64]


@dataclass(frozen=True)
class CoverageSettings:
    """Which ground a camera can see."""

    max_depth_m: float = 6.0  # within which a model is evaluated
    min_depth_m: float = 0.2  # nearer points belong to the robot
    cell_m: float = 0.1  # edge of the ground squares that are counted
    sight_samples: int = 96  # points of a line of sight at which the ground is tested for occlusion
    max_occlusion_m: float = 0.03  # of the ground above a line of sight: the uncertainty of the map


COVERAGE = CoverageSettings()


@dataclass(frozen=True, eq=False)
class CameraView:
    """Pose and field of view of a pinhole camera."""

    # (4, 4), of the optical frame: x right, y down, z forward; in the world z is up
    T_world_camera: Floats
    K: Floats  # (3, 3), pixels, without distortion
    width: int  # pixels
    height: int  # pixels

    def contains(self, points: Floats, max_depth: float) -> Mask:
        """Return (n,) which points (n, 3) of the world are in the image, up to a depth (m)."""
        x, y, z = se3.apply(se3.invert(self.T_world_camera), points).T
        ahead = (z > COVERAGE.min_depth_m) & (z <= max_depth)
        z = np.where(ahead, z, 1.0)
        column, row = self.K[0, 0] * x / z + self.K[0, 2], self.K[1, 1] * y / z + self.K[1, 2]
        inside = (column >= 0) & (column < self.width) & (row >= 0) & (row < self.height)
        return ahead & inside


@dataclass(frozen=True)
class ReconstructionErrors:
    """Distances of a model to the ground, and its coverage."""

    rmse: float  # m; NaN if no point could be compared
    median: float  # m
    coverage: float  # fraction of the visible ground with a point of the model; NaN if unknown
    points: int  # number of compared points

    def metric(self) -> dict[str, float]:
        """Return the metric `cloud` of a result."""
        return {"rmse": self.rmse, "median": self.median, "coverage": self.coverage}


def reconstruction_errors(
    points_world: ArrayLike,
    dem: GridMap,
    views: Sequence[CameraView] = (),
    *,
    max_depth: float = COVERAGE.max_depth_m,
    cell: float = COVERAGE.cell_m,
) -> ReconstructionErrors:
    """Compare the points of a model with a height map.

    Parameters
    ----------
    points_world : (n, 3)
        m, in the map's frame; rows with NaN are ignored.
    dem : GridMap
        `elevation` of the ground, z up.
    views : sequence of CameraView
        Cameras that the model was made from. Points that are outside all images, or deeper than
        `max_depth` in all of them, are ignored. Without views all points count, and coverage is NaN.
    max_depth : float
        m.
    cell : float
        Edge (m) of the squares that coverage counts.
    """
    points = floats("points", points_world, ("n", 3))
    points = points[measured_rows(points)]
    if views:
        points = points[np.any([view.contains(points, max_depth) for view in views], axis=0)]
    errors = ground_distances(points, dem)
    errors = np.abs(errors[np.isfinite(errors)])
    if not len(errors):
        return ReconstructionErrors(np.nan, np.nan, 0.0 if views else np.nan, 0)
    covered = coverage(points, dem, views, max_depth, cell) if views else np.nan
    rmse = float(np.sqrt(np.mean(errors**2)))
    return ReconstructionErrors(rmse, float(np.median(errors)), covered, len(errors))


def ground_distances(points: Floats, dem: GridMap) -> Floats:
    """Return the distances (n,) in m of points (n, 3) to the ground along its normal, above it positive.

    NaN where the map is not measured.
    """
    ground, half = heights_of(dem), 0.5 * cell_size(dem)
    x, y, z = points.T
    along = (ground.at(x + half, y) - ground.at(x - half, y)) / (2 * half)
    across = (ground.at(x, y + half) - ground.at(x, y - half)) / (2 * half)
    return (z - ground.at(x, y)) / np.sqrt(1 + along**2 + across**2)


def coverage(
    points: Floats,
    dem: GridMap,
    views: Sequence[CameraView],
    max_depth: float = COVERAGE.max_depth_m,
    cell: float = COVERAGE.cell_m,
) -> float:
    """Return the fraction of visible ground squares, edge `cell` (m), with one of the points (n, 3)."""
    visible = visible_cells(dem, views, max_depth, cell)
    if not len(visible):
        raise GeometryError(
            "the cameras see no ground", why=f"no part of the map is within {max_depth:g} m of them"
        )
    met = np.unique(_cells(points[:, :2], cell), axis=0)
    both = np.unique(np.concatenate([visible, met]), axis=0)
    return (len(visible) + len(met) - len(both)) / len(visible)


def visible_cells(
    dem: GridMap,
    views: Sequence[CameraView],
    max_depth: float = COVERAGE.max_depth_m,
    cell: float = COVERAGE.cell_m,
) -> Cells:
    """Return the squares (n, 2) of ground, edge `cell` (m), whose centre is visible in one of the views."""
    ground = heights_of(dem)
    found = [_visible_from(view, ground, max_depth, cell) for view in views]
    return np.unique(np.concatenate(found), axis=0) if found else np.zeros((0, 2), np.int64)


def _visible_from(view: CameraView, ground: HeightRaster, max_depth: float, cell: float) -> Cells:
    eye = view.T_world_camera[:3, 3]
    # The corners of an image are farther than its depth: twice the depth suffices for views of 120 degrees.
    around = np.arange(-np.ceil(2 * max_depth / cell), np.ceil(2 * max_depth / cell) + 1)
    squares = np.stack(np.meshgrid(around, around), axis=-1).reshape(-1, 2).astype(np.int64)
    squares += _cells(eye[None, :2], cell)
    x, y = ((squares + 0.5) * cell).T
    centres = np.column_stack([x, y, ground.at(x, y)])
    known = np.isfinite(centres[:, 2])
    squares, centres = squares[known], centres[known]
    rows = np.flatnonzero(view.contains(centres, max_depth))
    return squares[rows[_is_unoccluded(eye, centres[rows], ground)]]


def _is_unoccluded(eye: Floats, targets: Floats, ground: HeightRaster) -> Mask:
    """Return (n,) which targets (n, 3) on the ground are visible from a point (3,)."""
    # The last 3 % of a line of sight are ignored: they touch the ground of the target itself.
    fraction = np.linspace(0.0, 0.97, COVERAGE.sight_samples)[:, None]
    x, y, z = (eye[axis] + fraction * (targets[:, axis] - eye[axis]) for axis in range(3))
    with np.errstate(invalid="ignore"):
        return ~(ground.at(x, y) > z + COVERAGE.max_occlusion_m).any(axis=0)


def _cells(positions: Floats, cell: float) -> Cells:
    return np.floor(positions / cell).astype(np.int64)


# Placement of a model


def place_by_truth(recording: Recording, frame: str, t_ns: int) -> Floats:
    """Return ``T_world_frame`` (4, 4) of a sensor's frame at a time (ns), from the truth of a recording.

    A model in the frame of a camera's first pose is transformed to the world frame of the truth with it.

    Raises
    ------
    GeometryError
        If the recording has no true attitude at that time.
    FrameError
        If the frame tree does not connect the sensor with the body of the truth.
    """
    truth = recording.truth
    if truth is None or "qw" not in truth.columns:
        raise GeometryError(
            f"{recording.name} has no true pose of {frame or 'the camera'}",
            why="it has no truth with attitudes",
        )
    position, attitude = interpolation.interpolate_poses(
        truth.t_ns, truth.array("x", "y", "z"), truth.array("qx", "qy", "qz", "qw"), np.array([t_ns])
    )
    T_world_body = se3.from_quaternion(attitude[0], position[0])
    if frame == truth.child:
        return T_world_body
    return T_world_body @ recording.frames.lookup(truth.child, frame, t_ns)


def model_errors(
    recording: Recording, points: ArrayLike, t_ns: ArrayLike, frame: str
) -> ReconstructionErrors | None:
    """Compare a model with the true ground of a recording.

    Parameters
    ----------
    points : (n, 3)
        m, in the camera's frame at the first of the times.
    t_ns : (m,)
        Times of the camera poses, which determine the visible ground.
    frame : str
        Of the camera, which is treated as a pinhole without distortion.

    Returns
    -------
    ReconstructionErrors or None
        None if the recording has no true map or no such camera.
    """
    times = np.asarray(t_ns, np.int64)
    maps = [each for each in recording.streams if each.role == "truth" and each.type is GridMap]
    camera = next((each for each in recording.cameras.values() if each.frame == frame), None)
    if not (maps and len(times)) or camera is None:
        return None
    true = [place_by_truth(recording, frame, int(each)) for each in times]
    views = [CameraView(T_world_camera, camera.K, camera.width, camera.height) for T_world_camera in true]
    return reconstruction_errors(se3.apply(true[0], points), maps[0][0].value, views)


def pose_errors(T_scene_camera: ArrayLike, T_world_camera: ArrayLike) -> Floats:
    """Return how far (n,) in m poses (n, 4, 4) are from true ones (n, 4, 4), the first of both made one."""
    found, true = (np.asarray(each, np.float64) for each in (T_scene_camera, T_world_camera))
    apart = se3.invert(found[0]) @ found, se3.invert(true[0]) @ true
    return np.linalg.norm(apart[0][:, :3, 3] - apart[1][:, :3, 3], axis=1)
