"""Drawing of the sensor data of recordings at one time or over a time window, as panels of a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from transect.base import clocks
from transect.draw.moment import Panel, ViewLimits, moment_figure
from transect.errors import StreamError, TransectError, UsageError
from transect.types import Image, LaserScan, PointCloud, RadarRange, RadarSpectrum

from ..overlay import ROLES
from .views import Moment, MomentOptions, make_panel, show_ranges

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.recording import Recording, Stream

__all__ = ["Moment", "MomentOptions", "draw_recordings", "make_panel", "show_ranges"]

KINDS = (Image, LaserScan, RadarSpectrum, RadarRange, PointCloud)
"""Types that are drawn by default, in the order of the panels."""
Job = tuple[list["Stream"], str]
"""Streams of one panel, and the view."""


def draw_recordings(recordings: Sequence[Recording], choice: MomentOptions) -> tuple[Figure, list[str]]:
    """Draw the sensor data of recordings at the chosen times.

    Returns
    -------
    figure : matplotlib Figure
    notes : list of str
        Omitted streams, with reasons.
    """
    if choice.panels and choice.streams:
        raise UsageError("--panel and --streams both choose what is drawn", hint="give one of them")
    for panel in choice.panels:
        if not any(_match_panel(recording, panel) for recording in recordings):
            raise StreamError(
                f"there is no stream for --panel {panel}",
                hint=f"transect info {recordings[0].typed} lists what there is",
            )
    drawn: list[Panel] = []
    notes: list[str] = []
    times: list[str] = []
    for recording in recordings:
        jobs = _choose(recording, choice)
        for moment in _moments(recording, jobs[0][0][0].clock, choice, len(recordings) > 1):
            times.append(clocks.text_from_ns(moment.t_ns, moment.clock))
            drawn += _make_panels(moment, jobs, notes)
    names = " and ".join(recording.name for recording in recordings)
    if not drawn:
        when = " or ".join(choice.times) or "the start"
        hint = "another --at, or more --tolerance"
        raise StreamError(f"{names} has nothing at {when}", why="; ".join(notes), hint=hint)
    limits = ViewLimits(choice.sector and float(np.radians(choice.sector)), choice.reach)
    title = choice.title if choice.title is not None else f"{names} at {times[0]}"
    return moment_figure(drawn, title, choice.columns, limits), notes


def _choose(recording: Recording, choice: MomentOptions) -> list[Job]:
    """Return the panels of a recording; by default radar ranges are drawn only without spectra."""
    if choice.panels:
        jobs = [job for panel in choice.panels for job in _match_panel(recording, panel)]
    else:
        chosen = recording.select(*choice.streams) if choice.streams else recording
        streams = [s for s in chosen.streams if s.type in KINDS and (choice.streams or s.role in ROLES)]
        streams = sorted((s for s in streams if len(s)), key=lambda s: KINDS.index(s.type))
        shown = {s.frame for s in streams if s.type is RadarSpectrum}
        jobs = [([s], "") for s in streams if s.type is not RadarRange or s.frame not in shown]
    if not jobs:
        patterns = choice.panels or choice.streams
        raise StreamError(
            f"{recording.name} has no images, scans, radars or clouds to draw",
            why=f"none match {' or '.join(patterns)}" if patterns else "",
            hint=f"transect info {recording.typed} lists what there is",
        )
    return jobs


def _match_panel(recording: Recording, panel: str) -> list[Job]:
    """Return the panels of a --panel: one per match of a pattern, but STREAM+STREAM in one panel."""
    names, _, view = panel.partition(":")
    parts = [
        [stream for stream in recording.streams if len(stream) and fnmatchcase(stream.name, name)]
        for name in names.split("+")
    ]
    if len(parts) == 1:
        return [([stream], view) for stream in parts[0]]
    return [([stream for part in parts for stream in part], view)] if all(parts) else []


def _moments(recording: Recording, clock: str, choice: MomentOptions, named: bool) -> Iterator[Moment]:
    """Yield the drawn times of a recording; headings distinguish recordings and times."""
    first, last = recording.spans().get(clock, (0, 0))

    def resolve(time: str) -> int:
        return clocks.resolve(time, first, clock)

    window = None
    if choice.start or choice.end:
        window = resolve(choice.start or "+0s"), resolve(choice.end) if choice.end else last + 1
    for time in choice.times or ("+0s",):
        words = [*([recording.name] if named else []), *([time] if len(choice.times) > 1 else [])]
        heading = f"{', '.join(words)}: " if words else ""
        yield Moment(recording, clock, resolve(time), choice, window, heading, first)


def _make_panels(moment: Moment, jobs: Sequence[Job], notes: list[str]) -> list[Panel]:
    """Return the panels of a moment; omitted default panels are noted."""
    panels: list[Panel] = []
    for streams, view in jobs:
        try:
            panels.append(make_panel(moment, streams, view))
        except TransectError as error:
            if moment.choice.panels:
                raise
            notes.append(f"left out: {streams[0].name}: {error.what}")
    return panels
