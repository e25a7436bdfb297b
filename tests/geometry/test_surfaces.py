"""Surfaces: boxes and planes by formula, and that nothing depends on where the cloud stands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.errors import GeometryError
from transect.geometry import descriptors, se3, surfaces

twists = st.tuples(*[st.floats(-3, 3)] * 6).map(np.array)


def box(edge: float = 1.0, step: float = 0.1) -> np.ndarray:
    """Points on the six faces of a cube from 0 to `edge`, on a grid with corners and edges in it."""
    line = np.linspace(0, edge, round(edge / step) + 1)
    grid = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    return grid[((grid == 0) | (grid == edge)).any(axis=1)]


def bumpy(n: int = 400) -> np.ndarray:
    """A surface without symmetry, scattered at random."""
    xy = np.random.default_rng(1).uniform(-1, 1, (n, 2))
    x, y = xy.T
    return np.column_stack([xy, 2 + 0.3 * np.sin(3 * x) * y + 0.2 * np.exp(-4 * (x - 0.3) ** 2 - 6 * y**2)])


def test_spacing_of_a_grid_is_its_step():
    assert surfaces.spacing(box(step=0.1)) == pytest.approx(0.1)


@pytest.mark.parametrize("count", [100, 400])
def test_the_number_of_occupied_voxels_is_the_requested_one(count: int):
    points = np.random.default_rng(0).uniform(0, [10, 10, 0.001], (20_000, 3))
    size = surfaces.voxel_for(points, count)
    occupied = len(np.unique(np.floor(points / size), axis=0))
    assert 0.7 * count < occupied < 1.5 * count
    assert size == pytest.approx(10 / np.sqrt(count), rel=0.2)  # a square of 10 m, all of it covered


def test_pairs_are_those_that_are_near_each_other():
    points = np.random.default_rng(0).uniform(0, 1, (60, 3))
    first, second, distance = surfaces.pairs_within(points, 0.3)
    every = np.linalg.norm(points[:, None] - points[None], axis=2)
    i, j = np.nonzero(np.triu(every <= 0.3, 1))
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == set(
        zip(i.tolist(), j.tolist(), strict=True)
    )
    np.testing.assert_allclose(distance, every[first, second])


def test_a_radius_with_too_many_neighbours_is_refused():
    with pytest.raises(GeometryError, match="too large for this cloud"):
        surfaces.pairs_within(np.zeros((10_000, 3)), 1.0)


def test_points_with_nan_are_refused():
    with pytest.raises(GeometryError, match="without NaN"):
        surfaces.spacing([[0.0, 0, 0], [np.nan, 0, 0]])


def test_normals_of_a_plane_look_at_the_sensor_and_it_is_not_curved():
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(-1, 1, (200, 2)), np.full(200, -2.0)])
    found = surfaces.normals(points)
    np.testing.assert_allclose(found.normals, np.tile([0, 0, 1], (200, 1)), atol=1e-9)
    np.testing.assert_allclose(found.curvature, 0, atol=1e-12)
    below = surfaces.normals(points, viewpoint=[0, 0, -5])
    np.testing.assert_allclose(below.normals[:, 2], -1)


def test_normals_of_a_sphere_go_to_its_middle():
    direction = np.random.default_rng(0).normal(size=(3000, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    found = surfaces.normals(2 * direction, 12)
    assert np.median(np.einsum("ni,ni->n", found.normals, -direction)) > 0.999


def test_iss_finds_the_corners_of_a_box_and_nothing_on_its_faces():
    points = box()
    found = surfaces.iss_keypoints(points, 0.35)
    corners = points[found.rows]
    off = np.linalg.norm(corners - np.round(corners), axis=1)
    assert len(corners) >= 8
    assert (off < 0.25).all()
    assert len({tuple(row) for row in np.round(corners)}) == 8


def test_harris_finds_the_eight_corners_of_a_box():
    points = box()
    normals = surfaces.normals(points, 9, viewpoint=[0.5, 0.5, 0.5]).normals
    found = surfaces.harris_keypoints(points, normals, 0.35, suppression=0.5)
    corners = points[found.rows]
    assert len({tuple(row) for row in np.round(corners)}) == 8
    assert (np.linalg.norm(corners - np.round(corners), axis=1) < 0.3).all()
    assert (found.response <= 1 / 27 + 1e-9).all()


def test_a_flat_sheet_has_no_corners():
    line = np.arange(20) * 0.1
    sheet = np.stack(np.meshgrid(line, line, [2.0], indexing="ij"), axis=-1).reshape(-1, 3)
    normals = surfaces.normals(sheet, 9).normals
    assert len(surfaces.harris_keypoints(sheet, normals, 0.35).rows) == 0


@settings(max_examples=10)
@given(twists)
def test_descriptors_and_keypoints_stay_the_same_when_the_cloud_is_moved(twist: np.ndarray):
    T, points = se3.exp(twist), bumpy()
    moved = se3.apply(T, points)
    here = surfaces.normals(points, 12).normals
    there = surfaces.normals(moved, 12, viewpoint=T[:3, 3]).normals
    np.testing.assert_allclose(there, here @ T[:3, :3].T, atol=1e-6)
    first, second = descriptors.fpfh(points, here, 0.3), descriptors.fpfh(moved, there, 0.3)
    # A pair of points on the very edge of a bin may fall into the other; that concerns few.
    assert np.mean(np.abs(first - second).max(axis=1) > 1e-9) < 0.05
    np.testing.assert_array_equal(
        surfaces.iss_keypoints(points, 0.3).rows, surfaces.iss_keypoints(moved, 0.3).rows
    )


def test_histograms_sum_to_one_and_lonely_points_have_none():
    points = np.vstack([bumpy(), [[50.0, 0, 0]]])
    found = descriptors.fpfh(points, surfaces.normals(points, 12).normals, 0.3)
    np.testing.assert_allclose(found[:-1].reshape(-1, 3, 11).sum(axis=2), 1)
    assert np.isnan(found[-1]).all()


def test_rows_that_are_asked_for_get_the_histograms_that_they_have_among_all():
    points = bumpy()
    normals = surfaces.normals(points, 12).normals
    np.testing.assert_allclose(
        descriptors.fpfh(points, normals, 0.3, [5, 77]), descriptors.fpfh(points, normals, 0.3)[[5, 77]]
    )


def test_on_a_plane_all_pairs_have_the_same_angles():
    points = np.column_stack([np.random.default_rng(0).uniform(-1, 1, (200, 2)), np.full(200, 2.0)])
    normals = np.tile([0.0, 0, -1], (200, 1))
    found = descriptors.fpfh(points, normals, 0.4).reshape(-1, 3, 11)
    np.testing.assert_allclose(found[:, :, 5], 1)  # angles of 0 lie in the middle bin


def test_a_corridor_leaves_the_motion_along_it_free_and_a_room_none():
    rng = np.random.default_rng(0)
    x = rng.uniform(-10, 10, 900)
    across, side = rng.uniform(-1, 1, 900), np.repeat([[0, 1], [0, -1], [1, -1]], 300, axis=0)
    walls = np.where(
        side[:, :1] == 0,
        np.column_stack([side[:, 1] * 1.0, across]),
        np.column_stack([across, -np.ones(900)]),
    )
    points = np.column_stack([x, walls])
    normals = np.where(side[:, :1] == 0, [[0.0, 1, 0]], [[0.0, 0, 1]])
    free = surfaces.information(points, normals)
    assert free.ratio < 1e-6
    np.testing.assert_allclose(np.abs(free.weakest), [1, 0, 0, 0, 0, 0], atol=1e-6)
    ends = np.column_stack([np.repeat([-10.0, 10.0], 100), rng.uniform(-1, 1, (200, 2))])
    room = surfaces.information(
        np.vstack([points, ends]), np.vstack([normals, np.tile([1.0, 0, 0], (200, 1))])
    )
    assert room.ratio > 0.005
