"""Bayesian estimate of a factor on variances, on a grid with a log-normal prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats


@dataclass(frozen=True)
class VarianceFactorPrior:
    """Log-normal prior of a factor on variances, and the grid on which its posterior is evaluated."""

    median: float
    log_sigma: float
    min_factor: float
    max_factor: float = 16.0
    count: int = 41

    @property
    def factors(self) -> Floats:
        """Candidate factors (count,)."""
        return np.geomspace(self.min_factor, self.max_factor, self.count)

    def posterior_mean(self, log_likelihood: Floats) -> float:
        """Return the posterior mean by the log-likelihood (count,) of each candidate.

        The mean makes the covariance of a prediction, which is linear in the factor, that of its mixture.
        """
        factors = self.factors
        log_posterior = log_likelihood - (np.log(factors / self.median) / self.log_sigma) ** 2 / 2
        weights = np.exp(log_posterior - log_posterior.max())
        return float(weights @ factors / weights.sum())
