"""Reconstruction3D over ground whose every height is known: a pair of cameras looks down at it and moves on.

Pictures come from a formula that is not the nodes': each pixel's ray is met with ``z = height(x, y)``.
"""

import dataclasses
from functools import lru_cache

import numpy as np
import pytest

from transect import run
from transect.base.clocks import NS
from transect.engine import Compound
from transect.evaluation.clouds import CameraView, place_by_truth, pose_errors, reconstruction_errors
from transect.formats.shared.file_groups import file_table
from transect.geometry import se3
from transect.recording import FrameTree, Parsed, Recording, Stream, arrow
from transect.types import CameraModel, GridMap, Image, Pose

PAPER = (
    "RegistrationFromStereo",
    "SparseRegistrationFromStereo",
    "SparseRegistrationFromStereoCC",
    "DenseRegistrationFromStereo",
    "DenseRegistrationFromStereoCC",
    "ReconstructionFromStereo",
    "EstimationFromStereo",
    "AdjustmentFromStereo",
)
"""The rows of CDFF's Table 5."""
OURS = (
    "OdometryFromStereo",
    "RegistrationWithFpfh",
    "RegistrationWithPfh",
    "ThinnedRegistrationWithGicp",
    "DenseRegistrationWithGicp",
    "ReconstructionWithAp3p",
    "EstimationWithGnc",
    "AdjustmentWithGtsam",
)
ALL = (*OURS, *PAPER)
TWICE = {"OdometryFromStereo", "DenseRegistrationWithGicp", "RegistrationWithFpfh", "AdjustmentWithGtsam"}
"""One of each library that has threads; the others are made of nodes whose own tests call them twice."""
CORNERS = {
    "RegistrationFromStereo",
    "SparseRegistrationFromStereo",
    "SparseRegistrationFromStereoCC",
    "RegistrationWithPfh",
}
"""Those that look for corners of the surface: they need stones."""
POSE_ERRORS = {
    "RegistrationFromStereo": 0.12,
    "RegistrationWithFpfh": 0.12,
    "RegistrationWithPfh": 0.12,
    "SparseRegistrationFromStereoCC": 0.08,
    "EstimationFromStereo": 0.12,
    "EstimationWithGnc": 0.08,
}
"""Metres, of those that see the ground too coarsely, or weigh near and far points alike; else 0.03."""
QUICK = {
    "DenseRegistrationFromStereo": {"icp.sampling": 0.3},
    "DenseRegistrationFromStereoCC": {"icp.points": 4000},
    "RegistrationWithPfh": {"describe.radius": 0.2},
    "RegistrationWithFpfh": {"thin.size": 0.1, "match.samples": 3000},
    "DenseRegistrationWithGicp": {"icp.coarse_points": 1000, "icp.fine_points": 4000},
}
"""Parameters for pictures this small."""
WIDTH_PX, HEIGHT_PX, FOCAL_PX, BASELINE_M, HEIGHT_ABOVE_GROUND_M = 240, 160, 200.0, 0.15, 2.0
K = np.array([[FOCAL_PX, 0, (WIDTH_PX - 1) / 2], [0, FOCAL_PX, (HEIGHT_PX - 1) / 2], [0, 0, 1]])
DOWN = np.diag([1.0, -1.0, -1.0])
"""Takes vectors of a camera that looks down to the world: x east, y north, z up."""
STEP = np.array([0.08, 0.05, 0.01])
"""Metres from one pair to the next."""
CELL_SIZE_M = 0.02


HEIGHT_STEP_M = 0.005
"""Metres between the heights of stones that are looked up; straight lines between them."""


@lru_cache
def stones_map():
    """Heights (m) of 45 stones, pyramids of 0.2 m with sharp edges, from -3 m on in x and y."""
    axis = np.arange(-3.0, 3.0, HEIGHT_STEP_M, dtype=np.float32)
    places = np.random.default_rng(8).uniform([-2.0, -1.6], [2.2, 1.6], (45, 2)).astype(np.float32)
    found = np.zeros((len(axis), len(axis)), np.float32)
    for x, y in places:
        found = np.maximum(found, 0.2 - 1.2 * np.maximum(np.abs(axis[None] - x), np.abs(axis[:, None] - y)))
    return found


