"""The Orchestrator on days with faults, beside fixed compounds: trajectories and maps of each day.

Simulated days without satellites. Rosario: wheels slip; cameras are blinded; both, one after the other. Etna:
dust before the lidar; dust, and wheels that slip. Of each way there is the path, and a height map along it,
of the same stereo pairs or scans and with the same verdicts (`--check`). Faults are of severity 1, at the
times of `DRIVES`. A path is judged after the shift and the turn that fit it best to the truth, since an
odometry does not know what is level; for the same reason all are put upright by the true attitudes before
maps are made along them.

Maps of Marulan in dust, by laser or radar along the path of its navigation, are judged besides.

The policy was made on the seeds in `LOOKED_AT`; `SEEDS` and `DUSTY` were run once, for the page. The n-th of
them has the n-th of the `DRIVES`. Days are kept in `TRANSECT_BENCH_DAYS`, if set. Arguments are seeds, and
names of days (`slipping`, ...) if not all are wanted.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree
from threadpoolctl import threadpool_limits

import transect
from benchmarks._harness import quality
from transect.base.arrays import Floats, Mask
from transect.engine import Compound, Run, compound
from transect.evaluation.absolute import absolute_error
from transect.evaluation.association import associate
from transect.geometry import rotations, se3
from transect.geometry.camera import project_points
from transect.nodes.cloud.point_cloud_filtering import RangeFilter
from transect.nodes.stereo.stereo_pairing import StereoPairing
from transect.nodes.stereo.stereo_reconstruction import DisparityMapping
from transect.nodes.stereo.stereo_rectification import StereoRectification
from transect.nodes.stereo.stereo_splitting import StereoSplitting
from transect.orchestrator import Request, Rivalry, answer
from transect.products import Product, ProductStore, Wanted, open_store
from transect.products.keeping import stream_of
from transect.recording import Recording, Stream, arrow
from transect.recording.stream import stream_of_values
from transect.simulation.day import Options, simulate, write_day
from transect.simulation.faults import inject
from transect.types import GridMap, PointCloud, Pose, Trajectory

LOOKED_AT, LOOKED_AT_IN_DUST = (1, 921, 922, 923), (1, 921, 922, 923, 931, 932, 933)
SEEDS, DUSTY = (744599, 213585, 801801), (675603, 601169, 362381)
STREAMS = ("Zed/*", "Imu", "Odometry")
LIDAR_STREAMS = ("Lidar", "Gnss/Imu", "Platform/MotorEncoders")
RANGES = ("LaserHorizontal", "Nav", "RadarSpectrum", "RadarRangeBearing")
SCALE, LIDAR_SCALE = 0.3, 0.25
FILTER, BATCH = "PoseFusion/ErrorStateFilter", "PoseFusion/BatchSmoother"
EYES, LIDAR = "VisualOdometry/KltKeyframes", "LidarOdometry/VoxelMap"
OTHER_EYES = ("VisualOdometry/KltFrameToFrame",)
OTHER_LIDAR = ("LidarOdometry/PointToPlane", "PoseFusion/LidarErrorStateFilter")
SLIP, DUST = "wheel_slip", "dust"
FIELD, CRATER = ("slipping", "blinded", "both"), ("dusty", "dusty and slipping")
"""Days on Rosario's field, and on Etna."""
CELLS, NEAR, SIGHT = 0.1, 0.15, 6.0
"""m: edge of the cells of a map; how far from the ground it is right, which is one cell beside it at most;
and how far cameras see."""
STEREO = compound(
    "StereoClouds",
    {
        "pairing": StereoPairing,
        "rectification": StereoRectification,
        "splitting": StereoSplitting,
        "stereo": DisparityMapping(max_range=SIGHT),
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
    {"range": RangeFilter(nearest=1.0, farthest=30.0)},
    ["scan -> range.pointCloud", "range.filteredPointCloud -> cloud"],
)
MAPPING = "LaserMapping/RecordedFrames"
CELL, EVERY, FARTHEST = 0.5, 15, 60.0
"""m: edge of the cells of a map; scans of which one is looked at; m of a beam that show free space."""
LIMIT = 1.05
Cells = set[tuple[int, int, int]]


@dataclass(frozen=True)
class Drive:
    """Seconds of a day, where it starts, when wheels slip, when and how cameras are blinded; and a scene.

    `dust` is when there is dust on Etna, on days of 30 s, where wheels slip from 10 to 16 s.
    """

    seconds: float
    start: str
    slip: tuple[str, str]
    blind: tuple[str, str]
    blinded_by: str
    scene: str
    dust: tuple[str, str]


DRIVES = (
    Drive(20.0, "turn", ("+6s", "+11s"), ("+14s", "+19s"), "overexposure", "houses", ("+8s", "+20s")),
    Drive(17.0, "row", ("+10s", "+14s"), ("+4s", "+8s"), "haze", "open", ("+4s", "+14s")),
    Drive(24.0, "turn", ("+15s", "+21s"), ("+6s", "+12s"), "overexposure", "houses", ("+12s", "+26s")),
)


def main(seeds: Sequence[int] = (*SEEDS, *DUSTY), wanted: Sequence[str] = ()) -> None:
    with threadpool_limits(1), tempfile.TemporaryDirectory() as made:
        folder = Path(os.environ.get("TRANSECT_BENCH_DAYS") or made)
        for seed in seeds:
            if seed in DUSTY:
                bench_dust(folder, seed, drive_of(seed))
                continue
            for names, make_days in ((FIELD, field_days), (CRATER, crater_days)):
                if chosen := [name for name in names if not wanted or name in wanted]:
                    site = make_days(folder, seed, drive_of(seed))
                    for name in chosen:
                        bench_day(f"{name}, seed {seed}", site.days[name], site)


def drive_of(seed: int) -> Drive:
    """Return the drive of a seed: the first one of a seed that was looked at."""
    numbers = {each: number for seeds in (LOOKED_AT[1:], SEEDS, DUSTY) for number, each in enumerate(seeds)}
    return DRIVES[numbers.get(seed, 0) % len(DRIVES)]


# Days with wheels, and cameras or a lidar


@dataclass(frozen=True, eq=False)
class Ground:
    """Points of the true ground, every 0.1 m: where a map may be (n, 3), and what it should have (m, 3)."""

    true: Floats
    asked: Floats

    def error(self, found: GridMap) -> float:
        """Return 1 - F: of what is asked for that is near the map, and of the map that is near the ground."""
        rows, columns = np.nonzero(np.isfinite(found.layers["elevation"]))
        a, _, c, _, e, f = found.transform
        heights = found.layers["elevation"][rows, columns]
        points = np.column_stack([c + (columns + 0.5) * a, f + (rows + 0.5) * e, heights]).astype(np.float64)
        had, right = share_near(self.asked, points), share_near(points, self.true)
        return 1.0 - 2 * had * right / max(had + right, 1e-9)


@dataclass(frozen=True)
class Site:
    """Days of one drive, what they are without faults, and what can be used there.

    Attributes
    ----------
    witness : str
        The odometry by cameras or lidar that is also a witness of what wheels do.
    others : tuple of str
        Further fixed compounds.
    clouds : Compound
        What the clouds of a map come from.
    ground : Ground
    """

    clear: Recording
    days: dict[str, Recording]
    witness: str
    others: tuple[str, ...]
    clouds: Compound
    ground: Ground

    @property
    def truth(self) -> Trajectory:
        """Of the body."""
        return trajectory_of(self.clear["truth/trajectory"])


def field_days(folder: Path, seed: int, drive: Drive) -> Site:
    """Three days of one drive: wheels that slip, cameras that are blinded, and both."""
    conditions = {"start": drive.start}
    clear = kept(folder, "rosario", Options(drive.seconds, seed, SCALE, STREAMS, conditions))
    slipping = break_down(clear, SLIP, seed, "Odometry", drive.slip)
    blinded, both = (
        break_down(day, drive.blinded_by, seed, "Zed/*", drive.blind) for day in (clear, slipping)
    )
    days = dict(zip(FIELD, (slipping, blinded, both), strict=True))
    return Site(clear, days, EYES, OTHER_EYES, STEREO, seen_by_camera(clear))


def crater_days(folder: Path, seed: int, drive: Drive) -> Site:
    """Two days of one drive: dust before the lidar, and wheels that slip besides."""
    clear = kept(folder, "etna", Options(30.0, seed, LIDAR_SCALE, LIDAR_STREAMS))
    dusty = break_down(clear, DUST, seed, "Lidar", drive.dust)
    slipping = break_down(dusty, SLIP, seed, "Platform/MotorEncoders", ("+10s", "+16s"))
    days = dict(zip(CRATER, (dusty, slipping), strict=True))
    return Site(clear, days, LIDAR, OTHER_LIDAR, SCANS, seen_by_lidar(clear))


def break_down(day: Recording, fault: str, seed: int, streams: str, when: tuple[str, str]) -> Recording:
    return inject(day, fault, 1.0, seed, streams=[streams], start=when[0], end=when[1])[0]


def bench_day(name: str, day: Recording, site: Site) -> None:
    """Errors of the path and of the map of each way."""
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "day.gpkg") as store:
        made, rivalry = make_in_turn("Pose", day, store)
        rivals: dict[str, Stream] = {}
        for product in store.find(Wanted(kind="Pose")):
            run = store.get(product.provenance.parents[0])
            if product.payload.format == "tum" and run.name in (FILTER, site.witness):
                rivals[run.name] = poses_of(store, product.id)
        ours = trajectory_of(poses_of(store, made.id))
    clouds = gather_clouds(day, site.clouds)
    errors = {
        words: (
            path_error(found, site.truth),
            map_error_along(put_upright(found, site.truth), clouds, day, site),
        )
        for words, found in fixed_paths(day, rivals, site).items()
    }
    for words, (off, wrong) in errors.items():
        quality(f"{name}: path by {words}", off, "m")
        quality(f"{name}: map by {words}", wrong, "of 1")
    led_by = rivalry.guide.compound.name
    guide = body_of(trajectory_of(rivals[led_by]), rivals[led_by].child, day) if led_by in rivals else ours
    off = path_error(ours, site.truth)
    wrong = map_error_along(put_upright(guide, site.truth), clouds, day, site)
    best = [min(each) for each in zip(*errors.values(), strict=True)]
    quality(f"{name}: path in turn / best fixed", off, "m", at_most=LIMIT, peer=best[0])
    quality(f"{name}: map in turn / best fixed", wrong, "of 1", at_most=LIMIT, peer=best[1])


