"""LaserSlam: real logs against Kümmerle's relations and single walls; simulated drives against truth.

`python -m benchmarks.bench_slam_laser [aces fr079 mit-csail houses row terrace yard] [--seeds 11 12 13]`
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import transect
from transect.algorithms.slam.occupancy_grid import build_occupancy_grid
from transect.base.clocks import NS
from transect.engine import Run
from transect.evaluation.height_maps import count_double_walls
from transect.evaluation.relative_motions import read_relations, relation_errors
from transect.geometry import se3
from transect.geometry.interpolation import Limits, interpolate_poses
from transect.recording import Recording
from transect.recording.place_maps import write_map
from transect.simulation.day import Options, simulate
from transect.types import PlaceMap, Pose, Trajectory

DATA_DIR = Path(os.environ.get("TRANSECT_TEST_DATA", "../shared/data")) / "carmen_2dlaser"
LOGS = ("aces", "fr079", "mit-csail")
LASER, WHEELS = "LaserStarboard", "Payload/VelocityTurnRate"
DURATIONS_S = {"houses": 170.0, "row": 225.0, "terrace": 215.0, "yard": 38.0}
REVISIT_RADIUS_M, REVISIT_HEADING_RAD, MIN_REVISIT_PATH_M = 3.0, np.radians(30.0), 20.0
"""A revisit: within this distance and heading of a place left at least this path length ago."""
OTHER_DAYS = {
    "another day": {},
    "1 m beside the track": {"track": "beside"},
    "people and a car": {"human": "visitors"},
    "dust": {"air": "dust"},
    "smoke": {"air": "smoke"},
    "rain": {"air": "rain"},
    "fog": {"air": "fog"},
}
"""What is different from the map's day."""
WRONG_POSE_M = 1.0
"""m from which on a pose in a map is wrong."""
FALSE_LOOP_M, FALSE_LOOP_RAD = 0.5, np.radians(5.0)
"""A loop that is further from the truth is false."""


@dataclass(frozen=True)
class Closed:
    """How good the loops of a map are: share that is true, ratio of the revisits that were found."""

    loops: int
    false: int
    revisits: int
    found: int


def run_slam(recording: Recording | Path, **options: object) -> tuple[Run, PlaceMap, Trajectory, float]:
    """Return a run, its map, its trajectory, and the CPU seconds that it took."""
    began = time.process_time()
    run = transect.run("LaserSlam", recording, **options)  # pyright: ignore[reportArgumentType]
    spent = time.process_time() - began
    [places], [path] = run["map"].values, run["trajectory"].values
    return run, places, path, spent


def judge_log(name: str) -> None:
    """Print speed, walls and relations of a real log."""
    log = DATA_DIR / f"{name}.clf.bz2"
    run, places, path, spent = run_slam(log)
    seconds = (path.t_ns[-1] - path.t_ns[0]) / NS
    size = sum(each.nbytes for seen in places.observations for each in seen.values()) / 1e6
    walls = count_double_walls(build_occupancy_grid(places))
    print(f"{name}: {len(places)} places, {places.length:.0f} m, {places.edges.what.count('loop')} loops")
    print(f"  {seconds / spent:.1f} times real time of one core ({spent:.0f} s for {seconds:.0f} s)")
    print(f"  double walls {100 * walls.share:.1f} % of {walls.cells} cells")
    print(f"  {size:.1f} MB kept, {100 * size / places.length:.2f} MB per 100 m; digest {run.digest[:12]}")
    if (relations := log.parent / f"{name}.relations").is_file():
        found = relation_errors(read_relations(relations), path)
        moved, turned = found.absolute
        print(f"  relations: {moved.mean:.4f} m, {np.degrees(turned.mean):.3f} deg, of {moved.count}")


def simulate_drive(scene: str, seed: int, **conditions: str) -> tuple[Recording, Trajectory]:
    """Return a drive at Marulan with one level laser and the speeds of the wheels, and the truth."""
    asked = {"scene": scene, **conditions}
    options = Options(seconds=DURATIONS_S[scene], seed=seed, streams=(LASER, WHEELS), conditions=asked)
    day = simulate("marulan", options)
    motion = day.truth.motion
    assert motion is not None
    return day.recording, Trajectory(motion.t_ns, motion.position, motion.quaternion)


def place_truth(truth: Trajectory, t_ns: np.ndarray) -> np.ndarray:
    """Return the true poses (n, 4, 4) at times."""
    assert truth.orientations is not None
    places, turns = interpolate_poses(truth.t_ns, truth.positions, truth.orientations, t_ns, Limits())
    return se3.from_quaternion(turns, places)


