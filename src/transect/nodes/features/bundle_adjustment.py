"""Poses of a camera, or of a stereo pair, from all that its images share (CDFF's BundleAdjustment)."""

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
from transect.algorithms.vision.features import FeatureTracks, tracks_from_matches
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

FAR = 0.3
"""Standard deviation of a point as a part of its distance, from which on it may as well be at infinity, where
the equations have no solution."""


@outputs
class Bundle:
    """Where the cameras were, and what they saw.

    Attributes
    ----------
    posesSequence : Trajectory
        The pose of the camera of each image, in their order, in the frame of the first one, which is at the
        origin; with covariances: translation (m), then rotation (rad), in that frame.
    success : bool
        Without it there are no other outputs.
    error : float
        Mean square distance between pixels and projected points.
    pointCloud : PointCloud
        The points, in the same frame. Fields: `index` (n,), row of the point in the first map, -1 if it is
        not there; where they are known, `covariance` (n, 9), square metres row by row.
    inliers : float
        Part of the sightings that agree.
    iterations : int
        Until the solution stood still.
    """

    posesSequence: Trajectory | None = None
    success: bool = False
    error: Annotated[float, Unit("px2")] | None = None
    pointCloud: PointCloud | None = None
    inliers: float | None = None
    iterations: int | None = None


class Start(NamedTuple):
    """Where an adjustment begins: ``T_world_body`` (b, 4, 4), points (n, 3) in metres, NaN where unknown."""

    rig: CameraRig
    poses: Floats
    points: Floats


class Solution(NamedTuple):
    """Where an adjustment ends.

    Attributes
    ----------
    problem : Problem
        With the sightings that agree.
    poses : (b, 4, 4)
        ``T_world_body``.
    points : (n, 3)
        Metres, in the world.
    squares : float
        Mean square distance between pixels and projected points, square pixels.
    iterations : int
    spread : Covariances or None
        None where they are not known.
    """

    problem: BundleProblem
    poses: Floats
    points: Floats
    squares: float
    iterations: int
    spread: BundleCovariances | None = None


class BundleAdjustment(Node, interface=True):
    """Finds the poses of cameras from matches between all pairs of images.

    Images are those of one camera that moves, or pairs left, right, left, right, ... whose distance then sets
    the scale. A guess of the poses has one for each image, or for each but the first; a guess of the points
    has one for each row of the first map, or a field `index` of such rows. Both may be left out.
    """

    sigma: float = param(0.5, gt=0, unit="px", doc="standard deviation of a pixel coordinate")
    least: int = param(15, ge=6, doc="smallest number of points of an image")
    baseline: float = param(
        1.0,
        gt=0,
        unit="m",
        doc="largest distance from the first camera, used where neither rig nor guess gives a scale",
    )

    def process(
        self,
        correspondenceMapsSequence: CorrespondenceMaps2D,
        guessedPosesSequence: Latest[Trajectory | None] = None,
        guessedPointCloud: Latest[PointCloud | None] = None,
    ) -> Bundle:
        tracks = tracks_from_matches(correspondenceMapsSequence)
        found = self.solve(tracks, guessedPosesSequence, guessedPointCloud)
        if found is None:
            return Bundle()
        t_ns, share = correspondenceMapsSequence.t_ns, found.problem.used.sum() / tracks.seen.sum()
        path, cloud = _trajectory(found, t_ns), _cloud(found, t_ns)
        return Bundle(path, True, found.squares, cloud, float(share), found.iterations)

    def solve(
        self, tracks: FeatureTracks, guess: Trajectory | None, cloud: PointCloud | None
    ) -> Solution | None:
        """Find poses and points from what the images share; None, and the reason is counted, without any."""
        raise NotImplementedError

    def begin(
        self, tracks: FeatureTracks, guess: Trajectory | None, cloud: PointCloud | None
    ) -> Start | None:
        """Return where an adjustment begins, by the guesses or by the matches; None where it cannot."""
        if not len(tracks) or tracks.seen.sum(axis=0).min() < self.least:
            return self.ctx.skip("an image shares too few points with the others")
        rig = camera_rig_of(tracks.cameras, self.ctx.frames)
        poses = _read_guess(guess, rig) or place_cameras(tracks, rig, self.sigma, self.baseline)
        if poses is None:
            return self.ctx.skip("the cameras cannot be placed to begin with")
        points = _first_points(PartialReconstruction(tracks, rig, self.sigma, poses), cloud)
        return Start(rig, se3.invert(np.array([poses[k] for k in range(rig.body_count)])), points)

    def end(self, problem: BundleProblem, found: AdjustedBundle, iterations: int) -> Solution | None:
        """Return what was adjusted with its covariances; None where they say that it is undetermined."""
        spread = estimate_covariances(found, problem.rig)
        if spread is None:
            return self.ctx.skip("the images do not determine the poses")
        return Solution(problem, found.poses, found.points, _mean_square(problem, found), iterations, spread)


