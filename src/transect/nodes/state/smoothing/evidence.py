"""What a smoother has measured, and the keyframes that it is put between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.errors import TimeError

from ..fusion import Event, Inertial, Place, Step


@dataclass(eq=False)
class Evidence:
    """Events by kind, in the order of time.

    Attributes
    ----------
    wheels : list of Step
        In the plane.
    motion : list of Step
        In all six degrees of freedom.
    inertial : list of Inertial
    places : list of Place
    followed : list of Step
        How a filter went by the others, where an IMU and places are all that there is: no measurement.
    """

    wheels: list[Step] = field(default_factory=list[Step])
    motion: list[Step] = field(default_factory=list[Step])
    inertial: list[Inertial] = field(default_factory=list[Inertial])
    places: list[Place] = field(default_factory=list[Place])
    followed: list[Step] = field(default_factory=list[Step])

    def add(self, events: Iterable[Event]) -> None:
        """Put events where they belong."""
        for event in events:
            if isinstance(event, Step):
                (self.wheels if event.planar else self.motion).append(event)
            elif isinstance(event, Inertial):
                self.inertial.append(event)
            elif isinstance(event, Place):
                self.places.append(event)

    def doubt_heights(self, std: float) -> None:
        """Take no height for better than a sigma in m: what was found of later ones holds for the first."""
        self.places = [
            replace(each, std=np.maximum(each.std, [0.0, 0.0, std if each.has_height else 0.0]))
            for each in self.places
        ]

    @property
    def kinds(self) -> frozenset[str]:
        """Names of the lists that are not empty."""
        return frozenset(name for name, came in vars(self).items() if came)

    def since(self, t_ns: int) -> Evidence:
        """Return what reaches beyond a time; of each sensor one sample before it, or its last, too."""
        before = sum(each.t_ns <= t_ns for each in self.inertial)
        return Evidence(
            [each for each in self.wheels if each.t_ns > t_ns] or self.wheels[-1:],
            [each for each in self.motion if each.t_ns > t_ns] or self.motion[-1:],
            self.inertial[max(before - 1, 0) :],
            [each for each in self.places if each.t_ns >= t_ns],
            [each for each in self.followed if each.t_ns > t_ns] or self.followed[-1:],
        )

    def before(self, t_ns: int) -> Evidence:
        """Return the same without places from a time on."""
        return replace(self, places=[each for each in self.places if each.t_ns < t_ns])

    @property
    def reckoning(self) -> tuple[int, int]:
        """First and last time of dead reckoning, ns."""
        steps = [*self.wheels, *self.motion, *self.followed]
        if not steps:
            raise TimeError(
                "there is no dead reckoning",
                hint="give wheels, an odometry, a motion, or an IMU and positions that tell its heading",
            )
        return min(each.since_ns for each in steps), max(each.t_ns for each in steps)


def keyframe_times(first_ns: int, last_ns: int, spacing: float) -> Ints:
    """Return times (n,), at least two: every `spacing` s from the first on, and the last."""
    step = round(spacing * NS)
    return np.append(np.arange(first_ns, last_ns - step // 2, step, dtype=np.int64), last_ns)


def check_overlap(evidence: Evidence) -> None:
    """Refuse places that were measured when nothing else was."""
    first, last = evidence.reckoning
    times = [each.t_ns for each in evidence.places]
    if times and (max(times) < first or min(times) > last):
        raise TimeError(
            "the positions and the dead reckoning have no time in common",
            why=f"positions from {min(times)} to {max(times)} ns, dead reckoning from {first} to {last} ns",
            hint="map one clock to the other: --offset STREAM=auto",
        )
