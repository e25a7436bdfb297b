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

DISTANCES = (0.05, 0.1, 0.2)
"""Metres at which clouds are scored, by default."""
ITERATIONS = 30
CONVERGED = 1e-6
"""Metres, and radians, of a step of the registration."""
MOST = 20_000
"""Points that are used to register; more do not make it better."""
REACH = 10.0
"""Median spacings of the reference within which points are taken for partners, by default."""


@dataclass(frozen=True)
class Registration:
    """What was applied to an estimate.

    Attributes
    ----------
    matrix : (4, 4) float64
        ``T_reference_estimate``.
    searched : bool
        False where it is only what was given.
    rmse : float
        Metres that are left between partners; NaN where nothing was searched.
    """

    matrix: Floats
    searched: bool = False
    rmse: float = float("nan")

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
    """A cloud against a reference cloud.

    Attributes
    ----------
    distance : (n,) float64
        Metres from each measured point of the estimate to the nearest of the reference.
    back : (m,) float64
        The same from the reference's points to the estimate.
    mean, median, p90 : float
        Of `distance`, in metres.
    scores : tuple of Score
        One per distance asked for.
    registration : Registration
    """

    distance: Floats
    back: Floats
    scores: tuple[Score, ...]
    registration: Registration

    @property
    def mean(self) -> float:
        """Metres."""
        return float(self.distance.mean())

    @property
    def median(self) -> float:
        """Metres."""
        return float(np.median(self.distance))

    @property
    def p90(self) -> float:
        """Metres that nine of ten points stay below."""
        return float(np.percentile(self.distance, 90))


@dataclass(frozen=True)
class CloudMapErrors:
    """A cloud against a height map.

    Attributes
    ----------
    difference : (n,) float64
        Height of each point over the map in metres; NaN where one of them is not measured.
    statistics : HeightStatistics
    completeness : tuple of (float, float)
        By distance in metres: part of the map's measured cells with a point that near.
    """

    difference: Floats
    statistics: HeightStatistics
    completeness: tuple[tuple[float, float], ...]


def cloud_errors(
    reference: PointCloud,
    estimate: PointCloud,
    distances: Sequence[float] = DISTANCES,
    *,
    register: bool = True,
    T_reference_estimate: ArrayLike | None = None,
    reach: float | None = None,
) -> CloudErrors:
    """Hold a cloud against a reference.

    Parameters
    ----------
    distances : sequence of float
        Metres at which completeness and accuracy are counted.
    register : bool
        Find the small rigid motion that fits best, from the given one, and take it out.
    T_reference_estimate : (4, 4), optional
        A known registration; by default both are in one frame.
    reach : float, optional
        Metres within which points are taken for partners; ten median spacings of the reference by default.
    """
    from scipy.spatial import KDTree

    truth, points = _measure("reference", reference), _measure("estimate", estimate)
    tree = KDTree(truth)
    start = np.eye(4) if T_reference_estimate is None else floats("T", T_reference_estimate, (4, 4))
    found = Registration(start)
    if register:
        found = _register(truth, tree, points, start, reach or REACH * _spacing(truth, tree))
    moved = se3.apply(found.matrix, points)
    to_truth = np.asarray(tree.query(moved)[0])
    back = np.asarray(KDTree(moved).query(truth)[0])
    scores = tuple(score_at(distance, back, to_truth) for distance in distances)
    return CloudErrors(to_truth, back, scores, found)


