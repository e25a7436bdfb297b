"""SDI laser text, the format's own build on the bytes, beside numpy.loadtxt and pyarrow.csv; one thread each.

The peers get the text without the `*` and the word, with all lines of one length: only numbers, their
fastest case. Ours reads the unmodified log, with exact times, units and checks.
"""

import io
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.csv as pv

from benchmarks import _harness
from transect.datasets.marulan.logs.lines import read_log
from transect.datasets.marulan.logs.tables import laser_block

BEAM_COUNT = 181
SMALL_LINES, LARGE_LINES = 12_000, 65_000
"""Lines: about what one laser logs in 160 s, and 60 MB."""

_PARSE = """
import mmap, sys
from transect.datasets.marulan.logs.lines import read_log
from transect.datasets.marulan.logs.tables import laser_block
with open(sys.argv[1], "rb") as file:
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    assert read_log(data, "laser", laser_block)["table"].table.num_rows == int(sys.argv[2])
"""


def laser_text(lines: int) -> bytes:
    """Four interleaved scans after each other, ranges in cm, as section 3.2.2 has them."""
    rng = np.random.default_rng(2008)
    ranges = rng.integers(80, 8192, (lines, BEAM_COUNT))
    ranges[rng.random(ranges.shape) < 0.1] = 8191
    starts = -np.pi / 2 + np.radians(0.25) * (np.arange(lines) % 4)
    stamps = 1_224_053_469_229 + (np.arange(lines) * 40) // 3
    rows = zip(stamps.tolist(), starts.tolist(), ranges.tolist(), strict=True)
    return "".join(
        f"*{t // 1000}.{t % 1000:03d} RANGE_DATA {s:.6f} 0.017453 {s + np.pi:.6f} 2 {BEAM_COUNT} "
        + " ".join(map(str, r))
        + "\n"
        for t, s, r in rows
    ).encode()


def main() -> None:
    text = laser_text(SMALL_LINES)
    bare = text.replace(b"*", b"").replace(b"RANGE_DATA ", b"")
    options = pv.ReadOptions(autogenerate_column_names=True, use_threads=False, block_size=1 << 24)
    parse = pv.ParseOptions(delimiter=" ")
    print(f"  {len(text) / 1e6:.1f} MB, {SMALL_LINES} scans of {BEAM_COUNT} ranges, 1 thread on every side")

    def ours() -> object:
        return read_log(text, "laser", laser_block)

    _harness.compare("SDI laser text / numpy.loadtxt", ours, lambda: np.loadtxt(io.BytesIO(bare)), target=1.0)
    _harness.compare(
        "SDI laser text / pyarrow.csv", ours, lambda: pv.read_csv(io.BytesIO(bare), options, parse)
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "RangeBearingQAsciiData.txt"
        file.write_bytes(laser_text(LARGE_LINES))
        command = [sys.executable, "-c", _PARSE, str(file), str(LARGE_LINES)]
        name = f"{file.stat().st_size / 1e6:.0f} MB of laser text"
        _harness.memory(name, command, target=512 * 2**20)


if __name__ == "__main__":
    main()
