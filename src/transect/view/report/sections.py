"""Sections on streams, problems, trajectory and signals, and the timeline of all streams."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from transect.base.clocks import NS
from transect.evaluation.tables import Table, table_of
from transect.evaluation.traverse import HEADINGS, published_row, remarks_of, row_of
from transect.integrity.events import cause_of
from transect.integrity.report import SensorProblem, time_text
from transect.recording.summary import duration_text, rate_text

from ..axes import TimeAxis
from .facts import AxisInterval, Picture, RecordingFacts, ReportFacts, SampledSignal, StreamFacts
from .maps import data_uri, draw_errors
from .markup import (
    DRAWING_WIDTH,
    Child,
    Markup,
    PageAssets,
    axis_text,
    join,
    number,
    percent,
    short_numbers,
    stretched,
    tag,
    time_ticks,
)
from .plots import PlotLine, draw_plot, over_time
from .sentences import as_sentence

STRIP_HEIGHT_PX = 22
STATE_HEIGHTS_PX = {"BAD": 22, "SUSPECT": 15, "OK": 9, "UNKNOWN": 4}
"""States differ in height as well as in colour."""
STATE_TEXTS = {"OK": "OK", "SUSPECT": "suspect", "BAD": "bad", "UNKNOWN": "not checked"}
MIN_GAP_RATIO = 0.02
"""Smallest gap at the start or end of a stream that is drawn, as a fraction of the axis."""
MIN_BAR_WIDTH = 1.6
"""Units of the drawing, so that short intervals are visible."""


def draw_timeline(sheet: PageAssets, recording: RecordingFacts) -> Markup:
    """Draw the strips of a recording, grouped by time axis; streams without times are listed."""
    parts = [_draw_axis(sheet, axis, recording, number == 0) for number, axis in enumerate(recording.axes)]
    timeless = [stream for stream in recording.streams if stream.axis is None]
    if timeless:
        rows = [_text_row(stream) for stream in timeless]
        parts.append(tag("div", tag("p", "Without timestamps", class_="axis"), rows, class_="strips"))
    judged = any(stream.states for stream in recording.streams)
    return tag("div", parts, legend(judged) if recording.axes else None, class_="timeline")


def legend(judged: bool) -> Markup:
    """Return the legend of strips."""
    states = ("BAD", "SUSPECT", "OK", "UNKNOWN") if judged else ()
    keys = [tag("span", tag("i", class_=f"key state {state}"), STATE_TEXTS[state]) for state in states]
    keys += [
        tag("span", tag("i", class_="key state there"), "recorded, not checked"),
        tag("span", tag("i", class_="key gap"), "missing, or a gap of more than five median steps"),
    ]
    return tag("p", keys, class_="legend")


def _draw_axis(sheet: PageAssets, axis: TimeAxis, recording: RecordingFacts, first: bool) -> Markup:
    streams = [stream for stream in recording.streams if stream.axis == axis]
    apart = "" if first else " (far from the others in time; drawn from its own start)"
    rows = [_strip_row(sheet, stream, axis) for stream in streams]
    ticks = [
        tag("text", text, x=percent(t / (axis.duration_s or 1.0)), y=12, class_="tick",
            text_anchor="start" if t == 0 else "end" if t > 0.97 * axis.duration_s else "middle")
        for t, text in time_ticks(axis)
    ]  # fmt: skip
    scale = tag("div", tag("span", class_="name"), tag("svg", ticks, class_="ticks", height=16), class_="row")
    return tag("div", tag("p", f"{axis_text(axis)}{apart}", class_="axis"), rows, scale, class_="strips")


def _strip_row(sheet: PageAssets, stream: StreamFacts, axis: TimeAxis) -> Markup:
    key = sheet.key("strip")
    shapes = [*_presence(stream, axis), *_draw_states(stream, axis), *_gaps(stream, axis)]
    cursor = tag("line", class_="cursor", x1="0", x2="0", y1="0", y2=STRIP_HEIGHT_PX)
    strip = tag(
        "svg", stretched(STRIP_HEIGHT_PX, shapes), cursor, class_="strip", id=key, height=STRIP_HEIGHT_PX,
        role="img",
        data_group=axis.group, data_end=number(axis.duration_s, 6), aria_label=_describe(stream),
        tabindex="0",
    )  # fmt: skip
    sheet.values[key] = {"name": stream.name, "end": axis.duration_s, **_spans(stream)}
    return tag("div", _name(stream), strip, tag("span", _describe(stream), class_="rate"), class_="row")


def _spans(stream: StreamFacts) -> dict[str, object]:
    """Return the states and gaps of a strip, for the script."""
    there = [stream.span.start, stream.span.end] if stream.span else [0, -1]
    return {
        "there": short_numbers(there, 9),
        "states": [[*short_numbers([s.start, s.end], 9), STATE_TEXTS[s.state]] for s in stream.states],
        "gaps": [short_numbers([gap.start, gap.end], 9) for gap in stream.gaps],
    }


def _name(stream: StreamFacts) -> Markup:
    role = "" if stream.role == "measurement" else stream.role
    small = ", ".join(filter(None, (stream.type, stream.tag, role)))
    return tag("span", tag("b", stream.name), tag("small", small), class_="name")


def _text_row(stream: StreamFacts) -> Markup:
    text = f"{stream.samples} sample{'s' * (stream.samples != 1)}"
    return tag("div", _name(stream), tag("span", text, class_="rate"), class_="row plain")


def _describe(stream: StreamFacts) -> str:
    """Return rate, number of samples, gaps and state of a stream as text."""
    parts = [rate_text(stream.rate_hz)] if math.isfinite(stream.rate_hz) else []
    parts.append(f"{stream.samples} samples" if stream.samples != 1 else "1 sample")
    if stream.gap_count:
        many = f"{stream.gap_count} gaps, longest" if stream.gap_count > 1 else "a gap of"
        parts.append(f"{many} {duration_text(max(gap.end - gap.start for gap in stream.gaps))}")
    if stream.state in ("BAD", "SUSPECT"):
        parts.append(STATE_TEXTS[stream.state])
    return ", ".join(parts)


def _presence(stream: StreamFacts, axis: TimeAxis) -> Iterator[Markup]:
    if stream.span is not None and not stream.states:
        yield _bar(stream.span.start, stream.span.end, 7, "there", axis)


def _draw_states(stream: StreamFacts, axis: TimeAxis) -> Iterator[Markup]:
    """Yield the states, the worst last, so that short bad intervals stay visible."""
    order = ("UNKNOWN", "OK", "SUSPECT", "BAD")
    for judged in sorted(stream.states, key=lambda each: order.index(each.state)):
        yield _bar(judged.start, judged.end, STATE_HEIGHTS_PX[judged.state], judged.state, axis)


def _gaps(stream: StreamFacts, axis: TimeAxis) -> Iterator[Markup]:
    for gap in (*stream.gaps, *_absences(stream, axis)):
        yield _bar(gap.start, gap.end, 12, "gap", axis)


def _absences(stream: StreamFacts, axis: TimeAxis) -> Iterator[AxisInterval]:
    """Yield the checked time before a stream starts and after it ends."""
    if stream.span is None or not stream.states:
        return
    least = MIN_GAP_RATIO * axis.duration_s
    before, after = (stream.states[0].start, stream.span.start), (stream.span.end, stream.states[-1].end)
    yield from (AxisInterval(a, b) for a, b in (before, after) if b - a > least)


def _bar(start: float, end: float, thick: float, kind: str, axis: TimeAxis) -> Markup:
    scale = DRAWING_WIDTH / (axis.duration_s or 1.0)
    width = max((end - start) * scale, MIN_BAR_WIDTH)
    left = min(start * scale, DRAWING_WIDTH - width) if axis.duration_s else 0.0
    return tag(
        "rect", x=number(left), y=number((STRIP_HEIGHT_PX - thick) / 2), width=number(width), height=thick,
        class_=f"state {kind}" if kind != "gap" else "gap",
    )  # fmt: skip


def stream_rows(streams: Sequence[StreamFacts]) -> list[tuple[str, ...]]:
    """Return the rows of a table of streams."""
    return [
        (
            s.name, s.type, s.tag, s.role, s.clock, str(s.samples),
            rate_text(s.rate_hz) if math.isfinite(s.rate_hz) else "-",
            "-" if s.span is None else duration_text(s.span.end - s.span.start),
            duration_text(s.longest_gap_s), str(s.gap_count), str(s.losses), s.state or "-",
        )
        for s in streams
    ]  # fmt: skip


STREAM_HEADINGS = (
    "stream", "type", "tag", "role", "clock", "samples", "rate", "duration", "longest gap", "gaps", "lost",
    "worst verdict",
)  # fmt: skip
STREAM_TEXT_COLUMNS = (0, 1, 2, 3, 4, 11)
"""Columns of text instead of numbers."""


OPENED_WHEN_NEEDED = frozenset({"Image", "PointCloud", "RadarSpectrum"})
"""Types with separate files that are opened on demand."""
MAX_LOSSES, MAX_NOTES = 20, 30
MAX_INLINE_CHARACTERS = 160
"""Longer texts are folded."""
MAX_EQUAL_PROBLEMS = 2
"""More problems of one reason are folded, except the first."""
SIGNAL_HEIGHT_PX = 70


def draw_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    texts: Collection[int] = (0,),
    caption: str = "",
) -> Markup:
    """Return a table, scrollable if it is too wide; columns other than `texts` are numbers."""
    kinds = [None if k in texts else "n" for k in range(len(headings))]
    head = tag("tr", [tag("th", text, class_=kind) for text, kind in zip(headings, kinds, strict=True)])
    body = [
        tag("tr", [tag("td", _cell(cell), class_=kind) for cell, kind in zip(row, kinds, strict=True)])
        for row in rows
    ]
    bullet_list = tag("caption", caption) if caption else None
    table = tag("table", bullet_list, tag("thead", head), tag("tbody", body))
    return tag("div", table, class_="scroll", tabindex="0")


def _cell(cell: object) -> str:
    return cell if isinstance(cell, str) else "-" if cell is None else str(cell)


def draw_picture(picture: Picture) -> Markup:
    """Return a picture with its caption as alternative text."""
    return tag(
        "img", src=data_uri(picture.content), width=picture.width, height=picture.height, alt=picture.text,
        loading="lazy",
    )  # fmt: skip


def draw_snapshot(recording: RecordingFacts) -> Markup | None:
    """Return the snapshot of a recording with a caption."""
    if recording.snapshot is None:
        return None
    head = tag("figcaption", f"Sensor data: {recording.snapshot.text}")
    return tag("figure", head, draw_picture(recording.snapshot))


def fold(summary: str, *children: Child) -> Markup:
    """Return content that is folded initially."""
    return tag("details", tag("summary", summary), *children)


def bullet_list(lines: Sequence[str]) -> Markup | None:
    """Return sentences as a bullet list."""
    return tag("ul", [tag("li", line) for line in lines], class_="bullet_list") if lines else None


def _heading(recording: RecordingFacts, report: ReportFacts) -> Markup | None:
    return tag("h3", recording.name) if len(report.recordings) > 1 else None


# Streams


def write_streams(sheet: PageAssets, report: ReportFacts) -> Markup:
    """Return the time lines of streams, conditions, snapshots and notes."""
    parts: list[Child] = []
    for recording in report.recordings:
        parts += [_heading(recording, report), draw_timeline(sheet, recording)]
        parts += _write_conditions(recording)
        if report.map is not None:  # else it is in the overview
            parts.append(draw_snapshot(recording))
        numbers = draw_table(STREAM_HEADINGS, stream_rows(recording.streams), STREAM_TEXT_COLUMNS)
        parts.append(fold("table of streams", numbers) if recording.streams else None)
        if recording.cameras:
            parts.append(fold("calibrated cameras", bullet_list(recording.cameras)))
        if recording.notes:
            parts.append(
                fold(
                    f"notes of the reader ({len(recording.notes)})", bullet_list(recording.notes[:MAX_NOTES])
                )
            )
    return join(*parts)


def _write_conditions(recording: RecordingFacts) -> list[Markup]:
    """Return the declared conditions; long texts are folded."""
    conditions = {str(key): _cell(value) for key, value in recording.conditions.items()}
    short = {key: text for key, text in conditions.items() if len(text) <= MAX_INLINE_CHARACTERS}
    found = [pairs(short)] if short else []
    long = {key: text for key, text in conditions.items() if len(text) > MAX_INLINE_CHARACTERS}
    return found + [fold(key, tag("pre", text)) for key, text in long.items()]


def pairs(facts: Mapping[str, str]) -> Markup:
    """Return names and values without empty ones."""
    known = [(tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    return tag("dl", known)


# Problems


def write_problems(report: ReportFacts) -> Markup:
    """Return losses, events and problems with times, sizes, hints and pictures."""
    warnings = [text for run in report.runs for text in run.checked.warnings]
    parts: list[Child] = [bullet_list([as_sentence(text) for text in warnings])] if warnings else []
    for recording in report.recordings:
        parts.append(_heading(recording, report))
        parts.append(_write_losses(recording))
        if recording.reports is None:
            parts.append(tag("p", "The sensors were not checked."))
            continue
        events = [event.sentence(recording.start_of_sensor(event.sensors)) for event in recording.events]
        parts.append(bullet_list(events))
        parts += _write_verdicts(recording)
    return join(*parts)


def _write_losses(recording: RecordingFacts) -> Markup:
    if not recording.losses:
        if any(stream.type in OPENED_WHEN_NEEDED for stream in recording.streams):
            return tag(
                "p",
                "No data were lost on reading. Of images and clouds, only those needed for the checks and "
                "figures of this report were read.",
            )
        return tag("p", "No data were lost on reading.")
    rows = [(where, reason, count or "-") for where, reason, count in recording.losses[:MAX_LOSSES]]
    more = len(recording.losses) - len(rows)
    caption = f"Data that could not be read{f' ({more} more not listed)' if more else ''}"
    return draw_table(("location", "reason", "count"), rows, (0, 1), caption)


def _write_verdicts(recording: RecordingFacts) -> list[Child]:
    problems = recording.problems
    bad = [problem for problem in problems if problem.state == "BAD"]
    others = [problem for problem in problems if problem.state != "BAD"]
    groups: dict[str, list[SensorProblem]] = {}
    for problem in bad:
        groups.setdefault(problem.reason, []).append(problem)
    pictures = _select_pictures(bad, recording)
    parts: list[Child] = [
        part for equal in groups.values() for part in _write_equal_problems(equal, recording, pictures)
    ]
    if not bad:
        checked = len(recording.reports or ())
        parts.append(
            tag("p", f"No sensor was bad ({checked} checked)." if checked else "No stream can be checked.")
        )
    if others:
        inside = [_write_problem(problem, recording, None) for problem in others]
        parts.append(fold(f"suspect ({len(others)})", *inside))
    if recording.unchecked:
        parts.append(
            tag(
                "p",
                f"Not checked (no timestamps, or not a sensor): {', '.join(recording.unchecked)}.",
                class_="note",
            )
        )
    return parts


def _select_pictures(problems: Sequence[SensorProblem], recording: RecordingFacts) -> dict[int, Picture]:
    """Return the pictures of problems by id, one for problems of a stream with one cause or at one time."""
    shown: set[object] = set()
    drawn: list[SensorProblem] = []
    selected: dict[int, Picture] = {}
    for problem in problems:
        picture = recording.evidence.get((problem.stream, problem.reason))
        streams = frozenset((problem.stream, *problem.worst.peers))
        keys = {(problem.stream, cause_of(problem.reason)), (streams, problem.worst.t0_ns)}
        if picture is not None and not keys & shown and not any(_overlap(problem, each) for each in drawn):
            selected[id(problem)] = picture
            shown |= keys
            drawn.append(problem)
    return selected


def _overlap(first: SensorProblem, second: SensorProblem) -> bool:
    """Return whether two problems are of one stream, at overlapping times."""
    return first.stream == second.stream and any(
        a < d and c < b for a, b in first.spans for c, d in second.spans
    )


def _write_equal_problems(
    problems: Sequence[SensorProblem], recording: RecordingFacts, pictures: Mapping[int, Picture]
) -> list[Child]:
    """Return problems of one reason; if there are many, all except the first are folded."""
    written = [_write_problem(problem, recording, pictures.get(id(problem))) for problem in problems]
    if len(written) <= MAX_EQUAL_PROBLEMS:
        return [*written]
    names = dict.fromkeys(problem.stream for problem in problems[1:])
    return [written[0], fold(f"equal problems of {', '.join(names)}", *written[1:])]


def _write_problem(problem: SensorProblem, recording: RecordingFacts, picture: Picture | None) -> Markup:
    start = recording.start_of(problem.stream)
    at = (problem.worst.t0_ns - start) / NS
    sentence = problem.sentence(start)
    sensor = "" if problem.stream != problem.sensor else f"{problem.sensor} "
    return tag(
        "div",
        tag("p", tag("span", problem.state, class_="state"), " ", sensor, sentence),
        tag(
            "p", "Try: ", problem.advice, ". ",
            tag("span", f"Worst at {time_text(problem.worst.t0_ns - start)}", class_="jump",
                data_t=number(at, 3)),
            class_="note",
        ),
        draw_picture(picture) if picture else None,
        class_=f"problem {problem.state}",
    )  # fmt: skip


# Trajectory


def write_trajectory(sheet: PageAssets, report: ReportFacts) -> Markup:
    """Return distances travelled, and the trajectories of runs over the ground truth."""
    rows: list[tuple[str, ...]] = []
    remarks: list[str] = []
    for recording in report.recordings:
        if recording.traverse is not None:
            rows.append(row_of(recording.traverse))
            rows += [published_row(dict(recording.published))] if recording.published else []
            remarks += [f"{recording.name}: {remark}" for remark in remarks_of(recording.traverse)]
        elif recording.streams:
            remarks.append(f"The distance travelled is not known: {recording.no_traverse}")
    if report.no_map and rows:
        remarks.append(f"No map is drawn: {report.no_map}")
    judged = [run for run in report.runs if run.judged]
    errors = [np.asarray(run.judged.arrays["ate_translation"]) for run in judged if run.judged]
    highest = max((float(np.percentile(each, 98)) for each in errors if len(each)), default=0.0)
    maps = [draw_errors(sheet, run, highest) for run in judged]
    truths = table_of([r for run in judged for r in run.results], "traverses") if judged else None
    return join(
        draw_table(HEADINGS, rows, (0, 9), "Measured distance and speed, as in Table 6 of the AMEDS paper")
        if rows
        else None,
        bullet_list(remarks),
        tag("h3", "Comparison with the ground truth") if maps else None,
        tag("div", maps, class_="side") if maps else None,
        write_table(truths) if truths and truths.rows else None,
    )


def write_table(table: Table, before: str = "") -> Markup:
    """Return a table of results, with `before` put in front of its caption."""
    return draw_table(table.headings, table.texts(), range(table.names), before + table.caption)


# Signals


def write_signals(sheet: PageAssets, report: ReportFacts) -> Markup:
    """Return the signals of the sensors as small plots."""
    parts: list[Child] = []
    for recording in report.recordings:
        if not recording.signals:
            continue
        parts.append(_heading(recording, report))
        streams = dict.fromkeys(signal.stream for signal in recording.signals)
        for stream in streams:
            mine = [signal for signal in recording.signals if signal.stream == stream]
            parts.append(tag("h3", stream, " ", tag("small", _drawn_from(mine[0]))))
            parts.append(tag("div", [_draw_signal(sheet, signal) for signal in mine], class_="signals"))
        if recording.more_signals:
            parts.append(tag("p", f"{recording.more_signals} further columns are not drawn.", class_="note"))
    return join(*parts)


def _draw_signal(sheet: PageAssets, signal: SampledSignal) -> Markup:
    line = PlotLine(signal.column, np.asarray(signal.seconds), np.asarray(signal.values))
    return draw_plot(
        sheet, signal.column, signal.unit, [line], over_time(signal.axis), height=SIGNAL_HEIGHT_PX
    )


def _drawn_from(signal: SampledSignal) -> str:
    if not signal.step_s:
        return f"all {signal.samples} samples"
    over = "samples" if signal.axis.clock == "index" else "s"
    return f"{signal.samples} samples: minimum and maximum of every {signal.step_s:.3g} {over}"
