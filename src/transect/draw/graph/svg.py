"""A graph as a deterministic SVG drawing with selectable text.

The layout is layered (Sugiyama, Tagawa and Toda 1981): boxes are in columns by the longest path to them,
ordered by barycentre sweeps. A wire has a slot of its own in every column that it crosses, so it never runs
through a box. A backward wire is routed above the columns that it crosses, a self-loop just above its box.
Lengths are in SVG pixels, x right and y down.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from .boxes import (
    BOX,
    BoxShape,
    GraphBox,
    GraphDrawing,
    GraphEdge,
    fmt_px,
    heat_colour,
    ink_colour,
    shape_of,
    shorten,
    text_width,
)  # fmt: skip


@dataclass(frozen=True)
class SvgLayout:
    """Sizes in SVG pixels, and numbers of sweeps."""

    margin: float = 28.0
    heading_font: float = 18.0
    max_heading_width: float = 600.0
    box_gap: float = 26.0
    wire_gap: float = 6.0
    wire_height: float = 8.0
    lane_height: float = 22.0  # of a backward wire above the boxes
    arrow: float = 7.0
    ordering_sweeps: int = 16  # of the first sweeps, which reorder columns
    sweeps: int = 100


LAYOUT = SvgLayout()
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

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


def svg_text(graph: GraphDrawing) -> str:
    """Return a graph as an SVG drawing; equal graphs give equal bytes.

    Inputs are on the left and outputs on the right; delayed wires are dashed. Types and explanations are
    tooltips.
    """
    layout = lay_out(graph) if graph.boxes else GraphLayout([], [], 0.0, 0.0)
    title = shorten(graph.title, LAYOUT.heading_font, LAYOUT.max_heading_width)
    inside = max(layout.width, 320.0, 1.12 * text_width(title, LAYOUT.heading_font))
    above = _wrap(graph.subtitle, inside)
    top = LAYOUT.margin + 46 + BOX.text_line * len(above)
    below, room = _foot(graph, inside)
    width, height = (
        fmt_px(inside + 2 * LAYOUT.margin),
        fmt_px(top + layout.height + room + LAYOUT.margin),
    )
    size, name = f'width="{width}" height="{height}"', escape(_NOT_XML.sub("?", graph.title))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img" ']
    parts[0] += f'aria-label="{name}">\n<title>{_text(graph.title)}</title>\n<style>{STYLE}</style>'
    parts += [
        f'<rect {size} fill="#ffffff"/>',
        _write(title, LAYOUT.margin, LAYOUT.margin + LAYOUT.heading_font, "heading"),
    ]
    parts += [
        _write(line, LAYOUT.margin, LAYOUT.margin + 37 + BOX.text_line * i, "caption")
        for i, line in enumerate(above)
    ]
    parts += [_move(LAYOUT.margin + (inside - layout.width) / 2, top), *_wires(graph, layout)]
    for box, place in zip(graph.boxes, layout.places, strict=True):
        parts += _box(box, *place)
    return "\n".join([*parts, "</g>", _move(LAYOUT.margin, top + layout.height), *below, "</g>\n</svg>\n"])


def _move(x: float, y: float) -> str:
    return f'<g transform="translate({fmt_px(x)} {fmt_px(y)})">'


def _text(*lines: str) -> str:
    """Return escaped lines; characters that XML does not allow become question marks."""
    return escape(_NOT_XML.sub("?", "\n".join(filter(None, lines))), quote=False)


def _write(text: str, x: float, y: float, kind: str, style: str = "") -> str:
    return f'<text class="{kind}" x="{fmt_px(x)}" y="{fmt_px(y)}"{style}>{_text(text)}</text>'


def _wrap(text: str, width: float) -> list[str]:
    return textwrap.wrap(text, int(width / (0.56 * BOX.text_font)))


def _foot(graph: GraphDrawing, width: float) -> tuple[list[str], float]:
    """Return the elements below the boxes, y counted from their lower end, and their height."""
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
        y += BOX.text_line
        parts.append(_write(line, 0.0, y, "caption"))
    return parts, y if parts else 0.0


def _wires(graph: GraphDrawing, layout: GraphLayout) -> Iterator[str]:
    boxes = {box.id: box for box in graph.boxes}
    notes = {(box.id, pin.name): pin.note for box in graph.boxes for pin in box.outputs}
    for wire in sorted(layout.wires, key=lambda wire: not wire.edge.dashed):
        edge, source, (x, y) = wire.edge, boxes[wire.edge.source], wire.tip
        name = f"{source.title}.{edge.source_pin}" if source.kind == "node" else source.title
        yield f"<g><title>{_text(name, notes[edge.source, edge.source_pin])}</title>"
        yield f'<path class="wire{" late" if edge.dashed else ""}" d="{wire.path}"/>'
        length = fmt_px(LAYOUT.arrow)
        head = f"M{fmt_px(x - LAYOUT.arrow)} {fmt_px(y - 3.6)}l{length} 3.6l-{length} 3.6z"
        yield f'<path class="{"late-" if edge.dashed else ""}arrow" d="{head}"/></g>'
    for wire in layout.wires:
        if wire.edge.dashed:
            yield _write("delay", wire.middle[0], wire.middle[1] + 3.5, "delay")


def _box(box: GraphBox, x: float, y: float, width: float, shape: BoxShape) -> Iterator[str]:
    fill = ink = ""
    if box.heat is not None:
        fill, ink = f' style="fill: {heat_colour(box.heat)}"', f' style="fill: {ink_colour(box.heat)}"'
    red = " missing" if box.missing else ""
    kind, corner = ("box", 6.0) if box.kind == "node" else (box.kind, shape.height / 2)
    yield f"{_move(x, y)}<title>{_text(box.title, *box.lines, box.note)}</title>"
    yield _rect(kind + red, 0, width, shape.height, corner, fill)
    if shape.height > shape.head and not red:
        sides = f"H{fmt_px(width)}V{fmt_px(shape.height - 6)}a6 6 0 0 1 -6 6H6a6 6 0 0 1 -6 -6z"
        yield f'<path class="body" d="M0 {fmt_px(shape.head)}{sides}"{fill}/>'
    if box.double:
        yield _rect("inner", 3, width - 6, shape.height - 6, corner - 2.5)
    red = red and " missing-text"
    yield _write(shorten(box.title, BOX.title_font), width / 2, 7 + BOX.title_font, "title" + red, ink)
    for i, line in enumerate(box.lines):
        down = 5 + BOX.title_font + BOX.title_line + i * BOX.text_line
        yield _write(shorten(line, BOX.text_font), width / 2, down, "line" + red, ink)
    if box.kind == "node":
        yield from _pins(box, width, shape, ink)
    yield "</g>"


def _rect(kind: str, at: float, width: float, height: float, corner: float, style: str = "") -> str:
    size = f'width="{fmt_px(width)}" height="{fmt_px(height)}" rx="{fmt_px(corner)}"'
    return f'<rect class="{kind}" x="{fmt_px(at)}" y="{fmt_px(at)}" {size}{style}/>'


def _pins(box: GraphBox, width: float, shape: BoxShape, ink: str) -> Iterator[str]:
    rows = [(pin, 0.0, BOX.padding - 2, shape.inputs[pin.name], "pin") for pin in box.inputs]
    rows += [(pin, width, width - BOX.padding + 2, shape.outputs[pin.name], "pin end") for pin in box.outputs]
    for pin, edge, x, y, kind in rows:
        yield f"<g><title>{_text(pin.name, pin.note)}</title>"
        if edge or pin.use == "unused":  # the arrow of a wire marks an input that is used
            dot = "open" if pin.use == "unused" else "dot"
            yield f'<circle class="{dot}" cx="{fmt_px(edge)}" cy="{fmt_px(y)}" r="3"/>'
        style = ink if pin.use == "used" else ""
        yield _write(shorten(pin.name, BOX.text_font), x, y + 4, f"{kind} {pin.use}", style) + "</g>"


WireEnd = tuple[int, float]
"""A slot, and the distance of a wire's end below its top."""


