"""Dead reckoning by wheels: the motion between two samples, by a model of how the wheels move the body."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.types import WheelState

MotionModel = Callable[[WheelState, WheelState, float], Floats | None]
"""Wheels then, wheels now and the seconds between to a motion (3,): m forward, m left, rad to the left."""
ModelChoice = Callable[[WheelState, float], MotionModel | None]
"""Chooses the model for a sample; takes the track (m), 0 if it is not known."""
MAX_GAP = 0.5
"""Seconds; over longer gaps the robot is taken to stand."""


def differential_motion(then: WheelState, now: WheelState, seconds: float, track: float) -> Floats | None:
    """Motion (3,) by the speeds of the left and the right side's wheels, `track` metres apart.

    The first half of the wheels are the left ones. A body that skids turns less than the distance of its
    wheels says: `track` is the effective one, larger than that.
    """
    if now.velocity is None or then.velocity is None or len(now.velocity) % 2:
        return None
    left, right = ((now.velocity + then.velocity) / 2).reshape(2, -1).mean(axis=1)
    return finite_motion(np.array([(left + right) / 2, 0.0, (right - left) / track]) * seconds)


def differential_model(wheels: WheelState, track: float = 0.0) -> MotionModel | None:
    """Return the model of wheels on two sides that do not steer; None if the track is not known."""
    steers = wheels.steering is not None or wheels.steer_ticks is not None
    if wheels.velocity is None or steers or not track > 0:
        return None
    return partial(differential_motion, track=track)


class WheelReckoning:
    """Follows wheels from sample to sample.

    Attributes
    ----------
    last : tuple or None
        Time (ns) and wheels of the newest sample.
    """

    def __init__(self) -> None:
        self.last: tuple[int, WheelState] | None = None

    def step(
        self, t_ns: int, wheels: WheelState, model: MotionModel, max_gap: float
    ) -> tuple[int, Floats] | None:
        """Return since when, and the motion (3,) since then; None for the first, after a gap, or unknown."""
        before, self.last = self.last, (t_ns, wheels)
        if before is None or not 0 < t_ns - before[0] <= max_gap * NS:
            return None
        motion = model(before[1], wheels, (t_ns - before[0]) / NS)
        return None if motion is None else (before[0], motion)


def finite_motion(motion: Floats) -> Floats | None:
    """Return a motion if all its numbers are finite, else None."""
    return motion if np.isfinite(motion).all() else None
