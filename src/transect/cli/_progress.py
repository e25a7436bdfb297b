"""A bar with recording time and ETA on a terminal; for long work a line now and then when piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from transect.base import clocks, files

from ._terminal import bar_stream

T = TypeVar("T")

SOONEST, LATEST = 2.0, 60.0
"""Seconds between two lines: at least, and at most; between them one for every tenth of the work."""


class Progress:
    """Progress on stderr.

    Parameters
    ----------
    quiet : bool
        Show nothing, whatever stderr is.
    lines : bool
        Where stderr is no terminal, write a line now and then instead of the bar.
    """

    def __init__(self, quiet: bool = False, lines: bool = False) -> None:
        terminal = sys.stderr.isatty()
        self.shown = terminal and not quiet
        self.lines = lines and not terminal and not quiet

    def over(self, items: Sequence[T], what: str, name: Callable[[T], str] = str) -> Iterator[T]:
        """Iterate over items behind a bar that names the one in work."""
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
        """Show how many of `total` files were written inside the block, and the recording's time."""
        if self.lines and total:
            with files.observed(_Lines(total, what)):
                yield
            return
        if not self.shown or not total:
            yield
            return
        with _bar() as bar, files.observed(_Watch(bar, bar.add_task(what, total=total, at=""), total)):
            yield


class _Watch:
    """Moves a bar with every file that is written."""

    def __init__(self, bar: Any, task: Any, total: int) -> None:
        self.bar, self.task, self.total = bar, task, total
        self.done = 0

    def wrote(self, path: Path) -> None:
        self.done += 1  # a format may write more files than there are streams and payloads
        self.bar.update(self.task, completed=self.done, total=max(self.total, self.done))

    def reached(self, t_ns: int, clock: str) -> None:
        self.bar.update(self.task, at=clocks.text_from_ns(t_ns, clock))


class _Lines:
    """Writes a line for every tenth of the work, and at least once a minute; work of seconds has none."""

    def __init__(self, total: int, what: str) -> None:
        self.total, self.what = total, what
        self.done = self.tenths = 0
        self.at = ""
        self.began = self.last = time.monotonic()

    def wrote(self, path: Path) -> None:
        self.done += 1
        now, part = time.monotonic(), min(self.done / self.total, 1.0)
        since = now - self.last
        if since >= LATEST or (since >= SOONEST and self.done * 10 // self.total > self.tenths):
            left = (now - self.began) * (1 - part) / part
            print(f"{self.what}: {part:.0%}, {duration(left)} left{self.at}", file=sys.stderr, flush=True)
            self.last, self.tenths = now, self.done * 10 // self.total

    def reached(self, t_ns: int, clock: str) -> None:
        self.at = f", at {clocks.text_from_ns(t_ns, clock)}"


def duration(seconds: float) -> str:
    """Return a time as people say it: `40 s`, `12 min`, `5.2 h`."""
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
