"""Tables, text and JSON on stdout; progress on stderr: a bar on a terminal, occasional lines in a pipe."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from transect.base import clocks, files
from transect.base.tables import fit_table

from .terminal import bar_stream

T = TypeVar("T")

MIN_LINE_INTERVAL_S, MAX_LINE_INTERVAL_S = 2.0, 60.0
"""Time between two progress lines in a pipe; between these limits, one line for each tenth of the work."""

ALL = "transect.all"
"""Key of `--all` in the context of a command."""

MAX_COLUMNS_NAMED = 4
"""Up to this number, omitted columns are named."""


def _keep_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[ALL] = value


all_option = click.option(
    "--all", is_flag=True, expose_value=False, callback=_keep_all,
    help="Show all columns, independent of the terminal's width.",
)  # fmt: skip


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: frozenset[int] = frozenset(),
    order: Sequence[int] = (),
    prose: Collection[int] = (),
    names: Collection[int] = (),
) -> None:
    """Print a table that fits the terminal, with bold headings there.

    Parameters
    ----------
    right : frozenset of int
        Right-aligned columns, of numbers.
    order : sequence of int
        Columns from the most to the least important; the last ones are omitted if they do not fit.
    prose : collection of int
        Columns of sentences, which are wrapped instead of shortened.
    names : collection of int
        Columns of names to type, which are not shortened below half of the width.
    """
    terminal = sys.stdout.isatty()
    context = click.get_current_context(silent=True)
    asked: bool | None = context.meta.get(ALL) if context is not None else None
    whole = not terminal or asked
    width = None if whole else _terminal_width()
    table = fit_table([headings, *rows], right, width=width, order=order, prose=prose, names=names)
    head, *lines = table.lines
    click.echo(click.style(head, bold=True) if terminal else head)
    for line in lines:
        click.echo(line)
    if table.left_out:
        few = len(table.left_out) <= MAX_COLUMNS_NAMED
        what = ", ".join(table.left_out) if few else f"{len(table.left_out)} more columns"
        # asked is None for commands without --all
        click.echo(f"(not shown: {what}; {'use a wider terminal' if asked is None else 'use --all'})")


def _terminal_width() -> int:
    import shutil  # not needed for a pipe

    return shutil.get_terminal_size().columns


def show_text(
    text: str, *, bold: bool = False, colour: str | None = None, indent: str = "", widest: int | None = None
) -> None:
    """Print text wrapped at the width of the terminal (80 columns without one), at most `widest`.

    Words are not broken, so that paths and options can be copied. Styles apply on terminals only.
    """
    import textwrap

    styled = sys.stdout.isatty()
    width = min(_terminal_width(), widest or sys.maxsize)
    for line in text.splitlines() or [""]:
        folded = textwrap.wrap(
            line, width, initial_indent=indent, subsequent_indent=f"{indent}  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        for part in folded or [""]:
            click.echo(
                click.style(part, bold=bold or None, fg=colour) if styled and (bold or colour) else part
            )


def show_json(document: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, indent=2, default=str))


class ProgressDisplay:
    """Progress on stderr.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    lines : bool
        If stderr is not a terminal, print lines instead of a bar.
    """

    def __init__(self, quiet: bool = False, lines: bool = False) -> None:
        terminal = sys.stderr.isatty()
        self.shown = terminal and not quiet
        self.lines = lines and not terminal and not quiet

    def over(self, items: Sequence[T], what: str, name: Callable[[T], str] = str) -> Iterator[T]:
        """Iterate over items with a progress bar that names the current one."""
        if not self.shown or not items:
            yield from items
            return
        with _bar() as bar:
            task = bar.add_task(what, total=len(items), at="")
            for item in items:
                bar.update(task, at=name(item))
                yield item
                bar.advance(task)

    @contextmanager
    def of_files(self, total: int, what: str) -> Generator[None]:
        """Show how many of `total` files were written in the block, and the recording's time."""
        if self.lines and total:
            with files.observed(_ProgressLines(total, what)):
                yield
            return
        if not self.shown or not total:
            yield
            return
        with (
            _bar() as bar,
            files.observed(_FileProgressBar(bar, bar.add_task(what, total=total, at=""), total)),
        ):
            yield


class _FileProgressBar:
    """Updates a progress bar with every file that is written."""

    def __init__(self, bar: Any, task: Any, total: int) -> None:
        self.bar, self.task, self.total = bar, task, total
        self.done = 0

    def wrote(self, path: Path) -> None:
        self.done += 1  # a format may write more files than there are streams and payloads
        self.bar.update(self.task, completed=self.done, total=max(self.total, self.done))

    def reached(self, t_ns: int, clock: str) -> None:
        self.bar.update(self.task, at=clocks.text_from_ns(t_ns, clock))


class _ProgressLines:
    """Prints a line for every tenth of the work, and at least once a minute; none for a few seconds."""

    def __init__(self, total: int, what: str) -> None:
        self.total, self.what = total, what
        self.done = self.tenths = 0
        self.at = ""
        self.began = self.last = time.monotonic()

    def wrote(self, path: Path) -> None:
        self.done += 1
        now, part = time.monotonic(), min(self.done / self.total, 1.0)
        since = now - self.last
        another_tenth = self.done * 10 // self.total > self.tenths
        if since >= MAX_LINE_INTERVAL_S or (since >= MIN_LINE_INTERVAL_S and another_tenth):
            left = (now - self.began) * (1 - part) / part
            print(f"{self.what}: {part:.0%}, {duration(left)} left{self.at}", file=sys.stderr, flush=True)
            self.last, self.tenths = now, self.done * 10 // self.total

    def reached(self, t_ns: int, clock: str) -> None:
        self.at = f", at {clocks.text_from_ns(t_ns, clock)}"


def duration(seconds: float) -> str:
    """Format a duration: `40 s`, `12 min`, `5.2 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[at]}"),
    )
    return RichProgress(*columns, console=Console(file=bar_stream()), transient=True)
