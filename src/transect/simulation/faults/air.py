"""Air that is not clear: puffs of extinction carried by the wind, or the same everywhere.

Light that goes a way s through air of extinction beta(s) keeps ``exp(-integral of beta ds)`` of itself
(Beer and Lambert). A puff is a Gaussian in space, so the integral along a beam is an error function. Puffs
live in the frame of the vehicle (x forward), and the wind is what the vehicle feels.
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

MAX_PUFFS = 50_000  # Of one fault: eleven hours of dust, or nearly three of smoke.
OPTICAL = np.array([[0.0, 0.0, 1.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
"""``T_forward_camera``: a camera's x right, y down, z forward as x forward, y left, z up."""


@dataclass(frozen=True, eq=False)
class Air:
    """What light meets, k puffs and a background."""

    middle: Floats  # (k, 3), place of each puff in the middle of its life, m, in the vehicle's frame
    wind: Floats  # (3,), m/s
    # time, life: (k,), the middle of its life, s after the fault began, and how long it lives
    time: Floats
    life: Floats
    # (k,), standard deviation in the middle of its life, m; it grows from half to one and a half of that
    size: Floats
    strength: Floats  # (k,), extinction in its middle at its best, 1/m
    background: float = 0.0  # extinction everywhere, 1/m

    def during(self, first: float, last: float) -> Air:
        """Return the air with only the puffs that live at some time from first to last, s."""
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
        """Return places (n, k, 3), sizes (n, k) and extinctions (n, k) at (n,) times."""
        age = (seconds[:, None] - self.time) / self.life  # from -1/2 to 1/2
        place = self.middle + (age * self.life)[..., None] * self.wind
        alive = np.abs(age) < 0.5
        size = self.size * (1.0 + np.clip(age, -0.5, 0.5))
        return place, size, np.where(alive, self.strength * np.cos(np.pi * age) ** 2, 0.0)


def uniform(extinction: float) -> Air:
    """Return air that is the same everywhere."""
    none = np.zeros(0)
    return Air(np.zeros((0, 3)), np.zeros(3), none, none, none, none, extinction)


def puffs(event: Event, length: float, height: float) -> Air:
    """Return the puffs of a fault that lasts `length` seconds, `height` m up the vehicle's z axis.

    They cross the view of the vehicle from one side to the other, as on the first day of document 004,
    between `near` and `far` m ahead of it.
    """
    p, draw = event.parameters, event.generator("puffs")
    count = max(3, round(p["rate"] * length))
    if count > MAX_PUFFS:
        raise UsageError(
            f"{event.fault} would last {length / 3600:.3g} h",
            why=f"that takes {count} puffs, of which at most {MAX_PUFFS} are simulated",
            hint="choose a part of the recording with --from and --to",
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
class Beams:
    """n beams through k puffs, and what each meets as far as it goes."""

    # along, width, weight: (n, k), how far along the beam it is nearest to the puff, and how wide the puff
    # is (m); and the optical depth of half of the puff
    along: Floats
    width: Floats
    weight: Floats
    background: float  # extinction everywhere, 1/m

    def depth(self, ranges: Floats) -> Floats:
        """Return the optical depth (n,) of the beams up to ranges (n,), one way."""
        from scipy.special import erf

        each = erf((ranges[:, None] - self.along) / self.width) + erf(self.along / self.width)
        return np.einsum("nk,nk->n", self.weight, each) + self.background * ranges

    def range_at(self, depth: Floats, ranges: Floats) -> Floats:
        """Return (n,) how far the beams get until they have gone through an optical depth (n,).

        It is less than that at `ranges`, and found to 1 mm in 80 m by halving.
        """
        low, high = np.zeros_like(ranges), ranges.copy()
        for _ in range(17):
            mid = (low + high) / 2
            short = self.depth(mid) < depth
            low, high = np.where(short, mid, low), np.where(short, high, mid)
        return (low + high) / 2

    def of(self, chosen: Mask) -> Beams:
        """Return some of the beams."""
        return Beams(self.along[chosen], self.width[chosen], self.weight[chosen], self.background)


def through(air: Air, seconds: Floats, origin: Floats, directions: Floats) -> Beams:
    """Return beams through the air.

    Parameters
    ----------
    seconds : (n,) array
        When each beam goes, s after the fault began.
    origin : (3,) array
        Where all beams begin, in the vehicle's frame.
    directions : (n, 3) array
        Unit vectors in the vehicle's frame.
    """
    here = air.during(float(seconds.min()), float(seconds.max())) if len(seconds) else air
    place, size, strength = here.at(seconds)
    towards = place - origin
    along = np.einsum("nki,ni->nk", towards, directions)
    beside = np.einsum("nki,nki->nk", towards, towards) - along**2
    width = np.sqrt(2.0) * size
    weight = strength * np.exp(-beside / width**2) * size * np.sqrt(np.pi / 2)
    return Beams(along, width, weight, air.background)


def vehicle_frame(frames: FrameTree, frame: str) -> str:
    """Return the frame on top of all those that do not move against `frame`."""
    above = {edge.child: edge for edge in frames.edges}
    while frame in above and above[frame].matrix is not None:
        frame = above[frame].parent
    return frame


def place_of_sensor(recording: Recording, frame: str) -> Floats:
    """Return ``T_vehicle_sensor`` (4, 4); a sensor whose place is not known stands in the vehicle's origin.

    A vehicle frame that is a camera's is turned so that x is forward.
    """
    cameras = {s.frame for s in recording if s.type is Image} | {c.frame for c in recording.cameras.values()}
    top = vehicle_frame(recording.frames, frame)
    forward = OPTICAL if top in cameras else np.eye(4)
    try:
        return forward @ recording.frames.lookup(top, frame)
    except FrameError:
        return OPTICAL if frame in cameras else np.eye(4)


def sensor_height(recording: Recording, frames: set[str]) -> float:
    """Return the mean place of sensors up the vehicle's z axis, m: puffs that matter are as high."""
    heights = [place_of_sensor(recording, frame)[2, 3] for frame in sorted(frames)]
    return float(np.mean(heights)) if heights else 0.0
