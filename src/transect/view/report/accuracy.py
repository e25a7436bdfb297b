"""The section on accuracy: errors, drift, tables as in papers, and conclusions of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.evaluation.figures import view_of
from transect.evaluation.result import Result
from transect.evaluation.tables import describe_differences, describe_settings, table_of

from ..axes import TimeAxis
from .facts import ReportFacts, RunFacts
from .markup import Child, Markup, PageAssets, join, tag
from .plots import HorizontalAxis, PlotLine, draw_plot, make_line, over_distance, over_time
from .sections import bullet_list, write_table

EvaluatedRun = tuple[int, RunFacts, Result]
"""The index of a run on the page, the run, and the result that compares its poses with the ground truth."""


def write_errors(sheet: PageAssets, report: ReportFacts) -> Markup:
    """Return errors over time and distance, drift, tables, and the conclusions of runs."""
    evaluated = [(k, run, run.judged) for k, run in enumerate(report.runs) if run.judged is not None]
    results = [result for run in report.runs for result in run.results]
    parts: list[Child] = [*_draw_over_time(sheet, evaluated), *_draw_over_distance(sheet, evaluated)]
    if any("ate" in result.metrics for result in results):
        parts.append(write_table(table_of(results, "metrics")))
        parts.append(write_table(table_of(results, "sequences"), "As Table 4 of the Rosario paper: "))
    if results:
        parts.append(write_table(table_of(results, "runs"), "As Table 5 of the CDFF paper: "))
    parts.append(bullet_list([*describe_settings(results), *describe_differences(results)]))
    for run in report.runs:
        if lines := _list_remarks(run):
            parts += [tag("h3", f"Conclusions of {run.label}"), bullet_list(lines)]
    return join(*parts)


def _list_remarks(run: RunFacts) -> list[str]:
    lines = [conclusion.text for conclusion in run.run.conclusions]
    lines += [f"note: {note}" for result in run.results for note in result.notes]
    lines += [f"not evaluated: {result.failure}" for result in run.results if result.failure]
    lines += [f"error: {error}" for error in run.document.get("errors", ())]
    return list(dict.fromkeys(lines))


# Over time


def _draw_over_time(sheet: PageAssets, evaluated: Sequence[EvaluatedRun]) -> Iterator[Markup]:
    timed = [(k, run, r, run.axis) for k, run, r in evaluated if run.axis and run.axis.clock != "index"]
    if not timed:
        return
    across = over_time(max((axis for *_, axis in timed), key=lambda axis: axis.duration_s))
    for title, name, unit, factor in (
        ("Position error", "ate_translation", "m", 1.0),
        ("Attitude error", "ate_rotation", "deg", 180 / np.pi),
    ):
        lines = [
            make_line(
                run.label, _seconds(result, axis), factor * result.arrays[name], across.end, f"c{k % 6}"
            )
            for k, run, result, axis in timed
            if len(result.arrays.get(name, ())) == len(result.arrays["t_ns"])
        ]
        if lines:
            yield draw_plot(sheet, title, unit, lines, across, low=0.0)
    yield _draw_heights(sheet, timed, across)


def _seconds(result: Result, axis: TimeAxis) -> Floats:
    return (result.arrays["t_ns"] - axis.start_ns) / NS


def _draw_heights(
    sheet: PageAssets, timed: Sequence[tuple[int, RunFacts, Result, TimeAxis]], across: HorizontalAxis
) -> Markup:
    """Draw the heights of trajectories, and of the ground truth."""
    lines: list[PlotLine] = []
    for k, run, result, axis in timed:
        seconds, up = _seconds(result, axis), _vertical(result)
        if not lines:
            lines.append(
                make_line("ground truth", seconds, result.arrays["reference"] @ up, across.end, "truth")
            )
        lines.append(make_line(run.label, seconds, result.arrays["aligned"] @ up, across.end, f"c{k % 6}"))
    return draw_plot(sheet, "Height", "m", lines, across)


def _vertical(result: Result) -> Floats:
    """Return the upward direction (3,); camera and NED frames have an axis that points down."""
    view = view_of(result)
    axis = ({0, 1, 2} - {view.right, view.up}).pop()
    down = axis == 1 or ((view.right, view.up) == (1, 0) and not view.mirrored)
    return np.eye(3)[axis] * (-1.0 if down else 1.0)


# Over distance


def _draw_over_distance(sheet: PageAssets, evaluated: Sequence[EvaluatedRun]) -> Iterator[Markup]:
    tracks = [(k, run, r.arrays) for k, run, r in evaluated if len(r.arrays.get("distance", ()))]
    end = max((float(np.max(arrays["distance"])) for *_, arrays in tracks), default=0.0)
    if end > 0:
        lines = [
            make_line(run.label, arrays["distance"], arrays["ate_translation"], end, f"c{k % 6}")
            for k, run, arrays in tracks
        ]
        yield draw_plot(
            sheet, "Position error over distance travelled", "m", lines, over_distance(end), low=0.0
        )
    drifts = [line for k, run, r in evaluated for line in _list_drifts(k, run, r, len(evaluated) > 1)]
    longest = max((float(line.x[-1]) for line in drifts if len(line.x)), default=0.0)
    if longest > 0:
        title = "Drift: position error relative to the distance"
        yield draw_plot(sheet, title, "%", drifts, over_distance(longest), low=0.0)


def _list_drifts(number: int, run: RunFacts, result: Result, several: bool) -> Iterator[PlotLine]:
    """Yield the median and the 90th percentile of the drift over segments."""
    arrays = result.arrays
    if "drift_distance" not in arrays:
        return
    for name, array, band in (
        ("median", "drift_median", False),
        ("90th percentile", "drift_high", True),
    ):
        label = f"{run.label}, {name}" if several else name
        yield PlotLine(
            label, np.asarray(arrays["drift_distance"]), np.asarray(arrays[array]), f"c{number % 6}", band
        )
