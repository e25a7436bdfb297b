import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from transect.errors import GeometryError
from transect.geometry import align, rotations, se3

seeds = st.integers(0, 2**32 - 1)


def problem(seed, n=12, noise=0.0, scale=1.0, far=100.0):
    """Source, target and the truth between them."""
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(n, 3)) * [10, 5, 2] + rng.uniform(-far, far, 3)
    rotation = rotations.matrix_from_quaternion(rng.normal(size=4))
    translation = rng.uniform(-far, far, 3)
    target = scale * source @ rotation.T + translation + noise * rng.normal(size=(n, 3))
    return source, target, rotation, translation


@pytest.mark.parametrize("solve", [align.horn, align.umeyama])
@given(seed=seeds)
def test_a_rigid_motion_is_found_again(solve, seed):
    source, target, rotation, translation = problem(seed)
    found = solve(source, target)
    np.testing.assert_allclose(found.rotation, rotation, atol=1e-10)
    np.testing.assert_allclose(found.translation, translation, atol=1e-8)
    assert found.scale == 1
    assert found.rmse < 1e-9
    assert found.pairs == len(source)


@pytest.mark.parametrize("solve", [align.horn, align.umeyama])
@given(seed=seeds, scale=st.floats(0.01, 100))
def test_a_similarity_is_found_again(solve, seed, scale):
    source, target, rotation, _ = problem(seed, scale=scale)
    found = solve(source, target, with_scale=True)
    np.testing.assert_allclose(found.rotation, rotation, atol=1e-9)
    assert found.scale == pytest.approx(scale)
    np.testing.assert_allclose(found.apply(source), target, atol=1e-7)


@given(seed=seeds, with_scale=st.booleans())
def test_horn_and_umeyama_agree_on_noisy_points(seed, with_scale):
    source, target, *_ = problem(seed, noise=1.0, scale=1.5 if with_scale else 1.0)
    one, other = (solve(source, target, with_scale=with_scale) for solve in (align.horn, align.umeyama))
    np.testing.assert_allclose(one.matrix, other.matrix, atol=1e-7)
    assert one.rmse == pytest.approx(other.rmse)


@given(seed=seeds)
def test_the_rotation_agrees_with_scipy(seed):
    source, target, *_ = problem(seed, noise=0.5)
    expected, _ = Rotation.align_vectors(target - target.mean(axis=0), source - source.mean(axis=0))
    np.testing.assert_allclose(align.umeyama(source, target).rotation, expected.as_matrix(), atol=1e-7)


@pytest.mark.parametrize("mode", ["se3", "sim3", "yaw"])
@given(seed=seeds)
def test_no_small_change_of_the_alignment_is_better(mode, seed):
    source, target, *_ = problem(seed, noise=1.0, far=5.0)
    best = align.align(source, target, mode)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        twist = 1e-3 * rng.normal(size=6) * ([1, 1, 1, 0, 0, 1] if mode == "yaw" else 1)
        stretch = 1 + 1e-3 * rng.normal() * (mode == "sim3")
        changed = stretch * se3.apply(se3.exp(twist), best.apply(source))
        assert np.sqrt(np.mean(np.sum((changed - target) ** 2, axis=1))) >= best.rmse


@pytest.mark.parametrize("solve", [align.horn, align.umeyama])
def test_a_mirrored_set_is_aligned_by_a_rotation_all_the_same(solve):
    source, *_ = problem(5)
    found = solve(source, source * [1, 1, -1])
    assert np.linalg.det(found.rotation) == pytest.approx(1)


@pytest.mark.parametrize("solve", [align.horn, align.umeyama])
def test_a_flat_set_is_enough(solve):
    source, _, rotation, translation = problem(6)
    source[:, 2] = 0
    found = solve(source, source @ rotation.T + translation)
    np.testing.assert_allclose(found.rotation, rotation, atol=1e-12)


@pytest.mark.parametrize("solve", [align.horn, align.umeyama])
def test_a_half_turn_is_found(solve):
    source, *_ = problem(7)
    found = solve(source, source * [-1, -1, 1])
    np.testing.assert_allclose(found.rotation, np.diag([-1, -1, 1]), atol=1e-12)


@pytest.mark.parametrize("mode", ["se3", "sim3", "yaw", "origin"])
def test_rows_that_were_not_measured_are_left_out(mode):
    source, target, *_ = problem(8, noise=0.1)
    expected = align.align(source[2:], target[2:], mode)
    source[0], target[1, 2] = np.nan, np.nan
    found = align.align(source, target, mode)
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    assert found.pairs == len(source) - 2


@given(seed=seeds, angle=st.floats(-np.pi, np.pi))
def test_a_yaw_is_found_again_also_from_two_points(seed, angle):
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(2, 3)) * 10
    rotation = rotations.matrix_from_euler("rpy", [0, 0, angle])
    found = align.yaw(source, source @ rotation.T + [1, 2, 3])
    np.testing.assert_allclose(found.rotation, rotation, atol=1e-7)
    np.testing.assert_allclose(found.translation, [1, 2, 3], atol=1e-6)


