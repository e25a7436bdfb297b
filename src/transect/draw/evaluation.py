"""Figures of an evaluation in print quality, from plain arrays."""

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
WIDTH_IN = 7.0
"""Width of two columns of a paper."""
CURVE_MARGINS, MAP_MARGINS = Margins(0.72, 0.3, 0.5, 0.4), Margins(0.9, 0.3, 0.75, 0.45)
"""Margins of curves, and of a path from above with a legend below; tick labels of seven digits fit."""
ERROR_COLOURMAP = "viridis"
MAX_LINE_POINTS = 20_000
"""Longer lines are subsampled for drawing: a page has fewer dots."""
MAP_MARGIN_RATIO = 0.15
"""Margin around a trajectory seen from above, as a fraction of its extent."""


@dataclass(frozen=True)
class Background:
    """A map drawn below trajectories."""

    image: NDArray[Any]  # (h, w) first row northmost
    # west, east, south, north: metres, in the frame of the trajectories
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
        The coordinates drawn to the right and up, and their names.
    """
    seen = view.project(reference)
    width = _width(seen)
    heading = fit_title(title, width)
    margins = MAP_MARGINS._replace(right=0.75, top=MAP_MARGINS.top + heading.extra_in)
    figure = new_figure(width, _height(seen) + heading.extra_in, margins)
    axis = figure.add_subplot(anchor="E")  # beside its colours
    _draw_background(axis, background)
    axis.plot(*_subsample(seen).T, color=QUIET, lw=1.2, label="reference", zorder=1)
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
    heading = fit_title(title, WIDTH_IN)
    figure = new_figure(WIDTH_IN, _height(seen) + heading.extra_in)
    axis = figure.add_subplot()
    _draw_background(axis, background)
    axis.plot(*_subsample(seen).T, color=INK, lw=1.4, ls=(0, (4, 2)), label="reference", zorder=9)
    for colour, (name, positions) in zip(_colours(len(estimates)), estimates.items(), strict=True):
        axis.plot(*view.project(_subsample(positions)).T, color=colour, lw=1.2, label=name)
    _on_ground(axis, view, seen)
    heading.write(figure, INK)
    _legend_below(figure)
    return figure


def path_figure(positions: Floats, *, title: str = "", view: MapView = FROM_ABOVE) -> Figure:
    """Draw positions (n, 3), metres, from above, without a reference."""
    seen = view.project(positions)
    heading = fit_title(title, WIDTH_IN)
    margins = MAP_MARGINS._replace(top=MAP_MARGINS.top + heading.extra_in)
    figure = new_figure(WIDTH_IN, _height(seen) + heading.extra_in, margins)
    axis = figure.add_subplot()
    axis.plot(*_subsample(seen).T, color=_colours(1)[0], lw=1.4)
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
        False where poses have no timestamps: `seconds` are then indices of poses.
    """
    heading = fit_title(title, WIDTH_IN)
    margins = CURVE_MARGINS._replace(top=CURVE_MARGINS.top + heading.extra_in)
    figure = new_figure(WIDTH_IN, 4.6 + heading.extra_in, margins)
    over_time, over_distance = figure.subplots(2, 1, gridspec_kw={"hspace": 0.35})
    for colour, (name, error) in zip(_colours(len(errors)), errors.items(), strict=True):
        rows = _subsample(_interrupt_gaps(np.column_stack([seconds[name], metres[name], error])))
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
class DriftCurve:
    """Error against distance: (m,) metres, and (m,) median and 90th percentile of the error, percent."""

    distance: Floats
    median: Floats
    high: Floats


def drift_figure(curves: Mapping[str, DriftCurve], *, title: str = "") -> Figure:
    """Draw the error as a percentage of the distance travelled (as in Figures 6 and 10 of the CDFF paper)."""
    heading = fit_title(title, WIDTH_IN)
    margins = CURVE_MARGINS._replace(top=CURVE_MARGINS.top + heading.extra_in)
    figure = new_figure(WIDTH_IN, 3.4 + heading.extra_in, margins)
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
    """Draw box plots of the errors (n,) of several estimates: quartiles, and whiskers at 5 and 95 %."""
    heading = fit_title(title, WIDTH_IN)
    names = ["\n".join(break_text(name, 2.2 * POINTS_PER_INCH, 8)) for name in errors]
    figure = new_figure(WIDTH_IN, 1.2 + 0.5 * max(len(errors), 2) + heading.extra_in)
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
    if min(medians) > 0 and max(medians) > 20 * min(medians):
        axis.set_xscale("log")
    else:
        axis.set_xlim(left=0)
    name_axis(axis, label)
    heading.write(figure, INK)
    return figure


