"""What the images of a stereo pair tell of the chain behind them: features, matches, points, a pose.

Of each window one pair and the pair before it are looked at, once for all checks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from transect.algorithms.vision.pnp import pixel_distances, solve_pnp_ransac
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
from .model import Surroundings, Unknown
from .windows import Window

WIDTH, FEATURES = 640, 500
"""Columns to which images are reduced, and features of an image, at most."""
CLOSER_WIDTH, CLOSER_FEATURES = 1280, 4000
"""The same of a second, closer look at pairs of which few points were followed."""
FEW_FOLLOWED = 20
"""Points that agree on a pose below which a pair is looked at more closely."""
LEAST_WIDTH = 240
"""Columns of images that have features enough."""
RATIO = 0.8
"""Largest ratio of the distances to the nearest and the second nearest descriptor (Lowe 2004)."""
PIXELS = 3.0
"""By which a match may be off its epipolar line, or a point off its pixel, in the reduced image."""
APART_S = 0.025
"""Between the images of a pair, at most."""
SOON_S = 0.6
"""Between a pair and the one before it, at most: later the view is another."""
SIGMA = 0.5
"""Pixels of the reduced image: deviation of a matched coordinate."""
SIDES = (("left", "right"), ("right", "left"))


@dataclass(frozen=True)
class Glance:
    """What one pair, and the pair before it, tell.

    Attributes
    ----------
    features, matches : int
        Of the left image, and those of them that are matched in the right one.
    ratio : float
        Mean distance of the accepted matches over that of all (`evaluation.vision`); NaN without matches.
    ahead, exchanged : int
        Matches that agree with the calibration and lie before the cameras: as they are, and with the images
        exchanged.
    roundness : float
        Median of the covariances of points; NaN for none.
    followed, inliers : int
        Points of the pair before that are matched in the left image, and those that agree on a pose; -1 where
        there is no pair before.
    """

    features: int
    matches: int
    ratio: float
    ahead: int
    exchanged: int
    roundness: float
    followed: int = -1
    inliers: int = -1


def find_pair(camera: Window[Any], others: Sequence[Window[Any]]) -> tuple[Window[Any], Window[Any]] | None:
    """Return the left and the right camera of a pair that a camera belongs to, by tags, else by names."""
    stream = camera.stream
    for own, other in SIDES:
        named = stream.name.lower().replace(own, other)
        for each in others:
            tags = (stream.tag, each.stream.tag) == (own, other) and each.stream.role == stream.role
            names = not stream.tag and named != stream.name.lower() and each.stream.name.lower() == named
            if tags or names:
                return (camera, each) if own == "left" else (each, camera)
    return None


_GLANCES: WeakKeyDictionary[Surroundings, dict[str, tuple[int, Glance | Unknown]]] = WeakKeyDictionary()


def glance(left: Window[Image], right: Window[Image], about: Surroundings) -> Glance | Unknown:
    """Return what the last pair of a window tells, found once for all checks of a session."""
    kept = _GLANCES.setdefault(about, {})
    name = f"{left.stream.name} {right.stream.name}"
    if kept.get(name, (-1, None))[0] != left.index:
        kept[name] = left.index, _glance(left, right, about)
    return kept[name][1]


def _glance(left: Window[Image], right: Window[Image], about: Surroundings) -> Glance | Unknown:
    first = max(left.stop - 2, 0)
    rows = [pair for row in range(first, left.stop) if (pair := _pair(left, right, row)) is not None]
    if not rows or rows[-1][0] != left.stop - 1:
        return Unknown("NO_PEER", "the other camera has no image at that time", len(left))
    sample = image_at(left, left.stop - 1)
    if sample.width < LEAST_WIDTH:
        return Unknown("TOO_FEW", f"its images are only {sample.width} pixels wide", len(left))
    images = [_features_of_pair(left, right, pair, WIDTH, FEATURES) for pair in rows]
    one, other = images[-1][0].camera, images[-1][1].camera
    if one is None or other is None:
        return Unknown("NO_CAMERA", "its camera is not calibrated", len(left))
    try:
        T_right_left = about.frames.lookup(right.stream.frame, left.stream.frame, left.t1_ns)
    except TransectError as error:
        if not is_rectified_pair(one, other):
            return Unknown("NO_FRAMES", error.what, len(left))
        T_right_left = se3.from_matrix(np.eye(3), [-pair_baseline(one, other), 0.0, 0.0])
    now = _Pair(*images[-1], one, other, T_right_left)
    found = now.judge()
    if len(images) < 2:
        return found
    followed, inliers = _Pair(*images[0], one, other, T_right_left).follow(now.left)
    if inliers < FEW_FOLLOWED:  # a robot that is fast for its cameras: features move far, and most are new
        before = _features_of_pair(left, right, rows[0], CLOSER_WIDTH, CLOSER_FEATURES)
        later = _features(left, rows[-1][0], CLOSER_WIDTH, CLOSER_FEATURES)
        closer = _Pair(*before, one, other, T_right_left).follow(later)
        followed, inliers = max((followed, inliers), closer, key=lambda each: each[1])
    return dataclasses.replace(found, followed=followed, inliers=inliers)


def _pair(left: Window[Image], right: Window[Image], row: int) -> tuple[int, int] | None:
    """Return the rows of a left image and the right one at its time; None where there is none."""
    if not right.stop or left.stream.t_ns[left.stop - 1] - left.stream.t_ns[row] > SOON_S * NS:
        return None
    first = max(right.start - 2, 0)
    times = right.stream.t_ns[first : right.stop]
    nearest = first + int(np.argmin(np.abs(times - left.stream.t_ns[row])))
    apart = abs(int(right.stream.t_ns[nearest] - left.stream.t_ns[row])) / NS
    return (row, nearest) if apart <= APART_S else None


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
class _Pair:
    left: Features2D
    right: Features2D
    left_camera: CameraModel
    right_camera: CameraModel
    T_right_left: Floats

    @property
    def off(self) -> float:
        """What is off by `PIXELS` of the reduced image, at a distance of 1."""
        wide = 2 * self.left_camera.K[0, 2] / WIDTH
        return PIXELS * max(1.0, wide) / focal_length(self.left_camera)

    def judge(self) -> Glance:
        """Return what the pair tells by itself."""
        one, other, distances, good = _match(self.left, self.right)
        ratio = match_quality(distances, good).q_mean if len(distances) else np.nan
        matches = int(good.sum())
        seen = self._places(one, other)
        ahead = self._find_ahead(*seen)
        swapped = dataclasses.replace(self, left=self.right, right=self.left)
        exchanged = int(swapped._find_ahead(*swapped._places(other, one)).sum())
        roundness = self._points(seen, ahead).median_roundness if ahead.any() else np.nan
        return Glance(len(self.left.points), matches, ratio, int(ahead.sum()), exchanged, roundness)

    def follow(self, later: Features2D) -> tuple[int, int]:
        """Return how many points of the pair are matched in a later left image, and agree on its pose."""
        one, other, _, _ = _match(self.left, self.right)
        seen = self._places(one, other)
        ahead = self._find_ahead(*seen)
        rows = one[ahead]
        if not len(rows):
            return 0, 0
        points = self._points(seen, ahead).points
        before, now, _, _ = _match(self.left, later)
        which = {int(row): place for place, row in enumerate(rows)}
        both = [(which[int(a)], int(b)) for a, b in zip(before, now, strict=True) if int(a) in which]
        if len(both) < 4:
            return len(both), 0
        world = points[[a for a, _ in both]]
        pixels = normalise_pixels(later.points[[b for _, b in both]], self.left_camera)
        known = np.isfinite(world).all(axis=1) & np.isfinite(pixels).all(axis=1)
        pose = (
            solve_pnp_ransac(world[known], pixels[known], np.eye(3), self.off) if known.sum() >= 4 else None
        )
        if pose is None:
            return len(both), 0
        return len(both), int(
            np.sum(pixel_distances(pose, world[known], pixels[known], np.eye(3)) < self.off)
        )

    def _places(self, one: Ints, other: Ints) -> tuple[Floats, Floats]:
        left = normalise_pixels(self.left.points[one], self.left_camera)
        return left, normalise_pixels(self.right.points[other], self.right_camera)

    def _find_ahead(self, left: Floats, right: Floats) -> Mask:
        """Return which matches (n,) are on their epipolar line and before the cameras."""
        R, t = self.T_right_left[:3, :3], self.T_right_left[:3, 3]
        ray, other = homogeneous(left) @ R.T, homogeneous(right)
        line = np.cross(t, ray)
        away = np.abs(np.einsum("ni,ni->n", line, other)) / np.hypot(line[:, 0], line[:, 1])
        # z R x + t is along the other ray: its cross product with that is 0.
        across = np.cross(other, ray)
        return (away < self.off) & (np.einsum("ni,ni->n", np.cross(other, t), across) < 0)

    def _points(self, seen: tuple[Floats, Floats], which: Mask) -> Triangulation:
        views = np.stack([np.eye(4), self.T_right_left])[:, :3]
        variance = (SIGMA / PIXELS * self.off) ** 2
        return triangulate(views, np.stack([each[which] for each in seen], axis=1), variance)


def _match(source: Features2D, sink: Features2D) -> tuple[Ints, Ints, Floats, Mask]:
    """Return rows of accepted matches (m,), distances (n,) of all to the nearest, and which are accepted."""
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
    good = (first < RATIO * second) & mutual
    return np.flatnonzero(good), best[good], first, good
