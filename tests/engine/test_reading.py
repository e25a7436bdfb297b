"""Descriptions in three forms say the same; a wrong one is answered with everything that is wrong with it."""

from pathlib import Path

import pytest

from transect.engine.description import CompoundText, ImplementationText, NodeText, Wire
from transect.engine.reading import DescriptionError, parse_description, read_description

OURS = """\
name: Reconstruction3D
doc: 3D reconstruction from stereo
input_ports:  [{name: leftImage, type: Image, tag: left}, {name: rightImage, type: Image, tag: right}]
output_ports: [{name: pointCloud, type: PointCloud}, {name: pose, type: Pose}, {name: success, type: bool}]
implementations:
  - name: DenseRegistrationFromStereo
    nodes:
      rectify_left: {node: ImageRectification}
      stereo:       {node: StereoReconstruction, implementation: SemiGlobalMatching, params: {window: 5}}
      icp:          {node: Registration3D, implementation: PointToPlane, every: 0.5}
    wires:
      - leftImage -> rectify_left.image
      - icp.pose ~> icp.guess          # ~> is a delay: the only legal way to close a loop
      - icp.pose -> pose
    controller: mypkg.controllers:SkipOnFailure
operations: [{name: getPointCloud, inputs: [{name: maxPoints, type: int}], output_type: PointCloud, doc: now}]
"""
"""The example of DESIGN.md, with what cdff.md 4.2 adds."""

LONG = """\
name: Chain
input_ports: [{name: x, type: float}]
output_ports: [{name: y, type: float}]
implementations:
- name: Slow
  dfns:
  - dfn_id: a
    name: Scale
    implementation: Fast
    activation: {type: input_triggered, value: x}
  - dfn_id: b
    name: Shift
    activation: {type: frequency, value: 4}
  input_connections:
  - {dfpc_input: x, dfn_id: a, port: x}
  - {dfpc_input: x, dfn_id: NoDfn, port: noPort}
  internal_connections:
  - from: {dfn_id: a, port: out}
    to: {dfn_id: b, port: x}
  output_connections:
  - {dfpc_output: y, dfn_id: b, port: out}
"""

SAMPLE_2 = """\
name: Chain
dfns:
  - name: Scale
input_ports:
  - name: x
    type: float
    connections:
      - dfn: Scale
        port: x
  - name: unused
    type: bool
    connections:
      - dfn: NoDfn
        port: noPort
output_ports:
  - name: y
    type: float
    connections:
      - dfn: Scale
        port: out
implementations:
  - name: Slow
  - name: Fast
"""


def compound(text: str) -> CompoundText:
    found = parse_description(text, "x.yaml")
    assert isinstance(found, CompoundText)
    return found


def only(text: str) -> ImplementationText:
    (found,) = compound(text).implementations.values()
    return found


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(DescriptionError) as raised:
        parse_description(text, "x.yaml")
    assert all(p.where == f"x.yaml:{p.line}" for p in raised.value.problems)
    return [(p.line, p.what) for p in raised.value.problems]


def test_our_form_is_read_with_the_line_of_every_part() -> None:
    found = compound(OURS)
    assert (found.name, found.doc, found.file, found.line) == (
        "Reconstruction3D",
        "3D reconstruction from stereo",
        "x.yaml",
        1,
    )
    assert [(p.name, p.type, p.tag, p.line) for p in found.inputs.values()] == [
        ("leftImage", "Image", "left", 3),
        ("rightImage", "Image", "right", 3),
    ]
    implementation = found.implementations["DenseRegistrationFromStereo"]
    assert implementation.complete
    assert implementation.line == 6
    assert implementation.controller == "mypkg.controllers:SkipOnFailure"
    stereo, icp = implementation.nodes["stereo"], implementation.nodes["icp"]
    assert (stereo.node, stereo.implementation, stereo.params, stereo.line) == (
        "StereoReconstruction",
        "SemiGlobalMatching",
        {"window": 5},
        9,
    )
    assert (icp.every, icp.trigger) == (0.5, "")
    assert implementation.wires == (
        Wire("leftImage", "rectify_left.image", line=12),
        Wire("icp.pose", "icp.guess", delayed=True, line=13),
        Wire("icp.pose", "pose", line=14),
    )


def test_operations_are_kept() -> None:
    (operation,) = compound(OURS).operations
    assert (operation.name, operation.output_type, operation.doc) == ("getPointCloud", "PointCloud", "now")
    assert [(p.name, p.type) for p in operation.inputs] == [("maxPoints", "int")]


