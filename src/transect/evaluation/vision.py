"""Quality of camera results: feature matches, triangulated points, poses from points, feature tracks.

The quality functions of CDFF's data fusion nodes; none needs ground truth.
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
MIN_ROUNDNESS = 0.05  # of a triangulated point; below it, its distance is poorly constrained
WARN_INLIER_RATIO, FAIL_INLIER_RATIO = 0.3, 0.1  # a pose with fewer inliers is suspect, or unusable
REWEIGHTINGS = 3  # of a triangulation by depth; the second changes the result by less than a pixel's noise
MIN_EIGENVALUE_RATIO = 1e-14  # of the normal equations; below it, the rays are considered parallel


# Features


@dataclass(frozen=True)
class FeatureMatchability:
    """Ratio of matched features, and how well the detector response predicts which are matched."""

    ratio: float  # matched features divided by all; NaN without features
    # Probability that a matched feature has a larger response than an unmatched one: 0.5 if the response has
    # no information, 1 if it separates them; NaN if all or none were matched, or there is no response
    auc: float
    matched: int
    count: int  # all features


def matchability(matched: ArrayLike, response: ArrayLike | None = None) -> FeatureMatchability:
    """Return how many features of an image were matched in another one, and the AUC of their response.

    Parameters
    ----------
    matched : (n,) bool
    response : (n,), optional
        Detector response of each, in any unit; NaN are ignored in `auc`.
    """
    is_matched = np.asarray(matched, np.bool_)
    ratio = float(is_matched.mean()) if len(is_matched) else float("nan")
    auc = float("nan")
    if response is not None:
        strength = floats("response", response, ("n",))
        same_length(matched=is_matched, response=strength)
        auc = _area_under_curve(strength, is_matched)
    return FeatureMatchability(ratio, auc, int(is_matched.sum()), len(is_matched))


def _area_under_curve(values: Floats, chosen: Mask) -> float:
    """Return the probability that a chosen value is larger than another; ties count half."""
    from scipy.stats import rankdata

    known = np.isfinite(values)
    ranks, good = rankdata(values[known]), chosen[known]
    count, others = int(good.sum()), int((~good).sum())
    if not count or not others:
        return float("nan")
    # Mann-Whitney U from the sum of ranks
    return float(ranks[good].sum() - count * (count + 1) / 2) / (count * others)


# Matches


@dataclass(frozen=True)
class MatchQuality:
    """Descriptor distances of the accepted matches against those of all."""

    # Sum over the accepted, divided by the mean of all, as CDFF defines it. It grows with the number of
    # matches, although CDFF minimises it.
    q_sum: float
    # Mean over the accepted, divided by the mean of all: below 1 if the better ones were accepted. Use this
    # one to compare runs.
    q_mean: float
    accepted: int
    count: int  # all matches


def match_quality(distances: ArrayLike, accepted: ArrayLike) -> MatchQuality:
    """Compare the descriptor distances of accepted matches with those of all.

    Parameters
    ----------
    distances : (n,)
        Between descriptors, in any unit; NaN are ignored.
    accepted : (n,) bool
        Which of them were accepted.
    """
    d, is_accepted = floats("distances", distances, ("n",)), np.asarray(accepted, np.bool_)
    same_length(distances=d, accepted=is_accepted)
    known = np.isfinite(d)
    d, is_accepted = d[known], is_accepted[known]
    mean = float(d.mean()) if len(d) else float("nan")
    if not (is_accepted.any() and mean > 0):
        return MatchQuality(float("nan"), float("nan"), int(is_accepted.sum()), len(d))
    return MatchQuality(
        float(d[is_accepted].sum()) / mean,
        float(d[is_accepted].mean()) / mean,
        int(is_accepted.sum()),
        len(d),
    )


# Triangulation


@dataclass(frozen=True)
class Triangulation:
    """Points triangulated from rays, and their covariances."""

    points: Floats  # (n, 3) float64, metres, in the frame of the projections; NaN where the rays are parallel
    covariances: Floats  # (n, 3, 3) float64, square metres
    # (n,) float64, square root of the ratio of the smallest to the largest eigenvalue of the covariance
    # (Beder, Steffen, DAGM 2006): 1 for a sphere, near 0 if the distance is poorly constrained
    roundness: Floats

    @property
    def median_roundness(self) -> float:
        """Median over the points that could be triangulated."""
        known = self.roundness[np.isfinite(self.roundness)]
        return float(np.median(known)) if len(known) else float("nan")

    @property
    def poor_ratio(self) -> float:
        """Fraction of points whose roundness is below 0.05, or that could not be triangulated."""
        return float(np.mean(~(self.roundness >= MIN_ROUNDNESS)))

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
    """Triangulate points from several cameras, with their covariance.

    The linear equations ``A(x) X = 0`` are divided by depth and by the pixels' standard deviation (the
    iterated linear method of Hartley and Sturm); the solution is then an implicit function of the pixels, and
    their covariance is propagated through it.

    Parameters
    ----------
    projections : (m, 3, 4)
        Camera matrices ``K [R t]``, at least two.
    pixels : (n, m, 2)
        Undistorted.
    pixel_covariance : float or (..., 2, 2)
        Variance of a pixel coordinate, or covariances that broadcast to (n, m, 2, 2); square pixels.
    projection_covariance : (m, 12, 12), optional
        Of the entries of the camera matrices, row by row.
    """
    P, x, spread = _check(projections, pixels, pixel_covariance)
    found = _solve(P, x, np.ones(x.shape[:2]), spread)
    for _ in range(REWEIGHTINGS):
        homogeneous = np.column_stack([found.points, np.ones(len(x))])
        total = spread
        if projection_covariance is not None:
            total = spread + _camera_covariance(P, homogeneous, np.asarray(projection_covariance, np.float64))
        found = _solve(P, x, homogeneous @ P[:, 2].T, total)
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
    """Solve the equations of (n, m) rays, divided by depth (n, m), with covariances `spread` (n, m, 2, 2)."""
    n = len(x)
    # Rows x p3 - p1 and y p3 - p2: once divided by depth, their residuals are in pixels.
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = (x[..., None] * P[:, 2][:, None] - P[:, :2]) / depth[..., None, None]
    seen = np.asarray(np.isfinite(rows).all(axis=(1, 2, 3)) & (depth > 0).all(axis=1))
    rows = np.linalg.solve(np.linalg.cholesky(spread), np.where(seen[:, None, None, None], rows, 0.0))
    rows = rows.reshape(n, -1, 4)
    A, b = rows[..., :3], rows[..., 3]
    # f = A'(A X + b) = 0 defines X(x); df/dX = A'A, and whitened rows have covariance 1: it is (A'A)^-1.
    scale, axes = np.linalg.eigh(np.swapaxes(A, 1, 2) @ A)
    good = seen & (scale[:, 0] > MIN_EIGENVALUE_RATIO * scale[:, 2])
    inverse = np.where(good[:, None], 1 / np.where(scale > 0, scale, np.nan), np.nan)
    covariances = (axes * inverse[:, None]) @ np.swapaxes(axes, 1, 2)
    points = -np.einsum("nij,nkj,nk->ni", covariances, A, b)
    return Triangulation(points, covariances, np.sqrt(inverse[:, 2] / inverse[:, 0]))


def _camera_covariance(P: Floats, homogeneous: Floats, covariance: Floats) -> Floats:
    """Return the pixel covariance (n, m, 2, 2) of n points due to uncertain cameras (m, 12, 12)."""
    n, m = len(homogeneous), len(P)
    projected = np.einsum("mij,nj->nmi", P, homogeneous)
    with np.errstate(divide="ignore", invalid="ignore"):
        pixel, near = projected[..., :2] / projected[..., 2:], homogeneous[:, None] / projected[..., 2:]
    J = np.zeros((n, m, 2, 12))
    J[..., 0, :4] = J[..., 1, 4:8] = near
    J[..., 8:] = -pixel[..., None] * near[..., None, :]
    J[~np.isfinite(J).all(axis=(2, 3))] = 0.0
    return J @ covariance @ np.swapaxes(J, 2, 3)


# Poses from points


@dataclass(frozen=True)
class PoseQuality:
    """Inlier ratio of a pose estimated from matches, and its level."""

    ratio: float  # inliers divided by matches; NaN without matches
    level: Level  # below 0.3 the pose is suspect, below 0.1 unusable


def pose_quality(
    inliers: int, matches: int, warn: float = WARN_INLIER_RATIO, fail: float = FAIL_INLIER_RATIO
) -> PoseQuality:
    """Return the level of a pose from points (PnP) by its inlier ratio."""
    if not 0 <= inliers <= matches:
        raise GeometryError(f"{inliers} inliers among {matches} matches are not possible")
    ratio = inliers / matches if matches else float("nan")
    level: Level = "ok" if ratio >= warn else "warn" if ratio >= fail else "fail"
    return PoseQuality(ratio, level)


# Tracks


@dataclass(frozen=True)
class FeatureTracks:
    """Features tracked from image to image: one row per observation."""

    track: Ints  # (n,) int64, number of the feature
    frame: Ints  # (n,) int64, number of the image
    pixels: Floats  # (n, 2) float64

    @property
    def lengths(self) -> Ints:
        """(k,) number of images with each feature, in the order of the features' numbers."""
        return np.unique(self.track, return_counts=True)[1].astype(np.int64)


@dataclass(frozen=True)
class TrackHistogram:
    """Distribution of track lengths (Rosario, Figure 5)."""

    length: Ints  # (k,) int64, every length from 1 to the largest
    count: Ints  # (k,) int64, number of tracks of each length

    @property
    def mean(self) -> float:
        """Images per track."""
        return float((self.length * self.count).sum() / self.count.sum())


def track_histogram(tracks: FeatureTracks) -> TrackHistogram:
    """Count the lengths of tracks."""
    if not len(tracks.track):
        raise GeometryError("there are no tracks")
    count = np.bincount(tracks.lengths)[1:]
    return TrackHistogram(np.arange(1, len(count) + 1), count.astype(np.int64))
