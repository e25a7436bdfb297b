"""While a run plays: a progress bar, Ctrl-C that pauses, and the prompt of `transect run --step`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from transect.base import clocks, files
from transect.cli.shared.terminal import bar_stream
from transect.errors import TransectError, UsageError, did_you_mean

from .report import where_it_is

if TYPE_CHECKING:
    from transect.cli.shared.output import Progress
    from transect.engine.player import Player
    from transect.engine.replay import Replay

HELP = """\
Enter    one wave: all samples of one time
s [N]    N waves; fewer if there is a break on the way
p        play to the end, a break, or Ctrl-C
t TIME   play until a time: +12s, 12:04:31.2
b PORT   break when a port emits; once more takes that back; without PORT, list the breaks
v PORT   the newest value of a port; without PORT, list the ports
w        where are we: time, waves, samples of each stream, calls of each node
q        stop, and keep what there is
h        this help"""
WORDS = {
    "step": "s",
    "play": "p",
    "time": "t",
    "break": "b",
    "value": "v",
    "where": "w",
    "quit": "q",
    "help": "h",
}
LONGEST, SHORTEST = 2000, 72
"""Characters of a value that `v`, and a step, print."""


class Terminal:
    """Reads what a person types and does it to a replay.

    Attributes
    ----------
    interrupted : bool
        Whether it was left by Ctrl-C at the prompt.
    """

    def __init__(self, replay: Replay) -> None:
        self.replay, self.interrupted = replay, False
        self._breaks: dict[str, bool] = {}
        self._do: dict[str, Callable[[str], None]] = {
            "s": self._step, "p": self._play, "t": self._play_until, "b": self._break, "v": self._value,
            "w": self._where, "h": self._help,
        }  # fmt: skip

    def talk(self) -> None:
        """Read and do, until `q`, the end of the input, or Ctrl-C."""
        click.echo(f"{where_it_is(self.replay)}; Enter steps, p plays, h helps")
        while (line := self._read()) is not None:
            word, _, rest = line.strip().partition(" ")
            word = WORDS.get(word.lower(), word.lower()) or "s"
            if word == "q":
                return
            if word not in self._do:
                click.echo(f"there is no {word!r}; h lists what there is")
                continue
            self._do[word](rest.strip())

    def _read(self) -> str | None:
        """Return a line, None when there are no more."""
        try:
            return input("> " if sys.stdin.isatty() else "")
        except (EOFError, KeyboardInterrupt) as left:
            self.interrupted = isinstance(left, KeyboardInterrupt)
            click.echo("", nl=sys.stdin.isatty())
            return None

    def _step(self, number: str) -> None:
        if number and not (number.isascii() and number.isdigit() and int(number)):
            click.echo(f"s {number}: how many waves? s 10 plays ten")
            return
        self._advance(lambda: self.replay.step(int(number or 1)))

    def _play(self, _: str) -> None:
        self._advance(self.replay.play)

    def _play_until(self, time: str) -> None:
        replay = self.replay
        first = replay.recording.spans().get(replay.playback.clock, (0, 0))[0]
        try:
            at_ns = clocks.resolve(time, first, replay.playback.clock)
        except TransectError as error:
            click.echo(str(error))
            return
        if at_ns <= replay.flow.now_ns:
            click.echo(
                f"{clocks.text_from_ns(at_ns, replay.playback.clock)} has passed: {where_it_is(replay)}"
            )
            return
        replay.player.break_at(at_ns)
        self._advance(replay.play)

    def _advance(self, advance: Callable[[], str]) -> None:
        """Let the replay go on, then say where it stopped, why, and what was emitted meanwhile."""
        flow = self.replay.flow
        counts, failed = list(flow.channels.counts), len(flow.errors)
        with pausing(self.replay.player):
            why = advance()
        click.echo(f"{where_it_is(self.replay)}: {why}")
        for name, channel in flow.channels.index.items():
            if number := flow.channels.counts[channel] - counts[channel]:
                value = _short(flow.channels.values[channel], SHORTEST)
                click.echo(f"  {name}{f' ({number} times)' if number > 1 else ''}: {value}")
        for error in flow.errors[failed:]:
            click.echo(f"error: {error}")

    def _break(self, name: str) -> None:
        if not name:
            click.echo("breaks: " + (", ".join(n for n, on in self._breaks.items() if on) or "none"))
            return
        if (channel := self._channel(name)) is None:
            return
        if channel not in self._breaks:
            self.replay.player.break_when(channel, lambda value: self._breaks[channel])
        self._breaks[channel] = not self._breaks.get(channel, False)
        click.echo(f"{'break' if self._breaks[channel] else 'no break'} when {channel} emits")

    def _value(self, name: str) -> None:
        if not name:
            click.echo("ports: " + ", ".join(self._ports()))
            return
        if (channel := self._channel(name)) is None:
            return
        channels = self.replay.flow.channels
        index = channels.index[channel]
        if not channels.counts[index]:
            click.echo(f"{channel} has not emitted yet")
            return
        when = clocks.text_from_ns(channels.times[index], self.replay.playback.clock)
        click.echo(f"{when} {channel}: {_short(channels.values[index], LONGEST)}")

    def _ports(self) -> dict[str, str]:
        """Return the channel of every port: inputs and outputs of the compound, and outputs of nodes."""
        flow = self.replay.flow
        return {**{name: name for name in flow.channels.index}, **flow.graph.outputs}

    def _channel(self, name: str) -> str | None:
        ports = self._ports()
        if name not in ports:
            click.echo(f"there is no port {name!r}; {did_you_mean(name, ports)}")
        return ports.get(name)

    def _where(self, _: str) -> None:
        replay = self.replay
        statistics = replay.statistics
        times = [line.times[line.times <= replay.flow.now_ns] for line in replay.playback.lines]
        waves = len(np.unique(np.concatenate(times))) if times else 0
        click.echo(f"{where_it_is(replay)}, {waves} waves")
        for name, counts in statistics.streams.items():
            click.echo(f"  {name}: {counts['played']} of {counts['samples']} samples")
        for name, node in statistics.nodes.items():
            skipped = f", {sum(node.skipped.values())} skipped" if node.skipped else ""
            click.echo(f"  {name}: {node.calls} calls{skipped}")

    def _help(self, _: str) -> None:
        click.echo(HELP)


def refuse_options_with_player(option: str, jobs: int, as_json: bool) -> None:
    """Refuse what does not go together with a person who plays: at a prompt, or from a page."""
    if as_json:
        raise UsageError(f"{option} talks to a person, --json to a program", hint="leave one of them out")
    if jobs > 1:
        raise UsageError(f"{option} plays one wave after the other", hint="leave --jobs out")


def _short(value: Any, longest: int) -> str:
    text = repr(value) if longest == LONGEST else " ".join(repr(value).split())
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


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
    if not progress.shown or replay.playback.span is None:
        yield
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TextColumn

    first, last = replay.playback.span
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
