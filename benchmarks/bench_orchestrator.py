"""The Orchestrator on days with faults, beside fixed compounds: trajectories and maps.

Trajectories on simulated Rosario days without satellites: wheels slip; cameras are blinded; both, one after
the other. Maps on simulated Marulan days with dust. Fixed compounds get the same verdicts (`--check`), with
the same witness; the odometry by cameras asks for none, so that it is the same with and without. Faults are
of severity 1, at the times of `DRIVES`.

The policy was made on the seeds in `LOOKED_AT`, and that of maps (noise is no echo; what came shortly before
the doubts is taken out) on those in `LOOKED_AT_IN_DUST`; `SEEDS` and `DUSTY` were run once, for the
page. The n-th of them has the n-th of the `DRIVES`. Days are kept in `TRANSECT_BENCH_DAYS`, if set.
"""

import os
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import transect
from benchmarks._harness import quality
from transect.base.arrays import Floats
from transect.engine import Run
from transect.evaluation.absolute import absolute_error
from transect.evaluation.association import associate
from transect.geometry import se3
from transect.orchestrator import Request, Rivalry, answer
from transect.products import ProductStore, open_store
from transect.products.keeping import stream_of
from transect.recording import Recording, Stream
from transect.simulation.day import Options, simulate, write_day
from transect.simulation.faults import inject
from transect.types import Trajectory

LOOKED_AT, LOOKED_AT_IN_DUST = (1,), (1, 921, 922, 923, 931, 932, 933)
SEEDS, DUSTY = (921, 922, 923), (675603, 601169, 362381)
STREAMS = ("Zed/*", "Imu", "Odometry")
RANGES = ("LaserHorizontal", "Nav", "RadarSpectrum", "RadarRangeBearing")
SCALE = 0.3
FILTER, EYES = "PoseFusion/ErrorStateFilter", "VisualOdometry/KltKeyframes"
BATCH = "PoseFusion/BatchSmoother"
OTHER_EYES = ("VisualOdometry/KltFrameToFrame", "VisualOdometry/DescriptorTracks")
MAPPING = "LaserMapping/RecordedFrames"
CELL, EVERY, FARTHEST = 0.5, 15, 60.0
"""m: edge of the cells of a map; scans of which one is looked at; m of a beam that show free space."""
LIMIT = 1.05
Cells = set[tuple[int, int, int]]


@dataclass(frozen=True)
class Drive:
    """Seconds of a day, where it starts, when wheels slip, when and how cameras are blinded; and a scene."""

    seconds: float
    start: str
    slip: tuple[str, str]
    blind: tuple[str, str]
    blinded_by: str
    scene: str


DRIVES = (
    Drive(20.0, "turn", ("+6s", "+11s"), ("+14s", "+19s"), "overexposure", "houses"),
    Drive(17.0, "row", ("+10s", "+14s"), ("+4s", "+8s"), "haze", "open"),
    Drive(24.0, "turn", ("+15s", "+21s"), ("+6s", "+12s"), "overexposure", "houses"),
)


def main(seeds: tuple[int, ...] = (*SEEDS, *DUSTY)) -> None:
    with threadpool_limits(1), tempfile.TemporaryDirectory() as made:
        folder = Path(os.environ.get("TRANSECT_BENCH_DAYS") or made)
        for seed in seeds:
            bench_day = bench_dust if seed in DUSTY else bench_trajectories
            bench_day(folder, seed, drive_of(seed))


def drive_of(seed: int) -> Drive:
    """Return the drive of a seed: the first one of a seed that was looked at."""
    numbers = {each: number for seeds in (SEEDS, DUSTY) for number, each in enumerate(seeds)}
    return DRIVES[numbers.get(seed, 0)]


# Trajectories


def bench_trajectories(folder: Path, seed: int, drive: Drive) -> None:
    """Three days of one drive: wheels that slip, cameras that are blinded, and both."""
    conditions = {"start": drive.start}
    clear = kept(folder, "rosario", Options(drive.seconds, seed, SCALE, STREAMS, conditions))
    slipping = broken(clear, "wheel_slip", seed, "Odometry", drive.slip)
    days = {
        "slipping": slipping,
        "blinded": broken(clear, drive.blinded_by, seed, "Zed/*", drive.blind),
        "both": broken(slipping, drive.blinded_by, seed, "Zed/*", drive.blind),
    }
    for name, day in days.items():
        bench_trajectory(f"{name}, seed {seed}", day, clear)