def test_yaw_never_tilts():
    source, target, *_ = problem(9, noise=1.0)
    found = align.yaw(source, target)
    np.testing.assert_array_equal(found.rotation[2], [0, 0, 1])


def test_origin_moves_the_first_point_onto_the_first():
    found = align.origin([[1, 2, 3], [4, 4, 4]], [[0, 0, 0], [9, 9, 9]])
    np.testing.assert_array_equal(found.translation, [-1, -2, -3])
    np.testing.assert_array_equal(found.rotation, np.eye(3))
    # (4,4,4) - (1,2,3) = (3,2,1), off by (6,7,8): 149 over two points.
    assert found.rmse == pytest.approx(np.sqrt(149 / 2))


def test_the_first_pose_is_put_onto_the_first():
    a, b = se3.exp(np.random.default_rng(1).normal(size=(2, 4, 6)))
    np.testing.assert_allclose(align.first_pose(a, b) @ a[0], b[0], atol=1e-14)
    with pytest.raises(GeometryError, match="at least one pose"):
        align.first_pose(np.zeros((0, 4, 4)), b)


@pytest.mark.parametrize("solve", [align.horn, align.umeyama])
@pytest.mark.parametrize("far", [0.0, 5e6])
def test_points_on_a_line_are_refused_also_far_from_the_origin(solve, far):
    line = np.linspace(0, 1, 20)[:, None] * [30.0, 40, 50] + far
    with pytest.raises(GeometryError, match="source points are collinear"):
        solve(line, np.random.default_rng(0).normal(size=(20, 3)))
    with pytest.raises(GeometryError, match="target points are collinear"):
        solve(np.random.default_rng(0).normal(size=(20, 3)), line)


@pytest.mark.parametrize("solve", [align.horn, align.umeyama])
def test_a_long_straight_with_a_centimetre_of_sway_is_not_a_line(solve):
    s = np.linspace(0, 1, 50)
    track = np.stack([100 * s, 0.01 * np.sin(9 * s), 0 * s], axis=1)
    rotation = rotations.matrix_from_euler("rpy", [0.1, 0.2, 0.3])
    np.testing.assert_allclose(solve(track, track @ rotation.T).rotation, rotation, atol=1e-8)


@pytest.mark.parametrize("solve", [align.horn, align.umeyama])
def test_equal_points_and_too_few_points_are_refused(solve):
    spread = np.random.default_rng(0).normal(size=(4, 3))
    with pytest.raises(GeometryError, match="are the same point"):
        solve(np.full((4, 3), 500000.1), spread)
    with pytest.raises(GeometryError, match="at least 3 pairs of points to align, got 2"):
        solve(spread[:2], spread[:2])
    with pytest.raises(GeometryError, match="got 0"):
        solve(np.zeros((0, 3)), np.zeros((0, 3)))


@pytest.mark.parametrize("solve", [align.horn, align.umeyama])
def test_sets_that_do_not_correspond_are_refused(solve):
    source = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
    target = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 0, 1], [0, 0, 1]])
    with pytest.raises(GeometryError, match="are not correlated"):
        solve(source, target)


def test_a_yaw_that_is_not_determined_is_refused():
    mast = np.array([[5.0, 5, 0], [5, 5, 1], [5, 5, 2]])
    with pytest.raises(GeometryError, match="yaw is not determined"):
        align.yaw(mast, mast)
    with pytest.raises(GeometryError, match="at least 2 pairs"):
        align.yaw(mast[:1], mast[:1])


def test_wrong_words_and_wrong_shapes_are_refused():
    points = np.zeros((3, 3))
    with pytest.raises(GeometryError, match="modes are se3, sim3, yaw, origin"):
        align.align(points, points, mode="affine")
    with pytest.raises(GeometryError, match=r"source \(3, 3\), target \(2, 3\)"):
        align.align(points, points[:2])


def test_points_on_a_line_are_turned_onto_its_direction():
    s = np.linspace(-3.0, 9.0, 30)[:, None]
    for a, b in (([1.0, 0, 0], [0.6, 0.8, 0]), ([0, 0, 1.0], [0, 0, -1.0]), ([0, 1.0, 0], [0, 1.0, 0])):
        found = align.align(s * np.array(a) + 4.0, s * np.array(b) - 7.0, "line")
        assert found.rmse < 1e-9
        np.testing.assert_allclose(found.rotation @ a, b, atol=1e-9)
        assert np.linalg.det(found.rotation) == pytest.approx(1.0)
    with pytest.raises(GeometryError, match="direction is not determined"):
        align.align(np.zeros((4, 3)), np.zeros((4, 3)), "line")
