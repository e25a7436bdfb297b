"""`transect graph show NAME`: what a compound or a node takes, gives, and can be set to."""

from __future__ import annotations

import dataclasses

import click

from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option, show_json


@click.command()
@click.argument("name", metavar="NAME|FILE")
@all_option
@json_option
def command(name: str, as_json: bool) -> None:
    """Show inputs, outputs and parameters of a compound or a node.

    NAME is Name or Name/Implementation; of a compound without an implementation, the first one is shown.
    """
    from transect.cli.shared.compounds import show_description
    from transect.engine.listing import describe

    described = describe(name)
    if as_json:
        show_json(dataclasses.asdict(described))
    else:
        show_description(described)
