"""gtsam_points dumps: raw clouds, `graph.txt` with their poses, and text of IMU and trajectory beside them.

Three layouts, alone or together in one folder (koide3/gtsam_points, `data/`):

- a dump: `000000/points.bin`, ... (float32 x y z) and a line ``v<i> x y z qx qy qz qw`` each in `graph.txt`;
- Newer College features: `edges_000010.bin`, `planes_000010.bin`, ... and `graph.txt` in their order;
- continuous time: `imu.txt` (``time ax ay az wx wy wz``; s, m/s2, rad/s) and `traj.txt`
  (``time x y z qx qy qz qw``).

They are written as they are read: a stream's name is the folder and the kind of its files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..shared.file_heads import suffix_counts
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

DUMP = re.compile(r"(?:.*/)?(\d{6})/points\.bin")
FEATURES = re.compile(r"(?:.*/)?(edges|planes)_(\d{6})\.bin")
_GRAPH_LINE = re.compile(rb"v0\s+[-+0-9.eE]+\s")


def recognises(source: Source) -> Match:
    """Say how sure we are, from the names and the first line of a graph.txt."""
    if not suffix_counts(source)[".txt"]:
        return no("no graph.txt, imu.txt or traj.txt")
    graphs = [n for n in source.names if n.endswith("graph.txt") and n.rpartition("/")[2] == "graph.txt"]
    raw = [n for n in source.names if n.endswith(".bin")] if graphs else []
    clouds = [n for n in raw if DUMP.fullmatch(n) or FEATURES.fullmatch(n)]
    if clouds and graphs:
        if _GRAPH_LINE.match(source.head(graphs[0])):
            return Match(0.95, f"{len(clouds)} dumped clouds and a graph.txt of their poses")
        return no("it has dumped clouds and a graph.txt, but that does not begin with a vertex v0")
    texts = {n.rpartition("/")[2] for n in source.names[:5]}
    if {"imu.txt", "traj.txt"} <= texts and len(source.names) <= 4:
        return Match(0.6, "imu.txt and traj.txt")
    return no("it has a graph.txt but no points.bin" if graphs else "no points.bin with a graph.txt")


def read(source: Source) -> Recording:
    """Read the clouds, their poses on the `index` clock, and the continuous-time texts on `utc`."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write clouds with the poses that belong to them, IMU and trajectories to a new folder.

    Points are float32 x y z; poses, stamps and inertial values read back exactly. Clouds of another format
    need a stream of poses that has one at each of their times.
    """
    from . import writing

    return writing.write(recording, path)
