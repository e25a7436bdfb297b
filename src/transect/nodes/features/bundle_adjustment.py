"""Bundle adjustment of the images of a camera or of a stereo pair (CDFF's BundleAdjustment)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.vision.bundle_adjustment import (
    AdjustedBundle,
    BundleCovariances,
    BundleProblem,
    CameraRig,
    adjust_bundle,
    camera_rig_of,
    estimate_covariances,
    reprojection_errors,
)
from transect.algorithms.vision.features import MultiViewTracks, tracks_from_matches
from transect.algorithms.vision.initial_reconstruction import (
    PartialReconstruction,
    Poses,
    factorise,
    place_cameras,
)
from transect.algorithms.vision.triangulation import TriangulatedPoints
from transect.base.arrays import Floats, Mask
from transect.engine import Latest, Node, Unit, outputs, param
from transect.errors import UsageError
from transect.geometry import se3
from transect.types import CorrespondenceMaps2D, PointCloud, Trajectory


@outputs
class AdjustmentResult:
    """Camera poses and points; without `success` there are no other outputs."""

    # The pose of the camera of each image in the frame of the first one, with covariances in that frame:
    # translation (m), then rotation (rad).
    posesSequence: Trajectory | None = None
    success: bool = False
    error: Annotated[float, Unit("px2")] | None = None  # mean square reprojection error
    # In the same frame. Fields: `index` (n,), row of the point in the first map, or -1; `covariance` (n, 9),
    # m^2 row by row, if it is known.
    pointCloud: PointCloud | None = None
    inliers: float | None = None  # ratio of the observations
    iterations: int | None = None


class InitialBundle(NamedTuple):
    """Initial estimate of an adjustment."""

    rig: CameraRig
    poses: Floats  # (b, 4, 4), T_world_body
    points: Floats  # (n, 3) m; NaN where unknown


class BundleSolution(NamedTuple):
    """Result of an adjustment."""

    problem: BundleProblem  # with the inliers
    poses: Floats  # (b, 4, 4), T_world_body
    points: Floats  # (n, 3) m, in the world
    squares: float  # px^2, mean square reprojection error
    iterations: int
    covariances: BundleCovariances | None = None


class BundleAdjustment(Node, interface=True):
    """Estimates camera poses from matches between pairs of images.

    Images are those of one moving camera, or stereo pairs in the order left, right, left, right, ..., whose
    baseline then sets the scale. A guess of the poses has one for each image, or for each but the first; a
    guess of the points has one for each row of the first map, or a field `index` of such rows. Both are
    optional.
    """

    sigma: float = param(0.5, gt=0, unit="px", doc="standard deviation of a pixel coordinate")
    min_points: int = param(15, ge=6, doc="smallest number of points of an image")
    baseline: float = param(
        1.0,
        gt=0,
        unit="m",
        doc="largest distance from the first camera, used if neither rig nor guess gives a scale",
    )

    def process(
        self,
        correspondenceMapsSequence: CorrespondenceMaps2D,
        guessedPosesSequence: Latest[Trajectory | None] = None,
        guessedPointCloud: Latest[PointCloud | None] = None,
    ) -> AdjustmentResult:
        tracks = tracks_from_matches(correspondenceMapsSequence)
        found = self.solve(tracks, guessedPosesSequence, guessedPointCloud)
        if found is None:
            return AdjustmentResult()
        t_ns, inlier_ratio = correspondenceMapsSequence.t_ns, found.problem.used.sum() / tracks.seen.sum()
        path, cloud = _trajectory(found, t_ns), _cloud(found, t_ns)
        return AdjustmentResult(path, True, found.squares, cloud, float(inlier_ratio), found.iterations)

    def solve(
        self, tracks: MultiViewTracks, guess: Trajectory | None, cloud: PointCloud | None
    ) -> BundleSolution | None:
        """Return poses and points; None, with a counted reason, if it fails."""
        raise NotImplementedError

    def begin(
        self, tracks: MultiViewTracks, guess: Trajectory | None, cloud: PointCloud | None
    ) -> InitialBundle | None:
        """Return the initial estimate, from the guesses or from the matches; None if it fails."""
        if not len(tracks) or tracks.seen.sum(axis=0).min() < self.min_points:
            return self.ctx.skip("an image shares too few points with the others")
        rig = camera_rig_of(tracks.cameras, self.ctx.frames)
        poses = _poses_from_guess(guess, rig) or place_cameras(tracks, rig, self.sigma, self.baseline)
        if poses is None:
            return self.ctx.skip("no initial camera poses were found")
        points = _initial_points(PartialReconstruction(tracks, rig, self.sigma, poses), cloud)
        return InitialBundle(rig, se3.invert(np.array([poses[k] for k in range(rig.body_count)])), points)

    def end(self, problem: BundleProblem, found: AdjustedBundle, iterations: int) -> BundleSolution | None:
        """Return the solution with its covariances; None if it is underdetermined."""
        covariances = estimate_covariances(found, problem.rig)
        if covariances is None:
            return self.ctx.skip("the images do not determine the poses")
        return BundleSolution(
            problem, found.poses, found.points, _mean_square(problem, found), iterations, covariances
        )


class GtsamAdjustment(BundleAdjustment):
    """Levenberg-Marquardt on a factor graph: with the Huber cost, then on the inliers alone."""

    gate: float = param(3.5, gt=0, doc="largest reprojection error of an inlier, in standard deviations")
    min_inlier_ratio: float = param(0.5, ge=0, le=1, doc="smallest ratio of inliers to observations")

    def solve(
        self, tracks: MultiViewTracks, guess: Trajectory | None, cloud: PointCloud | None
    ) -> BundleSolution | None:
        start = self.begin(tracks, guess, cloud)
        if start is None:
            return None
        rig, poses, points = start
        known = tracks.seen & np.isfinite(points).all(axis=1, keepdims=True)
        first = adjust_bundle(BundleProblem(tracks, rig, self.sigma, known), poses, points, robust=True)
        if first is None:
            return self.ctx.skip("the images do not determine the poses")
        inliers = known & (np.nan_to_num(first.residuals, nan=np.inf) <= self.gate * self.sigma)
        inliers &= _find_determined(tracks, rig, first.poses, inliers, self.sigma)[:, None]
        inlier_ratio = np.count_nonzero(inliers) / np.count_nonzero(tracks.seen)
        if inliers.sum(axis=0).min() < self.min_points or inlier_ratio < self.min_inlier_ratio:
            return self.ctx.skip("too few inliers")
        problem = BundleProblem(tracks, rig, self.sigma, inliers)
        last = adjust_bundle(problem, first.poses, first.points, robust=False)
        if last is None or not last.converged:
            return self.ctx.skip("the adjustment did not converge")
        return self.end(problem, last, first.iterations + last.iterations)


class LeastSquaresAdjustment(BundleAdjustment):
    """Levenberg-Marquardt on all observations, like CDFF with Ceres, without outlier rejection."""

    max_rms: float = param(2.0, gt=0, unit="px", doc="largest root mean square reprojection error")

    def solve(
        self, tracks: MultiViewTracks, guess: Trajectory | None, cloud: PointCloud | None
    ) -> BundleSolution | None:
        start = self.begin(tracks, guess, cloud)
        if start is None:
            return None
        known = tracks.seen & np.isfinite(start.points).all(axis=1, keepdims=True)
        problem = BundleProblem(tracks, start.rig, self.sigma, known)
        found = adjust_bundle(problem, start.poses, start.points, robust=False)
        if found is None or not found.converged:
            return self.ctx.skip("the adjustment did not converge")
        if not _mean_square(problem, found) <= self.max_rms**2:
            return self.ctx.skip("the reprojection error of the adjustment is too large")
        return self.end(problem, found, found.iterations)


class SvdDecomposition(BundleAdjustment):
    """Closed forms by singular value decomposition, refined by least squares: needs no guess.

    Factorisation (Tomasi and Kanade 1992, Christy and Horaud 1996) for distant cameras, essential matrices
    for close ones. It uses points observed in all of at least three images, rejects no outliers, and has no
    covariances: an initial estimate for an adjustment.
    """

    max_rms: float = param(1.5, gt=0, unit="px", doc="largest root mean square reprojection error")

    def solve(
        self, tracks: MultiViewTracks, guess: Trajectory | None, cloud: PointCloud | None
    ) -> BundleSolution | None:
        complete = tracks.take(np.asarray(tracks.seen.all(axis=1)))
        if len(complete) < self.min_points or len(complete.cameras) < 3:
            return self.ctx.skip("too few points are seen in all of at least three images")
        scale = _SceneScale(camera_rig_of(tracks.cameras, self.ctx.frames), self.baseline)
        found = factorise(complete.normalised)
        if found is None:
            return self.ctx.skip("the factorisation failed")
        poses, points = scale.apply(*found[:2])
        single_rig = CameraRig(list(range(len(poses))), np.tile(np.eye(4), (len(poses), 1, 1)))
        problem = BundleProblem(complete, single_rig, self.sigma, complete.seen)
        squares = float(np.mean(reprojection_errors(problem, poses, points) ** 2))
        if not squares <= self.max_rms**2:
            return self.ctx.skip("the reprojection error of the factorisation is too large")
        determined = _find_determined(complete, single_rig, poses, complete.seen, self.sigma)
        if np.count_nonzero(determined) < self.min_points:
            return self.ctx.skip("too little parallax to determine the points")
        return BundleSolution(problem, poses, points, squares, found[2])


def _poses_from_guess(guess: Trajectory | None, rig: CameraRig) -> Poses | None:
    """Return the bodies' ``T_body_world`` of a guess; None if it is missing or degenerate."""
    if guess is None or not len(guess) or guess.orientations is None:
        return None
    if not guess.orientations.any(axis=1).all():  # CDFF marks a pose that could not be computed by zeros
        return None
    images = len(rig.body)
    if len(guess) not in (images, images - 1):
        raise UsageError(
            f"{len(guess)} guessed poses do not match {images} images",
            why="there must be one for each image, or for each but the first",
        )
    given = se3.from_quaternion(guess.orientations, guess.positions)
    all_poses = given if len(guess) == images else np.concatenate([np.eye(4)[None], given])
    T_first_camera = se3.invert(all_poses[0]) @ all_poses
    if not (rig.has_scale or T_first_camera[:, :3, 3].any()):
        return None
    first = [rig.body.index(body) for body in range(rig.body_count)]
    return {body: se3.invert(T_first_camera[image]) for body, image in enumerate(first)}


