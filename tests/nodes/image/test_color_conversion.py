"""Colours whose values are known."""

from __future__ import annotations

import numpy as np
import pytest

from transect.errors import TransectError
from transect.nodes.image.image_filtering import ColorConversion
from transect.types import Image

RED = Image(np.full((4, 6, 3), [255, 0, 0], np.uint8), "rgb", t_ns=7, frame="cam")


@pytest.mark.parametrize(
    ("to", "pixel"),
    [
        ("gray", 76),  # 0.299 of 255, ITU-R BT.601
        ("bgr", [0, 0, 255]),
        ("rgba", [255, 0, 0, 255]),
        ("hsv", [0, 255, 255]),
    ],
)
def test_red_in_other_spaces(to: str, pixel: object):
    found = ColorConversion(to=to)(RED)
    np.testing.assert_array_equal(found.data[0, 0], pixel)
    assert (found.mode, found.t_ns, found.frame) == (to, 7, "cam")


@pytest.mark.parametrize("mode", ["rgb", "bgr", "gray", "hsv", "lab"])
def test_there_and_back(mode: str):
    gray = Image(np.full((4, 6), 90, np.uint8))
    there = ColorConversion(to=mode)(gray)
    np.testing.assert_allclose(ColorConversion(to="gray")(there).data, 90, atol=1)


@pytest.mark.parametrize(
    ("pattern", "at"), [("rggb", (0, 0)), ("bggr", (1, 1)), ("gbrg", (1, 0)), ("grbg", (0, 1))]
)
def test_the_red_pixels_of_each_bayer_pattern_are_red(pattern: str, at: tuple[int, int]):
    mosaic = np.zeros((16, 16), np.uint8)
    mosaic[at[0] :: 2, at[1] :: 2] = 200
    found = ColorConversion(to="rgb")(Image(mosaic, f"bayer_{pattern}")).data[4:-4, 4:-4]
    assert found[..., 0].min() == 200
    assert found[..., 1:].max() == 0


def test_the_same_colours_are_the_same_image():
    assert ColorConversion(to="rgb")(RED) is RED


def test_a_disparity_image_has_no_colours():
    with pytest.raises(TransectError, match="no colours"):
        ColorConversion()(Image(np.zeros((4, 6), np.float32), "disparity"))
