"""`transect graph`: check, draw, list and show nodes and compounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import ExitCode
from .shared.options import SuggestingGroup, json_option, out_option
from .shared.output import all_option, show_json, show_table

if TYPE_CHECKING:
    from transect.base.yaml_parts import DescriptionProblem
    from transect.engine import Compound
    from transect.engine.description_checks import FileReport


@click.group(cls=SuggestingGroup)
def command() -> None:
    """Check, draw, list and show nodes and compounds."""


@command.command("check")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|NAME...", type=click.Path(path_type=Path))
@click.option("--execute", is_flag=True, help="Execute the Python files too, as a run does.")
@json_option
@click.pass_context
def check_command(ctx: click.Context, paths: tuple[Path, ...], execute: bool, as_json: bool) -> None:
    """Check descriptions of nodes and compounds.

    Each argument is a file, a folder, or the name of a node; files given together may refer to each other.

    Exits with 4 if there are problems; hints alone do not count. A folder is searched for .yaml and .yml, and
    nodes are also found in Python files beside a description. Python files are parsed, and executed only with
    --execute, which also finds failing imports and resets. A description without problems can be run; a hint
    names nodes that are described but not yet implemented.
    """
    from transect.engine.description_checks import check as checked
    from transect.engine.description_checks import check_compound

    from .shared.output import show_json

    nodes = {path: node for path in paths if (node := _find_node(path, execute)) is not None}
    reports = {str(path): check_compound(node) for path, node in nodes.items()}
    reports |= checked(_files(path for path in paths if path not in nodes), execute=execute)
    if as_json:
        show_json({"files": {file: _document(report) for file, report in reports.items()}})
    else:
        click.echo("\n".join(_lines(reports)))
    if any(report.problems for report in reports.values()):
        ctx.exit(ExitCode.BAD_VERDICT)


def _find_node(path: Path, execute: bool) -> Compound | None:
    """Return the node that is named instead of a description, as a compound of that node alone."""
    from transect.engine import Compound
    from transect.engine.catalogue import catalogue_for, node_named

    if path.is_dir() or node_named(str(path), catalogue_for(execute=execute)) is None:
        return None
    return Compound.of(str(path), execute)


def _files(paths: Iterable[Path]) -> list[Path]:
    """Return the files that the arguments refer to, each once."""
    from transect.errors import UsageError

    from .shared.compounds import find_description

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
    """Return the descriptions in a folder and its subfolders, except hidden ones."""
    inside = (p for suffix in ("*.yaml", "*.yml") for p in folder.rglob(suffix) if p.is_file())
    return sorted(p for p in inside if not any(n.startswith(".") for n in p.relative_to(folder).parts))


def _document(report: FileReport) -> dict[str, Any]:
    return {
        "problems": [dataclasses.asdict(problem) for problem in report.problems],
        "hints": [dataclasses.asdict(hint) for hint in report.hints],
    }


def _lines(reports: Mapping[str, FileReport]) -> Iterator[str]:
    """Yield the report as text: problems and hints by file, and a summary."""
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


def _line(problem: DescriptionProblem, called: str) -> str:
    place = f"line {problem.line}" if problem.line else "file"
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"  {place:>9}  {called:<7}  {problem.what}{hint}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


SUFFIXES = (".svg", ".mmd")


@command.command("draw")
@click.argument("file", metavar="FILE|NAME", type=click.Path(path_type=Path))
@click.argument("others", nargs=-1, metavar="[OTHERS]...", type=click.Path(path_type=Path))
@out_option
@click.option("--implementation", default="", metavar="NAME", help="By default the first complete one.")
def draw_command(file: Path, others: tuple[Path, ...], out: Path, implementation: str) -> None:
    """Draw a compound as .svg, or as .mmd for Mermaid.

    NAME is a compound such as VisualOdometry, or VisualOdometry/Mono for one implementation.

    OTHERS are further descriptions, Python files, or folders of them, with its nodes; those beside FILE are
    always searched. All ports of a known node are drawn, unused ones grey.
    """
    from transect.base import files
    from transect.draw.graph import mermaid_text, svg_text
    from transect.engine.picture import read_picture
    from transect.errors import UsageError

    from .shared.compounds import find_description

    if out.suffix not in SUFFIXES:
        raise UsageError(f"cannot draw to {out}", why=f"its name should end in {' or '.join(SUFFIXES)}")
    described, named = find_description(file)
    graph = read_picture(described, implementation or named, _expand(others))
    files.write_text(out, svg_text(graph) if out.suffix == ".svg" else mermaid_text(graph))
    nodes = sum(box.kind == "node" for box in graph.boxes)
    click.echo(f"wrote {out}: {graph.title}, {_count(nodes, 'node')}, {_count(len(graph.edges), 'wire')}")


def _expand(paths: Iterable[Path]) -> list[Path]:
    """Return the given files, and the descriptions and scripts of folders."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        found += [file for file in inside if not path.is_dir() or file.suffix in (".py", ".yaml", ".yml")]
    return found


@command.command("list")
@all_option
@json_option
def list_command(as_json: bool) -> None:
    """List the nodes that compounds are made of.

    `transect run` lists the compounds.
    """
    from transect.engine.overview import list_nodes

    nodes = list_nodes()
    if as_json:
        show_json({"nodes": [dataclasses.asdict(each) for each in nodes]})
        return
    show_table(("group", "node", "what it does"), [(n.group, n.name, n.doc) for n in nodes], prose=(2,))
    click.echo("\ntransect graph show NODE   its inputs, outputs, implementations and parameters")
    click.echo("transect run NODE PATH     run it alone on a recording with matching streams")


@command.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of descriptions, for editors.

    Editors use it for completion and validation, with this first line of a description:
    # yaml-language-server: $schema=compound.schema.json
    """
    click.echo(schema_text(), nl=False)


def schema_text() -> str:
    """Return the JSON Schema of descriptions."""
    return files("transect.engine").joinpath("compound.schema.json").read_text(encoding="utf-8")


@command.command("show")
@click.argument("name", metavar="NAME|FILE")
@all_option
@json_option
def show_command(name: str, as_json: bool) -> None:
    """Show inputs, outputs and parameters of a compound or a node.

    NAME is Name or Name/Implementation; by default the first implementation is shown.
    """
    from transect.engine.overview import describe

    from .shared.compounds import show_description

    described = describe(name)
    if as_json:
        show_json(dataclasses.asdict(described))
    else:
        show_description(described)
