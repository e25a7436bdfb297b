"""Processes that open mutations, and the campaign that shares them out over readers and samples.

A process opens many mutations. Another one takes its place where a mutation ends it, and after a few hundred:
memory that an early mutation left must not count for a late one. Processes are forked from one that has
imported all readers.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from .mutations import keep, open_mutations, seed_of

HANG_SECONDS = 5.0
"""Longest CPU time of one mutation."""
IDLE_SECONDS = 60.0
"""Longest real time in which no thread of a process could run; others may keep the machine busy meanwhile."""
START_SECONDS = 120.0
BATCH_SIZE = 250
"""Mutations of one process."""
HEADINGS = (
    "reader", "mutations", "used", "opened", "refused", "untyped", "crashes", "hangs", "most s", "peak MB",
    "per s",
)  # fmt: skip

Work = Callable[..., Iterator[dict[str, Any]]]


@dataclass
class Tally:
    """What came of the mutations of one sample, or of all samples of a reader.

    Attributes
    ----------
    counts : dict
        Mutations by what came out: `opened`, `refused`, `untyped`, `crash`, `hang`.
    slowest, spent : float
        CPU seconds of the slowest mutation, and of all.
    peak : int
        Most bytes that one took.
    finds : dict of str to str
        By what is wrong, the seed of the first mutation that shows it.
    used : int
        Mutations that were checked, reported, exported and shown.
    """

    counts: dict[str, int] = field(default_factory=dict[str, int])
    slowest: float = 0.0
    spent: float = 0.0
    peak: int = 0
    finds: dict[str, str] = field(default_factory=dict[str, str])
    used: int = 0

    @property
    def total(self) -> int:
        """All mutations."""
        return sum(self.counts.values())

    def add(
        self, seed: str, outcome: str, error: str = "", seconds: float = 0.0, peak: int = 0, used: int = 0
    ) -> None:
        """Count one mutation."""
        self.used += used
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        self.slowest, self.peak = max(self.slowest, seconds), max(self.peak, peak)
        self.spent += seconds
        if outcome not in ("opened", "refused"):
            self.finds.setdefault(f"{outcome} {error.partition(': ')[0]}".strip(), f"{seed} {error}".strip())

    def merge(self, other: Tally) -> None:
        """Count those of another tally too."""
        self.counts = dict(Counter(self.counts) + Counter(other.counts))
        self.slowest, self.peak = max(self.slowest, other.slowest), max(self.peak, other.peak)
        self.spent += other.spent
        self.used += other.used
        self.finds = {**other.finds, **self.finds}

    def row(self, name: str) -> tuple[str, ...]:
        """Return the line of the table."""
        shown = [self.counts.get(outcome, 0) for outcome in ("opened", "refused", "untyped", "crash", "hang")]
        rate = f"{self.total / self.spent:.0f}" if self.spent else "-"
        return (
            name,
            *map(str, (self.total, self.used, *shown)),
            f"{self.slowest:.1f}",
            str(self.peak >> 20),
            rate,
        )


class Campaign:
    """Mutations of samples, each as far as the others of its reader, all readers alike.

    Parameters
    ----------
    samples : sequence of str
        READER or READER-VARIANT.
    each : int
        Mutations of each reader, over all its samples.
    log : Path, optional
        Where each slice is noted as a line of JSON; what stands there is not done again.
    use_every : int
        One mutation in this many is checked, reported, exported and shown, too; 0 for none.
    """

    def __init__(
        self, samples: Sequence[str], seed: int, each: int, log: Path | None = None, use_every: int = 20
    ) -> None:
        variants = Counter(map(reader_of, samples))
        self.goals = {name: -(-each // variants[reader_of(name)]) for name in samples}
        self.tallies = {name: Tally() for name in samples}
        self.seed, self._log, self._lock = seed, log, threading.Lock()
        self._use_every = use_every
        self._begun = dict.fromkeys(samples, 0)
        for line in log.read_text().splitlines() if log is not None and log.exists() else ():
            self._restore(**json.loads(line))

    def _restore(self, sample: str, seed: int, **tally: Any) -> None:
        self.seed = seed
        if sample in self.tallies:
            self.tallies[sample].merge(Tally(**tally))
            self._begun[sample] = self.tallies[sample].total

    def run(self, workers: int, until: float, scratch: Path) -> None:
        """Open mutations in parallel processes, until all are done or the time (monotonic) is over."""

        def work(worker: int) -> None:
            while time.monotonic() < until and (slice_ := self._take()):
                sample, first, count = slice_
                work = partial(open_mutations, use_every=self._use_every)
                tally = open_slice(sample, self.seed, first, count, until, scratch / str(worker), work)
                self._note(sample, tally, ended=first + tally.total)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, range(workers)))

    def _take(self) -> tuple[str, int, int] | None:
        """Return the slice of the sample that is farthest behind: its name, first number and count."""
        with self._lock:
            open_ = [name for name, goal in self.goals.items() if self._begun[name] < goal]
            if not open_:
                return None
            sample = min(open_, key=lambda name: self._begun[name] / self.goals[name])
            first = self._begun[sample]
            count = min(BATCH_SIZE, self.goals[sample] - first)
            self._begun[sample] += count
            return sample, first, count

    def _note(self, sample: str, tally: Tally, ended: int) -> None:
        with self._lock:
            new = {what: seed for what, seed in tally.finds.items() if what not in self.tallies[sample].finds}
            for what, first in new.items():
                print(f"{sample}: {what}\n  {first}\n  kept as {keep(first.split()[0])}", flush=True)
            self.tallies[sample].merge(tally)
            if self._log is not None and tally.total:
                self._log.parent.mkdir(parents=True, exist_ok=True)
                with self._log.open("a") as file:
                    file.write(json.dumps({"sample": sample, "seed": self.seed, **asdict(tally)}) + "\n")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield a line of the table for each reader, and one for all."""
        every = Tally()
        for reader in dict.fromkeys(map(reader_of, self.tallies)):
            tally = Tally()
            for sample in self.tallies:
                if reader_of(sample) == reader:
                    tally.merge(self.tallies[sample])
            every.merge(tally)
            yield tally.row(reader)
        yield every.row("all")

    @property
    def finds(self) -> int:
        """How many different things are wrong."""
        return sum(len(tally.finds) for tally in self.tallies.values())


