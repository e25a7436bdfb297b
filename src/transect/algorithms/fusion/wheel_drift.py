"""Adaptive noise of wheels in the error-state filter, estimated by predictions over several seconds.

At a position the state is cloned, and the clone is propagated by wheels alone. At a later position the
residual of its prediction has the covariance ``A + s B``: A is the uncertainty when the clone was made and
the position's own noise, B what the wheels' noise has added since, and s the factor on the variances of that
noise. The filter uses the posterior mean of s. Errors over seconds determine it, as they matter in an outage;
those between consecutive positions contain little information on it.

`smoothing.wheel_cross_validation` estimates the same factor from positions that are withheld.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

from . import error_state as ekf
from .variance_factor import VarianceFactorPrior

WHEEL_NOISE_FIELDS = (
    "slip", "scale_walk", "turn_scale_walk", "sideslip_walk", "curvature_walk", "along_noise", "across_noise",
    "heading_noise", "skid_noise", "rest_position_noise", "rest_heading_noise",
)  # fmt: skip
"""Fields of `ProcessNoise` that the factor scales; those of heights are a property of the terrain."""


DRIFT_PRIOR = VarianceFactorPrior(median=0.12, log_sigma=1.2, min_factor=1 / 256, count=49)
"""The specified noise is an upper bound, so the median is less than 1."""


@dataclass(frozen=True)
class WheelDriftSettings:
    """Prior of the factor, and the intervals of predictions."""

    prior: VarianceFactorPrior = DRIFT_PRIOR
    horizons_s: tuple[float, ...] = (5.0, 10.0)  # times after which a clone is compared with a position
    spacing_s: float = 2.5  # between clones
    forgetting: float = 0.97  # factor on the log-likelihood per comparison: soil and wheels change


WHEEL_DRIFT = WheelDriftSettings()


@dataclass
class _Prediction:
    """A clone of the state that is propagated by wheels alone, with their noise and without any."""

    start_ns: int
    noisy: ekf.FilterState
    noiseless: ekf.FilterState
    comparisons: int = 0


class WheelDriftModel:
    """Estimates the factor on the variances of the wheels' noise.

    Parameters
    ----------
    noise : ProcessNoise
        As specified.
    adapts : bool
        Whether the factor is estimated; else it is 1.
    """

    def __init__(
        self, noise: ekf.ProcessNoise, *, adapts: bool, settings: WheelDriftSettings = WHEEL_DRIFT
    ) -> None:
        self._specified, self._adapts, self.settings = noise, adapts, settings
        self._noiseless = scale_wheel_noise(noise, 0.0)
        self._log_likelihood = np.zeros(settings.prior.count)
        self.factor, self.noise = 1.0, noise
        self._predictions: list[_Prediction] = []
        if adapts:
            self._update_factor()

    def states(self, x: ekf.FilterState) -> Iterator[tuple[ekf.FilterState, ekf.ProcessNoise]]:
        """Yield `x` and all clones, each with the noise by which it is propagated."""
        yield x, self.noise
        for prediction in self._predictions:
            yield prediction.noisy, self.noise
            yield prediction.noiseless, self._noiseless

    def start_prediction(self, x: ekf.FilterState) -> None:
        """Clone a state if the last clone is older than `spacing_s`."""
        newest_ns = self._predictions[-1].start_ns if self._predictions else -(2**62)
        if self._adapts and x.t_ns - newest_ns >= self.settings.spacing_s * NS:
            self._predictions.append(_Prediction(x.t_ns, x.copy(), x.copy()))

    def reset(self) -> None:
        """Drop all clones, before a motion with other errors than the wheels' usual noise."""
        self._predictions = []

    def compare(
        self, t_ns: int, position: Floats, variances: Floats, lever_arm: Floats, *, with_gnss_error: bool
    ) -> None:
        """Compare due predictions with a position; see `position_measurement` for the parameters."""
        xy, horizons = slice(0, 2), self.settings.horizons_s
        for prediction in self._predictions:
            if (t_ns - prediction.start_ns) / NS < horizons[prediction.comparisons]:
                continue
            noisy, noiseless = (
                ekf.position_measurement(x, position, variances, lever_arm, with_gnss_error=with_gnss_error)
                for x in (prediction.noisy, prediction.noiseless)
            )
            A = noiseless.innovation_covariance(prediction.noiseless)[xy, xy]
            B = (noisy.innovation_covariance(prediction.noisy)[xy, xy] - A) / self.factor
            self.update(noisy.r[xy], A, B)
            prediction.comparisons += 1
        self._predictions = [each for each in self._predictions if each.comparisons < len(horizons)]

    def update(self, r: Floats, A: Floats, B: Floats) -> None:
        """Update the factor by a residual (2,), m, with the covariance ``A + s B``, each (2, 2)."""
        S = A + self.settings.prior.factors[:, None, None] * B
        nis = np.einsum("i,nij,j->n", r, np.linalg.inv(S), r)
        self._log_likelihood = (
            self.settings.forgetting * self._log_likelihood - (nis + np.linalg.slogdet(S)[1]) / 2
        )
        self._update_factor()

    def _update_factor(self) -> None:
        self.factor = self.settings.prior.posterior_mean(self._log_likelihood)
        self.noise = scale_wheel_noise(self._specified, np.sqrt(self.factor))


def scale_wheel_noise(noise: ekf.ProcessNoise, factor: float) -> ekf.ProcessNoise:
    """Return the noise with the sigmas of the wheels multiplied by a factor."""
    return replace(noise, **{name: factor * getattr(noise, name) for name in WHEEL_NOISE_FIELDS})
