"""`transect graph list`: the nodes that there are."""

from __future__ import annotations

import dataclasses

import click

from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option, show_json, show_table


@click.command()
@all_option
@json_option
def command(as_json: bool) -> None:
    """List the nodes that compounds are made of.

    `transect run` lists the compounds.
    """
    from transect.engine.listing import list_nodes

    nodes = list_nodes()
    if as_json:
        show_json({"nodes": [dataclasses.asdict(each) for each in nodes]})
        return
    show_table(("group", "node", "what it does"), [(n.group, n.name, n.doc) for n in nodes], prose=(2,))
    click.echo("\ntransect graph show NODE   its inputs, outputs, implementations and parameters")
    click.echo("transect run NODE PATH     run it alone on a recording whose streams it can take")
