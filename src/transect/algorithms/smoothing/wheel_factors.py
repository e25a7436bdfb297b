"""Wheel odometry between keyframes as constraints on two poses and on the calibration of the wheels.

All constraints of a graph are linearised at once: a factor that calls back into Python gets a copy of all
values each time, which makes long graphs quadratic.

The error of a constraint is the rotation vector (rad), then the displacement (m), of the later pose from
where the wheels put it, in the axes there. Poses are changed from the right, rotation first, as GTSAM does.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import planar, robust, rotations

from .odometry_paths import Span

CREEPING = 3.0
"""Times the speed of wheels that may as well stand: faster ones move, and how evenly is seen."""


@dataclass(frozen=True)
class WheelNoise:
    """How wrong wheels are. Errors add up like a random walk, so their sigma grows with the root of the way.

    Attributes
    ----------
    along, across : float
        Sigma of the way after a metre, m.
    turn : float
        Sigma of the heading after a metre, rad.
    creep : float
        Speed below which wheels may as well stand, m/s.
    unsteady : float
        Part of way and turn that may be wrong at less than half of the usual speed, and part of a change of
        speed, within seconds after wheels set off; and part of a leap. Near a standstill wheels slip, and
        those that count pulses without a sign mistake their direction, which is an error of twice the way,
        and of twice the turn.
    usual : float
        Least usual speed, m/s, where that is known from before.
    start : (4,) tuple
        Sigma of the calibration at first: lengths and turns (relative), curvature (rad/m), angle (rad).
    drift : (4,) tuple
        By how much each of them changes within a metre.
    slope : float
        Ground rises and falls by this, metre by metre, and the body tilts.
    lost : (2,) tuple
        Speed (m/s) and turn rate (rad/s) that the body may have had while nothing was measured.
    robust : float
        Errors of more sigmas than this count less (Huber): wheels spin and slip.
    """

    along: float = 0.02
    across: float = 0.02
    turn: float = 0.01
    creep: float = 0.03
    unsteady: float = 1.0
    usual: float = 0.0
    start: tuple[float, float, float, float] = (0.05, 0.1, 0.02, 0.02)
    drift: tuple[float, float, float, float] = (0.002, 0.005, 0.001, 0.002)
    slope: float = 0.05
    lost: tuple[float, float] = (1.0, 0.5)
    robust: float = 3.0

    def times(self, factor: float) -> WheelNoise:
        """Return the same with all that grows on the way, larger by a factor."""
        return replace(
            self,
            along=factor * self.along,
            across=factor * self.across,
            turn=factor * self.turn,
            drift=tuple(factor * each for each in self.drift),  # pyright: ignore[reportArgumentType]
        )

    def sigmas(self, span: Span) -> Floats:
        """Return one sigma (m, 6) of each constraint: rad, rad, rad, m, m, m."""
        root = np.sqrt(span.travelled)
        creeps = span.travelled < CREEPING * self.creep * span.seconds
        still = np.maximum(np.where(creeps, self.creep * span.seconds, 0.0), np.sqrt(span.shaken))
        tilt = self.slope * root + 1e-3
        way, turn = self._unsteady(span)
        columns = (
            tilt,
            tilt,
            np.sqrt((self.turn * root) ** 2 + turn**2 + 1e-8),
            np.sqrt((self.along * root) ** 2 + way**2 + still**2),
            np.hypot(self.across * root, 1e-3),
            self.slope * span.travelled + 1e-3,
        )
        speed, rate = (each * span.seconds for each in self.lost)
        lost = np.column_stack([rate, rate, rate, speed, speed, speed])
        return np.where(span.known[:, None], np.column_stack(columns), lost)

    def _unsteady(self, span: Span) -> tuple[Floats, Floats]:
        """Return one sigma of ways (m,) in m and of turns (m,) in rad that may be wrong in a manoeuvre."""
        speed = span.motion[:, 0] / span.seconds
        slow = np.abs(speed) < self.usual_speed(span) / 2
        change = np.abs(np.diff(speed))
        change = np.maximum(np.append(change, 0.0), np.insert(change, 0, 0.0)) * span.seconds
        doubted = np.hypot(slow * span.doubted, (span.doubted > 0) * change)
        return self.unsteady * np.hypot(doubted, span.leapt), self.unsteady * slow * span.doubted_turn

    def usual_speed(self, span: Span) -> float:
        """Return the speed, m/s, that is exceeded for a quarter of the time in which it moves."""
        speed = np.abs(span.motion[:, 0] / span.seconds)
        moving = speed[speed > self.creep]
        return max(self.usual, float(np.percentile(moving, 75)) if moving.size else 0.0)

    def drifts(self, span: Span) -> Floats:
        """Return one sigma (m, 4) of how the calibration changes over each span."""
        return np.sqrt(span.travelled + 1e-3)[:, None] * np.array(self.drift)


@dataclass(frozen=True, eq=False)
class Linear:
    """Constraints, linear near some values: ``error + to_first @ d1 + to_second @ d2 + to_wheels @ dc``.

    All are divided by their sigmas and by the root of what is left of their weight.

    Attributes
    ----------
    error : (m, 6)
    to_first, to_second : (m, 6, 6)
    to_wheels : (m, 6, 4)
    """

    error: Floats
    to_first: Floats
    to_second: Floats
    to_wheels: Floats


@dataclass(frozen=True, eq=False)
class WheelLinks:
    """Constraints of keyframe i and i + 1, for all i.

    Attributes
    ----------
    span : Span
    sigmas : (m, 6)
    robust : float
    """

    span: Span
    sigmas: Floats
    robust: float

    def piece(self, first: int, last: int) -> WheelLinks:
        """Return those from keyframe `first` to `last`."""
        part = slice(first, last)
        span = Span(*(getattr(self.span, each.name)[part] for each in fields(Span)))
        return WheelLinks(span, self.sigmas[part], self.robust)

    def cost(self, poses: Floats, wheels: Floats) -> float:
        """Return half the sum of squares at poses (m + 1, 4, 4) and calibrations (m + 1, 4), robust."""
        size = np.linalg.norm(self._error(poses, wheels)[0] / self.sigmas, axis=1)
        inner = np.minimum(size, self.robust)
        return float(np.sum(inner * (size - inner / 2)))

    def linear(self, poses: Floats, wheels: Floats) -> Linear:
        """Return the constraints near poses (m + 1, 4, 4) and calibrations (m + 1, 4)."""
        error, R_there, R_moved, moved, planar_by = self._error(poses, wheels)
        back = np.swapaxes(R_there, -1, -2)
        J_right = rotations.inverse_left_jacobian(-error[:, :3])
        J_left = rotations.inverse_left_jacobian(error[:, :3])
        to_first, to_second = np.zeros((2, len(error), 6, 6))
        to_second[:, :3, :3] = J_right
        to_second[:, 3:, 3:] = back @ R_moved
        to_first[:, :3, :3] = -J_right @ np.swapaxes(R_moved, -1, -2)
        to_first[:, 3:, :3] = back @ rotations.skew(moved)
        to_first[:, 3:, 3:] = -back
        to_wheels = np.zeros((len(error), 6, planar_by.shape[-1]))
        to_wheels[:, :3] = -J_left[:, :, 2:] * planar_by[:, 2:]
        to_wheels[:, 3:] = -back[:, :, :2] @ planar_by[:, :2]
        turned = np.column_stack([error[:, 4], -error[:, 3], np.zeros(len(error))])
        to_wheels[:, 3:] += turned[:, :, None] * planar_by[:, 2:]
        scale = np.sqrt(self._weights(error))[:, None] / self.sigmas
        each = scale[:, :, None]
        return Linear(scale * error, each * to_first, each * to_second, each * to_wheels)

    def _error(self, poses: Floats, wheels: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        R, p = poses[:, :3, :3], poses[:, :3, 3]
        to_body = np.swapaxes(R[:-1], -1, -2)
        R_moved, moved = to_body @ R[1:], np.einsum("nij,nj->ni", to_body, np.diff(p, axis=0))
        by = self.span.by_calibration
        there = self.span.motion + np.einsum("nij,nj->ni", by, wheels[:-1])
        R_there = np.tile(np.eye(3), (len(there), 1, 1))
        R_there[:, :2, :2] = planar.rotations_from_headings(there[:, 2])
        back = np.swapaxes(R_there, -1, -2)
        off = moved - np.column_stack([there[:, :2], np.zeros(len(there))])
        turn = rotations.rotation_vector_from_matrix(back @ R_moved)
        return (
            np.concatenate([turn, np.einsum("nij,nj->ni", back, off)], axis=1),
            R_there,
            R_moved,
            moved,
            by,
        )

    def _weights(self, error: Floats) -> Floats:
        return robust.huber_weights(np.linalg.norm(error / self.sigmas, axis=1), self.robust)


def add_linear(graph: Any, linear: Linear, first: int, gtsam: Any) -> None:
    """Add linear constraints on x(i), x(i + 1) and c(i), from keyframe `first` on, to a linear graph."""
    unit = gtsam.noiseModel.Unit.Create(6)
    key = gtsam.symbol
    for k, error in enumerate(linear.error):
        i, A, B, C = first + k, linear.to_first[k], linear.to_second[k], linear.to_wheels[k]
        keys = key("x", i), key("x", i + 1), key("c", i)
        graph.push_back(gtsam.JacobianFactor(keys[0], A, keys[1], B, keys[2], C, -error, unit))