@dataclass(frozen=True)
class WirePath:
    """The route of an edge: an SVG path, the tip of its arrow, and the position of a label on it."""

    edge: GraphEdge
    path: str
    tip: tuple[float, float]
    middle: tuple[float, float]


@dataclass(frozen=True)
class GraphLayout:
    """Left, top, width and shape of all boxes; all wires; and the total size."""

    places: list[tuple[float, float, float, BoxShape]]
    wires: list[WirePath]
    width: float
    height: float


def lay_out(graph: GraphDrawing) -> GraphLayout:
    """Return the positions of all boxes and wires of a graph with at least one box."""
    slots = _Slots(graph)
    lanes = _find_lanes(slots)
    tops = slots.tops
    columns = _find_sides(slots)
    sides = [columns[layer] for layer in slots.layers]
    places = [(a, y, b - a, shape) for (a, b), y, shape in zip(sides, tops, slots.shapes, strict=False)]
    wires: list[WirePath] = []
    for edge, route, lane in zip(graph.edges, slots.routes, lanes, strict=True):
        ends = [(x, tops[slot] + dy) for slot, dy in route for x in sides[slot]]
        wires.append(_draw_wire(edge, ends[1:-1], lane))
    height = max(top + size for top, size in zip(tops, slots.sizes, strict=True))
    return GraphLayout(places, wires, max(right for _, right in sides), height)


