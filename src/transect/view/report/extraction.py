"""Extraction of the facts of recordings and runs."""

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

from ..axes import TimeAxis, find_axes
from .facts import AxisInterval, FrameRow, Picture, RecordingFacts, RunFacts, StateInterval, StreamFacts
from .plots import signals_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.evaluation.traverse import Traverse
    from transect.integrity.events import SensorEvent
    from transect.integrity.report import SensorReport
    from transect.integrity.table import VerdictTable

PROBLEM_DPI, SNAPSHOT_DPI = 84, 96
MAX_SNAPSHOT_SENSORS = 6


@dataclass(frozen=True)
class ReportOptions:
    """Options of a report."""

    check: bool = True  # whether sensors are checked
    pictures: int = 12  # largest number of pictures of problems; 0 for no pictures at all
    # verdicts that `transect check -o` wrote, instead of checking again
    verdicts: Path | None = None
    # whether the recording is unmodified, so that cached verdicts can be used
    use_cache: bool = False


def gather_recording(recording: Recording, path: str, number: int, wanted: ReportOptions) -> RecordingFacts:
    """Return the facts of a recording.

    Parameters
    ----------
    path : str
        As given on the command line.
    number : int
        Index of the recording on the page.
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
        snapshot=_snapshot(recording) if wanted.pictures else None,
        evidence=_evidence(recording, reports or (), axis_of, wanted.pictures),
    )


# Streams


def _stream_facts(stream: Stream, axis: TimeAxis | None, states: Sequence[StateInterval]) -> StreamFacts:
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


def _span(stream: Stream, axis: TimeAxis) -> AxisInterval:
    return _clip(axis, stream.timing.start_ns or 0, stream.timing.end_ns or 0)


def _clip(axis: TimeAxis, start_ns: int, end_ns: int) -> AxisInterval:
    """Return the part of an interval within an axis, s."""
    start, end = (min(max(t, axis.start_ns), axis.end_ns) for t in (start_ns, end_ns))
    return AxisInterval(axis.seconds(start), axis.seconds(end))


# Checks


def _check(
    recording: Recording, wanted: ReportOptions
) -> tuple[VerdictTable | None, list[SensorReport] | None]:
    from transect.integrity import check
    from transect.integrity.report import report_sensors
    from transect.integrity.table import VerdictTable
    from transect.integrity.verdict_cache import check_once

    if wanted.verdicts is not None:
        table = VerdictTable.read(wanted.verdicts)
        _refuse_other(table, recording, wanted.verdicts)
    elif wanted.check:
        table = check_once(recording) if wanted.use_cache else check(recording)
    else:
        return None, None
    return table, report_sensors(table, recording)


def _refuse_other(table: VerdictTable, recording: Recording, file: Path) -> None:
    """Raise if verdicts are of streams that the recording does not have."""
    others = sorted({name for name in table.column("stream") if name not in recording})
    if others:
        raise UsageError(
            f"{file} has verdicts of another recording than {recording.name}",
            why=f"{recording.name} has no stream {', '.join(others[:3])}",
            hint=f"transect check {recording.typed} -o verdicts  writes verdicts/verdicts.parquet",
        )


def _events(reports: Sequence[SensorReport] | None, table: VerdictTable | None) -> tuple[SensorEvent, ...]:
    from transect.integrity.events import find_events

    return () if reports is None or table is None else tuple(find_events(reports, table))


def _states(table: VerdictTable | None, axis_of: dict[str, TimeAxis]) -> dict[str, tuple[StateInterval, ...]]:
    """Return the intervals of equal state of each stream."""
    found = {} if table is None else table.by_stream
    return {
        name: tuple(_state_intervals(each, axis_of[name])) for name, each in found.items() if name in axis_of
    }


def _state_intervals(windows: Sequence[Verdict], axis: TimeAxis) -> Iterator[StateInterval]:
    first = 0
    for k, verdict in enumerate(windows):
        last = k + 1 == len(windows)
        if last or windows[k + 1].state != verdict.state:
            span = _clip(axis, windows[first].t0_ns, verdict.t1_ns)
            yield StateInterval(span.start, span.end, verdict.state)
            first = k + 1


# Motion and frames


def _traverse(recording: Recording) -> tuple[Traverse | None, str]:
    """Return the distance travelled, or why it is not known."""
    from transect.evaluation.traverse import traverse_of

    try:
        return traverse_of(recording), ""
    except TransectError as error:
        return None, error.what


def _frame_rows(recording: Recording) -> Iterator[FrameRow]:
    """Yield the frames depth first, children in the order of the edges."""
    tree = recording.frames
    children: dict[str, list[FrameEdge]] = {}
    for edge in tree.edges:
        children.setdefault(edge.parent, []).append(edge)
    pending = [(FrameRow(root, 0, False, "", ""), root) for root in reversed(tree.roots)]
    while pending:
        row, name = pending.pop()
        yield row
        below = [
            FrameRow(edge.child, row.depth + 1, edge.moving, _position_text(edge.matrix), edge.source)
            for edge in children.get(name, ())
        ]
        pending += [(each, each.name) for each in reversed(below)]


def _position_text(matrix: Floats | None) -> str:
    """Return the position of a frame in its parent as text; "" if it moves."""
    if matrix is None:
        return ""
    x, y, z = (f"{value:.3f}" for value in matrix[:3, 3] + 0.0)
    return f"{x}, {y}, {z} m"


# Pictures


def _snapshot(recording: Recording) -> Picture | None:
    """Return a picture of the data of imaging and ranging sensors in the middle of a recording, if any."""
    from transect.robots.moment import KINDS, MomentOptions, draw_recordings

    imaging = [s for s in recording if s.type in KINDS and len(s) and s.role == "measurement"]
    if not imaging:
        return None
    clock = imaging[0].clock
    imaging = [s for s in imaging if s.clock == clock][:MAX_SNAPSHOT_SENSORS]
    middle = int(imaging[0].t_ns[len(imaging[0]) // 2])
    time = f"+{middle - int(imaging[0].t_ns[0])}s" if clock == "index" else decimal_from_ns(middle)
    choice = MomentOptions(streams=tuple(glob.escape(s.name) for s in imaging), times=(time,), title="")
    try:
        figure, _ = draw_recordings([recording], choice)
    except TransectError:
        return None
    names = ", ".join(s.name for s in imaging)
    return _picture(figure, f"{names} in the middle of the recording", SNAPSHOT_DPI)


def _evidence(
    recording: Recording, reports: Sequence[SensorReport], axis_of: Mapping[str, TimeAxis], most: int
) -> dict[tuple[str, str], Picture]:
    from transect.integrity.figures import picture_problems
    from transect.integrity.report import time_text

    if not most or not any(report.state == "BAD" for report in reports):
        return {}
    starts = {name: axis.start_ns for name, axis in axis_of.items()}
    found: dict[tuple[str, str], Picture] = {}
    for problem, figure in picture_problems(recording, reports, starts, most):
        since = problem.worst.t0_ns - starts[problem.stream]
        text = f"{problem.stream} at {time_text(since)}, the time of the largest deviation"
        found[problem.stream, problem.reason] = _picture(figure, text, PROBLEM_DPI)
    return found


def _picture(figure: Figure, text: str, dpi: int) -> Picture:
    from transect.draw.figures import webp_of

    return Picture(*webp_of(figure, dpi), text)


def recorded_by(folder: Path) -> Mapping[str, Any]:
    """Return the recording of a run: its current paths, format and options.

    A relative path that does not exist is searched from the folders above the run.
    """
    from transect.engine.folder import find_recorded

    try:
        recorded = _document(folder).get("request", {}).get("recording", {})
        return {**recorded, "paths": [find_recorded(path, folder) for path in recorded.get("paths", ())]}
    except (AttributeError, TypeError, ValueError) as error:
        where, why = str(folder / "run.json"), str(error)
        raise ParseError(f"{folder} is not a complete run", where=where, why=why) from error


def _document(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ParseError(f"{folder} is not a complete run", where=str(path), why=str(error)) from error


def gather_run(
    folder: Path, label: str, recordings: Sequence[RecordingFacts], number: int | None, gone: str = "",
    rename: bool = False, truth: str = "",
) -> RunFacts:  # fmt: skip
    """Return the facts of a run.

    Parameters
    ----------
    label : str
        Its unique name on the page.
    number : int or None
        Index of its recording; None if it could not be opened, with the reason in `gone`.
    rename : bool
        Whether its results are named by the label, as two runs of one compound have equal names.
    truth : str
        Poses to evaluate it against, instead of its recording: a file, or ``PATH:STREAM``.
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
        axis = TimeAxis(f"r-{label}", trajectory.clock, first, last)
    if rename:
        results = tuple(replace(r, estimate=r.estimate.replace(run.name, label)) for r in results)
    results = tuple(sorted(results, key=lambda r: "ate_translation" not in r.arrays))
    checked = check_run(folder)
    return RunFacts(label, folder, run, _document(folder), results, trajectory, number, axis, checked, gone)
