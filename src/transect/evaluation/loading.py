"""Trajectories from whatever holds one: a file, a recording, the folder of a run, a stream, RTK fixes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from transect import formats
from transect.errors import ParseError, UnknownFormatError, UnknownOptionError, UsageError
from transect.recording import Recording, Stream, source_of
from transect.types import NavFix, Odometry, Pose, RigidBodyState, Trajectory

from .result import RUN, Input, port_of_path

POSES = (Pose, RigidBodyState, Odometry)
POSITION, ATTITUDE = ("x", "y", "z"), ("qx", "qy", "qz", "qw")
SIGMAS = ("std_east", "std_north", "std_down")
PLAIN = ("csv", "tum", "kitti", "euroc")
"""Formats of trajectories in one file; asked first, as importing all the others takes longer than reading."""
MIN_BENT_POSES = 4
"""Fewer poses do not show that a path bends."""
MIN_BEND_RATIO = 0.03
"""Second over first extent (singular value) of the positions from which on a path bends."""


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


def trajectory_of(stream: Stream) -> Trajectory:
    """Return the poses of a stream; of satellite fixes the positions, east, north, up of the first.

    Rows without a position are left out. What has no heights at all lies in the plane z = 0. Attitudes that
    stand in for unknown ones, as formats want some, are left out.
    """
    if stream.type is NavFix:
        geodetic = _geodetic(stream)
        known = np.isfinite(geodetic).all(axis=1)
        if not known.any():
            raise UsageError(f"{stream.name} has no fix with a position")
        from transect.geometry import geodesy

        positions = geodesy.local_from_geodetic(geodetic[known], geodetic[known][0])
        spread = covariances_of(stream)
        spread = None if spread is None else spread[known]
        body = stream.child or stream.frame  # ROS names the antenna as the frame, others a world and a body
        return Trajectory(stream.t_ns[known], positions, None, spread, "ENU", body, stream.clock)
    if not issubclass(stream.type, POSES) or not set(POSITION) <= set(stream.columns):
        raise UsageError(
            f"{stream.name} is no trajectory",
            why=f"its samples are {stream.type.__name__}",
            hint="name a stream of poses, odometry or satellite fixes",
        )
    positions = stream.array(*POSITION)
    if is_flat(stream):
        positions[:, 2] = 0.0
    known = np.isfinite(positions).all(axis=1)
    turned = stream.array(*ATTITUDE)[known] if set(ATTITUDE) <= set(stream.columns) else None
    if turned is not None and (np.isnan(turned).all() or _is_placeholder(turned, positions[known])):
        turned = None
    spread = covariances_of(stream)
    return Trajectory(
        stream.t_ns[known],
        positions[known],
        turned,
        None if spread is None else spread[known],
        stream.frame,
        stream.child,
        stream.clock,
    )


def _is_placeholder(attitudes: NDArray[np.float64], positions: NDArray[np.float64]) -> bool:
    """Return whether attitudes (n, 4) are the same to the last digit although the path (n, 3) bends.

    A file of positions only has the identity, or any constant, in every row. No body that follows a bent path
    is measured like that. On a straight path both can be, and the attitudes are kept.
    """
    if len(attitudes) < MIN_BENT_POSES or not (attitudes == attitudes[0]).all():
        return False
    extents = np.linalg.svd(positions - positions.mean(axis=0), compute_uv=False)
    return bool(extents[1] > MIN_BEND_RATIO * extents[0])


def _geodetic(stream: Stream) -> NDArray[np.float64]:
    """Return latitudes, longitudes and heights (n, 3) of fixes; heights are 0 where no fix has any."""
    if not is_flat(stream):
        return stream.array("lat", "lon", "alt")
    return np.column_stack([stream.array("lat", "lon"), np.zeros(len(stream))])


def is_flat(stream: Stream) -> bool:
    """Tell whether a stream has positions in the plane and no height at all, as wheel odometry has."""
    if not len(stream):
        return False
    if stream.type is NavFix:
        return "alt" not in stream.columns or bool(np.isnan(stream["alt"]).all())
    if not set(POSITION) <= set(stream.columns):
        return False
    return bool(np.isnan(stream["z"]).all() and np.isfinite(stream["x"]).any())


def covariances_of(stream: Stream) -> NDArray[np.float64] | None:
    """Return what a stream says of its own errors as (n, 6, 6): translation (m), then rotation (rad).

    Of satellite fixes only the translation (east, north, up) is known, the rest is NaN; other orders than
    ROS's 36 numbers belong to their formats.
    """
    if stream.type is NavFix and set(SIGMAS) <= set(stream.columns):
        spread = np.full((len(stream), 6, 6), np.nan)
        spread[:, :3, :3] = np.square(stream.array(*SIGMAS))[:, :, None] * np.eye(3)
        return spread
    if "covariance" in stream.columns and stream["covariance"].shape[1:] == (36,):
        return stream["covariance"].reshape(-1, 6, 6)
    return None


def choose_stream(recording: Recording, truth: bool) -> Stream:
    """Return the stream of a recording that is meant."""
    if truth and recording.truth is not None:
        return recording.truth
    fitting = [s for s in recording if issubclass(s.type, (*POSES, NavFix)) and len(s)]
    for role in ("estimate", "derived", "measurement", "truth"):
        of_role = [s for s in fitting if s.role == role]
        if len(of_role) == 1 or (len(fitting) == 1):
            return (of_role or fitting)[0]
        if of_role:
            names = ", ".join(s.name for s in of_role)
            raise UsageError(
                f"{recording.name} has several trajectories",
                why=names,
                hint=f"name one: {recording.typed_streams(s.name for s in of_role)}",
            )
    raise UsageError(
        f"{recording.name} has no trajectory", why="no stream of poses, odometry or satellite fixes"
    )


# What a person names on the command line


@dataclass
class Reader:
    """How the recordings that a person names are read.

    Attributes
    ----------
    format : str or None
        Format of all of them; by default it is recognised.
    options : mapping
        For the formats. An option is for the recordings whose format has it.
    """

    format: str | None = None
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
    beside = recording.path.parent / RUN if recording.path else None
    if beside is not None and beside.is_file() and recording.format == "tum":
        return _with_run(made, beside)
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
    return next((n for n in PLAIN if formats.load(n).recognises(source).confidence >= formats.SURE), None)


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
