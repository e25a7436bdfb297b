"""When KITTI's frames were taken: line i of a text of times belongs to the files numbered i."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS, Clock, ns_from_decimal, ns_from_iso
from transect.errors import TimeError
from transect.recording import Loss, Source
from transect.recording.text import NO_STAMP, bad_stamp, line_pieces

from ..shared.rows import clock_of_head
from . import SECONDS, STAMPS


@dataclass(frozen=True)
class TimedFiles:
    """Files and their times in ns, in the order of their numbers; what has no time, and what was assumed."""

    t_ns: dict[str, int]
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()


def times_of_folder(source: Source, folder: str) -> str | None:
    """Return the file that times a folder's frames: its own timestamps.txt, or the sequence's times.txt."""
    return next((name for name in (f"{folder}/{STAMPS}", SECONDS) if name in source), None)


def clock_of_times(source: Source, times: str | None) -> Clock:
    """Return the clock of a file of times; without one, frames are only numbered."""
    if times is None:
        return "index"
    return "utc" if times.endswith(STAMPS) else clock_of_head(source.head(times))


def read_times(source: Source, name: str) -> tuple[NDArray[np.int64], tuple[Loss, ...]]:
    """Return a time in ns per line, and the loss of the lines that are none (`bad_stamp` marks them).

    Raw drives have `2011-09-30 12:08:26.403042304`, odometry sequences have seconds.
    """
    source.touch(name)
    read = ns_from_iso if name.endswith(STAMPS) else ns_from_decimal
    found: list[NDArray[np.int64]] = []
    count, cut = 0, ()
    for piece in line_pieces(source.content(name), name):
        text = bytes(piece.data).decode("utf-8" if piece.newlines else "utf-8-sig", "replace")
        lines = text.split("\n")[: text.count("\n") + (not text.endswith("\n"))]
        found.append(np.fromiter((_time_of(line.strip(), read) for line in lines), np.int64, len(lines)))
        count = max([count, *(piece.newlines + i for i, line in enumerate(lines, 1) if line.strip())])
        cut = piece.losses
    t_ns = np.concatenate(found)[:count]  # blank lines at the end are none
    bad = np.flatnonzero(bad_stamp(t_ns))
    lost = [Loss(name, "the line is no time", line=int(bad[0]) + 1, count=len(bad))] if len(bad) else []
    return t_ns, (*lost, *cut)


def _time_of(text: str, read: Callable[[str], int]) -> int:
    try:
        value = read(text)
    except TimeError:
        return int(NO_STAMP)
    return value if abs(value) < 2**63 else int(NO_STAMP)


def pair_times(source: Source, folder: str, suffixes: tuple[str, ...]) -> TimedFiles:
    """Pair the numbers that a folder's files are named after with lines of times; without any, count them.

    A drive cut out of a longer one may keep its numbers (from 400 on) with times for these files alone: as
    many times as files then belong together in their order.
    """
    inside = f"{folder}/data" if f"{folder}/data" in source.folders else folder
    numbers = {n: _number(n) for n in source.under(inside) if n.endswith(suffixes)}
    losses = [Loss(n, "its name is no frame number") for n, number in numbers.items() if number is None]
    frames = {n: number for n, number in numbers.items() if number is not None}
    times = times_of_folder(source, folder)
    if times is None:
        return TimedFiles({n: number * NS for n, number in frames.items()}, tuple(losses))
    t_ns, lost = read_times(source, times)
    notes: tuple[str, ...] = ()
    first, last = min(frames.values(), default=0), max(frames.values(), default=0)
    if first > 0 and last >= len(t_ns) == len(frames):
        notes = (f"{folder}: files from number {first} on are paired with the {len(t_ns)} times in order",)
        frames = {n: line for line, n in enumerate(sorted(frames, key=lambda n: frames[n]))}
    if beyond := [n for n, number in frames.items() if number >= len(t_ns)]:
        losses.append(Loss(beyond[0], f"{times} has only {len(t_ns)} times", count=len(beyond)))
    found = {n: int(t_ns[number]) for n, number in frames.items() if number < len(t_ns)}
    return TimedFiles({n: t for n, t in found.items() if t != NO_STAMP}, (*losses, *lost), notes)


def _number(name: str) -> int | None:
    stem = PurePosixPath(name).stem
    return int(stem) if stem.isascii() and stem.isdigit() and len(stem) <= 10 else None
