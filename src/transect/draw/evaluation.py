"""Figures of an evaluation that a paper could print, from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.geometry.ground import FROM_ABOVE, MapView

from .figures import (
    INK,
    POINTS_PER_INCH,
    QUIET,
    Margins,
    add_legend_below,
    break_text,
    fit_title,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

COLOURS = ("#2f6fb3", "#d07a00", "#3a9d5d", "#8a4fbf", "#d1495b", "#00899a", "#7a5c3e", "#5a6570")
WIDTH = 7.0
"""Inches: two columns of a paper."""
CURVES, GROUND = Margins(0.72, 0.3, 0.5, 0.4), Margins(0.9, 0.3, 0.75, 0.45)
"""Of curves, and of a path from above with a legend below; numbers of seven digits have room."""
ERRORS = "viridis"
MOST_POINTS = 20_000
"""Of a line that is drawn: a page has fewer dots."""
LETTERS = 110
"""Of a legend that fit side by side."""
FAR_M, ROUND_M = 10_000.0, 1_000.0
"""Coordinates larger than the first are counted from a multiple of the second."""
MAX_NAME_WIDTH = 2.2
"""Inches of a name beside an axis; longer ones are broken."""
AROUND = 0.15
"""Part of a trajectory's extent that is shown of the map around it."""
FAR_APART = 20.0
"""Medians whose ratio is larger need a logarithmic axis."""
GAP = 10.0
"""Steps of the usual length without anything over which no line is drawn."""
UNSURE = 0.12
"""Opacity of a confidence band."""


OUTLIERS = 1.5
"""Errors that exceed 98 % of all by this factor have the last colour: a few would hide the others."""


@dataclass(frozen=True)
class Background:
    """A map under trajectories."""

    image: NDArray[Any]  # (h, w) first row northmost
    # (float, float, float, float) west, east, south, north: metres, in the frame of the trajectories
    extent: tuple[float, float, float, float]


def trajectory_figure(
    reference: Floats,
    estimate: Floats,
    errors: Floats,
    *,
    title: str = "",
    background: Background | None = None,
    view: MapView = FROM_ABOVE,
) -> Figure:
    """Draw an estimate from above, coloured by its error, over the reference.

    Parameters
    ----------
    reference, estimate : (n, 3)
        Metres, in one frame, pair by pair.
    errors : (n,)
        Metres.
    background : Background, optional
        Drawn below.
    view : MapView
        Which coordinates go right and up, and what they are called.
    """
    seen = view.project(reference)
    width = _width(seen)
    heading = fit_title(title, width)
    margins = GROUND._replace(right=0.75, top=GROUND.top + heading.extra_in)
    figure = new_figure(width, _height(seen) + heading.extra_in, margins)
    axis = figure.add_subplot(anchor="E")  # beside its colours
    _lay(axis, background)
    axis.plot(*_thin(seen).T, color=QUIET, lw=1.2, label="reference", zorder=1)
    lines = _colour(axis, view.project(estimate), errors)
    bar = figure.colorbar(lines, ax=axis, shrink=0.85, pad=0.02, extend=_limit_colours(lines, errors))
    bar.set_label("error [m]", fontsize=9, color=INK)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(labelsize=8)
    axis.plot(*seen[0], "o", color=INK, ms=5, label="start", zorder=3)
    _on_ground(axis, view, seen)
    heading.write(figure, INK)
    figure.legend(loc="lower right", ncols=2, frameon=False, fontsize=8)
    return figure


def trajectories_figure(
    reference: Floats,
    estimates: Mapping[str, Floats],
    *,
    title: str = "",
    background: Background | None = None,
    view: MapView = FROM_ABOVE,
) -> Figure:
    """Draw several estimates (n, 3) from above, over their reference."""
    seen = view.project(reference)
    heading = fit_title(title, WIDTH)
    figure = new_figure(WIDTH, _height(seen) + heading.extra_in)
    axis = figure.add_subplot()
    _lay(axis, background)
    axis.plot(*_thin(seen).T, color=INK, lw=1.4, ls=(0, (4, 2)), label="reference", zorder=9)
    for colour, (name, positions) in zip(_colours(len(estimates)), estimates.items(), strict=True):
        axis.plot(*view.project(_thin(positions)).T, color=colour, lw=1.2, label=name)
    _on_ground(axis, view, seen)
    heading.write(figure, INK)
    _legend_below(figure)
    return figure


