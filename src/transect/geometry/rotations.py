"""Rotations: quaternions (x, y, z, w), matrices, Euler angles, rotation vectors.

A rotation of b seen from a, ``R_a_b`` or ``q_a_b``, takes vectors of b to a. Quaternions need not be
normalised when they come in; those that go out are. A quaternion of norm zero is no rotation: it becomes
NaN, like one that was not measured.

Euler angles come with the name of their convention, as in scipy: one letter an axis, small letters turn
about the fixed axes (extrinsic), capitals about the moving ones (intrinsic), so that "XYZ" with angles
(a, b, c) is ``Rx(a) Ry(b) Rz(c)``. "rpy" is roll, pitch, yaw: ``Rz(yaw) Ry(pitch) Rx(roll)``.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry._arrays import floats, norms

GIMBAL_LOCK = 1e-7
"""Distance of the middle Euler angle from its singular value (rad) below which the last angle is set to 0."""

SMALL_ANGLE = 1e-4
"""Angle (rad) below which the second terms of the Jacobians' series vanish in float64."""


# Quaternions


def normalise(q: ArrayLike) -> Floats:
    """Quaternions (..., 4) scaled to norm 1; NaN where the norm is zero."""
    raw = floats("quaternions", q, (..., 4))
    # Divided by the largest part first: the squares of tiny or huge parts would vanish or overflow.
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = raw / np.max(np.abs(raw), axis=-1, keepdims=True)
    return scaled / norms(scaled)


def conjugate(q: ArrayLike) -> Floats:
    """Quaternions (..., 4) with the vector part negated: the inverse rotation of a unit quaternion."""
    return floats("quaternions", q, (..., 4)) * np.array([-1.0, -1.0, -1.0, 1.0])


def multiply(p: ArrayLike, q: ArrayLike) -> Floats:
    """Hamilton product of quaternions (..., 4): ``q_a_c = multiply(q_a_b, q_b_c)``, `q` turns first."""
    px, py, pz, pw = np.moveaxis(floats("quaternions", p, (..., 4)), -1, 0)
    qx, qy, qz, qw = np.moveaxis(floats("quaternions", q, (..., 4)), -1, 0)
    return np.stack(
        [
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
            pw * qw - px * qx - py * qy - pz * qz,
        ],
        axis=-1,
    )


def rotate(q: ArrayLike, vectors: ArrayLike) -> Floats:
    """Vectors (..., 3) turned by quaternions (..., 4): ``v_a`` from ``q_a_b`` and ``v_b``."""
    q, v = normalise(q), floats("vectors", vectors, (..., 3))
    axis, w = q[..., :3], q[..., 3:]
    twice = 2.0 * np.cross(axis, v)
    return v + w * twice + np.cross(axis, twice)


def angle_between(p: ArrayLike, q: ArrayLike) -> Floats:
    """Angle (...) in [0, pi] of the rotation that takes attitude `p` to attitude `q`, both (..., 4)."""
    difference = multiply(conjugate(normalise(p)), normalise(q))
    return 2.0 * np.arctan2(norms(difference[..., :3])[..., 0], np.abs(difference[..., 3]))


def slerp(p: ArrayLike, q: ArrayLike, fraction: ArrayLike) -> Floats:
    """Attitude between `p` (fraction 0) and `q` (fraction 1) at constant rate along the shorter arc.

    Parameters
    ----------
    p, q : (..., 4)
        Quaternions.
    fraction : (...)
        Where between them; outside [0, 1] the rotation goes on at the same rate.

    Returns
    -------
    (..., 4) unit quaternions. Between opposite attitudes (180 degrees) both arcs are as short; one is taken.
    """
    p, q = normalise(p), normalise(q)
    s = floats("fraction", fraction, (...,))[..., None]
    q = np.where(np.sum(p * q, axis=-1, keepdims=True) < 0, -q, q)
    # arctan2 keeps its digits for nearly equal attitudes; arccos of the dot product loses half of them.
    angle = 2.0 * np.arctan2(norms(q - p), norms(q + p)) / np.pi
    # sin((1-s) a) / sin(a), written with np.sinc(x) = sin(pi x) / (pi x), which is smooth at a = 0.
    weight_p = (1.0 - s) * np.sinc((1.0 - s) * angle) / np.sinc(angle)
    weight_q = s * np.sinc(s * angle) / np.sinc(angle)
    return normalise(weight_p * p + weight_q * q)


# Matrices


def matrix_from_quaternion(q: ArrayLike) -> Floats:
    """Rotation matrices (..., 3, 3) of quaternions (..., 4)."""
    x, y, z, w = np.moveaxis(normalise(q), -1, 0)
    return _square(
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    )


