"""Trajectories beside evo, in the library and as commands; Allan deviation beside allantools.

The long path is synthetic; KITTI 00 is real.
"""

import os
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks._harness import compare, duration
from transect.evaluation import absolute_error, allan_deviation, associate, relative_error
from transect.geometry import rotations
from transect.types import Trajectory

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import allantools
    from evo.core import metrics, sync
    from evo.core.trajectory import PoseTrajectory3D

POSE_COUNT, SAMPLE_COUNT = 100_000, 1_000_000
MIN_LIBRARY_SPEEDUP, MIN_KITTI_SPEEDUP, MIN_LONG_PATH_SPEEDUP, MIN_ALLAN_SPEEDUP = 80.0, 5.0, 8.0, 4.0
"""How many times faster than the peer ours must be."""
DATA_DIR = Path(os.environ.get("TRANSECT_TEST_DATA") or "../shared/data") / "trajectories_evo"
BIN_DIR = Path(sys.executable).parent


def pair(poses: int) -> tuple[Trajectory, Trajectory]:
    """A random walk at 100 Hz, and the same with noise."""
    rng = np.random.default_rng(0)
    turns = rotations.quaternion_from_rotation_vector(
        np.cumsum(rng.normal(scale=0.01, size=(poses, 3)), axis=0)
    )
    places = np.cumsum(rng.normal(scale=0.1, size=(poses, 3)), axis=0)
    t_ns = 1_600_000_000_000_000_000 + np.arange(poses) * 10_000_000
    noise = rng.normal(scale=0.05, size=places.shape)
    return Trajectory(t_ns, places, turns), Trajectory(t_ns, places + noise, turns)


def main() -> None:
    pools = ", ".join(f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info())
    print(f"  threads: {pools}")
    reference, estimate = pair(POSE_COUNT)
    bench_library(reference, estimate)
    bench_allan()
    with tempfile.TemporaryDirectory() as folder:
        bench_commands(Path(folder), reference, estimate)


def bench_library(reference: Trajectory, estimate: Trajectory) -> None:
    def ours() -> tuple[float, float]:
        pairs = associate(reference, estimate)
        return absolute_error(pairs).statistics.rmse, relative_error(pairs).statistics.rmse

    def peer() -> tuple[float, float]:
        theirs = [
            PoseTrajectory3D(each.positions, each.orientations[:, [3, 0, 1, 2]], each.t_ns / 1e9)
            for each in (reference, estimate)
        ]
        matched = sync.associate_trajectories(*theirs)
        matched[1].align(matched[0])
        found = []
        part = metrics.PoseRelation.translation_part
        for metric in (metrics.APE(part), metrics.RPE(part, 1, metrics.Unit.frames)):
            metric.process_data(matched)
            found.append(metric.get_all_statistics()["rmse"])
        return found[0], found[1]

    np.testing.assert_allclose(ours(), peer(), rtol=1e-9)
    compare(f"{POSE_COUNT:,} poses, ATE + RPE / evo", ours, peer, target=MIN_LIBRARY_SPEEDUP, repeat=3)


def bench_allan() -> None:
    signal = np.random.default_rng(0).normal(size=SAMPLE_COUNT)
    taus = allan_deviation(signal, 100.0).tau  # loads the compiled loop, too

    def peer() -> np.ndarray:
        return allantools.oadev(signal - signal.mean(), 100.0, data_type="freq", taus=taus)[1]

    np.testing.assert_allclose(allan_deviation(signal, 100.0).deviation, peer(), rtol=1e-12)
    compare(
        f"Allan, {SAMPLE_COUNT:,} samples / allantools",
        lambda: allan_deviation(signal, 100.0),
        peer,
        MIN_ALLAN_SPEEDUP,
    )


def bench_commands(folder: Path, reference: Trajectory, estimate: Trajectory) -> None:
    """Commands as they are installed: both with their bytecode, which the first run of each writes."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode", "TRANSECT_CACHE_DIR": f"{folder}/cache"}

    def run(*command: str | Path) -> None:
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)

    def both(name: str, form: str, files: tuple[Path, Path], target: float, repeat: int) -> None:
        sides = (
            partial(run, BIN_DIR / "transect", "eval", *files),
            partial(run, BIN_DIR / "evo_ape", form, *files, "-a"),
        )
        for side in sides:
            side()
        compare(name, *sides, target, repeat)

    kitti = (DATA_DIR / "KITTI_00_gt.txt", DATA_DIR / "KITTI_00_ORB.txt")
    duration("python -c 'import numpy', the floor of both", lambda: run(sys.executable, "-c", "import numpy"))
    if kitti[0].is_file():
        both("transect eval / evo_ape, KITTI 00", "kitti", kitti, MIN_KITTI_SPEEDUP, 5)
    tum = tuple(
        _written(folder / f"{name}.tum", path) for name, path in (("ref", reference), ("est", estimate))
    )
    both(f"transect eval / evo_ape, {POSE_COUNT:,} poses", "tum", tum, MIN_LONG_PATH_SPEEDUP, 3)


def _written(file: Path, path: Trajectory) -> Path:
    """Write a TUM file."""
    seconds = (path.t_ns // 1_000_000).astype(np.float64) / 1e3
    np.savetxt(file, np.column_stack([seconds, path.positions, path.orientations]), "%.9f")
    return file


if __name__ == "__main__":
    main()
