"""Attitude by an IMU alone: gravity observes roll and pitch, the gyroscope changes of attitude."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect.algorithms.fusion.error_state import UP
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import Node, Shape, outputs, param
from transect.geometry import rotations
from transect.geometry.rotations import matrix_from_rotation_vector as exp
from transect.types import Imu, RigidBodyState


@outputs
class Attitude:
    """Attitude of an IMU.

    Attributes
    ----------
    state : RigidBodyState
        Orientation and angular velocity of the sensor in `level` (z up, heading 0 at the start); its position
        is NaN. The covariance has 9 numbers: of the rotation vector, rad2, in `level`.
    covariance : (3, 3) array
    resting : bool
        Whether the sensor is at rest: the gyroscope bias is observable then.
    """

    state: RigidBodyState | None = None
    covariance: Annotated[np.ndarray, Shape(3, 3)] | None = None
    resting: bool | None = None


class ImuAttitude(Node, interface=True):
    """Attitude of an IMU by its own measurements; heading is relative, and drifts."""

    gravity: float = param(9.80665, gt=0, unit="m/s2", doc="magnitude of gravity at the site")
    rest_force: float = param(
        0.15, gt=0, unit="m/s2", doc="largest deviation of the specific force from gravity at rest"
    )
    rest_rate: float = param(0.02, gt=0, unit="rad/s", doc="largest angular rate at rest")
    max_gap: float = param(
        1.0, gt=0, unit="s", doc="longest gap that is integrated; after a longer one the attitude restarts"
    )

    def reset(self) -> None:
        self.last_ns: int | None = None
        self.rotation = np.eye(3)  # R_level_sensor
        self.bias = np.zeros(3)  # of the gyroscope, rad/s
        self.error_covariance = np.zeros((6, 6))  # of rotation vector and bias

    def process(self, imu: Imu) -> Attitude | None:
        if not (np.isfinite(imu.acceleration).all() and np.isfinite(imu.angular_velocity).all()):
            return self.ctx.skip("not measured")
        seconds, resting = self._seconds_since_last(imu), self._is_resting(imu)
        if seconds is None:
            self._level(imu)
            self.initialise()
        else:
            self.advance(imu, seconds, resting)
        covariance = self.error_covariance[:3, :3].copy()
        state = RigidBodyState(
            np.full(3, np.nan),
            rotations.quaternion_from_matrix(self.rotation),
            None,
            self.rotation @ (imu.angular_velocity - self.bias),
            covariance.reshape(-1),
            t_ns=imu.t_ns,
            frame="level",
            child=imu.frame,
        )
        return Attitude(state, covariance, resting)

    def initialise(self) -> None:
        """Set the covariance of an attitude by one measurement of gravity."""
        raise NotImplementedError

    def advance(self, imu: Imu, seconds: float, resting: bool) -> None:
        """Propagate attitude, bias and covariance by a measurement, some seconds after the last one."""
        raise NotImplementedError

    def _seconds_since_last(self, imu: Imu) -> float | None:
        """Return the seconds since the last sample; None for the first one and after a gap."""
        before, self.last_ns = self.last_ns, imu.t_ns
        interval = None if before is None else (imu.t_ns - before) / NS
        return interval if interval is not None and 0 < interval <= self.max_gap else None

    def _level(self, imu: Imu) -> None:
        """Set roll and pitch by one measurement; keep the heading."""
        x, y, z = imu.acceleration
        heading = np.arctan2(self.rotation[1, 0], self.rotation[0, 0])
        angles = [np.arctan2(y, z), np.arctan2(-x, np.hypot(y, z)), heading]
        self.rotation = rotations.matrix_from_euler("rpy", angles)

    def _is_resting(self, imu: Imu) -> bool:
        """Return whether the specific force is gravity and the angular rate is small."""
        deviation = abs(float(np.linalg.norm(imu.acceleration)) - self.gravity)
        return deviation < self.rest_force and float(np.linalg.norm(imu.angular_velocity)) < self.rest_rate


class Complementary(ImuAttitude):
    """Complementary filter of gyroscope and gravity (Mahony's filter with proportional feedback)."""

    seconds: float = param(
        5.0, gt=0, unit="s", doc="time constant with which gravity corrects roll and pitch"
    )
    tilt_std: float = param(0.02, gt=0, unit="rad", doc="sigma of roll and pitch in the output")
    heading_rate: float = param(2e-3, gt=0, unit="rad/s", doc="sigma of the drift of the heading")

    def initialise(self) -> None:
        self.error_covariance[:3, :3] = np.diag([self.tilt_std, self.tilt_std, 0.0]) ** 2

    def advance(self, imu: Imu, seconds: float, resting: bool) -> None:
        gain = min(seconds / self.seconds, 1.0)
        if resting:
            self.bias += gain * (imu.angular_velocity - self.bias)
        self.rotation = self.rotation @ exp((imu.angular_velocity - self.bias) * seconds)
        force = self.rotation @ imu.acceleration
        self.rotation = exp(np.cross(force / np.linalg.norm(force), UP) * gain) @ self.rotation
        heading_std = np.sqrt(self.error_covariance[2, 2]) + (0.0 if resting else self.heading_rate * seconds)
        self.error_covariance[2, 2] = heading_std**2


class GravityFilter(ImuAttitude):
    """Error-state Kalman filter of attitude and gyroscope bias; acceleration is noise on gravity."""

    gyro_density: float = param(2e-4, gt=0, unit="rad/s/sqrt(Hz)", doc="white noise of the gyroscope")
    gyro_bias: float = param(5e-3, gt=0, unit="rad/s", doc="sigma of the gyroscope bias at the start")
    gyro_walk: float = param(1e-5, gt=0, unit="rad/s/sqrt(s)", doc="random walk of the gyroscope bias")
    force_std: float = param(
        0.3, gt=0, unit="m/s2", doc="sigma of one specific force: motion of the body and noise"
    )

    def initialise(self) -> None:
        tilt = self.force_std / self.gravity
        self.error_covariance = np.diag([tilt, tilt, 0.0, *[self.gyro_bias] * 3]) ** 2

    def advance(self, imu: Imu, seconds: float, resting: bool) -> None:
        self._propagate(imu, seconds)
        # A specific force that differs from gravity contains acceleration, and is down-weighted.
        deviation = abs(float(np.linalg.norm(imu.acceleration)) - self.gravity)
        # The cross product of up and specific force, in the level frame, is -g times the tilt.
        H_tilt = np.hstack([-self.gravity * np.eye(2), np.zeros((2, 4))])
        self._update(np.cross(UP, self.rotation @ imu.acceleration)[:2], H_tilt, self.force_std + deviation)
        if resting:
            H = np.hstack([np.zeros((3, 3)), np.eye(3)])
            self._update(imu.angular_velocity - self.bias, H, self.gyro_density / np.sqrt(seconds))

    def _propagate(self, imu: Imu, seconds: float) -> None:
        F = np.eye(6)
        F[:3, 3:] = -self.rotation * seconds
        self.rotation = self.rotation @ exp((imu.angular_velocity - self.bias) * seconds)
        noise = [self.gyro_density**2 * seconds] * 3 + [self.gyro_walk**2 * seconds] * 3
        self.error_covariance = F @ self.error_covariance @ F.T + np.diag(noise)

    def _update(self, r: Floats, H: Floats, std: float) -> None:
        """Kalman update by innovations of equal sigma, the covariance in Joseph's form."""
        P, R = self.error_covariance, np.eye(len(r)) * std**2
        K = np.linalg.solve(H @ P @ H.T + R, H @ P).T
        e = K @ r
        self.rotation, self.bias = exp(e[:3]) @ self.rotation, self.bias + e[3:]
        J = np.eye(6) - K @ H
        self.error_covariance = J @ P @ J.T + K @ R @ K.T
