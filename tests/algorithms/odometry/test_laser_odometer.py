"""Matching scans with walls: the pose that is found, how sure it is, and rooms that look alike."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.slam.rooms import block, box, cast

from transect.algorithms.odometry.laser_drift import Drift, Stride, spread_blind, spread_match
from transect.algorithms.odometry.laser_local_map import LaserLocalMap
from transect.algorithms.odometry.laser_odometer import LaserOdometer
from transect.algorithms.odometry.laser_scans import count_across, points_of, thin, walls_of
from transect.algorithms.odometry.laser_visibility import LaserView
from transect.algorithms.registration.planar_poses import (
    compose,
    flatten_pose,
    lift_covariance,
    lift_pose,
    relate,
)
from transect.algorithms.registration.scan_matching import LikelihoodField, ScanMatch, SearchWindow
from transect.algorithms.slam.laser_recogniser import LaserRecogniser
from transect.algorithms.slam.place_recognition import Guess
from transect.types import LaserScan

BEAM = np.pi / 180
VIEW = LaserView.of({})


def seen(walls: np.ndarray, pose: tuple[float, float, float]) -> np.ndarray:
    """Return the returns of a scan about the body."""
    return points_of(LaserScan(cast(walls, pose), -np.pi / 2, BEAM), np.eye(4), 30.0)


def scan_at(walls: np.ndarray, pose: tuple[float, float, float]) -> np.ndarray:
    return thin(walls_of(seen(walls, pose), BEAM, 0.05), 0.1)


@pytest.mark.parametrize("moved", [(0.31, -0.17, 0.2), (-0.05, 0.08, -0.4), (1.1, 0.3, 0.05)])
def test_the_pose_of_a_scan_is_found_between_cells(moved: tuple[float, float, float]) -> None:
    walls = block()
    field = LikelihoodField(walls_of(seen(walls, (0.0, 0.0, 0.0)), BEAM, 0.05))
    found = field.search(scan_at(walls, moved), SearchWindow(np.zeros(3), 1.5, 0.6), 0.3)
    assert found is not None
    assert np.abs(found.pose - moved)[:2].max() < 0.03
    assert abs(found.pose[2] - moved[2]) < 0.01
    assert found.score > 0.6


def test_a_scan_of_another_place_does_not_fit() -> None:
    walls = block()
    field = LikelihoodField(walls_of(seen(walls, (0.0, 0.0, 0.0)), BEAM, 0.05))
    elsewhere = scan_at(block(seed=9, niches=40) * 1.7, (5.0, 9.0, 2.0))
    assert field.search(elsewhere, SearchWindow(np.zeros(3), 1.0, 0.5), 0.6) is None


def test_in_a_corridor_the_match_is_unsure_along_it_and_sure_across() -> None:
    walls = np.array([(-50.0, -1.0, 50.0, -1.0), (-50.0, 1.0, 50.0, 1.0)])
    around = [walls_of(seen(walls, (x, 0.0, 0.0)), BEAM, 0.05) + np.array([x, 0.0]) for x in (-8, 0, 8)]
    found = LikelihoodField(np.concatenate(around)).climb(scan_at(walls, (0.0, 0.0, 0.0)), np.zeros(3))
    along, across = np.sqrt(np.diag(found.covariance))[:2]
    assert along > 5 * across
    assert across < 0.05


def test_two_rooms_that_look_alike_are_rivals() -> None:
    walls = np.array([*box(-2, -2, 2, 2), *box(4, -2, 8, 2)])
    both = np.concatenate([seen(walls, (0.0, 0.0, 0.0)), seen(walls, (6.0, 0.0, 0.0)) + np.array([6.0, 0.0])])
    field = LikelihoodField(both)
    scan = scan_at(walls, (0.3, 0.2, 0.1))
    wide = field.search(scan, SearchWindow(np.array([3.0, 0.0, 0.0]), 4.0, 0.3), 0.3, 0.8)
    near = field.search(scan, SearchWindow(np.zeros(3), 1.0, 0.3), 0.3, 0.8)
    assert wide is not None
    assert wide.rival > 0.9
    assert near is not None
    assert near.rival == 0.0


def test_walls_are_filled_between_beams_and_not_across_doors() -> None:
    wall = np.stack([np.full(9, 5.0), np.linspace(-0.4, 0.4, 9)], axis=-1)
    door = np.concatenate([wall[:4], wall[:4] + np.array([3.0, 0.0])])
    assert len(walls_of(wall, BEAM, 0.02)) > 35
    assert not np.any((walls_of(door, BEAM, 0.05)[:, 0] > 5.01) & (walls_of(door, BEAM, 0.05)[:, 0] < 7.99))


def test_poses_of_the_plane_compose_and_lift_as_transforms_do() -> None:
    first, motion = np.array([1.0, -2.0, 2.5]), np.array([0.3, 0.2, 1.2])
    lifted = flatten_pose(lift_pose(first) @ lift_pose(motion))
    np.testing.assert_allclose(np.cos(compose(first, motion) - lifted), [*np.cos((0, 0)), 1.0], atol=1e-12)
    np.testing.assert_allclose(relate(first, compose(first, motion)), motion, atol=1e-12)
    turned = lift_covariance(np.diag([4.0, 1.0, 0.1]), np.pi / 2)
    np.testing.assert_allclose(np.diag(turned)[[0, 1, 5]], [1.0, 4.0, 0.1], atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.2])
def test_points_across_are_those_of_the_other_wall(angle: float) -> None:
    rng = np.random.default_rng(4)
    along = np.stack([np.arange(0, 10, 0.1), rng.normal(0, 0.01, 100)], axis=-1)
    across = np.stack([rng.normal(0, 0.01, 40), np.arange(1, 5, 0.1)], axis=-1)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert count_across(along @ turn.T) < 2
    assert count_across(np.concatenate([along, across]) @ turn.T) == pytest.approx(40, abs=3)


@pytest.mark.parametrize(("corner", "known"), [(True, True), (False, False)])
def test_the_ends_of_one_wall_do_not_tell_a_place_from_further_away(corner: bool, known: bool) -> None:
    walls = np.array([(4.0, -4.0, 4.0, 5.0), *([(4.0, 5.0, 1.0, 5.0)] if corner else [])])
    places = LaserRecogniser(BEAM, LaserView.of({}))
    places.add(0, {"points": seen(walls, (0.0, 0.0, 0.0)), "front": np.zeros((1, 4))})
    moved = lift_pose(np.array([-1.5, 0.5, 0.0]))
    there = {"points": seen(walls, (-1.5, 0.5, 0.0)), "front": np.zeros((1, 4))}
    assert (places.verify(0, there, Guess(moved, np.eye(6) * 1e-2)) is not None) == known


@pytest.mark.parametrize(("away", "known"), [(1.0, True), (6.0, False)])
def test_a_place_is_not_known_from_further_away_than_its_walls_were_gathered(
    away: float, known: bool
) -> None:
    bay = [(0.0, -2.0, 4.0, -2.0), (4.0, -2.0, 4.0, 3.0), (4.0, 3.0, 0.0, 3.0)]
    walls = np.array([*bay, *box(1.0, 1.0, 2.0, 1.5)])
    places = LaserRecogniser(BEAM, VIEW)
    places.add(0, {"points": seen(walls, (0.0, 0.0, 0.0)), "front": np.zeros((1, 4))})
    there = {"points": seen(walls, (-away, 0.0, 0.0)), "front": np.zeros((1, 4))}
    guess = Guess(lift_pose(np.array([-away, 0.0, 0.0])), np.eye(6) * 1e-2)
    assert (places.verify(0, there, guess) is not None) == known


def follower(walls: np.ndarray, wary: bool = False) -> tuple[LaserOdometer, LaserLocalMap]:
    """Return an odometer that has seen walls from the origin, and its local map."""
    odometer = LaserOdometer(BEAM, VIEW, wary)
    odometer.step(0, seen(walls, (0.0, 0.0, 0.0)), np.zeros(3))
    assert odometer.map is not None
    return odometer, odometer.map


@pytest.mark.parametrize(("score", "believed"), [(0.93, True), (0.6, False)])
def test_a_scan_that_fits_halfway_does_not_overrule_wheels(score: float, believed: bool) -> None:
    odometer, known = follower(block())
    odometer.usual = 0.95
    odometer.since = np.array([0.1, 0.0, 0.0])
    match = ScanMatch(np.array([1.0, 0.0, 0.0]), np.eye(3) * 1e-4, score, 0.0)
    found = odometer._weigh(known, match, scan_at(block(), (1.0, 0.0, 0.0)))
    assert (found is match) == believed
    assert (found is None) != believed


def test_a_scan_that_fits_as_well_where_the_wheels_have_it_does_not_overrule_them() -> None:
    odometer, known = follower(block())
    match = ScanMatch(np.array([1.0, 0.0, 0.0]), np.eye(3) * 1e-4, 0.95, 0.0)
    assert odometer._weigh(known, match, scan_at(block(), (0.0, 0.0, 0.0))) is None


def test_the_drift_of_wheels_does_not_depend_on_how_often_they_are_read() -> None:
    often, once = Drift(Stride()), Drift(Stride())
    motion = np.array([0.01, 0.0, 0.00125])
    steps = sum(spread_blind(motion, often.add(motion)) for _ in range(400))
    jump = spread_blind(400 * motion, once.add(400 * motion))
    np.testing.assert_allclose(np.sqrt(np.diag(steps))[[0, 5]], (0.42, 0.09), rtol=0.12)
    assert jump[5, 5] == pytest.approx(steps[5, 5], rel=0.2)
    assert jump[1, 1] > steps[1, 1]  # heading drifts on the way, which single steps tell by themselves


def test_a_scan_is_not_matched_with_walls_that_were_left_long_ago() -> None:
    walls, odometer = block(), LaserOdometer(BEAM, VIEW)
    points = seen(walls, (0.0, 0.0, 0.0))
    odometer.step(0, points, np.zeros(3))
    assert odometer.step(10**9, points, np.array([9.0, 0.0, 0.0])).covariance[0, 0] > 0.1


def test_walls_that_should_be_in_view_count_against_a_place() -> None:
    walls = np.array([*box(3, -3, 5, -1), *box(3, 1, 5, 3), *box(13, -3, 15, -1), *box(13, 1, 15, 3)])
    known = walls_of(seen(walls, (0.0, 0.0, 0.0)), BEAM, 0.05)
    points, view = seen(walls, (-10.0, 0.0, 0.0)), LaserView.of({})
    assert view.share_seen(points, known, np.array([-10.0, 0.0, 0.0])) > 0.9
    assert view.share_seen(points, known, np.zeros(3)) < 0.4
    assert view.share_seen(points, known, np.array([0.0, 0.0, np.pi])) == 0.0


def test_a_wary_motion_is_as_unsure_as_a_scan_contradicts_wheels() -> None:
    odometer, known = follower(block(), wary=True)
    odometer.since = np.array([0.1, 0.0, 0.0])
    there, motion, still = scan_at(block(), (0.5, 0.0, 0.0)), np.array([0.1, 0.0, 0.0]), np.zeros(3)
    match = odometer._weigh(known, ScanMatch(np.array([0.5, 0.0, 0.0]), np.eye(3) * 1e-4, 0.9), there)
    assert match is not None
    assert spread_match(match, motion, still)[0, 0] > 0.5**2
    agreeing = odometer._weigh(known, ScanMatch(np.array([0.01, 0.0, 0.0]), np.eye(3) * 1e-4, 0.9), there)
    assert agreeing is not None
    assert spread_match(agreeing, motion, still)[0, 0] < 0.02**2


def corridor(step: float = 0.2, way: float = 12.0, reach: float = 8.0) -> list[tuple[float, np.ndarray]]:
    """Return where scans along a corridor with two niches were taken, and their returns within reach."""
    niches = [*box(-1.0, 1.0, 1.0, 1.5), *box(24.0, -1.5, 26.0, -1.0)]
    walls = np.array([(-50.0, -1.0, 50.0, -1.0), (-50.0, 1.0, 50.0, 1.0), *niches])
    scans = [(x, seen(walls, (x, 0.0, 0.0))) for x in np.arange(0.0, way, step)]
    return [(x, points[np.hypot(*points.T) < reach]) for x, points in scans]


def test_walls_that_end_with_the_sight_of_the_last_scans_do_not_draw_the_next_one_back() -> None:
    odometer, scans = LaserOdometer(BEAM, VIEW), corridor()
    for n, (x, points) in enumerate(scans):
        odometer.step(n * 10**8, points, np.array([x, 0.0, 0.0]))
    assert odometer.pose[0] == pytest.approx(scans[-1][0], rel=0.02)


@pytest.mark.parametrize("seen_again", [True, False])
def test_what_odometry_missed_while_the_recorder_paused_is_found_or_doubted(seen_again: bool) -> None:
    walls, odometer = block(), LaserOdometer(BEAM, VIEW)
    way = np.arange(0.0, 3.0, 0.2)
    for n, x in enumerate(way):
        odometer.step((n + 1) * 10**8, seen(walls, (x, 0.0, 0.0)), np.array([x, 0.0, 0.0]))
    start = odometer.pose[0]
    points = seen(walls, (way[-1] + 1.0, 0.0, 0.0)) if seen_again else np.zeros((0, 2))
    moved = odometer.step((len(way) + 5) * 10**8, points, np.array([way[-1], 0.0, 0.0]))
    assert moved.pose[0] - start == pytest.approx(1.0 if seen_again else 0.0, abs=0.05)
    assert (np.sqrt(moved.covariance[0, 0]) > 0.5) != seen_again


def test_what_nobody_looked_at_is_not_covered() -> None:
    sight = VIEW.sight_of(np.array([(4.0, 0.0), (7.0, 7.0)]))
    points = np.array([(3.9, 0.0), (6.0, 0.0), (6.0, 6.0), (7.0, 7.0), (0.0, 3.0), (-1.0, 3.0), (5.0, -5.0)])
    assert sight.covers(points, 0.2).tolist() == [True, False, True, False, False, False, True]


def test_beams_that_fall_far_apart_on_a_long_wall_are_joined_and_trees_are_not() -> None:
    angles = np.radians(np.arange(2.0, 30.0))
    wall = np.stack([1.2 / np.tan(angles), np.full(len(angles), 1.2)], axis=-1)
    gaps = np.linalg.norm(np.diff(walls_of(wall, BEAM, 0.05), axis=0), axis=1)
    assert np.linalg.norm(np.diff(wall, axis=0), axis=1).max() > 5.0
    assert gaps.max() < 0.06
    trees = wall + np.random.default_rng(1).normal(0.0, 0.5, wall.shape)
    assert np.linalg.norm(np.diff(walls_of(trees, BEAM, 0.05), axis=0), axis=1).max() > 2.0


def test_the_stride_of_wheels_is_learnt_where_scans_tell_it() -> None:
    stride = Stride()
    for _ in range(40):
        stride.learn(0.52, 0.5, 0.02**2)
        stride.learn(0.5, 0.2, 0.02**2)  # a slip
        stride.learn(0.5, 0.6, 1.0)  # along a corridor
    assert stride.share == pytest.approx(0.5 / 0.52, abs=0.01)


def test_drift_of_wheels_grows_with_the_way_that_they_decide() -> None:
    drift, motion = Drift(Stride()), np.array([0.05, 0.0, 0.0])
    slides = ScanMatch(np.zeros(3), np.eye(3) * 1e-6, 0.95, led=np.diag([1.0, 0.0, 0.0]))
    spread = np.zeros((6, 6))
    for _ in range(400):
        spread = spread + spread_match(slides, motion, drift.add(motion))
        drift.end(slides)
    assert np.sqrt(spread[0, 0]) == pytest.approx(20.0 * drift.stride.drift, rel=0.05)
    assert np.sqrt(spread[1, 1]) < 0.02


def test_a_match_of_points_beside_their_walls_is_less_sure() -> None:
    walls, random = block(), np.random.default_rng(1)
    field = LikelihoodField(walls_of(seen(walls, (0.0, 0.0, 0.0)), BEAM, 0.05))
    points = scan_at(walls, (0.0, 0.0, 0.0))
    good = field.doubt(field.climb(points, np.zeros(3)))
    bad = field.doubt(field.climb(points + random.normal(0.0, 0.12, points.shape), np.zeros(3)))
    assert np.trace(bad.covariance[:2, :2]) > 4 * np.trace(good.covariance[:2, :2])


def test_a_scan_that_is_not_believed_adds_doubt_but_not_of_the_whole_heading() -> None:
    drift = Drift(Stride())
    first, again = drift.doubt(np.array([-0.3, 0.0, 0.4])), drift.doubt(np.array([0.2, 0.0, 0.4]))
    np.testing.assert_allclose(first, (0.3**2, 0.0, 0.05**2))
    assert not again.any()


@pytest.mark.parametrize("apart", [1.0, 3.0])
def test_a_submap_has_every_keyframe_that_belongs_to_it(apart: float) -> None:
    """Also those that came after it was first asked for: submaps extend 4 m."""
    walls = block()

    def keyframe(x: float) -> dict[str, np.ndarray]:
        return {"points": seen(walls, (x, 0.0, 0.0)), "front": np.array([[x, 0.0, 0.0, 0.0]])}

    asked, fresh = LaserRecogniser(BEAM, VIEW), LaserRecogniser(BEAM, VIEW)
    guess = Guess(lift_pose(np.array([apart, 0.0, 0.0])), np.diag([0.1] * 3 + [0.02] * 3) ** 2)
    asked.add(0, keyframe(0.0))
    asked.verify(0, keyframe(apart), guess)  # builds the submap
    asked.add(1, keyframe(apart))
    for k in (0, 1):
        fresh.add(k, keyframe(apart * k))
    found, expected = (each.verify(0, keyframe(apart + 0.5), guess) for each in (asked, fresh))
    assert found is not None
    assert expected is not None
    np.testing.assert_array_equal(found.T_old_new, expected.T_old_new)
    assert found.score == expected.score
