"""TUM trajectory: `time x y z qx qy qz qw` per line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from transect.errors import TimeError, UsageError
from transect.recording import Parsed, Recording, Source, Stream, arrow, cache, files
from transect.recording.clocks import Clock, decimal_from_ns, ns_from_decimal
from transect.recording.source import Buffer
from transect.recording.stream import Role
from transect.types import Pose

from ._base import Match, no
from ._rows import clock_of, exact_stamps, float_texts, number_lines, read_lines, text_rows

COLUMNS = ("x", "y", "z", "qx", "qy", "qz", "qw")
_TRUTH_WORDS = ("groundtruth", "ground_truth", "truth", "_gt")


def recognises(source: Source) -> Match:
    """Recognise one file whose lines are eight numbers, the last four of unit length."""
    if len(source.names) != 1:
        return no("a TUM trajectory is one file")
    (name,) = source.names
    head = source.head(name)
    if not number_lines(head, 8):
        return no("its lines are not eight numbers")
    quaternion = _first_row(head)[4:]
    if abs(np.linalg.norm(quaternion) - 1.0) > 0.01:
        return no("its lines are eight numbers but the last four are no quaternion")
    return Match(0.85, "lines of time, position and a unit quaternion")


def _first_row(head: bytes) -> list[float]:
    return [float(t) for t in _first_line(head).replace(b",", b" ").split()]


def _first_line(head: bytes) -> bytes:
    lines = (line.strip() for line in head.split(b"\n"))
    return next((line for line in lines if line and not line.startswith((b"#", b"%"))), b"0")


def clock_of_text(head: bytes) -> Clock:
    """Return the clock of a text whose lines begin with seconds."""
    try:
        return clock_of(ns_from_decimal(_first_line(head).replace(b",", b" ").split()[0].decode()))
    except TimeError:
        return "device"


def role_of_name(name: str) -> Role:
    """Return `truth` for a file that calls itself ground truth, else `estimate`."""
    return "truth" if any(word in name.lower() for word in _TRUTH_WORDS) else "estimate"


def read(source: Source) -> Recording:
    """Read one trajectory as a stream of poses."""
    (name,) = source.names
    stream = Stream(
        "Trajectory",
        Pose,
        lambda: cache.parsed(source, name, "tum/1", partial(parse_poses, file=name)),
        clock=clock_of_text(source.head(name)),
        role=role_of_name(name),
        frame="world",
        child="body",
    )
    return Recording(source.stem, (stream,), format="tum", source=source)


def parse_poses(buffer: Buffer, file: str) -> Parsed:
    """Parse lines of time and pose."""
    tokens, lines, losses = read_lines(buffer, file, (8,))
    t_ns, lines, bad = exact_stamps(tokens, 0, lines, file)
    values = tokens.block(1, 7, lines)
    columns = {name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(COLUMNS)}
    return Parsed(arrow.table(t_ns, columns, units=Pose.units()), (*losses, *bad))


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write the recording's first stream of poses; a path without suffix gets `.tum`."""
    poses = [s for s in recording.streams if set(COLUMNS[:3]) <= set(s.columns)]
    if not poses:
        raise UsageError(f"{recording.name} has no stream of poses to write as a TUM trajectory")
    chosen = next((s for s in poses if s.type is Pose), poses[0])
    path = path if path.suffix else path.with_suffix(".tum")
    header = f"# {recording.name} {chosen.name}, clock {chosen.clock}\n# timestamp tx ty tz qx qy qz qw\n"
    files.write_bytes(path, header.encode() + text_rows(_text_columns(chosen)))
    others = [s.name for s in recording.streams if s is not chosen]
    return (f"a TUM file holds one trajectory: {', '.join(others)} left out",) if others else ()


def _text_columns(stream: Stream) -> list[list[str]]:
    missing: Any = np.full(len(stream), np.nan)
    values = [stream[name] if name in stream.columns else missing for name in COLUMNS]
    return [
        [decimal_from_ns(t) for t in stream.t_ns.tolist()],
        *(float_texts(np.asarray(v, float)) for v in values),
    ]
