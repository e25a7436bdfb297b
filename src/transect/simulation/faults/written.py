"""Recordings with faults, on disk: their own format, their truth, and the labels inside."""

from __future__ import annotations

import fnmatch
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from transect import formats
from transect.base import files
from transect.errors import UsageError
from transect.recording import Recording

from ..randomness import generator
from . import EVERYTHING, LABELS, event_of, fault_named, inject
from ._labels import label_table, labelled
from ._model import Damage, Event


@dataclass(frozen=True, eq=False)
class Written:
    """A recording with a fault, on disk: where, which samples or bytes were touched, what was not carried."""

    path: Path
    labels: pa.Table
    said: tuple[str, ...]


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

    Parameters
    ----------
    recording, fault, severity, seed
        See `inject`.
    folder : Path
    format : str, optional
        Default the recording's own.
    streams : sequence of str
        For a fault of files these are patterns of file names; by default the seed chooses one file.
    how
        `start`, `end` and `parameters` of `inject`.
    """
    chosen, format = fault_named(fault), format or recording.format
    formats.check_target(folder, format)
    folder.parent.mkdir(parents=True, exist_ok=True)
    faulty, labels = recording, None
    if chosen.damage is None:
        faulty, labels = inject(recording, fault, severity, seed, streams=streams, **how)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.writing-") as beside:
        building = Path(beside) / folder.name
        said = formats.write_folder(faulty, building, format, _file_inside(recording, format))
        if chosen.damage is not None:
            event = event_of(recording, chosen, severity, seed, **how)
            labels = _damage(event, chosen.damage, tuple(streams), building)
        os.replace(building, folder)
    return Written(folder, labels, said)


def _file_inside(recording: Recording, format: str) -> str:
    """Return the name that a recording of a single file keeps in its new folder, "" for a folder."""
    source = recording.source
    if source is None or format != recording.format or not source.path.is_file():
        return ""
    return source.path.name if source.names == (source.path.name,) else ""


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
        _write_labels(labelled(event.recording, event, labels)[LABELS].table, folder)
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
