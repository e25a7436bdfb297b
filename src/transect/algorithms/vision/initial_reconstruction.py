"""Initial camera poses and points for a bundle adjustment.

`place_cameras` is incremental: two views first, then one camera after the other by the points that are known
so far. `factorise` is closed-form, by singular value decompositions: two methods, each for views for which
the other one is degenerate, are refined by least squares on the reprojection errors, and the better result is
returned.

- Weak perspective: factorisation by Tomasi and Kanade (1992), made perspective by Christy and Horaud (1996).
  For distant cameras, normalised image coordinates are linear in the points, so the matrix of all of them has
  rank three: its singular value decomposition is motion times shape, up to a linear map that follows from the
  orthogonality of camera axes. Coordinates times their relative depth have this rank exactly; the depth comes
  from the previous iteration.
- Strong perspective: essential matrices of the first image with every other one by the eight-point algorithm
  (Longuet-Higgins 1981), points from the pair with the largest parallax, then the translations of the other
  cameras by linear least squares (Hartley and Zisserman 2004, chapters 9 to 12).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import rotations, se3
from transect.types import CameraModel

from .bundle_adjustment import CameraRig
from .epipolar import (
    PixelPairs,
    epipolar_distances,
    off_plane_ratio,
    refit_fundamental,
    relative_pose_from_fundamental,
    rotation_residual_px,
    sample_fundamental,
)
from .features import MultiViewTracks
from .pose_estimation import refine_on_inliers, solve_pnp_ransac
from .triangulation import TriangulatedPoints, focal_length, triangulate

Poses = dict[int, Floats]
"""``T_body_world`` by index of the body; the world is the first body."""


@dataclass(frozen=True)
class ReconstructionSettings:
    """Settings of the initial reconstruction."""

    # Incremental placement of cameras
    inlier_sigmas: float = 3.0  # largest reprojection error of an inlier, in standard deviations of a pixel
    min_inliers: int = 15  # of an accepted pose
    # Smallest ratio of matches off any one plane; matches of a plane do not determine the motion.
    min_off_plane_ratio: float = 0.05
    min_parallax_rad: float = 0.005  # points with a smaller parallax are not used to place cameras

    # Factorisation
    max_iterations: int = 30
    depth_tolerance: float = 1e-9
    # Points or motion are planar if their third singular value, relative to the first, is smaller.
    min_singular_ratio: float = 1e-6
    # Function evaluations of the refinement: 5 to 25 are usual, cameras with little rotation need more.
    max_evaluations: int = 50


SETTINGS = ReconstructionSettings()


@dataclass
class PartialReconstruction:
    """Tracks, and the bodies that have a pose so far."""

    tracks: MultiViewTracks
    rig: CameraRig
    sigma: float  # px
    poses: Poses = field(default_factory=Poses)

    def views(self) -> tuple[list[int], Floats]:
        """Return the images whose camera has a pose, and their ``T_camera_world`` (k, 4, 4)."""
        images = [i for i, body in enumerate(self.rig.body) if body in self.poses]
        T_camera_body = se3.invert(self.rig.T_body_camera)
        return images, np.array([T_camera_body[i] @ self.poses[self.rig.body[i]] for i in images]).reshape(
            -1, 4, 4
        )

    def points(self) -> TriangulatedPoints:
        """Return the points of all tracks, triangulated from the cameras that have a pose."""
        images, views = self.views()
        sigmas = [self.sigma / focal_length(self.tracks.cameras[i]) for i in images]
        return triangulate(views, self.tracks.normalised[:, images], sigmas)


def place_cameras(tracks: MultiViewTracks, rig: CameraRig, sigma: float, baseline: float) -> Poses | None:
    """Return the poses of all bodies, the first at the origin; None if one of them fails.

    `baseline` in metres is the largest distance from the first body, if no rig determines the scale.
    """
    guess = PartialReconstruction(tracks, rig, sigma, {0: np.eye(4)})
    if not rig.has_scale:
        start = _place_second(guess)
        if start is None:
            return None
        guess.poses.update(start)
    while len(guess.poses) < rig.body_count:
        found = _place_next(guess)
        if found is None:
            return None
        guess.poses.update(found)
    return guess.poses if rig.has_scale else _rescale(guess.poses, baseline)


def _rescale(poses: Poses, baseline: float) -> Poses:
    """Scale poses so that the largest distance from the first is `baseline`."""
    scale = baseline / max(float(np.linalg.norm(T[:3, 3])) for T in poses.values())
    return {body: se3.from_matrix(T[:3, :3], scale * T[:3, 3]) for body, T in poses.items()}


def _place_second(guess: PartialReconstruction) -> Poses | None:
    """Return the pose of a second body from its matches with body 0, tried from the last to the first."""
    for other in range(guess.rig.body_count - 1, 0, -1):
        T = _relative_pose(guess.tracks, other, guess.sigma)
        if T is not None:
            return {other: se3.invert(T)}
    return None


def _relative_pose(tracks: MultiViewTracks, other: int, sigma: float) -> Floats | None:
    """Return ``T_first_other`` of length 1 between image 0 and another; None if underdetermined."""
    import cv2

    both = tracks.seen[:, 0] & tracks.seen[:, other]
    one, two = tracks.cameras[0], tracks.cameras[other]
    source, sink, limit = tracks.pixels[both, 0], tracks.pixels[both, other], SETTINGS.inlier_sigmas * sigma
    if len(source) < SETTINGS.min_inliers:
        return None
    matrix = sample_fundamental(source, sink, cv2.FM_RANSAC, limit)
    if matrix is None:
        return None
    matrix = refit_fundamental(matrix, source, sink, limit)
    good = np.abs(epipolar_distances(matrix, source, sink)) <= limit
    pairs = PixelPairs(source[good], sink[good], one.K, two.K)
    if len(pairs) < SETTINGS.min_inliers or rotation_residual_px(pairs) < SETTINGS.inlier_sigmas * sigma:
        return None
    if off_plane_ratio(pairs.source, pairs.sink, limit) < SETTINGS.min_off_plane_ratio:
        return None
    motion = relative_pose_from_fundamental(matrix, pairs, sigma)
    return None if motion is None or motion.parallax < SETTINGS.min_parallax_rad else motion.T_source_sink


def _place_next(guess: PartialReconstruction) -> Poses | None:
    """Return the pose of the body that observes the most known points."""
    found = guess.points()
    known = (
        found.in_front
        & (found.error <= SETTINGS.inlier_sigmas)
        & (found.parallax >= SETTINGS.min_parallax_rad)
    )
    left = [i for i, body in enumerate(guess.rig.body) if body not in guess.poses]
    for image in sorted(left, key=lambda i: (-np.count_nonzero(known & guess.tracks.seen[:, i]), i)):
        rows = known & guess.tracks.seen[:, image]
        T = _resect_camera(
            found.points[rows], guess.tracks.pixels[rows, image], guess.tracks.cameras[image], guess.sigma
        )
        if T is not None:
            return {guess.rig.body[image]: guess.rig.T_body_camera[image] @ T}
    return None


def _resect_camera(points: Floats, pixels: Floats, camera: CameraModel, sigma: float) -> Floats | None:
    """Return ``T_camera_world`` of a camera that observes known points; None with too few inliers."""
    if len(points) < SETTINGS.min_inliers:
        return None
    # The points have errors of some pixels, so the limit is twice that of matches.
    limit = 2 * SETTINGS.inlier_sigmas * sigma
    first = solve_pnp_ransac(points, pixels, camera.K, limit)
    if first is None:
        return None
    pose, inliers = refine_on_inliers(first, points, pixels, camera.K, limit)
    return pose if np.count_nonzero(inliers) >= SETTINGS.min_inliers else None


Cameras = tuple[Floats, Floats, Floats]
"""Rotations (m, 3, 3), translations (m, 3) and points (n, 3) with ``camera = R point + t``."""


def factorise(normalised: Floats) -> tuple[Floats, Floats, int] | None:
    """Return the cameras and points of normalised coordinates.

    Parameters
    ----------
    normalised : (n, m, 2)
        Normalised coordinates of n points in m images.

    Returns
    -------
    ``T_first_camera`` (m, 4, 4) and points (n, 3) in the first camera, up to scale, and the number of
    iterations of the refinement; None if underdetermined.
    """
    best, smallest_error, iterations = None, np.inf, 0
    for start in (_weak_perspective(normalised), _strong_perspective(normalised)):
        if start is None or not np.isfinite(_mean_square_error(normalised, *start)):
            continue
        found, steps = _refine(normalised, start)
        if (error := _mean_square_error(normalised, *found)) < smallest_error:
            best, smallest_error, iterations = found, error, steps
    if best is None:
        return None
    turns, shifts, shape = best
    T = se3.from_matrix(turns, shifts)
    return T[0] @ se3.invert(T), se3.apply(T[0], shape), iterations


def _refine(normalised: Floats, start: Cameras) -> tuple[Cameras, int]:
    """Minimise the reprojection errors; the first camera is fixed."""
    from scipy.optimize import least_squares
    from scipy.sparse import csr_matrix

    turns, shifts, shape = start
    n, m = normalised.shape[:2]
    free = 6 * (m - 1)

    def cameras(x: Floats) -> Cameras:
        moved = x[:free].reshape(-1, 6)
        rotations_of_others = rotations.matrix_from_rotation_vector(moved[:, :3]) @ turns[1:]
        return (
            np.concatenate([turns[:1], rotations_of_others]),
            np.concatenate([shifts[:1], moved[:, 3:]]),
            x[free:].reshape(n, 3),
        )

    def errors(x: Floats) -> Floats:
        points = _in_cameras(*cameras(x))
        return (points[..., :2] / points[..., 2:] - normalised).ravel()

    depends = np.zeros((n, m, 2, free + 3 * n), dtype=bool)
    for k in range(1, m):
        depends[:, k, :, 6 * (k - 1) : 6 * k] = True
    for i in range(n):
        depends[i, :, :, free + 3 * i : free + 3 * i + 3] = True
    first = np.concatenate([np.column_stack([np.zeros((m - 1, 3)), shifts[1:]]).ravel(), shape.ravel()])
    found = least_squares(
        errors, first, x_scale="jac", max_nfev=SETTINGS.max_evaluations,
        jac_sparsity=csr_matrix(depends.reshape(2 * n * m, -1)),
    )  # fmt: skip
    return cameras(found.x), int(found.nfev)


def _strong_perspective(normalised: Floats) -> Cameras | None:
    """Return cameras and points from essential matrices with the first image."""
    rays = np.concatenate([normalised, np.ones((*normalised.shape[:2], 1))], axis=2).transpose(1, 0, 2)
    pairs = [_essential(rays[0], each) for each in rays[1:]]
    shape, best_score = None, 0.0
    for (turns, shift), second_rays in zip(pairs, rays[1:], strict=True):
        for turn in turns:
            parallax = float(np.median(np.linalg.norm(np.cross(rays[0] @ turn.T, second_rays), axis=1)))
            for t in (shift, -shift):
                depth = _depths(rays[0] @ turn.T, second_rays, t)
                in_front = (depth > 0) & (depth * (rays[0] @ turn.T)[:, 2] + t[2] > 0)
                if np.count_nonzero(in_front) * parallax > best_score:
                    shape, best_score = depth[:, None] * rays[0], np.count_nonzero(in_front) * parallax
    if shape is None:
        return None
    others = [
        min(
            ((*_translation_to_rays(shape @ turn.T, second_rays), turn) for turn in turns),
            key=lambda found: found[0],
        )
        for (turns, _), second_rays in zip(pairs, rays[1:], strict=True)
    ]
    return (
        np.array([np.eye(3), *(turn for _, _, turn in others)]),
        np.array([np.zeros(3), *(t for _, t, _ in others)]),
        shape,
    )


def _essential(first_rays: Floats, second_rays: Floats) -> tuple[list[Floats], Floats]:
    """Return both rotations (3, 3) and the translation direction (3,) from rays (n, 3) of two cameras."""
    rows = (second_rays[:, :, None] * first_rays[:, None, :]).reshape(len(first_rays), 9)
    u, _, vt = np.linalg.svd(np.linalg.svd(rows)[2][-1].reshape(3, 3))
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    turns = [u @ w @ vt for w in (quarter, quarter.T)]
    return [turn * np.sign(np.linalg.det(turn)) for turn in turns], u[:, 2]


def _depths(rotated_rays: Floats, rays: Floats, shift: Floats) -> Floats:
    """Return the depths (n,) in the first camera, whose rays are rotated to the axes of the other one."""
    ray_normals, shift_normals = np.cross(rays, rotated_rays), np.cross(rays, shift)
    return -np.sum(ray_normals * shift_normals, axis=1) / np.maximum(np.sum(ray_normals**2, axis=1), 1e-300)


def _translation_to_rays(rotated_points: Floats, rays: Floats) -> tuple[float, Floats]:
    """Return the error, and the translation (3,) that moves points (n, 3) onto rays (n, 3)."""
    unit = rays / np.linalg.norm(rays, axis=1, keepdims=True)
    projections = np.eye(3) - unit[:, :, None] * unit[:, None, :]
    shift = -np.linalg.lstsq(projections.sum(axis=0), np.einsum("nij,nj->i", projections, rotated_points))[0]
    distances = np.linalg.norm(np.einsum("nij,nj->ni", projections, rotated_points + shift), axis=1)
    return float(np.median(distances / np.linalg.norm(rotated_points, axis=1))), np.asarray(shift, np.float64)


def _weak_perspective(normalised: Floats) -> Cameras | None:
    """Return cameras and points by factorisation: of both depth reversals the one that fits better."""
    start = _factorise_affine(normalised)
    if start is None:
        return None
    found = [_iterate_perspective(normalised, relief) for relief in (start[2][:, 2], -start[2][:, 2])]
    return min(
        (each for each in found if each is not None),
        key=lambda each: _mean_square_error(normalised, *each),
        default=None,
    )


def _iterate_perspective(normalised: Floats, relief: Floats) -> Cameras | None:
    """Return rotations (m, 3, 3), translations (m, 3) and points (n, 3) with ``camera = R point + t``.

    `relief` (n,) are approximate depths of the points in the first camera.
    """
    depth = np.ones(normalised.shape[:2])
    found = None
    for _ in range(SETTINGS.max_iterations):
        found = _factorise_affine(normalised * depth[..., None], relief)
        if found is None:
            return None
        turns, shifts, shape = found
        relief = shape[:, 2]
        before, depth = depth, 1 + shape @ turns[:, 2].T / shifts[:, 2]
        if np.abs(depth - before).max() < SETTINGS.depth_tolerance:
            break
    return found


def _factorise_affine(normalised: Floats, relief: Floats | None = None) -> Cameras | None:
    """Return motion and shape for scaled orthographic cameras, in the axes of the first.

    The depth reversal is resolved by correlation with `relief` (n,).
    """
    n, m = normalised.shape[:2]
    middle = normalised.mean(axis=0)
    rows = (normalised - middle).transpose(1, 2, 0).reshape(2 * m, n)  # x, y of image 0, x, y of image 1, ...
    u, s, vt = np.linalg.svd(rows, full_matrices=False)
    motion, shape = (u[:, :3] * s[:3]).reshape(m, 2, 3), vt[:3]
    upgrade = _metric_upgrade(motion) if s[2] > SETTINGS.min_singular_ratio * s[0] else None
    if upgrade is None:
        return None
    motion, shape = motion @ upgrade, np.linalg.solve(upgrade, shape)
    first = _nearest_rotations(motion)[0]
    motion, shape = motion @ first.T, np.asarray((first @ shape).T, np.float64)
    if relief is not None and shape[:, 2] @ relief < 0:
        motion, shape = motion * [1, 1, -1], shape * [1, 1, -1]
    scale = np.linalg.norm(motion, axis=2).mean(axis=1)
    return _nearest_rotations(motion), np.column_stack([middle, np.ones(m)]) / scale[:, None], shape


def _metric_upgrade(motion: Floats) -> Floats | None:
    """Return A (3, 3) that makes the axes of each image (m, 2, 3) orthogonal and of equal length."""
    i, j = motion[:, 0], motion[:, 1]
    rows = np.concatenate(
        [_quadratic_form_rows(i, i) - _quadratic_form_rows(j, j), _quadratic_form_rows(i, j)]
    )
    a, b, c, d, e, f = np.linalg.svd(rows)[2][-1]
    Q = np.array([[a, b, c], [b, d, e], [c, e, f]])
    values, axes = np.linalg.eigh(Q if np.trace(Q) > 0 else -Q)
    return axes * np.sqrt(values) if values[0] > SETTINGS.min_singular_ratio * values[2] else None


def _quadratic_form_rows(a: Floats, b: Floats) -> Floats:
    """Return the coefficients (m, 6) of the entries of a symmetric Q in ``a Q b'``."""
    return np.column_stack(
        [
            a[:, 0] * b[:, 0],
            a[:, 0] * b[:, 1] + a[:, 1] * b[:, 0],
            a[:, 0] * b[:, 2] + a[:, 2] * b[:, 0],
            a[:, 1] * b[:, 1],
            a[:, 1] * b[:, 2] + a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 2],
        ]
    )


def _nearest_rotations(motion: Floats) -> Floats:
    """Return the rotations (m, 3, 3) whose first two rows are nearest to those of (m, 2, 3)."""
    u, _, vt = np.linalg.svd(motion, full_matrices=False)
    two = u @ vt
    return np.concatenate([two, np.cross(two[:, 0], two[:, 1])[:, None]], axis=1)


def _mean_square_error(normalised: Floats, turns: Floats, shifts: Floats, shape: Floats) -> float:
    """Return the mean square reprojection error; infinite if a point is behind a camera."""
    points = _in_cameras(turns, shifts, shape)
    if not (points[..., 2] > 0).all():
        return float("inf")
    return float(np.mean(np.sum((points[..., :2] / points[..., 2:] - normalised) ** 2, axis=2)))


def _in_cameras(turns: Floats, shifts: Floats, shape: Floats) -> Floats:
    """Return the points in all camera frames (n, m, 3)."""
    return np.einsum("mij,nj->nmi", turns, shape) + shifts
