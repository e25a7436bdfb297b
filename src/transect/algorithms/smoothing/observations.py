"""What a smoother has measured, and the keyframes that it is put between."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.errors import TimeError

from ..fusion.measurements import Event, Inertial, Place, Step

MAX_SILENT_KEYFRAMES = 100
WINDOW_NS = NS
"""Doubts are weighed second by second."""


@dataclass(frozen=True)
class Doubt:
    """A time [t0_ns, t1_ns) of which the steps of a sensor may be wrong."""

    sensor: str
    t0_ns: int
    t1_ns: int

    def meets(self, step: Step) -> bool:
        """Tell whether some part of a step is in doubt."""
        return step.sensor == self.sensor and self.t0_ns < step.t_ns and step.since_ns < self.t1_ns

    def windows(self) -> list[Doubt]:
        """Return it second by second."""
        edges = [*range(self.t0_ns, self.t1_ns, WINDOW_NS), self.t1_ns]
        return [Doubt(self.sensor, a, b) for a, b in pairwise(edges)]


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
    doubted : list of Doubt
        Steps that count as far as they agree with the rest; where that cannot be told, they are left out.
    """

    wheels: list[Step] = field(default_factory=list[Step])
    motion: list[Step] = field(default_factory=list[Step])
    inertial: list[Inertial] = field(default_factory=list[Inertial])
    places: list[Place] = field(default_factory=list[Place])
    followed: list[Step] = field(default_factory=list[Step])
    doubted: list[Doubt] = field(default_factory=list[Doubt])

    def add(self, events: Iterable[Event]) -> None:
        """Put events where they belong."""
        for event in events:
            if isinstance(event, Step):
                (self.wheels if event.planar else self.motion).append(event)
            elif isinstance(event, Inertial):
                self.inertial.append(event)
            elif isinstance(event, Place):
                self.places.append(event)

    def restate(self, restated: Callable[[Place], Place]) -> None:
        """Give all places the sigmas that are known now."""
        self.places = [restated(each) for each in self.places]

    def doubt_heights(self, std: float) -> None:
        """Take no height for better than a sigma in m: what was found of later ones holds for the first."""
        self.places = [
            replace(each, std=np.maximum(each.std, [0.0, 0.0, std if each.has_height else 0.0]))
            for each in self.places
        ]

    @property
    def kinds(self) -> frozenset[str]:
        """Names of the lists of measurements that are not empty."""
        return frozenset(name for name, came in vars(self).items() if came and name != "doubted")

    @property
    def can_be_weighed(self) -> bool:
        """Whether three sources tell the motion: of two that disagree nobody knows which is wrong."""
        return {"wheels", "motion", "inertial"} <= self.kinds

    def leave_out_doubted(self) -> Evidence:
        """Return the same without steps that are in doubt."""
        kept = {
            name: [
                each for each in getattr(self, name) if not any(doubt.meets(each) for doubt in self.doubted)
            ]
            for name in ("wheels", "motion")
        }
        return replace(self, **kept, doubted=[])

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
    def times(self) -> Ints:
        """When something was measured (n,), in ns, not sorted."""
        steps = [*self.wheels, *self.motion, *self.followed]
        events = (
            *(each.since_ns for each in steps),
            *(each.t_ns for each in (*steps, *self.inertial, *self.places)),
        )
        return np.array(events, np.int64)

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


def keyframe_times(first_ns: int, last_ns: int, spacing: float, measured_ns: Ints) -> Ints:
    """Return times (n,), at least two: every `spacing` s from the first on, and the last.

    `measured_ns` (k,) are times of measurements. After `MAX_SILENT_KEYFRAMES` without any the next keyframe
    is that before the next measurement: their number grows with the measurements, not with the time between.
    """
    step = round(spacing * NS)
    return np.append(grid_times(first_ns, last_ns - step // 2, step, measured_ns), last_ns)


def grid_times(first_ns: int, end_ns: int, step_ns: int, measured_ns: Ints) -> Ints:
    """Return times (n,) in [first, end) in steps from the first on, without those late in a silence."""
    count = max(0, -(-(end_ns - first_ns) // step_ns))
    if count <= MAX_SILENT_KEYFRAMES:
        return first_ns + step_ns * np.arange(count, dtype=np.int64)
    inside = measured_ns[(measured_ns >= first_ns) & (measured_ns < end_ns)]
    cells = np.unique(np.concatenate([[0, count - 1], (inside - first_ns) // step_ns]))
    stops = np.append(np.minimum(cells[1:], cells[:-1] + MAX_SILENT_KEYFRAMES), count)
    numbers = np.concatenate([np.arange(a, b) for a, b in zip(cells, stops, strict=True)])
    return first_ns + step_ns * numbers.astype(np.int64)


def check_overlap(evidence: Evidence) -> None:
    """Refuse places that were measured when nothing else was."""
    first, last = evidence.reckoning
    times = [each.t_ns for each in evidence.places]
    if times and (max(times) < first or min(times) > last):
        raise TimeError(
            "the positions and the dead reckoning have no time in common",
            why=f"positions from {min(times)} to {max(times)} ns, dead reckoning from {first} to {last} ns",
            hint="if a clock is wrong: --offset with the name of the stream of positions, and =auto after it",
        )
