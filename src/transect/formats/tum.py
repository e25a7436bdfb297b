"""TUM trajectory: `time x y z qx qy qz qw` per line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base import files
from transect.base.clocks import decimal_from_ns
from transect.base.file_bytes import Content
from transect.errors import UsageError
from transect.recording import Parsed, Recording, Role, Source, Stream, arrow, cache
from transect.types import Pose, RigidBodyState

from .shared.interface import Note
from .shared.rows import (
    clock_of_head,
    column_or_nan,
    float_texts,
    new_file,
    only_file,
    parse_timed_rows,
    text_rows,
)

COLUMNS = ("x", "y", "z", "qx", "qy", "qz", "qw")
_FRAMES = re.compile(
    r"^# (?:frame (?P<frame>[^,\r\n]+))?(?:, )?(?:child (?P<child>[^,\r\n]+))?\r?$", re.MULTILINE
)
_TRUTH_WORDS = {"gt", "truth", "groundtruth", "poses"}


def role_of_name(name: str) -> Role:
    """Return `truth` for a file that calls itself ground truth, else `estimate`."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    return "truth" if words & _TRUTH_WORDS or "groundtruth" in name.lower() else "estimate"


def read(source: Source) -> Recording:
    """Read one trajectory as a stream of poses."""
    stream = tum_stream("Trajectory", source, only_file(source), "world", "body")
    return Recording(source.stem, (stream,), format="tum", source=source)


def tum_stream(stream: str, source: Source, name: str, frame: str, child: str) -> Stream:
    """Return the stream of one file of a source; the role is what its name says.

    Parameters
    ----------
    frame, child : str
        Names of the world and of the body, unless the comments at the top of the file name them.
    """
    frame, child = frames_of(source.head(name, 1024), frame, child)
    return Stream(
        stream,
        Pose,
        lambda: cache.parse_pieces(source, name, "tum/2", partial(parse_poses, file=name)),
        clock=clock_of_head(source.head(name)),
        role=role_of_name(name),
        frame=frame,
        child=child,
    )


def frames_of(head: bytes, frame: str, child: str) -> tuple[str, str]:
    """Return what the comments at the top of a trajectory call world and body, else the names given."""
    lines = _FRAMES.finditer(head.decode("utf-8", "replace"))
    names = {key: name for line in lines for key, name in line.groupdict().items() if name}
    return names.get("frame", frame), names.get("child", child)


def parse_poses(content: Content, file: str) -> Iterator[Parsed]:
    """Parse lines of time and pose, piece by piece."""
    return parse_timed_rows(content, file, COLUMNS, Pose.units())


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
    notes = (
        [f"a TUM file holds one trajectory, {chosen.name}: {', '.join(others)} left out"] if others else []
    )
    if rest := [name for name in chosen.columns if name not in COLUMNS]:
        notes.append(f"{chosen.name}: a TUM file has no place for {', '.join(rest)}")
    if unturned:
        notes.append(Note(f"{chosen.name} has no attitudes: 0 0 0 1 is written"))
    return tuple(notes)


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
