"""Points of lasers, lidars and radars from above or from the side; maps; numbers as curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats

from ..frames import INK
from .parts import (
    HEIGHT,
    RETURN,
    TITLE,
    WIDTH,
    Limits,
    Panel,
    Things,
    draw_bar,
    draw_grid,
    draw_legend,
    draw_things,
    name_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ROBOT = "#d1495b"
LAYERS = (("#9aa5b1", 4.0), ("#2f6fb3", 26.0), ("#3a9d5d", 7.0), ("#8a4fbf", 4.0))
"""Colour and size of each sensor's points where several are drawn: the small ones on top of the large."""
WIDE = 3.7
"""Approximate width of axes with points, inches."""
FEW_POINTS = 2000
"""Up to so many, each is drawn as a dot that can be seen by itself."""
CURVES = ("#2f6fb3", "#d1495b", "#3a9d5d", "#8a4fbf")
DEEP = 4.0
"""From this ratio of the largest value of an image to the smallest on, colours show the logarithm."""


@dataclass(frozen=True, eq=False)
class Points(Panel):
    """Points of a scan or a cloud, from above or from the side."""

    points: Floats  # (n, 3) in metres; NaN where nothing came back. On a body x is forward, y left, z up.
    by_height: bool = False  # whether colours show z
    frame: str = "sensor"  # whose axes they are; its origin is at (0, 0)
    side: bool = False  # whether they are seen from the right side, else from above
    # whether the frame is a body's; of a sensor alone nobody knows which way it was driven
    on_body: bool = True

    def height(self, limits: Limits) -> float:
        return min(HEIGHT, 0.85 * WIDTH * self.aspect(limits) + 2 * TITLE)

    def draw(self, ax: Axes, limits: Limits) -> None:
        there = self.measured()
        across, up = self.on_paper(there)
        area = 5.0 if len(there) <= FEW_POINTS else 0.6
        if self.by_height and len(there):
            z = there[:, 2]
            low, high = np.percentile(z, (1, 99))
            marks = ax.scatter(across, up, s=area, c=z, cmap="viridis", vmin=low, vmax=high, linewidths=0)
            draw_bar(ax, marks, "height / m")
        else:
            ax.scatter(across, up, s=area, c=RETURN, linewidths=0)
        self.draw_axes(ax, there, limits)

    def draw_axes(self, ax: Axes, there: Floats, limits: Limits) -> None:
        """Draw the vehicle, and axes that hold most points (n, 3)."""
        across, up = _window(there, self.side, limits)
        ax.set(xlim=across, ylim=up, aspect="equal")
        marker = (">" if self.side else "^") if self.on_body else "o"
        ax.plot(0, 0, marker=marker, color=ROBOT, ms=7, mec="white", mew=0.8, zorder=5)
        if not self.on_body:
            across, up = ("x", "z") if self.side else ("y", "x")
            name_axes(ax, f"{across} of {self.frame} / m", f"{up} of {self.frame} / m")
        elif self.side:
            name_axes(ax, f"ahead of {self.frame} / m", "height / m")
        else:
            name_axes(ax, f"left of {self.frame} / m", "forward / m")
        draw_grid(ax)

    def aspect(self, limits: Limits) -> float:
        """Return the height of the axes over their width."""
        (left, right), (low, high) = _window(self.measured(), self.side, limits)
        return (high - low) / abs(right - left)

    def measured(self) -> Floats:
        """Return the points that there are; those that are higher, or nearer to the eye, come last."""
        there = self.points[np.isfinite(self.points).all(axis=1)]
        return there[np.argsort(-there[:, 1] if self.side else there[:, 2], kind="stable")]

    def on_paper(self, points: Floats) -> Floats:
        """Return points (n, 3) across and up (2, n): forward is right from the side, and up from above."""
        return points[:, [0, 2] if self.side else [1, 0]].T


