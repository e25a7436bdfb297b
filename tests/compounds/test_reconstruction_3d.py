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
from transect.evaluation.reconstruction import View, placed_by_truth, pose_errors, reconstruction_errors
from transect.formats._images import file_table
from transect.geometry import se3
from transect.recording import FrameTree, Parsed, Recording, Stream, arrow
from transect.types import CameraModel, GridMap, Image, Pose

SIX = (
    "RegistrationFromStereo",
    "SparseRegistrationFromStereo",
    "DenseRegistrationFromStereo",
    "ReconstructionFromStereo",
    "EstimationFromStereo",
    "AdjustmentFromStereo",
)
ALL = ("OdometryFromStereo", *SIX)
POSE_ERRORS = {"RegistrationFromStereo": 0.12, "EstimationFromStereo": 0.08}
"""Metres, of those that see a smooth ground too coarsely, or weigh near and far points alike; else 0.03."""
QUICK = {
    "RegistrationFromStereo": {"thin.size": 0.1, "match.samples": 3000},
    "DenseRegistrationFromStereo": {"icp.coarse_points": 1000, "icp.fine_points": 4000},
}
"""Parameters for pictures this small."""
WIDTH, HEIGHT, FOCAL, BASELINE, ABOVE = 240, 160, 200.0, 0.15, 2.0
K = np.array([[FOCAL, 0, (WIDTH - 1) / 2], [0, FOCAL, (HEIGHT - 1) / 2], [0, 0, 1]])
DOWN = np.diag([1.0, -1.0, -1.0])
"""Takes vectors of a camera that looks down to the world: x east, y north, z up."""
STEP = np.array([0.08, 0.05, 0.01])
"""Metres from one pair to the next."""
CELL = 0.02


def height(x, y):
    """Metres of the ground: mounds of a few decimetres."""
    return (
        0.15 * np.sin(3.1 * x + 0.4) * np.cos(2.3 * y)
        + 0.1 * np.sin(4.7 * y + 1.9 * x)
        - 0.05 * np.cos(7.0 * x)
    )


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


def picture(eye, seed):
    return seen_from(*eye.tolist(), seed)


@lru_cache
def seen_from(east, north, up, seed):
    """What a camera there (m) sees of the ground, with noise of one grey level."""
    rows, columns = np.indices((HEIGHT, WIDTH))
    u, v = (columns - K[0, 2]) / FOCAL, (rows - K[1, 2]) / FOCAL
    depth = np.full(u.shape, ABOVE)
    for _ in range(30):
        depth = 0.5 * depth + 0.5 * (up - height(east + u * depth, north - v * depth))
    noise = np.random.default_rng((seed, int(1e6 * east) & 0xFFFF)).normal(size=u.shape)
    bright = texture(east + u * depth, north - v * depth, seed) + noise
    return np.clip(np.rint(bright), 0, 255).astype(np.uint8)


def camera(side, shift):
    P = np.hstack([K, [[-FOCAL * shift], [0], [0]]])
    return CameraModel(side, WIDTH, HEIGHT, K, P=P, frame=f"{side}_camera")


def eyes(count):
    return [np.array([0.0, 0.0, ABOVE]) + k * STEP for k in range(count)]


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


def recording(count, instead=None):
    """A recording of `count` pairs; `instead` has the pictures of some of them, by number."""
    places, pairs = eyes(count), list[tuple[np.ndarray, np.ndarray]]()
    for k, eye in enumerate(places):
        right = eye + DOWN @ [BASELINE, 0, 0]
        pairs.append((instead or {}).get(k) or (picture(eye, 5), picture(right, 5)))
    left, right = zip(*pairs, strict=True)
    frames = FrameTree()
    frames.add_static("left_camera", "right_camera", se3.from_matrix(np.eye(3), [BASELINE, 0, 0]))
    streams = (stream("left", 0.0, left), stream("right", BASELINE, right), truth(places))
    return Recording(
        "ground",
        streams,
        frames=frames,
        cameras={"left": camera("left", 0.0), "right": camera("right", BASELINE)},
    )


@pytest.fixture(scope="module")
def ground():
    return recording(3)


def reconstructed(implementation, of):
    return run(f"Reconstruction3D/{implementation}", of, set=QUICK.get(implementation))


