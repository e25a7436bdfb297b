"""Undistortion and rectification, held against the camera model of `geometry`."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from transect.errors import TransectError
from transect.geometry import camera as lenses
from transect.geometry import rotations
from transect.nodes.image.image_filtering import ImageUndistortion, ImageUndistortionRectification
from transect.nodes.image.rectification import ImageRectification
from transect.types import CameraModel, Image

K = np.array([[210.0, 0.0, 158.0], [0.0, 205.0, 121.0], [0.0, 0.0, 1.0]])
AFTER = np.array([[190.0, 0.0, 160.0], [0.0, 190.0, 120.0], [0.0, 0.0, 1.0]])
TURN = rotations.matrix_from_rotation_vector([0.02, -0.05, 0.03])
RADTAN = CameraModel("cam", 320, 240, K, "radtan", np.array([-0.2, 0.05, 0.001, -0.002]), frame="cam")
FISHEYE = CameraModel("cam", 320, 240, K, "equidistant", np.array([-0.02, 0.01, 0.0, 0.0]), frame="cam")


def coordinates(camera: CameraModel) -> Image:
    """An image whose brightness is the column, and in its second channel the row."""
    rows, columns = np.indices((camera.height, camera.width), dtype=np.float32)
    return Image(np.stack([columns, rows], axis=-1), "rgb", frame=camera.frame, camera=camera)


def seen_from(camera: CameraModel, pixels: np.ndarray, K_after: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Where the camera itself sees what is at pixels of the new image."""
    rays = lenses.unproject(pixels, K_after) @ R  # rows times R: R transposed times columns
    model = "fisheye" if camera.distortion == "equidistant" else "pinhole"
    return lenses.project(rays, camera.K, camera.coefficients, model)


@pytest.mark.parametrize("camera", [RADTAN, FISHEYE], ids=["radtan", "fisheye"])
def test_a_rectified_pixel_comes_from_where_the_lens_put_it(camera: CameraModel):
    P = np.hstack([AFTER, np.zeros((3, 1))])
    node = ImageRectification()
    new = node(coordinates(dataclasses.replace(camera, R=TURN, P=P)))
    pixels = np.array([[160, 120], [40, 30], [280, 200], [100, 180]])
    found = new.data[pixels[:, 1], pixels[:, 0]]
    # Bilinear interpolation of a linear image is exact to the 1/32 pixel of OpenCV's tables.
    np.testing.assert_allclose(found, seen_from(camera, pixels, AFTER, TURN), atol=1 / 32)
    np.testing.assert_array_equal(new.camera.K, AFTER)
    np.testing.assert_allclose(node.ctx.frames.lookup("cam", new.frame)[:3, :3], TURN.T)
    assert node.ctx.frames.parent_of(new.frame) == "cam"
    np.testing.assert_allclose(node.ctx.frames.lookup(new.frame, "cam")[:3, :3], TURN)


def test_undistortion_keeps_focal_length_and_frame():
    new = ImageUndistortion()(coordinates(RADTAN))
    pixels = np.array([[20, 20], [300, 100]])
    np.testing.assert_allclose(
        new.data[pixels[:, 1], pixels[:, 0]], seen_from(RADTAN, pixels, K, np.eye(3)), atol=1 / 32
    )
    assert (new.camera.distortion, new.frame) == ("none", "cam")
    np.testing.assert_array_equal(new.camera.K, K)


def test_what_the_camera_did_not_see_is_not_valid():
    wide = np.array([[60.0, 0, 160], [0, 60, 120], [0, 0, 1]])
    camera = dataclasses.replace(RADTAN, P=np.hstack([wide, np.zeros((3, 1))]))
    new = ImageUndistortionRectification()(coordinates(camera))
    assert new.valid is not None
    assert not new.valid[0, 0]
    assert new.valid[120, 160]


def test_a_rectified_image_is_returned_unchanged():
    image = coordinates(CameraModel("cam", 320, 240, K, P=np.hstack([K, np.zeros((3, 1))]), frame="cam"))
    assert ImageRectification()(image) is image
    assert ImageUndistortion()(image) is image


@pytest.mark.parametrize("node", [ImageRectification, ImageUndistortion, ImageUndistortionRectification])
def test_an_image_without_calibration_names_the_files_that_would_help(node: type):
    with pytest.raises(TransectError, match="without calibration") as error:
        node()(Image(np.zeros((240, 320), np.uint8), frame="cam"))
    assert "calib.txt" in str(error.value)


def test_a_calibration_for_another_size_is_refused():
    with pytest.raises(TransectError, match="320 x 240"):
        ImageRectification()(Image(np.zeros((100, 100), np.uint8), camera=RADTAN))


def test_rectification_without_a_projection_is_refused():
    with pytest.raises(TransectError, match="how to rectify"):
        ImageUndistortionRectification()(coordinates(RADTAN))
