"""Cameras that moved through known points, from their matches alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from transect.algorithms.vision.features import tracks_from_matches
from transect.errors import MissingExtraError, TransectError, UsageError
from transect.nodes.features.bundle_adjustment import (
    AdjustmentResult,
    BundleAdjustment,
    GtsamAdjustment,
    LeastSquaresAdjustment,
    SvdDecomposition,
)
from transect.recording import FrameTree
from transect.types import CameraModel, CorrespondenceMaps2D, Correspondences2D, PointCloud, Trajectory

from .scenes import HEIGHT_PX, LENS, WIDTH_PX, camera, pose_error, project, spread_points, within_chi_square

SIGMA_PX, BASELINE_M = 0.5, 0.3
Poses = list[tuple[np.ndarray, np.ndarray]]


@dataclasses.dataclass
class Sequence:
    """Matches of all pairs of images, where the cameras were, and the points."""

    maps: CorrespondenceMaps2D
    poses: Poses
    points: np.ndarray

    @property
    def reach(self) -> float:
        return max(float(np.linalg.norm(p)) for _, p in self.poses)

    def errors(self, found: AdjustmentResult) -> np.ndarray:
        """(m, 6): metres, then rad."""
        path = found.posesSequence
        rows = zip(path.positions, path.orientations, self.poses, strict=True)
        return np.array([pose_error(position, q, *true) for position, q, true in rows])


def sequence(
    poses: Poses,
    points: np.ndarray,
    cameras: list[CameraModel],
    seed: int,
    sigma: float,
    outliers: int = 0,
    lens: np.ndarray | None = None,
) -> Sequence:
    rng = np.random.default_rng(seed)
    seen = []
    for R, p in poses:
        pixels = project(points, R, p, lens) + rng.normal(0, sigma, (len(points), 2))
        wrong = rng.choice(len(points), outliers, replace=False)
        pixels[wrong] = rng.uniform([0, 0], [WIDTH_PX, HEIGHT_PX], (outliers, 2))
        seen.append(pixels.astype(np.float32))
    maps = tuple(
        Correspondences2D(seen[a], seen[b], source_camera=cameras[a], sink_camera=cameras[b])
        for a in range(len(poses))
        for b in range(a + 1, len(poses))
    )
    return Sequence(CorrespondenceMaps2D(maps, t_ns=9), poses, points)


def drive(seed: int = 0, n: int = 60, stereo: bool = True, outliers: int = 0, bare: bool = False) -> Sequence:
    """Three steps forward and to the side, of one camera or of a pair with a baseline of 0.3 m."""
    poses, cameras = [], []
    for k in range(3):
        R, p = (
            Rotation.from_rotvec([0.02 * k, -0.03 * k, 0.01 * k]).as_matrix(),
            np.array([0.4, 0.05, 0.15]) * k,
        )
        for side in range(1 + stereo):
            poses.append((R, p + R @ [BASELINE_M * side, 0, 0]))
            cameras.append(camera("right", None if bare else BASELINE_M) if side else camera("left"))
    points = spread_points(np.random.default_rng(seed + 100), n)
    return sequence(poses, points, cameras, seed, SIGMA_PX, outliers)


def orbit(seed: int = 0, n: int = 60, sigma: float = SIGMA_PX, lens: np.ndarray | None = None) -> Sequence:
    """A camera that goes 35 degrees round a heap of stones 10 m away."""
    points = np.random.default_rng(seed + 100).uniform([-2, -2, 8], [2, 2, 12], (n, 3))
    poses = []
    for k in range(5):
        R = Rotation.from_rotvec([0.05 * k, -0.15 * k, 0.02 * k]).as_matrix()
        poses.append((R, np.array([0, 0, 10]) - R @ [0, 0, 10 + 0.3 * k]))
    return sequence(poses, points, [camera(lens=lens)] * 5, seed, sigma, lens=lens)


def reasons(node: BundleAdjustment) -> list[str]:
    return list(node.ctx._count.skipped)


def test_a_stereo_pair_is_placed_without_a_guess_and_its_covariances_hold():
    """The last left camera of 6 drives: normalised squared errors are chi-square, 6 degrees of freedom."""
    squares = []
    for seed in range(6):
        drove = drive(seed)
        found = GtsamAdjustment(gate=6.0)(drove.maps)
        error = drove.errors(found)
        squares.append(float(error[4] @ np.linalg.solve(found.posesSequence.covariances[4], error[4])))
        assert found.success is True
        assert found.error == pytest.approx(2 * SIGMA_PX**2, rel=0.4)
        assert np.abs(error).max() < 0.03
    assert within_chi_square(squares, freedom=6)
    assert found.posesSequence.frame == "left"
    assert found.iterations > 1


def test_adjusted_points_are_where_they_are_and_their_covariances_hold():
    drove = drive(n=150)
    cloud = GtsamAdjustment(gate=6.0)(drove.maps).pointCloud
    error = cloud.points - drove.points[cloud.fields["index"]]
    inverse = np.linalg.inv(cloud.fields["covariance"].reshape(-1, 3, 3).astype(np.float64))
    # All points share the errors of the poses, so their sum scatters more than chi-square: the median tells.
    assert np.median(np.einsum("ni,nij,nj->n", error, inverse, error)) == pytest.approx(2.37, rel=0.35)


def test_adjustments_are_the_same_to_the_byte():
    drove, node = drive(), GtsamAdjustment()
    first = node(drove.maps)
    node.reset()
    again = node(drove.maps)
    for part in ("positions", "orientations", "covariances"):
        assert getattr(first.posesSequence, part).tobytes() == getattr(again.posesSequence, part).tobytes()
    assert first.pointCloud.points.tobytes() == again.pointCloud.points.tobytes()


def test_false_sightings_are_left_out():
    drove = drive(n=100, outliers=6)
    found = GtsamAdjustment()(drove.maps)
    assert np.abs(drove.errors(found)).max() < 0.03
    assert 0.8 < found.inliers < 0.97


def test_least_squares_of_all_sightings_bear_noise_but_no_outliers():
    clean, dirty = drive(n=100), drive(n=100, outliers=6)
    found = LeastSquaresAdjustment()(clean.maps)
    assert found.success is True
    assert found.error == pytest.approx(2 * SIGMA_PX**2, rel=0.4)
    assert np.abs(clean.errors(found)).max() < 0.03
    node = LeastSquaresAdjustment()
    assert node(dirty.maps).success is False
    assert set(reasons(node)) <= {
        "the reprojection error of the adjustment is too large",
        "the adjustment did not converge",
    }


def test_one_camera_is_placed_to_scale():
    drove = drive(stereo=False, n=120)
    found = GtsamAdjustment(baseline=drove.reach)(drove.maps)
    assert np.abs(drove.errors(found)).max() < 0.1
    path = GtsamAdjustment()(drove.maps).posesSequence.positions
    assert np.linalg.norm(path, axis=1).max() == pytest.approx(1)


def test_a_guess_of_poses_and_points_is_taken():
    drove = drive(stereo=False, n=40)
    guess = Trajectory(
        np.zeros(2, np.int64),
        np.array([p for _, p in drove.poses[1:]]) + 0.05,
        np.array([Rotation.from_matrix(R).as_quat() for R, _ in drove.poses[1:]]),
    )
    found = GtsamAdjustment()(drove.maps, guess, PointCloud(drove.points + 0.1))
    reach = np.linalg.norm(guess.positions[-1])
    assert np.linalg.norm(found.posesSequence.positions[-1]) == pytest.approx(reach, abs=1e-4)
    with pytest.raises(UsageError, match="2 guessed poses do not match 6 images"):
        GtsamAdjustment()(drive().maps, guess)


def test_the_frames_of_a_recording_give_the_transform_of_a_pair():
    drove, node = drive(bare=True), GtsamAdjustment()
    with pytest.raises(TransectError, match="transform between the cameras 'left' and 'right'"):
        node(drove.maps)
    node.ctx.frames = FrameTree()
    mount = np.eye(4)
    mount[0, 3] = BASELINE_M
    node.ctx.frames.add_static("left", "right", mount)
    assert np.abs(drove.errors(node(drove.maps))).max() < 0.03


def test_images_of_three_cameras_are_refused():
    drove = drive()
    maps = list(drove.maps.maps)
    maps[0] = dataclasses.replace(maps[0], source_camera=camera("third", 0.7))
    with pytest.raises(TransectError, match="neither of one camera nor of stereo pairs"):
        GtsamAdjustment()(CorrespondenceMaps2D(tuple(maps)))


def test_too_few_points_and_a_camera_that_only_turned_are_refused():
    node = GtsamAdjustment()
    assert node(drive(n=10).maps).success is False
    R = Rotation.from_rotvec([0.0, 0.1, 0.0]).as_matrix()
    points = spread_points(np.random.default_rng(0), 60)
    turned = sequence([(np.eye(3), np.zeros(3)), (R, np.zeros(3))], points, [camera()] * 2, 0, SIGMA_PX)
    assert node(turned.maps).posesSequence is None
    assert reasons(node) == [
        "an image shares too few points with the others",
        "no initial camera poses were found",
    ]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch):
    def missing() -> None:
        raise MissingExtraError("gtsam", "fusion")

    monkeypatch.setattr("transect.algorithms.vision.bundle_adjustment.gtsam", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'transect\[fusion\]'"):
        GtsamAdjustment()(drive().maps)


@pytest.mark.parametrize("lens", [None, LENS * 0.3], ids=["straight", "bent"])
def test_a_factorisation_without_noise_is_exact(lens: np.ndarray | None):
    went = orbit(sigma=0.0, lens=lens)
    found = SvdDecomposition(baseline=went.reach)(went.maps)
    assert np.abs(went.errors(found)).max() < 1e-4
    np.testing.assert_allclose(
        found.pointCloud.points, went.points[found.pointCloud.fields["index"]], atol=1e-3
    )
    assert found.inliers == 1.0


def around(distance: float, seed: int) -> Sequence:
    """Four views from all sides of points that reach up to half-way to the camera."""
    rng = np.random.default_rng(seed)
    points = np.array([0, 0, distance]) + rng.uniform(-distance / 2, distance / 2, (60, 3))
    poses: Poses = [(np.eye(3), np.zeros(3))]
    for _ in range(3):
        R = Rotation.from_rotvec(rng.normal(0, 0.25, 3)).as_matrix()
        poses.append((R, np.array([0, 0, distance]) - R @ [0, 0, distance * rng.uniform(0.9, 1.3)]))
    return sequence(poses, points, [camera()] * 4, seed, SIGMA_PX)


@pytest.mark.parametrize("seed", range(4))
def test_four_perspective_views_are_placed(seed: int):
    for went in (around(4.0, seed), drive(seed, stereo=False)):
        found = SvdDecomposition(baseline=went.reach)(went.maps)
        assert found.success is True
        assert np.abs(went.errors(found)).max() < 0.06
        assert found.error < 2 * SIGMA_PX**2


def test_a_factorisation_begins_an_adjustment():
    went = orbit()
    rough = SvdDecomposition(baseline=went.reach)(went.maps)
    fine = GtsamAdjustment()(went.maps, rough.posesSequence, rough.pointCloud)
    assert np.abs(went.errors(rough)).max() < 0.1
    assert np.abs(went.errors(fine)).max() < 0.1
    assert fine.error == pytest.approx(2 * SIGMA_PX**2, rel=0.4)
    again = SvdDecomposition(baseline=went.reach)(went.maps)
    assert again.posesSequence.positions.tobytes() == rough.posesSequence.positions.tobytes()


def test_a_factorisation_refuses_what_is_not_for_it():
    node = SvdDecomposition()
    points = spread_points(np.random.default_rng(0), 60)
    turns = [Rotation.from_rotvec([0.0, 0.1 * k, 0.0]).as_matrix() for k in range(3)]
    turned = sequence([(R, np.zeros(3)) for R in turns], points, [camera()] * 3, 0, SIGMA_PX)
    assert node(turned.maps).success is False  # no parallax
    assert node(orbit(n=10).maps).success is False
    assert SvdDecomposition(max_rms=0.1)(orbit().maps).success is False
    assert len(reasons(node)) == 2


def test_tracks_join_matches_over_images_and_drop_contradictions():
    a, b, c = (np.array([[x, 1.0], [x, 2.0]], np.float32) for x in (10, 20, 30))
    left = camera()
    maps = CorrespondenceMaps2D(
        (
            Correspondences2D(a, b, source_camera=left, sink_camera=left),
            # The second point of image 0 is said to be the first of image 2, over image 1 it is the second.
            Correspondences2D(a[1:], c[:1], source_camera=left, sink_camera=left),
            Correspondences2D(b[1:], c[1:], source_camera=left, sink_camera=left),
        )
    )
    tracks = tracks_from_matches(maps)
    np.testing.assert_array_equal(tracks.pixels, [[[10, 1], [20, 1], [np.nan, np.nan]]])
    np.testing.assert_array_equal(tracks.first_row, [0])


def test_maps_that_are_not_of_all_pairs_must_say_which():
    one = drive(stereo=False).maps.maps
    with pytest.raises(UsageError, match="2 maps cannot be those of all pairs"):
        tracks_from_matches(CorrespondenceMaps2D(one[:2]))
    assert len(tracks_from_matches(CorrespondenceMaps2D(one[:2], ((0, 1), (0, 2)))).cameras) == 3
