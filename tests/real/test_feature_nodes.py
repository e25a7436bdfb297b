"""Feature nodes on real pairs, and under the names that CDFF's released descriptions give them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import transect
from transect.engine.catalogue import catalogue_for
from transect.engine.compounds import graph_of
from transect.engine.description import CompoundText, NodeText
from transect.engine.description_checks import check
from transect.engine.port_types import kind_of
from transect.engine.reading import parse_description
from transect.formats.calibration.files import read_calibration
from transect.nodes.features.bundle_adjustment import GtsamAdjustment
from transect.nodes.features.features_2d import (
    AkazeDetectorDescriptor,
    HarrisDetector2D,
    OrbDetectorDescriptor,
)
from transect.nodes.features.matching_2d import BruteForceMatcher, FlannMatcher, KltTracker
from transect.nodes.features.two_views import (
    EssentialMatrixDecomposition,
    FundamentalMatrixMagsac,
    FundamentalMatrixRansac,
    Triangulation,
)
from transect.recording import Recording
from transect.types import CorrespondenceMaps2D, Correspondences2D, Features2D, Image, Pose

RENAMED = {
    "CeresEstimation": "RobustEstimation",
    "CeresAdjustment": "GtsamAdjustment",
    "UdvDecomposition": "SvdDecomposition",
}
"""Implementations by a library that is not used here, or by another name for the same decomposition."""


@pytest.fixture(scope="module")
def kitti(real_data: Path) -> Recording:
    return transect.open(real_data / "kitti_raw_06")


@pytest.fixture(scope="module")
def moments(kitti: Recording) -> list[int]:
    """Times of the first pair and of the next but one."""
    return [int(kitti["image_00"].t_ns[row]) for row in (0, 2)]


@pytest.fixture(scope="module")
def seen(kitti: Recording, moments: list[int]) -> list[Features2D]:
    """Features of both pairs: left, right, left, right."""
    streams = kitti["image_00"], kitti["image_01"]
    images = [stream.at(t).payload for t in moments for stream in streams]
    return [AkazeDetectorDescriptor(count=1500)(image).features for image in images]


@pytest.fixture(scope="module")
def devon(real_data: Path) -> tuple[Image, Image]:
    """The stereo pair of Devon Island, with CDFF's calibration for its rectified images."""
    import cv2

    folder = real_data / "cdff_images_clouds"
    file = folder / "DatasetsInformation" / "DevonIsland" / "CameraCalibration"
    cameras = read_calibration(file.read_bytes(), file.name).cameras
    names = (("Left", "left"), ("Right", "right"))
    pictures = [cv2.imread(str(folder / "Images" / f"DevonIsland{side}.ppm")) for side, _ in names]
    left, right = (Image(p, "bgr", camera=cameras[n]) for p, (_, n) in zip(pictures, names, strict=True))
    return left, right


@pytest.fixture(scope="module")
def devon_matches(devon: tuple[Image, Image]) -> Correspondences2D:
    source, sink = (OrbDetectorDescriptor(count=1500)(each).features for each in devon)
    return FlannMatcher()(source, sink).matches


def off_row(matches: Correspondences2D) -> np.ndarray:
    """Rows between the two ends of each match: in a rectified pair the distance from the epipolar line."""
    return np.abs(matches.sink[:, 1] - matches.source[:, 1])


def test_matches_and_tracks_on_devon_island_lie_on_the_rows_of_the_rectified_pair(
    devon: tuple[Image, Image], devon_matches: Correspondences2D
):
    """Within a pixel of ORB's coarsest level, which is 1.2**7 = 3.6 rows high; tracks within 2 rows."""
    assert len(devon_matches) > 200
    assert np.mean(off_row(devon_matches) < 3.6) > 0.9
    corners = HarrisDetector2D()(devon[0])
    assert corners.coverage > 0.5
    tracked = KltTracker(levels=5)(*devon, corners.features)
    assert tracked.tracked > 0.5
    assert np.mean(off_row(tracked.matches) < 2) > 0.95


def test_the_right_camera_of_devon_island_stands_where_its_calibration_says(
    devon: tuple[Image, Image], devon_matches: Correspondences2D
):
    found = FundamentalMatrixRansac()(devon_matches)
    motion = EssentialMatrixDecomposition(baseline=devon[1].camera.baseline)(
        found.fundamentalMatrix, found.inlierMatches
    )
    assert found.inlierRatio > 0.8
    np.testing.assert_allclose(motion.transform.position, [0.239977, 0, 0], atol=0.01)
    assert 2 * np.arccos(abs(motion.transform.orientation[3])) < np.deg2rad(0.5)


