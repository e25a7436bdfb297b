"""LidarSlam on simulated Etna, out and back and out again, beside its own odometry; and on real pairs.

The days are simulated; their seeds were not looked at before. The route has revisits the same way and the
opposite one. A loop is right within 0.5 m and 3 degrees of the truth. Days are kept in `TRANSECT_BENCH_DAYS`,
where that is set.
"""

import os
import tempfile
from pathlib import Path

import numpy as np

import transect
from benchmarks._harness import quality
from benchmarks._loops import judge_loops
from benchmarks.bench_lidar import DATA, true_poses
from transect.engine.run import Run
from transect.geometry import se3
from transect.nodes.registration._small_gicp import thin_points
from transect.nodes.slam.lidar import LidarRecogniser
from transect.recording import Recording
from transect.simulation.day import Options, simulate, write_day
from transect.types import PointCloud

SEEDS = (90417, 55213, 18822)
SECONDS, RECENT = 185.0, 15.0
RIGHT = 0.5, np.radians(3.0)
CLOSED, RECALL = 0.4, 80.0
OUT = "+52s"
"""Until then the rover only drives away: there is no loop."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            bench_day(etna(Path(os.environ.get("TRANSECT_BENCH_DAYS") or folder), seed), seed)
    bench_pairs()


def etna(folder: Path, seed: int) -> Recording:
    """A day on Etna, out and back and out again, with clouds of half the points; written once."""
    path = folder / f"r{seed}"
    if not path.is_dir():
        how = Options(
            seconds=SECONDS,
            seed=seed,
            scale=0.5,
            streams=("Lidar", "Gnss/Imu"),
            conditions={"route": "return"},
        )
        write_day(simulate("etna", how), path)
    return transect.open(path)


def bench_day(day: Recording, seed: int) -> None:
    """A map of the whole day; and of its beginning, without a loop."""
    run, true = transect.run("LidarSlam", day), true_poses(day)
    places = run["map"].values[0]
    before, after = error(run, "odometry", true), error(run, "trajectory", true)
    quality(f"Etna {seed}, ATE / its odometry's", after, "m", at_most=CLOSED, peer=before)
    loops = judge_loops(places, true(places.t_ns), RECENT)
    right = (loops.shift < RIGHT[0]) & (loops.turn < RIGHT[1])
    quality(f"Etna {seed}, {len(right)} loops, right", 100 * float(right.mean()), "%", at_least=100.0)
    for name, (seen, all_) in (("same way", loops.same), ("opposite way", loops.opposite)):
        limit = RECALL if name == "same way" else None
        quality(
            f"Etna {seed}, {all_} revisits the {name}, seen", 100 * seen / max(all_, 1), "%", at_least=limit
        )
    size = sum(sum(array.nbytes for array in seen.values()) for seen in places.observations)
    quality(f"Etna {seed}, map of 100 m", size / 1e6 / places.length * 100, "MB")
    out = transect.run("LidarSlam", day.slice("+0s", OUT))
    quality(
        f"Etna {seed}, no loop, ATE / its odometry's", error(out, "trajectory", true), "m", at_most=1.001,
        peer=error(out, "odometry", true),
    )  # fmt: skip


def error(run: Run, port: str, true) -> float:
    """RMSE of positions, m, after the best rigid alignment."""
    if port == "trajectory":
        found = run[port].values[0]
        t_ns, places = found.t_ns, found.positions
    else:
        t_ns = np.array([pose.t_ns for pose in run[port].values])
        places = np.array([pose.position for pose in run[port].values])
    goal = true(t_ns)[:, :3, 3]
    a, b = places - places.mean(axis=0), goal - goal.mean(axis=0)
    u, _, vt = np.linalg.svd(b.T @ a)
    turn = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    return float(np.sqrt(np.mean(np.sum((a @ turn.T - b) ** 2, axis=1))))


def bench_pairs() -> None:
    """Real scans: those of one place are found in each other without a guess, those of others are not."""
    clouds = real_clouds()
    right = wrong = refused = pairs = 0
    for name, (group, points, pose) in clouds.items():
        for other, (theirs, others, place) in clouds.items():
            if other <= name:
                continue
            loop = find(points, others)
            if group != theirs:
                wrong += loop is not None
                refused += loop is None
            elif pose is not None and place is not None:
                pairs += 1
                off = None if loop is None else se3.invert(loop) @ se3.invert(pose) @ place
                right += off is not None and float(np.linalg.norm(off[:3, 3])) < RIGHT[0]
                wrong += off is not None and float(np.linalg.norm(off[:3, 3])) >= RIGHT[0]
    if clouds:
        quality(f"real, {pairs} pairs of one place, found", 100 * right / max(pairs, 1), "%")
        quality(f"real, {refused + wrong} others, or found wrongly", float(wrong), "", at_most=0)


def find(old: np.ndarray, new: np.ndarray) -> np.ndarray | None:
    """T_old_new of two clouds, by LidarSlam's own recognition; None if it does not believe it."""
    edge = 0.3
    recogniser = LidarRecogniser(edge)
    recogniser.add(0, {"points": thin_points(old, edge).astype(np.float32)})
    loop = recogniser.verify(0, {"points": thin_points(new, edge).astype(np.float32)}, None)
    return None if loop is None else loop.T_old_new


def real_clouds() -> dict[str, tuple[str, np.ndarray, np.ndarray | None]]:
    """Clouds by name: of which place, points, and pose where it is known."""
    found: dict[str, tuple[str, np.ndarray, np.ndarray | None]] = {}
    if not (DATA / "lidar_gtsam_points").is_dir():
        return found
    recording = transect.open(DATA / "lidar_gtsam_points")
    graph = recording["newer_01/graph"]
    poses = se3.from_quaternion(graph.array("qx", "qy", "qz", "qw"), graph.array("x", "y", "z"))
    for k, sample in enumerate(recording["newer_01/planes"]):
        found[f"newer {k}"] = "newer", np.asarray(sample.payload.points, np.float64), poses[k]
    for name, place in (("lidar_small_gicp", "kitti"), ("radiate_fog", "fog")):
        if (DATA / name).is_dir():
            for stream in transect.open(DATA / name):
                if stream.type is PointCloud and len(stream):
                    points = np.asarray(stream[0].payload.points, np.float64)
                    found[f"{place} {stream.name}"] = place, points, None
    return found


if __name__ == "__main__":
    main()
