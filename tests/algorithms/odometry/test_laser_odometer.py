"""Laser odometry: scan matching and its covariance, fusion with wheels, and repetitive environments."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.slam.rooms import block, box, cast

from transect.algorithms.odometry.laser_drift import (
    OdometryDrift,
    OdometryScale,
    match_covariance,
    odometry_covariance,
)
from transect.algorithms.odometry.laser_odometer import LaserOdometer
from transect.algorithms.odometry.laser_scans import (
    LaserFieldOfView,
    LaserLocalMap,
    LaserWallSettings,
    downsample,
    interpolate_walls,
    scan_points,
    weakest_direction_support,
)
from transect.algorithms.registration.scan_matching import (
    LikelihoodField,
    ScanMatch,
    SearchWindow,
    compose,
    flatten_pose,
    lift_covariance,
    lift_pose,
    relative_pose,
)
from transect.algorithms.slam.laser_recogniser import LaserRecogniser
from transect.algorithms.slam.place_recognition import PosePrior
from transect.types import LaserScan

BEAM_SPACING_RAD = np.pi / 180
VIEW = LaserFieldOfView.from_calibration({})


def returns_at(walls: np.ndarray, pose: tuple[float, float, float]) -> np.ndarray:
    """Return the returns of a scan about the body."""
    return scan_points(LaserScan(cast(walls, pose), -np.pi / 2, BEAM_SPACING_RAD), np.eye(4), 30.0)


def scan_at(walls: np.ndarray, pose: tuple[float, float, float]) -> np.ndarray:
    return downsample(interpolate_walls(returns_at(walls, pose), BEAM_SPACING_RAD), 0.1)


@pytest.mark.parametrize("motion", [(0.31, -0.17, 0.2), (-0.05, 0.08, -0.4), (1.1, 0.3, 0.05)])
def test_matching_interpolates_between_cells(motion: tuple[float, float, float]) -> None:
    walls = block()
    field = LikelihoodField(interpolate_walls(returns_at(walls, (0.0, 0.0, 0.0)), BEAM_SPACING_RAD))
    found = field.search(scan_at(walls, motion), SearchWindow(np.zeros(3), 1.5, 0.6), 0.3)
    assert found is not None
    assert np.abs(found.pose - motion)[:2].max() < 0.03
    assert abs(found.pose[2] - motion[2]) < 0.01
    assert found.score > 0.6


def test_a_scan_of_another_place_is_not_matched() -> None:
    walls = block()
    field = LikelihoodField(interpolate_walls(returns_at(walls, (0.0, 0.0, 0.0)), BEAM_SPACING_RAD))
    elsewhere = scan_at(block(seed=9, niches=40) * 1.7, (5.0, 9.0, 2.0))
    assert field.search(elsewhere, SearchWindow(np.zeros(3), 1.0, 0.5), 0.6) is None


def test_a_match_in_a_corridor_is_uncertain_along_and_certain_across_it() -> None:
    walls = np.array([(-50.0, -1.0, 50.0, -1.0), (-50.0, 1.0, 50.0, 1.0)])
    around = [
        interpolate_walls(returns_at(walls, (x, 0.0, 0.0)), BEAM_SPACING_RAD) + np.array([x, 0.0])
        for x in (-8, 0, 8)
    ]
    found = LikelihoodField(np.concatenate(around)).refine(scan_at(walls, (0.0, 0.0, 0.0)), np.zeros(3))
    along, across = np.sqrt(np.diag(found.covariance))[:2]
    assert along > 5 * across
    assert across < 0.05


def test_two_identical_rooms_are_ambiguous() -> None:
    walls = np.array([*box(-2, -2, 2, 2), *box(4, -2, 8, 2)])
    both = np.concatenate(
        [returns_at(walls, (0.0, 0.0, 0.0)), returns_at(walls, (6.0, 0.0, 0.0)) + np.array([6.0, 0.0])]
    )
    field = LikelihoodField(both)
    scan = scan_at(walls, (0.3, 0.2, 0.1))
    wide = field.search(scan, SearchWindow(np.array([3.0, 0.0, 0.0]), 4.0, 0.3), 0.3, 0.8)
    near = field.search(scan, SearchWindow(np.zeros(3), 1.0, 0.3), 0.3, 0.8)
    assert wide is not None
    assert wide.second_best_ratio > 0.9
    assert near is not None
    assert near.second_best_ratio == 0.0


def test_walls_are_interpolated_between_beams_but_not_across_doors() -> None:
    wall = np.stack([np.full(9, 5.0), np.linspace(-0.4, 0.4, 9)], axis=-1)
    door = np.concatenate([wall[:4], wall[:4] + np.array([3.0, 0.0])])
    assert len(interpolate_walls(wall, BEAM_SPACING_RAD, LaserWallSettings(0.02))) > 35
    assert not np.any(
        (interpolate_walls(door, BEAM_SPACING_RAD)[:, 0] > 5.01)
        & (interpolate_walls(door, BEAM_SPACING_RAD)[:, 0] < 7.99)
    )


def test_planar_poses_compose_like_transforms() -> None:
    first, motion = np.array([1.0, -2.0, 2.5]), np.array([0.3, 0.2, 1.2])
    lifted = flatten_pose(lift_pose(first) @ lift_pose(motion))
    np.testing.assert_allclose(np.cos(compose(first, motion) - lifted), [*np.cos((0, 0)), 1.0], atol=1e-12)
    np.testing.assert_allclose(relative_pose(first, compose(first, motion)), motion, atol=1e-12)
    turned = lift_covariance(np.diag([4.0, 1.0, 0.1]), np.pi / 2)
    np.testing.assert_allclose(np.diag(turned)[[0, 1, 5]], [1.0, 4.0, 0.1], atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.2])
def test_the_weakest_direction_is_supported_by_the_shorter_wall(angle: float) -> None:
    rng = np.random.default_rng(4)
    along = np.stack([np.arange(0, 10, 0.1), rng.normal(0, 0.01, 100)], axis=-1)
    across = np.stack([rng.normal(0, 0.01, 40), np.arange(1, 5, 0.1)], axis=-1)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert weakest_direction_support(along @ turn.T) < 2
    assert weakest_direction_support(np.concatenate([along, across]) @ turn.T) == pytest.approx(40, abs=3)


@pytest.mark.parametrize(("corner", "accepted"), [(True, True), (False, False)])
def test_a_single_wall_does_not_close_a_loop_from_another_viewpoint(corner: bool, accepted: bool) -> None:
    walls = np.array([(4.0, -4.0, 4.0, 5.0), *([(4.0, 5.0, 1.0, 5.0)] if corner else [])])
    recogniser = LaserRecogniser(BEAM_SPACING_RAD, LaserFieldOfView.from_calibration({}))
    recogniser.add(0, {"points": returns_at(walls, (0.0, 0.0, 0.0)), "front": np.zeros((1, 4))})
    motion = lift_pose(np.array([-1.5, 0.5, 0.0]))
    there = {"points": returns_at(walls, (-1.5, 0.5, 0.0)), "front": np.zeros((1, 4))}
    assert (recogniser.verify(0, there, PosePrior(motion, np.eye(6) * 1e-2)) is not None) == accepted


@pytest.mark.parametrize(("away", "accepted"), [(1.0, True), (6.0, False)])
def test_a_match_outside_the_submap_radius_is_rejected(away: float, accepted: bool) -> None:
    bay = [(0.0, -2.0, 4.0, -2.0), (4.0, -2.0, 4.0, 3.0), (4.0, 3.0, 0.0, 3.0)]
    walls = np.array([*bay, *box(1.0, 1.0, 2.0, 1.5)])
    recogniser = LaserRecogniser(BEAM_SPACING_RAD, VIEW)
    recogniser.add(0, {"points": returns_at(walls, (0.0, 0.0, 0.0)), "front": np.zeros((1, 4))})
    there = {"points": returns_at(walls, (-away, 0.0, 0.0)), "front": np.zeros((1, 4))}
    prior = PosePrior(lift_pose(np.array([-away, 0.0, 0.0])), np.eye(6) * 1e-2)
    assert (recogniser.verify(0, there, prior) is not None) == accepted


def initialised_odometer(
    walls: np.ndarray, inflate_contradictions: bool = False
) -> tuple[LaserOdometer, LaserLocalMap]:
    """Return an odometer with one scan of walls from the origin, and its local map."""
    odometer = LaserOdometer(BEAM_SPACING_RAD, VIEW, inflate_contradictions)
    odometer.step(0, returns_at(walls, (0.0, 0.0, 0.0)), np.zeros(3))
    assert odometer.map is not None
    return odometer, odometer.map


@pytest.mark.parametrize(("score", "accepted"), [(0.93, True), (0.6, False)])
def test_a_moderate_match_does_not_override_wheels(score: float, accepted: bool) -> None:
    odometer, local_map = initialised_odometer(block())
    odometer.statistics.usual_score = 0.95
    odometer.since_match = np.array([0.1, 0.0, 0.0])
    match = ScanMatch(np.array([1.0, 0.0, 0.0]), np.eye(3) * 1e-4, score, 0.0)
    found = odometer._fuse_odometry(local_map, match, scan_at(block(), (1.0, 0.0, 0.0)))
    assert (found is match) == accepted
    assert (found is None) != accepted


def test_a_match_that_scores_as_well_at_the_wheel_pose_does_not_override_wheels() -> None:
    odometer, local_map = initialised_odometer(block())
    match = ScanMatch(np.array([1.0, 0.0, 0.0]), np.eye(3) * 1e-4, 0.95, 0.0)
    assert odometer._fuse_odometry(local_map, match, scan_at(block(), (0.0, 0.0, 0.0))) is None


def test_odometry_drift_does_not_depend_on_the_sampling_rate() -> None:
    often, once = OdometryDrift(OdometryScale()), OdometryDrift(OdometryScale())
    motion = np.array([0.01, 0.0, 0.00125])
    steps = sum(odometry_covariance(motion, often.add(motion)) for _ in range(400))
    jump = odometry_covariance(400 * motion, once.add(400 * motion))
    np.testing.assert_allclose(np.sqrt(np.diag(steps))[[0, 5]], (0.42, 0.09), rtol=0.12)
    assert jump[5, 5] == pytest.approx(steps[5, 5], rel=0.2)
    assert jump[1, 1] > steps[1, 1]  # from the drift of the heading during one long motion


def test_a_scan_is_not_matched_outside_the_local_map() -> None:
    walls, odometer = block(), LaserOdometer(BEAM_SPACING_RAD, VIEW)
    points = returns_at(walls, (0.0, 0.0, 0.0))
    odometer.step(0, points, np.zeros(3))
    assert odometer.step(10**9, points, np.array([9.0, 0.0, 0.0])).covariance[0, 0] > 0.1


def test_walls_that_should_be_visible_reduce_the_visible_ratio() -> None:
    walls = np.array([*box(3, -3, 5, -1), *box(3, 1, 5, 3), *box(13, -3, 15, -1), *box(13, 1, 15, 3)])
    known_walls = interpolate_walls(returns_at(walls, (0.0, 0.0, 0.0)), BEAM_SPACING_RAD)
    points, view = returns_at(walls, (-10.0, 0.0, 0.0)), LaserFieldOfView.from_calibration({})
    assert view.visible_wall_ratio(points, known_walls, np.array([-10.0, 0.0, 0.0])) > 0.9
    assert view.visible_wall_ratio(points, known_walls, np.zeros(3)) < 0.4
    assert view.visible_wall_ratio(points, known_walls, np.array([0.0, 0.0, np.pi])) == 0.0


def test_a_contradiction_of_scan_and_wheels_inflates_the_covariance() -> None:
    odometer, local_map = initialised_odometer(block(), inflate_contradictions=True)
    odometer.since_match = np.array([0.1, 0.0, 0.0])
    there, motion, no_drift = scan_at(block(), (0.5, 0.0, 0.0)), np.array([0.1, 0.0, 0.0]), np.zeros(3)
    match = odometer._fuse_odometry(
        local_map, ScanMatch(np.array([0.5, 0.0, 0.0]), np.eye(3) * 1e-4, 0.9), there
    )
    assert match is not None
    assert match_covariance(match, motion, no_drift)[0, 0] > 0.5**2
    consistent = odometer._fuse_odometry(
        local_map, ScanMatch(np.array([0.01, 0.0, 0.0]), np.eye(3) * 1e-4, 0.9), there
    )
    assert consistent is not None
    assert match_covariance(consistent, motion, no_drift)[0, 0] < 0.02**2


def corridor(step: float = 0.2, path: float = 12.0, reach: float = 8.0) -> list[tuple[float, np.ndarray]]:
    """Return the positions of scans along a corridor with two niches, and their returns within a radius."""
    niches = [*box(-1.0, 1.0, 1.0, 1.5), *box(24.0, -1.5, 26.0, -1.0)]
    walls = np.array([(-50.0, -1.0, 50.0, -1.0), (-50.0, 1.0, 50.0, 1.0), *niches])
    scans = [(x, returns_at(walls, (x, 0.0, 0.0))) for x in np.arange(0.0, path, step)]
    return [(x, points[np.hypot(*points.T) < reach]) for x, points in scans]


def test_the_limit_of_coverage_does_not_pull_scans_back() -> None:
    odometer, scans = LaserOdometer(BEAM_SPACING_RAD, VIEW), corridor()
    for n, (x, points) in enumerate(scans):
        odometer.step(n * 10**8, points, np.array([x, 0.0, 0.0]))
    assert odometer.pose[0] == pytest.approx(scans[-1][0], rel=0.02)


@pytest.mark.parametrize("visible", [True, False])
def test_motion_during_a_pause_of_the_recorder_is_matched_or_uncertain(visible: bool) -> None:
    walls, odometer = block(), LaserOdometer(BEAM_SPACING_RAD, VIEW)
    path = np.arange(0.0, 3.0, 0.2)
    for n, x in enumerate(path):
        odometer.step((n + 1) * 10**8, returns_at(walls, (x, 0.0, 0.0)), np.array([x, 0.0, 0.0]))
    start = odometer.pose[0]
    points = returns_at(walls, (path[-1] + 1.0, 0.0, 0.0)) if visible else np.zeros((0, 2))
    motion = odometer.step((len(path) + 5) * 10**8, points, np.array([path[-1], 0.0, 0.0]))
    assert motion.pose[0] - start == pytest.approx(1.0 if visible else 0.0, abs=0.05)
    assert (np.sqrt(motion.covariance[0, 0]) > 0.5) != visible


def test_coverage_ends_at_the_measured_ranges() -> None:
    coverage = VIEW.coverage(np.array([(4.0, 0.0), (7.0, 7.0)]))
    points = np.array([(3.9, 0.0), (6.0, 0.0), (6.0, 6.0), (7.0, 7.0), (0.0, 3.0), (-1.0, 3.0), (5.0, -5.0)])
    assert coverage.covers(points, 0.2).tolist() == [True, False, True, False, False, False, True]


def test_sparse_returns_of_a_long_wall_are_connected_and_trees_are_not() -> None:
    angles = np.radians(np.arange(2.0, 30.0))
    wall = np.stack([1.2 / np.tan(angles), np.full(len(angles), 1.2)], axis=-1)
    gaps = np.linalg.norm(np.diff(interpolate_walls(wall, BEAM_SPACING_RAD), axis=0), axis=1)
    assert np.linalg.norm(np.diff(wall, axis=0), axis=1).max() > 5.0
    assert gaps.max() < 0.06
    trees = wall + np.random.default_rng(1).normal(0.0, 0.5, wall.shape)
    assert np.linalg.norm(np.diff(interpolate_walls(trees, BEAM_SPACING_RAD), axis=0), axis=1).max() > 2.0


def test_the_odometry_scale_is_estimated_from_well_constrained_matches() -> None:
    scale = OdometryScale()
    for _ in range(40):
        scale.update(0.52, 0.5, 0.02**2)
        scale.update(0.5, 0.2, 0.02**2)  # a slip
        scale.update(0.5, 0.6, 1.0)  # along a corridor
    assert scale.factor == pytest.approx(0.5 / 0.52, abs=0.01)


def test_odometry_drift_accumulates_along_a_corridor() -> None:
    drift, motion = OdometryDrift(OdometryScale()), np.array([0.05, 0.0, 0.0])
    sliding = ScanMatch(np.zeros(3), np.eye(3) * 1e-6, 0.95, odometry_gain=np.diag([1.0, 0.0, 0.0]))
    covariance = np.zeros((6, 6))
    for _ in range(400):
        covariance = covariance + match_covariance(sliding, motion, drift.add(motion))
        drift.reset_to_match(sliding)
    assert np.sqrt(covariance[0, 0]) == pytest.approx(20.0 * drift.scale.sigma_ratio, rel=0.05)
    assert np.sqrt(covariance[1, 1]) < 0.02


def test_points_beside_walls_inflate_the_covariance() -> None:
    walls, random = block(), np.random.default_rng(1)
    field = LikelihoodField(interpolate_walls(returns_at(walls, (0.0, 0.0, 0.0)), BEAM_SPACING_RAD))
    points = scan_at(walls, (0.0, 0.0, 0.0))
    good = field.inflate_covariance(field.refine(points, np.zeros(3)))
    bad = field.inflate_covariance(field.refine(points + random.normal(0.0, 0.12, points.shape), np.zeros(3)))
    assert np.trace(bad.covariance[:2, :2]) > 4 * np.trace(good.covariance[:2, :2])


def test_a_rejected_match_adds_a_bounded_uncertainty() -> None:
    drift = OdometryDrift(OdometryScale())
    first, again = (
        drift.add_contradiction(np.array([-0.3, 0.0, 0.4])),
        drift.add_contradiction(np.array([0.2, 0.0, 0.4])),
    )
    np.testing.assert_allclose(first, (0.3**2, 0.0, 0.05**2))
    assert not again.any()


@pytest.mark.parametrize("distance", [1.0, 3.0])
def test_a_cached_submap_is_rebuilt_with_new_keyframes(distance: float) -> None:
    """A submap extends 4 m, so that later keyframes may belong to it."""
    walls = block()

    def keyframe(x: float) -> dict[str, np.ndarray]:
        return {"points": returns_at(walls, (x, 0.0, 0.0)), "front": np.array([[x, 0.0, 0.0, 0.0]])}

    cached, fresh = LaserRecogniser(BEAM_SPACING_RAD, VIEW), LaserRecogniser(BEAM_SPACING_RAD, VIEW)
    prior = PosePrior(lift_pose(np.array([distance, 0.0, 0.0])), np.diag([0.1] * 3 + [0.02] * 3) ** 2)
    cached.add(0, keyframe(0.0))
    cached.verify(0, keyframe(distance), prior)  # builds the submap
    cached.add(1, keyframe(distance))
    for k in (0, 1):
        fresh.add(k, keyframe(distance * k))
    found, expected = (each.verify(0, keyframe(distance + 0.5), prior) for each in (cached, fresh))
    assert found is not None
    assert expected is not None
    np.testing.assert_array_equal(found.T_old_new, expected.T_old_new)
    assert found.score == expected.score
