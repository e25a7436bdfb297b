"""Maps brought together: of one place they become one, of two places they stay two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.slam.hills import look, stand, view
from tests.algorithms.slam.rooms import block, record, walk
from tests.commands import transect as typed
from tests.nodes.stereo import drives

import transect
from transect.algorithms.odometry.stereo_rig import stereo_rig_of
from transect.algorithms.odometry.stereo_tracking_methods import GrayPair
from transect.algorithms.slam.laser_recogniser import separate
from transect.algorithms.slam.lidar_recogniser import LidarRecogniser
from transect.algorithms.slam.map_merging import count_shared, merge_maps
from transect.algorithms.slam.mapper import Mapper
from transect.algorithms.slam.mapping_settings import lidar_mapping_settings, stereo_mapping_settings
from transect.algorithms.slam.stereo_keyframes import see
from transect.algorithms.slam.stereo_recogniser import StereoRecogniser
from transect.errors import TransectError, UnsupportedError, UsageError
from transect.geometry import rotations, se3
from transect.recording.place_maps import read_map, write_map
from transect.types import PlaceMap
from transect.types.places import Anchor

pytest.importorskip("gtsam")


def mapped(walls: np.ndarray, corners: list[tuple[float, float]], seed: int = 1) -> PlaceMap:
    run = transect.run("LaserSlam", record(walls, walk(corners, step=0.25), seed=seed))
    return run["map"].values[0]


def test_maps_of_two_drives_become_one_where_they_meet(tmp_path: Path) -> None:
    first = mapped(block(), [(0.0, 0.0), (7.0, 0.0)])
    second = mapped(block(), [(4.0, 0.2), (10.0, 0.2)], seed=4)
    for name, places in (("first", first), ("second", second)):
        write_map(places, tmp_path / name)
    done = typed("maps", "merge", tmp_path / "first", tmp_path / "second", "-o", tmp_path / "both")
    assert done.returncode == 0, done.stderr
    merged = read_map(tmp_path / "both")
    assert count_shared(merged, len(first)) >= 2
    assert len(merged) == len(first) + len(second)
    assert sorted(set(merged.session.tolist())) == [0, 1]
    # The second drive began at (4.0, 0.2), looking along x, in the frame of the first one.
    began = merged.poses[len(first)]
    assert began[:2, 3] == pytest.approx([4.0, 0.2], abs=0.15)


def test_a_drive_that_meets_the_end_of_a_map_is_joined_there() -> None:
    first = mapped(block(), [(0.0, 0.0), (12.0, 0.0), (12.0, 7.0)])
    there = Anchor("EPSG:32720", se3.from_matrix(rotations.matrix_from_euler("z", [0.3]), [5e5, 6e6, 20.0]))
    second = replace(mapped(block(), [(12.0, 2.0), (12.0, 7.0)], seed=4), anchor=there)
    merged = merge_maps(first, second)
    assert merged.poses[len(first)][:2, 3] == pytest.approx([12.0, 2.0], abs=0.2)
    assert merged.anchor is not None  # only the second map knew where on Earth it is
    assert merged.anchor.crs == there.crs
    placed = merged.anchor.T_crs_map @ merged.poses[len(first) :]
    np.testing.assert_allclose(placed[:, :3, 3], (there.T_crs_map @ second.poses)[:, :3, 3], atol=0.1)


def test_maps_of_two_places_and_of_two_kinds_are_refused() -> None:
    first = mapped(block(), [(0.0, 0.0), (3.0, 0.0)])
    elsewhere = mapped(block(seed=8, niches=30) * 1.9, [(8.0, -0.2), (11.0, 0.0)])
    with pytest.raises(TransectError, match="no place in common"):
        merge_maps(first, elsewhere)
    with pytest.raises(UsageError, match="LaserSlam and one of LidarSlam cannot be merged"):
        merge_maps(first, replace(elsewhere, kind="LidarSlam"))
    with pytest.raises(UnsupportedError, match="maps of Other cannot"):
        merge_maps(replace(first, kind="Other"), replace(first, kind="Other"))


def test_a_second_map_joins_one_that_is_in_two_parts() -> None:
    first = mapped(block(), [(0.0, 0.0), (5.0, 0.0)])
    elsewhere = mapped(block(seed=8, niches=30) * 1.9, [(8.0, -0.2), (11.0, 0.0)])
    apart = np.concatenate([first.session, elsewhere.session + 1])
    nowhere = separate(first, elsewhere)
    both = PlaceMap(
        "LaserSlam", np.concatenate([first.t_ns, elsewhere.t_ns + 10**12]),
        np.concatenate([first.poses, elsewhere.poses]),
        np.concatenate([first.covariances, elsewhere.covariances]), apart, first.edges,
        [*first.observations, *nowhere], first.calibration,
    )  # fmt: skip
    second = mapped(block(), [(2.0, 0.2), (7.0, 0.2)], seed=4)
    merged = merge_maps(both, second)
    assert count_shared(merged, len(both)) >= 2


Look = Callable[[np.ndarray], Mapping[str, np.ndarray]]


def drive(mapper: Mapper, poses: Sequence[np.ndarray], look_from: Look) -> PlaceMap:
    """Return the map of a drive along poses (4, 4) in the world; its frame is where it began."""
    for n, pose in enumerate(poses):
        mapper.step(n * 10**8, se3.invert(poses[0]) @ pose, None, lambda pose=pose: look_from(pose))
    found = mapper.finish()
    assert found is not None
    return found[1]


def check_merged(first: PlaceMap, second: PlaceMap, T_first_second: np.ndarray) -> None:
    """Two maps become one, in which the second begins where it truly did, to 5 cm and 0.5 deg."""
    merged = merge_maps(first, second)
    assert len(merged) == len(first) + len(second)
    assert count_shared(merged, len(first)) >= 2
    error = se3.log(se3.invert(T_first_second) @ merged.poses[len(first)])
    assert np.linalg.norm(error[:3]) < 0.05
    assert np.degrees(np.linalg.norm(error[3:])) < 0.5


def map_by_stereo(poses: Sequence[np.ndarray], seed: int = 0) -> PlaceMap:
    def look_from(pose: np.ndarray) -> Mapping[str, np.ndarray]:
        left, right = drives.pair(np.ascontiguousarray(pose).tobytes(), seed=seed)
        return see(GrayPair(left.data, right.data), stereo_rig_of(left, right), 300)

    manner = stereo_mapping_settings(0.3)
    mapper = Mapper("VisualSlamStereo", StereoRecogniser(), manner, {"baseline": drives.BASELINE})
    return drive(mapper, poses, look_from)


def map_by_lidar(poses: Sequence[np.ndarray], draw: int = 0) -> PlaceMap:
    manner = lidar_mapping_settings()
    mapper = Mapper("LidarSlam", LidarRecogniser(0.5), manner, {"voxel": 0.5})
    return drive(mapper, poses, lambda pose: view(look(pose, draw=draw + round(10 * pose[0, 3]))))


def test_maps_of_stereo_pairs_become_one_or_are_refused() -> None:
    pytest.importorskip("faiss")
    turn = rotations.matrix_from_rotation_vector([0.0, 0.05, 0.0])
    ahead = [se3.from_matrix(np.eye(3), [0.0, 0.0, 0.4 * n]) for n in range(4)]
    aside = [se3.from_matrix(turn, [0.2, 0.0, 0.3 + 0.4 * n]) for n in range(3)]
    first = map_by_stereo(ahead)
    check_merged(first, map_by_stereo(aside), aside[0])
    with pytest.raises(TransectError, match="no place in common"):
        merge_maps(first, map_by_stereo(aside, seed=1))


def test_what_a_second_map_had_joined_stays_joined() -> None:
    pytest.importorskip("faiss")
    ways = [[se3.from_matrix(np.eye(3), [x, 0.0, 0.4 * n]) for n in range(3)] for x in (0.0, 0.2, -0.2)]
    first, second, third = map(map_by_stereo, ways)
    both = merge_maps(second, third)
    # Nothing is left of what the third drive saw: only the loops of this map say where it was.
    kept = [*second.observations, *({name: v[:0] for name, v in seen.items()} for seen in third.observations)]
    merged = merge_maps(first, replace(both, observations=kept))
    assert sorted(set(merged.session.tolist())) == [0, 1, 2]
    error = se3.log(se3.invert(ways[2][0]) @ merged.poses[len(first) + len(second)])
    assert np.linalg.norm(error[:3]) < 0.05


def test_maps_of_lidars_become_one_though_one_drove_back() -> None:
    first = map_by_lidar([stand(1.2 * n, 0.0, 0.0) for n in range(2)])
    back = [stand(1.5 - 1.2 * n, 0.5, np.pi, 0.05) for n in range(2)]
    check_merged(first, map_by_lidar(back, draw=100), se3.invert(stand(0.0, 0.0, 0.0)) @ back[0])


def test_a_map_is_not_merged_with_itself() -> None:
    first = mapped(block(), [(0.0, 0.0), (3.0, 0.0)])
    with pytest.raises(UsageError, match=f"{len(first)} places of the same drive in common"):
        merge_maps(first, first)
