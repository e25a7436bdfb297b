"""Least-squares alignment of corresponding points.

``source`` and ``target`` are (n, 3) in metres; row i of one corresponds to row i of the other. Rows with NaN
on either side are left out. The result takes source points to the target frame: ``T_target_source``.

Horn (1987, unit quaternions) and Umeyama (1991, singular values) minimise the same sum of squares and agree
to rounding; having both lets one check the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import rotations, se3
from transect.geometry.array_checks import floats, measured_rows, same_length

Mode = Literal["se3", "sim3", "yaw", "origin", "line"]
Algorithm = Literal["umeyama", "horn"]

MIN_EXTENT_RATIO = 1e-6
"""Ratio of the second to the first extent below which points are collinear; rounding gives 1e-9."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """``p_target = scale * rotation @ p_source + translation``."""

    rotation: Floats  # (3, 3)
    translation: Floats  # (3,), m, in the target frame
    scale: float  # 1 unless it was estimated
    rmse: float  # root mean square residual of the pairs, m
    pairs: int  # number of pairs used

    @property
    def matrix(self) -> Floats:
        """The alignment as a (4, 4) matrix; with a scale it is a similarity, not a rigid transform."""
        return se3.from_matrix(self.scale * self.rotation, self.translation)

    def apply(self, points: ArrayLike) -> Floats:
        """Source points (..., 3) in the target frame."""
        return se3.apply(self.matrix, points)


def align(
    source: ArrayLike, target: ArrayLike, mode: Mode = "se3", algorithm: Algorithm = "umeyama"
) -> Alignment:
    """Best alignment of `source` onto `target`, both (n, 3).

    Parameters
    ----------
    mode : "se3", "sim3", "yaw", "origin", "line"
        Rotation and translation; rotation, translation and scale; rotation about z and translation;
        translation of the first point onto the first point; smallest rotation, for collinear points.
    algorithm : "umeyama", "horn"
        Used by "se3" and "sim3".

    Raises
    ------
    GeometryError
        If the alignment is not determined: too few points, or collinear points.
    """
    if mode not in get_args(Mode) or algorithm not in get_args(Algorithm):
        raise GeometryError(
            f"unknown alignment {mode!r} by {algorithm!r}",
            why=f"modes are {', '.join(get_args(Mode))}; algorithms {', '.join(get_args(Algorithm))}",
        )
    if mode == "yaw":
        return yaw(source, target)
    if mode == "line":
        return line(source, target)
    if mode == "origin":
        return origin(source, target)
    return (horn if algorithm == "horn" else umeyama)(source, target, with_scale=mode == "sim3")


def umeyama(source: ArrayLike, target: ArrayLike, *, with_scale: bool = False) -> Alignment:
    """Least-squares alignment of (n, 3) onto (n, 3) by singular values (Umeyama, PAMI 13(4), 1991)."""
    a, b = _measured_pairs(source, target, min_pairs=3)
    a_centred, b_centred = _centre(a, b)
    return _finish(a, b, rotations.nearest_rotation(b_centred.T @ a_centred), with_scale)


def horn(source: ArrayLike, target: ArrayLike, *, with_scale: bool = False) -> Alignment:
    """Least-squares alignment of (n, 3) onto (n, 3) by a unit quaternion (Horn, JOSA A 4(4), 1987).

    The scale minimises the distances in the target frame (Horn's asymmetric case) and equals Umeyama's.
    """
    a, b = _measured_pairs(source, target, min_pairs=3)
    a_centred, b_centred = _centre(a, b)
    s = a_centred.T @ b_centred
    n = np.empty((4, 4))  # Horn's N, rows and columns in the order x, y, z, w
    n[:3, :3] = s + s.T - np.trace(s) * np.eye(3)
    n[:3, 3] = n[3, :3] = s[1, 2] - s[2, 1], s[2, 0] - s[0, 2], s[0, 1] - s[1, 0]
    n[3, 3] = np.trace(s)
    return _finish(a, b, rotations.matrix_from_quaternion(np.linalg.eigh(n)[1][:, -1]), with_scale)


def yaw(source: ArrayLike, target: ArrayLike) -> Alignment:
    """Least-squares alignment of (n, 3) onto (n, 3) by a rotation about z and a translation.

    For frames that share the vertical, e.g. of inertial sensors. Needs two pairs with different x, y.
    """
    a, b = _measured_pairs(source, target, min_pairs=2)
    a_flat, b_flat = _about_mean(a[:, :2]), _about_mean(b[:, :2])
    sine = np.sum(a_flat[:, 0] * b_flat[:, 1] - a_flat[:, 1] * b_flat[:, 0])
    cosine = np.sum(a_flat * b_flat)
    if np.hypot(sine, cosine) <= MIN_EXTENT_RATIO * np.linalg.norm(a_flat) * np.linalg.norm(b_flat):
        raise GeometryError(
            "the yaw is not determined",
            why="the points have the same x and y, or source and target are not correlated",
        )
    rotation = rotations.matrix_from_euler("z", [np.arctan2(sine, cosine)])
    return _finish(a, b, rotation, with_scale=False)


def line(source: ArrayLike, target: ArrayLike) -> Alignment:
    """Least-squares alignment of (n, 3) onto (n, 3) by the smallest rotation between the main directions.

    For collinear positions: they determine the direction of the line, but not the rotation about it.
    """
    a, b = _measured_pairs(source, target, min_pairs=2)
    a_centred, b_centred = _about_mean(a), _about_mean(b)
    left, strength, right = np.linalg.svd(b_centred.T @ a_centred)
    if strength[0] <= MIN_EXTENT_RATIO**2 * np.linalg.norm(a_centred) * np.linalg.norm(b_centred):
        raise GeometryError(
            "the direction is not determined",
            why="the points are the same, or source and target are not correlated",
        )
    rotation = rotations.matrix_from_quaternion(_smallest_rotation(right[0], left[:, 0]))
    return _finish(a, b, rotation, with_scale=False)


def _smallest_rotation(source: Floats, target: Floats) -> Floats:
    """Return the quaternion (4,) of the smallest rotation from one unit vector to another."""
    q = np.append(np.cross(source, target), 1.0 + source @ target)
    if np.linalg.norm(q) < MIN_EXTENT_RATIO:  # opposite directions: half a turn about a perpendicular axis
        q = np.append(np.cross(source, np.eye(3)[np.argmin(np.abs(source))]), 0.0)
    return q / np.linalg.norm(q)


def origin(source: ArrayLike, target: ArrayLike) -> Alignment:
    """Translation (no rotation) that maps the first measured point of (n, 3) onto its counterpart."""
    a, b = _measured_pairs(source, target, min_pairs=1)
    return _alignment(a, b, np.eye(3), b[0] - a[0], scale=1.0)


def first_pose(source: ArrayLike, target: ArrayLike) -> Floats:
    """``T_target_source`` (4, 4) that maps the first source pose (n, 4, 4) onto the first target pose."""
    a, b = floats("source poses", source, ("n", 4, 4)), floats("target poses", target, ("n", 4, 4))
    if not (len(a) and len(b)):
        raise GeometryError(f"expected at least one pose on each side, got {a.shape} and {b.shape}")
    return b[0] @ se3.invert(a[0])


def _measured_pairs(source: ArrayLike, target: ArrayLike, min_pairs: int) -> tuple[Floats, Floats]:
    """Rows that are measured on both sides."""
    a, b = floats("source", source, ("n", 3)), floats("target", target, ("n", 3))
    same_length(source=a, target=b)
    if len(a) >= min_pairs and np.isfinite(a).all() and np.isfinite(b).all():
        return a, b
    measured = measured_rows(a) & measured_rows(b)
    if np.count_nonzero(measured) < min_pairs:
        raise GeometryError(
            f"expected at least {min_pairs} pairs of points to align, got {np.count_nonzero(measured)}",
            why=f"{len(a)} pairs were given, the others have NaN",
        )
    return a[measured], b[measured]


def _centre(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Subtract the means of both sets; an error unless they determine a rotation."""
    centred = _about_mean(a), _about_mean(b)
    for name, points in zip(("source", "target"), centred, strict=True):
        extent = np.sqrt(np.maximum(np.linalg.eigvalsh(points.T @ points)[::-1], 0.0))
        if extent[1] <= MIN_EXTENT_RATIO * extent[0]:
            shape = "are the same point" if extent[0] == 0 else "are collinear"
            raise GeometryError(
                "the rotation is not determined",
                why=f"all {len(points)} {name} points {shape} (extents {extent[0]:.3g}, {extent[1]:.3g} m)",
                hint="align by line, yaw or origin, or use a longer piece with a turn in it",
            )
    common = np.linalg.svd(centred[0].T @ centred[1], compute_uv=False)
    if common[1] <= MIN_EXTENT_RATIO**2 * common[0]:
        raise GeometryError("the rotation is not determined", why="source and target are not correlated")
    return centred


def _about_mean(points: Floats) -> Floats:
    # Subtract the first point first: equal points become exact zeros, also with seven-digit UTM coordinates.
    shifted = points - points[0]
    shifted -= np.full(len(shifted), 1 / len(shifted)) @ shifted  # faster than the mean of three columns
    return shifted


def _finish(a: Floats, b: Floats, rotation: Floats, with_scale: bool) -> Alignment:
    """Least-squares scale and translation for a known rotation."""
    scale = 1.0
    if with_scale:
        rotated = _about_mean(a) @ rotation.T
        scale = float(np.sum(rotated * _about_mean(b)) / np.sum(rotated**2))
    return _alignment(a, b, rotation, b.mean(axis=0) - scale * rotation @ a.mean(axis=0), scale)


def _alignment(a: Floats, b: Floats, rotation: Floats, translation: Floats, scale: float) -> Alignment:
    # einsum, not matmul: with three columns the overhead of BLAS threads exceeds their gain.
    residual = b - (np.einsum("nj,ij->ni", a, scale * rotation) + translation)
    rmse = float(np.sqrt(np.einsum("ni,ni->", residual, residual) / len(residual)))
    return Alignment(rotation, translation, scale, rmse, len(a))
