"""S05: has the noise of a signal increased, or the bias of an inertial sensor at rest changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.engine.nodes import param
from transect.geometry.robust import SIGMA_PER_MAD
from transect.integrity.baselines import SETTINGS as BASELINES
from transect.integrity.baselines import Baseline
from transect.integrity.checks._signals import Signals, names_in
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import Imu

GYRO_COLUMNS, ACC_COLUMNS = ("gyro_x", "gyro_y", "gyro_z"), ("acc_x", "acc_y", "acc_z")
IMU_COLUMNS = (*ACC_COLUMNS, *GYRO_COLUMNS)
DIFFERENCE_SIGMA = float(np.sqrt(20.0))
"""Standard deviation of third differences over that of a sample."""


@dataclass(frozen=True)
class NoiseSettings:
    """Numbers of the noise estimate and of its comparison with the baseline."""

    max_rest_turn_rad_s: float = 0.02  # Change of a window's mean rate at rest.
    max_rest_change_m_s2: float = 0.1  # Change of a window's mean acceleration at rest.
    max_samples: int = 200  # Newest samples that determine the noise, ...
    min_samples_of_noise: int = 24  # ... at least, ...
    max_span_s: float = 4.0  # ... and within this time.
    log_sigma_factor: float = 1.2  # Sigma of the logarithm of the noise of n samples, times sqrt(n).
    constant_noise: float = 1e-12  # Noise of a constant column.
    min_sigmas: float = 5.0  # Deviation that is not chance.
    min_windows: int = 8  # Windows that determine the baseline.
    # Noise is judged if twice the baseline would not be chance.
    detectable_log_ratio: float = float(np.log(2.0))
    # Noise at rest and in motion is the same if it differs by less.
    max_motion_log_ratio: float = float(np.log(1.3))
    motion_score: float = 0.2  # Minimum score in motion: the ground may have changed.


class Noise(Check, id="S05", group="signal", version=4, min_samples=5):
    """Noise over its baseline, and bias of an inertial sensor at rest: ``|mean - b_0| / sigma_b``.

    The noise `sigma` is that of third differences, by their 86th percentile, over the newest 200 samples,
    and at least the smallest step of the signal, so that motion, single outliers and quantisation do not
    count. Its baseline `sigma_0` is the median of the first windows, separately at rest and in motion,
    and for each set of columns with values. A ratio counts if it exceeds 5 sigma of the baseline's
    scatter and of chance in two consecutive windows, as the robot may start moving in the first. If a
    factor of two would be chance (vibration) the check is UNKNOWN, and in motion if the noise differs
    from that at rest; in motion it is SUSPECT at most. For inertial sensors at rest `sigma_0` is ``N
    sqrt(f)`` if the noise densities N of the data sheet are given, and the bias is judged: `b_0` and
    `sigma_b` are median and deviation of the means of the first windows at rest. For accelerometers the
    bias is that of the norm, as the robot may stand tilted. At rest means that no peer moves, and that
    the means equal those of the previous window.

    Motive: Rosario, Table 2: Allan parameters of its inertial sensor.
    """

    settings = NoiseSettings()

    ratio = Limit(1.5, 3.0, "NOISE", "", "times the usual noise")
    bias = Limit(3.0, 10.0, "BIAS", "", "standard deviations of change of the mean")
    gyro_density: float = param(
        0.0, ge=0.0, unit="rad/s/sqrt(Hz)", doc="noise density of the data sheet; 0: learned"
    )
    acc_density: float = param(
        0.0, ge=0.0, unit="m/s2/sqrt(Hz)", doc="noise density of the data sheet; 0: learned"
    )

    def reset(self) -> None:
        """Start without baselines."""
        self._usual: defaultdict[tuple[bool, bytes], list[Floats]] = defaultdict(list)
        self._quantisation: dict[bytes, Floats] = {}
        self._ratio = 0.0
        self._bias = [Baseline(min_windows=10) for _ in range(4)]
        self._before: Floats | None = None

    def evaluate(self, stream: Window[Signals], peers: Sequence[Window[Moving]] = ()) -> Finding | Unknown:
        """Compare noise, and the means at rest, with those of the first windows."""
        names = names_in(stream)
        if not names:
            return Unknown("NO_NUMBERS", n=len(stream))
        moving = self._moves(stream, names, peers)
        past = stream.history(
            min(self.settings.max_span_s, stream.seconds * self.settings.max_samples / len(stream))
        )
        ratio, why = self._judge_noise(past, names, moving)
        statistics = {"ratio": ratio}
        if not moving and issubclass(stream.stream.type, Imu) and stream.has(*GYRO_COLUMNS, *ACC_COLUMNS):
            statistics["bias"] = self._judge_bias(stream)
        if np.isnan(list(statistics.values())).all():
            return Unknown(why, n=len(past))
        return Finding(statistics, len(past), min_score=self.settings.motion_score if moving else 0.0)

    def _moves(self, stream: Window[Any], names: Sequence[str], peers: Sequence[Window[Any]]) -> bool:
        """Return whether the robot, or what is measured, moves: by peers, and by means that change."""
        mean, before = _means_of(stream.array(*names)), self._before
        self._before = mean
        if issubclass(stream.stream.type, Imu):
            return before is None or bool(is_moving(peers)) or not _is_still(mean, before, self.settings)
        return bool(is_moving([stream, *peers]))

    def _judge_noise(self, past: Window[Any], names: Sequence[str], moving: bool) -> tuple[float, str]:
        """Return the noise over its baseline, NaN if undefined, and then why."""
        values = past.array(*names)
        has_values = np.isfinite(values).any(axis=0)
        values, columns = values[:, has_values], has_values.tobytes()
        sigma = self._find_noise(values[np.isfinite(values).all(axis=1)], columns)
        if sigma is None:
            return np.nan, "TOO_FEW"
        given = self._noise_of_data_sheet(past, names)
        given = None if given is None else given[has_values]
        known, logs = self._usual[moving, columns], np.log(sigma)
        if len(known) < self.settings.min_windows and given is None:
            known.append(logs)
            return np.nan, "LEARNING"
        excess = _find_excess(logs, np.array(known).reshape(-1, len(logs)), given, len(values), self.settings)
        usual = np.median(known, axis=0) if known else logs
        if len(known) < BASELINES.max_windows and float(np.max(logs - usual)) < np.log(self.ratio.warn):
            known.append(logs)
        if excess is None:
            return np.nan, "UNEVEN"
        if moving and not self._is_independent_of_motion(columns):
            return np.nan, "MOVING"
        before, self._ratio = self._ratio, float(np.exp(excess))
        return min(self._ratio, before), ""

    def _is_independent_of_motion(self, columns: bytes) -> bool:
        """Return whether these columns have the same noise in motion and at rest."""
        rest, motion = (self._usual[moving, columns] for moving in (False, True))
        if len(rest) < self.settings.min_windows or len(motion) < self.settings.min_windows:
            return False
        return bool(
            (
                np.abs(np.median(rest, axis=0) - np.median(motion, axis=0))
                < self.settings.max_motion_log_ratio
            ).all()
        )

    def _find_noise(self, values: Floats, columns: bytes) -> Floats | None:
        """Return the noise (k,) of values (n, k), at least their smallest step; None if too few.

        `columns` identifies the columns that have values, as others have other steps.
        """
        if len(values) < self.settings.min_samples_of_noise:
            return None
        steps = np.abs(np.diff(values, axis=0))
        quantisation = np.min(steps, axis=0, where=steps > 0, initial=np.inf)
        quantisation = self._quantisation[columns] = np.minimum(
            self._quantisation.get(columns, np.inf), quantisation
        )
        # Third differences remove motion; the 86th percentile of |x|, 1.4758 sigma, is robust to outliers.
        third = np.abs(np.diff(values, n=3, axis=0))
        sigma = np.percentile(third, 86, axis=0) / (1.4758 * DIFFERENCE_SIGMA)
        return np.maximum(
            sigma, np.where(np.isfinite(quantisation), quantisation, self.settings.constant_noise)
        )

    def _noise_of_data_sheet(self, past: Window[Any], names: Sequence[str]) -> Floats | None:
        """Return the log of the noise by data sheets, None if they are incomplete."""
        if names != IMU_COLUMNS or not (self.gyro_density and self.acc_density):
            return None
        step = float(np.nanmedian(past.steps_s))
        return np.log(np.repeat([self.acc_density, self.gyro_density], 3) / np.sqrt(step))

    def _judge_bias(self, imu: Window[Any]) -> float:
        """Return the deviation of the means of a window at rest, in sigmas; NaN while learning."""
        values = imu.array(*GYRO_COLUMNS, *ACC_COLUMNS)
        mean = np.mean(values, axis=0)
        if not np.isfinite(mean).all():
            return np.nan
        level = np.append(mean[:3], np.linalg.norm(mean[3:]))
        middle, spread = (np.array([getattr(b, what) for b in self._bias]) for what in ("value", "spread"))
        sigma = np.std(np.diff(values, axis=0), axis=0) / np.sqrt(2)
        floor = np.append(sigma[:3], np.max(sigma[3:])) / np.sqrt(len(imu))
        moved = float(np.max(np.abs(level - middle) / np.maximum(spread, floor)))
        if not moved > self.bias.warn:
            for known, value in zip(self._bias, level, strict=True):
                known.learn(float(value))
        return moved


def _find_excess(
    logs: Floats, known: Floats, given: Floats | None, n: int, settings: NoiseSettings
) -> float | None:
    """Return the log of the noise over its baseline; None if a factor of two would be chance.

    Parameters
    ----------
    logs : (k,) array
        By column.
    known : (m, k) array
        Of the windows of the baseline.
    given : (k,) array or None
        Replaces the median of the baseline.
    n : int
        Number of samples.
    """
    usual = given if given is not None else np.median(known, axis=0)
    alive = usual > np.log(settings.constant_noise) / 2
    logs, known, usual = logs[alive], known[:, alive], usual[alive]
    # Scatter about their own median, as all windows may differ from `given` by the same factor.
    rests = known - np.median(known, axis=0) if len(known) else known
    found: list[float] = []
    for over, rest, columns in (
        (
            (logs - usual, rests, 1),
            (np.mean(logs - usual, keepdims=True), np.mean(rests, axis=1, keepdims=True), len(logs)),
        )
        if alive.any()
        else ()
    ):
        spread = SIGMA_PER_MAD * np.median(np.abs(rest), axis=0) if len(rest) else np.zeros(len(over))
        chance = settings.min_sigmas * np.maximum(spread, settings.log_sigma_factor / np.sqrt(n * columns))
        found += np.where(over > chance, over, np.minimum(over, 0.0))[
            chance < settings.detectable_log_ratio
        ].tolist()
    return max(found, default=None)


def _means_of(values: Floats) -> Floats:
    """Return the means (k,) of columns (n, k), NaN for empty ones."""
    finite = np.isfinite(values)
    count = finite.sum(axis=0)
    return np.where(count > 0, np.sum(values, axis=0, where=finite) / np.maximum(count, 1), np.nan)


def _is_still(mean: Floats, before: Floats, settings: NoiseSettings) -> bool:
    """Return whether means (6,) of accelerations and rates equal those of the previous window.

    Empty columns are ignored; without any turn rate the answer is no.
    """
    change, known = np.abs(mean - before), np.isfinite(mean - before)
    turns = np.linalg.norm(np.nan_to_num(mean[3:])) > 5 * settings.max_rest_turn_rad_s
    limits = np.repeat([settings.max_rest_change_m_s2, settings.max_rest_turn_rad_s], 3)
    return bool(known[3:].any() and not (change > limits)[known].any() and not turns)
