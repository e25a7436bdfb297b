import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, map_coordinates

from transect.algorithms.coregistration.alignment import align_maps, resample_aligned
from transect.algorithms.coregistration.localisation import locate_map
from transect.errors import GeometryError, UsageError
from transect.geometry import rotations
from transect.nodes.maps import MapAlignment, MapLocalisation
from transect.types import GridMap

SIDE_CELLS = 128


def make_ground(seed: int = 1, side: int = SIDE_CELLS) -> np.ndarray:
    """Hills and smaller hills, m, over cells of 1 m."""
    rng = np.random.default_rng(seed)
    return sum(size * gaussian_filter(rng.normal(size=(side, side)), size) for size in (2, 5, 12))


def as_map(heights: np.ndarray, cell: float = 1.0, x: float = 0.0, y: float = 0.0, **how) -> GridMap:
    """A map whose south-west corner is at x, y."""
    return GridMap({"elevation": heights}, (cell, 0, x, 0, -cell, y + cell * len(heights)), **how)


GROUND = make_ground()
REFERENCE = as_map(GROUND)


def cut_out(shift=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0), scale=1.0, side=80, cell=1.0, noise=0.05, seed=3):
    """What another eye sees of the middle: points of the ground, moved as a rigid body, on cells of its own.

    The truth T_reference_map takes it back. Heights between cells are quintic splines, found by iteration.
    """
    rng = np.random.default_rng(seed)
    matrix = np.eye(4)
    matrix[:3, :3] = scale * rotations.matrix_from_rotation_vector(np.array(turn))
    middle = np.array([SIDE_CELLS / 2, SIDE_CELLS / 2, float(GROUND.mean())])
    matrix[:3, 3] = middle + shift - matrix[:3, :3] @ middle
    low = SIDE_CELLS / 2 - side * cell / 2
    at = low + cell * (np.arange(side) + 0.5)
    x, y = np.meshgrid(at, at[::-1])
    z = np.full(x.shape, middle[2])
    for _ in range(30):
        place = np.stack([x, y, z], axis=-1) @ matrix[:3, :3].T + matrix[:3, 3]
        below = map_coordinates(GROUND, [SIDE_CELLS - 0.5 - place[..., 1], place[..., 0] - 0.5], order=5)
        z = z + (below - place[..., 2]) / matrix[2, 2]
    return as_map(z + rng.normal(0, noise, z.shape), cell, low, low), matrix


def errors_of(found, truth):
    """Error of the middle's place, m (3,), and of the attitude, rad (3,)."""
    middle = np.append(found.placement.middle, 1.0)
    turned = found.placement.rotation @ (truth[:3, :3] / np.cbrt(np.linalg.det(truth[:3, :3]))).T
    return np.concatenate([
        ((found.T_reference_map - truth) @ middle)[:3], rotations.rotation_vector_from_matrix(turned)
    ])  # fmt: skip


def test_shift_turn_and_tilt_are_found_to_a_part_of_a_cell():
    moved, truth = cut_out((4.3, -3.7, 2.0), (0.02, -0.03, np.radians(10)))
    off = errors_of(align_maps(REFERENCE, moved, search_radius=10.0), truth)
    assert np.abs(off[:2]).max() < 0.05
    assert abs(off[2]) < 0.05
    assert np.degrees(np.abs(off[3:])).max() < 0.15


@pytest.mark.parametrize(("turn", "tilt", "free"), [(0.2, False, [0, 1, 2, 5]), (0.0, False, [0, 1, 2])])
def test_what_may_not_lean_or_turn_does_not_and_has_no_sigma(turn, tilt, free):
    moved, truth = cut_out((2.3, -1.7, 2.0), (0.0, 0.0, turn / 2))
    found = align_maps(REFERENCE, moved, search_radius=5.0, turn=turn, tilt=tilt)
    assert np.abs(errors_of(found, truth)[:3]).max() < 0.05
    assert found.covariance.shape == (6, 6)
    assert np.flatnonzero(found.sigmas).tolist() == free
    assert found.placement.tilt == 0.0
    assert (found.placement.heading != 0.0) is (5 in free)


def test_a_reach_below_the_cells_of_the_search_still_finds_the_map():
    found = align_maps(REFERENCE, as_map(GROUND + 1.5, x=0.4), search_radius=0.6, turn=0.0, tilt=False)
    assert found.placement.shift == pytest.approx([-0.4, 0.0, -1.5], abs=0.01)


def test_scale_is_found_when_asked_and_only_then():
    moved, _ = cut_out((1.2, 0.4, 0.0), scale=1.02)
    assert align_maps(REFERENCE, moved, scale=True).placement.scale == pytest.approx(1.02, abs=1e-3)
    assert align_maps(REFERENCE, moved).placement.scale == 1.0


def test_holes_spikes_and_other_cells_do_not_matter():
    moved, truth = cut_out((2.6, 1.1, 5.0), (0.0, 0.0, 0.1), side=140, cell=0.5)
    rng = np.random.default_rng(5)
    heights = moved.layers["elevation"].copy()
    heights[rng.uniform(size=heights.shape) < 0.03] += 20.0
    heights[rng.uniform(size=heights.shape) < 0.15] = np.nan
    heights[20:60, 30:50] = np.nan
    holed = GridMap({"elevation": heights}, moved.transform)
    off = errors_of(align_maps(REFERENCE, holed, search_radius=6.0), truth)
    assert np.abs(off[:2]).max() < 0.1
    assert np.degrees(np.abs(off[3:])).max() < 0.3