def find_layers(graph: GraphDrawing) -> dict[str, int]:
    """Return the column of each box: wires point right except in loops; inputs first, outputs last."""
    forward = _drop_loops(graph.edges)
    first = int(any(box.kind == "input" for box in graph.boxes))
    layers = {box.id: 0 if box.kind == "input" else first for box in graph.boxes}
    for _ in graph.boxes:
        for edge in forward:
            layers[edge.target] = max(layers[edge.target], layers[edge.source] + 1)
    nodes = [box.id for box in graph.boxes if box.kind == "node"]
    last = max((layers[name] + 1 for name in nodes), default=first)
    layers |= {box.id: last for box in graph.boxes if box.kind == "output"}
    for name in sorted(nodes, key=lambda name: -layers[name]):
        after = [layers[edge.target] for edge in forward if edge.source == name]
        if len(after) > sum(edge.target == name for edge in forward):  # shortens most of its wires
            layers[name] = min(after) - 1
    return layers


def _drop_loops(edges: Sequence[GraphEdge]) -> list[GraphEdge]:
    """Return the edges without those that close a loop; delayed edges are considered last."""
    after: dict[str, set[str]] = {}
    kept: list[GraphEdge] = []
    for edge in sorted(edges, key=lambda edge: edge.dashed):
        reached, waiting = {edge.target}, [edge.target]
        while waiting:
            new = after.get(waiting.pop(), set()) - reached
            reached |= new
            waiting += new
        if edge.source not in reached:
            after.setdefault(edge.source, set()).add(edge.target)
            kept.append(edge)
    return kept


class _Slots:
    """Columns of slots for boxes and passing wires, their heights, and the routes of edges through them."""

    def __init__(self, graph: GraphDrawing) -> None:
        self.graph, layers = graph, find_layers(graph)
        self.index = {box.id: i for i, box in enumerate(graph.boxes)}
        self.shapes = [shape_of(box) for box in graph.boxes]
        self.sizes = [shape.height for shape in self.shapes]
        self.layers = [layers[box.id] for box in graph.boxes]
        self.passed: dict[tuple[str, str, bool, int], int] = {}
        self.routes = [self._route(edge) for edge in graph.edges]
        forward = [r for r in self.routes if self.layers[r[0][0]] < self.layers[r[-1][0]]]
        self.links = list(dict.fromkeys(link for route in forward for link in pairwise(route)))
        self.neighbours: list[tuple[list[tuple[WireEnd, WireEnd]], ...]] = [([], []) for _ in self.layers]
        for left, right in self.links:
            self.neighbours[left[0]][1].append((left, right))
            self.neighbours[right[0]][0].append((right, left))
        members = range(len(self.layers))
        self.columns = [[s for s in members if self.layers[s] == i] for i in range(max(self.layers) + 1)]
        self.tops = [0.0 if any(self.neighbours[slot]) else 1e4 for slot in members]
        for sweep in range(LAYOUT.sweeps):
            for column in self.columns[:: -1 if sweep % 2 else 1]:
                if sweep < LAYOUT.ordering_sweeps:
                    column.sort(key=lambda slot: self._barycentre(slot, sweep % 2))
                self._settle(column, [self._wanted_top(slot, max(0.05, 300 * 0.9**sweep)) for slot in column])
        self.tops = [round(2 * (top - min(self.tops))) / 2 for top in self.tops]

    def _route(self, edge: GraphEdge) -> list[WireEnd]:
        """Return the slots of an edge; edges of one pin share theirs."""
        source, target = self.index[edge.source], self.index[edge.target]
        route = [(source, self.shapes[source].outputs[edge.source_pin])]
        for layer in range(self.layers[source] + 1, self.layers[target]):
            key = edge.source, edge.source_pin, edge.dashed, layer
            if key not in self.passed:
                self.passed[key] = len(self.layers)
                self.layers.append(layer)
                self.sizes.append(LAYOUT.wire_height)
            route.append((self.passed[key], LAYOUT.wire_height / 2))
        return [*route, (target, self.shapes[target].inputs[edge.target_pin])]

    def _barycentre(self, slot: int, side: int) -> float:
        """Return the mean height of the slots wired to a slot on one side, else its own."""
        links = self.neighbours[slot][side]
        heights = [self.tops[far] + dy - 1e-3 * own for (_, own), (far, dy) in links]
        return sum(heights) / len(links) if links else self.tops[slot] + self.sizes[slot] / 2

    def _wanted_top(self, slot: int, soft: float) -> tuple[float, float]:
        """Return the top at which the wires of a slot are level, and its weight.

        Iteratively reweighted: the weight of a wire falls with its slope, the more the smaller `soft` is, so
        that sweeps approach the least sum of absolute differences, with most wires straight. Passing wires
        have larger weights.
        """
        total, weight = 0.0, 1e-9
        for (_, own), (far, dy) in (link for links in self.neighbours[slot] for link in links):
            top = self.tops[far] + dy - own
            passing = (slot >= len(self.shapes)) + (far >= len(self.shapes))
            pull = (1, 2, 8)[passing] / (soft + abs(top - self.tops[slot]))
            total, weight = total + pull * top, weight + pull
        return total / weight, weight

    def _settle(self, column: Sequence[int], wanted: Sequence[tuple[float, float]]) -> None:
        """Fit the tops of a column to the wanted ones, with order and gaps kept (isotonic regression)."""
        offsets = [0.0]
        for above, below in pairwise(column):
            room = LAYOUT.wire_gap if min(above, below) >= len(self.shapes) else LAYOUT.box_gap
            offsets.append(offsets[-1] + self.sizes[above] + room)
        blocks: list[tuple[float, float, int]] = []
        for (top, weight), offset in zip(wanted, offsets, strict=True):
            mean, count = top - offset, 1
            while blocks and blocks[-1][0] >= mean:
                other, more, members = blocks.pop()
                mean = (mean * weight + other * more) / (weight + more)
                weight, count = weight + more, count + members
            blocks.append((mean, weight, count))
        means = (mean for mean, _, count in blocks for _ in range(count))
        for slot, mean, offset in zip(column, means, offsets, strict=True):
            self.tops[slot] = mean + offset


