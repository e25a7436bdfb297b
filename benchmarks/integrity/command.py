"""`python -m benchmarks.integrity`: how well the checks find faults, beside other tools."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transect.cli.shared.options import json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.integrity.gates import Gate
    from benchmarks.integrity.results import Result
    from benchmarks.integrity.running import Plan
    from benchmarks.integrity.summary import Summary

QUICK_BASES = ("yard", "human", "rover", "picking", "light")
QUICK_FAULTS = (
    "dust", "rain", "dropout", "early_stop", "clock_jump", "jitter", "stuck", "bias_step", "nan",
    "wheel_slip", "gnss_spike", "covariance_zero",
)  # fmt: skip


@click.command()
@click.option("--quick", is_flag=True, help="A few faults in four recordings: under five minutes of a core.")
@click.option("--seeds", default="0", show_default=True, metavar="N,M", help="Of recordings and faults.")
@click.option("--bases", default="", metavar="NAME,...", help="Recordings; default all. May be patterns.")
@click.option("--faults", default="", metavar="NAME,...", help="Default all. May be patterns.")
@click.option("--severities", default="", metavar="S,...", help="Of faults that have none of their own.")
@click.option("--data", type=click.Path(path_type=Path), help="Real recordings; else TRANSECT_TEST_DATA.")
@click.option("--minutes", default=0, show_default=True, help="Of each of two clear hours, 0 to 60.")
@click.option("--jobs", default=1, show_default=True, help="Processes.")
@click.option("--no-peers", is_flag=True, help="Leave other tools out.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder of results; goes on where it was.")
@click.option("--read", is_flag=True, help="Run nothing; count all that -o DIR has.")
@json_option
def command(
    quick: bool,
    seeds: str,
    bases: str,
    faults: str,
    severities: str,
    data: Path | None,
    minutes: int,
    jobs: int,
    no_peers: bool,
    out: Path | None,
    read: bool,
    as_json: bool,
) -> int:
    """Put faults into clear recordings, and count what the checks say.

    One file for each case goes to -o DIR: what is there is not run again. Without -o all of it is forgotten
    at the end. Prints whether the gates are met, then tables by fault, check, recording and peer.
    """
    import tempfile

    from benchmarks.integrity.running import Plan

    asked = Plan(
        out or Path(),
        seeds=_numbers(seeds, "--seeds"),
        bases=_words(bases) or (QUICK_BASES if quick else ()),
        faults=_words(faults) or (QUICK_FAULTS if quick else ()),
        severities=tuple(float(word) for word in _words(severities)) or ((0.5,) if quick else ()),
        data=data,
        blocks=-(-minutes // 5),
        peers=not no_peers,
    )
    if read:
        return _read(asked, as_json)
    if out is not None:
        return _run(asked, jobs, as_json)
    import dataclasses

    with tempfile.TemporaryDirectory() as folder:
        return _run(dataclasses.replace(asked, folder=Path(folder)), jobs, as_json)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(text: str, option: str) -> tuple[int, ...]:
    from transect.errors import UsageError

    try:
        return tuple(int(word) for word in _words(text)) or (0,)
    except ValueError:
        raise UsageError(f"{option} {text} is not a list of whole numbers", hint=f"{option} 1,2") from None


def _run(asked: Plan, jobs: int, as_json: bool) -> int:
    from benchmarks.integrity.running import run

    return _show_all(run(asked, jobs, _tell), as_json)


def _read(asked: Plan, as_json: bool) -> int:
    from benchmarks.integrity.results import read_results
    from transect.errors import UsageError

    results = read_results(asked.folder)
    if not results:
        raise UsageError("there are no results to read", where=str(asked.folder), hint="-o DIR names them")
    return _show_all(results, as_json)


def _show_all(results: Sequence[Result], as_json: bool) -> int:
    from benchmarks.integrity.bases import list_known
    from benchmarks.integrity.document import document_of
    from benchmarks.integrity.summary import Summary
    from transect.cli.shared.output import show_json

    summary = Summary(results, list_known())
    if as_json:
        show_json(document_of(summary))
    else:
        _show(summary)
    return 0


def _tell(what: str, known: bool) -> None:
    if not known:
        click.echo(what, err=True)


def _show(summary: Summary) -> None:
    from benchmarks.integrity.gates import list_gates

    _show_gates(list_gates(summary))
    _show_faults(summary)
    _show_checks(summary)
    _show_clear(summary)
    _show_peers(summary)
    _show_unnamed(summary)


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    from transect.cli.shared.output import show_table

    if rows:
        click.echo(f"\n{title}")
        show_table(headings, rows, right=frozenset(range(left, len(headings))))


def number(value: float, form: str = ".2f") -> str:
    """Return a number as text, `-` where there is none."""
    return "-" if math.isnan(value) else format(value, form)


def _show_gates(gates: Sequence[Gate]) -> None:
    words = {True: "met", False: "NOT MET", None: "not measured"}
    rows = [
        (
            g.what,
            f"{'<=' if g.most else '>='} {g.limit:g}",
            number(g.found, ".3g"),
            str(g.cases),
            words[g.met],
        )
        for g in gates
    ]
    _table("Gates", ("gate", "limit", "found", "of", ""), rows)


def _show_faults(summary: Summary) -> None:
    rows = [
        (
            r.fault, str(r.events), number(r.precision), number(r.recall), number(r.f1), number(r.matched),
            number(r.latency, ".1f"), number(r.latency_95, ".1f"), number(r.named), number(r.right_sensor),
            number(r.least, "g"),
        )
        for r in summary.by_fault()
    ]  # fmt: skip
    heads = ("fault", "n", "prec", "rec", "F1", "IoU", "lat", "p95", "name", "sens", "least")
    _table("By fault (windows of a second; latency in s; least severity found)", heads, rows)
    reasons = [(r.reason, str(r.windows), number(r.precision), number(r.recall)) for r in summary.by_reason()]
    _table("By reason", ("reason", "windows", "prec", "rec"), reasons)


def _show_checks(summary: Summary) -> None:
    rows = [
        (
            r.check, r.name, r.fault or "-", str(r.events), number(r.recall), number(r.hours), str(r.bad),
            str(r.suspect), "yes" if r.counts else "no",
        )
        for r in summary.by_check()
    ]  # fmt: skip
    heads = ("check", "name", "fault", "n", "rec", "clear h", "BAD", "said", "counts")
    _table("By check: the fault it names best, and its alarms on clear recordings", heads, rows, 3)


def _show_clear(summary: Summary) -> None:
    rows = [
        (
            r.base, number(60 * r.hours, ".1f"), str(r.sensors), str(r.bad), str(r.suspect),
            number(r.speed, ".0f") + "x",
        )
        for r in summary.by_base()
    ]  # fmt: skip
    _table("Clear recordings: false alarms", ("base", "min", "streams", "BAD", "said", "speed"), rows)


def _show_peers(summary: Summary) -> None:
    from benchmarks.integrity.comparison import OURS, compare

    rows = compare(summary)
    names = sorted({row.peer for row in rows if row.peer != OURS})
    if not names:
        return
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        said = f"{number(row.recall)} {number(row.latency, '.0f')} {number(row.named)}"
        cells.setdefault(row.fault, {})[row.peer] = said
    columns = (OURS, *names)
    lines = [(fault, *(each.get(name, "-") for name in columns)) for fault, each in cells.items()]
    _table(
        "Peers: cases found, latency (s), cause named; first row: false alarms an hour",
        ("fault", *columns),
        lines,
    )


def _show_unnamed(summary: Summary) -> None:
    import textwrap

    if found := summary.unnamed():
        click.echo("\nNo check names")
        for fault, kinds in found.items():
            said = f"{fault}: {', '.join(kinds)}"
            for line in textwrap.wrap(said, 80, initial_indent="  ", subsequent_indent="    "):
                click.echo(line)
