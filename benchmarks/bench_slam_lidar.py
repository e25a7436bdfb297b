"""LidarSlam on simulated Etna, compared with its odometry and kiss-slam; on other days; on real pairs.

A day is 268 m out and back four times, 2.1 km, by a lidar with a range of some 25 m on dark ground and a bias
in each channel; every second revolution and every fifth firing are used. All three process the same clouds on
one core. The seeds were drawn after the code was fixed. A loop closure is correct within 0.5 m and 3 degrees.
Days are cached in `TRANSECT_BENCH_DAYS` if that is set.

Parts can be run alone, in a quarter of an hour for a seed and some minutes for the others:
``python -m benchmarks.bench_slam_lidar [SEED ...] [starts] [others] [pairs]``.

kiss-slam needs an environment of its own: `KISS_SLAM_PYTHON` names its interpreter. It runs on the first day
with its default configuration, and with local maps of 20 m: the default of 100 m is long for a rover's day.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import transect
from benchmarks._harness import quality
from benchmarks._loops import Truth, judge_loops, judge_places
from benchmarks.bench_lidar import DATA_DIR, one_core, true_poses
from benchmarks.bench_vo import kept_day
from transect.algorithms.registration.gicp import downsample_points
from transect.algorithms.slam.lidar_recogniser import LidarRecogniser
from transect.engine.runs import Run
from transect.geometry import se3
from transect.nodes.lidar.channel_calibration import ChannelCalibration
from transect.nodes.lidar.scan_odometry import VoxelGaussians
from transect.recording import Recording
from transect.recording.place_maps import write_map
from transect.simulation.day import WorldOptions, simulate
from transect.simulation.faults import inject
from transect.simulation.lidar import MEASURED_VLP_32C, draw_bias
from transect.types import PlaceMap, PointCloud

UNSEEN_SEEDS, OTHER_DAYS_SEED = (463109, 651658, 206609), 41
"""Seeds of the evaluated days, and of the map for other days, which was used in development."""
DURATION_S, REVOLUTION_STEP, FIRING_RATIO, RECENT_PATH_M = 2800.0, 2, 0.2, 15.0
"""Duration of eight passes; step of revolutions and ratio of firings used; path, as in `LidarSlam`."""
OUTWARD_S, SHORT_DAY_S, NO_LOOP_S = 345.0, 1050.0, 100.0
"""Times until the rover first turns back, of three passes (804 m), and without a loop."""
CORRECT_LOOP = 0.5, np.radians(3.0)
MAX_CLOSED_RATIO, MIN_RECALL_PERCENT, MIN_CLOUDS_PER_S = 0.4, 80.0, 10.0
ELEVATION_SIGMA_RAD = np.radians(0.05)
"""Standard deviation of elevation offsets of channels, in runs with such offsets."""
YOUNG_MAP_SCANS, START_STEP_SCANS = 60, 100
"""Number of scans from each start, and from one start to the next."""
MAPPED_S = 160.0
"""Duration of the map in which other days are localised."""
LOCAL_MAP_SIZES_M = (100.0, 20.0)
"""Sizes of kiss-slam's local maps."""


def main(parts: Sequence[str] = (*map(str, UNSEEN_SEEDS), "starts", "others", "pairs")) -> None:
    with threadpool_limits(1), one_core():
        for part in parts:
            if part == "starts":
                bench_starts(UNSEEN_SEEDS[0])
            elif part == "others":
                bench_other_days()
            elif part == "pairs":
                bench_pairs()
            else:
                bench_day(etna(int(part)), int(part), peer=part == str(UNSEEN_SEEDS[0]))


def etna(seed: int) -> Recording:
    """Return a day on Etna with repeated passes; simulated once, then read from disk."""
    return kept_day("etna", f"etna-far-{seed}-{DURATION_S:g}", day_options(seed, DURATION_S), REVOLUTION_STEP)


def day_options(seed: int, seconds: float, track: str = "first") -> WorldOptions:
    conditions = {"route": "far", "lidar": "measured", "track": track}
    return WorldOptions(
        seconds=seconds, seed=seed, scale=FIRING_RATIO, streams=("Lidar",), conditions=conditions
    )


