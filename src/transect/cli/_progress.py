"""A bar with recording time and ETA on a terminal; nothing at all when piped or asked for JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from transect.base import clocks, files

T = TypeVar("T")


class Progress:
    """Progress on stderr.

    Parameters
    ----------
    quiet : bool
        Show nothing, whatever stderr is.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.shown = sys.stderr.isatty() and not quiet

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
        if not self.shown or not total:
            yield
            return
        with _bar() as bar, files.observed(_Watch(bar, bar.add_task(what, total=total, at=""))):
            yield


class _Watch:
    """Moves a bar with every file that is written."""

    def __init__(self, bar: Any, task: Any) -> None:
        self.bar, self.task = bar, task

    def wrote(self, path: Path) -> None:
        self.bar.advance(self.task)

    def reached(self, t_ns: int, clock: str) -> None:
        self.bar.update(self.task, at=clocks.text_from_ns(t_ns, clock))


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
    return RichProgress(*columns, console=Console(stderr=True), transient=True)
