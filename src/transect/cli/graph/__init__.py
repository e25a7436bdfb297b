"""`transect graph check|draw|list|schema|show`: nodes and compounds as they are described; one file each."""

from __future__ import annotations

import importlib
import pkgutil

import click

from .._groups import FileGroup


class Jobs(FileGroup):
    """The files of this package; only the one that is called is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return getattr(importlib.import_module(f".{cmd_name}", __name__), cmd_name)


@click.group(cls=Jobs)
def command() -> None:
    """Check, draw, list and show nodes and compounds."""
