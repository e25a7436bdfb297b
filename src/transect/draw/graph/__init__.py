"""Graphs of boxes and wires, laid out in layers, as SVG or as Mermaid text.

In Mermaid flowcharts (version 11) the ids are generated, and every label is quoted and escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from .boxes import GraphBox, GraphDrawing, GraphEdge, GraphPin, heat_colour, ink_colour
from .svg import svg_text

__all__ = ["GraphBox", "GraphDrawing", "GraphEdge", "GraphPin", "mermaid_text", "svg_text"]

_SPECIAL = re.compile(r"[^\w .,:/%()]")
"""Characters with a meaning in Mermaid, HTML or Markdown; written as ``#35;``."""
_BRACKETS = {"node": ("[", "]"), "input": ("([", "])"), "output": ("([", "])")}
_CLASSES = {
    "input": "fill:#dff2ea,stroke:#2f7d5f",
    "output": "fill:#fdeeda,stroke:#b7791f",
    "missing": "fill:#fff5f5,stroke:#c53030,color:#c53030,stroke-dasharray:5 3",
}


def mermaid_text(graph: GraphDrawing) -> str:
    """Return a graph as a Mermaid flowchart."""
    ids = {box.id: f"n{i}" for i, box in enumerate(graph.boxes)}
    lines = ["---", f"title: {json.dumps(graph.title)}", "---", "flowchart LR"]
    lines += [f"  %% {_comment(text)}" for text in (graph.subtitle, *graph.caption) if text]
    lines += [f"  {ids[box.id]}{_box(box)}" for box in graph.boxes]
    kinds = {box.id: box.kind for box in graph.boxes}
    lines += [f"  {ids[edge.source]} {_arrow(edge, kinds)} {ids[edge.target]}" for edge in graph.edges]
    return "\n".join([*lines, *(f"  {line}" for line in _styles(graph, ids))]) + "\n"


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", " ".join(text.split()))


def _comment(text: str) -> str:
    """Return a text for a comment; a brace could start a directive."""
    return " ".join(text.split()).replace("{", "(").replace("}", ")")


def _box(box: GraphBox) -> str:
    before, after = ("[[", "]]") if box.double else _BRACKETS[box.kind]
    return f'{before}"{"<br/>".join(map(_escape, (box.title, *box.lines)))}"{after}'


def _arrow(edge: GraphEdge, kinds: dict[str, str]) -> str:
    """Return an arrow labelled with the pins that it connects; inputs and outputs of the graph have none."""
    pins = [edge.source_pin] if kinds[edge.source] == "node" else []
    pins += [edge.target_pin] if kinds[edge.target] == "node" else []
    label = f'|"{" → ".join(map(_escape, pins))}"|' if pins else ""
    return ("-.->" if edge.dashed else "-->") + label


def _styles(graph: GraphDrawing, ids: dict[str, str]) -> Iterator[str]:
    classes = {box.id: "missing" if box.missing else box.kind for box in graph.boxes}
    for name, style in _CLASSES.items():
        if members := [ids[box] for box, of in classes.items() if of == name]:
            yield f"classDef {name} {style}"
            yield f"class {','.join(members)} {name}"
    for box in graph.boxes:
        if box.heat is not None:
            yield f"style {ids[box.id]} fill:{heat_colour(box.heat)},color:{ink_colour(box.heat)}"
