"""How good is what a camera was used for: matches, triangulated points, poses from points, feature tracks.

The quality functions of CDFF's data fusion nodes; none needs a truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import GeometryError
from transect.geometry.array_checks import floats, same_length

Level = Literal["ok", "warn", "fail"]
FLAT = 0.05
"""Roundness below which a point's distance is hardly known."""
WARN, FAIL = 0.3, 0.1
"""Part of inliers below which a pose is to be doubted, and is not to be used."""
ROUNDS = 3
"""Of weighting the equations of a triangulation by depth; the second already changes nothing visible."""
SINGULAR = 1e-14
"""Ratio of the eigenvalues of the normal equations below which rays are taken for parallel."""


# Features


@dataclass(frozen=True)
class Matchability:
    """How many features of an image were matched, and whether their response would have told which.

    Attributes
    ----------
    share : float
        Matched features divided by all; NaN without features.
    auc : float
        Probability that a matched feature has a larger response than one that was not matched: 0.5 if the
        response tells nothing, 1 if it tells all; NaN if all or none were matched, or there is no response.
    matched, count : int
        How many were matched, of how many.
    """

    share: float
    auc: float
    matched: int
    count: int


def matchability(matched: ArrayLike, response: ArrayLike | None = None) -> Matchability:
    """Judge the features of an image by which of them were matched in another one.

    Parameters
    ----------
    matched : (n,) bool
    response : (n,), optional
        How strong the detector found each, in any unit; NaN are left out of `auc`.
    """
    kept = np.asarray(matched, np.bool_)
    share = float(kept.mean()) if len(kept) else float("nan")
    auc = float("nan")
    if response is not None:
        strength = floats("response", response, ("n",))
        same_length(matched=kept, response=strength)
        auc = _area_under_curve(strength, kept)
    return Matchability(share, auc, int(kept.sum()), len(kept))


def _area_under_curve(values: Floats, chosen: Mask) -> float:
    """Return the probability that a chosen value is larger than another; equal ones count half."""
    from scipy.stats import rankdata

    known = np.isfinite(values)
    ranks, good = rankdata(values[known]), chosen[known]
    count, others = int(good.sum()), int((~good).sum())
    if not count or not others:
        return float("nan")
    # Mann and Whitney's U from the sum of ranks.
    return float(ranks[good].sum() - count * (count + 1) / 2) / (count * others)


# Matches


@dataclass(frozen=True)
class MatchQuality:
    """Descriptor distances of the accepted matches against those of all.

    Attributes
    ----------
    q_sum : float
        Sum over the accepted, divided by the mean of all: CDFF's words, taken literally. It grows with the
        number of matches, though it is said to be minimised.
    q_mean : float
        Mean over the accepted, divided by the mean of all: below 1 where the better ones were accepted. This
        is the one to compare runs by.
    accepted, count : int
        How many were accepted, of how many.
    """

    q_sum: float
    q_mean: float
    accepted: int
    count: int


def match_quality(distances: ArrayLike, accepted: ArrayLike) -> MatchQuality:
    """Judge matches by their distances.

    Parameters
    ----------
    distances : (n,)
        Between descriptors, in any unit; NaN are left out.
    accepted : (n,) bool
        Which of them were kept.
    """
    d, kept = floats("distances", distances, ("n",)), np.asarray(accepted, np.bool_)
    same_length(distances=d, accepted=kept)
    known = np.isfinite(d)
    d, kept = d[known], kept[known]
    mean = float(d.mean()) if len(d) else float("nan")
    if not (kept.any() and mean > 0):
        return MatchQuality(float("nan"), float("nan"), int(kept.sum()), len(d))
    return MatchQuality(float(d[kept].sum()) / mean, float(d[kept].mean()) / mean, int(kept.sum()), len(d))


# Triangulation


