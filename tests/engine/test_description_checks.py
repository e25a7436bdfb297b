"""Every kind of problem in a description is found, in its line, and nothing else is."""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from transect.engine import Latest, Node, node, param
from transect.engine.catalogue import Catalogue
from transect.engine.compound_checks import flow_of, unwritten
from transect.engine.description import CompoundText
from transect.engine.description_checks import FileReport, check
from transect.engine.interfaces import Faces, Given
from transect.engine.reading import parse_description
from transect.types import DepthMap, Image, PointCloud, Pose

from .test_reading import LONG, OURS, SAMPLE_2

catalogue = Catalogue()


class Marker:
    """A type that is nobody's but this test's."""


@catalogue.register
class Rectify(Node):
    window: int = param(5, ge=3, odd=True, unit="px", doc="matching window")

    def process(self, image: Image) -> Image:
        return image


@catalogue.register
class Depth(Node):
    def process(self, image: Image) -> DepthMap: ...


@catalogue.register
class Stereo(Node, interface=True):
    out_name = "cloud"

    def process(self, left: Image, right: Image) -> PointCloud: ...


class SemiGlobal(Stereo):
    def process(self, left: Image, right: Image) -> PointCloud: ...


class Block(Stereo):
    def process(self, left: Image, right: Image) -> PointCloud: ...


@catalogue.register
class Icp(Node):
    out_name = "pose"

    def process(self, cloud: PointCloud, guess: Latest[Pose | None] = None) -> Pose: ...


@catalogue.register
class Mark(Node):
    def process(self, marker: Marker) -> int: ...


@catalogue.register
@node
def double(x: float, *, by: float = 2.0) -> float:
    return x * by


GOOD = """\
name: Reconstruction
doc: a good compound
input_ports:
  - {name: leftImage, type: Image, tag: left, doc: left}
  - {name: rightImage, type: asn1SccFrame, tag: right, doc: right}
output_ports:
  - {name: pose, type: Pose, doc: where}
nodes:
  rectify: {node: Rectify, params: {window: 7}}
  stereo: {node: Stereo, implementation: SemiGlobal}
  icp: {node: Icp, trigger: cloud}
wires:
  - leftImage -> rectify.image
  - rectify.out -> stereo.left
  - rightImage -> stereo.right
  - stereo.cloud -> icp.cloud
  - icp.pose ~> icp.guess
  - icp.pose -> pose
"""


def checked(tmp_path: Path, text: str, **others: str) -> FileReport:
    """Return the report of a text, checked together with others."""
    paths = []
    for name, content in {"Main": text, **others}.items():
        paths.append(tmp_path / f"{name}.yaml")
        paths[-1].write_text(content, encoding="utf-8")
    return check(paths, catalogue)[str(paths[0])]


def said(report: FileReport) -> list[tuple[int, str]]:
    return [(problem.line, problem.what) for problem in report.problems]


def hinted(report: FileReport) -> list[tuple[int, str]]:
    return [(hint.line, hint.what) for hint in report.hints]


def test_a_good_compound_has_neither_problems_nor_hints(tmp_path: Path) -> None:
    assert checked(tmp_path, GOOD) == FileReport([], [])


