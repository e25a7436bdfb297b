import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp
from tests.geometry.strategies import quaternions, vectors

from transect.errors import GeometryError
from transect.geometry import rotations as rot

TAIT_BRYAN = ["".join(axes) for axes in itertools.permutations("xyz")]
PROPER = [a + b + a for a, b in itertools.permutations("xyz", 2)]
CONVENTIONS = [name for low in TAIT_BRYAN + PROPER for name in (low, low.upper())]


def axis_matrices(x, y, z):
    """Rx(x), Ry(y), Rz(z) as printed below eq. 3 of the AMEDS paper."""
    (cx, cy, cz), (sx, sy, sz) = np.cos([x, y, z]), np.sin([x, y, z])
    return (
        np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]]),
        np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]]),
        np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]]),
    )


def same_rotation(p, q, within=1e-9):
    return bool(np.all(rot.angle_between(p, q) < within))


# Quaternions


def test_a_quarter_turn_about_z_takes_x_to_y():
    q = [0, 0, np.sqrt(0.5), np.sqrt(0.5)]
    np.testing.assert_allclose(rot.rotate(q, [1, 0, 0]), [0, 1, 0], atol=1e-15)


def test_the_right_factor_of_a_product_turns_first():
    about_z, about_x = (
        rot.quaternion_from_euler("z", [np.pi / 2]),
        rot.quaternion_from_euler("x", [np.pi / 2]),
    )
    np.testing.assert_allclose(rot.rotate(rot.multiply(about_z, about_x), [0, 1, 0]), [0, 0, 1], atol=1e-15)


@given(quaternions(), vectors(1e3))
def test_rotating_agrees_with_scipy(q, v):
    q, v = q[: min(len(q), len(v))], v[: min(len(q), len(v))]
    if len(q):
        np.testing.assert_allclose(rot.rotate(q, v), Rotation.from_quat(q).apply(v), atol=1e-11)
    else:
        assert rot.rotate(q, v).shape == (0, 3)


@given(quaternions())
def test_a_rotation_times_its_conjugate_is_the_identity(q):
    identity = rot.multiply(q, rot.conjugate(q))
    np.testing.assert_allclose(identity, np.tile([0, 0, 0, 1.0], (len(q), 1)), atol=1e-15)


def test_normalising_survives_the_tiny_and_the_huge():
    np.testing.assert_allclose(rot.normalise([[1e-300, 0, 0, 0], [1e300] * 4]), [[1, 0, 0, 0], [0.5] * 4])


def test_a_zero_quaternion_is_not_a_rotation_and_becomes_nan_alone():
    q = rot.normalise([[0, 0, 0, 0], [0, 0, 0, 2]])
    assert np.isnan(q[0]).all()
    np.testing.assert_array_equal(q[1], [0, 0, 0, 1])


def test_nan_rows_stay_nan_and_leave_the_others_alone():
    q = np.array([[np.nan] * 4, [0, 0, 0, 1]])
    for result in (rot.matrix_from_quaternion(q), rot.euler_from_quaternion("rpy", q), rot.slerp(q, q, 0.5)):
        assert np.isnan(result[0]).all()
        assert np.isfinite(result[1]).all()


def test_antipodal_quaternions_are_the_same_rotation():
    q = rot.normalise([0.1, -0.2, 0.3, 0.9])
    assert rot.angle_between(q, -q) < 1e-15
    np.testing.assert_allclose(rot.matrix_from_quaternion(q), rot.matrix_from_quaternion(-q))


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 1.0, np.pi - 1e-9, np.pi])
def test_the_angle_between_attitudes_keeps_its_digits(angle):
    p = rot.normalise([0.3, -0.4, 0.5, 0.7])
    q = rot.multiply(p, rot.quaternion_from_axis_angle([1, 2, -2], angle))
    assert rot.angle_between(p, q) == pytest.approx(angle, abs=1e-15, rel=1e-6)


def test_empty_arrays_give_empty_arrays():
    none = np.zeros((0, 4))
    assert rot.normalise(none).shape == (0, 4)
    assert rot.matrix_from_quaternion(none).shape == (0, 3, 3)
    assert rot.quaternion_from_matrix(np.zeros((0, 3, 3))).shape == (0, 4)
    assert rot.euler_from_quaternion("xyz", none).shape == (0, 3)
    assert rot.rotation_vector_from_quaternion(none).shape == (0, 3)
    assert rot.slerp(none, none, np.zeros(0)).shape == (0, 4)


