"""How one cloud lies in another by keypoints that look alike: no guess is needed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.engine import Node, outputs, param
from transect.errors import GeometryError, MissingExtraError
from transect.geometry import align, rotations, se3
from transect.types import Features3D, Pose

BATCH = 256
"""Samples drawn and judged at a time."""
ALIKE = 0.9
"""By how much the sides of two triangles may differ in length, shorter by longer."""
MISSED = 1e-4
"""Chance of having drawn no sample of right matches only, at which it is time to stop."""
ADJUSTMENTS = 5
"""Times that the transform is fitted to those that agree with it."""
LEAST_MATCHES = 3
ROWS = 2048
"""Descriptors compared with all others at a time."""
NOISE_LIMIT = 1.0
"""Metres: larger bounds on the noise are no use to KISS-Matcher, and it would warn on the terminal."""
SOLVER_GAIN = 0.75
"""Of the noise, the bound in KISS-Matcher's solver; the library's own."""


@outputs
class Matched:
    """Where the source lies in the sink, by the matches that agree.

    Attributes
    ----------
    transform : Pose
        Of the source's frame in the sink's; not given where it failed.
    success : bool
        Whether enough matches agree.
    inliers : int
        How many agree.
    matches : int
        How many there were.
    """

    transform: Pose | None = None
    success: bool | None = None
    inliers: int | None = None
    matches: int | None = None


class FeaturesMatching3D(Node, interface=True):
    """Matches keypoints that are each other's most alike, and finds the transform on which they agree."""

    noise: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="largest position error of a correct match; 0: a twentieth of the sink's radius",
    )
    least_inliers: int = param(10, ge=4, doc="smallest number of matches that must agree")

    def process(self, sourceFeatures: Features3D, sinkFeatures: Features3D) -> Matched | None:
        first, second = mutual_matches(sourceFeatures, sinkFeatures)
        matrix, inliers = None, 0
        if len(first) >= LEAST_MATCHES:
            noise = self.noise or _radius(sinkFeatures.points) / 20
            matrix, inliers = self.agree(sourceFeatures.points[first], sinkFeatures.points[second], noise)
        if matrix is None or inliers < self.least_inliers:
            self.ctx.skip("too few matches agree")
            return Matched(success=False, inliers=inliers, matches=len(first))
        turned, moved = se3.to_quaternion(matrix)
        pose = Pose(moved, turned, self.ctx.time, sinkFeatures.frame, sourceFeatures.frame)
        return Matched(pose, True, inliers, len(first))

    def agree(self, source: Floats, sink: Floats, noise: float) -> tuple[Floats | None, int]:
        """Find on what matches agree: row i of source (n, 3) was matched with row i of sink (n, 3).

        Parameters
        ----------
        noise : float
            Metres: how far a right match may be off.

        Returns
        -------
        ``T_sink_source`` (4, 4), None if it is not believed, and how many matches agree with it.
        """
        raise NotImplementedError


class Ransac3D(FeaturesMatching3D):
    """By random samples of three matches (Fischler and Bolles 1981)."""

    samples: int = param(20000, ge=100, doc="number of random samples of three matches")

    def agree(self, source: Floats, sink: Floats, noise: float) -> tuple[Floats | None, int]:
        found = consensus(source, sink, noise, self.samples, self.ctx.rng)
        return (None, 0) if found is None else (found.matrix, int(found.inliers.sum()))


class KissMatcher(FeaturesMatching3D):
    """By a graph of matches that keep their distances, and graduated non-convexity (Lim, ICRA 2025)."""

    def agree(self, source: Floats, sink: Floats, noise: float) -> tuple[Floats | None, int]:
        matcher = _kiss_matcher(noise)
        found = matcher.prune_and_solve(*(list(each.astype(np.float32)) for each in (source, sink)))
        matrix = se3.from_matrix(np.array(found.rotation), np.array(found.translation).reshape(3))
        believed = found.valid and np.isfinite(matrix).all()
        return matrix if believed else None, int(matcher.get_num_final_inliers())


def _kiss_matcher(noise: float) -> Any:
    """Return the library's solver for right matches that are up to so many metres off."""
    try:
        library = import_module("kiss_matcher")
    except ModuleNotFoundError as error:
        raise MissingExtraError("kiss_matcher", "fusion") from error
    most = 0.999 * NOISE_LIMIT / noise
    settings = library.KISSMatcherConfig(
        voxel_size=noise,
        use_voxel_sampling=False,
        robin_noise_bound_gain=min(1.0, most),
        solver_noise_bound_gain=min(SOLVER_GAIN, most),
    )
    return library.KISSMatcher(settings)


