"""The street of equal houses: one stretch of it looks as the next one does."""

from __future__ import annotations

import numpy as np

from transect.simulation.worlds.marulan.places import build_row


def test_houses_of_the_row_are_alike_and_the_way_between_them_is_free() -> None:
    place = build_row(3)
    middles = np.array([solid.centre[:2] for solid in place.solids if solid.kind == "house"])
    xs = np.unique(np.round(middles[:, 0], 6))
    np.testing.assert_allclose(np.diff(xs), 12.0)
    assert place.route is not None
    street = place.route[0, 1]
    assert np.abs(middles[:, 1] - street).min() - 2.5 > 6.0
