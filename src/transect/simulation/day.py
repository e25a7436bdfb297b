"""A simulated day: the recording of a robot and its ground truth."""

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
"""Folder next to the recording's own files, which every reader attaches."""


@dataclass(frozen=True)
class WorldOptions:
    """WorldOptions of a simulation."""

    seconds: float = 20.0  # length of the recording
    seed: int = 0  # the same seed gives the same bytes
    scale: float = 1.0  # size of images relative to that of the documented camera
    streams: tuple[str, ...] = ()  # globs of the streams to simulate; none means all
    # conditions of the world, such as ``{"light": "night"}``; each world has its own
    conditions: Mapping[str, str] = field(default_factory=dict[str, str])

    def choose(
        self, world: str, known: Mapping[str, Iterable[str]], free: Sequence[str] = ()
    ) -> dict[str, str]:
        """Return a value for each condition of a world.

        Parameters
        ----------
        known : mapping of str to iterable of str
            Conditions and their possible values, the default first.
        free : sequence of str
            Conditions whose values the world checks itself; empty by default.
        """
        for name, value in self.conditions.items():
            if name not in known and name not in free:
                hint = did_you_mean(name, [*known, *free])
                raise UsageError(f"{world} has no condition {name!r}", hint=hint)
            if name in known and value not in known[name]:
                raise UsageError(f"{name} cannot be {value!r}", hint=f"one of {', '.join(known[name])}")
        defaults = {name: next(iter(values)) for name, values in known.items()}
        return {**defaults, **dict.fromkeys(free, ""), **self.conditions}

    def wants(self, stream: str) -> bool:
        """Whether a stream of this name is to be simulated."""
        return not self.streams or any(fnmatchcase(stream.lower(), glob.lower()) for glob in self.streams)


@dataclass(frozen=True, eq=False)
class Truth:
    """Ground truth, from the state of the world."""

    motion: Motion | None = None  # of the body frame named `body`, at 100 Hz; None for a stationary robot
    # other truth by name (`slip`, `contact`, `hits`), each with `t_ns`; written as Parquet
    tables: Mapping[str, pa.Table] = field(default_factory=dict[str, pa.Table])
    # e.g. `dem`; written as GeoTIFF
    maps: Mapping[str, GridMap] = field(default_factory=dict[str, GridMap])
    # other files by name, generated when they are written: depth images
    files: Mapping[str, Callable[[], bytes]] = field(default_factory=dict[str, Callable[[], bytes]])
    # (3,) or None, latitude, longitude (rad) and height (m) of the world's origin
    origin: np.ndarray | None = None
    body: str = ""  # the frame of `motion`, as named in the recording


@dataclass(frozen=True, eq=False)
class Day:
    """A recording and its truth; images and clouds are generated when they are accessed."""

    recording: Recording
    truth: Truth


def names() -> tuple[str, ...]:
    """Return the names of the worlds."""
    return plugins.names("worlds")


def simulate(world: str, options: WorldOptions | None = None) -> Day:
    """Return a day in a world.

    Parameters
    ----------
    world : str
        One of `names()`.
    """
    return _import_world(world).make_day(options or WorldOptions())


def usual_seconds(world: str, conditions: Mapping[str, str]) -> float:
    """Return the default length of a day in a world, which a world may define itself."""
    own = getattr(_import_world(world), "usual_seconds", None)
    return WorldOptions.seconds if own is None else own(conditions)


def _import_world(world: str) -> Any:
    if world not in names():
        raise UsageError(f"there is no world {world!r}", hint=did_you_mean(world, names()))
    return plugins.load("worlds", world)


def write_day(day: Day, folder: Path) -> tuple[str, ...]:
    """Write a day to a new folder, atomically: the recording in its own format, with `truth/` inside.

    Returns
    -------
    tuple of str
        What the format cannot represent, and the truth that could not be written.
    """
    formats.check_target(folder, day.recording.format)
    with files.staged(folder) as building:
        prefetched = day.recording.replace(streams=tuple(_prefetch(stream) for stream in day.recording))
        notes = formats.write(prefetched, building, day.recording.format)
        return (*notes, *write_truth(day.truth, building / TRUTH))


def iterate_windows(recording: Recording, seconds: float = 10.0) -> Iterator[Recording]:
    """Yield a recording window by window, without files and with the memory of one window.

    Rows of a simulated stream are generated when a window's columns are accessed, and freed with the window,
    so that an hour of lasers and radar can be processed that would not fit into memory.

    Parameters
    ----------
    recording : Recording
        E.g. that of a `Day`.
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
        The maps that could not be written because a library is missing.
    """
    import pyarrow.parquet as pq

    notes: list[str] = []
    if truth.motion is not None:
        files.write_text(folder / "trajectory.tum", tum_text(truth.motion, truth.body))
    for name, table in truth.tables.items():
        with files.atomic_write(folder / f"{name}.parquet") as out:
            pq.write_table(table, out)
    for name, grid in truth.maps.items():
        try:
            files.write_bytes(folder / f"{name}.tif", encode_geotiff(grid))
        except MissingExtraError as error:
            notes.append(f"truth/{name}.tif is not written: {error.what}; {error.hint}")
    makers = list(truth.files.values())
    contents = Prefetcher(len(makers), lambda row: makers[row]())
    for row, name in enumerate(truth.files):
        files.write_bytes(folder / name, contents[row])
    return tuple(notes)


class Prefetcher(Generic[T]):
    """A sequence whose items are accessed in order and generated ahead on all cores.

    Parameters
    ----------
    count : int
    make : callable
        Generates the item of a number below `count`.
    """

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self.count, self.make = count, make
        self.pending: dict[int, Future[T]] = {}

    def __getitem__(self, row: int) -> T:
        for each in range(row, min(row + cores() + 1, self.count)):
            if each not in self.pending:
                self.pending[each] = submit(partial(self.make, each))
        self.pending = {each: future for each, future in self.pending.items() if each >= row}
        return self.pending[row].result()


def _prefetch(stream: Stream) -> Stream:
    """Return a stream whose images or clouds are generated ahead on all cores while it is read in order."""
    loader = stream.loader
    if loader is None:
        return stream
    rows = {t: row for row, t in enumerate(stream.t_ns.tolist())}
    if len(rows) < len(stream):  # samples with equal times cannot be identified
        return stream
    prefetcher = Prefetcher(len(stream), lambda row: loader(stream[row].row))
    return stream.replace(loader=lambda row: prefetcher[rows[row["t_ns"]]])


def tum_text(motion: Motion, body: str = "") -> str:
    """Return a motion as lines ``t x y z qx qy qz qw`` in the world's axes; `body` is the moving frame."""
    rows = zip(motion.t_ns.tolist(), motion.position.tolist(), motion.quaternion.tolist(), strict=True)
    head = "# t x y z qx qy qz qw: the body (x forward, y left, z up) in the world (x east, y north, z up)\n"
    head += f"# frame {WORLD}, child {body}\n" if body else f"# frame {WORLD}\n"
    lines = (" ".join([decimal_from_ns(t), *(f"{v:.9g}" for v in (*p, *q))]) for t, p, q in rows)
    return head + "\n".join(lines) + "\n"
