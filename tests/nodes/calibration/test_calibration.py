"""Calibration from chessboards whose true cameras and mounts are known."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from transect.algorithms.calibration.chessboards import Chessboard
from transect.algorithms.calibration.laser_camera import BoardSighting, estimate_mount
from transect.errors import GeometryError, TransectError
from transect.geometry import rotations, se3
from transect.nodes.calibration import (
    CameraCalibration,
    LaserCameraCalibration,
    StereoCalibration,
    board_segments,
    calibrate_pair,
    fit_camera,
)
from transect.robots import load
from transect.types import CameraModel, Image, LaserScan

BOARD = Chessboard(9, 6, 0.0749, 0.0747)  # the Argo's visual one, 4.4.1
K = np.array([[520.0, 0, 322.0], [0, 523.0, 243.0], [0, 0, 1]])
LENS = np.array([-0.25, 0.08, 0.001, -0.0005, 0.0])
IMAGE_SIZE_PX = (640, 480)
NOISE_PX, NOISE_M = 0.1, 0.01
"""Noise of corners, and of a laser of the SICK LMS 200 family in its centimetre mode."""
PICTURE = Image(np.zeros((480, 640), np.uint8), frame="cam")


def poses(
    count: int, seed: int, near: float, far: float, across: float = 0.3
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rotations as vectors, and places of a board's first corner, in front of a camera."""
    rng = np.random.default_rng(seed)
    turns = rng.uniform(-0.6, 0.6, (count, 3))
    depth = rng.uniform(near, far, count)
    middle = np.column_stack([rng.uniform(-across, across, (count, 2)) * depth[:, None], depth])
    offset = BOARD.points.mean(axis=0)
    return [
        (turn, place - cv2.Rodrigues(turn)[0] @ offset) for turn, place in zip(turns, middle, strict=True)
    ]


def corners(pose, K=K, lens=LENS, T=None, rng=None) -> np.ndarray:
    """Corners (n, 2) by OpenCV's own projection, in a camera at T of the first one, with noise."""
    turn, place = pose
    points = BOARD.points @ cv2.Rodrigues(turn)[0].T + place
    points = points if T is None else points @ T[:3, :3].T + T[:3, 3]
    seen = cv2.projectPoints(points, np.zeros(3), np.zeros(3), K, lens)[0].reshape(-1, 2)
    return seen if rng is None else seen + rng.normal(scale=NOISE_PX, size=seen.shape)


def test_a_camera_is_found_within_what_it_says_of_itself():
    rng = np.random.default_rng(0)
    fit = fit_camera([corners(pose, rng=rng) for pose in poses(15, 1, 1.0, 2.0)], BOARD, PICTURE)
    found = fit.camera.K[[0, 1, 0, 1], [0, 1, 2, 2]]
    assert (np.abs(found - [520, 523, 322, 243]) < 4 * fit.sigma).all()
    assert fit.rms == pytest.approx(np.sqrt(2) * NOISE_PX, rel=0.1)
    assert fit.errors.shape == (15,)
    assert (fit.camera.width, fit.camera.height, fit.camera.frame) == (*IMAGE_SIZE_PX, "cam")


def test_a_pair_is_found_with_its_baseline():
    rng = np.random.default_rng(2)
    T_right_left = se3.from_matrix(
        rotations.matrix_from_rotation_vector([0.01, 0.02, -0.01]), [-0.2, 0.003, 0.004]
    )
    seen = [
        (corners(pose, rng=rng), corners(pose, T=T_right_left, rng=rng))
        for pose in poses(15, 3, 1.2, 2.0, across=0.2)
    ]
    found = calibrate_pair(seen, BOARD, PICTURE, PICTURE)
    np.testing.assert_allclose(found.transform.matrix[:3, 3], T_right_left[:3, 3], atol=0.002)
    assert found.rightCamera.baseline == pytest.approx(np.linalg.norm(T_right_left[:3, 3]), abs=0.001)
    assert found.rms == pytest.approx(np.sqrt(2) * NOISE_PX, rel=0.1)
    assert found.rows_apart == pytest.approx(np.sqrt(2) * NOISE_PX, rel=0.2)
    assert found.errors.shape == (15, 2)


