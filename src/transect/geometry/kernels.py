"""Rotation formulas on components, without checks of the arguments, for use in loops.

A vector is given by its components ``x, y, z``, a quaternion by ``x, y, z, w``, a matrix by its elements row
by row. A component is a Python float or an array of any shape: the same formula rotates one vector in a
microsecond, and a million vectors at memory bandwidth. For example, `multiply` takes two lists of four floats
or two arrays (4, n).

`split` splits arrays (..., k) into components, `join` stacks components. `rotations` and `se3` use both to
apply the formulas to arrays (..., k), with checks that take about a microsecond.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from transect.base.arrays import Floats

Components = Sequence[Any] | Floats
"""Components: a sequence of floats, of arrays, or an array whose first axis counts them."""

SMALL_ANGLE_RAD = 1e-4
"""Angle below which the second-order terms of the Jacobians' series vanish in float64."""

NAN = math.nan


# Arrays and components


def split(array: Floats) -> Sequence[Any]:
    """Components along the last axis of (..., k): floats of one vector, arrays (...) of many."""
    return array.tolist() if array.ndim == 1 else [array[..., i] for i in range(array.shape[-1])]


def join(parts: Components) -> Floats:
    """Array (..., k) of k components."""
    if not any(isinstance(part, np.ndarray) for part in parts):
        return np.array(parts)
    out = np.empty((*np.broadcast(*parts).shape, len(parts)))
    for i, part in enumerate(parts):
        out[..., i] = part
    return out


def split_matrix(matrices: Floats) -> Sequence[Any]:
    """Nine elements, row by row, of matrices (..., 3, 3)."""
    return split(matrices.reshape(*matrices.shape[:-2], 9))


def join_matrix(elements: Components) -> Floats:
    """Matrices (..., n, n) of their elements, row by row."""
    flat, n = join(elements), math.isqrt(len(elements))
    return flat.reshape(*flat.shape[:-1], n, n)


def columns(rows: Floats) -> Floats:
    """Contiguous columns (k, n) of rows (n, k): the fastest layout of components."""
    return np.ascontiguousarray(rows.T, np.float64)


