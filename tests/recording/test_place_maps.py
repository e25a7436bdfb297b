"""Keyframe maps on disk: they are read unchanged, and damage is an error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from transect.errors import GeometryError, UnsupportedError, UsageError
from transect.geometry import se3
from transect.recording.place_maps import MAP, PlaceMapError, digest_of_map, pack_map, read_map, write_map
from transect.types import Anchor, Edges, PlaceMap


def small_map(kind: str = "LaserSlam") -> PlaceMap:
    """Return three keyframes in two sessions; the middle one saw nothing."""
    random = np.random.default_rng(7)
    poses = se3.exp(random.normal(size=(3, 6)))
    spread = np.tile(np.diag([0.1, 0.2, 0.3, 0.01, 0.02, 0.03]), (3, 1, 1))
    edges = Edges(np.array([0, 0]), np.array([1, 2]), poses[:2], spread[:2], ("odometry", "loop"))
    seen = [
        {"points": random.normal(size=(4, 2)), "flags": np.array([True])},
        {"points": np.zeros((0, 2))},
        {"points": random.normal(size=(1, 2)), "flags": np.array([False, True])},
    ]
    return PlaceMap(
        kind, np.array([10, 20, 2**62]), poses, spread, np.array([0, 0, 1]), edges, seen, {"rays": 180},
        Anchor("EPSG:32633", se3.exp(random.normal(size=6))), "map", "robot",
    )  # fmt: skip


def test_a_map_is_read_unchanged_from_its_folder_and_from_its_run(tmp_path: Path) -> None:
    places = small_map()
    write_map(places, tmp_path / "run" / "map")
    for path in (tmp_path / "run", tmp_path / "run" / "map"):
        again = read_map(path, "LaserSlam")
        for name in ("t_ns", "poses", "covariances", "session"):
            np.testing.assert_array_equal(getattr(again, name), getattr(places, name))
        for name in ("a", "b", "T_a_b", "covariance", "what"):
            np.testing.assert_array_equal(getattr(again.edges, name), getattr(places.edges, name))
        np.testing.assert_array_equal(again.observations[0]["points"], places.observations[0]["points"])
        assert [each["flags"].tolist() for each in again.observations] == [[True], [], [False, True]]
        assert again.calibration == {"rays": 180}
        assert (again.frame, again.child, again.kind) == ("map", "robot", "LaserSlam")
        assert again.anchor is not None
        assert places.anchor is not None
        np.testing.assert_array_equal(again.anchor.T_crs_map, places.anchor.T_crs_map)


def test_equal_maps_have_equal_files_and_digests(tmp_path: Path) -> None:
    first, second = (write_map(small_map(), tmp_path / name) for name in ("first", "second"))
    assert [a.read_bytes() for a in first] == [b.read_bytes() for b in second]
    assert digest_of_map(tmp_path / "first") == digest_of_map(tmp_path / "second")


def test_a_map_is_packed_as_one_file_with_the_same_bytes_and_opens_again(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_map(small_map(), tmp_path / name / "map")
    assert pack_map(tmp_path / "first") == pack_map(tmp_path / "second")
    file = tmp_path / "packed.zip"
    file.write_bytes(pack_map(tmp_path / "first"))
    assert digest_of_map(file) == digest_of_map(tmp_path / "first")
    np.testing.assert_array_equal(read_map(file).poses, small_map().poses)
    with pytest.raises(UsageError, match="of LaserSlam, not of LidarSlam"):
        read_map(file, "LidarSlam")


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_packed_map_that_is_cut_short_is_refused(tmp_path: Path, part: float) -> None:
    write_map(small_map(), tmp_path / "map")
    whole = pack_map(tmp_path)
    (tmp_path / "cut.zip").write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(PlaceMapError):
        read_map(tmp_path / "cut.zip")


@pytest.mark.parametrize("name", ["points.npy", "flags.offsets.npy", "keyframes.parquet", "edges.parquet"])
def test_a_file_that_is_cut_or_gone_is_named(tmp_path: Path, name: str) -> None:
    write_map(small_map(), tmp_path / "map")
    file = tmp_path / "map" / name
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(PlaceMapError, match="cut short") as caught:
        read_map(tmp_path)
    assert name in caught.value.where
    file.unlink()
    with pytest.raises(PlaceMapError, match="missing"):
        read_map(tmp_path)


def test_a_head_that_was_changed_is_refused(tmp_path: Path) -> None:
    write_map(small_map(), tmp_path / "map")
    head = json.loads((tmp_path / "map" / MAP).read_text())
    for change in ({"frame": "elsewhere"}, {"sha256": {"../secret": "0"}}, {"layout": "other"}):
        (tmp_path / "map" / MAP).write_text(json.dumps({**head, **change}))
        with pytest.raises(PlaceMapError):
            read_map(tmp_path)
    (tmp_path / "map" / MAP).write_text("[]")
    with pytest.raises(PlaceMapError):
        read_map(tmp_path)


def test_a_folder_that_is_no_map_and_a_map_of_another_kind_are_wrong_usage(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="is no map"):
            read_map(path)
    write_map(small_map(), tmp_path / "map")
    with pytest.raises(UsageError, match="of LaserSlam, not of LidarSlam"):
        read_map(tmp_path, "LidarSlam")


def test_parts_that_do_not_fit_are_refused_when_a_map_is_made(tmp_path: Path) -> None:
    still = np.tile(np.eye(4), (2, 1, 1))
    with pytest.raises(GeometryError, match="do not fit"):
        PlaceMap("x", np.arange(2), still, np.zeros((2, 6, 6)), np.zeros(1, np.int64), observations=({}, {}))
    uneven = ({"p": np.zeros((1, 2))}, {"p": np.zeros((1, 3))})
    places = PlaceMap(
        "x", np.arange(2), still, np.zeros((2, 6, 6)), np.zeros(2, np.int64), observations=uneven
    )
    with pytest.raises(UnsupportedError, match="not alike"):
        write_map(places, tmp_path / "map")
    assert not (tmp_path / "map").exists()
