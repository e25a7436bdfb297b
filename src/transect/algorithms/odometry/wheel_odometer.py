"""Wheel odometry: motion between two samples by a kinematic model of the wheels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.types import WheelState

MotionModel = Callable[[WheelState, WheelState, float], Floats | None]
"""Takes the previous and the current sample and the seconds between them, and returns the motion (3,) of the
body: m forward, m left, rad to the left; None if the samples lack a quantity."""
ModelChoice = Callable[[WheelState, float], MotionModel | None]
"""Takes a sample and the track (m; 0 if unknown), and returns its model."""
MAX_WHEEL_GAP_S = 0.5  # over longer gaps the robot is assumed to stand


def differential_motion(
    previous: WheelState, current: WheelState, seconds: float, track: float
) -> Floats | None:
    """Return the motion (3,) of a differential drive whose sides are `track` metres apart.

    The first half of the wheels are the left ones. A skid-steered robot turns less than its wheels suggest:
    its effective track is larger than the distance of its wheels.
    """
    if current.velocity is None or previous.velocity is None or len(current.velocity) % 2:
        return None
    left, right = ((current.velocity + previous.velocity) / 2).reshape(2, -1).mean(axis=1)
    return finite_motion(np.array([(left + right) / 2, 0.0, (right - left) / track]) * seconds)


def differential_model(wheels: WheelState, track: float = 0.0) -> MotionModel | None:
    """Return the model of a differential drive; None for steered wheels, or if the track is unknown."""
    has_steering = wheels.steering is not None or wheels.steer_ticks is not None
    if wheels.velocity is None or has_steering or not track > 0:
        return None
    return partial(differential_motion, track=track)


class WheelReckoning:
    """Motions between consecutive wheel samples."""

    def __init__(self) -> None:
        self.last: tuple[int, WheelState] | None = None  # time (ns) and sample

    def step(
        self, t_ns: int, wheels: WheelState, model: MotionModel, max_gap: float
    ) -> tuple[int, Floats] | None:
        """Return the time (ns) of the last sample and the motion (3,) since then.

        None for the first sample, after a gap of more than `max_gap` seconds, or if the model has no motion.
        """
        previous, self.last = self.last, (t_ns, wheels)
        if previous is None or not 0 < t_ns - previous[0] <= max_gap * NS:
            return None
        motion = model(previous[1], wheels, (t_ns - previous[0]) / NS)
        return None if motion is None else (previous[0], motion)


def finite_motion(motion: Floats) -> Floats | None:
    """Return a motion, or None if any component is not finite."""
    return motion if np.isfinite(motion).all() else None
