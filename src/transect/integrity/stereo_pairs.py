"""Quality of stereo pairs: features, matches, triangulated points and pose.

The last pair of a window and the pair before it are processed, once for all checks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from transect.algorithms.vision.pose_estimation import pixel_distances, solve_pnp_ransac
from transect.algorithms.vision.rectification import is_rectified_pair, pair_baseline
from transect.algorithms.vision.triangulation import focal_length, homogeneous, normalise_pixels
from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.evaluation.vision import Triangulation, match_quality, triangulate
from transect.geometry import se3
from transect.nodes.features.features_2d import OrbDetectorDescriptor
from transect.types import CameraModel, Features2D, Image

from .image_statistics import image_at
from .model import CheckContext, Unknown
from .windows import Window

SIDES = (("left", "right"), ("right", "left"))


@dataclass(frozen=True)
class StereoSettings:
    """Numbers of the feature tracking; pixels are those of the reduced image."""

    reduced_width_px: int = 640  # Columns to which images are reduced, and ...
    max_features: int = 500  # ... features per image.
    fine_width_px: int = 1280  # The same of a second pass for pairs with few tracked points.
    max_fine_features: int = 4000
    min_inliers: int = 20  # PnP inliers below which there is a second pass.
    min_width_px: int = 240  # Columns of images with enough features.
    max_distance_ratio: float = 0.8  # Ratio test of the nearest and second nearest descriptor (Lowe 2004).
    max_error_px: float = 3.0  # Distance of a match from its epipolar line, or of a point from its pixel.
    max_pair_offset_s: float = 0.025  # Time between the images of a pair.
    max_pair_interval_s: float = 0.6  # Time between a pair and the one before; later the view is another.
    match_sigma_px: float = 0.5


SETTINGS = StereoSettings()


@dataclass(frozen=True)
class PairQuality:
    """Quality of a stereo pair, and of its tracking from the pair before."""

    features: int  # of the left image
    matches: int  # features matched in the right image
    ratio: float  # mean distance of the accepted matches over that of all (`evaluation.vision`); NaN for none
    in_front: int  # matches that agree with the calibration, in front of the cameras, ...
    in_front_exchanged: int  # ... and if the images are exchanged
    roundness: float  # median of the points' covariances; NaN for none
    tracked: int = -1  # points of the previous pair matched in the left image; -1 without a previous pair
    inliers: int = -1  # of these, those that agree on a pose


def find_pair(camera: Window[Any], others: Sequence[Window[Any]]) -> tuple[Window[Any], Window[Any]] | None:
    """Return the left and the right camera of a camera's pair, by tags, else by names."""
    stream = camera.stream
    for own, other in SIDES:
        named = stream.name.lower().replace(own, other)
        for each in others:
            tags = (stream.tag, each.stream.tag) == (own, other) and each.stream.role == stream.role
            names = not stream.tag and named != stream.name.lower() and each.stream.name.lower() == named
            if tags or names:
                return (camera, each) if own == "left" else (each, camera)
    return None


_QUALITIES: WeakKeyDictionary[CheckContext, dict[str, tuple[int, PairQuality | Unknown]]] = (
    WeakKeyDictionary()
)


def pair_quality(left: Window[Image], right: Window[Image], context: CheckContext) -> PairQuality | Unknown:
    """Return the quality of the last pair of a window, computed once for all checks of a session."""
    kept = _QUALITIES.setdefault(context, {})
    name = f"{left.stream.name} {right.stream.name}"
    if kept.get(name, (-1, None))[0] != left.index:
        kept[name] = left.index, _measure_pair(left, right, context)
    return kept[name][1]


