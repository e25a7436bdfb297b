"""Extrinsic calibration of a planar laser and a camera by a board (Pless and Zhang, IROS 2004).

The camera measures the plane of the board, the laser points on it: ``n . (R p + t) = d``. With p in the plane
z = 0 of the laser this is linear in the first two columns of R and in t, which gives an initial estimate;
then the distances of all points from their planes are minimised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.geometry import robust, rotations, se3

MIN_BOARDS = 5
"""Each gives two equations, and the closed form has nine unknowns."""


@dataclass(frozen=True)
class MountSettings:
    """Settings of the estimation of a mount."""

    max_iterations: int = 50
    step_tolerance: float = 1e-9  # m and rad
    # Random subsets of `MIN_BOARDS` boards, and iterations of their fits. If one board in five is an outlier,
    # the probability that no subset is free of outliers is 6e-6.
    subsets: int = 30
    subset_iterations: int = 5
    # Sightings whose RMS error exceeds the median by this factor are outliers: the points are not on the
    # board.
    max_error_ratio: float = 5.0
    # A board that moved and rotated less since the last sighting has the same position.
    same_position_m: float = 0.1
    same_position_rad: float = 0.1
    min_singular_ratio: float = 1e-6  # below, the boards are parallel and do not determine the transform


DEFAULT_SETTINGS = MountSettings()


@dataclass(frozen=True, eq=False)
class BoardSighting:
    """One position of the board as measured by both sensors."""

    normal: Floats  # (3,), unit vector from the camera to the plane of the board, in the camera frame
    distance: float  # m, of the camera from that plane
    points: Floats  # (n, 2) m, laser points on the board in the laser's plane


@dataclass(frozen=True, eq=False)
class LaserCameraMount:
    """The estimated transform between laser and camera."""

    T_camera_laser: Floats
    rms: float  # m, distance of laser points from the planes of the boards, without outliers
    errors: Floats  # (m,) m, RMS distance for each sighting, outliers included
    used: Mask  # (m,), which sightings were used
    positions: int  # number of different positions of the board in them
    # (6,) m along the camera's axes, then rad about them, by the jackknife over positions of the board: the
    # error of a plane is common to all points and sightings there.
    sigma: Floats


def estimate_mount(sightings: Sequence[BoardSighting]) -> LaserCameraMount:
    """Estimate the transform between a planar laser and a camera from at least `MIN_BOARDS` tilted boards.

    Raises
    ------
    GeometryError
        If there are too few boards, or if their normals do not determine the transform.
    """
    if len(sightings) < MIN_BOARDS:
        raise GeometryError(f"expected at least {MIN_BOARDS} boards, got {len(sightings)}")
    errors = _rms_per_sighting(_initial_mount(sightings), sightings)
    used = errors <= DEFAULT_SETTINGS.max_error_ratio * np.median(errors)
    inliers = [each for each, good in zip(sightings, used, strict=True) if good]
    T_camera_laser = _fit(inliers)
    position = _number_positions(inliers)
    residual, _ = _residuals(T_camera_laser, *_equations(inliers))
    return LaserCameraMount(
        T_camera_laser,
        float(np.sqrt(np.mean(residual**2))),
        _rms_per_sighting(T_camera_laser, sightings),
        used,
        len(np.unique(position)),
        _jackknife_sigmas(T_camera_laser, inliers, position),
    )


def _initial_mount(sightings: Sequence[BoardSighting]) -> Floats:
    """Return the T_camera_laser (4, 4) of the subset of boards with the least median error of all (LMedS).

    With few boards, a single outlier would spoil the fit to all of them.
    """
    _closed_form(*_equations(sightings))  # raises if all boards are parallel
    best = _fit(sightings)
    smallest_error = float(np.median(_rms_per_sighting(best, sightings)))
    rng = np.random.default_rng(len(sightings))
    for _ in range(DEFAULT_SETTINGS.subsets if len(sightings) > MIN_BOARDS else 0):
        some = [sightings[i] for i in rng.choice(len(sightings), MIN_BOARDS, replace=False)]
        try:
            tried = _fit(some, steps=DEFAULT_SETTINGS.subset_iterations)
        except (GeometryError, np.linalg.LinAlgError):
            continue
        error = float(np.median(_rms_per_sighting(tried, sightings)))
        if error < smallest_error:
            best, smallest_error = tried, error
    return best


def _equations(sightings: Sequence[BoardSighting]) -> tuple[Floats, Floats, Floats]:
    """Return normals (n, 3) and distances (n,) of the planes of all points, and the points (n, 3)."""
    board = np.repeat(np.arange(len(sightings)), [len(each.points) for each in sightings])
    flat = np.concatenate([each.points for each in sightings])
    return (
        np.stack([each.normal for each in sightings])[board],
        np.array([each.distance for each in sightings])[board],
        np.column_stack([flat, np.zeros(len(flat))]),
    )


def _fit(
    sightings: Sequence[BoardSighting],
    mount: Floats | None = None,
    steps: int = DEFAULT_SETTINGS.max_iterations,
) -> Floats:
    """Return the robust least-squares T_camera_laser (4, 4) of all points."""
    normals, distances, points = _equations(sightings)
    if mount is None:
        mount = _closed_form(normals, distances, points)
    for _ in range(steps):
        residual, slopes = _residuals(mount, normals, distances, points)
        root = np.sqrt(_robust_weights(residual))
        step = -np.linalg.lstsq(slopes * root[:, None], residual * root)[0]
        mount = se3.exp(step) @ mount
        if np.abs(step).max() < DEFAULT_SETTINGS.step_tolerance:
            break
    return mount


def _rms_per_sighting(mount: Floats, sightings: Sequence[BoardSighting]) -> Floats:
    """Return the root mean square distance (m,) of the points of each sighting to its plane, metres."""
    misses = [_residuals(mount, *_equations([each]))[0] for each in sightings]
    return np.array([np.sqrt(np.mean(miss**2)) for miss in misses])


def _number_positions(sightings: Sequence[BoardSighting]) -> Ints:
    """Return the number (m,) of the position of the board in each sighting, from 0 on."""
    numbers = [0]
    for before, now in pairwise(sightings):
        distance_m = np.linalg.norm(now.points.mean(axis=0) - before.points.mean(axis=0))
        angle_rad = np.linalg.norm(now.normal - before.normal)
        is_new = (
            distance_m > DEFAULT_SETTINGS.same_position_m or angle_rad > DEFAULT_SETTINGS.same_position_rad
        )
        numbers.append(numbers[-1] + int(is_new))
    return np.array(numbers, np.int64)


def _closed_form(normals: Floats, distances: Floats, points: Floats) -> Floats:
    """Return an initial T_camera_laser (4, 4): H = [r1 r2 t] by least squares, projected to a rotation."""
    flat = points[:, :2]
    homogeneous = np.column_stack([flat, np.ones(len(flat))])
    rows = np.einsum("ni,nj->nij", normals, homogeneous).reshape(-1, 9)
    size = np.linalg.svd(rows, compute_uv=False)
    if size[-1] < DEFAULT_SETTINGS.min_singular_ratio * size[0]:
        raise GeometryError(
            "the boards do not determine the transform between laser and camera",
            why=f"they are nearly parallel (singular values {size[0]:.3g} to {size[-1]:.3g})",
            hint="tilt the board in other directions",
        )
    H = np.linalg.lstsq(rows, distances)[0].reshape(3, 3)
    turn = np.column_stack([H[:, 0], H[:, 1], np.cross(H[:, 0], H[:, 1])])
    return se3.from_matrix(rotations.nearest_rotation(turn), H[:, 2])


def _residuals(mount: Floats, normals: Floats, distances: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return the distances (n,) of points from their planes in metres, and derivatives (n, 6) by a motion."""
    seen = se3.apply(mount, points)
    return np.sum(normals * seen, axis=1) - distances, np.hstack([normals, np.cross(seen, normals)])


def _robust_weights(residual: Floats) -> Floats:
    return robust.cauchy_weights(residual / max(float(robust.nmad(residual)), 1e-9))


def _jackknife_sigmas(mount: Floats, sightings: Sequence[BoardSighting], position: Ints) -> Floats:
    """Return standard deviations (6,) by the jackknife over positions (m,) of the board; NaN for few."""
    numbers = np.unique(position)
    if len(numbers) <= MIN_BOARDS:
        return np.full(6, np.nan)
    others = [
        _fit([each for each, at in zip(sightings, position, strict=True) if at != number], mount)
        for number in numbers
    ]
    differences = np.array([se3.log(other @ se3.invert(mount)) for other in others])
    return np.sqrt((1 - 1 / len(numbers)) * np.sum(differences**2, axis=0))
