"""Figures 24 to 38 of document 004 from any recordings: range over angle, and a line of images.

A column of panels is a `Shot`: a moment of a recording, and a while around it. All panels of a figure have
the same axes. Returns that checks mask have a colour of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.clocks import NS, decimal_from_ns
from transect.base.files import file_name
from transect.draw.moment import Panel, RangePanel, ViewLimits, moment_figure
from transect.errors import StreamError, TransectError
from transect.integrity.figures import mask_returns
from transect.recording import Recording
from transect.robots.moment import Choice, Moment, make_panel, show_ranges
from transect.robots.overlay import view
from transect.types import Image, LaserScan, RadarRange, RadarSpectrum

from .shots import Shot
from .statements import choose_pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBJECTS = "truth/objects"
MOST_LINES = 240
"""Images of a recording whose line is drawn over time: more cannot be told apart."""
MIDDLE = 0.5
"""Line of images, as a part of their height, where nothing tells where the laser meets the scene."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure, the name of its file without an ending, and its caption."""

    name: str
    caption: str
    figure: Figure

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"name": self.name, "caption": self.caption}


@dataclass(frozen=True)
class Frame:
    """What figures show of each sensor: bearings up to `sector` (rad), ranges up to `reach` (m), a line."""

    sector: float
    reach: float | None = None
    row: float | None = None


def draw_shots(shots: Sequence[Shot], frame: Frame) -> Iterator[Drawn]:
    """Yield the figures that the sensors of the shots allow, those of ranges first.

    Raises
    ------
    StreamError
        If there is no laser, radar or camera in any of them.
    """
    laser, radar = max(
        (choose_pair(shot.recording) for shot in shots), key=lambda pair: list(map(bool, pair))
    )
    level = list(dict.fromkeys(name for shot in shots for name in _find_level(shot)))
    cameras = list(dict.fromkeys(name for shot in shots for name in _find_cameras(shot.recording)))
    if not level and not cameras:
        hint = f"transect info {shots[0].recording.typed} lists what there is"
        raise StreamError(f"{shots[0].recording.name} has no laser, radar or camera to draw", hint=hint)
    ranging = _having(shots, *level[:1])
    reach = frame.reach or (
        _ranges(ranging[0], level[0], "dots").max_range(ViewLimits(frame.sector)) if level else None
    )
    limits = ViewLimits(frame.sector, reach)
    lasers = [name for name in level if name != radar]
    if cameras and lasers and (whole := _having(shots, cameras[0], *lasers)):
        yield _draw_scene(whole[0], cameras[0], lasers, limits)
    if laser in level and radar:
        yield _draw_pair(_having(shots, laser, radar), laser, radar, limits)
    for name in level:
        yield _draw_ranges(_having(shots, name), name, limits)
    for name in cameras:
        row = frame.row if frame.row is not None else _find_row(shots[0], name, laser)
        yield _draw_over_time(_having(shots, name), name, row)
        yield _draw_values(_having(shots, name), name, row)


def _having(shots: Sequence[Shot], *names: str) -> list[Shot]:
    """Return the shots of recordings that have all these streams."""
    return [s for s in shots if all(name in s.recording and len(s.recording[name]) for name in names)]


# Range over angle


def _draw_scene(shot: Shot, camera: str, lasers: Sequence[str], limits: ViewLimits) -> Drawn:
    moment = _moment(shot)
    recording = shot.recording
    named = [recording[OBJECTS]] if OBJECTS in recording and recording.truth is not None else []
    panels = [make_panel(moment, [recording[camera]], "image")]
    panels += [make_panel(moment, [recording[name], *named], "lines") for name in lasers]
    caption = (
        f"The scene ({shot.name}) as {camera} sees it, and all scans of {_length(shot)} of "
        f"{', '.join(lasers)} as lines of range over angle"
        f"{', with the objects that are there' if named else ''}. As Figures 24 and 25 of document 004."
    )
    return _finish("scene", f"{recording.name}: the scene", panels, min(2, len(panels)), limits, caption)


def _draw_pair(shots: Sequence[Shot], laser: str, radar: str, limits: ViewLimits) -> Drawn:
    panels = [_ranges(shot, name, "dots", f"{name}, ") for name in (laser, radar) for shot in shots]
    caption = (
        f"Range over angle of {laser} (above) and {radar} (below) in {_length(shots[0])}: {_names(shots)}. "
        "Masked returns are those that the checks would drop. As Figures 28 and 30 to 33 of document 004."
    )
    return _finish("laser-and-radar", f"{laser} and {radar}", panels, len(shots), limits, caption)