# Slerp


@given(quaternions(), st.floats(0, 1))
def test_slerp_agrees_with_scipy(q, fraction):
    for p, r in itertools.pairwise(q):
        if rot.angle_between(p, r) < np.pi - 1e-3:  # opposite attitudes have two shortest arcs
            expected = Slerp([0, 1], Rotation.from_quat([p, r]))(fraction).as_quat()
            assert same_rotation(rot.slerp(p, r, fraction), expected, 1e-7)


@given(quaternions(), quaternions())
def test_slerp_begins_and_ends_where_it_should(p, q):
    p, q = p[: min(len(p), len(q))], q[: min(len(p), len(q))]
    assert same_rotation(rot.slerp(p, q, 0.0), p)
    assert same_rotation(rot.slerp(p, q, 1.0), q)


def test_slerp_takes_the_shorter_arc_between_antipodal_signs():
    p, q = rot.quaternion_from_euler("z", [[0.1], [0.3]])
    assert same_rotation(rot.slerp(p, -q, 0.5), rot.quaternion_from_euler("z", [0.2]))


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-12, 1e-8, 1e-4])
def test_slerp_between_nearly_equal_attitudes_is_the_middle(angle):
    p, q = rot.quaternion_from_rotation_vector([[0, 0, 0], [angle, 0, 0]])
    middle = rot.rotation_vector_from_quaternion(rot.slerp(p, q, 0.5))
    np.testing.assert_allclose(middle, [angle / 2, 0, 0], rtol=1e-7, atol=1e-300)


def test_slerp_of_opposite_attitudes_is_finite_and_half_way():
    p, q = [0.0, 0, 0, 1], [1.0, 0, 0, 0]
    middle = rot.slerp(p, q, 0.5)
    assert rot.angle_between(p, middle) == pytest.approx(np.pi / 2)
    assert rot.angle_between(q, middle) == pytest.approx(np.pi / 2)


# Matrices


@given(quaternions())
def test_matrices_agree_with_scipy(q):
    expected = Rotation.from_quat(q).as_matrix() if len(q) else np.zeros((0, 3, 3))
    np.testing.assert_allclose(rot.matrix_from_quaternion(q), expected, atol=1e-14)


@given(quaternions())
def test_a_quaternion_survives_a_round_trip_through_its_matrix_with_w_not_negative(q):
    back = rot.quaternion_from_matrix(rot.matrix_from_quaternion(q))
    assert same_rotation(back, q, 1e-8)
    assert np.all(back[:, 3] >= 0)


@pytest.mark.parametrize("axis", [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, -1, 1]])
def test_half_turns_survive_a_round_trip_through_their_matrix(axis):
    unit = np.array(axis) / np.linalg.norm(axis)
    q = rot.quaternion_from_matrix(2 * np.outer(unit, unit) - np.eye(3))
    np.testing.assert_allclose(np.abs(q @ [*unit, 0]), 1, atol=1e-15)


def test_a_reflection_is_refused():
    with pytest.raises(GeometryError, match="negative determinant"):
        rot.quaternion_from_matrix(np.diag([1, 1, -1]))


def test_a_rounded_matrix_is_accepted():
    printed = np.round(rot.matrix_from_euler("rpy", [0.1, 0.2, 0.3]), 4)
    np.testing.assert_allclose(rot.euler_from_matrix("rpy", printed), [0.1, 0.2, 0.3], atol=1e-4)


@given(vectors(10), vectors(10))
def test_skew_does_the_cross_product(a, b):
    a, b = a[: min(len(a), len(b))], b[: min(len(a), len(b))]
    np.testing.assert_allclose((rot.skew(a) @ b[..., None])[..., 0], np.cross(a, b), atol=1e-12)


# Euler angles


def test_ameds_table_2_angles_are_rx_ry_rz_which_scipy_calls_capital_xyz():
    """AMEDS eq. 3: R = Rx(psi) Ry(theta) Rz(phi), see errata; the angles are Table 2's AuxArm (base) row."""
    psi, theta, phi = np.radians([-60.0, 50.0, 180.0])
    rx, ry, rz = axis_matrices(psi, theta, phi)
    ours = rot.matrix_from_euler("XYZ", [psi, theta, phi])
    np.testing.assert_allclose(ours, rx @ ry @ rz, atol=1e-15)
    np.testing.assert_allclose(ours, Rotation.from_euler("XYZ", [psi, theta, phi]).as_matrix(), atol=1e-15)


