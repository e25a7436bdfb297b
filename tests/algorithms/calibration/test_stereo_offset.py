"""The disparity offset of simulated tracks, with an offset and without."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.nodes.stereo.drives import drive_pairs
from tests.nodes.stereo.scenes import wall

from transect.algorithms.calibration.stereo_information import (
    FrameInformation,
    OffsetMeasurement,
    StereoTracks,
    frame_information,
    offset_only,
)
from transect.algorithms.calibration.stereo_self_calibration import (
    PairCalibrator,
    SelfCalibrationSettings,
    combine_offsets,
    shrink,
    vertical_offset,
)
from transect.algorithms.odometry.stereo_tracking import coarse_disparities
from transect.errors import GeometryError
from transect.geometry import rotations
from transect.nodes.stereo.stereo_offset_calibration import RunningOffset, TwoPassOffset
from transect.types import CameraModel, StereoPair

FX_PX, CX_PX, CY_PX, BASELINE_M = 700.0, 600.0, 180.0, 0.54
K = np.array([[FX_PX, 0, CX_PX], [0, FX_PX, CY_PX], [0, 0, 1]])
CAMERA = CameraModel("right", 1200, 370, K, P=np.hstack([K, [[-FX_PX * BASELINE_M], [0], [0]]]))


def pixels(points: np.ndarray, offset: float, noise: float, rng: np.random.Generator):
    """Where a pair with a disparity offset, and rows 0.2 px apart, sees points."""
    x, y, z = points.T
    left = np.stack([FX_PX * x / z + CX_PX, FX_PX * y / z + CY_PX], axis=1)
    right = left - np.stack([FX_PX * BASELINE_M / z + offset, np.full(len(z), 0.2)], axis=1)
    return left + rng.normal(scale=noise, size=left.shape), right + rng.normal(scale=noise, size=left.shape)


def drive(offset: float, step: float, frames: int = 6, outliers: float = 0.0, seed: int = 0):
    """Tracks of a camera that goes forward `step` metres a frame, turning a little."""
    rng = np.random.default_rng(seed)
    tracks = []
    for _ in range(frames):
        points = rng.uniform([-12, -2, 6], [12, 2, 40], (150, 3))
        turn = rotations.matrix_from_rotation_vector(rng.normal(scale=0.005, size=3))
        moved = points @ turn.T - [0.02, 0.0, step]
        before, now = pixels(points, offset, 0.1, rng), pixels(moved, offset, 0.1, rng)
        wrong = rng.random(len(points)) < outliers
        now[0][wrong] += rng.uniform(-40, 40, (np.count_nonzero(wrong), 2))
        tracks.append(StereoTracks(*before, *now))
    return tracks


def calibrate(tracks: list[StereoTracks], camera: CameraModel = CAMERA) -> PairCalibrator:
    """A calibrator of the offset alone that has seen tracks."""
    calibrator = PairCalibrator(with_lens=False)
    for each in tracks:
        calibrator.add(each, camera)
    return calibrator


@pytest.mark.parametrize("offset", [-0.3, 0.0, 0.25])
def test_an_offset_is_estimated_within_its_uncertainty(offset: float):
    tracks = drive(offset, step=1.0)
    found = calibrate(tracks)
    assert found.offset_sigma_px < 0.08
    assert abs(found.offset_px - offset) < 3.5 * found.offset_sigma_px
    assert vertical_offset(tracks) == pytest.approx(0.2, abs=0.02)
    assert len(found.frames) == 6


def test_points_that_move_by_themselves_are_outliers():
    found = calibrate(drive(0.25, step=1.0, outliers=0.3))
    assert abs(found.offset_px - 0.25) < 3.5 * found.offset_sigma_px
    assert found.offset_sigma_px < 0.12


def test_the_estimate_depends_little_on_the_linearisation_point():
    tracks = drive(0.25, step=1.0)
    together = calibrate(tracks)
    information = [frame_information(each, CAMERA, offset_only(0.2)) for each in tracks]
    delta, sigma = combine_offsets(
        [each.measure_offset(offset_only()) for each in information if each is not None]
    )
    assert delta == pytest.approx(together.offset_px, abs=together.offset_sigma_px)
    assert sigma == pytest.approx(together.offset_sigma_px, rel=0.3)


def test_without_motion_the_offset_is_not_observable():
    found = calibrate(drive(0.25, step=0.0))
    assert found.offset_sigma_px > 0.1
    assert abs(found.errors[0]) < 0.25


def test_without_tracks_nothing_is_known():
    few = [StereoTracks(*(np.ones((5, 2)),) * 4)]
    lost = [StereoTracks(*(np.full((50, 2), np.nan),) * 4)]
    for tracks in ([], few, lost):
        found = calibrate(tracks)
        assert (found.offset_px, found.offset_sigma_px, len(found.frames)) == (0.0, np.inf, 0)
        assert not found.errors.any()


def test_a_camera_without_baseline_is_refused():
    with pytest.raises(GeometryError, match="baseline"):
        calibrate(drive(0.0, 1.0, frames=1), dataclasses.replace(CAMERA, P=None))


def test_an_offset_is_shrunk_by_its_uncertainty():
    assert shrink(0.05, 0.03) == 0.0
    assert shrink(0.3, 0.01) == pytest.approx(0.3, abs=0.02)
    assert shrink(-0.3, 0.01) == -shrink(0.3, 0.01)
    assert shrink(0.3, np.inf) == 0.0


@pytest.mark.parametrize("node", [RunningOffset(), RunningOffset(enabled=False)])
def test_a_pair_that_does_not_move_keeps_its_calibration(node: RunningOffset):
    for seed in (1, 2, 3):
        pair = wall(9.0, seed=0, noise=seed)
        found = node(pair)
        assert found.offset == 0.0
        np.testing.assert_allclose(found.calibratedStereoPair.right.camera.P, pair.right.camera.P, atol=0.1)
        assert found.calibratedStereoPair.left is pair.left
    assert found.sigma > 0.1


def test_the_first_of_two_passes_gives_no_pairs():
    node = TwoPassOffset()
    pair = wall(9.0, seed=0, noise=1)
    assert node(pair) is None
    node.ctx.pass_index = 1
    assert node(pair).calibratedStereoPair.left is pair.left


def test_correlated_errors_of_frames_increase_the_uncertainty():
    rng = np.random.default_rng(8)
    inside = inside_if_independent = 0
    for _ in range(300):
        errors = np.zeros(100)
        for i in range(1, 100):  # first-order autoregressive
            errors[i] = 0.6 * errors[i - 1] + rng.normal(0, 0.04)
        found, sigma = combine_offsets([OffsetMeasurement(-0.2 + error, 400.0) for error in errors])
        inside += abs(found + 0.2) < 2 * sigma
        inside_if_independent += abs(found + 0.2) < 2 * errors.std() / 10
    assert inside_if_independent < 0.75 * 300
    assert inside > 0.8 * 300


def test_only_every_nth_step_is_used_and_none_once_the_estimate_is_settled(monkeypatch: pytest.MonkeyPatch):
    looked: list[int] = []
    monkeypatch.setattr(
        "transect.algorithms.calibration.stereo_self_calibration.frame_information",
        lambda *_: looked.append(1) or FrameInformation(100 * np.eye(14), np.zeros(14)),
    )
    settings = SelfCalibrationSettings(min_frames=4)
    monkeypatch.setattr("transect.algorithms.calibration.stereo_self_calibration.SETTINGS", settings)
    node = TwoPassOffset(stride=3, settled=1 / 20, undistort=False)  # four pulls of information 100 give 0.05
    for seed in range(16):
        node(wall(9.0, seed=0, noise=seed))
    node.finish()
    assert len(looked) == 4


def test_the_estimate_does_not_depend_on_how_far_tracking_is_ahead(monkeypatch: pytest.MonkeyPatch):
    pairs = [StereoPair(left, right, left.t_ns) for left, right in drive_pairs(5)]
    found = []
    for behind in (0, 2, 9):
        monkeypatch.setattr(TwoPassOffset, "behind", behind)
        node = TwoPassOffset(features=160)
        for pair in pairs:
            node(pair)
        assert len(node.steps) == min(behind, 4)
        node.ctx.pass_index = 1
        said = node(pairs[0])
        found.append(
            (
                said.offset,
                said.sigma,
                said.vertical,
                *(f.information.vector.tobytes() for f in node.calibrator.frames),
            )
        )
    assert len(found[0]) == 7
    assert found == [found[0]] * 3


def test_points_at_the_left_edge_have_a_first_guess_of_their_disparity():
    pair = wall(10.4)
    row, column = np.mgrid[20:100:20, 16:230:6].reshape(2, -1).astype(np.float64)
    pixels = np.stack([column, row], axis=1)
    guess = coarse_disparities(pair.left.data, pair.right.data, pixels, 60.0)
    near = np.abs(guess - 10.4) < 3.0
    assert near[column < 64].mean() > 0.8
    assert near[column >= 64].mean() > 0.8
