"""Graphs of boxes and wires, laid out in layers, as SVG or Mermaid text.

The layout follows Gansner, Koutsofios, North and Vo, "A technique for drawing directed graphs" (1993):
columns, then the order in them, then places.
"""

from __future__ import annotations

from ._graph_data import Box, Edge, Graph, Pin

__all__ = ["Box", "Edge", "Graph", "Pin", "mermaid_text", "svg_text"]


def svg_text(graph: Graph) -> str:
    """Return a graph as an SVG drawing; the same graph gives the same bytes.

    Inputs stand on the left and outputs on the right; wires never run through boxes, and those that
    deliver later are dashed. Types and explanations are tooltips.
    """
    from ._graph_svg import svg_text as draw

    return draw(graph)


def mermaid_text(graph: Graph) -> str:
    """Return a graph as a Mermaid flowchart, which GitHub and many editors draw themselves."""
    from ._graph_mermaid import mermaid_text as write

    return write(graph)
