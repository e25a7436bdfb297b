"""Measurements of a smoother, and the keyframes between which they are factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.errors import TimeError

from ..fusion.events import Event, ImuSample, MeasuredPosition, OdometryStep

MAX_SILENT_KEYFRAMES = 100
"""Keyframes in a row without any measurement."""


@dataclass(frozen=True)
class SuspectInterval:
    """Interval [t0_ns, t1_ns) in which the steps of a sensor may be wrong."""

    sensor: str
    t0_ns: int
    t1_ns: int

    def overlaps(self, step: OdometryStep) -> bool:
        """Return whether a step overlaps the interval."""
        return step.sensor == self.sensor and self.t0_ns < step.t_ns and step.start_ns < self.t1_ns

    def split(self, window_ns: int = NS) -> list[SuspectInterval]:
        """Return the interval in windows, whose variances are estimated separately."""
        edges = [*range(self.t0_ns, self.t1_ns, window_ns), self.t1_ns]
        return [SuspectInterval(self.sensor, a, b) for a, b in pairwise(edges)]


@dataclass(eq=False)
class Observations:
    """Measurements by type, in the order of time."""

    wheels: list[OdometryStep] = field(default_factory=list[OdometryStep])  # planar
    motion: list[OdometryStep] = field(default_factory=list[OdometryStep])  # in six degrees of freedom
    inertial: list[ImuSample] = field(default_factory=list[ImuSample])
    positions: list[MeasuredPosition] = field(default_factory=list[MeasuredPosition])
    # Path of a filter with an IMU and positions alone. It is a first guess and no measurement.
    filter_path: list[OdometryStep] = field(default_factory=list[OdometryStep])
    # Steps that are weighted by their agreement with other sensors; if that is not observable, left out.
    suspect: list[SuspectInterval] = field(default_factory=list[SuspectInterval])

    def add(self, events: Iterable[Event]) -> None:
        """Add events by their type."""
        for event in events:
            if isinstance(event, OdometryStep):
                (self.wheels if event.planar else self.motion).append(event)
            elif isinstance(event, ImuSample):
                self.inertial.append(event)
            elif isinstance(event, MeasuredPosition):
                self.positions.append(event)

    def update_noise(self, with_estimated_noise: Callable[[MeasuredPosition], MeasuredPosition]) -> None:
        """Update the noise of all positions."""
        self.positions = [with_estimated_noise(each) for each in self.positions]

    def limit_heights(self, std: float) -> None:
        """Raise the sigma of all heights to at least `std`, m: later heights were inconsistent with them."""
        self.positions = [
            replace(each, std=np.maximum(each.std, [0.0, 0.0, std if each.has_height else 0.0]))
            for each in self.positions
        ]

    @property
    def kinds(self) -> frozenset[str]:
        """Names of the lists of measurements that are not empty."""
        return frozenset(name for name, values in vars(self).items() if values and name != "suspect")

    @property
    def has_variance_components(self) -> bool:
        """Whether three sources measure the motion: if two disagree, either may be wrong."""
        return {"wheels", "motion", "inertial"} <= self.kinds

    def without_suspect(self) -> Observations:
        """Return the same without suspect steps."""
        trusted = {
            name: [
                each
                for each in getattr(self, name)
                if not any(each_.overlaps(each) for each_ in self.suspect)
            ]
            for name in ("wheels", "motion")
        }
        return replace(self, **trusted, suspect=[])

    def since(self, t_ns: int) -> Observations:
        """Return the measurements after a time, and at least one of each sensor at or before it."""
        before = sum(each.t_ns <= t_ns for each in self.inertial)
        return Observations(
            [each for each in self.wheels if each.t_ns > t_ns] or self.wheels[-1:],
            [each for each in self.motion if each.t_ns > t_ns] or self.motion[-1:],
            self.inertial[max(before - 1, 0) :],
            [each for each in self.positions if each.t_ns >= t_ns],
            [each for each in self.filter_path if each.t_ns > t_ns] or self.filter_path[-1:],
        )

    def before(self, t_ns: int) -> Observations:
        """Return the same without positions from a time on."""
        return replace(self, positions=[each for each in self.positions if each.t_ns < t_ns])

    @property
    def times(self) -> Ints:
        """Times of measurements (n,) in ns, not sorted."""
        steps = [*self.wheels, *self.motion, *self.filter_path]
        times = (
            *(each.start_ns for each in steps),
            *(each.t_ns for each in (*steps, *self.inertial, *self.positions)),
        )
        return np.array(times, np.int64)

    @property
    def path_interval(self) -> tuple[int, int]:
        """First and last time of dead reckoning, ns."""
        steps = [*self.wheels, *self.motion, *self.filter_path]
        if not steps:
            raise TimeError(
                "there is no dead reckoning",
                hint="give wheels, an odometry, a motion, or an IMU and positions with an observable heading",
            )
        return min(each.start_ns for each in steps), max(each.t_ns for each in steps)


def keyframe_times(first_ns: int, last_ns: int, spacing: float, measured_ns: Ints) -> Ints:
    """Return times (n,), at least two: every `spacing` s from the first on, and the last.

    `measured_ns` (k,) are times of measurements. After `MAX_SILENT_KEYFRAMES` without any the next keyframe
    is that before the next measurement, so the number of keyframes is bounded by the measurements.
    """
    step_ns = round(spacing * NS)
    return np.append(grid_times(first_ns, last_ns - step_ns // 2, step_ns, measured_ns), last_ns)


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


def check_overlap(observations: Observations) -> None:
    """Raise an error if positions and dead reckoning have no time in common."""
    first, last = observations.path_interval
    times = [each.t_ns for each in observations.positions]
    if times and (max(times) < first or min(times) > last):
        raise TimeError(
            "the positions and the dead reckoning have no time in common",
            why=f"positions from {min(times)} to {max(times)} ns, dead reckoning from {first} to {last} ns",
            hint="if a clock is wrong: --offset with the name of the stream of positions, and =auto after it",
        )
