"""Facts of a recording and of runs, from the packages that compute them."""

from __future__ import annotations

import glob
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.base.arrays import Floats
from transect.base.clocks import decimal_from_ns
from transect.errors import ParseError, TransectError, UsageError
from transect.evaluation.result import load_result, results_of_run
from transect.integrity.rules import worst
from transect.recording import Recording, Stream
from transect.recording.arrow import LazyColumns
from transect.recording.frames import FrameEdge
from transect.recording.time_axis import find_gaps
from transect.types import Verdict

from ..axes import Axis, find_axes
from .facts import FrameRow, Judged, Picture, RecordingFacts, RunFacts, Span, StreamFacts
from .plots import signals_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.evaluation.traverse import Traverse
    from transect.integrity.events import SensorEvent
    from transect.integrity.report import SensorReport
    from transect.integrity.table import VerdictTable

PICTURE_DPI, LOOK_DPI = 84, 96
MOST_SHOWN = 6
"""Sensors in the picture of one moment."""


@dataclass(frozen=True)
class Wanted:
    """What to gather."""

    check: bool = True  # whether sensors are judged
    pictures: int = 12  # pictures of bad moments at most; 0 for no picture at all
    # what `transect check -o` wrote of the recording, to be used instead of checking again
    verdicts: Path | None = None
    # whether the recording is as it lies on the disk, so that verdicts of an earlier check will do
    kept: bool = False


def gather_recording(recording: Recording, path: str, number: int, wanted: Wanted) -> RecordingFacts:
    """Return what a page says of a recording.

    Parameters
    ----------
    path : str
        As a person gave it.
    number : int
        Of the recording on the page.
    """
    from transect.evaluation.traverse import find_published
    from transect.integrity.runner import checkable

    axes, axis_of = find_axes(recording, f"a{number}-")
    table, reports = _check(recording, wanted)
    states = _states(table, axis_of)
    traverse, no_traverse = _traverse(recording)
    signals, more = signals_of(recording, axis_of, f"i{number}-")
    robot, truth = recording.robot, recording.truth
    return RecordingFacts(
        name=recording.name,
        path=path,
        format=recording.format,
        robot=(robot.title or robot.name) if robot else "",
        reference=robot.reference if robot else "",
        conditions=dict(recording.conditions),
        streams=tuple(_stream_facts(s, axis_of.get(s.name), states.get(s.name, ())) for s in recording),
        axes=axes,
        cameras=tuple(f"{name}: {c.width} x {c.height}" for name, c in recording.cameras.items()),
        losses=tuple((loss.where, loss.reason, loss.count) for loss in recording.losses),
        notes=tuple(recording.all_notes),
        files=recording.provenance.sources,
        options=dict(recording.options),
        reports=None if reports is None else tuple(reports),
        events=_events(reports, table),
        unchecked=tuple(s.name for s in recording if not checkable(s)),
        traverse=traverse,
        no_traverse=no_traverse,
        published=find_published(recording),
        frames=tuple(_frame_rows(recording)),
        signals=signals,
        more_signals=more,
        truth=truth.name if truth is not None else "",
        look=_look(recording) if wanted.pictures else None,
        evidence=_evidence(recording, reports or (), axis_of, wanted.pictures),
    )


# Streams


def _stream_facts(stream: Stream, axis: Axis | None, states: Sequence[Judged]) -> StreamFacts:
    timing = stream.timing
    timed = stream.clock != "index" and axis is not None and timing.start_ns is not None
    gaps = find_gaps(LazyColumns(stream.table, "t_ns"), stream.seams) if timed else None
    return StreamFacts(
        name=stream.name,
        type=stream.type.__name__,
        role=stream.role,
        tag=stream.tag,
        clock=stream.clock,
        samples=timing.count,
        rate_hz=timing.rate if timed else math.nan,
        axis=axis if timed else None,
        span=_span(stream, axis) if timed and axis else None,
        gaps=tuple(_clip(axis, at, at + size) for at, size in gaps.longest) if gaps and axis else (),
        gap_count=gaps.number if gaps else 0,
        longest_gap_s=timing.gap_s if timed else math.nan,
        states=tuple(states),
        state=worst(judged.state for judged in states) if states else None,
        losses=sum(loss.count for loss in stream.losses),
        frame=stream.frame,
    )


