"""Poses of a camera, or of a stereo pair, from all that its images share (CDFF's BundleAdjustment)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.engine import Latest, Node, Unit, outputs, param
from transect.errors import UsageError
from transect.geometry import se3
from transect.types import CorrespondenceMaps2D, PointCloud, Trajectory

from ._views import Triangulated
from .adjustment import (
    Adjusted,
    Covariances,
    Guess,
    Poses,
    Problem,
    Rig,
    Tracks,
    adjust,
    covariances_of,
    factorise,
    place_cameras,
    residuals,
    rig_of,
    tracks_of,
)

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
        Until the solution stood still; 0 for a closed form.
    """

    posesSequence: Trajectory | None = None
    success: bool = False
    error: Annotated[float, Unit("px2")] | None = None
    pointCloud: PointCloud | None = None
    inliers: float | None = None
    iterations: int | None = None


class Begun(NamedTuple):
    """Where an adjustment begins: ``T_world_body`` (b, 4, 4), points (n, 3) in metres, NaN where unknown."""

    tracks: Tracks
    rig: Rig
    poses: Floats
    points: Floats


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
    ) -> Bundle: ...

    def begin(
        self, maps: CorrespondenceMaps2D, guess: Trajectory | None, cloud: PointCloud | None
    ) -> Begun | Bundle:
        """Return where an adjustment begins, by the guesses or by the matches; a refusal where it cannot."""
        tracks = tracks_of(maps)
        if not len(tracks) or tracks.seen.sum(axis=0).min() < self.least:
            return self.refuse("an image shares too few points with the others")
        rig = rig_of(tracks.cameras, self.ctx.frames)
        poses = _read_guess(guess, rig) or place_cameras(tracks, rig, self.sigma, self.baseline)
        if poses is None:
            return self.refuse("the cameras cannot be placed to begin with")
        points = _first_points(Guess(tracks, rig, self.sigma, poses), cloud)
        return Begun(tracks, rig, se3.invert(np.array([poses[k] for k in range(rig.bodies)])), points)

    def refuse(self, reason: str) -> Bundle:
        """Count why there is no solution."""
        self.ctx.skip(reason)
        return Bundle()


class GtsamAdjustment(BundleAdjustment):
    """Levenberg and Marquardt on a factor graph: with Huber's cost, then without what does not agree."""

    gate: float = param(3.5, gt=0, doc="largest reprojection error of an inlier, in standard deviations")
    share: float = param(0.5, ge=0, le=1, doc="smallest share of the observations that must be inliers")

    def process(
        self,
        correspondenceMapsSequence: CorrespondenceMaps2D,
        guessedPosesSequence: Trajectory | None = None,
        guessedPointCloud: PointCloud | None = None,
    ) -> Bundle:
        begun = self.begin(correspondenceMapsSequence, guessedPosesSequence, guessedPointCloud)
        return begun if isinstance(begun, Bundle) else self._adjust(*begun, correspondenceMapsSequence.t_ns)

    def _adjust(self, tracks: Tracks, rig: Rig, poses: Floats, points: Floats, t_ns: int) -> Bundle:
        known = tracks.seen & np.isfinite(points).all(axis=1, keepdims=True)
        first = adjust(Problem(tracks, rig, self.sigma, known), poses, points, robust=True)
        if first is None:
            return self.refuse("the images do not determine the poses")
        agrees = known & (np.nan_to_num(first.residuals, nan=np.inf) <= self.gate * self.sigma)
        agrees &= _find_determined(tracks, rig, first.poses, agrees, self.sigma)[:, None]
        share = np.count_nonzero(agrees) / np.count_nonzero(tracks.seen)
        if agrees.sum(axis=0).min() < self.least or share < self.share:
            return self.refuse("too few sightings agree")
        problem = Problem(tracks, rig, self.sigma, agrees)
        last = adjust(problem, first.poses, first.points, robust=False)
        if last is None or not last.converged:
            return self.refuse("the adjustment did not converge")
        spread = covariances_of(last, rig)
        if spread is None:
            return self.refuse("the images do not determine the poses")
        squares = float(np.mean(last.residuals[agrees] ** 2))
        path = _trajectory(last.poses, rig, t_ns, tracks, spread.of_cameras())
        steps = first.iterations + last.iterations
        return Bundle(path, True, squares, _cloud(last, problem, spread, t_ns), share, steps)


