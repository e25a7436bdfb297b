"""Opening what `transect eval` is given: a file of poses, a stream of a recording, the folder of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from transect import formats
from transect.errors import ParseError, UnknownFormatError, UsageError
from transect.evaluation.loading import chosen_stream, is_flat, trajectory_of
from transect.evaluation.result import Input
from transect.recording import Recording, Stream, source_of

PLAIN = ("tum", "kitti", "euroc")
"""Formats of trajectories in one file; asked first, as importing all the others takes longer than reading."""
RUN = "run.json"
_HEADER = re.compile(r"^# (?:frame (?P<frame>[^,\n]+))?(?:, )?(?:child (?P<child>[^,\n]+))?$", re.MULTILINE)


def open_input(source: str, *, truth: bool = False) -> Input:
    """Open what a person names: a file of poses, ``PATH:STREAM`` of a recording, or the folder of a run.

    Parameters
    ----------
    truth : bool
        Of a recording, take what to judge by.
    """
    folder, _, port = (source, "", "") if Path(source).is_dir() else source.rpartition(":")
    if (Path(folder or source) / RUN).is_file():
        return _of_run(source, Path(folder or source), port)
    recording, name = open_named(source)
    stream = recording[name] if name else chosen_stream(recording, truth)
    made = input_of(source, recording, stream, recording.name if len(recording) == 1 else "")
    beside = recording.path.parent / RUN if recording.path else None
    if beside is not None and beside.is_file() and recording.format == "tum":
        return _made_by(made, beside, recording)
    return made


def open_named(source: Path | str) -> tuple[Recording, str]:
    """Open ``PATH`` or ``PATH:STREAM``; return the recording and the name of the stream, or ""."""
    path, _, name = str(source).rpartition(":") if not Path(source).exists() else (str(source), "", "")
    path = path or str(source)
    try:
        return formats.open(path, format=_plain_format(Path(path))), name
    except UnknownFormatError as error:
        raise _almost_tum(Path(path)) or error from None


def _plain_format(path: Path) -> str | None:
    """Return the format of a file that is nothing but a trajectory, or None."""
    if not path.is_file():
        return None
    source = source_of(path)
    return next((n for n in PLAIN if formats.load(n).recognises(source).confidence >= formats.SURE), None)


def _almost_tum(path: Path) -> ParseError | None:
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


def _of_run(source: str, folder: Path, port: str) -> Input:
    """Return a trajectory that a run wrote: the one of that port, or the only one."""
    found = sorted(folder.glob("*.tum"))
    named = [path for path in found if path.stem == port] if port else found
    if len(named) != 1:
        ports = ", ".join(path.stem for path in found)
        raise UsageError(
            f"the run {folder} has {'several trajectories' if named else 'no such trajectory'}",
            why=f"its trajectories are {ports}" if ports else "it wrote no .tum file",
            hint=f"name one: {folder}:{found[0].stem}" if found else "transect run ... -o writes outputs",
        )
    recording, _ = open_named(named[0])
    made = input_of(source, recording, chosen_stream(recording, truth=False), folder.resolve().name)
    return _made_by(made, folder / RUN, recording)


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


def _made_by(made: Input, run: Path, recording: Recording) -> Input:
    """Return an input with what the run that wrote it says: its configuration, and the body's name."""
    try:
        config = json.loads(run.read_text(encoding="utf-8"))["config"]
    except (ValueError, KeyError, OSError) as error:
        raise ParseError(f"{run} is not a whole run", where=str(run), why=str(error)) from error
    assert recording.path is not None
    with recording.path.open(encoding="utf-8", errors="replace") as file:
        head = file.read(400)
    said = {key: name for found in _HEADER.finditer(head) for key, name in found.groupdict().items() if name}
    return replace(made, run=config, trajectory=replace(made.trajectory, **said))


def distinct_names(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Return names that tell things apart: equal ones get their folder before them, or a number after."""
    if len(set(names)) == len(names):
        return list(names)
    folders = [Path(path).resolve().parent.name for path in paths]
    longer = [
        f"{folder}/{name}" if names.count(name) > 1 else name
        for folder, name in zip(folders, names, strict=True)
    ]
    if len(set(longer)) == len(longer):
        return longer
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]
