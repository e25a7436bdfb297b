"""Filters of depth images: what was not measured stays so, and is never averaged in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import TransectError
from transect.nodes.image.image_filtering import ConvolutionFilter, DepthFiltering, MedianFilter
from transect.types import Image

FILTERS = [
    ConvolutionFilter(),
    ConvolutionFilter(window=9),
    MedianFilter(min_measured=0.0),
    MedianFilter(window=5, min_measured=0),
]


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.9), st.floats(0.5, 50.0), st.sampled_from(FILTERS))
def test_a_wall_stays_where_it_is_however_little_of_it_was_measured(
    seed: int, lost: float, depth: float, node: DepthFiltering
):
    holes = np.random.default_rng(seed).random((12, 15)) < lost
    wall = np.where(holes, np.nan, depth).astype(np.float32)
    found = node(Image(wall, "depth")).data
    np.testing.assert_allclose(found, wall, rtol=1e-5)


def test_the_median_takes_out_a_spike_and_keeps_an_edge():
    depth = np.full((20, 30), 2.0, np.float32)
    depth[:, 15:] = 8.0
    depth[5, 5] = 30.0
    found = MedianFilter()(Image(depth, "depth")).data
    depth[5, 5] = 2.0
    np.testing.assert_array_equal(found[1:-1, 1:-1], depth[1:-1, 1:-1])


def test_a_lonely_pixel_is_left_out():
    depth = np.full((9, 9), np.nan, np.float32)
    depth[4, 4] = 3.0
    assert np.isnan(MedianFilter(min_measured=0.25)(Image(depth, "depth")).data).all()


def test_noise_is_less_after_the_mean():
    depth = np.random.default_rng(2).normal(5.0, 0.1, (50, 50)).astype(np.float32)
    assert ConvolutionFilter(window=5)(Image(depth, "depth")).data.std() < 0.05


def test_a_picture_is_no_depth_image():
    with pytest.raises(TransectError, match="not a depth image"):
        MedianFilter()(Image(np.zeros((4, 4), np.uint8)))
