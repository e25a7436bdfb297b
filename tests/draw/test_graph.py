"""Graphs of boxes and wires: their layout, as SVG and as Mermaid."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from transect.draw.graph import GraphBox, GraphDrawing, GraphEdge, GraphPin, mermaid_text, svg_text
from transect.draw.graph.boxes import heat_colour
from transect.draw.graph.svg import GraphLayout, find_layers, lay_out
from transect.errors import UsageError

SVG = "{http://www.w3.org/2000/svg}"


def parsed(graph: GraphDrawing) -> etree._Element:
    return etree.fromstring(svg_text(graph).encode(), etree.XMLParser(resolve_entities=False))


def pins(*names: str) -> tuple[GraphPin, ...]:
    return tuple(GraphPin(name) for name in names)


def node(name: str, inputs: int = 1, outputs: int = 1, **more: object) -> GraphBox:
    ins, outs = (
        tuple(GraphPin(f"{side}{i}") for i in range(n)) for side, n in (("in", inputs), ("out", outputs))
    )
    return GraphBox(name, name, "Interface", ins, outs, **more)  # pyright: ignore[reportArgumentType]


def wire(source: str, target: str, dashed: bool = False) -> GraphEdge:
    """A wire between the first pins, or those named: ``a.out1``."""
    (a, _, p), (b, _, q) = source.partition("."), target.partition(".")
    return GraphEdge(a, p or "out0", b, q or "in0", dashed)


def source(name: str) -> GraphBox:
    return GraphBox(name, name, "Image", outputs=pins("out0"), kind="input")


def sink(name: str) -> GraphBox:
    return GraphBox(name, name, "Pose", inputs=pins("in0"), kind="output")


STEREO = GraphDrawing(
    "Reconstruction3D",
    (
        source("left"),
        source("right"),
        node("rectify_left"),
        node("rectify_right"),
        node("stereo", 2, 1),
        node("icp", 3, 2),
        node("map", 2, 1),
        sink("cloud"),
        sink("pose"),
    ),
    (
        wire("left", "rectify_left"),
        wire("right", "rectify_right"),
        wire("rectify_left", "stereo.in0"),
        wire("rectify_right", "stereo.in1"),
        wire("stereo", "icp.in0"),
        wire("stereo", "map.in0"),
        wire("icp", "map.in1"),
        wire("icp", "pose"),
        wire("map", "cloud"),
        wire("icp.out1", "icp.in1", dashed=True),
        wire("map", "icp.in2", dashed=True),
    ),
)


@st.composite
def graphs(draw: st.DrawFn) -> GraphDrawing:
    boxes = [
        node(f"b{i}", draw(st.integers(1, 4)), draw(st.integers(1, 3)))
        for i in range(draw(st.integers(1, 12)))
    ]
    boxes += [source(f"s{i}") for i in range(draw(st.integers(0, 2)))]
    boxes += [sink(f"t{i}") for i in range(draw(st.integers(0, 2)))]
    outs = [(b.id, p.name) for b in boxes for p in b.outputs]
    ins = [(b.id, p.name) for b in boxes for p in b.inputs]
    ends = st.tuples(st.sampled_from(outs), st.sampled_from(ins), st.booleans())
    edges = [GraphEdge(*a, *b, dashed) for a, b, dashed in draw(st.lists(ends, max_size=25))]
    return GraphDrawing("random", tuple(boxes), tuple(dict.fromkeys(edges)))


def rectangles(layout: GraphLayout) -> np.ndarray:
    """Left, top, right and bottom of each box, shape (n, 4)."""
    return np.array([(x, y, x + width, y + shape.height) for x, y, width, shape in layout.places])


def points_on(path: str) -> np.ndarray:
    """Points along an SVG path of M, L, H, V, Q and C commands, shape (n, 2)."""
    found: list[np.ndarray] = []
    at = np.zeros(2)
    for command, numbers in re.findall(r"([MLHVQC])([^MLHVQC]*)", path):
        values = [float(x) for x in numbers.split()]
        if command in "HV":
            end = np.array([values[0], at[1]] if command == "H" else [at[0], values[0]])
            controls = np.array([at, end])
        else:
            controls = np.array([at, *np.reshape(values, (-1, 2))])
        if command != "M":
            found.append(bezier(controls))
        at = controls[-1]
    return np.concatenate(found)


def bezier(controls: np.ndarray) -> np.ndarray:
    t = np.linspace(0, 1, 33)[:, None]
    controls = controls[:, None] * np.ones((1, len(t), 1))
    while len(controls) > 1:
        controls = controls[:-1] + t * (controls[1:] - controls[:-1])
    return controls[0]


@given(graphs())
def test_no_wire_runs_through_a_box(graph: GraphDrawing) -> None:
    layout = lay_out(graph)
    left, top, right, bottom = rectangles(layout).T
    for wire in layout.wires:
        x, y = points_on(wire.path).T[:, :, None]
        inside = (x > left + 0.2) & (x < right - 0.2) & (y > top + 0.2) & (y < bottom - 0.2)
        assert not inside.any()


@given(graphs())
def test_boxes_keep_apart_and_lie_inside_the_drawing(graph: GraphDrawing) -> None:
    layout = lay_out(graph)
    boxes = rectangles(layout)
    assert boxes.min() >= 0
    assert boxes[:, 2].max() <= layout.width
    assert boxes[:, 3].max() <= layout.height
    left, top, right, bottom = boxes.T
    overlap = (
        (left[:, None] < right) & (left < right[:, None]) & (top[:, None] < bottom) & (top < bottom[:, None])
    )
    assert overlap.sum() == len(boxes)  # each with itself


@given(graphs())
def test_every_wire_that_delivers_at_once_goes_right_unless_it_closes_a_loop(graph: GraphDrawing) -> None:
    column = find_layers(graph)
    backward = [e for e in graph.edges if not e.dashed and column[e.source] >= column[e.target]]
    assert all(_reaches(graph, edge.target, edge.source) for edge in backward)


def _reaches(graph: GraphDrawing, start: str, goal: str) -> bool:
    reached, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        new = {e.target for e in graph.edges if e.source == here and not e.dashed} - reached
        reached |= new
        waiting += new
    return goal in reached


def test_inputs_stand_in_the_first_column_and_outputs_in_the_last() -> None:
    column = find_layers(STEREO)
    assert {column["left"], column["right"]} == {0}
    assert {column["cloud"], column["pose"]} == {max(column.values())}
    assert all(0 < column[n] < max(column.values()) for n in ("rectify_left", "stereo", "icp", "map"))


def test_a_chain_is_drawn_as_one_straight_line() -> None:
    names = [f"n{i}" for i in range(6)]
    graph = GraphDrawing("chain", tuple(map(node, names)), tuple(map(wire, names, names[1:])))
    layout = lay_out(graph)
    assert len({y for _, y, _, _ in layout.places}) == 1


def test_wires_that_need_not_cross_do_not() -> None:
    # a matching, declared in the opposite order on the other side
    names = [f"n{i}" for i in range(6)]
    sinks = [f"m{i}" for i in range(6)]
    boxes = (*map(node, names), *map(node, reversed(sinks)))
    layout = lay_out(GraphDrawing("matching", boxes, tuple(map(wire, names, sinks))))
    ends = np.array([points_on(wire.path)[[0, -1], 1] for wire in layout.wires])
    assert np.argsort(ends[:, 0]).tolist() == np.argsort(ends[:, 1]).tolist()


def test_the_order_of_pins_decides_the_order_of_boxes() -> None:
    boxes = (node("b"), node("a"), node("join", 2))
    layout = lay_out(GraphDrawing("join", boxes, (wire("a", "join.in0"), wire("b", "join.in1"))))
    assert layout.places[1][1] < layout.places[0][1]


def test_a_loop_passes_above_its_box() -> None:
    graph = GraphDrawing("loop", (node("icp"),), (wire("icp", "icp", dashed=True),))
    layout = lay_out(graph)
    ((left, top, right, _),) = rectangles(layout)
    x, y = points_on(layout.wires[0].path).T
    assert y.min() < top
    assert x.min() < left
    assert x.max() > right


def test_a_hundred_boxes_take_no_long_time() -> None:
    names = [f"n{i}" for i in range(100)]
    boxes = tuple(node(name, 3, 2) for name in names)
    edges = {
        wire(names[max(0, i - 1 - i % 7 * k)], f"{names[i]}.in{k}") for i in range(1, 100) for k in range(3)
    }
    start = time.process_time()
    text = svg_text(GraphDrawing("large", boxes, edges))
    assert time.process_time() - start < 15  # half a second where nothing else runs
    assert text.count('class="box"') == 100


def test_the_same_graph_gives_the_same_bytes() -> None:
    assert svg_text(STEREO) == svg_text(STEREO)
    assert mermaid_text(STEREO) == mermaid_text(STEREO)


def test_all_names_are_text_in_the_svg() -> None:
    root = parsed(STEREO)
    written = [element.text for element in root.iter(f"{SVG}text")]
    assert {"Reconstruction3D", "left", "stereo", "icp", "in2", "out1", "delay"} <= set(written)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert root.attrib["viewBox"] == f"0 0 {width:g} {height:g}"


def test_types_and_explanations_are_tooltips() -> None:
    box = GraphBox("a", "a", "A", (GraphPin("image", "image: Image"),), note="rectifies")
    titles = [element.text for element in parsed(GraphDrawing("g", (box,))).iter(f"{SVG}title")]
    assert "image\nimage: Image" in titles
    assert "a\nA\nrectifies" in titles


def test_delayed_wires_are_dashed_and_named() -> None:
    text = svg_text(STEREO)
    assert text.count('class="wire late"') == 2
    assert text.count(">delay<") == 2
    assert ">delay<" not in svg_text(GraphDrawing("g", (node("a"), node("b")), (wire("a", "b"),)))


@given(st.text(min_size=1), st.text(), st.text())
def test_any_text_gives_well_formed_xml(title: str, subtitle: str, pin: str) -> None:
    box = GraphBox(
        "id",
        title,
        subtitle,
        (GraphPin(pin, subtitle),),
        (GraphPin(pin),),
        note=pin,
        heat=0.5,
        heat_label=title,
    )
    graph = GraphDrawing(title, (box,), (GraphEdge("id", pin, "id", pin, True),), subtitle, (pin, title))
    root = parsed(graph)
    assert root.tag == f"{SVG}svg"
    assert not list(root.iter(f"{SVG}script"))


MERMAID = re.compile(
    r"""---|title:\s".*"|flowchart\ LR|\ \ %%\ .*|\ \ (classDef|class|style)\ [-\w,:# ]+
    |\ \ n\d+(\[|\[\[|\(\[)"[^"]*"(\]|\]\]|\]\))|\ \ n\d+\ (-->|-\.->)(\|"[^"|]*"\|)?\ n\d+""",
    re.VERBOSE,
)


@given(st.text(min_size=1), st.text(), st.text())
def test_no_text_breaks_a_line_of_mermaid(title: str, subtitle: str, pin: str) -> None:
    boxes = (
        GraphBox("id", title, subtitle, (GraphPin(pin),), (GraphPin(pin),), heat=0.5, heat_label=title),
        GraphBox("in", pin, kind="input", outputs=(GraphPin(pin),)),
        GraphBox("twice", title, double=True, missing=True),
    )
    graph = GraphDrawing(
        title,
        boxes,
        (GraphEdge("id", pin, "id", pin, True), GraphEdge("in", pin, "id", pin)),
        subtitle,
        (pin,),
    )
    lines = mermaid_text(graph).split("\n")[:-1]
    assert [line for line in lines if not MERMAID.fullmatch(line)] == []


def test_mermaid_names_pins_on_arrows_and_marks_inputs() -> None:
    text = mermaid_text(STEREO)
    assert 'n0(["left<br/>Image"])' in text
    assert 'n2 -->|"out0 → in0"| n4' in text
    assert 'n0 -->|"in0"| n2' in text  # an input of the graph is its own pin
    assert 'n5 -.->|"out1 → in1"| n5' in text
    assert "class n0,n1 input" in text


def test_special_characters_are_entities_in_mermaid() -> None:
    text = mermaid_text(GraphDrawing("g", (GraphBox("a", 'say "hi" <b> #1; `x` [y] {z} | a-b'),)))
    assert '"say #34;hi#34; #60;b#62; #35;1#59; #96;x#96; #91;y#93; #123;z#125; #124; a#45;b"' in text


def test_heat_colours_boxes_and_adds_a_legend() -> None:
    boxes = (node("cold", heat=0.0, heat_label="1 ms, 0 %"), node("hot", heat=1.0, heat_label="99 ms, 100 %"))
    text = svg_text(GraphDrawing("g", boxes))
    assert "99 ms, 100 %" in text
    assert f"fill: {heat_colour(1.0)}" in text
    assert "of the computing time" in text
    assert "of the computing time" not in svg_text(STEREO)


def test_heat_darkens_steadily() -> None:
    # so that it also reads in print without colours: luma of ITU-R BT.601
    colours = [heat_colour(h) for h in np.linspace(0, 1, 41)]
    luma = [np.dot([0.299, 0.587, 0.114], [int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in colours]
    assert np.all(np.diff(luma) < 0)
    assert heat_colour(-1) == heat_colour(0)
    assert heat_colour(2) == heat_colour(1)


def test_a_long_name_is_cut_on_its_box_and_whole_in_the_tooltip() -> None:
    name = "a_very_long_name_" * 8
    root = parsed(GraphDrawing("g", (GraphBox("a", name),)))
    shown = [e.text for e in root.iter(f"{SVG}text") if (e.text or "").startswith("a_very")]
    assert len(shown) == 1
    assert shown[0] is not None
    assert shown[0].endswith("…")
    assert any((e.text or "") == name for e in root.iter(f"{SVG}title"))


def test_a_wire_to_a_pin_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"b\.in7"):
        GraphDrawing("g", (node("a"), node("b")), (wire("a", "b.in7"),))


def test_two_boxes_of_one_id_are_refused() -> None:
    with pytest.raises(UsageError, match="same id"):
        GraphDrawing("g", (node("a"), node("a")))


def test_a_graph_without_boxes_is_drawn_too() -> None:
    root = parsed(GraphDrawing("empty", (), caption=("Nothing here.",)))
    assert "Nothing here." in [e.text for e in root.iter(f"{SVG}text")]
