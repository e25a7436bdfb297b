"""What runs left in their folders, as streams that can be looked at beside those of the recording."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.clocks import Clock
from transect.engine.keeping import read_port
from transect.evaluation.ground import LEVELLED
from transect.evaluation.loading import RUN
from transect.recording import Stream, arrow, stream_of_values
from transect.recording.arrow import PAYLOAD
from transect.types import DepthMap, GridMap, Image, PointCloud, Record

FILES: Mapping[str, type] = {
    "Image": Image,
    "DepthMap": DepthMap,
    "PointCloud": PointCloud,
    "GridMap": GridMap,
}
"""Types whose samples are files."""


def streams_of_run(folder: Path, frame: str, start_ns: int) -> Iterator[Stream]:
    """Yield the pictures, clouds, maps and numbers that a run wrote; its paths are shown as such.

    Parameters
    ----------
    folder : Path
        Of a run; what it lists and is not there any more is left out.
    frame : str
        Of the run's own path: the files of clouds do not say theirs.
    start_ns : int
        The time of a single cloud or map, which stands for the whole run.
    """
    written = json.loads((folder / RUN).read_text("utf-8"))
    clock: Clock = written.get("config", {}).get("time", {}).get("clock", "utc")
    for port, output in written.get("outputs", {}).items():
        name, kind = f"{folder.resolve().name} {port}", output["type"]
        there = [folder / file for file in output["files"] if _is_below(folder, file)]
        if kind in FILES:
            yield from _files_of_port(name, FILES[kind], there, clock, frame, start_ns)
        else:
            tables = [file for file in there if file.suffix == ".parquet"]
            yield from (_numbers_of_port(name, file, clock) for file in tables)


def _is_below(folder: Path, file: str) -> bool:
    """Tell whether a file that a run lists is in its folder."""
    path = (folder / file).resolve()
    return path.is_relative_to(folder.resolve()) and path.is_file()


def _files_of_port(
    name: str, kind: type, paths: Sequence[Path], clock: Clock, frame: str, start_ns: int
) -> Iterator[Stream]:
    if not paths:
        return
    times = np.array(
        [int(path.stem.partition("_")[0]) if path.stem[0].isdigit() else start_ns for path in paths]
    )
    order = np.argsort(times, kind="stable")
    rows = {PAYLOAD: arrow.strings([str(number) for number in order])}
    load = _loader(kind, [*paths], frame)
    yield Stream(
        name, kind, arrow.table(times[order], rows), loader=load, clock=clock, role="estimate", frame=frame
    )


def _loader(kind: type, paths: Sequence[Path], frame: str) -> Callable[[Mapping[str, Any]], Any]:
    """Return what opens one of these files; a row has its number."""
    from transect import formats

    def load(row: Mapping[str, Any]) -> Any:
        path = paths[int(row[PAYLOAD])]
        if kind in (Image, DepthMap):
            from transect.formats._images import decode_image

            image = decode_image(path.read_bytes(), path.name)
            return image if kind is Image else DepthMap(np.asarray(image.data, np.float32))
        value = formats.open(path).streams[0][0].value
        known = kind is GridMap and value.frame not in ("", LEVELLED)  # a file of points does not say
        return value if known else replace(value, frame=frame)

    return load


def _numbers_of_port(name: str, path: Path, clock: Clock) -> Stream:
    t_ns, columns = read_port(path)
    numbers = {
        key: value for key, value in columns.items() if isinstance(value, np.ndarray) and value.ndim == 1
    }
    return stream_of_values(name, t_ns, numbers, type=Record, clock=clock)