def fixed_paths(day: Recording, rivals: dict[str, Stream], site: Site) -> dict[str, Trajectory]:
    """Return the path of the body by each fixed compound; those with wheels have the verdicts."""
    witness = rivals[site.witness].replace(name=f"{site.witness}:pose")
    witnessed = day.replace(streams=(*day.streams, witness))
    found = {name: body_of(trajectory_of(stream), stream.child, day) for name, stream in rivals.items()}
    for name in (FILTER, BATCH, *site.others):
        run = transect.run(name, witnessed, check=True)
        child = run["pose"].values[0].child if run["pose"].values else ""
        found[f"{name} --check"] = body_of(poses_of_run(run), child, day)
    return found


def body_of(track: Trajectory, child: str, day: Recording) -> Trajectory:
    """Return the path of the robot's body by that of another frame on it."""
    body = day["truth/trajectory"].child
    if track.orientations is None or child == body:
        return track
    T_child_body = day.frames.lookup(child, body)
    turned, places = se3.to_quaternion(
        se3.from_quaternion(track.orientations, track.positions) @ T_child_body
    )
    return Trajectory(track.t_ns, places, turned, child=body)


def pose_stream(name: str, track: Trajectory, like: Pose) -> Stream:
    assert track.orientations is not None
    names = ["x", "y", "z", "qx", "qy", "qz", "qw"]
    columns = dict(zip(names, np.column_stack([track.positions, track.orientations]).T, strict=True))
    return stream_of_values(
        name, track.t_ns, columns, type=Pose, role="estimate", frame=like.frame, child=like.child
    )


