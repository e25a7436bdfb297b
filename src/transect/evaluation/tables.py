"""Tables that papers print, from results: as text, LaTeX, Markdown or CSV.

Four layouts: a row for each estimate with its metrics; Rosario's Table 4 (document 001), a row for each
sequence and a column for each method, ``ATE (percent of the path)`` and X for a failure; AMEDS's Table 6
(document 000), what was driven, with the error beside it; and CDFF's Table 5 (document 003), what each
implementation of a compound took and gave, with the steps that it skipped, so that skipping is not speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from transect.base.clocks import NS
from transect.errors import UsageError
from transect.geometry import interpolation
from transect.types import Trajectory

from .result import Result

Cell = str | int | float | None
Format = Literal["latex", "markdown", "csv"]
Layout = Literal["metrics", "sequences", "traverses", "runs"]
FAILED = "X"


@dataclass(frozen=True)
class Table:
    """Rows under headings; the first `names` columns are text, the others are numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    names: int = 1

    def texts(self) -> list[list[str]]:
        """Return the cells as a person reads them, numbers with five digits."""
        return [[_text(cell) for cell in row] for row in self.rows]


def table_of(results: Sequence[Result], layout: Layout = "metrics") -> Table:
    """Return results in one of the layouts."""
    made = {
        "metrics": metrics_table,
        "sequences": sequences_table,
        "traverses": traverses_table,
        "runs": runs_table,
    }
    if layout not in made:
        raise UsageError(f"there is no layout {layout!r}", hint=", ".join(get_args(Layout)))
    return made[layout](results)


# Layouts

_Value = Callable[[Mapping[str, Any]], Cell]


def _degrees(radians: float | None) -> float | None:
    return None if radians is None else math.degrees(radians)


def _rotation(statistic: str) -> _Value:
    return lambda m: _degrees((m["rotation"] or {}).get(statistic))


def _translation(statistic: str) -> _Value:
    return lambda m: m["translation"][statistic]


COLUMNS: tuple[tuple[str, str, _Value], ...] = (
    ("ATE rmse [m]", "ate", _translation("rmse")),
    ("mean [m]", "ate", _translation("mean")),
    ("median [m]", "ate", _translation("median")),
    ("std [m]", "ate", _translation("std")),
    ("max [m]", "ate", _translation("max")),
    ("of path [%]", "ate", lambda m: m["percent"]),
    ("rotation rmse [deg]", "ate", _rotation("rmse")),
    ("RPE rmse [m]", "rpe", _translation("rmse")),
    ("RPE rmse [deg]", "rpe", _rotation("rmse")),
    ("segments [%]", "segments", lambda m: m["percent"]),
    ("segments [deg/m]", "segments", lambda m: m["deg_per_m"]),
    ("relations [m]", "relations", _translation("mean")),
    ("relations [m2]", "relations", lambda m: m["squared"]["translation_m2"]),
    ("relations [deg]", "relations", _rotation("mean")),
    ("drift [%]", "drift", lambda m: m["settled_percent"]),
    ("NEES/n", "nees", lambda m: m["normalised_mean"]),
    ("inside 95 % [%]", "nees", lambda m: 100 * m["inside"]),
    ("map rmse [m]", "map", lambda m: m["rmse"]),
    ("map NMAD [m]", "map", lambda m: m["nmad"]),
    ("map 95 % [m]", "map", lambda m: m["p95"]),
    ("map bias [m]", "map", lambda m: m["bias"]),
    ("map coverage [%]", "map", lambda m: 100 * m["coverage"]),
    ("found", "found", lambda m: f"{m['count']}/{m['of']}"),
)


OF_RUNS: tuple[tuple[str, str, _Value], ...] = (
    ("time [s]", "run", lambda m: m["wall_s"]),
    ("in nodes [s]", "run", lambda m: m["nodes_s"]),
    ("RMSE [m]", "cloud", lambda m: m["rmse"]),
    ("median [m]", "cloud", lambda m: m["median"]),
    ("coverage [%]", "cloud", lambda m: 100 * m["coverage"]),
    ("map RMSE [m]", "map", lambda m: m["rmse"]),
    ("ATE rmse [m]", "ate", _translation("rmse")),
    ("segments [%]", "segments", lambda m: m["percent"]),
    ("found", "found", lambda m: f"{m['count']}/{m['of']}"),
    ("poses", "path", lambda m: m["poses"]),
    ("length [m]", "path", lambda m: m["length_m"]),
    ("steps", "run", lambda m: m["steps"]),
    ("skipped", "run", lambda m: m.get("skipped")),
    ("digest", "run", lambda m: m["digest"][:8] if "digest" in m else None),
)
"""Columns of CDFF's Table 5, and the errors of height maps and poses."""


