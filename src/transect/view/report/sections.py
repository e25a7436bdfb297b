"""The sections of a page: what was there, what broke, where the robot went, and what its sensors measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from transect.base.clocks import NS
from transect.evaluation.tables import Table, table_of
from transect.evaluation.traverse import HEADINGS, published_row, remarks_of, row_of
from transect.integrity.report import Problem, time_text

from .curves import Line, draw_plot, over_time
from .facts import Picture, RecordingFacts, Report, Signal
from .maps import data_uri, draw_errors
from .markup import Child, Markup, join, number, tag
from .sentences import as_sentence
from .svg import Sheet
from .timeline import STREAM_HEADINGS, STREAM_TEXTS, draw_timeline, stream_rows

OPENED_WHEN_NEEDED = frozenset({"Image", "PointCloud", "RadarSpectrum"})
"""Types of samples whose files are not opened with the recording."""
MOST_LOSSES, MOST_NOTES = 20, 30
LONG = 160
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
    short = {key: text for key, text in said.items() if len(text) <= LONG}
    found = [pairs(short)] if short else []
    return found + [fold(key, tag("pre", text)) for key, text in said.items() if len(text) > LONG]


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
    groups: dict[str, list[Problem]] = {}
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


def _write_alike(problems: Sequence[Problem], recording: RecordingFacts) -> list[Child]:
    """Return problems of one reason: a few as they are, of many the first, and the others folded."""
    written = [_write_problem(problem, recording) for problem in problems]
    if len(written) <= FEW:
        return [*written]
    names = dict.fromkeys(problem.stream for problem in problems[1:])
    return [written[0], fold(f"the same of {', '.join(names)}", *written[1:])]


def _write_problem(problem: Problem, recording: RecordingFacts) -> Markup:
    start = recording.start_of(problem.stream)
    at = (problem.worst.t0_ns - start) / NS
    picture = recording.evidence.get((problem.stream, problem.reason)) if problem.state == "BAD" else None
    sentence = problem.sentence(start)
    who = "" if problem.stream != problem.sensor else f"{problem.sensor} "
    return tag(
        "div",
        tag("p", tag("span", problem.state, class_="state"), " ", who, sentence),
        tag(
            "p", "Try: ", problem.mend, ". ",
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
