"""Disparity images of rectified pairs."""

from __future__ import annotations

from typing import get_args

from transect.algorithms.vision.stereo_matching import METHODS, Method, StereoSearch, coverage, match_stereo
from transect.engine import Node, outputs, param
from transect.types import Image, StereoPair


@outputs
class Disparities:
    """A disparity image (pixels, NaN where not matched), and the share of it that was matched."""

    disparity: Image
    coverage: float


class DisparityImage(Node):
    """How many columns farther left the right camera of a rectified pair sees what the left one sees.

    The result is in the left camera, and its `P` has the baseline. Sky and other surfaces that show no more
    than the noise of the images are left out. Nothing is given where too little is left; an error says so
    where the pair is not rectified or its baseline not known.
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
        doc="share of untextured surface, such as sky, that is matched by chance; 1: no texture test",
    )
    least_coverage: float = param(0.01, ge=0, le=1, doc="smallest share of the image that must be matched")

    def process(self, framePair: StereoPair) -> Disparities | None:
        method = next(known for known in get_args(Method) if known == self.method)
        search = StereoSearch(method, self.window, self.disparities, false_alarms=self.false_alarms)
        found = match_stereo(framePair.left, framePair.right, search)
        matched = coverage(found)
        if matched < self.least_coverage:
            return self.ctx.skip("too little texture to match")
        return Disparities(found, matched)
