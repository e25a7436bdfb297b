"""Height maps: what was put in (a shift, a bias, holes) comes out; maps that cannot be compared say why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from transect.errors import GeometryError, UsageError
from transect.evaluation.height_maps import map_errors
from transect.types import GridMap

CELL_SIZE_M = 0.04
"""Metres: the cells of the height map of Morocco (integrity.md 4.1)."""


def ground(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Hills some metres wide, analytic: known at every place."""
    return 0.3 * np.sin(1.1 * x) * np.cos(0.7 * y) + 0.1 * np.sin(2.3 * y + x) + 0.05 * x


def made(
    rows: int = 120,
    cols: int = 150,
    cell: float = CELL_SIZE_M,
    moved: tuple[float, float, float] = (0, 0, 0),
    origin: tuple[float, float] = (0.0, 0.0),
    crs: str = "",
) -> GridMap:
    """A north-up map of the ground, as if it lay elsewhere: moved by x, y, z."""
    transform = (cell, 0.0, origin[0], 0.0, -cell, origin[1] + rows * cell)
    col, row = np.meshgrid(np.arange(cols) + 0.5, np.arange(rows) + 0.5)
    x, y = cell * col + origin[0], origin[1] + (rows - row) * cell
    heights = ground(x - origin[0] - moved[0], y - origin[1] - moved[1]) + moved[2]
    return GridMap({"elevation": heights}, transform, crs)


def test_a_map_against_itself_has_no_error_and_is_complete():
    errors = map_errors(made(), made())
    assert errors.statistics.rmse == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(errors.shift, 0, atol=1e-9)
    assert [score.f_score for score in errors.scores] == [1.0, 1.0]
    assert errors.coverage == 1.0
    assert errors.resampling == "bilinear"


@settings(max_examples=8)
@given(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3), st.floats(-2, 2))
def test_the_shift_that_was_put_in_is_found_and_taken_out(x: float, y: float, z: float):
    errors = map_errors(made(), made(moved=(x, y, z)))
    np.testing.assert_allclose(errors.shift, [-x, -y, -z], atol=0.1 * CELL_SIZE_M)
    assert errors.statistics.rmse < 1e-3
    assert errors.deviations.max() < 0.1 * CELL_SIZE_M
    assert errors.before is not None
    assert errors.before.bias == pytest.approx(z, abs=0.35)


def test_without_registration_a_bias_is_seen_as_it_is():
    errors = map_errors(made(), made(moved=(0, 0, 0.5)), register=False)
    assert errors.before is None
    assert errors.statistics.bias == pytest.approx(0.5)
    assert errors.statistics.mae == pytest.approx(0.5)
    assert errors.statistics.nmad == pytest.approx(0, abs=1e-9)
    np.testing.assert_array_equal(errors.shift, 0)


def test_a_known_shift_is_applied_and_not_searched():
    errors = map_errors(made(), made(moved=(0.2, 0.0, 1.0)), register=False, shift=(-0.2, 0.0, -1.0))
    assert errors.statistics.rmse == pytest.approx(0, abs=1e-9)


def test_noise_and_wild_cells_are_distinguished_by_rmse_and_nmad():
    rng = np.random.default_rng(0)
    reference = made()
    heights = reference.layers["elevation"] + rng.normal(scale=0.01, size=reference.layers["elevation"].shape)
    heights[rng.random(heights.shape) < 0.02] += 3.0
    errors = map_errors(reference, GridMap({"elevation": heights}, reference.transform))
    assert errors.statistics.nmad == pytest.approx(0.01, rel=0.05)
    assert errors.statistics.rmse == pytest.approx(3 * np.sqrt(0.02), rel=0.1)
    assert np.abs(errors.shift).max() < 0.005
    assert errors.scores[1].accuracy == pytest.approx(0.98, abs=0.005)
    assert errors.scores[1].completeness > 0.99  # within two cells of a wild one there is a good one


def test_holes_lower_completeness_and_not_accuracy():
    reference = made()
    heights = reference.layers["elevation"].copy()
    heights[:, :75] = np.nan
    errors = map_errors(reference, GridMap({"elevation": heights}, reference.transform))
    assert errors.coverage == pytest.approx(0.5)
    near, far = errors.scores
    steep = 2 * 120 / heights.size  # the columns beside the hole that one and two cells reach
    assert near.completeness == pytest.approx(0.5, abs=steep)
    assert near.completeness <= far.completeness <= 0.5 + 2 * steep
    assert near.accuracy == far.accuracy == 1.0
    assert near.f_score == pytest.approx(2 * near.completeness / (1 + near.completeness))


def test_a_coarser_map_is_resampled_to_the_cells_of_the_reference():
    coarse = made(60, 75, cell=2 * CELL_SIZE_M)
    errors = map_errors(made(), coarse, register=False)
    assert errors.difference.shape == (120, 150)
    assert errors.statistics.p95 < 2e-3  # a parabola between cells of 8 cm: h'' d^2 / 8
    assert errors.coverage > 0.97


def test_a_plane_has_no_horizontal_shift_to_be_found_and_the_result_says_so():
    row, col = np.mgrid[:40, :50]
    plane = GridMap({"elevation": 0.1 * col + 0.0 * row}, (1.0, 0, 0, 0, -1.0, 0))
    higher = GridMap({"elevation": plane.layers["elevation"] + 0.7}, plane.transform)
    errors = map_errors(plane, higher)
    np.testing.assert_allclose(errors.shift, [0, 0, -0.7], atol=1e-9)
    assert errors.notes[0].startswith("the ground is too flat to determine where the map lies")
    assert errors.notes[0].endswith("only its height was fitted")
    assert np.isnan(errors.deviations).all()


