"""Is an estimate as good as it says: normalised estimation error squared, and its chi-square bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.errors import GeometryError


@dataclass(frozen=True)
class Consistency:
    """Normalised errors ``e' P^-1 e`` and what they should be.

    Attributes
    ----------
    nees : (n,) float64
        Of each sample.
    dimension : int
        Of the error.
    bounds : (float, float)
        Between which 95 % of single values lie if the covariance is right.
    mean_bounds : (float, float)
        The same for the mean of all, were they independent.
    """

    nees: Floats
    dimension: int
    bounds: tuple[float, float]
    mean_bounds: tuple[float, float]

    @property
    def normalised_mean(self) -> float:
        """Mean divided by the dimension: 1 if consistent, more if too sure of itself, less if too careful."""
        return float(self.nees.mean() / self.dimension)

    @property
    def inside(self) -> float:
        """Part of the samples inside the bounds; 0.95 if consistent."""
        return float(np.mean((self.nees >= self.bounds[0]) & (self.nees <= self.bounds[1])))


def consistency(errors: Floats, covariances: Floats, probability: float = 0.95) -> Consistency:
    """Judge covariances by the errors that were made.

    Parameters
    ----------
    errors : (n, k)
        Estimate minus truth; for poses translation (m), then rotation vector (rad).
    covariances : (n, k, k)
        What the estimate says of them; add the truth's own where it has one.

    Raises
    ------
    GeometryError
        If a covariance cannot be inverted.
    """
    from scipy.stats import chi2

    n, k = errors.shape
    if covariances.shape != (n, k, k):
        raise GeometryError(f"expected covariances of shape {(n, k, k)}, got {covariances.shape}")
    try:
        np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError as error:
        raise GeometryError("a covariance is not positive definite", why=str(error)) from error
    nees = np.einsum("ni,ni->n", errors, np.linalg.solve(covariances, errors[:, :, None])[:, :, 0])
    tails = ((1 - probability) / 2, (1 + probability) / 2)
    low, high = (float(chi2.ppf(tail, k)) for tail in tails)
    mean_low, mean_high = (float(chi2.ppf(tail, n * k) / n) for tail in tails)
    return Consistency(nees, k, (low, high), (mean_low, mean_high))