def path_figure(positions: Floats, *, title: str = "", view: MapView = FROM_ABOVE) -> Figure:
    """Draw positions (n, 3), metres, from above, where there is nothing to hold them against."""
    seen = view.project(positions)
    heading = fit_title(title, WIDTH)
    margins = GROUND._replace(top=GROUND.top + heading.extra_in)
    figure = new_figure(WIDTH, _height(seen) + heading.extra_in, margins)
    axis = figure.add_subplot()
    axis.plot(*_thin(seen).T, color=_colours(1)[0], lw=1.4)
    axis.plot(*seen[0], "o", color=INK, ms=5, label="start")
    _on_ground(axis, view, seen)
    heading.write(figure, INK)
    figure.legend(loc="lower right", frameon=False, fontsize=8)
    return figure


def error_figure(
    seconds: Mapping[str, Floats],
    metres: Mapping[str, Floats],
    errors: Mapping[str, Floats],
    *,
    title: str = "",
    timed: bool = True,
) -> Figure:
    """Draw errors over time, and over the distance travelled.

    Parameters
    ----------
    seconds, metres, errors : mapping of str to (n,)
        By estimate: time from the start, distance travelled by the reference, and error in metres.
    timed : bool
        False where poses have no stamps: `seconds` are then numbers of poses.
    """
    heading = fit_title(title, WIDTH)
    margins = CURVES._replace(top=CURVES.top + heading.extra_in)
    figure = new_figure(WIDTH, 4.6 + heading.extra_in, margins)
    over_time, over_distance = figure.subplots(2, 1, gridspec_kw={"hspace": 0.35})
    for colour, (name, error) in zip(_colours(len(errors)), errors.items(), strict=True):
        rows = _thin(_interrupt_gaps(np.column_stack([seconds[name], metres[name], error])))
        over_time.plot(rows[:, 0], rows[:, 2], color=colour, lw=1.0, label=name)
        over_distance.plot(rows[:, 1], rows[:, 2], color=colour, lw=1.0)
    for axis, label in (
        (over_time, "time [s]" if timed else "pose"),
        (over_distance, "distance travelled [m]"),
    ):
        axis.set_ylabel("error [m]", fontsize=9, color=INK)
        name_axis(axis, label)
        axis.margins(x=0)
        axis.set_ylim(bottom=0)
    heading.write(figure, INK)
    if len(errors) > 1:
        _legend_below(figure)
    return figure


@dataclass(frozen=True)
class Drift:
    """Error against distance: (m,) metres, and (m,) percent that half and nine in ten stay below."""

    distance: Floats
    median: Floats
    high: Floats


def drift_figure(curves: Mapping[str, Drift], *, title: str = "") -> Figure:
    """Draw how the error, as a part of the distance, settles (CDFF's Figures 6 and 10)."""
    heading = fit_title(title, WIDTH)
    margins = CURVES._replace(top=CURVES.top + heading.extra_in)
    figure = new_figure(WIDTH, 3.4 + heading.extra_in, margins)
    axis = figure.add_subplot()
    for colour, (name, curve) in zip(_colours(len(curves)), curves.items(), strict=True):
        axis.plot(curve.distance, curve.median, color=colour, lw=1.6, label=f"{name}: median")
        axis.plot(curve.distance, curve.high, color=colour, lw=1.0, ls="--", label=f"{name}: 90 %")
    axis.set_ylabel("position error [% of distance]", fontsize=9, color=INK)
    name_axis(axis, "distance [m]")
    axis.margins(x=0)
    axis.set_ylim(bottom=0)
    heading.write(figure, INK)
    _legend_below(figure)
    return figure


def box_figure(errors: Mapping[str, Floats], *, label: str = "error [m]", title: str = "") -> Figure:
    """Draw the spread of the errors (n,) of several estimates: quartiles, and whiskers at 5 and 95 %."""
    heading = fit_title(title, WIDTH)
    names = ["\n".join(break_text(name, MAX_NAME_WIDTH * POINTS_PER_INCH, 8)) for name in errors]
    figure = new_figure(WIDTH, 1.2 + 0.5 * max(len(errors), 2) + heading.extra_in)
    axis = figure.add_subplot()
    drawn = axis.boxplot(
        list(errors.values()), orientation="horizontal", whis=(5, 95), showfliers=False, patch_artist=True,
        widths=0.55, medianprops={"color": "white", "lw": 1.8},
    )  # fmt: skip
    for box, colour in zip(drawn["boxes"], _colours(len(errors)), strict=True):
        box.set(facecolor=colour, edgecolor=colour)
    axis.set_yticks(range(1, len(errors) + 1), names, fontsize=8, color=INK)
    axis.invert_yaxis()
    medians = [float(np.median(each)) for each in errors.values()]
    if min(medians) > 0 and max(medians) > FAR_APART * min(medians):
        axis.set_xscale("log")
    else:
        axis.set_xlim(left=0)
    name_axis(axis, label)
    heading.write(figure, INK)
    return figure


