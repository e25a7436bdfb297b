"""Starts, jumps and unevenness of wheel speeds, and how wrong wheels are when they start.

Encoders that count pulses take their sign from the command, which changes before a rolling robot does, or not
at all when it rolls back. Near a standstill pulses are too rare for a speed: the last one is held, or jumps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

from .error_state import POSITION, FilterState
from .events import OdometryStep
from .imu_propagation import NOISE_AVERAGING_S, SECOND_DIFFERENCE_VARIANCE


class WheelSpeedNoise:
    """White noise of the distance by wheels, by second differences of their speed.

    Jittering stamps, counted pulses and momentary slip cause it. Over a fraction of a second it dominates the
    error of wheels; over the seconds in which `WheelDriftModel` adapts it is negligible.
    """

    def __init__(self) -> None:
        self.steps: list[OdometryStep] = []
        self.density, self.count = 0.0, 0  # density in m2/s

    def add(self, step: OdometryStep) -> None:
        """Add a step; one that does not follow the last one restarts the differences."""
        if self.steps and self.steps[-1].t_ns != step.start_ns:
            self.steps = []
        self.steps = [*self.steps[-2:], step]
        if len(self.steps) < 3:
            return
        seconds = np.array([each.seconds for each in self.steps])
        speeds = np.array([each.forward_m for each in self.steps]) / seconds
        mean_s = float(seconds.mean())
        density = float(speeds @ [1.0, -2.0, 1.0]) ** 2 * mean_s / SECOND_DIFFERENCE_VARIANCE
        self.count += 1
        weight = min(max(mean_s / NOISE_AVERAGING_S, 1 / self.count), 1.0)
        self.density += weight * (density - self.density)


@dataclass(frozen=True)
class WheelStartSettings:
    """Detection of starts and jumps, and estimation of the slip after a start."""

    # Detection
    min_window_s: float = 0.09  # shortest time over which a speed is measured: encoders count pulses
    max_standing_speed_m_s: float = 0.03
    min_standing_s: float = 1.0  # time at rest after which the robot may start in the other direction
    max_acceleration_m_s2: float = 5.0  # half of gravity is more than wheels can transmit on soil
    # Estimation from positions
    min_distance_m: float = 0.5  # after which the distance is compared with positions
    min_short_distance_m: float = 0.1  # the same if the wheels stop before
    memory_s: float = 30.0  # time constant of the estimate: it holds for one manoeuvre
    max_relative_sigma: float = 0.2  # of the distance by positions, to be compared
    prior_count: float = 0.25  # weight of the prior in reversals: one is nearly enough to know
    max_squared_error: float = 4.0  # relative: that of a distance with the wrong sign


WHEEL_STARTS = WheelStartSettings()


class WheelStartDetector:
    """Detects when wheels start, reverse or jump, from their measured speed."""

    def __init__(self, settings: WheelStartSettings = WHEEL_STARTS) -> None:
        self.settings = settings
        self.starts = False  # with the last step: after standing, or in the other direction
        self.jump = 0.0  # change of speed with the last step, m/s, that no vehicle can have; 0: none
        self.standing_s = 0.0
        self._speed: float | None = None
        self._distance = self._seconds = self._direction = 0.0

    def add(self, step: OdometryStep) -> None:
        """Add a step."""
        settings = self.settings
        self.starts, self.jump = False, 0.0
        self._distance += step.forward_m
        self._seconds += step.seconds
        if self._seconds < settings.min_window_s:
            return
        before, speed, seconds = self._speed, self._distance / self._seconds, self._seconds
        self._speed, self._distance, self._seconds = speed, 0.0, 0.0
        if abs(speed) < settings.max_standing_speed_m_s:
            self.standing_s += seconds
            return
        reversed_ = speed * self._direction < 0
        self.starts = self.standing_s >= settings.min_standing_s or reversed_
        self._direction, self.standing_s = float(np.sign(speed)), 0.0
        change = abs(speed - before) if before is not None else 0.0
        if not self.starts and change > max(settings.max_acceleration_m_s2 * seconds, abs(speed) / 2):
            self.jump = change


@dataclass(eq=False)
class _Start:
    position: Floats  # (3,)
    forward: Floats  # (3,), heading
    sigma: float  # of the position along the heading, m
    distance: float = 0.0  # by wheels since, m
    rests: bool = False  # whether the wheels stopped since


class StartSlipEstimator:
    """Estimates, from positions, the relative error of wheels after a start, by starts with a reversal.

    Wheels that never report a reversal are right as long as the robot drives forwards, so such starts are not
    informative.

    Parameters
    ----------
    prior_sigma : float
        Sigma of the relative error of the distance, before any reversal was observed.
    """

    def __init__(self, prior_sigma: float, settings: WheelStartSettings = WHEEL_STARTS) -> None:
        self.prior_sigma, self.settings = prior_sigma, settings
        self._count, self._squares, self._t_ns = 0.0, 0.0, 0
        self._start: _Start | None = None

    def sigma(self, t_ns: int) -> float:
        """Return the sigma of the relative error of a distance after a start at a time."""
        decay = np.exp(-(t_ns - self._t_ns) / NS / self.settings.memory_s)
        prior_count = self.settings.prior_count
        squares = prior_count * self.prior_sigma**2 + decay * self._squares
        return float(np.sqrt(squares / (prior_count + decay * self._count)))

    def start(self, x: FilterState) -> None:
        """Store the state at which the wheels start."""
        forward = x.rotation[:, 0]
        self._start = _Start(x.p, forward, self._sigma_along(x, forward))

    def add(self, distance: float, *, rests: bool) -> None:
        """Add the distance of a step in m, and whether the wheels rest after it."""
        if self._start is not None:
            self._start.distance += distance
            self._start.rests = self._start.rests or rests

    def compare(self, x: FilterState) -> None:
        """Compare the distance by wheels since the start with a state that was updated by a position."""
        start, settings = self._start, self.settings
        if start is None:
            return
        measured, min_short = start.distance, settings.min_short_distance_m
        if abs(measured) < (min_short if start.rests else settings.min_distance_m):
            return
        self._start = None
        if max(start.sigma, self._sigma_along(x, start.forward)) > settings.max_relative_sigma * abs(
            measured
        ):
            return
        actual = float((x.p - start.position) @ start.forward)
        if min(actual, measured) < -min_short / 2:
            error = actual / measured - 1 - x.scale
            decay = np.exp(-(x.t_ns - self._t_ns) / NS / settings.memory_s)
            self._count = decay * self._count + 1
            self._squares = decay * self._squares + min(error**2, settings.max_squared_error)
            self._t_ns = x.t_ns

    @staticmethod
    def _sigma_along(x: FilterState, direction: Floats) -> float:
        return float(np.sqrt(direction @ x.covariance[POSITION, POSITION] @ direction))
