"""Lidar odometry in rooms whose walls, and motions in them, are known exactly."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.nodes.lidar.rooms import CORRIDOR, ROOM, motion, off_the_walls, scan

from transect.algorithms.odometry import lidar_sweep as sweep
from transect.algorithms.odometry.lidar_sweep import cut
from transect.algorithms.odometry.lidar_uncertainty import Unsteadiness
from transect.algorithms.registration.gicp import Aligned, thinned_size
from transect.geometry import rotations, se3
from transect.nodes.lidar.scan_odometry import PointToPlane, ScanMotion, ScanOdometry, VoxelGaussians
from transect.simulation.day import Options, simulate
from transect.types import PointCloud

TWIST = np.array([1.5, 0.2, 0.05, 0.02, -0.03, 0.6])
"""m/s and rad/s: fast enough to bend a scan of 0.1 s by 0.6 m at a wall 10 m away."""
SCANS = 8


def played(node: ScanOdometry, clouds: list[PointCloud]) -> list[ScanMotion]:
    return [node(cloud) for cloud in clouds]


@cache
def scans(**how: int) -> list[PointCloud]:
    return [scan(motion(TWIST), 0.1 * i, noise=0.01, **how) for i in range(SCANS)]


def errors(found: list[ScanMotion]) -> tuple[float, float]:
    """Metres and radians from the last pose to where the lidar was."""
    pose, true = found[-1].pose, motion(TWIST)(np.array([0.1 * (len(found) - 1)]))[0]
    turned = rotations.angle_between(pose.orientation, rotations.quaternion_from_matrix(true[:3, :3]))
    return float(np.linalg.norm(pose.position - true[:3, 3])), float(turned)


@pytest.mark.parametrize("kind", [VoxelGaussians, PointToPlane])
def test_a_lidar_that_drives_and_turns_knows_where_it_is(kind: type[ScanOdometry]):
    found = played(kind(), scans())
    assert all(each.success and each.converged for each in found)
    metres, radians = errors(found)
    assert metres < 0.04
    assert radians < 0.005
    assert (found[-1].pose.frame, found[-1].pose.child) == ("odom", "lidar")
    assert found[-1].pose.t_ns == 1_700_000_000


def test_scans_are_given_as_if_they_had_been_measured_at_once():
    given = played(VoxelGaussians(give_scans=True), scans())
    poses = motion(TWIST)(0.1 * np.arange(SCANS))
    for pose, found, cloud in list(zip(poses, given, scans(), strict=True))[2:]:
        straight = off_the_walls(se3.apply(pose, np.asarray(found.scan.points, np.float64)))
        bent = off_the_walls(se3.apply(pose, cloud.points))
        assert np.sqrt(np.mean(straight**2)) < 0.2 * np.sqrt(np.mean(bent**2))
        assert (found.scan.t_ns, found.scan.frame) == (cloud.t_ns, "lidar")
    assert played(VoxelGaussians(), scans())[-1].scan is None


def test_scans_that_are_not_straightened_make_it_worse():
    bent = errors(played(VoxelGaussians(deskew=False), scans()))
    straight = errors(played(VoxelGaussians(), scans()))
    assert straight[1] < bent[1] / 2


@pytest.mark.parametrize("way", [-1, 1])
def test_times_are_found_from_the_order_of_points_whichever_way_the_head_turns(way: int):
    metres, radians = errors(played(VoxelGaussians(), scans(timed=False, way=way)))
    assert metres < 0.04
    assert radians < 0.005


def test_a_corridor_holds_a_lidar_in_all_directions_but_one():
    still = motion(np.zeros(6))
    inside = [scan(still, 0.1 * i, room=CORRIDOR, furniture=(), noise=0.01) for i in range(6)]
    far = [replace(c, points=c.points[np.abs(c.points[:, 0]) < 20], fields={}) for c in inside]
    corridor, room = played(VoxelGaussians(), far)[-1], played(VoxelGaussians(), scans())[-1]
    assert corridor.degeneracy < 0.2 * room.degeneracy
    along, across = np.sqrt(np.diag(corridor.covariance)[:2])
    assert along > 2 * across


def test_errors_of_the_motion_are_as_large_as_the_covariance_says():
    rng = np.random.default_rng(0)
    shaken = [se3.exp(rng.normal(0, [0.01] * 3 + [0.001] * 3)) for _ in range(40)]
    odometer, errors = Unsteadiness(), []
    aligned = Aligned(np.eye(4), True, 1, 1000, 1e-9, np.eye(6), np.zeros(6))
    for i in range(1, len(shaken)):
        true, found = se3.exp(0.1 * TWIST), se3.invert(shaken[i - 1]) @ se3.exp(0.1 * TWIST) @ shaken[i]
        odometer.add(se3.log(found) / 0.1, 0.1)
        covariance = odometer.covariance(aligned)
        if covariance is not None:
            error = se3.log(se3.invert(true) @ found)
            errors.append(error @ np.linalg.solve(covariance, error))
    assert len(errors) == 39 - 4
    # Six degrees of freedom; the mean over 35 steps scatters by a fifth or so.
    assert np.mean(errors) == pytest.approx(6, rel=0.4)


def test_what_cannot_be_aligned_is_refused_and_the_next_scan_goes_on():
    node = VoxelGaussians()
    clouds = scans()
    played(node, clouds[:4])
    empty = node(PointCloud(np.zeros((0, 3)), t_ns=clouds[4].t_ns))
    assert empty.success is False
    assert empty.pose is None
    dark = node(replace(clouds[4], points=np.full_like(clouds[4].points, np.nan)))
    assert dark.success is False
    found = [empty] * 5 + played(node, clouds[5:])
    assert found[-1].success
    assert errors(found)[0] < 0.05


def test_a_scan_of_another_place_has_no_pose():
    node = VoxelGaussians()
    played(node, scans()[:4])
    rng = np.random.default_rng(0)
    elsewhere = rng.uniform(-30, 30, (1000, 3))
    lost = node(PointCloud(elsewhere, t_ns=1_400_000_000, frame="lidar"))
    assert lost.success is False
    assert lost.pose is None
    assert lost.inliers < 0.4


def narrowed(cloud: PointCloud, half: float) -> PointCloud:
    """What of a scan lies within so many radians of straight ahead."""
    seen = np.abs(np.arctan2(cloud.points[:, 1], cloud.points[:, 0])) < half
    return replace(cloud, points=cloud.points[seen], fields={k: row[seen] for k, row in cloud.fields.items()})


def test_a_scan_of_mostly_new_ground_is_believed_where_it_should_be():
    node, clouds = VoxelGaussians(), scans()
    before = played(node, [narrowed(cloud, 0.6) for cloud in clouds[:-1]])
    opened = node(clouds[-1])
    assert opened.inliers < node.least_share
    assert opened.success
    assert errors([*before, opened])[0] < 0.08


def test_a_scan_of_mostly_new_ground_is_not_believed_after_one_that_found_no_place():
    node, clouds = VoxelGaussians(), scans()
    played(node, [narrowed(cloud, 0.8) for cloud in clouds[:-2]])
    noise = np.random.default_rng(0).uniform(-30, 30, (1000, 3))
    assert not node(PointCloud(noise, t_ns=clouds[-2].t_ns, frame="lidar")).success
    assert not node(clouds[-1]).success


def test_half_a_scan_elsewhere_is_not_believed_after_one_that_found_no_place():
    noise = np.random.default_rng(0).uniform(-30, 30, (2000, 3))
    aside = se3.apply(se3.exp(np.array([0.0, 0.6, 0.0, 0.0, 0.0, 0.0])), scans()[-1].points)
    half = PointCloud(np.concatenate([aside, noise]), t_ns=scans()[-1].t_ns, frame="lidar")
    for lost in (False, True):
        node = VoxelGaussians()
        played(node, scans()[:-2])
        other = PointCloud(noise, t_ns=scans()[-2].t_ns, frame="lidar") if lost else scans()[-2]
        assert node(other).success is not lost
        found = node(half)
        assert found.inliers > node.least_share
        assert found.success is not lost


OTHER_ROOM = (np.array([-4.0, -14.0, -1.2]), np.array([21.0, 3.0, 4.0]))


def test_a_lidar_that_was_carried_elsewhere_begins_anew_where_it_should_be_by_its_velocity():
    node, clouds = VoxelGaussians(), scans()
    before = played(node, clouds)[-1].pose
    ahead = motion(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    rooms = [scan(ahead, 0.1 * i, noise=0.01, room=OTHER_ROOM, furniture=()) for i in range(4)]
    later = [replace(cloud, t_ns=cloud.t_ns + 5_000_000_000) for cloud in rooms]
    found = played(node, later)
    assert [each.success for each in found] == [False, True, True, True]
    places = np.array([each.pose.position for each in found[1:]])
    assert np.linalg.norm(np.diff(places, axis=0), axis=1) == pytest.approx(0.1, abs=0.02)
    forecast = motion(TWIST)(np.array([0.0, 5.0 + 0.1 - 0.7]))[1]
    begun = se3.from_quaternion(before.orientation, before.position) @ forecast
    assert np.linalg.norm(places[0] - begun[:3, 3]) < 0.5


def begun() -> tuple[VoxelGaussians, PointCloud]:
    """An odometry that stands in a room, and its next scan."""
    still = motion(np.zeros(6))
    here = [scan(still, 0.1 * i, noise=0.01) for i in range(6)]
    node = VoxelGaussians()
    played(node, here[:5])
    return node, here[5]


PAUSE_NS = 10_000_000_000


def test_after_a_pause_a_scan_of_the_same_place_goes_on():
    node, after = begun()
    again = node(replace(after, t_ns=after.t_ns + PAUSE_NS))
    assert again.success
    assert np.linalg.norm(again.pose.position) < 0.02


def test_a_scan_that_fits_by_half_is_believed_at_once_and_not_after_a_pause():
    anywhere = np.random.default_rng(1).uniform(-6, 6, (len(begun()[1]), 3))
    for pause_ns, believed in ((0, True), (PAUSE_NS, False)):
        node, after = begun()
        half = np.where(after.points[:, :1] > -3.0, after.points, anywhere)
        found = node(replace(after, points=half, t_ns=after.t_ns + pause_ns))
        assert found.success is believed
        assert not believed or 0.4 < found.inliers < 0.65


def test_a_short_while_without_a_place_does_not_begin_anew():
    node, clouds = VoxelGaussians(), scans()
    played(node, clouds[:4])
    elsewhere = np.random.default_rng(0).uniform(-30, 30, (1000, 3))
    node(PointCloud(elsewhere, t_ns=1_400_000_000, frame="lidar"))
    found = [node(cloud) for cloud in clouds[5:]]
    assert all(each.success for each in found)
    true = motion(TWIST)(np.array([0.1 * (SCANS - 1)]))[0]
    assert np.linalg.norm(found[-1].pose.position - true[:3, 3]) < 0.05


def test_a_second_scan_of_another_place_does_not_spoil_the_start():
    node, clouds = VoxelGaussians(), scans()
    node(clouds[0])
    elsewhere = np.random.default_rng(0).uniform(-30, 30, (1000, 3))
    assert node(PointCloud(elsewhere, t_ns=1_050_000_000, frame="lidar")).success is False
    found = [node(cloud) for cloud in clouds[1:4]]
    assert all(each.success for each in found)
    assert errors([found[0], *found])[0] < 0.04


def test_a_scan_that_is_not_later_is_refused():
    node = VoxelGaussians()
    clouds = scans()
    played(node, clouds[:2])
    assert node(clouds[1]).success is False


def test_the_map_lies_on_the_walls():
    node = VoxelGaussians()
    played(node, scans())
    cloud = node.finish().map
    assert len(cloud) > 1000
    assert np.percentile(off_the_walls(cloud.points.astype(np.float64)), 95) < 0.1
    assert np.ptp(cloud.points, axis=0)[0] == pytest.approx(ROOM[1][0] - ROOM[0][0], abs=0.5)


def test_the_map_has_the_first_scan_too():
    node = VoxelGaussians()
    played(node, scans()[:2])
    found = node.finish().map.fields["count"].sum()
    assert found > 1.8 * thinned_size(scans()[0].points, node.odometer.voxel)


@pytest.mark.parametrize("kind", [VoxelGaussians, PointToPlane])
def test_a_copy_goes_on_with_the_same_bits(kind: type[ScanOdometry]):
    clouds = scans()
    node, other = kind(), kind()
    played(node, clouds[:5])
    other.thaw(node.freeze())
    for cloud in clouds[5:]:
        a, b = node(cloud), other(cloud)
        np.testing.assert_array_equal(a.pose.position, b.pose.position)
        np.testing.assert_array_equal(a.covariance, b.covariance)


def test_a_first_step_of_a_metre_is_found_without_any_forecast():
    steps = motion(np.array([10.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    clouds = [scan(steps, 0.1 * i, noise=0.01) for i in range(3)]
    found = played(VoxelGaussians(), clouds)
    np.testing.assert_allclose(found[-1].pose.position, [2.0, 0.0, 0.0], atol=0.05)
    assert se3.from_quaternion(found[-1].pose.orientation, np.zeros(3))[0, 0] > 0.9999


def shaken(seconds: np.ndarray) -> np.ndarray:
    """Poses (n, 4, 4) of a lidar that drives on while it is rolled and pitched 1.7 and 1.3 times a second."""
    tilt = np.zeros((len(seconds), 6))
    tilt[:, 3:5] = 0.02 * (1 - np.cos(2 * np.pi * np.outer(seconds, [1.7, 1.3])))
    return se3.exp(np.outer(seconds, [0.8, 0.0, 0.0, 0.0, 0.0, 0.1])) @ se3.exp(tilt)


def test_a_scan_tells_how_fast_a_shaken_lidar_turned_meanwhile():
    node, begins = VoxelGaussians(), 0.3 * np.arange(24)
    found = [node(scan(shaken, begin, noise=0.01)) for begin in begins]
    assert all(each.success for each in found)
    told = np.array([each.velocity.angular_velocity for each in found[4:]])

    def turning(since: np.ndarray, until: np.ndarray) -> np.ndarray:
        return se3.log(se3.invert(shaken(since)) @ shaken(until))[:, 3:] / (until - since)[:, None]

    middle = begins[4:] + 0.05
    during, between = turning(middle - 0.02, middle + 0.02), turning(middle - 0.3, middle)
    # Scans are straightened by what they tell; by the motion since the one before they would stay bent.
    assert np.std(told - during) < 0.75 * np.std(between - during)


@cache
def rough_drive() -> tuple[list[PointCloud], np.ndarray]:
    """Scans of a lidar on simulated Etna, which is shaken within each, and its true poses (n, 4, 4)."""
    asked = Options(seconds=20, seed=5, scale=0.2, streams=("Lidar",), conditions={"lidar": "measured"})
    day = simulate("etna", asked)
    clouds = [sample.payload for sample in day.recording["Lidar"]][::2]
    mount = day.recording.frames.lookup("Platform", "Lidar")
    return clouds, day.truth.motion.at(np.array([each.t_ns for each in clouds])).transforms @ mount


def tremble(clouds: list[PointCloud], true: np.ndarray) -> float:
    """Metres by which the motion from scan to scan is wrong."""
    found = [each.pose for each in played(VoxelGaussians(), clouds)]
    poses = np.array([se3.from_quaternion(each.orientation, each.position) for each in found])
    off = se3.invert(se3.invert(true[:-1]) @ true[1:]) @ se3.invert(poses[:-1]) @ poses[1:]
    return float(np.sqrt(np.mean(np.sum(off[:, :3, 3] ** 2, axis=1))))


@pytest.mark.parametrize(("name", "before"), [("UNEVEN", (1e-3, 1e-3)), ("ASLANT", 0.0)])
def test_on_rough_ground_a_lidar_may_turn_unevenly_and_leaves_out_what_it_meets_aslant(
    monkeypatch: pytest.MonkeyPatch, name: str, before: object
):
    now = tremble(*rough_drive())
    monkeypatch.setattr(sweep, name, before)
    assert now < 0.8 * tremble(*rough_drive())


def test_ground_that_is_met_aslant_is_left_out_of_a_scan():
    x, y = np.meshgrid(np.arange(-40, 40, 0.5), np.arange(-40, 40, 0.5))
    ground = np.stack([x.ravel(), y.ravel(), np.full(x.size, -2.0)], axis=1)
    [whole] = cut(ground, None, 0.4)
    away = np.linalg.norm(whole.cloud.points, axis=1)
    farthest = 2.0 / sweep.ASLANT
    assert 0.95 * farthest < away.max() <= farthest
    assert len(whole.cloud) > 500
    far = ground[np.linalg.norm(ground, axis=1) > 2 * farthest]
    [few] = cut(far, None, 0.4)
    assert len(few.cloud) >= sweep.ENOUGH


def test_a_lidar_of_few_points_begins_in_voxels_in_which_two_scans_meet():
    sparse = [
        replace(c, points=c.points[::7], fields={name: row[::7] for name, row in c.fields.items()})
        for c in scans()
    ]
    fine, chosen = VoxelGaussians(voxel=0.4), VoxelGaussians()
    assert not any(each.success for each in played(fine, sparse)[1:])
    found = played(chosen, sparse)
    assert all(each.success for each in found)
    assert chosen.odometer.voxel > 0.4
    assert errors(found)[0] < 0.08