def reader_of(sample: str) -> str:
    """Return the reader of a sample."""
    return sample.partition("-")[0]


# One process


def open_slice(
    sample: str, seed: int, first: int, count: int, until: float, scratch: Path, work: Work
) -> Tally:
    """Open mutations of a sample, in another process whenever one of them ended its own."""
    tally = Tally()
    while tally.total < count and time.monotonic() < until:
        arguments = (sample, seed, first + tally.total, count - tally.total, scratch)
        for told in answers(work, arguments, until):
            tally.add(seed_of(sample, seed, first + tally.total), **told)
    return tally


def answers(work: Work, arguments: tuple[Any, ...], until: float) -> Iterator[dict[str, Any]]:
    """Yield what a process says of each mutation; the last may be a hang, or what ended the process."""
    context = multiprocessing.get_context("forkserver")
    scratch: Path = arguments[-1]
    scratch.mkdir(parents=True, exist_ok=True)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, work, arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        ready, patience = False, START_SECONDS
        while time.monotonic() < until:
            if not _waits_for(ours, process, patience):
                using = " while it was used" if patience > HANG_SECONDS else ""
                yield {"outcome": "hang", "error": f"hang{using}", "seconds": patience}
                return
            told = ours.recv()
            if told is None:
                return
            patience = told.get("patience", HANG_SECONDS)
            if ready and "patience" not in told:
                yield told
            ready = True
    except EOFError:
        process.join()
        said = (scratch / "stderr").read_text(errors="replace").strip().splitlines()
        yield {"outcome": "crash", "error": f"exit {process.exitcode} {said[0] if said else ''}"}
    finally:
        process.kill()
        process.join()


def _answer(connection: Connection, work: Work, arguments: tuple[Any, ...]) -> None:
    """Be the process: do the work, and say what came of it."""
    scratch: Path = arguments[-1]
    os.environ["TRANSECT_CACHE_DIR"] = str(scratch / "cache")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # libraries say much of broken images
        os.dup2(nowhere, stream)
    with (scratch / "stderr").open("w") as file:
        faulthandler.enable(file)
        for told in work(*arguments):
            connection.send(told)
    connection.send(None)


def _waits_for(connection: Connection, process: ForkServerProcess, seconds: float) -> bool:
    """Return whether a process answers within some seconds of its CPU time, and does not wait forever."""
    began, idle = _cpu_seconds(process.pid), 0.0
    step = min(seconds, 1.0)
    while not connection.poll(step):
        idle += step * _is_idle(process.pid)
        if _cpu_seconds(process.pid) - began > seconds or idle > IDLE_SECONDS:
            return False
    return True


def _is_idle(pid: int | None) -> bool:
    """Return whether no thread of a process runs, could run, or waits for the disk."""
    states: set[str] = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            states.add(thread.read_text().rpartition(")")[2].split()[0])
    return not states & {"R", "D"}


def _cpu_seconds(pid: int | None) -> float:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def import_readers(samples: Iterable[str]) -> None:
    """Let all later processes begin with the modules that readers and samples need."""
    from transect import formats

    readers = [f"transect.formats.{name}.reading" for name in sorted(set(map(reader_of, samples)))]
    known = [name for name in readers if name.split(".")[2] in formats.names()]
    libraries = (
        "pytest",
        "numpy",
        "pyarrow.parquet",
        "pyarrow.compute",
        "cv2",
        "scipy.spatial",
        "hypothesis",
    )
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        [*libraries, "tests.formats.corpus", "tests.formats.recordings", *known]
    )
