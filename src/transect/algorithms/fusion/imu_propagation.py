"""IMU in the error-state filter: strapdown propagation, measured noise, yaw rates without known mount."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

from . import error_state as ekf
from .events import ImuSample, YawRate
from .wheel_updates import YawIncrement

MAX_IMU_GAP_NS = NS // 5
"""Longest gap over which an IMU measures turn and motion."""
SECOND_DIFFERENCE_VARIANCE = 6.0
"""Variance of the second difference of unit white noise: 1 + 4 + 1."""
NOISE_AVERAGING_S = 5.0
"""Time over which measured white noise is averaged."""


@dataclass(frozen=True)
class ImuSettings:
    """Lower limits of the noise, and the unknown motion in gaps of the IMU."""

    min_force_density: float = 1e-4  # m/s2/sqrt(Hz)
    min_rate_density: float = 1e-6  # rad/s/sqrt(Hz), that of the best gyroscopes
    # Sigma of acceleration (m/s2) and angular rate (rad/s) in a gap of an IMU that is the only motion sensor.
    gap_acceleration: float = 2.0
    gap_rate: float = 0.5
    history_s: float = 1.0  # duration of the stored yaw rates


IMU = ImuSettings()


class ImuPropagation:
    """Propagates a state by inertial samples, whose white noise it measures by second differences."""

    def __init__(self, noise: ekf.ProcessNoise, settings: ImuSettings = IMU) -> None:
        self.noise, self.settings = noise, settings
        self.samples: list[ImuSample] = []  # the newest three
        # (2,) power spectral densities of force (m2/s3) and rate (rad2/s), with vibration
        self.variance_densities = np.zeros(2)

    def covers(self, t_ns: int) -> bool:
        """Return whether the newest sample is recent enough to propagate to a time."""
        return bool(self.samples) and t_ns - self.samples[-1].t_ns <= MAX_IMU_GAP_NS

    def add(self, sample: ImuSample) -> None:
        """Add a sample, and update the measured white noise."""
        self.samples = [*self.samples[-2:], sample]
        if len(self.samples) < 3:
            return
        a, b, c = self.samples
        seconds = (c.t_ns - a.t_ns) / 2 / NS
        density = np.array(
            [
                np.mean((u - 2 * v + w) ** 2)
                for u, v, w in ((a.force, b.force, c.force), (a.rate, b.rate, c.rate))
            ]
        )
        density *= seconds / SECOND_DIFFERENCE_VARIANCE
        weight = 1.0 if not self.variance_densities.any() else min(seconds / NOISE_AVERAGING_S, 1.0)
        self.variance_densities = (1 - weight) * self.variance_densities + weight * density

    def mean_with_newest(self, sample: ImuSample) -> ImuSample:
        """Return the mean of a sample and the newest one (trapezoidal rule)."""
        last = self.samples[-1]
        force, rate = (last.force + sample.force) / 2, (last.rate + sample.rate) / 2
        return ImuSample(sample.t_ns, force, rate, sample.trust)

    def propagate(self, x: ekf.FilterState, t_ns: int, sample: ImuSample | None = None) -> None:
        """Propagate a state to a time by a sample, the newest by default."""
        seconds = (t_ns - x.t_ns) / NS
        if seconds <= 0:
            return
        used = sample or self.samples[-1]
        floors = [self.settings.min_force_density**2, self.settings.min_rate_density**2]
        force_density, rate_density = np.sqrt(np.maximum(self.variance_densities, floors)).tolist()
        densities = force_density / used.trust, rate_density / used.trust
        ekf.propagate_by_imu(x, seconds, used.force, used.rate, densities, self.noise)
        x.t_ns = t_ns

    def propagate_over_gap(self, x: ekf.FilterState, t_ns: int) -> None:
        """Propagate a state to a time with constant velocity and unknown acceleration."""
        seconds = (t_ns - x.t_ns) / NS
        if seconds <= 0:
            return
        acceleration, rate = self.settings.gap_acceleration, self.settings.gap_rate
        densities = acceleration * np.sqrt(seconds), rate * np.sqrt(seconds)
        at_rest = x.rotation.T @ (self.noise.gravity * ekf.UP) + x.accel_bias
        ekf.propagate_by_imu(x, seconds, at_rest, x.gyro_bias, densities, self.noise)
        ekf.add_variance(x, ekf.POSITION, (acceleration * seconds**2 / 2) ** 2)
        x.t_ns = t_ns

    def angular_velocity(self, x: ekf.FilterState) -> tuple[Floats, Floats]:
        """Return the angular velocity (3,) in the map and its covariance (3, 3)."""
        covariance = np.eye(3) * self.variance_densities[1] * 10 + x.covariance[ekf.GYRO_BIAS, ekf.GYRO_BIAS]
        return x.rotation @ (self.samples[-1].rate - x.gyro_bias), x.rotation @ covariance @ x.rotation.T


class YawGyro:
    """Integrates yaw rates, and measures their white noise by second differences."""

    def __init__(self, settings: ImuSettings = IMU) -> None:
        self.settings = settings
        self.rates: list[YawRate] = []
        self.variance_density = 0.0  # rad2/s

    def add(self, rate: YawRate) -> None:
        """Add a rate if it is later than the last one."""
        if self.rates and rate.t_ns <= self.rates[-1].t_ns:
            return
        oldest_ns = rate.t_ns - round(self.settings.history_s * NS)
        self.rates = [*(each for each in self.rates if each.t_ns > oldest_ns), rate]
        if len(self.rates) < 3:
            return
        a, b, c = self.rates[-3:]
        seconds = (c.t_ns - a.t_ns) / 2 / NS
        density = (a.rate - 2 * b.rate + c.rate) ** 2 * seconds / SECOND_DIFFERENCE_VARIANCE
        weight = 1.0 if not self.variance_density else min(seconds / NOISE_AVERAGING_S, 1.0)
        self.variance_density += weight * (density - self.variance_density)

    def between(self, start_ns: int, end_ns: int) -> YawIncrement | None:
        """Return the turn between two times; None if rates do not cover them."""
        times = np.array([each.t_ns for each in self.rates], np.int64)
        if len(times) < 2 or times[0] > start_ns + MAX_IMU_GAP_NS or times[-1] < end_ns - MAX_IMU_GAP_NS:
            return None
        rates = np.array([each.rate for each in self.rates])
        inside = times[(times > start_ns) & (times < end_ns)]
        nodes_ns = np.concatenate([[start_ns], inside, [end_ns]]).astype(np.int64)
        if np.diff(nodes_ns).max() > MAX_IMU_GAP_NS:
            return None
        elapsed = (nodes_ns - start_ns) / NS
        values = np.interp(elapsed, (times - start_ns) / NS, rates)
        density = max(self.variance_density, self.settings.min_rate_density**2)
        return YawIncrement(float(np.trapezoid(values, elapsed)), density * (end_ns - start_ns) / NS)
