"""How a planar laser and a camera stand, from a board that both see (Pless and Zhang, IROS 2004).

The camera tells the plane of the board, the laser points on it: ``n . (R p + t) = d``. With p in the plane
z = 0 of the laser this is linear in the two first columns of R and in t, which gives a start; then the
distances of all points to their planes are made least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import robust, rotations, se3

FEWEST = 5
"""Boards: each gives two equations, and the closed form has nine unknowns."""
ITERATIONS, AT_REST = 50, 1e-9
ILL = 1e-6
"""Ratio of singular values below which the boards do not fix all of the transform: they are parallel."""


@dataclass(frozen=True, eq=False)
class Sighting:
    """One place of the board.

    Attributes
    ----------
    normal : (3,) array
        Unit vector from the camera to the plane of the board, in the camera frame.
    distance : float
        Of the camera from that plane, metres.
    points : (n, 2) array
        Laser points on the board, x and y in the laser's plane, metres.
    """

    normal: Floats
    distance: float
    points: Floats


@dataclass(frozen=True, eq=False)
class Mount:
    """How laser and camera stand.

    Attributes
    ----------
    T_camera_laser : (4, 4) array
    rms : float
        Root mean square distance of laser points to the board, metres.
    errors : (m,) array
        The same for each board.
    sigma : (6,) array
        Standard deviations: m along the camera's axes, then rad about them.
    """

    T_camera_laser: Floats
    rms: float
    errors: Floats
    sigma: Floats


def mount_from_boards(sightings: Sequence[Sighting]) -> Mount:
    """Find how a planar laser and a camera stand from at least `FEWEST` boards, tilted in different ways.

    Raises
    ------
    GeometryError
        If there are too few boards, or they are too much alike to fix the transform.
    """
    if len(sightings) < FEWEST:
        raise GeometryError(f"expected at least {FEWEST} boards, got {len(sightings)}")
    which = np.repeat(np.arange(len(sightings)), [len(each.points) for each in sightings])
    normals = np.stack([each.normal for each in sightings])[which]
    distances = np.array([each.distance for each in sightings])[which]
    flat = np.concatenate([each.points for each in sightings])
    points = np.column_stack([flat, np.zeros(len(flat))])
    mount = _closed_form(normals, distances, flat)
    for _ in range(ITERATIONS):
        residual, slopes = _residuals(mount, normals, distances, points)
        root = np.sqrt(_weights(residual))
        step = -np.linalg.lstsq(slopes * root[:, None], residual * root)[0]
        mount = se3.exp(step) @ mount
        if np.abs(step).max() < AT_REST:
            break
    residual, slopes = _residuals(mount, normals, distances, points)
    errors = np.array([np.sqrt(np.mean(residual[which == i] ** 2)) for i in range(len(sightings))])
    return Mount(mount, float(np.sqrt(np.mean(residual**2))), errors, _deviations(residual, slopes))


def _closed_form(normals: Floats, distances: Floats, flat: Floats) -> Floats:
    """Return a first T_camera_laser (4, 4): H = [r1 r2 t] by least squares, its rotation made one."""
    across = np.column_stack([flat, np.ones(len(flat))])
    rows = np.einsum("ni,nj->nij", normals, across).reshape(-1, 9)
    size = np.linalg.svd(rows, compute_uv=False)
    if size[-1] < ILL * size[0]:
        raise GeometryError(
            "the boards do not determine how laser and camera stand",
            why=f"they are nearly parallel (singular values {size[0]:.3g} to {size[-1]:.3g})",
            hint="tilt the board in other directions",
        )
    H = np.linalg.lstsq(rows, distances)[0].reshape(3, 3)
    turn = np.column_stack([H[:, 0], H[:, 1], np.cross(H[:, 0], H[:, 1])])
    return se3.from_matrix(rotations.nearest_rotation(turn), H[:, 2])


def _residuals(mount: Floats, normals: Floats, distances: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return distances (n,) of points to their planes in metres, and derivatives (n, 6) by a small motion."""
    seen = se3.apply(mount, points)
    return np.sum(normals * seen, axis=1) - distances, np.hstack([normals, np.cross(seen, normals)])


def _weights(residual: Floats) -> Floats:
    return robust.cauchy_weights(residual / max(float(robust.nmad(residual)), 1e-9))


def _deviations(residual: Floats, slopes: Floats) -> Floats:
    weight = _weights(residual)
    variance = float(np.sum(weight * residual**2) / max(np.sum(weight) - 6, 1.0))
    return np.sqrt(variance * np.diag(np.linalg.inv((slopes * weight[:, None]).T @ slopes)))
