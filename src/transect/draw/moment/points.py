"""Points of scans and clouds, from above or from the side, alone or together with named things."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats

from ..frames import INK
from .panels import Limits, Points, Together
from .parts import draw_bar, draw_grid, draw_things, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


HITS, ROBOT = "#2f6fb3", "#d1495b"
LAYERS = (("#9aa5b1", 4.0), ("#2f6fb3", 26.0), ("#3a9d5d", 7.0), ("#8a4fbf", 4.0))
"""Colour and size of each sensor's points where several are drawn: the small ones on top of the large."""
WIDE = 3.7
"""About the width of the axes, inches."""
FEW = 2000
"""Points up to which each is drawn as a dot that can be seen by itself."""


def draw_points(ax: Axes, seen: Points, limits: Limits) -> None:
    """Draw points of one sensor; those that are higher, or nearer to the eye, lie on top."""
    there = _there(seen)
    across, up = _on_paper(there, seen.side)
    area = 5.0 if len(there) <= FEW else 0.6
    if seen.by_height and len(there):
        low, high = np.percentile(there[:, 2], (1, 99))
        marks = ax.scatter(
            across, up, s=area, c=there[:, 2], cmap="viridis", vmin=low, vmax=high, linewidths=0
        )
        draw_bar(ax, marks, "height / m")
    else:
        ax.scatter(across, up, s=area, c=HITS, linewidths=0)
    _draw_axes(ax, there, seen, limits)


def draw_together(ax: Axes, seen: Together, limits: Limits) -> None:
    """Draw points of several sensors in colours of their own, and crosses where things are."""
    first = seen.parts[0]
    for part, (colour, area) in zip(seen.parts, LAYERS * len(seen.parts), strict=False):
        across, up = _on_paper(_there(part), first.side)
        ax.scatter(across, up, s=area, c=colour, linewidths=0, label=part.name)
    ax.legend(loc="lower left", fontsize=8, labelcolor=INK, framealpha=0.9, edgecolor="none", markerscale=1.4)
    everything = np.concatenate([_there(part) for part in seen.parts])
    _draw_axes(ax, everything, first, limits)
    things = [(name, *_on_paper(place[None], first.side)) for name, place in seen.things]
    named = [(name, float(x[0]), float(y[0])) for name, x, y in things]
    inches = (WIDE, WIDE * shape(first, limits))
    draw_things(ax, named, np.column_stack(_on_paper(everything, first.side)), inches)


def _there(seen: Points) -> Floats:
    there = seen.points[np.isfinite(seen.points).all(axis=1)]
    return there[np.argsort(-there[:, 1] if seen.side else there[:, 2], kind="stable")]


def _on_paper(points: Floats, side: bool) -> tuple[Floats, Floats]:
    """Return where points are across and up: forward to the right from the side, forward up from above."""
    return (points[:, 0], points[:, 2]) if side else (points[:, 1], points[:, 0])


def _draw_axes(ax: Axes, there: Floats, seen: Points, limits: Limits) -> None:
    across, up = _window(there, seen.side, limits)
    ax.set_xlim(*across)
    ax.set_ylim(*up)
    ax.plot(0, 0, marker=">" if seen.side else "^", color=ROBOT, ms=7, mec="white", mew=0.8, zorder=5)
    if seen.side:
        name_axes(ax, f"ahead of {seen.frame} / m", "height / m")
    else:
        name_axes(ax, f"left of {seen.frame} / m", "forward / m")
    ax.set_aspect("equal")
    draw_grid(ax)


def shape(seen: Points, limits: Limits) -> float:
    """Return the height of a picture over its width."""
    (left, right), (low, high) = _window(_there(seen), seen.side, limits)
    return (high - low) / abs(right - left)


def _window(there: Floats, side: bool, limits: Limits) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return from where to where the picture goes, across and up."""
    reach = limits.reach or _reach(there[:, :1] if side else there[:, :2])
    ahead = _ahead(there, reach)
    if not side:
        aside = reach * float(np.sin(min(limits.sector or np.pi, np.pi / 2)))
        return (aside, -aside), ahead
    heights = np.append(there[there[:, 0] <= ahead[1], 2], 0.0)
    margin = 0.08 * reach
    return ahead, (float(heights.min()) - margin, float(heights.max()) + margin)


def _reach(places: Floats) -> float:
    """Return how far the picture goes to either side: not for the sake of a few far points."""
    return 1.2 * max(float(np.percentile(np.abs(places), 90)), 1.0) if len(places) else 10.0


def _ahead(points: Floats, reach: float) -> tuple[float, float]:
    """Return from where to where the picture goes: behind the sensor only where something was seen."""
    behind = bool(len(points)) and float(np.percentile(points[:, 0], 3)) < -0.1 * reach
    return (-reach if behind else -0.12 * reach, reach)
