"""CDFF's released descriptions, drawn and scaffolded."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from transect.draw.graph import GraphDrawing, mermaid_text, svg_text
from transect.engine.picture import read_picture
from transect.engine.scaffold import new_compound, new_node
from transect.errors import TransectError


@pytest.fixture(scope="module")
def released(real_data: Path) -> Path:
    return real_data / "cdff_descriptions"


def picture(released: Path, name: str) -> GraphDrawing:
    (file,) = (released / "dfpc").glob(f"{name}*")
    return read_picture(file, also=sorted((released / "dfn").iterdir()))


def red(graph: GraphDrawing) -> set[str]:
    """What is marked as not there: nodes, and ports as `node.port`."""
    pins = [(box.title, pin) for box in graph.boxes for pin in (*box.inputs, *box.outputs)]
    unknown = {f"{title}.{pin.name}" for title, pin in pins if pin.use == "unknown"}
    return unknown | {box.title for box in graph.boxes if box.missing}


def test_reconstruction_3d_shows_the_four_ports_that_do_not_exist(released: Path) -> None:
    # cdff.md 1.10: "three ports that do not exist, a `success` that FeaturesMatching2D lacks"
    graph = picture(released, "Reconstruction3D_")
    assert red(graph) == {
        "StereoReconstruction.pointCloud",
        "PointCloudReconstruction2DTo3D.pointCloud",
        "CamerasTransformEstimation.pose",
        "FeaturesMatching2D.success",
    }


def test_an_undeclared_node_is_red(released: Path) -> None:
    # cdff.md 1.10: ReconstructionAndIdentification has "4 and an undeclared DFN"
    assert "PointCloudReconstruction2DTo3D" in red(picture(released, "ReconstructionAndIdentification"))


def test_every_released_compound_is_drawn(released: Path) -> None:
    files = sorted((released / "dfpc").iterdir())
    assert len(files) == 6
    for file in files:
        graph = read_picture(file)
        titles = {element.text for element in etree.fromstring(svg_text(graph).encode()).iter("{*}text")}
        assert {box.title for box in graph.boxes} <= titles
        assert mermaid_text(graph).count("\n") > len(graph.boxes) + len(graph.edges)


def test_every_released_node_that_can_be_read_is_scaffolded(released: Path, tmp_path: Path) -> None:
    # cdff.md 1.10: two do not parse, one has a port key `mame`, two have unknown types
    refused: set[str] = set()
    for file in sorted((released / "dfn").iterdir()):
        try:
            new_node(file, tmp_path)
        except TransectError:
            refused.add(file.stem.removesuffix("_desc"))
    assert refused == {
        "FeaturesMatching3D",
        "PointCloudAssembly",
        "Transform3DEstimation",
        "BundleAdjustment",
        "ForceMeshGenerator",
    }
    assert len(list(tmp_path.glob("test_*.py"))) == 39 - 5


def test_the_long_form_is_written_in_ours(released: Path, tmp_path: Path) -> None:
    made = new_compound(released / "dfpc" / "ModelBasedTracker_desc.yml", tmp_path)
    assert "- background_subtractor.outImage -> circle_finder.image" in made.description.read_text()
