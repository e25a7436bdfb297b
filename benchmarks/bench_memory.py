"""Text logs larger than memory should be: what `transect info` takes to open them for the first time.

Each log is made, opened and removed again; measured in a process of its own. Anonymous memory is what the
process alone uses. In the largest resident set are also pages of the cache's files.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import _harness
from transect.datasets.insight.products.columns import NAMES_58

BYTES_PER_GB = 10**9
FILE_SIZES_GB = (1.8, 3.0)
"""GB of the plain CSV file; the other logs have the first of them."""
BLOCK_ROWS = 50_000
START_NS, STEP_NS = 1_700_000_000 * BYTES_PER_GB, 5_000_000
_INFO = """
import re, resource, sys, threading, time
most = 0
def watch():
    global most
    while True:
        most = max(most, int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read())[1]))
        time.sleep(0.01)
threading.Thread(target=watch, daemon=True).start()
from transect.cli import command
command.main(["info", sys.argv[1]], standalone_mode=False)
print("measured", most * 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@dataclass(frozen=True)
class Log:
    """A log with lines of equal length.

    Attributes
    ----------
    file : str
        Its path in the recording.
    head : str
        Lines before the first row.
    row : str
        A row; `T` stands for the digits of its time in ns, `S` for seconds with nine decimals.
    beside : mapping
        Other files.
    packed : bool
        Whether it stands deflated in a zip.
    """

    file: str
    head: str
    row: str
    beside: tuple[tuple[str, str], ...] = ()
    packed: bool = False

    def write(self, folder: Path, size: float) -> Path:
        """Write about `size` bytes; return what is to be opened."""
        path = folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        for name, text in self.beside:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        with path.open("wb") as file:
            for block in self._blocks(size):
                file.write(block)
        if not self.packed:
            return folder if self.beside or "/" in self.file else path
        with zipfile.ZipFile(folder / "day.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name in (self.file, *(name for name, _ in self.beside)):
                archive.write(folder / name, name)
        path.unlink()
        return folder / "day.zip"

    def _blocks(self, size: float) -> Iterator[bytes]:
        yield self.head.encode()
        line = self.row.replace("T", "t" * 19).replace("S", "t" * 10 + "." + "t" * 9).encode() + b"\n"
        rows = np.tile(np.frombuffer(line, np.uint8), (BLOCK_ROWS, 1))
        digits = np.flatnonzero(rows[0] == ord("t"))
        numbers = np.flatnonzero(rows[0] == ord("#"))
        rng = np.random.default_rng(1)
        for first in range(0, int(size / len(line)), BLOCK_ROWS):
            t_ns = START_NS + STEP_NS * (first + np.arange(BLOCK_ROWS))
            for place, column in enumerate(digits):
                rows[:, column] = ord("0") + t_ns // 10 ** (18 - place) % 10
            rows[:, numbers] = rng.integers(ord("0"), ord("9") + 1, (BLOCK_ROWS, len(numbers)))
            yield rows.tobytes()


def _ida_cell(name: str) -> str:
    return {"time": "S", "stat": "00000000", "tool": "0", "grapple_phase": "0"}.get(name, "#.####")


IMU = ",".join(["#.########"] * 3 + ["-#.########"] * 2 + ["9.########"])
DESCRIBED = """streams:
- {name: imu, type: Imu, file: imu.csv, header: 1, time: {column: time, unit: s},
   columns: {gyro_x: {source: a}, gyro_y: {source: b}, gyro_z: {source: c}, acc_x: {source: d},
             acc_y: {source: e}, acc_z: {source: f}}}
"""
CSV = Log("imu.csv", "time,a,b,c,d,e,f\n", f"S,{IMU}", (("recording.yaml", DESCRIBED),))
POSES = (
    "GPSTime,easting,northing,altitude,vel_east,vel_north,vel_up,roll,pitch,heading,"
    "angvel_z,angvel_y,angvel_x\n"
)
LOGS = {
    "EuRoC": Log(
        "mav0/imu0/data.csv",
        "#timestamp [ns],w_x,w_y,w_z,a_x,a_y,a_z\n",
        f"T,{IMU}",
        (("mav0/imu0/sensor.yaml", "sensor_type: imu\n"),),
    ),
    "Boreas": Log("applanix/lidar_poses.csv", POSES, f"T,{','.join(['#.########'] * 12)}"),
    "KITTI poses": Log("poses.txt", "", "1 0 0 #.######## 0 1 0 #.######## 0 0 1 #.########"),
    "TUM": Log("groundtruth.txt", "", "S #.###### #.###### #.###### 0 0 0 1"),
    "SDI laser": Log(
        "LaserHorizontal/RangeBearingQAsciiData.txt",
        "",
        f"*S RANGE_DATA -1.570796 0.017453 1.570796 2 181 {' '.join(['1###'] * 181)}",
    ),
    "IDA science": Log("scihi.csv", f"#{','.join(NAMES_58)}\n", ",".join(map(_ida_cell, NAMES_58))),
    "CSV in a zip": Log(CSV.file, CSV.head, CSV.row, CSV.beside, packed=True),
}


def measure(name: str, log: Log, size: float) -> None:
    """Print the memory that opening a log of `size` GB took."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TRANSECT_BENCH_DAYS")) as temporary:
        path = log.write(Path(temporary, "day"), size * BYTES_PER_GB)
        environment = {**os.environ, "TRANSECT_CACHE_DIR": str(Path(temporary, "cache"))}
        command = [sys.executable, "-c", _INFO, str(path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    _, own, resident = done.stdout.splitlines()[-1].split()
    _harness.held(f"{name}, {size:g} GB: memory of its own", int(own), target=BYTES_PER_GB)
    _harness.held(f"{name}, {size:g} GB: with pages of files", int(resident), target=BYTES_PER_GB)


def main() -> None:
    for size in FILE_SIZES_GB:
        measure("CSV", CSV, size)
    for name, log in LOGS.items():
        measure(name, log, FILE_SIZES_GB[0])


if __name__ == "__main__":
    main()
