"""Lidar odometry and kiss-icp in its default configuration: both on one core, in turn for each scan.

Code is warm: the first scans of a data set are processed twice. The whole compound is also timed, run by
`transect.run` on two cores, with files read and outputs stored.

Drift is the mean translation error over all segments of 5, 10 and 20 m, starting at every scan. kiss-icp's
pose is that at the end of a scan, ours that at its time; each is compared with the ground truth at its own
time. Simulated days are cached in `TRANSECT_BENCH_DAYS` if that is set.

Etna's days are simulated; their seeds were drawn after the code was fixed. The other two are real. On Newer
College kiss-icp ends nearer to the ground truth than ours, and RADIATE has no ground truth.
"""

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from kiss_icp.config import load_config
from kiss_icp.kiss_icp import KissICP
from threadpoolctl import threadpool_info, threadpool_limits

import transect
from benchmarks._harness import quality
from transect.algorithms.clouds.deskewing import point_offsets
from transect.geometry import se3
from transect.geometry.interpolation import Limits, interpolate_poses
from transect.nodes.lidar.scan_odometry import VoxelGaussians
from transect.recording import Recording, Stream
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.types import PointCloud

DAY_SEEDS = (311, 312, 313)
DURATION_S = 75.0
SEGMENT_LENGTHS_M = (5.0, 10.0, 20.0)
MAX_DRIFT_RATIO, MIN_SPEED_RATIO, MAX_ETNA_DRIFT_PERCENT = 0.95, 0.9, 1.0
"""Limits relative to kiss-icp's drift and to its scans per second, and of the drift on Etna."""
WARM_UP_SCANS, JOB_COUNT = 3, 2
DATA_DIR = Path(os.environ.get("TRANSECT_TEST_DATA") or "../shared/data")


@dataclass
class TimedPoses:
    """Poses (n, 4, 4) of one odometry, and its CPU time in s."""

    poses: list[np.ndarray] = field(default_factory=list)
    cpu: float = 0.0

    def timed(self, step) -> None:
        begin = time.process_time()
        pose = step()
        self.cpu += time.process_time() - begin
        self.poses.append(pose)


def main() -> None:
    cores = os.sched_getaffinity(0)
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        pools = ", ".join(f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info())
        print(f"  one core of {len(cores)} except for the compound; threads: {pools}")
        bench_etna(Path(os.environ.get("TRANSECT_BENCH_DAYS") or folder))
        bench_radiate()
        bench_newer_college()


def bench_etna(folder: Path) -> None:
    """Simulated Etna."""
    ours, peer, cpu = [], [], np.zeros(2)
    scans = 0
    for seed in DAY_SEEDS:
        day = etna(folder, seed)
        stream, truth = day["Lidar"], true_poses(day)
        a, b = run_both(stream)
        t_ns = stream.t_ns
        ends = [t_ns + part for part in (0, 100_000_000, 200_000_000)]
        drifts = np.concatenate(segments(np.array(a.poses), truth(t_ns)))
        # The time of a peer's pose within the scan is not documented: the one with the least error is used.
        theirs = min((np.concatenate(segments(np.array(b.poses), truth(t))) for t in ends), key=np.mean)
        quality(f"Etna {seed}, {len(t_ns)} scans / kiss-icp", drifts.mean(), "%", peer=theirs.mean())
        ours.append(drifts)
        peer.append(theirs)
        cpu += a.cpu, b.cpu
        scans += len(t_ns)
    pooled, theirs = float(np.concatenate(ours).mean()), float(np.concatenate(peer).mean())
    quality("Etna, drift of all seeds", pooled, "%", at_most=MAX_ETNA_DRIFT_PERCENT)
    quality("Etna, drift of all seeds / kiss-icp", pooled, "%", at_most=MAX_DRIFT_RATIO, peer=theirs)
    speed("Etna", scans, *cpu)
    time_compound(f"Etna {DAY_SEEDS[-1]}", etna(folder, DAY_SEEDS[-1]), "Lidar", a.cpu)


def bench_radiate() -> None:
    """Compare the final distance on fourteen scans in fog, without ground truth."""
    if not (DATA_DIR / "radiate_fog").is_dir():
        return
    recording = transect.open(DATA_DIR / "radiate_fog")
    stream = recording["velo_lidar"]
    a, b = run_both(stream)
    ends = [float(np.linalg.norm(side.poses[-1][:3, 3])) for side in (a, b)]
    quality("RADIATE fog, end (no truth) / kiss-icp", ends[0], "m", peer=ends[1])
    speed("RADIATE fog", len(stream), a.cpu, b.cpu)
    time_compound("RADIATE fog", recording, "velo_lidar", a.cpu)


