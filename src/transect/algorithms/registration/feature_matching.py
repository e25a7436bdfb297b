"""Registration by feature matches: mutual nearest descriptors, and RANSAC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import align, rotations, se3
from transect.types import Features3D


@dataclass(frozen=True)
class RansacSettings:
    """Settings of RANSAC with congruent triangles."""

    batch_samples: int = 256
    min_side_ratio: float = 0.9  # of corresponding sides of two triangles, shorter over longer
    max_miss_probability: float = 1e-4  # that no sample had inliers only, at which sampling stops
    max_refinements: int = 5


RANSAC = RansacSettings()


def mutual_matches(source: Features3D, sink: Features3D) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows (n,) and (n,) of keypoints that are mutual nearest neighbours.

    Histograms are compared by the Bhattacharyya coefficient, the sum of the square roots of products of
    normalised bins: a few large bins do not dominate, and the normalisation of the descriptors does not
    matter.
    """
    (rows, a), (other_rows, b) = _roots(source), _roots(sink)
    if not (len(a) and len(b)):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    nearest, reverse = _most_similar(a, b), _most_similar(b, a)
    mutual = np.flatnonzero(reverse[nearest] == np.arange(len(a)))
    return rows[mutual], other_rows[nearest[mutual]]


def _roots(features: Features3D) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the rows with a descriptor, and the square roots of its normalised bins."""
    if features.descriptors is None:
        return np.zeros(0, np.int64), np.zeros((0, 1), np.float32)
    rows = np.flatnonzero(np.isfinite(features.descriptors).all(axis=1))
    values = np.maximum(features.descriptors[rows], 0)
    total = values.sum(axis=1, keepdims=True)
    return rows, np.sqrt(values / np.where(total > 0, total, 1)).astype(np.float32)


def _most_similar(a: NDArray[np.float32], b: NDArray[np.float32], block: int = 2048) -> NDArray[np.int64]:
    """Return for each row of a the row of b with the largest product, computed in blocks of rows."""
    return np.concatenate([np.argmax(a[i : i + block] @ b.T, axis=1) for i in range(0, len(a), block)])


@dataclass(frozen=True)
class Consensus:
    """``T_sink_source`` (4, 4) and its inliers (n,) among the matches."""

    matrix: Floats
    inliers: NDArray[np.bool_]

    def required_samples(self, max_miss_probability: float) -> float:
        """Return the number of samples that contain one of inliers only, except with this probability."""
        inlier_ratio = min(float(np.mean(self.inliers)), 1 - 1e-9)
        if inlier_ratio <= 0:
            return np.inf
        return float(np.log(max_miss_probability) / np.log1p(-(inlier_ratio**3)))


def ransac_consensus(
    source: Floats,
    sink: Floats,
    max_distance_m: float,
    samples: int,
    rng: np.random.Generator,
    settings: RansacSettings = RANSAC,
) -> Consensus | None:
    """Return the transform with most inliers by RANSAC; None if no sample is congruent in both clouds.

    Parameters
    ----------
    source, sink : (n, 3)
        Row i of one was matched with row i of the other.
    max_distance_m : float
        Residual of an inlier.
    samples : int
        Largest number of samples of three matches; those that are not congruent cost little.
    """
    best: Consensus | None = None
    for count in range(0, samples, settings.batch_samples):
        if best is not None and count >= best.required_samples(settings.max_miss_probability):
            break
        rows = rng.integers(len(source), size=(settings.batch_samples, 3))
        rows = rows[_are_congruent(source[rows], sink[rows], settings.min_side_ratio)]
        found = _best_sample(source, sink, rows, max_distance_m) if len(rows) else None
        if found and (best is None or found.inliers.sum() > best.inliers.sum()):
            best = found
    return _refine(source, sink, best, max_distance_m, settings.max_refinements) if best else None


def _best_sample(source: Floats, sink: Floats, rows: NDArray[np.int64], max_distance_m: float) -> Consensus:
    """Return the transform of one of the samples (k, 3) with most inliers."""
    matrices = _transforms(source[rows], sink[rows])
    residual = se3.apply(matrices[:, None], source) - sink
    inliers = np.einsum("kni,kni->kn", residual, residual) <= max_distance_m**2
    best_row = int(np.argmax(inliers.sum(axis=1)))
    return Consensus(matrices[best_row], inliers[best_row])


def _transforms(a: Floats, b: Floats) -> Floats:
    """Return transforms (k, 4, 4) that map triangles (k, 3, 3) to others (Umeyama)."""
    mean_a, mean_b = a.mean(axis=1), b.mean(axis=1)
    rotation = rotations.nearest_rotation(np.einsum("kni,knj->kij", b - mean_b[:, None], a - mean_a[:, None]))
    return se3.from_matrix(rotation, mean_b - np.einsum("kij,kj->ki", rotation, mean_a))


def _refine(
    source: Floats, sink: Floats, best: Consensus, max_distance_m: float, max_refinements: int
) -> Consensus:
    """Refine the transform with all inliers, as long as these do not decrease."""
    for _ in range(max_refinements):
        try:
            matrix = align.umeyama(source[best.inliers], sink[best.inliers]).matrix
        except GeometryError:  # the inliers are collinear
            break
        residual = se3.apply(matrix, source) - sink
        inliers = np.einsum("ni,ni->n", residual, residual) <= max_distance_m**2
        if inliers.sum() < best.inliers.sum():
            break
        best = Consensus(matrix, inliers)
    return best


def _are_congruent(a: Floats, b: Floats, min_side_ratio: float) -> NDArray[np.bool_]:
    """Return which triangles (k, 3, 3) and (k, 3, 3) have sides of similar, nonzero length."""
    sides = [np.linalg.norm(each - np.roll(each, 1, axis=1), axis=2) for each in (a, b)]
    short, long = np.minimum(*sides), np.maximum(*sides)
    return np.asarray(((short > min_side_ratio * long) & (short > 0)).all(axis=1))
