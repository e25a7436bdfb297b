"""Height maps of an evaluation: where a map is too high, where too low, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .evaluation import WIDTH, hillshade, measured, titled
from .figures import new_figure
from .timeline import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.floating]
Extent = tuple[float, float, float, float]
SHOWN = 98
"""Per cent of the differences that the colours span."""
BINS = 81


def map_figure(difference: Floats, reference: Floats, extent: Extent, *, title: str = "") -> Figure:
    """Draw the differences of a map over its reference, and how they are spread.

    Parameters
    ----------
    difference, reference : (rows, cols)
        Metres, first row northmost: estimate minus reference, NaN where one is not known, and the heights of
        the reference.
    extent : (4,)
        West, east, south, north in metres.
    """
    figure = new_figure(WIDTH, 4.4)
    ground, spread = figure.subplots(1, 2, width_ratios=(2.4, 1))
    known = difference[np.isfinite(difference)]
    span = max(float(np.percentile(np.abs(known), SHOWN)), 1e-6)
    _draw_ground(ground, difference, reference, extent, span)
    titled(ground, title)
    _draw_spread(spread, known, span)
    return figure


def _draw_ground(axis: Axes, difference: Floats, reference: Floats, extent: Extent, span: float) -> None:
    axis.imshow(hillshade(reference), extent=extent, cmap="gray", vmin=-0.6, vmax=1.1)
    drawn = axis.imshow(
        difference, extent=extent, cmap="RdBu_r", vmin=-span, vmax=span,
        interpolation="nearest",
    )  # fmt: skip
    bar = axis.figure.colorbar(drawn, ax=axis, shrink=0.85, pad=0.02)
    bar.set_label("too low  |  too high [m]", fontsize=9, color=INK)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(labelsize=8)
    axis.set_ylabel("y [m]", fontsize=9, color=INK)
    measured(axis, "x [m]")
    axis.grid(visible=False)


def _draw_spread(axis: Axes, known: Floats, span: float) -> None:
    axis.hist(known, bins=list(np.linspace(-2 * span, 2 * span, BINS)), color="#5a6570")
    axis.axvline(0, color=INK, lw=0.8)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    measured(axis, "difference [m]")
    titled(axis, f"{len(known)} cells")