def _span(stream: Stream, axis: Axis) -> Span:
    return _clip(axis, stream.timing.start_ns or 0, stream.timing.end_ns or 0)


def _clip(axis: Axis, start_ns: int, end_ns: int) -> Span:
    """Return the part of a stretch that lies on an axis, s."""
    start, end = (min(max(t, axis.start_ns), axis.end_ns) for t in (start_ns, end_ns))
    return Span(axis.seconds(start), axis.seconds(end))


# Checks


def _check(recording: Recording, wanted: Wanted) -> tuple[VerdictTable | None, list[SensorReport] | None]:
    from transect.integrity import check
    from transect.integrity.report import report_sensors
    from transect.integrity.table import VerdictTable
    from transect.integrity.verdict_cache import check_once

    if wanted.verdicts is not None:
        table = VerdictTable.read(wanted.verdicts)
        _refuse_other(table, recording, wanted.verdicts)
    elif wanted.check:
        table = check_once(recording) if wanted.kept else check(recording)
    else:
        return None, None
    return table, report_sensors(table, recording)


def _refuse_other(table: VerdictTable, recording: Recording, file: Path) -> None:
    """Raise if verdicts are on streams that the recording does not have."""
    others = sorted({name for name in table.column("stream") if name not in recording})
    if others:
        raise UsageError(
            f"{file} is not about {recording.name}",
            why=f"which has no stream {', '.join(others[:3])}",
            hint=f"transect check {recording.typed} -o verdicts  writes verdicts/verdicts.parquet",
        )


def _events(reports: Sequence[SensorReport] | None, table: VerdictTable | None) -> tuple[SensorEvent, ...]:
    from transect.integrity.events import find_events

    return () if reports is None or table is None else tuple(find_events(reports, table))


def _states(table: VerdictTable | None, axis_of: dict[str, Axis]) -> dict[str, tuple[Judged, ...]]:
    """Return the stretches of equal state of each stream."""
    found = {} if table is None else table.by_stream
    return {name: tuple(_stretches(each, axis_of[name])) for name, each in found.items() if name in axis_of}


def _stretches(windows: Sequence[Verdict], axis: Axis) -> Iterator[Judged]:
    first = 0
    for k, verdict in enumerate(windows):
        last = k + 1 == len(windows)
        if last or windows[k + 1].state != verdict.state:
            span = _clip(axis, windows[first].t0_ns, verdict.t1_ns)
            yield Judged(span.start, span.end, verdict.state)
            first = k + 1


# Motion and frames


def _traverse(recording: Recording) -> tuple[Traverse | None, str]:
    """Return how far it drove, or why that cannot be told."""
    from transect.evaluation.traverse import traverse_of

    try:
        return traverse_of(recording), ""
    except TransectError as error:
        return None, error.what


def _frame_rows(recording: Recording) -> Iterator[FrameRow]:
    """Yield the frames depth first, children in the order in which they came."""
    tree = recording.frames
    children: dict[str, list[FrameEdge]] = {}
    for edge in tree.edges:
        children.setdefault(edge.parent, []).append(edge)
    pending = [(FrameRow(root, 0, False, "", ""), root) for root in reversed(tree.roots)]
    while pending:
        row, name = pending.pop()
        yield row
        below = [
            FrameRow(edge.child, row.depth + 1, edge.moving, _place(edge.matrix), edge.source)
            for edge in children.get(name, ())
        ]
        pending += [(each, each.name) for each in reversed(below)]


def _place(matrix: Floats | None) -> str:
    """Return where a frame is in its parent, in words; "" if it moves."""
    if matrix is None:
        return ""
    x, y, z = (f"{value:.3f}" for value in matrix[:3, 3] + 0.0)
    return f"{x}, {y}, {z} m"


# Pictures