def _draw_ranges(shots: Sequence[Shot], name: str, limits: ViewLimits) -> Drawn:
    panels = [_ranges(shot, name, view) for view in ("dots", "lines") for shot in shots]
    caption = (
        f"Range over angle of {name} in {_length(shots[0])}, as dots (above) and as lines (below): "
        f"{_names(shots)}. A line leaves the picture at the top where nothing came back; masked returns are "
        "those that the checks would drop. As Figures 26 to 33 of document 004."
    )
    return _finish(f"ranges-{name}", f"{name}: range over angle", panels, len(shots), limits, caption)


def _find_level(shot: Shot) -> list[str]:
    """Return lasers and radars that scan in a level plane, lasers first."""
    moment, kinds = _moment(shot), (LaserScan, RadarRange)
    found = [s for s in shot.recording if s.type in kinds and len(s) and moment.is_level(s)]
    return [s.name for s in sorted(found, key=lambda s: kinds.index(s.type))]


def _ranges(shot: Shot, name: str, view: str, before: str = "") -> RangePanel:
    stream, moment = shot.recording[name], _moment(shot)
    panel = show_ranges(moment, stream, lines=view == "lines")
    panel = replace(panel, name=f"{before}{shot.air}" if before else shot.name)
    if stream.type is not LaserScan:
        return panel
    return mask_returns(panel, moment.part(stream), shot.verdicts.by_stream.get(name, []))


# Lines of images


def _draw_over_time(shots: Sequence[Shot], name: str, row: float) -> Drawn:
    whole = {id(shot.recording): shot for shot in shots}.values()
    panels = [_line(shot, name, "time", row) for shot in whole]
    panels += [_line(shot, name, "marked", row) for shot in whole]
    caption = (
        f"Evolution of one line of the images of {name} over all of each recording (above), and where the "
        f"line is, in black (below): {_names(list(whole))}. As Figure 34 of document 004."
    )
    return _finish(f"line-{name}", f"{name}: one line over time", panels, len(whole), ViewLimits(), caption)


def _draw_values(shots: Sequence[Shot], name: str, row: float) -> Drawn:
    panels = [_line(shot, name, "row", row, one) for one in (True, False) for shot in shots]
    caption = (
        f"Values of the same line of {name} in one image (above) and in all images of "
        f"{_length(shots[0])} (below): {_names(shots)}. As Figures 35 to 38 of document 004."
    )
    return _finish(f"values-{name}", f"{name}: values of one line", panels, len(shots), ViewLimits(), caption)


def _line(shot: Shot, name: str, view: str, row: float, one: bool = False) -> Panel:
    stream = shot.recording[name]
    if view == "time":
        step = -(-len(stream) // MOST_LINES)
        stream = stream.take(np.arange(len(stream)) % step == 0)
    panel = make_panel(_moment(shot, row, whole=one or view == "time"), [stream], view)
    return replace(panel, name=shot.air if view == "time" else shot.name, dt=None)


def _find_row(shot: Shot, camera: str, laser: str) -> float:
    """Return the line of images in which a laser meets the scene, as a part of their height."""
    try:
        seen = view(shot.recording, camera, decimal_from_ns(shot.at_ns), streams=(laser,))
    except TransectError:  # a camera that is not calibrated, or no laser
        return MIDDLE
    pixels = [sighting.pixels[sighting.inside, 1] for sighting in seen.sightings]
    rows = np.concatenate([*pixels, np.zeros(0)])
    return float(np.median(rows)) / seen.image.height if len(rows) else MIDDLE


def _find_cameras(recording: Recording) -> list[str]:
    """Return the streams of images, infrared last; those drawn from what a radar measured are left out."""
    radars = {s.frame for s in recording if issubclass(s.type, RadarRange | RadarSpectrum)} - {""}
    images = [s for s in recording if s.type is Image and len(s) and (s.camera or s.frame not in radars)]
    return [s.name for s in sorted(images, key=lambda s: (s.tag == "infrared", s.name))]


# What all have in common


def _moment(shot: Shot, row: float = MIDDLE, whole: bool = False) -> Moment:
    window = None if whole else (shot.t0_ns, shot.t1_ns)
    clock, choice = shot.recording.clock, Choice(row=row)
    return Moment(shot.recording, clock, shot.at_ns, choice, window, first_ns=shot.first_ns)


def _finish(
    name: str, title: str, panels: Sequence[Panel], columns: int, limits: ViewLimits, caption: str
) -> Drawn:
    figure = moment_figure(panels, title, columns, limits, caption)
    return Drawn(file_name(name.replace("/", "_")), caption, figure)


def _names(shots: Sequence[Shot]) -> str:
    """Return what shots are of, and when; whose name says it already is not named twice."""
    return ", ".join(
        shot.name + ("" if shot.recording.name == shot.air else f" ({shot.recording.name})") for shot in shots
    )


def _length(shot: Shot) -> str:
    return f"{(shot.t1_ns - shot.t0_ns) / NS:g} s"
