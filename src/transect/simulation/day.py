"""A simulated day: what the robot recorded, and what was true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from transect import formats
from transect.base import files, plugins
from transect.base.clocks import NS, decimal_from_ns
from transect.base.processes import cores
from transect.errors import MissingExtraError, UsageError, did_you_mean
from transect.formats.geotiff import encode_geotiff
from transect.recording import Recording, Stream
from transect.types import GridMap

from ._threads import submit
from .motion import WORLD, Motion

T = TypeVar("T")

TRUTH = "truth"
"""Folder beside the recording's own files that every reader attaches."""


@dataclass(frozen=True)
class Options:
    """What a user may ask of a world."""

    seconds: float = 20.0  # how long the robot records
    seed: int = 0  # same seed, same bytes
    scale: float = 1.0  # size of images against the document's; 1 is theirs
    streams: tuple[str, ...] = ()  # globs of the streams to simulate; none means all
    # of the world, such as ``{"light": "night"}``; each world says what it knows
    conditions: Mapping[str, str] = field(default_factory=dict[str, str])

    def choose(
        self, world: str, known: Mapping[str, Iterable[str]], free: Sequence[str] = ()
    ) -> dict[str, str]:
        """Return a value for each condition of a world.

        Parameters
        ----------
        known : mapping of str to iterable of str
            Conditions and the values that they may have, the usual one first.
        free : sequence of str
            Conditions whose values the world checks itself; usually empty.
        """
        for name, value in self.conditions.items():
            if name not in known and name not in free:
                hint = did_you_mean(name, [*known, *free])
                raise UsageError(f"{world} knows no condition {name!r}", hint=hint)
            if name in known and value not in known[name]:
                raise UsageError(f"{name} cannot be {value!r}", hint=f"one of {', '.join(known[name])}")
        usual = {name: next(iter(values)) for name, values in known.items()}
        return {**usual, **dict.fromkeys(free, ""), **self.conditions}

    def wants(self, stream: str) -> bool:
        """Whether a stream of this name is to be simulated."""
        return not self.streams or any(fnmatchcase(stream.lower(), glob.lower()) for glob in self.streams)


@dataclass(frozen=True, eq=False)
class Truth:
    """What no sensor measured: it comes from the state of the world."""

    motion: Motion | None = None  # of the body frame named `body`, at 100 Hz; None for a robot that stands
    # further truth by name (`slip`, `contact`, `hits`), each with `t_ns`; written as Parquet
    tables: Mapping[str, pa.Table] = field(default_factory=dict[str, pa.Table])
    # such as `dem`; written as GeoTIFF
    maps: Mapping[str, GridMap] = field(default_factory=dict[str, GridMap])
    # further files by name, made when they are written: depth images
    files: Mapping[str, Callable[[], bytes]] = field(default_factory=dict[str, Callable[[], bytes]])
    # (3,) or None, latitude, longitude (rad) and height (m) of the world's origin
    origin: np.ndarray | None = None
    body: str = ""  # the frame that `motion` moves, as the recording names it


@dataclass(frozen=True, eq=False)
class Day:
    """A recording and its truth; images and clouds are made when they are asked for."""

    recording: Recording
    truth: Truth


def names() -> tuple[str, ...]:
    """Return the names of the worlds."""
    return plugins.names("worlds")


def simulate(world: str, options: Options | None = None) -> Day:
    """Return a day in a world.

    Parameters
    ----------
    world : str
        One of `names()`.
    """
    return _import_world(world).make_day(options or Options())


def usual_seconds(world: str, conditions: Mapping[str, str]) -> float:
    """Return how long a day in a world is if nobody says it: a world may have an idea of its own."""
    own = getattr(_import_world(world), "usual_seconds", None)
    return Options.seconds if own is None else own(conditions)


def _import_world(world: str) -> Any:
    if world not in names():
        raise UsageError(f"there is no world {world!r}", hint=did_you_mean(world, names()))
    return plugins.load("worlds", world)


