"""Run the cases of a benchmark: one recording after the other, and of each what is not yet there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.integrity import peers
from benchmarks.integrity.bases import SIMULATED, Base, choose_bases, hour_bases, real_bases
from benchmarks.integrity.cases import Case, choose_faults
from benchmarks.integrity.planning import list_unnamed, plan, severities_of
from benchmarks.integrity.results import Result, read_result, result_of, write_result
from transect.base.processes import process_pool
from transect.integrity import check
from transect.integrity.table import VerdictTable
from transect.recording import Recording
from transect.simulation.faults import inject


@dataclass(frozen=True)
class Plan:
    """What a benchmark is asked for.

    Attributes
    ----------
    folder : Path
        Of the results.
    seeds : tuple of int
    bases, faults : tuple of str
        Patterns of names; () for all.
    severities : tuple of float
        Of faults that have none of their own; () for the usual ones.
    data : Path or None
        Folder of real recordings.
    blocks : int
        How many parts of five minutes of each clear hour are judged, of twelve.
    peers : bool
        Whether other tools judge the worst case of each fault, too.
    """

    folder: Path
    seeds: tuple[int, ...] = (0,)
    bases: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    severities: tuple[float, ...] = ()
    data: Path | None = None
    blocks: int = 0
    peers: bool = True

    def list_bases(self) -> tuple[Base, ...]:
        """Return the recordings that are judged."""
        known = (*SIMULATED, *real_bases(self.data), *hour_bases(self.blocks))
        return choose_bases(known, self.bases)

    def list_groups(self) -> list[tuple[str, int]]:
        """Return bases and seeds; a real recording is judged with the first seed alone."""
        return [
            (base.name, seed)
            for base in self.list_bases()
            for seed in (self.seeds[:1] if base.real else self.seeds)
        ]


Report = Callable[[str, bool], None]
"""Takes what was done, and whether it was there already."""


def run(asked: Plan, jobs: int = 1, report: Report = lambda what, known: None) -> list[Result]:
    """Return the results of all cases; those that were run before are read.

    Parameters
    ----------
    jobs : int
        Processes; each case is judged by one thread.
    report : callable
        Called for each case with one job, or for each recording and all its cases with several.
    """
    asked.folder.mkdir(parents=True, exist_ok=True)
    groups = asked.list_groups()
    choose_faults(asked.faults)
    if jobs == 1:
        return [result for group in groups for result in run_group(asked, group, report)]
    results: list[Result] = []
    with process_pool(jobs) as pool:
        tasks = {pool.submit(run_group, asked, group): group for group in groups}
        for task in as_completed(tasks):
            results += task.result()
            report(f"{tasks[task][0]} {tasks[task][1]}", False)
    return results


def run_group(asked: Plan, group: tuple[str, int], report: Report = lambda what, known: None) -> list[Result]:
    """Return the results of all cases of one recording."""
    name, seed = group
    base = next(base for base in asked.list_bases() if base.name == name)
    lazy = _Lazy(base, seed)
    clear = read_result(asked.folder / Case(name, seed).file)
    report(f"{name} {seed} clear", clear is not None)
    if clear is None:
        clear = _run_clear(
            lazy.recording, Case(name, seed), choose_faults(asked.faults), asked.peers and base.peers
        )
        write_result(clear, asked.folder)
    results = [clear]
    for case in _list_cases(asked, base, lazy, clear):
        known = read_result(asked.folder / case.file)
        report(f"{name} {seed} {case.fault} {case.severity:g}", known is not None)
        if known is None:
            worst = case.severity == max(severities_of(case.fault, asked.severities))
            known = _run_fault(lazy.recording, case, asked.peers and worst and base.peers)
            write_result(known, asked.folder)
        results.append(known)
    return results


def _list_cases(asked: Plan, base: Base, lazy: _Lazy, clear: Result) -> Iterable[Case]:
    if not base.faults:
        return ()
    faults = choose_faults(asked.faults)
    return plan(base, lazy.recording, clear, faults, asked.severities)


class _Lazy:
    """A recording that is made when it is needed, once."""

    def __init__(self, base: Base, seed: int) -> None:
        self._base, self._seed = base, seed
        self._made: Recording | None = None

    @property
    def recording(self) -> Recording:
        if self._made is None:
            self._made = self._base.make(self._seed)
        return self._made


def _judge(recording: Recording) -> tuple[VerdictTable, float]:
    """Return the verdicts on a recording, and the seconds of CPU time that they took."""
    for stream in recording:  # what is simulated when it is asked for is no work of the checks
        stream.table.num_rows  # noqa: B018
    began = time.process_time()
    verdicts = check(recording)
    return verdicts, time.process_time() - began


def _run_clear(recording: Recording, case: Case, faults: Sequence[str], ask_peers: bool) -> Result:
    verdicts, cpu = _judge(recording)
    result = result_of(case, recording, verdicts, None, recording, cpu)
    said = peers.ask(recording, recording, result.seconds) if ask_peers else {}
    return replace(result, peers=said, unnamed=list_unnamed(recording, result, faults))


def _run_fault(recording: Recording, case: Case, ask_peers: bool) -> Result:
    faulty, labels = inject(recording, case.fault, case.severity, case.seed, streams=[case.stream])
    verdicts, cpu = _judge(faulty)
    result = result_of(case, faulty, verdicts, labels, recording, cpu)
    said = peers.ask(faulty, recording, result.seconds) if ask_peers else {}
    return replace(result, peers=said)
