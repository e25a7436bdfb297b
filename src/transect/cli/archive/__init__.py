"""`transect archive JOB`: PDS4 bundles, built and checked; one file for each job."""

from __future__ import annotations

import importlib
import pkgutil

import click

from .._groups import FileGroup


class Jobs(FileGroup):
    """The files of this package without an underscore; only the one that is called is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (module.name for module in pkgutil.iter_modules(__path__))
        return sorted(name for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return importlib.import_module(f".{cmd_name}", __name__).command


@click.group(cls=Jobs)
def command() -> None:
    """Build and check PDS4 archives."""
