"""Which views of which streams `transect draw moment` has; those of images, maps and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from transect.draw.moment import Field, Graph, OverTime, Panel, Photo, Rows
from transect.errors import StreamError, UsageError
from transect.geometry.colours import rgb_of
from transect.types import GridMap, Image, LaserScan, PointCloud, RadarRange, RadarSpectrum, Record

from . import ranges
from .sample import Moment

if TYPE_CHECKING:
    from transect.recording import Stream

KINDS = (Image, LaserScan, RadarSpectrum, RadarRange, PointCloud)
"""What has a picture unasked, in the order of the pictures."""
Job = tuple[list["Stream"], str]
"""Streams of one picture, and the view."""
TOGETHER = ("above", "side", "dots", "lines")
"""Views that take several streams."""


def everything(streams: Sequence[Stream]) -> list[Job]:
    """Return what is drawn unasked: all, but ranges only where no spectrum has them."""
    shown = {stream.frame for stream in streams if stream.type is RadarSpectrum}
    return [([s], "") for s in streams if s.type is not RadarRange or s.frame not in shown]


def make_panel(moment: Moment, streams: Sequence[Stream], view: str) -> Panel:
    """Return the picture of streams; the view is that of the first one."""
    first = streams[0]
    views = VIEWS.get(first.type, {})
    if view in views or (not view and views):
        chosen = view or next(iter(views))
        if len(streams) > 1 and chosen not in TOGETHER:
            raise UsageError(f"--panel cannot draw several streams as {chosen}", hint="one --panel for each")
        return views[chosen](moment, streams)
    y, _, x = view.partition("~")
    if y and all(name in stream.columns for stream in streams for name in (y, x) if name):
        return plot_columns(moment, streams, y, x)
    there = [*views, *(name for name in first.columns if not name.startswith("_"))]
    raise UsageError(
        f"{first.name} has no view {view!r}" if view else f"{first.name} needs a view",
        hint=f"--panel {first.name}:VIEW, where VIEW is one of {', '.join(there)}",
    )


def show_image(moment: Moment, streams: Sequence[Stream], marked: bool = False) -> Photo:
    """Return the image; the line of pixels that other views take may be marked."""
    value, dt = moment.sample(streams[0])
    rgb = rgb_of(value)
    return Photo(moment.name(streams[0]), rgb, dt, _line(moment, rgb.shape[0]) if marked else None)


def _line(moment: Moment, height: int) -> int:
    return min(int(moment.row * height), height - 1)


def _rows(moment: Moment, part: Stream) -> np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]:
    """Return the same line of all images, (k, w, 3); only one image is in memory at a time."""
    found: list[np.ndarray[tuple[int, int], np.dtype[np.uint8]]] = []
    for sample in part:
        rgb = rgb_of(sample.value)
        found.append(rgb[_line(moment, rgb.shape[0])].copy())
    if len({len(row) for row in found}) > 1:
        raise StreamError(f"{part.name} has images of different sizes")
    return np.stack(found)


def show_row(moment: Moment, streams: Sequence[Stream]) -> Rows:
    """Return red, green and blue along a line of all images."""
    part = moment.during(streams[0])
    said = f"{len(part)} images" if len(part) > 1 else ""
    return Rows(moment.name(streams[0], said), _rows(moment, part))


def show_rows_over_time(moment: Moment, streams: Sequence[Stream]) -> OverTime:
    """Return a line of all images over time."""
    part = moment.throughout(streams[0])
    rows = _rows(moment, part)
    pixels = np.arange(rows.shape[1], dtype=np.float64)
    return OverTime(moment.name(streams[0]), rows, moment.seconds(part), pixels, "pixel")


def show_map(moment: Moment, streams: Sequence[Stream]) -> Field:
    """Return the first layer of a map, or of a depth image."""
    stream = streams[0]
    value: GridMap
    value, dt = (stream[0].value, None) if len(stream) == 1 else moment.sample(stream)
    layer, values = next(iter(value.layers.items()))
    a, b, x, d, e, y = value.transform
    if (a, b, x, d, e, y) == (1, 0, 0, 0, 1, 0):
        return Field(moment.name(stream), np.asarray(values, np.float64), "depth / m", None, dt)
    h, w = values.shape
    extent = (x, x + a * w, y + e * h, y)
    return Field(moment.name(stream), np.asarray(values, np.float64), f"{layer} / m", extent, dt)


def plot_columns(moment: Moment, streams: Sequence[Stream], y: str, x: str = "") -> Graph:
    """Return a column over time, or over another column."""

    def label(name: str) -> str:
        unit = streams[0].units.get(name, "")
        return f"{name} / {unit}" if unit else name

    parts = [moment.throughout(stream) for stream in streams]
    curves = tuple(
        (part.name, part.array(x)[:, 0] if x else moment.seconds(part), part.array(y)[:, 0]) for part in parts
    )
    said = f"{y} over {x}" if x else y
    name = moment.name(streams[0], said) if len(streams) == 1 else f"{moment.heading}{said}"
    return Graph(name, curves, label(x) if x else "time / s", label(y))


POINTS = {"above": ranges.show_points, "side": partial(ranges.show_points, side=True)}
RANGES = {"dots": ranges.show_ranges, "lines": partial(ranges.show_ranges, lines=True)}
VIEWS: Mapping[type, Mapping[str, Callable[[Moment, Sequence[Stream]], Panel]]] = {
    Image: {
        "image": show_image,
        "marked": partial(show_image, marked=True),
        "row": show_row,
        "time": show_rows_over_time,
    },
    LaserScan: {**POINTS, **RANGES, "time": ranges.show_scans_over_time},
    RadarRange: {"above": ranges.show_points, **RANGES},
    RadarSpectrum: {"spectrum": ranges.show_spectrum, "time": ranges.show_spectra_over_time},
    PointCloud: POINTS,
    GridMap: {"map": show_map},
    Record: {},
}
"""The first view of each type is taken unasked."""
