"""Writing TUM trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transect.base import files
from transect.base.clocks import decimal_from_ns
from transect.errors import UsageError
from transect.recording import Recording, Stream
from transect.types import Pose, RigidBodyState

from ..shared.interface import Note
from ..shared.rows import column_or_nan, float_texts, new_file, text_rows
from .reading import COLUMNS


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
    if rest := [name for name in chosen.columns if name not in COLUMNS]:
        said.append(f"{chosen.name}: a TUM file has no place for {', '.join(rest)}")
    if unturned:
        said.append(Note(f"{chosen.name} has no attitudes: 0 0 0 1 is written"))
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