def bench_day(day: Recording, seed: int, *, peer: bool) -> None:
    """Evaluate maps of a whole day, of its start, and of a part without loops; optionally kiss-slam."""
    name, true = f"Etna {seed}", true_poses(day)
    bench_channels(name, day, seed)
    begin = time.process_time()
    run = transect.run("LidarSlam", day)
    took = time.process_time() - begin
    after = judge_closing(name, run, true, MAX_CLOSED_RATIO)
    places = run["map"].values[0]
    judge_map(name, places, true)
    quality(f"{name}, clouds per second of CPU", len(day["Lidar"]) / took, "1/s", at_least=MIN_CLOUDS_PER_S)
    if peer:
        bench_peer(name, day, after, took)
    for what, seconds, limit in (
        ("out, back and out", SHORT_DAY_S, MAX_CLOSED_RATIO),
        ("no loop", NO_LOOP_S, 1.001),
    ):
        part = transect.run("LidarSlam", day.slice("+0s", f"+{seconds:g}s"))
        judge_closing(f"{name}, {what}", part, true, limit)


def bench_channels(name: str, day: Recording, seed: int) -> None:
    """Evaluate the calibration of channels: residual offsets and their mean, also with elevation offsets."""
    far = draw_bias(MEASURED_VLP_32C, seed)
    high = ELEVATION_SIGMA_RAD * np.random.default_rng(seed).standard_normal(len(far))
    for what, up in (("ranges off", np.zeros(len(far))), ("elevations off, too", high)):
        node = ChannelCalibration()
        for sample in day["Lidar"]:
            node(offset_elevations(sample.payload, up))
            if node.is_satisfied():
                break
        node.finish()
        seen = len(node.faults.counts)
        weight = node.faults.counts / node.faults.counts.sum()
        for kind, unit, drawn, told in (
            ("ranges", "mm", far[:seen], node.faults.ranges),
            ("elevations", "mrad", up[:seen], node.faults.elevations),
        ):
            left, before = (1e3 * np.sqrt(weight @ (x - weight @ x) ** 2) for x in (drawn - told, drawn))
            quality(f"{name}, {what}, {kind} left / before", left, unit, peer=before or None)
        left, before = (1e3 * abs(weight @ x) for x in (far[:seen] - node.faults.ranges, far[:seen]))
        quality(f"{name}, {what}, mean of ranges left / before", left, "mm", peer=before)


def bench_starts(seed: int) -> None:
    """Evaluate odometry started at several times of a day: scans without a pose, and drift."""
    day = etna(seed)
    stream, true = day["Lidar"], true_poses(day)
    missed, far = [], []
    for begin in range(0, len(stream) - YOUNG_MAP_SCANS, START_STEP_SCANS):
        node, t_ns, poses = VoxelGaussians(), [], []
        for index in range(begin, begin + YOUNG_MAP_SCANS):
            cloud = stream[index].payload
            found = node(cloud).pose
            if found is not None:
                t_ns.append(cloud.t_ns)
                poses.append(se3.from_quaternion(found.orientation, found.position))
        where = true(np.array(t_ns))
        off = se3.invert(se3.invert(where[0]) @ where) @ se3.invert(poses[0]) @ np.array(poses)
        missed.append(YOUNG_MAP_SCANS - len(poses))
        far.append(np.linalg.norm(off[:, :3, 3], axis=1).max())
    name = f"Etna {seed}, {len(far)} starts, {YOUNG_MAP_SCANS} scans of each"
    quality(f"{name}, scans without a place", sum(missed), "")
    quality(f"{name}, farthest off, median", float(np.median(far)), "m")
    quality(f"{name}, farthest off, worst", max(far), "m")


def offset_elevations(cloud: PointCloud, up: np.ndarray) -> PointCloud:
    """Return a cloud with elevation offsets (k,) of its channels, rad."""
    x, y, z = np.asarray(cloud.points, np.float64).T
    level, away = np.hypot(x, y), np.sqrt(x**2 + y**2 + z**2)
    angle = np.arctan2(z, level) + up[np.asarray(cloud.fields["ring"], np.int64)]
    flat = away * np.cos(angle) / level
    points = np.stack([x * flat, y * flat, away * np.sin(angle)], axis=1)
    return replace(cloud, points=points.astype(np.float32))


def judge_closing(name: str, run: Run, true: Truth, limit: float) -> float:
    """Report errors before and after loop closure; return the latter, m."""
    before, after = (error(*poses_of(run, port), true) for port in ("odometry", "trajectory"))
    quality(f"{name}, ATE / its odometry's", after, "m", at_most=limit, peer=before)
    return after


