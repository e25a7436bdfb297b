"""Everything that sensors saw at one time or for a while, side by side: images, points, ranges, spectra."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..figures import INK, QUIET, new_figure
from ..overlay import SOFT
from .panels import HEIGHT, WIDTH, Field, Graph, Limits, Panel, Points, Together
from .scans import OverTime, Photo, Ranges, Rows, Spectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Field", "Graph", "Limits", "OverTime", "Panel", "Photo", "Points", "Ranges", "Rows", "Spectrum",
    "Together", "moment_figure",
]  # fmt: skip

HEAD = 0.45
"""Height of a line of the title above all panels, inches."""
LETTERS, SMALL_LETTERS = 9, 14
"""Letters of the title, and of the caption, to an inch."""
SMALL_LINE = 0.17
"""Height of a line of the caption, inches."""
COLUMNS = 4


def moment_figure(
    panels: Sequence[Panel],
    title: str = "",
    columns: int | None = None,
    limits: Limits | None = None,
    caption: str = "",
) -> Figure:
    """Draw what sensors saw.

    Parameters
    ----------
    panels : sequence of Photo, Points, Spectrum, ...
        Left to right, then down.
    title : str
    columns : int or None
        Number of panels side by side; by default at most four, and all rows as equal as possible.
    limits : Limits
        How far points and ranges are drawn.
    caption : str
        Sentences below all panels.

    Returns
    -------
    matplotlib Figure
    """
    high = max(1, -(-len(panels) // (columns or COLUMNS)))
    wide = columns or max(1, -(-len(panels) // high))
    rows = [panels[k : k + wide] for k in range(0, len(panels), wide)] or [[]]
    limits = limits or Limits()
    heights = [max((panel.height(limits) for panel in row), default=HEIGHT) for row in rows]
    lines = textwrap.wrap(title, int(LETTERS * WIDTH * wide))
    below = textwrap.wrap(caption, int(SMALL_LETTERS * WIDTH * wide))
    figure = new_figure(WIDTH * wide, sum(heights) + HEAD * max(1, len(lines)) + SMALL_LINE * len(below))
    if below:
        figure.supxlabel("\n".join(below), x=0.01, ha="left", fontsize=9.5, color=INK)
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=12.5, color=INK, weight="bold")
    grid = figure.add_gridspec(len(rows), wide, height_ratios=heights)
    for k, panel in enumerate(panels):
        ax = figure.add_subplot(grid[k // wide, k % wide])
        panel.draw(ax, limits)
        ax.tick_params(labelsize=8, colors=SOFT, length=2)
        ax.spines[:].set_edgecolor(QUIET)
        ax.set_title(f"{panel.name}{_late(panel.dt)}", fontsize=10, color=INK, loc="left")
    return figure


def _late(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f",  ΔT {round(seconds * 1e3):+d} ms".replace("-", "\N{MINUS SIGN}")
