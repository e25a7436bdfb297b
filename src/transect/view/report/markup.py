"""HTML and SVG elements with escaped text; ticks, paths and style rules of drawings."""

from __future__ import annotations

import html
import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.recording.summary import duration_text

from ..axes import TimeAxis

_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Characters that HTML forbids, and those that change the direction of text."""
VOID = frozenset({"meta", "img"})


class Markup(str):
    """Text that is HTML already; created only by `tag` and `join`."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | Iterable[Child] | None"


def clean(text: object) -> str:
    """Return a text with forbidden and control characters replaced."""
    return _UNWRITABLE.sub("\ufffd", str(text))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """Return an element; plain text of children and attribute values are escaped.

    Parameters
    ----------
    children : str, Markup, None or iterables of them
        None is omitted.
    attributes
        `class_` is written as ``class``, `data_axis` as ``data-axis``; None and False are omitted, True has
        no value.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Return the concatenated children, plain text escaped."""
    return Markup("".join(_text(child) for child in children))


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return html.escape(clean(child), quote=False)
    return "".join(_text(part) for part in child)


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(clean(value))}"'


def data_block(identifier: str, value: Any) -> Markup:
    """Return values for the page's script as JSON, escaped so that it cannot end its element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text = clean(text).replace("<", "\\u003c").replace("&", "\\u0026")
    return Markup(f'<script type="application/json" id="{html.escape(identifier)}">{text}</script>')


def number(value: float, digits: int = 2) -> str:
    """Return a coordinate with few digits, as short as possible."""
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


DRAWING_WIDTH = 1000
"""Units across the inner drawing."""
MAX_TICK_INDEX, MIN_TICK_STEP = 2**50, 1e-300
"""Limits of ticks in double precision."""
MAX_VALUE = 1e150
"""Larger values are clipped, so that the squared difference of two is finite."""


@dataclass
class PageAssets:
    """Style rules of drawings for the head of the page, and their values for the script, by key."""

    rules: list[str] = field(default_factory=list[str])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    count: int = 0

    def key(self, kind: str) -> str:
        """Return a new name for a drawing."""
        self.count += 1
        return f"{kind}{self.count}"


def round_ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return round numbers from `low` to `high`, approximately `about` of them."""
    if not math.isfinite(high - low) or high <= low:
        return []
    step = round_step((high - low) / max(about, 1))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if max(abs(first), abs(last)) > MAX_TICK_INDEX:  # neighbouring ticks would be equal
        return []
    return [k * step for k in range(first, last + 1)]


def round_step(least: float) -> float:
    """Return the smallest of ..., 1, 2, 5, 10, ... that is at least `least`."""
    least = max(least, MIN_TICK_STEP)
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def time_ticks(axis: TimeAxis) -> list[tuple[float, str]]:
    """Return ticks of an axis with labels: seconds, minutes, hours, or indices of samples."""
    end = axis.duration_s
    if axis.clock == "index":
        return [(t, f"{t:g}") for t in round_ticks(0, end, 5)]
    for factor, unit in ((3600.0, "h"), (60.0, "min")):
        if end >= 3 * factor:
            return [(factor * t, f"{t:g} {unit}") for t in round_ticks(0, end / factor, 5)]
    return [(t, f"{t:.6g} s") for t in round_ticks(0, end, 5)]


def axis_text(axis: TimeAxis) -> str:
    """Return the start and the duration of an axis as text."""
    if axis.clock == "index":
        return "by index of the sample (no timestamps)"
    return f"from {axis.start_text}, {duration_text(axis.duration_s)}"


def path_of(x: ArrayLike, y: ArrayLike) -> str:
    """Return the SVG path through points (n,), interrupted at NaN."""
    words: list[str] = []
    pen_up = True
    for a, b in zip(np.asarray(x).tolist(), np.asarray(y).tolist(), strict=True):
        if a != a or b != b:
            pen_up = True
            continue
        words.append(f"{'M' if pen_up else 'L'}{number(a, 1)} {number(b, 1)}")
        pen_up = False
    return "".join(words)


def percent(ratio: float) -> str:
    """Return a fraction of the width as an attribute."""
    return f"{number(100 * ratio, 3)}%"


def stretched(height: float, *children: Child, y: float = 0) -> Markup:
    """Return an inner drawing of full width, 1000 units across and `height` pixels high."""
    return tag(
        "svg", *children, x=0, y=number(y), width="100%", height=number(height),
        viewBox=f"0 0 {DRAWING_WIDTH} {number(height)}", preserveAspectRatio="none", class_="stretch",
    )  # fmt: skip


def short_numbers(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Return values with few digits for the script; None for NaN."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values]


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Return tick labels with as many digits as the step needs."""
    largest = max(map(abs, ticks), default=1.0) or 1.0
    step = min((b - a for a, b in itertools.pairwise(ticks)), default=largest)
    power = math.floor(math.log10(step) + 1e-9)
    digits = max(0, math.floor(math.log10(largest)) - power)
    form = f".{max(0, -power)}f" if step >= 1e-7 and largest < 1e7 else f".{digits}e"
    return [f"{tick if abs(tick) > step / 2 else 0.0:{form}}".replace("-", "\u2212") for tick in ticks]


def value_range(values: Sequence[Floats]) -> tuple[float, float]:
    """Return the minimum and maximum of several arrays, widened if they are equal."""
    known = [np.clip(each[np.isfinite(each)], -MAX_VALUE, MAX_VALUE) for each in values]
    known = [each for each in known if len(each)]
    if not known:
        return 0.0, 1.0
    low, high = min(float(v.min()) for v in known), max(float(v.max()) for v in known)
    if high <= low:
        margin = abs(low) * 0.1 or 0.5
        return low - margin, high + margin
    return low, high
