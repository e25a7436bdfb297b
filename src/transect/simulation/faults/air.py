"""Air with particles: puffs that drift with the wind, or uniform extinction.

The transmission along a path s with extinction beta(s) is ``exp(-integral of beta ds)`` (Beer-Lambert). A
puff is a Gaussian in space, so the integral along a beam is an error function. Puffs are in the frame of the
vehicle (x forward), and the wind is relative to it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.errors import FrameError, UsageError
from transect.recording import FrameTree, Recording
from transect.types import Image

from .model import Event

MAX_PUFFS = 50_000  # of one fault: eleven hours of dust, or nearly three of smoke
OPTICAL = np.array([[0.0, 0.0, 1.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
"""``T_forward_camera``: from a camera's x right, y down, z forward to x forward, y left, z up."""


@dataclass(frozen=True, eq=False)
class Air:
    """Extinction of k puffs and of the background."""

    middle: Floats  # (k, 3), position of each puff at the middle of its lifetime, m, in the vehicle's frame
    wind: Floats  # (3,), m/s
    time: Floats  # (k,), middle of its lifetime, s after the start of the fault
    life: Floats  # (k,), lifetime, s
    # (k,), standard deviation at the middle of its lifetime, m; it grows from 0.5 to 1.5 times that
    size: Floats
    strength: Floats  # (k,), maximum extinction at its centre, 1/m
    background: float = 0.0  # uniform extinction, 1/m

    def during(self, first: float, last: float) -> Air:
        """Return the air with only the puffs that exist at some time from first to last, s."""
        alive = (self.time + self.life / 2 > first) & (self.time - self.life / 2 < last)
        return dataclasses.replace(
            self,
            middle=self.middle[alive],
            time=self.time[alive],
            life=self.life[alive],
            size=self.size[alive],
            strength=self.strength[alive],
        )

    def at(self, seconds: Floats) -> tuple[Floats, Floats, Floats]:
        """Return positions (n, k, 3), sizes (n, k) and extinctions (n, k) at (n,) times."""
        age = (seconds[:, None] - self.time) / self.life  # from -1/2 to 1/2
        position = self.middle + (age * self.life)[..., None] * self.wind
        alive = np.abs(age) < 0.5
        size = self.size * (1.0 + np.clip(age, -0.5, 0.5))
        return position, size, np.where(alive, self.strength * np.cos(np.pi * age) ** 2, 0.0)


def uniform(extinction: float) -> Air:
    """Return air with uniform extinction."""
    none = np.zeros(0)
    return Air(np.zeros((0, 3)), np.zeros(3), none, none, none, none, extinction)


def puffs(event: Event, length: float, height: float) -> Air:
    """Return the puffs of a fault of `length` seconds, at a height of `height` m along the vehicle's z axis.

    They cross the field of view from one side to the other, as on the first day of SDI, between `near` and
    `far` m ahead of the vehicle.
    """
    p, draw = event.parameters, event.generator("puffs")
    count = max(3, round(p["rate"] * length))
    if count > MAX_PUFFS:
        raise UsageError(
            f"{event.fault} would last {length / 3600:.3g} h",
            why=f"that needs {count} puffs, and at most {MAX_PUFFS} are simulated",
            hint="select a part of the recording with --from and --to",
        )
    life = min(2.0 * p["reach"] / p["wind"], 0.7 * length)
    side = draw.choice([-1.0, 1.0])
    wind = p["wind"] * np.array([p["drift"] * draw.normal(), side, 0.0])
    times = life / 2 + np.sort(draw.random(count)) * (length - life)
    ahead, aside = draw.uniform(p["near"], p["far"], count), draw.normal(0.0, 1.5, count)
    middle = np.column_stack([ahead, aside, height + draw.normal(0.0, 0.3, count)])
    size, strength = draw.uniform(0.6, 1.4, count), draw.uniform(0.6, 1.4, count)
    scale = event.severity * p["extinction"]
    return Air(middle, wind, times, np.full(count, life), p["size"] * size, scale * strength)


@dataclass(frozen=True, eq=False)
class AttenuatedBeams:
    """Optical depth along n beams through k puffs."""

    along: Floats  # (n, k), distance along the beam to its point closest to the puff, m
    width: Floats  # (n, k), width of the puff, m
    weight: Floats  # (n, k), optical depth of half of the puff
    background: float  # uniform extinction, 1/m

    def depth(self, ranges: Floats) -> Floats:
        """Return the one-way optical depth (n,) of the beams up to ranges (n,)."""
        from scipy.special import erf

        each = erf((ranges[:, None] - self.along) / self.width) + erf(self.along / self.width)
        return np.einsum("nk,nk->n", self.weight, each) + self.background * ranges

    def range_at(self, depth: Floats, ranges: Floats) -> Floats:
        """Return the ranges (n,) at which the beams have optical depths (n,), smaller than those at `ranges`.

        By bisection, to 1 mm in 80 m.
        """
        low, high = np.zeros_like(ranges), ranges.copy()
        for _ in range(17):
            mid = (low + high) / 2
            short = self.depth(mid) < depth
            low, high = np.where(short, mid, low), np.where(short, high, mid)
        return (low + high) / 2

    def of(self, chosen: Mask) -> AttenuatedBeams:
        """Return some of the beams."""
        return AttenuatedBeams(self.along[chosen], self.width[chosen], self.weight[chosen], self.background)


def through(air: Air, seconds: Floats, origin: Floats, directions: Floats) -> AttenuatedBeams:
    """Return beams through the air.

    Parameters
    ----------
    seconds : (n,) array
        Time of each beam, s after the start of the fault.
    origin : (3,) array
        Origin of all beams in the vehicle's frame.
    directions : (n, 3) array
        Unit vectors in the vehicle's frame.
    """
    current = air.during(float(seconds.min()), float(seconds.max())) if len(seconds) else air
    position, size, strength = current.at(seconds)
    offset = position - origin
    along = np.einsum("nki,ni->nk", offset, directions)
    lateral_squared = np.einsum("nki,nki->nk", offset, offset) - along**2
    width = np.sqrt(2.0) * size
    weight = strength * np.exp(-lateral_squared / width**2) * size * np.sqrt(np.pi / 2)
    return AttenuatedBeams(along, width, weight, air.background)


def vehicle_frame(frames: FrameTree, frame: str) -> str:
    """Return the topmost frame that is rigidly connected to `frame`."""
    above = {edge.child: edge for edge in frames.edges}
    while frame in above and above[frame].matrix is not None:
        frame = above[frame].parent
    return frame


def pose_of_sensor(recording: Recording, frame: str) -> Floats:
    """Return ``T_vehicle_sensor`` (4, 4); a sensor of unknown pose is at the vehicle's origin.

    If the vehicle frame is that of a camera, it is rotated so that x is forward.
    """
    cameras = {s.frame for s in recording if s.type is Image} | {c.frame for c in recording.cameras.values()}
    top = vehicle_frame(recording.frames, frame)
    forward = OPTICAL if top in cameras else np.eye(4)
    try:
        return forward @ recording.frames.lookup(top, frame)
    except FrameError:
        return OPTICAL if frame in cameras else np.eye(4)


def sensor_height(recording: Recording, frames: set[str]) -> float:
    """Return the mean height of sensors along the vehicle's z axis, m, at which puffs are simulated."""
    heights = [pose_of_sensor(recording, frame)[2, 3] for frame in sorted(frames)]
    return float(np.mean(heights)) if heights else 0.0
