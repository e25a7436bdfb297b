"""How well two views determine the points that were matched in them."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from transect.base.arrays import Floats
from transect.engine import Node, Shape, Unit, outputs, param
from transect.errors import UsageError
from transect.evaluation.vision import triangulate
from transect.geometry import camera as lenses
from transect.geometry import se3
from transect.types import CameraModel, Correspondences2D, Pose


@outputs
class PointAccuracy:
    """How accurate triangulated points are.

    Attributes
    ----------
    covariance : (n, 3, 3)
        Of each point, m2, in the frame of the camera of the first image; NaN where the rays are parallel.
    roundness : float
        Median over the points of the square root of the ratio of the smallest to the largest eigenvalue: 1
        for a ball, near 0 where the distance is hardly known (Beder and Steffen, DAGM 2006).
    flat : float
        Share of points whose roundness is below 0.05, or that are not determined.
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
        both = (_places(matches.source, cameras[0]), _places(matches.sink, cameras[1]))
        views = np.stack([np.eye(4), se3.invert(se3.from_quaternion(pose.orientation, pose.position))])
        variances = [(self.sigma / np.sqrt(c.K[0, 0] * c.K[1, 1])) ** 2 for c in cameras if c is not None]
        spread = np.array(variances)[:, None, None] * np.eye(2)
        found = triangulate(views[:, :3], np.stack(both, axis=1), spread)
        known = np.isfinite(found.roundness)
        if not known.any():
            return PointAccuracy(found.covariances, flat=1.0)
        deviation = float(np.sqrt(np.median(found.traces[known])))
        return PointAccuracy(found.covariances, found.median_roundness, found.flat, deviation)


def _places(pixels: np.ndarray, camera: CameraModel) -> Floats:
    """Return pixels (n, 2) on the plane at distance 1; NaN where no ray of the lens leads to one."""
    model: Literal["pinhole", "fisheye"] = "fisheye" if camera.distortion == "equidistant" else "pinhole"
    lens = camera.coefficients if camera.distortion != "none" else ()
    rays = lenses.unproject(np.asarray(pixels, np.float64), camera.K, lens, model)
    return rays[:, :2] / np.where(rays[:, 2:] > 0, rays[:, 2:], np.nan)
