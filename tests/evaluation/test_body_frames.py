"""The estimate at the point that the truth tracks; columns that were exchanged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.test_trajectories import circle, moved

from transect.evaluation import AssociationError, absolute_error, associate
from transect.evaluation.body_frames import ASSUMED, at_frame_of, refuse_swapped
from transect.evaluation.report import EvaluationSettings, evaluate
from transect.evaluation.result import Input
from transect.evaluation.runs.comparison import compare_run
from transect.geometry import rotations, se3
from transect.recording import FrameTree
from transect.recording.place_maps import write_map
from transect.types import Trajectory
from transect.types.places import Anchor, PlaceMap


def tree(arm: tuple[float, float, float] = (0.4, -0.2, 1.5), turn: float = 0.3) -> FrameTree:
    made = FrameTree()
    rotation = rotations.matrix_from_euler("z", [turn])
    made.add_static("base", "antenna", se3.from_matrix(rotation, arm))
    return made


def tumbling() -> Trajectory:
    """A path with height, and attitudes about all axes."""
    path = circle()
    angle = np.linspace(0, 6, len(path))
    turned = rotations.quaternion_from_euler(
        "xyz", np.column_stack([np.sin(angle), angle, np.cos(2 * angle)])
    )
    heights = path.positions + np.outer(np.sin(angle), [0.0, 0.0, 8.0])
    return replace(path, positions=heights, orientations=turned, child="base")


def at_antenna(path: Trajectory, frames: FrameTree) -> Trajectory:
    assert path.orientations is not None
    poses = se3.from_quaternion(path.orientations, path.positions) @ frames.lookup("base", "antenna")
    turned, positions = se3.to_quaternion(poses)
    return replace(path, positions=positions, orientations=turned, child="antenna")


@given(st.tuples(*[st.floats(-3, 3)] * 3), st.floats(-3, 3))
def test_a_lever_arm_and_a_rotation_are_taken_out(arm: tuple[float, float, float], turn: float) -> None:
    frames = tree(arm, turn)
    framed = at_frame_of(at_antenna(tumbling(), frames), tumbling(), frames)
    error = absolute_error(associate(at_antenna(tumbling(), frames), framed.estimate), "none")
    assert error.statistics.max < 1e-9
    assert error.rotation is not None
    assert error.rotation.max() < 1e-6
    assert framed.estimate.child == "antenna"


def test_satellite_fixes_need_only_the_lever_arm() -> None:
    fixes = replace(at_antenna(tumbling(), tree()), orientations=None)
    framed = at_frame_of(fixes, tumbling(), tree())
    assert "lever arm 1.57 m" in framed.note  # sqrt(0.4^2 + 0.2^2 + 1.5^2)
    assert absolute_error(associate(fixes, framed.estimate), "none").statistics.max < 1e-9
    assert absolute_error(associate(fixes, tumbling()), "none").statistics.rmse > 1


def test_without_a_path_the_frames_are_assumed_equal_and_it_is_said() -> None:
    for trees in ((), (FrameTree(),), (tree(),)):
        framed = at_frame_of(replace(circle(), child="camera"), replace(circle(), child="lidar"), *trees)
        assert framed.note.startswith(ASSUMED)
        assert framed.T_estimate_reference is None
    without = replace(tumbling(), orientations=None)
    assert at_frame_of(at_antenna(tumbling(), tree()), without, tree()).note.startswith(ASSUMED)


LOOK = rotations.quaternion_from_matrix([[0, 0, 1], [-1, 0, 0], [0, -1, 0]])
"""Takes points of a camera (x right, z forward) to a body (x forward, z up): 120 degrees about one axis."""


def as_camera(path: Trajectory) -> Trajectory:
    """Poses of a camera in the axes that it has at its first pose, as KITTI's, of poses of a body."""
    assert path.orientations is not None
    back = rotations.conjugate(LOOK)
    turned = rotations.multiply(back, rotations.multiply(path.orientations, LOOK))
    places = rotations.rotate(back, path.positions)
    return replace(path, positions=places, orientations=turned, frame="cam0_first", child="image_00")


def sides(path: Trajectory) -> tuple[Input, Input]:
    reference, estimate = as_camera(path), replace(path, frame="map", child="imu")
    return Input("truth", "", "", reference), Input("fused", "", "", estimate)


def test_axes_of_bodies_that_no_frames_connect_are_turned_as_the_attitudes_tell() -> None:
    found = evaluate(*sides(tumbling()), EvaluationSettings(relations=("ate", "rpe")))
    assert found.metrics["ate"]["rotation"]["rmse"] < 1e-6
    assert found.metrics["rpe"]["translation"]["rmse"] < 1e-6
    assert "imu is rotated by 120 deg onto the axes of image_00" in found.notes[0]


