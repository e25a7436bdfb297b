"""Bundle adjustment: camera poses and points that minimise the reprojection errors (gtsam)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.algorithms._gtsam import gtsam
from transect.algorithms.transforms import Transforms
from transect.base.arrays import Floats, Mask
from transect.errors import FrameError, TransectError
from transect.geometry import se3
from transect.types import CameraModel

from .features import Tracks


@dataclass(frozen=True, eq=False)
class CameraRig:
    """How images hang together.

    Attributes
    ----------
    body : list of int
        Of each image the number of the moment at which it was taken.
    T_body_camera : (m, 4, 4)
        Of each image where its camera is on the rig; the first camera of a moment is the body.
    """

    body: list[int]
    T_body_camera: Floats

    @property
    def bodies(self) -> int:
        """How many moments there are."""
        return self.body[-1] + 1

    @property
    def scaled(self) -> bool:
        """Whether two cameras at a known distance give the scene its size."""
        return self.bodies < len(self.body)


def camera_rig_of(cameras: Sequence[CameraModel], frames: Transforms) -> CameraRig:
    """Return how images hang together: one camera moves, or pairs left, right, left, right, ....

    How the second camera of a pair stands is taken from the projections of a rectified pair, else from the
    recording's frames.
    """
    alike = [camera.same_as(cameras[0]) and camera.frame == cameras[0].frame for camera in cameras]
    if all(alike):
        return CameraRig(list(range(len(cameras))), np.tile(np.eye(4), (len(cameras), 1, 1)))
    if len(cameras) % 2 or not all(alike[::2]) or any(alike[1::2]):
        raise TransectError(
            "these images are neither of one camera nor of stereo pairs",
            why="cameras: " + ", ".join(camera.name or "?" for camera in cameras),
            hint="give them in the order left, right, left, right, ...",
        )
    pair = np.stack([np.eye(4), _second_in_first(cameras[0], cameras[1], frames)])
    return CameraRig([image // 2 for image in range(len(cameras))], np.tile(pair, (len(cameras) // 2, 1, 1)))


def _second_in_first(first: CameraModel, second: CameraModel, frames: Transforms) -> Floats:
    """Return ``T_first_second`` (4, 4) of two cameras."""
    rectified = first.distortion == second.distortion == "none" and second.P is not None
    if rectified and second.P is not None:
        shift = second.P[0, 3] - (first.P[0, 3] if first.P is not None else 0.0)
        if shift:
            return se3.from_matrix(np.eye(3), [-shift / second.P[0, 0], 0.0, 0.0])
    try:
        return frames.lookup(first.frame, second.frame)
    except FrameError as error:
        raise TransectError(
            f"it is not known how the cameras {first.name!r} and {second.name!r} stand to each other",
            why=f"neither a projection matrix with a baseline, nor the frames, say it: {error.what}",
            hint="give the stereo calibration: P of the right camera, or the transform between the two",
        ) from error


FIXED = 1e-5
"""Deviation, in m and rad, of what is not to move: the first pose, and a distance that sets the scale. With a
smaller one the equations lose too many digits."""
HUBER = 1.345
TRANSLATION_FIRST = np.array([3, 4, 5, 0, 1, 2])


@dataclass(frozen=True, eq=False)
class Problem:
    """What is adjusted.

    Attributes
    ----------
    tracks : Tracks
    rig : CameraRig
    sigma : float
        Standard deviation of a pixel coordinate.
    used : (n, m) bool
        Sightings that count.
    """

    tracks: Tracks
    rig: CameraRig
    sigma: float
    used: Mask


@dataclass(frozen=True, eq=False)
class Adjusted:
    """What came out.

    Attributes
    ----------
    poses : (b, 4, 4)
        ``T_world_body``; the first stays where it was.
    points : (n, 3)
        Metres, in the world; NaN for tracks that were not used.
    residuals : (n, m)
        Distances in pixels; NaN where not seen, infinite behind a camera.
    iterations : int
    converged : bool
        Whether it ended before its iterations did.
    graph, values : gtsam.NonlinearFactorGraph, gtsam.Values
        From which covariances are computed.
    """

    poses: Floats
    points: Floats
    residuals: Floats
    iterations: int
    converged: bool
    graph: Any
    values: Any


def adjust(problem: Problem, poses: Floats, points: Floats, robust: bool, most: int = 50) -> Adjusted | None:
    """Return the most likely poses and points near a first guess; None if they are not determined.

    Parameters
    ----------
    poses : (b, 4, 4)
        ``T_world_body``.
    points : (n, 3)
        Metres, in the world.
    robust : bool
        Huber's cost instead of squares.
    most : int
        Iterations.
    """
    lib = gtsam()
    graph, values = _graph(lib, problem, poses, robust), _values(lib, problem, poses, points)
    params = lib.LevenbergMarquardtParams()
    params.setMaxIterations(most)
    optimizer = lib.LevenbergMarquardtOptimizer(graph, values, params)
    try:
        found = optimizer.optimize()
    except RuntimeError:  # gtsam's word for an undetermined system
        return None
    X, L = lib.symbol_shorthand.X, lib.symbol_shorthand.L
    moved = np.array([found.atPose3(X(k)).matrix() for k in range(problem.rig.bodies)])
    places = np.full((len(problem.tracks), 3), np.nan)
    for row in np.flatnonzero(problem.used.any(axis=1)).tolist():
        places[row] = found.atPoint3(L(row))
    left, steps = residuals(problem, moved, places), int(optimizer.iterations())
    return Adjusted(moved, places, left, steps, steps < most, graph, found)


def _graph(lib: Any, problem: Problem, poses: Floats, robust: bool) -> Any:
    X, L, graph = lib.symbol_shorthand.X, lib.symbol_shorthand.L, lib.NonlinearFactorGraph()
    noise = lib.noiseModel.Isotropic.Sigma(2, problem.sigma)
    if robust:
        noise = lib.noiseModel.Robust.Create(lib.noiseModel.mEstimator.Huber.Create(HUBER), noise)
    lenses = [
        lib.Cal3_S2(K[0, 0], K[1, 1], K[0, 1], K[0, 2], K[1, 2])
        for K in (camera.K for camera in problem.tracks.cameras)
    ]
    mounts = [lib.Pose3(T) for T in problem.rig.T_body_camera]
    for row, image in np.argwhere(problem.used).tolist():
        pixel, body = problem.tracks.pixels[row, image], problem.rig.body[image]
        graph.add(
            lib.GenericProjectionFactorCal3_S2(
                pixel, noise, X(body), L(row), lenses[image], False, False, mounts[image]
            )
        )
    graph.add(lib.PriorFactorPose3(X(0), lib.Pose3(poses[0]), lib.noiseModel.Isotropic.Sigma(6, FIXED)))
    if not problem.rig.scaled:
        away = np.linalg.norm(poses[:, :3, 3] - poses[0, :3, 3], axis=1)
        far = int(np.argmax(away))
        fixed = lib.noiseModel.Isotropic.Sigma(1, FIXED)
        graph.add(lib.RangeFactorPose3(X(0), X(far), float(away[far]), fixed))
    return graph


def _values(lib: Any, problem: Problem, poses: Floats, points: Floats) -> Any:
    values = lib.Values()
    for k, pose in enumerate(poses):
        values.insert(lib.symbol_shorthand.X(k), lib.Pose3(pose))
    for row in np.flatnonzero(problem.used.any(axis=1)).tolist():
        values.insert(lib.symbol_shorthand.L(row), points[row])
    return values


def residuals(problem: Problem, poses: Floats, points: Floats) -> Floats:
    """Return the distances (n, m) in pixels between where points are and where they were seen."""
    views = se3.invert(poses[problem.rig.body] @ problem.rig.T_body_camera)
    there = se3.apply(views[None], points[:, None])
    K = np.array([camera.K for camera in problem.tracks.cameras])
    flat = np.einsum("mij,nmj->nmi", K, there)
    ahead = flat[..., 2] > 0
    pixels = flat[..., :2] / np.where(ahead, flat[..., 2], 1.0)[..., None]
    distance = np.linalg.norm(pixels - problem.tracks.pixels, axis=2)
    return np.where(ahead | np.isnan(distance), distance, np.inf)


class Covariances:
    """Of what was adjusted; RuntimeError where it was not determined."""

    def __init__(self, adjusted: Adjusted, rig: CameraRig) -> None:
        self.adjusted, self.rig = adjusted, rig
        self.marginals = gtsam().Marginals(adjusted.graph, adjusted.values)

    def of_cameras(self) -> Floats:
        """Return the covariances (m, 6, 6) of the cameras of all images: m, then rad, both in the world."""
        X = gtsam().symbol_shorthand.X
        found = np.zeros((len(self.rig.body), 6, 6))
        for image, body in enumerate(self.rig.body):
            # gtsam turns first, and about the body's own axes.
            own = self.marginals.marginalCovariance(X(body))[np.ix_(TRANSLATION_FIRST, TRANSLATION_FIRST)]
            mount = self.rig.T_body_camera[image]
            of_camera = se3.transform_covariance(se3.invert(mount), own)
            turn = np.kron(np.eye(2), (self.adjusted.poses[body] @ mount)[:3, :3])
            found[image] = turn @ of_camera @ turn.T
        return found

    def of_points(self, rows: NDArray[np.int64]) -> Floats:
        """Return the covariances (k, 3, 3) of some points, square metres, in the world."""
        L = gtsam().symbol_shorthand.L
        each = [self.marginals.marginalCovariance(L(row)) for row in rows.tolist()]
        return np.array(each).reshape(-1, 3, 3)


def covariances_of(adjusted: Adjusted, rig: CameraRig) -> Covariances | None:
    """Return the covariances of what was adjusted; None if it was not determined."""
    try:
        return Covariances(adjusted, rig)
    except RuntimeError:
        return None