def metrics_table(results: Sequence[Result]) -> Table:
    """A row for each estimate, a column for each metric that one of them has."""
    several = len({r.reference for r in results}) > 1
    used = [column for column in COLUMNS if any(column[1] in r.metrics for r in results)]
    used = [c for c in used if any(_value(r, c) is not None for r in results)]
    first = ("reference", "estimate") if several else ("estimate",)
    rows: list[tuple[Cell, ...]] = []
    for result in results:
        name = (result.reference, result.estimate) if several else (result.estimate,)
        pairs = result.pairs
        matched = f"{pairs['matched']}/{pairs['candidates']}" if pairs else None
        matched = FAILED if result.failure else matched
        rows.append((*name, *(_cell(result, c) for c in used), matched))
    return Table((*first, *(c[0] for c in used), "pairs"), tuple(rows), names=len(first))


def _cell(result: Result, column: tuple[str, str, _Value]) -> Cell:
    """Return a value; X for an error that a failure does not have."""
    failed = bool(result.failure) and column[1] not in result.metrics
    return FAILED if failed else _value(result, column)


def _value(result: Result, column: tuple[str, str, _Value]) -> Cell:
    metric = result.metrics.get(column[1])
    return None if metric is None else column[2](metric)


def runs_table(results: Sequence[Result]) -> Table:
    """CDFF's Table 5: what each run took, how far off it was, how much it saw, and what it skipped."""
    used = [c for c in OF_RUNS if any(_value(r, c) is not None for r in results)]
    rows = tuple((r.estimate, *(_value(r, column) for column in used)) for r in results)
    caption = "Execution time and error of each implementation; skipped: steps that gave nothing"
    return Table(("implementation", *(c[0] for c in used)), rows, caption)


def sequences_table(results: Sequence[Result]) -> Table:
    """Rosario's Table 4: a row for each sequence, a column for each method, X for a failure."""
    methods = tuple(dict.fromkeys(r.estimate for r in results))
    cells = {(r.reference, r.estimate): _ate_cell(r) for r in results}
    sequences = dict.fromkeys(r.reference for r in results)
    rows = tuple((s, *(cells.get((s, m)) for m in methods)) for s in sequences)
    caption = "Absolute trajectory error (ATE, in meters; ratio ATE over trajectory length, in %)"
    if any(r.failure for r in results):
        caption += "; X denotes tracking failure"
    return Table(("Sequence", *methods), rows, caption)


def _ate_cell(result: Result) -> Cell:
    if result.failure:
        return FAILED
    if (ate := result.metrics.get("ate")) is None:
        return None
    percent = ate["percent"]
    of_path = "" if percent is None else f" ({_two(percent, 0.005)}%)"
    return f"{_two(ate['translation']['rmse'])}{of_path}"


def traverses_table(results: Sequence[Result]) -> Table:
    """AMEDS's Table 6 of the references, and the errors of the estimates; velocity is length by duration."""
    methods = tuple(dict.fromkeys(r.estimate for r in results))
    truths = {r.reference: r.truth for r in results if r.truth}
    errors = {(r.reference, r.estimate): _ate_cell(r) for r in results}
    rows: list[tuple[Cell, ...]] = []
    for name, truth in truths.items():
        length, seconds = truth["length_m"], truth["duration_s"]
        velocity = length / seconds if seconds and math.isfinite(seconds) else None
        driven = (f"{length:.1f}", _decimals(truth["height_m"], 1), _minutes(seconds), _decimals(velocity, 2))
        rows.append((name, *driven, *(errors.get((name, m)) for m in methods)))
    if len(truths) > 1:
        total = sum(truth["length_m"] for truth in truths.values())
        known = [t["duration_s"] for t in truths.values() if t["duration_s"] is not None]
        rows.append(("Total", f"{total:.1f}", None, _minutes(sum(known)), None, *(None for _ in methods)))
    headings = ("Length [m]", "Max height difference [m]", "Duration [mm:ss]", "Mean velocity [m/s]")
    named = tuple(f"ATE {method} [m]" for method in methods)
    return Table(("Traverse", *headings, *named), tuple(rows), "Main characteristics of the traverses")


