"""The transform that brings one set of points onto another, pair by pair.

``source`` and ``target`` are (n, 3) in metres, row i of one belongs to row i of the other. Rows with NaN on
either side are left out. The answer takes source points to the target frame: ``T_target_source``.

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

FLAT = 1e-6
"""A set whose second extent is this much smaller than its first is a line; rounding alone makes 1e-9."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """``p_target = scale * rotation @ p_source + translation``.

    Attributes
    ----------
    rotation : (3, 3)
    translation : (3,)
        Metres, in the target frame.
    scale : float
        1 unless it was asked for.
    rmse : float
        Root mean square distance in metres that is left between the pairs.
    pairs : int
        How many pairs were used.
    """

    rotation: Floats
    translation: Floats
    scale: float
    rmse: float
    pairs: int

    @property
    def matrix(self) -> Floats:
        """The alignment as one (4, 4) matrix; with a scale it is a similarity, not a rigid transform."""
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
        Rotation and translation; with scale too; rotation about z only; first point onto first point; of
        points on a line, which leave the roll about it open.
    algorithm : "umeyama", "horn"
        For the first two modes.

    Raises
    ------
    GeometryError
        If the points do not determine the answer: too few, or all on a line.
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
    a, b = _pairs(source, target, least=3)
    a_centred, b_centred = _centre(a, b)
    return _finish(a, b, rotations.nearest_rotation(b_centred.T @ a_centred), with_scale)


def horn(source: ArrayLike, target: ArrayLike, *, with_scale: bool = False) -> Alignment:
    """Least-squares alignment of (n, 3) onto (n, 3) by a unit quaternion (Horn, JOSA A 4(4), 1987).

    The scale is the one that minimises the distances in the target frame (Horn's asymmetric case), so that it
    is Umeyama's.
    """
    a, b = _pairs(source, target, least=3)
    a_centred, b_centred = _centre(a, b)
    s = a_centred.T @ b_centred
    turn = np.array([s[1, 2] - s[2, 1], s[2, 0] - s[0, 2], s[0, 1] - s[1, 0]])
    n = np.empty((4, 4))  # Horn's N, rows and columns in the order x, y, z, w
    n[:3, :3] = s + s.T - np.trace(s) * np.eye(3)
    n[:3, 3] = n[3, :3] = turn
    n[3, 3] = np.trace(s)
    return _finish(a, b, rotations.matrix_from_quaternion(np.linalg.eigh(n)[1][:, -1]), with_scale)


def yaw(source: ArrayLike, target: ArrayLike) -> Alignment:
    """Least-squares alignment of (n, 3) onto (n, 3) by a turn about z and a translation.

    For frames that share the vertical, as those of inertial sensors do. Two pairs apart in x, y are enough.
    """
    a, b = _pairs(source, target, least=2)
    a_flat, b_flat = _about_mean(a[:, :2]), _about_mean(b[:, :2])
    sine = np.sum(a_flat[:, 0] * b_flat[:, 1] - a_flat[:, 1] * b_flat[:, 0])
    cosine = np.sum(a_flat * b_flat)
    if np.hypot(sine, cosine) <= FLAT * np.linalg.norm(a_flat) * np.linalg.norm(b_flat):
        raise GeometryError(
            "the yaw is not determined",
            why="the points stand above each other, or source and target do not move together",
        )
    turn = rotations.matrix_from_euler("z", [np.arctan2(sine, cosine)])
    return _finish(a, b, turn, with_scale=False)


def line(source: ArrayLike, target: ArrayLike) -> Alignment:
    """Least-squares alignment of (n, 3) onto (n, 3) by the smallest turn from one direction to the other.

    For positions along a line: they determine its direction, and leave the roll about it open.
    """
    a, b = _pairs(source, target, least=2)
    a_centred, b_centred = _about_mean(a), _about_mean(b)
    left, strength, right = np.linalg.svd(b_centred.T @ a_centred)
    if strength[0] <= FLAT**2 * np.linalg.norm(a_centred) * np.linalg.norm(b_centred):
        raise GeometryError(
            "the direction is not determined",
            why="the points are the same, or source and target do not move together",
        )
    turn = rotations.matrix_from_quaternion(_smallest_turn(right[0], left[:, 0]))
    return _finish(a, b, turn, with_scale=False)


def _smallest_turn(source: Floats, target: Floats) -> Floats:
    """Return the quaternion (4,) that takes one unit vector to another about the axis across both."""
    q = np.append(np.cross(source, target), 1.0 + source @ target)
    if np.linalg.norm(q) < FLAT:  # opposite directions: half a turn about any axis across
        q = np.append(np.cross(source, np.eye(3)[np.argmin(np.abs(source))]), 0.0)
    return q / np.linalg.norm(q)


def origin(source: ArrayLike, target: ArrayLike) -> Alignment:
    """Translation that puts the first measured pair of (n, 3) and (n, 3) together; nothing is turned."""
    a, b = _pairs(source, target, least=1)
    return _alignment(a, b, np.eye(3), b[0] - a[0], scale=1.0)


def first_pose(source: ArrayLike, target: ArrayLike) -> Floats:
    """``T_target_source`` (4, 4) that puts the first of the poses (n, 4, 4) onto the first of the others."""
    a, b = floats("source poses", source, ("n", 4, 4)), floats("target poses", target, ("n", 4, 4))
    if not (len(a) and len(b)):
        raise GeometryError(f"expected at least one pose on each side, got {a.shape} and {b.shape}")
    return b[0] @ se3.invert(a[0])


def _pairs(source: ArrayLike, target: ArrayLike, least: int) -> tuple[Floats, Floats]:
    """Rows that are measured on both sides."""
    a, b = floats("source", source, ("n", 3)), floats("target", target, ("n", 3))
    same_length(source=a, target=b)
    if len(a) >= least and np.isfinite(a).all() and np.isfinite(b).all():
        return a, b
    measured = measured_rows(a) & measured_rows(b)
    if np.count_nonzero(measured) < least:
        raise GeometryError(
            f"expected at least {least} pairs of points to align, got {np.count_nonzero(measured)}",
            why=f"{len(a)} pairs came, the others have NaN",
        )
    return a[measured], b[measured]


def _centre(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Both sets about their means; refused unless they fix a rotation."""
    centred = _about_mean(a), _about_mean(b)
    for name, points in zip(("source", "target"), centred, strict=True):
        extent = np.sqrt(np.maximum(np.linalg.eigvalsh(points.T @ points)[::-1], 0.0))
        if extent[1] <= FLAT * extent[0]:
            shape = "are the same point" if extent[0] == 0 else "lie on a line"
            raise GeometryError(
                "the rotation is not determined",
                why=f"all {len(points)} {name} points {shape} (extents {extent[0]:.3g}, {extent[1]:.3g} m)",
                hint="align by line, yaw or origin, or take a longer piece with a turn in it",
            )
    common = np.linalg.svd(centred[0].T @ centred[1], compute_uv=False)
    if common[1] <= FLAT**2 * common[0]:
        raise GeometryError("the rotation is not determined", why="source and target do not move together")
    return centred


def _about_mean(points: Floats) -> Floats:
    # First about the first point: equal points become exact zeros, also with the seven digits of UTM.
    moved = points - points[0]
    moved -= np.full(len(moved), 1 / len(moved)) @ moved  # three columns: quicker than their mean
    return moved


def _finish(a: Floats, b: Floats, rotation: Floats, with_scale: bool) -> Alignment:
    """Best scale and translation for a known rotation."""
    scale = _scale(_about_mean(a) @ rotation.T, _about_mean(b)) if with_scale else 1.0
    return _alignment(a, b, rotation, b.mean(axis=0) - scale * rotation @ a.mean(axis=0), scale)


def _scale(turned: Floats, target: Floats) -> float:
    return float(np.sum(turned * target) / np.sum(turned**2))


def _alignment(a: Floats, b: Floats, rotation: Floats, translation: Floats, scale: float) -> Alignment:
    # einsum, not matmul: a library's threads cost more than they bring for three columns.
    left = b - (np.einsum("nj,ij->ni", a, scale * rotation) + translation)
    rmse = float(np.sqrt(np.einsum("ni,ni->", left, left) / len(left)))
    return Alignment(rotation, translation, scale, rmse, len(a))
