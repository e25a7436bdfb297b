"""How points are found again: by their surroundings' gray values (KLT), or by descriptors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Bytes, Floats, Ints, Mask
from transect.geometry import robust

from .stereo_rig import StereoRig
from .stereo_tracking import coarse_disparities, corners, follow_in_halves, match_right

LARGEST = 1 / 8
"""Of the picture's width: disparity of the nearest points, which soon leave the picture on the way."""


class GrayPair(NamedTuple):
    """A rectified pair of gray pictures, and where the left one was measured (None: everywhere)."""

    left: Bytes
    right: Bytes
    valid: Mask | None = None


def _no_descriptors() -> NDArray[Any]:
    return np.zeros((0, 0), dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Tracks:
    """Points of the world that the last picture saw, row by row.

    Attributes
    ----------
    ids : (n,) int64
    pixels : (n, 3)
        Left column, left row, right column; the last NaN where the right camera did not see it.
    points : (n, 3)
        Metres, in the world.
    descriptors : (n, k)
        What they look like, where a front end compares that.
    """

    ids: Ints
    pixels: Floats
    points: Floats
    descriptors: NDArray[Any] = field(default_factory=_no_descriptors)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> Tracks:
        described = self.descriptors[rows] if len(self.descriptors) else self.descriptors
        return Tracks(self.ids[rows], self.pixels[rows], self.points[rows], described)


@dataclass(frozen=True, eq=False)
class Sight:
    """What a pair of pictures shows.

    Attributes
    ----------
    rows : (k,) int64
        Tracks that were found again.
    pixels : (k, 3)
        Where; as in `Tracks`.
    fresh : (m, 3)
        New points, seen by both cameras.
    candidates : int
        How many new points the left camera saw.
    descriptors, fresh_descriptors : (k, d), (m, d)
    """

    rows: Ints
    pixels: Floats
    fresh: Floats
    candidates: int = 0
    descriptors: NDArray[Any] = field(default_factory=_no_descriptors)
    fresh_descriptors: NDArray[Any] = field(default_factory=_no_descriptors)


class TrackingMethod(Protocol):
    """Finds tracks again, and new points."""

    def look(
        self,
        before: GrayPair | None,
        now: GrayPair,
        tracks: Tracks,
        expected: Floats,
        rig: StereoRig,
        fresh: bool,
    ) -> Sight:
        """Return what `now` shows of tracks that are expected at pixels (n, 3), and, if asked, new points."""
        ...


@dataclass(frozen=True)
class KltTracking:
    """Follows gray values with Lucas and Kanade's method.

    Attributes
    ----------
    features : int
        How many cells the picture is cut into; one corner is taken in each, so that they spread.
    """

    features: int = 400

    def look(
        self,
        before: GrayPair | None,
        now: GrayPair,
        tracks: Tracks,
        expected: Floats,
        rig: StereoRig,
        fresh: bool,
    ) -> Sight:
        """Follow the tracks in the left picture; if new points are asked for, all to the right one as well.

        In between the left picture is enough to be located by: the points are known, and seen by both cameras
        again before they are adjusted.
        """
        pixels, rows, guesses = np.zeros((0, 2)), np.zeros(0, dtype=np.int64), np.zeros(0)
        if before is not None and len(tracks):
            there, found = follow_in_halves(before.left, now.left, tracks.pixels[:, :2], expected[:, :2])
            rows = np.flatnonzero(found)
            pixels, guesses = there[rows], expected[rows, 0] - expected[rows, 2]
        if not fresh:
            return Sight(rows, np.column_stack([pixels, np.full(len(rows), np.nan)]), np.zeros((0, 3)))
        cell = max(round(float(np.sqrt(rig.width * rig.height / self.features))), 1)
        new, largest = corners(now.left, pixels, cell, now.valid, reduced=2), LARGEST * rig.width
        coarse = coarse_disparities(now.left, now.right, new, largest)
        coarse = np.where(np.isnan(coarse), robust.median(np.append(coarse, 0.1 * largest)), coarse)
        every = np.concatenate([pixels, new])
        right, matched = match_right(now.left, now.right, every, np.concatenate([guesses, coarse]))
        seen = np.column_stack([every, np.where(matched, right, np.nan)])
        both = seen[len(rows) :]
        return Sight(rows, seen[: len(rows)], both[~np.isnan(both[:, 2])], len(new))


@dataclass(frozen=True)
class DescriptorTracking:
    """Compares what corners look like.

    Attributes
    ----------
    kind : {"ORB", "SIFT"}
    features : int
        In each picture, at most.
    reach : float
        Pixels from where a point is expected to where it may be.
    """

    kind: Literal["ORB", "SIFT"]
    features: int
    reach: float

    def look(
        self,
        before: GrayPair | None,
        now: GrayPair,
        tracks: Tracks,
        expected: Floats,
        rig: StereoRig,
        fresh: bool,
    ) -> Sight:
        """Match the left picture's points with the right one's, then the tracks with them."""
        left, left_words = self._detect(now.left)
        right, right_words = self._detect(now.right)
        allowed = _in_row(left, right, LARGEST * rig.width)
        of_left, of_right = mutual(left_words, right_words, allowed)
        columns = np.full(len(left), np.nan)
        columns[of_left] = right[of_right, 0]
        seen = np.column_stack([left, columns])
        rows, where = np.zeros((2, 0), dtype=np.int64)
        if len(tracks):
            near = _near(expected[:, :2], left, self.reach)
            rows, where = mutual(tracks.descriptors, left_words, near)
        new = ~np.isin(np.arange(len(left)), where) & ~np.isnan(columns)
        sight = Sight(rows, seen[where], seen[:0], len(left), left_words[where], left_words[:0])
        return replace(sight, fresh=seen[new], fresh_descriptors=left_words[new]) if fresh else sight

    def _detect(self, picture: Bytes) -> tuple[Floats, NDArray[Any]]:
        import cv2

        maker: Any = cv2.ORB.create if self.kind == "ORB" else cv2.SIFT.create
        keypoints, words = maker(nfeatures=self.features).detectAndCompute(picture, None)
        if words is None:
            return np.zeros((0, 2)), _no_descriptors()
        return np.array([each.pt for each in keypoints], dtype=np.float64).reshape(-1, 2), words


def mutual(one: NDArray[Any], other: NDArray[Any], allowed: Mask) -> tuple[Ints, Ints]:
    """Return the rows of descriptors (n, k) and (m, k) that are each other's best among allowed (n, m) pairs.

    All distances at once by a matrix product: of binary descriptors (uint8) Hamming's, of others Euclid's.
    """
    if not len(one) or not len(other):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    a, b = _vectors(one), _vectors(other)
    apart = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    apart[~allowed] = np.inf
    best, back = apart.argmin(axis=1), apart.argmin(axis=0)
    rows = np.flatnonzero((back[best] == np.arange(len(a))) & np.isfinite(apart.min(axis=1)))
    return rows, best[rows]


def _vectors(words: NDArray[Any]) -> NDArray[np.float32]:
    """Descriptors as numbers whose squared distance counts bits, or is Euclid's."""
    return (np.unpackbits(words, axis=1) if words.dtype == np.uint8 else words).astype(np.float32)


def _in_row(left: Floats, right: Floats, largest: float) -> Mask:
    """Pairs (n, m) of pixels that one point may have in both pictures: 2 rows apart, left of each other."""
    level = np.abs(left[:, None, 1] - right[None, :, 1]) < 2.0
    apart = left[:, None, 0] - right[None, :, 0]
    return level & (apart > 0.5) & (apart < largest)


def _near(expected: Floats, pixels: Floats, reach: float) -> Mask:
    """Pairs (n, m) of an expected pixel and a found one not farther than `reach` in row and column."""
    return np.abs(expected[:, None] - pixels[None]).max(axis=2) < reach
