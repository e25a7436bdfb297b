"""Where on Earth a local frame is, checked against PROJ's topocentric coordinates."""

from __future__ import annotations

import numpy as np
import pyproj
import pytest

from transect.base.arrays import Floats
from transect.geometry.georeferencing import find_earth_frame

ANGLES = np.linspace(0, 5, 400)
WAY = np.column_stack([40 * np.sin(ANGLES), 25 * np.cos(1.3 * ANGLES), 0.2 * np.sin(3 * ANGLES)])
"""East, north and up of the antenna (m)."""
OFFSET = np.array([5.0, -3.0, 0.0])
PLACES = {
    "north": (50.1, 8.7, 120.0),
    "southern hemisphere, west": (-33.02, -60.88, 25.0),
    "edge of two UTM zones": (37.7, 12.0, 1500.0),
    "equator": (0.0, -78.45, 2800.0),
    "antimeridian": (-16.8, 179.99995, 5.0),
    "Arctic": (78.2, 15.6, -3.0),
}


def geodetic(points: Floats, latitude: float, longitude: float, height: float) -> Floats:
    """Return latitude, longitude (deg) and height (n, 3) of points in east, north and up."""
    way = (
        f"+proj=pipeline +step +inv +proj=topocentric +ellps=WGS84 +lat_0={latitude} +lon_0={longitude} "
        f"+h_0={height} +step +inv +proj=cart +ellps=WGS84"
    )
    longitudes, latitudes, heights = pyproj.Transformer.from_pipeline(way).transform(*points.T)
    return np.column_stack([latitudes, longitudes, heights])


def turned(points: Floats, angle: float) -> Floats:
    """Return points of east, north and up in a frame whose x axis is at an angle from east (rad)."""
    cosine, sine = np.cos(angle), np.sin(angle)
    return points @ np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1.0]])


@pytest.mark.parametrize("angle", [0.0, 0.8, -2.9])
@pytest.mark.parametrize("place", PLACES)
def test_a_crs_has_the_coordinates_of_the_frame(place: str, angle: float) -> None:
    degrees = geodetic(WAY + OFFSET, *PLACES[place])
    found = find_earth_frame(turned(WAY, angle), np.column_stack([np.radians(degrees[:, :2]), degrees[:, 2]]))
    assert found is not None
    far = np.array([[300.0, 200.0, 0.0], [-250.0, 100.0, 0.0], [0.0, 0.0, 0.0]])
    latitudes, longitudes, _ = geodetic(far + OFFSET, *PLACES[place]).T
    crs = pyproj.CRS.from_user_input(found.crs("frame map"))
    assert crs.name == "frame map"
    x, y = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(longitudes, latitudes)
    np.testing.assert_allclose(np.column_stack([x, y]), turned(far, angle)[:, :2], atol=2e-3)
    assert found.height == pytest.approx(PLACES[place][2], abs=0.01)


def test_wrong_fixes_do_not_move_the_frame() -> None:
    generator = np.random.default_rng(1)
    degrees = geodetic(WAY + generator.normal(0, 0.02, WAY.shape), *PLACES["north"])
    degrees[::8, 0] += 30 / 111_000  # reflections: 30 m north
    found = find_earth_frame(WAY, np.column_stack([np.radians(degrees[:, :2]), degrees[:, 2]]))
    assert found is not None
    off = np.array([np.degrees(found.latitude) - 50.1, (np.degrees(found.longitude) - 8.7) * 0.64]) * 111_000
    assert np.linalg.norm(off) < 0.02
    assert abs(np.degrees(found.turn)) < 0.05


def test_the_stated_sigma_is_that_of_the_frame() -> None:
    generator = np.random.default_rng(2)
    errors, sigmas = list[float](), list[float]()
    for _ in range(60):
        degrees = geodetic(WAY + generator.normal(0, 0.5, WAY.shape), *PLACES["north"])
        found = find_earth_frame(WAY, np.column_stack([np.radians(degrees[:, :2]), degrees[:, 2]]))
        assert found is not None
        errors.append(found.turn)
        sigmas.append(found.sigma_turn)
    assert 0.7 < np.sqrt(np.mean(np.square(errors))) / np.mean(sigmas) < 1.4


def test_precise_fixes_count_more() -> None:
    generator = np.random.default_rng(3)
    sigmas = np.where(np.arange(len(WAY)) < 100, 0.01, 2.0)
    shifted = (
        WAY + generator.normal(0, 1, WAY.shape) * sigmas[:, None] + np.where(sigmas > 1, 3.0, 0.0)[:, None]
    )
    degrees = geodetic(shifted, *PLACES["north"])
    fixes = np.column_stack([np.radians(degrees[:, :2]), degrees[:, 2]])
    found = find_earth_frame(WAY, fixes, sigmas)
    assert found is not None
    assert abs(np.degrees(found.latitude) - 50.1) * 111_000 < 0.1