def _initial_points(guess: PartialReconstruction, cloud: PointCloud | None) -> Floats:
    """Return the points (n, 3) of a guess, or else triangulated; NaN if unknown."""
    found = guess.points()
    points = np.where(_is_determined(found)[:, None], found.points, np.nan)
    if cloud is not None and len(cloud):
        track_of = {int(row): track for track, row in enumerate(guess.tracks.first_row) if row >= 0}
        for point, row in zip(cloud.points, cloud.fields.get("index", range(len(cloud))), strict=True):
            if int(row) in track_of:
                points[track_of[int(row)]] = point
    return points


def _find_determined(
    tracks: MultiViewTracks, rig: CameraRig, poses: Floats, used: Mask, sigma: float
) -> Mask:
    """Return which tracks (n,) the used observations (n, m) determine, for known cameras."""
    pixels = np.where(used[..., None], tracks.pixels, np.nan)
    seen = MultiViewTracks(pixels, tracks.cameras, tracks.first_row)
    return _is_determined(
        PartialReconstruction(seen, rig, sigma, dict(enumerate(se3.invert(poses)))).points()
    )


def _is_determined(found: TriangulatedPoints, max_relative_sigma: float = 0.3) -> Mask:
    """Return which points (n,) have a small standard deviation relative to their distance.

    Points at infinity would make the equations singular.
    """
    sigma_m = np.sqrt(np.trace(found.covariances, axis1=1, axis2=2))
    with np.errstate(invalid="ignore"):
        return found.in_front & (sigma_m < max_relative_sigma * np.linalg.norm(found.points, axis=1))


