"""A bar with recording time and ETA on a terminal; nothing at all when piped or asked for JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

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

    def watching(self, total: int, what: str) -> _Watch:
        """Return a context whose value is called once for each file written, with the recording's time."""
        return _Watch(self.shown, total, what)


class _Watch:
    def __init__(self, shown: bool, total: int, what: str) -> None:
        self.bar: Any = _bar() if shown and total else None
        self.total, self.what = total, what

    def __enter__(self) -> Callable[[str], None]:
        if self.bar is None:
            return lambda at: None
        self.bar.__enter__()
        task = self.bar.add_task(self.what, total=self.total, at="")
        return lambda at: self.bar.update(task, advance=1, at=at)

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.__exit__(*error)


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