def height(x, y, stones):
    """Metres of the ground: mounds of a few decimetres, with stones on them or without."""
    mounds = (
        0.15 * np.sin(3.1 * x + 0.4) * np.cos(2.3 * y)
        + 0.1 * np.sin(4.7 * y + 1.9 * x)
        - 0.05 * np.cos(7.0 * x)
    )
    if not stones:
        return mounds
    import cv2

    at = [((axis + 3.0) / HEIGHT_STEP_M).astype(np.float32) for axis in (x, y)]
    return mounds + cv2.remap(stones_map(), *at, cv2.INTER_LINEAR)


@lru_cache
def grains(seed):
    """Brightness of the ground in squares of 12.5 mm, smooth over one or two of them."""
    import cv2

    noise = np.random.default_rng(seed).normal(size=(512, 512)).astype(np.float32)
    noise = cv2.GaussianBlur(noise, (0, 0), 1.2)
    return 128 + 45 * noise / noise.std()


def texture(x, y, seed):
    import cv2

    at = [np.mod(axis * 80, 511).astype(np.float32) for axis in (x, y)]
    return cv2.remap(grains(seed), *at, cv2.INTER_LINEAR)


def picture(eye, seed, stones=False):
    return seen_from(*eye.tolist(), seed, stones)


@lru_cache
def seen_from(east, north, up, seed, stones):
    """What a camera there (m) sees of the ground, with noise of one grey level."""
    rows, columns = np.indices((HEIGHT_PX, WIDTH_PX))
    u, v = (columns - K[0, 2]) / FOCAL_PX, (rows - K[1, 2]) / FOCAL_PX
    depth = np.full(u.shape, HEIGHT_ABOVE_GROUND_M)
    for _ in range(30):
        depth = 0.5 * depth + 0.5 * (up - height(east + u * depth, north - v * depth, stones))
    noise = np.random.default_rng((seed, int(1e6 * east) & 0xFFFF)).normal(size=u.shape)
    bright = texture(east + u * depth, north - v * depth, seed) + noise
    return np.clip(np.rint(bright), 0, 255).astype(np.uint8)


def camera(side, shift):
    P = np.hstack([K, [[-FOCAL_PX * shift], [0], [0]]])
    return CameraModel(side, WIDTH_PX, HEIGHT_PX, K, P=P, frame=f"{side}_camera")


def eyes(count):
    return [np.array([0.0, 0.0, HEIGHT_ABOVE_GROUND_M]) + k * STEP for k in range(count)]


