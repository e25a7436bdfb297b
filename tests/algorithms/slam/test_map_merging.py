"""Merging of maps that overlap, and rejection of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.slam.hills import body_pose, measure, observation
from tests.algorithms.slam.rooms import block, record, walk
from tests.commands import transect as typed
from tests.nodes.stereo import drives

import transect
from transect.algorithms.odometry.stereo_rig import stereo_rig_of
from transect.algorithms.odometry.stereo_tracking_methods import GrayPair
from transect.algorithms.slam.laser_recogniser import renumber_segments
from transect.algorithms.slam.lidar_recogniser import LIDAR_MAPPING, LidarRecogniser
from transect.algorithms.slam.mapper import Mapper
from transect.algorithms.slam.place_maps import count_shared, merge_maps
from transect.algorithms.slam.stereo_recogniser import (
    StereoRecogniser,
    observe_stereo,
    stereo_mapping_settings,
)
from transect.errors import TransectError, UnsupportedError, UsageError
from transect.geometry import rotations, se3
from transect.recording.place_maps import read_map, write_map
from transect.types import PlaceMap
from transect.types.places import Anchor

pytest.importorskip("gtsam")


def laser_map(walls: np.ndarray, corners: list[tuple[float, float]], seed: int = 1) -> PlaceMap:
    run = transect.run("LaserSlam", record(walls, walk(corners, step=0.25), seed=seed))
    return run["map"].values[0]


def test_maps_of_two_drives_are_merged_where_they_overlap(tmp_path: Path) -> None:
    first = laser_map(block(), [(0.0, 0.0), (7.0, 0.0)])
    second = laser_map(block(), [(4.0, 0.2), (10.0, 0.2)], seed=4)
    for name, places in (("first", first), ("second", second)):
        write_map(places, tmp_path / name)
    done = typed("maps", "merge", tmp_path / "first", tmp_path / "second", "-o", tmp_path / "both")
    assert done.returncode == 0, done.stderr
    merged = read_map(tmp_path / "both")
    assert count_shared(merged, len(first)) >= 2
    assert len(merged) == len(first) + len(second)
    assert sorted(set(merged.session.tolist())) == [0, 1]
    # The second drive started at (4.0, 0.2) along x in the frame of the first one.
    start = merged.poses[len(first)]
    assert start[:2, 3] == pytest.approx([4.0, 0.2], abs=0.15)


def test_a_drive_is_connected_at_the_end_of_a_map() -> None:
    first = laser_map(block(), [(0.0, 0.0), (12.0, 0.0), (12.0, 7.0)])
    there = Anchor("EPSG:32720", se3.from_matrix(rotations.matrix_from_euler("z", [0.3]), [5e5, 6e6, 20.0]))
    second = replace(laser_map(block(), [(12.0, 2.0), (12.0, 7.0)], seed=4), anchor=there)
    merged = merge_maps(first, second)
    assert merged.poses[len(first)][:2, 3] == pytest.approx([12.0, 2.0], abs=0.2)
    assert merged.anchor is not None  # of the second map
    assert merged.anchor.crs == there.crs
    placed = merged.anchor.T_crs_map @ merged.poses[len(first) :]
    np.testing.assert_allclose(placed[:, :3, 3], (there.T_crs_map @ second.poses)[:, :3, 3], atol=0.1)


def test_maps_without_overlap_or_of_two_kinds_are_refused() -> None:
    first = laser_map(block(), [(0.0, 0.0), (3.0, 0.0)])
    elsewhere = laser_map(block(seed=8, niches=30) * 1.9, [(8.0, -0.2), (11.0, 0.0)])
    with pytest.raises(TransectError, match="no place of the second map"):
        merge_maps(first, elsewhere)
    with pytest.raises(UsageError, match="LaserSlam and one of LidarSlam cannot be merged"):
        merge_maps(first, replace(elsewhere, kind="LidarSlam"))
    with pytest.raises(UnsupportedError, match="maps of Other cannot"):
        merge_maps(replace(first, kind="Other"), replace(first, kind="Other"))


def test_a_map_is_merged_with_one_of_two_components() -> None:
    first = laser_map(block(), [(0.0, 0.0), (5.0, 0.0)])
    elsewhere = laser_map(block(seed=8, niches=30) * 1.9, [(8.0, -0.2), (11.0, 0.0)])
    sessions = np.concatenate([first.session, elsewhere.session + 1])
    renumbered = renumber_segments(first, elsewhere)
    both = PlaceMap(
        "LaserSlam", np.concatenate([first.t_ns, elsewhere.t_ns + 10**12]),
        np.concatenate([first.poses, elsewhere.poses]),
        np.concatenate([first.covariances, elsewhere.covariances]), sessions, first.edges,
        [*first.observations, *renumbered], first.calibration,
    )  # fmt: skip
    second = laser_map(block(), [(2.0, 0.2), (7.0, 0.2)], seed=4)
    merged = merge_maps(both, second)
    assert count_shared(merged, len(both)) >= 2


Observe = Callable[[np.ndarray], Mapping[str, np.ndarray]]


def drive(mapper: Mapper, poses: Sequence[np.ndarray], look_from: Observe) -> PlaceMap:
    """Return the map of a drive along poses (4, 4) in the world, in the frame of its first pose."""
    for n, pose in enumerate(poses):
        mapper.step(n * 10**8, se3.invert(poses[0]) @ pose, None, lambda pose=pose: look_from(pose))
    result = mapper.finish()
    assert result is not None
    return result[1]


def check_merged(first: PlaceMap, second: PlaceMap, T_first_second: np.ndarray) -> None:
    """Check that two maps are merged with an error of at most 5 cm and 0.5 deg."""
    merged = merge_maps(first, second)
    assert len(merged) == len(first) + len(second)
    assert count_shared(merged, len(first)) >= 2
    error = se3.log(se3.invert(T_first_second) @ merged.poses[len(first)])
    assert np.linalg.norm(error[:3]) < 0.05
    assert np.degrees(np.linalg.norm(error[3:])) < 0.5


def map_by_stereo(poses: Sequence[np.ndarray], seed: int = 0) -> PlaceMap:
    def look_from(pose: np.ndarray) -> Mapping[str, np.ndarray]:
        left, right = drives.render_pair(np.ascontiguousarray(pose).tobytes(), seed=seed)
        return observe_stereo(GrayPair(left.data, right.data), stereo_rig_of(left, right), 300)

    settings = stereo_mapping_settings(0.3)
    mapper = Mapper("VisualSlamStereo", StereoRecogniser(), settings, {"baseline": drives.BASELINE_M})
    return drive(mapper, poses, look_from)


def map_by_lidar(poses: Sequence[np.ndarray], draw: int = 0) -> PlaceMap:
    settings = LIDAR_MAPPING
    mapper = Mapper("LidarSlam", LidarRecogniser(0.5), settings, {"voxel": 0.5})
    return drive(mapper, poses, lambda pose: observation(measure(pose, draw=draw + round(10 * pose[0, 3]))))


def test_stereo_maps_are_merged_or_refused() -> None:
    pytest.importorskip("faiss")
    turn = rotations.matrix_from_rotation_vector([0.0, 0.05, 0.0])
    straight = [se3.from_matrix(np.eye(3), [0.0, 0.0, 0.4 * n]) for n in range(4)]
    shifted = [se3.from_matrix(turn, [0.2, 0.0, 0.3 + 0.4 * n]) for n in range(3)]
    first = map_by_stereo(straight)
    check_merged(first, map_by_stereo(shifted), shifted[0])
    with pytest.raises(TransectError, match="no place of the second map"):
        merge_maps(first, map_by_stereo(shifted, seed=1))


def test_loops_of_the_second_map_are_kept() -> None:
    pytest.importorskip("faiss")
    paths = [[se3.from_matrix(np.eye(3), [x, 0.0, 0.4 * n]) for n in range(3)] for x in (0.0, 0.2, -0.2)]
    first, second, third = map(map_by_stereo, paths)
    both = merge_maps(second, third)
    # Without observations of the third drive only the loops of this map determine where it was.
    kept = [*second.observations, *({name: v[:0] for name, v in seen.items()} for seen in third.observations)]
    merged = merge_maps(first, replace(both, observations=kept))
    assert sorted(set(merged.session.tolist())) == [0, 1, 2]
    error = se3.log(se3.invert(paths[2][0]) @ merged.poses[len(first) + len(second)])
    assert np.linalg.norm(error[:3]) < 0.05


def test_lidar_maps_of_opposite_directions_are_merged() -> None:
    first = map_by_lidar([body_pose(1.2 * n, 0.0, 0.0) for n in range(2)])
    returning = [body_pose(1.5 - 1.2 * n, 0.5, np.pi, 0.05) for n in range(2)]
    check_merged(
        first, map_by_lidar(returning, draw=100), se3.invert(body_pose(0.0, 0.0, 0.0)) @ returning[0]
    )


def test_a_map_is_not_merged_with_itself() -> None:
    first = laser_map(block(), [(0.0, 0.0), (3.0, 0.0)])
    with pytest.raises(UsageError, match=f"{len(first)} keyframes of the same drive in common"):
        merge_maps(first, first)
