"""Everything that sensors saw at one time or for a while, side by side: images, points, ranges, spectra."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..figures import new_figure
from ..frames import INK, QUIET
from ..overlay import SOFT
from .panels import (
    Field,
    Graph,
    Limits,
    OverTime,
    Panel,
    Photo,
    Points,
    Ranges,
    Rows,
    Spectrum,
    Together,
)  # fmt: skip
from .points import draw_points, draw_together, shape
from .ranges import draw_ranges, draw_spectrum
from .time import draw_field, draw_graph, draw_over_time, draw_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Field", "Graph", "Limits", "OverTime", "Panel", "Photo", "Points", "Ranges", "Rows", "Spectrum",
    "Together", "draw_panel", "moment_figure",
]  # fmt: skip

WIDTH, HEIGHT, LOW, TITLE, HEAD = 4.4, 3.7, 2.7, 0.4, 0.45
"""Inches of a panel, of one that may be low, of the title above each, and of the one above all."""
LETTERS = 9
"""Letters of the title to an inch."""
COLUMNS = 4


def moment_figure(
    panels: Sequence[Panel], title: str = "", columns: int | None = None, limits: Limits | None = None
) -> Figure:
    """Draw what sensors saw.

    Parameters
    ----------
    panels : sequence of Photo, Points, Spectrum, ...
        Left to right, then down.
    title : str
    columns : int or None
        So many panels side by side; by default at most four, as even as can be.
    limits : Limits
        How far points and ranges are drawn.

    Returns
    -------
    matplotlib Figure
    """
    high = max(1, -(-len(panels) // (columns or COLUMNS)))
    wide = columns or max(1, -(-len(panels) // high))
    rows = [panels[k : k + wide] for k in range(0, len(panels), wide)] or [[]]
    limits = limits or Limits()
    heights = [max((_height(panel, limits) for panel in row), default=HEIGHT) for row in rows]
    lines = textwrap.wrap(title, int(LETTERS * WIDTH * wide))
    figure = new_figure(WIDTH * wide, sum(heights) + HEAD * max(1, len(lines)))
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=12.5, color=INK, weight="bold")
    grid = figure.add_gridspec(len(rows), wide, height_ratios=heights)
    for k, panel in enumerate(panels):
        ax = figure.add_subplot(grid[k // wide, k % wide])
        draw_panel(ax, panel, limits)
        ax.set_title(f"{panel.name}{_late(panel.dt)}", fontsize=10, color=INK, loc="left")
    return figure


def draw_panel(ax: Axes, panel: Panel, limits: Limits) -> None:
    """Draw what one sensor saw into axes of your own figure."""
    _DRAWERS[type(panel)](ax, panel, limits)
    ax.tick_params(labelsize=8, colors=SOFT, length=2)
    for side in ax.spines.values():
        side.set_edgecolor(QUIET)


def _height(panel: Panel, limits: Limits) -> float:
    """Return the inches that a panel needs: an image has a shape of its own."""
    match panel:
        case Photo():
            h, w = panel.rgb.shape[:2]
            return min(HEIGHT, WIDTH * h / w + TITLE)
        case Field(extent=None):
            h, w = panel.values.shape
            return min(HEIGHT, 0.85 * WIDTH * h / w + TITLE)
        case Points():
            return min(HEIGHT, 0.85 * WIDTH * shape(panel, limits) + 2 * TITLE)
        case Together():
            return min(1.5 * HEIGHT, 0.85 * WIDTH * shape(panel.parts[0], limits) + 2 * TITLE)
        case Ranges() | Rows() | OverTime() | Graph():
            return LOW
        case _:
            return HEIGHT


def _late(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f",  ΔT {round(seconds * 1e3):+d} ms".replace("-", "\N{MINUS SIGN}")


def _draw_photo(ax: Axes, photo: Photo, _: Limits) -> None:
    ax.imshow(photo.rgb, interpolation="antialiased")
    if photo.row is not None:
        ax.axhline(photo.row, color="black", lw=1.2)
    ax.set(xticks=(), yticks=())


_DRAWERS: dict[type, Callable[[Axes, Any, Limits], None]] = {
    Photo: _draw_photo,
    Points: draw_points,
    Together: draw_together,
    Ranges: draw_ranges,
    Spectrum: draw_spectrum,
    Rows: draw_rows,
    OverTime: draw_over_time,
    Graph: draw_graph,
    Field: draw_field,
}
