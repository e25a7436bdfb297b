"""Figure of wheel slip: tracks by odometry and over the ground, and slip over time (AMEDS, Figure 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats
from transect.draw.evaluation import COLOURS
from transect.draw.figures import INK, QUIET, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def slip_figure(
    seconds: Floats,
    ratio: Floats,
    angle: Floats,
    odometry: Floats,
    ground: Floats,
    names: Sequence[str],
    *,
    title: str = "",
    source: str = "",
) -> Figure:
    """Draw the slip of wheels.

    Parameters
    ----------
    seconds : (n,)
        Since the start.
    ratio, angle : (n, k)
        Slip ratio, and slip angle in rad, of k wheels; NaN at rest.
    odometry, ground : (m, k, 2)
        Tracks of the wheels in the frame of the start, x forward and y left, m: by the rolled distance, and
        over the ground.
    names : sequence of str
        Names of the wheels.
    source : str
        Source of the motion over the ground.
    """
    figure = new_figure(7.0, 7.0)
    above, middle, below = figure.subplots(3, 1, height_ratios=[1.8, 1, 1])
    _draw_tracks(above, odometry, ground, names, source)
    _draw_lines(middle, seconds, ratio, "slip ratio", 0.1)  # a smaller scale would show noise as slip
    _draw_lines(below, seconds, np.degrees(angle), "slip angle [deg]", 5.0)
    middle.sharex(below)
    middle.tick_params(labelbottom=False)
    below.set_xlabel("time since the start [s]")
    figure.suptitle(title, color=INK, fontsize=11)
    return figure


def _draw_tracks(axis: Axes, odometry: Floats, ground: Floats, names: Sequence[str], source: str) -> None:
    for k, name in enumerate(names):
        colour = COLOURS[k % len(COLOURS)]
        axis.plot(*ground[:, k].T, color=colour, lw=1.6, label=f"wheel {name}")
        axis.plot(*odometry[:, k].T, color=colour, lw=0.9, ls=(0, (3, 2)))
        axis.plot(*ground[-1, k], "o", color=colour, ms=4)
        axis.plot(*odometry[-1, k], "o", color=colour, ms=4, mfc="white")
    axis.plot([], [], color=INK, lw=1.6, label=f"over the ground ({source})" if source else "over the ground")
    axis.plot([], [], color=INK, lw=0.9, ls=(0, (3, 2)), label="as far as each wheel rolled")
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_xlabel("x forward [m]")
    axis.set_ylabel("y left [m]")
    axis.grid(color=QUIET, lw=0.3)
    axis.legend(fontsize=7, frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _draw_lines(axis: Axes, seconds: Floats, values: Floats, name: str, min_limit: float) -> None:
    for k in range(values.shape[1]):
        axis.plot(seconds, values[:, k], color=COLOURS[k % len(COLOURS)], lw=0.9)
    known = values[np.isfinite(values)]
    limit = max(min_limit, 1.1 * float(np.abs(known).max())) if known.size else min_limit
    axis.set_ylim(-limit, limit)
    axis.axhline(0.0, color=INK, lw=0.6)
    axis.set_ylabel(name)
    axis.grid(color=QUIET, lw=0.3)
