"""Fewer points that look the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.geometry.decimation import Extremes, decimate_path


def test_a_spike_of_one_sample_in_a_million_is_kept():
    x = np.linspace(0.0, 10.0, 1_000_001)
    y = np.zeros(len(x))
    y[654_321], y[100_000] = 7.5, -3.0
    curve = Extremes(0.0, 10.0, 100)
    for part in np.array_split(np.arange(len(x)), 7):
        curve.add(x[part], y[part])
    places, values = curve.curve()
    assert not curve.exact
    assert len(values) <= 200
    assert values.max() == 7.5
    assert values.min() == -3.0
    assert abs(places[np.argmax(values)] - x[654_321]) <= 0.05
    assert curve.count == 1_000_001


def test_few_points_stay_as_they_are_in_the_order_of_the_axis():
    curve = Extremes(0.0, 4.0, 10)
    curve.add([3.0, 1.0], [30.0, 10.0])
    curve.add([2.0, 9.0, 0.5], [np.nan, 5.0, 1.0])
    places, values = curve.curve()
    assert curve.exact
    assert places.tolist() == [0.5, 1.0, 3.0]
    assert values.tolist() == [1.0, 10.0, 30.0]


def test_nothing_gives_an_empty_curve():
    assert [len(each) for each in Extremes(0.0, 1.0, 5).curve()] == [0, 0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(1, 20), st.integers(1, 4))
def test_however_it_is_cut_into_blocks_the_extremes_are_those_of_all(values, parts, blocks):
    x = np.linspace(0.0, 1.0, len(values))
    curve = Extremes(0.0, 1.0, parts)
    for part in np.array_split(np.arange(len(values)), blocks):
        curve.add(x[part], np.array(values)[part])
    _, drawn = curve.curve()
    assert drawn.max() == max(values)
    assert drawn.min() == min(values)
    assert len(drawn) <= max(2 * parts, 2)


def test_a_path_keeps_its_ends_and_every_cell_that_it_enters():
    angle = np.linspace(0, 2 * np.pi, 5000)
    circle = 100 * np.column_stack([np.cos(angle), np.sin(angle)])
    kept = decimate_path(circle, 1.0, 3000)
    assert kept[0] == 0
    assert kept[-1] == 4999
    assert len(kept) < 1200
    gaps = np.linalg.norm(np.diff(circle[kept], axis=0), axis=1)
    assert gaps.max() < 1.0 * np.sqrt(2) + 0.2


@pytest.mark.parametrize("centre", [0.0, -1e3, 1e6])
def test_a_path_that_trembles_about_one_place_ends_with_few_points(centre):
    noise = centre + np.random.default_rng(0).normal(size=(5000, 2))
    assert len(decimate_path(noise, 1e-3, 100)) <= 100
    assert len(decimate_path(np.zeros((0, 2)), 1.0, 10)) == 0