def test_a_straight_drive_is_not_turned_about_the_wrong_vertical() -> None:
    path = circle()
    i = np.arange(len(path))
    east = np.column_stack([1.0 * i, np.sin(i / 30), np.zeros(len(path))])
    level = np.tile([0.0, 0.0, 0.0, 1.0], (len(path), 1))
    found = compare_run(*sides(replace(path, positions=east, orientations=level)), "not", "")
    assert found.alignment["mode"] == "se3"
    assert found.metrics["ate"]["translation"]["rmse"] < 1e-6
    assert found.metrics["ate"].get("rotation") is None
    assert found.notes[0].startswith("attitudes are not compared: no path from imu to image_00 is known")
    assert found.notes[0].endswith("motions are compared in the aligned frame")
    assert not any("has positions only" in note for note in found.notes), "both have attitudes"


@pytest.mark.parametrize("anchored", [False, True])
def test_a_straight_path_in_a_map_without_fixes_is_not_taken_for_level(
    tmp_path: Path, anchored: bool
) -> None:
    """The map has the axes of a sensor that looks down by 10 deg, on a straight drive of 30 m."""
    count = 31
    positions = np.column_stack([np.arange(count), np.zeros(count), np.zeros(count)]).astype(np.float64)
    level = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
    t_ns = np.arange(count, dtype=np.int64) * 10**8
    truth = Trajectory(t_ns, positions, level, frame="world", child="base")
    T = se3.from_matrix(
        rotations.matrix_from_euler("y", [np.radians(10)]), np.zeros(3)
    ) @ se3.from_quaternion(level, positions)
    turned, places = se3.to_quaternion(T)
    estimate = Trajectory(t_ns, places, turned, frame="map", child="base")
    anchor = Anchor("EPSG:32631", np.eye(4)) if anchored else None
    keyframes = np.eye(4)[None], np.eye(6)[None], np.zeros(1, np.int64)
    places_map = PlaceMap("VisualSlamStereo", t_ns[:1], *keyframes, observations=({},), anchor=anchor)
    write_map(places_map, tmp_path / "map")
    slam = Input("slam", f"{tmp_path}:pose", "", estimate)
    found = compare_run(Input("truth", "", "", truth), slam, "not", "")
    assert found.alignment["mode"] == ("yaw" if anchored else "origin")
    assert (found.metrics["ate"]["translation"]["rmse"] > 1.0) == anchored


def test_the_covariance_at_the_end_of_a_lever_arm_grows_by_what_the_attitude_adds() -> None:
    frames = FrameTree()
    frames.add_static("base", "antenna", se3.from_matrix(np.eye(3), (2.0, 0.0, 0.0)))
    upright = np.tile([0.0, 0.0, 0.0, 1.0], (5, 1))
    spread = np.tile(np.diag([1.0, 1.0, 1.0, 0.0, 0.0, 0.09]), (5, 1, 1))
    path = Trajectory(np.arange(5), np.zeros((5, 3)), upright, spread, child="base")
    framed = at_frame_of(replace(path, child="antenna"), path, frames)
    assert framed.estimate.covariances is not None
    # A yaw of 0.3 rad at the end of 2 m is 0.6 m to the side.
    np.testing.assert_allclose(np.diag(framed.estimate.covariances[0])[:3], [1.0, 1.36, 1.0])


def test_quaternions_with_w_first_are_found_on_either_side() -> None:
    path = tumbling()
    assert path.orientations is not None
    swapped = replace(path, orientations=path.orientations[:, [3, 0, 1, 2]])
    with pytest.raises(AssociationError, match="the quaternions of the estimate have w first"):
        refuse_swapped(associate(path, swapped))
    with pytest.raises(AssociationError, match="the quaternions of the reference have w first"):
        refuse_swapped(associate(swapped, path))


def test_on_flat_ground_either_side_may_have_w_first() -> None:
    path = circle()
    assert path.orientations is not None
    swapped = replace(path, orientations=path.orientations[:, [3, 0, 1, 2]])
    for pair in ((path, swapped), (swapped, path)):
        with pytest.raises(AssociationError, match="have w first"):
            refuse_swapped(associate(*pair))


def test_mirrored_positions_are_found() -> None:
    path = tumbling()
    swapped = replace(path, positions=path.positions[:, [1, 0, 2]])
    with pytest.raises(AssociationError, match="are mirrored"):
        refuse_swapped(associate(path, swapped))


def test_another_frame_a_scale_and_noise_are_no_swap() -> None:
    rng = np.random.default_rng(4)
    for path in (tumbling(), circle()):
        other = moved(path, 3.0)
        noisy = replace(other, positions=other.positions + rng.normal(scale=2.0, size=(len(path), 3)))
        refuse_swapped(associate(path, noisy))
        assert len(associate(path, noisy)) == len(path)