def _measure_pair(left: Window[Image], right: Window[Image], context: CheckContext) -> PairQuality | Unknown:
    first = max(left.stop - 2, 0)
    rows = [pair for row in range(first, left.stop) if (pair := _pair(left, right, row)) is not None]
    if not rows or rows[-1][0] != left.stop - 1:
        return Unknown("NO_PEER", "the other camera has no image at that time", len(left))
    sample = image_at(left, left.stop - 1)
    if sample.width < SETTINGS.min_width_px:
        return Unknown("TOO_FEW", f"its images are only {sample.width} pixels wide", len(left))
    images = [
        _features_of_pair(left, right, pair, SETTINGS.reduced_width_px, SETTINGS.max_features)
        for pair in rows
    ]
    one, other = images[-1][0].camera, images[-1][1].camera
    if one is None or other is None:
        return Unknown("NO_CAMERA", "its camera is not calibrated", len(left))
    try:
        T_right_left = context.frames.lookup(right.stream.frame, left.stream.frame, left.t1_ns)
    except TransectError as error:
        if not is_rectified_pair(one, other):
            return Unknown("NO_FRAMES", error.what, len(left))
        T_right_left = se3.from_matrix(np.eye(3), [-pair_baseline(one, other), 0.0, 0.0])
    now = _MatchedPair(*images[-1], one, other, T_right_left)
    found = now.judge()
    if len(images) < 2:
        return found
    tracked, inliers = _MatchedPair(*images[0], one, other, T_right_left).track(now.left)
    if inliers < SETTINGS.min_inliers:  # fast motion: features move far, and most are new
        before = _features_of_pair(left, right, rows[0], SETTINGS.fine_width_px, SETTINGS.max_fine_features)
        later = _features(left, rows[-1][0], SETTINGS.fine_width_px, SETTINGS.max_fine_features)
        fine = _MatchedPair(*before, one, other, T_right_left).track(later)
        tracked, inliers = max((tracked, inliers), fine, key=lambda each: each[1])
    return dataclasses.replace(found, tracked=tracked, inliers=inliers)


def _pair(left: Window[Image], right: Window[Image], row: int) -> tuple[int, int] | None:
    """Return the rows of a left image and of the right one at its time; None without one."""
    if (
        not right.stop
        or left.stream.t_ns[left.stop - 1] - left.stream.t_ns[row] > SETTINGS.max_pair_interval_s * NS
    ):
        return None
    first = max(right.start - 2, 0)
    times = right.stream.t_ns[first : right.stop]
    nearest = first + int(np.argmin(np.abs(times - left.stream.t_ns[row])))
    apart = abs(int(right.stream.t_ns[nearest] - left.stream.t_ns[row])) / NS
    return (row, nearest) if apart <= SETTINGS.max_pair_offset_s else None


def _features_of_pair(
    left: Window[Image], right: Window[Image], rows: tuple[int, int], width: int, count: int
) -> tuple[Features2D, Features2D]:
    return _features(left, rows[0], width, count), _features(right, rows[1], width, count)


def _features(camera: Window[Image], row: int, width: int, count: int) -> Features2D:
    """Return the strongest features of an image; pixels are those of the image in full size."""
    import cv2

    image = image_at(camera, row)
    part = min(1.0, width / image.width)
    if part < 1.0:
        size = (width, round(image.height * part))
        small = cv2.resize(image.data, size, interpolation=cv2.INTER_AREA)
        image = dataclasses.replace(image, data=small, valid=None)
    found = OrbDetectorDescriptor(count=count).detect(image)
    strongest = np.argsort(-found.response, kind="stable")[:count] if found.response is not None else []
    descriptors = None if found.descriptors is None else found.descriptors[strongest]
    points = (found.points[strongest] + 0.5) / part - 0.5
    return Features2D(points.astype(np.float32), descriptors=descriptors, camera=image.camera)


