"""What provenance costs a run: all that hashes files, tables and code, as a part of the run's time.

The functions that do nothing else are timed where they are called, on any thread, so that neither the
noise of the machine nor a second run beside it counts. The first run has an empty cache, the second one finds
the hashes of unchanged files by their size, times and inode. A street is real (KITTI 06, revisit); the other
recordings are simulated, and rendered before.
"""

import importlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any
from unittest import mock

import transect
from benchmarks._harness import quality
from transect.recording import Stream
from transect.recording.file_hashes import ReadLog

DATA_DIR = Path(os.environ.get("TRANSECT_TEST_DATA") or "../shared/data")
STREET_DIR = DATA_DIR / "kitti_06_revisit"
MAX_COST_PERCENT = 5.0
MODULES = ("transect.engine.runs", "transect.engine.provenance")
TIMED = ("hash_calibration", "hash_of_package", "code_of_plugins", "files_of", "summarise")


@contextmanager
def timed() -> Generator[Callable[[], float]]:
    """Give the seconds that were spent on provenance in the block so far."""
    spent, lock, inside = 0.0, threading.Lock(), threading.local()

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal spent
            if getattr(inside, "busy", False):
                return function(*args, **kwargs)
            inside.busy, began = True, time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                inside.busy = False
                with lock:
                    spent += time.thread_time() - began

        return call

    whole = vars(Stream)["sha256"]
    with (
        mock.patch.object(ReadLog, "add", wrapped(ReadLog.add)),
        mock.patch.object(whole, "func", wrapped(whole.func)),
    ):
        patches = [
            mock.patch.object(module, name, wrapped(getattr(module, name)))
            for module in map(importlib.import_module, MODULES)
            for name in TIMED
            if hasattr(module, name)
        ]
        for patch in patches:
            patch.start()
        try:
            yield lambda: spent
        finally:
            for patch in patches:
                patch.stop()


def measure(name: str, compound: str, path: Path) -> None:
    """Run a compound twice with a new cache, and print what provenance took of each run."""
    with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, TRANSECT_CACHE_DIR=cache):
        for which in ("files not hashed before", "files hashed before"):
            recording = transect.open(path)
            with tempfile.TemporaryDirectory() as out, timed() as spent:
                began = time.process_time()
                made = transect.run(compound, recording, out=Path(out) / "run")
                whole = time.process_time() - began
            size = sum(file.size for file in made.inputs) / 1e6
            label = f"{name}: provenance of {len(made.inputs)} files, {size:.0f} MB, {which}"
            quality(label, 100 * spent() / whole, "% of the CPU time", at_most=MAX_COST_PERCENT)


def main() -> None:
    """Run the benchmark."""
    measure("VisualOdometry, KITTI 06 revisit", "VisualOdometry", STREET_DIR)
    with tempfile.TemporaryDirectory() as folder:
        day, scans = Path(folder) / "day", Path(folder) / "scans"
        simulate_to(
            "rosario",
            day,
            "--seconds",
            "60",
            "--streams",
            "Odometry",
            "--streams",
            "Imu",
            "--streams",
            "Gps/*",
        )
        simulate_to(
            "etna", scans, "--seconds", "10", "--scale", "0.5", "--streams", "Lidar*", "--streams", "Gnss*"
        )
        measure("PoseFusion, rosario simulated", "PoseFusion", day)
        measure("LidarOdometry, etna simulated", "LidarOdometry", scans)


def simulate_to(world: str, out: Path, *options: str) -> None:
    """Write a simulated recording."""
    command = [sys.executable, "-P", "-m", "transect", "simulate", world, "-o", str(out), *options]
    subprocess.run(command, check=True, capture_output=True)
