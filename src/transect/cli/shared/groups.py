"""Groups of commands, each imported when it is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import click

from transect.base.plugins import load_dotted


class SuggestingGroup(click.Group):
    """Commands by name; an unknown name is answered with the nearest known ones."""

    kind = "command"
    """What a command is called in the answer."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from transect.errors import did_you_mean

        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            raise click.UsageError(
                f"there is no {self.kind} {args[0]!r}; {did_you_mean(args[0], known)}", ctx
            )
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """A group that imports only the command that is called.

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
