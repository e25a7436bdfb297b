"""Inertial samples between keyframes, preintegrated by GTSAM (Forster et al., RSS 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import se3

from .._gtsam import gtsam
from ..fusion.measurements import Inertial, Step
from .odometry_paths import PosePath

LOST_RATE, LOST_SPEED = 0.5, 20.0
"""rad/s and m/s that a body may have had while its IMU, all that tells its motion, was silent."""


@dataclass(frozen=True)
class InertialNoise:
    """How wrong an IMU is.

    Attributes
    ----------
    gyro, force : float
        Least white noise, rad/s and m/s2 per root of Hz; samples that scatter more have more.
    gyro_drift, force_drift : float
        Random walk of the biases, rad/s2 and m/s3 per root of Hz.
    gyro_bias, force_bias : float
        Sigma of the biases at first, rad/s and m/s2.
    speed : float
        Sigma of the velocity at first, m/s.
    gravity : float
        m/s2
    """

    gyro: float = 1e-4
    force: float = 1e-3
    gyro_drift: float = 1e-5
    force_drift: float = 1e-4
    gyro_bias: float = 0.01
    force_bias: float = 0.1
    speed: float = 1.0
    gravity: float = 9.80665

    def parameters(self, white: tuple[float, float]) -> Any:
        """Return them as GTSAM takes them, with white noise of gyroscopes and accelerometers; z is up."""
        made = gtsam().PreintegrationCombinedParams.MakeSharedU(self.gravity)
        made.setGyroscopeCovariance(white[0] ** 2 * np.eye(3))
        made.setAccelerometerCovariance(white[1] ** 2 * np.eye(3))
        made.setIntegrationCovariance(1e-8 * np.eye(3))
        made.setBiasOmegaCovariance(self.gyro_drift**2 * np.eye(3))
        made.setBiasAccCovariance(self.force_drift**2 * np.eye(3))
        return made

    def prior_factors(self, i: int, speed: float | None = None) -> list[Any]:
        """Return factors for what one may suppose of velocity and biases of keyframe `i`."""
        g, speed = gtsam(), self.speed if speed is None else speed
        spread = np.repeat([self.force_bias, self.gyro_bias], 3)
        return [
            g.PriorFactorVector(g.symbol("v", i), np.zeros(3), g.noiseModel.Isotropic.Sigma(3, speed)),
            g.PriorFactorConstantBias(
                g.symbol("b", i), g.imuBias.ConstantBias(), g.noiseModel.Diagonal.Sigmas(spread)
            ),
        ]


def add_inertial(
    graph: Any,
    samples: Sequence[Inertial],
    times: Ints,
    noise: InertialNoise,
    first: int,
    *,
    alone: bool = False,
) -> None:
    """Add a factor between each two keyframes at `times` (n,), also where the IMU was silent.

    `alone`: nothing else joins them.
    """
    at = np.array([each.t_ns for each in samples])
    force, rate = (np.array([getattr(each, name) for each in samples]) for name in ("force", "rate"))
    white = max(noise.gyro, white_noise(at, rate)), max(noise.force, white_noise(at, force))
    trust = np.array([each.trust for each in samples])
    parameters = {
        each: noise.parameters((white[0] / each, white[1] / each)) for each in {1.0, *trust.tolist()}
    }
    for i in range(len(times) - 1):
        within = slice(*np.searchsorted(at, times[i : i + 2]))
        least = float(trust[within].min(initial=1.0))
        held = _preintegrate(at, force, rate, times[i], times[i + 1], parameters[least])
        seconds = (times[i + 1] - times[i]) * 1e-9 if alone else None
        for factor in (
            _link_over_gap(first + i, seconds) if held is None else _link_by_samples(first + i, held)
        ):
            graph.push_back(factor)


def turns_of(samples: Sequence[Inertial]) -> PosePath:
    """Return how the body turned by its gyroscopes, as a path that stays in its place."""
    at = np.array([each.t_ns for each in samples])
    rate = np.array([each.rate for each in samples])
    turn = (rate[1:] + rate[:-1]) / 2 * (np.diff(at) * 1e-9)[:, None]
    moved = se3.exp(np.concatenate([np.zeros_like(turn), turn], axis=1))
    pairs = zip(at[:-1].tolist(), at[1:].tolist(), moved, strict=True)
    return PosePath.of([Step("motion", a, b, each, planar=False) for a, b, each in pairs], 0.0, 0.0)


def white_noise(at: Ints, values: Floats) -> float:
    """Return the white noise of samples (n, 3) per root of Hz, vibration included.

    By their second differences, which have six times the variance of the noise, and hardly any of the motion.
    """
    if len(at) < 10:
        return 0.0
    bent = np.diff(values, n=2, axis=0)
    return float(np.sqrt(np.mean(bent**2) / 6 * np.median(np.diff(at)) * 1e-9))


def _preintegrate(at: Ints, force: Floats, rate: Floats, a: int, b: int, parameters: Any) -> Any:
    """Return what the samples from time a to b add up to; None if they leave out half of it."""
    first, last = np.searchsorted(at, (a, b))
    inner = at[first:last]
    cuts = np.concatenate([[a], inner[(inner > a) & (inner < b)], [b]])
    middle = cuts[:-1] + np.diff(cuts) // 2
    if not len(inner) or np.diff(cuts).max() > (b - a) // 2:
        return None
    held = gtsam().PreintegratedCombinedMeasurements(parameters)
    columns = [np.interp(middle - a, at - a, each) for each in (*force.T, *rate.T)]
    for row, seconds in zip(np.column_stack(columns), np.diff(cuts) * 1e-9, strict=True):
        held.integrateMeasurement(row[:3], row[3:], float(seconds))
    return held


def _link_by_samples(i: int, held: Any) -> list[Any]:
    g = gtsam()
    x, v, b = ((g.symbol(name, i), g.symbol(name, i + 1)) for name in "xvb")
    return [g.CombinedImuFactor(x[0], v[0], x[1], v[1], b[0], b[1], held)]


def _link_over_gap(i: int, seconds: float | None) -> list[Any]:
    """Velocity and biases may have become anything, within reason; and the pose, over `seconds`."""
    g = gtsam()
    x, v, b = ((g.symbol(name, i), g.symbol(name, i + 1)) for name in "xvb")
    moved: list[Any] = []
    if seconds is not None:
        spread = np.repeat([LOST_RATE * seconds, LOST_SPEED * seconds], 3)
        moved = [g.BetweenFactorPose3(*x, g.Pose3(), g.noiseModel.Diagonal.Sigmas(spread))]
    return [
        *moved,
        g.BetweenFactorVector(*v, np.zeros(3), g.noiseModel.Isotropic.Sigma(3, 1.0)),
        g.BetweenFactorConstantBias(*b, g.imuBias.ConstantBias(), g.noiseModel.Isotropic.Sigma(6, 1e-3)),
    ]
