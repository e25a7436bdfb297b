"""Writing of recordings with faults, and verification that the fault is in the files.

A format may not store a stream, or the column that a fault changed, or round the change away. So the
recording is opened again, and its labelled samples are compared with the stream without and with the fault:
the fault is stored if most of them are closer to the latter.
"""

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
from transect.base.arrays import Ints
from transect.errors import TransectError, UnsupportedError, UsageError
from transect.formats.truth import FOLDER
from transect.recording import FrameTree, Recording, Stream, arrow
from transect.types import Image, PointCloud

from ..randomness import generator
from . import EVERYTHING, LABELS, event_of, fault_named, inject
from .model import Damage, Event, add_labels, label_table


def find_lost(original: Recording, faulty: Recording, again: Recording, labels: pa.Table) -> dict[str, str]:
    """Return the labelled streams whose fault is not in a recording that was read back, with reasons.

    Parameters
    ----------
    original, faulty : Recording
        Without the fault, and with it.
    again : Recording
        The latter, written and opened.
    labels : Table
        See `inject`.
    """
    names, index = np.array(arrow.texts(labels, "stream"), dtype=np.str_), arrow.numbers(labels, "index")
    lost: dict[str, str] = {}
    for name in dict.fromkeys(names.tolist()):
        rows = np.unique(index[names == name].astype(np.int64))
        found = find_stream(again, faulty[name])
        if found is None:
            reason = "it is not stored"
        elif original[name] is faulty[name]:
            reason = _find_reason_of_mount(original.frames, faulty.frames, again.frames, faulty[name].frame)
        else:
            reason = _find_reason(original[name], faulty[name], found, rows)
        if reason:
            lost[name] = reason
    return lost


def find_stream(recording: Recording, stream: Stream) -> Stream | None:
    """Return the stream of a recording that corresponds to a written one; formats rename some."""
    own = [s for s in recording if not s.name.startswith("truth/")]
    plain = stream.name.strip("/").lower()
    for same in (
        [s for s in own if s.name == stream.name],
        [s for s in own if s.name.strip("/").lower() == plain],
        [s for s in own if s.type is stream.type and len(s) == len(stream)],
        [s for s in own if s.type is stream.type],
    ):
        if len(same) == 1:
            return same[0]
    return None


def _find_reason_of_mount(before: FrameTree, after: FrameTree, again: FrameTree, frame: str) -> str:
    """Return why a moved mount is not in frames that were read back, "" if it is."""
    old, new, back = ({e.child: e.matrix for e in tree.edges} for tree in (before, after, again))
    moved = [name for name in after.ancestry(frame) if new.get(name) is not old.get(name)]
    if any(back.get(name) is None for name in moved):
        return "its mount is not stored"
    closer = [_distance(back[name], new[name]) < _distance(back[name], old[name]) for name in moved]
    return "" if all(closer) else "its mount is that without the fault"


