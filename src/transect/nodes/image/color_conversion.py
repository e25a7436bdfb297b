"""Colours of one kind from another."""

from __future__ import annotations

from transect.algorithms.vision.colour_spaces import PLAIN, SPACES, convert
from transect.engine import Node, param
from transect.types import Image


class ColorConversion(Node):
    """The same image in another colour space; pixels keep their depth (uint8, uint16 or float32).

    Hue, saturation, value and CIE L*a*b* are scaled as OpenCV does: H 0-179 for uint8, 0-360 for float32.
    What has no colour (depth, disparity, masks) is refused.
    """

    out_name = "convertedImage"
    to: str = param("gray", choices=(*PLAIN, *SPACES), doc="colour space of the result")

    def process(self, originalImage: Image) -> Image:
        return convert(originalImage, self.to)