def test_a_reference_with_many_small_holes_still_lies_under_the_map():
    moved, truth = cut_out((2.3, -1.7, 0.0), side=60)
    holed = GROUND.copy()
    holed[np.random.default_rng(9).uniform(size=holed.shape) < 0.2] = np.nan
    found = locate_map(as_map(holed), moved, at=(60.0, 66.0), within=15.0, turn=0.1)
    assert found.hypotheses[0].alignment.overlap > 0.9
    assert np.abs(errors_of(found.hypotheses[0].alignment, truth)[:2]).max() < 0.1


def test_the_covariance_is_as_large_as_the_errors_are():
    squares = []
    for seed in range(12):
        moved, truth = cut_out((0.4, -0.3, 0.2), (0.0, 0.01, 0.03), side=48, noise=0.3, seed=100 + seed)
        found = align_maps(REFERENCE, moved, search_radius=3.0, turn=0.1)
        off = errors_of(found, truth)
        squares.append(off @ np.linalg.solve(found.covariance, off))
    # Mean of 12 chi-squared values with six degrees: 99.9 % lie within 3.4 and 9.7.
    assert 3.0 < np.mean(squares) < 10.0


def test_the_laid_map_has_the_heights_of_the_reference():
    moved, _ = cut_out((4.3, -3.7, 2.0), (0.02, -0.03, 0.1))
    laid = resample_aligned(REFERENCE, moved, align_maps(REFERENCE, moved, search_radius=8.0))
    known = laid.layers["difference"][np.isfinite(laid.layers["difference"])]
    assert len(known) > 4000
    assert np.sqrt(np.mean(known**2)) < 0.15  # noise 0.05 m, and linear between cells


@pytest.mark.parametrize(
    ("heights", "reason"),
    [
        (np.random.default_rng(1).normal(0, 0.05, (80, 80)), "flat"),
        (make_ground(99)[:80, :80], "not alike|several places|flat"),
    ],
)
def test_flat_ground_and_other_ground_are_refused(heights, reason):
    reference = (
        as_map(np.random.default_rng(2).normal(0, 0.05, (SIDE_CELLS, SIDE_CELLS)))
        if reason == "flat"
        else REFERENCE
    )
    with pytest.raises(GeometryError, match=reason):
        align_maps(reference, as_map(heights, x=24.0, y=24.0))


def test_maps_that_do_not_overlap_are_refused():
    with pytest.raises(GeometryError, match="do not overlap"):
        align_maps(REFERENCE, as_map(GROUND[:60, :60], x=900.0), search_radius=20.0)


def test_a_slope_that_is_a_plane_is_too_flat():
    plane = as_map(np.add.outer(np.arange(100) * 0.3, np.arange(100) * 0.1))
    with pytest.raises(GeometryError, match="flat"):
        align_maps(plane, as_map(plane.layers["elevation"][20:80, 20:80], x=20.0, y=20.0))


def test_a_map_without_a_reference_system_needs_a_place():
    drone = as_map(GROUND, x=500_000.0, y=4_178_000.0, crs="EPSG:32633")
    moved, _ = cut_out()
    with pytest.raises(UsageError, match="no coordinate reference system"):
        align_maps(drone, moved)
    found = align_maps(drone, moved, at=(500_066.0, 4_178_063.0), search_radius=6.0)
    place = found.plane.from_metres((found.placement.middle + found.placement.shift)[:2])
    assert place == pytest.approx([500_064.0, 4_178_064.0], abs=0.05)


def test_a_map_is_found_in_a_large_one_from_nothing():
    moved, truth = cut_out((20.0, -15.0, 0.0), (0.01, 0.0, 2.5), side=25, cell=2.0)
    found = locate_map(REFERENCE, moved)
    assert found.is_sure
    off = errors_of(found.hypotheses[0].alignment, truth)
    assert np.abs(off[:2]).max() < 0.1
    assert abs(np.degrees(off[5])) < 0.5


def test_ground_that_repeats_gives_several_places_of_like_probability():
    tile = make_ground(4, 48)
    wave = np.tile(gaussian_filter(tile, 1, mode="wrap"), (1, 3))
    reference = as_map(np.vstack([wave, make_ground(7, 144)[:60]]))
    noise = np.random.default_rng(8).normal(0, 0.1, (36, 36))
    found = locate_map(reference, as_map(wave[6:42, 54:90] + noise), turn=0.3)
    assert len(found.hypotheses) >= 3
    assert not found.is_sure
    assert all(each.probability > 0.05 for each in found.hypotheses[:3])


def test_the_nodes_say_why_they_refuse():
    flat = as_map(np.zeros((40, 40)))
    node = MapAlignment()
    assert node(flat, flat).success is False
    assert MapLocalisation()(flat, flat).success is False


def test_the_nodes_give_the_pose_of_the_map():
    moved, truth = cut_out((2.0, 1.0, 0.5), (0.0, 0.0, 0.05))
    given = MapAlignment(search_radius=5.0)(REFERENCE, moved)
    assert given.success
    # The origin of the frame lies 90 m from the map's middle.
    assert given.transform.position == pytest.approx(truth[:3, 3], abs=0.3)
    located = MapLocalisation(max_turn=10.0, east=64.0, north=64.0, search_radius=6.0)(REFERENCE, moved)
    assert located.success
    assert located.hypotheses[0, 4] == pytest.approx(0.05, abs=0.01)