@dataclass(frozen=True)
class Triangulation:
    """Points, and how well the rays determine them.

    Attributes
    ----------
    points : (n, 3) float64
        Metres, in the frame of the projections; NaN where the rays are parallel.
    covariances : (n, 3, 3) float64
        Square metres.
    roundness : (n,) float64
        Square root of the ratio of the smallest to the largest eigenvalue of the covariance (Beder, Steffen,
        DAGM 2006): 1 for a ball, near 0 where the distance is hardly known.
    """

    points: Floats
    covariances: Floats
    roundness: Floats

    @property
    def median_roundness(self) -> float:
        """Over the points that were determined."""
        known = self.roundness[np.isfinite(self.roundness)]
        return float(np.median(known)) if len(known) else float("nan")

    @property
    def flat(self) -> float:
        """Part of all points whose roundness is below 0.05, or that were not determined."""
        return float(np.mean(~(self.roundness >= FLAT)))

    @property
    def traces(self) -> Floats:
        """(n,) sum of the variances of x, y, z, in square metres."""
        return np.trace(self.covariances, axis1=1, axis2=2)


def triangulate(
    projections: ArrayLike,
    pixels: ArrayLike,
    pixel_covariance: ArrayLike = 1.0,
    projection_covariance: ArrayLike | None = None,
) -> Triangulation:
    """Return points seen by several cameras, with their covariance.

    The linear equations ``A(x) X = 0`` are divided by depth and by the pixels' deviation (Hartley and Sturm's
    iterated linear method); the solution is then an implicit function of the pixels, and their covariance is
    propagated through it.

    Parameters
    ----------
    projections : (m, 3, 4)
        Camera matrices ``K [R t]``, at least two.
    pixels : (n, m, 2)
        Without lens distortion.
    pixel_covariance : float or (..., 2, 2)
        Variance of a pixel coordinate, or covariances that broadcast to (n, m, 2, 2); square pixels.
    projection_covariance : (m, 12, 12), optional
        Of the entries of the camera matrices, row by row.
    """
    P, x, spread = _check(projections, pixels, pixel_covariance)
    found = _solve(P, x, np.ones(x.shape[:2]), spread)
    for _ in range(ROUNDS):
        whole = np.column_stack([found.points, np.ones(len(x))])
        wide = spread
        if projection_covariance is not None:
            wide = spread + _of_cameras(P, whole, np.asarray(projection_covariance, np.float64))
        found = _solve(P, x, whole @ P[:, 2].T, wide)
    return found


def _check(projections: ArrayLike, pixels: ArrayLike, variance: ArrayLike) -> tuple[Floats, Floats, Floats]:
    P, x = floats("projections", projections, ("m", 3, 4)), floats("pixels", pixels, ("n", "m", 2))
    if len(P) < 2 or x.shape[1] != len(P):
        raise GeometryError(
            f"expected at least 2 cameras and a pixel of each, got {len(P)} and pixels {x.shape}"
        )
    sigma = np.asarray(variance, np.float64)
    return P, x, np.broadcast_to(sigma * np.eye(2) if sigma.ndim == 0 else sigma, (*x.shape, 2))


def _solve(P: Floats, x: Floats, depth: Floats, spread: Floats) -> Triangulation:
    """Solve the equations of (n, m) rays, divided by depth (n, m), of deviation `spread` (n, m, 2, 2)."""
    n = len(x)
    # Rows x p3 - p1 and y p3 - p2: once divided by depth, what they leave is in pixels.
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = (x[..., None] * P[:, 2][:, None] - P[:, :2]) / depth[..., None, None]
    seen = np.asarray(np.isfinite(rows).all(axis=(1, 2, 3)) & (depth > 0).all(axis=1))
    rows = np.linalg.solve(np.linalg.cholesky(spread), np.where(seen[:, None, None, None], rows, 0.0))
    rows = rows.reshape(n, -1, 4)
    A, b = rows[..., :3], rows[..., 3]
    # f = A'(A X + b) = 0 defines X of x; df/dX = A'A, and whitened rows have covariance 1: it is (A'A)^-1.
    scale, axes = np.linalg.eigh(np.swapaxes(A, 1, 2) @ A)
    good = seen & (scale[:, 0] > SINGULAR * scale[:, 2])
    inverse = np.where(good[:, None], 1 / np.where(scale > 0, scale, np.nan), np.nan)
    covariances = (axes * inverse[:, None]) @ np.swapaxes(axes, 1, 2)
    points = -np.einsum("nij,nkj,nk->ni", covariances, A, b)
    return Triangulation(points, covariances, np.sqrt(inverse[:, 2] / inverse[:, 0]))


