"""`transect cache info|clear`: the cache of parsed text files."""

from __future__ import annotations

import click

from transect.base.tables import size_text

from .shared.options import json_option


@click.group()
def command() -> None:
    """Show or clear the cache of parsed files."""


@command.command()
@json_option
def info(as_json: bool) -> None:
    """Show the folder, size and size limit of the cache.

    Remains of killed commands are removed.
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
    click.echo(f"{cache.folder()}: {len(entries)} parsed files, {used}")
    click.echo(
        "set by TRANSECT_CACHE_DIR and TRANSECT_CACHE_LIMIT (bytes); cleared by 'transect cache clear'"
    )


@command.command()
def clear() -> None:
    """Remove all cached files; they are rebuilt when needed."""
    from transect.recording import cache

    click.echo(f"removed {size_text(cache.clear())} from {cache.folder()}")
