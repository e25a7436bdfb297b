"""Options that mean the same in every verb."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of a table."
)
strict_option = click.option(
    "--strict", is_flag=True, help="Refuse bad input instead of keeping its good part."
)
streams_option = click.option(
    "--streams", multiple=True, metavar="GLOB", help="Only these streams; may be repeated."
)
from_option = click.option(
    "--from", "start", metavar="TIME", help="Start: +60s, 12:04:31.2, ISO, or clock seconds."
)
to_option = click.option("--to", "end", metavar="TIME", help="End, not included.")
out_option = click.option(
    "-o", "--out", "out", type=click.Path(path_type=Path), required=True, help="Where to write."
)
option_option = click.option(
    "--option", "options", multiple=True, metavar="KEY=VALUE", help="For the format, such as sequence=01."
)


def paths_argument(function: F) -> F:
    """Add one or more PATH arguments."""
    return click.argument("paths", nargs=-1, required=True, metavar="PATH...")(function)


def opening(function: F) -> F:
    """Add what every verb that opens a recording takes: PATH..., --strict, --read-as, --option."""
    read_as = click.option(
        "--read-as", metavar="FORMAT", help="Read as this format; by default it is recognised."
    )
    for decorate in (option_option, read_as, strict_option, paths_argument):
        function = decorate(function)
    return function


def cutting(function: F) -> F:
    """Add --streams, --from and --to."""
    for decorate in (to_option, from_option, streams_option):
        function = decorate(function)
    return function
