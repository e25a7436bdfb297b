"""Where recordings and runs went, and what lies below: the tracks of the page's map."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from transect.base.clocks import NS
from transect.errors import TransectError
from transect.evaluation.inputs import list_outputs, map_of, open_ground
from transect.evaluation.positions.common_frame import lay_out
from transect.evaluation.positions.paths import RecordedPath, guides_of, path_of, path_of_trajectory
from transect.evaluation.positions.streams import position_streams
from transect.recording import Recording, Stream
from transect.types import GridMap, PointCloud

from ..axes import Axis
from .facts import MapFacts, RecordingFacts, RunFacts

Ground = tuple[GridMap | PointCloud | None, list[RecordedPath], list[str]]
Both = tuple[Recording, RecordingFacts]


@dataclass(frozen=True)
class _Placed:
    """A track, what it is, and the axis of its times."""

    path: RecordedPath
    kind: str
    axis: Axis | None


def gather_map(
    recordings: Sequence[Both], runs: Sequence[RunFacts], over: str | None = None
) -> tuple[MapFacts | None, str]:
    """Return where recordings and runs went, over a map if one lies there; or why that is not known.

    Parameters
    ----------
    over : str, optional
        A map that a person named; else that of a run is taken, of the recording, or of the truth.
    """
    placed = list(_find_tracks(recordings, runs))
    if not placed:
        return None, "no stream says where the robot was"
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


def _lay_out(placed: Sequence[_Placed], recordings: Sequence[Both], ground: Ground) -> MapFacts:
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


def _find_tracks(recordings: Sequence[Both], runs: Sequence[RunFacts]) -> Iterator[_Placed]:
    """Yield the best measurement of each recording's position, its truth, and the runs' own paths."""
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


def _find_grounds(recordings: Sequence[Both], runs: Sequence[RunFacts]) -> Iterator[Callable[[], Ground]]:
    """Yield the maps that may lie below: those of runs, of recordings, and true ones."""
    for run in runs:
        if list_outputs(run.folder, ".tif"):
            yield partial(open_ground, str(run.folder))
    for recording, _ in recordings:
        maps = [s for s in recording if s.type is GridMap and len(s)]
        for stream in sorted(maps, key=lambda s: s.role == "truth"):
            yield partial(_own_ground, recording, stream.name)


def _own_ground(recording: Recording, name: str) -> Ground:
    said = [f"the ground is {name}"]
    return map_of(recording, name), [], said


def _no_ground() -> Ground:
    return None, [], []
