"""Groups of commands whose commands are files, imported when they are named."""

from __future__ import annotations

import click


class FileGroup(click.Group):
    """A group that says which of its commands was meant; click knows only those that are imported."""

    kind = "command"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from transect.errors import did_you_mean

        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no {self.kind} {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)
