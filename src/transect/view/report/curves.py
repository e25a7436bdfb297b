"""Curves over time or over the way driven, with one cursor for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry.decimation import Extremes

from ..axes import Axis
from .markup import Markup, number, tag
from .svg import (
    LARGEST,
    WIDTH,
    Sheet,
    path_of,
    per_cent,
    round_ticks,
    short_numbers,
    spread,
    stretched,
    tick_texts,
    time_ticks,
)

PARTS = 500
"""Parts of an axis whose extremes are kept."""
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
    extremes = Extremes(0.0, end, PARTS)
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