class GtsamAdjustment(BundleAdjustment):
    """Levenberg and Marquardt on a factor graph: with Huber's cost, then without what does not agree."""

    gate: float = param(3.5, gt=0, doc="largest reprojection error of an inlier, in standard deviations")
    share: float = param(0.5, ge=0, le=1, doc="smallest share of the observations that must be inliers")

    def solve(
        self, tracks: FeatureTracks, guess: Trajectory | None, cloud: PointCloud | None
    ) -> Solution | None:
        start = self.begin(tracks, guess, cloud)
        if start is None:
            return None
        rig, poses, points = start
        known = tracks.seen & np.isfinite(points).all(axis=1, keepdims=True)
        first = adjust_bundle(BundleProblem(tracks, rig, self.sigma, known), poses, points, robust=True)
        if first is None:
            return self.ctx.skip("the images do not determine the poses")
        agrees = known & (np.nan_to_num(first.residuals, nan=np.inf) <= self.gate * self.sigma)
        agrees &= _find_determined(tracks, rig, first.poses, agrees, self.sigma)[:, None]
        share = np.count_nonzero(agrees) / np.count_nonzero(tracks.seen)
        if agrees.sum(axis=0).min() < self.least or share < self.share:
            return self.ctx.skip("too few sightings agree")
        problem = BundleProblem(tracks, rig, self.sigma, agrees)
        last = adjust_bundle(problem, first.poses, first.points, robust=False)
        if last is None or not last.converged:
            return self.ctx.skip("the adjustment did not converge")
        return self.end(problem, last, first.iterations + last.iterations)


class LeastSquaresAdjustment(BundleAdjustment):
    """Levenberg and Marquardt on the squares of all sightings, as CDFF does with Ceres: for clean matches."""

    limit: float = param(2.0, gt=0, unit="px", doc="largest root mean square reprojection error")

    def solve(
        self, tracks: FeatureTracks, guess: Trajectory | None, cloud: PointCloud | None
    ) -> Solution | None:
        start = self.begin(tracks, guess, cloud)
        if start is None:
            return None
        known = tracks.seen & np.isfinite(start.points).all(axis=1, keepdims=True)
        problem = BundleProblem(tracks, start.rig, self.sigma, known)
        found = adjust_bundle(problem, start.poses, start.points, robust=False)
        if found is None or not found.converged:
            return self.ctx.skip("the adjustment did not converge")
        if not _mean_square(problem, found) <= self.limit**2:
            return self.ctx.skip("the adjustment leaves too much")
        return self.end(problem, found, found.iterations)


class SvdDecomposition(BundleAdjustment):
    """Closed forms by singular value decomposition, refined by least squares: needs no guess.

    Factorisation (Tomasi and Kanade 1992, Christy and Horaud 1996) for distant cameras, essential matrices
    for close ones. It uses points that all of at least three images see, rejects no outliers, and gives no
    covariances: a start for an adjustment.
    """

    limit: float = param(1.5, gt=0, unit="px", doc="largest root mean square reprojection error")

    def solve(
        self, tracks: FeatureTracks, guess: Trajectory | None, cloud: PointCloud | None
    ) -> Solution | None:
        whole = tracks.take(np.asarray(tracks.seen.all(axis=1)))
        if len(whole) < self.least or len(whole.cameras) < 3:
            return self.ctx.skip("too few points are seen in all of at least three images")
        scale = _Scale(camera_rig_of(tracks.cameras, self.ctx.frames), self.baseline)
        found = factorise(whole.normalised)
        if found is None:
            return self.ctx.skip("no cameras and points explain what all images see")
        poses, points = scale.apply(*found[:2])
        alone = CameraRig(list(range(len(poses))), np.tile(np.eye(4), (len(poses), 1, 1)))
        problem = BundleProblem(whole, alone, self.sigma, whole.seen)
        squares = float(np.mean(reprojection_errors(problem, poses, points) ** 2))
        if not squares <= self.limit**2:
            return self.ctx.skip("the factorisation leaves too much")
        determined = _find_determined(whole, alone, poses, whole.seen, self.sigma)
        if np.count_nonzero(determined) < self.least:
            return self.ctx.skip("the cameras saw too little parallax to place the points")
        return Solution(problem, poses, points, squares, found[2])


