"""Recordings with faults, on disk: their own format, their truth, and the labels inside."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from transect import formats
from transect.base import files
from transect.errors import TransectError, UnsupportedError, UsageError
from transect.formats.truth import FOLDER
from transect.recording import Recording, arrow

from ..randomness import generator
from . import EVERYTHING, LABELS, event_of, fault_named, inject
from ._labels import add_labels, label_table
from ._model import Damage, Event
from .carried import find_lost

ANYTHING = "parquet"
"""The format that holds every stream and column, images and clouds too."""


@dataclass(frozen=True, eq=False)
class Written:
    """A recording with a fault, on disk."""

    path: Path
    labels: pa.Table  # which samples or bytes were touched; all of them were found in the files again
    said: tuple[str, ...]  # what was not carried, a sentence each
    format: str  # what it was written as


def write_injected(
    recording: Recording,
    folder: Path,
    fault: str,
    severity: float,
    seed: int = 0,
    *,
    format: str | None = None,
    streams: Sequence[str] = EVERYTHING,
    **how: Any,
) -> Written:
    """Write a recording to which a fault happens to a new folder, its truth inside; all or nothing.

    What was written is opened again, and the fault looked for. Streams that do not hold it have no labels.
    If none does, or not all that were named, the next format is tried, or the fault is refused.

    Parameters
    ----------
    recording, fault, severity, seed
        See `inject`.
    format : str, optional
        By default the recording's own, or `ANYTHING` if that cannot hold the fault.
    streams : sequence of str
        For a fault of files these are patterns of file names; by default the seed chooses one file.
    how
        `start`, `end` and `parameters` of `inject`.

    Raises
    ------
    UnsupportedError
        If the fault would not be in what is written.
    """
    chosen = fault_named(fault)
    tried = [format] if format else _list_formats(recording)
    for name in tried:
        formats.check_target(folder, name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if chosen.damage is not None:
        event = event_of(recording, chosen, severity, seed, **how)
        return _write_damaged(event, chosen.damage, tuple(streams), folder, tried[0])
    faulty, labels = inject(recording, fault, severity, seed, streams=streams, **how)
    refused: dict[str, dict[str, str]] = {}
    for name in tried:
        with _building(folder) as building:
            try:
                said = _write(recording, faulty, building, name)
            except UnsupportedError as error:
                refused[name] = {error.what: error.why}
                continue
            lost = _find_lost(recording, faulty, building, labels)
            kept = _without(labels, lost)
            if labels.num_rows and (not kept.num_rows or (lost and tuple(streams) != EVERYTHING)):
                refused[name] = lost
                continue
            if lost:
                _write_labels(_without(faulty[LABELS].table, lost, labels.num_rows), building)
            os.replace(building, folder)
        return Written(folder, kept, (*said, *_describe(fault, lost, refused)), name)
    raise _refusal(fault, format, refused)


def _list_formats(recording: Recording) -> list[str]:
    """Return the formats in which a faulty recording is written if none is named, the first first."""
    able = formats.writing_names()
    return [name for name in dict.fromkeys((recording.format, ANYTHING)) if name in able]


@contextmanager
def _building(folder: Path) -> Generator[Path]:
    """Give a place for a folder that is moved away when it is whole; nothing is left of it if it is not."""
    with files.workplace(folder) as beside:
        yield beside / folder.name


def _write(recording: Recording, faulty: Recording, building: Path, format: str) -> tuple[str, ...]:
    from transect.formats.truth.streams import write_beside

    said = formats.write_folder(faulty, building, format, _file_inside(recording, format))
    if building.is_dir():
        return said
    # A format of single files wrote them beside it, and the truth nowhere.
    made = list(building.parent.iterdir())
    building.mkdir()
    for file in made:
        os.replace(file, building / file.name)
    return tuple(s for s in said if FOLDER not in s) + write_beside(faulty, building)


def _find_lost(recording: Recording, faulty: Recording, building: Path, labels: pa.Table) -> dict[str, str]:
    """Return the labelled streams whose fault is not in what was written, and why."""
    if not labels.num_rows:
        return {}
    try:
        again = formats.open(building)
    except TransectError as error:
        return dict.fromkeys(arrow.texts(labels, "stream"), f"it does not open again: {error.what}")
    return find_lost(recording, faulty, again, labels)


def _without(labels: pa.Table, lost: Mapping[str, str], last: int | None = None) -> pa.Table:
    """Return labels without those of some streams; earlier faults have labels before the `last` ones."""
    before = 0 if last is None else labels.num_rows - last
    names = arrow.texts(labels, "stream")
    kept = [k for k, name in enumerate(names) if k < before or name not in lost]
    return labels.take(arrow.from_numpy(np.array(kept, dtype=np.int64)))


def _describe(fault: str, lost: Mapping[str, str], refused: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [
        *(formats.Note(f"{name} cannot hold {fault}: {_list(why)}") for name, why in refused.items()),
        *(f"{fault} of {name}: {why}; --format {ANYTHING} holds it" for name, why in lost.items()),
    ]


def _refusal(fault: str, format: str | None, refused: Mapping[str, Mapping[str, str]]) -> UnsupportedError:
    return UnsupportedError(
        f"{fault} would not be in the output",
        where=", ".join(refused),
        why="; ".join(_list(why) for why in refused.values()),
        hint=f"--format {ANYTHING} holds every stream" if format not in (None, ANYTHING) else "",
    )


def _list(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" if reason else name for name, reason in reasons.items())


def _file_inside(recording: Recording, format: str) -> str:
    """Return the name that a recording of a single file keeps in its new folder, "" for a folder."""
    source = recording.source
    if source is None or format != recording.format or not source.path.is_file():
        return ""
    return source.path.name if source.names == (source.path.name,) else ""


def _write_damaged(
    event: Event, damage: Damage, patterns: tuple[str, ...], folder: Path, format: str
) -> Written:
    with _building(folder) as building:
        said = _write(event.recording, event.recording, building, format)
        labels = _damage(event, damage, patterns, building)
        os.replace(building, folder)
    return Written(folder, labels, said, format)


def _damage(event: Event, damage: Damage, patterns: tuple[str, ...], folder: Path) -> pa.Table:
    """Damage written files, and label the bytes: the stream is the file's name, the index the byte.

    A byte has no time: the labels have that of the recording's first sample.
    """
    names: list[str] = []
    found: list[tuple[int, float]] = []
    for name in _files_meant(folder, patterns, event) if event.severity else ():
        content, draw = (folder / name).read_bytes(), generator(event.seed, event.fault, name)
        damaged, touched = damage(content, event.severity, draw)
        files.write_bytes(folder / name, damaged)
        names += [name] * len(touched)
        found += touched
    span = event.recording.span or (0, 0)
    index = np.array([at for at, _ in found], dtype=np.int64)
    fraction = np.array([share for _, share in found], dtype=np.float64)
    labels = label_table(event, np.full(len(names), span[0], dtype=np.int64), names, index, fraction)
    if len(names):
        _write_labels(add_labels(event.recording, event, labels)[LABELS].table, folder)
    return labels


def _files_meant(folder: Path, patterns: tuple[str, ...], event: Event) -> list[str]:
    """Return the names of the files to damage, truth never among them."""
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    names = [n for n in names if not n.startswith("truth/") and (folder / n).stat().st_size]
    if not names:
        raise UsageError(f"{event.fault}: there is no file to damage")
    if patterns in ((), EVERYTHING):
        return [names[int(event.generator("file").integers(len(names)))]]
    meant = [n for n in names if any(fnmatch.fnmatchcase(n.lower(), p.lower()) for p in patterns)]
    if not meant:
        raise UsageError(f"no file matches {' or '.join(patterns)}", hint=f"there are {', '.join(names[:8])}")
    return meant


def _write_labels(table: pa.Table, folder: Path) -> None:
    import pyarrow.parquet as pq

    with files.atomic_write(folder / f"{LABELS}.parquet") as out:
        pq.write_table(table, out)
