"""The algorithms as a script uses them: plain numpy data with a known truth, and nothing of the engine."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, map_coordinates

import transect.algorithms
from transect.algorithms.calibration import StereoTracks, estimate_lens, frame_information
from transect.algorithms.coregistration import align_maps
from transect.algorithms.fusion import ErrorStateFilter, FusionInputs, PlainContext
from transect.algorithms.odometry import (
    GrayPair,
    LaserFieldOfView,
    LaserOdometer,
    LidarOdometer,
    StereoOdometer,
    StereoRig,
)
from transect.algorithms.registration import align_clouds
from transect.algorithms.slam import PoseGraph
from transect.errors import FrameError
from transect.geometry import se3
from transect.types import CameraModel, GridMap, NavFix, Odometry

NS = 1_000_000_000
PACKAGES = [each.name for each in pkgutil.iter_modules(transect.algorithms.__path__) if each.ispkg]
LOW, HIGH = np.array([-12.0, -9.0, -1.5]), np.array([14.0, 8.0, 4.0])


def ranges(origins: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Metres (n,) from inside a room to its walls."""
    k = origins.shape[-1]
    with np.errstate(divide="ignore"):
        return np.maximum((LOW[:k] - origins) / directions, (HIGH[:k] - origins) / directions).min(axis=-1)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package: str) -> None:
    module = importlib.import_module(f"transect.algorithms.{package}")
    assert {name for name in module.__all__ if not callable(getattr(module, name))} == set()


