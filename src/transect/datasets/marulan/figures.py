"""Figures 24 to 38 of SDI from any recordings: range over angle, and a row of images.

A column of panels is an `Excerpt`, a few seconds of a recording. All panels of a figure have the same axes.
Returns that checks mask have a separate colour.
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
from transect.robots.moment import Moment, MomentOptions, make_panel, show_ranges
from transect.robots.overlay import view
from transect.types import Image, LaserScan, RadarRange, RadarSpectrum

from .excerpts import Excerpt
from .statements import choose_pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBJECTS = "truth/objects"
DEFAULT_ROW = 0.5
"""Image row, as a ratio of the height, if the row in which the laser meets the scene is unknown."""


@dataclass(frozen=True, eq=False)
class CaptionedFigure:
    """A figure with its caption and the stem of its file name."""

    name: str
    caption: str
    figure: Figure

    def to_dict(self) -> dict[str, Any]:
        """Return name and caption as plain values."""
        return {"name": self.name, "caption": self.caption}


@dataclass(frozen=True)
class FigureLimits:
    """Limits of the axes, and the image row to draw."""

    sector: float  # largest bearing, rad
    reach: float | None = None  # largest range, m; None for automatic
    row: float | None = None  # ratio of the image height; None for automatic
    max_images: int = 240  # images of a recording whose row is drawn over time, evenly spaced


def draw_excerpts(excerpts: Sequence[Excerpt], frame: FigureLimits) -> Iterator[CaptionedFigure]:
    """Yield the figures for which the excerpts have sensors, those of ranges first.

    Raises
    ------
    StreamError
        If there is no laser, radar or camera in any of them.
    """
    laser, radar = max(
        (choose_pair(excerpt.recording) for excerpt in excerpts), key=lambda pair: list(map(bool, pair))
    )
    level = list(dict.fromkeys(name for excerpt in excerpts for name in _find_level(excerpt)))
    cameras = list(dict.fromkeys(name for excerpt in excerpts for name in _find_cameras(excerpt.recording)))
    if not level and not cameras:
        hint = f"transect info {excerpts[0].recording.typed} lists what there is"
        raise StreamError(f"{excerpts[0].recording.name} has no laser, radar or camera to draw", hint=hint)
    ranging = _with_streams(excerpts, *level[:1])
    reach = frame.reach or (
        _ranges(ranging[0], level[0], "dots").max_range(ViewLimits(frame.sector)) if level else None
    )
    limits = ViewLimits(frame.sector, reach)
    lasers = [name for name in level if name != radar]
    if cameras and lasers and (whole := _with_streams(excerpts, cameras[0], *lasers)):
        yield _draw_scene(whole[0], cameras[0], lasers, limits)
    if laser in level and radar:
        yield _draw_pair(_with_streams(excerpts, laser, radar), laser, radar, limits)
    for name in level:
        yield _draw_ranges(_with_streams(excerpts, name), name, limits)
    for name in cameras:
        row = frame.row if frame.row is not None else _find_row(excerpts[0], name, laser)
        yield _draw_over_time(_with_streams(excerpts, name), name, row, frame.max_images)
        yield _draw_values(_with_streams(excerpts, name), name, row)


def _with_streams(excerpts: Sequence[Excerpt], *names: str) -> list[Excerpt]:
    """Return the excerpts whose recordings have all these streams."""
    return [s for s in excerpts if all(name in s.recording and len(s.recording[name]) for name in names)]


# Range over angle


def _draw_scene(excerpt: Excerpt, camera: str, lasers: Sequence[str], limits: ViewLimits) -> CaptionedFigure:
    moment = _moment(excerpt)
    recording = excerpt.recording
    named = [recording[OBJECTS]] if OBJECTS in recording and recording.truth is not None else []
    panels = [make_panel(moment, [recording[camera]], "image")]
    panels += [make_panel(moment, [recording[name], *named], "lines") for name in lasers]
    caption = (
        f"The scene ({excerpt.name}) as {camera} sees it, and all scans of {_length(excerpt)} of "
        f"{', '.join(lasers)} as lines of range over angle"
        f"{', with the objects that are there' if named else ''}. As Figures 24 and 25 of SDI."
    )
    return _finish("scene", f"{recording.name}: the scene", panels, min(2, len(panels)), limits, caption)


def _draw_pair(excerpts: Sequence[Excerpt], laser: str, radar: str, limits: ViewLimits) -> CaptionedFigure:
    panels = [_ranges(excerpt, name, "dots", f"{name}, ") for name in (laser, radar) for excerpt in excerpts]
    caption = (
        f"Range over angle of {laser} (above) and {radar} (below) in {_length(excerpts[0])}: "
        f"{_names(excerpts)}. Masked returns are those that the checks would drop. "
        "As Figures 28 and 30 to 33 of SDI."
    )
    return _finish("laser-and-radar", f"{laser} and {radar}", panels, len(excerpts), limits, caption)


def _draw_ranges(excerpts: Sequence[Excerpt], name: str, limits: ViewLimits) -> CaptionedFigure:
    panels = [_ranges(excerpt, name, view) for view in ("dots", "lines") for excerpt in excerpts]
    caption = (
        f"Range over angle of {name} in {_length(excerpts[0])}, as dots (above) and as lines (below): "
        f"{_names(excerpts)}. A line leaves the axes at the top without a return; masked returns are "
        "those that the checks would drop. As Figures 26 to 33 of SDI."
    )
    return _finish(f"ranges-{name}", f"{name}: range over angle", panels, len(excerpts), limits, caption)


def _find_level(excerpt: Excerpt) -> list[str]:
    """Return the names of lasers and radars that scan in a level plane, lasers first."""
    moment, kinds = _moment(excerpt), (LaserScan, RadarRange)
    found = [s for s in excerpt.recording if s.type in kinds and len(s) and moment.is_level(s)]
    return [s.name for s in sorted(found, key=lambda s: kinds.index(s.type))]


def _ranges(excerpt: Excerpt, name: str, view: str, before: str = "") -> RangePanel:
    stream, moment = excerpt.recording[name], _moment(excerpt)
    panel = show_ranges(moment, stream, lines=view == "lines")
    panel = replace(panel, name=f"{before}{excerpt.air}" if before else excerpt.name)
    if stream.type is not LaserScan:
        return panel
    return mask_returns(panel, moment.part(stream), excerpt.verdicts.by_stream.get(name, []))


# Lines of images


def _draw_over_time(excerpts: Sequence[Excerpt], name: str, row: float, max_images: int) -> CaptionedFigure:
    whole = {id(excerpt.recording): excerpt for excerpt in excerpts}.values()
    panels = [_line(excerpt, name, "time", row, max_images=max_images) for excerpt in whole]
    panels += [_line(excerpt, name, "marked", row) for excerpt in whole]
    caption = (
        f"Evolution of one line of the images of {name} over all of each recording (above), and where the "
        f"line is, in black (below): {_names(list(whole))}. As Figure 34 of SDI."
    )
    return _finish(f"line-{name}", f"{name}: one line over time", panels, len(whole), ViewLimits(), caption)


def _draw_values(excerpts: Sequence[Excerpt], name: str, row: float) -> CaptionedFigure:
    panels = [_line(excerpt, name, "row", row, one) for one in (True, False) for excerpt in excerpts]
    caption = (
        f"Values of the same line of {name} in one image (above) and in all images of "
        f"{_length(excerpts[0])} (below): {_names(excerpts)}. As Figures 35 to 38 of SDI."
    )
    return _finish(
        f"values-{name}", f"{name}: values of one line", panels, len(excerpts), ViewLimits(), caption
    )


def _line(
    excerpt: Excerpt, name: str, view: str, row: float, one: bool = False, max_images: int = 1
) -> Panel:
    stream = excerpt.recording[name]
    if view == "time":
        step = -(-len(stream) // max_images)
        stream = stream.take(np.arange(len(stream)) % step == 0)
    panel = make_panel(_moment(excerpt, row, whole=one or view == "time"), [stream], view)
    return replace(panel, name=excerpt.air if view == "time" else excerpt.name, dt=None)


def _find_row(excerpt: Excerpt, camera: str, laser: str) -> float:
    """Return the image row in which a laser meets the scene, as a ratio of the height."""
    try:
        seen = view(excerpt.recording, camera, decimal_from_ns(excerpt.at_ns), streams=(laser,))
    except TransectError:  # a camera that is not calibrated, or no laser
        return DEFAULT_ROW
    pixels = [sighting.pixels[sighting.inside, 1] for sighting in seen.sightings]
    rows = np.concatenate([*pixels, np.zeros(0)])
    return float(np.median(rows)) / seen.image.height if len(rows) else DEFAULT_ROW


def _find_cameras(recording: Recording) -> list[str]:
    """Return the names of the image streams, infrared last, without images drawn from radar data."""
    radars = {s.frame for s in recording if issubclass(s.type, RadarRange | RadarSpectrum)} - {""}
    images = [s for s in recording if s.type is Image and len(s) and (s.camera or s.frame not in radars)]
    return [s.name for s in sorted(images, key=lambda s: (s.tag == "infrared", s.name))]


# Helpers of all figures


def _moment(excerpt: Excerpt, row: float = DEFAULT_ROW, whole: bool = False) -> Moment:
    window = None if whole else (excerpt.t0_ns, excerpt.t1_ns)
    clock, choice = excerpt.recording.clock, MomentOptions(row=row)
    return Moment(excerpt.recording, clock, excerpt.at_ns, choice, window, first_ns=excerpt.first_ns)


def _finish(
    name: str, title: str, panels: Sequence[Panel], columns: int, limits: ViewLimits, caption: str
) -> CaptionedFigure:
    figure = moment_figure(panels, title, columns, limits, caption)
    return CaptionedFigure(file_name(name.replace("/", "_")), caption, figure)


def _names(excerpts: Sequence[Excerpt]) -> str:
    """Return conditions, times and recordings of excerpts; a recording named after its condition once."""
    return ", ".join(
        excerpt.name + ("" if excerpt.recording.name == excerpt.air else f" ({excerpt.recording.name})")
        for excerpt in excerpts
    )


def _length(excerpt: Excerpt) -> str:
    return f"{(excerpt.t1_ns - excerpt.t0_ns) / NS:g} s"
