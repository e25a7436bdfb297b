"""When wheels cannot be believed: as they set off, and when they leap.

Wheels that count pulses have no sign of their own: their direction is that of the command, which changes
before a rolling body does, or not at all when a body rolls back. Near a standstill pulses are too rare to
tell a speed: the last one is held, or leaps.
"""

from __future__ import annotations

from transect.base.clocks import NS

from ._fusion_events import Step

WINDOW = 0.09
"""Seconds over which a speed is measured, at least: in less, encoders count single pulses."""
STANDING = 0.03
"""m/s; slower wheels stand."""
MOST_ACCELERATION = 5.0
"""m/s2: half of gravity is more than wheels hold on soil."""


class Pace:
    """Follows the speed that wheels say."""

    def __init__(self) -> None:
        self.speed = self.way = self.seconds = 0.0

    def leaps(self, step: Step) -> bool:
        """Take a step, and tell whether wheels set off with it, or leapt: most of their speed is new."""
        self.way += float(step.transform[0, 3])
        self.seconds += (step.t_ns - step.since_ns) / NS
        if self.seconds < WINDOW:
            return False
        before, now, most = self.speed, self.way / self.seconds, MOST_ACCELERATION * self.seconds
        self.speed, self.way, self.seconds = now, 0.0, 0.0
        if abs(now) < STANDING:
            return False
        return abs(before) < STANDING or abs(now - before) > max(most, abs(now) / 2)
