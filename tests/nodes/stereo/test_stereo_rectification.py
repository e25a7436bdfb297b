"""Rectification of pairs: points of space fall into the same row of both images."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.nodes.stereo.scenes import wall

from transect.errors import TransectError
from transect.geometry import camera as lenses
from transect.geometry import rotations, se3
from transect.geometry.rectification import rectify_pair
from transect.nodes.image.rectification import StereoRectification
from transect.recording import FrameTree
from transect.types import CameraModel, Image, StereoPair

LENS = np.array([-0.15, 0.02, 0.0005, -0.0003])
FISH = np.array([-0.01, 0.005, 0.0, 0.0])
TURNED = rotations.matrix_from_rotation_vector([0.01, -0.02, 0.015])
T_RIGHT_LEFT = se3.from_matrix(TURNED, TURNED @ [-0.12, 0.004, -0.003])
POINTS = np.random.default_rng(0).uniform([-1, -0.8, 3], [1, 0.8, 9], (50, 3))


def raw(name: str, focal: float, model: str) -> CameraModel:
    K = np.array([[focal, 0, 161.0], [0, focal * 1.01, 118.0], [0, 0, 1]])
    return CameraModel(name, 320, 240, K, model, LENS if model == "radtan" else FISH, frame=name)


def spots(camera: CameraModel, points: np.ndarray) -> Image:
    """A dark image with a bright spot, a Gaussian of 1.5 px, where the camera sees each point."""
    model = "fisheye" if camera.distortion == "equidistant" else "pinhole"
    rows, columns = np.indices((240, 320))
    image = np.zeros((240, 320))
    for u, v in lenses.project(points, camera.K, camera.coefficients, model):
        image += 200 * np.exp(-((columns - u) ** 2 + (rows - v) ** 2) / 4.5)
    return Image(image.astype(np.float32), frame=camera.name, camera=camera)


def centroid(image: Image) -> np.ndarray:
    rows, columns = np.indices(image.data.shape)
    return np.array([np.sum(columns * image.data), np.sum(rows * image.data)]) / np.sum(image.data)


@pytest.mark.parametrize("model", ["radtan", "equidistant"])
def test_a_point_falls_into_the_same_row_at_the_disparity_of_its_depth(model: str):
    left, right = raw("left", 240.0, model), raw("right", 236.0, model)
    frames = FrameTree()
    frames.add_static("right", "left", T_RIGHT_LEFT)
    node = StereoRectification(alpha=0.0)
    node.ctx.frames = frames
    for point in POINTS[:3]:
        images = spots(left, point[None]), spots(right, se3.apply(T_RIGHT_LEFT, point[None]))
        found = node(StereoPair(*images))
        (u, v), (u_right, v_right) = centroid(found.left), centroid(found.right)
        assert v == pytest.approx(v_right, abs=0.1)
        there = se3.apply(frames.lookup(found.left.frame, "left"), point)
        fx, cx = found.left.camera.K[0, 0], found.left.camera.K[0, 2]
        assert u == pytest.approx(fx * there[0] / there[2] + cx, abs=0.1)
        baseline = np.linalg.norm(T_RIGHT_LEFT[:3, 3])
        assert u - u_right == pytest.approx(fx * baseline / there[2], abs=0.1)
        assert found.right.camera.baseline == pytest.approx(baseline)


def test_rectification_that_comes_with_the_calibration_is_taken():
    cameras = rectify_pair(raw("left", 240.0, "radtan"), raw("right", 236.0, "radtan"), T_RIGHT_LEFT)
    images = (Image(np.zeros((240, 320), np.uint8), frame=c.frame, camera=c) for c in cameras)
    found = StereoRectification()(StereoPair(*images))
    np.testing.assert_array_equal(found.left.camera.K, cameras[0].P[:, :3])
    assert found.right.camera.baseline == pytest.approx(np.linalg.norm(T_RIGHT_LEFT[:3, 3]))


def test_a_rectified_pair_passes_unchanged():
    pair = wall(8.0)
    assert StereoRectification()(pair) is pair


def test_a_pair_that_nobody_placed_is_refused_with_the_file_that_would_help():
    images = (
        Image(np.zeros((240, 320), np.uint8), camera=raw(n, 240.0, "radtan")) for n in ("left", "right")
    )
    with pytest.raises(TransectError, match="the pose of right in left is not known") as error:
        StereoRectification()(StereoPair(*images))
    assert "calibration" in str(error.value)


def test_cameras_the_wrong_way_round_are_refused():
    left, right = raw("left", 240.0, "radtan"), raw("right", 240.0, "radtan")
    with pytest.raises(TransectError, match="is not to the right"):
        rectify_pair(left, right, se3.invert(T_RIGHT_LEFT))


def test_cameras_at_one_place_are_refused():
    node = StereoRectification()
    node.ctx.frames.add_static("left", "right", np.eye(4))
    images = [
        Image(np.zeros((240, 320), np.uint8), camera=raw(n, 240.0, "radtan")) for n in ("left", "right")
    ]
    with pytest.raises(TransectError, match="the same position"):
        node(StereoPair(images[0], dataclasses.replace(images[1])))
