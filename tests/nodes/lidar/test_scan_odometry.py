"""Lidar odometry in rooms with exactly known walls and motions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.nodes.lidar.rooms import CORRIDOR, ROOM, motion, scan, wall_distances

from transect.algorithms.odometry import LidarOdometer, LidarOdometrySettings
from transect.algorithms.odometry.lidar_sweep import MIN_INCIDENCE_SINE, LidarSweepSettings, slice_scan
from transect.algorithms.odometry.scan_to_map import MotionNoise
from transect.algorithms.registration.gicp import AlignmentResult, count_voxels
from transect.geometry import rotations, se3
from transect.nodes.lidar.scan_odometry import KeyframePlanes, ScanMotion, ScanOdometry, VoxelGaussians
from transect.simulation.day import WorldOptions, simulate
from transect.types import PointCloud

TWIST = np.array([1.5, 0.2, 0.05, 0.02, -0.03, 0.6])
"""m/s and rad/s: distorts a scan of 0.1 s by 0.6 m at a wall 10 m away."""
SCAN_COUNT = 8


def run_node(node: ScanOdometry, clouds: list[PointCloud]) -> list[ScanMotion]:
    return [node(cloud) for cloud in clouds]


@cache
def scans(**how: int) -> list[PointCloud]:
    return [scan(motion(TWIST), 0.1 * i, noise=0.01, **how) for i in range(SCAN_COUNT)]


def errors(results: list[ScanMotion]) -> tuple[float, float]:
    """Return the error of the last pose in m and rad."""
    pose, true = results[-1].pose, motion(TWIST)(np.array([0.1 * (len(results) - 1)]))[0]
    angle = rotations.angle_between(pose.orientation, rotations.quaternion_from_matrix(true[:3, :3]))
    return float(np.linalg.norm(pose.position - true[:3, 3])), float(angle)


@pytest.mark.parametrize("kind", [VoxelGaussians, KeyframePlanes])
def test_poses_of_a_driving_and_turning_lidar(kind: type[ScanOdometry]):
    results = run_node(kind(), scans())
    assert all(each.success and each.converged for each in results)
    metres, radians = errors(results)
    assert metres < 0.04
    assert radians < 0.005
    assert (results[-1].pose.frame, results[-1].pose.child) == ("odom", "lidar")
    assert results[-1].pose.t_ns == 1_700_000_000


def test_deskewed_scans_lie_on_the_walls():
    outputs = run_node(VoxelGaussians(emit_scans=True), scans())
    poses = motion(TWIST)(0.1 * np.arange(SCAN_COUNT))
    for pose, results, cloud in list(zip(poses, outputs, scans(), strict=True))[2:]:
        after = wall_distances(se3.apply(pose, np.asarray(results.scan.points, np.float64)))
        before = wall_distances(se3.apply(pose, cloud.points))
        assert np.sqrt(np.mean(after**2)) < 0.2 * np.sqrt(np.mean(before**2))
        assert (results.scan.t_ns, results.scan.frame) == (cloud.t_ns, "lidar")
    assert run_node(VoxelGaussians(), scans())[-1].scan is None


def test_errors_are_larger_without_deskewing():
    before = errors(run_node(VoxelGaussians(deskew=False), scans()))
    after = errors(run_node(VoxelGaussians(), scans()))
    assert after[1] < before[1] / 2


@pytest.mark.parametrize("direction", [-1, 1])
def test_point_times_are_estimated_for_both_directions_of_rotation(direction: int):
    metres, radians = errors(run_node(VoxelGaussians(), scans(timed=False, direction=direction)))
    assert metres < 0.04
    assert radians < 0.005


def test_a_corridor_holds_a_lidar_in_all_directions_but_one():
    stationary = motion(np.zeros(6))
    inside = [scan(stationary, 0.1 * i, room=CORRIDOR, furniture=(), noise=0.01) for i in range(6)]
    far = [replace(c, points=c.points[np.abs(c.points[:, 0]) < 20], fields={}) for c in inside]
    corridor, room = run_node(VoxelGaussians(), far)[-1], run_node(VoxelGaussians(), scans())[-1]
    assert corridor.degeneracy < 0.2 * room.degeneracy
    along, across = np.sqrt(np.diag(corridor.covariance)[:2])
    assert along > 2 * across


def test_errors_of_the_motion_are_as_large_as_the_covariance_says():
    rng = np.random.default_rng(0)
    vibrating_motion = [se3.exp(rng.normal(0, [0.01] * 3 + [0.001] * 3)) for _ in range(40)]
    odometer, errors = MotionNoise(max_differences=30, min_differences=3), []
    aligned = AlignmentResult(np.eye(4), True, 1, 1000, 1e-9, np.eye(6), np.zeros(6))
    for i in range(1, len(vibrating_motion)):
        true = se3.exp(0.1 * TWIST)
        results = se3.invert(vibrating_motion[i - 1]) @ se3.exp(0.1 * TWIST) @ vibrating_motion[i]
        odometer.add(se3.log(results) / 0.1, 0.1)
        covariance = odometer.covariance(aligned)
        if covariance is not None:
            error = se3.log(se3.invert(true) @ results)
            errors.append(error @ np.linalg.solve(covariance, error))
    assert len(errors) == 39 - 4
    # Six degrees of freedom; the mean over 35 steps scatters by a fifth or so.
    assert np.mean(errors) == pytest.approx(6, rel=0.4)


def test_an_empty_scan_is_rejected_and_the_next_one_continues():
    node = VoxelGaussians()
    clouds = scans()
    run_node(node, clouds[:4])
    empty = node(PointCloud(np.zeros((0, 3)), t_ns=clouds[4].t_ns))
    assert empty.success is False
    assert empty.pose is None
    dark = node(replace(clouds[4], points=np.full_like(clouds[4].points, np.nan)))
    assert dark.success is False
    results = [empty] * 5 + run_node(node, clouds[5:])
    assert results[-1].success
    assert errors(results)[0] < 0.05


def test_a_scan_of_another_place_has_no_pose():
    node = VoxelGaussians()
    run_node(node, scans()[:4])
    rng = np.random.default_rng(0)
    other_points = rng.uniform(-30, 30, (1000, 3))
    lost = node(PointCloud(other_points, t_ns=1_400_000_000, frame="lidar"))
    assert lost.success is False
    assert lost.pose is None
    assert lost.inliers < 0.4


def narrow_view(cloud: PointCloud, half: float) -> PointCloud:
    """Return the points of a scan within an angle of the forward direction."""
    seen = np.abs(np.arctan2(cloud.points[:, 1], cloud.points[:, 0])) < half
    return replace(cloud, points=cloud.points[seen], fields={k: row[seen] for k, row in cloud.fields.items()})


def test_a_scan_of_mostly_new_ground_is_accepted_at_the_predicted_pose():
    node, clouds = VoxelGaussians(), scans()
    before = run_node(node, [narrow_view(cloud, 0.6) for cloud in clouds[:-1]])
    wide = node(clouds[-1])
    assert wide.inliers < node.min_inlier_ratio
    assert wide.success
    assert errors([*before, wide])[0] < 0.08


def test_a_scan_of_mostly_new_ground_is_rejected_after_a_failed_one():
    node, clouds = VoxelGaussians(), scans()
    run_node(node, [narrow_view(cloud, 0.8) for cloud in clouds[:-2]])
    noise = np.random.default_rng(0).uniform(-30, 30, (1000, 3))
    assert not node(PointCloud(noise, t_ns=clouds[-2].t_ns, frame="lidar")).success
    assert not node(clouds[-1]).success


def test_a_low_inlier_ratio_is_rejected_after_a_failed_scan():
    noise = np.random.default_rng(0).uniform(-30, 30, (2000, 3))
    shifted = se3.apply(se3.exp(np.array([0.0, 0.6, 0.0, 0.0, 0.0, 0.0])), scans()[-1].points)
    half = PointCloud(np.concatenate([shifted, noise]), t_ns=scans()[-1].t_ns, frame="lidar")
    for lost in (False, True):
        node = VoxelGaussians()
        run_node(node, scans()[:-2])
        other = PointCloud(noise, t_ns=scans()[-2].t_ns, frame="lidar") if lost else scans()[-2]
        assert node(other).success is not lost
        results = node(half)
        assert results.inliers > node.min_inlier_ratio
        assert results.success is not lost


OTHER_ROOM = (np.array([-4.0, -14.0, -1.2]), np.array([21.0, 3.0, 4.0]))


def test_a_kidnapped_lidar_restarts_at_the_extrapolated_pose():
    node, clouds = VoxelGaussians(), scans()
    before = run_node(node, clouds)[-1].pose
    forward = motion(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    rooms = [scan(forward, 0.1 * i, noise=0.01, room=OTHER_ROOM, furniture=()) for i in range(4)]
    after_gap = [replace(cloud, t_ns=cloud.t_ns + 5_000_000_000) for cloud in rooms]
    results = run_node(node, after_gap)
    assert [each.success for each in results] == [False, True, True, True]
    positions = np.array([each.pose.position for each in results[1:]])
    assert np.linalg.norm(np.diff(positions, axis=0), axis=1) == pytest.approx(0.1, abs=0.02)
    extrapolated = motion(TWIST)(np.array([0.0, 5.0 + 0.1 - 0.7]))[1]
    stationary_odometry = se3.from_quaternion(before.orientation, before.position) @ extrapolated
    assert np.linalg.norm(positions[0] - stationary_odometry[:3, 3]) < 0.5


def stationary_odometry() -> tuple[VoxelGaussians, PointCloud]:
    """Return an odometry of a stationary lidar in a room, and its next scan."""
    stationary = motion(np.zeros(6))
    clouds = [scan(stationary, 0.1 * i, noise=0.01) for i in range(6)]
    node = VoxelGaussians()
    run_node(node, clouds[:5])
    return node, clouds[5]


PAUSE_NS = 10_000_000_000


def test_odometry_continues_after_a_pause_at_the_same_place():
    node, after = stationary_odometry()
    resumed = node(replace(after, t_ns=after.t_ns + PAUSE_NS))
    assert resumed.success
    assert np.linalg.norm(resumed.pose.position) < 0.02


def test_a_low_inlier_ratio_is_rejected_after_a_pause():
    random_points = np.random.default_rng(1).uniform(-6, 6, (len(stationary_odometry()[1]), 3))
    for pause_ns, accepted in ((0, True), (PAUSE_NS, False)):
        node, after = stationary_odometry()
        half = np.where(after.points[:, :1] > -3.0, after.points, random_points)
        results = node(replace(after, points=half, t_ns=after.t_ns + pause_ns))
        assert results.success is accepted
        assert not accepted or 0.4 < results.inliers < 0.65


def test_a_short_loss_causes_no_restart():
    node, clouds = VoxelGaussians(), scans()
    run_node(node, clouds[:4])
    other_points = np.random.default_rng(0).uniform(-30, 30, (1000, 3))
    node(PointCloud(other_points, t_ns=1_400_000_000, frame="lidar"))
    results = [node(cloud) for cloud in clouds[5:]]
    assert all(each.success for each in results)
    true = motion(TWIST)(np.array([0.1 * (SCAN_COUNT - 1)]))[0]
    assert np.linalg.norm(results[-1].pose.position - true[:3, 3]) < 0.05


def test_a_wrong_second_scan_does_not_spoil_the_initialisation():
    node, clouds = VoxelGaussians(), scans()
    node(clouds[0])
    other_points = np.random.default_rng(0).uniform(-30, 30, (1000, 3))
    assert node(PointCloud(other_points, t_ns=1_050_000_000, frame="lidar")).success is False
    results = [node(cloud) for cloud in clouds[1:4]]
    assert all(each.success for each in results)
    assert errors([results[0], *results])[0] < 0.04


def test_a_scan_that_is_not_newer_is_rejected():
    node = VoxelGaussians()
    clouds = scans()
    run_node(node, clouds[:2])
    assert node(clouds[1]).success is False


def test_the_map_lies_on_the_walls():
    node = VoxelGaussians()
    run_node(node, scans())
    cloud = node.finish().map
    assert len(cloud) > 1000
    assert np.percentile(wall_distances(cloud.points.astype(np.float64)), 95) < 0.1
    assert np.ptp(cloud.points, axis=0)[0] == pytest.approx(ROOM[1][0] - ROOM[0][0], abs=0.5)


def test_the_map_includes_the_first_scan():
    node = VoxelGaussians()
    run_node(node, scans()[:2])
    results = node.finish().map.fields["count"].sum()
    assert results > 1.8 * count_voxels(scans()[0].points, node.odometer.voxel)


@pytest.mark.parametrize("kind", [VoxelGaussians, KeyframePlanes])
def test_a_copy_continues_identically(kind: type[ScanOdometry]):
    clouds = scans()
    node, other = kind(), kind()
    run_node(node, clouds[:5])
    other.thaw(node.freeze())
    for cloud in clouds[5:]:
        a, b = node(cloud), other(cloud)
        np.testing.assert_array_equal(a.pose.position, b.pose.position)
        np.testing.assert_array_equal(a.covariance, b.covariance)


def test_a_first_step_of_a_metre_is_estimated_without_a_prediction():
    steps = motion(np.array([10.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    clouds = [scan(steps, 0.1 * i, noise=0.01) for i in range(3)]
    results = run_node(VoxelGaussians(), clouds)
    np.testing.assert_allclose(results[-1].pose.position, [2.0, 0.0, 0.0], atol=0.05)
    assert se3.from_quaternion(results[-1].pose.orientation, np.zeros(3))[0, 0] > 0.9999


def vibrating_motion(seconds: np.ndarray) -> np.ndarray:
    """Return poses (n, 4, 4) of a lidar that is driven, rolled and pitched at 1.7 and 1.3 Hz."""
    tilt = np.zeros((len(seconds), 6))
    tilt[:, 3:5] = 0.02 * (1 - np.cos(2 * np.pi * np.outer(seconds, [1.7, 1.3])))
    return se3.exp(np.outer(seconds, [0.8, 0.0, 0.0, 0.0, 0.0, 0.1])) @ se3.exp(tilt)


def test_the_angular_velocity_during_a_scan_is_estimated_despite_vibration():
    node, starts = VoxelGaussians(), 0.3 * np.arange(24)
    results = [node(scan(vibrating_motion, begin, noise=0.01)) for begin in starts]
    assert all(each.success for each in results)
    estimated = np.array([each.velocity.angular_velocity for each in results[4:]])

    def angular_velocity(since: np.ndarray, until: np.ndarray) -> np.ndarray:
        return (
            se3.log(se3.invert(vibrating_motion(since)) @ vibrating_motion(until))[:, 3:]
            / (until - since)[:, None]
        )

    middle_s = starts[4:] + 0.05
    during = angular_velocity(middle_s - 0.02, middle_s + 0.02)
    between = angular_velocity(middle_s - 0.3, middle_s)
    # Scans are deskewed by this estimate; the mean motion since the last scan would leave a distortion.
    assert np.std(estimated - during) < 0.75 * np.std(between - during)


@cache
def rough_drive() -> tuple[list[PointCloud], np.ndarray]:
    """Return scans of a lidar on simulated Etna with vibration, and its true poses (n, 4, 4)."""
    asked = WorldOptions(seconds=20, seed=5, scale=0.2, streams=("Lidar",), conditions={"lidar": "measured"})
    day = simulate("etna", asked)
    clouds = [sample.payload for sample in day.recording["Lidar"]][::2]
    mount = day.recording.frames.lookup("Platform", "Lidar")
    return clouds, day.truth.motion.at(np.array([each.t_ns for each in clouds])).transforms @ mount


def step_error(clouds: list[PointCloud], true: np.ndarray, settings: LidarSweepSettings) -> float:
    """Return the RMS error of the motion from scan to scan, m."""
    odometer = LidarOdometer(LidarOdometrySettings(sweep=settings))
    poses = np.array([odometer.register_cloud(cloud).pose for cloud in clouds])
    error = se3.invert(se3.invert(true[:-1]) @ true[1:]) @ se3.invert(poses[:-1]) @ poses[1:]
    return float(np.sqrt(np.mean(np.sum(error[:, :3, 3] ** 2, axis=1))))


@pytest.mark.parametrize(
    "disabled",
    [LidarSweepSettings(rotation_change_sigma=(1e-3, 1e-3)), LidarSweepSettings(min_incidence_sine=0.0)],
)
def test_uneven_rotation_and_incidence_matter_on_rough_ground(disabled: LidarSweepSettings):
    error = step_error(*rough_drive(), LidarSweepSettings())
    assert error < 0.8 * step_error(*rough_drive(), disabled)


def test_points_at_grazing_incidence_are_left_out_of_a_scan():
    x, y = np.meshgrid(np.arange(-40, 40, 0.5), np.arange(-40, 40, 0.5))
    ground = np.stack([x.ravel(), y.ravel(), np.full(x.size, -2.0)], axis=1)
    [whole] = slice_scan(ground, None, 0.4)
    ranges = np.linalg.norm(whole.cloud.points, axis=1)
    max_range = 2.0 / MIN_INCIDENCE_SINE
    assert 0.95 * max_range < ranges.max() <= max_range
    assert len(whole.cloud) > 500
    distant = ground[np.linalg.norm(ground, axis=1) > 2 * max_range]
    [few] = slice_scan(distant, None, 0.4)
    assert len(few.cloud) >= LidarSweepSettings().min_slice_points


def test_sparse_scans_use_larger_voxels():
    sparse = [
        replace(c, points=c.points[::7], fields={name: row[::7] for name, row in c.fields.items()})
        for c in scans()
    ]
    fine, chosen = VoxelGaussians(voxel=0.4), VoxelGaussians()
    assert not any(each.success for each in run_node(fine, sparse)[1:])
    results = run_node(chosen, sparse)
    assert all(each.success for each in results)
    assert chosen.odometer.voxel > 0.4
    assert errors(results)[0] < 0.08
