"""What panels have in common: names of axes, colour bars, and names of what is known to be there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..frames import INK
from ..labels import place_names
from ..overlay import SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

THING = "#d07a00"
LETTER, LINE = 0.066, 0.15
"""Inches that a letter of a name is wide, and a name is high."""


def name_axes(ax: Axes, across: str, up: str) -> None:
    """Write what axes tell, with units."""
    ax.set_xlabel(across, fontsize=8.5, color=INK)
    ax.set_ylabel(up, fontsize=8.5, color=INK)


def draw_grid(ax: Axes) -> None:
    """Draw a light grid below everything."""
    ax.grid(color="#e8ecef", lw=0.6)
    ax.set_axisbelow(True)


def draw_legend(ax: Axes, names: int) -> None:
    """Write names of curves beside the title, where they hide nothing."""
    ax.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 0.98),
        ncols=names,
        fontsize=8,
        labelcolor=INK,
        frameon=False,
        columnspacing=1.0,
    )


def draw_bar(ax: Axes, marks: ScalarMappable, label: str) -> None:
    """Draw a colour bar beside axes, with plain numbers also where it is logarithmic."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    bar = ax.figure.colorbar(marks, ax=ax, shrink=0.8, pad=0.02)
    bar.set_label(label, fontsize=8.5, color=INK)
    if isinstance(bar.ax.yaxis.get_major_locator(), LogLocator):
        bar.ax.yaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.ax.tick_params(labelsize=8, colors=SOFT)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def draw_things(
    ax: Axes,
    things: Sequence[tuple[str, float, float]],
    marks: NDArray[np.float64],
    inches: tuple[float, float],
) -> None:
    """Draw crosses with names, where names hide neither each other nor marks.

    Parameters
    ----------
    ax : Axes
        Its limits are set already.
    things : sequence of (name, x, y)
        As on the axes; those outside are left out.
    marks : (n, 2) array
        What should stay visible.
    inches : (width, height)
        Size of the axes on paper, about.
    """
    low, high = np.sort([ax.get_xlim(), ax.get_ylim()], axis=1).T
    scale = np.asarray(inches) / (high - low)
    known = [(name, x, y) for name, x, y in things if (low < (x, y)).all() and ((x, y) < high).all()]
    if not known:
        return
    anchors = np.array([(x, y) for _, x, y in known])
    inside = marks[((low < marks) & (marks < high)).all(axis=1)]
    sizes = np.array([(LETTER * len(name), LINE) for name, _, _ in known])
    bounds = (*(low * scale).tolist(), *(high * scale).tolist())
    centres = place_names(anchors * scale, sizes, inside * scale, bounds) / scale
    ax.plot(*anchors.T, "+", ms=8, mew=1.1, color=THING, zorder=6)
    for (name, *anchor), (x, y) in zip(known, centres.tolist(), strict=True):
        ax.annotate(
            name,
            xy=(anchor[0], anchor[1]),
            xytext=(x, y),
            ha="center",
            va="center",
            fontsize=8,
            color=INK,
            zorder=7,
            bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8},
            arrowprops={"arrowstyle": "-", "color": THING, "lw": 0.5, "shrinkA": 0, "shrinkB": 3},
        )