def _window(there: Floats, side: bool, limits: Limits) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return from where to where axes go, across and up.

    A few far points do not make the picture larger, and it shows what is behind only where something is.
    """
    near = np.abs(there[:, :1] if side else there[:, :2])
    reach = limits.reach or (1.2 * max(float(np.percentile(near, 90)), 1.0) if len(near) else 10.0)
    behind = bool(len(there)) and float(np.percentile(there[:, 0], 3)) < -0.1 * reach
    ahead = (-reach if behind else -0.12 * reach, reach)
    if not side:
        aside = reach * float(np.sin(min(limits.sector or np.pi, np.pi / 2)))
        return (aside, -aside), ahead
    heights = np.append(there[there[:, 0] <= reach, 2], 0.0)
    margin = 0.08 * reach
    return ahead, (float(heights.min()) - margin, float(heights.max()) + margin)


@dataclass(frozen=True, eq=False)
class Together(Panel):
    """Points of several sensors in the axes of the first, and things at points (3,)."""

    parts: tuple[Points, ...]
    things: Things = ()

    def height(self, limits: Limits) -> float:
        return min(1.5 * HEIGHT, 0.85 * WIDTH * self.parts[0].aspect(limits) + 2 * TITLE)

    def draw(self, ax: Axes, limits: Limits) -> None:
        first = self.parts[0]
        for part, (colour, area) in zip(self.parts, LAYERS * len(self.parts), strict=False):
            ax.scatter(*first.on_paper(part.measured()), s=area, c=colour, linewidths=0, label=part.name)
        ax.legend(
            loc="lower left", fontsize=8, labelcolor=INK, framealpha=0.9, edgecolor="none", markerscale=1.4
        )
        everything = np.concatenate([part.measured() for part in self.parts])
        first.draw_axes(ax, everything, limits)
        places = np.array([place for _, place in self.things]).reshape(-1, 3)
        names = [name for name, _ in self.things]
        marks = first.on_paper(everything).T
        draw_things(ax, names, first.on_paper(places).T, marks, (WIDE, WIDE * first.aspect(limits)))


@dataclass(frozen=True, eq=False)
class Field(Panel):
    """A map with its metres, or an image of numbers, near ones red."""

    values: Floats  # (h, w) NaN where there are none
    label: str  # what they are, with the unit
    # (left, right, bottom, top) of a map, m; None where it is an image
    extent: tuple[float, float, float, float] | None = None

    def height(self, limits: Limits) -> float:
        h, w = self.values.shape
        return HEIGHT if self.extent else min(HEIGHT, 0.85 * WIDTH * h / w + TITLE)

    def draw(self, ax: Axes, limits: Limits) -> None:
        from matplotlib.colors import LogNorm, Normalize

        finite = self.values[np.isfinite(self.values)]
        low, high = (float(v) for v in np.percentile(finite, (0.5, 99.5))) if len(finite) else (0.0, 1.0)
        if self.extent is None:
            scale = LogNorm(low, high) if low > 0 and high > DEEP * low else Normalize(low, high)
            mesh = ax.imshow(self.values, cmap="turbo_r", norm=scale, interpolation="nearest")
            ax.set(xticks=(), yticks=())
        else:
            mesh = ax.imshow(self.values, cmap="viridis", vmin=low, vmax=high, extent=self.extent)
            name_axes(ax, "x / m", "y / m")
        draw_bar(ax, mesh, self.label)


@dataclass(frozen=True, eq=False)
class Graph(Panel):
    """Numbers over time, or over each other: (name, x (n,), y (n,)) of each curve, and what the axes show."""

    curves: tuple[tuple[str, Floats, Floats], ...]
    xlabel: str
    ylabel: str

    def draw(self, ax: Axes, limits: Limits) -> None:
        for k, (name, x, y) in enumerate(self.curves):
            ax.plot(x, y, lw=1.2, color=CURVES[k % len(CURVES)], label=name)
        if len(self.curves) > 1:
            draw_legend(ax, len(self.curves))
        name_axes(ax, self.xlabel, self.ylabel)
        draw_grid(ax)
