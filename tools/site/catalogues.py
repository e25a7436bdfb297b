"""Pages of what transect lists by itself: commands, formats, compounds, nodes, checks, examples."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .markdown import block_of, name_of, table_of

if TYPE_CHECKING:
    from transect.engine.overview import Listing, NodeListing, PortListing

ROOT = Path(__file__).resolve().parents[2]
PORTS = ("port", "type", "how", "unit", "frame", "meaning")
PARAMETERS = ("parameter", "type", "default", "allowed", "unit", "meaning")


def pages() -> Iterator[tuple[str, str]]:
    """Yield path and text of each page."""
    yield "reference/cli.md", commands_page()
    yield "reference/formats-list.md", formats_page()
    yield "reference/compounds.md", compounds_page()
    yield "reference/nodes.md", nodes_page()
    yield "reference/checks.md", checks_page()
    yield "examples.md", examples_page()


def commands_page() -> str:
    """Return the help of every verb, as the command prints it."""
    from transect.cli import command

    parts = ["# Commands, option by option\n", "What `transect VERB --help` prints.\n"]
    parts += [f"{'#' * (1 + len(names))} {' '.join(names)}\n\n{text}" for names, text in _helps(command, ())]
    return "\n".join(parts)


def _helps(group: click.Group, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    context = click.Context(group, info_name=" ".join(["transect", *above]))
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is None or found.hidden:
            continue
        inner = click.Context(found, info_name=" ".join(["transect", *above, name]), max_content_width=100)
        yield (*above, name), block_of(found.get_help(inner))
        if isinstance(found, click.Group):
            yield from _helps(found, (*above, name))


def formats_page() -> str:
    """Return what each reader says of itself."""
    from transect import formats

    parts = ["# Formats\n", "Each is recognised by the path alone; `--format NAME` insists on one.\n"]
    writing = formats.writing_names()
    for name in formats.names():
        text = formats.describe(name).replace("``", "`")
        parts.append(f"## {name}\n\n{text}\n\n{'Read and written.' if name in writing else 'Read.'}\n")
    return "\n".join(parts)


def compounds_page() -> str:
    """Return inputs, outputs and implementations of every compound."""
    from transect.engine.overview import describe, list_compounds

    parts = ["# Compounds\n", "Run one with `transect run NAME PATH -o DIR`.\n"]
    for each in list_compounds():
        listing = describe(each.name)
        parts += [f"## {each.name}\n\n{each.doc}\n", ports_of(listing)]
        for way in listing.implementations:
            nodes = ", ".join(f"`{node.id}` ({node.implementation})" for node in way.nodes)
            parts.append(f"- **{way.name}** from {', '.join(map(name_of, way.inputs))}: {nodes}")
        parts.append("")
    return "\n".join(parts)


def nodes_page() -> str:
    """Return ports and parameters of every node, by what they are for."""
    from transect.engine.overview import describe, list_nodes

    parts = ["# Nodes\n", "Steps of compounds; see [a node in ten minutes](../tutorial-node.md).\n"]
    for group, nodes in groupby(list_nodes(), lambda each: each.group):
        parts.append(f"## {group}\n")
        for each in nodes:
            listing = describe(each.name)
            parts += [f"### {each.name}\n\n{each.doc}\n", ports_of(listing)]
            for way in listing.implementations:
                parts.append(f"**{way.name}**: {way.nodes[0].doc}\n\n{parameters_of(way.nodes[0])}")
    return "\n".join(parts)


def ports_of(listing: Listing) -> str:
    """Return the tables of inputs and outputs."""
    parts = []
    for title, ports in (("Inputs", listing.inputs), ("Outputs", listing.outputs)):
        rows = [(name_of(p.name), name_of(p.type), _how(p), p.unit, p.frame, p.doc) for p in ports]
        parts.append(f"{title}:\n\n{table_of(PORTS, rows)}" if rows else "")
    return "\n".join(parts)


def _how(port: PortListing) -> str:
    """Return how a port takes samples: its policy, its tag, whether it may be left out."""
    said = [port.policy, f"tag {port.tag}" if port.tag else "", "optional" if port.optional else ""]
    said += ["all that are left" if port.many else "", f"one of {port.one_of}" if port.one_of else ""]
    return ", ".join(filter(None, said))


def parameters_of(node: NodeListing) -> str:
    """Return the table of the parameters of a node; "" if it has none."""
    rows = [
        (name_of(p.name), p.type, name_of(str(p.default)), p.range, p.unit, p.doc) for p in node.parameters
    ]
    return table_of(PARAMETERS, rows)


def checks_page() -> str:
    """Return what every check measures and holds it against."""
    from transect.integrity import catalogue

    parts = ["# Checks\n", "What `transect check` asks of each stream; see [integrity](../integrity.md).\n"]
    for name, check in catalogue.load_all().items():
        text, _, motive = (check.__doc__ or "").partition("Motive:")
        rows = [
            (name_of(key), f"{limit.warn:g}", f"{limit.fail:g}", limit.unit, name_of(limit.reason), limit.doc)
            for key, limit in check.limits.items()
        ]
        said = "\n".join(line.strip() for line in text.replace("``", "`").splitlines())
        limits = table_of(("statistic", "warn", "fail", "unit", "reason", "meaning"), rows)
        parts.append(f"## {check.id} {name}\n\n{said}\n\n{limits}\n*{' '.join(motive.split())}*\n")
    return "\n".join(parts)


def examples_page() -> str:
    """Return the programs in examples/, in order."""
    parts = ["# Examples\n", "Programs that run in seconds, on data that they make themselves.\n"]
    for file in sorted((ROOT / "examples").glob("*.py")):
        text = file.read_text("utf-8")
        said = (ast.get_docstring(ast.parse(text)) or "").replace("``", "`")
        parts.append(f"## {file.name} {{#{file.stem}}}\n\n{said}\n\n{block_of(text, 'python')}")
    return "\n".join(parts)
