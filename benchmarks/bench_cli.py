"""Response time of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from ._harness import compare, duration

DATA_DIR = Path(os.environ.get("TRANSECT_TEST_DATA") or "../shared/data")
LIBRARIES = "import numpy, pyarrow"
"""What no command that opens a recording can do without."""
MAX_IMPORT_TIME_RATIO = 1.7
"""How many times as long as importing these libraries a command may take."""
RUN_COUNT = 20


def main() -> None:
    """Time `--help` alone, and commands on small files beside the import of numpy and pyarrow."""
    transect = Path(sys.executable).with_name("transect")
    duration("transect --help", lambda: _run(transect, "--help"), target=0.2)
    duration("python -c pass", lambda: _run(sys.executable, "-c", "pass"))
    kitti, bag = DATA_DIR / "trajectories_evo", DATA_DIR / "bags" / "evo" / "tf_example.bag"
    if not bag.exists():
        print("  no trajectories and bags here: see TRANSECT_TEST_DATA")
        return
    peer = partial(_run, sys.executable, "-c", LIBRARIES)
    for name, command in {
        "transect eval, KITTI 00": ("eval", kitti / "KITTI_00_ORB.txt", kitti / "KITTI_00_gt.txt"),
        "transect info, small bag": ("info", bag),
    }.items():
        with tempfile.TemporaryDirectory() as cache:
            ours = partial(_run, transect, *command, cache=cache)
            ours()  # fills the cache
            compare(f"{name} / {LIBRARIES}", ours, peer, 1 / MAX_IMPORT_TIME_RATIO, RUN_COUNT, median)


def _run(*command: str | Path, cache: str = "") -> None:
    """Run a command as installed: with compiled modules, and a cache of its own."""
    unwanted = ("PYTHONDONTWRITEBYTECODE", "TRANSECT_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    if cache:
        environment["TRANSECT_CACHE_DIR"] = cache
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
