"""Maps brought together: what was different before and after, and where a small one may lie in a large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats

from .clouds import SHOWN, Extent
from .evaluation import COLOURS, WIDTH, hillshade, name_ground, write_title
from .figures import fit_title, new_figure
from .timeline import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = 4.0
"""Inches of height."""


def alignment_figure(
    before: Floats, after: Floats, reference: Floats, extent: Extent, *, titles: Sequence[str] = ("", "")
) -> Figure:
    """Draw differences of a map from its reference, where it was and where it was laid.

    Parameters
    ----------
    before, after, reference : (rows, cols)
        Metres, first row northmost: map minus reference, NaN where one is not known; the reference's
        heights.
    extent : (4,)
        West, east, south, north in metres.
    titles : (2,) of str
    """
    figure = new_figure(1.5 * WIDTH, PANEL)
    panels = figure.subplots(1, 2, sharey=True)
    for axis, difference, title in zip(panels, (before, after), titles, strict=True):
        _draw_ground(axis, reference, extent)
        _draw_difference(axis, difference, extent)
        write_title(axis, title)
        name_ground(axis, "x", "y")
    panels[1].set_ylabel("")
    return figure


def _draw_difference(axis: Axes, difference: Floats, extent: Extent) -> None:
    size = np.abs(difference[np.isfinite(difference)])
    span = max(float(np.percentile(size, SHOWN)) if len(size) else 0.0, 1e-6)
    drawn = axis.imshow(
        difference, extent=extent, cmap="RdBu_r", vmin=-span, vmax=span, interpolation="nearest",
        aspect="equal",
    )  # fmt: skip
    bar = axis.figure.colorbar(drawn, ax=axis, shrink=0.85, pad=0.02)
    bar.set_label("too low  |  too high [m]", fontsize=9)
    bar.ax.tick_params(labelsize=8)


@dataclass(frozen=True, eq=False)
class Outline:
    """Where a map may lie: its corners (n, 2) in metres, and the probability of that."""

    corners: Floats
    probability: float


def localisation_figure(
    reference: Floats, extent: Extent, outlines: Sequence[Outline], *, title: str = ""
) -> Figure:
    """Draw the places where a small map may lie over a large one.

    Parameters
    ----------
    reference : (rows, cols)
        Heights in metres, first row northmost.
    extent : (4,)
        West, east, south, north in metres.
    outlines : sequence of Outline
        Most probable first.
    """
    figure = new_figure(WIDTH, 0.9 * WIDTH)
    axis = figure.subplots()
    _draw_ground(axis, reference, extent)
    for k, each in enumerate(outlines):
        closed = np.vstack([each.corners, each.corners[:1]])
        colour = COLOURS[k % len(COLOURS)]
        label = f"{k + 1}: {each.probability:.1%}"
        axis.plot(*closed.T, color=colour, lw=2.0 if k == 0 else 1.2, label=label)
    axis.legend(fontsize=8, frameon=True, title="probability", title_fontsize=8, loc="upper right")
    name_ground(axis, "x", "y")
    fit_title(title, WIDTH).write(figure, INK)
    return figure


def _draw_ground(axis: Axes, reference: Floats, extent: Extent) -> None:
    axis.imshow(hillshade(reference), extent=extent, cmap="gray", vmin=-0.6, vmax=1.1, aspect="equal")
    axis.grid(visible=False)
    axis.tick_params(labelsize=8)
