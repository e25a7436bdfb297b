"""Commands that are killed (SIGKILL) at some moment: their output is whole, or not there.

A command kills itself at one of the moments at which it opens a file for writing, renames, removes or makes a
folder (those that Python sees), or is killed from outside after a while (those that libraries see alone). It
runs in a process that is forked from one which has imported its modules.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate")
MODULES = (
    "transect.cli",
    "transect.cli.export",
    "transect.cli.info",
    "transect.cli.run",
    "transect.cli.simulate",
)
LIBRARIES = ("transect.engine", "transect.evaluation.runs", "pyarrow.parquet", "scipy.spatial", "numba")
"""What the process has imported from which commands are forked: to import it takes longer than they do."""
LEFTOVER_PATTERNS = ("made/.*", "cache/**/.*")
"""Files and folders that are not whole yet."""
LONG_S = 2 * 86_400
"""An age above that from which leftovers are removed."""
PATIENCE_S = 60.0
"""Longest time that a process goes on after the command that started it was killed."""


@dataclass(frozen=True)
class Command:
    """A command that writes: its arguments, with `{out}` for what it writes and `{day}` for what it reads."""

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], object] = lambda folder: None


def _write_day(world: str, seconds: float, streams: tuple[str, ...]) -> Callable[[Path], object]:
    """Return what writes a small recording."""

    def write(folder: Path) -> None:
        from transect.simulation.day import WorldOptions, simulate, write_day

        write_day(simulate(world, WorldOptions(seconds, 3, 0.05, streams)), folder / "day")

    return write


def _write_sample(folder: Path) -> None:
    """Images, tables and calibration."""
    from tests.formats.corpus import sample

    sample("euroc").write(folder / "day")


def _large_log(folder: Path) -> None:
    """A log in the format of CARMEN that is large enough to be kept in the cache."""
    readings = " ".join(["5.0"] * 180)
    lines = [f"FLASER 180 {readings} 0 0 0 0 0 0 {976052857 + i}.5 host {i}.5\n" for i in range(200)]
    (folder / "day.clf").write_text("".join(lines))


COMMANDS = {
    "export": Command(
        "export",
        ("export", "{day}", "--format", "csv", "-o", "{out}"),
        _write_sample,
    ),
    "run": Command(
        "run",
        ("run", "WheelDrift", "{day}", "-o", "{out}"),
        _write_day("etna", 2.0, ("Platform/MotorEncoders", "Gnss/Pose")),
    ),
    "simulate": Command(
        "simulate", ("simulate", "insight", "-o", "{out}", "--seconds", "2", "--streams", "Arm/*")
    ),
    "cache": Command("cache", ("info", "{day}.clf", "--json"), _large_log),
}


@dataclass
class Tally:
    """What was there after the kills of one command."""

    command: str
    counts: dict[str, int] = field(default_factory=dict[str, int])
    leftovers: int = 0
    removed: int = 0
    finds: list[str] = field(default_factory=list[str])

    def row(self) -> tuple[str, ...]:
        """Return the line of the table."""
        shown = (self.counts.get(outcome, 0) for outcome in ("nothing", "whole", "half", "worse"))
        return (self.command, *map(str, (sum(self.counts.values()), *shown, self.leftovers, self.removed)))


HEADINGS = ("command", "kills", "no output", "whole", "partial", "broken after", "leftovers", "removed")


class Bench:
    """One command in a folder of its own: what it writes undisturbed, and in how many steps."""

    def __init__(self, command: Command, folder: Path) -> None:
        self.command, self.folder = command, folder
        folder.mkdir(parents=True, exist_ok=True)
        command.prepare(folder)
        self.expected = self._whole()

    @cached_property
    def changing(self) -> set[str]:
        """Files that are others each time: they hold the time of day, or how long something took."""
        return {name for name, digest in self._whole().items() if digest != self.expected.get(name)}

    def _whole(self) -> dict[str, str]:
        began = time.monotonic()
        child = self.start(0)
        child.join()
        said = (self.folder / "said").read_text(errors="replace")
        assert child.exitcode == 0, said
        self.seconds = time.monotonic() - began
        self.events = int(said.rsplit("events ", 1)[1].split()[0])
        return self.written()

    @property
    def target(self) -> Path:
        """What the command writes: its output, or the cache."""
        return self.folder / ("cache" if self.command.name == "cache" else "made/out")

    def start(self, kill_at: int) -> ForkServerProcess:
        """Start the command in an empty place; it kills itself at that step, if there is one."""
        for name in ("made", "cache"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / "made").mkdir()
        return self._begin(kill_at)

    def _begin(self, kill_at: int = 0, words: tuple[str, ...] = ()) -> ForkServerProcess:
        fill = {"out": str(self.folder / "made" / "out"), "day": str(self.folder / "day")}
        arguments = [each.format(**fill) for each in words or self.command.arguments]
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([*MODULES, *LIBRARIES])
        child = context.Process(target=run_transect, args=(arguments, self.folder, kill_at))
        child.start()
        return child

    def written(self) -> dict[str, str]:
        """Digests of the files of the output; of the cache, of its tables: the rest are times and paths."""
        if not self.target.exists():
            return {}
        return {
            str(path.relative_to(self.target)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.target.rglob("*"))
            if path.is_file() and (self.command.name != "cache" or path.suffix == ".arrow")
        }

    def same(self, found: dict[str, str]) -> bool:
        """Return whether that is the whole output."""
        if found.keys() != self.expected.keys():
            return False
        other = {name for name, digest in found.items() if digest != self.expected[name]}
        return not other or other <= self.changing

    def kill(self, tally: Tally, at: int = 0, after: float = 0.0) -> None:
        """Kill the command at a step, or after some seconds; judge what is there, and that it runs again."""
        began = time.monotonic()
        child = self.start(at)
        child.join(after or None)
        child.kill()
        child.join()
        if child.exitcode != -signal.SIGKILL:  # it was over before
            self.seconds = min(self.seconds, time.monotonic() - began)
            return
        alone = _wait_for_session(child.pid)
        how = f"{self.command.name} at step {at}" if at else f"{self.command.name} after {after:.3f} s"
        found = self.written()
        outcome = "nothing" if not found else "whole" if self.same(found) else "half"
        if self.command.name == "cache" and outcome == "half":
            outcome = "nothing"  # entries are judged by the next reading, below
        leftovers = self._list_leftovers()
        tally.leftovers += len(leftovers)
        if alone:
            tally.finds.append(
                f"{how}: a process that it had started goes on for more than {PATIENCE_S:.0f} s"
            )
        if outcome == "half":
            tally.finds.append(f"{how}: {sorted(found)} of {sorted(self.expected)}")
        elif (leftovers or found) and not self._goes_on(outcome, leftovers):
            outcome = "worse"
            tally.finds.append(f"{how}: the next command does not give the whole output")
        if left := self._list_leftovers():
            tally.finds.append(f"{how}: {left[0].name} is not removed")
        tally.removed += len(leftovers) - len(left)
        tally.counts[outcome] = tally.counts.get(outcome, 0) + 1

    def _list_leftovers(self) -> list[Path]:
        return sorted(path for pattern in LEFTOVER_PATTERNS for path in self.folder.glob(pattern))

    def _goes_on(self, outcome: str, leftovers: list[Path]) -> bool:
        """Return whether the same command succeeds days later; it removes leftovers, or `cache` does."""
        long_ago = time.time() - LONG_S
        for path in leftovers:
            os.utime(path, (long_ago, long_ago), follow_symlinks=False)
        if outcome == "whole" and self.command.name != "cache":
            shutil.rmtree(self.target) if self.target.is_dir() else self.target.unlink()
        again = self._begin()
        again.join()
        if self._list_leftovers():  # beside an entry of the cache that is whole, nothing is written again
            self._begin(words=("cache", "info")).join()
        return again.exitcode == 0 and self.same(self.written())


def run_transect(arguments: list[str], folder: Path, kill_at: int) -> None:
    """Be `transect`: count what it does to the file system, and end where that is wanted."""
    os.setsid()  # so that processes which it starts are found when it is gone
    os.environ["TRANSECT_CACHE_DIR"] = str(folder / "cache")
    said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    done = 0

    def count(event: str, given: tuple[Any, ...]) -> None:
        nonlocal done
        if event not in EVENTS or (event == "open" and not _writes(given[2])):
            return
        done += 1
        if done == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    from transect.cli import main

    sys.argv = ["transect", *arguments]
    sys.addaudithook(count)
    try:
        main()
    finally:
        print("events", done, file=sys.stderr, flush=True)


def _wait_for_session(pid: int | None) -> bool:
    """Wait for the processes that a killed command had started; return whether one is still there."""
    end = time.monotonic() + PATIENCE_S
    while there := pid in _sessions():
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    return there


def _sessions() -> set[int]:
    """Return the sessions of all processes; each is named by its first process."""
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            found.add(int(stat.read_text().rpartition(")")[2].split()[3]))
    return found


def _writes(flags: object) -> bool:
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


def run_command(name: str, seed: int, count: int, until: float, scratch: Path) -> Tally:
    """Kill a command `count` times, or as often as there is time for: at a step, or after a while."""
    bench, tally, rng = Bench(COMMANDS[name], scratch / name), Tally(name), random.Random(f"{name}/{seed}")
    while sum(tally.counts.values()) < count and (not tally.counts or time.monotonic() < until):
        if rng.random() < 0.5:
            bench.kill(tally, at=rng.randint(1, bench.events))
        else:
            bench.kill(tally, after=rng.uniform(0.1, 1.0) * bench.seconds)
    return tally
