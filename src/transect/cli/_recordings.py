"""Opening, cutting and judging a recording for a verb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from transect.base import clocks
from transect.errors import UsageError

from ._progress import Progress

if TYPE_CHECKING:
    from transect.recording import Recording


def open_recording(
    paths: tuple[str, ...], read_as: str | None, options: tuple[str, ...], strict: bool, progress: Progress
) -> Recording:
    """Open a recording and parse all its columns, with a bar on a terminal."""
    from transect import formats

    recording = formats.open(*paths, format=read_as, **parsed_options(options))
    for stream in progress.over(recording.streams, "reading", lambda s: s.name):
        lost = stream.losses
        if strict and lost:
            raise lost[0].error()
    if strict and recording.losses:
        raise recording.losses[0].error()
    return recording


def parsed_options(options: tuple[str, ...]) -> dict[str, Any]:
    """Return KEY=VALUE options for a format by name; `true` and `false` as bool."""
    for option in options:
        if "=" not in option:
            raise UsageError(f"--option {option!r} is not KEY=VALUE", hint="--option sequence=01")
    given = dict(option.split("=", 1) for option in options)
    if reserved := {"format", "strict"} & given.keys():
        raise UsageError(f"--option {reserved.pop()} is not for the format", hint="use --read-as or --strict")
    return {key: {"true": True, "false": False}.get(value.lower(), value) for key, value in given.items()}


def cut(recording: Recording, streams: tuple[str, ...], start: str | None, end: str | None) -> Recording:
    """Return the chosen streams between two times."""
    chosen = recording.select(*streams) if streams else recording
    part = chosen.slice(start, end) if start or end else chosen
    if any(len(s) for s in chosen) and not any(len(s) for s in part):
        clock = chosen.clock
        first, last = (clocks.text_from_ns(t, clock) for t in chosen.spans()[clock])
        raise UsageError(
            "there is nothing between these times", why=f"it was recorded from {first} to {last} ({clock})"
        )
    return part


def exit_for(recording: Recording) -> int:
    """Return 3 and say on stderr what was lost, or 0."""
    lost = recording.losses
    if not lost:
        return 0
    count = sum(loss.count for loss in lost)
    click.echo(
        f"warning: {count or 'some'} lines, messages or files could not be read (exit code 3)", err=True
    )
    return 3
