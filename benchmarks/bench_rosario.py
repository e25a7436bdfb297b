"""Simulated Rosario: 20 s of stereo at full size to a folder, a test-sized day, and where the time goes."""

import tempfile
from pathlib import Path

from benchmarks import _harness
from transect.formats.shared.images import encode_image
from transect.simulation.day import WorldOptions, simulate, write_day

DURATION_S = 20.0
MAX_TIME_S, MAX_SMALL_DAY_TIME_S = 180.0, 5.0
"""s that 300 pairs of 672 x 376, and a test-sized day, may take on two cores."""


def written(options: WorldOptions) -> None:
    """Simulate a day and write it, truth and all."""
    with tempfile.TemporaryDirectory() as folder:
        write_day(simulate("rosario", options), Path(folder) / "day")


def main() -> None:
    small = WorldOptions(seconds=2.5, seed=1, scale=0.25)
    written(small)  # compiles, or loads what was compiled
    _harness.duration(
        "test-sized day: 37 pairs 168x94, written", lambda: written(small), MAX_SMALL_DAY_TIME_S
    )
    streams = simulate("rosario", WorldOptions(seconds=2.5, seed=1)).recording
    image = streams["Zed/Left"][5].value
    _harness.rate("pictures 672x376 rendered", lambda: streams["Zed/Left"][6].value, 1)
    _harness.rate("pictures 672x376 encoded as PNG", lambda: encode_image(image, ".png"), 1)
    day = WorldOptions(seconds=DURATION_S, seed=1)
    _harness.duration(
        "20 s: 300 pairs 672x376, all streams, truth", lambda: written(day), MAX_TIME_S, repeat=1
    )


if __name__ == "__main__":
    main()
