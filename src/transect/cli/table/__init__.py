"""`transect table KIND PATH`: the tables that papers print, made from a recording; one file each."""

from __future__ import annotations

import importlib
import pkgutil

import click


class Kinds(click.Group):
    """The files of this package; only the one that is asked for is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return importlib.import_module(f".{cmd_name}", __name__).command


@click.group(cls=Kinds)
def command() -> None:
    """Make a table that a paper would print."""