@dataclass(frozen=True)
class AllanCurve:
    """One axis: (m,) seconds, Allan deviation, confidence interval, and fitted lines (NaN: not fitted)."""

    tau: Floats
    deviation: Floats
    low: Floats
    high: Floats
    # N, B and K, in the unit of the signal
    white: float
    instability: float
    random_walk: float


def allan_figure(groups: Mapping[str, Mapping[str, AllanCurve]], *, title: str = "") -> Figure:
    """Draw Allan deviations with the lines of N, B and K; one panel for each unit, one colour per axis.

    Parameters
    ----------
    groups : mapping of str to mapping
        The curves by axis, by label of the panel with its unit (`gyroscope [rad/s]`).
    """
    figure = new_figure(WIDTH_IN, 3.9)
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    for panel, (label, curves) in zip(panels, groups.items(), strict=True):
        for colour, (name, curve) in zip(_colours(len(curves)), curves.items(), strict=True):
            panel.fill_between(curve.tau, curve.low, curve.high, color=colour, alpha=0.12, lw=0)
            label_once = name if panel is panels[0] else None
            panel.loglog(curve.tau, curve.deviation, color=colour, lw=1.5, label=label_once)
            _fit(panel, curve, colour)
        panel.set_title(label, fontsize=9, color=INK, loc="left")
        panel.set_ylabel("Allan deviation", fontsize=9, color=INK)
        name_axis(panel, "averaging time [s]")
        panel.grid(which="major", color="#e6eaee", lw=0.6)
    fit_title(title, WIDTH_IN).write(figure, INK)
    _explain_lines(figure, panels[0])
    return figure


