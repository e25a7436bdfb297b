"""What a case left: when the fault was there, what the checks said, and how long they took."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.integrity.cases import Case
from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.base.files import write_text
from transect.integrity.table import VerdictTable
from transect.recording import Recording, Stream, arrow

SCHEMA_VERSION = 2
"""Version of the result files; increases when the meaning of older ones changes."""
MERGED_S = 1.0
"""Faulty samples closer than this are one event, s."""
CONTENT_REASONS = ("OBJECT", "OBJECT_CONFIRMED")
"""Reasons that state what a sensor measured, not that it is faulty."""
MAX_STEP_FRACTION = 0.1
"""Largest deviation of a clock jump from whole sample intervals, as a fraction of one."""
MIN_OBSCURED_RATIO = 0.01
"""Fraction of affected beams or light below which dust, smoke and fog are not an event."""


@dataclass(frozen=True)
class Flag:
    """What one check said of one stream.

    Attributes
    ----------
    windows : tuple of int
        Numbers of the windows in which it was beyond its limit `warn`.
    declared : tuple of int
        Those that it declared BAD.
    """

    stream: str
    check: str
    reason: str
    windows: tuple[int, ...]
    declared: tuple[int, ...]


@dataclass(frozen=True)
class Event:
    """A time for which a fault lasted in one stream: seconds since the stream's first window began.

    Attributes
    ----------
    windows : tuple of int
        Numbers of the windows that have a sample that it touched.
    also : tuple of str
        Reasons that name this event rightly, beside those of its fault.
    """

    stream: str
    start: float
    end: float
    windows: tuple[int, ...] = ()
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Said:
    """What a peer said of a stream: from when to when, and why; `known` is when it could say so."""

    stream: str
    start: float
    end: float
    reason: str
    known: float


@dataclass(frozen=True)
class Result:
    """What is kept of a case; all times are in seconds since the first window began.

    Attributes
    ----------
    seconds, window : float
        Length of the session and of a window.
    scored : mapping of str to mapping of str to list
        By stream and check the windows that it judged, as pairs of first and last number.
    events : tuple of Event
    flags : tuple of Flag
    cpu : float
        Seconds that the checks took.
    peers : mapping of str to tuple of Said
    unnamed : mapping of str to list of str
        Of a clear recording, by fault the types of streams for which no check would name it.
    """

    case: Case
    seconds: float
    window: float
    types: Mapping[str, str]
    scored: Mapping[str, Mapping[str, Sequence[Sequence[int]]]]
    events: tuple[Event, ...] = ()
    flags: tuple[Flag, ...] = ()
    cpu: float = 0.0
    peers: Mapping[str, tuple[Said, ...]] = field(default_factory=dict[str, "tuple[Said, ...]"])
    unnamed: Mapping[str, Sequence[str]] = field(default_factory=dict[str, "Sequence[str]"])

    @property
    def said(self) -> tuple[Flag, ...]:
        """The flags that say that something is wrong."""
        return tuple(flag for flag in self.flags if flag.reason not in CONTENT_REASONS)

    def judged(self, stream: str, checks: Iterable[str]) -> set[int]:
        """Return the windows of a stream that any of some checks judged."""
        runs = [run for check in checks for run in self.scored.get(stream, {}).get(check, ())]
        return {number for first, last in runs for number in range(first, last + 1)}


def result_of(
    case: Case,
    recording: Recording,
    verdicts: VerdictTable,
    labels: pa.Table | None,
    before: Recording,
    cpu: float,
) -> Result:
    """Return what is kept of a case.

    Parameters
    ----------
    recording, before : Recording
        With the fault, and as it was.
    labels : Table or None
        Of the fault; None for a clear recording.
    """
    edges = _edges_of(verdicts)
    scored, flags = _list_said(verdicts, edges)
    longest = max(edges.values(), key=len, default=np.zeros(2, np.int64))
    return Result(
        case,
        seconds=float(longest[-1] - longest[0]) / NS,
        window=float(longest[1] - longest[0]) / NS,
        types={name: recording[name].type.__name__ for name in edges},
        scored=scored,
        events=() if labels is None else tuple(_list_events(case, recording, before, labels, edges)),
        flags=tuple(flags),
        cpu=cpu,
    )


def _edges_of(verdicts: VerdictTable) -> dict[str, Ints]:
    """Return by stream the edges of its windows, ns."""
    streams = np.array(verdicts.column("stream"), dtype=object)
    begins, ends = (np.array(verdicts.column(name), np.int64) for name in ("t0_ns", "t1_ns"))
    found: dict[str, Ints] = {}
    for name in dict.fromkeys(streams.tolist()):
        here = streams == name
        found[name] = np.append(np.unique(begins[here]), ends[here].max())
    return found


def runs_of(numbers: Iterable[int], apart: int = 1) -> list[list[int]]:
    """Return sorted numbers as pairs of the first and the last of each run, with steps of `apart` at most."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number <= runs[-1][1] + apart:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def _list_said(
    verdicts: VerdictTable, edges: Mapping[str, Ints]
) -> tuple[dict[str, dict[str, list[list[int]]]], list[Flag]]:
    """Return the runs of judged windows by stream and check, and all findings."""
    judged: dict[str, dict[str, list[int]]] = {}
    said: dict[tuple[str, str, str], tuple[list[int], list[int]]] = {}
    columns = ("stream", "check", "reason", "t0_ns", "t1_ns", "score", "state", "muted")
    for stream, check, reason, t0, t1, score, state, muted in zip(
        *map(verdicts.column, columns), strict=True
    ):
        begin, window_ns = (int(each) for each in (edges[stream][0], edges[stream][1] - edges[stream][0]))
        first, beyond = (t0 - begin) // window_ns, score is not None and score < 1.0
        numbers = range(first, first + max(1, -(-(t1 - t0) // window_ns)))  # several in a long silence
        if score is not None:
            judged.setdefault(stream, {}).setdefault(check, []).extend(numbers)
        if muted or not (beyond or state == "BAD"):
            continue
        windows, declared = said.setdefault((stream, check, reason), ([], []))
        windows += numbers if beyond else []
        declared += numbers if state == "BAD" else []
    scored = {s: {check: runs_of(each) for check, each in checks.items()} for s, checks in judged.items()}
    return scored, [Flag(*key, tuple(w), tuple(d)) for key, (w, d) in said.items()]


def _list_events(
    case: Case, recording: Recording, before: Recording, labels: pa.Table, edges: Mapping[str, Ints]
) -> list[Event]:
    streams = np.array(arrow.texts(labels, "stream"), dtype=object)
    index, fraction = arrow.numbers(labels, "index"), arrow.numbers(labels, "fraction")
    least = MIN_OBSCURED_RATIO if case.fault in ("dust", "smoke", "fog") else 0.0
    found: list[Event] = []
    for name in dict.fromkeys(streams.tolist()):
        if name in edges:
            rows = index[(streams == name) & (fraction >= least)]
            t_s = _times(recording, before, name, rows, edges[name])
            step = float(np.median(np.diff(before[name].t_ns[:1000]))) / NS if len(before[name]) > 1 else 0.0
            window = float(edges[name][1] - edges[name][0]) / NS
            also = _also_named(case, recording[name].t_ns, before[name], rows, step)
            found += [
                Event(name, part[0], part[-1], tuple(sorted({int(t / window) for t in part})), also)
                for part in _merge(t_s, max(MERGED_S, 3 * step))
            ]
    return found


def _also_named(case: Case, stamps: Ints, before: Stream, rows: Ints, step: float) -> tuple[str, ...]:
    """Return what else names a fault: its stamps may be those of another, and nothing tells them apart.

    Without log times a clock that jumps ahead by whole steps leaves the stamps of lost samples, and one that
    jumps back by a step those of a sample that is there twice.
    """
    if case.fault != "clock_jump" or before.log_ns is not None or not step or not len(rows):
        return ()
    steps = float(stamps[rows[0]] - before.t_ns[rows[0]]) / NS / step
    if abs(steps - round(steps)) > MAX_STEP_FRACTION:
        return ()
    return ("GAP",) if steps > 0 else ("DUPLICATE",) if round(steps) == -1 else ()


def _times(recording: Recording, before: Recording, name: str, rows: Ints, edges: Ints) -> list[float]:
    """Return sorted times of touched samples: their stamps with the fault, if they are in the session."""
    old, new = before[name].t_ns, recording[name].t_ns
    t_ns = old[rows]
    if len(new) == len(old):
        inside = (new[rows] >= edges[0]) & (new[rows] < edges[-1])
        t_ns = np.where(inside, new[rows], t_ns)
    t_ns = np.clip(t_ns, edges[0], edges[-1] - 1)
    return ((np.sort(t_ns) - edges[0]) / NS).tolist()


def _merge(times: Sequence[float], apart: float) -> list[list[float]]:
    """Return sorted times in groups without steps longer than `apart`."""
    events: list[list[float]] = []
    for t in times:
        if events and t - events[-1][-1] <= apart:
            events[-1].append(t)
        else:
            events.append([t])
    return events


def write_result(result: Result, folder: Path) -> None:
    """Write a result to its file; whole or not at all."""
    document = {
        "schema": SCHEMA_VERSION, "case": result.case.to_dict(),
        "seconds": result.seconds, "window": result.window,
        "types": result.types, "scored": result.scored, "cpu": result.cpu, "unnamed": result.unnamed,
        "events": [vars(each) for each in result.events], "flags": [vars(each) for each in result.flags],
        "peers": {name: [vars(each) for each in said] for name, said in result.peers.items()},
    }  # fmt: skip
    write_text(folder / result.case.file, json.dumps(document) + "\n")


def read_results(folder: Path) -> list[Result]:
    """Return all results of a folder, in the order of their files' names."""
    found = (read_result(path) for path in sorted(folder.glob("*.json")))
    return [result for result in found if result is not None]


def read_result(path: Path) -> Result | None:
    """Return the result of a file; None if it is missing or of another version."""
    if not path.exists():
        return None
    document = json.loads(path.read_text(encoding="utf-8"))
    if document["schema"] != SCHEMA_VERSION:
        return None
    flags = tuple(
        Flag(f["stream"], f["check"], f["reason"], tuple(f["windows"]), tuple(f["declared"]))
        for f in document["flags"]
    )
    return Result(
        Case(**document["case"]), document["seconds"], document["window"], document["types"],
        document["scored"], tuple(_read_event(each) for each in document["events"]), flags, document["cpu"],
        {name: tuple(Said(**each) for each in said) for name, said in document["peers"].items()},
        document["unnamed"],
    )  # fmt: skip


def _read_event(document: Mapping[str, Any]) -> Event:
    windows, also = (tuple(document[name]) for name in ("windows", "also"))
    return Event(document["stream"], document["start"], document["end"], windows, also)
