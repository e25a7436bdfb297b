"""Names beside points: apart from each other, inside, and off what they would hide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.draw.figures import place_labels

NOTHING = np.zeros((0, 2))
SHEET_BOUNDS = (0.0, 0.0, 600.0, 400.0)


def overlap(a: np.ndarray, b: np.ndarray, sizes: np.ndarray) -> bool:
    return bool((np.abs(a - b) < sizes.mean(axis=0)).all())


@given(st.lists(st.tuples(st.floats(150, 450), st.floats(100, 300)), min_size=2, max_size=8))
def test_names_never_overlap_where_there_is_room(points: list[tuple[float, float]]):
    anchors = np.array(points)
    sizes = np.tile((70.0, 12.0), (len(points), 1))
    centres = place_labels(anchors, sizes, NOTHING, SHEET_BOUNDS)
    pairs = [(i, k) for i in range(len(points)) for k in range(i)]
    assert not any(overlap(centres[i], centres[k], sizes[[i, k]]) for i, k in pairs)
    assert (centres - sizes / 2 >= SHEET_BOUNDS[:2]).all()
    assert (centres + sizes / 2 <= SHEET_BOUNDS[2:]).all()


def test_a_name_keeps_off_what_it_would_hide():
    anchor, size = np.array([[300.0, 200.0]]), np.array([[60.0, 12.0]])
    free = place_labels(anchor, size, NOTHING, SHEET_BOUNDS)[0]
    line = np.column_stack([np.linspace(free[0] - 40, free[0] + 40, 50), np.full(50, free[1])])
    kept = place_labels(anchor, size, line, SHEET_BOUNDS)[0]
    assert not (np.abs(line - kept) < size[0] / 2).all(axis=1).any()


def test_a_point_in_the_corner_has_its_name_inside():
    centre = place_labels(np.array([[2.0, 398.0]]), np.array([[80.0, 12.0]]), NOTHING, SHEET_BOUNDS)[0]
    assert centre[0] >= 40
    assert centre[1] <= 394


def test_no_points_have_no_names():
    assert place_labels(NOTHING, NOTHING, NOTHING, SHEET_BOUNDS).shape == (0, 2)


def test_marks_that_are_not_seen_count_for_nothing():
    anchor, size = np.array([[300.0, 200.0]]), np.array([[60.0, 12.0]])
    unseen = np.full((5, 2), np.nan)
    assert place_labels(anchor, size, unseen, SHEET_BOUNDS) == pytest.approx(
        place_labels(anchor, size, NOTHING, SHEET_BOUNDS)
    )
