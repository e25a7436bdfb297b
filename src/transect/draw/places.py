"""A map of places from above: where it was driven, what was seen, and the loops between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints

from .evaluation import WIDTH, name_axis, write_title
from .figures import new_figure
from .frames import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SESSIONS = ("#1f6fb2", "#c2571a", "#2e8b57", "#8a4fa3", "#b0872c")
LOOP, DOUBTED = "#1a9850", "#d73027"
MOST_POINTS = 300_000


@dataclass(frozen=True, eq=False)
class Drawn:
    """What is drawn of a map.

    Attributes
    ----------
    way : (n, 2)
        Keyframes, m.
    session : (n,)
    loops, doubted : (m, 2) int
        Pairs of keyframes.
    points : (k, 2)
        What was seen, m; may be empty.
    image : (rows, cols) uint8 or None
        An occupancy grid in gray, in place of the points.
    extent : (4,)
        Of the image: left, right, bottom, top.
    """

    way: Floats
    session: Ints
    loops: Ints
    doubted: Ints
    points: Floats
    image: NDArray[np.uint8] | None = None
    extent: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0)


def draw_places(panels: Sequence[tuple[str, Drawn]]) -> Figure:
    """Draw maps side by side, each with its title."""
    shapes = [_shape(drawn) for _, drawn in panels]
    width = WIDTH if len(panels) == 1 else 1.4 * WIDTH
    height = max(min(width / len(panels) * max(shapes), 1.6 * width), 2.5) + 0.9
    figure = new_figure(width, height)
    for number, (title, drawn) in enumerate(panels, 1):
        axes = figure.add_subplot(1, len(panels), number)
        _draw(axes, drawn)
        write_title(axes, title)
    return figure


def _shape(drawn: Drawn) -> float:
    every = np.concatenate([drawn.way, drawn.points]) if len(drawn.points) else drawn.way
    across, up = np.ptp(every, axis=0)
    return float(np.clip(up / max(across, 1e-3), 0.3, 1.6))


def _draw(axes: Axes, drawn: Drawn) -> None:
    from matplotlib.collections import LineCollection

    if drawn.image is not None:
        shown: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 255, "interpolation": "nearest"}
        axes.imshow(drawn.image, extent=drawn.extent, **shown)
    elif len(drawn.points):
        every = drawn.points[:: max(len(drawn.points) // MOST_POINTS, 1)]
        axes.scatter(*every.T, s=0.3, c=INK, linewidths=0)
    for pairs, colour in ((drawn.loops, LOOP), (drawn.doubted, DOUBTED)):
        axes.add_collection(LineCollection(list(drawn.way[pairs]), colors=colour, linewidths=0.7, zorder=3))
    for number, session in enumerate(sorted(set(drawn.session.tolist()))):
        part = drawn.way[drawn.session == session]
        axes.plot(*part.T, color=SESSIONS[number % len(SESSIONS)], lw=1.0, zorder=2)
    axes.set_aspect("equal")
    name_axis(axes, "x [m]")
    axes.set_ylabel("y [m]", fontsize=9, color=INK)
