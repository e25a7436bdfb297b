"""Where cameras were, roughly: two views first, then one camera after the other among known points."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import se3
from transect.types import CameraModel

from .camera_rig import CameraRig
from .epipolar import (
    Pairs,
    epipolar_distances,
    fundamental_by_sampling,
    measure_turn_residual,
    motion_from,
    off_plane,
    refit_fundamental,
)
from .feature_tracks import Tracks
from .pnp import pose_of_most, refine_on_inliers
from .triangulation import Triangulated, focal_length, triangulate

Poses = dict[int, Floats]
"""By moment: ``T_body_world``; the world is the body at the first moment."""

THRESHOLD = 3.0
"""Deviations of a pixel up to which a sighting counts as agreeing."""
FEWEST = 15
"""Points that must agree before a camera is believed to be somewhere."""
LEAST_PARALLAX = 0.005
"""rad; with less the distance of a point is hardly known."""


@dataclass
class Guess:
    """Bodies that are placed so far, among tracks; `sigma` is the deviation of a pixel."""

    tracks: Tracks
    rig: CameraRig
    sigma: float
    poses: Poses = field(default_factory=Poses)

    def views(self) -> tuple[list[int], Floats]:
        """Return the images whose camera is placed, and their ``T_camera_world`` (k, 4, 4)."""
        images = [i for i, body in enumerate(self.rig.body) if body in self.poses]
        back = se3.invert(self.rig.T_body_camera)
        return images, np.array([back[i] @ self.poses[self.rig.body[i]] for i in images]).reshape(-1, 4, 4)

    def points(self) -> Triangulated:
        """Return the points of all tracks as far as the placed cameras tell."""
        images, views = self.views()
        sigmas = [self.sigma / focal_length(self.tracks.cameras[i]) for i in images]
        return triangulate(views, self.tracks.places[:, images], sigmas)


def place_cameras(tracks: Tracks, rig: CameraRig, sigma: float, baseline: float) -> Poses | None:
    """Return where the bodies were, the first at the origin; None if they cannot all be placed.

    `baseline` in metres is the largest distance from the first body, where no rig gives a scale.
    """
    guess = Guess(tracks, rig, sigma, {0: np.eye(4)})
    if not rig.scaled:
        start = _start(guess)
        if start is None:
            return None
        guess.poses.update(start)
    while len(guess.poses) < rig.bodies:
        found = _next(guess)
        if found is None:
            return None
        guess.poses.update(found)
    return guess.poses if rig.scaled else _stretch(guess.poses, baseline)


def _stretch(poses: Poses, baseline: float) -> Poses:
    """Return the same poses in other units: the largest distance from the first becomes `baseline`."""
    scale = baseline / max(float(np.linalg.norm(T[:3, 3])) for T in poses.values())
    return {body: se3.from_matrix(T[:3, :3], scale * T[:3, 3]) for body, T in poses.items()}


def _start(guess: Guess) -> Poses | None:
    """Return the first body that can be placed by its matches with body 0, from the last to the first."""
    for other in range(guess.rig.bodies - 1, 0, -1):
        T = _two_views(guess.tracks, other, guess.sigma)
        if T is not None:
            return {other: se3.invert(T)}
    return None


def _two_views(tracks: Tracks, other: int, sigma: float) -> Floats | None:
    """Return ``T_first_other`` of length 1 between image 0 and another; None if it is not determined."""
    import cv2

    both = tracks.seen[:, 0] & tracks.seen[:, other]
    one, two = tracks.cameras[0], tracks.cameras[other]
    source, sink, limit = tracks.pixels[both, 0], tracks.pixels[both, other], THRESHOLD * sigma
    if len(source) < FEWEST:
        return None
    matrix = fundamental_by_sampling(source, sink, cv2.FM_RANSAC, limit)
    if matrix is None:
        return None
    matrix = refit_fundamental(matrix, source, sink, limit)
    good = np.abs(epipolar_distances(matrix, source, sink)) <= limit
    pairs = Pairs(source[good], sink[good], one.K, two.K)
    if len(pairs) < FEWEST or measure_turn_residual(pairs) < THRESHOLD * sigma:
        return None
    if off_plane(pairs.source, pairs.sink, limit) < 0.05:
        return None
    motion = motion_from(matrix, pairs, sigma)
    return None if motion is None or motion.parallax < LEAST_PARALLAX else motion.T_source_sink


def _next(guess: Guess) -> Poses | None:
    """Place the body that sees the most known points."""
    found = guess.points()
    known = found.in_front & (found.error <= THRESHOLD) & (found.parallax >= LEAST_PARALLAX)
    left = [i for i, body in enumerate(guess.rig.body) if body not in guess.poses]
    for image in sorted(left, key=lambda i: (-np.count_nonzero(known & guess.tracks.seen[:, i]), i)):
        rows = known & guess.tracks.seen[:, image]
        T = _among(
            found.points[rows], guess.tracks.pixels[rows, image], guess.tracks.cameras[image], guess.sigma
        )
        if T is not None:
            return {guess.rig.body[image]: guess.rig.T_body_camera[image] @ T}
    return None


def _among(points: Floats, pixels: Floats, camera: CameraModel, sigma: float) -> Floats | None:
    """Return ``T_camera_world`` of a camera among known points, if enough of them agree."""
    if len(points) < FEWEST:
        return None
    # The points themselves are only known to some pixels: twice as wide as for matches.
    limit = 2 * THRESHOLD * sigma
    first = pose_of_most(points, pixels, camera.K, limit)
    if first is None:
        return None
    pose, inliers = refine_on_inliers(first, points, pixels, camera.K, limit)
    return pose if np.count_nonzero(inliers) >= FEWEST else None