def test_no_algorithm_imports_the_engine_or_a_recording() -> None:
    code = """
import importlib, pkgutil, sys
import transect.algorithms
for each in pkgutil.walk_packages(transect.algorithms.__path__, "transect.algorithms."):
    if not each.name.endswith("_compiled"):
        importlib.import_module(each.name)
above = ("engine", "nodes", "recording", "robots", "formats", "draw", "cli", "simulation")
print(sorted({m for m in sys.modules if m.startswith(tuple("transect." + name for name in above))}))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_importing_a_package_imports_none_of_its_modules() -> None:
    code = "import sys, transect.algorithms.odometry as o; print('numpy' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_a_lidar_that_moves_during_its_scans_knows_where_it_is() -> None:
    azimuth, elevation = np.meshgrid(np.arange(0, 2 * np.pi, 0.01), np.radians(np.linspace(-24, 24, 24)))
    rays = np.stack([np.cos(azimuth), np.sin(azimuth), np.tan(elevation)], axis=-1).reshape(-1, 3)
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    offset_ns = np.rint(azimuth.ravel() / (2 * np.pi) * NS / 10).astype(np.int64)
    twist = np.array([3.0, 0.0, 0.0, 0.0, 0.0, 0.4])  # per second
    odometer = LidarOdometer()
    for k in range(12):
        T = se3.exp((0.1 * k + offset_ns / NS)[:, None] * twist)
        far = ranges(T[:, :3, 3], np.einsum("nij,nj->ni", T[:, :3, :3], rays))
        found = odometer.register(far[:, None] * rays, NS + k * NS // 10, offset_ns)
    assert found.pose is not None
    error = se3.log(se3.invert(se3.exp(1.1 * twist)) @ found.pose)
    assert np.linalg.norm(error[:3]) < 0.05
    assert np.linalg.norm(error[3:]) < 0.005
    assert found.velocity == pytest.approx(twist, abs=0.05)
    _, means = odometer.map_points() or (None, np.zeros((0, 3)))
    walls = np.minimum(np.abs(means - LOW), np.abs(means - HIGH)).min(axis=1)
    assert len(means) > 500
    assert np.median(walls) < 0.05
    assert odometer.register(rays, NS).reason == "not later than the scan before"


def test_a_planar_laser_knows_where_it_is() -> None:
    angles = np.arange(-np.pi, np.pi, np.radians(0.5))
    odometer = LaserOdometer(np.radians(0.5), LaserFieldOfView.from_calibration({}))
    for k in range(30):
        x, heading = 0.05 * k, 0.01 * k
        rays = np.stack([np.cos(angles + heading), np.sin(angles + heading)], axis=-1)
        far = ranges(np.array([x, 0.0]), rays)
        points = far[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        found = odometer.step(NS + k * NS // 10, points, None)
    assert found.pose == pytest.approx([1.45, 0.0, 0.29], abs=0.05)


def test_a_stereo_pair_that_drives_towards_a_wall_knows_how_far() -> None:
    rig = StereoRig(fx=200.0, fy=200.0, cx=160.0, cy=100.0, baseline=0.2, width=320, height=200)
    paint = gaussian_filter(np.random.default_rng(0).normal(size=(600, 900)), 2.0)
    paint = np.clip(128 + 45 * paint / paint.std(), 0, 255)
    row, column = np.mgrid[:200, :320].astype(float)

    def look(x: float, z: float) -> np.ndarray:
        """The wall at z = 4 m, 50 pixels of paint per metre, by a camera at (x, 0, z)."""
        across, down = ((column - 160) * (4 - z) / 200 + x, (row - 100) * (4 - z) / 200)
        return map_coordinates(paint, [300 + 50 * down, 450 + 50 * across], order=1).astype(np.uint8)

    odometer = StereoOdometer(rig)
    for k in range(12):
        x, z = 0.01 * k, 0.05 * k
        found = odometer.advance(GrayPair(look(x, z), look(x + rig.baseline, z)), k * NS // 10)
    assert found.T_world_camera is not None
    assert found.T_world_camera[:3, 3] == pytest.approx([0.11, 0.0, 0.55], abs=0.03)
    assert found.inliers > 100


@pytest.mark.parametrize("method", ["GICP", "PLANE_ICP", "ICP"])
def test_two_samples_of_a_surface_are_aligned(method) -> None:
    rng = np.random.default_rng(1)
    xy = rng.uniform(-10, 10, (40_000, 2))
    cloud = np.column_stack([xy, np.sin(0.7 * xy[:, 0]) + np.cos(0.5 * xy[:, 1] + 0.3 * xy[:, 0])])
    truth = se3.exp([0.3, -0.2, 0.1, 0.02, -0.01, 0.05])
    found = align_clouds(se3.apply(se3.invert(truth), cloud[::2]), cloud[1::2], method=method)
    error = se3.log(se3.invert(truth) @ found.matrix)
    assert found.converged
    assert np.linalg.norm(error[:3]) < (0.1 if method == "ICP" else 0.01)
    assert found.quality.fitness > 0.9


def test_a_loop_takes_the_drift_off() -> None:
    noise = np.diag([0.02, 0.02, 0.01, 0.002, 0.002, 0.01]) ** 2
    truth, graph = [np.eye(4)], PoseGraph()
    graph.add_root(np.eye(4))
    for k in range(20):
        corner = np.pi / 2 if k % 5 == 4 else 0.0
        motion = se3.exp([1.0, 0, 0, 0, 0, 0]) @ se3.exp([0, 0, 0, 0, 0, corner])
        truth.append(truth[-1] @ motion)
        graph.add_odometry(motion @ se3.exp([0, 0, 0, 0, 0, 0.01]), noise)
    worst = max(np.linalg.norm(a[:3, 3] - b[:3, 3]) for a, b in zip(graph.poses, truth, strict=True))
    graph.add_loop(0, 20, np.eye(4), noise)
    graph.optimise_batch()
    left = max(np.linalg.norm(a[:3, 3] - b[:3, 3]) for a, b in zip(graph.poses, truth, strict=True))
    assert worst > 0.5
    assert left < 0.3 * worst


def test_fixes_hold_wheels_that_are_too_fast() -> None:
    antenna = np.eye(4)
    antenna[:3, 3] = 0.3, 0.0, 1.0
    context = PlainContext("base_link", {"gps": antenna})
    fusion = ErrorStateFilter(FusionInputs("base_link", "gps"))
    for k in range(300):
        t_ns = k * NS // 10
        speed, still = np.array([1.05, 0.0, 0.0]), np.zeros(3)  # 5 % too fast
        wheels = Odometry(velocity=speed, angular_velocity=still, t_ns=t_ns, child="base_link")
        north = (0.1 * k + 0.3) / (6_378_137.0 * (1 - 0.00669438))  # metres per radian at the equator
        fix = NavFix(north, 0.0, 1.0, fix="rtk fixed", std=np.full(3, 0.02), t_ns=t_ns, frame="gps")
        state = fusion.process(context, t_ns, odometry=[wheels], fix=[] if k % 10 else [fix])
    assert state is not None
    assert state.p == pytest.approx([0.0, 29.6, -1.0], abs=0.1)
    assert state.rotation[:2, 0] == pytest.approx([0.0, 1.0], abs=0.01)
    assert not context.unused
    with pytest.raises(FrameError, match="no frame 'imu'"):
        context.frames.lookup("base_link", "imu")


def test_the_lens_that_bent_the_tracks_is_found() -> None:
    rng = np.random.default_rng(2)
    K = np.array([[700.0, 0, 600], [0, 700, 180], [0, 0, 1]])
    camera = CameraModel("right", 1200, 360, K, P=np.hstack([K, [[-700 * 0.5], [0], [0]]]))

    def pixels(points: np.ndarray, shift: float) -> np.ndarray:
        xy = (points - [shift, 0, 0])[:, :2] / points[:, 2:]
        bent = xy * (1 - 0.015 * (xy**2).sum(axis=1, keepdims=True))
        return bent * 700 + [600, 180] + rng.normal(0, 0.1, xy.shape)

    tracks = []
    for _ in range(30):
        z = rng.uniform(6, 40, 150)
        then = np.column_stack([rng.uniform(-0.8, 0.8, 150) * z, rng.uniform(-0.2, 0.2, 150) * z, z])
        now = se3.apply(se3.invert(se3.exp([0, 0, 0.5, 0, -0.05, 0])), then)
        tracks.append(StereoTracks(*(pixels(each, x) for each in (then, now) for x in (0.0, 0.5))))
    errors = np.zeros(14)
    for _ in range(3):
        found = [frame_information(each, camera, errors) for each in tracks]
        lens = estimate_lens([each for each in found if each is not None], camera)
        errors = lens.errors
    edge = -700 * 0.015 * (600 / 700) ** 3
    assert lens.sigma_px < 1.0
    assert abs(lens.edge_px - edge) < 3.5 * lens.sigma_px
    assert lens.removed_px == pytest.approx(edge, rel=0.15)


def test_a_height_map_is_found_on_another() -> None:
    rng = np.random.default_rng(3)
    heights = sum(size * gaussian_filter(rng.normal(size=(128, 128)), size) for size in (2, 5, 12))
    reference = GridMap({"elevation": heights}, (1.0, 0, 0, 0, -1.0, 128))
    noisy = heights[20:100, 24:104] + rng.normal(0, 0.05, (80, 80)) + 5.0
    moved = GridMap({"elevation": noisy}, (1.0, 0, 21, 0, -1.0, 110))
    found = align_maps(reference, moved, search_radius=8.0)
    middle = np.array([61.0, 70.0, float(noisy.mean())])
    shift = found.T_reference_map[:3, :3] @ middle + found.T_reference_map[:3, 3] - middle
    assert shift == pytest.approx([3.0, -2.0, -5.0], abs=0.1)
    assert found.horizontal_sigma < 0.1
