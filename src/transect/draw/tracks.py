"""Tracks from above, over the ground if that is known: Figure 8 of the CDFF paper (document 003)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats

from .figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#1a9641", "#d7191c", "#2b5cb8", "#e08214")
"""Green and red first, as in the paper: odometry, then what it is held against."""
MARGIN = 0.15
"""Of the tracks' size, left free around them."""


@dataclass(frozen=True, eq=False)
class Ground:
    """Heights of the ground.

    Attributes
    ----------
    heights : (rows, columns) array
        Metres, the first row in the north.
    west, north : float
        Of the corner of the first cell, metres.
    cell : float
        Its size, metres.
    cycle : float
        Metres of height after which the colours repeat.
    """

    heights: Floats
    west: float
    north: float
    cell: float
    cycle: float = 1.0

    def cut(self, low: Floats, high: Floats) -> Ground:
        """Return the part between two corners (2,), x east and y north."""
        rows, columns = self.heights.shape
        left, right = np.clip((np.array([low[0], high[0]]) - self.west) / self.cell, 0, columns).astype(int)
        top, bottom = np.clip((self.north - np.array([high[1], low[1]])) / self.cell, 0, rows).astype(int)
        part = self.heights[top : bottom + 1, left : right + 1]
        corner = self.west + left * self.cell, self.north - top * self.cell
        return Ground(part, *corner, self.cell, self.cycle)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """West, east, south and north edges, metres."""
        rows, columns = self.heights.shape
        east, south = self.west + columns * self.cell, self.north - rows * self.cell
        return self.west, east, south, self.north


def tracks_figure(
    tracks: Mapping[str, ArrayLike],
    ground: Ground | None = None,
    title: str = "",
    axes_names: tuple[str, str] = ("east", "north"),
    margin: float = 1.0,
) -> Figure:
    """Draw tracks from above; a dot is where each ends.

    Parameters
    ----------
    tracks : mapping of str to (n, 2) or (n, 3) array
        By name, metres.
    ground : Ground, optional
        Under them, in the same axes.
    axes_names : (str, str)
        What x and y are.
    margin : float
        Metres that are at least shown around the tracks.
    """
    points = {name: np.asarray(track, dtype=np.float64)[:, :2] for name, track in tracks.items()}
    low, high = _window(list(points.values()), margin)
    shape = float(np.clip((high[1] - low[1]) / (high[0] - low[0]), 0.4, 1.2))
    figure = new_figure(7.0, 6.0 * shape + 0.8)
    axes = figure.subplots()
    if ground is not None:
        _draw_ground(figure, axes, ground.cut(low, high))
    for (name, track), colour in zip(points.items(), _colours(len(points)), strict=True):
        _draw_track(axes, track, name, colour)
    x, y = (f"{name} (m)" for name in axes_names)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel=x, ylabel=y)
    axes.set_aspect("equal")
    axes.set_title(title, fontsize=10)
    axes.legend(loc="best", fontsize=9, framealpha=0.9)
    return figure


def _window(tracks: Sequence[Floats], margin: float) -> tuple[Floats, Floats]:
    """Return the corners (2,) of what is shown."""
    every = np.concatenate(tracks)
    low, high = np.nanmin(every, axis=0), np.nanmax(every, axis=0)
    around = max(margin, MARGIN * float(np.max(high - low)))
    return low - around, high + around


def _colours(number: int) -> list[str]:
    return [COLOURS[k % len(COLOURS)] for k in range(number)]


def _draw_ground(figure: Figure, axes: Axes, ground: Ground) -> None:
    """Colour heights in cycles, pale, so that tracks stand out."""
    phase = np.mod(ground.heights, ground.cycle)
    image = axes.imshow(
        phase, extent=ground.extent, cmap="hsv", vmin=0.0, vmax=ground.cycle, alpha=0.45, interpolation="none"
    )
    bar = figure.colorbar(image, ax=axes, shrink=0.6)
    bar.set_label(f"height within {ground.cycle:g} m (m)", fontsize=8)


def _draw_track(axes: Axes, track: Floats, name: str, colour: str) -> None:
    from matplotlib import patheffects

    cased = [patheffects.withStroke(linewidth=4.0, foreground="white")]
    axes.plot(*track.T, color=colour, linewidth=1.8, label=name, path_effects=cased)
    known = track[np.isfinite(track).all(axis=1)]
    axes.plot(*known[-1:].T, "o", color=colour, markeredgecolor="white", markersize=7)