@pytest.mark.parametrize(
    ("old", "new", "line", "what", "hint"),
    [
        ("name: Reconstruction", "name: my recon", 1, "'my recon' cannot be the name", "write myrecon"),
        ("{name: pose, type: Pose", "{name: pose, type: Posee", 7, "unknown type 'Posee'", "'Pose'"),
        ("type: asn1SccFrame", "type: asn1SccFrme", 5, "unknown type 'asn1SccFrme'", "'asn1SccFrame'"),
        ("{node: Icp,", "{node: Ipc,", 11, "no node or compound 'Ipc'", "'Icp'"),
        ("SemiGlobal", "SemiGlobl", 10, "Stereo has no implementation 'SemiGlobl'", "'SemiGlobal'"),
        (", implementation: SemiGlobal", "", 10, "Stereo has 2 implementations", "SemiGlobal, Block"),
        ("rectify.out ->", "rectify.ot ->", 14, "rectify (Rectify) has no output 'ot'", "'out'"),
        ("-> stereo.right", "-> stereo.rigth", 15, "stereo (Stereo) has no input 'rigth'", "'right'"),
        ("rectify.out ->", "rectfy.out ->", 14, "the node 'rectfy' is not declared", "'rectify'"),
        ("leftImage ->", "leftImg ->", 13, "Reconstruction has no input 'leftImg'", "'leftImage'"),
        ("icp.pose -> pose", "icp.pose -> posee", 18, "Reconstruction has no output 'posee'", "'pose'"),
        ("rectify.out ->", "rectify ->", 14, "has no input 'rectify'", "name its port: rectify.port"),
        ("rectify.out ->", "icp.pose ->", 14, "Pose does not fit Image", "stereo.left takes Image"),
        ("window: 7", "window: 8", 9, "rectify.window cannot be 8: expected an odd number", "matching"),
        ("window: 7", "windw: 7", 9, "rectify (Rectify) has no parameter 'windw'", "'window'"),
        ("window: 7", "window: big", 9, "cannot be 'big': expected a int", "matching"),
        ("trigger: cloud", "trigger: clod", 11, "no input 'clod' to be triggered by", "'cloud'"),
        (
            "  - rightImage -> stereo.right\n",
            "",
            10,
            "the input stereo.right is never fed",
            "-> stereo.right",
        ),
        ("-> stereo.right", "-> stereo.left", 15, "stereo.left is fed twice", "in line 14"),
        ("~> icp.guess", "-> icp.guess", 17, "a cycle without a delay: icp -> icp", "icp.pose ~> icp.guess"),
        ("wires:", "controller: nowhere:Here\nwires:", 1, "the controller 'nowhere:Here'", ""),
        ("wires:", "controller: json:Here\nwires:", 1, "json has no 'Here'", ""),
        ("wires:", "controller: Here\nwires:", 1, "names no class", "module:Class"),
        ("wires:", "controller: control.py:Here\nwires:", 1, "there is no file", ""),
    ],
)
def test_one_change_is_one_problem_in_its_line(
    tmp_path: Path, old: str, new: str, line: int, what: str, hint: str
) -> None:
    assert old in GOOD
    problems = checked(tmp_path, GOOD.replace(old, new, 1)).problems
    found = [p for p in problems if p.line == line and what in p.what]
    assert len(found) == 1, problems
    assert hint in found[0].hint
    assert found[0].where == f"{tmp_path / 'Main.yaml'}:{line}"


def test_all_problems_come_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    bad = (
        GOOD.replace("type: Pose", "type: Posee")
        .replace("window: 7", "window: 8")
        .replace("{node: Icp", "{node: I")
    )
    assert [line for line, _ in said(checked(tmp_path, bad))] == [7, 9, 11]


def test_a_cycle_is_named(tmp_path: Path) -> None:
    text = """\
name: Loop
doc: a to b to c to a, and out of it
output_ports: [{name: y, type: float, doc: out}]
nodes: {a: {node: double}, b: {node: double}, c: {node: double}}
wires: [a.out -> b.x, b.out -> c.x, c.out -> a.x, c.out -> y]
"""
    report = checked(tmp_path, text)
    assert said(report) == [(5, "a cycle without a delay: a -> b -> c -> a")]
    assert report.problems[0].hint == "write c.out ~> a.x"
    assert checked(tmp_path, text.replace("c.out -> a.x", "c.out ~> a.x")).problems == []


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        ("int", "float", True),
        ("bool", "float", False),
        ("float", "int", False),
        ("object", "Image", True),
        ("Image", "object", True),
        ("DepthMap", "Image", False),
        ("Frame", "Image", True),
        ("asnlSccFrame", "asn1SccFrame", True),  # the scan of document 003 has an l for the 1
        ("FramePair", "asn1SccFramePair", True),
        ("FramePair", "Image", False),
        ("numpy.ndarray", "ndarray", True),
        ("asn1SccT_String", "str", True),
        ("asn1SccT_Double", "double", True),
        ("double", "float", True),
        ("uint8_t", "asn1SccT_UInt32", True),
        ("asn1SccT_Int64", "bool", False),
        ("asn1SccVector3d", "ndarray", True),
        ("Vector3d", "asn1SccVectorXd", True),
        ("asn1SccVector3d", "asn1SccMatrix3d", False),
        ("asn1SccQuaterniond", "asn1SccVector3d", False),
    ],
)
def test_types_fit_along_a_wire_or_do_not(tmp_path: Path, source: str, target: str, fits: bool) -> None:
    text = f"""
name: Through
input_ports: [{{name: x, type: {source}}}]
output_ports: [{{name: y, type: {target}}}]
nodes: {{}}
wires: [x -> y]
"""
    assert (checked(tmp_path, text).problems == []) is fits


