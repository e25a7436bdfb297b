"""The wires of a placed graph as SVG paths: straight across columns, curved between them."""

from __future__ import annotations

from ._graph_places import Layout
from ._graph_slots import End, Link, Net, Turn

CORNER = 7.0
ARROW = 7.0
TRIM = 0.22
"""Share of a curve at each end over which it may come near other wires of the same pin."""


def number(x: float) -> str:
    """Return a coordinate, to a tenth of a pixel."""
    return (
        f"{x:.1f}".removesuffix(".0").replace("-0", "0") if abs(x) < 0.05 else f"{x:.1f}".removesuffix(".0")
    )


def path_of(net: Net, layout: Layout) -> str:
    """Return the whole way of a net as one path."""
    parts = [_link(link, layout) for link in layout.pieces.links if link.net == net]
    parts += [_across(end, layout) for of, end in layout.pieces.across if of == net]
    parts += [_turn(turn, layout) for turn in layout.pieces.turns if turn.net == net]
    return " ".join(parts)


def casing_of(net: Net, layout: Layout) -> str:
    """Return the parts of a net that may cut other wires; its pins, where wires meet, are not among them."""
    parts = [_middle(link, layout) for link in layout.pieces.links if link.net == net]
    parts += [_across(end, layout) for of, end in layout.pieces.across if of == net]
    return " ".join(parts)


def arrow_of(end: End, layout: Layout) -> str:
    """Return the head of an arrow that ends at a pin."""
    x, y = number(layout.left(end.slot) - ARROW), layout.y(end)
    return f"M{x} {number(y - 3.6)}l{number(ARROW)} 3.6l-{number(ARROW)} 3.6z"


def label_place(net: Net, layout: Layout) -> tuple[float, float]:
    """Return the middle of a net: that of its lane if it goes back, else of its first curve."""
    for of, end in layout.pieces.across:
        if of == net and net.back:
            return (layout.left(end.slot) + layout.right(end.slot)) / 2, layout.y(end)
    link = next(link for link in layout.pieces.links if link.net == net)
    x = (layout.right(link.left.slot) + layout.left(link.right.slot)) / 2
    return x, (layout.y(link.left) + layout.y(link.right)) / 2


def _link(link: Link, layout: Layout) -> str:
    x0, x1 = layout.right(link.left.slot), layout.left(link.right.slot)
    y0, y1 = layout.y(link.left), layout.y(link.right)
    if not link.net.back and _arrives(link, layout):
        x1 -= ARROW - 1  # the arrow's head covers the rest, level
    start, end = f"M{number(x0)} {number(y0)}", f"{number(x1)} {number(y1)}"
    if abs(y1 - y0) < 0.25:
        return f"{start}L{end}"
    middle = number((x0 + x1) / 2)
    return f"{start}C{middle} {number(y0)} {middle} {number(y1)} {end}"


def _middle(link: Link, layout: Layout) -> str:
    """Return the middle of a link's curve."""
    x0, x1 = layout.right(link.left.slot), layout.left(link.right.slot)
    y0, y1 = layout.y(link.left), layout.y(link.right)
    if abs(y1 - y0) < 0.25:
        return f"M{number(x0 + 15)} {number(y0)}H{number(x1 - 15)}"
    middle = (x0 + x1) / 2
    xs, ys = (_cut(*p, TRIM) for p in ((x0, middle, middle, x1), (y0, y0, y1, y1)))
    (a, b, c, d) = (f"{number(x)} {number(y)}" for x, y in zip(xs, ys, strict=True))
    return f"M{a}C{b} {c} {d}"


def _cut(p0: float, p1: float, p2: float, p3: float, trim: float) -> tuple[float, float, float, float]:
    """Return one coordinate of a Bézier curve's control points after cutting both ends off (blossoming)."""

    def blossom(r: float, s: float, t: float) -> float:
        a, b, c = (p + r * (q - p) for p, q in ((p0, p1), (p1, p2), (p2, p3)))
        a, b = a + s * (b - a), b + s * (c - b)
        return a + t * (b - a)

    u, v = trim, 1 - trim
    return blossom(u, u, u), blossom(u, u, v), blossom(u, v, v), blossom(v, v, v)


def _arrives(link: Link, layout: Layout) -> bool:
    return layout.pieces.slots[link.right.slot].box is not None


def _across(end: End, layout: Layout) -> str:
    return f"M{number(layout.left(end.slot))} {number(layout.y(end))}H{number(layout.right(end.slot))}"


def _turn(turn: Turn, layout: Layout) -> str:
    """Return a way out of a column, up or down, and back into it, with round corners."""
    right = turn.side == "right"
    x = layout.right(turn.start.slot) if right else layout.left(turn.start.slot)
    out = 1 if right else -1
    y0, y1 = layout.y(turn.start), layout.y(turn.end)
    down = 1 if y1 > y0 else -1
    r = min(CORNER, abs(y1 - y0) / 2)
    far = x + out * layout.reach[turn]
    back = x if right else x - ARROW + 1
    return (
        f"M{number(x)} {number(y0)}H{number(far - out * r)}"
        f"Q{number(far)} {number(y0)} {number(far)} {number(y0 + down * r)}V{number(y1 - down * r)}"
        f"Q{number(far)} {number(y1)} {number(far - out * r)} {number(y1)}H{number(back)}"
    )
