"""Maps of tracks, over the ground if it is known, and coloured by their error."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.evaluation.figures import view_of
from transect.geometry.decimation import decimate_path

from ..axes import TimeAxis
from .facts import MapFacts, RunFacts
from .markup import (
    DRAWING_WIDTH,
    Markup,
    PageAssets,
    number,
    path_of,
    percent,
    round_step,
    round_ticks,
    short_numbers,
    tag,
)
from .sentences import small_metres

if TYPE_CHECKING:
    from transect.draw.ground import GroundLayer

MAX_LINE_POINTS = 2500
MAX_CURSOR_POINTS = 1200
"""Positions of a track that the cursor can select."""
ERROR_CLASSES = 7
"""Number of colours of errors; the style sheet has a rule for each."""
MAX_GROUND_PIXELS = 900
"""Longer side of the image of the ground."""


@dataclass(frozen=True, eq=False)
class MapTrack:
    """A track to draw."""

    label: str
    points: Floats  # (n, 2) metres right and up, no NaN
    seconds: Floats | None  # (n,) of the points, on `axis`
    axis: TimeAxis | None
    style: str  # class of its line: `truth`, `measured`, or c0 to c5
    # (k,) indices of the points after gaps
    gaps: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    classes: Ints | None = None  # (n,) colour of each point by its error


@dataclass(frozen=True, eq=False)
class MapWindow:
    """The extent of a map: lower left and upper right corner, metres."""

    low: Floats
    high: Floats

    @property
    def shape(self) -> float:
        """Height over width."""
        size = self.high - self.low
        return float(size[1] / size[0])

    @property
    def scale(self) -> float:
        """Units of the drawing per metre."""
        return DRAWING_WIDTH / float(self.high[0] - self.low[0])

    def place(self, points: Floats) -> Floats:
        """Return points (n, 2) in units of the drawing, from its upper left corner."""
        return (points - (self.low[0], self.high[1])) * (self.scale, -self.scale)


def window_of(paths: Sequence[MapTrack], ground: GroundLayer | None = None) -> MapWindow:
    """Return a window around tracks, at least 0.5 m wide, of an aspect ratio that fits the page."""
    from transect.draw.ground import widen

    every = np.concatenate([path.points for path in paths])
    low, high = every.min(axis=0), every.max(axis=0)
    middle, size = (low + high) / 2, np.maximum((high - low) * 1.16, 0.5)
    size = np.maximum(size, [size[1] / 0.95, size[0] * 0.42])
    window = (middle - size / 2, middle + size / 2)
    return MapWindow(*(widen(window, ground) if ground is not None else window))


# The two maps


def draw_tracks(sheet: PageAssets, facts: MapFacts) -> Markup:
    """Draw the tracks of recordings and runs."""
    runs = 0
    paths: list[MapTrack] = []
    layout = facts.layout
    for track, kind, axis, seconds in zip(layout.tracks, facts.kinds, facts.axes, facts.times, strict=True):
        style = f"c{runs % 6}" if kind == "run" else kind
        runs += kind == "run"
        paths.append(MapTrack(track.name, track.points, seconds, axis, style, track.gaps()))
    north = layout.is_north_up
    names = ("", "") if north else layout.view.names
    drawn = _draw(sheet, paths, window_of(paths, layout.ground), layout.ground, north, names)
    keys = [tag("span", tag("i", class_=f"key {path.style}"), path.label) for path in paths]
    notes = "; ".join(dict.fromkeys(filter(None, (layout.caption, *facts.notes))))
    notes = notes[:1].upper() + notes[1:]
    return tag(
        "figure",
        drawn,
        tag("figcaption", tag("span", keys, class_="legend"), tag("small", notes)),
        class_="map",
    )


def draw_errors(sheet: PageAssets, run: RunFacts, highest: float) -> Markup | None:
    """Draw the trajectory of a run over the ground truth, coloured by its error.

    Parameters
    ----------
    highest : float
        The error, m, of the last colour, equal for all runs of the page.
    """
    result = run.judged
    if result is None:
        return None
    arrays, axis = result.arrays, run.axis
    view = view_of(result)
    names = view.names[0], view.names[1]
    errors = np.asarray(arrays["ate_translation"], np.float64)
    classes = np.clip((ERROR_CLASSES * errors / (highest or 1.0)).astype(np.int64), 0, ERROR_CLASSES - 1)
    timed = axis is not None and axis.clock != "index"
    seconds = (arrays["t_ns"] - axis.start_ns) / NS if timed and axis else None
    gaps = _long_steps(seconds)
    paths = [
        MapTrack("ground truth", view.project(arrays["reference"]), seconds, axis, "truth", gaps),
        MapTrack(run.label, view.project(arrays["aligned"]), seconds, axis, "c0", gaps, classes),
    ]
    drawn = _draw(sheet, paths, window_of(paths), None, names == ("east", "north"), names)
    title = f"{run.label}: {small_metres(result.metrics['ate']['translation']['rmse'])} RMSE"
    head = tag("figcaption", tag("b", title), _error_key(highest))
    return tag("figure", head, drawn, class_="map")


def _long_steps(seconds: Floats | None) -> Ints:
    from transect.draw.tracks import PlottedTrack

    return PlottedTrack("", np.zeros((0, 2)), seconds).gaps()


def _error_key(highest: float) -> Markup:
    steps = [tag("i", class_=f"key e{k}") for k in range(ERROR_CLASSES)]
    return tag(
        "span", "error 0 ", steps, f" {small_metres(highest)} and more; dashed: ground truth", class_="legend"
    )


# Drawing


def _draw(
    sheet: PageAssets, paths: Sequence[MapTrack], window: MapWindow, ground: GroundLayer | None, north: bool,
    names: tuple[str, str],
) -> Markup:  # fmt: skip
    key, height = sheet.key("map"), DRAWING_WIDTH * window.shape
    sheet.rules.append(f"#{key}{{aspect-ratio:{DRAWING_WIDTH}/{number(height, 1)}}}")
    inner = tag(
        "svg", _ground(ground, window), _grid(window), [_lines(path, window) for path in paths],
        [_ends(path, window) for path in paths if path.style != "truth" or len(paths) == 1],
        viewBox=f"0 0 {DRAWING_WIDTH} {number(height, 1)}",
        width="100%", height="100%",
    )  # fmt: skip
    sheet.values[key] = {"tracks": [_times(path, window) for path in paths if path.seconds is not None]}
    here = [
        tag("circle", class_=f"here {path.style}", r=5, cx=-20, cy=-20)
        for path in paths
        if path.seconds is not None
    ]
    label = f"map of {', '.join(path.label for path in paths)}"
    return tag(
        "svg", inner, _scale_bar(window), _compass(north, names), here, class_="map", id=key, width="100%",
        role="img", aria_label=label, tabindex="0",
    )  # fmt: skip


def _lines(path: MapTrack, window: MapWindow) -> list[Markup]:
    placed = window.place(path.points)
    kept = decimate_path(placed, 0.7, MAX_LINE_POINTS)
    kept = np.unique(np.concatenate([kept, path.gaps, np.maximum(path.gaps - 1, 0)]).astype(np.int64))
    x, y = placed[kept].T
    broken = np.isin(kept, path.gaps)
    if path.classes is None:
        at = np.flatnonzero(broken)
        d = path_of(np.insert(x, at, np.nan), np.insert(y, at, np.nan))
        return [tag("path", d=d, class_=f"track {path.style}")]
    found: list[Markup] = []
    classes = path.classes[kept]
    starts = np.flatnonzero(np.diff(classes, prepend=-1) != 0)
    for a, b in zip(starts, [*starts[1:], len(kept)], strict=True):
        last = min(b + 1, len(kept)) if b < len(kept) and not broken[b] else b
        at = np.flatnonzero(broken[a + 1 : last]) + 1
        d = path_of(np.insert(x[a:last], at, np.nan), np.insert(y[a:last], at, np.nan))
        found.append(tag("path", d=d, class_=f"track e{classes[a]}"))
    return found


def _ends(path: MapTrack, window: MapWindow) -> list[Markup]:
    """Return a ring where a track starts and a square where it ends."""
    (x0, y0), (x1, y1) = window.place(path.points[[0, -1]])
    return [
        tag("circle", cx=number(x0, 1), cy=number(y0, 1), r=7, class_=f"end {path.style}"),
        tag("rect", x=number(x1 - 6, 1), y=number(y1 - 6, 1), width=12, height=12,
            class_=f"end full {path.style}"),
    ]  # fmt: skip


def _times(path: MapTrack, window: MapWindow) -> dict[str, object]:
    """Return the positions of a track over time, in percent of the map, for the cursor."""
    assert path.seconds is not None
    chosen = (
        np.linspace(0, len(path.points) - 1, min(len(path.points), MAX_CURSOR_POINTS)).round().astype(int)
    )
    placed = window.place(path.points[chosen]) / (DRAWING_WIDTH / 100, DRAWING_WIDTH * window.shape / 100)
    return {
        "label": path.label,
        "t": short_numbers(path.seconds[chosen], 7),
        "x": short_numbers(placed[:, 0], 5),
        "y": short_numbers(placed[:, 1], 5),
    }


def _grid(window: MapWindow) -> list[Markup]:
    step = round_step(float(window.high[0] - window.low[0]) / 6)
    height = DRAWING_WIDTH * window.shape
    lines = [
        f"M{number((x - window.low[0]) * window.scale, 1)} 0V{number(height, 1)}"
        for x in _multiples(window.low[0], window.high[0], step)
    ]
    lines += [
        f"M0 {number((window.high[1] - y) * window.scale, 1)}H{DRAWING_WIDTH}"
        for y in _multiples(window.low[1], window.high[1], step)
    ]
    return [tag("path", d="".join(lines), class_="rule")]


def _multiples(low: float, high: float, step: float) -> list[float]:
    return [step * k for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def _scale_bar(window: MapWindow) -> list[Markup]:
    """Return a scale bar of a round length in the lower left corner."""
    across = float(window.high[0] - window.low[0])
    length = round_ticks(0, across / 3, 3)[-1] if across > 0 else 1.0
    ratio = length / across
    text = (
        f"{length / 1000:g} km"
        if length >= 1000
        else f"{length:g} m"
        if length >= 1
        else f"{100 * length:g} cm"
    )
    end = percent(0.02 + ratio)
    return [
        tag("line", x1="2%", x2=end, y1="97%", y2="97%", class_="scale"),
        tag(
            "text", text, x=percent(0.02 + ratio / 2), y="97%", dy="-6", text_anchor="middle", class_="label"
        ),
    ]


def _compass(north: bool, names: tuple[str, str]) -> list[Markup]:
    """Return a north arrow, or the names of the axes if north is not known."""
    text = "\u2191 N" if north else f"\u2191 {names[1]}  \u2192 {names[0]}"
    return [tag("text", text, x="98%", y="22", text_anchor="end", class_="label north")]


# The ground


def _ground(ground: GroundLayer | None, window: MapWindow) -> Markup | None:
    """Return the ground as an image with its transform."""
    if ground is None:
        return None
    if ground.kind == "points":
        colours, (a, b, c, d, e, f) = _colour_points(ground.image, window)
    else:
        from transect.draw.ground import colour_ground

        part = ground.cut(window.low, window.high)
        step = -(-max(part.image.shape[:2]) // MAX_GROUND_PIXELS) if part.image.size else 1
        if step > 1:
            a, b, c, d, e, f = part.transform
            part = type(part)(
                part.image[::step, ::step],
                (a * step, b * step, c, d * step, e * step, f),
                part.kind,
                part.cycle,
            )
        if not part.image.size or not np.isfinite(part.image).any():
            return None
        colours = colour_ground(part)[0]
        a, b, c, d, e, f = part.transform
    k, rows, columns = window.scale, *colours.shape[:2]
    matrix = (k * a, -k * d, k * b, -k * e, k * (c - window.low[0]), k * (window.high[1] - f))
    return tag(
        "image", href=_webp(colours), width=columns, height=rows, preserveAspectRatio="none",
        transform=f"matrix({' '.join(number(v, 5) for v in matrix)})", class_="ground",
    )  # fmt: skip


def _colour_points(points: Floats, window: MapWindow) -> tuple[Floats, tuple[float, ...]]:
    """Return the density of points (n, 2) as colours of cells (rows, columns, 3), with their transform."""
    columns = MAX_GROUND_PIXELS // 2
    rows = max(1, round(columns * window.shape))
    cell = (window.high - window.low) / (columns, rows)
    sides = [
        np.linspace(low, high, n + 1)
        for low, high, n in zip(window.low, window.high, (columns, rows), strict=True)
    ]
    count = np.histogram2d(points[:, 0], points[:, 1], bins=sides)[0].T[::-1]
    shade = np.where(count > 0, 0.78 - 0.3 * np.minimum(np.log1p(count) / 5, 1.0), 1.0)
    return np.repeat(shade[..., None], 3, axis=-1), (
        cell[0],
        0.0,
        window.low[0],
        0.0,
        -cell[1],
        window.high[1],
    )


def _webp(colours: Floats) -> str:
    from PIL import Image

    pixels = np.clip(np.nan_to_num(colours[..., :3], nan=1.0) * 255, 0, 255).astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "webp", quality=80, method=4)
    return data_uri(content.getvalue())


def data_uri(content: bytes) -> str:
    """Return a WebP as a data URI."""
    return f"data:image/webp;base64,{base64.b64encode(content).decode('ascii')}"
