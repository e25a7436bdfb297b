"""`transect cache info|clear`: the parsed text that is kept to open it faster."""

from __future__ import annotations

import click

from transect.base.tables import size_text

from .shared.options import json_option


@click.group()
def command() -> None:
    """Look at, or clear, the cache of parsed files."""


@command.command()
@json_option
def info(as_json: bool) -> None:
    """Show where the cache is, how large, and how large it may get.

    What killed commands left is swept.
    """
    from transect.recording import cache

    from .shared.output import show_json

    cache.shrink(cache.limit())
    entries = list(cache.entries())
    size = sum(e.size for e in entries)
    if as_json:
        facts = {
            "folder": cache.folder(),
            "entries": len(entries),
            "bytes": size,
            "limit_bytes": cache.limit(),
        }
        show_json(facts)
        return
    used = f"{size_text(size)} of at most {size_text(cache.limit())}"
    click.echo(f"{cache.folder()}: {len(entries)} files parsed, {used}")
    click.echo(
        "TRANSECT_CACHE_DIR and TRANSECT_CACHE_LIMIT (bytes) change that; 'transect cache clear' empties it"
    )


@command.command()
def clear() -> None:
    """Remove everything that is cached; it is made again when needed."""
    from transect.recording import cache

    click.echo(f"removed {size_text(cache.clear())} from {cache.folder()}")
