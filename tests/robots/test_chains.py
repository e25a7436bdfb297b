"""Chains of joints, against products of elementary matrices and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from transect.errors import GeometryError
from transect.robots.chains import Chain, Convention

Floats = NDArray[np.float64]

A, ALPHA, D = [0.3, 0.5, 0.0, 0.2, 0.0], [np.pi / 2, 0.0, -0.7, 1.1, np.pi / 2], [0.4, -0.1, 0.6, 0.0, 0.25]
ANGLES = st.lists(st.floats(-3.0, 3.0), min_size=5, max_size=5)


def chain(convention: Convention) -> Chain:
    return Chain(np.array(A), np.array(ALPHA), np.array(D), convention)


def turn(axis: int, angle: float) -> Floats:
    i, j = [k for k in range(3) if k != axis]
    T = np.eye(4)
    T[i, i] = T[j, j] = np.cos(angle)
    T[i, j], T[j, i] = -np.sin(angle), np.sin(angle)
    if axis == 1:
        T[i, j], T[j, i] = T[j, i], T[i, j]
    return T


def shift(axis: int, length: float) -> Floats:
    T = np.eye(4)
    T[axis, 3] = length
    return T


def step(convention: Convention, i: int, q: float) -> Floats:
    about_x, about_z = (shift(0, A[i]), turn(0, ALPHA[i])), (turn(2, q), shift(2, D[i]))
    parts = (*about_z, *about_x) if convention == "standard" else (*about_x, *about_z)
    return np.linalg.multi_dot(parts)


@pytest.mark.parametrize("convention", ["standard", "modified"])
@given(q=ANGLES)
def test_poses_are_products_of_turns_and_shifts(convention: Convention, q: list[float]) -> None:
    poses, steps, expected = chain(convention).poses(q), chain(convention).steps(q), np.eye(4)
    np.testing.assert_array_equal(poses[0], expected)
    for i, angle in enumerate(q):
        one = step(convention, i, angle)
        expected = expected @ one
        np.testing.assert_allclose(steps[i], one, atol=1e-14)
        np.testing.assert_allclose(poses[i + 1], expected, atol=1e-13)
    np.testing.assert_allclose(chain(convention).forward(q), expected, atol=1e-13)


@pytest.mark.parametrize("convention", ["standard", "modified"])
@given(q=ANGLES, point=st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3))
def test_the_jacobian_is_how_the_end_moves(
    convention: Convention, q: list[float], point: list[float]
) -> None:
    arm, h = chain(convention), 1e-6
    jacobian, at = arm.jacobian(q, point), np.array([*point, 1.0])
    R = arm.forward(q)[:3, :3]
    for i in range(5):
        ahead, behind = (arm.forward(np.array(q) + sign * h * np.eye(5)[i]) for sign in (1.0, -1.0))
        np.testing.assert_allclose(jacobian[:3, i], ((ahead - behind) @ at)[:3] / (2 * h), atol=1e-8)
        spin = ((ahead - behind)[:3, :3] / (2 * h)) @ R.T
        np.testing.assert_allclose(jacobian[3:, i], [spin[2, 1], spin[0, 2], spin[1, 0]], atol=1e-8)


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (0,)])
def test_many_samples_are_as_one_each(leading: tuple[int, ...]) -> None:
    arm = chain("modified")
    q = np.random.default_rng(1).uniform(-3, 3, (*leading, 5))
    point = np.random.default_rng(2).uniform(-1, 1, (*leading, 3))
    assert arm.poses(q).shape == (*leading, 6, 4, 4)
    assert arm.steps(q).shape == (*leading, 5, 4, 4)
    assert arm.forward(q).shape == (*leading, 4, 4)
    assert arm.jacobian(q, point).shape == (*leading, 6, 5)
    for index in np.ndindex(leading):
        np.testing.assert_allclose(arm.poses(q)[index], arm.poses(q[index]), atol=1e-14)
        np.testing.assert_allclose(arm.jacobian(q, point)[index], arm.jacobian(q[index], point[index]))


@given(q=st.lists(st.floats(-1.5, 1.5), min_size=5, max_size=5))
def test_the_inverse_reaches_the_pose(q: list[float]) -> None:
    arm = chain("standard")
    target = arm.forward(q)
    found = arm.inverse(target, np.array(q) + 0.05)
    np.testing.assert_allclose(arm.forward(found), target, atol=1e-8)


def test_a_target_out_of_reach_says_what_remains() -> None:
    target = np.eye(4)
    target[0, 3] = 10.0
    with pytest.raises(GeometryError, match="no joint angles reach"):
        chain("standard").inverse(target, np.zeros(5))


def test_limits_are_told_joint_by_joint() -> None:
    arm = Chain(
        np.zeros(2), np.zeros(2), np.zeros(2), lower=np.array([-1.0, 0.0]), upper=np.array([1.0, 2.0])
    )
    assert arm.within_limits([[0.5, 0.5], [1.5, -0.1]]).tolist() == [[True, True], [False, False]]
    assert arm.within_limits([0.95, 1.0], margin=0.1).tolist() == [False, True]
    assert chain("standard").within_limits(np.full(5, 100.0)).all()
    assert not arm.within_limits([np.nan, 1.0])[0]


def test_numbers_for_too_few_joints_are_refused() -> None:
    with pytest.raises(GeometryError, match="as many numbers"):
        Chain(np.zeros(3), np.zeros(2), np.zeros(3))
    with pytest.raises(GeometryError, match="as many numbers"):
        Chain(np.zeros(3), np.zeros(3), np.zeros(3), lower=np.zeros(2))
    with pytest.raises(GeometryError, match=r"expected shape \(..., 5\)"):
        chain("standard").poses([1.0, 2.0])