class LeastSquaresAdjustment(BundleAdjustment):
    """Levenberg and Marquardt on the squares of all sightings, as CDFF does with Ceres: for clean matches."""

    limit: float = param(2.0, gt=0, unit="px", doc="largest root mean square reprojection error")

    def process(
        self,
        correspondenceMapsSequence: CorrespondenceMaps2D,
        guessedPosesSequence: Trajectory | None = None,
        guessedPointCloud: PointCloud | None = None,
    ) -> Bundle:
        begun = self.begin(correspondenceMapsSequence, guessedPosesSequence, guessedPointCloud)
        if isinstance(begun, Bundle):
            return begun
        tracks, rig, poses, points = begun
        problem = Problem(
            tracks, rig, self.sigma, tracks.seen & np.isfinite(points).all(axis=1, keepdims=True)
        )
        found = adjust(problem, poses, points, robust=False)
        if found is None or not found.converged:
            return self.refuse("the adjustment did not converge")
        squares = float(np.mean(found.residuals[problem.used] ** 2))
        if not squares <= self.limit**2:
            return self.refuse("the adjustment leaves too much")
        spread = covariances_of(found, rig)
        if spread is None:
            return self.refuse("the images do not determine the poses")
        t_ns, share = correspondenceMapsSequence.t_ns, problem.used.sum() / tracks.seen.sum()
        path = _trajectory(found.poses, rig, t_ns, tracks, spread.of_cameras())
        cloud = _cloud(found, problem, spread, t_ns)
        return Bundle(path, True, squares, cloud, float(share), found.iterations)


class SvdDecomposition(BundleAdjustment):
    """Tomasi and Kanade's factorisation (1992), made perspective (Christy and Horaud 1996): needs no guess.

    For cameras that look at the same things from different sides: it takes points that are seen in all of at
    least three images, knows no outliers, and gives no covariances. Something to begin an adjustment with.
    """

    limit: float = param(1.5, gt=0, unit="px", doc="largest root mean square reprojection error")
    turn: float = param(
        0.1,
        ge=0,
        unit="rad",
        doc="smallest rotation from the first camera; with less, depth and rotation are not separable",
    )

    def process(
        self,
        correspondenceMapsSequence: CorrespondenceMaps2D,
        guessedPosesSequence: Trajectory | None = None,
        guessedPointCloud: PointCloud | None = None,
    ) -> Bundle:
        tracks = tracks_of(correspondenceMapsSequence)
        whole = tracks.take(np.asarray(tracks.seen.all(axis=1)))
        if len(whole) < self.least or len(whole.cameras) < 3:
            return self.refuse("too few points are seen in all of at least three images")
        scale = _Scale(rig_of(tracks.cameras, self.ctx.frames), self.baseline)
        found = factorise(whole.places)
        if found is None or _largest_turn(found[0]) < self.turn:
            return self.refuse("the cameras do not look from different sides: a factorisation is degenerate")
        poses, points = scale.apply(*found)
        alone = Rig(list(range(len(poses))), np.tile(np.eye(4), (len(poses), 1, 1)))
        problem = Problem(whole, alone, self.sigma, whole.seen)
        squares = float(np.mean(residuals(problem, poses, points) ** 2))
        if not squares <= self.limit**2:
            return self.refuse("the factorisation leaves too much")
        t_ns = correspondenceMapsSequence.t_ns
        cloud = PointCloud(points, {"index": whole.first_row}, t_ns, whole.cameras[0].frame)
        share = float(whole.seen.sum() / tracks.seen.sum())
        return Bundle(_trajectory(poses, alone, t_ns, whole), True, squares, cloud, share, 0)


