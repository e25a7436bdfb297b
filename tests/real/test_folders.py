"""Folders of loose images, clouds and maps among the real data open as recordings."""

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.types import GridMap, Image


def test_the_chessboards_are_thirteen_stereo_pairs(real_data: Path):
    recording = transect.open(real_data / "stereo_calib_chessboard")
    left, right = recording["left"], recording["right"]
    assert recording.format == "folder"
    assert (left.tag, right.tag) == ("left", "right")
    assert len(left) == len(right) == 13  # SOURCE.txt: 13 pairs
    assert left.t_ns.tolist() == right.t_ns.tolist()
    assert left[12].value.data.shape == (480, 640)


def test_middlebury_pairs_are_left_and_right(real_data: Path):
    recording = transect.open(real_data / "stereo_middlebury")
    for scene, left, right in (
        ("teddy", "im2", "im6"),
        ("tsukuba", "im2", "im6"),
        ("aloe", "aloeL", "aloeR"),
    ):
        pair = recording[f"{scene}/{left}"], recording[f"{scene}/{right}"]
        assert tuple(s.tag for s in pair) == ("left", "right")
        assert pair[0][0].value.data.shape == pair[1][0].value.data.shape
    assert recording["teddy/disp2"].role == "derived"
    assert recording.truth is None


def test_cdff_s_images_and_clouds_open_together(real_data: Path):
    recording = transect.open(real_data / "cdff_images_clouds")
    assert recording.losses == ()
    images = [s for s in recording if s.type is Image]
    assert {s.tag for s in images} == {"left", "right"}
    for stream in recording:
        assert stream[0].value is not None
    minnie = recording["Images/MinnieStereo/MinnieRectDeg3Right"]
    assert minnie.camera.endswith("MinnieRectDeg3Right/NavCamR")
    assert minnie[0].value.camera.K[0, 0] == 339.532


def test_the_fog_scan_and_its_image_are_one_recording(real_data: Path):
    recording = transect.open(real_data / "seeing_through_fog")
    assert {s.name for s in recording} == {"Camera", "Lidar"}
    assert recording["Camera"].t_ns.tolist() == recording["Lidar"].t_ns.tolist()
    assert len(recording["Lidar"][0].value) == 109_431


def test_real_elevation_models_open_with_place_and_gaps(real_data: Path):
    pytest.importorskip("rasterio")
    recording = transect.open(real_data / "dem_geotiff")
    assert recording.format == "geotiff"
    assert all(s.type is GridMap for s in recording)
    dem = recording["pysheds_dem"][0].value
    assert dem.crs == "EPSG:4326"
    assert dem.layers["elevation"].shape == (359, 367)
    west, north = dem.transform[2], dem.transform[5]
    np.testing.assert_allclose([west, north], [-97.485, 32.8216667], atol=1e-6)
    with_gap = recording["rasterio/float_nan"][0].value.layers["elevation"]
    assert np.isnan(with_gap).any()
