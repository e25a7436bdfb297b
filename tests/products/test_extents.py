"""Frames of runs are found on Earth by the fixes of the recording."""

import numpy as np
import pytest

from transect.base.arrays import Floats
from transect.geometry.geodesy import geodetic_from_local
from transect.products import Area
from transect.products.extents import FrameAnchor, lay_on_fixes
from transect.products.place import Place, Site
from transect.recording import stream_of_values
from transect.types import Pose

T_NS = 1_700_000_000_000_000_000 + 200_000_000 * np.arange(60)
ORIGIN = np.array([np.radians(-33.0), np.radians(-60.9), 0.0])
"""Latitude, longitude, height."""
WAY = np.column_stack([np.linspace(0, 12, 60), 3 * np.sin(np.linspace(0, 3, 60)), np.zeros(60)])
"""East, north, up of the robot, m."""
FIXES = geodetic_from_local(WAY + np.array([5.0, -2.0, 0.0]), ORIGIN)


def located(way: Floats, fixes: Floats = FIXES) -> FrameAnchor | None:
    columns = {"x": way[:, 0], "y": way[:, 1], "z": way[:, 2]}
    return lay_on_fixes(stream_of_values("pose", T_NS, columns, type=Pose), T_NS, fixes)


def turned(angle: float) -> Floats:
    """The way in a frame whose x axis is so far to the left of east."""
    cosine, sine = np.cos(angle), np.sin(angle)
    return WAY @ np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1.0]])


@pytest.mark.parametrize("angle", [0.0, 0.7, -2.5])
def test_a_track_is_where_its_fixes_are_however_its_frame_is_turned(angle: float) -> None:
    anchor = located(turned(angle))
    assert anchor is not None
    assert anchor.is_north_up is (angle == 0.0)
    np.testing.assert_allclose(anchor.turn, angle, atol=1e-6)
    place = anchor.locate(
        Place("LineString", tuple(map(tuple, turned(angle)[:, :2].tolist())), site=Site("x"))
    )
    metres = np.radians(np.array(place.points)[:, ::-1] - np.degrees(FIXES[:, :2])) * 6.37e6
    assert np.abs(metres).max() < 1e-3


def test_the_origin_of_a_site_is_the_origin_of_the_frame() -> None:
    anchor = located(WAY)
    assert anchor is not None
    expected = np.degrees(geodetic_from_local(np.array([5.0, -2.0, 0.0]), ORIGIN))
    np.testing.assert_allclose((anchor.latitude, anchor.longitude), expected[:2], atol=1e-8)
    assert anchor.site("field").origin == (anchor.longitude, anchor.latitude)


def test_an_outline_stays_closed() -> None:
    outline = FrameAnchor(-60.9, -33.0, 1.0).locate(Place.of_box(Area(0, 0, 5, 5, "site:x"), Site("x")))
    assert outline.points[0] == outline.points[-1]
    assert len(outline.points) == 5


def test_fixes_of_a_robot_that_stands_place_nothing() -> None:
    assert located(WAY, FIXES[:1].repeat(60, axis=0)) is None


def test_a_track_that_is_elsewhere_than_its_fixes_is_nowhere() -> None:
    assert located(WAY * (5.0, 5.0, 1.0)) is None