def judge_map(name: str, places: PlaceMap, true: Truth) -> None:
    """Report precision and recall of loop closures, and the size of the map for new and for known ground."""
    loops = judge_loops(places, true(places.t_ns), RECENT_PATH_M)
    right = (loops.shift < CORRECT_LOOP[0]) & (loops.turn < CORRECT_LOOP[1])
    quality(f"{name}, {len(right)} loops, right", 100 * float(right.mean()), "%", at_least=100.0)
    quality(f"{name}, worst loop", float(loops.shift.max()), "m")
    for way, (seen, all_) in (("same way", loops.same), ("opposite way", loops.opposite)):
        limit = MIN_RECALL_PERCENT if way == "same way" else None
        quality(f"{name}, {all_} revisits the {way}, seen", 100 * seen / max(all_, 1), "%", at_least=limit)
    size = np.array([sum(array.nbytes for array in seen.values()) for seen in places.observations]) / 1e6
    steps = np.append(np.linalg.norm(np.diff(places.poses[:, :3, 3], axis=0), axis=1), 0.0)
    old = places.t_ns > places.t_ns[0] + OUTWARD_S * 1e9
    quality(f"{name}, map of 100 m of new ground", 100 * size[~old].sum() / steps[~old].sum(), "MB")
    quality(f"{name}, map of 100 m of old ground", 100 * size[old].sum() / steps[old].sum(), "MB")


def bench_peer(name: str, day: Recording, ours: float, took: float) -> None:
    """Run kiss-slam on the same clouds, if an interpreter for it is given."""
    python = os.environ.get("KISS_SLAM_PYTHON")
    if python is None:
        print("  kiss-slam is left out: KISS_SLAM_PYTHON names no interpreter that has it")
        return
    stream, true = day["Lidar"], true_poses(day)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_clouds([sample.payload for sample in stream], folder)
        for metres in LOCAL_MAP_SIZES_M:
            command = [python, str(Path(__file__).with_name("_kiss_slam.py")), str(folder), str(metres)]
            one = {**os.environ, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, check=True, capture_output=True, env=one, text=True)
            result = json.loads(done.stdout)
            poses = np.load(folder / "poses.npy")
            # The time of its pose within a scan is not documented: the one with the least error is used.
            ends = [stream.t_ns[: len(poses)] + part for part in (0, 100_000_000, 200_000_000)]
            theirs = min(error(t, poses, true) for t in ends)
            mine = f"{name}, / kiss-slam, {metres:g} m, {result['loops']} loops"
            quality(f"{mine}, ATE", ours, "m", peer=theirs)
            quality(f"{mine}, CPU", took, "s", peer=result["cpu"])


def write_clouds(clouds: list[PointCloud], folder: Path) -> None:
    """Write clouds in the format of `_kiss_slam.py`; times are fractions of a revolution."""
    np.save(folder / "sizes.npy", [len(cloud) for cloud in clouds])
    np.save(folder / "points.npy", np.concatenate([cloud.points for cloud in clouds]))
    offsets = [np.asarray(cloud.fields["t_offset_ns"], np.float64) / 2e8 for cloud in clouds]
    np.save(folder / "stamps.npy", np.concatenate(offsets))


