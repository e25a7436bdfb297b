"""Files of output ports.

===============================  ======================================================================
poses, trajectories              `PORT.tum`; several trajectories also `PORT/000000.tum`, ...
states and odometry              `PORT.tum`, and `PORT.parquet` with all that is not a pose
images, depth maps               `PORT/<t_ns>.png`, `.tiff` for floats
clouds                           `PORT/<t_ns>.ply`, or `PORT.ply` if there is one
height maps and other grids      `PORT/<t_ns>.tif`, or `PORT.tif` if there is one
maps of places                   `PORT/`: see `recording.place_maps`
numbers, texts, other classes    `PORT.parquet`
===============================  ======================================================================
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.files import write_bytes
from transect.errors import UnsupportedError
from transect.recording import Stream
from transect.types import (
    DepthMap,
    GridMap,
    Image,
    Odometry,
    PlaceMap,
    PointCloud,
    Pose,
    Record,
    RigidBodyState,
    Trajectory,
)

from .ports import type_name


class _Sink(Protocol):
    """Where the values of one port go."""

    def add(self, t_ns: int, value: Any) -> None: ...

    def close(self) -> list[Path]: ...


class PortWriter:
    """The file of one port, written as its values come; used with `with`, or closed by hand.

    Leaving the block always closes it: added values are kept.

    Parameters
    ----------
    folder : Path
    port : str
        Its name is the file's.
    kind : type
        The port's type; `object` for any. Whole numbers of a `float` port are kept as float.
    clock : str
        What the times count.
    """

    def __init__(self, folder: Path, port: str, kind: type = object, clock: str = "utc") -> None:
        self.port, self.kind, self.clock = port, kind, clock
        self._base = file_base(folder, port)
        self._sinks: list[_Sink] = []

    def add(self, t_ns: int, value: Any) -> None:
        """Keep one value at its trigger's time; a value that carries a time of its own keeps that.

        Raises
        ------
        KeepingError
            For a value that no file can hold; what was added before is not touched.
        """
        value = float(value) if self.kind is float else value
        self._sinks = self._sinks or _sinks_for(type(value), self._base, self.port, self.clock)
        own = getattr(value, "t_ns", 0)
        stamped = isinstance(own, int | np.integer) and own != 0
        for sink in self._sinks:
            sink.add(int(own if stamped else t_ns), value)

    def close(self) -> list[Path]:
        """Finish the files and return them; none if nothing was added."""
        sinks, self._sinks = self._sinks, []
        return [path for sink in sinks for path in sink.close()]

    def __enter__(self) -> PortWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _sinks_for(kind: type, base: Path, port: str, clock: str) -> list[_Sink]:
    from .output_tables import PoseSink, TableSink, TrajectorySink

    if issubclass(kind, Trajectory):
        return [TrajectorySink(base, port)]
    if issubclass(kind, PlaceMap):
        return [PlaceSink(base)]
    if issubclass(kind, Pose):
        return [PoseSink(base, port, clock)]
    if issubclass(kind, RigidBodyState | Odometry):
        return [PoseSink(base, port, clock), TableSink(base, port, clock)]
    for known, coding in CODINGS.items():
        if issubclass(kind, known):
            return [FileSink(base, coding)]
    return [TableSink(base, port, clock)]


def write_port(
    folder: Path, port: str, kind: type, times_ns: Iterable[int], values: Iterable[Any], clock: str = "utc"
) -> list[Path]:
    """Write all values of a port and return the files; see `PortWriter`.

    Parameters
    ----------
    times_ns : (n,) of int
        On `clock`.
    values : n objects
    """
    writer = PortWriter(folder, port, kind, clock)
    try:
        for t_ns, value in zip(times_ns, values, strict=True):
            writer.add(t_ns, value)
    finally:
        files = writer.close()
    return files


def file_base(folder: Path, port: str) -> Path:
    """Return where a port's files are, but for the suffix.

    A name such as `icp.pose` or `map/dem` is kept as it is; what file systems do not like is escaped as in
    an address (`%20`), and no name leads out of the folder.
    """
    parts = [part for part in quote(port, safe="/").split("/") if part]
    safe = [part.replace(".", "%2E") if part.startswith(".") else part for part in parts]
    return folder.joinpath(*(safe or ["port"]))


def read_port(path: Path) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Read poses or a table back.

    Parameters
    ----------
    path : Path
        `PORT.tum` or `PORT.parquet`.

    Returns
    -------
    times_ns : (n,) int64 array
    columns : dict of str to column
        (n,) arrays; lists of n for texts and arrays. Poses are x, y, z, qx, qy, qz, qw; what has no fields is
        `value`.
    """
    readers = {".tum": _poses, ".parquet": _table}
    if path.suffix not in readers:
        raise UnsupportedError(f"{path.name} has no columns", hint=f"these have: {', '.join(readers)}")
    stream = Stream(path.stem, Record, readers[path.suffix](path))
    return stream.t_ns, {name: _column(stream, name) for name in stream.columns}


def _poses(path: Path) -> pa.Table:
    from transect.formats.tum import parse_poses
    from transect.recording.cache import join_pieces

    return join_pieces(parse_poses(path.read_bytes(), path.name)).table


def _table(path: Path) -> pa.Table:
    from transect.recording import parquet

    return parquet.read_table(path, str(path))


def _column(stream: Stream, name: str) -> Any:
    """Return a column as an array where that can be, else as a list."""
    kind = stream.table.schema.field(name).type
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return stream.table.column(name).to_pylist()
    return stream.column(name)