def path_error(found: Trajectory, truth: Trajectory) -> float:
    """Root mean square of the position error of the body, m, after the shift and turn that fit best."""
    return np.inf if is_lost(found) else absolute_error(associate(truth, found), "se3").statistics.rmse


def is_lost(found: Trajectory) -> bool:
    return np.isfinite(found.positions).all(axis=1).sum() < 20


def gather_clouds(day: Recording, seeing: Compound) -> Stream:
    """Return the clouds of a day without what the verdicts mask: the same for all ways."""
    made = transect.run(seeing, day, check=True)["cloud"].values
    table = arrow.table(np.array([each.t_ns for each in made]), {"row": np.arange(len(made))})
    return Stream("Clouds", PointCloud, table, frame=made[0].frame, loader=lambda row: made[row["row"]])


def map_error_along(found: Trajectory, clouds: Stream, day: Recording, site: Site) -> float:
    """Return 1 - F of a map along a path that is turned about the vertical and shifted as fits best."""
    if is_lost(found):
        return 1.0
    assert found.orientations is not None
    T_world_path = absolute_error(associate(site.truth, found), "yaw").alignment
    bodies = T_world_path @ se3.from_quaternion(found.orientations, found.positions)
    turned, places = se3.to_quaternion(bodies)
    made = map_along(Trajectory(found.t_ns, places, turned), clouds, day)
    return site.ground.error(made) if made else 1.0


