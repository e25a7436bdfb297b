"""Maps brought together: of one place they become one, of two places they stay two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.commands import transect as typed
from tests.nodes.slam.rooms import block, record, walk

import transect
from transect.errors import TransectError, UsageError
from transect.nodes.slam.backend.merging import count_shared, merge_maps
from transect.recording.place_maps import read_map, write_map
from transect.types import PlaceMap

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
    assert count_shared(merged, 1) >= 2
    assert sorted(set(merged.session.tolist())) == [0, 1]
    # The second drive began at (4.0, 0.2), looking along x, in the frame of the first one.
    began = merged.poses[len(first)]
    assert began[:2, 3] == pytest.approx([4.0, 0.2], abs=0.15)


def test_maps_of_two_places_and_of_two_kinds_are_refused() -> None:
    first = mapped(block(), [(0.0, 0.0), (3.0, 0.0)])
    elsewhere = mapped(block(seed=8, niches=30) * 1.9, [(8.0, -0.2), (11.0, 0.0)])
    with pytest.raises(TransectError, match="no place in common"):
        merge_maps(first, elsewhere)
    other = PlaceMap("Other", first.t_ns, first.poses, first.covariances, first.session,
                     observations=first.observations)  # fmt: skip
    with pytest.raises(UsageError, match="no places in common"):
        merge_maps(first, other)
