"""What a person names to be evaluated: files of poses, streams, runs and maps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from transect import formats
from transect.errors import ParseError, TransectError, UnknownFormatError, UnknownOptionError, UsageError
from transect.evaluation.positions.paths import RecordedPath, path_of_trajectory
from transect.evaluation.positions.streams import choose_stream, is_flat, trajectory_of
from transect.recording import Recording, Stream, source_of
from transect.types import GridMap, PointCloud, Trajectory

from .result import RUN, Input, port_of_path

PLAIN = ("csv", "tum", "kitti", "euroc")
"""Formats of trajectories in one file; asked first, as importing all the others takes longer than reading."""


def load_trajectory(
    source: Path | str | Recording | Stream | Trajectory, *, truth: bool = False
) -> Trajectory:
    """Return the trajectory that something holds.

    Parameters
    ----------
    source : path, Recording, Stream or Trajectory
        A path may name a stream after a colon: ``run.bag:/odom``.
    truth : bool
        Of a recording, take what to judge by; else the one estimate, or the one stream of poses.
    """
    if isinstance(source, Trajectory):
        return source
    if isinstance(source, Stream):
        return trajectory_of(source)
    if isinstance(source, Recording):
        return trajectory_of(choose_stream(source, truth))
    recording, name = open_named(source)
    return trajectory_of(recording[name] if name else choose_stream(recording, truth))


# What a person names on the command line


@dataclass
class Reader:
    """How the recordings that a person names are read."""

    format: str | None = None  # format of all of them; by default it is recognised
    # For the formats. An option is for the recordings whose format has it
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    _taken: set[str] = field(default_factory=set[str])
    _errors: dict[str, UnknownOptionError] = field(default_factory=dict[str, UnknownOptionError])

    def open(self, path: str) -> Recording:
        """Open a recording with the options that its format has."""
        given = dict(self.options)
        format = self.format or _plain_format(Path(path))
        while True:
            try:
                recording = formats.open(path, format=format, **given)
            except UnknownOptionError as error:
                self._errors[error.option] = error
                del given[error.option]
            except UnknownFormatError as error:
                raise _tum_problem(Path(path)) or error from None
            else:
                self._taken.update(given)
                return recording

    def refuse_unused(self) -> None:
        """Raise if there is an option that no recording took."""
        for option in self.options:
            if option not in self._taken:
                raise self._errors.get(option) or UsageError(
                    f"the option {option!r} is not used", why="only folders of runs are compared"
                )


def open_input(source: str, *, truth: bool = False, reader: Reader | None = None) -> Input:
    """Open what a person names: a file of poses, ``PATH:STREAM`` of a recording, ``RUN`` or ``RUN:PORT``.

    Parameters
    ----------
    truth : bool
        Of a recording, take what to judge by.
    reader : Reader, optional
        Opens recordings.
    """
    if (run := split_run(source)) is not None:
        return _open_run(source, *run)
    recording, name = open_named(source, reader)
    stream = recording[name] if name else choose_stream(recording, truth)
    made = input_of(source, recording, stream, recording.name if len(recording) == 1 else "")
    run_file = recording.path.parent / RUN if recording.path else None
    if run_file is not None and run_file.is_file() and recording.format == "tum":
        return _with_run(made, run_file)
    return made


def open_named(source: Path | str, reader: Reader | None = None) -> tuple[Recording, str]:
    """Open ``PATH`` or ``PATH:STREAM``; return the recording and the name of the stream, or ""."""
    path, name = split_name(source)
    return (reader or Reader()).open(path), name


def split_run(source: Path | str) -> tuple[Path, str] | None:
    """Return the folder and the port of ``RUN`` or ``RUN:PORT``, the port "" if there is none; else None."""
    path, port = split_name(source)
    return (Path(path), port) if (Path(path) / RUN).is_file() else None


def find_output(folder: Path, port: str, *suffixes: str) -> Path:
    """Return the file of a port of a run; without a port the only one, or that of `port_of_path`.

    Raises
    ------
    UsageError
        If there is none with one of the suffixes, or several, of which none is that of the path, and no port
        is named.
    """
    listed = list_outputs(folder, *suffixes)
    found = [path for path, name in listed if port in ("", name)]
    if len(found) != 1 and not port:
        found = [path for path, name in listed if name == port_of_path(folder)] or found
    if len(found) == 1:
        return found[0]
    ports = [name for _, name in listed]
    kinds = " or ".join(suffixes)
    none = f"no {kinds} file of {port}" if port else f"no {kinds} file"
    raise UsageError(
        f"the run {folder} has {f'several {kinds} files' if found else none}",
        why=f"there are {', '.join(ports)}" if ports else "",
        hint=f"name one: {folder}:{ports[0]}" if ports else f"{folder / RUN} says what came of it",
    )


def list_outputs(folder: Path, *suffixes: str) -> list[tuple[Path, str]]:
    """Return the files with one of these suffixes in the folder of a run, each with the name of its port."""
    found = [path for suffix in suffixes for path in sorted(folder.rglob(f"*{suffix}"))]
    return [(path, unquote(path.relative_to(folder).with_suffix("").as_posix())) for path in found]


def split_name(source: Path | str) -> tuple[str, str]:
    """Return the path and the name of a stream of ``PATH`` or ``PATH:STREAM``."""
    path, _, name = str(source).rpartition(":") if not Path(source).exists() else (str(source), "", "")
    return (path, name) if path else (str(source), "")


def _plain_format(path: Path) -> str | None:
    """Return the format of a file that is nothing but a trajectory, or None."""
    if not path.is_file():
        return None
    source = source_of(path)
    return next(
        (
            n
            for n in PLAIN
            if formats.load(n).recognises(source).confidence >= formats.RECOGNITION.min_recording
        ),
        None,
    )


def _tum_problem(path: Path) -> ParseError | None:
    """Return what is wrong with a file of eight numbers a line that is no TUM trajectory, or None."""
    if not path.is_file():
        return None
    reason = formats.load("tum").recognises(source_of(path)).reason
    if not reason.startswith("its lines are eight numbers but"):
        return None
    return ParseError(
        f"{path} is no TUM trajectory",
        where=str(path),
        why=reason,
        hint="the columns are time [s] x y z qx qy qz qw; columns may be swapped",
    )


def _open_run(source: str, folder: Path, port: str) -> Input:
    """Return a trajectory that a run wrote: the one of that port, or the only one."""
    recording, _ = open_named(find_output(folder, port, ".tum"))
    made = input_of(source, recording, choose_stream(recording, truth=False), folder.resolve().name)
    return _with_run(made, folder / RUN)


def trajectory_of_run(folder: Path) -> Trajectory | None:
    """Return the poses by which a run is judged, None if it wrote none or they cannot be read."""
    port = port_of_path(folder)
    try:
        return open_input(f"{folder}:{port}").trajectory if (folder / f"{port}.tum").is_file() else None
    except TransectError:
        return None


def input_of(source: str, recording: Recording, stream: Stream, called: str) -> Input:
    """Return one side of a comparison: a stream of poses under the name that it is called by."""
    trajectory = trajectory_of(stream)
    missing = len(stream) - len(trajectory)
    notes = (
        [f"{missing} of {len(stream)} rows of {stream.name} have no position: left out"] if missing else []
    )
    return Input(
        called or f"{recording.name}:{stream.name}",
        source,
        stream.name,
        trajectory,
        recording.frames,
        tuple(recording.provenance.sources),
        stream.losses,
        (*notes, *recording.notes, *stream.parsed.notes),
        is_flat(stream),
    )


def _with_run(made: Input, run: Path) -> Input:
    """Return an input with the configuration of the run that wrote it."""
    try:
        config = json.loads(run.read_text(encoding="utf-8"))["config"]
    except (ValueError, KeyError, OSError) as error:
        raise ParseError(f"{run} is not a whole run", where=str(run), why=str(error)) from error
    return replace(made, run=config)


LEVELLED = "level"
"""Frame of a run's map that was turned upright: that of its poses but for the tilt."""


