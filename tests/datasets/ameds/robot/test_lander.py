"""The world of AMEDS: NED, NWU and geodetic around the lander (document 000, section 5.2)."""

from __future__ import annotations

import numpy as np
import pymap3d
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect import robots
from transect.datasets.ameds.robot.arms import lander_of
from transect.geometry.geodesy import geodetic_from_local, local_from_geodetic

ORIGIN = lander_of(robots.load("interact"))
LANDER_GEODETIC = (37.72351, 15.00668, 2639.838)
metres = st.floats(-2000, 2000)


def test_the_lander_is_where_the_document_says():
    assert np.degrees(ORIGIN[:2]) == pytest.approx(LANDER_GEODETIC[:2], abs=1e-12)
    assert ORIGIN[2] == LANDER_GEODETIC[2]
    assert local_from_geodetic(ORIGIN, ORIGIN, "NED") == pytest.approx(np.zeros(3), abs=1e-6)


@given(metres, metres, st.floats(-300, 300))
def test_ned_agrees_with_an_independent_formula_to_a_millimetre(north: float, east: float, down: float):
    lat, lon, alt = pymap3d.ned2geodetic(north, east, down, *LANDER_GEODETIC)
    ned = local_from_geodetic(np.array([np.radians(lat), np.radians(lon), alt]), ORIGIN, "NED")
    assert np.abs(ned - [north, east, down]).max() < 1e-3


@given(metres, metres, st.floats(-300, 300))
def test_there_and_back_is_under_a_millimetre(x: float, y: float, z: float):
    for axes in ("NED", "NWU"):
        back = local_from_geodetic(geodetic_from_local(np.array([x, y, z]), ORIGIN, axes), ORIGIN, axes)
        assert np.abs(back - [x, y, z]).max() < 1e-6


def test_nwu_is_ned_with_east_and_down_turned_round():
    point = geodetic_from_local(np.array([3.0, 4.0, 5.0]), ORIGIN, "NED")
    assert local_from_geodetic(point, ORIGIN, "NWU") == pytest.approx([3.0, -4.0, -5.0], abs=1e-6)


def test_a_thousandth_of_a_degree_north_is_the_meridian_s_radius_of_curvature():
    # M = a (1 - e2) / (1 - e2 sin2)^1.5 at 37.72351 N, plus the height; worked out here from WGS84.
    e2 = 0.00669437999014
    radius = (
        6378137.0 * (1 - e2) / (1 - e2 * np.sin(np.radians(LANDER_GEODETIC[0])) ** 2) ** 1.5
        + LANDER_GEODETIC[2]
    )
    step = np.radians(0.001)
    north = local_from_geodetic(ORIGIN + np.array([step, 0, 0]), ORIGIN, "NED")[0]
    assert north == pytest.approx(radius * step, abs=1e-3)
