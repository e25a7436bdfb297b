"""Rotations: quaternions (x, y, z, w), matrices, Euler angles, rotation vectors.

A rotation ``R_a_b`` or ``q_a_b`` takes vectors of b to a. Arguments need not be normalised; returned
quaternions are. A quaternion of norm zero is not a rotation and gives NaN, like one that was not measured.

Euler angles are given with the name of their convention, as in scipy: one letter per axis, lower case for
rotations about the fixed axes (extrinsic), upper case about the moving ones (intrinsic), so that "XYZ" with
angles (a, b, c) is ``Rx(a) Ry(b) Rz(c)``. "rpy" is roll, pitch, yaw: ``Rz(yaw) Ry(pitch) Rx(roll)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import kernels
from transect.geometry.array_checks import floats, norms
from transect.geometry.kernels import join, join_matrix, scale_matrix, split

GIMBAL_LOCK_RAD = 1e-7
"""Distance of the middle Euler angle from its singular value below which the last angle is set to 0."""

_IDENTITY = np.eye(3)


# Quaternions


def normalise(q: ArrayLike) -> Floats:
    """Quaternions (..., 4) scaled to norm 1; NaN where the norm is zero."""
    return join(_unit(q))


def conjugate(q: ArrayLike) -> Floats:
    """Quaternions (..., 4) with the vector part negated: the inverse rotation of a unit quaternion."""
    return join(kernels.conjugate(_parts(q)))


def multiply(p: ArrayLike, q: ArrayLike) -> Floats:
    """Hamilton product of quaternions (..., 4): ``q_a_c = multiply(q_a_b, q_b_c)``, `q` rotates first."""
    return join(kernels.multiply(_parts(p), _parts(q)))


def rotate(q: ArrayLike, vectors: ArrayLike) -> Floats:
    """Rotate vectors (..., 3) by quaternions (..., 4): ``v_a`` from ``q_a_b`` and ``v_b``."""
    return join(kernels.rotate(_unit(q), split(floats("vectors", vectors, (..., 3)))))


def angle_between(p: ArrayLike, q: ArrayLike) -> Floats:
    """Angle (...) in [0, pi] of the rotation that takes attitude `p` to attitude `q`, both (..., 4)."""
    return kernels.angle_between(_unit(p), _unit(q))


def slerp(p: ArrayLike, q: ArrayLike, fraction: ArrayLike) -> Floats:
    """Attitude between `p` (fraction 0) and `q` (fraction 1) at constant rate along the shorter arc.

    Parameters
    ----------
    p, q : (..., 4)
        Quaternions.
    fraction : (...)
        Fraction of the arc; outside [0, 1] the rotation is extrapolated at the same rate.

    Returns
    -------
    (..., 4) unit quaternions. Attitudes 180 degrees apart have two shortest arcs; one is chosen.
    """
    return join(kernels.slerp(_unit(p), _unit(q), kernels.number(floats("fraction", fraction, (...,)))))


def _parts(q: ArrayLike) -> Sequence[Any]:
    return split(floats("quaternions", q, (..., 4)))


def _unit(q: ArrayLike) -> Sequence[Any]:
    return kernels.normalise(_parts(q))


# Matrices


def matrix_from_quaternion(q: ArrayLike) -> Floats:
    """Rotation matrices (..., 3, 3) of quaternions (..., 4)."""
    return join_matrix(kernels.matrix_from_quaternion(_unit(q)))


def quaternion_from_matrix(matrix: ArrayLike) -> Floats:
    """Unit quaternions (..., 4) with w >= 0 of rotation matrices (..., 3, 3).

    A rounded matrix, e.g. read from text, is replaced by the nearest rotation; a reflection (determinant < 0)
    is an error.
    """
    return join(_quaternion(matrix))


def _quaternion(matrix: ArrayLike) -> Sequence[Any]:
    elements = kernels.split_matrix(_nearly_orthogonal(floats("rotation matrices", matrix, (..., 3, 3))))
    if np.any(kernels.dot(elements[:3], kernels.cross(elements[3:6], elements[6:])) < 0):
        raise GeometryError(
            "a matrix with a negative determinant is not a rotation",
            hint="does one axis point the wrong way?",
        )
    return kernels.quaternion_from_matrix(elements)


def _nearly_orthogonal(matrix: Floats) -> Floats:
    """Orthogonalise rounded rotation matrices by one Newton step towards their polar factor."""
    excess = np.swapaxes(matrix, -1, -2) @ matrix - _IDENTITY
    rounded = np.abs(excess).max(axis=(-2, -1), keepdims=True) < 0.01  # the step squares this error
    return np.where(rounded, matrix - 0.5 * matrix @ excess, matrix)


def nearest_rotation(matrix: ArrayLike) -> Floats:
    """Rotations (..., 3, 3) nearest to any matrices (..., 3, 3): ``R`` with the largest ``trace(R^T M)``.

    For the correlation ``sum b a^T`` of pairs of vectors it is the least-squares rotation from `a` to `b`.
    """
    u, _, vt = np.linalg.svd(floats("matrices", matrix, (..., 3, 3)))
    u[..., 2] *= np.copysign(1.0, np.linalg.det(u) * np.linalg.det(vt))[..., None]
    return u @ vt


def rotation_between(start: ArrayLike, end: ArrayLike) -> Floats:
    """Smallest rotation (3, 3) that takes the direction of `start` (3,) to that of `end` (3,).

    For opposite directions an arbitrary perpendicular axis is chosen.
    """
    a, b = (floats("direction", each, (3,)) for each in (start, end))
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    axis = np.cross(a, b)
    sine, cosine = float(np.linalg.norm(axis)), float(a @ b)
    if sine == 0 and cosine < 0:
        across = np.cross(a, _IDENTITY[np.argmin(np.abs(a))])
        return matrix_from_rotation_vector(across * (np.pi / np.linalg.norm(across)))
    return matrix_from_rotation_vector((axis / sine if sine else axis) * np.arctan2(sine, cosine))


def skew(vectors: ArrayLike) -> Floats:
    """Cross-product matrices (..., 3, 3): ``skew(a) @ b = a x b`` for vectors (..., 3)."""
    return join_matrix(kernels.skew(split(floats("vectors", vectors, (..., 3)))))


# Euler angles


def quaternion_from_euler(convention: str, angles: ArrayLike) -> Floats:
    """Unit quaternions (..., 4) of Euler angles.

    Parameters
    ----------
    convention : str
        One to three axes such as "xyz" (extrinsic), "ZYX" (intrinsic), or "rpy", see above.
    angles : (..., k)
        Radians, one for each axis, in the order of the letters.
    """
    axes, intrinsic = _axes_of(convention)
    turns = floats(f"Euler angles {convention!r}", angles, (..., len(axes)))
    result: Sequence[Any] = (0.0, 0.0, 0.0, 1.0)
    for axis, angle in zip(axes, split(turns), strict=True):
        turn = kernels.quaternion_from_rotation_vector([angle * unit for unit in _IDENTITY[axis].tolist()])
        result = kernels.multiply(result, turn) if intrinsic else kernels.multiply(turn, result)
    return join(result)


def euler_from_quaternion(convention: str, q: ArrayLike) -> Floats:
    """Euler angles (..., 3) in radians of quaternions (..., 4).

    The first and last angle are in [-pi, pi]; the middle one in [-pi/2, pi/2] when the three axes differ
    ("xyz", "rpy"), in [0, pi] when the first axis is repeated ("zxz"). At gimbal lock the last angle is 0.

    Notes
    -----
    Directly from the quaternion: Bernardes and Viollet, PLoS ONE 17(11), 2022.
    """
    axes, intrinsic = _axes_of(convention)
    if len(axes) != 3:
        raise GeometryError(
            f"Euler convention {convention!r}: three axes are needed to describe any rotation"
        )
    i, j, k = reversed(axes) if intrinsic else axes
    proper = i == k
    k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) / 2.0
    parts = _unit(q)
    w, qi, qj, qk = parts[3], parts[i], parts[j], sign * parts[k]
    a, b, c, d = (w, qi, qj, qk) if proper else (w - qj, qi + qk, w + qj, qk - qi)
    middle = 2.0 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
    half_sum, half_difference = _unlock(middle, np.arctan2(b, a), np.arctan2(d, c), intrinsic)
    first, third = half_sum - half_difference, half_sum + half_difference
    if not proper:
        middle, third = middle - np.pi / 2, sign * third
    ordered = [third, middle, first] if intrinsic else [first, middle, third]
    return _wrap(join(ordered))


def matrix_from_euler(convention: str, angles: ArrayLike) -> Floats:
    """Rotation matrices (..., 3, 3) of Euler angles (..., k), see `quaternion_from_euler`."""
    return matrix_from_quaternion(quaternion_from_euler(convention, angles))


def euler_from_matrix(convention: str, matrix: ArrayLike) -> Floats:
    """Euler angles (..., 3) of rotation matrices (..., 3, 3), see `euler_from_quaternion`."""
    return euler_from_quaternion(convention, quaternion_from_matrix(matrix))


# Rotation vectors


def quaternion_from_rotation_vector(vectors: ArrayLike) -> Floats:
    """Exponential map: unit quaternions (..., 4) of rotation vectors (..., 3), axis times angle in rad."""
    return join(kernels.quaternion_from_rotation_vector(_vector(vectors)))


def rotation_vector_from_quaternion(q: ArrayLike) -> Floats:
    """Logarithm: rotation vectors (..., 3) no longer than pi of quaternions (..., 4)."""
    return join(kernels.rotation_vector_from_quaternion(_unit(q)))


def matrix_from_rotation_vector(vectors: ArrayLike) -> Floats:
    """Exponential map: rotation matrices (..., 3, 3) of rotation vectors (..., 3)."""
    q = kernels.normalise(kernels.quaternion_from_rotation_vector(_vector(vectors)))
    return join_matrix(kernels.matrix_from_quaternion(q))


def rotation_vector_from_matrix(matrix: ArrayLike) -> Floats:
    """Logarithm: rotation vectors (..., 3) no longer than pi of rotation matrices (..., 3, 3)."""
    return join(kernels.rotation_vector_from_quaternion(kernels.normalise(_quaternion(matrix))))


def quaternion_from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Floats:
    """Unit quaternions (..., 4) of rotations by `angle` (...), rad, about `axis` (..., 3), not zero."""
    axis, angle = floats("axis", axis, (..., 3)), floats("angle", angle, (...,))
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = axis / norms(axis)
    return quaternion_from_rotation_vector(unit * angle[..., None])


def left_jacobian(vectors: ArrayLike) -> Floats:
    """Left Jacobian of SO(3) (..., 3, 3) at rotation vectors (..., 3): ``exp(v + d) ~ exp(J d) exp(v)``."""
    v = _vector(vectors)
    cross = join_matrix(kernels.skew(v))
    first, second = kernels.left_jacobian_terms(kernels.norm(v))
    return _IDENTITY + scale_matrix(first, cross) + scale_matrix(second, cross @ cross)


def inverse_left_jacobian(vectors: ArrayLike) -> Floats:
    """Inverse (..., 3, 3) of `left_jacobian` at rotation vectors (..., 3) shorter than 2 pi."""
    v = _vector(vectors)
    cross = join_matrix(kernels.skew(v))
    second = kernels.inverse_left_jacobian_term(kernels.norm(v))
    return _IDENTITY - cross / 2 + scale_matrix(second, cross @ cross)


def _vector(vectors: ArrayLike) -> Sequence[Any]:
    return split(floats("rotation vectors", vectors, (..., 3)))


def _axes_of(convention: str) -> tuple[list[int], bool]:
    """Axis indices, and whether they move with the body (intrinsic)."""
    name = "xyz" if convention == "rpy" else convention
    one_case = name in (name.lower(), name.upper())
    axes = ["xyz".find(letter) for letter in name.lower()]
    turns_twice = any(a == b for a, b in pairwise(axes))
    if not (one_case and 1 <= len(axes) <= 3 and min(axes) >= 0) or turns_twice:
        raise GeometryError(
            f"unknown Euler convention {convention!r}",
            why="expected one to three of x, y, z, lower (extrinsic) or upper case (intrinsic), or 'rpy'",
            hint="consecutive axes must differ: 'xyz', 'ZYX', 'zxz' are valid, 'xxy' is not",
        )
    return axes, name.isupper()


def _unlock(middle: Floats, half_sum: Floats, half_diff: Floats, intrinsic: bool) -> tuple[Floats, Floats]:
    """Half sum and half difference; where only one is determined, the other makes the last angle 0."""
    last = -1.0 if intrinsic else 1.0
    only_sum = middle < GIMBAL_LOCK_RAD
    only_difference = np.pi - middle < GIMBAL_LOCK_RAD
    return (
        kernels.choose(only_difference, -last * half_diff, half_sum),
        kernels.choose(only_sum, -last * half_sum, half_diff),
    )


def _wrap(angles: Floats) -> Floats:
    turns = np.where(np.abs(angles) > np.pi, np.round(angles / (2 * np.pi)), 0.0)
    return angles - 2 * np.pi * turns
