"""Recordings on the command line: options that open and cut one, reports of losses, and figures."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from .options import (
    from_option,
    option_option,
    parse_format_options,
    streams_option,
    strict_option,
    to_option,
)
from .output import ProgressDisplay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.errors import ParseError
    from transect.recording import Loss, Recording, Stream

Part = Literal["streams", "times"]
BASIC = ("paths", "strict", "apart", "read_as", "options")
PARTS: dict[Part, tuple[str, ...]] = {"streams": ("streams",), "times": ("start", "end")}


@dataclass(frozen=True)
class Opening:
    """The recording to open, and the part of it to use."""

    paths: tuple[str, ...]  # of one recording; several are joined
    strict: bool = False  # fail on corrupt input instead of keeping its valid part
    # keep equally named streams of several paths separate instead of concatenating them
    apart: bool = False
    read_as: str | None = None  # format; None: recognised
    options: tuple[str, ...] = ()  # `KEY=VALUE`, for the format
    streams: tuple[str, ...] = ()  # patterns of the streams to use; empty: all
    # time interval
    start: str | None = None
    end: str | None = None

    def open_unread(self) -> Recording:
        """Open the whole recording without reading its columns; `strict` is not checked."""
        from transect import formats

        options = parse_format_options(self.options)
        return formats.open(*self.paths, format=self.read_as, apart=self.apart, **options)

    def open(self, progress: ProgressDisplay | None = None) -> Recording:
        """Open the whole recording and read all its columns, with a progress bar on a terminal.

        A stream that cannot be read is a loss, unless it is the only one.
        """
        from transect.errors import ParseError

        recording = self.open_unread()
        read: list[Stream] = []
        failed: list[tuple[Stream, ParseError]] = []
        for stream in (progress or ProgressDisplay()).over(recording.streams, "reading", lambda s: s.name):
            try:
                lost = stream.losses
            except ParseError as error:
                failed.append((stream, error))
                continue
            read.append(stream)
            if self.strict and lost:
                raise lost[0].error()
        if failed and (self.strict or not read):
            raise failed[0][1]
        if failed:
            lost = tuple(_loss_of(stream, error) for stream, error in failed)
            recording = recording.replace(
                streams=tuple(read), reader_losses=(*recording.reader_losses, *lost)
            )
        return self.check(recording)

    def check(self, recording: Recording) -> Recording:
        """Return the recording; raise if `strict` and some data could not be read."""
        if self.strict and recording.losses:
            raise recording.losses[0].error()
        return recording

    def each(self) -> list[Opening]:
        """Return an opening for each path, for commands on several recordings."""
        return [dataclasses.replace(self, paths=(path,)) for path in self.paths]

    def cut(self, recording: Recording) -> Recording:
        """Return the selected streams of a recording in the time interval."""
        chosen = recording.select(*self.streams) if self.streams else recording
        return cut_times(chosen, self.start, self.end)


def cut_times(recording: Recording, start: str | None, end: str | None) -> Recording:
    """Return the part of a recording between two times.

    Raises
    ------
    UsageError
        If there are no samples in the interval on one of its clocks, since clocks may be far apart. Streams
        without times, such as maps and calibrations, are ignored.
    """
    from transect.errors import UsageError

    if not start and not end:
        return recording
    part = recording.slice(start, end)
    inside = {clock for clock, streams in _group_timed(part).items() if any(len(s) for s in streams)}
    timed = {clock: [s for s in streams if len(s)] for clock, streams in _group_timed(recording).items()}
    empty = [clock for clock, streams in timed.items() if streams and clock not in inside]
    if empty and inside:
        left = ", ".join(s.name for clock in empty for s in timed[clock])
        raise UsageError(
            f"there is nothing between these times on the clock {' or '.join(empty)}",
            why=f"{left} use that clock; {describe_span(recording, empty[0])}",
            hint="--streams selects those of one clock; +60s counts from the first sample on each clock",
        )
    if empty:
        hint = "+60s counts from the first sample; a bare number is seconds on the clock"
        raise UsageError("there is nothing between these times", why=describe_span(recording), hint=hint)
    return part


def _group_timed(recording: Recording) -> dict[str, list[Stream]]:
    """Return the streams that have times, by clock."""
    found: dict[str, list[Stream]] = {}
    for stream in recording:
        if stream.clock != "index":
            found.setdefault(stream.clock, []).append(stream)
    return found


def describe_span(recording: Recording, clock: str = "") -> str:
    """Return the time span of a recording as a sentence, on its own or on another clock."""
    from transect.base import clocks

    clock = clock or recording.clock
    first, last = (clocks.text_from_ns(t, clock) for t in recording.spans()[clock])
    return f"it was recorded from {first} to {last} ({clock})"


def _loss_of(stream: Stream, error: ParseError) -> Loss:
    from transect.recording import Loss

    more = "; ".join(part for part in (error.why, error.hint) if part)
    reason = f"{stream.name} is left out: {error.what}{f' ({more})' if more else ''}"
    return Loss(error.where or stream.name, reason)


def opening(
    *parts: Part, required: bool = True, metavar: str = "PATH..."
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add PATH..., --strict, --apart, --read-as and --option, which are passed as an `Opening`.

    Parameters
    ----------
    parts : "streams", "times"
        Add --streams, and --from and --to.
    required : bool
        Whether a PATH is required.
    metavar : str
        Name of the paths in the help.
    """
    decorators: list[Callable[..., Any]] = [
        click.argument("paths", nargs=-1, required=required, metavar=metavar),
        strict_option,
        click.option("--apart", is_flag=True, help="Keep equally named streams of several PATHs separate."),
        click.option("--read-as", metavar="FORMAT", help="Format of PATH; by default it is recognised."),
        option_option,
    ]
    decorators += [streams_option] if "streams" in parts else []
    decorators += [from_option, to_option] if "times" in parts else []
    names = (*BASIC, *(name for part in parts for name in PARTS[part]))

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def packed(**given: Any) -> Any:
            chosen = Opening(**{name: given.pop(name) for name in names})
            return function(opening=chosen, **given)

        for add in reversed(decorators):
            packed = add(packed)
        return packed

    return decorate


