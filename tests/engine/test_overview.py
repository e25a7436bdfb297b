"""What can be known of compounds and nodes without running them."""

import subprocess
import sys
from pathlib import Path

import pytest

from transect.engine.overview import describe, list_compounds, list_nodes
from transect.errors import UsageError

FLOW = """
name: Halving
doc: Halves numbers
input_ports:
  - {name: number, type: float, unit: m, doc: what is halved}
  - {name: other, type: float, doc: unused}
output_ports:
  - {name: half, type: float, doc: half of it}
implementations:
  - name: Twice
    nodes:
      first: {node: Half, params: {factor: 0.25}}
      second: {node: Half}
    wires:
      - number -> first.value
      - first.out -> second.value
      - second.out -> half
"""
NODE = '''
"""A node of two words."""
from transect.engine import Node, param


class Half(Node):
    """Multiplies a number by a factor."""

    factor: float = param(0.5, gt=0, le=1, unit="m", doc="factor of each number")

    def process(self, value: float) -> float:
        return self.factor * value
'''


@pytest.fixture
def halving(tmp_path: Path) -> Path:
    (tmp_path / "half.py").write_text(NODE)
    file = tmp_path / "halving.yaml"
    file.write_text(FLOW)
    return file


def test_compounds_are_listed_with_their_ports():
    found = {each.name: each for each in list_compounds()}
    assert {"VisualOdometry", "LidarOdometry", "PoseFusion", "WheelDrift"} <= set(found)
    odometry = found["VisualOdometry"]
    assert odometry.doc
    assert odometry.implementations[0] == "KltKeyframes"
    left = odometry.inputs[0]
    assert (left.name, left.type, left.tag, bool(left.doc)) == ("left", "Image", "left", True)
    assert [port.name for port in odometry.outputs[:2]] == ["pose", "success"]


def test_compounds_are_listed_without_importing_their_nodes():
    code = """
import sys
from transect.engine.overview import list_compounds
assert list_compounds()
heavy = {"cv2", "scipy", "numba", "gtsam", "small_gicp"}
print(sorted(m for m in sys.modules if m in heavy or m.startswith("transect.nodes.")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_compound_is_described_with_every_parameter_of_every_node(halving: Path):
    listing = describe(str(halving))
    assert (listing.kind, listing.name, listing.doc) == ("compound", "Halving", "Halves numbers")
    (twice,) = listing.implementations
    assert (twice.name, twice.inputs, twice.outputs) == ("Twice", ("number",), ("half",))
    assert [(node.id, node.node, node.doc) for node in twice.nodes] == [
        ("first", "Half", "Multiplies a number by a factor."),
        ("second", "Half", "Multiplies a number by a factor."),
    ]
    (factor,) = twice.nodes[0].parameters
    assert (factor.name, factor.type, factor.unit, factor.range) == ("factor", "float", "m", "> 0, <= 1")
    assert (factor.default, factor.value) == (0.5, 0.25)
    assert factor.doc == "factor of each number"
    assert twice.nodes[1].parameters[0].value == 0.5


def test_a_compound_within_a_compound_shows_its_nodes_by_the_names_that_set_takes():
    (chosen,) = describe("DemGeneration/FromLidar").implementations
    assert "odometry.odometry" in [node.id for node in chosen.nodes]


def test_a_node_is_described_with_ports_policies_and_implementations():
    listing = describe("StereoOdometry")
    assert (listing.kind, listing.name) == ("node", "StereoOdometry")
    assert [(port.name, port.type, port.policy) for port in listing.inputs] == [
        ("left", "Image", "trigger"),
        ("right", "Image", "synced within 0.005 s"),
    ]
    covariance = next(port for port in listing.outputs if port.name == "covariance")
    assert covariance.shape == "(6, 6)"
    assert covariance.doc
    assert {"KltKeyframes", "DescriptorTracks"} <= {each.name for each in listing.implementations}
    (only,) = describe("StereoOdometry/DescriptorTracks").implementations
    descriptor = next(each for each in only.nodes[0].parameters if each.default == "SIFT")
    assert descriptor.range == "SIFT | ORB"


def test_inputs_that_may_be_left_out_are_optional():
    optional = {port.name: port.optional for port in describe("PointCloudAssembly").inputs}
    assert optional["firstPointCloud"]
    assert not optional["secondPointCloud"]


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("VisualOdometri", "no compound or node 'VisualOdometri'", "VisualOdometry"),
        ("VisualOdometry/Klt", "no implementation 'Klt'", "Klt"),
        ("StereoOdometry/Klt", "no implementation 'Klt'", "Klt"),
    ],
)
def test_a_name_that_is_not_known_says_what_may_be_meant(name: str, said: str, hint: str):
    with pytest.raises(UsageError, match=said) as caught:
        describe(name)
    assert hint in caught.value.hint


def test_the_docs_of_ports_come_from_docstrings():
    said = {port.name: port.doc for port in describe("ScanDeskewing").inputs}
    assert said["pose"] == "Of the sensor, or of the body that carries it."


def test_a_compound_whose_node_is_nowhere_says_so(halving: Path):
    text = FLOW.replace("Half,", "Missing,").replace("{node: Half}", "{node: Missing}")
    halving.write_text(text)
    with pytest.raises(UsageError, match="there is no node 'Missing'"):
        describe(str(halving))


def test_nodes_are_listed_by_group_without_importing_them():
    listed = {each.name: each for each in list_nodes()}
    assert {"Matchability", "MatchRatio", "TriangulationCovariance", "PnpInliers"} <= listed.keys()
    assert listed["LaserAssembly"].implementations == ("RecordedFrames", "NavStates")
    assert (listed["PnpInliers"].group, listed["StereoOdometry"].group) == ("evaluation", "stereo")
    assert not {"Tracks", "Mapper", "Session"} & listed.keys(), "classes that nodes use are no nodes"
    assert all(each.doc for each in listed.values())