def map_along(path: Trajectory, clouds: Stream, day: Recording) -> GridMap | None:
    """Return the height map of clouds along a path of the body in the world; None if there is none."""
    assert path.orientations is not None
    child = day["truth/trajectory"].child
    like = Pose(path.positions[0], path.orientations[0], frame="world", child=child)
    led = day.replace(streams=(clouds, pose_stream("path", path, like)))
    made = transect.run("DemGeneration/FromPoses", led, wire={"pose": "path"})["dem"].values
    return made[0] if made else None


def put_upright(found: Trajectory, truth: Trajectory) -> Trajectory:
    """Return the poses that are known, turned as a whole by what their attitudes are off on average."""
    if is_lost(found):
        return found
    assert found.orientations is not None
    known = np.isfinite(found.positions).all(axis=1)
    track = Trajectory(found.t_ns[known], found.positions[known], found.orientations[known])
    pairs = associate(truth, track)
    assert pairs.reference.orientations is not None
    assert pairs.estimate.orientations is not None
    off = rotations.multiply(pairs.reference.orientations, rotations.conjugate(pairs.estimate.orientations))
    R = rotations.nearest_rotation(np.mean(rotations.matrix_from_quaternion(off), axis=0))
    upright = se3.from_matrix(R, np.zeros(3)) @ se3.from_quaternion(
        found.orientations[known], track.positions
    )
    turned, places = se3.to_quaternion(upright)
    return Trajectory(track.t_ns, places, turned)


def ground_of(clear: Recording) -> Floats:
    """Return points (n, 3) of the true ground, about every 0.1 m."""
    dem = clear["truth/dem"][0].payload
    every = max(round(CELLS / dem.resolution[0]), 1)
    a, _, c, _, e, f = dem.transform
    first = every // 2
    heights = dem.layers["elevation"][first::every, first::every].astype(np.float64)
    rows, columns = np.indices(heights.shape) * every + first + 0.5
    return np.stack([c + columns * a, f + rows * e, heights], axis=-1).reshape(-1, 3)


def seen_by_lidar(clear: Recording) -> Ground:
    """Return the ground, and what a map of the clear day along the true path has of it.

    Were all that is near the path asked for, a path that wobbles would fill the gaps between the rings of
    scans, and its map be better than that of the truth.
    """
    points = ground_of(clear)
    made = map_along(trajectory_of(clear["truth/trajectory"]), gather_clouds(clear, SCANS), clear)
    assert made is not None
    return Ground(points, points[has_cells(made, points[:, 0], points[:, 1])])


