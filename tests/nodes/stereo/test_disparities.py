"""Matching: a wall at a known depth, a sky without texture, and pairs that cannot be matched."""

from __future__ import annotations

import dataclasses

import cv2
import numpy as np
import pytest
from tests.nodes.stereo.scenes import BASELINE_M, FOCAL_PX, HEIGHT_PX, LEFT, RIGHT, WIDTH_PX, wall

from transect.algorithms.vision.stereo_matching import has_shared_texture
from transect.errors import TransectError
from transect.nodes.image.rectification import StereoPairing, StereoSplitting
from transect.nodes.stereo.stereo_reconstruction import DisparityImage, StereoReconstruction
from transect.types import Image, StereoPair

MATCHERS = sorted(StereoReconstruction.implementations)


@pytest.mark.parametrize("name", MATCHERS)
def test_a_wall_is_as_far_as_its_disparity_says(name: str):
    pair = wall(10.4)
    found = StereoReconstruction.implementations[name]()(pair.left, pair.right)
    depth = found.pointcloud.points[:, 2]
    # Semi-global matching draws disparities towards whole pixels, by 0.15 px at worst.
    assert np.median(depth) == pytest.approx(FOCAL_PX * BASELINE_M / 10.4, rel=0.16 / 10.4)
    assert np.percentile(np.abs(depth / np.median(depth) - 1), 90) < 0.03
    # All but the columns that only the left camera sees, and a margin of the windows.
    assert found.coverage > 0.85 * (1 - 10.4 / WIDTH_PX)
    assert (found.pointcloud.frame, found.pointcloud.t_ns) == ("left", 5)
    assert found.pointcloud.fields["intensity"].dtype == np.uint8


@pytest.mark.parametrize("method", ["block", "semi-global", "scanline"])
def test_a_sky_without_texture_is_left_out(method: str):
    pair = wall(9.0, sky=60)
    inside = slice(0, 50)  # a window away from the wall
    with_sky = DisparityImage(method=method, false_alarms=1.0)(pair).disparity.data[inside]
    found = DisparityImage(method=method)(pair).disparity.data
    assert np.isfinite(found[inside]).mean() <= min(0.005, np.isfinite(with_sky).mean() / 3)
    assert np.isfinite(found[70:]).mean() > 0.8


@pytest.mark.parametrize("smooth", [False, True], ids=["white", "interpolated"])
def test_noise_passes_for_texture_as_seldom_as_is_said(smooth: bool):
    rng = np.random.default_rng(3)
    left, right = rng.normal(128.0, 6.0, (2, 300, 400)).astype(np.float32)
    if smooth:  # half a pixel each way, the worst that rectification does
        left, right = (cv2.blur(each, (2, 2)) for each in (left, right))
    disparity = np.full(left.shape, 7.5, np.float32)
    grays = [np.clip(np.rint(each), 0, 255).astype(np.uint8) for each in (left, right)]
    assert has_shared_texture(*grays, disparity, 0.02)[10:-10, 20:-10].mean() < 0.03


def test_texture_that_both_images_show_passes():
    pair = wall(8.0)
    disparity = np.full((HEIGHT_PX, WIDTH_PX), 8.0, np.float32)
    found = has_shared_texture(pair.left.data, pair.right.data, disparity, 1e-5)
    assert found[8:-8, 20:-8].mean() > 0.99


def test_what_was_not_measured_is_not_matched():
    pair = wall(10.0)
    hidden = np.ones((HEIGHT_PX, WIDTH_PX), bool)
    hidden[:, 100:120] = False
    for side, columns in (("left", slice(100, 120)), ("right", slice(111, 129))):
        image = dataclasses.replace(getattr(pair, side), valid=hidden)
        found = DisparityImage()(dataclasses.replace(pair, **{side: image})).disparity.data
        assert np.isnan(found[:, columns]).all()
        assert np.isfinite(found[:, 150:200]).mean() > 0.8


def test_principal_points_that_differ_are_taken_off():
    """A pair corrected by StereoOffsetCalibration, or as `stereoRectify` may return it."""
    pair = wall(10.0)
    K = RIGHT.K.copy()
    K[0, 2] -= 1.5
    camera = dataclasses.replace(RIGHT, K=K, P=np.hstack([K, RIGHT.P[:, 3:]]))
    corrected = dataclasses.replace(pair, right=dataclasses.replace(pair.right, camera=camera))
    plain, found = (DisparityImage()(each).disparity for each in (pair, corrected))
    np.testing.assert_allclose(plain.data - found.data, np.where(np.isnan(plain.data), np.nan, 1.5))
    assert found.camera.baseline == pytest.approx(BASELINE_M)


