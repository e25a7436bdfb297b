"""The section on accuracy: errors and drift, tables of papers, and what runs report of themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.evaluation.figures import view_of
from transect.evaluation.result import Result
from transect.evaluation.tables import describe_differences, describe_settings, table_of

from ..axes import Axis
from .facts import Report, RunFacts
from .markup import Child, Markup, Sheet, join, tag
from .plots import Across, Line, draw_plot, over_time, over_way, thin_line
from .sections import said, write_table

DEGREES = 180 / np.pi
Judged = tuple[int, RunFacts, Result]
"""A run, its number among the runs of the page, and the result that compares its poses with truth."""


def write_errors(sheet: Sheet, report: Report) -> Markup:
    """Return errors over time and over the way, drift, tables, and what runs say of themselves."""
    judged = [(k, run, run.judged) for k, run in enumerate(report.runs) if run.judged is not None]
    results = [result for run in report.runs for result in run.results]
    parts: list[Child] = [*_draw_over_time(sheet, judged), *_draw_over_way(sheet, judged)]
    if any("ate" in result.metrics for result in results):
        parts.append(write_table(table_of(results, "metrics")))
        parts.append(write_table(table_of(results, "sequences"), "As Table 4 of Rosario: "))
    if results:
        parts.append(write_table(table_of(results, "runs"), "As Table 5 of CDFF: "))
    parts.append(said([*describe_settings(results), *describe_differences(results)]))
    for run in report.runs:
        if lines := _list_remarks(run):
            parts += [tag("h3", f"What {run.label} says of itself"), said(lines)]
    return join(*parts)


def _list_remarks(run: RunFacts) -> list[str]:
    lines = [conclusion.text for conclusion in run.run.conclusions]
    lines += [f"note: {note}" for result in run.results for note in result.notes]
    lines += [f"not judged: {result.failure}" for result in run.results if result.failure]
    lines += [f"error: {error}" for error in run.document.get("errors", ())]
    return list(dict.fromkeys(lines))


# Over time


def _draw_over_time(sheet: Sheet, judged: Sequence[Judged]) -> Iterator[Markup]:
    timed = [(k, run, r, run.axis) for k, run, r in judged if run.axis and run.axis.clock != "index"]
    if not timed:
        return
    across = over_time(max((axis for *_, axis in timed), key=lambda axis: axis.duration_s))
    for title, name, unit, factor in (
        ("Error of the position", "ate_translation", "m", 1.0),
        ("Error of the attitude", "ate_rotation", "deg", DEGREES),
    ):
        lines = [
            thin_line(
                run.label, _seconds(result, axis), factor * result.arrays[name], across.end, f"c{k % 6}"
            )
            for k, run, result, axis in timed
            if len(result.arrays.get(name, ())) == len(result.arrays["t_ns"])
        ]
        if lines:
            yield draw_plot(sheet, title, unit, lines, across, low=0.0)
    yield _draw_heights(sheet, timed, across)


def _seconds(result: Result, axis: Axis) -> Floats:
    return (result.arrays["t_ns"] - axis.start_ns) / NS


def _draw_heights(
    sheet: Sheet, timed: Sequence[tuple[int, RunFacts, Result, Axis]], across: Across
) -> Markup:
    """Draw heights of paths, and of the truth that the first is compared with."""
    lines: list[Line] = []
    for k, run, result, axis in timed:
        seconds, up = _seconds(result, axis), _vertical(result)
        if not lines:
            lines.append(thin_line("truth", seconds, result.arrays["reference"] @ up, across.end, "truth"))
        lines.append(thin_line(run.label, seconds, result.arrays["aligned"] @ up, across.end, f"c{k % 6}"))
    return draw_plot(sheet, "Height", "m", lines, across)


def _vertical(result: Result) -> Floats:
    """Return the direction (3,) that is up: of a camera, and of north, east, down, an axis points down."""
    view = view_of(result)
    axis = ({0, 1, 2} - {view.right, view.up}).pop()
    down = axis == 1 or ((view.right, view.up) == (1, 0) and not view.mirrored)
    return np.eye(3)[axis] * (-1.0 if down else 1.0)


# Over the way


def _draw_over_way(sheet: Sheet, judged: Sequence[Judged]) -> Iterator[Markup]:
    ways = [(k, run, r.arrays) for k, run, r in judged if len(r.arrays.get("distance", ()))]
    end = max((float(np.max(arrays["distance"])) for *_, arrays in ways), default=0.0)
    if end > 0:
        lines = [
            thin_line(run.label, arrays["distance"], arrays["ate_translation"], end, f"c{k % 6}")
            for k, run, arrays in ways
        ]
        yield draw_plot(sheet, "Error over the way driven", "m", lines, over_way(end), low=0.0)
    drifts = [line for k, run, r in judged for line in _list_drifts(k, run, r, len(judged) > 1)]
    far = max((float(line.x[-1]) for line in drifts if len(line.x)), default=0.0)
    if far > 0:
        title = "Drift: the error as a share of the distance"
        yield draw_plot(sheet, title, "%", drifts, over_way(far), low=0.0)


def _list_drifts(number: int, run: RunFacts, result: Result, several: bool) -> Iterator[Line]:
    """Yield what half of the stretches, and what nine of ten, stay below."""
    arrays = result.arrays
    if "drift_distance" not in arrays:
        return
    for name, array, band in (
        ("half of the stretches", "drift_median", False),
        ("nine of ten", "drift_high", True),
    ):
        label = f"{run.label}, {name}" if several else name
        yield Line(
            label, np.asarray(arrays["drift_distance"]), np.asarray(arrays[array]), f"c{number % 6}", band
        )
