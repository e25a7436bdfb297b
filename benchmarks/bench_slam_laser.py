"""LaserSlam: real logs with Kümmerle's relations and counts of double walls; simulated drives.

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
from transect.simulation.day import WorldOptions, simulate
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
"""Conditions that differ from those of the map's day."""
WRONG_POSE_M = 1.0
"""Smallest error of a wrong pose in a map."""
FALSE_LOOP_M, FALSE_LOOP_RAD = 0.5, np.radians(5.0)
"""Largest errors of a true loop closure."""


@dataclass(frozen=True)
class LoopCounts:
    """Counts of loop closures and of revisits."""

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
    print(f"{name}: {len(places)} keyframes, {places.length:.0f} m, {places.edges.what.count('loop')} loops")
    print(f"  {seconds / spent:.1f} times real time of one core ({spent:.0f} s for {seconds:.0f} s)")
    print(f"  double walls {100 * walls.doubled_ratio:.1f} % of {walls.cells} cells")
    print(f"  {size:.1f} MB stored, {100 * size / places.length:.2f} MB per 100 m; digest {run.digest[:12]}")
    if (relations := log.parent / f"{name}.relations").is_file():
        found = relation_errors(read_relations(relations), path)
        moved, turned = found.absolute
        print(f"  relations: {moved.mean:.4f} m, {np.degrees(turned.mean):.3f} deg, of {moved.count}")


def simulate_drive(scene: str, seed: int, **conditions: str) -> tuple[Recording, Trajectory]:
    """Return a drive at Marulan with one level laser and wheel speeds, and its ground truth."""
    asked = {"scene": scene, **conditions}
    options = WorldOptions(seconds=DURATIONS_S[scene], seed=seed, streams=(LASER, WHEELS), conditions=asked)
    day = simulate("marulan", options)
    motion = day.truth.motion
    assert motion is not None
    return day.recording, Trajectory(motion.t_ns, motion.position, motion.quaternion)


def true_poses_at(truth: Trajectory, t_ns: np.ndarray) -> np.ndarray:
    """Return the ground truth poses (n, 4, 4) at times."""
    assert truth.orientations is not None
    positions, orientations = interpolate_poses(
        truth.t_ns, truth.positions, truth.orientations, t_ns, Limits()
    )
    return se3.from_quaternion(orientations, positions)


def judge_loops(places: PlaceMap, truth: Trajectory) -> LoopCounts:
    """Count loops that are false, and revisits in the same direction that were found."""
    poses = true_poses_at(truth, places.t_ns)
    chosen = [n for n, what in enumerate(places.edges.what) if what == "loop"]
    a, b = places.edges.a[chosen], places.edges.b[chosen]
    off = se3.log(se3.invert(places.edges.T_a_b[chosen]) @ se3.invert(poses[a]) @ poses[b])
    false = (np.hypot(off[:, 0], off[:, 1]) > FALSE_LOOP_M) | (np.abs(off[:, 5]) > FALSE_LOOP_RAD)
    for n in np.flatnonzero(false):
        print(f"  false: {off[n, :2].round(2)} m, {np.degrees(off[n, 5]):.1f} deg")
    path_m = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(poses[:, :2, 3], axis=0), axis=1))]
    apart = np.linalg.norm(poses[:, None, :2, 3] - poses[None, :, :2, 3], axis=-1)
    heading = np.arctan2(poses[:, 1, 0], poses[:, 0, 0])
    turned = np.abs((heading[:, None] - heading[None] + np.pi) % (2 * np.pi) - np.pi)
    old = path_m[:, None] - path_m[None] > MIN_REVISIT_PATH_M
    revisit = (old & (apart < REVISIT_RADIUS_M) & (turned < REVISIT_HEADING_RAD)).any(axis=1)
    return LoopCounts(
        len(chosen), int(false.sum()), int(revisit.sum()), int(np.isin(np.flatnonzero(revisit), b).sum())
    )


def error_of(path: Trajectory, truth: Trajectory) -> float:
    """Return the root mean square error of positions in the plane, m, after alignment."""
    true = true_poses_at(truth, path.t_ns)[:, :3, 3]
    flat = true * (1.0, 1.0, 0.0)
    from transect.geometry.align import umeyama

    moved = umeyama(path.positions * (1.0, 1.0, 0.0), flat)
    return float(np.sqrt(np.mean(np.sum((moved.apply(path.positions * (1, 1, 0)) - flat) ** 2, axis=1))))


def wheel_trajectory(day: Recording, t_ns: np.ndarray) -> Trajectory:
    """Return the trajectory by wheels alone at times."""
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
    """Print the errors and loop closures of a simulated drive."""
    day, truth = simulate_drive(scene, seed)
    _, places, path, spent = run_slam(day)
    wheels = wheel_trajectory(day, path.t_ns)
    closed = judge_loops(places, truth)
    scans, odometry = error_of(path, truth), error_of(wheels, truth)
    print(
        f"{scene}, seed {seed} (simulated): {places.length:.0f} m, {len(places)} keyframes, {spent:.0f} s CPU"
    )
    print(f"  ATE {scans:.3f} m, of the wheels {odometry:.3f} m: {scans / odometry:.3f} times")
    recall = closed.found / closed.revisits if closed.revisits else float("nan")
    print(f"  loops {closed.loops}, false {closed.false}; recall {recall:.3f} of {closed.revisits} revisits")


def judge_days(seed: int) -> None:
    """Print the accuracy of localisation in the map of the yard on other days."""
    day, mapped = simulate_drive("yard", seed)
    with tempfile.TemporaryDirectory() as place:
        kept = Path(place) / "map"
        places = run_slam(day)[1]
        write_map(places, kept)
        for name, conditions in OTHER_DAYS.items():
            other, truth = simulate_drive("yard", seed + 1, **conditions)
            run = transect.run("LaserSlam", other, map=kept)
            poses = run["pose"].values
            ratio = len(poses) / len(run["located"].values)
            off = localisation_errors(places, mapped, poses, truth)
            errors = "never"
            if len(off):
                median, most, worst = np.percentile(off, [50, 95, 100])
                errors = f"{median:.3f} m, 95 % {most:.3f} m, worst {worst:.3f} m"
            wrong = np.count_nonzero(off > WRONG_POSE_M)
            print(f"yard, seed {seed}, {name}: {100 * ratio:.1f} % found; {errors}; {wrong} wrong")


def localisation_errors(
    places: PlaceMap, mapped: Trajectory, poses: Sequence[Pose], truth: Trajectory
) -> np.ndarray:
    """Return the errors of poses in a map, m, relative to the nearest keyframes."""
    keyframes = true_poses_at(mapped, places.t_ns)
    true = true_poses_at(truth, np.array([pose.t_ns for pose in poses], np.int64))
    found = np.array([se3.from_quaternion(p.orientation, p.position) for p in poses]).reshape(-1, 4, 4)
    apart = np.linalg.norm(keyframes[None, :, :2, 3] - true[:, None, :2, 3], axis=-1)
    nearest = apart.argmin(axis=1)
    estimated = se3.invert(places.poses[nearest]) @ found
    expected = se3.invert(keyframes[nearest]) @ true
    return np.linalg.norm((estimated - expected)[:, :2, 3], axis=1)


def main(arguments: Sequence[str] = ()) -> None:
    """Evaluate the named drives, by default all."""
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
