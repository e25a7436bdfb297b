"""The fog of RADIATE: lidar and radar in the image of a real camera."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

import transect
from transect.geometry.colours import colours
from transect.robots.overlay import CameraOverlay, view


@pytest.fixture(scope="module")
def seen(real_data: Path) -> CameraOverlay:
    return view(transect.open(real_data / "radiate_fog"), "zed_left", "2019-11-27T13:02:52.6")


def test_lidar_and_radar_are_in_the_image(seen: CameraOverlay):
    by_name = {s.stream.name: s for s in seen.sightings}
    assert set(by_name) == {"velo_lidar", "Navtech_Polar"}
    assert all(abs(s.dt) <= 0.1 for s in seen.sightings)
    assert by_name["velo_lidar"].inside.sum() > 1000
    assert by_name["Navtech_Polar"].inside.sum() > 50


def test_the_pixels_are_those_of_opencv(seen: CameraOverlay):
    lidar = next(s for s in seen.sightings if s.stream.name == "velo_lidar")
    points, still = lidar.points[lidar.inside], np.zeros(3)
    expected, _ = cv2.projectPoints(points, still, still, seen.camera.K, seen.camera.coefficients)
    assert np.allclose(lidar.pixels[lidar.inside], expected[:, 0], atol=1e-6)


def test_the_road_is_nearer_at_the_bottom_of_the_image(seen: CameraOverlay):
    # In the middle of the lower half there is road only, and a flat road is nearer the lower it is seen.
    lidar = next(s for s in seen.sightings if s.stream.name == "velo_lidar")
    x, y = lidar.pixels[lidar.inside].T
    road = (y > 0.65 * seen.camera.height) & (np.abs(x - seen.camera.width / 2) < 0.25 * seen.camera.width)
    depth = lidar.points[lidar.inside, 2][road]
    assert road.sum() > 50
    assert np.corrcoef(y[road], 1 / depth)[0, 1] > 0.9


def test_the_cloud_takes_grey_colours_in_fog(seen: CameraOverlay):
    lidar = next(s for s in seen.sightings if s.stream.name == "velo_lidar")
    assert lidar.T_camera_sensor is not None
    result = colours(lidar.value, seen.image, seen.camera, lidar.T_camera_sensor)
    assert 1000 < len(result) <= lidar.inside.sum()
    rgb = result.fields["rgb"].astype(int)
    assert np.median(np.ptp(rgb, axis=1)) < 40
