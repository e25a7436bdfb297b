"""Filters on images that are known by construction."""

from __future__ import annotations

import numpy as np
import pytest

from transect.errors import TransectError, UnsupportedError
from transect.nodes.image.image_filtering import (
    BackgroundExtraction,
    BackgroundSubtractorMOG2,
    CannyEdgeDetection,
    DerivativeEdgeDetection,
    KMeansClustering,
    NormalVectorExtraction,
    noise_sigma,
)
from transect.types import CameraModel, Image


def noisy(level: np.ndarray, sigma: float, seed: int = 0) -> Image:
    grain = np.random.default_rng(seed).normal(scale=sigma, size=level.shape)
    return Image(np.clip(np.rint(level + grain), 0, 255).astype(np.uint8))


@pytest.mark.parametrize("sigma", [1.0, 3.0, 8.0])
def test_the_noise_of_an_image_is_found_beside_an_edge_and_on_a_slope(sigma: float):
    level = np.linspace(60, 120, 320) + np.zeros((240, 1))
    level[:, 160:] += 60
    assert noise_sigma(noisy(level, sigma).data) == pytest.approx(sigma, rel=0.12)


def test_a_black_image_has_the_noise_of_rounding():
    assert noise_sigma(np.zeros((64, 64), np.uint8)) == pytest.approx(12**-0.5)


def test_canny_finds_a_step_and_nothing_in_noise():
    level = np.full((120, 160), 80.0)
    assert CannyEdgeDetection()(noisy(level, 4.0)).data.mean() < 0.2
    level[:, 80:] = 160
    edges = CannyEdgeDetection()(noisy(level, 4.0)).data
    assert (edges[:, 77:83].max(axis=1) == 255).mean() > 0.95
    assert (edges[:, :70] > 0).mean() < 1e-3


def test_the_derivative_of_a_slope_is_its_steepness():
    slope = Image((2 * np.arange(60)[None] + np.zeros((40, 1))).astype(np.uint8))
    np.testing.assert_allclose(DerivativeEdgeDetection()(slope).data[2:-2, 2:-2], 2.0, atol=1e-5)


def test_the_background_is_what_stays_while_something_passes():
    node = BackgroundExtraction(frames=20)
    still = np.full((20, 40), 100, np.uint8)
    found = None
    for k in range(30):
        image = still.copy()
        image[:, k : k + 3] = 250
        found = node(Image(image))
        assert (found is None) == (k < 19)
    assert np.abs(found.data.astype(int) - 100).max() <= 3


def test_what_moves_is_foreground_and_the_mixtures_cannot_be_frozen():
    node = BackgroundSubtractorMOG2(history=20)
    for k in range(20):
        node(noisy(np.full((40, 60), 100.0), 2.0, seed=k))
    level = np.full((40, 60), 100.0)
    level[10:20, 10:20] = 200
    mask = node(noisy(level, 2.0, seed=99)).data
    assert (mask[10:20, 10:20] == 255).mean() > 0.9
    assert (mask[25:] == 255).mean() < 0.05
    with pytest.raises(UnsupportedError, match="frozen"):
        node.freeze()


def test_the_normals_of_a_slanted_plane_look_at_the_camera():
    """The plane z = 4 + 0.5 x has the normal (0.5, 0, -1) / |...|."""
    K = np.array([[100.0, 0, 50], [0, 100, 40], [0, 0, 1]])
    x = (np.arange(101) - 50) / 100
    depth = np.broadcast_to(4 / (1 - 0.5 * x), (81, 101)).astype(np.float32).copy()
    depth[40, 50] = np.nan
    image = Image(depth, "depth", camera=CameraModel("c", 101, 81, K))
    normals = NormalVectorExtraction()(image).data
    np.testing.assert_allclose(normals[20, 30], np.array([0.5, 0, -1]) / np.hypot(0.5, 1), atol=1e-4)
    assert np.isnan(normals[40, 51]).all()
    assert np.isnan(normals[0]).all()
    with pytest.raises(TransectError, match="depth image"):
        NormalVectorExtraction()(Image(np.zeros((81, 101), np.uint8), camera=image.camera))


def test_two_colours_become_two_clusters_and_the_same_ones_again():
    rng = np.random.default_rng(1)
    data = np.where(rng.random((30, 40, 1)) < 0.3, [200, 40, 40], [30, 60, 90]) + rng.integers(
        -5, 6, (30, 40, 3)
    )
    image = Image(data.astype(np.uint8), "rgb")
    found = KMeansClustering(clusters=2)(image).data
    colours = np.unique(found.reshape(-1, 3), axis=0)
    np.testing.assert_allclose(colours, [[30, 60, 90], [200, 40, 40]], atol=2)
    np.testing.assert_array_equal(found, KMeansClustering(clusters=2)(image).data)
    with pytest.raises(TransectError, match="too few"):
        KMeansClustering(clusters=5)(Image(np.zeros((2, 2), np.uint8)))