def mutual_matches(source: Features3D, sink: Features3D) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows (n,) and (n,) of keypoints that are each other's most alike.

    Histograms are compared by the Bhattacharyya coefficient, the sum of the roots of products of shares: a
    few large bins do not drown the others, and it does not matter how a descriptor was normalised.
    """
    (rows, a), (others, b) = _roots(source), _roots(sink)
    if not (len(a) and len(b)):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    there, back = _most_alike(a, b), _most_alike(b, a)
    both = np.flatnonzero(back[there] == np.arange(len(a)))
    return rows[both], others[there[both]]


def _roots(features: Features3D) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the rows that have a descriptor, and the roots of its shares."""
    if features.descriptors is None:
        return np.zeros(0, np.int64), np.zeros((0, 1), np.float32)
    rows = np.flatnonzero(np.isfinite(features.descriptors).all(axis=1))
    filled = np.maximum(features.descriptors[rows], 0)
    total = filled.sum(axis=1, keepdims=True)
    return rows, np.sqrt(filled / np.where(total > 0, total, 1)).astype(np.float32)


def _most_alike(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return for each row of a the row of b with the greatest product."""
    return np.concatenate([np.argmax(a[i : i + ROWS] @ b.T, axis=1) for i in range(0, len(a), ROWS)])


def _radius(points: Floats) -> float:
    """Return the median distance of points (n, 3) from their middle, metres."""
    return float(np.median(np.linalg.norm(points - np.median(points, axis=0), axis=1)))


@dataclass(frozen=True)
class Consensus:
    """``T_sink_source`` (4, 4) and the matches (n,) that agree with it."""

    matrix: Floats
    inliers: NDArray[np.bool_]

    @property
    def samples(self) -> float:
        """After so many, one of right matches only has very likely been among them."""
        share = min(float(np.mean(self.inliers)), 1 - 1e-9)
        return float(np.log(MISSED) / np.log1p(-(share**3))) if share > 0 else np.inf


def consensus(
    source: Floats, sink: Floats, reach: float, samples: int, rng: np.random.Generator
) -> Consensus | None:
    """Return what most matches agree on; None where no sample is a triangle in both clouds.

    Parameters
    ----------
    source, sink : (n, 3)
        Row i of one was matched with row i of the other.
    reach : float
        Metres: matches that a transform brings nearer agree with it.
    samples : int
        Of three matches each, at most; those whose triangles differ cost almost nothing.
    """
    best: Consensus | None = None
    for drawn in range(0, samples, BATCH):
        if best is not None and drawn >= best.samples:
            break
        chosen = rng.integers(len(source), size=(BATCH, 3))
        chosen = chosen[_congruent(source[chosen], sink[chosen])]
        found = _best_of(source, sink, chosen, reach) if len(chosen) else None
        if found and (best is None or found.inliers.sum() > best.inliers.sum()):
            best = found
    return _adjust(source, sink, best, reach) if best else None


def _best_of(source: Floats, sink: Floats, chosen: NDArray[np.int64], reach: float) -> Consensus:
    """Return the transform of one of the samples (k, 3) with which most matches agree."""
    matrices = _transforms(source[chosen], sink[chosen])
    left = se3.apply(matrices[:, None], source) - sink
    agree = np.einsum("kni,kni->kn", left, left) <= reach**2
    most = int(np.argmax(agree.sum(axis=1)))
    return Consensus(matrices[most], agree[most])


def _transforms(a: Floats, b: Floats) -> Floats:
    """Transforms (k, 4, 4) that take triangles (k, 3, 3) to others: Umeyama, for all of them at once."""
    mean_a, mean_b = a.mean(axis=1), b.mean(axis=1)
    turn = rotations.nearest_rotation(np.einsum("kni,knj->kij", b - mean_b[:, None], a - mean_a[:, None]))
    return se3.from_matrix(turn, mean_b - np.einsum("kij,kj->ki", turn, mean_a))


def _adjust(source: Floats, sink: Floats, best: Consensus, reach: float) -> Consensus:
    """Fit the transform to all that agree with it, as long as they do not become fewer."""
    for _ in range(ADJUSTMENTS):
        try:
            matrix = align.umeyama(source[best.inliers], sink[best.inliers]).matrix
        except GeometryError:  # those that agree lie on a line
            break
        left = se3.apply(matrix, source) - sink
        agree = np.einsum("ni,ni->n", left, left) <= reach**2
        if agree.sum() < best.inliers.sum():
            break
        best = Consensus(matrix, agree)
    return best


def _congruent(a: Floats, b: Floats) -> NDArray[np.bool_]:
    """Triangles (k, 3, 3) and (k, 3, 3) whose sides are about as long, none of them zero."""
    sides = [np.linalg.norm(each - np.roll(each, 1, axis=1), axis=2) for each in (a, b)]
    short, long = np.minimum(*sides), np.maximum(*sides)
    return np.asarray(((short > ALIKE * long) & (short > 0)).all(axis=1))
