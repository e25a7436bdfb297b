"""What sensors of a recording saw at one time or for a while, as the panels of a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from transect.base import clocks
from transect.draw.moment import Limits, Panel, moment_figure
from transect.errors import StreamError, TransectError, UsageError

from ..overlay import ROLES
from .sample import Moment
from .views import KINDS, everything, make_panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.recording import Recording, Stream


@dataclass(frozen=True)
class Choice:
    """What is drawn of each recording, when, and how.

    Attributes
    ----------
    streams : tuple of str
        Patterns of the names of streams, each with the view that it has by default.
    panels : tuple of str
        Panels in this order instead: ``STREAM[:VIEW]``, or ``STREAM+STREAM`` for both in one.
    times : tuple of str
        When; the start if there are none.
    start, end : str or None
        From when to when the views go that show a while.
    tolerance : float
        How far from the time a sample may be, s.
    row : float
        Which line of images, as a share of their height.
    sector, reach : float or None
        Bearings (degrees) and ranges (m) up to which is drawn.
    title : str or None
        Above the picture; the recordings and the time if None.
    columns : int or None
        How many pictures side by side.
    """

    streams: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    tolerance: float = 0.5
    row: float = 0.5
    sector: float | None = None
    reach: float | None = None
    title: str | None = None
    columns: int | None = None


def draw_recordings(recordings: Sequence[Recording], choice: Choice) -> tuple[Figure, list[str]]:
    """Draw what recordings saw, each at the times that are chosen.

    Returns
    -------
    figure : matplotlib Figure
    notes : list of str
        What is left out, and why.
    """
    _refuse(recordings, choice)
    several = len(recordings) > 1, len(choice.times) > 1
    drawn: list[Panel] = []
    notes: list[str] = []
    for recording in recordings:
        for moment in _moments(recording, choice, several):
            drawn += _panels(moment, choice, notes)
    names = " and ".join(recording.name for recording in recordings)
    if not drawn:
        when = " or ".join(choice.times) or "the start"
        hint = "another --at, or more --tolerance"
        raise StreamError(f"{names} has nothing at {when}", why="; ".join(notes), hint=hint)
    limits = Limits(None if choice.sector is None else float(np.radians(choice.sector)), choice.reach)
    first = next(_moments(recordings[0], choice, (False, False)))
    title = choice.title if choice.title is not None else f"{names} at {first.time}"
    return moment_figure(drawn, title, choice.columns, limits), notes


def _moments(recording: Recording, choice: Choice, several: tuple[bool, bool]) -> Iterator[Moment]:
    """Yield the times of a recording that are drawn; names tell them apart where there are several."""
    streams = _choose_streams(recording, choice)
    clock = streams[0].clock
    spans = recording.spans()
    first, last = spans.get(clock, (0, 0))

    def resolve(time: str) -> int:
        return clocks.resolve(time, first, clock)

    window = None
    if choice.start or choice.end:
        window = resolve(choice.start or "+0s"), resolve(choice.end) if choice.end else last + 1
    for time in choice.times or ("+0s",):
        words = [word for word, wanted in zip((recording.name, time), several, strict=True) if wanted]
        heading = f"{', '.join(words)}: " if words else ""
        yield Moment(recording, clock, resolve(time), choice.tolerance, window, choice.row, heading, first)


def _choose_streams(recording: Recording, choice: Choice) -> list[Stream]:
    """Return the streams that could be drawn, of which the first has the clock."""
    if choice.panels:
        streams = [s for panel in choice.panels for parts, _ in _jobs(recording, panel) for s in parts]
    else:
        chosen = recording.select(*choice.streams) if choice.streams else recording
        streams = [s for s in chosen.streams if s.type in KINDS and (choice.streams or s.role in ROLES)]
        streams.sort(key=lambda s: KINDS.index(s.type))
    streams = [s for s in streams if len(s)]
    patterns = choice.panels or choice.streams
    if not streams:
        raise StreamError(
            f"{recording.name} has no images, scans, radars or clouds to draw",
            why=f"none match {' or '.join(patterns)}" if patterns else "",
            hint="transect info PATH lists what there is",
        )
    return streams


def _refuse(recordings: Sequence[Recording], choice: Choice) -> None:
    """Refuse two ways of choosing, and a panel that no recording has; it may be one of several only."""
    if choice.panels and choice.streams:
        raise UsageError("--panel and --streams both choose what is drawn", hint="give one of them")
    for panel in choice.panels:
        if not any(_jobs(recording, panel) for recording in recordings):
            raise StreamError(
                f"there is no stream for --panel {panel}", hint="transect info PATH lists what there is"
            )


def _panels(moment: Moment, choice: Choice, notes: list[str]) -> list[Panel]:
    """Return the panels of a moment; where none is asked for by name, note what is left out."""
    if not choice.panels:
        jobs = everything(_choose_streams(moment.recording, choice))
    else:
        jobs = [job for panel in choice.panels for job in _jobs(moment.recording, panel)]
    panels: list[Panel] = []
    for streams, view in jobs:
        try:
            panels.append(make_panel(moment, streams, view))
        except TransectError as error:
            if choice.panels:
                raise
            notes.append(f"left out: {streams[0].name}: {error.what}")
    return panels


def _jobs(recording: Recording, panel: str) -> list[tuple[list[Stream], str]]:
    """Return what a --panel draws: streams of one picture, and the view; each match of a glob is one."""
    names, _, view = panel.partition(":")
    parts = [_matching(recording, name) for name in names.split("+")]
    if len(parts) == 1:
        return [([stream], view) for stream in parts[0]]
    return [([stream for part in parts for stream in part], view)] if all(parts) else []


def _matching(recording: Recording, name: str) -> list[Stream]:
    return [stream for stream in recording.streams if len(stream) and fnmatchcase(stream.name, name)]