def _look(recording: Recording) -> Picture | None:
    """Return what sensors saw in the middle of a recording; None where none of them sees."""
    from transect.robots.moment import KINDS, Choice, draw_recordings

    seeing = [s for s in recording if s.type in KINDS and len(s) and s.role == "measurement"]
    if not seeing:
        return None
    clock = seeing[0].clock
    seeing = [s for s in seeing if s.clock == clock][:MOST_SHOWN]
    middle = int(seeing[0].t_ns[len(seeing[0]) // 2])
    time = f"+{middle - int(seeing[0].t_ns[0])}s" if clock == "index" else decimal_from_ns(middle)
    choice = Choice(streams=tuple(glob.escape(s.name) for s in seeing), times=(time,), title="")
    try:
        figure, _ = draw_recordings([recording], choice)
    except TransectError:
        return None
    names = ", ".join(s.name for s in seeing)
    return _picture(figure, f"{names} in the middle of the recording", LOOK_DPI)


def _evidence(
    recording: Recording, reports: Sequence[SensorReport], axis_of: Mapping[str, Axis], most: int
) -> dict[tuple[str, str], Picture]:
    from transect.integrity.figures import picture_problems
    from transect.integrity.report import time_text

    if not most or not any(report.state == "BAD" for report in reports):
        return {}
    starts = {name: axis.start_ns for name, axis in axis_of.items()}
    found: dict[tuple[str, str], Picture] = {}
    for problem, figure in picture_problems(recording, reports, starts, most):
        since = problem.worst.t0_ns - starts[problem.stream]
        text = f"{problem.stream} at {time_text(since)}, when it was worst"
        found[problem.stream, problem.reason] = _picture(figure, text, PICTURE_DPI)
    return found


def _picture(figure: Figure, text: str, dpi: int) -> Picture:
    from transect.draw.figures import webp_of

    return Picture(*webp_of(figure, dpi), text)


def recorded_by(folder: Path) -> Mapping[str, Any]:
    """Return what a run says of the recording that it played: its paths, as they are now, format, options.

    A path that is not there from here is looked for from the folders above the run: it was typed there.
    """
    from transect.engine.folder import find_recorded

    try:
        recorded = _document(folder).get("request", {}).get("recording", {})
        return {**recorded, "paths": [find_recorded(path, folder) for path in recorded.get("paths", ())]}
    except (AttributeError, TypeError, ValueError) as error:
        where, why = str(folder / "run.json"), str(error)
        raise ParseError(f"{folder} is not a whole run", where=where, why=why) from error


def _document(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ParseError(f"{folder} is not a whole run", where=str(path), why=str(error)) from error


def gather_run(
    folder: Path, label: str, recordings: Sequence[RecordingFacts], number: int | None, gone: str = "",
    rename: bool = False, truth: str = "",
) -> RunFacts:  # fmt: skip
    """Return what a page says of a run.

    Parameters
    ----------
    label : str
        That tells it from the others of the page.
    number : int or None
        Which of the recordings it played; `gone` says why there is none.
    rename : bool
        Whether its results are called by the label: two runs of one compound have one name.
    truth : str
        What to judge it by instead of its recording: a file of poses, or ``PATH:STREAM``.
    """
    from transect.engine import Run
    from transect.engine.folder import check_run
    from transect.evaluation.inputs import trajectory_of_run
    from transect.evaluation.runs.comparison import judge_by

    run = Run.load(folder)
    trajectory = trajectory_of_run(folder)
    results = tuple(judge_by(folder, truth, run.name) if truth else map(load_result, results_of_run(folder)))
    axis = recordings[number].axis if number is not None else None
    if axis is None and trajectory is not None and len(trajectory) > 1 and trajectory.clock != "index":
        first, last = int(trajectory.t_ns.min()), int(trajectory.t_ns.max())
        axis = Axis(f"r-{label}", trajectory.clock, first, last)
    if rename:
        results = tuple(replace(r, estimate=r.estimate.replace(run.name, label)) for r in results)
    results = tuple(sorted(results, key=lambda r: "ate_translation" not in r.arrays))
    checked = check_run(folder)
    return RunFacts(label, folder, run, _document(folder), results, trajectory, number, axis, checked, gone)
