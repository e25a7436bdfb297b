"""Your own robot: a recording.yaml beside any CSV, text, Parquet, image or cloud files says what they are.

`transect new recording DIR` writes a first one by guessing. In short::

    robot: weeder                      # optional
    streams:
      - name: Imu
        type: Imu
        file: imu.csv
        time: {column: stamp, unit: s}
        columns: {acc_x: {source: ax, unit: g}, gyro_z: {source: wz, unit: deg/s}, ...}
        frame: imu
      - name: LeftCam
        type: Image
        files: left/*.png
        tag: left
        camera: left
    calibration: camchain.yaml
    frames: [{frame: base, child: imu, xyz: [0.1, 0, 0.2], quaternion: [0, 0, 0, 1]}]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import exporter

from ..shared.file_heads import suffix_counts
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source

FILE = "recording.yaml"
NAMES = (FILE, "recording.yml")


def recognises(source: Source) -> Match:
    """Say whether there is a recording.yaml."""
    found = next((name for name in NAMES if name in source), None)
    if found:
        return Match(0.99, f"{found} describes it")
    counts = suffix_counts(source)
    deeper = [n for n in source.names if n.endswith(NAMES)] if counts[".yaml"] + counts[".yml"] else []
    return no(f"there is {deeper[0]}, but no {FILE} at the top" if deeper else f"no {FILE}")


__getattr__, __dir__ = exporter(__name__, {"reading": ("read",)})
