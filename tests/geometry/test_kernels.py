"""Formulas on components: floats, columns and rows give the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.geometry import kernels as k
from transect.geometry import rotations, se3


@given(st.integers(0, 10_000), st.integers(1, 20), st.sampled_from([1e-9, 1e-3, 1.0]))
def test_columns_are_turned_as_rows_are(seed: int, n: int, small: float):
    rng = np.random.default_rng(seed)
    p, v = rng.normal(size=(n, 4)), rng.normal(size=(n, 3))
    q = p + small * rng.normal(size=(n, 4))
    first, second = k.normalise(k.columns(p)), k.normalise(k.columns(q))
    np.testing.assert_array_equal(np.transpose(first), rotations.normalise(p))
    np.testing.assert_array_equal(np.transpose(k.rotate(first, k.columns(v))), rotations.rotate(p, v))
    together = rotations.multiply(rotations.normalise(p), rotations.normalise(q))
    np.testing.assert_array_equal(np.transpose(k.multiply(first, second)), together)
    back = np.array(k.multiply(k.conjugate(first), first))
    np.testing.assert_allclose(back, np.array([[0, 0, 0, 1.0]]).T + 0 * back, atol=1e-14)
    angles = rotations.angle_between(p, q)
    np.testing.assert_array_equal(k.angle_between(first, second), angles)
    np.testing.assert_allclose(k.angle_between(first, np.negative(second)), angles, atol=1e-14)


ROWS = np.random.default_rng(0).normal(size=(40, 6))
QUATERNIONS = np.vstack([ROWS[:, :4], np.eye(4), -np.eye(4), np.zeros((1, 4)), np.full((1, 4), np.nan)])
VECTORS = np.vstack([ROWS[:, :3], 1e-6 * ROWS[:5, :3], np.zeros((1, 3)), np.full((1, 3), np.nan)])
MATRICES = rotations.matrix_from_quaternion(QUATERNIONS)
TWISTS = np.vstack([ROWS, 1e-6 * ROWS[:5], np.zeros((1, 6))])


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (rotations.normalise, QUATERNIONS),
        (rotations.conjugate, QUATERNIONS),
        (rotations.matrix_from_quaternion, QUATERNIONS),
        (rotations.rotation_vector_from_quaternion, QUATERNIONS),
        (lambda q: rotations.euler_from_quaternion("rpy", q), QUATERNIONS),
        (lambda q: rotations.multiply(q, [0.1, 0.2, 0.3, 0.4]), QUATERNIONS),
        (lambda q: rotations.rotate(q, [1, 2, 3]), QUATERNIONS),
        (lambda q: rotations.slerp(q, [0.1, 0.2, 0.3, 0.4], 0.3), QUATERNIONS),
        (lambda q: rotations.angle_between(q, [0.1, 0.2, 0.3, 0.4]), QUATERNIONS),
        (rotations.quaternion_from_matrix, MATRICES),
        (rotations.rotation_vector_from_matrix, MATRICES),
        (rotations.skew, VECTORS),
        (rotations.quaternion_from_rotation_vector, VECTORS),
        (rotations.matrix_from_rotation_vector, VECTORS),
        (rotations.left_jacobian, VECTORS),
        (rotations.inverse_left_jacobian, VECTORS),
        (lambda angles: rotations.quaternion_from_euler("ZYX", angles), VECTORS),
        (se3.exp, TWISTS),
        (lambda xi: se3.log(se3.exp(xi)), TWISTS),
    ],
)
def test_one_at_a_time_is_the_same_as_all_at_once(function, rows):
    one_by_one = np.array([function(row) for row in rows])
    np.testing.assert_allclose(one_by_one, function(rows), rtol=1e-14, atol=1e-15)


def test_blocks_cover_an_axis_once():
    covered = np.concatenate([np.arange(10_000)[block] for block in k.blocks(10_000)])
    np.testing.assert_array_equal(covered, np.arange(10_000))
    assert list(k.blocks(0)) == []
