"""`transect check PATH`: the health of each sensor over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .shared.options import json_option
from .shared.recordings import Opening, opening

if TYPE_CHECKING:
    from transect.integrity.report import SensorProblem, SensorReport
    from transect.integrity.table import VerdictTable
    from transect.recording import Recording

LINE_WIDTH = 80
MARKS = {"OK": ("-", "green"), "SUSPECT": ("!", "yellow"), "BAD": ("#", "red"), "UNKNOWN": (".", "white")}
"""Character of each state, readable without colours, and its colour on a terminal."""
MAX_NAME_WIDTH, MIN_STRIP_WIDTH = 24, 20
MAX_EVENTS = 3
"""Number of events that are listed before the sensors, unless all are asked for."""


@click.command()
@opening("streams", "times", required=False)
@click.option(
    "--config", type=click.Path(path_type=Path), help="Limits, muted checks and sensors of this robot (YAML)."
)
@click.option("--check", "checks", multiple=True, metavar="NAME", help="Only this check; may be repeated.")
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    metavar="WORD",
    help="Condition for --config, such as night; may be repeated.",
)
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    help="A recording of the same robot in clear air, as a baseline for its sensors.",
)
@click.option(
    "--catalogue", metavar="NAME", help="Check the times printed in the document of a data set, such as sdi."
)
@click.option(
    "--all", "whole", is_flag=True, help="Show every problem, and the checks that could not be applied."
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Write verdicts and figures to this new folder."
)
@json_option
def command(
    opening: Opening,
    config: Path | None,
    checks: tuple[str, ...],
    conditions: tuple[str, ...],
    reference: Path | None,
    catalogue: str | None,
    whole: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    """Check the sensors of a recording, and explain problems.

    Prints events that affect several sensors, then for each sensor its state over time, its problems and
    what to do. Without PATH, lists the checks. Exits with 4 if a sensor is BAD. -o DIR writes all verdicts as
    Parquet and CSV, and figures of the worst problems.
    """
    if catalogue is not None:
        return _check_catalogue(catalogue, as_json)
    if not opening.paths:
        return _list_checks(as_json)
    import transect
    from transect import integrity
    from transect.integrity.report import report_sensors

    from . import ExitCode
    from .shared.options import new_folder
    from .shared.output import ProgressDisplay
    from .shared.recordings import report_losses

    folder = new_folder(out) if out is not None else None
    progress = ProgressDisplay(quiet=as_json)
    recording = opening.cut(opening.open(progress))
    settings = integrity.load_config(config) if config is not None else None
    verdicts = integrity.check(
        recording,
        settings,
        checks=checks or None,
        conditions=conditions,
        reference=transect.open(reference) if reference is not None else None,
    )
    reports = report_sensors(verdicts, recording)
    if folder is not None:
        _write(recording, verdicts, reports, folder)
    if as_json:
        _show_json(recording, reports, verdicts)
    else:
        show_reports(recording, reports, verdicts, whole)
    lost = report_losses(recording)
    return ExitCode.BAD_VERDICT if any(report.state == "BAD" for report in reports) else lost


def _write(
    recording: Recording, verdicts: VerdictTable, reports: Sequence[SensorReport], folder: Path
) -> None:
    import json

    from transect.base.files import staged, write_text
    from transect.integrity.figures import draw_report
    from transect.integrity.table import json_schema

    with staged(folder) as made:
        made.mkdir()
        verdicts.write(made / "verdicts.parquet")
        verdicts.write(made / "verdicts.csv")
        write_text(made / "verdict.schema.json", json.dumps(json_schema(), indent=2) + "\n")
        if reports:
            draw_report(recording, reports, made / "pictures")
    click.echo(f"wrote {folder}", err=True)


def _show_json(recording: Recording, reports: Sequence[SensorReport], verdicts: VerdictTable) -> None:
    from transect.integrity.events import find_events

    from .shared.output import show_json

    muted = sorted({(v.stream, v.check, v.muted) for v in verdicts if v.muted})
    show_json(
        {
            "name": recording.name,
            "state": _worst(reports),
            "events": [event.to_dict() for event in find_events(reports, verdicts)],
            "sensors": [report.to_dict() for report in reports],
            "muted": [{"stream": s, "check": c, "reason": why} for s, c, why in muted],
            "not_checked": _not_checked(recording),
        }
    )


def _worst(reports: Sequence[SensorReport]) -> str:
    from transect.integrity.rules import worst

    return worst(report.state for report in reports)


def _not_checked(recording: Recording) -> list[str]:
    from transect.integrity.runner import checkable

    return [s.name for s in recording if not checkable(s) and not s.name.startswith("truth/")]


def show_reports(
    recording: Recording, reports: Sequence[SensorReport], verdicts: VerdictTable, whole: bool = False
) -> None:
    """Print events, the state of each sensor over time, and its problems, all of them if `whole`."""
    from transect.integrity.report import axis_of
    from transect.recording.summary import headline

    click.echo(headline(recording))
    if not reports:
        click.echo("nothing to check: no sensor stream has timestamps")
        _show_unchecked(recording)
        return
    _show_events(reports, verdicts, whole)
    name = min(MAX_NAME_WIDTH, max(len(report.sensor) for report in reports))
    longest = max(reports, key=lambda report: report.span[1] - report.span[0])
    _show_scale(longest, name)
    for report in reports:
        _show_sensor(report, axis_of(report, longest), name, whole)
    _show_muted(verdicts)
    _show_unchecked(recording)
    if whole:
        _show_inapplicable(verdicts)
    counts = {state: sum(report.state == state for report in reports) for state in MARKS}
    states = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    sensors = f"{len(reports)} sensor{'s' * (len(reports) > 1)}"
    click.echo(f"{sensors}: {states}" + ("" if whole else "; --all shows every problem"))


def _show_unchecked(recording: Recording) -> None:
    if missing := _not_checked(recording):
        _say(f"not checked (no timestamps, or not a sensor): {', '.join(missing)}", "")


def _show_events(reports: Sequence[SensorReport], verdicts: VerdictTable, whole: bool) -> None:
    from transect.integrity.events import find_events

    first = min(report.windows[0].t0_ns for report in reports)
    events = find_events(reports, verdicts)
    for event in events if whole else events[:MAX_EVENTS]:
        _say(event.sentence(first), "")
    if not whole and len(events) > MAX_EVENTS:
        _say(f"and {len(events) - MAX_EVENTS} more events that affect several sensors; --all lists them", "")


def _show_scale(longest: SensorReport, name: int) -> None:
    from transect.base.clocks import NS
    from transect.integrity.report import time_text

    room = LINE_WIDTH - name - 10
    begin, until = longest.span
    marks = "  ".join(f"{mark} {state}" for state, (mark, _) in MARKS.items())
    end = time_text(until - begin + NS // 2)
    legend = f"+0 s{'':{max(1, min(room, longest.window_count) - 4 - len(end))}}{end}"
    click.echo(f"{marks:>{LINE_WIDTH}}")
    click.echo(f"{'':{name}}  {legend}")


def _show_sensor(report: SensorReport, axis: tuple[int, int], name: int, whole: bool) -> None:
    from transect.base.tables import shorten

    from .shared.terminal import show_coloured

    cells = report.strip(max(MIN_STRIP_WIDTH, LINE_WIDTH - name - 10), axis)
    label = f"{shorten(report.sensor, name):{name}}  "
    strip = [MARKS[state] if state else (" ", "white") for state in cells]
    show_coloured(label, [*strip, (f" {report.state}", MARKS[report.state][1])])
    shown = report.problems if whole else _choose(report.problems)
    for problem in shown:
        _say(problem.sentence(axis[0]), "    ")
        if problem.state in ("BAD", "UNKNOWN") or whole:
            _say(f"try: {problem.advice}", "      ")
    named = {problem.reason for problem in shown}
    if others := [r for r in dict.fromkeys(p.reason for p in report.problems) if r not in named]:
        _say(f"also: {', '.join(others)}", "      ")


def _choose(problems: Sequence[SensorProblem]) -> list[SensorProblem]:
    """Return the problems to print: the worst of each cause that is BAD, or else the worst of all."""
    from transect.integrity.events import cause_of

    bad = {cause_of(problem.reason): problem for problem in reversed(problems) if problem.state == "BAD"}
    return [each for each in problems if bad.get(cause_of(each.reason)) is each] or list(problems[:1])


def _show_muted(verdicts: VerdictTable) -> None:
    for stream, check, why in sorted({(v.stream, v.check, v.muted) for v in verdicts if v.muted}):
        _say(f"muted: {check} of {stream}: {why}", "")


def _show_inapplicable(verdicts: VerdictTable) -> None:
    """Print which checks could not be applied to which streams, and why."""
    from collections import Counter

    unknown = verdicts.select(raw="UNKNOWN")
    every = Counter(zip(verdicts.column("stream"), verdicts.column("check"), strict=True))
    rows = zip(unknown.column("stream"), unknown.column("check"), unknown.column("reason"), strict=True)
    lacking: dict[tuple[str, str], list[str]] = {}
    for (stream, check, reason), count in sorted(Counter(rows).items()):
        if count == every[stream, check]:
            lacking.setdefault((check, reason), []).append(stream)
    for (check, reason), streams in sorted(lacking.items()):
        _say(f"not applicable: {check} to {', '.join(streams)}: {reason}", "")


def _say(text: str, indent: str) -> None:
    from .shared.output import show_text

    show_text(text, indent=indent, widest=LINE_WIDTH)


def _list_checks(as_json: bool) -> int:
    from transect.integrity.catalogue import describe

    from .shared.output import show_json, show_table

    rows = describe()
    if as_json:
        show_json([row._asdict() for row in rows])
    else:
        headings = ("check", "name", "checks", "measures", "limits: warn / fail")
        cells = [(r.id, r.name, r.judges, r.measures, r.limits) for r in rows]
        show_table(headings, cells, order=(0, 1, 3, 4, 2), prose=(2, 3, 4))
    return 0


def _catalogue(name: str) -> Any:
    from transect.base import plugins

    return plugins.load("catalogues", name)


def _check_catalogue(name: str, as_json: bool) -> int:
    from transect.base.plugins import names
    from transect.errors import UsageError, did_you_mean

    from . import ExitCode
    from .shared.output import show_json, show_table

    printing = [each for each in names("catalogues") if hasattr(_catalogue(each), "find_misprints")]
    if name not in printing:
        hint = did_you_mean(name, printing)
        raise UsageError(f"there is no catalogue of {name!r} with times that can be checked", hint=hint)
    found = _catalogue(name).find_misprints()
    if as_json:
        show_json({"catalogue": name, "misprints": [each.to_dict() for each in found]})
    elif found:
        headings = ("data set", "time", "column", "printed", "expected", "difference", "reason")
        rows = [(m.name, m.which, m.column, m.printed, m.expected, f"{m.off_s:g} s", m.why) for m in found]
        show_table(headings, rows, right=frozenset({5}), order=(0, 1, 2, 3, 4, 5), prose=(6,))
        counts = {column: sum(m.column == column for m in found) for column in ("utc", "aedt")}
        click.echo(", ".join(f"{count} times in {column.upper()}" for column, count in counts.items()))
    return ExitCode.BAD_VERDICT if found else 0