def _two(value: float, least: float = 0.095) -> str:
    """Return two decimals as Table 4 has them, or two digits below `least`, where they would say nothing."""
    return f"{value:.2f}" if value >= least or value == 0 else f"{value:.2g}"


def _decimals(value: float | None, digits: int) -> str | None:
    return None if value is None or math.isnan(value) else f"{value:.{digits}f}"


def _minutes(seconds: float | None) -> str | None:
    if seconds is None or math.isnan(seconds):
        return None
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:02d}:{rest:02d}"


def _text(cell: Cell) -> str:
    if isinstance(cell, float):
        return f"{cell:.5g}" if math.isfinite(cell) else "-"
    return "-" if cell is None else str(cell)


def remarks(results: Sequence[Result]) -> list[str]:
    """Return what to know of a table, a line each: what holds for all rows, then what holds for one."""
    lines: list[str] = []
    compared = [result for result in results if result.reference and not result.failure]
    lines += dict.fromkeys(_conditions(result) for result in compared)
    shared = [note for note in results[0].notes if all(note in result.notes for result in results)]
    lines += shared
    before = len(results) > 1
    for result in results:
        own = [note for note in result.notes if note not in shared]
        own += [f"failed: {result.failure}"] if result.failure else []
        lines += [f"{result.estimate}: {note}" if before else note for note in own]
    return lines + describe_settings(results) + describe_differences(results)


def _conditions(result: Result) -> str:
    truth, pairs = result.truth, result.pairs
    conditions = [f"reference {result.reference}"]
    if truth:
        conditions[0] += f": {truth['poses']} poses, {truth['length_m']:.1f} m"
    mode = result.alignment["mode"]
    scale = f" (scale {result.alignment['scale']:.6g})" if mode == "sim3" else ""
    conditions.append(f"alignment {mode}{scale}")
    limit = f" within {pairs['max_diff_s']:g} s" if pairs["by"] != "rows" and "max_diff_s" in pairs else ""
    conditions.append(f"pairs by {pairs['by']}{limit}")
    if offset := pairs["offset_s"]:
        conditions.append(f"offset {offset:+g} s")
    if rpe := result.metrics.get("rpe"):
        conditions.append(f"RPE per {rpe['step']:g} {rpe['per']}")
    return "; ".join(conditions)


# Formats


def text_of(table: Table, format: Format) -> str:
    """Return a table as LaTeX (booktabs), Markdown or CSV; CSV has all digits, and nothing where unknown."""
    made = {"latex": _latex, "markdown": _markdown, "csv": _csv}
    if format not in made:
        raise UsageError(f"a table cannot be written as {format!r}", hint=", ".join(get_args(Format)))
    return made[format](table)


_LATEX_ESCAPES = {c: "\\" + c for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\^{}",
}


