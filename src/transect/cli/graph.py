"""`transect graph check|draw|schema|show`: nodes and compounds described; one file each, `_graph_*.py`."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import click

PREFIX = "_graph_"


class Jobs(click.Group):
    """The files beside this one named after it; only the one that is called is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        modules = pkgutil.iter_modules([str(Path(__file__).parent)])
        return sorted(m.name.removeprefix(PREFIX) for m in modules if m.name.startswith(PREFIX))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return getattr(importlib.import_module(f".{PREFIX}{cmd_name}", __package__), cmd_name)


@click.group(cls=Jobs)
def command() -> None:
    """Check, draw and show descriptions of nodes and compounds."""
