"""Wheels in the error-state filter: calibration model, process noise, propagation, and measurement models.

True motion of a step, from the translation t and turn θ that the wheels measured::

    t_true = (1 + scale + slip) t + sideslip (z x t)
    θ_true = (1 + scale + slip + turn_scale) θ + curvature t_x
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.rotations import matrix_from_rotation_vector as exp
from transect.geometry.rotations import rotation_vector_from_matrix as log
from transect.geometry.rotations import skew

from .error_state import (
    ATTITUDE,
    CLONES,
    GYRO_BIAS,
    POSITION,
    STATE_SIZE,
    UP,
    VELOCITY,
    ErrorIndex,
    FilterState,
    LinearMeasurement,
    ProcessNoise,
    add_variance,
)

WHEEL_JUMP_S = 0.3
"""Duration of a jump of the measured wheel speed."""


def calibrate_step(x: FilterState, transform: Floats) -> tuple[Floats, float, Floats]:
    """Return the true translation (3,), turn, and their Jacobian (4, n) by the state's error."""
    t, turn = transform[:3, 3], heading_of(transform)
    sideways, factor = np.array([-t[1], t[0], 0.0]), 1 + x.scale + x.slip
    J = np.zeros((4, STATE_SIZE))
    J[:3, ErrorIndex.SCALE] = J[:3, ErrorIndex.SLIP] = t
    J[:3, ErrorIndex.SIDESLIP] = sideways
    J[3, ErrorIndex.SCALE] = J[3, ErrorIndex.SLIP] = J[3, ErrorIndex.TURN_SCALE] = turn
    J[3, ErrorIndex.CURVATURE] = t[0]
    translation = factor * t + x.sideslip * sideways
    return translation, (factor + x.turn_scale) * turn + x.curvature * float(t[0]), J


def heading_of(transform: Floats) -> float:
    """Return the turn to the left of a transform (4, 4) in rad."""
    return float(np.arctan2(transform[1, 0], transform[0, 0]))


def step_variances(transform: Floats, seconds: float, noise: ProcessNoise) -> Floats:
    """Return white-noise variances (4,) of a wheel step: along, across, vertical (m2) and heading (rad2).

    They grow with distance and turn; motion at rest, which wheels do not measure, grows with time.
    """
    distance = float(np.hypot(transform[0, 3], transform[1, 3]))
    turn = abs(heading_of(transform))
    at_rest = noise.rest_position_noise**2 * seconds
    return np.array(
        [
            noise.along_noise**2 * distance + at_rest,
            noise.across_noise**2 * distance + at_rest,
            noise.vertical_noise**2 * distance + at_rest,
            noise.heading_noise**2 * distance
            + noise.skid_noise**2 * turn
            + noise.rest_heading_noise**2 * seconds,
        ]
    )


def propagate_calibration(x: FilterState, distance: float, noise: ProcessNoise) -> None:
    """Propagate errors of the wheels over a distance in m: slip is Gauss-Markov, the rest random walks."""
    decay = float(np.exp(-distance / noise.slip_length))
    x.slip *= decay
    x.covariance[ErrorIndex.SLIP, :] *= decay
    x.covariance[:, ErrorIndex.SLIP] *= decay
    x.covariance[ErrorIndex.SLIP, ErrorIndex.SLIP] += (noise.slip**2 + x.extra_slip_sigma**2) * (1 - decay**2)
    x.extra_slip_sigma *= decay
    x.covariance[ErrorIndex.SCALE, ErrorIndex.SCALE] += noise.scale_walk**2 * distance
    x.covariance[ErrorIndex.TURN_SCALE, ErrorIndex.TURN_SCALE] += noise.turn_scale_walk**2 * distance
    x.covariance[ErrorIndex.SIDESLIP, ErrorIndex.SIDESLIP] += noise.sideslip_walk**2 * distance
    x.covariance[ErrorIndex.CURVATURE, ErrorIndex.CURVATURE] += noise.curvature_walk**2 * distance


def reset_slip(x: FilterState, noise: ProcessNoise, start_slip: float) -> None:
    """Reset the slip when wheels start, with the sigma `start_slip`: even their direction may be wrong."""
    x.slip, x.extra_slip_sigma = 0.0, start_slip
    # Correlations with the path are kept: wheels that mistook a direction do so again.
    x.covariance[ErrorIndex.SLIP, ErrorIndex.SLIP] = max(
        x.covariance[ErrorIndex.SLIP, ErrorIndex.SLIP], noise.slip**2 + start_slip**2
    )


