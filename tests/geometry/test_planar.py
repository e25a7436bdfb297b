"""Motion in the plane against circles, small steps and SE(3)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import GeometryError
from transect.geometry import planar, se3

small = st.floats(-3.0, 3.0)


def test_a_quarter_circle_in_one_step_ends_where_the_circle_does():
    # Radius 2 m to the left: 90 degrees end at (2, 2), heading along y.
    poses = planar.integrate([[np.pi, 0.0, np.pi / 2]])
    np.testing.assert_allclose(poses, [[0, 0, 0], [2, 2, np.pi / 2]], atol=1e-15)


def test_a_slide_while_turning_bends_as_its_circle_does():
    # Sliding along y while turning left by 90 degrees: a circle of 1 m about x = -1 of the body.
    poses = planar.integrate([[0.0, np.pi / 2, np.pi / 2]])
    np.testing.assert_allclose(poses[-1], [-1, 1, np.pi / 2], atol=1e-15)


def test_two_turns_are_counted():
    assert planar.integrate(np.full((8, 3), [1.0, 0.0, np.pi / 2]))[-1, 2] == pytest.approx(4 * np.pi)


@given(small, small, small, small, small, small)
def test_motions_are_put_together_as_se3_does(x: float, y: float, yaw: float, dx: float, dy: float, a: float):
    def transform(pose: np.ndarray) -> np.ndarray:
        turned = np.eye(4)
        turned[:2, :2] = planar.rotations_from_headings(pose[2])
        turned[:2, 3] = pose[:2]
        return turned

    start, end = planar.integrate([[dx, dy, a]], (x, y, yaw))
    expected = transform(start) @ se3.exp([dx, dy, 0.0, 0.0, 0.0, a])
    np.testing.assert_allclose(transform(end), expected, atol=1e-12)


def test_rates_are_averaged_over_their_step():
    motions = planar.motions_from_rates(np.array([0, 500_000_000]), [[1.0, 0.0, 0.2], [3.0, 0.0, 0.4]])
    np.testing.assert_allclose(motions, [[1.0, 0.0, 0.15]])


def test_times_that_step_back_are_refused():
    with pytest.raises(GeometryError, match="time decreases"):
        planar.motions_from_rates(np.array([1, 0]), np.zeros((2, 3)))


def test_after_a_motion_that_is_not_known_the_pose_is_not_either():
    poses = planar.integrate([[1.0, 0, 0], [np.nan, 0, 0], [1.0, 0, 0]])
    assert np.isfinite(poses[:2]).all()
    assert np.isnan(poses[2:, 0]).all()


def test_no_motion_leaves_the_start():
    np.testing.assert_array_equal(planar.integrate(np.zeros((0, 3)), (1.0, 2.0, 3.0)), [[1.0, 2.0, 3.0]])


def test_a_hull_has_the_corners_only_and_runs_against_the_clock():
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5], [0.5, 0], [0, 0]], dtype=float)
    np.testing.assert_allclose(planar.hull_of(points), [[0, 0], [1, 0], [1, 1], [0, 1]])
