"""`transect graph draw FILE|NAME -o x.svg|x.mmd`: the picture of a compound."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from transect.cli.shared.options import out_option

SUFFIXES = (".svg", ".mmd")


@click.command()
@click.argument("file", metavar="FILE|NAME", type=click.Path(path_type=Path))
@click.argument("others", nargs=-1, metavar="[OTHERS]...", type=click.Path(path_type=Path))
@out_option
@click.option("--implementation", default="", metavar="NAME", help="By default the first that is complete.")
def command(file: Path, others: tuple[Path, ...], out: Path, implementation: str) -> None:
    """Draw a compound as .svg, or as .mmd for Mermaid.

    It is named by its file, or as VisualOdometry/Mono.

    OTHERS are descriptions, Python files or folders of them in which its nodes are found, besides those
    that lie beside FILE; the ports of a node that is found are all drawn, unused ones grey.
    """
    from transect.base import files
    from transect.cli.shared.compounds import find_description
    from transect.draw.graph import mermaid_text, svg_text
    from transect.engine.picture import read_picture
    from transect.errors import UsageError

    if out.suffix not in SUFFIXES:
        raise UsageError(f"cannot draw to {out}", why=f"its name should end in {' or '.join(SUFFIXES)}")
    described, named = find_description(file)
    graph = read_picture(described, implementation or named, _expand(others))
    files.write_text(out, svg_text(graph) if out.suffix == ".svg" else mermaid_text(graph))
    nodes = sum(box.kind == "node" for box in graph.boxes)
    click.echo(f"wrote {out}: {graph.title}, {_count(nodes, 'node')}, {_count(len(graph.edges), 'wire')}")


def _expand(paths: Iterable[Path]) -> list[Path]:
    """Return files as they are given, and the descriptions and scripts of folders."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        found += [file for file in inside if not path.is_dir() or file.suffix in (".py", ".yaml", ".yml")]
    return found


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
