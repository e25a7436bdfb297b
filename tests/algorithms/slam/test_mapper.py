"""Maps of places and robots that find themselves in them, in a world of numbered posts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.slam.toy import PostRecogniser, Posts, circle, drifting

from transect.algorithms.slam.localiser import Localiser
from transect.algorithms.slam.loop_consistency import LoopRules
from transect.algorithms.slam.mapper import Mapper, MappingSettings
from transect.geometry import se3
from transect.recording.place_maps import read_map, write_map
from transect.types import PlaceMap, Trajectory

pytest.importorskip("gtsam")
STEP = 100_000_000


def drive(mapper: Mapper | Localiser, poses: list[np.ndarray], world: Posts, start: int = 0) -> list:
    """Feed a drive; return what became of each sample."""
    return [
        mapper.step(start + n * STEP, odometry, None, lambda pose=pose: world.see(pose))
        for n, (pose, odometry) in enumerate(zip(poses, drifting(poses), strict=True))
    ]


def rmse(poses: list[np.ndarray], found: np.ndarray) -> float:
    """Return the error of positions after the first poses were put together."""
    moved = poses[0] @ se3.invert(found[0]) @ found
    return float(np.sqrt(np.mean(np.sum((moved[:, :3, 3] - np.array(poses)[:, :3, 3]) ** 2, axis=1))))


def matrices(path: Trajectory) -> np.ndarray:
    return se3.from_quaternion(path.orientations, path.positions)


def made(world: Posts, poses: list[np.ndarray], **rules) -> tuple[Trajectory, PlaceMap, Mapper]:
    mapper = Mapper("Toy", PostRecogniser(), MappingSettings(recent=8.0, rules=LoopRules(**rules)))
    drive(mapper, poses, world)
    result = mapper.finish()
    assert result is not None
    return *result, mapper


def test_a_circle_is_closed_and_every_sample_has_its_corrected_pose() -> None:
    poses, world = circle(), Posts()
    path, places, mapper = made(world, poses)
    before = rmse(poses, np.array(drifting(poses)))
    assert len(path) == len(poses)
    assert mapper.loops > 5
    assert rmse(poses, matrices(path)) < 0.4 * before
    assert path.covariances is not None
    assert np.linalg.eigvalsh(path.covariances).min() > 0
    assert set(places.edges.what) == {"odometry", "loop"}


class ShyRecogniser(PostRecogniser):
    """Knows places from near where they are believed to be; from anywhere only after 95 keyframes."""

    def verify(self, old, observation, guess):
        near = guess is not None and np.sqrt(np.trace(guess.covariance[:3, :3])) < 0.3
        return super().verify(old, observation, guess) if near or len(self.seen) > 95 else None


def test_keyframes_that_were_lost_are_asked_again_once_it_is_known_where_they_are() -> None:
    poses, world = circle(), Posts()
    mapper = Mapper("Toy", ShyRecogniser(), MappingSettings(recent=8.0, sure=0.9))
    drive(mapper, poses, world)
    at_the_time = {edge.b for edge in mapper.graph.edges if edge.what == "loop"}
    result = mapper.finish()
    assert result is not None
    in_the_end = {edge.b for edge in mapper.graph.edges if edge.what == "loop"}
    assert min(at_the_time) >= 95
    assert min(in_the_end) < 90
    assert rmse(poses, matrices(result[0])) < 0.4 * rmse(poses, np.array(drifting(poses)))


def test_without_a_loop_the_trajectory_is_the_odometry() -> None:
    poses, world = circle(0.6), Posts()
    path, _, mapper = made(world, poses)
    assert mapper.loops == 0
    np.testing.assert_allclose(matrices(path), drifting(poses), atol=1e-9)


def test_ground_that_was_seen_before_adds_nothing_that_was_seen() -> None:
    world = Posts()
    _, once, _ = made(world, circle(1.3))
    _, twice, _ = made(world, circle(2.6))
    sizes = [sum(len(each["numbers"]) for each in places.observations) for places in (once, twice)]
    assert sizes[1] < 1.3 * sizes[0]
    assert len(twice) > 1.9 * len(once)


def test_posts_that_are_alike_make_no_false_loop() -> None:
    world = Posts(alike=3)
    straight = [se3.exp([x, 0, 0, 0, 0, 0]) for x in np.arange(-12.0, 12.0, 0.25)]
    path, _places, mapper = made(world, straight, beyond=False)
    assert mapper.loops == 0
    np.testing.assert_allclose(matrices(path), drifting(straight), atol=1e-9)


def test_a_gap_begins_a_session_that_a_loop_joins() -> None:
    poses, world = circle(1.9), Posts()
    cut = len(poses) // 2
    mapper = Mapper("Toy", PostRecogniser(), MappingSettings(recent=8.0))
    drive(mapper, poses[:cut], world)
    drive(mapper, poses[cut:], world, start=cut * STEP + 77_000_000_000)
    result = mapper.finish()
    assert result is not None
    path, places = result
    assert sorted(set(places.session.tolist())) == [0, 1]
    assert mapper.graph.firsts() == [0]
    ends = [
        (places.session[a], places.session[b]) for a, b in zip(places.edges.a, places.edges.b, strict=True)
    ]
    joins = [what for (a, b), what in zip(ends, places.edges.what, strict=True) if a != b]
    assert set(joins) == {"loop"}
    assert rmse(poses, matrices(path)) < 0.3


def test_a_drive_is_found_in_the_map_that_was_kept_and_says_where_it_is_lost(tmp_path: Path) -> None:
    poses, world = circle(), Posts()
    _, places, _ = made(world, poses)
    write_map(places, tmp_path / "map")
    kept = read_map(tmp_path)
    way_in = [se3.exp([-60.0 + x, -10.0, 0, 0, 0, 0]) for x in np.arange(0, 60.0, 0.25)]
    again = [*way_in, *circle(0.8)]
    localiser = Localiser(kept, PostRecogniser(), MappingSettings(recent=8.0))
    steps = drive(localiser, again, world)
    assert not any(step.located for step in steps[:120])
    assert all(step.located for step in steps[-150:])
    truth = poses[0] @ se3.invert(kept.poses[0])
    errors = [
        np.linalg.norm((truth @ step.pose)[:3, 3] - pose[:3, 3])
        for step, pose in zip(steps, again, strict=True)
        if step.located
    ]
    assert max(errors) < 1.0
    assert "FOUND" in localiser.describe()


def test_a_robot_that_was_carried_elsewhere_finds_itself_again() -> None:
    poses, world = circle(), Posts()
    _, places, _ = made(world, poses)
    localiser = Localiser(places, PostRecogniser(), MappingSettings(recent=8.0))
    drive(localiser, poses[:60], world)
    steps = drive(localiser, poses[120:180], world, start=10**11)
    assert not steps[0].located
    assert steps[-1].located
    truth = poses[0] @ se3.invert(places.poses[0])
    assert np.linalg.norm((truth @ steps[-1].pose)[:3, 3] - poses[179][:3, 3]) < 0.5
    assert localiser.losses == 1


def test_a_map_is_gone_on_with_and_the_given_one_stays() -> None:
    poses, world = circle(0.7), Posts()
    _, places, _ = made(world, poses)
    before = places.poses.copy()
    mapper = Mapper("Toy", PostRecogniser(), MappingSettings(recent=8.0))
    mapper.extend(places)
    drive(mapper, circle(1.3)[100:], world, start=10**12)
    result = mapper.finish()
    assert result is not None
    assert len(result[1]) > len(places)
    assert mapper.graph.firsts() == [0]
    assert len(result[0]) == len(circle(1.3)[100:])
    np.testing.assert_array_equal(places.poses, before)