def quaternion_from_matrix(matrix: ArrayLike) -> Floats:
    """Unit quaternions (..., 4) with w >= 0 of rotation matrices (..., 3, 3).

    Of a matrix that is rounded (as printed in a file) the nearest rotation is taken; a reflection
    (determinant < 0) is refused.
    """
    m = _nearly_orthogonal(floats("rotation matrices", matrix, (..., 3, 3)))
    if np.any(np.linalg.det(m) < 0):
        raise GeometryError(
            "a matrix with a negative determinant is no rotation", hint="does one axis point the wrong way?"
        )
    # Row i is 4 q_i q; the row with the largest diagonal is never near zero (Shepperd 1978).
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    xy, xz, yz = m[..., 1, 0] + m[..., 0, 1], m[..., 0, 2] + m[..., 2, 0], m[..., 2, 1] + m[..., 1, 2]
    xw, yw, zw = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    rows = _square(
        [1 + xx - yy - zz, xy, xz, xw],
        [xy, 1 - xx + yy - zz, yz, yw],
        [xz, yz, 1 - xx - yy + zz, zw],
        [xw, yw, zw, 1 + xx + yy + zz],
    )
    best = np.argmax(np.diagonal(rows, axis1=-2, axis2=-1), axis=-1)
    q = normalise(np.take_along_axis(rows, best[..., None, None], axis=-2)[..., 0, :])
    return np.where(q[..., 3:] < 0, -q, q)


def _nearly_orthogonal(matrix: Floats) -> Floats:
    """Return matrices a Newton step nearer to their polar factor: of a rounded one, the nearest rotation."""
    excess = np.swapaxes(matrix, -1, -2) @ matrix - np.eye(3)
    rounded = np.abs(excess).max(axis=(-2, -1), keepdims=True) < 0.01  # the step squares that
    return np.where(rounded, matrix - 0.5 * matrix @ excess, matrix)


def skew(vectors: ArrayLike) -> Floats:
    """Matrices (..., 3, 3) that do the cross product: ``skew(a) @ b = a x b`` for vectors (..., 3)."""
    x, y, z = np.moveaxis(floats("vectors", vectors, (..., 3)), -1, 0)
    o = np.zeros_like(x)
    return _square([o, -z, y], [z, o, -x], [-y, x, o])


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
    result = np.array([0.0, 0.0, 0.0, 1.0])
    for k, axis in enumerate(axes):
        turn = quaternion_from_rotation_vector(turns[..., k, None] * np.eye(3)[axis])
        result = multiply(result, turn) if intrinsic else multiply(turn, result)
    return result