PNG_TYPES = ("uint8", "uint16")
"""Pixel types that PNG stores without loss; others are written as TIFF."""


@dataclass(frozen=True)
class Coding:
    """How a value becomes a file: its content and suffix, and whether a single one needs no folder."""

    encode: Callable[[Any], tuple[str, bytes]]
    alone: bool


def _image(image: Image) -> tuple[str, bytes]:
    from transect.formats.shared.images import encode_image

    if image.data.dtype == np.bool_:
        image = Image(image.data.astype(np.uint8) * np.uint8(255), image.mode)
    suffix = ".png" if image.data.dtype.name in PNG_TYPES else ".tiff"
    return suffix, encode_image(image, suffix)


def _depth(depth: DepthMap) -> tuple[str, bytes]:
    from transect.formats.shared.images import encode_image

    return ".tiff", encode_image(Image(np.asarray(depth.data, np.float32)), ".tiff")


def _cloud(cloud: PointCloud) -> tuple[str, bytes]:
    from transect.formats.shared.clouds import encode_cloud

    return ".ply", encode_cloud(cloud, ".ply")


def _map(grid: GridMap) -> tuple[str, bytes]:
    from transect.formats.geotiff import encode_geotiff

    return ".tif", encode_geotiff(grid)


CODINGS: dict[type, Coding] = {
    Image: Coding(_image, alone=False),
    DepthMap: Coding(_depth, alone=False),
    PointCloud: Coding(_cloud, alone=True),
    GridMap: Coding(_map, alone=True),
}


class FileSink:
    """One file per value, named by its time: `PORT/<t_ns>.ply`; a single cloud or map is `PORT.ply`."""

    def __init__(self, base: Path, coding: Coding) -> None:
        self._base, self._coding = base, coding
        self._files: list[Path] = []

    def add(self, t_ns: int, value: Any) -> None:
        """Write one value; a second one at the same time gets a number behind its time."""
        suffix, data = self._coding.encode(value)
        path, number = self._base / f"{t_ns}{suffix}", 2
        while path.exists():
            path, number = self._base / f"{t_ns}_{number}{suffix}", number + 1
        write_bytes(path, data)
        self._files.append(path)

    def close(self) -> list[Path]:
        """Return the files, a single one moved out of its folder where it can stand alone."""
        if len(self._files) != 1 or not self._coding.alone:
            return self._files
        file = self._files[0]
        alone = self._base.with_name(f"{self._base.name}{file.suffix}")
        os.replace(file, alone)
        self._base.rmdir()
        return [alone]


class PlaceSink:
    """A folder for a map of places; of several, the last one has all that the others had."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._last: PlaceMap | None = None

    def add(self, t_ns: int, value: PlaceMap) -> None:
        """Take a map in the place of the one before."""
        self._last = value

    def close(self) -> list[Path]:
        """Write the last map."""
        from transect.recording.place_maps import write_map

        return [] if self._last is None else write_map(self._last, self._base)


class Output:
    """The samples of one output port, in memory.

    Attributes
    ----------
    name : str
    type : type
        Of one sample.
    values : list
    """

    files: Sequence[str] = ()

    def __init__(self, name: str, kind: type) -> None:
        self.name, self.type = name, kind
        self._times = array("q")
        self.values: list[Any] = []

    def add(self, t_ns: int, value: Any) -> None:
        """Add a sample."""
        self._times.append(t_ns)
        self.values.append(value)

    @property
    def t_ns(self) -> NDArray[np.int64]:
        """(n,) int64 nanoseconds."""
        return np.array(self._times, np.int64)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return zip(self._times, self.values, strict=True)

    def __repr__(self) -> str:
        return f"Output({self.name!r}, {self.type.__name__}, {len(self)} samples)"

    def begin_with(self, other: Output, count: int) -> None:
        """Take over the first samples of another output."""
        self._times[:], self.values[:] = other._times[:count], other.values[:count]


class Keeper(Protocol):
    """Takes the samples of one port; `files` are below the run's folder."""

    type: type
    files: Sequence[str]

    def add(self, t_ns: int, value: Any) -> None:
        """Add a sample."""
        ...

    def __len__(self) -> int: ...


class OutputCount:
    """Number of samples of an output port, for a run that is not kept."""

    files: Sequence[str] = ()

    def __init__(self, kind: type) -> None:
        self.type, self._number = kind, 0

    def add(self, t_ns: int, value: Any) -> None:
        """Count a sample."""
        self._number += 1

    def __len__(self) -> int:
        return self._number


class FileKeeper(OutputCount):
    """The samples of one output port, written as they come: memory does not grow with the run."""

    def __init__(self, folder: Path, name: str, kind: type, clock: str) -> None:
        super().__init__(kind)
        self._folder, self._writer = folder, PortWriter(folder, name, kind, clock)

    def add(self, t_ns: int, value: Any) -> None:
        """Write a sample."""
        self._writer.add(t_ns, value)
        super().add(t_ns, value)

    def close(self) -> None:
        """Finish the files."""
        self.files = sorted(str(file.relative_to(self._folder)) for file in self._writer.close())


def describe_outputs(kept: Mapping[str, Keeper]) -> dict[str, dict[str, Any]]:
    """Return type, number of samples and files of each output, as plain values."""
    return {
        name: {"type": type_name(keeper.type), "samples": len(keeper), "files": list(keeper.files)}
        for name, keeper in kept.items()
    }