def _find_lanes(slots: _Slots) -> list[float | None]:
    """Return the y of the lane of each backward edge, and shift all slots down to make room."""
    highest = [min(slots.tops[slot] for slot in column) for column in slots.columns]
    lanes: dict[tuple[WireEnd, int], float] = {}
    for (source, dy), *_, (target, _) in slots.routes:
        a, b = slots.layers[target], slots.layers[source] + 1
        if a < b and ((source, dy), target) not in lanes:
            loops = sum(box == source == end[0] for end, box in lanes)
            above = (
                slots.tops[source] - 11 - 6 * min(loops, 2)
                if source == target
                else min(highest[a:b]) - LAYOUT.lane_height
            )
            highest[a:b] = [min(above, top) for top in highest[a:b]]
            lanes[(source, dy), target] = above
    down = max([0.0, *(LAYOUT.lane_height / 2 - lane for lane in lanes.values())])
    slots.tops = [top + down for top in slots.tops]
    lanes = {key: lane + down for key, lane in lanes.items()}
    return [lanes.get((route[0], route[-1][0])) for route in slots.routes]


def _find_sides(slots: _Slots) -> list[tuple[float, float]]:
    """Return left and right of each column; steeper wires get a wider gap."""
    room = [56.0] * (len(slots.columns) + 1)
    for (left, dy), (right, y) in slots.links:
        layer, rise = slots.layers[right], abs(slots.tops[left] + dy - slots.tops[right] - y)
        room[layer] = max(room[layer], min(190.0, 36 + 0.3 * rise))
    sides: list[tuple[float, float]] = []
    for i, column in enumerate(slots.columns):
        left = sides[-1][1] + room[i] if sides else 0.0
        boxes = [slots.shapes[slot].width for slot in column if slot < len(slots.shapes)]
        sides.append((left, left + max(boxes, default=0.0)))
    return sides


def _draw_wire(edge: GraphEdge, points: Sequence[tuple[float, float]], lane: float | None) -> WirePath:
    """Return a wire through points, alternately at the right and at the left of a column.

    Between columns it is a curve with horizontal ends. A backward wire turns into its lane, crosses all
    columns there, and turns to its pin.
    """
    (x0, y0), (tip, y1) = points[0], points[-1]
    path = f"M{fmt_px(x0)} {fmt_px(y0)}"
    points = [*points[:-1], (tip - LAYOUT.arrow + 1, y1)]  # the arrow head covers the end
    if lane is None:
        for i, ((x, y), (x2, y2)) in enumerate(pairwise(points)):
            path += (
                f"H{fmt_px(x2)}" if i % 2 or y == y2 else _curve((x + x2) / 2, y, (x + x2) / 2, y2, x2, y2)
            )
        return WirePath(edge, path, (tip, y1), ((x0 + points[1][0]) / 2, (y0 + points[1][1]) / 2))
    a, b = (min(34.0, 20 + 0.1 * abs(y - lane)) for y in (y0, y1))
    path += _curve(x0 + a, y0, x0 + a, lane, x0, lane) + f"H{fmt_px(tip)}"
    path += _curve(tip - b, lane, tip - b, y1, points[-1][0], y1)
    return WirePath(edge, path, (tip, y1), ((x0 + tip) / 2, lane))


def _curve(*coordinates: float) -> str:
    return "C" + " ".join(map(fmt_px, coordinates))