def seen_by_camera(clear: Recording) -> Ground:
    """Return the ground that is in some picture of the left camera, at most `SIGHT` before it."""
    flat = ground_of(clear)
    seen = np.zeros(len(flat), dtype=np.bool_)
    left, truth = clear["Zed/Left"], trajectory_of(clear["truth/trajectory"])
    assert truth.orientations is not None
    rows = np.searchsorted(truth.t_ns, left.t_ns[:: EVERY // 3]).clip(max=len(truth.t_ns) - 1)
    bodies = se3.from_quaternion(truth.orientations[rows], truth.positions[rows])
    cameras = bodies @ clear.frames.lookup("base_link", left.frame)
    for T_world_camera in cameras:
        near = np.flatnonzero(np.linalg.norm(flat[:, :2] - T_world_camera[:2, 3], axis=1) < SIGHT + 2.0)
        _, inside = project_points(flat[near], se3.invert(T_world_camera), clear.cameras[left.camera])
        depth = se3.apply(se3.invert(T_world_camera), flat[near])[:, 2]
        seen[near] |= inside & (depth > 0.3) & (depth < SIGHT)
    return Ground(flat[seen], flat[seen])


def share_near(points: Floats, others: Floats) -> float:
    """Return which part of points has another one within `NEAR`."""
    return float(np.isfinite(KDTree(others).query(points, distance_upper_bound=NEAR)[0]).mean())


def has_cells(chart: GridMap, x: Floats, y: Floats) -> Mask:
    """Tell whether a map has heights at places."""
    known = np.isfinite(chart.layers["elevation"])
    a, _, c, _, e, f = chart.transform
    column, row = np.floor((x - c) / a).astype(int), np.floor((y - f) / e).astype(int)
    on_map = (row >= 0) & (row < known.shape[0]) & (column >= 0) & (column < known.shape[1])
    return on_map & known[row.clip(0, known.shape[0] - 1), column.clip(0, known.shape[1] - 1)]


def make_in_turn(kind: str, day: Recording, store: ProductStore) -> tuple[Product, Rivalry]:
    """Ask for a product, and print what took turns."""
    asked = answer(Request(kind), day, store, check=True)
    assert asked.plan is not None
    assert asked.plan.rivalry is not None
    assert asked.product is not None
    for line in asked.plan.rivalry.tell():
        if line.startswith(("from +", "in the end", "weighed")):
            print("   ", line)
    return asked.product, asked.plan.rivalry


def poses_of(store: ProductStore, identifier: str) -> Stream:
    return stream_of(store.get(identifier), store.content(identifier), "pose")


def trajectory_of(track: Stream) -> Trajectory:
    return Trajectory(
        track.t_ns, track.array("x", "y", "z"), track.array("qx", "qy", "qz", "qw"), child=track.child
    )


def poses_of_run(run: Run) -> Trajectory:
    poses = run["pose"].values
    if not poses:
        return Trajectory(np.empty(0, np.int64), np.empty((0, 3)))
    return Trajectory(
        np.array([pose.t_ns for pose in poses]),
        np.stack([pose.position for pose in poses]),
        np.stack([pose.orientation for pose in poses]),
    )


# Maps of laser and radar


def bench_dust(folder: Path, seed: int, drive: Drive) -> None:
    """Cells of things, and cells in free space, of maps of a dusty day."""
    clear, dusty = (
        kept(folder, "marulan", Options(30.0, seed, 1.0, RANGES, {"scene": drive.scene, "air": air}))
        for air in ("clear", "dust")
    )
    things, free = world_of(clear)
    with tempfile.TemporaryDirectory() as place, open_store(Path(place) / "day.gpkg") as store:
        found = points_of(store.content(make_in_turn("map", dusty, store)[0].id))
    checked, bare = (transect.run(MAPPING, dusty, check=how) for how in (True, False))
    lasers, radar = (checked[port].values[0].points for port in ("map", "radar"))
    fixed = {
        "LaserMapping": bare["map"].values[0].points,
        "LaserMapping --check": lasers,
        "RadarMapping --check": radar,
        "both --check": np.concatenate([lasers, radar]),
    }
    errors = {words: map_error(points, things, free) for words, points in fixed.items()}
    for words, error in errors.items():
        quality(f"dusty, seed {seed}: {words}", error, "of 1")
    ours, best = map_error(found, things, free), min(errors.values())
    quality(f"dusty, seed {seed}: orchestrated / best fixed", ours, "of 1", at_most=LIMIT, peer=best)


def points_of(content: bytes) -> Floats:
    """Points (n, 3) of a cloud that is kept."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "map.ply"
        file.write_bytes(content)
        [stream] = transect.open(file)
        return np.asarray(stream[0].payload.points, dtype=np.float64)


def world_of(clear: Recording) -> tuple[Cells, Cells]:
    """Cells of things that the laser met in clear air, by the truth of its beams, and cells of free space."""
    laser, hits, named = (clear[n] for n in ("LaserHorizontal", "truth/hits", "truth/hit_kinds"))
    kinds = named.table.to_pydict()
    ground = [
        n for n, kind in zip(kinds["number"], kinds["kind"], strict=True) if kind in ("nothing", "ground")
    ]
    own = [name == laser.name for name in hits.table.column("stream").to_pylist()]
    met = hits.table.filter(own).column("kinds").to_pylist()
    ranges = laser.table.column("ranges").to_pylist()
    angles = laser.array("start_angle").ravel(), laser.array("angle_increment").ravel()
    things, touched, free = Cells(), Cells(), Cells()
    for row in range(0, len(laser), EVERY):
        T_world_laser = clear.frames.lookup("Navigation", laser.name, int(laser.t_ns[row]), tolerance=1.0)
        far = np.array(ranges[row], np.float64)
        came = np.isfinite(far) & (far < 79.0)
        angle = (angles[0][row] + angles[1][row] * np.arange(len(far)))[came]
        beams = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(len(angle))])
        placed = beams @ T_world_laser[:3, :3].T
        ends = placed * far[came, None] + T_world_laser[:3, 3]
        touched |= cells_of(ends)
        things |= cells_of(ends[~np.isin(np.array(met[row])[came], ground)])
        steps = np.arange(CELL / 2, FARTHEST, CELL / 2)
        through = steps < (far[came] - CELL / 2)[:, None]
        free |= cells_of((placed[:, None] * steps[:, None])[through] + T_world_laser[:3, 3])
    return things, free - widen(touched)


def map_error(points: Floats, things: Cells, free: Cells) -> float:
    """Return 1 - F: of cells of a map that are at things or in free space, and of things that are in it."""
    cells = cells_of(points)
    true, false = len(cells & widen(things)), len(cells & free)
    right, found = true / max(true + false, 1), len(things & widen(cells)) / len(things)
    return 1 - 2 * right * found / (right + found)


def cells_of(points: Floats) -> Cells:
    numbers = np.unique(np.floor(points / CELL).astype(np.int64), axis=0)
    return {(x, y, z) for x, y, z in numbers.tolist()}


def widen(cells: Iterable[tuple[int, int, int]]) -> Cells:
    """All cells that touch one of these."""
    beside = (-1, 0, 1)
    return {(x + i, y + j, z + k) for x, y, z in cells for i in beside for j in beside for k in beside}


def kept(folder: Path, world: str, options: Options) -> Recording:
    """A day, simulated if it is not in the folder."""
    path = folder / "-".join([world, str(options.seed), *options.conditions.values()])
    if not path.exists():
        write_day(simulate(world, options), path)
    return transect.open(path)


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:] if each.isdigit()]
    main(numbers or (*SEEDS, *DUSTY), [each for each in sys.argv[1:] if not each.isdigit()])
