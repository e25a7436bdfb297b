"""Height maps along paths, beside the true ground that can be seen."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

import transect
from transect.base.arrays import Floats
from transect.engine import Compound, compound
from transect.nodes.cloud.point_cloud_filtering import RangeFilter
from transect.nodes.image.rectification import StereoPairing, StereoRectification, StereoSplitting
from transect.nodes.stereo.stereo_reconstruction import DisparityMapping
from transect.recording import Recording, Stream, arrow
from transect.recording.stream import stream_of_values
from transect.types import GridMap, PointCloud, Pose, Trajectory

CELL_SIZE_M, MAX_HEIGHT_ERROR_M, CAMERA_RANGE_M = 0.1, 0.15, 6.0
"""m: edge of the cells of a map; how far what is missing or wrong counts at most; and how far cameras see."""
STEREO = compound(
    "StereoClouds",
    {
        "pairing": StereoPairing,
        "rectification": StereoRectification,
        "splitting": StereoSplitting,
        "stereo": DisparityMapping(max_range=CAMERA_RANGE_M),
    },
    [
        "left -> pairing.left",
        "right -> pairing.right",
        "pairing.stereoPair -> rectification.originalStereoPair",
        "rectification.rectifiedStereoPair -> splitting.stereoPair",
        "splitting.left -> stereo.left",
        "splitting.right -> stereo.right",
        "stereo.pointcloud -> cloud",
    ],
)
SCANS = compound(
    "Scans",
    {"range": RangeFilter(min_range=1.0, max_range=30.0)},
    ["scan -> range.pointCloud", "range.filteredPointCloud -> cloud"],
)


@dataclass(frozen=True, eq=False)
class Ground:
    """Points about every 0.1 m: what a map should have (n, 3), and what else is there, too (m, 3).

    The former is the map of the clear day along the true path. The true ground will not do: stereo bridges
    the furrows between plants, and by that a path that sinks would be better than the true one.
    """

    asked: Floats
    there: Floats

    def error(self, found: GridMap) -> float:
        """Return how far what is asked for is from the map, and the map from anything: RMS, m."""
        points = points_of(found)
        missing = distances(self.asked, points)
        wrong = distances(points, np.concatenate([self.asked, self.there]))
        return float(np.sqrt((np.mean(missing**2) + np.mean(wrong**2)) / 2))


def points_of(chart: GridMap) -> Floats:
    """Return the middles (n, 3) of the cells of a map that have a height."""
    rows, columns = np.nonzero(np.isfinite(chart.layers["elevation"]))
    a, _, c, _, e, f = chart.transform
    heights = chart.layers["elevation"][rows, columns]
    return np.column_stack([c + (columns + 0.5) * a, f + (rows + 0.5) * e, heights]).astype(np.float64)


def distances(points: Floats, others: Floats) -> Floats:
    """Return how far points (n, 3) are from the nearest other one, m; `FAR` at most."""
    return np.minimum(
        KDTree(others).query(points, distance_upper_bound=MAX_HEIGHT_ERROR_M)[0], MAX_HEIGHT_ERROR_M
    )


def ground_of(clear: Recording) -> Floats:
    """Return points (n, 3) of the true ground, about every 0.1 m."""
    dem = clear["truth/dem"][0].payload
    every = max(round(CELL_SIZE_M / dem.resolution[0]), 1)
    a, _, c, _, e, f = dem.transform
    first = every // 2
    heights = dem.layers["elevation"][first::every, first::every].astype(np.float64)
    rows, columns = np.indices(heights.shape) * every + first + 0.5
    return np.stack([c + columns * a, f + rows * e, heights], axis=-1).reshape(-1, 3)


def ground_seen(clear: Recording, seeing: Compound) -> Ground:
    """Return what a map of the clear day along the true path has, and the true ground.

    Were more than that map asked for, a path that wobbles would fill the gaps between the rings of scans, or
    between what two cameras both see, and its map be better than that of the truth.
    """
    made = map_along(trajectory_of(clear["truth/trajectory"]), gather_clouds(clear, seeing), clear)
    assert made is not None
    return Ground(points_of(made), ground_of(clear))


def gather_clouds(day: Recording, seeing: Compound) -> Stream:
    """Return the clouds of a day without what the verdicts mask: the same for all ways."""
    made = transect.run(seeing, day, check=True)["cloud"].values
    table = arrow.table(np.array([each.t_ns for each in made]), {"row": np.arange(len(made))})
    return Stream("Clouds", PointCloud, table, frame=made[0].frame, loader=lambda row: made[row["row"]])


def map_along(path: Trajectory, clouds: Stream, day: Recording) -> GridMap | None:
    """Return the height map of clouds along a path of the body in the world; or None."""
    assert path.orientations is not None
    child = day["truth/trajectory"].child
    like = Pose(path.positions[0], path.orientations[0], frame="world", child=child)
    led = day.replace(streams=(clouds, pose_stream("path", path, like)))
    made = transect.run("DemGeneration/FromPoses", led, wire={"pose": "path"})["dem"].values
    return made[0] if made else None


def pose_stream(name: str, track: Trajectory, like: Pose) -> Stream:
    assert track.orientations is not None
    names = ["x", "y", "z", "qx", "qy", "qz", "qw"]
    columns = dict(zip(names, np.column_stack([track.positions, track.orientations]).T, strict=True))
    return stream_of_values(
        name, track.t_ns, columns, type=Pose, role="estimate", frame=like.frame, child=like.child
    )


def trajectory_of(track: Stream) -> Trajectory:
    return Trajectory(
        track.t_ns, track.array("x", "y", "z"), track.array("qx", "qy", "qz", "qw"), child=track.child
    )