def inflate_for_jump(x: FilterState, jump: float, start_slip: float) -> None:
    """Inflate the position along the heading by a jump of the wheel speed (m/s), which may not be real."""
    forward = x.rotation[:, 0]
    x.covariance[POSITION, POSITION] += (start_slip * jump * WHEEL_JUMP_S) ** 2 * np.outer(forward, forward)


@dataclass(frozen=True)
class YawIncrement:
    """Turn about the vertical by a gyroscope, its bias included."""

    angle: float  # rad, to the left
    variance: float  # rad2

    def scale_by(self, fraction: float) -> YawIncrement:
        """Return a fraction of the turn."""
        return YawIncrement(self.angle * fraction, self.variance * fraction)


def propagate_by_step(
    x: FilterState,
    transform: Floats,
    seconds: float,
    noise: ProcessNoise,
    gyro: YawIncrement | None = None,
    min_density: float = 0.0,
) -> None:
    """Propagate the state by a planar odometry step; the heading by a gyroscope if given.

    `min_density` is the measured white noise along the path, m2/s (see `WheelSpeedNoise`), a lower bound.
    """
    up = x.rotation @ UP
    translation, turn, J = calibrate_step(x, transform)
    in_map = x.rotation @ translation
    F = np.eye(STATE_SIZE)
    F[POSITION] += x.rotation @ J[:3]
    F[POSITION, ATTITUDE] = -skew(in_map)
    variance = step_variances(transform, seconds, noise)
    variance[0] = max(variance[0], min_density * seconds)
    variance[2] += noise.terrain_noise**2 * float(np.hypot(*transform[:2, 3]))
    if gyro is None:
        F[ATTITUDE] += np.outer(up, J[3])
    else:
        F[ATTITUDE, ErrorIndex.GYRO_BIAS_Z] = -up * seconds
        turn = gyro.angle - x.gyro_bias[2] * seconds
        variance[3] = gyro.variance
        add_variance(x, GYRO_BIAS, noise.gyro_bias_walk**2 * seconds)
    x.covariance = F @ x.covariance @ F.T
    Q = x.rotation @ np.diag(variance[:3]) @ x.rotation.T
    x.covariance[POSITION, POSITION] += Q
    x.covariance[ATTITUDE, ATTITUDE] += variance[3] * np.outer(up, up)
    x.covariance[VELOCITY, :] = x.covariance[:, VELOCITY] = 0.0
    x.covariance[VELOCITY, VELOCITY] = Q / seconds**2
    x.p, x.v, x.rotation = x.p + in_map, in_map / seconds, x.rotation @ exp(UP * turn)


def relative_pose_measurement(
    x: FilterState, transform: Floats, slot: int, covariance: Floats, *, by_wheels: bool
) -> LinearMeasurement:
    """Return the innovation of a relative pose between a clone and now.

    Translation is in the axes of the clone, rotation in those of the body.

    Parameters
    ----------
    covariance : (6, 6)
        Of translation and rotation vector.
    by_wheels : bool
        Whether the step has the calibration errors of wheels and does not measure roll and pitch: 4 rows,
        else 6.
    """
    clone = x.clones[slot]
    assert clone is not None
    _, p_clone, R_clone = clone
    position, attitude = CLONES[slot]
    translation = x.p - p_clone
    H = np.zeros((6, STATE_SIZE))
    H[:3, POSITION], H[:3, position] = R_clone.T, -R_clone.T
    H[:3, attitude] = R_clone.T @ skew(translation)
    H[3:, ATTITUDE], H[3:, attitude] = x.rotation.T, -x.rotation.T
    measured, R_step = transform[:3, 3], transform[:3, :3]
    if by_wheels:
        measured, turn, J = calibrate_step(x, transform)
        R_step = exp(UP * turn)
        H[:3] -= J[:3]
        H[5] -= J[3]
    rotation = log((R_clone.T @ x.rotation).T @ R_step)
    r = np.concatenate([measured - R_clone.T @ translation, rotation])
    rows = [0, 1, 2, 5] if by_wheels else list(range(6))
    return LinearMeasurement(r[rows], H[rows], covariance[np.ix_(rows, rows)])


def turn_measurement(
    x: FilterState, transform: Floats, seconds: float, variance: float, gyro: YawIncrement
) -> LinearMeasurement:
    """Return the innovation (1,) of the turn by wheels against a gyroscope: observes bias and curvature."""
    _, turn, J = calibrate_step(x, transform)
    H = -J[3:]
    H[0, ErrorIndex.GYRO_BIAS_Z] = -seconds
    r = turn - gyro.angle + x.gyro_bias[2] * seconds
    return LinearMeasurement(np.array([r]), H, np.array([[variance + gyro.variance]]))
