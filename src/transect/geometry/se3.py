"""Rigid transforms ``T_a_b``: 4x4 matrices (..., 4, 4) that take points of b to a.

Twists and 6x6 covariances are ordered translation first (x, y, z, then the rotation vector), as in ROS.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import rotations
from transect.geometry.array_checks import floats


def from_matrix(rotation: ArrayLike, translation: ArrayLike) -> Floats:
    """Transforms (..., 4, 4) from rotation matrices (..., 3, 3) and translations (..., 3) in metres."""
    r = floats("rotation matrices", rotation, (..., 3, 3))
    t = floats("translations", translation, (..., 3))
    transforms = np.zeros((*_leading(r.shape[:-2], t.shape[:-1]), 4, 4))
    transforms[..., :3, :3] = r
    transforms[..., :3, 3] = t
    transforms[..., 3, 3] = 1.0
    return transforms


def from_quaternion(quaternion: ArrayLike, translation: ArrayLike) -> Floats:
    """Transforms (..., 4, 4) from quaternions (..., 4) and translations (..., 3) in metres."""
    return from_matrix(rotations.matrix_from_quaternion(quaternion), translation)


def to_quaternion(transforms: ArrayLike) -> tuple[Floats, Floats]:
    """Quaternions (..., 4) and translations (..., 3) of transforms (..., 4, 4)."""
    r, t = _parts(transforms)
    return rotations.quaternion_from_matrix(r), t.copy()


def invert(transforms: ArrayLike) -> Floats:
    """``T_b_a`` from ``T_a_b``, both (..., 4, 4)."""
    r, t = _parts(transforms)
    back = np.swapaxes(r, -1, -2)
    return from_matrix(back, -_rotate(back, t))


def compose(*transforms: ArrayLike) -> Floats:
    """``T_a_d`` from ``T_a_b, T_b_c, T_c_d``: the product of transforms (..., 4, 4), at least one."""
    factors = [floats("transforms", each, (..., 4, 4)) for each in transforms]
    if not factors:
        raise GeometryError("expected at least one transform to compose, got none")
    return reduce(np.matmul, factors)


def apply(transforms: ArrayLike, points: ArrayLike) -> Floats:
    """Points (..., 3) of b taken to a by ``T_a_b``.

    One transform (4, 4) is applied to any number of points (n, 3); n transforms (n, 4, 4) to one point each.
    For n clouds, add an axis for the points to the transforms: (n, 1, 4, 4) with (n, m, 3).
    """
    r, t = _parts(transforms)
    p = floats("points", points, (..., 3))
    if r.ndim == 2:
        return p @ r.T + t
    _leading(r.shape[:-2], p.shape[:-1])
    return _rotate(r, p) + t


def exp(twists: ArrayLike) -> Floats:
    """Transforms (..., 4, 4) of twists (..., 6): translation part in m, then rotation vector in rad."""
    xi = floats("twists", twists, (..., 6))
    rho, phi = xi[..., :3], xi[..., 3:]
    return from_matrix(rotations.matrix_from_rotation_vector(phi), _rotate(rotations.left_jacobian(phi), rho))


def log(transforms: ArrayLike) -> Floats:
    """Twists (..., 6) of transforms (..., 4, 4), the inverse of `exp`; at most pi of rotation."""
    r, t = _parts(transforms)
    phi = rotations.rotation_vector_from_matrix(r)
    return np.concatenate([_rotate(rotations.inverse_left_jacobian(phi), t), phi], axis=-1)


def adjoint(transforms: ArrayLike) -> Floats:
    """Matrices (..., 6, 6) that take twists of b to a: ``exp(adjoint(T) @ xi) = T exp(xi) T^-1``."""
    r, t = _parts(transforms)
    matrix = np.zeros((*r.shape[:-2], 6, 6))
    matrix[..., :3, :3] = matrix[..., 3:, 3:] = r
    matrix[..., :3, 3:] = rotations.skew(t) @ r
    return matrix


def transform_covariance(transforms: ArrayLike, covariance: ArrayLike) -> Floats:
    """Transform the covariance (..., 6, 6) of a twist in b to a: ``Ad C Ad^T`` with ``T_a_b``.

    The twist is a perturbation of a pose in the frame b (m, then rad).
    """
    ad = adjoint(transforms)
    return ad @ floats("covariance", covariance, (..., 6, 6)) @ np.swapaxes(ad, -1, -2)


def relative_motions(transforms: ArrayLike, step: int = 1) -> Floats:
    """Motion from each pose to the one `step` later, in the frame of the earlier pose.

    Parameters
    ----------
    transforms : (n, 4, 4)
        Poses ``T_world_body`` in order.
    step : int
        Difference of the indices, at least 1.

    Returns
    -------
    (n - step, 4, 4), or (0, 4, 4) if there are not enough poses.
    """
    poses = floats("poses", transforms, ("n", 4, 4))
    if step < 1:
        raise GeometryError(f"expected a step of at least 1, got {step}")
    return invert(poses[:-step]) @ poses[step:]


def _parts(transforms: ArrayLike) -> tuple[Floats, Floats]:
    matrices = floats("transforms", transforms, (..., 4, 4))
    return matrices[..., :3, :3], matrices[..., :3, 3]


def _rotate(matrices: Floats, vectors: Floats) -> Floats:
    return np.einsum("...ij,...j->...i", matrices, vectors)


def _leading(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    if first == second:
        return first
    try:
        return np.broadcast_shapes(first, second)
    except ValueError as error:
        raise GeometryError(
            f"leading shapes {first} and {second} cannot be broadcast", why=str(error)
        ) from error
