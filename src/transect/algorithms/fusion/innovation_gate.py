"""Chi-squared gate, adaptation of measurement noise, and the minimal detectable error.

The normalised innovation squared (NIS) of a consistent measurement is chi-squared distributed. The minimal
detectable error is that of a test with a given power (Baarda 1968; Teunissen, Testing Theory, 2006).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from transect.base.arrays import Floats


@dataclass(frozen=True)
class GateSettings:
    """Chi-squared gate, and the adaptation of each sensor's noise to its innovations."""

    confidence: float = 0.999  # fraction of consistent measurements inside the gate
    power: float = 0.8  # probability with which the gate rejects an error of the minimal detectable size
    # The factor on a sensor's variances is adapted until this fraction of its NIS is below the same quantile.
    adaptation_quantile: float = 0.95
    # Bounds of the factor. Noise of odometry is a guess, that of positions was declared.
    min_odometry_factor: float = 0.05
    min_position_factor: float = 0.1
    max_factor: float = 1e3


GATE = GateSettings()
POSITION_SENSORS = ("fix", "position")


@cache
def chi2_quantile(probability: float, dof: int) -> float:
    """Return a quantile of the chi-squared distribution with `dof` degrees of freedom."""
    from scipy.stats import chi2

    return float(chi2.ppf(probability, dof))


@cache
def noncentrality(dof: int, settings: GateSettings = GATE) -> float:
    """Return the squared size, in sigmas, of an error that the gate rejects with probability `power`."""
    from scipy.optimize import brentq
    from scipy.stats import ncx2

    gate = chi2_quantile(settings.confidence, dof)
    found = brentq(lambda squared: ncx2.sf(gate, dof, squared) - settings.power, 1e-3, 1e3)
    return float(found)  # pyright: ignore[reportArgumentType]


def minimal_detectable_error(S: Floats, settings: GateSettings = GATE) -> float:
    """Return the smallest error that the gate rejects with probability `power`, in its worst direction.

    Parameters
    ----------
    S : (m, m) array
        Covariance of the innovation; the result has the unit of its square root.
    """
    return float(np.sqrt(noncentrality(len(S), settings) * np.linalg.eigvalsh(S)[-1]))


@dataclass(frozen=True)
class TallySettings:
    """When the statistics of a sensor are reported as a problem."""

    min_count: int = 5  # with fewer measurements nothing is concluded
    bad_rejected_ratio: float = 0.5  # if more are rejected, the result cannot be trusted
    many_rejected_ratio: float = 0.05  # worth a warning; 0.001 is expected
    # A large mean NIS is noise, not a few outliers, if fewer than this are below the 95 % quantile.
    max_below_ratio: float = 0.9
    nis_range: tuple[float, float] = (0.25, 2.0)  # mean NIS per degree of freedom if the noise model is right


@dataclass(frozen=True)
class SensorTally:
    """Number of accepted and rejected measurements of one sensor."""

    count: int
    below: int  # NIS below the 95 % quantile
    rejected: int  # outside the gate
    nis: float  # mean NIS per degree of freedom
    settings: TallySettings = TallySettings()

    @property
    def is_bad(self) -> bool:
        """Whether most measurements were rejected."""
        settings = self.settings
        return self.count >= settings.min_count and self.rejected > settings.bad_rejected_ratio * self.count

    def __str__(self) -> str:
        rejected = f"{self.rejected} of {self.count} rejected ({100 * self.rejected / self.count:.1f} %)"
        below = f"{100 * self.below / self.count:.0f} % below its 95 % quantile"
        return f"{rejected}; NIS {self.nis:.2g} per degree of freedom, {below}{self._assessment()}"

    def _assessment(self) -> str:
        settings, (low, high) = self.settings, self.settings.nis_range
        if self.is_bad:
            return ". It contradicts the other sensors: do not trust this result"
        if self.count < settings.min_count:
            return ""
        if self.rejected > settings.many_rejected_ratio * self.count:
            return ". Many were rejected: check this sensor"
        if self.nis > high and self.below < settings.max_below_ratio * self.count:
            below = f"{100 * GATE.adaptation_quantile:.0f} % below"
            return f". Its noise is larger than assumed (NIS should be 1, {below})"
        if self.nis < low:
            return ". Its noise is smaller than assumed: covariances are conservative"
        return ""


