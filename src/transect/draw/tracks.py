"""Tracks from above, over an orthophoto, heights, an occupancy grid or a cloud if there is one.

As in Figure 9 of the AMEDS paper, Figure 2 of the Rosario paper, and Figure 8 of the CDFF paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints

from .figures import INK, new_figure, place_labels
from .ground import GroundLayer, draw_ground, widen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (
    "#2f6fb3", "#d1495b", "#3a9d5d", "#e08214", "#8a4fbf", "#00899a",
    "#b3307f", "#7a5c3e", "#4b3f99", "#8a8f00", "#5a6570", "#c2185b",
)  # fmt: skip
"""Twelve colours of tracks that are distinguishable on white and on a pale map."""
WIDTH_IN, MAX_HEIGHT_IN = 7.0, 8.0
MAX_COLUMNS = 3
MAX_LINE_POINTS = 20_000
MAX_NESTED_TRACKS = 3
"""Up to this number of tracks, the first lines are wider, so that coinciding tracks stay visible."""
TRACK_ZORDER = 10
"""Drawing order of tracks; the ground is at 0."""
ColourBy = Literal["sequence", "time"]


@dataclass(frozen=True, eq=False)
class PlottedTrack:
    """The positions of something over time."""

    name: str
    points: Floats  # (n, 2) metres to the right and up; NaN where not known
    seconds: Floats | None = None  # (n,) from its start; None without times

    def gaps(self, max_gap_s: float | None = None) -> Ints:
        """Return the indices of points after a gap of over `max_gap_s`, by default five median steps."""
        if self.seconds is None or len(self.seconds) < 3:
            return np.zeros(0, np.intp)
        steps = np.diff(self.seconds)
        usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else np.inf
        return np.flatnonzero(steps > (5 * usual if max_gap_s is None else max_gap_s)) + 1

    def known(self) -> PlottedTrack:
        """Return the track without NaN rows."""
        is_known = np.isfinite(self.points).all(axis=1)
        return replace(
            self,
            points=self.points[is_known],
            seconds=None if self.seconds is None else self.seconds[is_known],
        )


@dataclass(frozen=True)
class TrackStyle:
    """Drawing options of tracks."""

    # above and below the picture
    title: str = ""
    caption: str = ""
    names: tuple[str, str] = ("x", "y")  # of the axes to the right and up, without the unit
    north: bool = False  # whether up is north
    colour: ColourBy = "sequence"  # one colour for each track, or colours for the time since the start
    gap: float | None = None  # longest gap, s, over which a line is drawn; None: five median steps
    panels: bool = False  # whether each track has a panel of its own


def tracks_figure(
    tracks: Sequence[PlottedTrack],
    ground: GroundLayer | None = None,
    places: Mapping[str, Floats] | None = None,
    style: TrackStyle | None = None,
    outlines: Sequence[Floats] = (),
) -> Figure:
    """Draw tracks from above: a ring at the start of each, a square at its end, dots over its gaps.

    Parameters
    ----------
    tracks : sequence of Track
        Each with a known position; at least one, or an outline.
    ground : Ground, optional
        Drawn below the tracks, in the same axes.
    places : mapping of str to (2,)
        Named positions, metres right and up.
    outlines : sequence of (n, 2)
        Edges of areas, metres right and up, drawn as thin lines.
    """
    style, places = style or TrackStyle(), places or {}
    known = [track.known() for track in tracks]
    groups = [[k] for k in range(len(known))] if style.panels else [list(range(len(known)))]
    columns = min(len(groups), MAX_COLUMNS)
    rows = -(-len(groups) // columns)
    least = 0.3 if ground is None else 0.6
    windows = [
        window_around([*(known[k].points for k in group), *outlines], places, least) for group in groups
    ]
    windows = _same_size([widen(window, ground) for window in windows])
    shape = float(np.divide(*(windows[0][1] - windows[0][0])[::-1]))
    bars = (style.colour == "time") + (ground is not None and ground.kind == "heights")
    height = (
        rows * float(np.clip((WIDTH_IN - 0.7 - 0.8 * bars) / columns * shape, 1.6, MAX_HEIGHT_IN / rows))
        + 1.0
    )
    figure = new_figure(WIDTH_IN, height)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels[len(groups) :]:
        axes.set_axis_off()
    latest = max(
        (float(t.seconds[-1]) for t in known if t.seconds is not None and len(t.seconds)), default=0.0
    )
    unit = (60.0, "min") if latest > 300 else (1.0, "s")
    lines, image = None, None
    for axes, group, window in zip(panels, groups, windows, strict=False):
        image = draw_ground(axes, ground, window) or image
        for edge in outlines:
            axes.plot(*edge.T, color=INK, linewidth=0.8, linestyle=(0, (4, 2)), zorder=TRACK_ZORDER - 1)
        for k in group:
            wider = len(group) - 1 - k if len(group) <= MAX_NESTED_TRACKS and ground is None else 0
            pen = _Pen(COLOURS[k % len(COLOURS)], 1.7 + 1.4 * wider, cased=ground is not None)
            lines = _draw_track(axes, known[k], pen, style, (latest, unit[0])) or lines
        frame_map(axes, window, style)
        _write_names(figure, axes, [known[k] for k in group], group, places, style)
    _draw_legend(figure, panels[: len(groups)], style, known)
    if lines is not None:
        _bar(figure, panels, lines, f"time from the start [{unit[1]}]")
    if image is not None:
        cycle = ground.cycle if ground else None
        _bar(figure, panels, image, "height [m]" if cycle is None else f"height within {cycle:g} m [m]")
    if style.title:
        figure.suptitle(style.title, fontsize=11, color=INK, x=0.02, ha="left")
    return figure


def window_around(
    tracks: Sequence[Floats], places: Mapping[str, Floats], least: float
) -> tuple[Floats, Floats]:
    """Return the corners (2,) of a window whose shorter side is at least `least` times the longer."""
    every = np.concatenate([*tracks, *(np.reshape(place, (1, 2)) for place in places.values())])
    low, high = every.min(axis=0), every.max(axis=0)
    size = float(max((high - low).max(), 1e-3))
    around = np.maximum(0.12 * size, (least * size - (high - low)) / 2)
    return low - around, high + around


def _same_size(windows: Sequence[tuple[Floats, Floats]]) -> list[tuple[Floats, Floats]]:
    """Return windows with the same centres, all of the largest size, so that lengths are comparable."""
    half = np.max([(high - low) / 2 for low, high in windows], axis=0)
    return [((low + high) / 2 - half, (low + high) / 2 + half) for low, high in windows]


# Tracks


class _Pen(NamedTuple):
    """Colour and width in points of a line, and whether it has a white rim, for use on a map."""

    colour: str
    width: float
    cased: bool


def _draw_track(
    axes: Axes, track: PlottedTrack, pen: _Pen, style: TrackStyle, scale: tuple[float, float]
) -> Any:
    """Draw a track, its ends and its gaps; return a mappable for a colour bar, or None."""
    from matplotlib import patheffects

    case = patheffects.withStroke(linewidth=pen.width + 1.9, foreground="white")
    look: dict[str, Any] = {"path_effects": [case]} if pen.cased else {}
    gaps = track.gaps(style.gap)
    every = slice(None, None, max(1, len(track.points) // MAX_LINE_POINTS))
    lines = None
    for part in np.split(np.arange(len(track.points)), gaps):
        points = track.points[part][every]
        if style.colour == "time" and track.seconds is not None:
            lines = _draw_timed(axes, points, track.seconds[part][every] / scale[1], scale[0] / scale[1])
        else:
            axes.plot(
                *points.T, color=pen.colour, lw=pen.width, zorder=TRACK_ZORDER, solid_capstyle="round", **look
            )
    for gap in gaps:
        ends = track.points[gap - 1 : gap + 1].T
        axes.plot(*ends, color=INK, lw=1.1, ls=(0, (1, 1.6)), zorder=TRACK_ZORDER + 1)
    ink = INK if style.colour == "time" else pen.colour
    axes.plot(*track.points[:1].T, "o", mfc="white", mec=ink, mew=1.8, ms=6.5, zorder=TRACK_ZORDER + 3)
    axes.plot(*track.points[-1:].T, "s", mfc=ink, mec="white", mew=1.0, ms=6.5, zorder=TRACK_ZORDER + 2)
    _draw_direction(axes, track.points, ink)
    return lines


def _draw_timed(axes: Axes, points: Floats, values: Floats, latest: float) -> Any:
    from matplotlib.collections import LineCollection

    axes.plot(*points.T, color="white", lw=3.6, zorder=TRACK_ZORDER - 1, solid_capstyle="round")
    parts = np.stack([points[:-1], points[1:]], axis=1)
    lines = LineCollection(list(parts), cmap="viridis", linewidths=2.0, zorder=TRACK_ZORDER, capstyle="round")
    lines.set_array(values[1:])
    lines.set_clim(0.0, max(latest, 1e-9))
    axes.add_collection(lines)
    return lines


def _draw_direction(axes: Axes, points: Floats, colour: str) -> None:
    """Draw an arrow head in the direction of motion halfway along a track."""
    distance = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    if distance[-1] <= 0:
        return
    before, after = (int(np.searchsorted(distance, ratio * distance[-1])) for ratio in (0.49, 0.51))
    after = min(max(after, before + 1), len(points) - 1)
    if np.array_equal(points[before], points[after]):
        return
    head = {"arrowstyle": "-|>", "color": colour, "mutation_scale": 13, "lw": 0, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=points[after], xytext=points[before], arrowprops=head, zorder=TRACK_ZORDER + 2)


# Axes and labels


def frame_map(axes: Axes, window: tuple[Floats, Floats], style: TrackStyle) -> None:
    """Draw axes, a light grid, a scale bar, and an arrow to the north."""
    from matplotlib import patheffects

    low, high = window
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel(f"{style.names[0]} [m]", fontsize=9, color=INK)
    axes.set_ylabel(f"{style.names[1]} [m]", fontsize=9, color=INK)
    axes.tick_params(labelsize=8, colors=INK)
    axes.grid(color="#5a6570", alpha=0.15, lw=0.6)
    axes.spines[:].set_color("#b8c0c8")
    halo = [patheffects.withStroke(linewidth=2.5, foreground="white")]
    draw_scale(axes, window)
    if style.north:
        axes.annotate(
            "N", xy=(0.965, 0.975), xytext=(0.965, 0.885), xycoords="axes fraction", ha="center", va="center",
            fontsize=9, color=INK, path_effects=halo, zorder=TRACK_ZORDER + 5,
            arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.4, "shrinkA": 6, "shrinkB": 0},
        )  # fmt: skip


def draw_scale(axes: Axes, window: tuple[Floats, Floats]) -> None:
    """Draw a bar of a round length at the lower left of a window in metres."""
    from matplotlib import patheffects

    low, high = window
    halo = [patheffects.withStroke(linewidth=2.5, foreground="white")]
    length = _round_length(0.25 * float(high[0] - low[0]))
    left, bottom = low + 0.03 * (high - low)
    tall = 0.008 * float((high - low).max())
    bar = [left, left, left + length, left + length], [bottom + tall, bottom, bottom, bottom + tall]
    axes.plot(*bar, color=INK, lw=1.4, path_effects=halo, zorder=TRACK_ZORDER + 5, gid="scale bar")
    axes.annotate(
        _length_text(length), (left + length / 2, bottom), xytext=(0, 4), textcoords="offset points",
        ha="center", fontsize=8, color=INK, path_effects=halo, zorder=TRACK_ZORDER + 5,
    )  # fmt: skip


def _round_length(most: float) -> float:
    """Return the largest of ..., 1, 2, 5, 10, ... that is at most `most`."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(step * power for step in (1, 2, 5) if step * power <= most * (1 + 1e-9)))


