"""DemGeneration in a room: its floor is 1.5 m below the lidar, with known poses and with the lidar's own."""

from __future__ import annotations

import numpy as np
import pytest
from tests.nodes.lidar.rooms import ROOM, motion, scan, wall_distances

import transect
from transect.formats.shared.file_groups import file_table
from transect.geometry import se3
from transect.recording import Parsed, Recording, Stream, arrow
from transect.types import GridMap, PointCloud, Pose

TWIST = np.array([1.0, 0.2, 0.0, 0.0, 0.0, 0.5])
FIRST_NS = 1_000_000_000
SCAN_COUNT = 8


@pytest.fixture(scope="module")
def room() -> Recording:
    clouds = [scan(motion(TWIST), 0.1 * i, noise=0.005) for i in range(SCAN_COUNT)]
    times = np.array([cloud.t_ns for cloud in clouds])
    table = file_table(times, [str(i) for i in range(SCAN_COUNT)])
    by_time = dict(zip(times.tolist(), clouds, strict=True))
    lidar = Stream(
        "Lidar", PointCloud, Parsed(table), frame="lidar", loader=lambda row: by_time[int(row["t_ns"])]
    )
    seconds = np.arange(0, 0.1 * SCAN_COUNT + 0.05, 0.02)
    turned, place = se3.to_quaternion(motion(TWIST)(seconds))
    columns = dict(zip(("x", "y", "z", "qx", "qy", "qz", "qw"), np.hstack([place, turned]).T, strict=True))
    known = arrow.table(FIRST_NS + np.rint(seconds * 1e9).astype(np.int64), columns, units=Pose.units())
    poses = Stream("Poses", Pose, Parsed(known), frame="map", child="lidar")
    return Recording(name="room", streams=(lidar, poses))


def floor_errors(dem: GridMap) -> np.ndarray:
    """Metres to the floor, of cells that are not at a wall or at furniture."""
    heights = dem.layers["elevation"]
    a, _, c, _, e, f = dem.transform
    rows, columns = np.indices(heights.shape)
    middles = np.stack([c + a * (columns + 0.5), f + e * (rows + 0.5), np.zeros(heights.shape)], axis=-1)
    free = wall_distances(middles.reshape(-1, 3)).reshape(heights.shape) > 0.3
    # Of some cells only the ceiling was seen.
    return np.abs(heights[free & (heights < 0)] - ROOM[0][2])


@pytest.mark.parametrize(("name", "frame"), [("FromPoses", "map"), ("FromLidar", "odom")])
def test_the_floor_is_where_it_is(room: Recording, name: str, frame: str):
    dem = transect.run(f"DemGeneration/{name}", room)["dem"].values[0]
    assert dem.frame == frame
    assert set(dem.layers) == {"elevation", "uncertainty", "count", "roughness", "slope"}
    off = floor_errors(dem)
    assert len(off) > 300
    assert np.percentile(off, 90) < 0.02
