"""HTML and SVG by construction: text is always escaped; ticks, paths and sheets of the drawings."""

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

from ..axes import Axis

_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""What HTML forbids, and what would turn the direction of the text around it."""
VOID = frozenset({"meta", "img"})


class Markup(str):
    """Text that is HTML already; only `tag` and `join` make it."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | Iterable[Child] | None"


def clean(text: object) -> str:
    """Return a text as a page can show it: what cannot be written, or commands the browser, is replaced."""
    return _UNWRITABLE.sub("\ufffd", str(text))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """Return an element; plain text among its children, and every value of an attribute, is escaped.

    Parameters
    ----------
    children : str, Markup, None or iterables of them
        None is left out.
    attributes
        `class_` is written as ``class``, `data_axis` as ``data-axis``; None and False are left out, True has
        no value.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Return children one after the other, plain text escaped."""
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
    """Return values for the page's own script: JSON that cannot end its element, and is never run."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text = clean(text).replace("<", "\\u003c").replace("&", "\\u0026")
    return Markup(f'<script type="application/json" id="{html.escape(identifier)}">{text}</script>')


def number(value: float, digits: int = 2) -> str:
    """Return a coordinate with few digits, as short as it can be written."""
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


WIDTH = 1000
"""Units across the inner drawing."""
FINEST, SMALLEST = 2**50, 1e-300
"""Steps of an axis from 0 on that numbers can tell apart, and the smallest step."""
LARGEST = 1e150
"""Values beyond are drawn there: the difference of two, and its square, are still numbers."""


@dataclass
class Sheet:
    """What drawings leave for the head and the end of the page: rules of style, and values by their keys."""

    rules: list[str] = field(default_factory=list[str])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    count: int = 0

    def key(self, kind: str) -> str:
        """Return a new name for a drawing."""
        self.count += 1
        return f"{kind}{self.count}"


def round_ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return round numbers from `low` to `high`, about so many."""
    if not math.isfinite(high - low) or high <= low:
        return []
    step = round_step((high - low) / max(about, 1))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if max(abs(first), abs(last)) > FINEST:  # neighbouring numbers could not be told apart
        return []
    return [k * step for k in range(first, last + 1)]


def round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, ... that is not less."""
    least = max(least, SMALLEST)
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def time_ticks(axis: Axis) -> list[tuple[float, str]]:
    """Return places on an axis, and what is written there: seconds, minutes, or numbers of samples."""
    end = axis.duration_s
    if axis.clock == "index":
        return [(t, f"{t:g}") for t in round_ticks(0, end, 5)]
    for factor, unit in ((3600.0, "h"), (60.0, "min")):
        if end >= 3 * factor:
            return [(factor * t, f"{t:g} {unit}") for t in round_ticks(0, end / factor, 5)]
    return [(t, f"{t:.6g} s") for t in round_ticks(0, end, 5)]


def axis_text(axis: Axis) -> str:
    """Return what second zero of an axis is, and how long the axis lasts."""
    if axis.clock == "index":
        return "over the number of the sample: there are no times"
    return f"from {axis.start_text}, {duration_text(axis.duration_s)}"


def path_of(x: ArrayLike, y: ArrayLike) -> str:
    """Return the commands of a line through points (n,); a NaN interrupts it."""
    words: list[str] = []
    pen_up = True
    for a, b in zip(np.asarray(x).tolist(), np.asarray(y).tolist(), strict=True):
        if a != a or b != b:
            pen_up = True
            continue
        words.append(f"{'M' if pen_up else 'L'}{number(a, 1)} {number(b, 1)}")
        pen_up = False
    return "".join(words)


def per_cent(share: float) -> str:
    """Return a share of the width as an attribute."""
    return f"{number(100 * share, 3)}%"


def stretched(height: float, *children: Child, y: float = 0) -> Markup:
    """Return an inner drawing: as wide as the outer one, 1000 units across, `height` pixels high."""
    return tag(
        "svg", *children, x=0, y=number(y), width="100%", height=number(height),
        viewBox=f"0 0 {WIDTH} {number(height)}", preserveAspectRatio="none", class_="stretch",
    )  # fmt: skip


def short_numbers(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Return values with few digits, for the script; what is not known is None."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values]


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Return round numbers with as many digits as tell them apart."""
    largest = max(map(abs, ticks), default=1.0) or 1.0
    step = min((b - a for a, b in itertools.pairwise(ticks)), default=largest)
    power = math.floor(math.log10(step) + 1e-9)
    digits = max(0, math.floor(math.log10(largest)) - power)
    form = f".{max(0, -power)}f" if step >= 1e-7 and largest < 1e7 else f".{digits}e"
    return [f"{tick if abs(tick) > step / 2 else 0.0:{form}}".replace("-", "\u2212") for tick in ticks]


def spread(values: Sequence[Floats]) -> tuple[float, float]:
    """Return the lowest and highest of several arrays, a little apart where they are equal."""
    known = [np.clip(each[np.isfinite(each)], -LARGEST, LARGEST) for each in values]
    known = [each for each in known if len(each)]
    if not known:
        return 0.0, 1.0
    low, high = min(float(v.min()) for v in known), max(float(v.max()) for v in known)
    if high <= low:
        margin = abs(low) * 0.1 or 0.5
        return low - margin, high + margin
    return low, high