def _of_cameras(P: Floats, whole: Floats, covariance: Floats) -> Floats:
    """Return what uncertain cameras (m, 12, 12) add to the covariance (n, m, 2, 2) of pixels of n points."""
    n, m = len(whole), len(P)
    projected = np.einsum("mij,nj->nmi", P, whole)
    with np.errstate(divide="ignore", invalid="ignore"):
        pixel, near = projected[..., :2] / projected[..., 2:], whole[:, None] / projected[..., 2:]
    J = np.zeros((n, m, 2, 12))
    J[..., 0, :4] = J[..., 1, 4:8] = near
    J[..., 8:] = -pixel[..., None] * near[..., None, :]
    J[~np.isfinite(J).all(axis=(2, 3))] = 0.0
    return J @ covariance @ np.swapaxes(J, 2, 3)


# Poses from points


@dataclass(frozen=True)
class PoseQuality:
    """How many matches agree with a pose found from them.

    Attributes
    ----------
    ratio : float
        Inliers divided by matches; NaN without matches.
    level : {"ok", "warn", "fail"}
        Below 0.3 the pose is to be doubted, below 0.1 it fails.
    """

    ratio: float
    level: Level


def pose_quality(inliers: int, matches: int, warn: float = WARN, fail: float = FAIL) -> PoseQuality:
    """Judge a pose from points (PnP) by its inliers among so many matches."""
    if not 0 <= inliers <= matches:
        raise GeometryError(f"{inliers} inliers among {matches} matches cannot be")
    ratio = inliers / matches if matches else float("nan")
    level: Level = "ok" if ratio >= warn else "warn" if ratio >= fail else "fail"
    return PoseQuality(ratio, level)


# Tracks


@dataclass(frozen=True)
class Tracks:
    """Features followed from image to image: one row per sighting.

    Attributes
    ----------
    track, frame : (n,) int64
        Which feature, in which image.
    pixels : (n, 2) float64
    """

    track: Ints
    frame: Ints
    pixels: Floats

    @property
    def lengths(self) -> Ints:
        """(k,) images in which each feature was seen, in the order of the features' numbers."""
        return np.unique(self.track, return_counts=True)[1].astype(np.int64)


@dataclass(frozen=True)
class TrackHistogram:
    """How many features were followed through how many images (Rosario, Figure 5).

    Attributes
    ----------
    length, count : (k,) int64
        Every length from 1 to the largest, and how many tracks have it.
    """

    length: Ints
    count: Ints

    @property
    def mean(self) -> float:
        """Images per track."""
        return float((self.length * self.count).sum() / self.count.sum())


def track_histogram(tracks: Tracks) -> TrackHistogram:
    """Count the lengths of tracks."""
    if not len(tracks.track):
        raise GeometryError("there are no tracks")
    count = np.bincount(tracks.lengths)[1:]
    return TrackHistogram(np.arange(1, len(count) + 1), count.astype(np.int64))


def track_overlay(tracks: Tracks, frame: int, last: int | None = None) -> list[Floats]:
    """Return the way (k, 2) of each feature seen in an image, oldest pixel first (Rosario, Figure 6).

    Parameters
    ----------
    frame : int
        The image to draw upon.
    last : int, optional
        Only so many images back; all by default.
    """
    alive = np.unique(tracks.track[tracks.frame == frame])
    recent = (tracks.frame <= frame) & (last is None or tracks.frame > frame - (last or 0))
    rows = np.flatnonzero(recent & np.isin(tracks.track, alive))
    rows = rows[np.lexsort((tracks.frame[rows], tracks.track[rows]))]
    starts = np.flatnonzero(np.diff(tracks.track[rows])) + 1
    return np.split(tracks.pixels[rows], starts) if len(rows) else []