def judge_loops(places: PlaceMap, truth: Trajectory) -> Closed:
    """Count loops that are false, and revisits in the same direction that were found."""
    poses = place_truth(truth, places.t_ns)
    chosen = [n for n, what in enumerate(places.edges.what) if what == "loop"]
    a, b = places.edges.a[chosen], places.edges.b[chosen]
    off = se3.log(se3.invert(places.edges.T_a_b[chosen]) @ se3.invert(poses[a]) @ poses[b])
    false = (np.hypot(off[:, 0], off[:, 1]) > FALSE_LOOP_M) | (np.abs(off[:, 5]) > FALSE_LOOP_RAD)
    for n in np.flatnonzero(false):
        print(f"  false: {off[n, :2].round(2)} m, {np.degrees(off[n, 5]):.1f} deg")
    way = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(poses[:, :2, 3], axis=0), axis=1))]
    apart = np.linalg.norm(poses[:, None, :2, 3] - poses[None, :, :2, 3], axis=-1)
    heading = np.arctan2(poses[:, 1, 0], poses[:, 0, 0])
    turned = np.abs((heading[:, None] - heading[None] + np.pi) % (2 * np.pi) - np.pi)
    before = way[:, None] - way[None] > MIN_REVISIT_PATH_M
    again = (before & (apart < REVISIT_RADIUS_M) & (turned < REVISIT_HEADING_RAD)).any(axis=1)
    return Closed(
        len(chosen), int(false.sum()), int(again.sum()), int(np.isin(np.flatnonzero(again), b).sum())
    )


def error_of(path: Trajectory, truth: Trajectory) -> float:
    """Return the root mean square error of positions in the plane, m, at the best place of the path."""
    true = place_truth(truth, path.t_ns)[:, :3, 3]
    flat = true * (1.0, 1.0, 0.0)
    from transect.geometry.align import umeyama

    moved = umeyama(path.positions * (1.0, 1.0, 0.0), flat)
    return float(np.sqrt(np.mean(np.sum((moved.apply(path.positions * (1, 1, 0)) - flat) ** 2, axis=1))))


def reckon(day: Recording, t_ns: np.ndarray) -> Trajectory:
    """Return the path of the wheels alone at times."""
    from transect.nodes.lidar.body_poses import PoseIntegrator

    poses = PoseIntegrator({}).poses([sample.value for sample in day[WHEELS]])
    stamps = np.array([pose.t_ns for pose in poses])
    inside = t_ns[(t_ns >= stamps[0]) & (t_ns <= stamps[-1])]
    places, turns = interpolate_poses(
        stamps,
        np.array([p.position for p in poses]),
        np.array([p.orientation for p in poses]),
        inside,
        Limits(),
    )
    return Trajectory(inside, places, turns)


def judge_drive(scene: str, seed: int) -> None:
    """Print how well a simulated drive was closed."""
    day, truth = simulate_drive(scene, seed)
    _, places, path, spent = run_slam(day)
    wheels = reckon(day, path.t_ns)
    closed = judge_loops(places, truth)
    scans, odometry = error_of(path, truth), error_of(wheels, truth)
    print(f"{scene}, seed {seed} (simulated): {places.length:.0f} m, {len(places)} places, {spent:.0f} s CPU")
    print(f"  ATE {scans:.3f} m, of the wheels {odometry:.3f} m: {scans / odometry:.3f} times")
    share = closed.found / closed.revisits if closed.revisits else float("nan")
    print(f"  loops {closed.loops}, false {closed.false}; recall {share:.3f} of {closed.revisits} revisits")


def judge_days(seed: int) -> None:
    """Print how well the yard is known again on other days, of the next seed."""
    day, mapped = simulate_drive("yard", seed)
    with tempfile.TemporaryDirectory() as place:
        kept = Path(place) / "map"
        places = run_slam(day)[1]
        write_map(places, kept)
        for name, conditions in OTHER_DAYS.items():
            other, truth = simulate_drive("yard", seed + 1, **conditions)
            run = transect.run("LaserSlam", other, map=kept)
            poses = run["pose"].values
            share = len(poses) / len(run["located"].values)
            off = measure_off(places, mapped, poses, truth)
            said = "never"
            if len(off):
                median, most, worst = np.percentile(off, [50, 95, 100])
                said = f"{median:.3f} m, 95 % {most:.3f} m, worst {worst:.3f} m"
            wrong = np.count_nonzero(off > WRONG_POSE_M)
            print(f"yard, seed {seed}, {name}: {100 * share:.1f} % found; {said}; {wrong} wrong")


def measure_off(places: PlaceMap, mapped: Trajectory, poses: Sequence[Pose], truth: Trajectory) -> np.ndarray:
    """Return how far poses in a map are off, m, seen from the keyframes nearest in truth."""
    keyframes = place_truth(mapped, places.t_ns)
    true = place_truth(truth, np.array([pose.t_ns for pose in poses], np.int64))
    found = np.array([se3.from_quaternion(p.orientation, p.position) for p in poses]).reshape(-1, 4, 4)
    apart = np.linalg.norm(keyframes[None, :, :2, 3] - true[:, None, :2, 3], axis=-1)
    nearest = apart.argmin(axis=1)
    said, really = se3.invert(places.poses[nearest]) @ found, se3.invert(keyframes[nearest]) @ true
    return np.linalg.norm((said - really)[:, :2, 3], axis=1)


def main(arguments: Sequence[str] = ()) -> None:
    """Judge what is named, by default everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*LOGS, *DURATIONS_S])
    parser.add_argument("--seeds", nargs="*", type=int, default=[21, 22, 23])
    asked = parser.parse_args(arguments)
    for name in asked.names:
        if name in LOGS:
            judge_log(name)
        else:
            for seed in asked.seeds:
                judge_days(seed) if name == "yard" else judge_drive(name, seed)


if __name__ == "__main__":
    main(sys.argv[1:])
