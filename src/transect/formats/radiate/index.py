"""RADIATE's lists of frames: which files there are, and when each was taken."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS
from transect.recording import Loss, Parsed, Source, Timing, arrow, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer
from transect.recording.text import scan, whole_lines

from .._images import file_table
from .._rows import exact_stamps, lines_lost


@dataclass(frozen=True, eq=False)
class Index:
    """The frames of one sensor that are listed and there, in the list's order.

    Attributes
    ----------
    t_ns : (n,) int64 array
    files : list of str
    losses, notes : tuples
        Frames that are listed but not there; files that no line lists, and times that repeat or go back.
    """

    t_ns: NDArray[np.int64]
    files: list[str]
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()


def read_index(source: Source, sensor: str, suffix: str) -> Index:
    """Read `<sensor>.txt`; without it the files are numbered by their names, on the index clock."""
    list_name = f"{sensor}.txt"
    here = [name for name in source.under(sensor) if name.endswith(suffix)]
    if list_name not in source:
        return _number(here, sensor)
    listed = cache.parsed(source, list_name, "radiate.index/1", partial(parse_index, file=list_name))
    paths = [f"{sensor}/{frame}{suffix}" for frame in arrow.texts(listed.table, PAYLOAD)]
    there = np.array([path in source for path in paths], dtype=bool)
    losses = list(listed.losses)
    if not there.all():
        first, count = paths[int(np.argmin(there))], int((~there).sum())
        losses.append(Loss(first, f"{list_name} lists it, but it is not there", count=count))
    t_ns = arrow.numbers(listed.table, "t_ns")[there]
    unlisted = sorted(set(here) - set(paths))
    notes = _disorder(sensor, t_ns)
    if unlisted:
        notes.append(f"{len(unlisted)} files of {sensor} are not in {list_name}: {unlisted[0]}, ...")
    files = [path for path, kept in zip(paths, there, strict=True) if kept]
    return Index(t_ns, files, tuple(losses), tuple(notes))


def _number(files: list[str], sensor: str) -> Index:
    numbers = {name: PurePosixPath(name).stem for name in files}
    frames = {n: int(s) for n, s in numbers.items() if s.isascii() and s.isdigit() and len(s) < 10}
    t_ns = np.array(list(frames.values()), np.int64) * NS
    return Index(t_ns, list(frames), notes=(f"there is no {sensor}.txt: frames have numbers, but no times",))


def _disorder(sensor: str, t_ns: NDArray[np.int64]) -> list[str]:
    timing = Timing.of(t_ns)
    said = [f"{timing.repeated} repeat the one before"] if timing.repeated else []
    said += [f"{timing.backwards} go back in time"] if timing.backwards else []
    return [f"of {timing.count} times of {sensor}, {' and '.join(said)}"] if said else []


def parse_index(buffer: Buffer, file: str) -> Parsed:
    """Parse lines of `Frame: 000001 Time: 1574859771.744660272`; the frame stands as it is written."""
    size, cut = whole_lines(buffer, file)
    tokens = scan(buffer, size)
    good = (tokens.counts == 4) & tokens.equals(0, b"Frame:") & tokens.equals(2, b"Time:")
    losses = lines_lost(tokens, np.flatnonzero(~good), "not `Frame: <number> Time: <seconds>`", file)
    t_ns, lines, bad = exact_stamps(tokens, 3, np.flatnonzero(good), file)
    frames = [tokens.text(int(tokens.first[line]) + 1) for line in lines]
    return Parsed(file_table(t_ns, frames), (*losses, *bad, *([cut] if cut else [])))