def test_a_map_that_leans_or_is_turned_keeps_that_as_an_error():
    reference = made()
    tilted = reference.layers["elevation"] + np.linspace(-0.1, 0.1, 150)
    errors = map_errors(reference, GridMap({"elevation": tilted}, reference.transform))
    assert errors.statistics.rmse == pytest.approx(0.2 / np.sqrt(12), rel=0.1)


def test_a_map_is_found_as_far_off_as_the_reach_allows():
    moved = made(moved=(0.9, -0.6, 0.0))
    np.testing.assert_allclose(
        map_errors(made(), moved, reach=1.5).shift, [-0.9, 0.6, 0.0], atol=0.1 * CELL_SIZE_M
    )


def test_other_ground_is_not_pushed_to_where_it_happens_to_fit():
    rng = np.random.default_rng(6)
    other = GridMap({"elevation": gaussian_filter(rng.normal(size=(120, 150)), 3)}, made().transform)
    errors = map_errors(made(), other)
    np.testing.assert_array_equal(errors.shift[:2], 0)
    assert "only its height was fitted" in errors.notes[0]


def test_maps_of_two_zones_of_utm_are_brought_together():
    """The same hills sampled in UTM 32 and 33: at the edge of a zone grid north turns by degrees."""
    import pyproj

    transform = pyproj.Transformer.from_crs("EPSG:32633", "EPSG:32632", always_xy=True)
    east, north, cell, n = 180_000.0, 4_180_000.0, 5.0, 80  # near Etna, west of the zone's edge
    reference = made(n, n, cell, origin=(east, north), crs="EPSG:32633")
    hills = np.sin(np.arange(n) / 6)[:, None] * np.cos(np.arange(n) / 9)[None] * 10
    reference = GridMap({"elevation": hills}, reference.transform, reference.crs)
    x0, y0 = transform.transform(east + n * cell / 2, north + n * cell / 2)
    corner = (x0 - n * cell * 0.75, y0 - n * cell * 0.75)
    other = made(int(1.5 * n), int(1.5 * n), cell, origin=corner, crs="EPSG:32632")
    back = pyproj.Transformer.from_crs("EPSG:32632", "EPSG:32633", always_xy=True)
    col, row = np.meshgrid(np.arange(int(1.5 * n)) + 0.5, np.arange(int(1.5 * n)) + 0.5)
    a, _, c, _, e, f = other.transform
    x, y = back.transform(a * col + c, e * row + f)
    rows, cols = (north + n * cell - y) / cell - 0.5, (x - east) / cell - 0.5
    there = np.sin(rows / 6) * np.cos(cols / 9) * 10
    errors = map_errors(reference, GridMap({"elevation": there}, other.transform, other.crs), register=False)
    assert errors.statistics.rmse < 0.05
    assert errors.coverage > 0.95
    assert "UTM zone 32N" in errors.notes[0]


@pytest.mark.parametrize(
    ("reference", "estimate", "said"),
    [
        ("EPSG:32633", "", "the estimate has no coordinate reference system"),
        ("", "EPSG:32633", "the reference has no coordinate reference system"),
        ("EPSG:4326", "EPSG:32633", "are in degrees"),
        ("EPSG:32633", "EPSG:0", "not known"),
    ],
)
def test_reference_systems_that_cannot_be_brought_together_say_so(reference: str, estimate: str, said: str):
    with pytest.raises(UsageError, match=said):
        map_errors(made(crs=reference), made(crs=estimate))


def test_a_map_in_a_site_frame_is_put_where_the_caller_says():
    """As a drone's height map in AMEDS, Figure 9: the site's origin is known in the reference's system."""
    site = (500_000.0, 4_180_000.0)
    reference = made(origin=site, crs="EPSG:32633")
    errors = map_errors(reference, made(), register=False, shift=(*site, 0.0))
    assert errors.statistics.rmse < 1e-6
    assert "site frame" in errors.notes[0]


def test_maps_apart_and_layers_that_are_not_there_are_refused():
    with pytest.raises(GeometryError, match="no position in common"):
        map_errors(made(), made(origin=(100.0, 0.0)))
    two = GridMap({"height": np.zeros((3, 3)), "slope": np.zeros((3, 3))}, (1, 0, 0, 0, 1, 0))
    with pytest.raises(UsageError, match="no layer 'elevation'"):
        map_errors(two, two)


@pytest.mark.real
def test_a_real_elevation_model_is_found_again_three_cells_off(real_data: Path):
    from transect import formats

    grid = next(iter(next(iter(formats.open(real_data / "dem_geotiff" / "pysheds_dem.tif"))))).value
    heights = np.asarray(next(iter(grid.layers.values())), np.float64)
    a, b, c, d, e, f = 30.0, 0.0, 0.0, 0.0, -30.0, 0.0  # its degrees, taken for cells of 30 m
    reference = GridMap({"elevation": heights}, (a, b, c, d, e, f))
    moved = GridMap({"elevation": heights + 7}, (a, b, c + 3 * a, d, e, f + 2 * e))
    errors = map_errors(reference, moved)
    np.testing.assert_allclose(errors.shift, [-3 * a, -2 * e, -7], atol=0.02)
    assert errors.statistics.rmse < 0.01