def _read_guess(guess: Trajectory | None, rig: CameraRig) -> Poses | None:
    """Return the bodies' ``T_body_world`` of a guess; None if there is none, or one says nothing."""
    if guess is None or not len(guess) or guess.orientations is None:
        return None
    if not guess.orientations.any(axis=1).all():  # CDFF's sign for a pose that could not be computed
        return None
    images = len(rig.body)
    if len(guess) not in (images, images - 1):
        raise UsageError(
            f"{len(guess)} guessed poses do not go with {images} images",
            why="there must be one for each image, or for each but the first",
        )
    given = se3.from_quaternion(guess.orientations, guess.positions)
    all_poses = given if len(guess) == images else np.concatenate([np.eye(4)[None], given])
    T_first_camera = se3.invert(all_poses[0]) @ all_poses
    if not (rig.has_scale or T_first_camera[:, :3, 3].any()):
        return None
    first = [rig.body.index(body) for body in range(rig.body_count)]
    return {body: se3.invert(T_first_camera[image]) for body, image in enumerate(first)}


def _first_points(guess: PartialReconstruction, cloud: PointCloud | None) -> Floats:
    """Return the points (n, 3) that the cameras mean, or those of a guess; NaN where neither knows one."""
    found = guess.points()
    points = np.where(_near_enough(found)[:, None], found.points, np.nan)
    if cloud is not None and len(cloud):
        track_of = {int(row): track for track, row in enumerate(guess.tracks.first_row) if row >= 0}
        for point, row in zip(cloud.points, cloud.fields.get("index", range(len(cloud))), strict=True):
            if int(row) in track_of:
                points[track_of[int(row)]] = point
    return points


def _find_determined(tracks: FeatureTracks, rig: CameraRig, poses: Floats, used: Mask, sigma: float) -> Mask:
    """Return which tracks (n,) are determined by the sightings (n, m) that are used, for known cameras."""
    pixels = np.where(used[..., None], tracks.pixels, np.nan)
    seen = FeatureTracks(pixels, tracks.cameras, tracks.first_row)
    return _near_enough(PartialReconstruction(seen, rig, sigma, dict(enumerate(se3.invert(poses)))).points())


def _near_enough(found: TriangulatedPoints) -> Mask:
    """Return which points (n,) are known to a part of their distance."""
    spread = np.sqrt(np.trace(found.covariances, axis1=1, axis2=2))
    with np.errstate(invalid="ignore"):
        return found.in_front & (spread < FAR * np.linalg.norm(found.points, axis=1))


@dataclass(frozen=True)
class _Scale:
    """What sets the size of a scene of unknown unit: the distance of a stereo pair, else the largest one."""

    rig: CameraRig
    baseline: float

    def apply(self, poses: Floats, points: Floats) -> tuple[Floats, Floats]:
        """Return poses (m, 4, 4) and points (n, 3) in metres."""
        places = poses[:, :3, 3]
        if self.rig.has_scale:
            true = float(np.linalg.norm(self.rig.T_body_camera[1, :3, 3]))
            found = float(np.median(np.linalg.norm(places[1::2] - places[::2], axis=1)))
        else:
            true, found = self.baseline, float(np.linalg.norm(places, axis=1).max())
        return se3.from_matrix(poses[:, :3, :3], places * (true / found)), points * (true / found)


def _mean_square(problem: BundleProblem, found: AdjustedBundle) -> float:
    """Return the mean of the squared residuals of the sightings that were used, square pixels."""
    return float(np.mean(found.residuals[problem.used] ** 2))


def _trajectory(found: Solution, t_ns: int) -> Trajectory:
    rig, frame = found.problem.rig, found.problem.tracks.cameras[0].frame
    orientations, positions = se3.to_quaternion(found.poses[rig.body] @ rig.T_body_camera)
    covariances = None if found.spread is None else found.spread.camera_covariances()
    times = np.full(len(rig.body), t_ns, np.int64)
    return Trajectory(times, positions, orientations, covariances, frame, frame)


def _cloud(found: Solution, t_ns: int) -> PointCloud:
    tracks, rows = found.problem.tracks, np.flatnonzero(found.problem.used.any(axis=1))
    fields: dict[str, NDArray[Any]] = {}
    if found.spread is not None:
        fields["covariance"] = found.spread.point_covariances(rows).reshape(-1, 9).astype(np.float32)
    fields["index"] = tracks.first_row[rows]
    return PointCloud(found.points[rows], fields, t_ns, tracks.cameras[0].frame)
