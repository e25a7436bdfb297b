"""Sections on streams, problems, trajectory and signals, and the timeline of all streams."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from transect.base.clocks import NS
from transect.evaluation.tables import Table, table_of
from transect.evaluation.traverse import HEADINGS, published_row, remarks_of, row_of
from transect.integrity.report import SensorProblem, time_text
from transect.recording.summary import duration_text, rate_text

from ..axes import Axis
from .facts import Picture, RecordingFacts, Report, Signal, Span, StreamFacts
from .maps import data_uri, draw_errors
from .markup import (
    WIDTH,
    Child,
    Markup,
    Sheet,
    axis_text,
    join,
    number,
    per_cent,
    short_numbers,
    stretched,
    tag,
    time_ticks,
)
from .plots import Line, draw_plot, over_time
from .sentences import as_sentence

HEIGHT = 22
"""Pixels of a strip."""
THICK = {"BAD": 22, "SUSPECT": 15, "OK": 9, "UNKNOWN": 4}
"""Pixels of a state: it is told by its height as well as by its colour."""
WORDS = {"OK": "trusted", "SUSPECT": "suspect", "BAD": "bad", "UNKNOWN": "could not be judged"}
MIN_GAP_RATIO = 0.02
"""Share of the axis from which on it is shown that a stream was not there at its begin or end."""
LEAST = 1.6
"""Units that anything is wide at least, so that it is seen."""


def draw_timeline(sheet: Sheet, recording: RecordingFacts) -> Markup:
    """Draw the strips of a recording, those of one axis together; streams without times are listed."""
    parts = [_draw_axis(sheet, axis, recording, number == 0) for number, axis in enumerate(recording.axes)]
    timeless = [stream for stream in recording.streams if stream.axis is None]
    if timeless:
        rows = [_text_row(stream) for stream in timeless]
        parts.append(tag("div", tag("p", "Without times", class_="axis"), rows, class_="strips"))
    judged = any(stream.states for stream in recording.streams)
    return tag("div", parts, legend(judged) if recording.axes else None, class_="timeline")


def legend(judged: bool) -> Markup:
    """Return what the heights and colours of strips mean."""
    states = ("BAD", "SUSPECT", "OK", "UNKNOWN") if judged else ()
    keys = [tag("span", tag("i", class_=f"key state {state}"), WORDS[state]) for state in states]
    keys += [
        tag("span", tag("i", class_="key state there"), "recorded, not judged"),
        tag("span", tag("i", class_="key gap"), "not there, or a gap of more than five usual steps"),
    ]
    return tag("p", keys, class_="legend")


def _draw_axis(sheet: Sheet, axis: Axis, recording: RecordingFacts, first: bool) -> Markup:
    streams = [stream for stream in recording.streams if stream.axis == axis]
    apart = "" if first else " (far from the others in time: drawn from its own start)"
    rows = [_strip_row(sheet, stream, axis) for stream in streams]
    ticks = [
        tag("text", text, x=per_cent(t / (axis.duration_s or 1.0)), y=12, class_="tick",
            text_anchor="start" if t == 0 else "end" if t > 0.97 * axis.duration_s else "middle")
        for t, text in time_ticks(axis)
    ]  # fmt: skip
    scale = tag("div", tag("span", class_="name"), tag("svg", ticks, class_="ticks", height=16), class_="row")
    return tag("div", tag("p", f"{axis_text(axis)}{apart}", class_="axis"), rows, scale, class_="strips")


def _strip_row(sheet: Sheet, stream: StreamFacts, axis: Axis) -> Markup:
    key = sheet.key("strip")
    shapes = [*_presence(stream, axis), *_draw_states(stream, axis), *_gaps(stream, axis)]
    cursor = tag("line", class_="cursor", x1="0", x2="0", y1="0", y2=HEIGHT)
    strip = tag(
        "svg", stretched(HEIGHT, shapes), cursor, class_="strip", id=key, height=HEIGHT, role="img",
        data_group=axis.group, data_end=number(axis.duration_s, 6), aria_label=_describe(stream),
        tabindex="0",
    )  # fmt: skip
    sheet.values[key] = {"name": stream.name, "end": axis.duration_s, **_spans(stream)}
    return tag("div", _name(stream), strip, tag("span", _describe(stream), class_="rate"), class_="row")


def _spans(stream: StreamFacts) -> dict[str, object]:
    """Return what the script says of a strip at a time: the state there, or a gap."""
    there = [stream.span.start, stream.span.end] if stream.span else [0, -1]
    return {
        "there": short_numbers(there, 9),
        "states": [[*short_numbers([s.start, s.end], 9), WORDS[s.state]] for s in stream.states],
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
    """Return rate, number of samples, gaps and state of a stream in a few words."""
    said = [rate_text(stream.rate_hz)] if math.isfinite(stream.rate_hz) else []
    said.append(f"{stream.samples} samples" if stream.samples != 1 else "1 sample")
    if stream.gap_count:
        many = f"{stream.gap_count} gaps, longest" if stream.gap_count > 1 else "a gap of"
        said.append(f"{many} {duration_text(max(gap.end - gap.start for gap in stream.gaps))}")
    if stream.state in ("BAD", "SUSPECT"):
        said.append(WORDS[stream.state])
    return ", ".join(said)


def _presence(stream: StreamFacts, axis: Axis) -> Iterator[Markup]:
    if stream.span is not None and not stream.states:
        yield _bar(stream.span.start, stream.span.end, 7, "there", axis)


def _draw_states(stream: StreamFacts, axis: Axis) -> Iterator[Markup]:
    """Yield the states, the worst last: what is short and bad stays in sight."""
    order = ("UNKNOWN", "OK", "SUSPECT", "BAD")
    for judged in sorted(stream.states, key=lambda each: order.index(each.state)):
        yield _bar(judged.start, judged.end, THICK[judged.state], judged.state, axis)


def _gaps(stream: StreamFacts, axis: Axis) -> Iterator[Markup]:
    for gap in (*stream.gaps, *_absences(stream, axis)):
        yield _bar(gap.start, gap.end, 12, "gap", axis)


def _absences(stream: StreamFacts, axis: Axis) -> Iterator[Span]:
    """Yield the time before a stream began and after it ended, where checks judged that."""
    if stream.span is None or not stream.states:
        return
    least = MIN_GAP_RATIO * axis.duration_s
    before, after = (stream.states[0].start, stream.span.start), (stream.span.end, stream.states[-1].end)
    yield from (Span(a, b) for a, b in (before, after) if b - a > least)


def _bar(start: float, end: float, thick: float, kind: str, axis: Axis) -> Markup:
    scale = WIDTH / (axis.duration_s or 1.0)
    width = max((end - start) * scale, LEAST)
    left = min(start * scale, WIDTH - width) if axis.duration_s else 0.0
    return tag(
        "rect", x=number(left), y=number((HEIGHT - thick) / 2), width=number(width), height=thick,
        class_=f"state {kind}" if kind != "gap" else "gap",
    )  # fmt: skip


def stream_rows(streams: Sequence[StreamFacts]) -> list[tuple[str, ...]]:
    """Return the cells of a table of streams, for who prefers numbers."""
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
STREAM_TEXTS = (0, 1, 2, 3, 4, 11)
"""Which of these columns are no numbers."""


OPENED_WHEN_NEEDED = frozenset({"Image", "PointCloud", "RadarSpectrum"})
"""Types of samples whose files are not opened with the recording."""
MOST_LOSSES, MOST_NOTES = 20, 30
MAX_INLINE_CHARACTERS = 160
"""Characters from which on a text is folded."""
FEW = 2
"""Problems of one reason that are all shown at once."""
SIGNAL_HEIGHT = 70
"""Pixels of a small plot."""


def draw_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    texts: Collection[int] = (0,),
    caption: str = "",
) -> Markup:
    """Return a table that scrolls where it is too wide; columns that are not `texts` are numbers."""
    kinds = [None if k in texts else "n" for k in range(len(headings))]
    head = tag("tr", [tag("th", text, class_=kind) for text, kind in zip(headings, kinds, strict=True)])
    body = [
        tag("tr", [tag("td", _cell(cell), class_=kind) for cell, kind in zip(row, kinds, strict=True)])
        for row in rows
    ]
    said = tag("caption", caption) if caption else None
    table = tag("table", said, tag("thead", head), tag("tbody", body))
    return tag("div", table, class_="scroll", tabindex="0")


def _cell(cell: object) -> str:
    return cell if isinstance(cell, str) else "-" if cell is None else str(cell)


def draw_picture(picture: Picture) -> Markup:
    """Return a picture with what it shows."""
    return tag(
        "img", src=data_uri(picture.content), width=picture.width, height=picture.height, alt=picture.text,
        loading="lazy",
    )  # fmt: skip


def draw_look(recording: RecordingFacts) -> Markup | None:
    """Return what the sensors saw in the middle of a recording."""
    if recording.look is None:
        return None
    head = tag("figcaption", f"What the sensors saw: {recording.look.text}")
    return tag("figure", head, draw_picture(recording.look))


def fold(summary: str, *children: Child) -> Markup:
    """Return what is folded unless a reader asks for it."""
    return tag("details", tag("summary", summary), *children)


def said(lines: Sequence[str]) -> Markup | None:
    """Return sentences as a list."""
    return tag("ul", [tag("li", line) for line in lines], class_="said") if lines else None


def _heading(recording: RecordingFacts, report: Report) -> Markup | None:
    return tag("h3", recording.name) if len(report.recordings) > 1 else None


# What was there


def write_streams(sheet: Sheet, report: Report) -> Markup:
    """Return when each stream was there, and what the sensors saw."""
    parts: list[Child] = []
    for recording in report.recordings:
        parts += [_heading(recording, report), draw_timeline(sheet, recording)]
        parts += _write_conditions(recording)
        if report.map is not None:  # else it stands on the first screen
            parts.append(draw_look(recording))
        numbers = draw_table(STREAM_HEADINGS, stream_rows(recording.streams), STREAM_TEXTS)
        parts.append(fold("all numbers of the streams", numbers) if recording.streams else None)
        if recording.cameras:
            parts.append(fold("cameras that are calibrated", said(recording.cameras)))
        if recording.notes:
            parts.append(
                fold(f"what the reader noticed ({len(recording.notes)})", said(recording.notes[:MOST_NOTES]))
            )
    return join(*parts)


def _write_conditions(recording: RecordingFacts) -> list[Markup]:
    """Return what the recording says of its day; long texts are folded."""
    said = {str(key): _cell(value) for key, value in recording.conditions.items()}
    short = {key: text for key, text in said.items() if len(text) <= MAX_INLINE_CHARACTERS}
    found = [pairs(short)] if short else []
    long = {key: text for key, text in said.items() if len(text) > MAX_INLINE_CHARACTERS}
    return found + [fold(key, tag("pre", text)) for key, text in long.items()]


def pairs(facts: Mapping[str, str]) -> Markup:
    """Return names and values, those that are known."""
    known = [(tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    return tag("dl", known)


# What broke


def write_problems(report: Report) -> Markup:
    """Return what was wrong, when, by how much, and what to try, with pictures of the worst moments."""
    warnings = [text for run in report.runs for text in run.checked.warnings]
    parts: list[Child] = [said([as_sentence(text) for text in warnings])] if warnings else []
    for recording in report.recordings:
        parts.append(_heading(recording, report))
        parts.append(_write_losses(recording))
        if recording.reports is None:
            parts.append(tag("p", "The sensors were not checked."))
            continue
        events = [event.sentence(recording.start_of_sensor(event.sensors)) for event in recording.events]
        parts.append(said(events))
        parts += _write_verdicts(recording)
    return join(*parts)


def _write_losses(recording: RecordingFacts) -> Markup:
    if not recording.losses:
        if any(stream.type in OPENED_WHEN_NEEDED for stream in recording.streams):
            return tag(
                "p",
                "All that was read of its files is whole; of images and clouds only those were opened that "
                "the checks and the pictures of this page need.",
            )
        return tag("p", "All that its files hold could be read.")
    rows = [(where, reason, count or "-") for where, reason, count in recording.losses[:MOST_LOSSES]]
    more = len(recording.losses) - len(rows)
    caption = f"What could not be read{f' ({more} more are not listed)' if more else ''}"
    return draw_table(("where", "why", "how many"), rows, (0, 1), caption)


def _write_verdicts(recording: RecordingFacts) -> list[Child]:
    problems = recording.problems
    bad = [problem for problem in problems if problem.state == "BAD"]
    others = [problem for problem in problems if problem.state != "BAD"]
    groups: dict[str, list[SensorProblem]] = {}
    for problem in bad:
        groups.setdefault(problem.reason, []).append(problem)
    parts: list[Child] = [part for alike in groups.values() for part in _write_alike(alike, recording)]
    if not bad:
        checked = len(recording.reports or ())
        parts.append(
            tag("p", f"No stream was bad: {checked} checked." if checked else "No stream can be checked.")
        )
    if others:
        inside = [_write_problem(problem, recording) for problem in others]
        parts.append(fold(f"what was suspect ({len(others)})", *inside))
    if recording.unchecked:
        parts.append(
            tag(
                "p", f"Not checked, as no sensor with times: {', '.join(recording.unchecked)}.", class_="note"
            )
        )
    return parts


def _write_alike(problems: Sequence[SensorProblem], recording: RecordingFacts) -> list[Child]:
    """Return problems of one reason: a few as they are, of many the first, and the others folded."""
    written = [_write_problem(problem, recording) for problem in problems]
    if len(written) <= FEW:
        return [*written]
    names = dict.fromkeys(problem.stream for problem in problems[1:])
    return [written[0], fold(f"the same of {', '.join(names)}", *written[1:])]


def _write_problem(problem: SensorProblem, recording: RecordingFacts) -> Markup:
    start = recording.start_of(problem.stream)
    at = (problem.worst.t0_ns - start) / NS
    picture = recording.evidence.get((problem.stream, problem.reason)) if problem.state == "BAD" else None
    sentence = problem.sentence(start)
    who = "" if problem.stream != problem.sensor else f"{problem.sensor} "
    return tag(
        "div",
        tag("p", tag("span", problem.state, class_="state"), " ", who, sentence),
        tag(
            "p", "Try: ", problem.advice, ". ",
            tag("span", f"Worst at {time_text(problem.worst.t0_ns - start)}", class_="jump",
                data_t=number(at, 3)),
            class_="note",
        ),
        draw_picture(picture) if picture else None,
        class_=f"problem {problem.state}",
    )  # fmt: skip


# Where the robot went


def write_ways(sheet: Sheet, report: Report) -> Markup:
    """Return how far it was, and the paths of runs on the truth."""
    rows: list[tuple[str, ...]] = []
    remarks: list[str] = []
    for recording in report.recordings:
        if recording.traverse is not None:
            rows.append(row_of(recording.traverse))
            rows += [published_row(dict(recording.published))] if recording.published else []
            remarks += [f"{recording.name}: {remark}" for remark in remarks_of(recording.traverse)]
        elif recording.streams:
            remarks.append(f"It is not known: {recording.no_traverse}")
    if report.no_map and rows:
        remarks.append(f"No map is drawn: {report.no_map}")
    judged = [run for run in report.runs if run.judged]
    errors = [np.asarray(run.judged.arrays["ate_translation"]) for run in judged if run.judged]
    highest = max((float(np.percentile(each, 98)) for each in errors if len(each)), default=0.0)
    maps = [draw_errors(sheet, run, highest) for run in judged]
    truths = table_of([r for run in judged for r in run.results], "traverses") if judged else None
    return join(
        draw_table(HEADINGS, rows, (0, 9), "What was driven, as Table 6 of AMEDS has it; measured, not true")
        if rows
        else None,
        said(remarks),
        tag("h3", "Against the truth") if maps else None,
        tag("div", maps, class_="side") if maps else None,
        write_table(truths) if truths and truths.rows else None,
    )


def write_table(table: Table, before: str = "") -> Markup:
    """Return a table of results, with a caption that may say more."""
    return draw_table(table.headings, table.texts(), range(table.names), before + table.caption)


# Signals


def write_signals(sheet: Sheet, report: Report) -> Markup:
    """Return what sensors measured over time, in small plots."""
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
            parts.append(tag("p", f"Columns that are not drawn: {recording.more_signals}.", class_="note"))
    return join(*parts)


def _draw_signal(sheet: Sheet, signal: Signal) -> Markup:
    line = Line(signal.column, np.asarray(signal.seconds), np.asarray(signal.values))
    return draw_plot(sheet, signal.column, signal.unit, [line], over_time(signal.axis), height=SIGNAL_HEIGHT)


def _drawn_from(signal: Signal) -> str:
    if not signal.step_s:
        return f"all {signal.samples} samples"
    over = "samples" if signal.axis.clock == "index" else "s"
    return f"from {signal.samples} samples: the lowest and the highest of every {signal.step_s:.3g} {over}"
