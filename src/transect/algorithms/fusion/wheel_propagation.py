"""Propagation by wheels or an odometry while no IMU does, with adaptive noise, starts and jumps."""

from __future__ import annotations

import numpy as np

from transect.base.clocks import NS
from transect.geometry import se3

from . import error_state as ekf
from . import wheel_updates
from .events import OdometryStep
from .filter_settings import FilterSettings
from .imu_propagation import YawGyro
from .wheel_drift import WheelDriftModel, scale_wheel_noise
from .wheel_starts import StartSlipEstimator, WheelSpeedNoise, WheelStartDetector
from .wheel_updates import YawIncrement


class WheelPropagation:
    """Propagates a state, and the predictions of `WheelDriftModel`, by odometry steps.

    Parameters
    ----------
    noise : ProcessNoise
    settings : FilterSettings
        Without adaptation, neither the noise of wheels nor the slip after a start are estimated.
    """

    def __init__(self, noise: ekf.ProcessNoise, settings: FilterSettings) -> None:
        self.noise, self.adapts = noise, settings.adaptation_gain > 0
        self.drift = WheelDriftModel(noise, adapts=self.adapts, settings=settings.wheel_drift)
        self.starts, self.speed_noise = WheelStartDetector(settings.wheel_starts), WheelSpeedNoise()
        self.start_slip = StartSlipEstimator(noise.start_slip, settings.wheel_starts)
        self.gyro = YawGyro(settings.imu)
        self.twist = np.zeros(6)  # of the newest step, m/s and rad/s
        self.distance_m = 0.0  # driven since the last position

    def add(self, step: OdometryStep) -> None:
        """Add a step to the statistics of wheels, before the state is propagated."""
        self.twist = se3.log(step.transform) / step.seconds
        self.distance_m += abs(step.forward_m)
        if step.sensor != "motion":
            self.starts.add(step)
            self.speed_noise.add(step)

    def handle_start(self, x: ekf.FilterState) -> None:
        """Increase the uncertainty if the wheels start or jump. With an IMU this is not needed."""
        start_slip = self.start_slip.sigma(x.t_ns) if self.adapts else self.noise.start_slip
        if self.starts.starts or self.starts.jump:
            self.drift.reset()
        if self.starts.starts:
            wheel_updates.reset_slip(x, self.noise, start_slip)
            self.start_slip.start(x)
        elif self.starts.jump:
            wheel_updates.inflate_for_jump(x, self.starts.jump, start_slip)

    def propagate(self, x: ekf.FilterState, t_ns: int, step: OdometryStep, gyro: YawIncrement | None) -> None:
        """Propagate the state to a time within a step; `gyro` is the turn of the whole step."""
        seconds = (t_ns - x.t_ns) / NS
        if seconds <= 0:
            return
        fraction = (t_ns - x.t_ns) / (step.t_ns - step.start_ns)
        transform = se3.exp(self.twist * seconds)
        for state, noise in self.drift.states(x):
            used = noise if step.trust == 1.0 else scale_wheel_noise(noise, 1 / step.trust)
            wheel_updates.propagate_calibration(state, abs(float(transform[0, 3])), used)
            # Predictions estimate errors over seconds, to which white noise of the speed does not contribute.
            min_density = self.speed_noise.density if state is x else 0.0
            turn = gyro and gyro.scale_by(fraction)
            wheel_updates.propagate_by_step(state, transform, seconds, used, turn, min_density)
            state.t_ns = t_ns

    def bridge_gap(self, x: ekf.FilterState, step: OdometryStep, speed_sigma: float = 0.5) -> None:
        """Increase the uncertainty of the position over a gap, with a sigma of the speed in m/s."""
        gap_s = (step.start_ns - x.t_ns) / NS
        if gap_s > 0:
            x.covariance[ekf.POSITION, ekf.POSITION] += np.eye(3) * (speed_sigma * gap_s) ** 2
            x.t_ns = step.start_ns
            self.drift.reset()

    def extrapolate(self, x: ekf.FilterState, t_ns: int) -> None:
        """Propagate a state to a time shortly after the newest step, with its twist."""
        seconds = (t_ns - x.t_ns) / NS
        wheel_updates.propagate_by_step(x, se3.exp(self.twist * seconds), seconds, self.drift.noise)
