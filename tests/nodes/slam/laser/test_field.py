"""Matching scans with walls: the pose that is found, how sure it is, and rooms that look alike."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from transect.nodes.slam.backend.recognition import Guess
from transect.nodes.slam.laser.field import Field, Match, Window, flatten_pose, lift_covariance, lift_pose
from transect.nodes.slam.laser.odometer import Odometer, compose, relate, spread_blind, spread_match
from transect.nodes.slam.laser.recogniser import LaserRecogniser
from transect.nodes.slam.laser.scans import count_across, points_of, thin, walls_of
from transect.nodes.slam.laser.view import View
from transect.types import LaserScan

from ..rooms import block, box, cast

BEAM = np.pi / 180


def seen(walls: np.ndarray, pose: tuple[float, float, float]) -> np.ndarray:
    """Return the returns of a scan about the body."""
    return points_of(LaserScan(cast(walls, pose), -np.pi / 2, BEAM), np.eye(4), 30.0)


def scan_at(walls: np.ndarray, pose: tuple[float, float, float]) -> np.ndarray:
    return thin(walls_of(seen(walls, pose), BEAM, 0.05), 0.1)


@pytest.mark.parametrize("moved", [(0.31, -0.17, 0.2), (-0.05, 0.08, -0.4), (1.1, 0.3, 0.05)])
def test_the_pose_of_a_scan_is_found_between_cells(moved: tuple[float, float, float]) -> None:
    walls = block()
    field = Field(walls_of(seen(walls, (0.0, 0.0, 0.0)), BEAM, 0.05))
    found = field.search(scan_at(walls, moved), Window(np.zeros(3), 1.5, 0.6), 0.3)
    assert found is not None
    assert np.abs(found.pose - moved)[:2].max() < 0.03
    assert abs(found.pose[2] - moved[2]) < 0.01
    assert found.score > 0.6


def test_a_scan_of_another_place_does_not_fit() -> None:
    walls = block()
    field = Field(walls_of(seen(walls, (0.0, 0.0, 0.0)), BEAM, 0.05))
    elsewhere = scan_at(block(seed=9, niches=40) * 1.7, (5.0, 9.0, 2.0))
    assert field.search(elsewhere, Window(np.zeros(3), 1.0, 0.5), 0.6) is None


def test_in_a_corridor_the_match_is_unsure_along_it_and_sure_across() -> None:
    walls = np.array([(-50.0, -1.0, 50.0, -1.0), (-50.0, 1.0, 50.0, 1.0)])
    around = [walls_of(seen(walls, (x, 0.0, 0.0)), BEAM, 0.05) + np.array([x, 0.0]) for x in (-8, 0, 8)]
    found = Field(np.concatenate(around)).climb(scan_at(walls, (0.0, 0.0, 0.0)), np.zeros(3))
    along, across = np.sqrt(np.diag(found.covariance))[:2]
    assert along > 5 * across
    assert across < 0.05


def test_two_rooms_that_look_alike_are_rivals() -> None:
    walls = np.array([*box(-2, -2, 2, 2), *box(4, -2, 8, 2)])
    both = np.concatenate([seen(walls, (0.0, 0.0, 0.0)), seen(walls, (6.0, 0.0, 0.0)) + np.array([6.0, 0.0])])
    field = Field(both)
    scan = scan_at(walls, (0.3, 0.2, 0.1))
    wide = field.search(scan, Window(np.array([3.0, 0.0, 0.0]), 4.0, 0.3), 0.3, 0.8)
    near = field.search(scan, Window(np.zeros(3), 1.0, 0.3), 0.3, 0.8)
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
    places = LaserRecogniser(BEAM, View.of({}))
    places.add(0, {"points": seen(walls, (0.0, 0.0, 0.0)), "front": np.zeros((1, 4))})
    moved = lift_pose(np.array([-1.5, 0.5, 0.0]))
    there = {"points": seen(walls, (-1.5, 0.5, 0.0)), "front": np.zeros((1, 4))}
    assert (places.verify(0, there, Guess(moved, np.eye(6) * 1e-2)) is not None) == known


@pytest.mark.parametrize(("score", "believed"), [(0.93, True), (0.6, False)])
def test_a_scan_that_fits_halfway_does_not_overrule_wheels(score: float, believed: bool) -> None:
    odometer = Odometer(BEAM)
    odometer.usual = 0.95
    odometer.since = np.array([0.1, 0.0, 0.0])
    match = Match(np.array([1.0, 0.0, 0.0]), np.eye(3) * 1e-4, score, 0.0)
    found = odometer._weigh(match)
    assert (found is match) == believed
    assert (found is None) != believed


def test_the_drift_of_wheels_does_not_depend_on_how_often_they_are_read() -> None:
    ways = np.stack([np.linspace(0.0, 4.0, 401), np.linspace(0.0, 0.5, 401)], axis=-1)
    steps = sum(spread_blind(a, b) for a, b in pairwise(ways))
    jump = spread_blind(ways[0], ways[-1])
    np.testing.assert_allclose(np.sqrt(np.diag(steps))[[0, 5]], (0.4, 0.09), rtol=0.12)
    assert jump[5, 5] == pytest.approx(steps[5, 5], rel=0.2)
    assert jump[1, 1] > steps[1, 1]  # heading drifts on the way, which single steps tell by themselves


def test_a_scan_is_not_matched_with_walls_that_were_left_long_ago() -> None:
    walls, odometer = block(), Odometer(BEAM)
    points = seen(walls, (0.0, 0.0, 0.0))
    odometer.step(0, points, np.zeros(3))
    assert odometer.step(10**9, points, np.array([9.0, 0.0, 0.0])).covariance[0, 0] > 0.1


def test_walls_that_should_be_in_view_count_against_a_place() -> None:
    walls = np.array([*box(3, -3, 5, -1), *box(3, 1, 5, 3), *box(13, -3, 15, -1), *box(13, 1, 15, 3)])
    known = walls_of(seen(walls, (0.0, 0.0, 0.0)), BEAM, 0.05)
    points, view = seen(walls, (-10.0, 0.0, 0.0)), View.of({})
    assert view.share_seen(points, known, np.array([-10.0, 0.0, 0.0])) > 0.9
    assert view.share_seen(points, known, np.zeros(3)) < 0.4
    assert view.share_seen(points, known, np.array([0.0, 0.0, np.pi])) == 0.0


def test_a_wary_motion_is_as_unsure_as_a_scan_contradicts_wheels() -> None:
    odometer = Odometer(BEAM, wary=True)
    odometer.since = np.array([0.1, 0.0, 0.0])
    match = odometer._weigh(Match(np.array([0.5, 0.0, 0.0]), np.eye(3) * 1e-4, 0.9))
    assert match is not None
    assert spread_match(match, np.array([0.1, 0.0, 0.0]))[0, 0] > 0.5**2
    agreeing = odometer._weigh(Match(np.array([0.01, 0.0, 0.0]), np.eye(3) * 1e-4, 0.9))
    assert agreeing is not None
    assert spread_match(agreeing, np.array([0.1, 0.0, 0.0]))[0, 0] < 0.02**2
