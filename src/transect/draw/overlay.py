"""Overlays on a camera image: points of other sensors coloured by depth, frames with axes, known shapes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats

from .figures import INK, QUIET, draw_labels, figure_class
from .frames import AXIS_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure


SOFT = "#5c6873"
OUTLINES = ("#c026d3", "#0e7490", "#b45309", "#4d7c0f")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True)
class _OverlayLayout:
    """Sizes in inches."""

    image: float = 10.5  # longer side
    bar: float = 0.95  # colour bar with tick labels
    margin: float = 0.35
    line: float = 0.2  # of the legend and of notes
    letters_per_inch: int = 15  # of notes


LAYOUT = _OverlayLayout()


@dataclass(frozen=True, eq=False)
class Dots:
    """The points of one sensor that are in the image."""

    name: str
    pixels: Floats  # (n, 2) those inside the image; the centre of the first pixel is (0, 0)
    depth: Floats  # (n,) metres along the optical axis
    total: int  # number of points, in view or not
    dt: float | None = None  # seconds by which the sample is later than the image


@dataclass(frozen=True, eq=False)
class Triad:
    """A frame in the image: its origin (2,), and its x, y and z axis as lines (k, 2); NaN out of view."""

    name: str
    origin: Floats
    axes: tuple[Floats, Floats, Floats]


@dataclass(frozen=True, eq=False)
class ObjectOutline:
    """A known shape in the image: its edges as lines (n, k, 2), and the age of its pose in s."""

    name: str
    lines: Floats
    dt: float | None = None


def overlay_figure(
    image: NDArray[Any],
    dots: Sequence[Dots],
    triads: Sequence[Triad] = (),
    outlines: Sequence[ObjectOutline] = (),
    *,
    title: str = "",
    notes: Sequence[str] = (),
) -> Figure:
    """Draw the points of other sensors, frames and known shapes into an image.

    Parameters
    ----------
    image : (h, w, 3) uint8 array
    dots : sequence of Dots
        One for each sensor; each gets a line in the legend, also with nothing in view.
    triads : sequence of Triad
    outlines : sequence of Outline
        Each gets a line in the legend.
    title : str
    notes : sequence of str
        Explanations below the picture.

    Returns
    -------
    matplotlib Figure with an Agg canvas, ready for ``savefig``.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    wide, high = _inches(image)
    lines = [
        line
        for note in notes
        for line in textwrap.wrap(note, int(LAYOUT.letters_per_inch * (wide + LAYOUT.bar)))
    ]
    below = LAYOUT.line * (len(dots) + len(outlines)) + LAYOUT.line * len(lines) + 1.4 * LAYOUT.margin
    width, height = wide + LAYOUT.bar + 2 * LAYOUT.margin, high + below + 1.6 * LAYOUT.margin
    figure = figure_class()(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    ax = figure.add_axes((LAYOUT.margin / width, below / height, wide / width, high / height))
    _show(ax, image)
    scale = _depth_scale(dots)
    for k, each in enumerate(dots):
        _draw_dots(ax, each, MARKERS[k % len(MARKERS)], scale)
    for k, outline in enumerate(outlines):
        _draw_outline(ax, outline, OUTLINES[k % len(OUTLINES)])
    _draw_triads(figure, ax, triads, dots)
    if any(len(each.depth) for each in dots):
        place = ((LAYOUT.margin + wide + 0.12) / width, below / height, 0.16 / width, high / height)
        _draw_bar(figure, place, scale)
    _write_legend(figure, dots, outlines, LAYOUT.margin / width, (below - 0.5 * LAYOUT.margin) / height)
    for k, line in enumerate(reversed(lines)):
        y = (0.4 * LAYOUT.margin + LAYOUT.line * (k + 0.5)) / height
        figure.text(LAYOUT.margin / width, y, line, va="center", fontsize=8.5, color=SOFT)
    top = 1 - 0.8 * LAYOUT.margin / height
    figure.text(LAYOUT.margin / width, top, title, va="center", fontsize=12.5, color=INK, weight="bold")
    return figure


def _inches(image: NDArray[Any]) -> tuple[float, float]:
    """Return width and height of the image on paper; its longer side has a fixed length."""
    h, w = image.shape[:2]
    return (LAYOUT.image, LAYOUT.image * h / w) if w >= h else (LAYOUT.image * w / h, LAYOUT.image)


def _show(ax: Axes, image: NDArray[Any]) -> None:
    h, w = image.shape[:2]
    ax.imshow(image, interpolation="nearest" if w < 320 else "antialiased")
    ax.set(xlim=(-0.5, w - 0.5), ylim=(h - 0.5, -0.5), xticks=(), yticks=())
    for side in ax.spines.values():
        side.set_edgecolor(QUIET)


# Points


def _colours() -> Colormap:
    """Return near red to far blue, without the dark ends of turbo, which are invisible in a dark image."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["turbo"](np.linspace(0.93, 0.1, 256)), "depth")


def _depth_scale(dots: Sequence[Dots]) -> Normalize:
    """Return a logarithmic colour scale of depth between its 1st and 99th percentile."""
    from matplotlib.colors import LogNorm

    depth = np.concatenate([each.depth for each in dots]) if dots else np.zeros(0)
    low, high = np.percentile(depth[depth > 0], (1, 99)) if (depth > 0).any() else (1.0, 10.0)
    return LogNorm(low, max(high, low * 1.5), clip=True)


def _draw_dots(ax: Axes, dots: Dots, marker: str, scale: Normalize) -> None:
    """Draw far points first, so that near ones are on top; few points are drawn larger than many."""
    order = np.argsort(-dots.depth, kind="stable")
    area = float(np.clip(9000.0 / max(len(order), 1), 2.2, 30.0))
    rim: dict[str, Any] = {"edgecolors": "black", "linewidths": 0.4} if area > 8 else {"linewidths": 0}
    x, y = dots.pixels[order].T
    ax.scatter(x, y, s=area, c=dots.depth[order], cmap=_colours(), norm=scale, marker=marker, zorder=3, **rim)


def _draw_bar(figure: Figure, place: tuple[float, float, float, float], scale: Normalize) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    bar = figure.colorbar(ScalarMappable(scale, _colours()), cax=figure.add_axes(place))
    bar.set_label("depth [m]", fontsize=9, color=INK)
    bar.ax.yaxis.set_major_locator(LogLocator(10, (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.ax.tick_params(labelsize=8.5, colors=INK)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def _draw_outline(ax: Axes, outline: ObjectOutline, colour: str) -> None:
    for line in outline.lines:
        ax.plot(*line.T, color="white", lw=3.4, solid_capstyle="round", alpha=0.7, zorder=4)
        ax.plot(*line.T, color=colour, lw=1.8, solid_capstyle="round", zorder=5)


def _write_legend(
    figure: Figure, dots: Sequence[Dots], outlines: Sequence[ObjectOutline], left: float, top: float
) -> None:
    """Write one line for each sensor and shape: its name, points in view, and time difference."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            ls="",
            marker=MARKERS[k % len(MARKERS)],
            ms=6,
            mfc="white",
            mec=INK,
            label=f"{each.name}:  {len(each.depth):,} of {each.total:,} points in view{_late(each.dt)}",
        )
        for k, each in enumerate(dots)
    ]
    handles += [
        Line2D([], [], color=OUTLINES[k % len(OUTLINES)], lw=1.8, label=f"{each.name}{_late(each.dt)}")
        for k, each in enumerate(outlines)
    ]
    if handles:
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(left, top),
            borderaxespad=0.0,
            borderpad=0.0,
            handletextpad=0.3,
            frameon=False,
            fontsize=9.5,
            labelcolor=INK,
        )


