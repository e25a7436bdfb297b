"""How large the boxes of a graph are, by what is written on them. All lengths are in SVG pixels."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace

from ._graph_data import Box

TITLE, SMALL = 13.0, 11.0
"""Font sizes."""
TITLE_LINE, SMALL_LINE, ROW = 18.0, 15.0, 19.0
PAD, BETWEEN_PINS = 14.0, 26.0
LANE = 18.0
"""Height of a wire that goes back over a box."""
LONGEST = 300.0
"""Of a text; what is longer is cut, and whole in the tooltip."""

# Advance widths of Helvetica (Adobe's core font metrics) for the characters from blank to tilde, in 1/1000
# of the font size; Arial and Liberation Sans have the same.
_WIDTHS = [
    *(278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278),
    *(556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556),
    *(1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778),
    *(667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556),
    *(333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556),
    *(556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584),
]
_BOLD = 1.07
_SPARE = 1.06
"""For fonts that run wider than Helvetica where none of its kin is installed."""


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return about how wide a text is in the drawing's font."""
    total = sum(_advance(character) for character in text)
    return total * size / 1000 * _SPARE * (_BOLD if bold else 1.0)


def _advance(character: str) -> int:
    code = ord(character) - 32
    if 0 <= code < len(_WIDTHS):
        return _WIDTHS[code]
    if unicodedata.combining(character):
        return 0
    return 1000 if unicodedata.east_asian_width(character) in "WF" else 600


def shortened(text: str, size: float, bold: bool = False, widest: float = LONGEST) -> str:
    """Return a text that is not wider than `widest`, its end replaced by an ellipsis if need be."""
    if text_width(text, size, bold) <= widest:
        return text
    while text and text_width(text + "…", size, bold) > widest:
        text = text[:-1]
    return text.rstrip() + "…"


def wrapped(text: str, size: float, widest: float) -> list[str]:
    """Return a text as lines that are not wider than `widest`, broken at blanks."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= widest:
            lines[-1] += f" {word}"
        else:
            lines.append(shortened(word, size, widest=widest))
    return lines


@dataclass(frozen=True)
class Shape:
    """The size of a box with the lanes above it, and where its wires end.

    Attributes
    ----------
    width, height : float
        `height` includes the lanes.
    top : float
        Where the box begins, below its lanes.
    head : float
        Height of the part that holds title and subtitle.
    inputs, outputs : dict of str to float
        Heights of the pins below the top of the shape.
    """

    width: float
    height: float
    top: float
    head: float
    inputs: dict[str, float]
    outputs: dict[str, float]

    def with_lanes(self, count: int) -> Shape:
        """Return the shape moved down to make room for wires above it."""
        room = count * LANE
        return replace(
            self,
            height=self.height + room,
            top=self.top + room,
            inputs={name: y + room for name, y in self.inputs.items()},
            outputs={name: y + room for name, y in self.outputs.items()},
        )


def shape_of(box: Box) -> Shape:
    """Return the size of a box without lanes."""
    head = 7 + TITLE_LINE + SMALL_LINE * len(box.lines) + 5
    texts = [text_width(shortened(box.title, TITLE, True), TITLE, True)]
    texts += [text_width(shortened(line, SMALL), SMALL) for line in box.lines]
    if box.kind != "node":
        pins = {pin.name: head / 2 for pin in (*box.inputs, *box.outputs)}
        return Shape(max(texts) + 2 * PAD + 4, head, 0.0, head, pins, pins)
    rows = max(len(box.inputs), len(box.outputs))
    texts.append(_widest_pin(box, "inputs") + BETWEEN_PINS + _widest_pin(box, "outputs"))
    height = head + (6 + rows * ROW + 5 if rows else 0)
    first = head + 6 + ROW / 2
    ins = {pin.name: first + i * ROW for i, pin in enumerate(box.inputs)}
    outs = {pin.name: first + i * ROW for i, pin in enumerate(box.outputs)}
    return Shape(max(texts) + 2 * PAD, height, 0.0, head, ins, outs)


def _widest_pin(box: Box, side: str) -> float:
    widths = [text_width(shortened(pin.name, SMALL), SMALL) for pin in getattr(box, side)]
    return max(widths, default=0.0)