@dataclass(frozen=True)
class AllanCurve:
    """One axis: (m,) seconds, its deviation and confidence, and the lines that were fitted (NaN: none)."""

    tau: Floats
    deviation: Floats
    low: Floats
    high: Floats
    # N, B and K, in the unit of the signal
    white: float
    instability: float
    walk: float


def allan_figure(groups: Mapping[str, Mapping[str, AllanCurve]], *, title: str = "") -> Figure:
    """Draw Allan deviations with the lines of N, B and K; one panel for each unit, one colour for each axis.

    Parameters
    ----------
    groups : mapping of str to mapping
        By label of the panel, with its unit (`gyroscope [rad/s]`): the curves by axis.
    """
    figure = new_figure(WIDTH, 3.9)
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    for panel, (label, curves) in zip(panels, groups.items(), strict=True):
        for colour, (name, curve) in zip(_colours(len(curves)), curves.items(), strict=True):
            panel.fill_between(curve.tau, curve.low, curve.high, color=colour, alpha=UNSURE, lw=0)
            label_once = name if panel is panels[0] else None
            panel.loglog(curve.tau, curve.deviation, color=colour, lw=1.5, label=label_once)
            _fit(panel, curve, colour)
        panel.set_title(label, fontsize=9, color=INK, loc="left")
        panel.set_ylabel("Allan deviation", fontsize=9, color=INK)
        name_axis(panel, "averaging time [s]")
        panel.grid(which="major", color="#e6eaee", lw=0.6)
    fit_title(title, WIDTH).write(figure, INK)
    _explain_lines(figure, panels[0])
    return figure


def _fit(axis: Axes, curve: AllanCurve, colour: str) -> None:
    """Draw the three lines, each where the curve is near it."""
    flat = 0.6642824702679601 * curve.instability
    for line, style in (
        (curve.white / np.sqrt(curve.tau), ":"),
        (np.full_like(curve.tau, flat), (0, (6, 3))),
        (curve.walk * np.sqrt(curve.tau / 3), "-."),
    ):
        near = (line < 2.0 * curve.deviation) & (line > 0.5 * curve.deviation)
        axis.plot(curve.tau[near], line[near], color=colour, lw=0.9, ls=style, alpha=0.9)


def _explain_lines(figure: Figure, first: Axes) -> None:
    from matplotlib.lines import Line2D

    handles, labels = first.get_legend_handles_labels()
    styles = ((":", "N: slope -1/2"), ((0, (6, 3)), "B: 0.664 B"), ("-.", "K: slope +1/2"))
    lines = [Line2D([], [], color=INK, lw=0.9, ls=style, label=text) for style, text in styles]
    figure.legend(
        [*handles, *lines], [*labels, *(text for _, text in styles)], loc="outside lower center",
        ncols=len(handles) + 3, frameon=False, fontsize=8,
    )  # fmt: skip


# Parts


def _lay(axis: Axes, background: Background | None) -> None:
    """Draw a map, heights as if lit from the north-west, lighter than anything over it."""
    if background is None:
        return
    image = background.image
    if image.ndim == 2:
        image = hillshade(image)
    axis.imshow(image, extent=background.extent, cmap="gray", vmin=-0.6, vmax=1.1, alpha=0.75, zorder=0)


def hillshade(heights: NDArray[Any]) -> Floats:
    """Return (rows, cols) from 0 to 1: heights as if lit from the north-west; 1 where they are not known."""
    down, right = np.gradient(heights.astype(np.float64))
    slope: Floats = np.asarray(down + right)
    known = slope[np.isfinite(slope)]
    slope = slope / (float(known.std() if known.size else 0.0) or 1.0)
    return np.nan_to_num(1 / (1 + np.exp(-slope)), nan=1.0)


