"""Plots over time or over the distance driven, with one cursor for all, and the signals that they show."""

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

from ..axes import Axis
from .facts import Signal
from .markup import (
    LARGEST,
    WIDTH,
    Markup,
    Sheet,
    number,
    path_of,
    per_cent,
    round_ticks,
    short_numbers,
    spread,
    stretched,
    tag,
    tick_texts,
    time_ticks,
)

SIGNAL_BLOCKS = 360
"""Blocks of the time axis of which the extremes are kept."""
WIDEST = 4
"""Numbers of a list that are drawn, each by itself; longer lists are scans and matrices."""
OF_STREAM, IN_ALL = 6, 42
"""Signals at most."""
TELLS_LITTLE = re.compile(r"q[xyzw]|.*(cov|std|sigma|seq|stamp|time).*|.*_id|id").fullmatch
"""Names of columns that say how sure a sensor is, or count: not what it measured."""


def signals_of(recording: Recording, axis_of: dict[str, Axis], prefix: str) -> tuple[tuple[Signal, ...], int]:
    """Return what sensors measured over time, and how many more signals there are.

    Parameters
    ----------
    axis_of : mapping
        Axis of each stream that has times; others are drawn over their number.
    prefix : str
        Of the axes of numbers.
    """
    found: list[Signal] = []
    more = 0
    for k, stream in enumerate(recording):
        names = list(_columns(stream)) if stream.role != "truth" and len(stream) > 1 else []
        axis = axis_of.get(stream.name) or Axis(f"{prefix}{k}", "index", 0, NS * (len(stream) - 1))
        mine = 0
        for name in names:
            if mine >= OF_STREAM or len(found) >= IN_ALL:
                more += 1
                continue
            drawn = [
                signal for signal in _signals(stream, name, axis) if min(signal.values) < max(signal.values)
            ]
            found += drawn
            mine += len(drawn)
    return tuple(found), more


def _columns(stream: Stream) -> Iterator[str]:
    """Yield the columns that are single numbers, or short lists of them."""
    for name in stream.columns:
        kind = stream.table.schema.field(name).type
        few = pa.types.is_fixed_size_list(kind) and kind.list_size <= WIDEST
        inner = kind.value_type if few else kind
        if (pa.types.is_floating(inner) or pa.types.is_integer(inner)) and not TELLS_LITTLE(name.lower()):
            yield name


def _signals(stream: Stream, name: str, axis: Axis) -> Iterator[Signal]:
    times, rows = LazyColumns(stream.table, T_NS), LazyColumns(stream.table, name)
    kind = stream.table.schema.field(name).type
    width = kind.list_size if pa.types.is_fixed_size_list(kind) else 1
    curves = [Extremes(0.0, axis.duration_s, SIGNAL_BLOCKS) for _ in range(width)]
    for a, b in block_ranges(0, len(stream)):
        begin = a + (a > 0)  # blocks share a row, which is counted once
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
            yield Signal(stream.name, label, unit, axis, seconds.tolist(), column.tolist(), curve.count, step)


PLOT_BLOCKS = 500
"""Blocks of the axis of which the extremes are kept."""
HEIGHT, ABOVE, BELOW = 150, 12, 18
"""Pixels of a plot, above it for the topmost label, and below it for those of its axis."""


@dataclass(frozen=True)
class Line:
    """A line of a plot."""

    label: str
    # in order of x
    x: Floats
    y: Floats
    style: str = "c0"  # class of its colour: c0 to c5, or `truth`
    band: bool = False  # whether it is a quiet one, such as an upper bound


@dataclass(frozen=True)
class Across:
    """What a plot is drawn over."""

    end: float  # of the axis, which begins at 0
    ticks: Sequence[tuple[float, str]]
    axis: Axis | None = None  # over time: the axis that the cursor moves on
    label: str = ""  # what is measured along it, where that is not time

    @property
    def group(self) -> str:
        """Name of the plots that share a cursor."""
        return self.axis.group if self.axis else "way"


def over_time(axis: Axis) -> Across:
    """Return what a plot over time is drawn over."""
    return Across(axis.duration_s, time_ticks(axis), axis)


def over_way(metres: float) -> Across:
    """Return what a plot over the way driven is drawn over."""
    return Across(metres, [(t, f"{t:g} m") for t in round_ticks(0, metres, 5)], None, "way driven")


def thin_line(label: str, x: ArrayLike, y: ArrayLike, end: float, style: str = "c0") -> Line:
    """Return a line of any number of points, thinned so that its extremes stay."""
    extremes = Extremes(0.0, end, PLOT_BLOCKS)
    extremes.add(x, y)
    return Line(label, *extremes.curve(), style)


def draw_plot(
    sheet: Sheet, title: str, unit: str, lines: Sequence[Line], across: Across, *, low: float | None = None,
    height: float = HEIGHT, note: str = "",
) -> Markup:  # fmt: skip
    """Draw a plot; the script adds the cursor and its values.

    Parameters
    ----------
    low : float, optional
        Where the vertical axis begins; default at the smallest value.
    note : str
        What it was drawn from.
    """
    lowest, highest = spread([line.y for line in lines])
    lowest = lowest if low is None else low
    highest = highest + 0.06 * (highest - lowest)
    key = sheet.key("plot")
    scale = WIDTH / (across.end or 1.0)

    def up(value: ArrayLike) -> Floats:
        value = np.clip(np.asarray(value), -LARGEST, LARGEST)
        return height * (1 - (value - lowest) / ((highest - lowest) or 1.0))

    ticks = round_ticks(lowest, highest, 3 if height < HEIGHT else 4)
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
        tag("text", text, x=2, y=number(ABOVE + float(up(t)) - 3), class_="tick")
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
        "svg", stretched(height, grid, paths, y=ABOVE), labels, _axis_labels(across, height), _cursor(height),
        class_="plot", id=key, height=number(ABOVE + height + BELOW), role="img",
        data_group=across.group, data_end=number(across.end, 6),
        aria_label=f"{title}, {unit}" if unit else title, tabindex="0",
    )  # fmt: skip
    said = tag("span", f" [{unit}]", class_="unit") if unit else None
    head = tag("figcaption", tag("b", title), said, legend(lines), tag("output", for_=key))
    foot = tag("p", note, class_="note") if note else None
    return tag("figure", head, drawing, foot, class_="plot")


def legend(lines: Sequence[Line]) -> Markup | None:
    """Return what the colours of several lines mean."""
    if len(lines) < 2:
        return None
    keys = [
        tag("span", tag("i", class_=f"key {line.style}{' band' * line.band}"), line.label) for line in lines
    ]
    return tag("span", keys, class_="legend")


def _rule(y: float) -> Markup:
    return tag("path", d=f"M0 {number(y, 1)}H{WIDTH}", class_="rule")


def _axis_labels(across: Across, height: float) -> list[Markup]:
    """Return the labels below a plot; the last may not leave it."""
    found: list[Markup] = []
    for place, text in across.ticks:
        share = place / (across.end or 1.0)
        anchor = "start" if share < 0.02 else "end" if share > 0.97 else "middle"
        found.append(
            tag(
                "text",
                text,
                x=per_cent(share),
                y=number(ABOVE + height + 13),
                text_anchor=anchor,
                class_="tick",
            )
        )
    return found


def _cursor(height: float) -> Markup:
    return tag("line", class_="cursor", x1="0", x2="0", y1=ABOVE, y2=number(ABOVE + height))
