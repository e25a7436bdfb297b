"""Inertial samples between keyframes, preintegrated by GTSAM (Forster et al., RSS 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import se3

from .._gtsam import gtsam
from ..fusion.events import ImuSample, OdometryStep
from ..fusion.imu_propagation import SECOND_DIFFERENCE_VARIANCE
from .odometry_paths import PosePath


@dataclass(frozen=True)
class ImuNoise:
    """Noise of an IMU, and the motion that is possible while it is silent."""

    min_gyro_density: float = 1e-4  # rad/s/sqrt(Hz), of white noise; larger if samples scatter more
    min_accel_density: float = 1e-3  # m/s2/sqrt(Hz)
    integration_variance: float = 1e-8
    gyro_bias_walk: float = 1e-5  # rad/s2/sqrt(Hz)
    accel_bias_walk: float = 1e-4  # m/s3/sqrt(Hz)
    # Initial sigmas
    gyro_bias: float = 0.01  # rad/s
    accel_bias: float = 0.1  # m/s2
    speed: float = 1.0  # m/s
    # In a gap: angular rate and speed if no other sensor measures the motion, change of velocity and biases.
    gap_rate: float = 0.5  # rad/s
    gap_speed: float = 20.0  # m/s
    gap_velocity_change: float = 1.0  # m/s
    gap_bias_change: float = 1e-3
    gravity: float = 9.80665  # m/s2

    def preintegration_params(self, densities: tuple[float, float]) -> Any:
        """Return GTSAM's parameters for white noise of gyroscopes and accelerometers; z is up."""
        params = gtsam().PreintegrationCombinedParams.MakeSharedU(self.gravity)
        params.setGyroscopeCovariance(densities[0] ** 2 * np.eye(3))
        params.setAccelerometerCovariance(densities[1] ** 2 * np.eye(3))
        params.setIntegrationCovariance(self.integration_variance * np.eye(3))
        params.setBiasOmegaCovariance(self.gyro_bias_walk**2 * np.eye(3))
        params.setBiasAccCovariance(self.accel_bias_walk**2 * np.eye(3))
        return params

    def prior_factors(self, i: int, speed: float | None = None) -> list[Any]:
        """Return prior factors on velocity and biases of keyframe `i`."""
        g, speed = gtsam(), self.speed if speed is None else speed
        bias_sigmas = np.repeat([self.accel_bias, self.gyro_bias], 3)
        return [
            g.PriorFactorVector(g.symbol("v", i), np.zeros(3), g.noiseModel.Isotropic.Sigma(3, speed)),
            g.PriorFactorConstantBias(
                g.symbol("b", i), g.imuBias.ConstantBias(), g.noiseModel.Diagonal.Sigmas(bias_sigmas)
            ),
        ]


def add_imu_factors(
    graph: Any,
    samples: Sequence[ImuSample],
    times: Ints,
    noise: ImuNoise,
    first: int,
    *,
    imu_only: bool = False,
) -> None:
    """Add a factor between consecutive keyframes at `times` (n,), also in gaps of the IMU.

    `imu_only`: no other factors join them.
    """
    at = np.array([each.t_ns for each in samples])
    force, rate = (np.array([getattr(each, name) for each in samples]) for name in ("force", "rate"))
    gyro_density = max(noise.min_gyro_density, white_noise_density(at, rate))
    accel_density = max(noise.min_accel_density, white_noise_density(at, force))
    trust = np.array([each.trust for each in samples])
    params = {
        each: noise.preintegration_params((gyro_density / each, accel_density / each))
        for each in {1.0, *trust.tolist()}
    }
    for i in range(len(times) - 1):
        within = slice(*np.searchsorted(at, times[i : i + 2]))
        min_trust = float(trust[within].min(initial=1.0))
        preintegrated = _preintegrate(at, force, rate, times[i], times[i + 1], params[min_trust])
        if preintegrated is not None:
            graph.push_back(_imu_factor(first + i, preintegrated))
            continue
        seconds = (times[i + 1] - times[i]) * 1e-9 if imu_only else None
        for factor in _gap_factors(first + i, noise, seconds):
            graph.push_back(factor)


def gyro_path(samples: Sequence[ImuSample]) -> PosePath:
    """Return the attitude by gyroscopes, as a path without translation."""
    at = np.array([each.t_ns for each in samples])
    rate = np.array([each.rate for each in samples])
    turns = (rate[1:] + rate[:-1]) / 2 * (np.diff(at) * 1e-9)[:, None]
    transforms = se3.exp(np.concatenate([np.zeros_like(turns), turns], axis=1))
    pairs = zip(at[:-1].tolist(), at[1:].tolist(), transforms, strict=True)
    steps = [OdometryStep("motion", a, b, each, planar=False) for a, b, each in pairs]
    return PosePath.from_steps(steps, 0.0, 0.0)


def white_noise_density(at: Ints, values: Floats, min_samples: int = 10) -> float:
    """Return the white noise of samples (n, 3) per root of Hz, vibration included.

    Second differences contain six times the variance of the noise, and nearly none of the motion.
    """
    if len(at) < min_samples:
        return 0.0
    differences = np.diff(values, n=2, axis=0)
    variance = np.mean(differences**2) / SECOND_DIFFERENCE_VARIANCE
    return float(np.sqrt(variance * np.median(np.diff(at)) * 1e-9))


def _preintegrate(at: Ints, force: Floats, rate: Floats, start_ns: int, end_ns: int, params: Any) -> Any:
    """Return the preintegrated samples between two times; None if a gap covers half of it."""
    first, last = np.searchsorted(at, (start_ns, end_ns))
    inner = at[first:last]
    edges = np.concatenate([[start_ns], inner[(inner > start_ns) & (inner < end_ns)], [end_ns]])
    middle = edges[:-1] + np.diff(edges) // 2
    if not len(inner) or np.diff(edges).max() > (end_ns - start_ns) // 2:
        return None
    preintegrated = gtsam().PreintegratedCombinedMeasurements(params)
    columns = [np.interp(middle - start_ns, at - start_ns, each) for each in (*force.T, *rate.T)]
    for row, seconds in zip(np.column_stack(columns), np.diff(edges) * 1e-9, strict=True):
        preintegrated.integrateMeasurement(row[:3], row[3:], float(seconds))
    return preintegrated


def _imu_factor(i: int, preintegrated: Any) -> Any:
    g = gtsam()
    x, v, b = ((g.symbol(name, i), g.symbol(name, i + 1)) for name in "xvb")
    return g.CombinedImuFactor(x[0], v[0], x[1], v[1], b[0], b[1], preintegrated)


def _gap_factors(i: int, noise: ImuNoise, seconds: float | None) -> list[Any]:
    """Return weak factors on the change of velocity and biases, and on the pose if `seconds` is given."""
    g = gtsam()
    x, v, b = ((g.symbol(name, i), g.symbol(name, i + 1)) for name in "xvb")
    velocity_model = g.noiseModel.Isotropic.Sigma(3, noise.gap_velocity_change)
    bias_model = g.noiseModel.Isotropic.Sigma(6, noise.gap_bias_change)
    factors: list[Any] = []
    if seconds is not None:
        sigmas = np.repeat([noise.gap_rate * seconds, noise.gap_speed * seconds], 3)
        factors.append(g.BetweenFactorPose3(*x, g.Pose3(), g.noiseModel.Diagonal.Sigmas(sigmas)))
    return [
        *factors,
        g.BetweenFactorVector(*v, np.zeros(3), velocity_model),
        g.BetweenFactorConstantBias(*b, g.imuBias.ConstantBias(), bias_model),
    ]
