"""How a planar laser and a camera stand, from a board that both see (Pless and Zhang, IROS 2004).

The camera tells the plane of the board, the laser points on it: ``n . (R p + t) = d``. With p in the plane
z = 0 of the laser this is linear in the two first columns of R and in t, which gives a start; then the
distances of all points to their planes are made least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.geometry import robust, rotations, se3

FEWEST = 5
"""Boards: each gives two equations, and the closed form has nine unknowns."""
ITERATIONS, AT_REST = 50, 1e-9
TRIALS, TRIAL_STEPS = 30, 5
"""Draws of `FEWEST` boards, and steps of their fits; if one board in five is wrong, no draw is free of wrong
ones in six of a million cases."""
OFF = 5.0
"""Boards that miss by more than this many times the median are left out: the points are of something else."""
SAME_PLACE = 0.1, 0.1
"""m and rad: a board that moved and turned less since the last sighting is held still."""
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
        Root mean square distance of laser points to the planes of the boards that were used, metres.
    errors : (m,) array
        The same for each sighting, also those that were not used.
    used : (m,) array of bool
        Which sightings were used.
    places : int
        At how many different places the board was held in them.
    sigma : (6,) array
        Standard deviations: m along the camera's axes, then rad about them. By leaving out each place of the
        board in turn: what is wrong with a plane is the same for all points and sightings there.
    """

    T_camera_laser: Floats
    rms: float
    errors: Floats
    used: Mask
    places: int
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
    errors = _errors(_start(sightings), sightings)
    used = errors <= OFF * np.median(errors)
    kept = [each for each, good in zip(sightings, used, strict=True) if good]
    T_camera_laser = _fit(kept)
    place = _number_places(kept)
    residual, _ = _residuals(T_camera_laser, *_equations(kept))
    return Mount(
        T_camera_laser,
        float(np.sqrt(np.mean(residual**2))),
        _errors(T_camera_laser, sightings),
        used,
        len(np.unique(place)),
        _deviations(T_camera_laser, kept, place),
    )


def _start(sightings: Sequence[Sighting]) -> Floats:
    """Return T_camera_laser (4, 4) by those boards that leave the least median error of all (LMedS).

    A board whose points are of something else spoils a fit of few boards.
    """
    _closed_form(*_equations(sightings))  # refuses boards that are all alike
    best = _fit(sightings)
    least = float(np.median(_errors(best, sightings)))
    rng = np.random.default_rng(len(sightings))
    for _ in range(TRIALS if len(sightings) > FEWEST else 0):
        some = [sightings[i] for i in rng.choice(len(sightings), FEWEST, replace=False)]
        try:
            tried = _fit(some, steps=TRIAL_STEPS)
        except (GeometryError, np.linalg.LinAlgError):
            continue
        error = float(np.median(_errors(tried, sightings)))
        if error < least:
            best, least = tried, error
    return best


def _equations(sightings: Sequence[Sighting]) -> tuple[Floats, Floats, Floats]:
    """Return normals (n, 3) and distances (n,) of the planes of all points, and the points (n, 3)."""
    which = np.repeat(np.arange(len(sightings)), [len(each.points) for each in sightings])
    flat = np.concatenate([each.points for each in sightings])
    return (
        np.stack([each.normal for each in sightings])[which],
        np.array([each.distance for each in sightings])[which],
        np.column_stack([flat, np.zeros(len(flat))]),
    )


def _fit(sightings: Sequence[Sighting], mount: Floats | None = None, steps: int = ITERATIONS) -> Floats:
    """Return T_camera_laser (4, 4) by all points, of which those far from their planes count for less."""
    normals, distances, points = _equations(sightings)
    if mount is None:
        mount = _closed_form(normals, distances, points)
    for _ in range(steps):
        residual, slopes = _residuals(mount, normals, distances, points)
        root = np.sqrt(_weights(residual))
        step = -np.linalg.lstsq(slopes * root[:, None], residual * root)[0]
        mount = se3.exp(step) @ mount
        if np.abs(step).max() < AT_REST:
            break
    return mount


def _errors(mount: Floats, sightings: Sequence[Sighting]) -> Floats:
    """Return the root mean square distance (m,) of the points of each sighting to its plane, metres."""
    misses = [_residuals(mount, *_equations([each]))[0] for each in sightings]
    return np.array([np.sqrt(np.mean(miss**2)) for miss in misses])


def _number_places(sightings: Sequence[Sighting]) -> Ints:
    """Return the number (m,) of the place at which the board was held in each sighting, from 0 on."""
    numbers = [0]
    for before, now in pairwise(sightings):
        moved = np.linalg.norm(now.points.mean(axis=0) - before.points.mean(axis=0))
        turned = np.linalg.norm(now.normal - before.normal)
        numbers.append(numbers[-1] + int(moved > SAME_PLACE[0] or turned > SAME_PLACE[1]))
    return np.array(numbers, np.int64)


def _closed_form(normals: Floats, distances: Floats, points: Floats) -> Floats:
    """Return a first T_camera_laser (4, 4): H = [r1 r2 t] by least squares, its rotation made one."""
    flat = points[:, :2]
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


def _deviations(mount: Floats, sightings: Sequence[Sighting], place: Ints) -> Floats:
    """Return standard deviations (6,) by the jackknife over places (m,) of the board; NaN for few places."""
    numbers = np.unique(place)
    if len(numbers) <= FEWEST:
        return np.full(6, np.nan)
    others = [
        _fit([each for each, at in zip(sightings, place, strict=True) if at != number], mount)
        for number in numbers
    ]
    apart = np.array([se3.log(other @ se3.invert(mount)) for other in others])
    return np.sqrt((1 - 1 / len(numbers)) * np.sum(apart**2, axis=0))
