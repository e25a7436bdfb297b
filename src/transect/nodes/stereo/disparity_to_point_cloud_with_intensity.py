"""Points of disparity images, with brightness or colour."""

from __future__ import annotations

from transect.algorithms.vision.disparity_clouds import CloudLimits, cloud_from_disparity
from transect.engine import Node, param
from transect.types import Image, PointCloud


class DisparityToPointCloudWithIntensity(Node):
    """As `DisparityToPointCloud`, with the `intensity` or `rgb` of the left image as a further field."""

    out_name = "pointCloud"
    disparity_sigma: float = param(0.25, gt=0, unit="px", doc="standard deviation of a disparity")
    max_error: float = param(0.1, gt=0, doc="largest standard deviation of a range, as a share of the range")
    max_range: float = param(
        0.0, ge=0, unit="m", doc="largest range of the points that are kept; 0: unlimited"
    )

    def process(self, dispImage: Image, intensityImage: Image) -> PointCloud | None:
        limits = CloudLimits(self.disparity_sigma, self.max_error, self.max_range)
        cloud = cloud_from_disparity(dispImage, limits, intensityImage)
        return cloud if len(cloud) else self.ctx.skip("no disparity is measured")