def _length_text(metres: float) -> str:
    if metres >= 1000:
        return f"{metres / 1000:g} km"
    return f"{metres:g} m" if metres >= 1 else f"{100 * metres:g} cm"


def _write_names(
    figure: Figure,
    axes: Axes,
    tracks: Sequence[PlottedTrack],
    numbers: Sequence[int],
    places: Mapping[str, Floats],
    style: TrackStyle,
) -> None:
    """Label tracks and places."""
    from matplotlib import patheffects

    if style.panels:
        axes.set_title(tracks[0].name, fontsize=9, color=INK, loc="left")
        tracks, numbers = (), ()
    for place in places.values():
        axes.plot(
            *np.reshape(place, (2, 1)), "*", color=INK, mec="white", mew=0.8, ms=12, zorder=TRACK_ZORDER + 4
        )
    anchors = [track.points[_index_at(track.points, 0.3)] for track in tracks] + list(places.values())
    texts = [track.name for track in tracks] + list(places)
    if not texts:
        return
    inks = [INK if style.colour == "time" else COLOURS[k % len(COLOURS)] for k in numbers] + [INK] * len(
        places
    )
    figure.canvas.draw()  # sizes are known only after the layout
    pixel = axes.transData.transform
    box = axes.get_window_extent()
    dot = figure.dpi / 72
    sizes = np.array([[0.62 * 8.5 * dot * max(len(text), 2), 12 * dot] for text in texts])
    marks = np.concatenate(
        [pixel(track.points[:: max(1, len(track.points) // 400)]) for track in tracks] or [np.zeros((0, 2))]
    )
    centres = place_labels(pixel(np.array(anchors)), sizes, marks, (box.x0, box.y0, box.x1, box.y1))
    halo = [patheffects.withStroke(linewidth=2.8, foreground="white")]
    for text, centre, anchor, ink in zip(texts, centres, anchors, inks, strict=True):
        axes.annotate(
            text, anchor, xytext=tuple(axes.transData.inverted().transform(centre)), ha="center", va="center",
            fontsize=8.5, color=ink, fontweight="bold", path_effects=halo, zorder=TRACK_ZORDER + 6,
            arrowprops={"arrowstyle": "-", "color": ink, "lw": 0.7, "shrinkA": 0, "shrinkB": 1},
        )  # fmt: skip


def _index_at(points: Floats, ratio: float) -> int:
    """Return the index of the point at a fraction of the path length."""
    distance = np.cumsum(np.linalg.norm(np.diff(points, axis=0, prepend=points[:1]), axis=1))
    return min(int(np.searchsorted(distance, ratio * distance[-1])), len(points) - 1)


def _draw_legend(
    figure: Figure, panels: Sequence[Axes], style: TrackStyle, tracks: Sequence[PlottedTrack]
) -> None:
    """Draw the legend and the caption below the panels."""
    from matplotlib.lines import Line2D

    signs = [
        Line2D([], [], ls="", marker="o", mfc="white", mec=INK, mew=1.6, label="start"),
        Line2D([], [], ls="", marker="s", color=INK, label="end"),
    ]
    gaps = [
        float(t.seconds[g] - t.seconds[g - 1])
        for t in tracks
        if t.seconds is not None
        for g in t.gaps(style.gap)
    ]
    if gaps:
        count = "a gap" if len(gaps) == 1 else f"{len(gaps)} gaps, the longest"
        signs.append(
            Line2D([], [], color=INK, lw=1.1, ls=(0, (1, 1.6)), label=f"{count} of {max(gaps):.1f} s")
        )
    figure.legend(
        handles=signs, loc="outside lower right", ncols=3, frameon=False, fontsize=8, labelcolor=INK
    )
    if style.caption:
        figure.text(0.02, 0.008, style.caption, fontsize=7.5, color="#5a6570", va="bottom")


def _bar(figure: Figure, panels: Sequence[Axes], shown: Any, label: str) -> None:
    bar = figure.colorbar(shown, ax=list(panels), shrink=0.7, pad=0.015, aspect=30)
    bar.set_label(label, fontsize=8.5, color=INK)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(labelsize=8, colors=INK)