def _latex(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return " & ".join("".join(_LATEX_ESCAPES.get(c, c) for c in cell) for cell in cells) + r" \\"

    caption = "".join(_LATEX_ESCAPES.get(c, c) for c in table.caption)
    lines = [r"\begin{table}", r"\centering"]
    lines += [rf"\caption{{{caption}}}"] if caption else []
    columns = "l" * table.names + "r" * (len(table.headings) - table.names)
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [row(table.headings), r"\midrule", *map(row, table.texts())]
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _markdown(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    rule = "|" + "---|" * table.names + "---:|" * (len(table.headings) - table.names)
    lines = [row(table.headings), rule, *map(row, table.texts())]
    return "\n".join(lines + (["", f"{table.caption}."] if table.caption else [])) + "\n"


def _csv(table: Table) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.headings)
    for row in table.rows:
        writer.writerow(["" if cell is None or cell != cell else cell for cell in row])
    return out.getvalue()


PATH, TIMES = "path", "path_t_ns"
"""Arrays of a result that has no reference: positions (n, 3) in metres, and their times (n,)."""


SETTINGS = "settings"
"""Of the metric `run`: parameters by node, and the streams of inputs (`wire`)."""
MAX_NAMED = 6  # settings, or outputs, that a line names; the others are counted


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a user can set of a run, by its configuration."""
    wired = {name: each["stream"] for name, each in config.get("wiring", {}).items()}
    return {**config.get("parameters", {}), "wire": wired}


def describe_settings(results: Sequence[Result]) -> list[str]:
    """Return a line for each run whose settings differ from the first's: what each has, then the first.

    Of another implementation only the settings that both have are compared.
    """
    runs = [result for result in results if SETTINGS in result.metrics.get("run", {})]
    if len(runs) < 2:
        return []
    from transect.engine.digest import settings_that_differ

    first, lines = runs[0], list[str]()
    for other in runs[1:]:
        one, two = (each.metrics["run"][SETTINGS] for each in (first, other))
        differ = settings_that_differ(two, one)
        changes = [
            f"{name} {a} instead of {b}" for name, (a, b) in differ.items() if a is not None and b is not None
        ]
        more = f", and {len(changes) - MAX_NAMED} more" if len(changes) > MAX_NAMED else ""
        if changes:
            lines.append(f"{other.estimate} against {first.estimate}: {', '.join(changes[:MAX_NAMED])}{more}")
    return lines


def path_arrays(trajectory: Trajectory | None) -> dict[str, Any]:
    """Return the arrays by which a path can be compared with those of other runs."""
    return {} if trajectory is None else {PATH: trajectory.positions, TIMES: trajectory.t_ns}


def describe_differences(results: Sequence[Result]) -> list[str]:
    """Return a line for each run but the first: which outputs differ from the first's, and by how far.

    Runs that have no output in common are of unlike compounds, and are not compared: each is held against the
    first that has outputs of the same names, if there is one.
    """
    bare = [
        result for result in results if not result.reference and "digest" in result.metrics.get("run", {})
    ]
    if len(bare) < 2:
        return []
    lines: list[str] = []
    firsts: list[Result] = []
    for result in bare:
        outputs = result.metrics["run"]["outputs"]
        alike = next(
            (one for one in firsts if not outputs.keys().isdisjoint(one.metrics["run"]["outputs"])), None
        )
        if alike is None:
            firsts.append(result)
        else:
            lines.append(f"{result.estimate} against {alike.estimate}: {_difference(alike, result)}")
    if len(firsts) > 1:
        names = ", ".join(each.estimate for each in firsts)
        lines.append(f"not compared with each other, as they have no output in common: {names}")
    return lines


def _difference(first: Result, other: Result) -> str:
    one, two = first.metrics["run"], other.metrics["run"]
    if one["digest"] == two["digest"]:
        return "the same bytes"
    differences = [_compare_outputs(one["outputs"], two["outputs"])]
    if PATH in first.arrays and PATH in other.arrays:
        differences.append(_compare_paths(first.arrays, other.arrays))
    return "; ".join(differences)


def _compare_outputs(one: Mapping[str, str], two: Mapping[str, str]) -> str:
    shared = [name for name in one if name in two]
    differ = [name for name in shared if one[name] != two[name]]
    text = f"of {len(shared)} outputs {len(differ)} differ" + (f" ({_list_some(differ)})" if differ else "")
    alone = sorted(set(one) ^ set(two))
    return text + (f", only one run has {_list_some(alone)}" if alone else "")


def _list_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"


def _compare_paths(one: Mapping[str, Any], two: Mapping[str, Any]) -> str:
    """Say how far two paths are apart, at the times of the one with fewer poses; each begins where it begins.

    The other is interpolated: a smoother has poses at its keyframes, a filter at its ticks.
    """
    few, many = sorted((one, two), key=lambda side: len(side[TIMES]))
    if len(many[TIMES]) < 2 or (np.diff(many[TIMES]) <= 0).any():
        return "their poses cannot be compared"
    interpolated = interpolation.interpolate_columns(many[TIMES], many[PATH], few[TIMES])
    shared = np.isfinite(interpolated).all(axis=1) & np.isfinite(few[PATH]).all(axis=1)
    if not shared.any():
        return "their poses have no time in common"
    times = few[TIMES][shared]
    distances = np.linalg.norm(few[PATH][shared] - interpolated[shared], axis=1)
    worst = int(np.argmax(distances))
    after = (times[worst] - times[0]) / NS
    largest = f"paths at most {distances[worst]:.3g} m apart (after {after:.1f} s)"
    return f"{largest}, {distances[-1]:.3g} m at the end"
