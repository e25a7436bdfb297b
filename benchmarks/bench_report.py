"""The report of a drive of 25 minutes with a stereo camera: how long it takes, and how large it is.

The drive is simulated without images; the images of two seconds are repeated, 45,000 in all.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import _harness
from transect.simulation.day import WorldOptions, simulate, write_day

DURATION_S, RATE_HZ, SIMULATED_S = 1500.0, 15, 2.0
BYTES_PER_MB = 1e6


def make_drive(folder: Path, seconds: float) -> Path:
    """Write the drive, in the layout of Rosario."""
    numbers = ("Odometry", "Imu", "Gps/*")
    write_day(simulate("rosario", WorldOptions(seconds, 1, streams=numbers)), folder / "drive")
    write_day(simulate("rosario", WorldOptions(SIMULATED_S, 1, streams=("Zed/*",))), folder / "short")
    images = next((folder / "short").rglob("zed"))
    target = next((folder / "drive").rglob("imu.log")).parent / "zed"
    target.mkdir(exist_ok=True)
    for side in ("left", "right"):
        files = sorted(images.glob(f"{side}_*.png"))
        first = int(files[0].stem.partition("_")[2].replace(".", ""))
        for k in range(int(seconds * RATE_HZ)):
            t_us = first + k * 1_000_000 // RATE_HZ
            name = f"{side}_{t_us // 10**6}.{t_us % 10**6:06d}.png"
            os.link(files[k % len(files)], target / name)
    return folder / "drive"


def report(drive: Path, out: Path, *options: str) -> None:
    """Write a report as the command does."""
    start = "from transect.cli import main; main()"
    command = [sys.executable, "-c", start, "report", str(drive), "-o", str(out), *options]
    subprocess.run(command, check=True, capture_output=True)


def main(seconds: float = DURATION_S) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRANSECT_CACHE_DIR"] = str(Path(folder) / "cache")
        drive, page = make_drive(Path(folder), seconds), Path(folder) / "report.html"
        what = f"report of {seconds / 60:g} min"
        report(drive, page, "--no-check")  # the texts are parsed now
        _harness.duration(f"{what}, no checks", lambda: report(drive, page, "--no-check"), repeat=1)
        _harness.duration(f"{what}, checks", lambda: report(drive, page), repeat=1)
        _harness.quality(
            f"{what}, size with pictures", page.stat().st_size / BYTES_PER_MB, "MB", at_most=12.0
        )
        _harness.duration(f"{what}, checked before", lambda: report(drive, page), repeat=1)
        report(drive, page, "--pictures", "0")
        _harness.quality(
            f"{what}, size without pictures", page.stat().st_size / BYTES_PER_MB, "MB", at_most=3.0
        )


if __name__ == "__main__":
    main()
