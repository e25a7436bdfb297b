"""Outputs of runs as streams, to be shown beside those of the recording."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.clocks import Clock
from transect.engine.output_files import file_base, read_port
from transect.errors import ParseError
from transect.evaluation.inputs import LEVELLED
from transect.evaluation.result import RUN
from transect.recording import Stream, arrow, stream_of_values
from transect.recording.arrow import PAYLOAD
from transect.recording.place_maps import MAP, read_map
from transect.types import DepthMap, GridMap, Image, PlaceMap, PointCloud, Record

FILES: Mapping[str, type] = {
    "Image": Image,
    "DepthMap": DepthMap,
    "PointCloud": PointCloud,
    "GridMap": GridMap,
}
"""Types whose samples are files."""
_STAMP = re.compile(r"([0-9]{1,19})(_|$)").match
"""Nanoseconds at the start of the name of such a file."""
MAX_T_NS = 2**63 - 1


def streams_of_run(folder: Path, frame: str, start_ns: int) -> Iterator[Stream]:
    """Yield the images, clouds, maps and signals that a run wrote, without its trajectories.

    Parameters
    ----------
    folder : Path
        Of a run; missing files are omitted.
    frame : str
        Of the run's trajectory, used for clouds, whose files do not name a frame.
    start_ns : int
        Time for a single cloud or map of the whole run.

    Raises
    ------
    ParseError
        If `run.json` is not valid.
    """
    clock, outputs = _read_outputs(folder / RUN)
    for port, (kind, files) in outputs.items():
        name = f"{folder.resolve().name} {port}"
        there = [folder / file for file in files if _is_below(folder, file)]
        base = file_base(folder, port)
        table = base.with_name(f"{base.name}.parquet")
        if kind in FILES:
            yield from _files_of_port(name, FILES[kind], there, clock, frame, start_ns)
        elif kind == PlaceMap.__name__ and base / MAP in there:
            yield _points_of_map(name, base, clock, frame, start_ns)
        elif table in there:
            yield _numbers_of_port(name, table, clock)


def _read_outputs(path: Path) -> tuple[Clock, dict[str, tuple[str, list[str]]]]:
    """Return the clock of a run, and type and files of each of its ports."""
    try:
        written = json.loads(path.read_text("utf-8"))
        clock = written.get("config", {}).get("time", {}).get("clock", "utc")
        outputs = {
            port: (str(output["type"]), [str(file) for file in output["files"]])
            for port, output in written.get("outputs", {}).items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ParseError(f"{path.parent} is not a complete run", where=str(path), why=why) from error
    return clock, outputs


def _is_below(folder: Path, file: str) -> bool:
    """Return whether a file that a run lists is in its folder."""
    path = (folder / file).resolve()
    return path.is_relative_to(folder.resolve()) and path.is_file()


def _points_of_map(name: str, folder: Path, clock: Clock, frame: str, start_ns: int) -> Stream:
    """Return the points of all keyframes of a SLAM map as one cloud in the map's frame."""

    def load(_: Mapping[str, Any]) -> PointCloud:
        from transect.algorithms.slam.place_maps import map_points

        return PointCloud(map_points(read_map(folder)).astype(np.float32), frame=frame)

    rows = {PAYLOAD: arrow.strings(["0"])}
    return Stream(
        name, PointCloud, arrow.table(np.array([start_ns]), rows),
        loader=load, clock=clock, role="estimate", frame=frame,
    )  # fmt: skip


def _files_of_port(
    name: str, kind: type, paths: Sequence[Path], clock: Clock, frame: str, start_ns: int
) -> Iterator[Stream]:
    if not paths:
        return
    times = np.array([_time_of(path, start_ns) for path in paths])
    order = np.argsort(times, kind="stable")
    rows = {PAYLOAD: arrow.strings([str(number) for number in order])}
    load = _loader(kind, [*paths], frame)
    yield Stream(
        name, kind, arrow.table(times[order], rows), loader=load, clock=clock, role="estimate", frame=frame
    )


def _time_of(path: Path, start_ns: int) -> int:
    stamp = _STAMP(path.stem)
    t_ns = int(stamp[1]) if stamp else start_ns
    return t_ns if t_ns <= MAX_T_NS else start_ns


def _loader(kind: type, paths: Sequence[Path], frame: str) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function that opens the file of a row."""
    from transect import formats

    def load(row: Mapping[str, Any]) -> Any:
        path = paths[int(row[PAYLOAD])]
        if kind in (Image, DepthMap):
            from transect.formats.shared.images import decode_image

            image = decode_image(path.read_bytes(), path.name)
            return image if kind is Image else DepthMap(np.asarray(image.data, np.float32))
        value = formats.open(path).streams[0][0].value
        known = kind is GridMap and value.frame not in ("", LEVELLED)  # files of points name no frame
        return value if known else replace(value, frame=frame)

    return load


def _numbers_of_port(name: str, path: Path, clock: Clock) -> Stream:
    t_ns, columns = read_port(path)
    numbers = {
        key: value for key, value in columns.items() if isinstance(value, np.ndarray) and value.ndim == 1
    }
    return stream_of_values(name, t_ns, numbers, type=Record, clock=clock)
