import numpy as np
import pytest
from hypothesis import given
from tests.geometry.strategies import quaternions, vectors

from transect.errors import GeometryError
from transect.geometry import rotations, se3


def poses(q, t):
    n = min(len(q), len(t))
    return se3.from_quaternion(q[:n], t[:n])


def identities(n):
    return np.tile(np.eye(4), (n, 1, 1))


@given(quaternions(), vectors(1e4))
def test_a_transform_times_its_inverse_is_the_identity(q, t):
    transforms = poses(q, t)
    np.testing.assert_allclose(
        se3.compose(transforms, se3.invert(transforms)), identities(len(transforms)), atol=1e-10
    )


@given(quaternions(), vectors(1e4))
def test_quaternion_and_translation_survive_a_round_trip(q, t):
    transforms = poses(q, t)
    back_q, back_t = se3.to_quaternion(transforms)
    np.testing.assert_array_equal(back_t, t[: len(transforms)])
    assert np.all(rotations.angle_between(back_q, q[: len(transforms)]) < 1e-7)


def test_the_lidar_of_ameds_stands_above_and_behind_the_origin():
    """AMEDS Table 2, Lidar -> Origin: (-549, 0, -1389) mm, (180, 0, 180) deg; eq. 1 takes A's points to B."""
    r = rotations.matrix_from_euler("XYZ", np.radians([180.0, 0, 180.0]))
    T_origin_lidar = se3.from_matrix(r, [-0.549, 0, -1.389])
    # Origin is x forward, y right, z down: a metre in front of the lidar's -x is a metre ahead.
    np.testing.assert_allclose(
        se3.apply(T_origin_lidar, [[0, 0, 0], [-1, 0, 0]]),
        [[-0.549, 0, -1.389], [0.451, 0, -1.389]],
        atol=1e-15,
    )


@given(quaternions(), vectors(1e3), vectors(1e3))
def test_applying_a_product_is_applying_one_after_the_other(q, t, points):
    T_a_b, T_b_c = se3.from_quaternion([0.1, 0.2, 0.3, 0.9], [1, 2, 3]), poses(q, t)
    for each in T_b_c:
        np.testing.assert_allclose(
            se3.apply(se3.compose(T_a_b, each), points), se3.apply(T_a_b, se3.apply(each, points)), atol=1e-11
        )


def test_one_transform_a_point_or_one_a_cloud():
    rng = np.random.default_rng(1)
    transforms = se3.exp(rng.normal(size=(5, 6)))
    points, clouds = rng.normal(size=(5, 3)), rng.normal(size=(5, 7, 3))
    one_each = np.array([se3.apply(T, p) for T, p in zip(transforms, points, strict=True)])
    np.testing.assert_allclose(se3.apply(transforms, points), one_each, atol=1e-14)
    cloud_each = np.array([se3.apply(T, c) for T, c in zip(transforms, clouds, strict=True)])
    np.testing.assert_allclose(se3.apply(transforms[:, None], clouds), cloud_each, atol=1e-14)


def test_counts_that_do_not_go_together_are_refused():
    with pytest.raises(GeometryError, match=r"\(2,\) and \(3,\) cannot be broadcast"):
        se3.apply(identities(2), np.zeros((3, 3)))
    with pytest.raises(GeometryError, match=r"expected shape \(\.\.\., 4, 4\), got \(3, 3\)"):
        se3.invert(np.eye(3))
    with pytest.raises(GeometryError, match="at least one transform"):
        se3.compose()


def test_empty_arrays_give_empty_arrays():
    none = np.zeros((0, 4, 4))
    assert se3.invert(none).shape == (0, 4, 4)
    assert se3.log(none).shape == (0, 6)
    assert se3.exp(np.zeros((0, 6))).shape == (0, 4, 4)
    assert se3.apply(np.eye(4), np.zeros((0, 3))).shape == (0, 3)
    assert se3.adjoint(none).shape == (0, 6, 6)


def test_a_nan_point_stays_alone():
    moved = se3.apply(se3.from_quaternion([0, 0, 0, 1], [1, 2, 3]), [[np.nan, 0, 0], [0, 0, 0]])
    assert np.isnan(moved[0, 0])
    np.testing.assert_array_equal(moved[1], [1, 2, 3])


@given(vectors(1.8, columns=6))
def test_twists_survive_a_round_trip_through_transforms(xi):
    np.testing.assert_allclose(se3.log(se3.exp(xi)), xi, atol=1e-7)


@given(quaternions(), vectors(100))
def test_transforms_survive_a_round_trip_through_twists_also_half_turns(q, t):
    transforms = poses(q, t)
    np.testing.assert_allclose(se3.exp(se3.log(transforms)), transforms, atol=1e-6)


def test_a_quarter_circle_of_radius_one():
    """Turning 90 degrees to the left over an arc of pi/2 metres ends at (1, 1)."""
    T = se3.exp([np.pi / 2, 0, 0, 0, 0, np.pi / 2])
    np.testing.assert_allclose(T[:3, 3], [1, 1, 0], atol=1e-15)


def test_the_adjoint_moves_a_twist_to_the_other_frame():
    rng = np.random.default_rng(2)
    T, xi = se3.exp(rng.normal(size=(20, 6))), 0.5 * rng.normal(size=(20, 6))
    moved = (se3.adjoint(T) @ xi[..., None])[..., 0]
    np.testing.assert_allclose(se3.exp(moved), se3.compose(T, se3.exp(xi), se3.invert(T)), atol=1e-12)


def test_an_uncertain_yaw_becomes_an_uncertain_place_at_the_end_of_a_lever():
    """A metre ahead of the body, 0.1 rad of yaw is 0.1 m to the side."""
    covariance = np.diag([0, 0, 0, 0, 0, 0.01])
    T_antenna_body = se3.from_quaternion([0, 0, 0, 1], [-1, 0, 0])
    moved = se3.transform_covariance(T_antenna_body, covariance)
    assert moved[1, 1] == pytest.approx(0.01)
    assert moved[5, 5] == pytest.approx(0.01)


@given(quaternions(), vectors(10))
def test_a_covariance_stays_symmetric_positive_and_survives_a_round_trip(q, t):
    transforms = poses(q, t)
    root = np.arange(36).reshape(6, 6) / 36 + np.eye(6)
    covariance = root @ root.T
    moved = se3.transform_covariance(transforms, covariance)
    np.testing.assert_allclose(moved, np.swapaxes(moved, -1, -2), atol=1e-9)
    back = se3.transform_covariance(se3.invert(transforms), moved)
    np.testing.assert_allclose(back, np.broadcast_to(covariance, back.shape), atol=1e-8)


def test_relative_motions_lead_from_each_pose_to_the_next():
    track = se3.exp(np.random.default_rng(3).normal(size=(10, 6)))
    for step in (1, 3):
        motions = se3.relative_motions(track, step)
        assert motions.shape == (10 - step, 4, 4)
        np.testing.assert_allclose(track[:-step] @ motions, track[step:], atol=1e-13)


def test_relative_motions_need_enough_poses_and_a_step_ahead():
    assert se3.relative_motions(identities(2), 5).shape == (0, 4, 4)
    with pytest.raises(GeometryError, match="at least 1, got 0"):
        se3.relative_motions(identities(2), 0)
