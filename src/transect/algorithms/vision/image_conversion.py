"""Grey images and conversion between colour spaces."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from transect.errors import TransectError
from transect.geometry import colours
from transect.types import Image


def gray_of(image: Image) -> NDArray[np.uint8]:
    """Return an image of any mode and depth as (h, w) uint8."""
    import cv2

    data = image.data
    if data.dtype == np.uint8 and data.ndim == 2 and not image.mode.startswith("bayer"):
        return np.ascontiguousarray(data)
    rgb = np.ascontiguousarray(colours.rgb_of(image))
    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), np.uint8)


def mask_of(image: Image) -> NDArray[np.uint8] | None:
    """Return the valid pixels of an image as an OpenCV mask (h, w); None if all are."""
    return None if image.valid is None else np.where(image.valid, 255, 0).astype(np.uint8)


PLAIN_MODES = ("gray", "rgb", "bgr", "rgba")
COLOUR_SPACES = ("hsv", "lab")
# OpenCV names a Bayer pattern by its second row: its BG is RGGB elsewhere.
OPENCV_BAYER_NAMES = {
    "bayer_rggb": "BayerBG",
    "bayer_bggr": "BayerRG",
    "bayer_gbrg": "BayerGR",
    "bayer_grbg": "BayerGB",
}


def convert_colours(image: Image, to: str) -> Image:
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
    if image.mode in COLOUR_SPACES or image.mode in OPENCV_BAYER_NAMES:
        rgb = _convert_directly(image, "rgb")
        return rgb if to == "rgb" else convert_colours(rgb, to)
    if image.mode not in PLAIN_MODES:
        raise TransectError(
            f"an image of mode {image.mode!r} has no colours to convert",
            hint=f"known are {', '.join((*PLAIN_MODES, *COLOUR_SPACES, *OPENCV_BAYER_NAMES))}",
        )
    if to in COLOUR_SPACES and image.mode != "rgb":
        return convert_colours(_convert_directly(image, "rgb"), to)
    try:
        return _convert_directly(image, to)
    except cv2.error as error:
        raise TransectError(
            f"{image.mode} of {image.data.dtype} cannot become {to}", why=str(error).strip()
        ) from error


def _convert_directly(image: Image, to: str) -> Image:
    """Convert with a single OpenCV conversion code."""
    import cv2

    names = {"rgb": "RGB", "bgr": "BGR", "rgba": "RGBA", "gray": "GRAY", "hsv": "HSV", "lab": "Lab"}
    code = getattr(cv2, f"COLOR_{OPENCV_BAYER_NAMES.get(image.mode) or names[image.mode]}2{names[to]}")
    data = cv2.cvtColor(np.ascontiguousarray(image.data), code)
    return dataclasses.replace(image, data=data, mode=to)
