"""The picture of a compound: which boxes, pins and wires its description gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from transect.draw.graph import GraphBox, GraphDrawing, mermaid_text, svg_text
from transect.engine import Latest, Node, outputs
from transect.engine.catalogue import Catalogue
from transect.engine.description import CompoundText
from transect.engine.picture import picture_of, read_picture
from transect.engine.reading import parse_description
from transect.errors import ParseError, UsageError
from transect.types import Image, PointCloud, Pose

# DESIGN.md's example, "How it reads"
DESIGN = """
name: Reconstruction3D
doc: 3D reconstruction from stereo
input_ports:  [{name: leftImage, type: Image, tag: left}, {name: rightImage, type: Image, tag: right}]
output_ports: [{name: pointCloud, type: PointCloud}, {name: pose, type: Pose}, {name: success, type: bool}]
implementations:
  - name: DenseRegistrationFromStereo
    nodes:
      rectify_left: {node: ImageRectification}
      stereo:       {node: StereoReconstruction, implementation: SemiGlobalMatching, params: {window: 5}}
      icp:          {node: Registration3D, implementation: PointToPlane}
    wires:
      - leftImage -> rectify_left.image
      - icp.pose ~> icp.guess          # ~> is a delay: the only legal way to close a loop
      - icp.pose -> pose
  - name: Other
    nodes: {slam: {node: Slam, every: 0.1}}
    wires: [leftImage -> slam.image]
"""

# The form of the paper's Code Sample 2: one node is not declared, one implementation is only named
SAMPLE_2 = """
name: Reconstruction3D
doc: from stereo
dfns: [{name: ImageFiltering}]
input_ports:
  - {name: leftImage, type: asn1SccFrame, doc: left, connections: [{dfn: ImageFiltering, port: image}]}
output_ports:
  - {name: pose, type: asn1SccPose, doc: pose, connections: [{dfn: PoseEstimator, port: pose}]}
