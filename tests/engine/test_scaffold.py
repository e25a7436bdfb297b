"""Stubs and tests from descriptions: they pass lint and their own tests at once; nothing of yours is lost."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.engine.catalogue import catalogue_for, key_of, load_file
from transect.engine.description import CompoundText, NodeText, PortText
from transect.engine.description_checks import check
from transect.engine.port_types import kind_of, known_names
from transect.engine.reading import parse_description, read_description
from transect.engine.scaffold import new_compound, new_node, sample_value
from transect.engine.scaffold.nodes import renew_module, write_module, write_test
from transect.engine.scaffold.source import snake_case
from transect.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
TYPES = {name: kind for name in known_names("Image") if isinstance(kind := kind_of(name), type)}
"""Python's types and ours by the names that descriptions give them."""

STEREO = """
name: StereoReconstruction
doc: point cloud from a rectified stereo pair
input_ports:
  - {name: left, type: Image, doc: left image}
  - {name: right, type: asn1SccFrame, doc: right image}
output_ports: [{name: cloud, type: PointCloud, doc: in the frame of the left camera, unit: m}]
implementations: [SemiGlobalMatching, BlockMatching]
"""
REGISTRATION = r"""
name: Registration3D
doc: >-
  Registers a cloud on another one, the backslash \ and the quotes \"\"\" of whose description must not
  break anything; neither may its length, which is more than one line of a docstring can hold.
input_ports:
  - {name: source_cloud_of_this_registration, type: PointCloud}
  - {name: target_cloud_of_this_registration, type: PointCloud}
  - {name: weights, type: ndarray, doc: This may be "empty"?}
output_ports: [{name: pose, type: Pose}, {name: success, type: bool}, {name: matches, type: asn1SccMatrix3d}]
implementations: [Registration3D, Icp3D]
"""
SINK = "name: Sink\ninput_ports: [{name: imu, type: Imu}, {name: gain, type: float}]\n"
SOURCE = "name: Source\noutput_ports: [{name: out, type: str}]\nimplementations: [Ticker]\n"
COMPOUND = """
name: Odo
doc: how far it went
input_ports: [{name: imu, type: Imu}]
output_ports: [{name: pose, type: Pose}]
implementations:
  - name: Counting
    nodes: {integrate: {node: NothingOfThisName}}
    wires: [imu -> integrate.imu, integrate.pose -> pose]   # my comment
    controller: odo_control.py:SkipOnFailure
"""
SAMPLE_2 = """
name: Localisation
dfns: [{name: FeaturesExtraction2D}, {name: PoseEstimator}]
input_ports: [{name: image, type: Image, connections: [{dfn: FeaturesExtraction2D, port: frame}]}]
output_ports: [{name: pose, type: Pose, connections: [{dfn: PoseEstimator, port: pose}]}]
implementations: [{name: Sparse}, {name: Dense}]
"""
LONG_FORM = """
name: Tracker
input_ports: [{name: image, type: asn1SccFrame, doc: image}]
output_ports: [{name: pose, type: asn1SccPose, doc: pose}]
implementations:
  - name: Wheel
    dfns: [{dfn_id: finder, name: PrimitiveFinder}]
    input_connections: [{dfpc_input: image, dfn_id: finder, port: frame}]
    output_connections: [{dfpc_output: pose, dfn_id: finder, port: pose}]
"""


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def node_text(text: str) -> NodeText:
    found = parse_description(text, "node.yaml")
    assert isinstance(found, NodeText)
    return found


