"""Etna at full size: images of 1920 x 1080 and 1280 x 720 at 30 Hz, and 5 revolutions of 32 beams a second.

They are written as `transect simulate` writes them, as JPEG and clouds. Twenty seconds of that take a quarter
of an hour, so some samples from the middle of the day are written, and what a simulated second takes is their
sum.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import _harness
from transect.simulation.day import Day, Truth, WorldOptions, simulate, write_day

DURATION_S = 20.0
SAMPLES = {"MainCam": 6, "AuxCam": 6, "Lidar": 6}
"""How many of each are written together: on all cores, while the one before is being encoded."""


def write_part(day: Day, name: str, count: int) -> tuple[float, float]:
    """Write samples from the middle of a stream; return the wall clock and the CPU time of each, s."""
    stream = day.recording[name]
    chosen = np.zeros(len(stream), np.bool_)
    chosen[len(stream) // 2 :][:count] = True
    part = Day(day.recording.replace(streams=(stream.take(chosen),)), Truth())
    with tempfile.TemporaryDirectory() as folder:
        begin, used = time.perf_counter(), time.process_time()
        write_day(part, Path(folder) / "part")
        return (time.perf_counter() - begin) / count, (time.process_time() - used) / count


def main() -> None:
    day = simulate("etna", WorldOptions(seconds=DURATION_S, seed=7))
    wall = cpu = 0.0
    for name, count in SAMPLES.items():
        write_part(day, name, 1)  # compile
        times = np.array([write_part(day, name, count) for _ in range(3)]).min(axis=0)
        rate = len(day.recording[name]) / DURATION_S
        wall, cpu = wall + rate * times[0], cpu + rate * times[1]
        _harness.measured(f"{name}, one sample, wall clock", lambda t=times[0]: t, repeat=1)
    _harness.measured("a simulated second, wall clock", lambda: wall, repeat=1)
    _harness.measured("a simulated second, CPU of all cores", lambda: cpu, repeat=1)


if __name__ == "__main__":
    main()