@dataclass(frozen=True, eq=False)
class _MatchedPair:
    """Features of a stereo pair, with its calibration."""

    left: Features2D
    right: Features2D
    left_camera: CameraModel
    right_camera: CameraModel
    T_right_left: Floats

    @property
    def max_error(self) -> float:
        """`max_error_px` in normalised image coordinates."""
        wide = 2 * self.left_camera.K[0, 2] / SETTINGS.reduced_width_px
        return SETTINGS.max_error_px * max(1.0, wide) / focal_length(self.left_camera)

    def judge(self) -> PairQuality:
        """Return the quality of the pair by itself."""
        one, other, distances, good = _match(self.left, self.right)
        ratio = match_quality(distances, good).q_mean if len(distances) else np.nan
        matches = int(good.sum())
        seen = self._normalise_pixels(one, other)
        in_front = self._find_in_front(*seen)
        swapped = dataclasses.replace(self, left=self.right, right=self.left)
        exchanged = int(swapped._find_in_front(*swapped._normalise_pixels(other, one)).sum())
        roundness = self._points(seen, in_front).median_roundness if in_front.any() else np.nan
        return PairQuality(len(self.left.points), matches, ratio, int(in_front.sum()), exchanged, roundness)

    def track(self, later: Features2D) -> tuple[int, int]:
        """Return how many points of the pair are matched in a later left image, and agree on its pose."""
        one, other, _, _ = _match(self.left, self.right)
        seen = self._normalise_pixels(one, other)
        in_front = self._find_in_front(*seen)
        rows = one[in_front]
        if not len(rows):
            return 0, 0
        points = self._points(seen, in_front).points
        before, now, _, _ = _match(self.left, later)
        index_of = {int(row): index for index, row in enumerate(rows)}
        both = [(index_of[int(a)], int(b)) for a, b in zip(before, now, strict=True) if int(a) in index_of]
        if len(both) < 4:
            return len(both), 0
        world = points[[a for a, _ in both]]
        pixels = normalise_pixels(later.points[[b for _, b in both]], self.left_camera)
        known = np.isfinite(world).all(axis=1) & np.isfinite(pixels).all(axis=1)
        if known.sum() < 4:
            return len(both), 0
        world, pixels = world[known], pixels[known]
        pose = solve_pnp_ransac(world, pixels, np.eye(3), self.max_error)
        if pose is None:
            return len(both), 0
        return len(both), int(np.sum(pixel_distances(pose, world, pixels, np.eye(3)) < self.max_error))

    def _normalise_pixels(self, one: Ints, other: Ints) -> tuple[Floats, Floats]:
        left = normalise_pixels(self.left.points[one], self.left_camera)
        return left, normalise_pixels(self.right.points[other], self.right_camera)

    def _find_in_front(self, left: Floats, right: Floats) -> Mask:
        """Return which matches (n,) are on their epipolar line and in front of the cameras."""
        R, t = self.T_right_left[:3, :3], self.T_right_left[:3, 3]
        ray, other = homogeneous(left) @ R.T, homogeneous(right)
        line = np.cross(t, ray)
        away = np.abs(np.einsum("ni,ni->n", line, other)) / np.hypot(line[:, 0], line[:, 1])
        # z R x + t is parallel to the other ray: their cross product is 0.
        across = np.cross(other, ray)
        return (away < self.max_error) & (np.einsum("ni,ni->n", np.cross(other, t), across) < 0)

    def _points(self, seen: tuple[Floats, Floats], which: Mask) -> Triangulation:
        views = np.stack([np.eye(4), self.T_right_left])[:, :3]
        variance = (SETTINGS.match_sigma_px / SETTINGS.max_error_px * self.max_error) ** 2
        return triangulate(views, np.stack([each[which] for each in seen], axis=1), variance)


def _match(source: Features2D, sink: Features2D) -> tuple[Ints, Ints, Floats, Mask]:
    """Return rows of accepted matches (m,) of both, distances (n,) to the nearest, and the accepted (n,)."""
    import cv2

    one, other = (np.zeros((0, 1)) if f.descriptors is None else f.descriptors for f in (source, sink))
    if min(len(one), len(other)) < 2:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, np.zeros(0), np.zeros(0, np.bool_)
    matcher = cv2.BFMatcher(cv2.NORM_HAMMING)
    forth, back = matcher.knnMatch(one, other, k=2), matcher.match(other, one)
    best = np.array([pair[0].trainIdx for pair in forth])
    first, second = (np.array([pair[k].distance for pair in forth]) for k in (0, 1))
    mutual = np.array([each.trainIdx for each in back])[best] == np.arange(len(best))
    good = (first < SETTINGS.max_distance_ratio * second) & mutual
    return np.flatnonzero(good), best[good], first, good