def _colour(axis: Axes, points: Floats, errors: Floats) -> Any:
    from matplotlib.collections import LineCollection

    thin = _thin(np.column_stack([points, errors]))
    parts = np.stack([thin[:-1, :2], thin[1:, :2]], axis=1)
    lines = LineCollection(list(parts), cmap=ERRORS, linewidths=2.0, zorder=2, capstyle="round")
    lines.set_array(thin[1:, 2])
    axis.add_collection(lines)
    axis.autoscale_view()
    return lines


def _interrupt_gaps(rows: Floats) -> Floats:
    """Return rows (n, k), the first column time, with a row of NaN where nothing is known for long."""
    steps = np.diff(rows[:, 0])
    gaps = np.flatnonzero(steps > GAP * np.median(steps)) + 1 if len(steps) else np.zeros(0, np.intp)
    return np.insert(rows, gaps, np.nan, axis=0)


def _thin(rows: Floats) -> Floats:
    return rows[:: max(1, len(rows) // MOST_POINTS)]


def _height(ground: Floats) -> float:
    """Return the height of a figure, in inches, that fits what is seen from above."""
    extent = np.maximum(np.ptp(ground, axis=0), 1e-9)
    wide, high = extent + 2 * AROUND * extent.max()
    return float(np.clip(0.8 * WIDTH * high / wide, 2.0, 7.0)) + 0.8


def _width(ground: Floats) -> float:
    """Return the width of a figure, in inches: less than usual where a path is tall, but enough to read."""
    extent = np.maximum(np.ptp(ground, axis=0), 1e-9)
    wide, high = extent + 2 * AROUND * extent.max()
    return float(np.clip((_height(ground) - 0.8) * wide / high + 2.0, 4.8, WIDTH))


def _limit_colours(lines: Any, errors: Floats) -> str:
    """Let colours end where nearly all errors do; return which end of their scale stands for larger ones."""
    usual, largest = np.nanpercentile(errors, (98, 100)) if len(errors) else (0.0, 0.0)
    if largest <= OUTLIERS * usual:
        return "neither"
    lines.set_clim(float(np.nanmin(errors)), float(usual))
    return "max"


def _colours(count: int) -> list[str]:
    return [COLOURS[k % len(COLOURS)] for k in range(count)]


def _on_ground(axis: Axes, view: MapView, seen: Floats) -> None:
    """Look at the reference (n, 2) from above, whatever the map reaches to."""
    low, high = seen.min(axis=0), seen.max(axis=0)
    margin = AROUND * max(float((high - low).max()), 1e-3)
    axis.set_xlim(low[0] - margin, high[0] + margin)
    axis.set_ylim(low[1] - margin, high[1] + margin)
    axis.set_aspect("equal", adjustable="box")
    name_ground(axis, *view.names)


def name_ground(axis: Axes, right: str, up: str) -> None:
    """Name both axes of a place seen from above; of large coordinates a round number is named apart.

    Seven digits at each tick have no room, and matplotlib's own offset lies on other text.
    """
    name_axis(axis, _split_offset(axis.xaxis, right, *axis.get_xlim()))
    axis.set_ylabel(_split_offset(axis.yaxis, up, *axis.get_ylim()), fontsize=9, color=INK)


def _split_offset(axis: XAxis | YAxis, name: str, *limits: float) -> str:
    """Let the numbers of an axis count from a round one if they are large; return what it is called then."""
    from matplotlib.ticker import ScalarFormatter

    low = min(limits)
    offset = np.floor(low / ROUND_M) * ROUND_M if abs(low) > FAR_M else 0.0
    axis.set_major_formatter(ScalarFormatter(useOffset=float(offset) or False))
    axis.offsetText.set_visible(not offset)
    return f"{name} {'-' if offset > 0 else '+'} {abs(offset):.0f} [m]" if offset else f"{name} [m]"


def name_axis(axis: Axes, label: str) -> None:
    """Name the axis to the right, and draw a quiet grid."""
    axis.set_xlabel(label, fontsize=9, color=INK)
    axis.tick_params(labelsize=8, colors=INK)
    axis.grid(color="#e6eaee", lw=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def write_title(axis: Axes, title: str) -> None:
    """Write a title over the left edge."""
    axis.set_title(title, fontsize=11, color=INK, loc="left")


def _legend_below(figure: Figure) -> None:
    """Explain all panels below them, in as many columns as the names leave room for."""
    names = [name for axis in figure.axes for name in axis.get_legend_handles_labels()[1]]
    columns = int(np.clip(LETTERS // (max(map(len, names)) + 8), 1, min(len(names), 4)))
    add_legend_below(figure, columns, -(-len(names) // columns))
