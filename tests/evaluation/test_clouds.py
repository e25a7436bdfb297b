"""Clouds: known distances by hand, a motion that was put in is found, a height map as the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.errors import GeometryError
from transect.evaluation.clouds import cloud_errors, cloud_map_errors
from transect.geometry import se3
from transect.types import GridMap, PointCloud


def terrain(n: int = 4000, seed: int = 0) -> np.ndarray:
    x, y = np.random.default_rng(seed).uniform(-3, 3, (2, n))
    return np.column_stack([x, y, 0.4 * np.sin(1.7 * x) * np.cos(1.3 * y) + 0.1 * x * y])


def test_distances_both_ways_of_a_few_points_by_hand():
    reference = PointCloud(np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]]))
    estimate = PointCloud(np.array([[0.0, 0, 0.1], [1, 0, 0.3], [np.nan, 0, 0]]))
    errors = cloud_errors(reference, estimate, (0.2, 1.0), register=False)
    np.testing.assert_allclose(errors.distance, [0.1, 0.3])
    np.testing.assert_allclose(errors.back, [0.1, 0.3, np.hypot(1, 0.3), np.hypot(2, 0.3)])
    near, far = errors.scores
    assert (near.completeness, near.accuracy) == (0.25, 0.5)
    assert near.f_score == pytest.approx(2 * 0.25 * 0.5 / 0.75)
    assert (far.completeness, far.accuracy) == (0.5, 1.0)
    assert (errors.mean, errors.median) == (pytest.approx(0.2), pytest.approx(0.2))
    assert errors.p90 == pytest.approx(0.28)
    assert not errors.registration.searched


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_a_small_motion_that_was_put_in_is_found_and_reported(seed: int):
    twist = np.random.default_rng(seed).uniform(-0.03, 0.03, 6)
    moved = se3.apply(se3.exp(twist), terrain())
    errors = cloud_errors(PointCloud(terrain()), PointCloud(moved), search_radius=0.5)
    np.testing.assert_allclose(errors.registration.matrix @ se3.exp(twist), np.eye(4), atol=1e-4)
    assert errors.registration.searched
    assert errors.registration.angle == pytest.approx(np.linalg.norm(twist[3:]), abs=1e-4)
    assert errors.scores[0].f_score == 1.0


def test_a_registration_that_is_given_is_used_as_it_is():
    motion = se3.exp([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    moved = PointCloud(se3.apply(se3.invert(motion), terrain()))
    errors = cloud_errors(PointCloud(terrain()), moved, register=False, T_reference_estimate=motion)
    assert errors.mean < 1e-9
    assert errors.registration.distance == pytest.approx(np.linalg.norm(motion[:3, 3]))


def test_half_of_a_scene_is_accurate_and_not_complete():
    half = terrain()[terrain()[:, 0] > 0]
    errors = cloud_errors(PointCloud(terrain()), PointCloud(half), (0.1,))
    assert errors.scores[0].accuracy == 1.0
    assert errors.scores[0].completeness == pytest.approx(0.5, abs=0.05)


def test_clouds_that_do_not_meet_and_empty_ones_are_refused():
    with pytest.raises(GeometryError, match="do not overlap"):
        cloud_errors(PointCloud(terrain()), PointCloud(terrain() + 100))
    with pytest.raises(GeometryError, match="the estimate has no measured points"):
        cloud_errors(PointCloud(terrain()), PointCloud(np.full((5, 3), np.nan)))


def test_points_over_a_height_map_have_their_height_over_it():
    col, _ = np.meshgrid(np.arange(20) + 0.5, np.arange(10) + 0.5)
    grid = GridMap({"elevation": 0.5 * col}, (1.0, 0, 0, 0, 1.0, 0))
    places = np.random.default_rng(1).uniform([1, 1], [19, 9], (500, 2))
    points = np.column_stack([places, 0.5 * places[:, 0] + 0.2])
    outside = np.array([[50.0, 50.0, 0.0], [np.nan, 1.0, 1.0]])
    errors = cloud_map_errors(grid, PointCloud(np.vstack([points, outside])))
    np.testing.assert_allclose(errors.difference[:500], 0.2, atol=1e-12)
    assert np.isnan(errors.difference[500:]).all()
    assert errors.statistics.count == 500
    assert [distance for distance, _ in errors.completeness] == [1.0, 2.0]
    assert errors.completeness[1][1] > 0.95


@pytest.mark.real
def test_real_terrain_with_its_buildings_is_complete_where_only_the_ground_is_accurate(real_data: Path):
    """ISPRS's filter test: `-ground` is a subset of the other file."""
    from transect import formats

    def cloud(name: str) -> PointCloud:
        return next(iter(next(iter(formats.open(real_data / "pcl_terrain" / name))))).value

    ground, everything = cloud("samp31-utm-ground.pcd"), cloud("samp31-utm.pcd")
    errors = cloud_errors(ground, everything, (0.1, 0.5), register=False)
    assert errors.scores[0].completeness > 0.99
    assert errors.scores[0].accuracy < 0.8
