"""Odometry of one camera; how far it moved comes from elsewhere, which way it moved from what it sees."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from transect.geometry import se3
from transect.nodes.stereo._vo_camera import Gray, Rig
from transect.nodes.stereo._vo_motion import Located, locate
from transect.nodes.stereo._vo_odometer import AGREE, DARK
from transect.nodes.stereo._vo_tracking import Mask, corners, follow

from ._mono_geometry import Floats, first_motion, project, triangulate
from ._mono_window import Ints, View, adjust


@dataclass(frozen=True)
class Settings:
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
        Pixels that points must have moved since the last keyframe for another one.
    share : float
        Of a keyframe's points; with fewer left there is another one.
    steps : int
        Of the adjustment.
    """

    features: int
    least_inliers: int
    views: int
    parallax: float
    share: float
    steps: int


@dataclass(frozen=True, eq=False)
class Shot:
    """A picture, where the camera was on the body then, and where another odometry had the body."""

    picture: Gray
    valid: Mask | None
    K: Floats
    T_body_camera: Floats
    reference: Floats


@dataclass(frozen=True, eq=False)
class Tracks:
    """Points that the last picture saw: ids (n,), pixels (n, 2), points (n, 3) in the world or NaN."""

    ids: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pixels: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    points: Floats = field(default_factory=lambda: np.zeros((0, 3)))

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> Tracks:
        return Tracks(self.ids[rows], self.pixels[rows], self.points[rows])

    @property
    def deep(self) -> Mask:
        """Which points have a depth (n,)."""
        return np.isfinite(self.points[:, 0])


@dataclass(frozen=True, eq=False)
class Step:
    """What a picture came to: a pose (4, 4), or why there is none; as of stereo odometry."""

    T_world_body: Floats | None
    failed: str = ""
    inliers: int = 0
    covariance: Floats | None = None


