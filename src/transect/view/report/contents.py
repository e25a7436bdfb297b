"""Contents of a report: its recordings and runs, each read once, and their common map."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from transect.base.clocks import NS
from transect.errors import TransectError
from transect.evaluation.inputs import list_outputs, map_of, open_ground, split_run
from transect.evaluation.positions.common_frame import lay_out
from transect.evaluation.positions.paths import RecordedPath, guides_of, path_of, path_of_trajectory
from transect.evaluation.positions.streams import position_streams
from transect.evaluation.result import distinct_names
from transect.products import Product
from transect.recording import Recording, Stream
from transect.recording.citation import Citation
from transect.types import GridMap, PointCloud

from ..axes import TimeAxis
from .extraction import ReportOptions, gather_recording, gather_run, recorded_by
from .facts import MapFacts, RecordingFacts, ReportFacts, RunFacts

Ground = tuple[GridMap | PointCloud | None, list[RecordedPath], list[str]]
OpenedRecording = tuple[Recording, RecordingFacts]


@dataclass(frozen=True)
class _Placed:
    """A track, its kind, and the axis of its times."""

    path: RecordedPath
    kind: str
    axis: TimeAxis | None


def gather_map(
    recordings: Sequence[OpenedRecording], runs: Sequence[RunFacts], over: str | None = None
) -> tuple[MapFacts | None, str]:
    """Return the tracks of recordings and runs, over a map if there is one; or why there are none.

    Parameters
    ----------
    over : str, optional
        Background map; by default that of a run, of the recording, or of the ground truth.
    """
    placed = list(_find_tracks(recordings, runs))
    if not placed:
        return None, "no stream has positions of the robot"
    grounds = [partial(open_ground, over)] if over else [*_find_grounds(recordings, runs), _no_ground]
    missing = ""
    for ground in grounds:
        try:
            return _lay_out(placed, recordings, ground()), ""
        except TransectError as error:
            if over:
                raise
            missing = error.what
    return None, missing


def _lay_out(placed: Sequence[_Placed], recordings: Sequence[OpenedRecording], ground: Ground) -> MapFacts:
    below, guides, notes = ground
    frame = "" if below is None or getattr(below, "crs", "") else below.frame
    if frame:
        guides = guides + [guide for recording, _ in recordings for guide in guides_of(recording, frame)]
    layout = lay_out([each.path for each in placed], below, guides)
    times = tuple(
        None
        if each.axis is None or each.path.clock == "index"
        else (each.path.t_ns - each.axis.start_ns) / NS
        for each in placed
    )
    kinds = tuple(each.kind for each in placed)
    return MapFacts(layout, kinds, tuple(each.axis for each in placed), times, (*notes, *layout.notes))


def _find_tracks(recordings: Sequence[OpenedRecording], runs: Sequence[RunFacts]) -> Iterator[_Placed]:
    """Yield the most accurate measured track of each recording, its ground truth, and those of runs."""
    for recording, facts in recordings:
        axis_of = {stream.name: stream.axis for stream in facts.streams}
        who = f"{recording.name} " if len(recordings) > 1 else ""
        for stream in position_streams(recording):
            path = _try_path(stream, f"{who}{stream.name}")
            if path is not None:
                kind = "truth" if stream.role == "truth" else "measured"
                yield _Placed(path, kind, axis_of.get(stream.name))
    for run in runs:
        if run.trajectory is not None and len(run.trajectory):
            yield _Placed(path_of_trajectory(run.trajectory, run.label), "run", run.axis)


def _try_path(stream: Stream, name: str) -> RecordedPath | None:
    """Return the track of a stream; None if it has no positions."""
    try:
        return path_of(stream, name)
    except TransectError:
        return None


def _find_grounds(
    recordings: Sequence[OpenedRecording], runs: Sequence[RunFacts]
) -> Iterator[Callable[[], Ground]]:
    """Yield candidate background maps: of runs, of recordings, and of the ground truth."""
    for run in runs:
        if list_outputs(run.folder, ".tif"):
            yield partial(open_ground, str(run.folder))
    for recording, _ in recordings:
        maps = [s for s in recording if s.type is GridMap and len(s)]
        for stream in sorted(maps, key=lambda s: s.role == "truth"):
            yield partial(_own_ground, recording, stream.name)


def _own_ground(recording: Recording, name: str) -> Ground:
    return map_of(recording, name), [], [f"the background is {name}"]


def _no_ground() -> Ground:
    return None, [], []


Opener = Callable[[Sequence[str], str, Mapping[str, Any]], Recording]
"""Opens a recording by its paths, its format ("" to recognise it) and the format's options."""


@dataclass(frozen=True)
class Subject:
    """A recording to report on, given by itself or by a run: its paths, format and options."""

    paths: tuple[str, ...]
    format: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def identity(self) -> tuple[Path, ...]:
        """The key of the recording."""
        return tuple(Path(path).resolve() for path in self.paths)


def gather(
    paths: Sequence[str], open_recording: Opener, wanted: ReportOptions | None = None, *, title: str = "",
    command: str = "", over: str | None = None, products: Sequence[Product] = (), store: str = "",
    citation: Citation | None = None, truth: str = "",
) -> tuple[ReportFacts, list[Recording]]:  # fmt: skip
    """Gather a report on recordings and on the folders of runs, whose recordings are opened too.

    Parameters
    ----------
    paths : sequence of str
        Recordings, and folders of runs.
    command : str
        The command line that writes the page.
    over : str, optional
        Background of the map.
    products, store
        Stored products, and the name of their store.
    citation : Citation, optional
        Citation of the data.
    truth : str
        Poses to evaluate runs against, instead of the ground truth of their recordings.

    Returns
    -------
    report : Report
    recordings : list of Recording
        The opened recordings.
    """
    wanted = wanted or ReportOptions()
    folders = [Path(path) for path in paths if split_run(path) is not None]
    opened: dict[tuple[Path, ...], tuple[Recording, RecordingFacts]] = {}

    def add(subject: Subject) -> int:
        if subject.identity not in opened:
            recording = open_recording(subject.paths, subject.format, dict(subject.options))
            facts = gather_recording(recording, " ".join(subject.paths), len(opened), wanted)
            opened[subject.identity] = recording, facts
        return list(opened).index(subject.identity)

    for path in paths:
        if split_run(path) is None:
            add(Subject((path,)))
    played = [_open_recording_of_run(folder, add) for folder in folders]
    both = list(opened.values())
    runs = _gather_runs(folders, played, [facts for _, facts in both], truth)
    drawn, no_map = gather_map(both, runs, over)
    title = title or _title([facts.name for _, facts in both], [run.label for run in runs])
    recordings = tuple(facts for _, facts in both)
    report = ReportFacts(
        title, command, recordings, tuple(runs), drawn, no_map, tuple(products), store, citation
    )
    return report, [recording for recording, _ in both]


def _open_recording_of_run(folder: Path, add: Callable[[Subject], int]) -> tuple[int | None, str]:
    """Return the index of the recording of a run, or why there is none."""
    recorded = recorded_by(folder)
    paths = tuple(recorded["paths"])
    if not paths:
        return None, "the run does not name its recording"
    try:
        return add(Subject(paths, recorded.get("format", ""), tuple(recorded.get("options", {}).items()))), ""
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
