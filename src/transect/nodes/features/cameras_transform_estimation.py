"""The motion between two cameras that saw the same points (CDFF's CamerasTransformEstimation)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect.algorithms.vision.epipolar import (
    Motion,
    Pairs,
    epipolar_distances,
    measure_turn_residual,
    motion_from,
    off_plane,
)
from transect.algorithms.vision.triangulation import require_camera
from transect.base.arrays import Floats
from transect.engine import Node, Shape, Unit, outputs, param
from transect.geometry import se3
from transect.types import Correspondences2D, Pose


@outputs
class CameraMotion:
    """How the second camera stood to the first.

    Attributes
    ----------
    transform : Pose
        Of the camera that took image B in the frame of the one that took image A. Matches cannot tell the
        distance: it is `baseline`.
    success : bool
        Without it there are no other outputs.
    covariance : (6, 6)
        Translation (m), then rotation (rad), in the frame of A; 0 along the translation.
    inliers : int
        Matches that agree.
    parallax : float
        Median angle between the two rays of a match.
    """

    transform: Pose | None = None
    success: bool = False
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    inliers: int | None = None
    parallax: Annotated[float, Unit("rad")] | None = None


class CamerasTransformEstimation(Node, interface=True):
    """Finds the rigid transform between two calibrated cameras from their fundamental matrix and matches."""

    baseline: float = param(1.0, gt=0, unit="m", doc="distance between the cameras, which sets the scale")

    def process(
        self, fundamentalMatrix: Annotated[np.ndarray, Shape(3, 3)], matches: Correspondences2D
    ) -> CameraMotion:
        one = require_camera(matches.source_camera, "the first image of the matches")
        other = require_camera(matches.sink_camera, "the second image of the matches")
        pairs = Pairs.of(matches.source, matches.sink, one, other)
        found = self.estimate(np.asarray(fundamentalMatrix, np.float64), pairs)
        if found is None:
            return CameraMotion()
        motion, inliers = found
        orientation, direction = se3.to_quaternion(motion.T_source_sink)
        pose = Pose(direction * self.baseline, orientation, matches.t_ns, one.frame, other.frame)
        scale = np.repeat([self.baseline, 1.0], 3)
        return CameraMotion(pose, True, motion.covariance * np.outer(scale, scale), inliers, motion.parallax)

    def estimate(self, F: Floats, pairs: Pairs) -> tuple[Motion, int] | None:
        """Return the motion and how many matches agree; None, and the reason is counted, without one."""
        raise NotImplementedError


class EssentialMatrixDecomposition(CamerasTransformEstimation):
    """That of the four motions of an essential matrix which has the points in front, refined on the matches.

    It fails where the matches do not determine a motion: the camera only turned, or the scene is flat.
    """

    sigma: float = param(0.5, gt=0, unit="px", doc="standard deviation of a matched pixel coordinate")
    threshold: float = param(1.5, gt=0, unit="px", doc="largest distance of an inlier from its epipolar line")
    least: int = param(15, ge=8, doc="smallest number of inliers")
    off_plane: float = param(
        0.05, ge=0, lt=1, doc="smallest share of the inliers that must lie off any one plane"
    )

    def estimate(self, F: Floats, pairs: Pairs) -> tuple[Motion, int] | None:
        pairs = pairs.take(np.abs(epipolar_distances(F, pairs.source, pairs.sink)) <= self.threshold)
        if reason := self._degenerate(pairs):
            return self.ctx.skip(reason)
        found = motion_from(F, pairs, self.sigma)
        if found is None:
            return self.ctx.skip("no motion has the points in front of both cameras")
        return found, len(pairs)

    def _degenerate(self, pairs: Pairs) -> str:
        if len(pairs) < self.least:
            return "too few inliers"
        # Noise in both pixels alone leaves a median of 1.2 * sqrt(2) deviations.
        if measure_turn_residual(pairs) < 3 * self.sigma:
            return "the camera only turned, or all points are far"
        if off_plane(pairs.source, pairs.sink, self.threshold) < self.off_plane:
            return "the scene is flat"
        return ""
