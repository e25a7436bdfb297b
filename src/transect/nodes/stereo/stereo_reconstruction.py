"""Disparity images and point clouds from rectified stereo pairs."""

from __future__ import annotations

from typing import Annotated, get_args

from transect.algorithms.vision.disparity_clouds import CloudLimits, cloud_from_disparity
from transect.algorithms.vision.stereo_matching import (
    METHODS,
    Method,
    StereoSearch,
    match_stereo,
    matched_ratio,
)
from transect.engine import Node, Synced, outputs, param
from transect.types import Image, PointCloud, StereoPair


@outputs
class Disparities:
    """A disparity image and its coverage."""

    disparity: Image  # px, NaN where not matched
    coverage: float  # ratio of the pixels that were matched


class DisparityImage(Node):
    """Disparity image of a rectified pair, in the left camera; its `P` contains the baseline.

    Sky and other surfaces without texture above the noise are not matched. There is no output if the coverage
    is too small. Raises if the pair is not rectified or its baseline is not known.
    """

    method: str = param(
        "scanline",
        choices=METHODS,
        doc="matching method: block matching, semi-global matching or its faster scanline form",
    )
    window: int = param(5, ge=3, odd=True, unit="px", doc="edge length of the matching window")
    disparities: int = param(
        0, ge=0, unit="px", doc="number of disparities that are searched; 0: chosen from the images"
    )
    false_alarms: float = param(
        0.001,
        gt=0,
        le=1,
        doc="ratio of untextured surface, such as sky, that is matched by chance; 1: no texture test",
    )
    min_coverage: float = param(0.01, ge=0, le=1, doc="smallest ratio of the image that must be matched")

    def process(self, framePair: StereoPair) -> Disparities | None:
        method = next(known for known in get_args(Method) if known == self.method)
        search = StereoSearch(method, self.window, self.disparities, false_alarms=self.false_alarms)
        found = match_stereo(framePair.left, framePair.right, search)
        matched = matched_ratio(found)
        if matched < self.min_coverage:
            return self.ctx.skip("too little texture to match")
        return Disparities(found, matched)


class DisparityToPointCloud(Node):
    """Points of a disparity image in its camera's frame, with their uncertainty.

    The fields `sigma_along` and `sigma_across` are the standard deviations (m) along the ray from the camera
    and across it. The `P` of the image's camera must contain the baseline.
    """

    out_name = "pointCloud"
    disparity_sigma: float = param(0.25, gt=0, unit="px", doc="standard deviation of a disparity")
    max_error: float = param(0.1, gt=0, doc="largest standard deviation of a range, relative to the range")
    max_range: float = param(
        0.0, ge=0, unit="m", doc="largest range of the points that are kept; 0: unlimited"
    )

    def process(self, dispImage: Image) -> PointCloud | None:
        limits = CloudLimits(self.disparity_sigma, self.max_error, self.max_range)
        cloud = cloud_from_disparity(dispImage, limits)
        return cloud if len(cloud) else self.ctx.skip("no disparity is measured")


class DisparityToPointCloudWithIntensity(Node):
    """As `DisparityToPointCloud`, with the `intensity` or `rgb` of the left image as a further field."""

    out_name = "pointCloud"
    disparity_sigma: float = param(0.25, gt=0, unit="px", doc="standard deviation of a disparity")
    max_error: float = param(0.1, gt=0, doc="largest standard deviation of a range, relative to the range")
    max_range: float = param(
        0.0, ge=0, unit="m", doc="largest range of the points that are kept; 0: unlimited"
    )

    def process(self, dispImage: Image, intensityImage: Image) -> PointCloud | None:
        limits = CloudLimits(self.disparity_sigma, self.max_error, self.max_range)
        cloud = cloud_from_disparity(dispImage, limits, intensityImage)
        return cloud if len(cloud) else self.ctx.skip("no disparity is measured")


@outputs
class StereoCloud:
    """Point cloud and disparity image of a pair."""

    pointcloud: (
        PointCloud  # in the left camera; fields `intensity` or `rgb`, `sigma_along`, `sigma_across` (m)
    )
    disparity: Image  # px, NaN where not matched
    coverage: float  # ratio of the left image that was matched


class StereoReconstruction(Node, interface=True):
    """Point cloud of a rectified pair, with the intensity or colour of the left image.

    Surfaces without texture above the noise, such as sky, are not matched, and distant points with a large
    relative error are removed. There is no output if the coverage is too small. Raises if the pair is not
    rectified or its baseline is not known.
    """

    disparities: int = param(
        0, ge=0, unit="px", doc="number of disparities that are searched; 0: chosen from the images"
    )
    uniqueness: int = param(
        10, ge=0, le=100, unit="%", doc="margin by which the best match must beat the second best"
    )
    speckle: int = param(200, ge=0, unit="px", doc="largest area of an isolated patch that is removed")
    false_alarms: float = param(
        0.001,
        gt=0,
        le=1,
        doc="ratio of untextured surface, such as sky, that is matched by chance; 1: no texture test",
    )
    min_coverage: float = param(0.01, ge=0, le=1, doc="smallest ratio of the image that must be matched")
    disparity_sigma: float = param(0.25, gt=0, unit="px", doc="standard deviation of a disparity")
    max_error: float = param(0.1, gt=0, doc="largest standard deviation of a range, relative to the range")
    max_range: float = param(
        0.0, ge=0, unit="m", doc="largest range of the points that are kept; 0: unlimited"
    )

    def process(self, left: Image, right: Annotated[Image, Synced(0.005)]) -> StereoCloud | None:
        found = self.match(left, right)
        matched = matched_ratio(found)
        if matched < self.min_coverage:
            return self.ctx.skip("too little texture to match")
        limits = CloudLimits(self.disparity_sigma, self.max_error, self.max_range)
        return StereoCloud(cloud_from_disparity(found, limits, left), found, matched)

    def match(self, left: Image, right: Image) -> Image:
        """Return the disparity of each pixel of the left image, NaN where not matched."""
        raise NotImplementedError

    def search(self, left: Image, right: Image, method: Method, window: int) -> Image:
        """Return the disparities by one of the methods of `match_stereo`."""
        search = StereoSearch(
            method, window, self.disparities, self.uniqueness, self.speckle, self.false_alarms
        )
        return match_stereo(left, right, search)


class DisparityMapping(StereoReconstruction):
    """Block matching: fast, precise where there is texture, and incomplete elsewhere.

    Window and uniqueness are those of OpenCV's sample stereo_match.
    """

    window: int = param(9, ge=5, odd=True, unit="px", doc="edge length of the matching window")
    uniqueness: int = param(
        15, ge=0, le=100, unit="%", doc="margin by which the best match must beat the second best"
    )

    def match(self, left: Image, right: Image) -> Image:
        return self.search(left, right, "block", self.window)


class HirschmullerDisparityMapping(StereoReconstruction):
    """Semi-global matching along five paths (Hirschmüller 2008): the most complete, and the slowest."""

    window: int = param(5, ge=3, odd=True, unit="px", doc="edge length of the matching window")

    def match(self, left: Image, right: Image) -> Image:
        return self.search(left, right, "semi-global", self.window)


class ScanlineOptimization(StereoReconstruction):
    """Semi-global matching along three paths: nearly as complete, in a fraction of the time."""

    window: int = param(5, ge=3, odd=True, unit="px", doc="edge length of the matching window")

    def match(self, left: Image, right: Image) -> Image:
        return self.search(left, right, "scanline", self.window)