@pytest.fixture(scope="module")
def scaffolded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that was ever generated."""
    folder = tmp_path_factory.mktemp("scaffolded")
    for name, text in {"a": STEREO, "b": REGISTRATION, "c": SINK, "d": SOURCE}.items():
        new_node(write(folder, f"{name}_desc.yaml", text))
    for name, text in {"odo": COMPOUND, "e_desc": SAMPLE_2, "f_desc": LONG_FORM}.items():
        new_compound(write(folder, f"{name}.yaml", text))
    return folder


def assert_passes(*command: object, cwd: Path) -> None:
    done = subprocess.run([sys.executable, "-m", *map(str, command)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr


def test_generated_code_passes_its_own_tests(scaffolded: Path) -> None:
    assert_passes("pytest", "-q", "-p", "no:cacheprovider", cwd=scaffolded)


def test_generated_code_passes_our_lint(scaffolded: Path) -> None:
    config = ROOT / "pyproject.toml"
    elsewhere = "src = ['elsewhere']"  # transect is a library there, not the project itself
    assert_passes(
        "ruff", "check", "--no-cache", "--config", config, "--config", elsewhere, ".", cwd=scaffolded
    )


def test_generated_code_is_formatted_for_short_and_long_lines(scaffolded: Path) -> None:
    assert_passes("ruff", "format", "--no-cache", "--check", "--isolated", ".", cwd=scaffolded)
    assert_passes(
        "ruff", "format", "--no-cache", "--check", "--config", ROOT / "pyproject.toml", ".", cwd=scaffolded
    )


def test_generated_code_passes_the_strict_type_checker(scaffolded: Path) -> None:
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT / "src")], "pythonVersion": "3.11"}
    (scaffolded / "pyrightconfig.json").write_text(json.dumps(settings))
    assert_passes("pyright", "--pythonpath", sys.executable, cwd=scaffolded)


def test_the_catalogue_finds_interface_and_implementations(scaffolded: Path) -> None:
    catalogue = catalogue_for(scaffolded / "any.yaml")
    interface = catalogue.node("StereoReconstruction")
    assert interface is not None
    assert list(interface.implementations) == ["SemiGlobalMatching", "BlockMatching"]
    assert list(map(str, interface.inputs.values())) == ["left: Image", "right: Image"]
    assert list(map(str, interface.outputs.values())) == ["cloud: PointCloud"]


def test_an_implementation_may_have_the_name_of_its_interface(scaffolded: Path) -> None:
    catalogue = catalogue_for(scaffolded / "any.yaml")
    kind = catalogue.implementation("Registration3D", "Registration3D")
    assert kind is not None
    assert kind.interface.__name__ == "Registration3DInterface"
    assert list(kind.outputs) == ["pose", "success", "matches"]
    assert catalogue.implementation("Registration3D", "Icp3D") is not None


def test_files_are_beside_the_description_unless_a_folder_is_given(tmp_path: Path) -> None:
    file = write(tmp_path, "s.yaml", STEREO)
    made = new_node(file)
    assert made.written == [tmp_path / "stereo_reconstruction.py", tmp_path / "test_stereo_reconstruction.py"]
    made = new_node(file, tmp_path / "nodes")
    assert made.written[0] == tmp_path / "nodes" / "stereo_reconstruction.py"


def test_a_second_call_changes_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, "s.yaml", STEREO)
    first = new_node(file)
    before = [path.read_bytes() for path in first.written]
    second = new_node(file)
    assert second.kept == first.written
    assert [path.read_bytes() for path in first.written] == before


def test_the_interface_is_regenerated_and_what_a_person_wrote_stays(tmp_path: Path) -> None:
    file = write(tmp_path, "s.yaml", STEREO)
    module, test = new_node(file).written
    written = module.read_text().replace(
        'raise NotImplementedError("BlockMatching.process is still to be written")', "return mine(left)"
    )
    written = written.replace("from transect.types", "import cv2\nfrom transect.types")
    module.write_text(written + "\n\ndef mine(left):\n    return cv2.blur(left)\n")
    test.write_text("# my own test\n")
    changed = STEREO.replace("{name: cloud, type: PointCloud", "{name: cloud, type: DepthMap")
    made = new_node(write(tmp_path, "s.yaml", changed))
    after = module.read_text()
    assert (made.regenerated, made.kept) == ([module], [test])
    assert "def process(self, left: Image, right: Image) -> DepthMap: ..." in after
    assert "return mine(left)\n\n\ndef mine(left):\n    return cv2.blur(left)\n" in after
    assert "import cv2\nfrom transect.types import DepthMap, Image, PointCloud\n" in after
    assert test.read_text() == "# my own test\n"


def test_a_new_implementation_is_added_as_a_stub(tmp_path: Path) -> None:
    module = new_node(write(tmp_path, "s.yaml", STEREO)).written[0]
    before = module.read_text()
    new_node(write(tmp_path, "s.yaml", STEREO.replace("[SemiGlobal", "[Scanline, SemiGlobal")))
    after = module.read_text()
    assert after.startswith(before.rstrip())
    assert "\n\n\nclass Scanline(StereoReconstruction):\n" in after
    assert after.count("class SemiGlobalMatching(") == 1


def test_new_imports_go_where_sorting_would_put_them(tmp_path: Path) -> None:
    module = new_node(write(tmp_path, "s.yaml", SOURCE)).written[0]
    more = SOURCE.replace("type: str", "type: Image") + "input_ports: [{name: a, type: ndarray}]\n"
    new_node(write(tmp_path, "s.yaml", more))
    top = module.read_text().split("# ---")[0].split("annotations\n")[1]
    wanted = ["from numpy.typing import NDArray", "from transect.engine import Node"]
    assert top.strip().split("\n") == [
        "from typing import Any",
        "",
        *wanted,
        "from transect.types import Image",
    ]


def test_an_import_under_another_name_does_not_count(tmp_path: Path) -> None:
    module = new_node(write(tmp_path, "s.yaml", SOURCE)).written[0]
    mine = "from transect.types import Image\nfrom transect.engine import Node as N\n"
    module.write_text(module.read_text().replace("from transect.engine import Node\n", mine))
    new_node(tmp_path / "s.yaml")
    assert f"from transect.engine import Node\n{mine}" in module.read_text()


def test_a_file_without_marks_is_refused_and_left_alone(tmp_path: Path) -> None:
    mine = write(tmp_path, "stereo_reconstruction.py", "x = 1\n")
    with pytest.raises(UsageError, match="no part that may be regenerated"):
        new_node(write(tmp_path, "s.yaml", STEREO))
    assert mine.read_text() == "x = 1\n"
    assert not (tmp_path / "test_stereo_reconstruction.py").exists()


def test_a_file_that_is_not_python_is_refused_with_its_line(tmp_path: Path) -> None:
    module = new_node(write(tmp_path, "s.yaml", STEREO)).written[0]
    broken = module.read_text() + "\nclass :\n"
    module.write_text(broken)
    with pytest.raises(UsageError) as caught:
        new_node(tmp_path / "s.yaml")
    assert caught.value.where == f"{module}:{broken.count(chr(10))}"
    assert module.read_text() == broken


def test_an_unknown_type_is_named_with_its_port(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        new_node(write(tmp_path, "s.yaml", STEREO.replace("type: PointCloud", "type: PointClod")))
    assert "the port 'cloud' has the unknown type 'PointClod'" in caught.value.why
    assert "did you mean 'PointCloud'" in caught.value.hint
    assert caught.value.where == f"{tmp_path / 's.yaml'}:7"
    assert list(tmp_path.iterdir()) == [tmp_path / "s.yaml"]


def test_names_that_python_cannot_have_are_refused(tmp_path: Path) -> None:
    text = STEREO.replace("name: StereoReconstruction", "name: Stereo Reconstruction").replace(
        "left,", "from,"
    )
    with pytest.raises(UsageError) as caught:
        new_node(write(tmp_path, "s.yaml", text))
    assert "the node 'Stereo Reconstruction'" in caught.value.why
    assert "the port 'from'" in caught.value.why
    assert caught.value.hint == "call it 'StereoReconstruction'"


def test_a_compound_is_no_node_and_the_reverse(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="describes a compound"):
        new_node(write(tmp_path, "c.yaml", COMPOUND))
    with pytest.raises(UsageError, match="describes a node"):
        new_compound(write(tmp_path, "s.yaml", STEREO))


def test_a_stub_fails_its_test_once_it_is_written(tmp_path: Path) -> None:
    module = new_node(write(tmp_path, "s.yaml", SOURCE)).written[0]
    text = module.read_text()
    module.write_text(text.replace(text[text.index("raise ") :], 'return "tick"\n'))
    test = load_file(tmp_path / "test_source.py")
    test.test_its_ports_are_those_of_its_description()
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test.test_ticker_is_still_to_be_written()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("FeaturesExtraction2D", "features_extraction_2d"),
        ("PointCloudReconstruction2DTo3D", "point_cloud_reconstruction_2d_to_3d"),
        ("KFPrediction", "kf_prediction"),
        ("Icp", "icp"),
        ("gyro_norm", "gyro_norm"),
        ("VisualSLAMStereo", "visual_slam_stereo"),
    ],
)
def test_file_names_are_in_snake_case(name: str, file: str) -> None:
    assert snake_case(name) == file


@given(st.from_regex(r"[^\W\d_]\w*", fullmatch=True))
def test_every_file_name_is_one_by_which_the_catalogue_finds_the_node(name: str) -> None:
    assert key_of(snake_case(name)) == key_of(name)


@given(st.text(), st.text(), st.sampled_from(sorted(TYPES)))
def test_any_description_gives_python(doc: str, port_doc: str, kind: str) -> None:
    ports = {name: PortText(name, kind, port_doc, unit=doc) for name in ("a", "b")}
    text = NodeText("Thing", doc, ports, {"b": ports["b"]}, ("Thing", "Other"))
    source = write_module(text)
    names = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    assert names == ["ThingInterface", "Thing", "Other"]
    assert all(ast.get_docstring(node) for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    assert renew_module(source, text, "thing.py") == source
    ast.parse(write_test(text))


@pytest.mark.parametrize("kind", sorted({*TYPES.values()}, key=str), ids=lambda kind: kind.__name__)
def test_every_type_that_ports_carry_has_a_sample_value(kind: type) -> None:
    assert isinstance(sample_value(kind), kind)


def test_a_type_without_a_sample_value_is_named() -> None:
    with pytest.raises(UsageError, match="no sample value of type Path"):
        sample_value(Path)


def test_a_compound_in_our_form_stays_as_it_is(tmp_path: Path) -> None:
    file = write(tmp_path, "odo.yaml", COMPOUND)
    made = new_compound(file)
    assert made.kept == [file]
    assert made.written == [tmp_path / "odo_control.py", tmp_path / "test_odo.py"]
    assert file.read_text() == COMPOUND


def test_a_compound_in_our_form_is_copied_with_its_comments(tmp_path: Path) -> None:
    made = new_compound(write(tmp_path, "odo.yaml", COMPOUND), tmp_path / "other")
    assert made.description == tmp_path / "other" / "Odo.yaml"
    assert made.description.read_text() == COMPOUND


def test_cdffs_long_form_is_written_in_ours(tmp_path: Path) -> None:
    made = new_compound(write(tmp_path, "t.yaml", LONG_FORM))
    text = made.description.read_text()
    assert made.description == tmp_path / "Tracker.yaml"
    assert "finder: {node: PrimitiveFinder}" in text
    assert "- image -> finder.frame" in text
    assert "dfn" not in text
    before, after = read_description(tmp_path / "t.yaml"), read_description(made.description)
    assert isinstance(before, CompoundText)
    assert isinstance(after, CompoundText)
    assert list(map(str, before.implementations["Wheel"].wires)) == list(
        map(str, after.implementations["Wheel"].wires)
    )


def test_code_sample_2_gives_a_node_for_each_dfn_to_its_first_implementation(tmp_path: Path) -> None:
    made = new_compound(write(tmp_path, "l.yaml", SAMPLE_2))
    text = read_description(made.description)
    assert isinstance(text, CompoundText)
    first, second = text.implementations.values()
    assert (first.name, first.complete, second.name, second.complete) == ("Sparse", True, "Dense", False)
    assert {id_: use.node for id_, use in first.nodes.items()} == {
        "features_extraction_2d": "FeaturesExtraction2D",
        "pose_estimator": "PoseEstimator",
    }
    assert list(map(str, first.wires)) == [
        "image -> features_extraction_2d.frame",
        "pose_estimator.pose -> pose",
    ]
    assert made.notes == ["Sparse has the nodes and wires; its siblings are only named, to be copied from it"]


def test_a_description_that_already_has_the_name_is_kept_and_that_is_said(tmp_path: Path) -> None:
    file = write(tmp_path, "Tracker.yaml", LONG_FORM)
    made = new_compound(file)
    assert file.read_text() == LONG_FORM
    assert made.notes == [f"{file} stays in its form; -o with another folder writes it in ours"]


def test_a_controller_stub_is_found_by_the_check_and_never_overwritten(tmp_path: Path) -> None:
    file = write(tmp_path, "odo.yaml", COMPOUND)
    new_compound(file)
    stub = tmp_path / "odo_control.py"
    assert [p.what for p in check([file])[str(file)].problems if "control" in p.what.lower()] == []
    stub.write_text(stub.read_text() + "# mine\n")
    assert stub in new_compound(file).kept
    assert stub.read_text().endswith("# mine\n")


def test_a_controller_in_a_package_is_mentioned(tmp_path: Path) -> None:
    text = COMPOUND.replace("odo_control.py:Skip", "my.package:Skip")
    made = new_compound(write(tmp_path, "odo.yaml", text))
    assert made.notes == ["Counting is controlled by my.package:SkipOnFailure, which is to be written there"]


def test_a_controller_outside_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no code can be made"):
        new_compound(write(tmp_path, "odo.yaml", COMPOUND.replace("odo_control.py", "../elsewhere.py")))


def test_the_test_of_a_compound_lists_what_is_wrong_now(tmp_path: Path) -> None:
    made = new_compound(write(tmp_path, "odo.yaml", COMPOUND))
    assert "there is no node or compound 'NothingOfThisName'" in made.test.read_text()
