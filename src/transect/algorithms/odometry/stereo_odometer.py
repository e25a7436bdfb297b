"""Odometry of a stereo pair: predicts, looks, locates, and keeps what the next pair needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Bytes, Floats
from transect.base.clocks import NS
from transect.geometry import se3

from .stereo_landmarks import Landmarks, gray_at
from .stereo_motion import Located, locate
from .stereo_rig import StereoRig
from .stereo_tracking_methods import GrayPair, KltTracking, Sight, TrackingMethod, Tracks
from .stereo_window import SIGMA, Keyframe, adjust, are_among

DARK, MOST_DARK = 8, 0.9
"""Gray value, of 255, and share of pixels: where more of them are darker, noise is what is left to track."""
OVERLAP, AGREE = 0.1, 0.2
"""Of the corners that both cameras must see, and of the points found again that must agree on a motion: what
chance would do with pictures of two different places is half of it."""
FARTHEST = 200.0
"""Baselines to a new point: at a focal length of 300 pixels its disparity is 1.5 there, and noise a fifth."""


@dataclass(frozen=True)
class StereoOdometrySettings:
    """What decides an odometer.

    Attributes
    ----------
    least_inliers : int
        Points that must agree on a motion.
    keyframes : int
        Of the window that is adjusted together; 1 for none.
    every, share : int, float
        A keyframe is taken after so many frames, or when less than this share of its points is left.
    steps : int
        Of the adjustment.
    """

    least_inliers: int = 20
    keyframes: int = 5
    every: int = 3
    share: float = 0.8
    steps: int = 2


@dataclass(frozen=True, eq=False)
class StereoPose:
    """What a pair of pictures came to.

    Attributes
    ----------
    T_world_camera : (4, 4) or None
    failed : str
        Why there is no pose; "" where there is one.
    inliers : int
    covariance : (6, 6) or None
        Of the motion since the pose before: translation (m), rotation (rad), in the axes of the camera now.
    """

    T_world_camera: Floats | None
    failed: str = ""
    inliers: int = 0
    covariance: Floats | None = None


class StereoOdometer:
    """Where a stereo pair is, from pair to pair.

    Parameters
    ----------
    rig : StereoRig
    tracking : TrackingMethod
        Finds points again; by default corners by their gray values.
    settings : StereoOdometrySettings
    """

    def __init__(
        self,
        rig: StereoRig,
        tracking: TrackingMethod | None = None,
        settings: StereoOdometrySettings | None = None,
    ) -> None:
        self.rig, self.front = rig, tracking or KltTracking()
        self.settings = settings or StereoOdometrySettings()
        self.T_world_camera = np.eye(4)
        self.twist = np.zeros(6)
        self.before: GrayPair | None = None
        self.t_ns = 0
        self.tracks = _no_tracks()
        self.window: list[Keyframe] = []
        self.lost = _no_tracks()
        self.landmarks = Landmarks()
        self.age = self.at_keyframe = self.next_id = 0

    def advance(self, pair: GrayPair, t_ns: int) -> StereoPose:
        """Take the next pair of pictures."""
        if is_dark(pair.left):
            return StereoPose(None, "too dark")
        if self.before is None:
            return self._begin(pair, t_ns, self.T_world_camera)
        expected = self._expect(t_ns)
        fresh = self._is_keyframe()
        pixels = self._predict(expected)
        sight = self.front.look(self.before, pair, self.tracks, pixels, self.rig, fresh)
        located = locate(self.tracks.points[sight.rows], sight.pixels, self.rig, se3.invert(expected))
        inliers = 0 if located is None else int(located.inliers.sum())
        if located is None or inliers < max(self.settings.least_inliers, AGREE * len(sight.rows)):
            return self._lose(pair, t_ns, expected, sight, inliers)
        return self._move(pair, t_ns, sight, located, fresh)

    # Beginning, also anew

    def _begin(self, pair: GrayPair, t_ns: int, at: Floats) -> StereoPose:
        """Begin with nothing but this pair, taken at a place."""
        sight = self.front.look(None, pair, _no_tracks(), np.zeros((0, 3)), self.rig, True)
        if sight.candidates < self.settings.least_inliers:
            return StereoPose(None, "too few features")
        if len(sight.fresh) < max(self.settings.least_inliers, OVERLAP * sight.candidates):
            overlap = "no stereo overlap: too few points seen by both cameras"
            return StereoPose(None, "the right camera is too dark" if is_dark(pair.right) else overlap)
        self.tracks, self.lost, self.window, self.T_world_camera = _no_tracks(), _no_tracks(), [], at
        self._take(pair, sight)
        self.before, self.t_ns = pair, t_ns
        return StereoPose(self.T_world_camera, "", len(self.tracks))

    def _lose(self, pair: GrayPair, t_ns: int, expected: Floats, sight: Sight, inliers: int) -> StereoPose:
        """Begin anew where the camera should be by now; a picture that shows nothing is passed over."""
        began = self._begin(pair, t_ns, expected)
        few = len(sight.rows) < self.settings.least_inliers
        return StereoPose(
            None, began.failed or ("too few points found again" if few else "too few inliers"), inliers
        )

    # From pair to pair

    def _expect(self, t_ns: int) -> Floats:
        return self.T_world_camera @ se3.exp(self.twist * ((t_ns - self.t_ns) / NS))

    def _predict(self, T_world_camera: Floats) -> Floats:
        """Pixels (n, 3) where the tracks should be; where they are now, if that is out of sight."""
        pixels = self.rig.pixels(se3.apply(se3.invert(T_world_camera), self.tracks.points))
        edge = np.array([self.rig.width, self.rig.height])
        inside = np.all((pixels[:, :2] >= 0) & (pixels[:, :2] < edge), axis=1, keepdims=True)
        before = self.rig.pixels(se3.apply(se3.invert(self.T_world_camera), self.tracks.points))
        return np.where(inside, pixels, before)

    def _is_keyframe(self) -> bool:
        """Tell whether the next pair is to bring new points."""
        few = len(self.tracks) < self.settings.share * self.at_keyframe
        return few or self.age + 1 >= self.settings.every

    def _move(self, pair: GrayPair, t_ns: int, sight: Sight, located: Located, fresh: bool) -> StereoPose:
        before, seconds = self.T_world_camera, (t_ns - self.t_ns) / NS
        self.T_world_camera = se3.invert(located.T_camera_world)
        kept = self.tracks[sight.rows]
        described = sight.descriptors if len(sight.descriptors) else kept.descriptors
        found = replace(kept, pixels=sight.pixels, descriptors=described)[located.inliers]
        gone = np.ones(len(self.tracks), dtype=bool)
        gone[sight.rows[located.inliers]] = False
        self.lost = _join(self.lost, self.tracks[gone])
        self.tracks = found
        self.before, self.t_ns, self.age = pair, t_ns, self.age + 1
        if fresh:
            self._take(pair, sight)
        if seconds > 0:
            self.twist = se3.log(se3.invert(before) @ self.T_world_camera) / seconds
        inliers = int(located.inliers.sum())
        return StereoPose(self.T_world_camera, "", inliers, located.covariance)

    # Keyframes

    def _take(self, pair: GrayPair, sight: Sight) -> None:
        """Make the pair a keyframe: adjust the window, and add its new points."""
        if self.settings.keyframes > 1:
            self._adjust()
        else:
            self._refresh()
        self._add(sight)
        self._remember(pair)
        self.age, self.at_keyframe = 0, len(self.tracks)
        if self.settings.keyframes > 1:
            frame = Keyframe(self.T_world_camera, self.tracks.ids, self.tracks.pixels)
            self.window = [*self.window, frame][-self.settings.keyframes :]

    def _refresh(self) -> None:
        """Take the points as this pair sees them: without a window, nothing better is known."""
        stereo = ~np.isnan(self.tracks.pixels[:, 2])
        kept = self.tracks[stereo]
        points = se3.apply(self.T_world_camera, self.rig.points(kept.pixels))
        self.tracks = replace(kept, points=points)

    def _adjust(self) -> None:
        """Adjust the window: its poses and all points that it saw, also those that were lost meanwhile."""
        now = Keyframe(self.T_world_camera, self.tracks.ids, self.tracks.pixels)
        frames = [*self.window, now][-self.settings.keyframes :]
        self.lost = self.lost[are_among(self.lost.ids, np.concatenate([frame.ids for frame in frames]))]
        if len(frames) < 3:
            return
        ids = np.concatenate([self.lost.ids, self.tracks.ids])
        points = np.concatenate([self.lost.points, self.tracks.points])
        order = np.argsort(ids)
        poses, moved = adjust(frames, ids[order], points[order], self.rig, self.settings.steps)
        points[order] = moved
        self.window = [replace(f, T_world_camera=T) for f, T in zip(frames[:-1], poses[:-1], strict=True)]
        self.lost = replace(self.lost, points=points[: len(self.lost)])
        self.T_world_camera = poses[-1]
        self.tracks = replace(self.tracks, points=points[len(self.lost) :])

    def _remember(self, pair: GrayPair) -> None:
        """Put what is known now on the map."""
        near = se3.apply(se3.invert(self.T_world_camera), self.tracks.points)
        sigma = self.rig.depth_sigma(near, np.sqrt(2) * SIGMA)
        gray = gray_at(pair.left, self.tracks.pixels)
        self.landmarks.see(self.tracks.ids, self.tracks.points, sigma, gray)

    def _add(self, sight: Sight) -> None:
        near = self.rig.points(sight.fresh)
        good = near[:, 2] < FARTHEST * self.rig.baseline
        count = int(good.sum())
        ids = np.arange(self.next_id, self.next_id + count)
        self.next_id += count
        points = se3.apply(self.T_world_camera, near[good])
        words = sight.fresh_descriptors[good] if len(sight.fresh_descriptors) else sight.fresh_descriptors
        self.tracks = _join(self.tracks, Tracks(ids, sight.fresh[good], points, words))


def is_dark(picture: Bytes) -> bool:
    """Tell whether a picture shows nothing but noise."""
    some = picture[::4, ::4]
    return bool(np.count_nonzero(some < DARK) > MOST_DARK * some.size)


def _no_tracks() -> Tracks:
    return Tracks(np.zeros(0, dtype=np.int64), np.zeros((0, 3)), np.zeros((0, 3)))


def _join(one: Tracks, other: Tracks) -> Tracks:
    """Return the tracks of both."""
    words = [each.descriptors for each in (one, other) if len(each.descriptors)]
    return Tracks(
        np.concatenate([one.ids, other.ids]),
        np.concatenate([one.pixels, other.pixels]),
        np.concatenate([one.points, other.points]),
        np.concatenate(words) if words else one.descriptors,
    )
