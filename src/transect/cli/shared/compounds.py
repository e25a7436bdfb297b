"""Compounds and parameters on the command line: `Name/Implementation`, `--set NODE.PARAM=VALUE`."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transect.errors import ParseError, UsageError

from .options import parse_pairs

if TYPE_CHECKING:
    from transect.engine import Compound
    from transect.engine.overview import Listing, PortListing

SINGLE_NODE = "node"
"""Name in `--set` of a node that runs alone."""
EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")
"""Numbers that YAML 1.1 reads as text: 1e-3."""


def find_compound(spec: str, execute: bool = True) -> Compound:
    """Return the compound of a name; its Python files are only parsed unless `execute`."""
    from transect.engine import Compound

    if Path(spec).is_dir():
        raise UsageError(
            f"{spec} is a folder, not a compound",
            hint=f"name the compound first: transect run WheelOdometry {shlex.quote(spec)}; "
            "transect run lists all",
        )
    return Compound.of(spec, execute)


def find_description(spec: Path) -> tuple[Path, str]:
    """Return the file of a description and the implementation: a file, `Name` or `Name/Implementation`."""
    if spec.exists() or spec.suffix:
        return spec, ""
    found = find_compound(str(spec).removesuffix("/*"), execute=False)
    if not found.text.file:
        raise UsageError(f"{spec} is a node, not a compound: there is no picture of it")
    return Path(found.text.file), found.implementation


def parse_settings(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse `--set node.param=value`; values are YAML: 0.3, true, [1, 2], text."""
    from transect.engine.runs import settings_from

    texts = parse_pairs(given, "--set", "icp.max_distance=0.3")
    return settings_from({name: _parse_value(name, text) for name, text in texts.items()})


def _parse_value(name: str, text: str) -> Any:
    from transect.base.yaml_parts import parse

    if EXPONENT.fullmatch(text.strip()):
        return float(text)
    try:
        read, _ = parse(text, "--set")
    except ParseError as error:
        raise UsageError(
            f"--set {name}={text} cannot be read",
            why=error.why or error.what,
            hint="0.3, true, [1, 2], or text; quote what has brackets or colons",
        ) from error
    return "" if read is None and not text.strip() else read


def show_compounds(as_json: bool) -> None:
    """Print the compounds with their inputs and outputs."""
    from transect.engine.overview import list_compounds

    from .output import show_json, show_table

    compounds = list_compounds()
    if as_json:
        show_json({"compounds": [dataclasses.asdict(each) for each in compounds]})
        return
    rows: list[tuple[str, str]] = []
    for each in compounds:
        rows.append((each.name, each.doc))
        rows.append(("", f"inputs (some of): {_ports_text(each.inputs)}"))
        rows.append(("", f"outputs: {', '.join(port.name for port in each.outputs)}"))
    show_table(("compound", "description, inputs and outputs"), rows, prose=(1,))
    click.echo("\ntransect run NAME PATH -o DIR      run one on a recording")
    click.echo("transect run 'NAME/*' PATH -o DIR  run all its implementations and compare them")
    click.echo("transect run NAME --help           list implementations, ports and parameters")
    click.echo("transect graph list                list the nodes, which can run alone, too")


def show_description(described: Listing) -> None:
    """Print inputs, outputs and parameters of a compound or a node: of its first implementation."""
    from .output import show_table

    click.echo(f"{described.name}: {described.doc}\n")
    names = [each.name for each in described.implementations]
    shown = next(iter(described.implementations), None)
    used = {*shown.inputs, *shown.outputs} if shown else set[str]()
    for heading, ports in (("input", described.inputs), ("output", described.outputs)):
        rows = [(p.name, p.type, _port_text(p)) for p in ports if p.name in used or not shown]
        if rows:
            show_table((heading, "type", "description"), rows, prose=(2,))
            click.echo("")
    if shown is None:
        return
    if len(names) > 1:
        click.echo(f"implementations: {', '.join(names)}")
    click.echo(f"parameters of {described.name}/{shown.name}, for --set NAME=VALUE:\n")
    rows = [
        (f"{node.id or SINGLE_NODE}.{p.name}", _value_text(p.value), p.unit, p.range, p.doc)
        for node in shown.nodes
        for p in node.parameters
    ]
    if rows:
        show_table(
            ("name", "default", "unit", "range", "description"), rows, order=(0, 1, 2, 4, 3), prose=(4,)
        )
    else:
        click.echo("none")


def _ports_text(ports: Sequence[PortListing]) -> str:
    """Return types, each with the names of its ports: `Image (left, right), NavFix (fix)`."""
    names: dict[str, list[str]] = {}
    for port in ports:
        names.setdefault(port.type, []).append(port.name)
    return ", ".join(f"{kind} ({', '.join(several)})" for kind, several in names.items())


def _port_text(port: PortListing) -> str:
    parts = [port.doc.removesuffix("."), f"tag {port.tag}" if port.tag else "", port.policy, port.unit]
    return "; ".join(part for part in (*parts, "optional" if port.optional else "") if part)


def _value_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else '""' if value == "" else str(value)