def bench_newer_college() -> None:
    """Evaluate the end of five scans with ground truth: too short for segments."""
    if not (DATA_DIR / "lidar_gtsam_points").is_dir():
        return
    recording = transect.open(DATA_DIR / "lidar_gtsam_points")
    graph = recording["newer_01/graph"]
    true = se3.from_quaternion(graph.array("qx", "qy", "qz", "qw"), graph.array("x", "y", "z"))
    true = se3.invert(true[0]) @ true
    a, b = run_both(recording["newer_01/planes"])
    ends = [float(np.linalg.norm(side.poses[-1][:3, 3] - true[-1][:3, 3])) for side in (a, b)]
    quality("Newer College, end of 4.3 m / kiss-icp", ends[0], "m", peer=ends[1])
    speed("Newer College", len(true), a.cpu, b.cpu)
    time_compound("Newer College", recording, "newer_01/planes", a.cpu)


def run_both(stream: Stream) -> tuple[TimedPoses, TimedPoses]:
    """Run both odometries on the clouds of a stream in turn, on one core."""
    steps = np.diff(stream.t_ns)
    period = int(steps.min()) if len(steps) else 1
    with one_core():
        play((sample.payload for sample in islice(stream, WARM_UP_SCANS)), period)
        return play((sample.payload for sample in stream), period)


def play(clouds: Iterable[PointCloud], period: int) -> tuple[TimedPoses, TimedPoses]:
    ours, peer = VoxelGaussians(), KissICP(load_config(None))
    a, b = TimedPoses(), TimedPoses()
    for cloud in clouds:
        points = np.asarray(cloud.points, dtype=np.float64)
        points = points[np.isfinite(points).all(axis=1)]
        offsets = point_offsets(cloud, period)
        stamps = np.zeros(0) if offsets is None else offsets / period
        a.timed(lambda cloud=cloud: matrix(ours.process(cloud), a))
        b.timed(lambda points=points, stamps=stamps: register_kiss_icp(peer, points, stamps))
    return a, b


@contextmanager
def one_core() -> Iterator[None]:
    """Restrict all threads to one core: kiss-icp's own limit is not effective."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def time_compound(name: str, recording: Recording, stream: str, bare: float) -> None:
    """Run the compound on a recording; compare its speed with that of the odometer alone."""
    scans, cpu, wall = len(recording[stream]), time.process_time(), time.perf_counter()
    transect.run("LidarOdometry", recording, wire={"cloud": stream}, jobs=JOB_COUNT)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"  {name}, flow: {1e3 * cpu / scans:.1f} ms of CPU a scan, bare {1e3 * bare / scans:.1f} ms")
    quality(f"{name}, flow with {JOB_COUNT} jobs / bare", scans / wall, "1/s", peer=scans / bare)


def matrix(found, side: TimedPoses) -> np.ndarray:
    """Return the pose (4, 4) of a scan; the last one if it was rejected."""
    if found.pose is None:
        return side.poses[-1]
    return se3.from_quaternion(found.pose.orientation, found.pose.position)


def register_kiss_icp(peer: KissICP, points: np.ndarray, stamps: np.ndarray) -> np.ndarray:
    peer.register_frame(points, stamps)
    return peer.last_pose.copy()


def speed(name: str, scans: int, ours: float, peer: float) -> None:
    """Report scans per second of CPU, and ms per scan."""
    print(f"  {name}: {1e3 * ours / scans:.1f} ms of CPU a scan, kiss-icp {1e3 * peer / scans:.1f} ms")
    quality(f"{name}, scans/s / kiss-icp", scans / ours, "1/s", at_least=MIN_SPEED_RATIO, peer=scans / peer)


def etna(folder: Path, seed: int) -> Recording:
    """Return a day on Etna with clouds and ground truth; simulated once, then read from disk."""
    path = folder / f"etna-{seed}-lidar"
    if not path.is_dir():
        write_day(
            simulate("etna", WorldOptions(seconds=DURATION_S, seed=seed, streams=("Lidar", "Gnss/Imu"))), path
        )
    return transect.open(path)


def true_poses(day: Recording):
    """Return a function from times (n,) to ground truth poses (n, 4, 4) of the lidar."""
    truth = day["truth/trajectory"]
    mount = day.frames.lookup("Platform", "Lidar")
    places, turns = truth.array("x", "y", "z"), truth.array("qx", "qy", "qz", "qw")

    def at(t_ns: np.ndarray) -> np.ndarray:
        place, turned = interpolate_poses(
            truth.t_ns, places, turns, t_ns, Limits(beyond_ns=1_000_000_000, otherwise="error")
        )
        return se3.from_quaternion(turned, place) @ mount

    return at


def segments(found: np.ndarray, true: np.ndarray) -> list[np.ndarray]:
    """Return the errors of all segments in percent, for each length."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(true[:, :3, 3], axis=0), axis=1))])
    percent = []
    for length in SEGMENT_LENGTHS_M:
        last = np.searchsorted(along, along + length)
        first = np.flatnonzero(last < len(along))
        last = last[first]
        error = se3.invert(se3.invert(true[first]) @ true[last]) @ (se3.invert(found[first]) @ found[last])
        percent.append(100 * np.linalg.norm(error[:, :3, 3], axis=1) / length)
    return percent


if __name__ == "__main__":
    main()
