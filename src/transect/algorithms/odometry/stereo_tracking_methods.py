"""Data association of stereo odometry: Lucas-Kanade tracking (KLT), or descriptors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Bytes, Floats, Ints, Mask
from transect.geometry import robust

from .stereo_rig import StereoRig
from .stereo_tracking import (
    KLT,
    KltSettings,
    coarse_disparities,
    find_corners,
    match_right_image,
    track_points_parallel,
)

MAX_DISPARITY_RATIO = 1 / 8  # of the image width; nearer points leave the image after a few frames


class GrayPair(NamedTuple):
    """A rectified pair of gray images, and which pixels of the left one were measured (None: all)."""

    left: Bytes
    right: Bytes
    valid: Mask | None = None


def _no_descriptors() -> NDArray[Any]:
    return np.zeros((0, 0), dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class PointTracks:
    """Points of the world that the last pair observed."""

    ids: Ints  # (n,)
    pixels: Floats  # (n, 3) left column, left row, right column; the last is NaN if unmatched
    points: Floats  # (n, 3) m, in the world
    descriptors: NDArray[Any] = field(default_factory=_no_descriptors)  # (n, k); empty for KLT

    @classmethod
    def none(cls) -> PointTracks:
        """Return no tracks."""
        return cls(np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 3)))

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> PointTracks:
        descriptors = self.descriptors[rows] if len(self.descriptors) else self.descriptors
        return PointTracks(self.ids[rows], self.pixels[rows], self.points[rows], descriptors)

    def join(self, other: PointTracks) -> PointTracks:
        """Return these tracks followed by others."""
        descriptors = [each.descriptors for each in (self, other) if len(each.descriptors)]
        return PointTracks(
            np.concatenate([self.ids, other.ids]),
            np.concatenate([self.pixels, other.pixels]),
            np.concatenate([self.points, other.points]),
            np.concatenate(descriptors) if descriptors else self.descriptors,
        )


@dataclass(frozen=True, eq=False)
class PairObservation:
    """Points that a pair observes. Pixels are as in `PointTracks`."""

    rows: Ints  # (k,) tracks that were found
    pixels: Floats  # (k, 3) of these tracks
    new_pixels: Floats  # (m, 3) of new points, observed by both cameras
    candidates: int = 0  # new points in the left image, matched or not
    descriptors: NDArray[Any] = field(default_factory=_no_descriptors)  # (k, d)
    new_descriptors: NDArray[Any] = field(default_factory=_no_descriptors)  # (m, d)


class TrackingMethod(Protocol):
    """Finds tracked points in the next pair, and new points."""

    def observe(
        self,
        previous: GrayPair | None,
        current: GrayPair,
        tracks: PointTracks,
        predicted: Floats,
        rig: StereoRig,
        find_new: bool,
    ) -> PairObservation:
        """Find tracks, predicted at pixels (n, 3), in the current pair; optionally find new points too."""
        ...


@dataclass(frozen=True)
class KltTracking:
    """Tracking of corners by pyramidal Lucas-Kanade."""

    features: int = 400  # cells of the grid with one corner each
    settings: KltSettings = KLT
    max_disparity_ratio: float = MAX_DISPARITY_RATIO

    def observe(
        self,
        previous: GrayPair | None,
        current: GrayPair,
        tracks: PointTracks,
        predicted: Floats,
        rig: StereoRig,
        find_new: bool,
    ) -> PairObservation:
        """Track points in the left image; at keyframes, also match all of them with the right image.

        Between keyframes the left image is enough to estimate the pose: the points are known, and both
        cameras observe them again before they are adjusted.
        """
        pixels, rows, disparities = np.zeros((0, 2)), np.zeros(0, dtype=np.int64), np.zeros(0)
        if previous is not None and len(tracks):
            tracked, found = track_points_parallel(
                previous.left, current.left, tracks.pixels[:, :2], predicted[:, :2], self.settings
            )
            rows = np.flatnonzero(found)
            pixels, disparities = tracked[rows], predicted[rows, 0] - predicted[rows, 2]
        if not find_new:
            unmatched = np.full(len(rows), np.nan)
            return PairObservation(rows, np.column_stack([pixels, unmatched]), np.zeros((0, 3)))
        cell_px = max(round(float(np.sqrt(rig.width * rig.height / self.features))), 1)
        new = find_corners(current.left, pixels, cell_px, current.valid, reduction=2, settings=self.settings)
        max_disparity_px = self.max_disparity_ratio * rig.width
        coarse = coarse_disparities(current.left, current.right, new, max_disparity_px, self.settings)
        median = robust.median(np.append(coarse, 0.1 * max_disparity_px))
        coarse = np.where(np.isnan(coarse), median, coarse)
        both = np.concatenate([pixels, new])
        columns, matched = match_right_image(
            current.left, current.right, both, np.concatenate([disparities, coarse]), self.settings
        )
        observed = np.column_stack([both, np.where(matched, columns, np.nan)])
        new_observed = observed[len(rows) :]
        stereo = ~np.isnan(new_observed[:, 2])
        return PairObservation(rows, observed[: len(rows)], new_observed[stereo], len(new))


@dataclass(frozen=True)
class DescriptorTracking:
    """Matching of corners by their descriptors."""

    kind: Literal["ORB", "SIFT"]
    features: int  # largest number per image
    search_radius_px: float  # around the predicted pixel
    max_disparity_ratio: float = MAX_DISPARITY_RATIO
    min_disparity_px: float = 0.5  # smaller ones are within the noise of an infinite distance
    max_row_difference_px: float = 2.0  # of a rectified pair; ORB locates corners to whole pixels

    def observe(
        self,
        previous: GrayPair | None,
        current: GrayPair,
        tracks: PointTracks,
        predicted: Floats,
        rig: StereoRig,
        find_new: bool,
    ) -> PairObservation:
        """Match the left image with the right one, then the tracks with the left image."""
        left, left_descriptors = self._detect(current.left)
        right, right_descriptors = self._detect(current.right)
        epipolar = self._are_epipolar(left, right, self.max_disparity_ratio * rig.width)
        left_rows, right_rows = mutual_matches(left_descriptors, right_descriptors, epipolar)
        columns = np.full(len(left), np.nan)
        columns[left_rows] = right[right_rows, 0]
        observed = np.column_stack([left, columns])
        rows, matches = np.zeros((2, 0), dtype=np.int64)
        if len(tracks):
            distance_px = np.abs(predicted[:, None, :2] - left[None]).max(axis=2)
            near = distance_px < self.search_radius_px
            rows, matches = mutual_matches(tracks.descriptors, left_descriptors, near)
        result = PairObservation(
            rows,
            observed[matches],
            observed[:0],
            len(left),
            left_descriptors[matches],
            left_descriptors[:0],
        )
        if not find_new:
            return result
        new = ~np.isin(np.arange(len(left)), matches) & ~np.isnan(columns)
        return replace(result, new_pixels=observed[new], new_descriptors=left_descriptors[new])

    def _detect(self, image: Bytes) -> tuple[Floats, NDArray[Any]]:
        import cv2

        detector: Any = cv2.ORB.create if self.kind == "ORB" else cv2.SIFT.create
        keypoints, descriptors = detector(nfeatures=self.features).detectAndCompute(image, None)
        if descriptors is None:
            return np.zeros((0, 2)), _no_descriptors()
        return np.array([each.pt for each in keypoints], dtype=np.float64).reshape(-1, 2), descriptors

    def _are_epipolar(self, left: Floats, right: Floats, max_disparity_px: float) -> Mask:
        """Return which pairs (n, m) of pixels may be one point: in one row, with a valid disparity."""
        same_row = np.abs(left[:, None, 1] - right[None, :, 1]) < self.max_row_difference_px
        disparity = left[:, None, 0] - right[None, :, 0]
        return same_row & (disparity > self.min_disparity_px) & (disparity < max_disparity_px)


def mutual_matches(first: NDArray[Any], second: NDArray[Any], allowed: Mask) -> tuple[Ints, Ints]:
    """Return rows of descriptors (n, k) and (m, k) that are mutual nearest neighbours among allowed pairs.

    Distances are computed by one matrix product: Hamming for binary descriptors (uint8), else Euclidean.
    """
    if not len(first) or not len(second):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    a, b = _as_vectors(first), _as_vectors(second)
    distance = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    distance[~allowed] = np.inf
    best, reverse = distance.argmin(axis=1), distance.argmin(axis=0)
    rows = np.flatnonzero((reverse[best] == np.arange(len(a))) & np.isfinite(distance.min(axis=1)))
    return rows, best[rows]


def _as_vectors(descriptors: NDArray[Any]) -> NDArray[np.float32]:
    """Return vectors whose squared distance is that of the descriptors."""
    binary = descriptors.dtype == np.uint8
    return (np.unpackbits(descriptors, axis=1) if binary else descriptors).astype(np.float32)