def test_too_few_boards_are_refused():
    image = Image(np.full((120, 160), 90, np.uint8))
    mono, pair = CameraCalibration(), StereoCalibration()
    assert mono.finish() is None
    assert not mono(image).found
    assert not pair(image, image).found
    for node in (mono, pair):
        with pytest.raises(TransectError, match="0 boards are too few") as error:
            node.finish()
        assert "inner corners" in str(error.value)


# Laser and camera: the Argo, whose mounts are the truth


@pytest.fixture(scope="module")
def T_laser_camera() -> np.ndarray:
    return load("argo").frames.lookup("LaserHorizontal", "VideoVisual")


def scan_of(T_laser_camera: np.ndarray, pose, rng: np.random.Generator) -> LaserScan:
    """A quarter-degree sweep: the board where a beam meets it, else a wall 15 m away."""
    turn, place = pose
    angles = np.deg2rad(np.arange(-90, 90.01, 0.25))
    beams = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))])
    T_laser_board = T_laser_camera @ se3.from_matrix(cv2.Rodrigues(turn)[0], place)
    inverse = np.linalg.inv(T_laser_board)
    origin, along = inverse[:3, 3], beams @ inverse[:3, :3].T
    with np.errstate(divide="ignore"):
        reach = -origin[2] / along[:, 2]
    on_board = origin + reach[:, None] * along
    size = np.array([BOARD.columns * BOARD.width, BOARD.rows * BOARD.height])
    border = np.array([BOARD.width, BOARD.height])
    hit = (reach > 0) & ((on_board[:, :2] > -border) & (on_board[:, :2] < size)).all(axis=1)
    ranges = np.where(hit, reach, 15.0 / np.maximum(np.cos(angles), 0.1))
    return LaserScan(ranges + rng.normal(scale=NOISE_M, size=len(angles)), angles[0], angles[1] - angles[0])


def board_at(turn: np.ndarray, reach: float, yaw: float, T_laser_camera: np.ndarray):
    """The pose, in the camera, of a board whose middle is in the laser's plane."""
    middle = np.linalg.inv(T_laser_camera) @ [reach * np.cos(yaw), reach * np.sin(yaw), 0.0, 1.0]
    return turn, middle[:3] - cv2.Rodrigues(turn)[0] @ BOARD.points.mean(axis=0)


def argo_boards(count: int, seed: int, T_laser_camera: np.ndarray):
    rng = np.random.default_rng(seed)
    turns = rng.uniform([-0.7, -0.8, -0.4], [0.7, 0.8, 0.4], (count, 3))
    where = np.column_stack([rng.uniform(2.5, 4.5, count), rng.uniform(-0.3, 0.3, count)])
    return [board_at(turn, r, yaw, T_laser_camera) for turn, (r, yaw) in zip(turns, where, strict=True)]


def sighting(pose, scan: LaserScan, camera: CameraModel, rng: np.random.Generator) -> BoardSighting:
    seen = corners(pose, camera.K, camera.coefficients, rng=rng)
    _, turn, place = cv2.solvePnP(BOARD.points, seen, camera.K, camera.coefficients)
    normal = cv2.Rodrigues(turn)[0][:, 2]
    distance = float(normal @ place.ravel())
    pieces = board_segments(scan, BOARD.diagonal)
    reach = np.linalg.norm(pose[1])
    nearest = min(pieces, key=lambda piece: abs(np.linalg.norm(piece.mean(axis=0)) - reach))
    return BoardSighting(np.sign(distance) * normal, abs(distance), nearest)


def test_the_mount_of_laser_and_camera_is_found(T_laser_camera: np.ndarray):
    rng = np.random.default_rng(5)
    camera = load("argo").cameras["VideoVisual"]
    seen = [
        sighting(pose, scan_of(T_laser_camera, pose, rng), camera, rng)
        for pose in argo_boards(30, 6, T_laser_camera)
    ]
    mount = estimate_mount(seen)
    error = se3.log(mount.T_camera_laser @ T_laser_camera)
    assert np.linalg.norm(error[:3]) < 0.02
    assert np.rad2deg(np.linalg.norm(error[3:])) < 0.4
    assert (np.abs(error) < 4.5 * mount.sigma).all()
    assert mount.rms == pytest.approx(NOISE_M, rel=0.4)
    assert mount.errors.shape == (30,)


