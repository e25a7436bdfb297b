"""Maps of keyframes and localisation in them, in a world of numbered posts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.slam.toy import PostRecogniser, Posts, circle, drifting

from transect.algorithms.slam.localiser import Localiser
from transect.algorithms.slam.mapper import Mapper
from transect.algorithms.slam.place_recognition import LoopSettings, MappingSettings
from transect.geometry import se3
from transect.recording.place_maps import read_map, write_map
from transect.types import PlaceMap, Trajectory

pytest.importorskip("gtsam")
PERIOD_NS = 100_000_000


def drive(mapper: Mapper | Localiser, poses: list[np.ndarray], world: Posts, start: int = 0) -> list:
    """Process a drive; return the step of each sample."""
    return [
        mapper.step(start + n * PERIOD_NS, odometry, None, lambda pose=pose: world.observe(pose))
        for n, (pose, odometry) in enumerate(zip(poses, drifting(poses), strict=True))
    ]


def rmse(poses: list[np.ndarray], found: np.ndarray) -> float:
    """Return the RMSE of positions after alignment of the first poses."""
    moved = poses[0] @ se3.invert(found[0]) @ found
    return float(np.sqrt(np.mean(np.sum((moved[:, :3, 3] - np.array(poses)[:, :3, 3]) ** 2, axis=1))))


def matrices(path: Trajectory) -> np.ndarray:
    return se3.from_quaternion(path.orientations, path.positions)


def build_map(world: Posts, poses: list[np.ndarray], **loops) -> tuple[Trajectory, PlaceMap, Mapper]:
    mapper = Mapper(
        "Toy", PostRecogniser(), MappingSettings(min_loop_path_m=8.0, loops=LoopSettings(**loops))
    )
    drive(mapper, poses, world)
    result = mapper.finish()
    assert result is not None
    return *result, mapper


def test_a_circle_is_closed_and_every_sample_has_a_corrected_pose() -> None:
    poses, world = circle(), Posts()
    path, places, mapper = build_map(world, poses)
    before = rmse(poses, np.array(drifting(poses)))
    assert len(path) == len(poses)
    assert mapper.loops > 5
    assert rmse(poses, matrices(path)) < 0.4 * before
    assert path.covariances is not None
    assert np.linalg.eigvalsh(path.covariances).min() > 0
    assert set(places.edges.what) == {"odometry", "loop"}


class ReluctantRecogniser(PostRecogniser):
    """Recognises places near the prior only, and elsewhere only after 95 keyframes."""

    def verify(self, old, observation, prior):
        near = prior is not None and np.sqrt(np.trace(prior.covariance[:3, :3])) < 0.3
        return super().verify(old, observation, prior) if near or len(self.keyframes) > 95 else None


def test_loops_of_uncertain_keyframes_are_searched_again_at_the_end() -> None:
    poses, world = circle(), Posts()
    mapper = Mapper("Toy", ReluctantRecogniser(), MappingSettings(min_loop_path_m=8.0, max_sure_radius_m=0.9))
    drive(mapper, poses, world)
    online = {edge.b for edge in mapper.graph.edges if edge.kind == "loop"}
    result = mapper.finish()
    assert result is not None
    final = {edge.b for edge in mapper.graph.edges if edge.kind == "loop"}
    assert min(online) >= 95
    assert min(final) < 90
    assert rmse(poses, matrices(result[0])) < 0.4 * rmse(poses, np.array(drifting(poses)))


def test_without_a_loop_the_trajectory_is_the_odometry() -> None:
    poses, world = circle(0.6), Posts()
    path, _, mapper = build_map(world, poses)
    assert mapper.loops == 0
    np.testing.assert_allclose(matrices(path), drifting(poses), atol=1e-9)


def test_known_ground_adds_no_observations() -> None:
    world = Posts()
    _, once, _ = build_map(world, circle(1.3))
    _, twice, _ = build_map(world, circle(2.6))
    sizes = [sum(len(each["numbers"]) for each in places.observations) for places in (once, twice)]
    assert sizes[1] < 1.3 * sizes[0]
    assert len(twice) > 1.9 * len(once)


def test_ambiguous_posts_cause_no_false_loop() -> None:
    world = Posts(copies=3)
    straight = [se3.exp([x, 0, 0, 0, 0, 0]) for x in np.arange(-12.0, 12.0, 0.25)]
    path, _places, mapper = build_map(world, straight, accept_contradictions=False)
    assert mapper.loops == 0
    np.testing.assert_allclose(matrices(path), drifting(straight), atol=1e-9)


def test_a_gap_starts_a_session_that_a_loop_connects() -> None:
    poses, world = circle(1.9), Posts()
    cut = len(poses) // 2
    mapper = Mapper("Toy", PostRecogniser(), MappingSettings(min_loop_path_m=8.0))
    drive(mapper, poses[:cut], world)
    drive(mapper, poses[cut:], world, start=cut * PERIOD_NS + 77_000_000_000)
    result = mapper.finish()
    assert result is not None
    path, places = result
    assert sorted(set(places.session.tolist())) == [0, 1]
    assert mapper.graph.roots() == [0]
    ends = [
        (places.session[a], places.session[b]) for a, b in zip(places.edges.a, places.edges.b, strict=True)
    ]
    connecting = [what for (a, b), what in zip(ends, places.edges.what, strict=True) if a != b]
    assert set(connecting) == {"loop"}
    assert rmse(poses, matrices(path)) < 0.3


def test_a_drive_is_localised_in_a_stored_map_and_lost_outside(tmp_path: Path) -> None:
    poses, world = circle(), Posts()
    _, places, _ = build_map(world, poses)
    write_map(places, tmp_path / "map")
    stored = read_map(tmp_path)
    approach = [se3.exp([-60.0 + x, -10.0, 0, 0, 0, 0]) for x in np.arange(0, 60.0, 0.25)]
    drive_poses = [*approach, *circle(0.8)]
    localiser = Localiser(stored, PostRecogniser(), MappingSettings(min_loop_path_m=8.0))
    steps = drive(localiser, drive_poses, world)
    assert not any(step.located for step in steps[:120])
    assert all(step.located for step in steps[-150:])
    truth = poses[0] @ se3.invert(stored.poses[0])
    errors = [
        np.linalg.norm((truth @ step.pose)[:3, 3] - pose[:3, 3])
        for step, pose in zip(steps, drive_poses, strict=True)
        if step.located
    ]
    assert max(errors) < 1.0
    assert "FOUND" in localiser.describe()


def test_a_kidnapped_robot_is_relocalised() -> None:
    poses, world = circle(), Posts()
    _, places, _ = build_map(world, poses)
    localiser = Localiser(places, PostRecogniser(), MappingSettings(min_loop_path_m=8.0))
    drive(localiser, poses[:60], world)
    steps = drive(localiser, poses[120:180], world, start=10**11)
    assert not steps[0].located
    assert steps[-1].located
    truth = poses[0] @ se3.invert(places.poses[0])
    assert np.linalg.norm((truth @ steps[-1].pose)[:3, 3] - poses[179][:3, 3]) < 0.5
    assert localiser.lost_count == 1


def test_a_map_is_extended_and_the_original_is_unchanged() -> None:
    poses, world = circle(0.7), Posts()
    _, places, _ = build_map(world, poses)
    before = places.poses.copy()
    mapper = Mapper("Toy", PostRecogniser(), MappingSettings(min_loop_path_m=8.0))
    mapper.extend(places)
    drive(mapper, circle(1.3)[100:], world, start=10**12)
    result = mapper.finish()
    assert result is not None
    assert len(result[1]) > len(places)
    assert mapper.graph.roots() == [0]
    assert len(result[0]) == len(circle(1.3)[100:])
    np.testing.assert_array_equal(places.poses, before)