def test_a_subtype_goes_where_its_type_is_taken(tmp_path: Path) -> None:
    text = """
name: Through
output_ports: [{name: n, type: float}]
nodes: {a: {node: Make}, b: {node: Take}}
wires: [a.out -> b.x, b.out -> n]
"""
    own = Catalogue()

    class Special(Marker): ...

    @own.register
    class Make(Node):
        def process(self) -> Special: ...

    @own.register
    class Take(Node):
        def process(self, x: Marker) -> int: ...

    file = tmp_path / "Through.yaml"
    file.write_text(text, encoding="utf-8")
    assert check([file], own)[str(file)].problems == []
    file.write_text(text.replace("b.out -> n", "a.out -> n"), encoding="utf-8")
    assert any("Special does not fit float" in what for _, what in said(check([file], own)[str(file)]))


def test_a_type_of_a_nodes_own_is_known_to_the_compound_that_uses_it(tmp_path: Path) -> None:
    text = """
name: Own
input_ports: [{name: m, type: Marker}]
output_ports: [{name: n, type: float}]
nodes: {mark: {node: Mark}}
wires: [m -> mark.marker, mark.out -> n]
"""
    assert checked(tmp_path, text).problems == []
    assert "unknown type 'Marker'" in checked(tmp_path, text.replace("Mark}", "Nowhere}")).problems[0].what


@pytest.mark.parametrize(("key", "a", "b"), [("unit", "m", "mm"), ("frame", "map", "camera")])
def test_units_and_frames_differ_where_both_ends_declare_them(
    tmp_path: Path, key: str, a: str, b: str
) -> None:
    text = f"""
name: Through
input_ports: [{{name: x, type: float, {key}: {a}}}]
output_ports: [{{name: y, type: float, {key}: {b}}}]
nodes: {{}}
wires: [x -> y]
"""
    assert said(checked(tmp_path, text)) == [(6, f"x -> y: the {key} is {a!r}, and {b!r} is expected")]
    assert checked(tmp_path, text.replace(f"{key}: {b}", "tag: any")).problems == []


SCALE = """\
name: Scale
doc: a node that is described, not written
input_ports: [{name: x, type: float, unit: m, doc: length}]
output_ports: [{name: y, type: float, unit: m, doc: length}]
implementations: [Fast, Slow]
"""
USE = """\
name: Use
doc: uses what is described beside it
input_ports: [{name: x, type: float, unit: mm, doc: length}]
output_ports: [{name: y, type: float, doc: length}]
nodes: {scale: {node: Scale, implementation: Fast}}
wires: [x -> scale.x, scale.y -> y]
"""


def test_files_checked_together_see_each_other(tmp_path: Path) -> None:
    assert said(checked(tmp_path, USE)) == [(5, "there is no node or compound 'Scale'")]
    together = checked(tmp_path, USE, Scale=SCALE)
    assert said(together) == [(6, "x -> scale.x: the unit is 'mm', and 'm' is expected")]


def test_an_input_that_its_description_does_not_call_optional_is_only_a_hint(tmp_path: Path) -> None:
    report = checked(tmp_path, USE.replace("x -> scale.x, ", ""), Scale=SCALE)
    assert report.problems == []
    assert (5, "the input scale.x is never fed") in hinted(report)
    assert (3, "the input 'x' is not used") in hinted(report)


def test_an_interface_that_cannot_be_read_is_reported_once_where_it_is(tmp_path: Path) -> None:
    paths = [tmp_path / "Use.yaml", tmp_path / "Scale.yaml"]
    paths[0].write_text(USE, encoding="utf-8")
    paths[1].write_text("name: Scale\ninput_ports: [", encoding="utf-8")
    user, broken = check(paths, catalogue).values()
    assert user.problems == []
    assert len(broken.problems) == 1


def test_a_file_with_tabs_is_a_problem_and_still_the_interface_that_it_means(tmp_path: Path) -> None:
    tabbed = SCALE.replace("input_ports: [{name: x,", "input_ports:\n\t[{name: z,")
    report = checked(tmp_path, USE, Scale=tabbed)
    assert said(report) == [(6, "scale (Scale) has no input 'x'")]