def test_the_cameras_of_kitti_see_the_road_below_them(seen: list[Features2D]):
    """calib_cam_to_cam.txt: 0.54 m; the cameras are 1.65 m above the road (Geiger et al. 2013, Fig. 3)."""
    matches = BruteForceMatcher()(seen[0], seen[1]).matches
    assert np.mean(off_row(matches) < 2) > 0.9
    found = FundamentalMatrixMagsac()(matches)
    # Of a rectified pair it is [0 0 0; 0 0 -1; 0 1 0] but for its scale and sign.
    F = found.fundamentalMatrix / found.fundamentalMatrix[2, 1]
    assert abs(F[1, 2] + 1) < 0.05
    b = seen[1].camera.baseline
    assert b == pytest.approx(0.54, abs=0.01)
    beside = Pose(np.array([b, 0, 0]), np.array([0, 0, 0, 1.0]))
    cloud = Triangulation()(found.inlierMatches, beside).pointcloud
    assert len(cloud) > 100
    assert np.percentile(cloud.points[:, 2], 2) > 2
    assert 1.2 < np.percentile(cloud.points[:, 1], 98) < 2.5


def test_a_pair_and_the_next_but_one_are_adjusted_to_the_step_of_the_truth(
    kitti: Recording, moments: list[int], seen: list[Features2D]
):
    """The truth is that of the left camera."""
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    maps = tuple(BruteForceMatcher()(seen[a], seen[b]).matches for a, b in pairs)
    found = GtsamAdjustment()(CorrespondenceMaps2D(maps, tuple(pairs)))
    truth = kitti.truth
    places = truth.array("x", "y", "z")[np.searchsorted(truth.t_ns, moments)]
    step = np.linalg.norm(places[1] - places[0])
    assert found.success
    assert np.linalg.norm(found.posesSequence.positions[2]) == pytest.approx(step, abs=0.1)
    assert found.posesSequence.positions[2, 2] > 0.99 * step  # forwards


# CDFF's descriptions


@pytest.fixture(scope="module")
def descriptions(real_data: Path) -> Path:
    return real_data / "cdff_descriptions"


@pytest.mark.parametrize(
    "file",
    [
        "FeaturesExtraction2D",
        "FeaturesDescription2D",
        "FeaturesMatching2D",
        "FundamentalMatrixComputation",
        "CamerasTransformEstimation",
        "PerspectiveNPointSolving",
        "PointCloudReconstruction2DTo3DInterface",
        "Transform3DEstimation",
        "BundleAdjustment",
    ],
)
def test_an_interface_has_the_ports_and_implementations_of_its_released_description(
    descriptions: Path, file: str
):
    text = (descriptions / "dfn" / f"{file}_desc.yaml").read_text(encoding="utf-8")
    text = text.replace("- mame:", "- name:").replace("\t", "        ")  # "cdff.md 1.10"
    text = text.replace("asn1SccCorrespondenceMapsSequence", "asn1SccCorrespondenceMaps2DSequence")
    described = parse_description(text, file)
    assert isinstance(described, NodeText)
    ours = catalogue_for().node(described.name)
    assert ours is not None
    for said, ports in ((described.inputs, ours.inputs), (described.outputs, ours.outputs)):
        for name, port in said.items():
            assert ports[name].type is kind_of(port.type)
    assert list(described.inputs) == list(ours.inputs)
    assert {RENAMED.get(each, each) for each in described.implementations} <= set(ours.implementations)


