"""`transect graph check FILE|NAME...`: everything that is wrong with descriptions, before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transect.cli import BAD_VERDICT
from transect.cli.shared.options import json_option

if TYPE_CHECKING:
    from transect.base.yaml_parts import Problem
    from transect.engine import Compound
    from transect.engine.checking import Report


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|NAME...", type=click.Path(path_type=Path))
@click.option("--execute", is_flag=True, help="Run the Python files too, as a run would.")
@json_option
@click.pass_context
def command(ctx: click.Context, paths: tuple[Path, ...], execute: bool, as_json: bool) -> None:
    """Check descriptions of nodes and compounds.

    Files and folders given together see each other.

    Exits with 4 if there are problems; hints alone do not count. A folder is searched for .yaml and .yml, and
    nodes are also found in Python files beside a description. These are read, and nothing in them is executed
    unless --execute is given, which finds more: an import or a reset that fails. What has no problems can
    be run; a hint says so of what is described and not written yet. A node may be named too, or its file.
    """
    from transect.cli.shared.output import show_json
    from transect.engine.checking import check as checked
    from transect.engine.checking import check_compound

    nodes = {path: node for path in paths if (node := _find_node(path, execute)) is not None}
    reports = {str(path): check_compound(node) for path, node in nodes.items()}
    reports |= checked(_files(path for path in paths if path not in nodes), execute=execute)
    if as_json:
        show_json({"files": {file: _document(report) for file, report in reports.items()}})
    else:
        click.echo("\n".join(_lines(reports)))
    if any(report.problems for report in reports.values()):
        ctx.exit(BAD_VERDICT)


def _find_node(path: Path, execute: bool) -> Compound | None:
    """Return the node that is named instead of a description, as a compound of it alone."""
    from transect.engine import Compound
    from transect.engine.catalogue import catalogue_for, node_named

    if path.is_dir() or node_named(str(path), catalogue_for(execute=execute)) is None:
        return None
    return Compound.of(str(path), execute)


def _files(paths: Iterable[Path]) -> list[Path]:
    """Return the files meant by the arguments, each once."""
    from transect.cli.shared.compounds import find_description
    from transect.errors import UsageError

    found: dict[Path, None] = {}
    for named in paths:
        path, _ = find_description(named)
        inside = _descriptions(path) if path.is_dir() else [path]
        if not path.exists():
            raise UsageError(f"there is no file or folder {path}")
        if not inside:
            raise UsageError(f"there are no descriptions in {path}", why="none of its files is .yaml or .yml")
        found.update(dict.fromkeys(inside))
    return list(found)


def _descriptions(folder: Path) -> list[Path]:
    """Return the descriptions in a folder and those under it, but for hidden ones."""
    inside = (p for suffix in ("*.yaml", "*.yml") for p in folder.rglob(suffix) if p.is_file())
    return sorted(p for p in inside if not any(n.startswith(".") for n in p.relative_to(folder).parts))


def _document(report: Report) -> dict[str, Any]:
    return {
        "problems": [dataclasses.asdict(problem) for problem in report.problems],
        "hints": [dataclasses.asdict(hint) for hint in report.hints],
    }


def _lines(reports: Mapping[str, Report]) -> Iterator[str]:
    """Yield what a person reads: problems and then hints by file, and a closing line."""
    for file, report in reports.items():
        if report.problems or report.hints:
            yield click.style(file, bold=True)
            yield from (_line(problem, "problem") for problem in report.problems)
            yield from (_line(hint, "hint") for hint in report.hints)
            yield ""
    bad = [report for report in reports.values() if report.problems]
    problems = sum(len(report.problems) for report in bad)
    hints = sum(len(report.hints) for report in reports.values())
    found = f"{len(bad)} with problems ({problems})" if bad else "no problems"
    yield f"{_count(len(reports), 'file')}: {found}, {_count(hints, 'hint')}"


def _line(problem: Problem, called: str) -> str:
    place = f"line {problem.line}" if problem.line else "file"
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"  {place:>9}  {called:<7}  {problem.what}{hint}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