def _read_guess(guess: Trajectory | None, rig: Rig) -> Poses | None:
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
    if not (rig.scaled or T_first_camera[:, :3, 3].any()):
        return None
    first = [rig.body.index(body) for body in range(rig.bodies)]
    return {body: se3.invert(T_first_camera[image]) for body, image in enumerate(first)}


def _first_points(guess: Guess, cloud: PointCloud | None) -> Floats:
    """Return the points (n, 3) that the cameras mean, or those of a guess; NaN where neither knows one."""
    found = guess.points()
    points = np.where(_near_enough(found)[:, None], found.points, np.nan)
    if cloud is not None and len(cloud):
        track_of = {int(row): track for track, row in enumerate(guess.tracks.first_row) if row >= 0}
        for point, row in zip(cloud.points, cloud.fields.get("index", range(len(cloud))), strict=True):
            if int(row) in track_of:
                points[track_of[int(row)]] = point
    return points


def _find_determined(tracks: Tracks, rig: Rig, poses: Floats, used: Mask, sigma: float) -> Mask:
    """Return which tracks (n,) are determined by the sightings (n, m) that are used, for known cameras."""
    pixels = np.where(used[..., None], tracks.pixels, np.nan)
    seen = Tracks(pixels, tracks.cameras, tracks.first_row)
    return _near_enough(Guess(seen, rig, sigma, dict(enumerate(se3.invert(poses)))).points())


def _near_enough(found: Triangulated) -> Mask:
    """Return which points (n,) are known to a part of their distance."""
    spread = np.sqrt(np.trace(found.covariances, axis1=1, axis2=2))
    with np.errstate(invalid="ignore"):
        return found.in_front & (spread < FAR * np.linalg.norm(found.points, axis=1))


@dataclass(frozen=True)
class _Scale:
    """What sets the size of a scene of unknown unit: the distance of a stereo pair, else the largest one."""

    rig: Rig
    baseline: float

    def apply(self, poses: Floats, points: Floats) -> tuple[Floats, Floats]:
        """Return poses (m, 4, 4) and points (n, 3) in metres."""
        places = poses[:, :3, 3]
        if self.rig.scaled:
            true = float(np.linalg.norm(self.rig.T_body_camera[1, :3, 3]))
            found = float(np.median(np.linalg.norm(places[1::2] - places[::2], axis=1)))
        else:
            true, found = self.baseline, float(np.linalg.norm(places, axis=1).max())
        return se3.from_matrix(poses[:, :3, :3], places * (true / found)), points * (true / found)


def _largest_turn(poses: Floats) -> float:
    """Return the largest angle in rad between the optical axes of the first camera and of another."""
    return float(np.arccos(np.clip(poses[:, 2, 2], -1, 1)).max())


def _trajectory(
    bodies: Floats, rig: Rig, t_ns: int, tracks: Tracks, covariances: Floats | None = None
) -> Trajectory:
    orientations, positions = se3.to_quaternion(bodies[rig.body] @ rig.T_body_camera)
    times, frame = np.full(len(rig.body), t_ns, np.int64), tracks.cameras[0].frame
    return Trajectory(times, positions, orientations, covariances, frame, frame)


def _cloud(found: Adjusted, problem: Problem, spread: Covariances, t_ns: int) -> PointCloud:
    rows = np.flatnonzero(problem.used.any(axis=1))
    covariance = spread.of_points(rows).reshape(-1, 9).astype(np.float32)
    fields = {"covariance": covariance, "index": problem.tracks.first_row[rows]}
    return PointCloud(found.points[rows], fields, t_ns, problem.tracks.cameras[0].frame)