def test_boards_with_laser_points_on_other_surfaces_are_outliers(T_laser_camera: np.ndarray):
    rng = np.random.default_rng(9)
    camera = load("argo").cameras["VideoVisual"]
    seen = [
        sighting(pose, scan_of(T_laser_camera, pose, rng), camera, rng)
        for pose in argo_boards(9, 10, T_laser_camera)
    ]
    fence = np.column_stack([np.full(9, 4.8), np.linspace(-0.4, 0.4, 9)])
    seen[3] = BoardSighting(seen[3].normal, seen[3].distance, fence)
    mount = estimate_mount(seen)
    assert np.flatnonzero(~mount.used).tolist() == [3]
    assert mount.rms == pytest.approx(NOISE_M, rel=0.4)
    error = se3.log(mount.T_camera_laser @ T_laser_camera)
    assert np.linalg.norm(error[:3]) < 0.05
    assert (np.abs(error) < 4 * mount.sigma).all()


def test_parallel_boards_do_not_determine_the_mount():
    line = np.column_stack([np.full(20, 3.0), np.linspace(-0.5, 0.5, 20)])
    same = [BoardSighting(np.array([0.0, 0, 1]), 3.0 + k, line + np.array([k, 0])) for k in range(8)]
    with pytest.raises(GeometryError, match="parallel"):
        estimate_mount(same)
    with pytest.raises(GeometryError, match="at least 5 boards"):
        estimate_mount(same[:3])


def test_the_board_is_found_in_picture_and_sweep(T_laser_camera: np.ndarray):
    """Pictures drawn by a homography, through the node; the last one shows nothing."""
    rng = np.random.default_rng(7)
    camera = CameraModel("VideoVisual", *IMAGE_SIZE_PX, K, frame="VideoVisual")
    places = argo_boards(9, 8, T_laser_camera)
    node = LaserCameraCalibration(square=BOARD.width, square_height=BOARD.height, min_boards=6)
    for data, pose in [
        *((drawn(pose), pose) for pose in places),
        (np.zeros(IMAGE_SIZE_PX[::-1], np.uint8), places[0]),
    ]:
        seen = node(Image(data, frame="VideoVisual", camera=camera), [scan_of(T_laser_camera, pose, rng)])
    assert not seen.found
    said: list[str] = []
    node.ctx._concluded = lambda text, bad: said.append(text)
    found = node.finish()
    place = ", ".join(f"{each:.3f}" for each in found.transform.matrix[:3, 3])
    assert said[0].startswith(f"VideoVisual in the laser: x, y, z = {place} m; roll, pitch, yaw = ")
    assert f"one sigma is {found.sigma[0]:.2g}, " in said[1]
    assert f"board, at 9 positions: {1000 * found.rms:.2g} mm RMS" in said[2]
    error = se3.log(np.linalg.inv(T_laser_camera) @ found.transform.matrix)
    assert np.linalg.norm(error[:3]) < 0.1
    assert np.rad2deg(np.linalg.norm(error[3:])) < 2.0
    assert found.transform.source == "VideoVisual"
    node.min_boards = 20
    with pytest.raises(TransectError, match="too few to calibrate laser and camera"):
        node.finish()


def drawn(pose) -> np.ndarray:
    """The board as a camera without lens sees it."""
    square = 40
    rows, columns = np.indices(((BOARD.rows + 1) * square, (BOARD.columns + 1) * square))
    board = np.where((rows // square + columns // square) % 2, 230, 25).astype(np.uint8)
    page = cv2.copyMakeBorder(board, square, square, square, square, cv2.BORDER_CONSTANT, value=230)
    edges = np.array([[0, 0], [8, 0], [8, 5], [0, 5]])
    on_page = (edges * square + 2 * square - 0.5).astype(np.float32)
    plane = np.column_stack([edges * [BOARD.width, BOARD.height], np.zeros(4)])
    seen = plane @ cv2.Rodrigues(pose[0])[0].T + pose[1]
    pixels = (seen @ K.T)[:, :2] / seen[:, 2:]
    H = cv2.getPerspectiveTransform(on_page, pixels.astype(np.float32))
    return cv2.warpPerspective(page, H, IMAGE_SIZE_PX, flags=cv2.INTER_AREA, borderValue=120)