CHAIN = """\
  - name: ReconstructionFromStereo
    dfns:
      - {dfn_id: extract_left, name: FeaturesExtraction2D, implementation: HarrisDetector2D}
      - {dfn_id: extract_right, name: FeaturesExtraction2D, implementation: HarrisDetector2D}
      - {dfn_id: describe_left, name: FeaturesDescription2D, implementation: OrbDescriptor}
      - {dfn_id: describe_right, name: FeaturesDescription2D, implementation: OrbDescriptor}
      - {dfn_id: match, name: FeaturesMatching2D, implementation: FlannMatcher}
      - {dfn_id: fundamental, name: FundamentalMatrixComputation, implementation: FundamentalMatrixRansac}
      - {dfn_id: transform, name: CamerasTransformEstimation, implementation: EssentialMatrixDecomposition}
      - {dfn_id: points, name: PointCloudReconstruction2DTo3D, implementation: Triangulation}
    input_connections:
      - {dfpc_input: leftImage, dfn_id: extract_left, port: frame}
      - {dfpc_input: leftImage, dfn_id: describe_left, port: frame}
      - {dfpc_input: rightImage, dfn_id: extract_right, port: frame}
      - {dfpc_input: rightImage, dfn_id: describe_right, port: frame}
    internal_connections:
      - {from: {dfn_id: extract_left, port: features}, to: {dfn_id: describe_left, port: features}}
      - {from: {dfn_id: extract_right, port: features}, to: {dfn_id: describe_right, port: features}}
      - {from: {dfn_id: describe_left, port: features}, to: {dfn_id: match, port: sourceFeatures}}
      - {from: {dfn_id: describe_right, port: features}, to: {dfn_id: match, port: sinkFeatures}}
      - {from: {dfn_id: match, port: matches}, to: {dfn_id: fundamental, port: matches}}
      - from: {dfn_id: fundamental, port: fundamentalMatrix}
        to: {dfn_id: transform, port: fundamentalMatrix}
      - {from: {dfn_id: fundamental, port: inlierMatches}, to: {dfn_id: transform, port: matches}}
      - {from: {dfn_id: fundamental, port: inlierMatches}, to: {dfn_id: points, port: matches}}
      - {from: {dfn_id: transform, port: transform}, to: {dfn_id: points, port: pose}}
    output_connections:
      - {dfpc_output: pointCloud, dfn_id: points, port: pointcloud}
      - {dfpc_output: pose, dfn_id: transform, port: transform}
      - {dfpc_output: success, dfn_id: transform, port: success}
"""
"""The wires inside, which the released file does not have: the paper's short form cannot say them."""

CORRECTIONS = (
    (r"  - name: StereoReconstruction\n  - name: ImageFiltering\n", ""),  # not part of this chain
    (r"    connections:\n    - dfn: ImageFiltering\n      port: image\n", ""),
    (r"    - dfn: StereoReconstruction\n      port: pointCloud\n", ""),
    (r"(PointCloudReconstruction2DTo3D\n      port: )pointCloud", r"\1pointcloud"),
    (r"(CamerasTransformEstimation\n      port: )pose", r"\1transform"),
    (r"    - dfn: FeaturesMatching2D\n      port: success\n", ""),
    (r"    - dfn: FundamentalMatrixComputation\n      port: success\n", ""),  # an output has one source
    (r"type: asn1SccFrame\n    doc: \"2D (left|right)", r'type: asn1SccFrame\n    tag: \1\n    doc: "2D \1'),
    (r"  - name: ReconstructionFromStereo\n", CHAIN),
)


@pytest.fixture(scope="module")
def corrected(descriptions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = (descriptions / "dfpc" / "Reconstruction3D_dfpc_desc.yaml").read_text(encoding="utf-8")
    for found, better in CORRECTIONS:
        text, count = re.subn(found, better, text)
        assert count, found
    file = tmp_path_factory.mktemp("cdff") / "Reconstruction3D.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_released_reconstruction_builds_once_corrected(corrected: Path):
    assert check([corrected])[str(corrected)].problems == []
    text = parse_description(corrected.read_text(encoding="utf-8"), str(corrected))
    assert isinstance(text, CompoundText)
    graph = graph_of(text, "ReconstructionFromStereo", catalogue_for(corrected))
    assert len(graph.parts) == 8
    assert set(graph.outputs) == {"pointCloud", "pose", "success"}


def test_the_corrected_reconstruction_runs_on_a_real_pair(corrected: Path, kitti: Recording):
    first = kitti.slice("+0s", "+0.05s")
    settings = {"transform.baseline": 0.54, "extract_left.count": 1500, "extract_right.count": 1500}
    run = transect.run(f"{corrected}/ReconstructionFromStereo", first, set=settings)
    assert run["success"].values == [True]
    np.testing.assert_allclose(run["pose"].values[0].position, [0.54, 0, 0], atol=0.06)
    assert len(run["pointCloud"].values[0]) > 30
    assert transect.run(f"{corrected}/ReconstructionFromStereo", first, set=settings).digest == run.digest
