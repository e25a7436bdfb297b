"""The rigid transform on which most matches agree, by random samples of three."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import align, rotations, se3

BATCH = 256
"""Samples drawn and judged at a time."""
ALIKE = 0.9
"""By how much the sides of two triangles may differ in length, shorter by longer."""
MISSED = 1e-4
"""Chance of having drawn no sample of right matches only, at which it is time to stop."""
ADJUSTMENTS = 5
"""Times that the transform is fitted to those that agree with it."""


@dataclass(frozen=True)
class Consensus:
    """``T_sink_source`` (4, 4) and the matches (n,) that agree with it."""

    matrix: Floats
    inliers: NDArray[np.bool_]

    @property
    def samples(self) -> float:
        """After so many, one of right matches only has very likely been among them."""
        share = min(float(np.mean(self.inliers)), 1 - 1e-9)
        return float(np.log(MISSED) / np.log1p(-(share**3)))


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
    return _adjusted(source, sink, best, reach) if best else None


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


def _adjusted(source: Floats, sink: Floats, best: Consensus, reach: float) -> Consensus:
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
