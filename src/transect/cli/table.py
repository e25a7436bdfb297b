"""`transect table KIND PATH`: the tables that papers print, made from a recording."""

from __future__ import annotations

import importlib

import click

KINDS = {
    "arm": "every derived column of a SciHi file, recomputed from its raw columns",
    "faults": "every fault of InSight's arm and its rule; those that a recording shows",
    "odometry": "lengths and errors of wheel odometry beside RTK",
    "traverse": "length, height, duration, speeds and RTK coverage of traverses",
}


class Kinds(click.Group):
    """The kinds of table; only the one that is asked for is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(KINDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in KINDS:
            return None
        return importlib.import_module(f"transect.cli._table_{cmd_name}").command


@click.group(cls=Kinds)
def command() -> None:
    """Make a table that a paper would print."""