def _find_reason(before: Stream, after: Stream, again: Stream, rows: Ints, max_samples: int = 2000) -> str:
    """Return why a fault is not in a stream that was read back, "" if it is."""
    if len(after) > len(before):
        more = len(again) - len(before)
        return "" if more > (len(after) - len(before)) / 2 else "repeated rows are stored once"
    index = _index_in(after, before) if len(after) != len(before) else np.arange(len(before))
    removed, kept = rows[index[rows] < 0], rows[index[rows] >= 0]
    if removed.size and again.clock != before.clock:
        return f"its times are not stored ({again.clock} clock)"
    if removed.size and _are_missing(before, after, again, removed):
        return ""
    kept = kept[:: 1 + len(kept) // max_samples]
    changed = index[kept]
    back = changed if len(after) == len(again) else _nearest(again, after.t_ns[changed], _half_step(after))
    if not (back >= 0).any():
        return "its samples are not stored" if kept.size else "removed samples are stored"
    chosen = back >= 0
    return SampleComparison(before, after, again, kept[chosen], changed[chosen], back[chosen]).find_reason()


# Correspondence of samples


def _index_in(after: Stream, before: Stream) -> Ints:
    """Index (n,) with the fault of each sample without it; -1 if it was removed."""
    return _nearest(after, before.t_ns, 0.0)


def _nearest(stream: Stream, t_ns: Ints, tolerance: float) -> Ints:
    """Index (m,) of the sample nearest to each time; -1 if none is within the tolerance (ns)."""
    if not len(stream):
        return np.full(len(t_ns), -1)
    order = np.argsort(stream.t_ns, kind="stable")
    times = stream.t_ns[order]
    right = np.clip(np.searchsorted(times, t_ns), 0, len(times) - 1)
    left = np.maximum(right - 1, 0)
    best = np.where(np.abs(times[left] - t_ns) < np.abs(times[right] - t_ns), left, right)
    return np.where(np.abs(times[best] - t_ns) <= tolerance, order[best], -1)


def _half_step(stream: Stream) -> float:
    steps = np.diff(np.sort(stream.t_ns))
    return float(np.median(steps)) / 2 if len(steps) else 0.0


def _are_missing(before: Stream, after: Stream, again: Stream, removed: Ints) -> bool:
    """Whether most of the samples that the fault removed are missing."""
    if len(again) <= len(after):
        return True
    return bool(np.mean(_nearest(again, before.t_ns[removed], _half_step(before) / 2) < 0) > 0.5)


# Comparison of values


@dataclass(frozen=True, eq=False)
class SampleComparison:
    """The same samples of a stream without a fault, with it, and read back: streams and their rows (m,)."""

    before: Stream
    after: Stream
    again: Stream
    rows: Ints
    changed: Ints
    back: Ints

    def find_reason(self) -> str:
        """Return why the fault is not in what was read back, "" if it is."""
        if self._is_closer(
            self.before.t_ns[self.rows], self.after.t_ns[self.changed], self.again.t_ns[self.back]
        ):
            return ""
        if self.before.loader is not None and self._has_payloads():
            return ""
        columns = [name for name in self.before.columns if self._is_changed(name)]
        if any(self._has_column(name) for name in columns):
            return ""
        kinds = [*columns, *(["the images or clouds"] if self.before.loader is not None else [])]
        return f"the change of {', '.join(kinds or ['the times'])} is not stored"

    def _is_changed(self, name: str) -> bool:
        pairs = zip(
            _values(self.before, name, self.rows), _values(self.after, name, self.changed), strict=True
        )
        return any(_distance(old, new) > 0 for old, new in pairs)

    def _has_column(self, name: str) -> bool:
        back = _values(self.again, name, self.back) if name in self.again.columns else ()
        if not back:
            return False
        return self._is_closer(
            _values(self.before, name, self.rows), _values(self.after, name, self.changed), back
        )

    def _has_payloads(self) -> bool:
        if self.again.loader is None:
            return False
        middle = len(self.rows) // 2
        sources = ((self.before, self.rows), (self.after, self.changed), (self.again, self.back))
        return self._is_closer(*([stream[int(rows[middle])].value] for stream, rows in sources))

    def _is_closer(self, old: Any, new: Any, back: Any) -> bool:
        """Whether most values that differ were read back as the new ones, and not rounded away."""
        different = [(o, n, b) for o, n, b in zip(old, new, back, strict=True) if _distance(o, n) > 0]
        closer = [_distance(b, n) < min(_distance(b, o), _distance(o, n)) for o, n, b in different]
        return bool(closer) and bool(np.mean(closer) > 0.5)


def _values(stream: Stream, name: str, rows: Ints) -> list[Any]:
    return stream.table.select([name]).take(arrow.from_numpy(rows)).column(0).to_pylist()


def _distance(a: Any, b: Any) -> float:
    """Distance of two values; numbers that are measured in only one of them have the largest weight."""
    if isinstance(a, Image) and isinstance(b, Image):
        a, b = a.data, b.data
    if isinstance(a, PointCloud) and isinstance(b, PointCloud):
        a, b = a.points, b.points
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return float(a != b)
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape:
        return 1e9 * abs(len(x) - len(y)) + 1.0 if x.ndim and y.ndim else np.inf
    known = np.isfinite(x) & np.isfinite(y)
    return float(np.abs(x - y)[known].sum() + 1e6 * np.sum(np.isfinite(x) != np.isfinite(y)))


COMPLETE_FORMAT = "parquet"
"""The format that stores every stream and column, including images and clouds."""


@dataclass(frozen=True, eq=False)
class WrittenFault:
    """A recording with a fault, on disk."""

    path: Path
    labels: pa.Table  # affected samples or bytes, all verified in the files
    said: tuple[str, ...]  # what is not stored, one sentence each
    format: str


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
) -> WrittenFault:
    """Write a recording with a fault and its truth to a new folder, atomically.

    The result is opened again to verify the fault. Streams in which it is not stored have no labels. If it is
    stored in none, or not in all that were named, the next format is tried, or an error is raised.

    Parameters
    ----------
    recording, fault, severity, seed
        See `inject`.
    format : str, optional
        By default the recording's own, or `COMPLETE_FORMAT` if that cannot store the fault.
    streams : sequence of str
        For a fault of files, patterns of file names; by default the seed chooses one file.
    how
        `start`, `end` and `parameters` of `inject`.

    Raises
    ------
    UnsupportedError
        If the fault cannot be stored.
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
        return WrittenFault(folder, kept, (*said, *_describe(fault, lost, refused)), name)
    raise _refusal(fault, format, refused)


def _list_formats(recording: Recording) -> list[str]:
    """Return the formats that are tried for a faulty recording if none is named, in order."""
    able = formats.writing_names()
    return [name for name in dict.fromkeys((recording.format, COMPLETE_FORMAT)) if name in able]


@contextmanager
def _building(folder: Path) -> Generator[Path]:
    """Provide a temporary folder that is moved when it is complete, and removed otherwise."""
    with files.workplace(folder) as beside:
        yield beside / folder.name


def _write(recording: Recording, faulty: Recording, building: Path, format: str) -> tuple[str, ...]:
    from transect.formats.truth.streams import write_beside

    said = formats.write_folder(faulty, building, format, _file_inside(recording, format))
    if building.is_dir():
        return said
    # A single-file format wrote its files next to the folder, and no truth.
    written = list(building.parent.iterdir())
    building.mkdir()
    for file in written:
        os.replace(file, building / file.name)
    return tuple(s for s in said if FOLDER not in s) + write_beside(faulty, building)


def _find_lost(recording: Recording, faulty: Recording, building: Path, labels: pa.Table) -> dict[str, str]:
    """Return the labelled streams whose fault is not in what was written, with reasons."""
    if not labels.num_rows:
        return {}
    try:
        again = formats.open(building)
    except TransectError as error:
        return dict.fromkeys(arrow.texts(labels, "stream"), f"it does not open again: {error.what}")
    return find_lost(recording, faulty, again, labels)


def _without(labels: pa.Table, lost: Mapping[str, str], last: int | None = None) -> pa.Table:
    """Remove the labels of some streams; the labels of earlier faults precede the `last` ones."""
    before = 0 if last is None else labels.num_rows - last
    names = arrow.texts(labels, "stream")
    kept = [k for k, name in enumerate(names) if k < before or name not in lost]
    return labels.take(arrow.from_numpy(np.array(kept, dtype=np.int64)))


def _describe(fault: str, lost: Mapping[str, str], refused: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [
        *(formats.Note(f"{name} cannot store {fault}: {_list(why)}") for name, why in refused.items()),
        *(f"{fault} of {name}: {why}; --format {COMPLETE_FORMAT} stores it" for name, why in lost.items()),
    ]


def _refusal(fault: str, format: str | None, refused: Mapping[str, Mapping[str, str]]) -> UnsupportedError:
    return UnsupportedError(
        f"{fault} would not be in the output",
        where=", ".join(refused),
        why="; ".join(_list(why) for why in refused.values()),
        hint=f"--format {COMPLETE_FORMAT} stores every stream"
        if format not in (None, COMPLETE_FORMAT)
        else "",
    )


def _list(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" if reason else name for name, reason in reasons.items())


def _file_inside(recording: Recording, format: str) -> str:
    """Return the file name of a single-file recording in its new folder, "" for a folder."""
    source = recording.source
    if source is None or format != recording.format or not source.path.is_file():
        return ""
    return source.path.name if source.names == (source.path.name,) else ""


def _write_damaged(
    event: Event, damage: Damage, patterns: tuple[str, ...], folder: Path, format: str
) -> WrittenFault:
    with _building(folder) as building:
        said = _write(event.recording, event.recording, building, format)
        labels = _damage(event, damage, patterns, building)
        os.replace(building, folder)
    return WrittenFault(folder, labels, said, format)


def _damage(event: Event, damage: Damage, patterns: tuple[str, ...], folder: Path) -> pa.Table:
    """Damage written files, and label the bytes: the stream is the file's name, the index that of the byte.

    Bytes have no times: the labels have the time of the recording's first sample.
    """
    names: list[str] = []
    found: list[tuple[int, float]] = []
    for name in _select_files(folder, patterns, event) if event.severity else ():
        content, draw = (folder / name).read_bytes(), generator(event.seed, event.fault, name)
        damaged, touched = damage(content, event.severity, draw)
        files.write_bytes(folder / name, damaged)
        names += [name] * len(touched)
        found += touched
    span = event.recording.span or (0, 0)
    index = np.array([at for at, _ in found], dtype=np.int64)
    fraction = np.array([each for _, each in found], dtype=np.float64)
    labels = label_table(event, np.full(len(names), span[0], dtype=np.int64), names, index, fraction)
    if len(names):
        _write_labels(add_labels(event.recording, event, labels)[LABELS].table, folder)
    return labels


def _select_files(folder: Path, patterns: tuple[str, ...], event: Event) -> list[str]:
    """Return the names of the files to damage, without truth."""
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    names = [n for n in names if not n.startswith("truth/") and (folder / n).stat().st_size]
    if not names:
        raise UsageError(f"{event.fault}: there is no file to damage")
    if patterns in ((), EVERYTHING):
        return [names[int(event.generator("file").integers(len(names)))]]
    selected = [n for n in names if any(fnmatch.fnmatchcase(n.lower(), p.lower()) for p in patterns)]
    if not selected:
        raise UsageError(f"no file matches {' or '.join(patterns)}", hint=f"there are {', '.join(names[:8])}")
    return selected


def _write_labels(table: pa.Table, folder: Path) -> None:
    import pyarrow.parquet as pq

    with files.atomic_write(folder / f"{LABELS}.parquet") as out:
        pq.write_table(table, out)