def cloud_map_errors(
    reference: GridMap,
    estimate: PointCloud,
    distances: Sequence[float] | None = None,
    *,
    T_reference_estimate: ArrayLike | None = None,
    layer: str = ELEVATION,
) -> CloudMapErrors:
    """Hold a cloud against a height map: heights over it, between cells bilinear.

    Parameters
    ----------
    distances : sequence of float, optional
        Metres at which completeness is counted; one and two cells of the map by default.
    T_reference_estimate : (4, 4), optional
        Takes the points to the map's frame, in which z is up.
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
    back = np.asarray(KDTree(points[measured_rows(points)]).query(cells)[0])
    asked = distances or [n * cell_size(reference) for n in (1.0, 2.0)]
    return CloudMapErrors(difference, statistics, tuple((d, float(np.mean(back <= d))) for d in asked))


def _measure(called: str, cloud: PointCloud) -> Floats:
    points = floats(called, cloud.points, ("n", 3))
    points = points[measured_rows(points)]
    if not len(points):
        raise GeometryError(f"the {called} has no measured points")
    return points


def _spacing(points: Floats, tree: Any) -> float:
    """Return the median distance in metres of points to their nearest neighbour."""
    some = points[:: max(len(points) // MOST, 1)]
    return float(np.median(tree.query(some, k=2)[0][:, 1]))


def _register(truth: Floats, tree: Any, points: Floats, start: Floats, reach: float) -> Registration:
    """Bring points to the nearest of the truth until they stay: ICP, point to point (Besl, McKay 1992)."""
    some, motion, rmse = points[:: max(len(points) // MOST, 1)], start, float("nan")
    for _ in range(ITERATIONS):
        moved = se3.apply(motion, some)
        distance, partner = tree.query(moved)
        near = np.asarray(distance) <= reach
        if near.sum() < 3:
            raise GeometryError(
                f"the clouds do not meet: {int(near.sum())} points have a partner within {reach:.3g} m",
                hint="give T_reference_estimate, or a larger reach",
            )
        step = align.umeyama(moved[near], truth[partner[near]])
        motion, rmse = step.matrix @ motion, step.rmse
        if max(abs(se3.log(step.matrix))) < CONVERGED:
            break
    return Registration(motion, True, rmse)


Cells = NDArray[np.int64]

MAX_DEPTH_M = 6.0
"""Metres of depth within which a model is judged, by default."""
COVERAGE_CELL_M = 0.1
"""Metres: edge of the squares of ground that coverage counts, by default."""
NEAREST = 0.2
"""Metres of depth: what is nearer is part of the robot."""
SIGHT_STEPS = 96
"""Places on the line of sight to a cell that are held against the ground."""
CLEARANCE = 0.03
"""Metres by which the ground may stand over a line of sight: what the map itself is unsure of."""


@dataclass(frozen=True, eq=False)
class View:
    """Where a camera stood, and what fits into its picture.

    Attributes
    ----------
    T_world_camera : (4, 4) float64
        Of the optical frame: x right, y down, z forward; in the world z is up.
    K : (3, 3) float64
        Pixels, without a lens.
    width, height : int
        Pixels.
    """

    T_world_camera: Floats
    K: Floats
    width: int
    height: int

    def seen(self, points: Floats, reach: float) -> Mask:
        """Tell (n,) which points (n, 3) of the world are in the picture, and not deeper than `reach` (m)."""
        x, y, z = se3.apply(se3.invert(self.T_world_camera), points).T
        ahead = (z > NEAREST) & (z <= reach)
        z = np.where(ahead, z, 1.0)
        column, row = self.K[0, 0] * x / z + self.K[0, 2], self.K[1, 1] * y / z + self.K[1, 2]
        inside = (column >= 0) & (column < self.width) & (row >= 0) & (row < self.height)
        return ahead & inside


@dataclass(frozen=True)
class ReconstructionErrors:
    """A model against the ground.

    Attributes
    ----------
    rmse, median : float
        Metres, of the distances to the ground; NaN where no point could be compared.
    coverage : float
        Part of the visible ground in which the model has a point; NaN where it is not known what was visible.
    points : int
        Points that were compared.
    """

    rmse: float
    median: float
    coverage: float
    points: int

    def metric(self) -> dict[str, float]:
        """Return what stands as `cloud` among the metrics of a result."""
        return {"rmse": self.rmse, "median": self.median, "coverage": self.coverage}


def reconstruction_errors(
    points_world: ArrayLike,
    dem: GridMap,
    views: Sequence[View] = (),
    *,
    reach: float = MAX_DEPTH_M,
    cell: float = COVERAGE_CELL_M,
) -> ReconstructionErrors:
    """Hold the points of a model against a height map.

    Parameters
    ----------
    points_world : (n, 3)
        Metres, in the map's frame; rows with NaN are left out.
    dem : GridMap
        `elevation` of the ground, z up.
    views : sequence of View
        Cameras that the model was made by. Points that are in none of their pictures, or deeper in all
        of them than `reach`, are not judged. Without views all are, and coverage is not known.
    reach : float
        Metres of depth.
    cell : float
        Metres: edge of the squares that coverage counts.
    """
    points = floats("points", points_world, ("n", 3))
    points = points[measured_rows(points)]
    if views:
        points = points[np.any([view.seen(points, reach) for view in views], axis=0)]
    errors = ground_distances(points, dem)
    errors = np.abs(errors[np.isfinite(errors)])
    if not len(errors):
        return ReconstructionErrors(np.nan, np.nan, 0.0 if views else np.nan, 0)
    covered = coverage(points, dem, views, reach, cell) if views else np.nan
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
    views: Sequence[View],
    reach: float = MAX_DEPTH_M,
    cell: float = COVERAGE_CELL_M,
) -> float:
    """Return the part of the visible squares of ground, edge `cell` (m), with one of the points (n, 3)."""
    visible = visible_cells(dem, views, reach, cell)
    if not len(visible):
        raise GeometryError("the cameras see no ground", why=f"none of the map is within {reach:g} m of them")
    met = np.unique(_cells(points[:, :2], cell), axis=0)
    both = np.unique(np.concatenate([visible, met]), axis=0)
    return (len(visible) + len(met) - len(both)) / len(visible)


def visible_cells(
    dem: GridMap, views: Sequence[View], reach: float = MAX_DEPTH_M, cell: float = COVERAGE_CELL_M
) -> Cells:
    """Return the squares (n, 2) of ground, edge `cell` (m), whose middle is visible in one of the views."""
    ground = heights_of(dem)
    found = [_visible_from(view, ground, reach, cell) for view in views]
    return np.unique(np.concatenate(found), axis=0) if found else np.zeros((0, 2), np.int64)


def _visible_from(view: View, ground: HeightRaster, reach: float, cell: float) -> Cells:
    eye = view.T_world_camera[:3, 3]
    # The corners of a picture are farther than its depth: twice that is enough for views of 120 degrees.
    around = np.arange(-np.ceil(2 * reach / cell), np.ceil(2 * reach / cell) + 1)
    squares = np.stack(np.meshgrid(around, around), axis=-1).reshape(-1, 2).astype(np.int64)
    squares += _cells(eye[None, :2], cell)
    x, y = ((squares + 0.5) * cell).T
    middles = np.column_stack([x, y, ground.at(x, y)])
    known = np.isfinite(middles[:, 2])
    squares, middles = squares[known], middles[known]
    rows = np.flatnonzero(view.seen(middles, reach))
    return squares[rows[_in_sight(eye, middles[rows], ground)]]


def _in_sight(eye: Floats, targets: Floats, ground: HeightRaster) -> Mask:
    """Tell (n,) to which targets (n, 3) on the ground nothing stands in the way."""
    # The last of the way is left out: the ground there is the target's own.
    share = np.linspace(0.0, 0.97, SIGHT_STEPS)[:, None]
    x, y, z = (eye[axis] + share * (targets[:, axis] - eye[axis]) for axis in range(3))
    with np.errstate(invalid="ignore"):
        return ~(ground.at(x, y) > z + CLEARANCE).any(axis=0)


def _cells(places: Floats, cell: float) -> Cells:
    return np.floor(places / cell).astype(np.int64)


# Where a model lies


def place_by_truth(recording: Recording, frame: str, t_ns: int) -> Floats:
    """Return ``T_world_frame`` (4, 4) of a sensor's frame at a time (ns), by the truth of a recording.

    A model in the frame of the camera that began it is brought to the world of the truth by that camera at
    the time of its first pose.

    Raises
    ------
    GeometryError
        If the recording has no truth with attitudes, or none at that time.
    FrameError
        If its frames do not know how the sensor is mounted on what the truth tracks.
    """
    truth = recording.truth
    if truth is None or "qw" not in truth.columns:
        raise GeometryError(
            f"{recording.name} does not say where {frame or 'the camera'} was",
            why="it has no truth with attitudes",
        )
    place, turned = interpolation.interpolate_poses(
        truth.t_ns, truth.array("x", "y", "z"), truth.array("qx", "qy", "qz", "qw"), np.array([t_ns])
    )
    T_world_body = se3.from_quaternion(turned[0], place[0])
    if frame == truth.child:
        return T_world_body
    return T_world_body @ recording.frames.lookup(truth.child, frame, t_ns)


def model_errors(
    recording: Recording, points: ArrayLike, t_ns: ArrayLike, frame: str
) -> ReconstructionErrors | None:
    """Hold a model against the true ground of a recording.

    Parameters
    ----------
    points : (n, 3)
        Metres, in the frame of the camera at the first of the times.
    t_ns : (m,)
        Times at which the camera had a pose; from there it is asked what was visible.
    frame : str
        Of the camera. What it sees is taken as without a lens.

    Returns
    -------
    ReconstructionErrors or None
        None where the recording has no true map, or does not know the camera.
    """
    times = np.asarray(t_ns, np.int64)
    maps = [each for each in recording.streams if each.role == "truth" and each.type is GridMap]
    camera = next((each for each in recording.cameras.values() if each.frame == frame), None)
    if not (maps and len(times)) or camera is None:
        return None
    true = [place_by_truth(recording, frame, int(each)) for each in times]
    views = [View(T_world_camera, camera.K, camera.width, camera.height) for T_world_camera in true]
    return reconstruction_errors(se3.apply(true[0], points), maps[0][0].value, views)


def pose_errors(T_scene_camera: ArrayLike, T_world_camera: ArrayLike) -> Floats:
    """Return how far (n,) in m poses (n, 4, 4) are from true ones (n, 4, 4), the first of both made one."""
    found, true = (np.asarray(each, np.float64) for each in (T_scene_camera, T_world_camera))
    apart = se3.invert(found[0]) @ found, se3.invert(true[0]) @ true
    return np.linalg.norm(apart[0][:, :3, 3] - apart[1][:, :3, 3], axis=1)
