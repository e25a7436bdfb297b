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

from .features import MultiViewTracks


@dataclass(frozen=True, eq=False)
class CameraRig:
    """Images of one moving camera or of a moving stereo pair; the first camera of a pair is its body."""

    body: list[int]  # m, index of the body pose of each image
    T_body_camera: Floats  # (m, 4, 4)

    @property
    def body_count(self) -> int:
        return self.body[-1] + 1

    @property
    def has_scale(self) -> bool:
        """Whether two cameras at a known distance determine the scale."""
        return self.body_count < len(self.body)


def camera_rig_of(cameras: Sequence[CameraModel], frames: Transforms) -> CameraRig:
    """Return the rig of images of one moving camera, or of stereo pairs in the order left, right, left, ...

    The transform between the cameras of a pair is that of its rectification, or else of the recording's
    frames.
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
            f"the transform between the cameras {first.name!r} and {second.name!r} is not known",
            why=f"there is no projection matrix with a baseline, and no transform: {error.what}",
            hint="give the stereo calibration: P of the right camera, or the transform between the two",
        ) from error


FIXED_SIGMA = 1e-5
"""Standard deviation, in m and rad, of the fixed first pose and of the distance that sets the scale. With a
smaller one the equations are ill-conditioned."""
TRANSLATION_FIRST = np.array([3, 4, 5, 0, 1, 2])


@dataclass(frozen=True, eq=False)
class BundleProblem:
    """The observations of a bundle adjustment."""

    tracks: MultiViewTracks
    rig: CameraRig
    sigma: float  # px, of a coordinate
    used: Mask  # (n, m), observations that are used


@dataclass(frozen=True, eq=False)
class AdjustedBundle:
    """The result of a bundle adjustment."""

    poses: Floats  # (b, 4, 4), T_world_body; the first is fixed
    points: Floats  # (n, 3) m, in the world; NaN for tracks that were not used
    residuals: Floats  # (n, m) px, distances; NaN where not observed, infinite behind a camera
    iterations: int
    converged: bool  # before the largest number of iterations
    graph: Any  # gtsam.NonlinearFactorGraph
    values: Any  # gtsam.Values


def adjust_bundle(
    problem: BundleProblem, poses: Floats, points: Floats, robust: bool, max_iterations: int = 50
) -> AdjustedBundle | None:
    """Return the maximum likelihood poses and points near an initial estimate; None if underdetermined.

    Parameters
    ----------
    poses : (b, 4, 4)
        ``T_world_body``.
    points : (n, 3)
        Metres, in the world.
    robust : bool
        Huber's cost instead of squares.
    """
    lib = gtsam()
    graph, values = _build_graph(lib, problem, poses, robust), _initial_values(lib, problem, poses, points)
    params = lib.LevenbergMarquardtParams()
    params.setMaxIterations(max_iterations)
    optimizer = lib.LevenbergMarquardtOptimizer(graph, values, params)
    try:
        result = optimizer.optimize()
    except RuntimeError:  # gtsam raises it for an underdetermined system
        return None
    X, L = lib.symbol_shorthand.X, lib.symbol_shorthand.L
    adjusted_poses = np.array([result.atPose3(X(k)).matrix() for k in range(problem.rig.body_count)])
    adjusted = np.full((len(problem.tracks), 3), np.nan)
    for row in np.flatnonzero(problem.used.any(axis=1)).tolist():
        adjusted[row] = result.atPoint3(L(row))
    left, steps = reprojection_errors(problem, adjusted_poses, adjusted), int(optimizer.iterations())
    return AdjustedBundle(adjusted_poses, adjusted, left, steps, steps < max_iterations, graph, result)


def _build_graph(lib: Any, problem: BundleProblem, poses: Floats, robust: bool) -> Any:
    X, L, graph = lib.symbol_shorthand.X, lib.symbol_shorthand.L, lib.NonlinearFactorGraph()
    noise = lib.noiseModel.Isotropic.Sigma(2, problem.sigma)
    if robust:
        noise = lib.noiseModel.Robust.Create(lib.noiseModel.mEstimator.Huber.Create(1.345), noise)
    lenses = [
        lib.Cal3_S2(K[0, 0], K[1, 1], K[0, 1], K[0, 2], K[1, 2])
        for K in (camera.K for camera in problem.tracks.cameras)
    ]
    camera_mounts = [lib.Pose3(T) for T in problem.rig.T_body_camera]
    for row, image in np.argwhere(problem.used).tolist():
        pixel, body = problem.tracks.pixels[row, image], problem.rig.body[image]
        graph.add(
            lib.GenericProjectionFactorCal3_S2(
                pixel, noise, X(body), L(row), lenses[image], False, False, camera_mounts[image]
            )
        )
    graph.add(lib.PriorFactorPose3(X(0), lib.Pose3(poses[0]), lib.noiseModel.Isotropic.Sigma(6, FIXED_SIGMA)))
    if not problem.rig.has_scale:
        distances = np.linalg.norm(poses[:, :3, 3] - poses[0, :3, 3], axis=1)
        farthest = int(np.argmax(distances))
        fixed = lib.noiseModel.Isotropic.Sigma(1, FIXED_SIGMA)
        graph.add(lib.RangeFactorPose3(X(0), X(farthest), float(distances[farthest]), fixed))
    return graph


def _initial_values(lib: Any, problem: BundleProblem, poses: Floats, points: Floats) -> Any:
    values = lib.Values()
    for k, pose in enumerate(poses):
        values.insert(lib.symbol_shorthand.X(k), lib.Pose3(pose))
    for row in np.flatnonzero(problem.used.any(axis=1)).tolist():
        values.insert(lib.symbol_shorthand.L(row), points[row])
    return values


def reprojection_errors(problem: BundleProblem, poses: Floats, points: Floats) -> Floats:
    """Return the distances (n, m) in pixels between projected and observed points."""
    views = se3.invert(poses[problem.rig.body] @ problem.rig.T_body_camera)
    in_camera = se3.apply(views[None], points[:, None])
    K = np.array([camera.K for camera in problem.tracks.cameras])
    projected = np.einsum("mij,nmj->nmi", K, in_camera)
    in_front = projected[..., 2] > 0
    pixels = projected[..., :2] / np.where(in_front, projected[..., 2], 1.0)[..., None]
    distance = np.linalg.norm(pixels - problem.tracks.pixels, axis=2)
    return np.where(in_front | np.isnan(distance), distance, np.inf)


class BundleCovariances:
    """Marginal covariances of an adjustment; raises RuntimeError if it is underdetermined."""

    def __init__(self, adjusted: AdjustedBundle, rig: CameraRig) -> None:
        self.adjusted, self.rig = adjusted, rig
        self.marginals = gtsam().Marginals(adjusted.graph, adjusted.values)

    def camera_covariances(self) -> Floats:
        """Return the covariances (m, 6, 6) of the cameras of all images: m, then rad, both in the world."""
        X = gtsam().symbol_shorthand.X
        result = np.zeros((len(self.rig.body), 6, 6))
        for image, body in enumerate(self.rig.body):
            # gtsam orders rotation first, and uses the axes of the body.
            own = self.marginals.marginalCovariance(X(body))[np.ix_(TRANSLATION_FIRST, TRANSLATION_FIRST)]
            mount = self.rig.T_body_camera[image]
            of_camera = se3.transform_covariance(se3.invert(mount), own)
            turn = np.kron(np.eye(2), (self.adjusted.poses[body] @ mount)[:3, :3])
            result[image] = turn @ of_camera @ turn.T
        return result

    def point_covariances(self, rows: NDArray[np.int64]) -> Floats:
        """Return the covariances (k, 3, 3) of some points, m^2, in the world."""
        L = gtsam().symbol_shorthand.L
        each = [self.marginals.marginalCovariance(L(row)) for row in rows.tolist()]
        return np.array(each).reshape(-1, 3, 3)


def estimate_covariances(adjusted: AdjustedBundle, rig: CameraRig) -> BundleCovariances | None:
    """Return the covariances of an adjustment; None if it is underdetermined."""
    try:
        return BundleCovariances(adjusted, rig)
    except RuntimeError:
        return None
