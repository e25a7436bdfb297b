"""Elements of a graph drawing, boxes with named pins and wires between pins, and their sizes."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

from transect.errors import UsageError


@dataclass(frozen=True)
class BoxLayout:
    """Sizes in SVG pixels."""

    title_font: float = 13.0
    text_font: float = 11.0
    title_line: float = 18.0
    text_line: float = 15.0
    pin_row: float = 19.0
    padding: float = 14.0
    pin_columns_gap: float = 26.0
    max_text_width: float = 300.0


BOX = BoxLayout()
# ColorBrewer's OrRd without its darkest end (Brewer 2003): light to dark also in print without colours.
_HEAT = ((255, 247, 236), (253, 212, 158), (253, 187, 132), (252, 141, 89), (215, 48, 31))


@dataclass(frozen=True)
class GraphPin:
    """A named input or output of a box, where wires end."""

    name: str
    note: str = ""  # tooltip: type, meaning
    # `unused` pins are grey; `unknown` ones, which the box does not declare, red
    use: Literal["used", "unused", "unknown"] = "used"


@dataclass(frozen=True)
class GraphBox:
    """A node of the graph, or one of its inputs or outputs."""

    id: str  # unique; edges refer to it
    title: str
    subtitle: str = ""  # smaller, below the title; may have several lines
    # on the left and on the right, from top to bottom
    inputs: tuple[GraphPin, ...] = ()
    outputs: tuple[GraphPin, ...] = ()
    # `input` boxes are in the first column, `output` boxes in the last
    kind: Literal["node", "input", "output"] = "node"
    note: str = ""  # tooltip
    heat: float | None = None  # 0 to 1: the colour of the box
    heat_label: str = ""  # such as `12 ms, 61 %`; the last line of the box
    double: bool = False  # has a double border: the box is a graph of its own
    missing: bool = False  # red and dashed: a wire or another box refers to it, but it does not exist

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines below the title."""
        return tuple(line for line in (*self.subtitle.split("\n"), self.heat_label) if line)


@dataclass(frozen=True)
class GraphEdge:
    """A wire from an output pin to an input pin; a dashed one is delayed and may close a loop."""

    source: str
    source_pin: str
    target: str
    target_pin: str
    dashed: bool = False


@dataclass(frozen=True)
class GraphDrawing:
    """Boxes and wires, the lines below them (`caption`), and the meaning of the boxes' heat (`legend`)."""

    title: str
    boxes: tuple[GraphBox, ...]
    edges: tuple[GraphEdge, ...] = ()
    subtitle: str = ""
    caption: tuple[str, ...] = ()
    legend: str = "of the computing time"

    def __post_init__(self) -> None:
        if len({box.id for box in self.boxes}) < len(self.boxes):
            raise UsageError(f"two boxes of {self.title!r} have the same id")
        outputs = {(box.id, pin.name) for box in self.boxes for pin in box.outputs}
        inputs = {(box.id, pin.name) for box in self.boxes for pin in box.inputs}
        ends = [((e.source, e.source_pin), outputs, "output") for e in self.edges]
        for end, known, side in [*ends, *(((e.target, e.target_pin), inputs, "input") for e in self.edges)]:
            if end not in known:
                raise UsageError(f"a wire ends at {'.'.join(end)}, and there is no such {side}")


def heat_colour(heat: float) -> str:
    """Return the colour of a number from 0 to 1, as ``#rrggbb``."""
    at = min(max(heat, 0.0), 1.0) * (len(_HEAT) - 1)
    i = min(int(at), len(_HEAT) - 2)
    mixed = (round(a + (at - i) * (b - a)) for a, b in zip(_HEAT[i], _HEAT[i + 1], strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def ink_colour(heat: float) -> str:
    """Return the colour of text with a good contrast to that of a heat."""
    return "#ffffff" if heat > 0.88 else "#1e293b"


def fmt_px(x: float) -> str:
    """Return a coordinate as text, to a tenth of a pixel."""
    return f"{round(x, 1) + 0.0:.7g}"


def text_width(text: str, size: float) -> float:
    """Return an upper estimate of the width of a text; fonts differ."""
    wide = sum(c in "mwMW@%" or unicodedata.east_asian_width(c) in "WF" for c in text)
    narrow, capital = sum(c in " .,:;'|!()[]/fijlrtI" for c in text), sum(c.isupper() for c in text)
    return size * (0.6 * len(text) + 0.4 * wide + 0.14 * capital - 0.27 * narrow)


def shorten(text: str, size: float, widest: float = BOX.max_text_width) -> str:
    """Return a text not wider than `widest`, its end replaced by an ellipsis if necessary."""
    if text_width(text, size) <= widest:
        return text
    while text and text_width(text + "…", size) > widest:
        text = text[:-1]
    return text.rstrip() + "…"


@dataclass(frozen=True)
class BoxShape:
    """The size of a box, the height of its head with title and subtitle, and y of its pins."""

    width: float
    height: float
    head: float
    inputs: dict[str, float]
    outputs: dict[str, float]


def shape_of(box: GraphBox) -> BoxShape:
    """Return the size of a box that fits its text."""
    head = 12 + BOX.title_line + BOX.text_line * len(box.lines)
    widths = [1.12 * text_width(shorten(box.title, BOX.title_font), BOX.title_font)]
    widths += [text_width(shorten(line, BOX.text_font), BOX.text_font) for line in box.lines]
    if box.kind != "node":
        pins = {pin.name: head / 2 for pin in (*box.inputs, *box.outputs)}
        return BoxShape(max(widths) + 2 * BOX.padding + 4, head, head, pins, pins)
    names = [[pin.name for pin in pins] for pins in (box.inputs, box.outputs)]
    sides = [
        max((text_width(shorten(name, BOX.text_font), BOX.text_font) for name in side), default=0.0)
        for side in names
    ]
    ins, outs = ({name: head + 6 + BOX.pin_row * (i + 0.5) for i, name in enumerate(side)} for side in names)
    height = head + (11 + BOX.pin_row * max(map(len, names)) if any(names) else 0)
    return BoxShape(max(*widths, BOX.pin_columns_gap + sum(sides)) + 2 * BOX.padding, height, head, ins, outs)
