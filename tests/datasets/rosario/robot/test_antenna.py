"""The antenna's lever arm, and its fixes in metres."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from transect.datasets.rosario.robot.geometry import antenna_from_base, local_from_fixes
from transect.errors import GeometryError

LEVER_ARM_M = (1.8, -0.030, 1.593)
"""Table 1."""


def test_the_antenna_swings_with_the_heading_by_hand() -> None:
    positions = antenna_from_base(np.zeros((3, 3)), np.radians([0.0, 90.0, 180.0]), LEVER_ARM_M)
    np.testing.assert_allclose(
        positions, [[1.8, -0.03, 1.593], [0.03, 1.8, 1.593], [-1.8, 0.03, 1.593]], atol=1e-15
    )


@given(
    hnp.arrays(np.float64, (5, 3), elements=st.floats(-1000, 1000)),
    hnp.arrays(np.float64, (5,), elements=st.floats(-20, 20)),
)
def test_the_antenna_is_at_the_length_of_the_lever_arm(base: np.ndarray, heading: np.ndarray) -> None:
    antenna = antenna_from_base(base, heading, LEVER_ARM_M)
    distance = np.linalg.norm(antenna - base, axis=1)
    np.testing.assert_allclose(distance, np.linalg.norm(LEVER_ARM_M), atol=1e-9)


def test_fixes_become_metres_from_the_first_measured_one() -> None:
    lat, lon = math.radians(-32.952), math.radians(-60.663)
    fixes = [[np.nan] * 3, [lat, lon, 25.0], [lat + 1e-6, lon, 25.0], [lat, lon + 1e-6, 26.0]]
    positions, origin = local_from_fixes(fixes)
    assert origin.tolist() == [lat, lon, 25.0]
    assert np.isnan(positions[0]).all()
    # Radii of curvature of WGS84 there: along the meridian, and across it times cos(lat).
    e2, a = 0.00669437999014, 6378137.0
    w = math.sqrt(1 - e2 * math.sin(lat) ** 2)
    north, east = a * (1 - e2) / w**3 + 25, (a / w + 25) * math.cos(lat)
    np.testing.assert_allclose(positions[2], [0, 1e-6 * north, 0], atol=1e-4)
    np.testing.assert_allclose(positions[3], [1e-6 * east, 0, 1], atol=1e-4)


def test_no_fix_at_all_is_no_origin() -> None:
    with pytest.raises(GeometryError, match="no fix"):
        local_from_fixes(np.full((2, 3), np.nan))