def euler_from_quaternion(convention: str, q: ArrayLike) -> Floats:
    """Euler angles (..., 3) in radians of quaternions (..., 4).

    The first and last angle are in [-pi, pi]; the middle one in [-pi/2, pi/2] when the three axes differ
    ("xyz", "rpy"), in [0, pi] when the first comes back ("zxz"). At gimbal lock the last angle is 0.

    Notes
    -----
    Straight from the quaternion: Bernardes and Viollet, PLoS ONE 17(11), 2022.
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
    parts = normalise(q)
    w, qi, qj, qk = parts[..., 3], parts[..., i], parts[..., j], sign * parts[..., k]
    a, b, c, d = (w, qi, qj, qk) if proper else (w - qj, qi + qk, w + qj, qk - qi)
    middle = 2.0 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
    half_sum, half_difference = _unlocked(middle, np.arctan2(b, a), np.arctan2(d, c), intrinsic)
    first, third = half_sum - half_difference, half_sum + half_difference
    if not proper:
        middle, third = middle - np.pi / 2, sign * third
    ordered = [third, middle, first] if intrinsic else [first, middle, third]
    return _wrapped(np.stack(ordered, axis=-1))


def matrix_from_euler(convention: str, angles: ArrayLike) -> Floats:
    """Rotation matrices (..., 3, 3) of Euler angles (..., k), see `quaternion_from_euler`."""
    return matrix_from_quaternion(quaternion_from_euler(convention, angles))


def euler_from_matrix(convention: str, matrix: ArrayLike) -> Floats:
    """Euler angles (..., 3) of rotation matrices (..., 3, 3), see `euler_from_quaternion`."""
    return euler_from_quaternion(convention, quaternion_from_matrix(matrix))


# Rotation vectors


def quaternion_from_rotation_vector(vectors: ArrayLike) -> Floats:
    """Exponential map: unit quaternions (..., 4) of rotation vectors (..., 3), axis times angle in rad."""
    v = floats("rotation vectors", vectors, (..., 3))
    angle = norms(v)
    return np.concatenate([0.5 * np.sinc(angle / (2 * np.pi)) * v, np.cos(angle / 2)], axis=-1)


def rotation_vector_from_quaternion(q: ArrayLike) -> Floats:
    """Logarithm: rotation vectors (..., 3) no longer than pi of quaternions (..., 4)."""
    q = normalise(q)
    q = np.where(q[..., 3:] < 0, -q, q)
    sine = norms(q[..., :3])
    angle = 2.0 * np.arctan2(sine, q[..., 3:])
    return q[..., :3] * np.divide(angle, sine, out=np.full_like(sine, 2.0), where=sine != 0)


def matrix_from_rotation_vector(vectors: ArrayLike) -> Floats:
    """Exponential map: rotation matrices (..., 3, 3) of rotation vectors (..., 3)."""
    return matrix_from_quaternion(quaternion_from_rotation_vector(vectors))


def rotation_vector_from_matrix(matrix: ArrayLike) -> Floats:
    """Logarithm: rotation vectors (..., 3) no longer than pi of rotation matrices (..., 3, 3)."""
    return rotation_vector_from_quaternion(quaternion_from_matrix(matrix))


def quaternion_from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Floats:
    """Unit quaternions (..., 4) that turn by `angle` (...) in rad about `axis` (..., 3), any length but 0."""
    axis, angle = floats("axis", axis, (..., 3)), floats("angle", angle, (...,))
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = axis / norms(axis)
    return quaternion_from_rotation_vector(unit * angle[..., None])


def axis_angle_from_quaternion(q: ArrayLike) -> tuple[Floats, Floats]:
    """Unit axes (..., 3) and angles (...) in [0, pi] of quaternions (..., 4); no rotation is 0 about x."""
    vectors = rotation_vector_from_quaternion(q)
    angle = norms(vectors)
    unit = np.divide(vectors, angle, out=np.zeros_like(vectors), where=angle != 0)
    return np.where(angle == 0, np.array([1.0, 0.0, 0.0]), unit), angle[..., 0]


def left_jacobian(vectors: ArrayLike) -> Floats:
    """Left Jacobian of SO(3) (..., 3, 3) at rotation vectors (..., 3): ``exp(v + d) ~ exp(J d) exp(v)``."""
    v = floats("rotation vectors", vectors, (..., 3))
    angle, cross = norms(v)[..., None], skew(v)
    small = angle < SMALL_ANGLE
    safe = np.where(small, 1.0, angle)
    first = 0.5 * np.sinc(angle / (2 * np.pi)) ** 2  # (1 - cos a) / a^2
    second = np.where(small, 1 / 6, (safe - np.sin(safe)) / safe**3)
    return np.eye(3) + first * cross + second * (cross @ cross)


def inverse_left_jacobian(vectors: ArrayLike) -> Floats:
    """Inverse (..., 3, 3) of `left_jacobian` at rotation vectors (..., 3) shorter than 2 pi."""
    v = floats("rotation vectors", vectors, (..., 3))
    angle, cross = norms(v)[..., None], skew(v)
    small = angle < SMALL_ANGLE
    safe = np.where(small, 1.0, angle)
    second = np.where(small, 1 / 12, (1 - safe / 2 / np.tan(safe / 2)) / safe**2)
    return np.eye(3) - cross / 2 + second * (cross @ cross)


def _square(*rows: list[Floats]) -> Floats:
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _axes_of(convention: str) -> tuple[list[int], bool]:
    """Axis numbers and whether they move with the body."""
    name = "xyz" if convention == "rpy" else convention
    one_case = name in (name.lower(), name.upper())
    axes = ["xyz".find(letter) for letter in name.lower()]
    turns_twice = any(a == b for a, b in pairwise(axes))
    if not (one_case and 1 <= len(axes) <= 3 and min(axes) >= 0) or turns_twice:
        raise GeometryError(
            f"unknown Euler convention {convention!r}",
            why="expected one to three of x, y, z, small (extrinsic) or capital (intrinsic), or 'rpy'",
            hint="no axis can follow itself: 'xyz', 'ZYX', 'zxz' are fine, 'xxy' is not",
        )
    return axes, name.isupper()


def _unlocked(middle: Floats, half_sum: Floats, half_diff: Floats, intrinsic: bool) -> tuple[Floats, Floats]:
    """Half sum and half difference; where only one is determined, such that the last angle is 0."""
    last = -1.0 if intrinsic else 1.0
    only_sum = middle < GIMBAL_LOCK
    only_difference = np.pi - middle < GIMBAL_LOCK
    return (
        np.where(only_difference, -last * half_diff, half_sum),
        np.where(only_sum, -last * half_sum, half_diff),
    )


def _wrapped(angles: Floats) -> Floats:
    turns = np.where(np.abs(angles) > np.pi, np.round(angles / (2 * np.pi)), 0.0)
    return angles - 2 * np.pi * turns
