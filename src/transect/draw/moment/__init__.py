"""The data of all sensors at one time or over an interval, side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..figures import INK, QUIET, new_figure
from ..overlay import SOFT
from .panels import PANEL, CombinedPointPanel, CurvePanel, FieldPanel, Panel, PointPanel, ViewLimits
from .scans import ImagePanel, PixelRowPanel, RangePanel, SpectrumPanel, WaterfallPanel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "CombinedPointPanel",
    "CurvePanel",
    "FieldPanel",
    "ImagePanel",
    "Panel",
    "PixelRowPanel",
    "PointPanel",
    "RangePanel",
    "SpectrumPanel",
    "ViewLimits",
    "WaterfallPanel",
    "moment_figure",
]


def moment_figure(
    panels: Sequence[Panel],
    title: str = "",
    columns: int | None = None,
    limits: ViewLimits | None = None,
    caption: str = "",
) -> Figure:
    """Draw one panel for each sensor.

    Parameters
    ----------
    panels : sequence of Panel
        Left to right, then down.
    title : str
    columns : int or None
        Number of panels side by side; by default at most four, in rows of similar length.
    limits : Limits
        The sector and range that are drawn.
    caption : str
        Text below all panels.

    Returns
    -------
    matplotlib Figure
    """
    high = max(1, -(-len(panels) // (columns or 4)))
    wide = columns or max(1, -(-len(panels) // high))
    rows = [panels[k : k + wide] for k in range(0, len(panels), wide)] or [[]]
    limits = limits or ViewLimits()
    heights = [max((panel.height(limits) for panel in row), default=PANEL.height) for row in rows]
    lines = textwrap.wrap(title, int(9 * PANEL.width * wide))  # letters per inch
    below = textwrap.wrap(caption, int(14 * PANEL.width * wide))
    figure = new_figure(PANEL.width * wide, sum(heights) + 0.45 * max(1, len(lines)) + 0.17 * len(below))
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
