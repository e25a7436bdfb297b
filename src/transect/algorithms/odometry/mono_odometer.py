"""Odometry of one camera; how far it moved comes from elsewhere, which way it moved from what it sees."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from transect.base.arrays import Bytes, Floats, Ints, Mask
from transect.geometry import se3

from .mono_geometry import find_points, first_motion, parallax, project
from .mono_window import View, adjust, rescale, shift_by_reference
from .stereo_landmarks import Landmarks, gray_at
from .stereo_motion import Located, locate
from .stereo_odometer import AGREE, is_dark
from .stereo_rig import StereoRig
from .stereo_tracking import corners, follow

SAME_WAY = 0.9
"""Least cosine between the first motion as seen and by the reference: of few pixels, or where a camera mostly
turns, another motion may explain them as well."""


@dataclass(frozen=True)
class MonoOdometrySettings:
    """What decides an odometer.

    Attributes
    ----------
    features : int
        Corners of a picture, at most.
    least_inliers : int
        Points that must agree on a motion.
    views : int
        Keyframes that are adjusted together.
    parallax : float
        Pixels that points must have moved since the last keyframe for another one, beyond what turning does:
        views from one place alone would forget how long a metre is.
    share : float
        Of a keyframe's points; with fewer left there is another one.
    steps : int
        Of the adjustment.
    memory : float
        Metres over which the reference's lengths are averaged.
    """

    features: int
    least_inliers: int
    views: int
    parallax: float
    share: float
    steps: int
    memory: float


@dataclass(frozen=True, eq=False)
class MonoImage:
    """A picture, where the camera was on the body then, and where another odometry had the body."""

    picture: Bytes
    valid: Mask | None
    K: Floats
    T_body_camera: Floats
    reference: Floats


@dataclass(frozen=True, eq=False)
class MonoTracks:
    """Points that the last picture saw.

    Attributes
    ----------
    ids, pixels : (n,) int64, (n, 2)
    points, sigma : (n, 3), (n,)
        Metres, in the world, and their standard deviation; NaN where no depth is known.
    """

    ids: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pixels: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    points: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    sigma: Floats = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> MonoTracks:
        return MonoTracks(self.ids[rows], self.pixels[rows], self.points[rows], self.sigma[rows])

    @property
    def deep(self) -> Mask:
        """Which points have a depth (n,)."""
        return np.isfinite(self.points[:, 0])


@dataclass(frozen=True, eq=False)
class MonoPose:
    """What a picture came to: a pose (4, 4), or why there is none; as of stereo odometry."""

    T_world_body: Floats | None
    failed: str = ""
    inliers: int = 0
    covariance: Floats | None = None


class MonoOdometer:
    """Where a body with one camera is, from picture to picture."""

    def __init__(self, settings: MonoOdometrySettings) -> None:
        self.settings = settings
        self.T_world_body = np.eye(4)
        self.before: MonoImage | None = None
        self.tracks = MonoTracks()
        self.views: list[View] = []
        self.landmarks = Landmarks()
        self.travelled = 0.0
        self.at_keyframe = self.next_id = 0

    def advance(self, shot: MonoImage) -> MonoPose:
        """Take the next picture."""
        if is_dark(shot.picture):
            return MonoPose(None, "too dark")
        if self.before is None:
            return self._begin(shot, self.T_world_body, "needs motion to see depth")
        expected = self.T_world_body @ se3.invert(self.before.reference) @ shot.reference
        self._follow(shot, expected)
        if len(self.views) < 2:
            return self._start(shot)
        located = self._locate(shot, expected)
        inliers = 0 if located is None else int(located.inliers.sum())
        if located is None or inliers < max(self.settings.least_inliers, AGREE * int(self.tracks.deep.sum())):
            return self._begin(shot, expected, "too few inliers", inliers)
        return self._move_to(shot, located, inliers)

    # Following

    def _follow(self, shot: MonoImage, expected: Floats) -> None:
        assert self.before is not None
        T_camera_world = se3.invert(expected @ shot.T_body_camera)
        starts = project(se3.apply(T_camera_world, self.tracks.points), shot.K)
        edge = np.array(shot.picture.shape[::-1])
        there = np.all((starts >= 0) & (starts < edge), axis=1, keepdims=True)
        starts = np.where(there, starts, self.tracks.pixels)
        pixels, found = follow(self.before.picture, shot.picture, self.tracks.pixels, starts)
        self.tracks = replace(self.tracks, pixels=pixels)[found]
        self.before = shot

    def _locate(self, shot: MonoImage, expected: Floats) -> Located | None:
        """Return where the camera is among the points with depth; the others are not asked."""
        deep = self.tracks.deep
        seen = np.column_stack([self.tracks.pixels[deep], np.full(int(deep.sum()), np.nan)])
        height, width = shot.picture.shape
        fx, fy, cx, cy = (float(shot.K[at]) for at in ((0, 0), (1, 1), (0, 2), (1, 2)))
        rig = StereoRig(fx, fy, cx, cy, 0.0, width, height)
        return locate(self.tracks.points[deep], seen, rig, se3.invert(expected @ shot.T_body_camera))

    # Beginning, also anew

    def _begin(self, shot: MonoImage, at: Floats, why: str, inliers: int = 0) -> MonoPose:
        """Begin with nothing but this picture, the body at a place."""
        self.tracks, self.views, self.T_world_body = MonoTracks(), [], at
        self.before, self.travelled = shot, 0.0
        self._add_corners(shot)
        if len(self.tracks) < self.settings.least_inliers:
            self.before = None
            return MonoPose(None, "too few features")
        self._keep(shot)
        return MonoPose(None, why, inliers)

    def _start(self, shot: MonoImage) -> MonoPose:
        """Find the first two views: direction and rotation by sight, the length by the reference."""
        first = self.views[0]
        expected = first.T_world_body @ se3.invert(first.reference) @ shot.reference
        _, now, then = np.intersect1d(self.tracks.ids, first.ids, return_indices=True)
        if len(now) < self.settings.least_inliers:
            return self._begin(shot, expected, "too few points found again")
        apart = float(np.median(np.linalg.norm(self.tracks.pixels[now] - first.pixels[then], axis=1)))
        motion = first_motion(first.pixels[then], self.tracks.pixels[now], shot.K)
        if apart < 2 * self.settings.parallax or motion is None:
            return MonoPose(None, "needs motion to see depth")
        R_body = first.T_body_camera[:3, :3] @ motion.rotation @ shot.T_body_camera[:3, :3].T
        shift = shift_by_reference(first, self._view(shot), R_body)
        length = float(shift @ first.T_body_camera[:3, :3] @ motion.direction)
        if length < SAME_WAY * np.linalg.norm(shift):
            return MonoPose(None, "sight and reference do not agree on the way")
        T_camera_camera = se3.from_matrix(motion.rotation, length * motion.direction)
        self.T_world_body = first.T_world_camera @ T_camera_camera @ se3.invert(shot.T_body_camera)
        self.tracks = self.tracks[now[motion.inliers]]
        self._keep(shot)
        inliers = int(self.tracks.deep.sum())
        if inliers < self.settings.least_inliers:
            return self._begin(shot, expected, "too few inliers", inliers)
        return MonoPose(self.T_world_body, "", inliers)

    # From picture to picture

    def _move_to(self, shot: MonoImage, located: Located, inliers: int) -> MonoPose:
        self.T_world_body = se3.invert(shot.T_body_camera @ located.T_camera_world)
        good = np.ones(len(self.tracks), dtype=bool)
        good[self.tracks.deep] = located.inliers
        self.tracks = self.tracks[good]
        if self._is_keyframe(shot):
            self._keep(shot)
        covariance = se3.transform_covariance(shot.T_body_camera, located.covariance)
        return MonoPose(self.T_world_body, "", inliers, covariance)

    # Keyframes

    def _is_keyframe(self, shot: MonoImage) -> bool:
        """Tell whether points are lost, or have moved by more than the camera's turning does."""
        last = self.views[-1]
        _, now, then = np.intersect1d(self.tracks.ids, last.ids, return_indices=True)
        if len(now) < self.settings.share * self.at_keyframe:
            return True
        R_last_now = last.T_world_camera[:3, :3].T @ (self.T_world_body @ shot.T_body_camera)[:3, :3]
        moved = parallax(last.pixels[then], self.tracks.pixels[now], R_last_now, shot.K)
        return moved > self.settings.parallax

    def _keep(self, shot: MonoImage) -> None:
        """Make the picture a keyframe: see depths, adjust, and add corners."""
        self.views = [*self.views, self._view(shot)][-self.settings.views :]
        if len(self.views) > 1:
            self._deepen(~self.tracks.deep, shot.K)
            self._adjust(shot.K)
            self._deepen(np.ones(len(self.tracks), dtype=bool), shot.K)
            self._rescale()
            deep = self.tracks[self.tracks.deep]
            self.landmarks.see(deep.ids, deep.points, deep.sigma, gray_at(shot.picture, deep.pixels))
            self._add_corners(shot)
            self.views[-1] = self._view(shot)
        self.at_keyframe = len(self.tracks)

    def _view(self, shot: MonoImage) -> View:
        return View(
            self.T_world_body, shot.T_body_camera, shot.reference, self.tracks.ids, self.tracks.pixels
        )

    def _deepen(self, rows: Mask, K: Floats) -> None:
        """Give depth to points that have been seen from far enough apart, and tell how well it is known."""
        pixels = np.full((len(self.views), int(rows.sum()), 2), np.nan)
        for seen, view in zip(pixels, self.views, strict=True):
            _, here, there = np.intersect1d(self.tracks.ids[rows], view.ids, return_indices=True)
            seen[here] = view.pixels[there]
        found = find_points(np.array([view.T_world_camera for view in self.views]), pixels, K)
        points, sigma = self.tracks.points.copy(), self.tracks.sigma.copy()
        points[rows] = np.where(self.tracks.deep[rows, None], points[rows], found.points)
        sigma[rows] = found.sigma
        self.tracks = replace(self.tracks, points=points, sigma=sigma)

    def _adjust(self, K: Floats) -> None:
        poses, points = adjust(self.views, self.tracks.ids, self.tracks.points, K, self.settings.steps)
        self.views = [replace(v, T_world_body=T) for v, T in zip(self.views, poses, strict=True)]
        self.T_world_body, self.tracks = poses[-1], replace(self.tracks, points=points)

    def _rescale(self) -> None:
        """Stretch or shrink everything a little, so that the last metres are as long as by the reference."""
        before, now = self.views[-2:]
        T_before_now = se3.invert(before.T_world_body) @ now.T_world_body
        moved = now.T_world_camera[:3, 3] - before.T_world_camera[:3, 3]
        seen = float(np.linalg.norm(moved))
        if seen == 0:
            return
        shift = before.T_world_body[:3, :3] @ shift_by_reference(before, now, T_before_now[:3, :3])
        # Its part along the way, because the length of a noisy step is too long on average.
        length = float(shift @ moved) / seen
        self.travelled += seen
        excess = float(np.clip(length - seen, -seen, seen))  # one skid or leap is not to change everything
        factor = float(np.exp(excess / min(self.travelled, self.settings.memory)))
        self.views, points = rescale(self.views, self.tracks.points, factor)
        self.T_world_body, self.tracks = self.views[-1].T_world_body, replace(self.tracks, points=points)

    def _add_corners(self, shot: MonoImage) -> None:
        height, width = shot.picture.shape
        cell = max(round(float(np.sqrt(width * height / self.settings.features))), 1)
        new = corners(shot.picture, self.tracks.pixels, cell, shot.valid)
        ids = np.arange(self.next_id, self.next_id + len(new))
        self.next_id += len(new)
        self.tracks = MonoTracks(
            np.concatenate([self.tracks.ids, ids]),
            np.concatenate([self.tracks.pixels, new]),
            np.concatenate([self.tracks.points, np.full((len(new), 3), np.nan)]),
            np.concatenate([self.tracks.sigma, np.full(len(new), np.nan)]),
        )