def dem():
    edge = np.arange(-2.5, 2.5, CELL)
    x, y = np.meshgrid(edge + CELL / 2, edge + CELL / 2)
    return GridMap({"elevation": height(x, y)}, (CELL, 0.0, -2.5, 0.0, CELL, -2.5))


def errors_of(result, ground):
    """Return the errors (m) of the poses, and those of the model, by the truth of the recording."""
    found = [se3.from_quaternion(pose.orientation, pose.position) for pose in result["pose"].values]
    true = [placed_by_truth(ground, pose.child, pose.t_ns) for pose in result["pose"].values]
    views = [View(T_world_camera, K, WIDTH, HEIGHT) for T_world_camera in true]
    model = se3.apply(true[0], result["pointCloud"].values[-1].points)
    return pose_errors(found, true), reconstruction_errors(model, dem(), views, cell=0.05)


@pytest.mark.parametrize("implementation", ALL)
def test_every_implementation_takes_and_gives_the_same(implementation):
    graph = Compound.of(f"Reconstruction3D/{implementation}").graph()
    assert {name: port.type for name, port in graph.inputs.items()} == {
        "leftImage": Image,
        "rightImage": Image,
    }
    assert graph.tags == {"leftImage": "left", "rightImage": "right"}
    assert list(graph.outputs) == ["pointCloud", "pose", "success"]


@pytest.mark.parametrize("implementation", ALL)
def test_three_pairs_become_one_model_where_the_ground_is(ground, implementation):
    result = reconstructed(implementation, ground)
    assert result["success"].values == [True] * 3
    poses, model = errors_of(result, ground)
    limit = POSE_ERRORS.get(implementation, 0.03)
    assert poses.max() < limit
    assert model.rmse < limit
    assert model.coverage > 0.8
    assert reconstructed(implementation, ground).digest == result.digest


def test_the_one_that_is_meant_without_a_name_is_the_best_and_knows_the_way_to_a_millimetre_or_two(ground):
    result = run("Reconstruction3D", ground, jobs=2)
    assert result.name == "Reconstruction3D/OdometryFromStereo"
    poses, model = errors_of(result, ground)
    assert poses.max() < 0.003
    assert model.median < 0.01


def test_the_model_is_in_the_frame_of_the_left_camera_at_its_first_pose(ground):
    result = run("Reconstruction3D/OdometryFromStereo", ground)
    first, cloud = result["pose"].values[0], result["pointCloud"].values[0]
    assert (first.frame, first.child, cloud.frame) == ("scene", "left_camera", "scene")
    assert first.position == pytest.approx([0, 0, 0])
    assert first.orientation == pytest.approx([0, 0, 0, 1])
    assert np.median(cloud.points[:, 2]) == pytest.approx(ABOVE, abs=0.3)


def test_the_model_comes_with_every_pair_if_one_asks_for_it(ground):
    result = run("Reconstruction3D/OdometryFromStereo", ground, set={"model.after": 1})
    sizes = [len(cloud) for cloud in result["pointCloud"].values]
    assert len(sizes) == 3
    assert sizes == sorted(sizes)


DARK = np.zeros((HEIGHT, WIDTH), np.uint8)


@pytest.mark.parametrize(
    "implementation", ["OdometryFromStereo", "ReconstructionFromStereo", "DenseRegistrationFromStereo"]
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
    elsewhere = tuple(picture(place, 77) for place in (eye, eye + DOWN @ [BASELINE, 0, 0]))
    lost = recording(2, {1: elsewhere})
    result = reconstructed("ReconstructionFromStereo", lost)
    assert result["success"].values == [True, False]
    assert result.stats.nodes["scene"].skipped == {"no pose was found": 1}
    alone = reconstructed("ReconstructionFromStereo", recording(1))
    assert len(result["pointCloud"].values[0]) == len(alone["pointCloud"].values[0])


def test_a_cloud_whose_cameras_have_no_baseline_says_what_it_wanted(ground):
    blind = dataclasses.replace(ground["left"][0].value, camera=None)
    streams = tuple(
        each.replace(loader=lambda row: blind) if each.name == "left" else each for each in ground.streams
    )
    with pytest.raises(Exception, match="without calibration"):
        run("Reconstruction3D/OdometryFromStereo", dataclasses.replace(ground, streams=streams))
