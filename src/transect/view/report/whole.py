"""A whole report: which recordings and runs are meant, each gathered once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.errors import TransectError
from transect.evaluation.inputs import split_run
from transect.evaluation.result import distinct_names
from transect.products import Product
from transect.recording import Recording
from transect.recording.citation import Citation

from .facts import RecordingFacts, Report, RunFacts
from .gathering import Wanted, gather_recording
from .places import gather_map
from .runs import gather_run, recorded_by

Opener = Callable[[Sequence[str], str, Mapping[str, Any]], Recording]
"""Opens a recording by its paths, its format ("" to recognise it) and the format's options."""


@dataclass(frozen=True)
class Subject:
    """A recording that is meant, by itself or by a run: its paths, format and options."""

    paths: tuple[str, ...]
    format: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def identity(self) -> tuple[Path, ...]:
        """What tells it from others."""
        return tuple(Path(path).resolve() for path in self.paths)


def gather(
    paths: Sequence[str], open_recording: Opener, wanted: Wanted | None = None, *, title: str = "",
    command: str = "", over: str | None = None, products: Sequence[Product] = (), store: str = "",
    citation: Citation | None = None, truth: str = "",
) -> tuple[Report, list[Recording]]:  # fmt: skip
    """Gather a report on recordings and on the folders of runs, whose recordings are opened too.

    Parameters
    ----------
    paths : sequence of str
        Of recordings, and of folders of runs.
    command : str
        That makes the page.
    over : str, optional
        What lies below the map.
    products, store
        What is kept, and where.
    citation : Citation, optional
        How the data are to be cited.
    truth : str
        What runs are judged by instead of the truth of their recordings.

    Returns
    -------
    report : Report
    recordings : list of Recording
        That were opened.
    """
    wanted = wanted or Wanted()
    folders = [Path(path) for path in paths if split_run(path) is not None]
    opened: dict[tuple[Path, ...], tuple[Recording, RecordingFacts]] = {}

    def take(subject: Subject) -> int:
        if subject.identity not in opened:
            recording = open_recording(subject.paths, subject.format, dict(subject.options))
            facts = gather_recording(recording, " ".join(subject.paths), len(opened), wanted)
            opened[subject.identity] = recording, facts
        return list(opened).index(subject.identity)

    for path in paths:
        if split_run(path) is None:
            take(Subject((path,)))
    played = [_take_played(folder, take) for folder in folders]
    both = list(opened.values())
    runs = _gather_runs(folders, played, [facts for _, facts in both], truth)
    drawn, no_map = gather_map(both, runs, over)
    title = title or _title([facts.name for _, facts in both], [run.label for run in runs])
    recordings = tuple(facts for _, facts in both)
    report = Report(title, command, recordings, tuple(runs), drawn, no_map, tuple(products), store, citation)
    return report, [recording for recording, _ in both]


def _take_played(folder: Path, take: Callable[[Subject], int]) -> tuple[int | None, str]:
    """Return the number of the recording that a run played, or why there is none."""
    recorded = recorded_by(folder)
    paths = tuple(recorded["paths"])
    if not paths:
        return None, "the run does not say which recording it played"
    try:
        return take(
            Subject(paths, recorded.get("format", ""), tuple(recorded.get("options", {}).items()))
        ), ""
    except TransectError as error:
        return None, f"{' '.join(paths)} could not be opened: {error.what}"


def _gather_runs(
    folders: Sequence[Path], played: Sequence[tuple[int | None, str]],
    recordings: Sequence[RecordingFacts], truth: str,
) -> list[RunFacts]:  # fmt: skip
    names = distinct_names([folder.resolve().name for folder in folders], [str(folder) for folder in folders])
    several = len(folders) > 1
    return [
        gather_run(folder, name, recordings, number, gone, several, truth)
        for folder, name, (number, gone) in zip(folders, names, played, strict=True)
    ]


def _title(recordings: Sequence[str], runs: Sequence[str]) -> str:
    """Return the names of a few recordings, and of the runs on them."""
    return ": ".join(", ".join(names[:3]) for names in (recordings, runs) if names)