def test_compounds_nest(tmp_path: Path) -> None:
    inner = GOOD.replace("Reconstruction", "Inner")
    text = """\
name: Outer
doc: a compound in a compound
input_ports: [{name: l, type: Image, doc: l}, {name: r, type: Image, doc: r}]
output_ports: [{name: pose, type: Pose, doc: p}]
nodes: {inner: {node: Inner}}
wires: [l -> inner.leftImage, r -> inner.rightImage, inner.pose -> pose]
"""
    assert checked(tmp_path, text, Inner=inner) == FileReport([], [])
    wrong = checked(tmp_path, text.replace("inner.pose", "inner.pos"), Inner=inner)
    assert said(wrong) == [(6, "inner (Inner) has no output 'pos'")]


def test_a_compound_in_itself_is_a_problem(tmp_path: Path) -> None:
    outer = "name: Outer\nnodes: {a: {node: Inner}}\nwires: []\n"
    inner = "name: Inner\nnodes: {b: {node: Outer}}\nwires: []\n"
    report = checked(tmp_path, outer, Inner=inner)
    assert said(report) == [(2, "Outer contains itself: Outer > Inner > Outer")]


def test_a_node_that_cannot_be_imported_is_a_problem_of_its_line(tmp_path: Path) -> None:
    (tmp_path / "scale.py").write_text("raise RuntimeError('no camera')", encoding="utf-8")
    file = tmp_path / "Use.yaml"
    file.write_text(USE, encoding="utf-8")
    for execute, said in ((False, "raise RuntimeError('no camera')"), (True, "RuntimeError: no camera")):
        (problem,) = check([file], execute=execute)[str(file)].problems
        assert problem.line == 5
        assert problem.what.endswith(said)
        assert problem.hint == f"see {tmp_path / 'scale.py'}:1"


def test_nodes_beside_a_description_are_found(tmp_path: Path) -> None:
    text = "from transect.engine import node\n\n@node\ndef scale(x: float) -> float:\n    return x\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    file = tmp_path / "Use.yaml"
    file.write_text(USE.replace("{node: Scale, implementation: Fast}", "{node: scale}"), encoding="utf-8")
    assert said(check([file])[str(file)]) == [(6, "scale has no output 'y'")]


CONTROLLERS = """
from transect.engine.controller import Controller

class Here(Controller):
    def step(self, c): ...

class There: ...
"""


def test_a_controller_beside_a_description_is_found(tmp_path: Path) -> None:
    (tmp_path / "control.py").write_text(CONTROLLERS, encoding="utf-8")
    text = GOOD.replace("wires:", "controller: control.py:Here\nwires:")
    assert checked(tmp_path, text).problems == []
    other = checked(tmp_path, text.replace(":Here", ":There"))
    assert said(other) == [(1, "control.py:There is not a Controller")]


def test_nodes_that_a_controller_calls_need_no_wires(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(CONTROLLERS, encoding="utf-8")
    text = GOOD[: GOOD.index("wires:")] + "controller: steps.py:Here\n"
    assert checked(tmp_path, text) == FileReport([], [])


def test_a_node_that_is_only_described_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "Scale.yaml").write_text(SCALE, encoding="utf-8")
    text = parse_description(USE, str(tmp_path / "Use.yaml"))
    assert isinstance(text, CompoundText)
    flow, _ = flow_of(text, text.implementations["Use"], Faces(Given(), Catalogue([tmp_path])))
    assert [finding.what for finding in unwritten(flow)] == [
        "Scale is described, but there is no such class to run"
    ]


def test_structure_and_wiring_are_reported_together(tmp_path: Path) -> None:
    bad = GOOD.replace("tag: left", "tga: left").replace("rectify.out ->", "rectify.ot ->")
    assert said(checked(tmp_path, bad)) == [
        (4, "an input port has an unknown key 'tga'"),
        (14, "rectify (Rectify) has no output 'ot'"),
    ]


def test_missing_documentation_is_a_hint(tmp_path: Path) -> None:
    report = checked(tmp_path, GOOD.replace("doc: a good compound\n", "").replace(", doc: left", ""))
    assert report.problems == []
    assert hinted(report) == [(1, "Reconstruction has no doc"), (3, "ports without doc: leftImage")]


def test_what_is_not_used_is_a_hint(tmp_path: Path) -> None:
    report = checked(tmp_path, GOOD.replace("  - icp.pose ~> icp.guess\n  - icp.pose -> pose\n", ""))
    assert report.problems == []
    assert hinted(report) == [(7, "the output 'pose' is never fed"), (11, "nothing uses what 'icp' gives")]


