"""Reading TUM trajectories."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.recording import Parsed, Recording, Role, Source, Stream, arrow, cache
from transect.recording.source import Buffer
from transect.types import Pose

from .._rows import clock_of_head, only_file, parse_timed_rows

COLUMNS = ("x", "y", "z", "qx", "qy", "qz", "qw")
_TRUTH_WORDS = {"gt", "truth", "groundtruth", "poses"}


def role_of_name(name: str) -> Role:
    """Return `truth` for a file that calls itself ground truth, else `estimate`."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    return "truth" if words & _TRUTH_WORDS or "groundtruth" in name.lower() else "estimate"


def read(source: Source) -> Recording:
    """Read one trajectory as a stream of poses."""
    name = only_file(source)
    stream = Stream(
        "Trajectory",
        Pose,
        lambda: cache.parse(source, name, "tum/1", partial(parse_poses, file=name)),
        clock=clock_of_head(source.head(name)),
        role=role_of_name(name),
        frame="world",
        child="body",
    )
    return Recording(source.stem, (stream,), format="tum", source=source)


def parse_poses(buffer: Buffer, file: str) -> Parsed:
    """Parse lines of time and pose."""
    return parse_timed_rows(buffer, file, COLUMNS, Pose.units())


def pose_table(t_ns: NDArray[np.int64], poses: NDArray[np.float64]) -> pa.Table:
    """Return the table of (n, 7) poses x y z qx qy qz qw."""
    return arrow.table(t_ns, dict(zip(COLUMNS, poses.T, strict=True)), units=Pose.units())
