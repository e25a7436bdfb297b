"""Groups of commands, each imported when it is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import click

from transect.base.plugins import load_dotted


class LazyGroup(click.Group):
    """Commands by name, of which only the one that is called is imported.

    A name that is none of them is answered with the one that was meant.

    Parameters
    ----------
    commands : callable
        Returns the dotted string of each command by its name (`base/plugins.py`).
    kind : str
        What a command is called.
    """

    def __init__(
        self,
        *args: Any,
        commands: Callable[[], Mapping[str, str]],
        kind: str = "command",
        **how: Any,
    ) -> None:
        super().__init__(*args, **how)
        self.find_commands, self.kind = commands, kind

    @cached_property
    def _strings(self) -> Mapping[str, str]:
        return self.find_commands()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._strings)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_dotted(self._strings[cmd_name]) if cmd_name in self._strings else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from transect.errors import did_you_mean

        if args and args[0] not in self._strings and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self._strings)
            raise click.UsageError(f"there is no {self.kind} {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)
