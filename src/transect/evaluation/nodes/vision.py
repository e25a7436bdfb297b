"""Quality of features, matches, triangulated points and poses from points, as nodes."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from transect.base.arrays import Floats
from transect.engine import Batch, Node, Shape, Unit, outputs, param
from transect.errors import UsageError
from transect.evaluation.vision import (
    FAIL_INLIER_RATIO,
    WARN_INLIER_RATIO,
    match_quality,
    matchability,
    pose_quality,
    triangulate,
)
from transect.geometry import camera as lenses
from transect.geometry import se3
from transect.types import CameraModel, Correspondences2D, Features2D, Pose


@outputs
class MatchRatios:
    """Descriptor distances of the accepted matches relative to those of all.

    Attributes
    ----------
    sum : float
        Sum over the accepted matches, divided by the mean of all: CDFF's definition.
    mean : float
        Mean over the accepted matches, divided by the mean of all; below 1 if the better ones were
        accepted. Use this one to compare runs.
    accepted : float
        Accepted matches divided by all.
    """

    sum: float
    mean: float
    accepted: float


class MatchRatio(Node):
    """Compares the descriptor distances of accepted matches with those of all (for FeaturesMatching2D).

    All matches are those of each source feature with the nearest sink feature.

    Inputs
    ------
    sourceFeatures, sinkFeatures
        Features that were matched, with descriptors.
    matches
        The accepted matches.
    """

    def process(
        self, sourceFeatures: Features2D, sinkFeatures: Features2D, matches: Correspondences2D
    ) -> MatchRatios | None:
        if matches.source_index is None:
            raise UsageError(
                "the matches have no indices of features", hint="use those of FeaturesMatching2D"
            )
        accepted = np.zeros(len(sourceFeatures), np.bool_)
        accepted[matches.source_index] = True
        found = match_quality(_nearest_distances(sourceFeatures, sinkFeatures), accepted)
        if not np.isfinite(found.q_mean):
            return self.ctx.skip("no match has a distance")
        return MatchRatios(found.q_sum, found.q_mean, found.accepted / found.count)


def _nearest_distances(source: Features2D, sink: Features2D) -> Floats:
    """Return the distance (n,) from each descriptor to the nearest one of the other image."""
    import cv2

    if source.descriptors is None or sink.descriptors is None:
        raise UsageError("the features have no descriptors", hint="FeaturesDescription2D gives them")
    kind = cv2.NORM_HAMMING if source.descriptors.dtype == np.uint8 else cv2.NORM_L2
    found = cv2.BFMatcher(kind).match(source.descriptors, sink.descriptors)
    distances = np.full(len(source), np.nan)
    distances[[match.queryIdx for match in found]] = [match.distance for match in found]
    return distances


@outputs
class MatchedFeatures:
    """Matchability of the features of an image.

    Attributes
    ----------
    matchability : float
        Matched features divided by all.
    auc : float
        Probability that a matched feature has a larger response than an unmatched one; 0.5 if the response
        has no information.
    """

    matchability: float
    auc: float | None = None


class Matchability(Node):
    """Evaluates the features of an image by which of them were matched (CDFF's FeaturesExtraction2D).

    Inputs
    ------
    features
        Features of the first image.
    matches
        Matches with the indices of those features.
    """

    def process(self, features: Features2D, matches: Correspondences2D) -> MatchedFeatures | None:
        if matches.source_index is None:
            raise UsageError(
                "the matches have no indices of features", hint="use those of FeaturesMatching2D"
            )
        if not len(features):
            return self.ctx.skip("there are no features")
        matched = np.zeros(len(features), np.bool_)
        matched[matches.source_index] = True
        found = matchability(matched, features.response)
        return MatchedFeatures(found.ratio, found.auc if np.isfinite(found.auc) else None)


@outputs
class InlierRatio:
    """Inlier ratio of a pose, and whether it is trusted.

    Attributes
    ----------
    share : float
        Inliers divided by all points.
    trusted : bool
        Whether the ratio is at least `warn`.
    usable : bool
        Whether it is at least `fail`.
    """

    share: float
    trusted: bool
    usable: bool


class PnpInliers(Node):
    """Evaluates a pose by its inlier ratio (CDFF's quality of PerspectiveNPointSolving).

    Inputs
    ------
    success
        Whether there is a pose; without one, the ratio is 0.
    inliers
        Which of the points are inliers, one array for each success.
    """

    warn: float = param(WARN_INLIER_RATIO, ge=0, le=1, doc="inlier ratio below which a pose is suspect")
    fail: float = param(FAIL_INLIER_RATIO, ge=0, le=1, doc="inlier ratio below which a pose must not be used")

    def process(
        self, success: bool, inliers: Batch[Annotated[np.ndarray, Shape("n")]] = ()
    ) -> InlierRatio | None:
        if not success:
            return InlierRatio(0.0, False, False)
        if not inliers or not len(inliers[-1]):
            return self.ctx.skip("there are no points")
        found = pose_quality(int(np.count_nonzero(inliers[-1])), len(inliers[-1]), self.warn, self.fail)
        return InlierRatio(found.ratio, found.level == "ok", found.level != "fail")


@outputs
class PointAccuracy:
    """Covariance of triangulated points.

    Attributes
    ----------
    covariance : (n, 3, 3)
        Of each point, m2, in the frame of the camera of the first image; NaN where the rays are parallel.
    roundness : float
        Median over the points of the square root of the ratio of the smallest to the largest eigenvalue: 1
        for a sphere, near 0 if the distance is poorly constrained (Beder and Steffen, DAGM 2006).
    flat : float
        Fraction of points whose roundness is below 0.05, or that could not be triangulated.
    deviation : float
        Median over the points of the square root of the sum of the variances of x, y and z.
    """

    covariance: Annotated[np.ndarray, Shape("n", 3, 3)] | None = None
    roundness: float | None = None
    flat: float | None = None
    deviation: Annotated[float, Unit("m")] | None = None


class TriangulationCovariance(Node):
    """Propagates the error of pixels to points (CDFF's quality of PointCloudReconstruction2DTo3D).

    Inputs
    ------
    matches
        Between two images, with their cameras.
    pose
        Of the camera of the second image in the frame of the first.
    """

    sigma: float = param(0.5, gt=0, unit="px", doc="standard deviation of a matched pixel coordinate")

    def process(self, matches: Correspondences2D, pose: Pose) -> PointAccuracy | None:
        cameras = matches.source_camera, matches.sink_camera
        if cameras[0] is None or cameras[1] is None:
            raise UsageError("the images of the matches came without a calibration")
        if not len(matches):
            return self.ctx.skip("there are no matches")
        coordinates = (
            _normalise_pixels(matches.source, cameras[0]),
            _normalise_pixels(matches.sink, cameras[1]),
        )
        views = np.stack([np.eye(4), se3.invert(se3.from_quaternion(pose.orientation, pose.position))])
        variances = [(self.sigma / np.sqrt(c.K[0, 0] * c.K[1, 1])) ** 2 for c in cameras if c is not None]
        covariances = np.array(variances)[:, None, None] * np.eye(2)
        found = triangulate(views[:, :3], np.stack(coordinates, axis=1), covariances)
        known = np.isfinite(found.roundness)
        if not known.any():
            return PointAccuracy(found.covariances, flat=1.0)
        deviation = float(np.sqrt(np.median(found.traces[known])))
        return PointAccuracy(found.covariances, found.median_roundness, found.poor_ratio, deviation)


def _normalise_pixels(pixels: np.ndarray, camera: CameraModel) -> Floats:
    """Return normalised image coordinates (n, 2) of pixels; NaN for pixels without a ray."""
    model: Literal["pinhole", "fisheye"] = "fisheye" if camera.distortion == "equidistant" else "pinhole"
    lens = camera.coefficients if camera.distortion != "none" else ()
    rays = lenses.unproject(np.asarray(pixels, np.float64), camera.K, lens, model)
    return rays[:, :2] / np.where(rays[:, 2:] > 0, rays[:, 2:], np.nan)