def _fit(axis: Axes, curve: AllanCurve, colour: str) -> None:
    """Draw the three lines, each where it is within a factor of two of the curve."""
    flat = 0.6642824702679601 * curve.instability  # sqrt(2 ln 2 / pi), IEEE Std 952
    for line, style in (
        (curve.white / np.sqrt(curve.tau), ":"),
        (np.full_like(curve.tau, flat), (0, (6, 3))),
        (curve.random_walk * np.sqrt(curve.tau / 3), "-."),
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


# Helpers


def _draw_background(axis: Axes, background: Background | None) -> None:
    """Draw a map below everything else; heights are hillshaded."""
    if background is None:
        return
    image = background.image
    if image.ndim == 2:
        image = hillshade(image)
    axis.imshow(image, extent=background.extent, cmap="gray", vmin=-0.6, vmax=1.1, alpha=0.75, zorder=0)


def hillshade(heights: NDArray[Any]) -> Floats:
    """Return (rows, cols) from 0 to 1: heights lit from the north-west; 1 where the height is not known."""
    down, right = np.gradient(heights.astype(np.float64))
    slope: Floats = np.asarray(down + right)
    known = slope[np.isfinite(slope)]
    slope = slope / (float(known.std() if known.size else 0.0) or 1.0)
    return np.nan_to_num(1 / (1 + np.exp(-slope)), nan=1.0)


def _colour(axis: Axes, points: Floats, errors: Floats) -> Any:
    from matplotlib.collections import LineCollection

    rows = _subsample(np.column_stack([points, errors]))
    parts = np.stack([rows[:-1, :2], rows[1:, :2]], axis=1)
    lines = LineCollection(list(parts), cmap=ERROR_COLOURMAP, linewidths=2.0, zorder=2, capstyle="round")
    lines.set_array(rows[1:, 2])
    axis.add_collection(lines)
    axis.autoscale_view()
    return lines


def _interrupt_gaps(rows: Floats) -> Floats:
    """Return rows (n, k), the first column time, with a row of NaN in gaps of over ten median steps."""
    steps = np.diff(rows[:, 0])
    gaps = np.flatnonzero(steps > 10 * np.median(steps)) + 1 if len(steps) else np.zeros(0, np.intp)
    return np.insert(rows, gaps, np.nan, axis=0)


def _subsample(rows: Floats) -> Floats:
    return rows[:: max(1, len(rows) // MAX_LINE_POINTS)]


def _height(ground: Floats) -> float:
    """Return the height of a figure, in inches, that fits a path (n, 2) seen from above."""
    extent = np.maximum(np.ptp(ground, axis=0), 1e-9)
    wide, high = extent + 2 * MAP_MARGIN_RATIO * extent.max()
    return float(np.clip(0.8 * WIDTH_IN * high / wide, 2.0, 7.0)) + 0.8


def _width(ground: Floats) -> float:
    """Return the width of a figure, in inches: less than `WIDTH_IN` for a path that is taller than wide."""
    extent = np.maximum(np.ptp(ground, axis=0), 1e-9)
    wide, high = extent + 2 * MAP_MARGIN_RATIO * extent.max()
    return float(np.clip((_height(ground) - 0.8) * wide / high + 2.0, 4.8, WIDTH_IN))


def _limit_colours(lines: Any, errors: Floats) -> str:
    """End the colour scale at 98 % of the errors if few are much larger; return which end of it is open."""
    usual, largest = np.nanpercentile(errors, (98, 100)) if len(errors) else (0.0, 0.0)
    if largest <= 1.5 * usual:
        return "neither"
    lines.set_clim(float(np.nanmin(errors)), float(usual))
    return "max"


def _colours(count: int) -> list[str]:
    return [COLOURS[k % len(COLOURS)] for k in range(count)]


def _on_ground(axis: Axes, view: MapView, seen: Floats) -> None:
    """Set the axes to the extent of the reference (n, 2) with a margin, independent of the background map."""
    low, high = seen.min(axis=0), seen.max(axis=0)
    margin = MAP_MARGIN_RATIO * max(float((high - low).max()), 1e-3)
    axis.set_xlim(low[0] - margin, high[0] + margin)
    axis.set_ylim(low[1] - margin, high[1] + margin)
    axis.set_aspect("equal", adjustable="box")
    name_ground(axis, *view.names)


def name_ground(axis: Axes, right: str, up: str) -> None:
    """Label both axes of a map; the round part of large coordinates goes into the label.

    Seven digits at each tick do not fit, and matplotlib's own offset overlaps other text.
    """
    name_axis(axis, _split_offset(axis.xaxis, right, *axis.get_xlim()))
    axis.set_ylabel(_split_offset(axis.yaxis, up, *axis.get_ylim()), fontsize=9, color=INK)


def axis_offset(least: float) -> float:
    """Return the multiple of 1 km that is subtracted from coordinates (m) whose least value exceeds 10 km."""
    return float(np.floor(least / 1e3) * 1e3) if abs(least) > 1e4 else 0.0


def _split_offset(axis: XAxis | YAxis, name: str, *limits: float) -> str:
    """Subtract a round offset from the tick labels of large coordinates; return the label of the axis."""
    from matplotlib.ticker import ScalarFormatter

    offset = axis_offset(min(limits))
    axis.set_major_formatter(ScalarFormatter(useOffset=offset or False))
    axis.offsetText.set_visible(not offset)
    return map_label(name, offset)


def map_label(name: str, offset: float) -> str:
    """Return the label of an axis in metres from which an offset was subtracted."""
    return f"{name} {'-' if offset > 0 else '+'} {abs(offset):.0f} [m]" if offset else f"{name} [m]"


def name_axis(axis: Axes, label: str) -> None:
    """Label the x axis, and draw a light grid."""
    axis.set_xlabel(label, fontsize=9, color=INK)
    axis.tick_params(labelsize=8, colors=INK)
    axis.grid(color="#e6eaee", lw=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def write_title(axis: Axes, title: str) -> None:
    """Write a left-aligned title."""
    axis.set_title(title, fontsize=11, color=INK, loc="left")


def _legend_below(figure: Figure) -> None:
    """Add one legend for all panels below them, in as many columns as fit."""
    names = [name for axis in figure.axes for name in axis.get_legend_handles_labels()[1]]
    columns = int(np.clip(110 // (max(map(len, names)) + 8), 1, min(len(names), 4)))
    add_legend_below(figure, columns, -(-len(names) // columns))