def open_ground(over: str) -> tuple[GridMap | PointCloud, list[RecordedPath], list[str]]:
    """Open what lies under tracks: ``PATH``, ``PATH:STREAM``, ``RUN:PORT``, or a ``RUN`` that made a map.

    Returns
    -------
    GridMap or PointCloud
    list of RecordedPath
        The run's own track in the map's frame, by which others are brought there.
    list of str
        What a person should know.
    """
    folder, port = split_run(over) or (Path(over).parent, None)
    if port:
        over = str(find_output(folder, port, ".tif", ".ply"))
    elif port is not None and (made := list_outputs(folder, ".tif", ".ply")):
        over = str(made[0][0])
    ground = map_of(*open_named(over))
    port = port_of_path(folder)
    if not (folder / RUN).is_file() or not (folder / f"{port}.tum").is_file():
        return ground, [], []
    run = path_of_trajectory(open_input(f"{folder}:{port}").trajectory, folder.resolve().name)
    if isinstance(ground, GridMap) and ground.frame in (run.frame, LEVELLED):
        ground = replace(ground, crs="")  # the track lies in the map's own frame
    if isinstance(ground, GridMap) and (ground.crs or ground.frame not in ("", LEVELLED)):
        return ground, [run] if run.frame == ground.frame else [], []
    notes = ["the map was turned level by the IMU: tracks lie on it without that tilt"]
    return replace(ground, frame=run.frame), [run], notes if ground.frame == LEVELLED else []


def map_of(recording: Recording, name: str = "") -> GridMap | PointCloud:
    """Return the only map or cloud of a recording, or the one of that name."""
    if name:
        chosen = [recording[name]]
    else:
        chosen = [s for s in recording if s.type is GridMap and len(s)]
        chosen = chosen or [s for s in recording if s.type is PointCloud and len(s) == 1]
    if len(chosen) != 1 or chosen[0].type not in (GridMap, PointCloud):
        names = ", ".join(stream.name for stream in chosen)
        raise UsageError(
            f"{recording.name} is not one map",
            why=names or "it has no map",
            hint=f"name one: --over {recording.typed_streams(s.name for s in chosen)}"
            if len(chosen) > 1
            else f"transect info {recording.typed} lists its streams",
        )
    stream = chosen[0]
    value = stream[len(stream) - 1].payload  # of a map that grows, the last
    known = recording.format != "pcd"  # a file of a cloud does not say where its points are
    return replace(value, frame=(value.frame or stream.frame) if known else "")
