"""Wheel odometry between keyframes as constraints on two poses and on the calibration of the wheels.

All constraints of a graph are linearised at once: a factor that calls back into Python gets a copy of all
values each time, which makes long graphs quadratic.

The error of a constraint is the rotation vector (rad), then the displacement (m), of the later pose from its
prediction by the wheels, in the axes of the prediction. Poses are perturbed from the right, rotation first,
as in GTSAM.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import planar, robust, rotations

from .odometry_paths import PathSegments


@dataclass(frozen=True)
class WheelNoise:
    """Noise of wheels. Errors are random walks, so their sigma grows with the root of the distance."""

    along: float = 0.02  # m/sqrt(m)
    across: float = 0.02  # m/sqrt(m)
    turn: float = 0.01  # rad/sqrt(m)
    creep_speed: float = 0.03  # m/s; slower wheels may stand
    creep_ratio: float = 3.0  # to `creep_speed`: faster wheels move, and their unevenness is measured
    # In manoeuvres after a start: ratio of distance and turn that may be wrong below half of the usual speed,
    # and of a change of speed; and of a jump. Near a standstill wheels slip, and encoders that count pulses
    # mistake their direction, which is an error of twice the distance and twice the turn.
    start_slip: float = 1.0
    min_usual_speed: float = 0.0  # m/s, if known from earlier data
    # Initial sigma of the calibration, and its change within a metre: lengths and turns (relative), curvature
    # (rad/m), sideslip (rad).
    calibration_sigmas: tuple[float, float, float, float] = (0.05, 0.1, 0.02, 0.02)
    calibration_walk: tuple[float, float, float, float] = (0.002, 0.005, 0.001, 0.002)
    slope: float = 0.05  # slope of the ground per metre, and tilt of the body
    gap_speed: float = 1.0  # m/s, in a gap of the wheels
    gap_turn_rate: float = 0.5  # rad/s
    huber_sigmas: float = 3.0  # of the robust cost: wheels spin and slip

    def scale_by(self, factor: float) -> WheelNoise:
        """Return the same with everything that grows with distance multiplied by a factor."""
        return replace(
            self,
            along=factor * self.along,
            across=factor * self.across,
            turn=factor * self.turn,
            calibration_walk=tuple(factor * each for each in self.calibration_walk),  # pyright: ignore[reportArgumentType]
        )

    def sigmas(self, segments: PathSegments) -> Floats:
        """Return sigmas (m, 6) of each constraint: rad, rad, rad, m, m, m."""
        root = np.sqrt(segments.distance)
        creeps = segments.distance < self.creep_ratio * self.creep_speed * segments.seconds
        creep_distance = np.where(creeps, self.creep_speed * segments.seconds, 0.0)
        speed_sigma = np.maximum(creep_distance, np.sqrt(segments.speed_variance))
        tilt = self.slope * root + 1e-3
        start_distance, start_turn = self._start_sigmas(segments)
        columns = (
            tilt,
            tilt,
            np.sqrt((self.turn * root) ** 2 + start_turn**2 + 1e-8),
            np.sqrt((self.along * root) ** 2 + start_distance**2 + speed_sigma**2),
            np.hypot(self.across * root, 1e-3),
            self.slope * segments.distance + 1e-3,
        )
        speed, rate = (each * segments.seconds for each in (self.gap_speed, self.gap_turn_rate))
        in_gap = np.column_stack([rate, rate, rate, speed, speed, speed])
        return np.where(segments.known[:, None], np.column_stack(columns), in_gap)

    def _start_sigmas(self, segments: PathSegments) -> tuple[Floats, Floats]:
        """Return sigmas (m,) of distance in m and of turn in rad after starts and in jumps."""
        speed = segments.motion[:, 0] / segments.seconds
        slow = np.abs(speed) < self.usual_speed(segments) / 2
        change = np.abs(np.diff(speed))
        change = np.maximum(np.append(change, 0.0), np.insert(change, 0, 0.0)) * segments.seconds
        manoeuvre = np.hypot(slow * segments.manoeuvre_distance, (segments.manoeuvre_distance > 0) * change)
        distance = self.start_slip * np.hypot(manoeuvre, segments.jump)
        return distance, self.start_slip * slow * segments.manoeuvre_turn

    def usual_speed(self, segments: PathSegments) -> float:
        """Return the 75 % quantile of the speed, m/s, while it moves."""
        speed = np.abs(segments.motion[:, 0] / segments.seconds)
        moving = speed[speed > self.creep_speed]
        return max(self.min_usual_speed, float(np.percentile(moving, 75)) if moving.size else 0.0)

    def walk_sigmas(self, segments: PathSegments) -> Floats:
        """Return sigmas (m, 4) of the change of the calibration over each segment."""
        return np.sqrt(segments.distance + 1e-3)[:, None] * np.array(self.calibration_walk)


@dataclass(frozen=True, eq=False)
class LinearWheelFactors:
    """Linear constraints ``error + by_first @ d1 + by_second @ d2 + by_calibration @ dc``.

    All are divided by their sigmas and multiplied by the root of their robust weight.
    """

    error: Floats  # (m, 6)
    by_first: Floats  # (m, 6, 6)
    by_second: Floats  # (m, 6, 6)
    by_calibration: Floats  # (m, 6, 4)


@dataclass(frozen=True, eq=False)
class WheelFactors:
    """Constraints between keyframes i and i + 1, for all i."""

    segments: PathSegments
    sigmas: Floats  # (m, 6)
    huber_sigmas: float

    def part(self, first: int, last: int) -> WheelFactors:
        """Return the constraints from keyframe `first` to `last`."""
        rows = slice(first, last)
        segments = PathSegments(*(getattr(self.segments, each.name)[rows] for each in fields(PathSegments)))
        return WheelFactors(segments, self.sigmas[rows], self.huber_sigmas)

    def cost(self, poses: Floats, calibration: Floats) -> float:
        """Return half the robust sum of squares at poses (m + 1, 4, 4) and calibrations (m + 1, 4)."""
        size = np.linalg.norm(self._error(poses, calibration)[0] / self.sigmas, axis=1)
        inner = np.minimum(size, self.huber_sigmas)
        return float(np.sum(inner * (size - inner / 2)))

    def linearise(self, poses: Floats, calibration: Floats) -> LinearWheelFactors:
        """Return the constraints at poses (m + 1, 4, 4) and calibrations (m + 1, 4)."""
        error, R_predicted, R_relative, translation, J = self._error(poses, calibration)
        R_back = np.swapaxes(R_predicted, -1, -2)
        J_right = rotations.inverse_left_jacobian(-error[:, :3])
        J_left = rotations.inverse_left_jacobian(error[:, :3])
        by_first, by_second = np.zeros((2, len(error), 6, 6))
        by_second[:, :3, :3] = J_right
        by_second[:, 3:, 3:] = R_back @ R_relative
        by_first[:, :3, :3] = -J_right @ np.swapaxes(R_relative, -1, -2)
        by_first[:, 3:, :3] = R_back @ rotations.skew(translation)
        by_first[:, 3:, 3:] = -R_back
        by_calibration = np.zeros((len(error), 6, J.shape[-1]))
        by_calibration[:, :3] = -J_left[:, :, 2:] * J[:, 2:]
        by_calibration[:, 3:] = -R_back[:, :, :2] @ J[:, :2]
        by_turn = np.column_stack([error[:, 4], -error[:, 3], np.zeros(len(error))])
        by_calibration[:, 3:] += by_turn[:, :, None] * J[:, 2:]
        weights = robust.huber_weights(np.linalg.norm(error / self.sigmas, axis=1), self.huber_sigmas)
        scale = np.sqrt(weights)[:, None] / self.sigmas
        rows = scale[:, :, None]
        return LinearWheelFactors(scale * error, rows * by_first, rows * by_second, rows * by_calibration)

    def _error(self, poses: Floats, calibration: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return errors (m, 6), predicted and actual relative rotation and translation, and the Jacobian."""
        R, p = poses[:, :3, :3], poses[:, :3, 3]
        R_body = np.swapaxes(R[:-1], -1, -2)
        R_relative, translation = R_body @ R[1:], np.einsum("nij,nj->ni", R_body, np.diff(p, axis=0))
        J = self.segments.calibration_jacobian
        predicted = self.segments.motion + np.einsum("nij,nj->ni", J, calibration[:-1])
        R_predicted = np.tile(np.eye(3), (len(predicted), 1, 1))
        R_predicted[:, :2, :2] = planar.rotations_from_headings(predicted[:, 2])
        R_back = np.swapaxes(R_predicted, -1, -2)
        offset = translation - np.column_stack([predicted[:, :2], np.zeros(len(predicted))])
        rotation = rotations.rotation_vector_from_matrix(R_back @ R_relative)
        error = np.concatenate([rotation, np.einsum("nij,nj->ni", R_back, offset)], axis=1)
        return error, R_predicted, R_relative, translation, J


def add_wheel_factors(graph: Any, factors: LinearWheelFactors, first: int, gtsam: Any) -> None:
    """Add constraints on x(i), x(i + 1) and c(i), from keyframe `first` on, to a linear graph."""
    unit, key = gtsam.noiseModel.Unit.Create(6), gtsam.symbol
    for k, error in enumerate(factors.error):
        i = first + k
        graph.push_back(
            gtsam.JacobianFactor(
                key("x", i),
                factors.by_first[k],
                key("x", i + 1),
                factors.by_second[k],
                key("c", i),
                factors.by_calibration[k],
                -error,
                unit,
            )
        )