def report_left_out(sentences: Sequence[str]) -> int:
    """Print on stderr what a format could not hold, then what it changed; return the exit code: 3 or 0."""
    from transect.cli import ExitCode
    from transect.formats import DataLost, Note

    left_out = [each for each in sentences if not isinstance(each, Note)]
    for each in left_out:
        click.echo(f"{'lost' if isinstance(each, DataLost) else 'not written'}: {each}", err=True)
    for each in sentences:
        if isinstance(each, Note):
            click.echo(f"note: {each}", err=True)
    return ExitCode.DATA_LOST if left_out else 0


def warn_of_run(*paths: Path | str) -> tuple[str, ...]:
    """Print warnings about results of runs on stderr; return why they are not trustworthy.

    Parameters
    ----------
    paths : path
        Folders of runs, maps in them, ``RUN:PORT``; others are ignored.
    """
    from transect.engine.folder import check_run
    from transect.evaluation.inputs import split_name

    found = [check_run(split_name(path)[0]) for path in dict.fromkeys(paths)]
    for text in (text for each in found for text in each.warnings):
        click.echo(f"warning: {text}", err=True)
    return tuple(f"{each.name}: {text}" for each in found for text in each.failures)


def report_losses(recording: Recording) -> int:
    """Print on stderr what could not be read; return the exit code: 3, or 0 without losses."""
    from transect.cli import ExitCode

    lost = recording.losses
    if not lost:
        return 0
    count = sum(loss.count for loss in lost)
    click.echo(
        f"warning: {count or 'some'} lines, messages or files could not be read (exit code 3)", err=True
    )
    return ExitCode.DATA_LOST


def picture_option(default: str) -> Callable[..., Any]:
    """Return the option `-o` of a drawing with a default name."""
    kind = click.Path(path_type=Path)
    return click.option(
        "-o", "--out", type=kind, default=Path(default), help=f"PNG, SVG or PDF; default {default}."
    )


dpi_option = click.option(
    "--dpi", type=click.IntRange(50, 600), default=150, show_default=True, help="Pixels per inch."
)


def draw_recording(
    opening: Opening,
    out: Path,
    dpi: int,
    figure_of: Callable[[Recording], Figure],
) -> int:
    """Open a recording, draw and save a figure of it; return the exit code."""
    from transect.draw.figures import save_figure

    recording = opening.open()
    save_figure(figure_of(recording), out, dpi)
    click.echo(f"wrote {out}")
    return report_losses(recording)