def broken(day: Recording, fault: str, seed: int, streams: str, when: tuple[str, str]) -> Recording:
    return inject(day, fault, 1.0, seed, streams=[streams], start=when[0], end=when[1])[0]


def bench_trajectory(name: str, day: Recording, clear: Recording) -> None:
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "day.gpkg") as store:
        made = make_in_turn("Pose", day, store)
        join = store.get(made[0])
        filtered, seen = (poses_of(store, parent) for parent in join.provenance.parents)
        found, given = (poses_of(store, each) for each in made[1:3])
    mounted = join.provenance.parameters["request"]["set"]["switch.mounted"]
    witnessed = day.replace(streams=(*day.streams, seen.replace(name=f"{EYES}:pose")))
    fixed = {
        FILTER: error_of(trajectory_of(filtered), clear),
        f"{FILTER} --check": error_of_run(transect.run(FILTER, witnessed, check=True), clear),
        BATCH: error_of_run(transect.run(BATCH, day), clear),
        EYES: error_of(at_body(trajectory_of(seen), mounted), clear),
    }
    for eyes in OTHER_EYES:
        fixed[eyes] = error_of(at_body(poses_of_run(transect.run(eyes, day)), mounted), clear)
    for words, error in fixed.items():
        quality(f"{name}: {words}", error, "m")
    quality(f"{name}: orchestrated, as the robot had it", error_of(trajectory_of(given), clear), "m")
    ours = error_of(trajectory_of(found), clear)
    quality(f"{name}: orchestrated / best fixed", ours, "m", at_most=LIMIT, peer=min(fixed.values()))


def make_in_turn(kind: str, day: Recording, store: ProductStore) -> tuple[str, ...]:
    """Ask for a product, print the switches, and return the ids of what the joining run gave."""
    asked = answer(Request(kind), day, store, check=True)
    assert isinstance(asked.plan, Rivalry)
    for switch in asked.plan.switches:
        print("   ", switch.line(asked.plan.origin_ns))
    return asked.plan.made


def poses_of(store: ProductStore, identifier: str) -> Stream:
    return stream_of(store.get(identifier), store.content(identifier), "pose")


def at_body(track: Trajectory, mounted: str) -> Trajectory:
    """Return a camera's track as that of the robot's body, by the camera's pose on it as it was written."""
    numbers = np.array(mounted.split(), dtype=np.float64)
    T_camera_body = se3.invert(se3.from_quaternion(numbers[3:], numbers[:3]))
    assert track.orientations is not None
    bodies = se3.from_quaternion(track.orientations, track.positions) @ T_camera_body
    turned, places = se3.to_quaternion(bodies)
    return Trajectory(track.t_ns, places, turned, child="base_link")


def trajectory_of(track: Stream) -> Trajectory:
    return Trajectory(
        track.t_ns, track.array("x", "y", "z"), track.array("qx", "qy", "qz", "qw"), child=track.child
    )


def poses_of_run(run: Run) -> Trajectory:
    poses = run["pose"].values
    return Trajectory(
        np.array([pose.t_ns for pose in poses]),
        np.stack([pose.position for pose in poses]),
        np.stack([pose.orientation for pose in poses]),
    )


def error_of_run(run: Run, clear: Recording) -> float:
    return error_of(poses_of_run(run), clear)


def error_of(found: Trajectory, clear: Recording) -> float:
    """Root mean square of the position error of the body, m, after a shift and a turn about the vertical."""
    if np.isfinite(found.positions).all(axis=1).sum() < 2:
        return np.inf  # it lost its way at once
    truth = trajectory_of(clear["truth/trajectory"])
    return absolute_error(associate(truth, found), "yaw").statistics.rmse


# Maps


def bench_dust(folder: Path, seed: int, drive: Drive) -> None:
    """Cells of things, and cells in free space, of maps of a dusty day."""
    clear, dusty = (
        kept(folder, "marulan", Options(30.0, seed, 1.0, RANGES, {"scene": drive.scene, "air": air}))
        for air in ("clear", "dust")
    )
    things, free = world_of(clear)
    with tempfile.TemporaryDirectory() as place, open_store(Path(place) / "day.gpkg") as store:
        made = map(store.get, make_in_turn("map", dusty, store))
        found = points_of(next(store.content(each.id) for each in made if each.name == "map"))
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
    main(tuple(map(int, sys.argv[1:])) or (*SEEDS, *DUSTY))