@dataclass
class SensorInnovations:
    """Statistics of one sensor's innovations, and the factor on its variances."""

    min_factor: float = GATE.min_position_factor
    factor: float = 1.0  # on the sensor's variances
    count: int = 0
    below: int = 0  # NIS below the 95 % quantile
    rejected: int = 0
    nis_sum: float = 0.0  # of NIS per degree of freedom
    rejected_in_row: int = 0
    detectable: float = float("nan")  # of the newest innovation, see `minimal_detectable_error`
    max_detectable: float = 0.0
    settings: GateSettings = GATE

    def __str__(self) -> str:
        mean_nis = self.nis_sum / self.count
        return (
            f"{self.count} innovations, {self.below / self.count:.1%} below the 95 % quantile, mean NIS "
            f"{mean_nis:.2f} per degree of freedom, {self.rejected} rejected by the gate, which detects an "
            f"error of {self.detectable:.3g} m (at worst {self.max_detectable:.3g} m) with a probability of "
            f"{self.settings.power:g}; variances x {self.factor:.3g}"
        )

    def test(self, nis: float, S: Floats, gain: float, metric: slice) -> bool:
        """Add an innovation, adapt the factor, and return whether the innovation is inside the gate.

        Parameters
        ----------
        nis : float
            By S, in which the factor is included.
        gain : float
            Gain of the adaptation; 0 for none.
        metric : slice
            Rows of S in m, for `detectable`.
        """
        dof, quantile = len(S), self.settings.adaptation_quantile
        below = nis <= chi2_quantile(quantile, dof)
        inside = nis <= chi2_quantile(self.settings.confidence, dof)
        self.count += 1
        self.below += below
        self.nis_sum += nis / dof
        self.rejected += not inside
        self.rejected_in_row = 0 if inside else self.rejected_in_row + 1
        self.detectable = minimal_detectable_error(S[metric, metric], self.settings)
        self.max_detectable = max(self.max_detectable, self.detectable)
        # Stochastic approximation of a quantile (Robbins and Monro 1951): up by 0.95 of a step if exceeded,
        # else down by 0.05. Several rejected in a row are no noise, and do not adapt the factor.
        if self.rejected_in_row <= 1:
            adapted = self.factor * float(np.exp(gain * ((0.0 if below else 1.0) - (1 - quantile))))
            self.factor = min(max(adapted, self.min_factor), self.settings.max_factor)
        return inside


@dataclass
class InnovationStatistics:
    """Statistics of the innovations of all sensors, since the start and since the last record."""

    settings: GateSettings = GATE
    sensors: dict[str, SensorInnovations] = field(default_factory=dict[str, SensorInnovations])
    _recorded: dict[str, SensorInnovations] = field(default_factory=dict[str, SensorInnovations])

    def sensor(self, name: str) -> SensorInnovations:
        """Return the statistics of a sensor."""
        if name not in self.sensors:
            settings = self.settings
            floor = settings.min_position_factor if name in POSITION_SENSORS else settings.min_odometry_factor
            self.sensors[name] = SensorInnovations(floor, settings=settings)
        return self.sensors[name]

    def record(self, names: Sequence[str]) -> dict[str, float]:
        """Return the statistics of some sensors since the last call."""
        values: dict[str, float] = {}
        for name in names:
            sensor = self.sensors.get(name, SensorInnovations())
            before = self._recorded.get(name, SensorInnovations())
            count = sensor.count - before.count
            values[f"{name}_count"] = float(count)
            values[f"{name}_below"] = float(sensor.below - before.below)
            values[f"{name}_refused"] = float(sensor.rejected - before.rejected)
            values[f"{name}_nis"] = (sensor.nis_sum - before.nis_sum) / count if count else float("nan")
            values[f"{name}_scale"] = sensor.factor
            values[f"{name}_detectable"] = sensor.detectable if count else float("nan")
        self._recorded = {name: replace(sensor) for name, sensor in self.sensors.items()}
        return values

    @property
    def tallies(self) -> dict[str, SensorTally]:
        """Number of accepted and rejected measurements by sensor."""
        return {
            name: SensorTally(each.count, each.below, each.rejected, each.nis_sum / max(each.count, 1))
            for name, each in self.sensors.items()
        }

    def report(self) -> Iterator[str]:
        """Yield a line for each sensor that had innovations."""
        for name, sensor in self.sensors.items():
            if sensor.count:
                yield f"{name}: {sensor}"
