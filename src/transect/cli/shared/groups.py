"""Groups of commands, each imported when it is called."""

from __future__ import annotations

from typing import Any, Literal

import click

from transect.base import plugins
from transect.errors import did_you_mean


class SuggestingGroup(click.Group):
    """Commands by name; for an unknown name, similar ones are suggested."""

    kind = "command"  # the word for a command in messages

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no {self.kind} {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """A group whose commands are in the manifests of plug-ins; only the one that is called is imported.

    Parameters
    ----------
    offered : str
        The field of the manifests that lists the commands.
    kind : str
        The word for a command in messages.
    """

    def __init__(
        self,
        *args: Any,
        offered: Literal["commands", "drawings", "tables"],
        kind: str = "command",
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.offered: Literal["commands", "drawings", "tables"] = offered
        self.kind = kind

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(plugins.names(self.offered))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = plugins.find(self.offered, cmd_name)
        return plugins.load_dotted(found) if found else None