def poses_of(run: Run, port: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the times (n,) and poses (n, 4, 4) of a port."""
    values = run[port].values
    if port == "trajectory":
        return values[0].t_ns, se3.from_quaternion(values[0].orientations, values[0].positions)
    turns, places = ([getattr(pose, part) for pose in values] for part in ("orientation", "position"))
    return np.array([pose.t_ns for pose in values]), se3.from_quaternion(np.array(turns), np.array(places))


def error(t_ns: np.ndarray, poses: np.ndarray, true: Truth) -> float:
    """Return the RMSE of positions, m, after rigid alignment."""
    places, goal = poses[:, :3, 3], true(t_ns)[:, :3, 3]
    a, b = places - places.mean(axis=0), goal - goal.mean(axis=0)
    u, _, vt = np.linalg.svd(b.T @ a)
    turn = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    return float(np.sqrt(np.mean(np.sum((a @ turn.T - b) ** 2, axis=1))))


def drive(track: str) -> tuple[Recording, Truth]:
    """Return a day for localisation, whose clouds are simulated when read, and its ground truth poses."""
    day = simulate("etna", day_options(OTHER_DAYS_SEED, 2 * OUTWARD_S, track))
    mount = day.recording.frames.lookup("Platform", "Lidar")
    stream, motion = day.recording["Lidar"], day.truth.motion
    downsampled = stream.take(np.arange(len(stream)) % REVOLUTION_STEP == 0)
    return day.recording.replace(streams=(downsampled,)), lambda t_ns: motion.at(t_ns).transforms @ mount


def bench_other_days() -> None:
    """Evaluate localisation in a map on other days, and of a kidnapped rover."""
    first, mapped = drive("first")
    with tempfile.TemporaryDirectory() as place:
        [places] = transect.run("LidarSlam", first.slice("+0s", f"+{MAPPED_S:g}s"))["map"].values
        write_map(places, Path(place))

        def judge(name: str, day: Recording, true: Truth) -> None:
            run = transect.run("LidarSlam", day, map=place)
            judge_places(f"Etna, {name}", places, mapped, run, true, len(day["Lidar"]), asked=False)

        again, true = drive("again")
        way = again.slice("+20s", "+100s")
        judge("another day", way, true)
        judge("dust of severity 0.5", inject(way, "dust", 0.5, streams=("Lidar",))[0], true)
        beside, truth = drive("beside")
        judge("1.5 m beside the track", beside.slice("+20s", "+100s"), truth)
        judge("the opposite way", again.slice("+570s", "+650s"), true)
        carried = transect.join([again.slice("+20s", "+40s"), again.slice("+100s", "+140s")])
        judge("carried 48 m further", carried, true)
        judge("ground that is not in the map", again.slice("+260s", "+300s"), true)


def bench_pairs() -> None:
    """Evaluate recognition of real scans without a prior: of the same and of different places."""
    clouds = real_clouds()
    right = wrong = refused = pairs = 0
    for name, (group, points, pose) in clouds.items():
        for other, (theirs, others, place) in clouds.items():
            if other <= name:
                continue
            loop = recognise(points, others)
            if group != theirs:
                wrong += loop is not None
                refused += loop is None
            elif pose is not None and place is not None:
                pairs += 1
                off = None if loop is None else se3.invert(loop) @ se3.invert(pose) @ place
                right += off is not None and float(np.linalg.norm(off[:3, 3])) < CORRECT_LOOP[0]
                wrong += off is not None and float(np.linalg.norm(off[:3, 3])) >= CORRECT_LOOP[0]
    if clouds:
        quality(f"real, {pairs} pairs of one place, found", 100 * right / max(pairs, 1), "%")
        quality(f"real, {refused + wrong} others, or found wrongly", float(wrong), "", at_most=0)


def recognise(old: np.ndarray, new: np.ndarray) -> np.ndarray | None:
    """Return T_old_new of two clouds by the recogniser of LidarSlam; None if it is not accepted."""
    edge = 0.3
    recogniser = LidarRecogniser(edge)
    recogniser.add(0, {"points": downsample_points(old, edge).astype(np.float32)})
    loop = recogniser.verify(0, {"points": downsample_points(new, edge).astype(np.float32)}, None)
    return None if loop is None else loop.T_old_new


def real_clouds() -> dict[str, tuple[str, np.ndarray, np.ndarray | None]]:
    """Return clouds by name: place, points, and pose if known."""
    found: dict[str, tuple[str, np.ndarray, np.ndarray | None]] = {}
    if not (DATA_DIR / "lidar_gtsam_points").is_dir():
        return found
    recording = transect.open(DATA_DIR / "lidar_gtsam_points")
    graph = recording["newer_01/graph"]
    poses = se3.from_quaternion(graph.array("qx", "qy", "qz", "qw"), graph.array("x", "y", "z"))
    for k, sample in enumerate(recording["newer_01/planes"]):
        found[f"newer {k}"] = "newer", np.asarray(sample.payload.points, np.float64), poses[k]
    for name, place in (("lidar_small_gicp", "kitti"), ("radiate_fog", "fog")):
        if (DATA_DIR / name).is_dir():
            for stream in transect.open(DATA_DIR / name):
                if stream.type is PointCloud and len(stream):
                    points = np.asarray(stream[0].payload.points, np.float64)
                    found[f"{place} {stream.name}"] = place, points, None
    return found


if __name__ == "__main__":
    main(sys.argv[1:]) if sys.argv[1:] else main()
