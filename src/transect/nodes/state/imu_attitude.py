"""Attitude by an inertial sensor alone: gravity tells roll and pitch, the gyroscope what changes."""

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

MOST_SECONDS = 1.0
"""Over a longer gap the sensor may have turned anywhere."""


@outputs
class Attitude:
    """Attitude of an inertial sensor.

    Attributes
    ----------
    state : RigidBodyState
        Orientation and angular velocity of the sensor in `level` (z up, heading 0 at the start); its position
        is not known. The covariance has 9 numbers: of the rotation vector, rad2, in `level`.
    covariance : (3, 3) array
    resting : bool
        Whether it stands still: the gyroscope tells its bias then.
    """

    state: RigidBodyState | None = None
    covariance: Annotated[np.ndarray, Shape(3, 3)] | None = None
    resting: bool | None = None


class ImuAttitude(Node, interface=True):
    """Attitude of an inertial sensor by its own measurements; heading is relative, and drifts."""

    gravity: float = param(9.80665, gt=0, unit="m/s2", doc="magnitude of gravity at the site")
    rest_force: float = param(
        0.15, gt=0, unit="m/s2", doc="largest deviation of the specific force from gravity at rest"
    )
    rest_rate: float = param(0.02, gt=0, unit="rad/s", doc="largest angular rate at rest")

    def reset(self) -> None:
        self.last_ns: int | None = None
        self.rotation = np.eye(3)
        self.bias = np.zeros(3)
        self.spread = np.zeros((6, 6))

    def process(self, imu: Imu) -> Attitude | None:
        if not (np.isfinite(imu.acceleration).all() and np.isfinite(imu.angular_velocity).all()):
            return self.ctx.skip("not measured")
        seconds, resting = self._seconds_since(imu), self._is_resting(imu)
        if seconds is None:
            self._level(imu)
            self.begin()
        else:
            self.advance(imu, seconds, resting)
        spread = self.spread[:3, :3].copy()
        state = RigidBodyState(
            np.full(3, np.nan),
            rotations.quaternion_from_matrix(self.rotation),
            None,
            self.rotation @ (imu.angular_velocity - self.bias),
            spread.reshape(-1),
            t_ns=imu.t_ns,
            frame="level",
            child=imu.frame,
        )
        return Attitude(state, spread, resting)

    def begin(self) -> None:
        """Set the covariance of an attitude that one measurement of gravity told."""
        raise NotImplementedError

    def advance(self, imu: Imu, seconds: float, resting: bool) -> None:
        """Move attitude, bias and covariance on by a measurement, some seconds after the one before."""
        raise NotImplementedError

    def _seconds_since(self, imu: Imu) -> float | None:
        """Return the seconds since the sample before; None for the first one and after a gap."""
        before, self.last_ns = self.last_ns, imu.t_ns
        gap = None if before is None else (imu.t_ns - before) / NS
        return gap if gap is not None and 0 < gap <= MOST_SECONDS else None

    def _level(self, imu: Imu) -> None:
        """Level the sensor by one measurement; keep the heading that it had."""
        x, y, z = imu.acceleration
        heading = np.arctan2(self.rotation[1, 0], self.rotation[0, 0])
        angles = [np.arctan2(y, z), np.arctan2(-x, np.hypot(y, z)), heading]
        self.rotation = rotations.matrix_from_euler("rpy", angles)

    def _is_resting(self, imu: Imu) -> bool:
        """Tell whether the sensor feels nothing but gravity, and hardly turns."""
        off = abs(float(np.linalg.norm(imu.acceleration)) - self.gravity)
        return off < self.rest_force and float(np.linalg.norm(imu.angular_velocity)) < self.rest_rate


class Complementary(ImuAttitude):
    """Gyroscope for what is quick, gravity for what is slow (Mahony's filter with proportional feedback)."""

    seconds: float = param(
        5.0, gt=0, unit="s", doc="time constant with which gravity corrects roll and pitch"
    )
    tilt_std: float = param(0.02, gt=0, unit="rad", doc="sigma of roll and pitch that is put out")
    heading_rate: float = param(2e-3, gt=0, unit="rad/s", doc="sigma of the drift of the heading")

    def begin(self) -> None:
        self.spread[:3, :3] = np.diag([self.tilt_std, self.tilt_std, 0.0]) ** 2

    def advance(self, imu: Imu, seconds: float, resting: bool) -> None:
        if resting:
            self.bias += min(seconds / self.seconds, 1.0) * (imu.angular_velocity - self.bias)
        self.rotation = self.rotation @ exp((imu.angular_velocity - self.bias) * seconds)
        felt = self.rotation @ imu.acceleration
        self.rotation = (
            exp(np.cross(felt / np.linalg.norm(felt), UP) * min(seconds / self.seconds, 1.0)) @ self.rotation
        )
        drift = np.sqrt(self.spread[2, 2]) + (0.0 if resting else self.heading_rate * seconds)
        self.spread[2, 2] = drift**2


class GravityFilter(ImuAttitude):
    """Error-state Kalman filter of attitude and gyroscope bias; acceleration is noise on gravity."""

    gyro_density: float = param(2e-4, gt=0, unit="rad/s/sqrt(Hz)", doc="white noise of the gyroscope")
    gyro_bias: float = param(5e-3, gt=0, unit="rad/s", doc="sigma of the gyroscope bias at the start")
    gyro_walk: float = param(1e-5, gt=0, unit="rad/s/sqrt(s)", doc="random walk of the gyroscope bias")
    force_std: float = param(
        0.3, gt=0, unit="m/s2", doc="sigma of one specific force: motion of the body and noise"
    )

    def begin(self) -> None:
        tilt = self.force_std / self.gravity
        self.spread = np.diag([tilt, tilt, 0.0, *[self.gyro_bias] * 3]) ** 2

    def advance(self, imu: Imu, seconds: float, resting: bool) -> None:
        self._move_on(imu, seconds)
        # A force that is not gravity's size is acceleration: it counts for less.
        off = abs(float(np.linalg.norm(imu.acceleration)) - self.gravity)
        # Up times what is felt, in the level frame, is -g times the tilt.
        H_tilt = np.hstack([-self.gravity * np.eye(2), np.zeros((2, 4))])
        self._correct(np.cross(UP, self.rotation @ imu.acceleration)[:2], H_tilt, self.force_std + off)
        if resting:
            H = np.hstack([np.zeros((3, 3)), np.eye(3)])
            self._correct(imu.angular_velocity - self.bias, H, self.gyro_density / np.sqrt(seconds))

    def _move_on(self, imu: Imu, seconds: float) -> None:
        F = np.eye(6)
        F[:3, 3:] = -self.rotation * seconds
        self.rotation = self.rotation @ exp((imu.angular_velocity - self.bias) * seconds)
        noise = [self.gyro_density**2 * seconds] * 3 + [self.gyro_walk**2 * seconds] * 3
        self.spread = F @ self.spread @ F.T + np.diag(noise)

    def _correct(self, r: Floats, H: Floats, std: float) -> None:
        """Kalman's correction by residuals of equal deviation, the covariance in Joseph's form."""
        R = np.eye(len(r)) * std**2
        K = np.linalg.solve(H @ self.spread @ H.T + R, H @ self.spread).T
        e = K @ r
        self.rotation, self.bias = exp(e[:3]) @ self.rotation, self.bias + e[3:]
        J = np.eye(6) - K @ H
        self.spread = J @ self.spread @ J.T + K @ R @ K.T
