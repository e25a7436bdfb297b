"""Height maps of simulated Etna against its true ground, with true poses and with the lidar's own.

Simulated days; their seeds were drawn after the code was fixed. There is no
peer.
"""

import os
import tempfile
from pathlib import Path

import numpy as np

import transect
from benchmarks._harness import quality
from benchmarks.bench_lidar import DAY_SEEDS, etna, true_poses
from transect.evaluation.height_maps import map_errors
from transect.geometry import se3
from transect.nodes.cloud.dem_building import GroundElevation
from transect.nodes.lidar.scan_placement import ScanPlacement
from transect.recording import Recording
from transect.types import GridMap, Pose

MAX_RMSE_M = 0.05
"""m of RMSE, cells of 10 cm with at least 3 returns."""
UNTIL = "+20s"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for seed in DAY_SEEDS:
            day = etna(Path(os.environ.get("TRANSECT_BENCH_DAYS") or folder), seed).slice("+0s", UNTIL)
            bench(day, seed)


def bench(day: Recording, seed: int) -> None:
    """Both maps; the one by the lidar's poses begins at the true first pose."""
    ground: GridMap = day["truth/dem"][0].payload
    known = transect.run("DemGeneration/FromPoses", day, wire={"pose": "truth/trajectory"})
    show(f"Etna {seed}, DEM with true poses", ground, known["dem"].values[0], MAX_RMSE_M)
    poses = transect.run("LidarOdometry", day)["pose"].values
    show(f"Etna {seed}, DEM with LidarOdometry", ground, placed(day, poses), None)


def placed(day: Recording, poses: list[Pose], off: np.ndarray | None = None) -> GridMap:
    """The map of the scans at the lidar's poses, which begin at the true one; then moved by `off` (4, 4)."""
    start = true_poses(day)(np.array([poses[0].t_ns]))[0]
    start = start if off is None else off @ start
    placement, dem = ScanPlacement(), GroundElevation()
    found = {pose.t_ns: pose for pose in poses}
    for sample in day["Lidar"]:
        if (pose := found.get(int(sample.t_ns))) is None:
            continue
        turned, place = se3.to_quaternion(start @ se3.from_quaternion(pose.orientation, pose.position))
        cloud = sample.payload
        near = np.linalg.norm(cloud.points, axis=1) < 30.0
        fields = {name: values[near] for name, values in cloud.fields.items()}
        scan = type(cloud)(cloud.points[near], fields, cloud.t_ns, cloud.frame)
        if (made := placement(scan, [Pose(place, turned, pose.t_ns, "world", pose.child)])) is not None:
            dem(made)
    return dem.finish()


def show(name: str, ground: GridMap, dem: GridMap, limit: float | None) -> None:
    found = map_errors(ground, dem, register=False)
    quality(f"{name}, RMSE", found.statistics.rmse, "m", at_most=limit)
    print(f"    NMAD {found.statistics.nmad:.4f} m, 95 % {found.statistics.p95:.4f} m, bias "
          f"{found.statistics.bias:+.4f} m, {found.statistics.count} cells, lander and all")  # fmt: skip


if __name__ == "__main__":
    main()