def test_cdffs_long_form_is_read() -> None:
    found = only(LONG)
    assert found.name == "Slow"
    assert found.complete
    assert (found.nodes["a"].node, found.nodes["a"].implementation, found.nodes["a"].trigger) == (
        "Scale",
        "Fast",
        "x",
    )
    assert found.nodes["b"].every == 0.25  # 4 Hz
    assert [(str(wire), wire.line) for wire in found.wires] == [
        ("x -> a.x", 15),
        ("a.out -> b.x", 18),
        ("b.out -> y", 21),
    ]


def test_code_sample_2_has_what_it_says_once_in_an_implementation_without_name() -> None:
    found = compound(SAMPLE_2).implementations
    assert list(found) == ["", "Slow", "Fast"]
    assert not any(each.complete for each in found.values())
    assert [(use.id, use.node, use.line) for use in found[""].nodes.values()] == [("Scale", "Scale", 3)]
    assert [(str(wire), wire.line) for wire in found[""].wires] == [
        ("x -> Scale.x", 8),
        ("Scale.out -> y", 19),
    ]


def test_dfns_may_be_a_mapping_beside_wires() -> None:
    mixed = """
name: Chain
implementations:
  - name: Slow
    dfns:
      a: {dfn: Scale, implementation: Fast, params: {by: 2}, activation: {type: input_triggered, value: x}}
    wires: [a.out -> a.x]
"""
    use = only(mixed).nodes["a"]
    assert (use.node, use.implementation, use.params, use.trigger) == ("Scale", "Fast", {"by": 2}, "x")


@pytest.mark.parametrize(
    "nodes", ["nodes: {a: {node: Scale, trigger: x}}", "dfns: {a: {dfn: Scale, trigger: x}}"]
)
def test_nodes_at_the_top_are_the_only_implementation_named_like_the_compound(nodes: str) -> None:
    found = only(f"name: Chain\n{nodes}\nwires: [x -> a.x]\n")
    assert (found.name, found.complete, found.nodes["a"].trigger) == ("Chain", True, "x")


def test_a_list_of_dfns_with_wires_is_complete() -> None:
    found = only("name: Chain\ndfns: [{name: Scale}]\nwires: [x -> Scale.x]\n")
    assert found.complete
    assert found.nodes["Scale"].node == "Scale"


def test_a_file_without_nodes_describes_a_node() -> None:
    found = parse_description("name: Scale\ninput_ports: [{name: x, type: float, doc: in}]\n", "x.yaml")
    assert isinstance(found, NodeText)
    assert found.implementations == ("Scale",)  # the name itself, where none is listed (cdff.md 1.5)
    assert found.inputs["x"].doc == "in"


def test_implementations_of_a_node_are_names() -> None:
    found = parse_description("name: Scale\nimplementations: [Fast, Slow]\n", "x.yaml")
    assert isinstance(found, NodeText)
    assert found.implementations == ("Fast", "Slow")


def test_all_problems_are_reported_at_once_with_their_lines() -> None:
    text = """\
doc: no name
input_ports:
  - mame: x
    type: float
  - name: y
  - name: 3
    type: float
implementations:
  - name: Slow
    nodes:
      a: {node: Scale, evry: 3}
      b: {implementation: Fast}
    wires:
      - a -> b.x -> c
      - a b
      - 7
"""
    assert problems(text) == [
        (1, "the compound has no name"),
        (3, "an input port has an unknown key 'mame'"),
        (5, "an input port has no type"),
        (6, "name should be text, not 3"),
        (11, "a node has an unknown key 'evry'"),
        (12, "the node 'b' does not say which it is"),
        (14, "'a -> b.x -> c' is not a wire"),
        (15, "'a b' is not a wire"),
        (16, "7 is not a wire"),
    ]


