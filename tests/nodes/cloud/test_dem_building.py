"""Height maps of planes, steps and roofs that are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.nodes.cloud.dem_building import DemBuilding, GroundElevation, MeanElevation
from transect.types import GridMap, PointCloud

BOTH = pytest.mark.parametrize("kind", [MeanElevation, GroundElevation])


def plane(a: float, b: float, c: float, noise: float = 0.0, n: int = 20_000) -> np.ndarray:
    """Points of z = a + b x + c y over 4 m by 4 m."""
    rng = np.random.default_rng(0)
    xy = rng.uniform(-2, 2, (n, 2))
    return np.column_stack([xy, a + xy @ [b, c] + noise * rng.standard_normal(n)])


def built(node: DemBuilding, *clouds: np.ndarray) -> GridMap:
    for points in clouds:
        assert node(PointCloud(points, frame="map")) is None
    return node.finish()


def centres(dem: GridMap) -> tuple[np.ndarray, np.ndarray]:
    a, _, c, _, e, f = dem.transform
    rows, columns = dem.layers["elevation"].shape
    return np.meshgrid(c + a * (np.arange(columns) + 0.5), f + e * (np.arange(rows) + 0.5))


@BOTH
@given(a=st.floats(-100, 100), b=st.floats(-0.5, 0.5), c=st.floats(-0.5, 0.5))
def test_a_plane_is_found_at_the_middle_of_each_cell(kind, a: float, b: float, c: float):
    dem = built(kind(cell=0.2), plane(a, b, c, n=5000))
    x, y = centres(dem)
    inner = dem.layers["count"] >= 3
    np.testing.assert_allclose(dem.layers["elevation"][inner], (a + b * x + c * y)[inner], atol=1e-4)
    np.testing.assert_allclose(dem.layers["slope"][inner], np.arctan(np.hypot(b, c)), atol=1e-4)
    assert np.nanmax(dem.layers["roughness"]) < 1e-3


@BOTH
def test_roughness_is_the_noise_and_uncertainty_that_of_a_mean(kind):
    dem = built(kind(range_noise=0.001), plane(1.0, 0.1, 0.2, noise=0.02))
    x, y = centres(dem)
    error = dem.layers["elevation"] - (1.0 + 0.1 * x + 0.2 * y)
    assert np.nanmedian(dem.layers["roughness"]) == pytest.approx(0.02, rel=0.1)
    within = np.abs(error) < 2 * dem.layers["uncertainty"]
    assert 0.92 < within[np.isfinite(error)].mean() < 0.98


def test_clouds_add_up_as_one():
    points = plane(0.0, 0.3, 0.0, noise=0.01)
    once, parts = built(MeanElevation(), points), built(MeanElevation(), *np.array_split(points, 5))
    for name, values in once.layers.items():
        np.testing.assert_allclose(parts.layers[name], values, atol=1e-6)


def test_a_roof_over_the_ground_is_not_ground():
    ground, roof = plane(0.0, 0.1, 0.0), plane(2.0, 0.0, 0.0)
    roof = roof[np.abs(roof[:, 0]) < 1]
    low, mean = built(GroundElevation(), ground, roof), built(MeanElevation(), ground, roof)
    x, _ = centres(low)
    assert np.nanmax(np.abs(low.layers["elevation"] - 0.1 * x)) < 0.05
    assert np.nanmax(np.abs(mean.layers["elevation"] - 0.1 * x)) > 0.5


def test_an_outlier_below_the_ground_does_not_lower_it():
    outlier = np.array([[0.05, 0.05, -3.0]])
    dem = built(GroundElevation(), plane(0.0, 0.0, 0.0, n=100_000), outlier)
    assert np.nanmin(dem.layers["elevation"]) > -0.01


def test_cells_with_few_returns_have_no_elevation_but_a_count():
    dem = built(MeanElevation(min_points=3), np.array([[0.05, 0.05, 1.0]] * 3 + [[0.25, 0.05, 1.0]] * 2))
    np.testing.assert_array_equal(dem.layers["count"], [[3, 0, 2]])
    np.testing.assert_array_equal(np.isfinite(dem.layers["elevation"]), [[True, False, False]])
    assert dem.frame == "map"


def test_without_points_there_is_no_map():
    node = MeanElevation()
    assert node(PointCloud(np.full((5, 3), np.nan))) is None
    assert node.finish() is None
