"""Run kiss-slam on the clouds of a folder, in its own environment: `python _kiss_slam.py FOLDER METRES`.

FOLDER has `points.npy` (n, 3), `stamps.npy` (n,) within each scan from 0 to 1, and `sizes.npy` of the scans;
METRES is its distance between local maps. Poses are written to `poses.npy`, and one line of JSON is printed.
"""

import json
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np


def main(folder: Path, metres: float) -> None:
    from kiss_slam.config import load_config  # installed in the other environment only
    from kiss_slam.slam import KissSLAM

    points, stamps = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("points", "stamps"))
    config = load_config(None)
    config.local_mapper.splitting_distance = metres
    slam, end, cpu = KissSLAM(config), 0, 0.0
    with redirect_stdout(sys.stderr):
        for size in np.load(folder / "sizes.npy"):
            begin, end = end, end + int(size)
            scan = np.array(points[begin:end], np.float64), np.array(stamps[begin:end], np.float64)
            start = time.process_time()
            slam.process_scan(*scan)
            cpu += time.process_time() - start
        start = time.process_time()
        slam.generate_new_node()
        slam.local_map_graph.erase_last_local_map()
        poses, _ = slam.fine_grained_optimization()
        cpu += time.process_time() - start
    np.save(folder / "poses.npy", np.array(poses))
    print(json.dumps({"loops": len(slam.closures), "cpu": cpu}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