def blocks(count: int, size: int = 8192) -> Iterator[slice]:
    """Yield slices of a long axis, short enough for the temporary arrays to fit the processor's cache."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def number(array: Floats) -> Any:
    """Return the float of an array without axes, and any other array as it is."""
    return array.item() if array.ndim == 0 else array


def scale_matrix(factor: Any, matrices: Floats) -> Floats:
    """Matrices (..., 3, 3), each times its own factor (...)."""
    return factor * matrices if isinstance(factor, float) else factor[..., None, None] * matrices


# Numbers


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """Return `yes` where the condition holds, else `no`, for floats and arrays."""
    return np.where(condition, yes, no) if isinstance(condition, np.ndarray) else (yes if condition else no)


def sinc(x: Any) -> Any:
    """``sin(pi x) / (pi x)``, 1 at 0: a faster `numpy.sinc`."""
    y = math.pi * x
    if isinstance(y, float):
        return math.sin(y) / y if y and math.isfinite(y) else (NAN if y else 1.0)
    y[y == 0] = np.finfo(np.float64).eps
    return np.sin(y) / y


def cosine(angle: Any) -> Any:
    """Cosine of a float or an array; NaN of infinity."""
    if isinstance(angle, float):
        return math.cos(angle) if math.isfinite(angle) else NAN
    return np.cos(angle)


def norm(parts: Components) -> Any:
    """Euclidean length of a vector or quaternion."""
    total = parts[0] * parts[0]
    for part in parts[1:]:
        total += part * part
    return math.sqrt(total) if isinstance(total, float) else np.sqrt(total)


def dot(a: Components, b: Components) -> Any:
    """Scalar product."""
    total = a[0] * b[0]
    for i in range(1, len(a)):
        total = total + a[i] * b[i]
    return total


def cross(a: Components, b: Components) -> tuple[Any, Any, Any]:
    """Vector product of two vectors."""
    (ax, ay, az), (bx, by, bz) = a, b
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


# Quaternions


def normalise(q: Components) -> tuple[Any, ...]:
    """Quaternion of norm 1; NaN where the norm is zero."""
    # Divide by the largest component first: the squares of tiny or huge ones would underflow or overflow.
    if isinstance(q[0], float):
        largest = max(abs(part) for part in q)
        scaled = [part / largest for part in q] if largest else [NAN] * 4
    else:
        largest = reduce(np.maximum, [np.abs(part) for part in q])
        with np.errstate(invalid="ignore", divide="ignore"):
            scaled = [part / largest for part in q]
    length = norm(scaled)
    return tuple(part / length for part in scaled)


def conjugate(q: Components) -> tuple[Any, Any, Any, Any]:
    """Quaternion with the vector part negated: the inverse rotation of a unit quaternion."""
    x, y, z, w = q
    return -x, -y, -z, w


def multiply(p: Components, q: Components) -> tuple[Any, Any, Any, Any]:
    """Hamilton product: ``q_a_c = multiply(q_a_b, q_b_c)``, `q` rotates first."""
    (px, py, pz, pw), (qx, qy, qz, qw) = p, q
    return (
        pw * qx + px * qw + py * qz - pz * qy,
        pw * qy - px * qz + py * qw + pz * qx,
        pw * qz + px * qy - py * qx + pz * qw,
        pw * qw - px * qx - py * qy - pz * qz,
    )


def rotate(q: Components, vector: Components) -> tuple[Any, Any, Any]:
    """Rotate a vector by a unit quaternion."""
    x, y, z, w = q
    vx, vy, vz = vector
    ax, ay, az = (2.0 * part for part in cross((x, y, z), vector))
    bx, by, bz = cross((x, y, z), (ax, ay, az))
    return vx + w * ax + bx, vy + w * ay + by, vz + w * az + bz


def angle_between(p: Components, q: Components) -> Any:
    """Angle in [0, pi] between two unit quaternions, by arctan, which is exact for small angles."""
    x, y, z, w = multiply(conjugate(p), q)
    return 2.0 * np.arctan2(norm((x, y, z)), np.abs(w))


def slerp_weights(p: Components, q: Components, fraction: Any) -> tuple[Any, Any]:
    """Weights of two unit quaternions, less than 180 degrees apart, for slerp at a fraction between them."""
    (ax, ay, az, aw), (bx, by, bz, bw) = p, q
    # arctan2 is accurate for nearly equal attitudes; arccos of the dot product loses half of the digits.
    near, far = norm((bx - ax, by - ay, bz - az, bw - aw)), norm((bx + ax, by + ay, bz + az, bw + aw))
    angle = 2.0 * (math.atan2 if isinstance(near, float) else np.arctan2)(near, far) / math.pi
    # sin((1-s) a) / sin(a), written with sinc, which is smooth at a = 0.
    whole, rest = sinc(angle), 1.0 - fraction
    return rest * sinc(rest * angle) / whole, fraction * sinc(fraction * angle) / whole


def slerp(p: Components, q: Components, fraction: Any) -> tuple[Any, ...]:
    """Attitude between two unit quaternions at constant rate along the shorter arc."""
    sign = choose(dot(p, q) < 0, -1.0, 1.0)
    q = [sign * part for part in q]
    first, second = slerp_weights(p, q, fraction)
    return normalise([first * a + second * b for a, b in zip(p, q, strict=True)])


# Matrices


def skew(vector: Components) -> tuple[Any, ...]:
    """Elements of the cross-product matrix: ``skew(a) @ b = a x b``."""
    x, y, z = vector
    return 0.0, -z, y, z, 0.0, -x, -y, x, 0.0


def matrix_from_quaternion(q: Components) -> tuple[Any, ...]:
    """Elements of the rotation matrix of a unit quaternion."""
    x, y, z, w = q
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz, xy, xz, yz = x * x2, y * y2, z * z2, x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return (
        *(1.0 - (yy + zz), xy - wz, xz + wy),
        *(xy + wz, 1.0 - (xx + zz), yz - wx),
        *(xz - wy, yz + wx, 1.0 - (xx + yy)),
    )


def quaternion_from_matrix(elements: Components) -> tuple[Any, ...]:
    """Unit quaternion with w >= 0 of a rotation matrix."""
    xx, r01, r02, r10, yy, r12, r20, r21, zz = elements
    xy, xz, yz = r10 + r01, r02 + r20, r21 + r12
    xw, yw, zw = r21 - r12, r02 - r20, r10 - r01
    # Row i is 4 q_i q; the row with the largest diagonal is never near zero (Shepperd 1978).
    diagonal = [1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz, 1 + xx + yy + zz]
    rows = [
        [diagonal[0], xy, xz, xw],
        [xy, diagonal[1], yz, yw],
        [xz, yz, diagonal[2], zw],
        [xw, yw, zw, diagonal[3]],
    ]
    if isinstance(xx, float):
        row = rows[diagonal.index(max(diagonal))]
    else:
        best = np.argmax(diagonal, axis=0)
        row = [np.choose(best, column) for column in zip(*rows, strict=True)]
    return with_positive_w(normalise(row))


def with_positive_w(q: Components) -> tuple[Any, ...]:
    """Return the quaternion of the same rotation with w >= 0."""
    sign = choose(q[3] < 0, -1.0, 1.0)
    return tuple(sign * part for part in q)


# Rotation vectors


def quaternion_from_rotation_vector(vector: Components) -> tuple[Any, ...]:
    """Exponential map: unit quaternion of a rotation vector, axis times angle in rad."""
    angle = norm(vector)
    scale = 0.5 * sinc(angle / (2 * math.pi))
    return (*(scale * part for part in vector), cosine(angle / 2))


def rotation_vector_from_quaternion(q: Components) -> tuple[Any, Any, Any]:
    """Logarithm: rotation vector, no longer than pi, of a unit quaternion."""
    x, y, z, w = with_positive_w(q)
    sine = norm((x, y, z))
    zero = sine == 0
    scale = choose(zero, 2.0, 2.0 * np.arctan2(sine, w) / choose(zero, 1.0, sine))
    return x * scale, y * scale, z * scale


def left_jacobian_terms(angle: Any) -> tuple[Any, Any]:
    """Factors of ``[v]x`` and ``[v]x [v]x`` in the left Jacobian: (1 - cos a) / a^2 and (a - sin a) / a^3."""
    small = angle < SMALL_ANGLE_RAD
    safe = choose(small, 1.0, angle)
    half = sinc(angle / (2 * math.pi))
    return 0.5 * (half * half), choose(small, 1 / 6, (safe - np.sin(safe)) / np.power(safe, 3))


def inverse_left_jacobian_term(angle: Any) -> Any:
    """Factor of ``[v]x [v]x`` in the inverse of the left Jacobian."""
    small = angle < SMALL_ANGLE_RAD
    safe = choose(small, 1.0, angle)
    return choose(small, 1 / 12, (1 - safe / 2 / np.tan(safe / 2)) / (safe * safe))
