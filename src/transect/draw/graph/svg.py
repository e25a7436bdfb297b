"""A graph as an SVG drawing: the same bytes for the same graph, and all text stays text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from .boxes import (
    PAD,
    SMALL,
    SMALL_LINE,
    TITLE,
    TITLE_LINE,
    Box,
    Graph,
    Shape,
    heat_colour,
    ink_colour,
    number,
    shorten,
    text_width,
)  # fmt: skip
from .layout import ARROW, Layout, lay_out

MARGIN, HEADING, LONGEST_HEADING = 28.0, 18.0, 600.0
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

STYLE = """
text { font-family: Helvetica, Arial, 'Liberation Sans', sans-serif; font-size: 11px; fill: #1e293b; }
.heading { font-size: 18px; font-weight: bold; }
.title { font-size: 13px; font-weight: bold; text-anchor: middle; }
.line { text-anchor: middle; fill: #526075; }
.caption { fill: #526075; }
.end { text-anchor: end; }
.box, .body { fill: #e6edf6; stroke: #475569; stroke-width: 1.2; }
.body { fill: #ffffff; }
.input { fill: #dff2ea; stroke: #2f7d5f; stroke-width: 1.2; }
.output { fill: #fdeeda; stroke: #b7791f; stroke-width: 1.2; }
.inner { fill: none; stroke: #475569; stroke-width: 0.8; }
.missing { fill: #fff5f5; stroke: #c53030; stroke-dasharray: 5 3; }
.missing-text, .unknown { fill: #c53030; }
.unused { fill: #9aa5b4; }
.dot { fill: #475569; }
.open { fill: #ffffff; stroke: #9aa5b4; stroke-width: 1.2; }
.wire { fill: none; stroke: #475569; stroke-width: 1.4; }
.arrow { fill: #475569; }
.late { stroke: #6d4bb8; stroke-dasharray: 6 4; }
.late-arrow { fill: #6d4bb8; }
.delay { font-size: 10px; font-style: italic; text-anchor: middle; fill: #6d4bb8; stroke: #ffffff;
  stroke-width: 6px; stroke-linejoin: round; paint-order: stroke; }
"""


def svg_text(graph: Graph) -> str:
    """Return a graph as an SVG drawing; the same graph gives the same bytes.

    Inputs stand on the left and outputs on the right; wires never run through boxes, and those that
    deliver later are dashed. Types and explanations are tooltips.
    """
    layout = lay_out(graph) if graph.boxes else Layout([], [], 0.0, 0.0)
    title = shorten(graph.title, HEADING, LONGEST_HEADING)
    inside = max(layout.width, 320.0, 1.12 * text_width(title, HEADING))
    above = _wrap(graph.subtitle, inside)
    top = MARGIN + 46 + SMALL_LINE * len(above)
    below, room = _foot(graph, inside)
    width, height = number(inside + 2 * MARGIN), number(top + layout.height + room + MARGIN)
    size, name = f'width="{width}" height="{height}"', quoteattr(_NOT_XML.sub("?", graph.title))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img" ']
    parts[0] += f"aria-label={name}>\n<title>{_text(graph.title)}</title>\n<style>{STYLE}</style>"
    parts += [f'<rect {size} fill="#ffffff"/>', _write(title, MARGIN, MARGIN + HEADING, "heading")]
    parts += [_write(line, MARGIN, MARGIN + 37 + SMALL_LINE * i, "caption") for i, line in enumerate(above)]
    parts += [_move(MARGIN + (inside - layout.width) / 2, top), *_wires(graph, layout)]
    for box, place in zip(graph.boxes, layout.places, strict=True):
        parts += _box(box, *place)
    return "\n".join([*parts, "</g>", _move(MARGIN, top + layout.height), *below, "</g>\n</svg>\n"])


def _move(x: float, y: float) -> str:
    return f'<g transform="translate({number(x)} {number(y)})">'


def _text(*lines: str) -> str:
    """Return lines for XML; what XML cannot hold at all becomes a question mark."""
    return escape(_NOT_XML.sub("?", "\n".join(filter(None, lines))))


def _write(text: str, x: float, y: float, kind: str, style: str = "") -> str:
    return f'<text class="{kind}" x="{number(x)}" y="{number(y)}"{style}>{_text(text)}</text>'


def _wrap(text: str, width: float) -> list[str]:
    return textwrap.wrap(text, int(width / (0.56 * SMALL)))


def _foot(graph: Graph, width: float) -> tuple[list[str], float]:
    """Return what stands below the boxes, counted from their lower end, and how much room it takes."""
    parts: list[str] = []
    y = 22.0
    if any(box.heat is not None for box in graph.boxes):
        for i in range(40):
            colour = heat_colour((i + 0.5) / 40)
            parts.append(f'<rect x="{30 + 4 * i}" y="22" width="4.3" height="12" fill="{colour}"/>')
        parts.append('<rect class="inner" x="30" y="22" width="160" height="12"/>')
        parts.append(_write("0 %", 24, 32, "caption end"))
        parts.append(_write(f"100 %   {graph.legend}", 196, 32, "caption"))
        y = 56.0
    for line in (line for text in graph.caption for line in _wrap(text, width)):
        y += SMALL_LINE
        parts.append(_write(line, 0.0, y, "caption"))
    return parts, y if parts else 0.0


def _wires(graph: Graph, layout: Layout) -> Iterator[str]:
    boxes = {box.id: box for box in graph.boxes}
    notes = {(box.id, pin.name): pin.note for box in graph.boxes for pin in box.outputs}
    for wire in sorted(layout.wires, key=lambda wire: not wire.edge.dashed):
        edge, source, (x, y) = wire.edge, boxes[wire.edge.source], wire.tip
        name = f"{source.title}.{edge.source_pin}" if source.kind == "node" else source.title
        yield f"<g><title>{_text(name, notes[edge.source, edge.source_pin])}</title>"
        yield f'<path class="wire{" late" if edge.dashed else ""}" d="{wire.path}"/>'
        head = f"M{number(x - ARROW)} {number(y - 3.6)}l{number(ARROW)} 3.6l-{number(ARROW)} 3.6z"
        yield f'<path class="{"late-" if edge.dashed else ""}arrow" d="{head}"/></g>'
    for wire in layout.wires:
        if wire.edge.dashed:
            yield _write("delay", wire.middle[0], wire.middle[1] + 3.5, "delay")


def _box(box: Box, x: float, y: float, width: float, shape: Shape) -> Iterator[str]:
    fill = ink = ""
    if box.heat is not None:
        fill, ink = f' style="fill: {heat_colour(box.heat)}"', f' style="fill: {ink_colour(box.heat)}"'
    red = " missing" if box.missing else ""
    kind, corner = ("box", 6.0) if box.kind == "node" else (box.kind, shape.height / 2)
    yield f"{_move(x, y)}<title>{_text(box.title, *box.lines, box.note)}</title>"
    yield _rect(kind + red, 0, width, shape.height, corner, fill)
    if shape.height > shape.head and not red:
        sides = f"H{number(width)}V{number(shape.height - 6)}a6 6 0 0 1 -6 6H6a6 6 0 0 1 -6 -6z"
        yield f'<path class="body" d="M0 {number(shape.head)}{sides}"{fill}/>'
    if box.double:
        yield _rect("inner", 3, width - 6, shape.height - 6, corner - 2.5)
    red = red and " missing-text"
    yield _write(shorten(box.title, TITLE), width / 2, 7 + TITLE, "title" + red, ink)
    for i, line in enumerate(box.lines):
        down = 5 + TITLE + TITLE_LINE + i * SMALL_LINE
        yield _write(shorten(line, SMALL), width / 2, down, "line" + red, ink)
    if box.kind == "node":
        yield from _pins(box, width, shape, ink)
    yield "</g>"


def _rect(kind: str, at: float, width: float, height: float, corner: float, style: str = "") -> str:
    size = f'width="{number(width)}" height="{number(height)}" rx="{number(corner)}"'
    return f'<rect class="{kind}" x="{number(at)}" y="{number(at)}" {size}{style}/>'


def _pins(box: Box, width: float, shape: Shape, ink: str) -> Iterator[str]:
    rows = [(pin, 0.0, PAD - 2, shape.inputs[pin.name], "pin") for pin in box.inputs]
    rows += [(pin, width, width - PAD + 2, shape.outputs[pin.name], "pin end") for pin in box.outputs]
    for pin, edge, x, y, kind in rows:
        yield f"<g><title>{_text(pin.name, pin.note)}</title>"
        if edge or pin.use == "unused":  # the arrow of a wire marks an input that is used
            dot = "open" if pin.use == "unused" else "dot"
            yield f'<circle class="{dot}" cx="{number(edge)}" cy="{number(y)}" r="3"/>'
        style = ink if pin.use == "used" else ""
        yield _write(shorten(pin.name, SMALL), x, y + 4, f"{kind} {pin.use}", style) + "</g>"
