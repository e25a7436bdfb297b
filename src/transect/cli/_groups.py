"""Groups of commands whose commands are files, imported when they are named."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from functools import cached_property
from typing import Any

import click


class FileGroup(click.Group):
    """The files of a package without an underscore; only the one that is called is imported.

    A name that is none of them is answered with the one that was meant.

    Parameters
    ----------
    package : str
        Whose files have a `command` each.
    kind : str
        What a command is called.
    """

    def __init__(self, *args: Any, package: str, kind: str = "command", **how: Any) -> None:
        super().__init__(*args, **how)
        self.package, self.kind = package, kind

    @cached_property
    def _names(self) -> list[str]:
        modules = pkgutil.iter_modules(sys.modules[self.package].__path__)
        return sorted(module.name for module in modules if not module.name.startswith("_"))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._names:
            return None
        return importlib.import_module(f"{self.package}.{cmd_name}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from transect.errors import did_you_mean

        if args and args[0] not in self._names and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self._names)
            raise click.UsageError(f"there is no {self.kind} {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)
