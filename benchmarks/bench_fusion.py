"""PoseFusion: consistency of its filter, and drift without GNSS.

NEES of position on simulated days on Etna (wheels, IMU, RTK); the ratio of NIS below the 95 % limit on
the bags of Husky and Jackal (the noise adapts to the innovations; `adaptation_gain=0` uses the declared
noise); and the drift of wheels, IMU and lidar odometry over all segments of 5, 10 and 20 m. The gaps of
Rosario are in `bench_rosario_gaps`. Simulated days are kept in `TRANSECT_BENCH_DAYS`, if set.

Etna's days are simulated with seeds used in development. Adaptive noise is scaled until 95 % of the
innovations fit, so that NIS near 95 % proves little; rows with `adaptation_gain=0` use the declared noise.
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.stats import chi2
from threadpoolctl import threadpool_info, threadpool_limits

import transect
from benchmarks._harness import quality
from benchmarks.bench_lidar import segments
from transect.engine.output_files import Output
from transect.geometry import geodesy, se3
from transect.geometry.interpolation import interpolate_columns, interpolate_poses
from transect.recording import Recording
from transect.simulation.day import WorldOptions, simulate, write_day

FILTER, WITH_LIDAR = "PoseFusion/ErrorStateFilter", "PoseFusion/LidarErrorStateFilter"
NAV = ("Platform/MotorEncoders", "Gnss/Imu", "Gnss/Pose")
BLIND = ("Platform/MotorEncoders", "Gnss/Imu", "Lidar", "truth/trajectory")
NEES_SEEDS, LIDAR_SEEDS = range(201, 221), (104, 105, 106)
NEES_SECONDS, LIDAR_SECONDS, SETTLING_S = 20.0, 75.0, 5.0
DATA_DIR = Path(os.environ.get("TRANSECT_TEST_DATA") or "../shared/data") / "bags" / "robot_localization"


def main() -> None:
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        pools = ", ".join(f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info())
        print(f"  threads: {pools}")
        bench_bags()
        bench_nees(Path(folder))
        bench_drift(Path(os.environ.get("TRANSECT_BENCH_DAYS") or folder))


def bench_bags() -> None:
    for bag, robot in (("test1", "Husky"), ("test2", "Jackal")):
        begin = time.process_time()
        adaptive = transect.run(FILTER, DATA_DIR / f"{bag}.bag")["innovations"].values
        spent = time.process_time() - begin
        fixed = transect.run(FILTER, DATA_DIR / f"{bag}.bag", set={"fusion.adaptation_gain": 0.0})[
            "innovations"
        ].values
        for sensor in ("fix", "odometry"):
            for innovations, how, least in ((adaptive, "", 90.0), (fixed, ", adaptation_gain=0", None)):
                counts = {
                    what: sum(each[f"{sensor}_{what}"] for each in innovations) for what in ("count", "below")
                }
                if counts["count"]:
                    ratio = 100 * counts["below"] / counts["count"]
                    quality(f"{robot}: NIS of {sensor} below the 95 % limit{how}", ratio, "%", at_least=least)
        print(f"  {robot}: {1e3 * spent / len(adaptive):.1f} ms CPU per tick of 0.1 s")


def bench_nees(folder: Path) -> None:
    """Mean NEES of position (three degrees of freedom) over seeds and times."""
    found = [position_nees(etna(folder, seed, NEES_SECONDS, NAV)) for seed in NEES_SEEDS]
    low, high = chi2.ppf([0.025, 0.975], 3 * len(found)) / len(found)
    quality(
        f"Etna: mean NEES of {len(found)} seeds, at least {low:.2f}", float(np.mean(found)), "", at_most=high
    )


def position_nees(recording: Recording) -> float:
    run = transect.run(FILTER, recording)
    pose, covariance = run["pose"], run["covariance"]
    place = recording.robot.constants["world_origin"]
    world = np.array([place["latitude"], place["longitude"], place["altitude"]])
    first = recording["Gnss/Pose"].array("lat", "lon", "alt")[0]
    truth = recording["truth/trajectory"]
    true = interpolate_columns(truth.t_ns, truth.array("x", "y", "z"), pose.t_ns)
    e = np.stack([each.position for each in pose.values]) + geodesy.local_from_geodetic(first, world) - true
    covariances = np.stack(covariance.values)[:, :3, :3]
    nees = np.einsum("ni,ni->n", e, np.linalg.solve(covariances, e[..., None])[..., 0])
    return float(nees[pose.t_ns > pose.t_ns[0] + SETTLING_S * 1e9].mean())


def bench_drift(folder: Path) -> None:
    found = []
    for seed in LIDAR_SEEDS:
        recording = etna(folder, seed, LIDAR_SECONDS, ("Platform/*", "Gnss/*", "Lidar"), "-blind")
        run = transect.run(WITH_LIDAR, recording.select(*BLIND))
        found.append(drift_of(run["pose"], recording))
        print(f"  seed {seed}: {found[-1]:.2f} %")
    quality("Etna: wheels, IMU and lidar odometry, no satellites", float(np.mean(found)), "%", at_most=1.0)


def drift_of(poses: Output, recording: Recording) -> float:
    """Mean translation error in percent over all segments of 5, 10 and 20 m, from every pose on."""
    truth = recording["truth/trajectory"]
    positions, orientations = truth.array("x", "y", "z"), truth.array("qx", "qy", "qz", "qw")
    position, orientation = interpolate_poses(truth.t_ns, positions, orientations, poses.t_ns)
    true = se3.from_quaternion(orientation, position)
    found = np.stack([se3.from_quaternion(each.orientation, each.position) for each in poses.values])
    return float(np.concatenate(segments(found, true)).mean())


def etna(
    folder: Path, seed: int, seconds: float, streams: tuple[str, ...], suffix: str = "-nav"
) -> Recording:
    """Return a simulated day, cached in the folder."""
    path = folder / f"etna-{seed}{suffix}"
    if not path.exists():
        write_day(simulate("etna", WorldOptions(seed=seed, seconds=seconds, streams=streams)), path)
    return transect.open(path)


if __name__ == "__main__":
    main()