def test_ameds_platform_is_half_a_turn_about_x_from_the_origin_frame():
    """AMEDS Table 2, Platform -> Origin: psi = 180 degrees; y left and z up become y right and z down."""
    r = rot.matrix_from_euler("XYZ", np.radians([180.0, 0, 0]))
    np.testing.assert_allclose(r, np.diag([1, -1, -1]), atol=1e-15)


def test_rpy_is_yaw_times_pitch_times_roll():
    roll, pitch, yaw = 0.1, -0.4, 2.0
    rx, ry, rz = axis_matrices(roll, pitch, yaw)
    np.testing.assert_allclose(rot.matrix_from_euler("rpy", [roll, pitch, yaw]), rz @ ry @ rx, atol=1e-15)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_euler_angles_agree_with_scipy_both_ways(convention):
    rng = np.random.default_rng(7)
    angles = rng.uniform(-np.pi, np.pi, (200, 3))
    q = rot.quaternion_from_euler(convention, angles)
    assert same_rotation(q, Rotation.from_euler(convention, angles).as_quat(), 1e-7)
    back = rot.euler_from_quaternion(convention, q)
    np.testing.assert_allclose(back, Rotation.from_quat(q).as_euler(convention), atol=1e-9)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("quarter", [-2, -1, 0, 1, 2])
def test_at_gimbal_lock_the_last_angle_is_zero_and_the_rotation_is_kept(convention, quarter):
    q = rot.quaternion_from_euler(convention, [0.3, quarter * np.pi / 2, 0.5])
    angles = rot.euler_from_quaternion(convention, q)
    assert same_rotation(rot.quaternion_from_euler(convention, angles), q, 1e-7)
    proper = convention[0].lower() == convention[2].lower()
    if proper == (quarter % 2 == 0):
        assert angles[2] == 0


@given(vectors(np.pi))
def test_roll_pitch_yaw_survive_a_round_trip_as_the_same_rotation(angles):
    q = rot.quaternion_from_euler("rpy", angles)
    back = rot.euler_from_quaternion("rpy", q)
    assert same_rotation(rot.quaternion_from_euler("rpy", back), q, 1e-6)
    assert np.all(np.abs(back) <= np.array([np.pi, np.pi / 2, np.pi]) + 1e-12)


@pytest.mark.parametrize("wrong", ["", "xyx1", "xYz", "xxy", "abc", "xyzx", "zz"])
def test_an_unknown_euler_convention_is_refused(wrong):
    with pytest.raises(GeometryError, match="unknown Euler convention"):
        rot.quaternion_from_euler(wrong, np.zeros(3))


def test_angles_must_match_the_axes_and_three_are_needed_to_go_back():
    with pytest.raises(GeometryError, match=r"expected shape \(\.\.\., 2\), got \(3,\)"):
        rot.quaternion_from_euler("zx", np.zeros(3))
    with pytest.raises(GeometryError, match="three axes"):
        rot.euler_from_quaternion("zx", [0, 0, 0, 1])


# Rotation vectors


