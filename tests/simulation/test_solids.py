import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.geometry import rotations
from transect.simulation.solids import (
    Solids,
    box,
    cylinder,
    ellipsoid,
    rod,
    sphere,
    tree,
    turned_box,
    walker,
    wall,
)

EAST = np.array([[1.0, 0.0, 0.0]])
ORIGIN = np.zeros((1, 3))


def first(solid, direction=EAST, origin=ORIGIN, limit=np.inf, t=0.0):
    solids = Solids.of(solid if isinstance(solid, list) else [solid])
    direction = np.atleast_2d(np.asarray(direction, dtype=float))
    unit = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    return solids.nearest(np.atleast_2d(origin), unit, np.full(len(unit), limit), t)


@pytest.mark.parametrize(
    ("solid", "distance"),
    [
        (box("b", [4, -1, -1], [6, 1, 1]), 4.0),
        (cylinder("c", [5, 0, -1], 0.5, 2.0), 4.5),
        (sphere("s", [5, 0, 0], 2.0), 3.0),
        (wall("w", [5, -3], [5, 3], 2.0, 0.4), 4.8),
        (rod("r", [5, -2, 0], [5, 2, 0], 0.1), 4.9),
    ],
)
def test_a_ray_meets_the_near_side_of_each_shape(solid, distance):
    found, number, normal = first(solid)
    assert found[0] == pytest.approx(distance, abs=1e-12)
    assert number[0] == 1
    np.testing.assert_allclose(normal[0], [-1.0, 0.0, 0.0], atol=1e-9)


def test_a_ray_down_meets_the_lid_of_a_cylinder():
    found, _, normal = first(cylinder("c", [0, 0, -3], 0.5, 1.0), [0, 0, -1.0])
    assert found[0] == pytest.approx(2.0)
    np.testing.assert_allclose(normal[0], [0, 0, 1])


def test_nothing_is_met_behind_the_ray_beside_it_or_beyond_the_limit():
    for direction, limit in (([-1, 0, 0], np.inf), ([0, 1, 0], np.inf), ([1, 0, 0], 3.9)):
        found, number, normal = first(box("b", [4, -1, -1], [6, 1, 1]), direction, limit=limit)
        assert np.isinf(found[0])
        assert number[0] == 0
        assert np.isnan(normal).all()


def test_the_nearest_of_several_is_met():
    found, number, _ = first([sphere("far", [9, 0, 0], 1.0), sphere("near", [4, 0, 0], 1.0)])
    assert (found[0], number[0]) == (pytest.approx(3.0), 2)


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.floats(0.1, 3),
    st.lists(st.floats(-6, 6), min_size=3, max_size=3),
)
def test_where_a_ray_meets_a_ball_is_on_the_ball_and_the_normal_points_out(aim, radius, centre):
    centre = np.array(centre)
    direction = centre + radius * np.array(aim)
    if np.linalg.norm(centre) < radius + 0.1 or np.linalg.norm(direction) < 1e-3:
        return
    found, number, normal = first(sphere("s", centre, radius), direction)
    if number[0]:
        point = found[0] * direction / np.linalg.norm(direction)
        assert np.linalg.norm(point - centre) == pytest.approx(radius, abs=1e-7)
        np.testing.assert_allclose(normal[0], (point - centre) / radius, atol=1e-6)
        assert normal[0] @ direction <= 1e-6


@given(st.lists(st.floats(-3, 3), min_size=3, max_size=3), st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_turning_ray_and_box_together_changes_no_distance(turn, aim):
    R = rotations.matrix_from_rotation_vector(np.array(turn))
    direction = np.array([4.0, 0, 0]) + np.array(aim)
    straight = first(turned_box("b", [4, 0, 0], [1, 2, 1.5], np.eye(3)), direction)
    rotated = first(turned_box("b", R @ [4, 0, 0], [1, 2, 1.5], R), R @ direction)
    if straight[1][0] != rotated[1][0]:  # a ray along an edge may fall on either side
        return
    np.testing.assert_allclose(rotated[0], straight[0], atol=1e-9)


def test_among_many_the_nearest_is_that_of_all_asked_one_by_one():
    rng = np.random.default_rng(5)
    centres, sizes = rng.uniform(-20, 20, (60, 3)), rng.uniform(0.2, 3.0, 60)
    many = [
        sphere("ball", c, r) if k % 2 else box("box", c - r, c + r)
        for k, (c, r) in enumerate(zip(centres, sizes, strict=True))
    ]
    aims = rng.normal(size=(400, 3))
    ranges, number, _ = first(many, aims)
    alone = np.column_stack([first(one, aims)[0] for one in many])
    np.testing.assert_array_equal(ranges, alone.min(axis=1))
    met = np.isfinite(ranges)
    assert 50 < met.sum() < 400
    np.testing.assert_array_equal(number[met] - 1, alone[met].argmin(axis=1))


def test_leaves_let_through_what_beer_and_lambert_say():
    angles = np.random.default_rng(1).uniform(-1, 1, (20_000, 2)) * 0.02
    rays = np.column_stack([np.ones(len(angles)), angles])
    crown = ellipsoid("leaves", [50, 0, 0], [1.0, 50.0, 50.0], density=0.5)
    found, number, _ = first(crown, rays)
    # Rays across the middle go through 2 m. Neighbours meet the same leaves, so it is not 20 000 draws.
    assert 1 - (number > 0).mean() == pytest.approx(np.exp(-0.5 * 2), abs=0.05)
    assert found[number > 0].min() > 48.9
    assert found[number > 0].max() < 51.1


def test_the_same_ray_meets_the_same_leaf():
    gum = tree([10, 0, -3], 6.0, 2.0)
    aside, up = (v.ravel() for v in np.meshgrid(np.linspace(-0.2, 0.2, 101), [-0.2, 0.0, 0.1]))
    rays = np.column_stack([np.ones(len(aside)), aside, up])
    np.testing.assert_array_equal(first(gum, rays)[0], first(gum, rays)[0])
    assert set(first(gum, rays)[1].tolist()) == {0, 1, 2}


def test_a_human_walks_at_the_given_speed_and_begins_again():
    path = [(0.0, 0.0, 0.0), (6.0, 0.0, 0.0), (6.0, 6.0, 0.0), (0.0, 6.0, 0.0)]
    human = Solids.of(walker(path, speed=1.2))
    torso = lambda t: human.centres_at(t)[0, :2]  # noqa: E731
    np.testing.assert_allclose(torso(2.5), [3.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(torso(7.5), [6.0, 3.0], atol=1e-6)
    np.testing.assert_allclose(torso(1.0 + 24 / 1.2), torso(1.0), atol=1e-6)


def test_a_human_is_where_the_ray_s_own_time_has_it():
    human = Solids.of(walker([(0.0, 5.0, 0.0), (6.0, 5.0, 0.0)], speed=1.0))
    rays = np.tile([0.0, 1.0, 0.0], (2, 1))
    origin = np.array([[3.0, 0.0, 1.1]])
    found, _, _ = human.nearest(origin, rays, np.full(2, np.inf), np.array([0.0, 3.0]))
    assert np.isinf(found[0])
    assert found[1] == pytest.approx(5 - 0.19, abs=1e-6)


def test_kinds_are_listed_once_and_looks_stay_with_their_solid():
    solids = Solids.of([*tree([0, 0, 0], 5, 2), *tree([9, 0, 0], 5, 2)])
    assert solids.kinds == ("trunk", "leaves")
    assert solids.kind.tolist() == [0, 1, 0, 1]
    assert solids.albedo.shape == (4, 3)
    assert solids.near_infrared[1] > solids.near_infrared[0]
