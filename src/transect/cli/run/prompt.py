"""The progress bar of a run, pausing by Ctrl-C, and the prompt of `transect run --step`."""

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
    from transect.cli.shared.output import ProgressDisplay
    from transect.engine.player import Player
    from transect.engine.replay import Replay

HELP = """\
Enter    play one step: all samples of one time
s [N]    play N steps, or until a breakpoint
p        play to the end, a breakpoint, or Ctrl-C
t TIME   play until a time: +12s, 12:04:31.2
b PORT   toggle a breakpoint on the output of a port; without PORT, list them
v PORT   print the newest value of a port; without PORT, list the ports
w        print the time, steps, samples of each stream and calls of each node
q        stop, and keep the outputs
h        print this help"""
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
MAX_VALUE_CHARACTERS, MAX_STEP_VALUE_CHARACTERS = 2000, 72
"""Characters of a value that `v` and a step print."""


class Terminal:
    """An interactive prompt that controls a replay."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.interrupted = False  # whether it ended by Ctrl-C at the prompt
        self._breakpoints: dict[str, bool] = {}
        self._actions: dict[str, Callable[[str], None]] = {
            "s": self._step, "p": self._play, "t": self._play_until, "b": self._break, "v": self._value,
            "w": self._where, "h": self._help,
        }  # fmt: skip

    def talk(self) -> None:
        """Read and execute commands until `q`, the end of the input, or Ctrl-C."""
        click.echo(f"{where_it_is(self.replay)}; press Enter to step, p to play, h for help")
        while (line := self._read()) is not None:
            word, _, rest = line.strip().partition(" ")
            word = WORDS.get(word.lower(), word.lower()) or "s"
            if word == "q":
                return
            if word not in self._actions:
                click.echo(f"there is no command {word!r}; h lists all")
                continue
            self._actions[word](rest.strip())

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
            click.echo(f"s {number}: not a number of steps, such as s 10")
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
        """Continue the replay, then print where and why it stopped, and the new outputs."""
        flow = self.replay.flow
        counts, failed = list(flow.channels.counts), len(flow.errors)
        with pausing(self.replay.player):
            why = advance()
        click.echo(f"{where_it_is(self.replay)}: {why}")
        for name, channel in flow.channels.index.items():
            if number := flow.channels.counts[channel] - counts[channel]:
                value = _short(flow.channels.values[channel], MAX_STEP_VALUE_CHARACTERS)
                click.echo(f"  {name}{f' ({number} times)' if number > 1 else ''}: {value}")
        for error in flow.errors[failed:]:
            click.echo(f"error: {error}")

    def _break(self, name: str) -> None:
        if not name:
            click.echo(
                "breakpoints: " + (", ".join(n for n, on in self._breakpoints.items() if on) or "none")
            )
            return
        if (channel := self._channel(name)) is None:
            return
        if channel not in self._breakpoints:
            self.replay.player.break_when(channel, lambda value: self._breakpoints[channel])
        self._breakpoints[channel] = not self._breakpoints.get(channel, False)
        click.echo(f"{'breakpoint' if self._breakpoints[channel] else 'no breakpoint'} on {channel}")

    def _value(self, name: str) -> None:
        if not name:
            click.echo("ports: " + ", ".join(self._ports()))
            return
        if (channel := self._channel(name)) is None:
            return
        channels = self.replay.flow.channels
        index = channels.index[channel]
        if not channels.counts[index]:
            click.echo(f"{channel} has no output yet")
            return
        when = clocks.text_from_ns(channels.times[index], self.replay.playback.clock)
        click.echo(f"{when} {channel}: {_short(channels.values[index], MAX_VALUE_CHARACTERS)}")

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
        click.echo(f"{where_it_is(replay)}, {waves} steps")
        for name, counts in statistics.streams.items():
            click.echo(f"  {name}: {counts['played']} of {counts['samples']} samples")
        for name, node in statistics.nodes.items():
            skipped = f", {sum(node.skipped.values())} skipped" if node.skipped else ""
            click.echo(f"  {name}: {node.calls} calls{skipped}")

    def _help(self, _: str) -> None:
        click.echo(HELP)


def refuse_options_with_player(option: str, jobs: int, as_json: bool) -> None:
    """Raise for options that conflict with interactive playback."""
    if as_json:
        raise UsageError(f"{option} is interactive, --json is not", hint="use one of them")
    if jobs > 1:
        raise UsageError(f"{option} plays step by step, on one thread", hint="leave --jobs out")


def _short(value: Any, longest: int) -> str:
    text = repr(value) if longest == MAX_VALUE_CHARACTERS else " ".join(repr(value).split())
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


@contextmanager
def pausing(player: Player) -> Generator[None]:
    """Pause the player after the current step on Ctrl-C; a second one interrupts immediately."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread handles signals
        yield
        return

    def pause(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        player.pause()
        os.write(
            2, b"\nstopping after this step; press Ctrl-C again to stop immediately\n"
        )  # echo is not reentrant

    before = signal.signal(signal.SIGINT, pause)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def bar(progress: ProgressDisplay, replay: Replay) -> Generator[None]:
    """Show a progress bar of the playback on a terminal."""
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
        with files.observed(_PlaybackBar(shown, task, first)):
            yield


class _PlaybackBar:
    """Updates a progress bar with the playback time."""

    def __init__(self, shown: Any, task: Any, first_ns: int) -> None:
        self.shown, self.task, self.first_ns = shown, task, first_ns

    def wrote(self, path: Path) -> None:
        """Written files do not change the bar."""

    def reached(self, t_ns: int, clock: str) -> None:
        at = clocks.text_from_ns(t_ns, clock)
        self.shown.update(self.task, completed=t_ns - self.first_ns, at=at)