@given(vectors(1.8))
def test_rotation_vectors_shorter_than_half_a_turn_survive_a_round_trip(v):
    by_quaternion = rot.rotation_vector_from_quaternion(rot.quaternion_from_rotation_vector(v))
    np.testing.assert_allclose(by_quaternion, v, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(
        rot.rotation_vector_from_matrix(rot.matrix_from_rotation_vector(v)), v, atol=1e-7, rtol=1e-7
    )


@given(quaternions())
def test_rotation_vectors_agree_with_scipy_up_to_the_sign_of_half_turns(q):
    ours = rot.rotation_vector_from_quaternion(q)
    assert np.all(np.linalg.norm(ours, axis=1) <= np.pi + 1e-15)
    if len(q):
        assert same_rotation(Rotation.from_rotvec(ours).as_quat(), q, 1e-7)


@given(quaternions())
def test_a_rotation_vector_is_axis_times_angle(q):
    vector = rot.rotation_vector_from_quaternion(q)
    angle = np.linalg.norm(vector, axis=1)
    axis = np.where(angle[:, None] > 0, vector, [1.0, 0.0, 0.0])
    assert same_rotation(rot.quaternion_from_axis_angle(axis, angle), q, 1e-7)


def test_the_length_of_an_axis_does_not_matter_but_it_must_have_one():
    assert same_rotation(
        rot.quaternion_from_axis_angle([0, 0, 9], 0.5), rot.quaternion_from_euler("z", [0.5])
    )
    assert np.isnan(rot.quaternion_from_axis_angle([0, 0, 0], 0.5)).all()


@pytest.mark.parametrize("scale", [1e-9, 1e-5, 0.99e-4, 1.01e-4, 1e-2, 1.0, 3.1])
def test_the_left_jacobian_is_the_derivative_of_exp(scale):
    v = scale * np.array([0.36, -0.48, 0.8])
    step = 1e-6
    numeric = np.empty((3, 3))
    for k, d in enumerate(step * np.eye(3)):
        ahead, behind = rot.quaternion_from_rotation_vector(v + d), rot.quaternion_from_rotation_vector(v - d)
        difference = rot.multiply(ahead, rot.conjugate(behind))
        numeric[:, k] = rot.rotation_vector_from_quaternion(difference) / (2 * step)
    np.testing.assert_allclose(rot.left_jacobian(v), numeric, atol=1e-8)


@pytest.mark.parametrize("scale", [0.0, 1e-9, 0.99e-4, 1.01e-4, 1e-3])
def test_the_left_jacobian_of_a_small_rotation_is_its_power_series(scale):
    """J = sum of skew^n / (n + 1)!, here up to n = 4."""
    v = scale * np.array([0.36, -0.48, 0.8])
    s = rot.skew(v)
    series = np.eye(3) + s / 2 + s @ s / 6 + s @ s @ s / 24 + s @ s @ s @ s / 120
    np.testing.assert_allclose(rot.left_jacobian(v), series, rtol=0, atol=1e-15)
    np.testing.assert_allclose(rot.inverse_left_jacobian(v), np.linalg.inv(series), rtol=0, atol=1e-15)


@given(vectors(3.0))
def test_the_inverse_left_jacobian_is_the_inverse(v):
    product = rot.left_jacobian(v) @ rot.inverse_left_jacobian(v)
    np.testing.assert_allclose(product, np.tile(np.eye(3), (len(v), 1, 1)), atol=1e-10)


# The nearest and the least rotation


def test_the_nearest_rotation_of_a_rounded_one_is_that_rotation():
    R = rot.matrix_from_euler("rpy", [[0.3, -1.2, 2.5], [0, 0, 0]])
    np.testing.assert_allclose(rot.nearest_rotation(R.round(3)), R, atol=1e-3)
    np.testing.assert_allclose(rot.nearest_rotation(2.5 * R), R, atol=1e-14)


@given(st.integers(0, 10_000))
def test_no_rotation_is_nearer_than_the_nearest(seed: int):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(3, 3))
    found = rot.nearest_rotation(M)
    assert np.linalg.det(found) == pytest.approx(1)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-12)
    others = rot.matrix_from_rotation_vector(rng.normal(size=(50, 3))) @ found
    assert (np.linalg.norm(others - M, axis=(1, 2)) >= np.linalg.norm(found - M) - 1e-12).all()


directions = st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1).map(np.array)


@given(directions, directions)
def test_the_least_rotation_takes_one_direction_to_the_other(a: np.ndarray, b: np.ndarray):
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    if np.linalg.norm(np.cross(a, b)) < 1e-6:
        return
    found = rot.rotation_between(a, b)
    np.testing.assert_allclose(found @ a, b, atol=1e-9)
    assert np.trace(found) == pytest.approx(1 + 2 * (a @ b), abs=1e-9)


@pytest.mark.parametrize("v", [[0, 0, 2.0], [1, -2, 3.0], [0, 5.0, 0]])
def test_between_opposite_directions_it_is_a_half_turn_and_between_equal_ones_none(v: list[float]):
    found = rot.rotation_between(v, -np.array(v))
    np.testing.assert_allclose(found @ v, -np.array(v), atol=1e-12)
    assert np.trace(found) == pytest.approx(-1)
    np.testing.assert_array_equal(rot.rotation_between(v, v), np.eye(3))