implementations: [{name: AdjustmentFromStereo}, {name: DenseRegistrationFromStereo}]
"""


@outputs
class Registered:
    pose: Pose
    success: bool


class Registration3D(Node, interface=True):
    """Registers clouds."""

    def process(self, cloud: PointCloud, guess: Latest[Pose | None] = None) -> Registered: ...


def compound(text: str) -> CompoundText:
    found = parse_description(text, "")
    assert isinstance(found, CompoundText)
    return found


def boxes(graph: GraphDrawing) -> dict[str, GraphBox]:
    return {box.id: box for box in graph.boxes}


def names(pins: tuple[object, ...]) -> list[str]:
    return [getattr(pin, "name", "") for pin in pins]


def test_the_first_complete_implementation_is_drawn_with_its_inputs_and_outputs() -> None:
    graph = picture_of(compound(DESIGN), catalogue=Catalogue())
    assert graph.title == "Reconstruction3D / DenseRegistrationFromStereo"
    assert graph.subtitle == "3D reconstruction from stereo"
    kinds = [(box.kind, box.title) for box in graph.boxes]
    assert kinds == [
        ("input", "leftImage"),
        ("input", "rightImage"),
        ("node", "rectify_left"),
        ("node", "stereo"),
        ("node", "icp"),
        ("output", "pointCloud"),
        ("output", "pose"),
        ("output", "success"),
    ]
    assert [edge.dashed for edge in graph.edges] == [False, True, False]
    assert graph.caption == ("Other implementations: Other.",)


def test_another_implementation_is_drawn_by_name() -> None:
    graph = picture_of(compound(DESIGN), "Other", catalogue=Catalogue())
    assert boxes(graph)["node slam"].subtitle == "Slam\nevery 0.1 s"


def test_an_implementation_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="Reconstruction3D has no implementation 'Othr'") as caught:
        picture_of(compound(DESIGN), "Othr", catalogue=Catalogue())
    assert "did you mean 'Other'" in caught.value.hint


def test_a_node_that_is_not_found_has_the_ports_that_wires_name() -> None:
    icp = boxes(picture_of(compound(DESIGN), catalogue=Catalogue()))["node icp"]
    assert (names(icp.inputs), names(icp.outputs)) == (["guess"], ["pose"])
    assert not icp.missing


def test_a_node_that_is_found_has_all_its_ports_and_unused_ones_are_grey() -> None:
    catalogue = Catalogue()
    catalogue.register(Registration3D)
    icp = boxes(picture_of(compound(DESIGN), catalogue=catalogue))["node icp"]
    assert [(pin.name, pin.use) for pin in icp.inputs] == [("cloud", "unused"), ("guess", "used")]
    assert [(pin.name, pin.use) for pin in icp.outputs] == [("pose", "used"), ("success", "unused")]
    assert icp.inputs[1].note == "guess: Pose (latest)"
    assert "Registers clouds." in icp.note


def test_a_port_that_a_node_does_not_have_is_red() -> None:
    catalogue = Catalogue()
    catalogue.register(Registration3D)
    text = DESIGN.replace("icp.guess", "icp.gues")
    graph = picture_of(compound(text), catalogue=catalogue)
    assert [(p.name, p.use) for p in boxes(graph)["node icp"].inputs][-1] == ("gues", "unknown")
    assert any(line.startswith("Red:") for line in graph.caption)


def test_code_sample_2_draws_what_is_shared_and_names_the_implementations() -> None:
    graph = picture_of(compound(SAMPLE_2), catalogue=Catalogue())
    assert graph.title == "Reconstruction3D"
    assert "AdjustmentFromStereo, DenseRegistrationFromStereo" in graph.caption[0]
    assert len(graph.edges) == 2
    assert picture_of(compound(SAMPLE_2), "AdjustmentFromStereo", catalogue=Catalogue()) == graph


def test_a_node_that_only_a_wire_names_is_missing() -> None:
    found = boxes(picture_of(compound(SAMPLE_2), catalogue=Catalogue()))
    assert found["node PoseEstimator"].missing
    assert not found["node ImageFiltering"].missing


def test_an_output_that_only_a_wire_names_is_missing() -> None:
    text = DESIGN.replace("icp.pose -> pose", "icp.pose -> outPose")
    found = boxes(picture_of(compound(text), catalogue=Catalogue()))
    assert found["output outPose"].missing
    assert not found["output pose"].missing


def test_a_compound_used_as_a_node_has_a_double_border(tmp_path: Path) -> None:
    (tmp_path / "Slam.yaml").write_text(DESIGN.replace("name: Reconstruction3D", "name: Slam"))
    (tmp_path / "Outer.yaml").write_text(
        "name: Outer\nnodes: {slam: {node: Slam}}\nwires: [slam.pose -> pose]\n"
        "output_ports: [{name: pose, type: Pose}]\n"
    )
    box = boxes(read_picture(tmp_path / "Outer.yaml"))["node slam"]
    assert box.double
    assert names(box.inputs) == ["leftImage", "rightImage"]
    assert box.inputs[0].note == "leftImage: Image\ntag left"


def test_a_node_whose_file_cannot_be_imported_is_red_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "registration_3d.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "c.yaml").write_text(DESIGN)
    box = boxes(read_picture(tmp_path / "c.yaml"))["node icp"]
    assert box.missing
    assert "nothing_of_this_name" in box.note


def test_a_description_with_problems_is_drawn_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(DESIGN.replace("      - icp.pose -> pose", "      - icp.pose to pose"))
    graph = read_picture(tmp_path / "c.yaml")
    assert len(graph.edges) == 2
    assert graph.caption[-1].startswith("1 of the file's parts could not be read")


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("name: [")
    with pytest.raises(ParseError):
        read_picture(tmp_path / "c.yaml")


def test_the_description_of_a_node_is_no_compound(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text("name: Blur\ninput_ports: [{name: image, type: Image}]\n")
    with pytest.raises(UsageError, match="describes a node"):
        read_picture(tmp_path / "n.yaml")


def test_statistics_colour_the_nodes() -> None:
    graph = picture_of(compound(DESIGN), stats={"icp": (0.61, "12 ms, 61 %")}, catalogue=Catalogue())
    found = boxes(graph)
    assert (found["node icp"].heat, found["node icp"].lines[-1]) == (0.61, "12 ms, 61 %")
    assert found["node stereo"].heat is None
    assert "12 ms, 61 %" in svg_text(graph)
    assert "12 ms, 61 %" in mermaid_text(graph)


def test_parameters_are_in_the_tooltip() -> None:
    assert "window = 5" in boxes(picture_of(compound(DESIGN), catalogue=Catalogue()))["node stereo"].note


def test_image_is_a_type_that_inputs_show() -> None:
    left = boxes(picture_of(compound(DESIGN), catalogue=Catalogue()))["input leftImage"]
    assert left.subtitle == Image.__name__
