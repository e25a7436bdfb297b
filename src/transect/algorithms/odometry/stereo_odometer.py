"""Stereo visual odometry: prediction, tracking, pose estimation, and adjustment of the last keyframes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Bytes, Floats
from transect.base.clocks import NS
from transect.geometry import se3

from .stereo_landmarks import SparseMap, sample_gray
from .stereo_motion import RESECTION, CameraResection, ResectionSettings, locate_camera
from .stereo_rig import StereoRig
from .stereo_tracking_methods import GrayPair, KltTracking, PairObservation, PointTracks, TrackingMethod
from .stereo_window import (
    ADJUSTMENT,
    StereoAdjustmentSettings,
    StereoKeyframe,
    adjust_keyframes,
    contains_ids,
)

MAX_DEPTH_BASELINES = 200.0
"""Largest depth of a new point; at a focal length of 300 px its disparity is 1.5 px, five times its noise."""


@dataclass(frozen=True)
class StereoOdometrySettings:
    """Keyframes, and acceptance of poses."""

    min_inliers: int = 20
    # Images of different places reach half of these ratios by chance.
    min_inlier_ratio: float = 0.2  # of the tracked points
    min_stereo_ratio: float = 0.1  # of the corners that both cameras must observe
    keyframes: int = 5  # adjusted together; 1 for none
    keyframe_interval: int = 3  # largest number of frames from one keyframe to the next
    min_tracked_ratio: float = 0.8  # of a keyframe's points; below it a new keyframe starts
    max_depth_baselines: float = MAX_DEPTH_BASELINES
    resection: ResectionSettings = RESECTION
    adjustment: StereoAdjustmentSettings = ADJUSTMENT


@dataclass(frozen=True, eq=False)
class StereoPose:
    """Result of an image pair."""

    T_world_camera: Floats | None  # (4, 4)
    reason: str = ""  # why there is no pose
    inliers: int = 0
    covariance: Floats | None = None  # (6, 6) of the motion since the last pose, in the camera's axes: m, rad


class StereoOdometer:
    """Estimates the poses of a stereo pair from its images.

    Parameters
    ----------
    tracking : TrackingMethod, optional
        By default KLT.
    """

    def __init__(
        self,
        rig: StereoRig,
        tracking: TrackingMethod | None = None,
        settings: StereoOdometrySettings | None = None,
    ) -> None:
        self.rig, self.tracking = rig, tracking or KltTracking()
        self.settings = settings or StereoOdometrySettings()
        self.T_world_camera = np.eye(4)
        self.velocity = np.zeros(6)
        self.previous: GrayPair | None = None
        self.t_ns = 0
        self.tracks = self.lost_tracks = PointTracks.none()
        self.window: list[StereoKeyframe] = []
        self.map = SparseMap()
        self.keyframe_age = self.keyframe_tracks = self.next_id = 0

    def advance(self, pair: GrayPair, t_ns: int) -> StereoPose:
        """Process the next pair of images."""
        if is_dark(pair.left):
            return StereoPose(None, "too dark")
        if self.previous is None:
            return self._initialise(pair, t_ns, self.T_world_camera)
        predicted = self.T_world_camera @ se3.exp(self.velocity * ((t_ns - self.t_ns) / NS))
        is_keyframe = self._needs_keyframe()
        pixels = self._predict_pixels(predicted)
        observed = self.tracking.observe(self.previous, pair, self.tracks, pixels, self.rig, is_keyframe)
        located = locate_camera(
            self.tracks.points[observed.rows],
            observed.pixels,
            self.rig,
            se3.invert(predicted),
            self.settings.resection,
        )
        inliers = 0 if located is None else int(located.inliers.sum())
        min_inliers = max(self.settings.min_inliers, self.settings.min_inlier_ratio * len(observed.rows))
        if located is None or inliers < min_inliers:
            return self._restart(pair, t_ns, predicted, observed, inliers)
        return self._accept(pair, t_ns, observed, located, is_keyframe)

    # Initialisation

    def _initialise(self, pair: GrayPair, t_ns: int, pose: Floats) -> StereoPose:
        """Start a new map with a pair at a given pose."""
        none = PointTracks.none()
        observed = self.tracking.observe(None, pair, none, np.zeros((0, 3)), self.rig, True)
        min_inliers = self.settings.min_inliers
        if observed.candidates < min_inliers:
            return StereoPose(None, "too few features")
        if len(observed.new_pixels) < max(min_inliers, self.settings.min_stereo_ratio * observed.candidates):
            overlap = "no stereo overlap: too few points seen by both cameras"
            return StereoPose(None, "the right camera is too dark" if is_dark(pair.right) else overlap)
        self.tracks, self.lost_tracks, self.window, self.T_world_camera = none, none, [], pose
        self._add_keyframe(pair, observed)
        self.previous, self.t_ns = pair, t_ns
        return StereoPose(self.T_world_camera, "", len(self.tracks))

    def _restart(
        self, pair: GrayPair, t_ns: int, predicted: Floats, observed: PairObservation, inliers: int
    ) -> StereoPose:
        """Restart at the predicted pose; a pair without features is skipped."""
        started = self._initialise(pair, t_ns, predicted)
        few = len(observed.rows) < self.settings.min_inliers
        reason = started.reason or ("too few tracked points" if few else "too few inliers")
        return StereoPose(None, reason, inliers)

    # Tracking

    def _predict_pixels(self, T_world_camera: Floats) -> Floats:
        """Return predicted pixels (n, 3) of the tracks; their last ones if predicted outside the image."""
        predicted = self.rig.pixels(se3.apply(se3.invert(T_world_camera), self.tracks.points))
        size = np.array([self.rig.width, self.rig.height])
        inside = np.all((predicted[:, :2] >= 0) & (predicted[:, :2] < size), axis=1, keepdims=True)
        last = self.rig.pixels(se3.apply(se3.invert(self.T_world_camera), self.tracks.points))
        return np.where(inside, predicted, last)

    def _needs_keyframe(self) -> bool:
        few = len(self.tracks) < self.settings.min_tracked_ratio * self.keyframe_tracks
        return few or self.keyframe_age + 1 >= self.settings.keyframe_interval

    def _accept(
        self,
        pair: GrayPair,
        t_ns: int,
        observed: PairObservation,
        located: CameraResection,
        is_keyframe: bool,
    ) -> StereoPose:
        last_pose, seconds = self.T_world_camera, (t_ns - self.t_ns) / NS
        self.T_world_camera = se3.invert(located.T_camera_world)
        observed_tracks = self.tracks[observed.rows]
        descriptors = observed.descriptors if len(observed.descriptors) else observed_tracks.descriptors
        lost = np.ones(len(self.tracks), dtype=bool)
        lost[observed.rows[located.inliers]] = False
        self.lost_tracks = self.lost_tracks.join(self.tracks[lost])
        self.tracks = replace(observed_tracks, pixels=observed.pixels, descriptors=descriptors)[
            located.inliers
        ]
        self.previous, self.t_ns, self.keyframe_age = pair, t_ns, self.keyframe_age + 1
        if is_keyframe:
            self._add_keyframe(pair, observed)
        if seconds > 0:
            self.velocity = se3.log(se3.invert(last_pose) @ self.T_world_camera) / seconds
        return StereoPose(self.T_world_camera, "", int(located.inliers.sum()), located.covariance)

    # Keyframes

    def _add_keyframe(self, pair: GrayPair, observed: PairObservation) -> None:
        """Make the pair a keyframe: adjust the window, and add new points."""
        if self.settings.keyframes > 1:
            self._adjust()
        else:
            self._retriangulate()
        self._add_points(observed)
        self._update_map(pair)
        self.keyframe_age, self.keyframe_tracks = 0, len(self.tracks)
        if self.settings.keyframes > 1:
            self.window = [*self.window, self._keyframe()][-self.settings.keyframes :]

    def _keyframe(self) -> StereoKeyframe:
        return StereoKeyframe(self.T_world_camera, self.tracks.ids, self.tracks.pixels)

    def _retriangulate(self) -> None:
        """Triangulate all points from this pair alone, since there is no window; drop unmatched ones."""
        tracks = self.tracks[~np.isnan(self.tracks.pixels[:, 2])]
        points = se3.apply(self.T_world_camera, self.rig.points(tracks.pixels))
        self.tracks = replace(tracks, points=points)

    def _adjust(self) -> None:
        """Adjust the poses of the window and all points that it observed, including lost ones."""
        frames = [*self.window, self._keyframe()][-self.settings.keyframes :]
        window_ids = np.concatenate([frame.ids for frame in frames])
        self.lost_tracks = self.lost_tracks[contains_ids(self.lost_tracks.ids, window_ids)]
        if len(frames) < 3:
            return
        count = len(self.lost_tracks)
        ids = np.concatenate([self.lost_tracks.ids, self.tracks.ids])
        points = np.concatenate([self.lost_tracks.points, self.tracks.points])
        order = np.argsort(ids)
        poses, adjusted = adjust_keyframes(
            frames, ids[order], points[order], self.rig, self.settings.adjustment
        )
        points[order] = adjusted
        self.window = [replace(f, T_world_camera=T) for f, T in zip(frames[:-1], poses[:-1], strict=True)]
        self.lost_tracks = replace(self.lost_tracks, points=points[:count])
        self.T_world_camera = poses[-1]
        self.tracks = replace(self.tracks, points=points[count:])

    def _update_map(self, pair: GrayPair) -> None:
        """Update the sparse map with the current points and the sigma of their depth."""
        in_camera = se3.apply(se3.invert(self.T_world_camera), self.tracks.points)
        sigma = self.rig.depth_sigma(in_camera, np.sqrt(2) * self.settings.adjustment.noise_px)
        self.map.update(
            self.tracks.ids, self.tracks.points, sigma, sample_gray(pair.left, self.tracks.pixels)
        )

    def _add_points(self, observed: PairObservation) -> None:
        in_camera = self.rig.points(observed.new_pixels)
        accepted = in_camera[:, 2] < self.settings.max_depth_baselines * self.rig.baseline
        count = int(accepted.sum())
        ids = np.arange(self.next_id, self.next_id + count)
        self.next_id += count
        points = se3.apply(self.T_world_camera, in_camera[accepted])
        descriptors = observed.new_descriptors
        descriptors = descriptors[accepted] if len(descriptors) else descriptors
        new = PointTracks(ids, observed.new_pixels[accepted], points, descriptors)
        self.tracks = self.tracks.join(new)


def is_dark(image: Bytes, max_dark_gray: int = 8, max_dark_ratio: float = 0.9) -> bool:
    """Return whether an image is too dark to track: most gray values, of 255, are at the noise level."""
    sample = image[::4, ::4]
    return bool(np.count_nonzero(sample < max_dark_gray) > max_dark_ratio * sample.size)
