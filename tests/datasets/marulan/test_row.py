"""The street of equal houses, where each stretch looks like the next one; and the round of one house."""

from __future__ import annotations

import numpy as np

from transect.datasets.marulan.world.sites import build_row, build_yard


def test_houses_of_the_row_are_alike_and_the_way_between_them_is_free() -> None:
    place = build_row(3)
    middles = np.array([solid.centre[:2] for solid in place.solids if solid.kind == "house"])
    xs = np.unique(np.round(middles[:, 0], 6))
    np.testing.assert_allclose(np.diff(xs), 12.0)
    assert place.route is not None
    street = place.route[0, 1]
    assert np.abs(middles[:, 1] - street).min() - 2.5 > 6.0


def test_the_round_of_the_yard_has_one_house_inside_and_is_clear_of_all() -> None:
    place = build_yard(3)
    assert place.route is not None
    low, high = place.route.min(axis=0), place.route.max(axis=0)
    houses = np.array([solid.centre[:2] for solid in place.solids if solid.kind == "house"])
    inside = ((houses > low) & (houses < high)).all(axis=1)
    assert inside.any()
    np.testing.assert_allclose(houses[inside], houses[inside][:1].repeat(inside.sum(), axis=0), atol=0.5)
    clear = np.maximum(low - houses[~inside], houses[~inside] - high).max(axis=1)
    assert clear.min() > 4.0
