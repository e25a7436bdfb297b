"""Graphs of boxes and wires, laid out in layers, as SVG or as Mermaid text."""

from __future__ import annotations

from .boxes import Box, Edge, Graph, Pin
from .mermaid import mermaid_text
from .svg import svg_text

__all__ = ["Box", "Edge", "Graph", "Pin", "mermaid_text", "svg_text"]
