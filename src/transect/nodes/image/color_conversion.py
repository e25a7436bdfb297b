"""Colours of one kind from another."""

from __future__ import annotations

import dataclasses

import numpy as np

from transect.engine import Node, param
from transect.errors import TransectError
from transect.types import Image

PLAIN = ("gray", "rgb", "bgr", "rgba")
SPACES = ("hsv", "lab")
# OpenCV names a Bayer pattern by its second row: its BG is what everybody else calls RGGB.
BAYER = {"bayer_rggb": "BayerBG", "bayer_bggr": "BayerRG", "bayer_gbrg": "BayerGR", "bayer_grbg": "BayerGB"}


class ColorConversion(Node):
    """The same image in another colour space; pixels keep their depth (uint8, uint16 or float32).

    Hue, saturation, value and CIE L*a*b* are scaled as OpenCV does: H 0-179 for uint8, 0-360 for float32.
    What has no colour (depth, disparity, masks) is refused.
    """

    out_name = "convertedImage"
    to: str = param("gray", choices=(*PLAIN, *SPACES), doc="colour space of the result")

    def process(self, originalImage: Image) -> Image:
        return convert(originalImage, self.to)


def convert(image: Image, to: str) -> Image:
    """Return an image in another colour space.

    Parameters
    ----------
    image : Image
        Mode gray, rgb, rgba, bgr, hsv, lab or one of the four Bayer patterns.
    to : str
        gray, rgb, rgba, bgr, hsv or lab.
    """
    import cv2

    if image.mode == to:
        return image
    if image.mode in SPACES or image.mode in BAYER:
        rgb = _step(image, "rgb")
        return rgb if to == "rgb" else convert(rgb, to)
    if image.mode not in PLAIN:
        raise TransectError(
            f"an image of mode {image.mode!r} has no colours to convert",
            hint=f"known are {', '.join((*PLAIN, *SPACES, *BAYER))}",
        )
    if to in SPACES and image.mode != "rgb":
        return convert(_step(image, "rgb"), to)
    try:
        return _step(image, to)
    except cv2.error as error:
        raise TransectError(
            f"{image.mode} of {image.data.dtype} cannot become {to}", why=str(error).strip()
        ) from error


def _step(image: Image, to: str) -> Image:
    """Convert by what OpenCV has one code for."""
    import cv2

    names = {"rgb": "RGB", "bgr": "BGR", "rgba": "RGBA", "gray": "GRAY", "hsv": "HSV", "lab": "Lab"}
    code = getattr(cv2, f"COLOR_{BAYER.get(image.mode) or names[image.mode]}2{names[to]}")
    data = cv2.cvtColor(np.ascontiguousarray(image.data), code)
    return dataclasses.replace(image, data=data, mode=to)
