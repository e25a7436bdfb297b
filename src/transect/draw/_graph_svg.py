"""A graph as an SVG drawing: the same bytes for the same graph, and all text stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from ._graph_data import Box, Graph, Pin
from ._graph_heat import heat_colour, is_dark, legend
from ._graph_paths import arrow_of, casing_of, label_place, number, path_of
from ._graph_places import Layout, layout_of
from ._graph_sizes import PAD, SMALL, SMALL_LINE, TITLE, TITLE_LINE, Shape, shortened, text_width, wrapped
from ._graph_slots import Net

MARGIN = 28.0
HEADING, HEADING_LINE, LONGEST_HEADING = 18.0, 24.0, 600.0
DELAY = "delay"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

STYLE = """
text { font-family: Helvetica, Arial, 'Liberation Sans', sans-serif; fill: #1e293b; }
.heading { font-size: 18px; font-weight: bold; }
.title { font-size: 13px; font-weight: bold; text-anchor: middle; }
.line, .pin, .caption { font-size: 11px; }
.line { text-anchor: middle; fill: #526075; }
.caption { fill: #526075; }
.end { text-anchor: end; }
.box { fill: #ffffff; stroke: #475569; stroke-width: 1.2; }
.head { fill: #e6edf6; }
.rule { stroke: #475569; stroke-width: 0.8; }
.input { fill: #dff2ea; stroke: #2f7d5f; stroke-width: 1.2; }
.output { fill: #fdeeda; stroke: #b7791f; stroke-width: 1.2; }
.inner { fill: none; stroke: #475569; stroke-width: 0.8; }
.missing { fill: #fff5f5; stroke: #c53030; stroke-dasharray: 5 3; }
.missing-text { fill: #c53030; }
.unused { fill: #9aa5b4; }
.hot text { fill: #1e293b; }
.bright text { fill: #ffffff; }
.dot { fill: #475569; }
.open { fill: #ffffff; stroke: #9aa5b4; stroke-width: 1.2; }
.casing { fill: none; stroke: #ffffff; stroke-width: 5; }
.wire { fill: none; stroke: #475569; stroke-width: 1.4; }
.late { stroke: #6d4bb8; stroke-dasharray: 6 4; }
.arrow { fill: #475569; }
.late-arrow { fill: #6d4bb8; }
.delay { font-size: 10px; font-style: italic; text-anchor: middle; fill: #6d4bb8; stroke: #ffffff;
  stroke-width: 6px; stroke-linejoin: round; paint-order: stroke; }
"""


def svg_text(graph: Graph) -> str:
    """Return the drawing of a graph."""
    layout = layout_of(graph) if graph.boxes else None
    drawn, across = (layout.height, layout.width) if layout else (0.0, 0.0)
    inside = max(across, _least_width(graph))
    above, room_above = _heading(graph, inside)
    below, room_below = _foot(graph, inside)
    width, height = inside + 2 * MARGIN, drawn + room_above + room_below + 2 * MARGIN
    size = f'width="{number(width)}" height="{number(height)}"'
    box = f'viewBox="0 0 {number(width)} {number(height)}"'
    name = f'role="img" aria-label={_attribute(graph.title)}'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} {name}>']
    parts += [f"<title>{_text(graph.title)}</title>", f"<style>{STYLE}</style>"]
    parts += [f'<rect {size} fill="#ffffff"/>', *above]
    if layout:
        parts.append(_moved(MARGIN + (inside - across) / 2, MARGIN + room_above))
        parts += [*_wires(graph, layout), *_boxes(graph, layout), "</g>"]
    parts.append(_moved(MARGIN, MARGIN + room_above + drawn))
    return "\n".join([*parts, *below, "</g>", "</svg>"]) + "\n"


def _moved(x: float, y: float) -> str:
    return f'<g transform="translate({number(x)} {number(y)})">'


def _text(text: str) -> str:
    """Return a text for XML; what XML cannot hold at all becomes a question mark."""
    return escape(_NOT_XML.sub("?", text))


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("?", text))


def _write(text: str, x: float, y: float, kind: str) -> str:
    return f'<text class="{kind}" x="{number(x)}" y="{number(y)}">{_text(text)}</text>'


def _least_width(graph: Graph) -> float:
    """Return how wide a drawing is at least: its title fits, and a few words of a caption."""
    return max(320.0, text_width(shortened(graph.title, HEADING, True, LONGEST_HEADING), HEADING, True))


def _heading(graph: Graph, width: float) -> tuple[list[str], float]:
    """Return what stands above the boxes, and how much room it takes."""
    lines = wrapped(graph.subtitle, SMALL, width)
    y = MARGIN + HEADING
    parts = [_write(shortened(graph.title, HEADING, True, width), MARGIN, y, "heading")]
    parts += [_write(line, MARGIN, y + 4 + SMALL_LINE * (i + 1), "caption") for i, line in enumerate(lines)]
    return parts, HEADING_LINE + SMALL_LINE * len(lines) + 22


def _foot(graph: Graph, width: float) -> tuple[list[str], float]:
    """Return what stands below the boxes, counted from their lower end, and how much room it takes."""
    parts: list[str] = []
    y = 22.0
    if any(box.heat is not None for box in graph.boxes):
        parts += legend(graph.legend, y)
        y += 34
    for line in (line for text in graph.caption for line in wrapped(text, SMALL, width)):
        y += SMALL_LINE
        parts.append(_write(line, 0.0, y, "caption"))
    return parts, y if parts else 0.0


def _wires(graph: Graph, layout: Layout) -> Iterator[str]:
    notes = {(box.id, pin.name): pin.note for box in graph.boxes for pin in box.outputs}
    boxes = {box.id: box for box in graph.boxes}
    nets = dict.fromkeys(net for net, _ in layout.pieces.arrows)
    for net in sorted(nets, key=lambda net: not net.dashed):
        path, late = path_of(net, layout), net.dashed
        title, is_node = boxes[net.source].title, boxes[net.source].kind == "node"
        name = f"{title}.{net.pin}" if is_node else title
        note = "\n".join(part for part in (name, notes[net.source, net.pin]) if part)
        heads = " ".join(arrow_of(end, layout) for of, end in layout.pieces.arrows if of == net)
        yield f"<g><title>{_text(note)}</title>"
        yield f'<path class="casing" d="{casing_of(net, layout)}"/>'
        yield f'<path class="wire{" late" if late else ""}" d="{path}"/>'
        yield f'<path class="{"late-arrow" if late else "arrow"}" d="{heads}"/>'
        yield "</g>"
    yield from (_delay(net, layout) for net in nets if net.dashed)


def _delay(net: Net, layout: Layout) -> str:
    x, y = label_place(net, layout)
    return _write(DELAY, x, y + 3.5, "delay")


def _boxes(graph: Graph, layout: Layout) -> Iterator[str]:
    for i, box in enumerate(graph.boxes):
        shape, x, y = layout.pieces.shapes[i], layout.left(i), layout.tops[i]
        ink = "" if box.heat is None else ' class="bright"' if is_dark(box.heat) else ' class="hot"'
        yield _moved(x, y).replace("<g", f"<g{ink}")
        yield f"<title>{_text(_note(box))}</title>"
        width = layout.right(i) - x
        yield from _frame(box, shape, width)
        yield from _words(box, shape, width)
        if box.kind == "node":
            yield from _pins(box.inputs, shape.inputs, 0.0, "pin")
            yield from _pins(box.outputs, shape.outputs, width, "pin end")
        yield "</g>"


def _note(box: Box) -> str:
    return "\n".join(part for part in (box.title, *box.lines, box.note) if part)


def _frame(box: Box, shape: Shape, width: float) -> Iterator[str]:
    top, height = shape.top, shape.height - shape.top
    kind = {"node": "box"}.get(box.kind, box.kind) + (" missing" if box.missing else "")
    round_by = 6.0 if box.kind == "node" else height / 2
    fill = f' style="fill: {heat_colour(box.heat)}"' if box.heat is not None else ""
    yield _rect(kind, 0.0, top, width, height, round_by, fill)
    if box.kind == "node" and not box.missing and box.heat is None:
        yield _head(shape, width)
    if box.kind == "node" and shape.height > shape.top + shape.head and not box.missing:
        y = number(top + shape.head)
        yield f'<path class="rule" d="M0 {y}H{number(width)}"/>'
    if box.double:
        yield _rect("inner", 3.0, top + 3, width - 6, height - 6, max(round_by - 2.5, 1.0))


def _rect(kind: str, x: float, y: float, width: float, height: float, r: float, more: str = "") -> str:
    return (
        f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
        f'height="{number(height)}" rx="{number(r)}"{more}/>'
    )


def _head(shape: Shape, width: float) -> str:
    """Return the tinted upper part of a box, inside its border."""
    corner = "a5.4 5.4 0 0 1"
    start = f"M0.6 {number(shape.top + 6)}{corner} 5.4 -5.4h{number(width - 12)}{corner} 5.4 5.4"
    if shape.height > shape.top + shape.head:
        rest = f"v{number(shape.head - 6)}h{number(1.2 - width)}"
    else:
        rest = f"v{number(shape.head - 12)}{corner} -5.4 5.4h{number(12 - width)}{corner} -5.4 -5.4"
    return f'<path class="head" d="{start}{rest}z"/>'


def _words(box: Box, shape: Shape, width: float) -> Iterator[str]:
    red = " missing-text" if box.missing else ""
    y = shape.top + 7 + TITLE
    yield _write(shortened(box.title, TITLE, True), width / 2, y, "title" + red)
    for i, line in enumerate(box.lines):
        at = y + TITLE_LINE - 2 + i * SMALL_LINE
        yield _write(shortened(line, SMALL), width / 2, at, "line" + red)


def _pins(pins: Sequence[Pin], heights: dict[str, float], x: float, kind: str) -> Iterator[str]:
    for pin in pins:
        y = heights[pin.name]
        more = {"unused": " unused", "unknown": " missing-text", "used": ""}[pin.use]
        dot = "open" if pin.use == "unused" else "dot"
        inwards = PAD if not x else -PAD
        note = "\n".join(part for part in (pin.name, pin.note) if part)
        yield f"<g><title>{_text(note)}</title>"
        if x or pin.use == "unused":  # a wire's arrow marks an input that is used
            yield f'<circle class="{dot}" cx="{number(x)}" cy="{number(y)}" r="3"/>'
        yield _write(shortened(pin.name, SMALL), x + inwards - (2 if not x else -2), y + 4, kind + more)
        yield "</g>"
