"""What panels have in common: sizes and limits, names of axes, colour bars, and names of known things."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats, Mask

from ..frames import INK
from ..labels import place_names
from ..overlay import SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

WIDTH, HEIGHT, LOW, TITLE = 4.4, 3.7, 2.7, 0.4
"""Width and height of a panel, height of a low one, and of the title above each, inches."""
NOISE = (40, 99.7)
"""Percentiles of a spectrum that are black and white: most of it is noise."""
THING, RETURN = "#d07a00", "#2f6fb3"
LETTER, LINE = 0.066, 0.15
"""Inches that a letter of a name is wide, and a name is high."""
Things = tuple[tuple[str, Floats], ...]
"""Names of what is known to be there, and where."""


@dataclass(frozen=True)
class Limits:
    """How much of a sensor's view is drawn."""

    sector: float | None = None  # largest bearing to either side of straight ahead, rad; all bearings if None
    reach: float | None = None  # largest distance from the vehicle, m; as far as most returns if None

    @property
    def bearings(self) -> tuple[float, float] | None:
        """The leftmost and the rightmost bearing, degrees to the left."""
        side = None if self.sector is None else float(np.degrees(self.sector))
        return None if side is None else (side, -side)


@dataclass(frozen=True, eq=False)
class Panel:
    """What one sensor saw, as plain arrays that can be drawn."""

    name: str  # the title
    _: KW_ONLY
    # seconds by which the sample is later than the moment; None where there is not one sample
    dt: float | None = None

    def height(self, limits: Limits) -> float:
        """Return the height that the panel needs, inches."""
        return LOW

    def draw(self, ax: Axes, limits: Limits) -> None:
        """Draw into axes, which may be those of your own figure."""
        raise NotImplementedError


def name_axes(ax: Axes, across: str, up: str) -> None:
    """Write what axes show, with units."""
    ax.set_xlabel(across, fontsize=8.5, color=INK)
    ax.set_ylabel(up, fontsize=8.5, color=INK)


def draw_grid(ax: Axes) -> None:
    """Draw a light grid below everything."""
    ax.grid(color="#e8ecef", lw=0.6)
    ax.set_axisbelow(True)


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
    ax: Axes, names: Sequence[str], places: Floats, marks: Floats, inches: tuple[float, float]
) -> None:
    """Draw crosses with names, where names hide neither each other nor marks.

    Parameters
    ----------
    ax : Axes
        Its limits are set already.
    names : sequence of n str
    places : (n, 2) array
        As on the axes; things outside are left out.
    marks : (m, 2) array
        What should stay visible.
    inches : (width, height)
        Approximate size of the axes on paper.
    """
    low, high = np.sort([ax.get_xlim(), ax.get_ylim()], axis=1).T

    def is_inside(points: Floats) -> Mask:
        return ((low < points) & (points < high)).all(axis=1)

    known = [name for name, inside in zip(names, is_inside(places), strict=True) if inside]
    if not known:
        return
    scale = np.asarray(inches) / (high - low)
    anchors = places[is_inside(places)]
    sizes = np.array([(LETTER * len(name), LINE) for name in known])
    bounds = (*(low * scale).tolist(), *(high * scale).tolist())
    centres = place_names(anchors * scale, sizes, marks[is_inside(marks)] * scale, bounds) / scale
    ax.plot(*anchors.T, "+", ms=8, mew=1.1, color=THING, zorder=6)
    box = {"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8}
    line = {"arrowstyle": "-", "color": THING, "lw": 0.5, "shrinkA": 0, "shrinkB": 3}
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "color": INK, "zorder": 7}
    for name, anchor, centre in zip(known, anchors.tolist(), centres.tolist(), strict=True):
        ax.annotate(name, xy=tuple(anchor), xytext=centre, bbox=box, arrowprops=line, **style)


def draw_legend(ax: Axes, names: int) -> None:
    """Write names of curves beside the title, where they hide nothing."""
    ax.legend(
        loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=names, fontsize=8, labelcolor=INK,
        frameon=False, columnspacing=1.0,
    )  # fmt: skip
