"""Error-state Kalman filter of a ground robot: state, propagation by an IMU, and update.

The nominal state has rotation matrices; the covariance is that of a 35-vector of small errors. The attitude
error is a rotation vector in the axes of the map, ``R_true = exp(e) R`` (Sola, Quaternion kinematics for the
error-state Kalman filter, 2017, global errors). Past poses are part of the state (stochastic cloning,
Roumeliotis and Burdick, ICRA 2002), so that odometry measures a relative pose. All in SI units and radians.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.rotations import matrix_from_rotation_vector as exp
from transect.geometry.rotations import skew

# Layout of the error vector.
POSITION, ATTITUDE, VELOCITY = slice(0, 3), slice(3, 6), slice(6, 9)
GYRO_BIAS, ACCEL_BIAS, GNSS_ERROR = slice(9, 12), slice(12, 15), slice(20, 23)
# Position and attitude of the cloned poses: start of the last odometry step, and frame of `motion`.
CLONES = ((slice(23, 26), slice(26, 29)), (slice(29, 32), slice(32, 35)))
STATE_SIZE = CLONES[-1][-1].stop
POSE = slice(0, 6)
UP = np.array([0.0, 0.0, 1.0])
_IDENTITY = np.eye(STATE_SIZE)


class ErrorIndex(IntEnum):
    """Single elements of the error vector."""

    POSITION_Z = 2
    HEADING = 5
    GYRO_BIAS_Z = 11
    SCALE = 15
    SLIP = 16
    TURN_SCALE = 17
    SIDESLIP = 18
    CURVATURE = 19
    GNSS_ERROR_Z = 22


@dataclass(frozen=True)
class ProcessNoise:
    """Process noise; the parameters of the node `ErrorStateFilter` document each field."""

    # IMU
    gyro_bias_walk: float = 1e-5  # rad/s/sqrt(s)
    accel_bias_walk: float = 1e-4  # m/s2/sqrt(s)
    gravity: float = 9.80665  # m/s2
    # Errors of wheels
    slip: float = 0.03  # ratio
    slip_length: float = 2.0  # m
    start_slip: float = 1.0  # ratio
    scale_walk: float = 1e-3  # 1/sqrt(m)
    turn_scale_walk: float = 5e-3  # 1/sqrt(m)
    sideslip_walk: float = 2e-3  # rad/sqrt(m)
    curvature_walk: float = 5e-4  # rad/m/sqrt(m)
    along_noise: float = 0.01  # m/sqrt(m)
    across_noise: float = 0.01  # m/sqrt(m)
    vertical_noise: float = 0.03  # m/sqrt(m)
    terrain_noise: float = 0.1  # m/sqrt(m)
    heading_noise: float = 5e-3  # rad/sqrt(m)
    skid_noise: float = 0.1  # rad/sqrt(rad)
    rest_position_noise: float = 0.05  # m/sqrt(s)
    rest_heading_noise: float = 5e-3  # rad/sqrt(s)
    # Correlated errors of GNSS fixes
    fix_correlation_time: float = 60.0  # s
    # Drift of a visual or lidar odometry
    motion_drift: float = 0.01  # m/sqrt(m)
    motion_turn_drift: float = 1e-3  # rad/sqrt(m)


@dataclass(eq=False)
class FilterState:
    """Nominal state and covariance of its error."""

    t_ns: int
    p: Floats  # (3,), position of the body in the map
    rotation: Floats  # (3, 3), R_map_body
    v: Floats  # (3,), velocity in the map
    covariance: Floats  # (35, 35)
    gyro_bias: Floats = field(default_factory=lambda: np.zeros(3))  # in the body
    accel_bias: Floats = field(default_factory=lambda: np.zeros(3))  # in the body
    scale: float = 0.0  # true distance = (1 + scale + slip) times that of the wheels; a slow random walk
    slip: float = 0.0  # the same, but correlated over `slip_length` only
    extra_slip_sigma: float = 0.0  # sigma of slip beyond the usual one since the wheels started
    turn_scale: float = 0.0  # true turn = (1 + scale + slip + turn_scale) times that of the wheels
    sideslip: float = 0.0  # rad, direction of motion to the left of the heading
    curvature: float = 0.0  # rad/m, turn to the left that the wheels do not measure
    gnss_error: Floats = field(default_factory=lambda: np.zeros(3))  # correlated error of GNSS fixes
    clones: list[tuple[int, Floats, Floats] | None] = field(
        default_factory=lambda: [None, None]
    )  # t_ns, p, R

    @property
    def pose_covariance(self) -> Floats:
        """Covariance (6, 6) of position (m) and rotation vector (rad), both in the map."""
        return self.covariance[POSE, POSE].copy()

    def copy(self) -> FilterState:
        """Return an independent copy. Only the covariance is ever changed in place."""
        return replace(self, covariance=self.covariance.copy(), clones=list(self.clones))

    def clone_pose(self, slot: int) -> None:
        """Clone the current pose into a slot of `CLONES`."""
        position, attitude = CLONES[slot]
        J = _IDENTITY.copy()
        J[position], J[attitude] = 0.0, 0.0
        J[position, POSITION] = J[attitude, ATTITUDE] = np.eye(3)
        self.covariance = J @ self.covariance @ J.T
        self.clones[slot] = self.t_ns, self.p.copy(), self.rotation.copy()

    def add_error(self, e: Floats) -> None:
        """Add an error (35,) to the nominal state and its clones."""
        self.p = self.p + e[POSITION]
        self.v = self.v + e[VELOCITY]
        self.rotation = exp(e[ATTITUDE]) @ self.rotation
        self.gyro_bias = self.gyro_bias + e[GYRO_BIAS]
        self.accel_bias = self.accel_bias + e[ACCEL_BIAS]
        self.scale += float(e[ErrorIndex.SCALE])
        self.slip += float(e[ErrorIndex.SLIP])
        self.turn_scale += float(e[ErrorIndex.TURN_SCALE])
        self.sideslip += float(e[ErrorIndex.SIDESLIP])
        self.curvature += float(e[ErrorIndex.CURVATURE])
        self.gnss_error = self.gnss_error + e[GNSS_ERROR]
        for slot, clone in enumerate(self.clones):
            if clone is not None:
                position, attitude = CLONES[slot]
                self.clones[slot] = clone[0], clone[1] + e[position], exp(e[attitude]) @ clone[2]


# Propagation


def propagate_by_imu(
    x: FilterState,
    seconds: float,
    force: Floats,
    rate: Floats,
    densities: tuple[float, float],
    noise: ProcessNoise,
) -> None:
    """Strapdown mechanisation over a short time.

    Parameters
    ----------
    force, rate : (3,)
        Mean specific force and angular velocity over that time, in the body.
    densities : (float, float)
        White noise of the two: m/s2/sqrt(Hz), rad/s/sqrt(Hz).
    """
    half_turn = exp((rate - x.gyro_bias) * (seconds / 2))
    R_middle = x.rotation @ half_turn
    force_in_map = R_middle @ (force - x.accel_bias)
    acceleration = force_in_map - noise.gravity * UP
    F = _IDENTITY.copy()
    F[POSITION, VELOCITY] = np.eye(3) * seconds
    F[ATTITUDE, GYRO_BIAS] = -R_middle * seconds
    F[VELOCITY, ATTITUDE] = -skew(force_in_map) * seconds
    F[VELOCITY, ACCEL_BIAS] = -R_middle * seconds
    x.covariance = F @ x.covariance @ F.T
    x.p = x.p + x.v * seconds + acceleration * (seconds**2 / 2)
    x.v = x.v + acceleration * seconds
    x.rotation = R_middle @ half_turn
    add_variance(x, VELOCITY, densities[0] ** 2 * seconds)
    add_variance(x, ATTITUDE, densities[1] ** 2 * seconds)
    add_variance(x, GYRO_BIAS, noise.gyro_bias_walk**2 * seconds)
    add_variance(x, ACCEL_BIAS, noise.accel_bias_walk**2 * seconds)


def drift_odometry_frame(x: FilterState, slot: int, distance: float, noise: ProcessNoise) -> None:
    """Add the drift of the frame of a visual or lidar odometry over a distance in m.

    The drift acts at the body (adjoint), not at the frame's origin, which may be far away.
    """
    clone = x.clones[slot]
    assert clone is not None
    position, attitude = CLONES[slot]
    G = np.zeros((6, 6))
    G[:3, :3] = G[3:, 3:] = np.eye(3)
    G[:3, 3:] = -skew(clone[1] - x.p)
    variances = distance * np.array([noise.motion_drift] * 3 + [noise.motion_turn_drift] * 3) ** 2
    block = slice(position.start, attitude.stop)
    x.covariance[block, block] += G @ np.diag(variances) @ G.T


def propagate_gnss_error(x: FilterState, seconds: float, variance: Floats, correlation_s: float) -> None:
    """Propagate the correlated error of GNSS fixes (first-order Gauss-Markov process)."""
    decay = float(np.exp(-seconds / correlation_s))
    x.gnss_error = x.gnss_error * decay
    x.covariance[GNSS_ERROR, :] *= decay
    x.covariance[:, GNSS_ERROR] *= decay
    x.covariance[GNSS_ERROR, GNSS_ERROR] += np.diag(variance) * (1 - decay**2)


def add_variance(x: FilterState, block: slice, variance: float) -> None:
    """Add a variance to the diagonal of a block of the covariance."""
    for i in range(block.start, block.stop):
        x.covariance[i, i] += variance


# Measurement update


@dataclass(frozen=True, eq=False)
class LinearMeasurement:
    """Innovation ``r = H e + noise``, linear in the state's error."""

    r: Floats  # (m,)
    H: Floats  # (m, 35)
    R: Floats  # (m, m), covariance of the noise

    def rows(self, rows: list[int]) -> LinearMeasurement:
        """Return some of its rows."""
        return LinearMeasurement(self.r[rows], self.H[rows], self.R[np.ix_(rows, rows)])

    def innovation_covariance(self, x: FilterState) -> Floats:
        """Return the covariance (m, m) that the innovation should have."""
        S = self.H @ x.covariance @ self.H.T + self.R
        return (S + S.T) / 2


def position_measurement(
    x: FilterState, position: Floats, variances: Floats, lever_arm: Floats, *, with_gnss_error: bool
) -> LinearMeasurement:
    """Return the innovation (3,) of a measured position of a point of the body.

    `with_gnss_error` includes the correlated error of GNSS fixes in the prediction.
    """
    arm = x.rotation @ lever_arm
    H = np.zeros((3, STATE_SIZE))
    H[:, POSITION] = np.eye(3)
    H[:, ATTITUDE] = -skew(arm)
    predicted = x.p + arm
    if with_gnss_error:
        H[:, GNSS_ERROR] = np.eye(3)
        predicted = predicted + x.gnss_error
    return LinearMeasurement(position - predicted, H, np.diag(variances))


def update(x: FilterState, measurement: LinearMeasurement) -> None:
    """Kalman update; the covariance in Joseph's form."""
    K = np.linalg.solve(measurement.innovation_covariance(x), measurement.H @ x.covariance).T
    x.add_error(K @ measurement.r)
    J = _IDENTITY - K @ measurement.H
    P = J @ x.covariance @ J.T + K @ measurement.R @ K.T
    x.covariance = (P + P.T) / 2