def write_day(day: Day, folder: Path) -> tuple[str, ...]:
    """Write a day to a new folder: the recording in its own format, and `truth/` inside; all or nothing.

    Returns
    -------
    tuple of str
        What the format could not carry, and what of the truth could not be written.
    """
    formats.check_target(folder, day.recording.format)
    with files.staged(folder) as building:
        ahead = day.recording.replace(streams=tuple(_look_ahead(stream) for stream in day.recording))
        said = formats.write(ahead, building, day.recording.format)
        return (*said, *write_truth(day.truth, building / TRUTH))


def iterate_windows(recording: Recording, seconds: float = 10.0) -> Iterator[Recording]:
    """Yield a recording window by window, without files and with the memory of one window.

    Rows of a simulated stream are made when a window's columns are asked for, and go with the window; so an
    hour of lasers and radar can be looked at whose tables together would not fit into memory.

    Parameters
    ----------
    recording : Recording
        Such as `simulate` returns in a `Day`.
    seconds : float
        Length of a window; the last one may be shorter.
    """
    first, last = recording.span or (0, -1)
    for start in range(first, last + 1, round(seconds * NS)):
        yield recording.slice(start, start + round(seconds * NS))


def write_truth(truth: Truth, folder: Path) -> tuple[str, ...]:
    """Write truth in open formats: `trajectory.tum`, Parquet tables, GeoTIFF maps, and its own files.

    Returns
    -------
    tuple of str
        The maps that could not be written, for want of a library.
    """
    import pyarrow.parquet as pq

    said: list[str] = []
    if truth.motion is not None:
        files.write_text(folder / "trajectory.tum", tum_text(truth.motion, truth.body))
    for name, table in truth.tables.items():
        with files.atomic_write(folder / f"{name}.parquet") as out:
            pq.write_table(table, out)
    for name, grid in truth.maps.items():
        try:
            files.write_bytes(folder / f"{name}.tif", encode_geotiff(grid))
        except MissingExtraError as error:
            said.append(f"truth/{name}.tif is not written: {error.what}; {error.hint}")
    makers = list(truth.files.values())
    contents = Ahead(len(makers), lambda row: makers[row]())
    for row, name in enumerate(truth.files):
        files.write_bytes(folder / name, contents[row])
    return tuple(said)


class Ahead(Generic[T]):
    """What is asked for in order, made on all cores: while one is in use, the next ones are being made.

    Parameters
    ----------
    count : int
    make : callable
        Takes a number below `count`.
    """

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self.count, self.make = count, make
        self.begun: dict[int, Future[T]] = {}

    def __getitem__(self, row: int) -> T:
        for each in range(row, min(row + cores() + 1, self.count)):
            if each not in self.begun:
                self.begun[each] = submit(partial(self.make, each))
        self.begun = {each: made for each, made in self.begun.items() if each >= row}
        return self.begun[row].result()


def _look_ahead(stream: Stream) -> Stream:
    """Return a stream whose images or clouds are made on all cores while it is read from begin to end."""
    loader = stream.loader
    if loader is None:
        return stream
    rows = {t: row for row, t in enumerate(stream.t_ns.tolist())}
    if len(rows) < len(stream):  # equal times do not tell samples apart
        return stream
    ahead = Ahead(len(stream), lambda row: loader(stream[row].row))
    return stream.replace(loader=lambda row: ahead[rows[row["t_ns"]]])


def tum_text(motion: Motion, body: str = "") -> str:
    """Return a motion as lines ``t x y z qx qy qz qw`` in the world's axes; `body` is what moves."""
    rows = zip(motion.t_ns.tolist(), motion.position.tolist(), motion.quaternion.tolist(), strict=True)
    head = "# t x y z qx qy qz qw: the body (x forward, y left, z up) in the world (x east, y north, z up)\n"
    head += f"# frame {WORLD}, child {body}\n" if body else f"# frame {WORLD}\n"
    lines = (" ".join([decimal_from_ns(t), *(f"{v:.9g}" for v in (*p, *q))]) for t, p, q in rows)
    return head + "\n".join(lines) + "\n"