@pytest.mark.parametrize("word", ["ouputFrame", "outptu", "outputt", "iutput"])
def test_a_word_one_letter_away_from_a_common_one_is_a_spelling_hint(tmp_path: Path, word: str) -> None:
    text = f"name: A\ndoc: b\noutput_ports: [{{name: {word}, type: float, doc: c}}]\n"
    report = checked(tmp_path, text)
    assert report.problems == []
    assert len(report.hints) == 1
    assert "meant to be 'output'?" in report.hints[0].what


@pytest.mark.parametrize("word", ["images", "poses", "frames", "gate", "range", "outlier", "left", "weight"])
def test_plurals_and_other_words_are_no_misspellings(tmp_path: Path, word: str) -> None:
    text = f"name: A\ndoc: b\noutput_ports: [{{name: {word}, type: float, doc: c}}]\n"
    assert checked(tmp_path, text) == FileReport([], [])


def test_operations_have_known_types(tmp_path: Path) -> None:
    operation = "operations: [{name: get, output_type: Cloud, inputs: [{name: n, type: integer}]}]\n"
    assert said(checked(tmp_path, GOOD + operation)) == [
        (19, "get: unknown type 'Cloud'"),
        (19, "n: unknown type 'integer'"),
    ]


def test_a_ring_of_twelve_hundred_nodes_is_checked_without_deep_recursion(tmp_path: Path) -> None:
    count = 1200
    nodes = {f"n{i}": {"node": "double"} for i in range(count)}
    wires = [f"n{i}.out -> n{(i + 1) % count}.x" for i in range(count)]
    text = yaml.safe_dump({"name": "Ring", "nodes": nodes, "wires": wires})
    assert len(checked(tmp_path, text).problems) == 1


def parts_of(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to all parts of a document."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(way for key, value in inside for way in parts_of(value, (*path, key)))]


def changed(data: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = data.copy()
    copy[path[0]] = changed(data[path[0]], path[1:], new)
    return copy


TEXTS = ["", "on", "a b", "a.b.c", "x -> y"]
ODD: list[Any] = [None, True, 3, -0.5, *TEXTS, [], [None], {}, {"name": 1}, {None: 2}, {1: {}}]


@given(st.data())
def test_any_content_of_a_file_is_reported_and_never_raised(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    document = yaml.safe_load(data.draw(st.sampled_from([OURS, LONG, SAMPLE_2, GOOD, SCALE])))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(parts_of(document)))
        document = changed(document, path, data.draw(st.sampled_from(ODD)))
    file = tmp_path_factory.mktemp("odd") / "Main.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    (report,) = check([file], catalogue).values()
    assert all(problem.what and problem.line >= 0 for problem in (*report.problems, *report.hints))


SCHEMA: dict[str, Any] = json.loads(files("transect.engine").joinpath("compound.schema.json").read_text())
VALID = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", [OURS, LONG, SAMPLE_2, GOOD, SCALE, USE])
def test_the_schema_takes_every_form(text: str) -> None:
    assert [error.message for error in VALID.iter_errors(yaml.safe_load(text))] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: Reconstruction\n", ""),
        ("name: Reconstruction\n", "name: my recon\n"),
        ("tag: left", "tga: left"),
        ("rectify.out -> stereo.left", "rectify.out stereo.left"),
        ("{node: Rectify,", "{"),
        ("trigger: cloud", "every: 0"),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(old: str, new: str) -> None:
    assert old in GOOD
    assert not VALID.is_valid(yaml.safe_load(GOOD.replace(old, new)))


def test_a_misspelt_node_is_answered_by_a_name_that_is_listed(tmp_path: Path) -> None:
    from tests.commands import transect

    (tmp_path / "Mine.yaml").write_text(
        "name: Mine\ninput_ports: [{name: image, type: Image}]\noutput_ports: []\n"
        "dfns: [{dfn_id: a, name: FeatureExtraction2D}]\n"
    )
    said = transect("graph", "check", tmp_path / "Mine.yaml").stdout
    suggested = re.findall(r"'(\w+)'", said.partition("did you mean")[2].partition(")")[0])
    listed = transect("graph", "list").stdout
    assert suggested
    assert set(suggested) <= set(re.findall(r"\w+", listed))
