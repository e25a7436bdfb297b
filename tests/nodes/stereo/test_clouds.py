"""Points of disparities: projected again they are where they came from, and scatter as they say."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nodes.stereo.scenes import BASELINE_M, FOCAL_PX, HEIGHT_PX, RIGHT, WIDTH_PX, K

from transect.algorithms.vision.disparity_clouds import cloud_covariances
from transect.errors import TransectError
from transect.nodes.stereo.stereo_reconstruction import (
    DisparityToPointCloud,
    DisparityToPointCloudWithIntensity,
)
from transect.types import Image


def disparity_image(values: np.ndarray) -> Image:
    return Image(values.astype(np.float32), "disparity", t_ns=9, frame="left", camera=RIGHT)


@given(st.integers(0, 2**32 - 1))
def test_points_projected_into_both_cameras_are_the_pixels_they_came_from(seed: int):
    rng = np.random.default_rng(seed)
    values = np.where(
        rng.random((HEIGHT_PX, WIDTH_PX)) < 0.01, rng.uniform(3.0, 60.0, (HEIGHT_PX, WIDTH_PX)), np.nan
    )
    cloud = DisparityToPointCloud()(disparity_image(values))
    row, column = np.nonzero(np.isfinite(values))
    x, y, z = cloud.points.T.astype(np.float64)
    np.testing.assert_allclose(FOCAL_PX * x / z + K[0, 2], column, atol=1e-3)
    np.testing.assert_allclose(FOCAL_PX * y / z + K[1, 2], row, atol=1e-3)
    np.testing.assert_allclose(
        FOCAL_PX * (x - BASELINE_M) / z + K[0, 2], column - values[row, column], atol=1e-3
    )


def test_the_covariance_is_the_scatter_of_points_with_noise():
    rng = np.random.default_rng(0)
    column, row, d = 200, 20, 8.0
    values = np.full((HEIGHT_PX, WIDTH_PX), np.nan)
    values[row, column] = d
    found = cloud_covariances(DisparityToPointCloud(disparity_sigma=0.1)(disparity_image(values)))[0]
    noisy_d, u, v = (rng.normal(m, s, 200_000) for m, s in ((d, 0.1), (column, 0.29), (row, 0.29)))
    z = FOCAL_PX * BASELINE_M / noisy_d
    true = np.cov([(u - K[0, 2]) * z / FOCAL_PX, (v - K[1, 2]) * z / FOCAL_PX, z])
    np.testing.assert_allclose(found, true, atol=0.03 * np.linalg.norm(true))


def test_what_is_too_far_to_be_measured_is_left_out():
    values = np.full((HEIGHT_PX, WIDTH_PX), np.nan)
    values[10, [10, 20, 30]] = 1.9, 2.1, 20.0  # 0.2 px of 2 px is a tenth of the range
    node = DisparityToPointCloud(disparity_sigma=0.2, max_error=0.1)
    assert len(node(disparity_image(values))) == 2
    near = DisparityToPointCloud(disparity_sigma=0.2, max_error=0.1, max_range=5.0)
    assert len(near(disparity_image(values))) == 1
    assert DisparityToPointCloud()(disparity_image(np.full((HEIGHT_PX, WIDTH_PX), np.nan))) is None


def test_points_have_the_colour_of_their_pixel():
    values = np.full((HEIGHT_PX, WIDTH_PX), np.nan)
    values[5, 7], values[8, 9] = 10.0, 12.0
    colours = np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8)
    colours[5, 7], colours[8, 9] = (1, 2, 3), (4, 5, 6)
    node = DisparityToPointCloudWithIntensity()
    cloud = node(disparity_image(values), Image(colours, "bgr"))
    np.testing.assert_array_equal(cloud.fields["rgb"], [[3, 2, 1], [6, 5, 4]])
    gray = node(disparity_image(values), Image(colours[..., 0]))
    np.testing.assert_array_equal(gray.fields["intensity"], [1, 4])
    with pytest.raises(TransectError, match="intensity image"):
        node(disparity_image(values), Image(colours[:50]))


def test_a_disparity_image_without_baseline_or_of_whole_numbers_is_refused():
    image = disparity_image(np.full((HEIGHT_PX, WIDTH_PX), 8.0))
    with pytest.raises(TransectError, match="baseline"):
        DisparityToPointCloud()(dataclasses.replace(image, camera=None))
    with pytest.raises(TransectError, match="no disparity image"):
        DisparityToPointCloud()(dataclasses.replace(image, data=np.zeros((HEIGHT_PX, WIDTH_PX), np.uint8)))
