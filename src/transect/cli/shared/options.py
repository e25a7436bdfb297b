"""Groups of commands, options that several commands share, and the parsing of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from transect.base import plugins
from transect.errors import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of a table."
)
strict_option = click.option(
    "--strict", is_flag=True, help="Fail on corrupt input instead of keeping its valid part."
)
streams_option = click.option(
    "--streams",
    multiple=True,
    metavar="GLOB",
    help="Only streams of this name or pattern (Gps/*); may be repeated.",
)
from_option = click.option(
    "--from", "start", metavar="TIME", help="Start: +60s, 12:04:31.2, ISO, or clock seconds."
)
to_option = click.option("--to", "end", metavar="TIME", help="End, not included.")
out_option = click.option(
    "-o", "--out", "out", type=click.Path(path_type=Path), required=True, help="Where to write."
)
option_option = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Option of the format, such as sequence=01.",
)


def add_options(*options: Callable[..., Any]) -> Callable[[F], F]:
    """Return one decorator for several options, which `--help` lists in this order."""

    def decorate(function: F) -> F:
        for add in reversed(options):
            function = add(function)
        return function

    return decorate


def new_folder(out: Path | None) -> Path:
    """Return the folder to write, if one is named and it does not exist."""
    from transect.base.files import refuse_existing
    from transect.errors import UsageError

    if out is None:
        raise UsageError("there is no folder to write to", hint="-o DIR names a new folder")
    refuse_existing(out, hint="choose another name with -o")
    return out


def parse_pairs(given: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Return the values of an option that may be repeated, each KEY=VALUE, by key."""
    from transect.errors import UsageError

    for text in given:
        if "=" not in text:
            raise UsageError(f"{option} {text!r} is not KEY=VALUE", hint=f"{option} {example}")
    return {key: value for key, _, value in (text.partition("=") for text in given)}


def parse_format_options(options: Sequence[str]) -> dict[str, Any]:
    """Return KEY=VALUE options for a format by name; `true` and `false` as bool."""
    from transect.errors import UsageError

    given = parse_pairs(options, "--option", "sequence=01")
    if reserved := {"format", "strict"} & given.keys():
        raise UsageError(f"--option {reserved.pop()} is not for the format", hint="use --read-as or --strict")
    return {key: {"true": True, "false": False}.get(value.lower(), value) for key, value in given.items()}


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