@pytest.mark.parametrize("name", MATCHERS)
def test_a_blank_pair_gives_nothing(name: str):
    pair = wall(8.0, sky=HEIGHT_PX)
    node = StereoReconstruction.implementations[name]()
    assert node(pair.left, pair.right) is None
    assert DisparityImage()(pair) is None


def test_a_pair_that_is_not_rectified_is_refused():
    pair = wall(8.0)
    lens = dataclasses.replace(RIGHT, distortion="radtan", coefficients=np.array([-0.1, 0, 0, 0]))
    bent = dataclasses.replace(pair.right, camera=lens)
    with pytest.raises(TransectError, match="not rectified") as error:
        DisparityImage()(dataclasses.replace(pair, right=bent))
    assert "StereoRectification" in str(error.value)


def test_a_pair_without_baseline_is_refused():
    pair = wall(8.0)
    alone = dataclasses.replace(pair.right, camera=dataclasses.replace(RIGHT, P=None))
    with pytest.raises(TransectError, match="not rectified") as error:
        DisparityImage()(dataclasses.replace(pair, right=alone))
    assert "baseline" in str(error.value)


@pytest.mark.parametrize(("rows", "columns"), [(8, 120), (120, 8), (30, 30), (20, 60)])
def test_small_images_are_matched_or_refused_but_do_not_crash(rows: int, columns: int):
    pair = wall(4.0)
    left, right = (
        dataclasses.replace(
            image,
            data=image.data[:rows, :columns],
            camera=dataclasses.replace(image.camera, width=0, height=0),
        )
        for image in (pair.left, pair.right)
    )
    small = dataclasses.replace(pair, left=left, right=right)
    if min(rows, columns) > 11:
        found = DisparityImage(method="block", window=11, min_coverage=0.0)(small)
        assert found.disparity.data.shape == (rows, columns)
    else:
        with pytest.raises(TransectError, match="too small"):
            DisparityImage(method="block", window=11)(small)


def test_the_same_pair_gives_the_same_bits():
    pair = wall(8.3, sky=30)
    first, second = (DisparityImage()(pair).disparity.data for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_two_images_become_a_pair_and_two_again():
    left, right = Image(np.zeros((2, 2), np.uint8), t_ns=3), Image(np.ones((2, 2), np.uint8), t_ns=4)
    pair = StereoPairing()(left, right)
    assert isinstance(pair, StereoPair)
    assert pair.t_ns == 3
    images = StereoSplitting()(pair)
    assert images.left is left
    assert images.right is right


def box_before_wall(seed: int) -> tuple[StereoPair, np.ndarray]:
    """A textured box at 24 px of disparity before a wall at 6 px, and the true disparities."""
    rng = np.random.default_rng(seed)
    wall_, box = (
        np.clip(120 + 50 * each / each.std(), 0, 255)
        for each in (
            cv2.GaussianBlur(rng.normal(size=(HEIGHT_PX, WIDTH_PX + 30)), (0, 0), 1.2) for _ in range(2)
        )
    )
    images = []
    for camera, shift in ((LEFT, 0), (RIGHT, 1)):
        data = wall_[:, 6 * shift : 6 * shift + WIDTH_PX].copy()
        data[20:100, 110 - 24 * shift : 180 - 24 * shift] = box[20:100, 110:180]
        data += rng.normal(scale=1.5, size=data.shape)
        images.append(
            Image(np.clip(np.rint(data), 0, 255).astype(np.uint8), frame=camera.frame, camera=camera)
        )
    true = np.full((HEIGHT_PX, WIDTH_PX), 6.0)
    true[20:100, 110:180] = 24.0
    return StereoPair(images[0], images[1]), true


def test_block_matching_has_no_more_wrong_pixels_beside_a_box_than_opencvs_sample():
    wrong = np.zeros(2)
    for seed in range(4):
        pair, true = box_before_wall(seed)
        matcher = cv2.StereoBM.create(32, 9)  # as in stereo_match
        matcher.setUniquenessRatio(15)
        matcher.setSpeckleWindowSize(100)
        matcher.setSpeckleRange(32)
        matcher.setDisp12MaxDiff(1)
        sample = matcher.compute(pair.left.data, pair.right.data).astype(np.float32) / 16
        ours = StereoReconstruction.implementations["DisparityMapping"](max_error=1.0)(pair.left, pair.right)
        for k, found in enumerate((ours.disparity.data, np.where(sample > 0, sample, np.nan))):
            wrong[k] += np.count_nonzero(np.abs(found - true) > 2)
    assert wrong[1] > 0
    assert wrong[0] < wrong[1]
