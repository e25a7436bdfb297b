"""Plots over time or distance with a common cursor, and the signals of a recording."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry.decimation import Extremes
from transect.recording import Recording, Stream
from transect.recording.arrow import T_NS, LazyColumns, block_ranges, unit_of

from ..axes import TimeAxis
from .facts import SampledSignal
from .markup import (
    DRAWING_WIDTH,
    MAX_VALUE,
    Markup,
    PageAssets,
    number,
    path_of,
    percent,
    round_ticks,
    short_numbers,
    stretched,
    tag,
    tick_texts,
    time_ticks,
    value_range,
)

SIGNAL_BLOCKS = 360
"""Number of blocks of the time axis whose extremes are kept."""
MAX_LIST_SIZE = 4
"""Longer lists are scans and matrices, and are not plotted."""
MAX_SIGNALS_OF_STREAM, MAX_SIGNALS = 6, 42
IS_AUXILIARY = re.compile(r"q[xyzw]|.*(cov|std|sigma|seq|stamp|time).*|.*_id|id").fullmatch
"""Whether a column is a covariance, counter, time or id instead of a measurement."""


def signals_of(
    recording: Recording, axis_of: dict[str, TimeAxis], prefix: str
) -> tuple[tuple[SampledSignal, ...], int]:
    """Return signals of the sensors over time, and the number of those omitted.

    Parameters
    ----------
    axis_of : mapping
        Axis of each stream with times; others are drawn by index.
    prefix : str
        Of the names of index axes.
    """
    found: list[SampledSignal] = []
    more = 0
    for k, stream in enumerate(recording):
        names = list(_columns(stream)) if stream.role != "truth" and len(stream) > 1 else []
        axis = axis_of.get(stream.name) or TimeAxis(f"{prefix}{k}", "index", 0, NS * (len(stream) - 1))
        mine = 0
        for name in names:
            if mine >= MAX_SIGNALS_OF_STREAM or len(found) >= MAX_SIGNALS:
                more += 1
                continue
            drawn = [
                signal for signal in _signals(stream, name, axis) if min(signal.values) < max(signal.values)
            ]
            found += drawn
            mine += len(drawn)
    return tuple(found), more


def _columns(stream: Stream) -> Iterator[str]:
    """Yield the columns of numbers or short lists of numbers."""
    for name in stream.columns:
        kind = stream.table.schema.field(name).type
        is_short = pa.types.is_fixed_size_list(kind) and kind.list_size <= MAX_LIST_SIZE
        inner = kind.value_type if is_short else kind
        if (pa.types.is_floating(inner) or pa.types.is_integer(inner)) and not IS_AUXILIARY(name.lower()):
            yield name


def _signals(stream: Stream, name: str, axis: TimeAxis) -> Iterator[SampledSignal]:
    times, rows = LazyColumns(stream.table, T_NS), LazyColumns(stream.table, name)
    kind = stream.table.schema.field(name).type
    width = kind.list_size if pa.types.is_fixed_size_list(kind) else 1
    curves = [Extremes(0.0, axis.duration_s, SIGNAL_BLOCKS) for _ in range(width)]
    for a, b in block_ranges(0, len(stream)):
        begin = a + (a > 0)  # blocks overlap by one row
        x = np.arange(begin, b, dtype=np.float64)
        if axis.clock != "index":
            x = (times[begin:b] - axis.start_ns) / NS
        values = np.asarray(rows[begin:b], np.float64).reshape(len(x), width)
        for curve, column in zip(curves, values.T, strict=True):
            curve.add(x, column)
    unit = unit_of(stream.table.schema.field(name))
    for k, curve in enumerate(curves):
        seconds, column = curve.curve()
        if len(column) > 1:
            label = name if width == 1 else f"{name}[{k}]"
            step = 0.0 if curve.exact else axis.duration_s / SIGNAL_BLOCKS
            yield SampledSignal(
                stream.name, label, unit, axis, seconds.tolist(), column.tolist(), curve.count, step
            )


PLOT_BLOCKS = 500
"""Number of blocks of the axis whose extremes are kept."""
PLOT_HEIGHT_PX, TOP_MARGIN_PX, BOTTOM_MARGIN_PX = 150, 12, 18


@dataclass(frozen=True)
class PlotLine:
    """A line of a plot."""

    label: str
    # in order of x
    x: Floats
    y: Floats
    style: str = "c0"  # class of its colour: c0 to c5, or `truth`
    band: bool = False  # drawn less prominently, such as an upper bound


@dataclass(frozen=True)
class HorizontalAxis:
    """The horizontal axis of a plot."""

    end: float  # of the axis, which starts at 0
    ticks: Sequence[tuple[float, str]]
    axis: TimeAxis | None = None  # the time axis of the cursor; None over distance
    label: str = ""  # quantity, if it is not time

    @property
    def group(self) -> str:
        """Name of the group of plots with a common cursor."""
        return self.axis.group if self.axis else "distance"


def over_time(axis: TimeAxis) -> HorizontalAxis:
    """Return the horizontal axis of a plot over time."""
    return HorizontalAxis(axis.duration_s, time_ticks(axis), axis)


def over_distance(metres: float) -> HorizontalAxis:
    """Return the horizontal axis of a plot over distance."""
    return HorizontalAxis(
        metres, [(t, f"{t:g} m") for t in round_ticks(0, metres, 5)], None, "distance travelled"
    )


def make_line(label: str, x: ArrayLike, y: ArrayLike, end: float, style: str = "c0") -> PlotLine:
    """Return a line, downsampled with its extremes kept."""
    extremes = Extremes(0.0, end, PLOT_BLOCKS)
    extremes.add(x, y)
    return PlotLine(label, *extremes.curve(), style)


def draw_plot(
    sheet: PageAssets, title: str, unit: str, lines: Sequence[PlotLine], across: HorizontalAxis, *,
    low: float | None = None,
    height: float = PLOT_HEIGHT_PX, note: str = "",
) -> Markup:  # fmt: skip
    """Draw a plot; the page's script adds the cursor and its values.

    Parameters
    ----------
    low : float, optional
        Lower end of the vertical axis; default: the smallest value.
    note : str
        Text below the plot.
    """
    lowest, highest = value_range([line.y for line in lines])
    lowest = lowest if low is None else low
    highest = highest + 0.06 * (highest - lowest)
    key = sheet.key("plot")
    scale = DRAWING_WIDTH / (across.end or 1.0)

    def up(value: ArrayLike) -> Floats:
        value = np.clip(np.asarray(value), -MAX_VALUE, MAX_VALUE)
        return height * (1 - (value - lowest) / ((highest - lowest) or 1.0))

    ticks = round_ticks(lowest, highest, 3 if height < PLOT_HEIGHT_PX else 4)
    grid = [_rule(float(up(t))) for t in ticks]
    paths = [
        tag(
            "path",
            d=path_of(line.x * scale, up(line.y)),
            class_=f"line {line.style}{' band' * line.band}",
        )
        for line in lines
    ]
    labels = [
        tag("text", text, x=2, y=number(TOP_MARGIN_PX + float(up(t)) - 3), class_="tick")
        for t, text in zip(ticks, tick_texts(ticks), strict=True)
    ]
    sheet.values[key] = {
        "unit": unit,
        "end": across.end,
        "lines": [
            {
                "label": line.label,
                "x": short_numbers(line.x),
                "y": short_numbers(line.y, 4),
            }
            for line in lines
        ],
    }
    drawing = tag(
        "svg", stretched(height, grid, paths, y=TOP_MARGIN_PX), labels, _axis_labels(across, height),
        _cursor(height),
        class_="plot", id=key, height=number(TOP_MARGIN_PX + height + BOTTOM_MARGIN_PX), role="img",
        data_group=across.group, data_end=number(across.end, 6),
        aria_label=f"{title}, {unit}" if unit else title, tabindex="0",
    )  # fmt: skip
    unit_text = tag("span", f" [{unit}]", class_="unit") if unit else None
    head = tag("figcaption", tag("b", title), unit_text, legend(lines), tag("output", for_=key))
    foot = tag("p", note, class_="note") if note else None
    return tag("figure", head, drawing, foot, class_="plot")


def legend(lines: Sequence[PlotLine]) -> Markup | None:
    """Return the legend of several lines."""
    if len(lines) < 2:
        return None
    keys = [
        tag("span", tag("i", class_=f"key {line.style}{' band' * line.band}"), line.label) for line in lines
    ]
    return tag("span", keys, class_="legend")


def _rule(y: float) -> Markup:
    return tag("path", d=f"M0 {number(y, 1)}H{DRAWING_WIDTH}", class_="rule")


def _axis_labels(across: HorizontalAxis, height: float) -> list[Markup]:
    """Return the tick labels below a plot, kept within its width."""
    found: list[Markup] = []
    for place, text in across.ticks:
        ratio = place / (across.end or 1.0)
        anchor = "start" if ratio < 0.02 else "end" if ratio > 0.97 else "middle"
        found.append(
            tag(
                "text",
                text,
                x=percent(ratio),
                y=number(TOP_MARGIN_PX + height + 13),
                text_anchor=anchor,
                class_="tick",
            )
        )
    return found


def _cursor(height: float) -> Markup:
    return tag("line", class_="cursor", x1="0", x2="0", y1=TOP_MARGIN_PX, y2=number(TOP_MARGIN_PX + height))