def _late(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f",  ΔT {seconds * 1e3:+.1f} ms".replace("-", "\N{MINUS SIGN}")


# Frames


def _draw_triads(figure: Figure, ax: Axes, triads: Sequence[Triad], dots: Sequence[Dots]) -> None:
    if not triads:
        return
    for triad in triads:
        for line, colour in zip(triad.axes, AXIS_COLOURS, strict=True):
            ax.plot(*line.T, color="white", lw=4.2, solid_capstyle="round", alpha=0.7, zorder=4)
            ax.plot(*line.T, color=colour, lw=2.4, solid_capstyle="round", zorder=5)
        ax.plot(*triad.origin, "o", color="white", mec=INK, mew=0.8, ms=4.5, zorder=6)
    figure.draw_without_rendering()
    _draw_names(figure, ax, triads, dots)


def _draw_names(figure: Figure, ax: Axes, triads: Sequence[Triad], dots: Sequence[Dots]) -> None:
    def on_paper(pixels: Floats) -> Floats:
        return np.asarray(ax.transData.transform(pixels), dtype=np.float64) * 72 / figure.dpi

    anchors = on_paper(np.stack([triad.origin for triad in triads]))
    # Labels avoid sparse points; a dense cloud stays readable below them.
    sparse = [on_paper(each.pixels) for each in dots if 0 < len(each.depth) < 500]
    lines = [on_paper(line) for triad in triads for line in triad.axes]
    box = ax.get_window_extent()
    left, bottom, right, top = (float(v) * 72 / figure.dpi for v in (box.x0, box.y0, box.x1, box.y1))
    draw_labels(
        ax,
        [triad.name for triad in triads],
        anchors,
        np.concatenate([*lines, *sparse]),
        (left, bottom, right, top),
        margin=4,
        fontsize=9,
        color=INK,
        zorder=8,
        arrowprops={"arrowstyle": "-", "color": "white", "lw": 1.0, "shrinkA": 0, "shrinkB": 3},
        bbox={"boxstyle": "round,pad=0.18", "fc": "white", "ec": "none", "alpha": 0.85},
    )