def test_a_misspelt_key_is_one_problem_that_says_what_was_meant() -> None:
    with pytest.raises(DescriptionError) as raised:
        parse_description("name: Scale\noutput_ports:\n  - mame: error\n    type: float\n", "x.yaml")
    (problem,) = raised.value.problems
    assert problem.line == 3
    assert "did you mean 'name'" in problem.hint


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("name: A\n  b: [\n", 2, "not YAML"),
        ("name: A\nname: B\n", 2, "given twice"),
        ("- a\n- b\n", 1, "should be a mapping"),
        ("name: A\ninput_ports: x\n", 2, "should be a list"),
        ("name: A\nnodes: [x]\n", 2, "a node should be a mapping"),
        ("name: A\nnodes: {on: {node: B}}\n", 2, "True is not a name"),
        ("name: A\nnodes: {a: {node: B, params: 3}}\n", 2, "params should be a mapping"),
        ("name: A\nnodes: {a: {node: B, every: 0}}\n", 2, "above 0"),
        ("name: A\nnodes: {a: {node: B, every: .nan}}\n", 2, "above 0"),
        ("name: A\nnodes: {a: {node: B, every: yes}}\n", 2, "above 0"),
        ("name: A\nnodes: {a: {node: B, every: 1, trigger: x}}\n", 2, "both every and trigger"),
        ("name: A\nnodes: {a: {node: B, activation: {type: often}}}\n", 2, "unknown activation 'often'"),
        ("name: A\nnodes: {a: {node: B, activation: {type: frequency, value: -1}}}\n", 2, "above 0"),
        ("name: A\nnodes: [{dfn_id: a, name: B}, {dfn_id: a, name: B}]\n", 2, "node 'a' is there twice"),
        ("name: A\ninput_ports: [{name: x, type: b}, {name: x, type: b}]\n", 2, "'x' is there twice"),
        ("name: A\nimplementations: [{name: B}, {name: B}]\n", 2, "implementation 'B' is there twice"),
        ("name: A\nimplementations: [B, 3]\n", 2, "should be a name"),
        (
            "name: A\ndfns: [{name: B}]\noutput_ports: [{name: x, type: b, connections: [{dfn: B}]}]\n",
            3,
            "no port",
        ),
    ],
)
def test_what_is_not_a_description_is_said_in_its_line(text: str, line: int, what: str) -> None:
    assert any(where == line and what in said for where, said in problems(text))


@pytest.mark.parametrize("text", ["", "# nothing\n", "null\n", "3\n", '"text"\n'])
def test_a_file_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(DescriptionError, match="is not a description"):
        parse_description(text, "x.yaml")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"name: \xff\xfe")
    with pytest.raises(DescriptionError) as raised:
        read_description(file)
    assert raised.value.problems[0].where == str(file)


def test_a_file_written_by_windows_is_read(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + LONG.replace("\n", "\r\n").encode())
    found = read_description(file)
    assert isinstance(found, CompoundText)
    assert found.implementations["Slow"].wires[1].line == 18


LIKE = """\
name: Chain
input_ports: [{name: x, type: float}]
output_ports: [{name: y, type: float}, {name: z, type: float}]
implementations:
  - name: Long
    nodes: {a: {node: Scale}, b: {node: Shift}, c: {node: Scale}}
    wires: [x -> a.x, a.out -> b.x, a.out -> b.by, b.out -> c.x, c.out -> y, b.out -> z]
  - name: Other
    like: Long
    nodes: {b: {node: Shift, params: {by: 2}}, d: {node: Scale}}
    wires: [a.out -> d.x, d.out -> y]
  - name: Short
    like: Other
    without: [c, b.by, z]
"""


def _implementations(text: str) -> dict[str, ImplementationText]:
    compound = parse_description(text, "like.yaml")
    assert isinstance(compound, CompoundText)
    return dict(compound.implementations)


def test_an_implementation_like_another_says_what_differs() -> None:
    other = _implementations(LIKE)["Other"]
    assert list(other.nodes) == ["a", "b", "c", "d"]
    assert other.nodes["b"].params == {"by": 2}
    assert [str(wire) for wire in other.wires] == [
        "x -> a.x", "a.out -> b.x", "a.out -> b.by", "b.out -> c.x", "d.out -> y", "b.out -> z",
        "a.out -> d.x",
    ]  # fmt: skip
    assert other.wires[0].line == 7


def test_nodes_and_wires_are_left_out_of_what_an_implementation_is_like() -> None:
    short = _implementations(LIKE)["Short"]
    assert list(short.nodes) == ["a", "b", "d"]
    assert [str(wire) for wire in short.wires] == ["x -> a.x", "a.out -> b.x", "d.out -> y", "a.out -> d.x"]


def test_an_implementation_may_be_like_one_that_comes_later_in_the_file() -> None:
    head, *parts = LIKE.split("  - name: ")
    turned = head + "".join(f"  - name: {part}" for part in reversed(parts))
    found = _implementations(turned)
    assert list(found) == ["Short", "Other", "Long"]
    assert list(found["Short"].nodes) == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("like: Long", "like: Lung", "no implementation 'Lung'"),
        ("like: Long", "like: Short", "'Short' is like itself: Other > Short > Other"),
        ("    like: Other\n", "", "'Short' has `without` but no `like`"),
        ("without: [c,", "without: [e,", "Other has no node or wired port 'e' to leave out"),
    ],
)
def test_a_wrong_likeness_is_said_in_its_line(old: str, new: str, what: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        parse_description(LIKE.replace(old, new), "like.yaml")
    assert what in caught.value.problems[0].what
    assert caught.value.problems[0].line > 7