@dataclass(frozen=True)
class _SceneScale:
    """The scale of a scene: the baseline of a stereo pair, or else the largest distance of a camera."""

    rig: CameraRig
    baseline: float

    def apply(self, poses: Floats, points: Floats) -> tuple[Floats, Floats]:
        """Return poses (m, 4, 4) and points (n, 3) in metres."""
        positions = poses[:, :3, 3]
        if self.rig.has_scale:
            true = float(np.linalg.norm(self.rig.T_body_camera[1, :3, 3]))
            found = float(np.median(np.linalg.norm(positions[1::2] - positions[::2], axis=1)))
        else:
            true, found = self.baseline, float(np.linalg.norm(positions, axis=1).max())
        return se3.from_matrix(poses[:, :3, :3], positions * (true / found)), points * (true / found)


def _mean_square(problem: BundleProblem, found: AdjustedBundle) -> float:
    """Return the mean of the squared reprojection errors of the used observations, px^2."""
    return float(np.mean(found.residuals[problem.used] ** 2))


def _trajectory(found: BundleSolution, t_ns: int) -> Trajectory:
    rig, frame = found.problem.rig, found.problem.tracks.cameras[0].frame
    orientations, positions = se3.to_quaternion(found.poses[rig.body] @ rig.T_body_camera)
    covariances = None if found.covariances is None else found.covariances.camera_covariances()
    times = np.full(len(rig.body), t_ns, np.int64)
    return Trajectory(times, positions, orientations, covariances, frame, frame)


def _cloud(found: BundleSolution, t_ns: int) -> PointCloud:
    tracks, rows = found.problem.tracks, np.flatnonzero(found.problem.used.any(axis=1))
    fields: dict[str, NDArray[Any]] = {}
    if found.covariances is not None:
        fields["covariance"] = found.covariances.point_covariances(rows).reshape(-1, 9).astype(np.float32)
    fields["index"] = tracks.first_row[rows]
    return PointCloud(found.points[rows], fields, t_ns, tracks.cameras[0].frame)