def stream(side, shift, pictures):
    known, t_ns = camera(side, shift), np.arange(len(pictures), dtype=np.int64) * NS
    images = [
        Image(data, t_ns=int(t), frame=known.frame, camera=known)
        for data, t in zip(pictures, t_ns, strict=True)
    ]
    table = file_table(t_ns, [f"{side}/{k}.png" for k in range(len(images))])
    return Stream(
        side, Image, Parsed(table), tag=side, frame=known.frame, camera=side,
        loader=lambda row: images[int(row["t_ns"]) // NS],
    )  # fmt: skip


def truth(places):
    turned, place = se3.to_quaternion(np.array([se3.from_matrix(DOWN, eye) for eye in places]))
    columns = dict(zip(("x", "y", "z", "qx", "qy", "qz", "qw"), np.hstack([place, turned]).T, strict=True))
    table = arrow.table(np.arange(len(places), dtype=np.int64) * NS, columns, units=Pose.units())
    return Stream("truth", Pose, Parsed(table), role="truth", frame="world", child="left_camera")


def recording(count, instead=None, stones=False, stride=1):
    """A recording of `count` pairs; `instead` has the pictures of some of them, by number."""
    places, pairs = eyes(count * stride)[::stride], list[tuple[np.ndarray, np.ndarray]]()
    for k, eye in enumerate(places):
        right = eye + DOWN @ [BASELINE_M, 0, 0]
        pairs.append((instead or {}).get(k) or (picture(eye, 5, stones), picture(right, 5, stones)))
    left, right = zip(*pairs, strict=True)
    frames = FrameTree()
    frames.add_static("left_camera", "right_camera", se3.from_matrix(np.eye(3), [BASELINE_M, 0, 0]))
    streams = (stream("left", 0.0, left), stream("right", BASELINE_M, right), truth(places))
    return Recording(
        "ground",
        streams,
        frames=frames,
        cameras={"left": camera("left", 0.0), "right": camera("right", BASELINE_M)},
    )


@pytest.fixture(scope="module")
def ground():
    return recording(3)


@pytest.fixture(scope="module")
def stony():
    return recording(3, stones=True)


def reconstructed(implementation, of):
    return run(f"Reconstruction3D/{implementation}", of, set=QUICK.get(implementation))


def dem(stones):
    edge = np.arange(-2.5, 2.5, CELL_SIZE_M)
    x, y = np.meshgrid(edge + CELL_SIZE_M / 2, edge + CELL_SIZE_M / 2)
    return GridMap({"elevation": height(x, y, stones)}, (CELL_SIZE_M, 0.0, -2.5, 0.0, CELL_SIZE_M, -2.5))


def errors_of(result, ground, stones=False):
    """Return the errors (m) of the poses, and those of the model, by the truth of the recording."""
    found = [se3.from_quaternion(pose.orientation, pose.position) for pose in result["pose"].values]
    true = [place_by_truth(ground, pose.child, pose.t_ns) for pose in result["pose"].values]
    views = [CameraView(T_world_camera, K, WIDTH_PX, HEIGHT_PX) for T_world_camera in true]
    model = se3.apply(true[0], result["pointCloud"].values[-1].points)
    return pose_errors(found, true), reconstruction_errors(model, dem(stones), views, cell=0.05)


@pytest.mark.parametrize("implementation", ALL)
def test_every_implementation_takes_and_gives_the_same(implementation):
    graph = Compound.of(f"Reconstruction3D/{implementation}").graph()
    assert {name: port.type for name, port in graph.inputs.items()} == {
        "leftImage": Image,
        "rightImage": Image,
    }
    assert graph.tags == {"leftImage": "left", "rightImage": "right"}
    assert list(graph.outputs) == ["pointCloud", "pose", "success"]


STEREO = {"StereoReconstruction": "DisparityMapping", "PointCloudAssembly": "NeighbourPointAverage"}
CORNERS_3D = {**STEREO, "FeaturesExtraction3D": "HarrisDetector3D"}
CORNERS_2D = {
    **STEREO,
    "FeaturesExtraction2D": "HarrisDetector2D",
    "FeaturesDescription2D": "OrbDescriptor",
    "FeaturesMatching2D": "FlannMatcher",
    "PointCloudReconstruction2DTo3D": "Triangulation",
    "PerspectiveNPointSolving": "IterativePnpSolver",
    "FundamentalMatrixComputation": "FundamentalMatrixRansac",
}
TABLES = {
    "RegistrationFromStereo": {
        **CORNERS_3D,
        "FeaturesDescription3D": "ShotDescriptor3D",
        "FeaturesMatching3D": "Ransac3D",
    },
    "SparseRegistrationFromStereo": {**CORNERS_3D, "Registration3D": "Icp3D"},
    "SparseRegistrationFromStereoCC": {**CORNERS_3D, "Registration3D": "IcpCC"},
    "DenseRegistrationFromStereo": {**STEREO, "Registration3D": "IcpMatcher"},
    "DenseRegistrationFromStereoCC": {**STEREO, "Registration3D": "IcpCC"},
    "ReconstructionFromStereo": CORNERS_2D,
    "EstimationFromStereo": {**CORNERS_2D, "Transform3DEstimation": "LeastSquaresMinimization"},
    "AdjustmentFromStereo": {**CORNERS_2D, "BundleAdjustment": "LeastSquaresAdjustment"},
}
"""What Tables 2 to 5 of the paper name, by the names of its nodes; rectification is common to all."""
NAMED = {interface for nodes in TABLES.values() for interface in nodes}


@pytest.mark.parametrize("implementation", PAPER)
def test_variants_of_the_paper_are_composed_as_in_its_tables(implementation):
    parts = Compound.of(f"Reconstruction3D/{implementation}").graph().parts.values()
    nodes = {type(part.node).interface.__name__: type(part.node).__name__ for part in parts}
    assert {name: node for name, node in nodes.items() if name in NAMED} == TABLES[implementation]


def test_every_implementation_is_the_papers_or_has_a_name_of_its_own():
    found = Compound.of("Reconstruction3D").text.implementations
    assert {name for name, each in found.items() if each.complete} == set(ALL)


def test_the_quality_of_pairs_is_told_without_a_truth(ground):
    result = run("StereoQuality", ground)
    shares = {name: np.array(result[name].values) for name in ("matchability", "auc", "roundness", "inliers")}
    assert [len(each) for each in shares.values()] == [3, 3, 3, 2]
    assert all(((each > 0) & (each <= 1)).all() for each in shares.values())
    assert result["trusted"].values == [True, True]
    assert max(result["matchRatio"].values) < 1


def test_registration_of_corners_refuses_a_step_that_is_too_large_for_it():
    """Point to point, pairs 0.5 m apart look alike: it settles where it began, which few corners confirm."""
    far = recording(2, stones=True, stride=5)
    result = reconstructed("SparseRegistrationFromStereo", far)
    assert result["success"].values == [True, False]
    assert result.stats.nodes["icp"].skipped == {"too little overlap": 1}


@pytest.mark.parametrize("implementation", ALL)
def test_three_pairs_become_one_model_where_the_ground_is(ground, stony, implementation):
    stones = implementation in CORNERS
    ground = stony if stones else ground
    result = reconstructed(implementation, ground)
    assert result["success"].values == [True] * 3
    poses, model = errors_of(result, ground, stones)
    limit = POSE_ERRORS.get(implementation, 0.03)
    assert poses.max() < limit
    assert model.rmse < limit
    assert model.coverage > 0.8
    if implementation in TWICE:
        assert reconstructed(implementation, ground).digest == result.digest


@pytest.fixture(scope="module")
def best(ground):
    return run("Reconstruction3D", ground, jobs=2)


def test_the_one_that_is_meant_without_a_name_is_the_best_and_knows_the_way_to_a_millimetre_or_two(
    ground, best
):
    result = best
    assert result.name == "Reconstruction3D/OdometryFromStereo"
    poses, model = errors_of(result, ground)
    assert poses.max() < 0.003
    assert model.median < 0.01


def test_the_model_is_in_the_frame_of_the_left_camera_at_its_first_pose(best):
    result = best
    first, cloud = result["pose"].values[0], result["pointCloud"].values[0]
    assert (first.frame, first.child, cloud.frame) == ("scene", "left_camera", "scene")
    assert first.position == pytest.approx([0, 0, 0])
    assert first.orientation == pytest.approx([0, 0, 0, 1])
    assert np.median(cloud.points[:, 2]) == pytest.approx(HEIGHT_ABOVE_GROUND_M, abs=0.3)


def test_the_model_comes_with_every_pair_if_one_asks_for_it(ground):
    result = run("Reconstruction3D/OdometryFromStereo", ground, set={"model.after": 1})
    sizes = [len(cloud) for cloud in result["pointCloud"].values]
    assert len(sizes) == 3
    assert sizes == sorted(sizes)


DARK = np.zeros((HEIGHT_PX, WIDTH_PX), np.uint8)


@pytest.mark.parametrize(
    "implementation", ["OdometryFromStereo", "ReconstructionWithAp3p", "DenseRegistrationWithGicp"]
)
def test_a_dark_pair_has_no_pose_and_the_next_goes_on_from_the_last_good_one(implementation):
    night = recording(3, {1: (DARK, DARK)})
    result = reconstructed(implementation, night)
    assert result["success"].values == [True, False, True]
    assert [pose.t_ns for pose in result["pose"].values] == [0, 2 * NS]
    assert errors_of(result, night)[0].max() < 0.03
    reasons = {reason for node in result.stats.nodes.values() for reason in node.skipped}
    assert "too little texture to match" in reasons


def test_a_pair_of_another_place_is_refused_and_leaves_the_model_alone():
    eye = eyes(2)[1]
    elsewhere = tuple(picture(place, 77) for place in (eye, eye + DOWN @ [BASELINE_M, 0, 0]))
    lost = recording(2, {1: elsewhere})
    result = reconstructed("ReconstructionWithAp3p", lost)
    assert result["success"].values == [True, False]
    assert result.stats.nodes["scene"].skipped == {"no pose was found": 1}
    alone = reconstructed("ReconstructionWithAp3p", recording(1))
    assert len(result["pointCloud"].values[0]) == len(alone["pointCloud"].values[0])


def test_a_cloud_whose_cameras_have_no_baseline_says_what_it_wanted(ground):
    blind = dataclasses.replace(ground["left"][0].value, camera=None)
    streams = tuple(
        each.replace(loader=lambda row: blind) if each.name == "left" else each for each in ground.streams
    )
    with pytest.raises(Exception, match="without calibration"):
        run("Reconstruction3D/OdometryFromStereo", dataclasses.replace(ground, streams=streams))
