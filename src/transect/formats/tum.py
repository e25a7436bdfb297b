"""TUM trajectory: `time x y z qx qy qz qw` per line."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base import files
from transect.base.clocks import decimal_from_ns
from transect.errors import UsageError
from transect.recording import Parsed, Recording, Role, Source, Stream, arrow, cache
from transect.recording.source import Buffer
from transect.types import Pose, RigidBodyState

from ._base import Match, no
from ._rows import (
    clock_of_head,
    column_or_nan,
    exact_stamps,
    float_texts,
    new_file,
    number_rows,
    only_file,
    read_lines,
    text_rows,
)

COLUMNS = ("x", "y", "z", "qx", "qy", "qz", "qw")
FARTHEST_S = 1e11
"""Seconds; a time beyond this (the year 5138) counts milliseconds or nanoseconds, and is not TUM's."""
_TRUTH_WORDS = {"gt", "truth", "groundtruth", "poses"}


def recognises(source: Source) -> Match:
    """Recognise one file whose lines are a time in seconds, a position and a unit quaternion."""
    if len(source.names) != 1:
        return no("a TUM trajectory is one file")
    rows = number_rows(source.head(source.names[0]), 8)
    if not rows:
        return no("its lines are not eight numbers")
    first, *_ = rows
    if not abs(first[0]) < FARTHEST_S:
        return no("its lines are eight numbers but the first is no time in seconds")
    if not abs(math.hypot(*first[4:]) - 1.0) < 0.01:
        return no("its lines are eight numbers but the last four are no unit quaternion")
    return Match(0.85, "lines of time, position and a unit quaternion")


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
        lambda: cache.parsed(source, name, "tum/1", partial(parse_poses, file=name)),
        clock=clock_of_head(source.head(name)),
        role=role_of_name(name),
        frame="world",
        child="body",
    )
    return Recording(source.stem, (stream,), format="tum", source=source)


def parse_poses(buffer: Buffer, file: str) -> Parsed:
    """Parse lines of time and pose."""
    tokens, lines, losses = read_lines(buffer, file, (8,))
    t_ns, lines, bad = exact_stamps(tokens, 0, lines, file)
    return Parsed(pose_table(t_ns, tokens.block(1, 7, lines)), (*losses, *bad))


def pose_table(t_ns: NDArray[np.int64], poses: NDArray[np.float64]) -> pa.Table:
    """Return the table of (n, 7) poses x y z qx qy qz qw."""
    return arrow.table(t_ns, dict(zip(COLUMNS, poses.T, strict=True)), units=Pose.units())


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one stream of poses, to a file or as `<name>.tum` to a folder.

    The truth goes first, then poses before other positions, and of equals the one with most samples.
    """
    chosen = _pose_stream(recording)
    columns = [column_or_nan(chosen, name) for name in COLUMNS]
    unturned = len(chosen) > 0 and bool(np.isnan(columns[3:]).all())
    if unturned:
        columns[3:] = [np.full(len(chosen), value) for value in (0.0, 0.0, 0.0, 1.0)]
    text = header(f"{recording.name} {chosen.name}", chosen.clock) + pose_lines(chosen.t_ns, columns)
    files.write_bytes(new_file(path, f"{recording.name}.tum"), text)
    others = [s.name for s in recording.streams if s is not chosen]
    said = [f"a TUM file holds one trajectory, {chosen.name}: {', '.join(others)} left out"] if others else []
    if unturned:
        said.append(f"{chosen.name} has no attitudes: 0 0 0 1 is written")
    return tuple(said)


def header(title: str, clock: str) -> bytes:
    """Return the comment lines that a trajectory begins with."""
    return f"# {title}, clock {clock}\n# timestamp tx ty tz qx qy qz qw\n".encode()


def pose_lines(t_ns: NDArray[np.int64], columns: Sequence[NDArray[np.float64]]) -> bytes:
    """Return (n,) times and the seven (n,) columns x y z qx qy qz qw as lines."""
    times = [decimal_from_ns(t) for t in t_ns.tolist()]
    return text_rows([times, *(float_texts(column) for column in columns)])


def _pose_stream(recording: Recording) -> Stream:
    poses = [s for s in recording.streams if set(COLUMNS[:3]) <= set(s.columns)]
    if not poses:
        raise UsageError(f"{recording.name} has no stream of poses to write as a TUM trajectory")
    return max(poses, key=lambda s: (s is recording.truth, s.type in (Pose, RigidBodyState), len(s)))
