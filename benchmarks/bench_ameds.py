"""AMEDS: CSV beside pyarrow alone, and a whole 25-minute traverse that is opened again."""

import os
import subprocess
import sys
import tempfile
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv

from benchmarks import _harness
from transect.datasets.ameds.folders.columns import BY_STEM
from transect.datasets.ameds.folders.parse import parse
from transect.datasets.ameds.folders.reading import stamped_table

CSV_ROWS = 150_000
IMAGE_COUNT, CLOUD_COUNT = 45_000, 7_500
START_S = 1_657_013_071
CSV_COPIES = 10
"""CSV files of 150,000 rows in the traverse."""


def csv_text(stem: str, extra: int = 0) -> bytes:
    """A file of Table 7 with random numbers, 100 Hz, and columns of no meaning behind the documented ones."""
    rng = np.random.default_rng(3)
    columns = [c for c in BY_STEM[stem].columns if not c.group]
    t_ns = START_S * 10**9 + np.arange(CSV_ROWS) * 10_000_000 + rng.integers(0, 10**6, CSV_ROWS)
    seconds, rest = np.divmod(t_ns, 10**9)
    times = pa.array([f"{s}.{f:09d}"[:-2] for s, f in zip(seconds.tolist(), rest.tolist(), strict=True)])
    values: dict[str, object] = {"timestamp": times}
    for column in columns:
        plain = {"device_ns": times, "fix": rng.integers(0, 8, CSV_ROWS)}
        values[column.header] = plain.get(column.name, rng.normal(size=CSV_ROWS))
    values |= {f"extra{i}": rng.normal(size=CSV_ROWS) for i in range(extra)}
    sink = pa.BufferOutputStream()
    pv.write_csv(pa.table(values), sink, pv.WriteOptions(include_header=False, quoting_style="none"))
    return ",".join(values).encode() + b"\n" + sink.getvalue().to_pybytes()


def compare_csv() -> None:
    """150,000 x 15, from bytes to a table in SI, without the cache."""
    for stem, extra in (("GnssImu", 2), ("GnssBodyVelocity", 8)):
        data = csv_text(stem, extra)
        file = BY_STEM[stem]

        def ours(data: bytes = data, file=file) -> object:
            return parse(data, file, file.stem, {})

        def peer(data: bytes = data) -> object:
            return pv.read_csv(pa.BufferReader(data))

        _harness.compare(f"{stem}.csv 150k x 15 / pyarrow.csv", ours, peer, target=1 / 1.3, repeat=7)


def image_names(prefix: str, count: int, rate: float, suffix: str) -> list[str]:
    return [
        f"{prefix}{START_S + i // rate:.0f}.{int(i % rate / rate * 1e6):06d}{suffix}" for i in range(count)
    ]


def traverse(folder: Path) -> Path:
    """25 minutes: 10 CSV of 150,000 rows, 45,000 names of images and 7,500 of clouds."""
    stems = [stem for stem in BY_STEM if stem.startswith(("Gnss", "Platform"))][:CSV_COPIES]
    folder.mkdir()
    for stem in stems:
        (folder / f"{stem}.csv").write_bytes(csv_text(stem))
    images = image_names("MainCam_", IMAGE_COUNT, 30, ".jpg")
    clouds = image_names("LidarPointcloud_", CLOUD_COUNT, 5, ".pcd")
    for name in images + clouds:
        (folder / name).write_bytes(b"x")
    return folder


def zipped(folder: Path) -> Path:
    """The traverse as downloaded: stored, with a top folder."""
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{folder.name}/{file.name}")
    return path


WARM = """
import sys, time
import transect, transect.formats as formats
for name in formats.names():
    formats.load(name)
import yaml
start = time.perf_counter()
repr(transect.open(sys.argv[1]))
print(time.perf_counter() - start)
"""


def warm_seconds(path: Path) -> float:
    """Seconds that a new process takes to open and print a recording, after imports."""
    done = subprocess.run([sys.executable, "-c", WARM, str(path)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    compare_csv()
    names = image_names("MainCam_", IMAGE_COUNT, 30, ".jpg")
    _harness.duration("times of 45,000 image names", lambda: stamped_table(names, "MainCam_"), target=0.033)
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["TRANSECT_CACHE_DIR"] = f"{temporary}/cache"
        folder = traverse(Path(temporary) / "traverse_0")
        for path, kind in ((folder, "folder"), (zipped(folder), "zip")):
            command = [str(Path(sys.executable).with_name("transect")), "info", str(path)]
            _harness.memory(f"25-minute traverse, {kind}: transect info, cold", command, target=400e6)
            _harness.memory(f"25-minute traverse, {kind}: transect info, warm", command, target=400e6)
            seconds = partial(warm_seconds, path)
            _harness.measured(f"25-minute traverse, {kind}: open and print, warm", seconds, target=0.3)
        del os.environ["TRANSECT_CACHE_DIR"]
