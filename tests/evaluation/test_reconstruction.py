"""A reconstructed model against planes and walls, whose distances and shadows are known by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import FrameError, GeometryError
from transect.evaluation.clouds import (
    CameraView,
    coverage,
    ground_distances,
    place_by_truth,
    pose_errors,
    reconstruction_errors,
    visible_cells,
)
from transect.geometry import rotations, se3
from transect.recording import FrameTree, Parsed, Recording, Stream, arrow
from transect.types import GridMap, Pose

CELL_SIZE_M = 0.05
K = np.array([[100.0, 0, 99.5], [0, 100.0, 99.5], [0, 0, 1]])
DOWN = np.diag([1.0, -1.0, -1.0])
LEVEL = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])
"""Takes vectors of a camera that looks along x, with its rows level, to the world: z up."""


def grid(height, size=10.0):
    """A map of ``height(x, y)`` over a square of that edge around the origin, north up."""
    count = round(size / CELL_SIZE_M)
    middle = (np.arange(count) + 0.5) * CELL_SIZE_M - size / 2
    x, y = np.meshgrid(middle, middle[::-1])
    return GridMap({"elevation": height(x, y)}, (CELL_SIZE_M, 0.0, -size / 2, 0.0, -CELL_SIZE_M, size / 2))


FLAT = grid(lambda x, y: np.zeros_like(x))


def looking(turn, place, width=200, height=200):
    return CameraView(se3.from_matrix(turn, place), K, width, height)


@given(st.floats(-0.8, 0.8), st.floats(-0.8, 0.8), st.floats(-0.3, 0.3))
def test_the_error_of_a_point_is_its_distance_to_the_plane(a, b, off):
    slope = grid(lambda x, y: a * x + b * y, size=4.0)
    normal = np.array([-a, -b, 1]) / np.sqrt(a * a + b * b + 1)
    feet = np.array([[0.3, -0.4, 0.3 * a - 0.4 * b], [-0.5, 0.21, -0.5 * a + 0.21 * b]])
    assert ground_distances(feet + off * normal, slope) == pytest.approx([off, off], abs=1e-6)


def test_rmse_and_median_are_those_of_the_distances():
    points = np.array([[0.0, 0.0, 0.1], [1.0, 0.0, -0.2], [0.0, 1.0, 0.2], [np.nan, 0, 0], [100.0, 0, 0]])
    errors = reconstruction_errors(points, FLAT)
    assert errors.points == 3
    assert errors.rmse == pytest.approx(np.sqrt((0.01 + 0.04 + 0.04) / 3))
    assert errors.median == pytest.approx(0.2)
    assert np.isnan(errors.metric()["coverage"])


def test_half_a_carpet_covers_half_of_what_is_seen():
    view = looking(DOWN, [0, 0, 2])  # sees 2 m to either side
    x, y = (
        each.ravel() for each in np.meshgrid(np.arange(-2, 2, 0.05) + 0.02, np.arange(-2, 2, 0.05) + 0.02)
    )
    whole = np.column_stack([x, y, 0 * x])
    assert coverage(whole, FLAT, [view]) == pytest.approx(1.0)
    assert coverage(whole[x < 0], FLAT, [view]) == pytest.approx(0.5, abs=0.02)
    assert reconstruction_errors(np.zeros((0, 3)), FLAT, [view]).coverage == 0.0


def test_points_deeper_than_the_reach_or_outside_the_picture_are_not_judged():
    view = looking(LEVEL, [0, 0, 1])
    points = np.array([[3.0, 0, 0.01], [4.9, 0, 0.5], [-3.0, 0, 0.5], [1.0, 4.0, 0.5]])
    errors = reconstruction_errors(points, FLAT, [view], max_depth=4.0)
    assert errors.points == 1
    assert errors.rmse == pytest.approx(0.01)


def test_ground_behind_a_wall_is_not_visible():
    wall = grid(lambda x, y: np.where((x > 2.0) & (x < 2.2), 2.0, 0.0))
    open_cells, hidden = (visible_cells(each, [looking(LEVEL, [0, 0, 1])], 4.0) for each in (FLAT, wall))
    assert open_cells[:, 0].max() * 0.1 > 3.5
    assert hidden[:, 0].max() * 0.1 < 2.3


def test_cameras_that_see_no_ground_are_told():
    with pytest.raises(GeometryError, match="see no ground"):
        coverage(np.zeros((1, 3)), FLAT, [looking(DOWN, [50.0, 0, 2])])


def recording(role="truth"):
    turned = rotations.quaternion_from_matrix(np.eye(3))
    places = np.array([[0.0, 0, 0], [2.0, 0, 0]])
    columns = dict(
        zip(("x", "y", "z", "qx", "qy", "qz", "qw"), np.hstack([places, [turned, turned]]).T, strict=True)
    )
    table = arrow.table(np.array([0, 100]), columns, units=Pose.units())
    track = Stream("track", Pose, Parsed(table), role=role, frame="world", child="body")
    frames = FrameTree()
    frames.add_static("body", "camera", se3.from_matrix(LEVEL, [0, 0.5, 1.0]))
    return Recording("drive", (track,), frames=frames)


def test_a_camera_is_where_the_truth_has_its_robot():
    T_world_camera = place_by_truth(recording(), "camera", 25)
    assert T_world_camera == pytest.approx(se3.from_matrix(LEVEL, [0.5, 0.5, 1.0]))


def test_a_camera_that_nobody_knows_is_an_error():
    with pytest.raises(FrameError, match="elsewhere"):
        place_by_truth(recording(), "elsewhere", 25)
    with pytest.raises(GeometryError, match="no truth"):
        place_by_truth(recording(role="measurement"), "camera", 25)


def test_poses_are_compared_from_the_first_one_on():
    true = np.array([se3.from_matrix(LEVEL, [x, 0, 0]) for x in (1.0, 2.0, 3.0)])
    found = se3.invert(true[0]) @ true
    found[2, :3, 3] += [0.03, 0, 0.04]
    assert pose_errors(found, true) == pytest.approx([0, 0, 0.05])
