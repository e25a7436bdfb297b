"""TUM trajectory: `time x y z qx qy qz qw` per line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..shared.file_heads import number_rows
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

FARTHEST_S = 1e11
"""Seconds; a time beyond this (the year 5138) counts milliseconds or nanoseconds, and is not TUM's."""


def recognises(source: Source) -> Match:
    """Recognise one file whose lines are a time in seconds, a position and a unit quaternion."""
    if len(source.names) != 1:
        return no("a TUM trajectory is one file")
    return match_head(source.head(source.names[0]))


def match_head(head: bytes) -> Match:
    """Tell by its first bytes whether a file is a trajectory."""
    rows = number_rows(head, 8)
    if not rows:
        return no("its lines are not eight numbers")
    first, *_ = rows
    if not abs(first[0]) < FARTHEST_S:
        return no("its lines are eight numbers but the first is no time in seconds")
    if not abs(math.hypot(*first[4:]) - 1.0) < 0.01:
        return no("its lines are eight numbers but the last four are no unit quaternion")
    return Match(0.85, "lines of time, position and a unit quaternion")


def read(source: Source) -> Recording:
    """Read one trajectory as a stream of poses."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one stream of poses, to a file or as `<name>.tum` to a folder.

    The truth goes first, then poses before other positions, and of equals the one with most samples.
    """
    from . import writing

    return writing.write(recording, path)