class MonoOdometer:
    """Where a body with one camera is, from picture to picture."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.T_world_body = np.eye(4)
        self.before: Shot | None = None
        self.tracks = Tracks()
        self.views: list[View] = []
        self.at_keyframe = self.next_id = 0

    def advance(self, shot: Shot) -> Step:
        """Take the next picture."""
        if float(np.percentile(shot.picture[::4, ::4], 90)) < DARK:
            return Step(None, "too dark")
        if self.before is None:
            return self._begun(shot, self.T_world_body, "needs motion to see depth")
        expected = self.T_world_body @ se3.invert(self.before.reference) @ shot.reference
        self._follow(shot, expected)
        if len(self.views) < 2:
            return self._started(shot, expected)
        located = self._located(shot, expected)
        inliers = 0 if located is None else int(located.inliers.sum())
        if located is None or inliers < max(self.settings.least_inliers, AGREE * int(self.tracks.deep.sum())):
            return self._begun(shot, expected, "too few inliers", inliers)
        return self._moved(shot, located, inliers)

    # Following

    def _follow(self, shot: Shot, expected: Floats) -> None:
        assert self.before is not None
        T_camera_world = se3.invert(expected @ shot.T_body_camera)
        starts = project(se3.apply(T_camera_world, self.tracks.points), shot.K)
        edge = np.array(shot.picture.shape[::-1])
        there = np.all((starts >= 0) & (starts < edge), axis=1, keepdims=True)
        starts = np.where(there, starts, self.tracks.pixels)
        pixels, found = follow(self.before.picture, shot.picture, self.tracks.pixels, starts)
        self.tracks = replace(self.tracks, pixels=pixels)[found]
        self.before = shot

    def _located(self, shot: Shot, expected: Floats) -> Located | None:
        """Return where the camera is among the points with depth; the others are not asked."""
        deep = self.tracks.deep
        seen = np.column_stack([self.tracks.pixels[deep], np.full(int(deep.sum()), np.nan)])
        height, width = shot.picture.shape
        fx, fy, cx, cy = (float(shot.K[at]) for at in ((0, 0), (1, 1), (0, 2), (1, 2)))
        rig = Rig(fx, fy, cx, cy, 0.0, width, height)
        return locate(self.tracks.points[deep], seen, rig, se3.invert(expected @ shot.T_body_camera))

    # Beginning, also anew

    def _begun(self, shot: Shot, at: Floats, why: str, inliers: int = 0) -> Step:
        """Begin with nothing but this picture, the body at a place."""
        self.tracks, self.views, self.T_world_body = Tracks(), [], at
        self.before = shot
        self._add_corners(shot)
        if len(self.tracks) < self.settings.least_inliers:
            self.before = None
            return Step(None, "too few features")
        self._keep(shot)
        return Step(None, why, inliers)

    def _started(self, shot: Shot, expected: Floats) -> Step:
        """Find the first two views: direction and rotation by sight, the length by the reference."""
        first = self.views[0]
        _, now, then = np.intersect1d(self.tracks.ids, first.ids, return_indices=True)
        if len(now) < self.settings.least_inliers:
            return self._begun(shot, expected, "too few points found again")
        apart = float(np.median(np.linalg.norm(self.tracks.pixels[now] - first.pixels[then], axis=1)))
        motion = first_motion(first.pixels[then], self.tracks.pixels[now], shot.K)
        if apart < 2 * self.settings.parallax or motion is None:
            return Step(None, "needs motion to see depth")
        T_camera_camera = _scaled(motion.rotation, motion.direction, first, shot)
        self.T_world_body = first.T_world_camera @ T_camera_camera @ se3.invert(shot.T_body_camera)
        self.tracks = self.tracks[now[motion.inliers]]
        self._keep(shot)
        inliers = int(self.tracks.deep.sum())
        if inliers < self.settings.least_inliers:
            return self._begun(shot, expected, "too few inliers", inliers)
        return Step(self.T_world_body, "", inliers)

    # From picture to picture

    def _moved(self, shot: Shot, located: Located, inliers: int) -> Step:
        self.T_world_body = se3.invert(shot.T_body_camera @ located.T_camera_world)
        good = np.ones(len(self.tracks), dtype=bool)
        good[self.tracks.deep] = located.inliers
        self.tracks = self.tracks[good]
        if self._is_keyframe():
            self._keep(shot)
        covariance = se3.transform_covariance(shot.T_body_camera, located.covariance)
        return Step(self.T_world_body, "", inliers, covariance)

    # Keyframes

    def _is_keyframe(self) -> bool:
        last = self.views[-1]
        _, now, then = np.intersect1d(self.tracks.ids, last.ids, return_indices=True)
        if len(now) < self.settings.share * self.at_keyframe:
            return True
        moved = np.linalg.norm(self.tracks.pixels[now] - last.pixels[then], axis=1)
        return float(np.median(moved)) > self.settings.parallax

    def _keep(self, shot: Shot) -> None:
        """Make the picture a keyframe: see depths, adjust, and add corners."""
        self.views = [*self.views, self._view(shot)][-self.settings.views :]
        if len(self.views) > 1:
            self._deepen(shot.K)
            self._adjust(shot.K)
            self._deepen(shot.K)
            self._add_corners(shot)
            self.views[-1] = self._view(shot)
        self.at_keyframe = len(self.tracks)

    def _view(self, shot: Shot) -> View:
        return View(
            self.T_world_body, shot.T_body_camera, shot.reference, self.tracks.ids, self.tracks.pixels
        )

    def _deepen(self, K: Floats) -> None:
        """Give depth to points that have been seen from far enough apart."""
        flat = np.flatnonzero(~self.tracks.deep)
        pixels = np.full((len(self.views), len(flat), 2), np.nan)
        for seen, view in zip(pixels, self.views, strict=True):
            _, here, there = np.intersect1d(self.tracks.ids[flat], view.ids, return_indices=True)
            seen[here] = view.pixels[there]
        points = self.tracks.points.copy()
        points[flat] = triangulate(np.array([view.T_world_camera for view in self.views]), pixels, K)
        self.tracks = replace(self.tracks, points=points)

    def _adjust(self, K: Floats) -> None:
        poses, points = adjust(self.views, self.tracks.ids, self.tracks.points, K, self.settings.steps)
        self.views = [replace(v, T_world_body=T) for v, T in zip(self.views, poses, strict=True)]
        self.T_world_body, self.tracks = poses[-1], replace(self.tracks, points=points)

    def _add_corners(self, shot: Shot) -> None:
        height, width = shot.picture.shape
        cell = max(round(float(np.sqrt(width * height / self.settings.features))), 1)
        new = corners(shot.picture, self.tracks.pixels, cell, shot.valid)
        ids = np.arange(self.next_id, self.next_id + len(new))
        self.next_id += len(new)
        self.tracks = Tracks(
            np.concatenate([self.tracks.ids, ids]),
            np.concatenate([self.tracks.pixels, new]),
            np.concatenate([self.tracks.points, np.full((len(new), 3), np.nan)]),
        )


def _scaled(rotation: Floats, direction: Floats, first: View, shot: Shot) -> Floats:
    """Return ``T_first_now`` (4, 4) of the cameras, as far apart as the reference moved the body.

    The reference may be flat: only its translation is taken, and the camera's lever arms turned by what was
    seen.
    """
    R_body = first.T_body_camera[:3, :3] @ rotation @ shot.T_body_camera[:3, :3].T
    shift = (se3.invert(first.reference) @ shot.reference)[:3, 3]
    moved = shift + R_body @ shot.T_body_camera[:3, 3] - first.T_body_camera[:3, 3]
    return se3.from_matrix(rotation, float(np.linalg.norm(moved)) * direction)
