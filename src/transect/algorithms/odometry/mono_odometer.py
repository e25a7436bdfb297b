"""Visual odometry of one camera, with the scale from another odometry."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from transect.base.arrays import Bytes, Floats, Ints, Mask
from transect.geometry import se3

from .mono_geometry import (
    MONO_GEOMETRY,
    MonoGeometrySettings,
    estimate_two_view_motion,
    median_parallax,
    project,
    triangulate_tracks,
)
from .mono_window import (
    MONO_ADJUSTMENT,
    MonoAdjustmentSettings,
    MonoKeyframe,
    adjust_views,
    reference_translation,
    scale_about_last,
)
from .stereo_landmarks import SparseMap, sample_gray
from .stereo_motion import RESECTION, CameraResection, ResectionSettings, locate_camera
from .stereo_odometer import is_dark
from .stereo_rig import StereoRig
from .stereo_tracking import KLT, KltSettings, find_corners, track_points

NEEDS_MOTION = "needs motion to see depth"


@dataclass(frozen=True)
class MonoOdometrySettings:
    """Keyframes, and acceptance of poses."""

    features: int = 400  # largest number of corners per image
    min_inliers: int = 20
    min_inlier_ratio: float = 0.2  # of the points with depth; chance reaches half of it
    keyframes: int = 8  # adjusted together
    # Motion of points since the last keyframe, in addition to rotation, that makes a new keyframe; views
    # from one position would not constrain the scale. The first two keyframes need twice that motion.
    parallax_px: float = 10.0
    min_tracked_ratio: float = 0.7  # of a keyframe's points; below it a new keyframe starts
    # Smallest cosine between the first visual motion and the reference: with little parallax, or while the
    # camera mostly rotates, another motion may explain the pixels as well.
    min_direction_cosine: float = 0.9
    scale_memory_m: float = 10.0  # path over which lengths of the reference are averaged
    tracking: KltSettings = KLT
    geometry: MonoGeometrySettings = MONO_GEOMETRY
    resection: ResectionSettings = RESECTION
    adjustment: MonoAdjustmentSettings = MONO_ADJUSTMENT


@dataclass(frozen=True, eq=False)
class MonoImage:
    """An image, with the mounting of the camera and the pose of the body by the reference odometry."""

    gray: Bytes
    valid: Mask | None  # pixels that were measured; None: all
    K: Floats  # (3, 3)
    T_body_camera: Floats  # (4, 4)
    T_reference_body: Floats  # (4, 4)


@dataclass(frozen=True, eq=False)
class MonoTracks:
    """Points that the last image observed."""

    ids: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # (n,)
    pixels: Floats = field(default_factory=lambda: np.zeros((0, 2)))  # (n, 2)
    points: Floats = field(default_factory=lambda: np.zeros((0, 3)))  # (n, 3) m, world; NaN without depth
    sigma: Floats = field(default_factory=lambda: np.zeros(0))  # (n,) m

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> MonoTracks:
        return MonoTracks(self.ids[rows], self.pixels[rows], self.points[rows], self.sigma[rows])

    @property
    def have_depth(self) -> Mask:
        """Which points have a depth (n,)."""
        return np.isfinite(self.points[:, 0])


@dataclass(frozen=True, eq=False)
class MonoPose:
    """Result of an image."""

    T_world_body: Floats | None  # (4, 4)
    reason: str = ""  # why there is no pose
    inliers: int = 0
    covariance: Floats | None = None  # (6, 6) of the motion since the last pose, in the body's axes: m, rad


class MonoOdometer:
    """Estimates the poses of a body from the images of its camera and the lengths of a reference odometry."""

    def __init__(self, settings: MonoOdometrySettings) -> None:
        self.settings = settings
        self.T_world_body = np.eye(4)
        self.previous: MonoImage | None = None
        self.tracks = MonoTracks()
        self.keyframes: list[MonoKeyframe] = []
        self.map = SparseMap()
        self.path_m = 0.0  # since the last restart
        self.keyframe_tracks = self.next_id = 0

    def advance(self, image: MonoImage) -> MonoPose:
        """Process the next image."""
        if is_dark(image.gray):
            return MonoPose(None, "too dark")
        if self.previous is None:
            return self._restart(image, self.T_world_body, NEEDS_MOTION)
        predicted = self.T_world_body @ se3.invert(self.previous.T_reference_body) @ image.T_reference_body
        self._track(image, predicted)
        if len(self.keyframes) < 2:
            return self._initialise(image)
        located = self._locate(image, predicted)
        inliers = 0 if located is None else int(located.inliers.sum())
        min_inliers = max(
            self.settings.min_inliers,
            self.settings.min_inlier_ratio * int(self.tracks.have_depth.sum()),
        )
        if located is None or inliers < min_inliers:
            return self._restart(image, predicted, "too few inliers", inliers)
        return self._accept(image, located, inliers)

    # Tracking

    def _track(self, image: MonoImage, predicted: Floats) -> None:
        """Track all points from the previous image, starting at their predicted pixels."""
        assert self.previous is not None
        T_camera_world = se3.invert(predicted @ image.T_body_camera)
        initial = project(se3.apply(T_camera_world, self.tracks.points), image.K)
        size = np.array(image.gray.shape[::-1])
        inside = np.all((initial >= 0) & (initial < size), axis=1, keepdims=True)
        initial = np.where(inside, initial, self.tracks.pixels)
        pixels, found = track_points(
            self.previous.gray, image.gray, self.tracks.pixels, initial, self.settings.tracking
        )
        self.tracks = replace(self.tracks, pixels=pixels)[found]
        self.previous = image

    def _locate(self, image: MonoImage, predicted: Floats) -> CameraResection | None:
        """Return the pose of the camera among the points with depth."""
        known = self.tracks[self.tracks.have_depth]
        pixels = np.column_stack([known.pixels, np.full(len(known), np.nan)])
        height, width = image.gray.shape
        fx, fy, cx, cy = (float(image.K[cell]) for cell in ((0, 0), (1, 1), (0, 2), (1, 2)))
        rig = StereoRig(fx, fy, cx, cy, 0.0, width, height)
        guess = se3.invert(predicted @ image.T_body_camera)
        return locate_camera(known.points, pixels, rig, guess, self.settings.resection)

    # Initialisation

    def _restart(self, image: MonoImage, pose: Floats, reason: str, inliers: int = 0) -> MonoPose:
        """Restart with an image, the body at a given pose."""
        self.tracks, self.keyframes, self.T_world_body = MonoTracks(), [], pose
        self.previous, self.path_m = image, 0.0
        self._add_corners(image)
        if len(self.tracks) < self.settings.min_inliers:
            self.previous = None
            return MonoPose(None, "too few features")
        self._add_keyframe(image)
        return MonoPose(None, reason, inliers)

    def _initialise(self, image: MonoImage) -> MonoPose:
        """Estimate the motion from the first keyframe: visual, with the length of the reference."""
        settings, first = self.settings, self.keyframes[0]
        predicted = first.T_world_body @ se3.invert(first.T_reference_body) @ image.T_reference_body
        _, current, previous = np.intersect1d(self.tracks.ids, first.ids, return_indices=True)
        if len(current) < settings.min_inliers:
            return self._restart(image, predicted, "too few tracked points")
        pixels, first_pixels = self.tracks.pixels[current], first.pixels[previous]
        moved_px = float(np.median(np.linalg.norm(pixels - first_pixels, axis=1)))
        motion = estimate_two_view_motion(first_pixels, pixels, image.K, settings.geometry)
        if moved_px < 2 * settings.parallax_px or motion is None:
            return MonoPose(None, NEEDS_MOTION)
        R_body = first.T_body_camera[:3, :3] @ motion.rotation @ image.T_body_camera[:3, :3].T
        translation = reference_translation(first, self._keyframe(image), R_body)
        length = float(translation @ first.T_body_camera[:3, :3] @ motion.direction)
        if length < settings.min_direction_cosine * np.linalg.norm(translation):
            return MonoPose(None, "visual motion and reference disagree in direction")
        T_first_camera = se3.from_matrix(motion.rotation, length * motion.direction)
        self.T_world_body = first.T_world_camera @ T_first_camera @ se3.invert(image.T_body_camera)
        self.tracks = self.tracks[current[motion.inliers]]
        self._add_keyframe(image)
        inliers = int(self.tracks.have_depth.sum())
        if inliers < settings.min_inliers:
            return self._restart(image, predicted, "too few inliers", inliers)
        return MonoPose(self.T_world_body, "", inliers)

    # Poses

    def _accept(self, image: MonoImage, located: CameraResection, inliers: int) -> MonoPose:
        self.T_world_body = se3.invert(image.T_body_camera @ located.T_camera_world)
        is_inlier = np.ones(len(self.tracks), dtype=bool)
        is_inlier[self.tracks.have_depth] = located.inliers
        self.tracks = self.tracks[is_inlier]
        if self._needs_keyframe(image):
            self._add_keyframe(image)
        covariance = se3.transform_covariance(image.T_body_camera, located.covariance)
        return MonoPose(self.T_world_body, "", inliers, covariance)

    # Keyframes

    def _needs_keyframe(self, image: MonoImage) -> bool:
        """Return whether many points were lost, or the parallax is large enough."""
        last = self.keyframes[-1]
        _, current, previous = np.intersect1d(self.tracks.ids, last.ids, return_indices=True)
        if len(current) < self.settings.min_tracked_ratio * self.keyframe_tracks:
            return True
        R_last_current = last.T_world_camera[:3, :3].T @ (self.T_world_body @ image.T_body_camera)[:3, :3]
        parallax_px = median_parallax(
            last.pixels[previous], self.tracks.pixels[current], R_last_current, image.K
        )
        return parallax_px > self.settings.parallax_px

    def _add_keyframe(self, image: MonoImage) -> None:
        """Make the image a keyframe: triangulate, adjust, and add corners."""
        self.keyframes = [*self.keyframes, self._keyframe(image)][-self.settings.keyframes :]
        if len(self.keyframes) > 1:
            self._triangulate(~self.tracks.have_depth, image.K)
            self._adjust(image.K)
            self._triangulate(np.ones(len(self.tracks), dtype=bool), image.K)
            self._correct_scale()
            known = self.tracks[self.tracks.have_depth]
            self.map.update(known.ids, known.points, known.sigma, sample_gray(image.gray, known.pixels))
            self._add_corners(image)
            self.keyframes[-1] = self._keyframe(image)
        self.keyframe_tracks = len(self.tracks)

    def _keyframe(self, image: MonoImage) -> MonoKeyframe:
        return MonoKeyframe(
            self.T_world_body,
            image.T_body_camera,
            image.T_reference_body,
            self.tracks.ids,
            self.tracks.pixels,
        )

    def _triangulate(self, rows: Mask, K: Floats) -> None:
        """Triangulate points without depth among these rows, and update the sigma of all of them."""
        pixels = np.full((len(self.keyframes), int(rows.sum()), 2), np.nan)
        for observed, keyframe in zip(pixels, self.keyframes, strict=True):
            _, track_rows, view_rows = np.intersect1d(
                self.tracks.ids[rows], keyframe.ids, return_indices=True
            )
            observed[track_rows] = keyframe.pixels[view_rows]
        poses = np.array([keyframe.T_world_camera for keyframe in self.keyframes])
        found = triangulate_tracks(poses, pixels, K, self.settings.geometry)
        points, sigma = self.tracks.points.copy(), self.tracks.sigma.copy()
        points[rows] = np.where(self.tracks.have_depth[rows, None], points[rows], found.points)
        sigma[rows] = found.sigma
        self.tracks = replace(self.tracks, points=points, sigma=sigma)

    def _adjust(self, K: Floats) -> None:
        poses, points = adjust_views(
            self.keyframes, self.tracks.ids, self.tracks.points, K, self.settings.adjustment
        )
        self.keyframes = [
            replace(keyframe, T_world_body=T) for keyframe, T in zip(self.keyframes, poses, strict=True)
        ]
        self.T_world_body, self.tracks = poses[-1], replace(self.tracks, points=points)

    def _correct_scale(self) -> None:
        """Scale the map slightly towards the length of the last motion by the reference."""
        previous, current = self.keyframes[-2:]
        T_previous_current = se3.invert(previous.T_world_body) @ current.T_world_body
        moved = current.T_world_camera[:3, 3] - previous.T_world_camera[:3, 3]
        visual_m = float(np.linalg.norm(moved))
        if visual_m == 0:
            return
        translation = previous.T_world_body[:3, :3] @ reference_translation(
            previous, current, T_previous_current[:3, :3]
        )
        # The component along the visual motion, because the norm of a noisy vector is biased.
        reference_m = float(translation @ moved) / visual_m
        self.path_m += visual_m
        # Clipped, so that a single slip or jump has a limited effect.
        excess_m = float(np.clip(reference_m - visual_m, -visual_m, visual_m))
        factor = float(np.exp(excess_m / min(self.path_m, self.settings.scale_memory_m)))
        self.keyframes, points = scale_about_last(self.keyframes, self.tracks.points, factor)
        self.T_world_body = self.keyframes[-1].T_world_body
        self.tracks = replace(self.tracks, points=points)

    def _add_corners(self, image: MonoImage) -> None:
        height, width = image.gray.shape
        cell_px = max(round(float(np.sqrt(width * height / self.settings.features))), 1)
        new = find_corners(
            image.gray, self.tracks.pixels, cell_px, image.valid, settings=self.settings.tracking
        )
        ids = np.arange(self.next_id, self.next_id + len(new))
        self.next_id += len(new)
        self.tracks = MonoTracks(
            np.concatenate([self.tracks.ids, ids]),
            np.concatenate([self.tracks.pixels, new]),
            np.concatenate([self.tracks.points, np.full((len(new), 3), np.nan)]),
            np.concatenate([self.tracks.sigma, np.full(len(new), np.nan)]),
        )
