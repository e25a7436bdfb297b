"""While a run plays: a bar that follows the recording's time, and Ctrl-C that pauses instead of killing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from transect.base import clocks, files
from transect.cli.shared.terminal import bar_stream

if TYPE_CHECKING:
    from transect.cli.shared.output import Progress
    from transect.engine.player import Player
    from transect.engine.replay import Replay


@contextmanager
def pausing(player: Player) -> Generator[None]:
    """Let Ctrl-C pause the player after its wave; a second one interrupts at once."""
    if threading.current_thread() is not threading.main_thread():  # others cannot handle signals
        yield
        return

    def pause(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        player.pause()
        os.write(2, b"\nstopping after this wave; Ctrl-C again stops at once\n")  # echo is not reentrant

    before = signal.signal(signal.SIGINT, pause)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def bar(progress: Progress, replay: Replay) -> Generator[None]:
    """Show how much of the recording was played, on a terminal."""
    if not progress.shown or replay.span is None:
        yield
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TextColumn

    first, last = replay.span
    columns = (*Bar.get_default_columns(), TextColumn("{task.fields[at]}"))
    with Bar(*columns, console=Console(file=bar_stream()), transient=True) as shown:
        task = shown.add_task("playing", total=last - first, at="")
        with files.observed(_Watch(shown, task, first)):
            yield


class _Watch:
    """Moves a bar to the time that was reached."""

    def __init__(self, shown: Any, task: Any, first_ns: int) -> None:
        self.shown, self.task, self.first_ns = shown, task, first_ns

    def wrote(self, path: Path) -> None:
        """Files do not count: the time does."""

    def reached(self, t_ns: int, clock: str) -> None:
        at = clocks.text_from_ns(t_ns, clock)
        self.shown.update(self.task, completed=t_ns - self.first_ns, at=at)
