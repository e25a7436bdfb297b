"""How noisy measured positions are, where they do not state it, or all state the same.

The noise is estimated from the positions and the dead reckoning (`fix_noise`), again and again as they come,
so that a filter uses no more than what was known. What is usual for a type of fix, or was stated, counts a
little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

from .gnss_noise import CORRELATION_S, MIN_PLACES, MIN_STD_M, Components, Sample, estimate_components

if TYPE_CHECKING:
    from .measurements import Place

WINDOW = 30
"""Fixes in a window."""
SPACING_S = 1.0
"""Between the fixes of a second family of windows, where they come faster: over seconds noise that lasts is
a constant."""
MAX_WINDOWS = 12
"""Of each family; of longer recordings some, spread evenly."""
COMMON_FRACTION = 0.75
"""Of the usual variance of a fix that is not RTK lasts."""
PRIOR_COUNT = 2.0
"""Numbers that the usual sigma counts for, in the mean of logarithms of variances."""
WRONG = 2.0
"""A constant that is stated counts as wrong if the sigma found is this many times larger or smaller."""
UNTYPED = "no type"
"""Kind of fixes that tell no type."""


@dataclass(frozen=True)
class Level:
    """Sigmas in m at a factor of 1: white and lasting noise, horizontally and vertically."""

    white: tuple[float, float]
    lasting: tuple[float, float]

    @property
    def total(self) -> Floats:
        """Return one sigma (2,), horizontal and vertical."""
        return np.hypot(self.white, self.lasting)


@dataclass(eq=False)
class Kind:
    """Places that are alike noisy.

    Attributes
    ----------
    usual : (float, float)
        Horizontal and vertical sigma at a factor of 1, m: stated, or usual, until enough places have come.
    white : bool
        Whether none of that lasts.
    stated : bool
        Whether every one of them states that sigma.
    level : Level
        As it is known now.
    count : int
        Places by which it was found; 0 while it is the usual one.
    varies : bool
        Whether the sigma that is stated has changed: then it is believed.
    knows_lasting : bool
        Whether lasting noise was estimated beside a dead reckoning, not supposed.
    """

    usual: tuple[float, float]
    white: bool
    stated: bool
    level: Level
    count: int = 0
    varies: bool = False
    knows_lasting: bool = False

    @property
    def prior(self) -> Level:
        """Return what is supposed of white and lasting noise."""
        lasting = 0.0 if self.white else COMMON_FRACTION
        (h, v), a, b = self.usual, float(np.sqrt(1 - lasting)), float(np.sqrt(lasting))
        return Level((a * h, a * v), (b * h, b * v))

    @property
    def is_replaced(self) -> bool:
        """Whether the usual sigma does not hold: it is no constant that is stated, or that is wrong."""
        if not self.stated or not self.count:
            return not self.stated
        usual = np.maximum(self.usual, MIN_STD_M)
        least = self.level.total if self.knows_lasting else np.array(self.level.white)
        return bool((least > WRONG * usual).any() or (self.level.total < usual / WRONG).any())

    def describe(self, name: str) -> str:
        """Return what noise was found, in words; `name` is that of the kind."""
        (h, v), lasting, known = self.level.total, self.level.lasting[0], self.usual
        why = f"the {known[0]:.2g} m that each states is wrong" if self.stated else "none is stated"
        kind = "" if self.stated or name in ("", UNTYPED) else f" of type {name}"
        alike = f", {lasting:.2g} m of it alike for about {CORRELATION_S:g} s" if lasting > h / 4 else ""
        return (
            f"standard deviation{kind} {h:.2g} m horizontally and {v:.2g} m vertically, found from "
            f"{self.count} of them ({why}){alike}"
        )


@dataclass(eq=False)
class PlaceNoise:
    """Follows the noise of measured positions, kind by kind.

    Attributes
    ----------
    kinds : dict of str to Kind
    samples : list of Sample
    version : int
        How often the noise was estimated.
    """

    kinds: dict[str, Kind] = field(default_factory=dict[str, Kind])
    samples: list[Sample] = field(default_factory=list[Sample])
    version: int = 0
    _estimated_at: int = 0
    _track: _Track = field(default_factory=lambda: _Track())
    _waiting: deque[Place] = field(default_factory=deque["Place"])

    def kind(self, sensor: str, name: str, usual: tuple[float, float], *, white: bool, stated: bool) -> str:
        """Return the key of a kind of noise; "" for a deviation that is stated and has changed."""
        key = f"{sensor} stated {white}" if stated else f"{sensor} {name}"
        known = self.kinds.get(key)
        if known is None:
            known = self.kinds[key] = Kind(usual, white, stated, Level(usual, (0.0, 0.0)))
            known.level = known.prior
        if known.stated and not np.allclose(usual, known.usual, rtol=1e-6):
            known.varies = True
        return "" if known.varies else key

    def move(self, sensor: str, since_ns: int, t_ns: int, transform: Floats) -> None:
        """Take a step (4, 4) of a dead reckoning in the plane."""
        if sensor != "motion":
            self._track.move(since_ns, t_ns, transform)

    def add(self, place: Place) -> None:
        """Take a place, as soon as the dead reckoning has come so far."""
        if place.kind and place.trust == 1.0:
            self._waiting.append(place)

    def level_of(self, place: Place) -> tuple[Floats, Floats] | None:
        """Return sigmas (3,) of white and of lasting noise of a place, m; None if it is as stated."""
        kind = self.kinds.get(place.kind)
        if kind is None or kind.varies or not kind.is_replaced:
            return None
        (h, v), (common_h, common_v) = kind.level.white, kind.level.lasting
        return place.factor * np.array([h, h, v]), place.factor * np.array([common_h, common_h, common_v])

    def describe(self) -> list[str]:
        """Return what noise was found, a sentence for each kind."""
        return [
            f"{key.partition(' ')[0]}: {kind.describe(key.partition(' ')[2])}"
            for key, kind in self.kinds.items()
            if kind.count and kind.is_replaced and not kind.varies
        ]

    def _admit(self) -> None:
        """Make samples of the places that the dead reckoning has reached."""
        while self._waiting:
            place = self._waiting[0]
            if self._track and place.t_ns > self._track.last_ns:
                return
            self._waiting.popleft()
            found = self._track.at(place.t_ns, place.lever) if self._track else (None, 0.0)
            if found is not None:
                position = place.position if place.has_height else place.position * [1.0, 1.0, np.nan]
                self.samples.append(Sample(place.t_ns, place.kind, place.factor, position, *found))

    def update(self, *, last: bool = False) -> bool:
        """Estimate again if a fifth more places (a window at most) have come; tell whether that was done."""
        self._admit()
        n, before = len(self.samples), self._estimated_at
        due = min(1.2 * before, before + WINDOW)
        if n < MIN_PLACES or n == before or (n < due and not last):
            return False
        self._estimated_at = n
        self.version += 1
        shapes = [self._lasting_shape(axis) for axis in (0, 1)]
        found = estimate_components(self._windows(), shapes)
        for name, kind in self.kinds.items():
            kind.level = _posterior(name, kind.prior, found, shapes)
            kind.knows_lasting = bool(self._track)
            kind.count = sum(each.kind == name for each in self.samples)
        return True

    def _lasting_shape(self, axis: int) -> dict[str, float]:
        """Return how much of the noise that lasts each kind has, relative to the one that has most.

        0 without a dead reckoning: nothing tells it from motion then, and it stays a part of the white noise.
        """
        reckons = bool(self._track)
        sizes = {name: kind.prior.lasting[axis] * reckons for name, kind in self.kinds.items()}
        largest = max(sizes.values()) or 1.0
        return {name: each / largest for name, each in sizes.items()}

    def _windows(self) -> list[list[Sample]]:
        """Return the windows of the newest places, and of every few of them where they come fast."""
        families, t_ns = [self.samples], [each.t_ns for each in self.samples]
        step = float(np.median(np.diff(t_ns))) / NS
        if 0 < step <= SPACING_S / 2:
            families.append(self.samples[:: round(SPACING_S / step)])
        windows: list[list[Sample]] = []
        for family in families:
            starts = np.arange(0, len(family), WINDOW)
            even = np.linspace(0, len(starts) - 1, min(len(starts), MAX_WINDOWS)).round().astype(int)
            windows += [family[i : i + WINDOW] for i in starts[np.unique(even)].tolist()]
        return windows


def _mean_of_logs(size: float, count: float, usual: float) -> float:
    """Return the mean of the logarithms of a sigma found by `count` numbers, and of the usual one."""
    return float(np.exp((count * np.log(size) + PRIOR_COUNT * np.log(usual)) / (count + PRIOR_COUNT)))


def _posterior(
    name: str, prior: Level, found: Sequence[Components], shapes: Sequence[Mapping[str, float]]
) -> Level:
    white, lasting = list(prior.white), list(prior.lasting)
    for axis, (components, shape) in enumerate(zip(found, shapes, strict=True)):
        count = components.counts.get(name, 0.0)
        if count >= MIN_PLACES:
            white[axis] = _mean_of_logs(components.white[name], count, prior.white[axis])
        if not any(shape.values()):
            lasting[axis] = prior.lasting[axis] * white[axis] / prior.white[axis]
        elif shape[name]:
            size, seconds = shape[name] * components.lasting, components.seconds
            lasting[axis] = _mean_of_logs(size, seconds / CORRELATION_S, prior.lasting[axis])
    return Level((max(white[0], MIN_STD_M), max(white[1], MIN_STD_M)), (lasting[0], lasting[1]))


@dataclass(frozen=True, eq=False)
class _Step:
    """End of a step: time, place, heading (rad) and way (m) by dead reckoning."""

    t_ns: int
    place: complex
    heading: float
    way: float


class _Track:
    """The path by dead reckoning in the plane, from where it began; false while there is none."""

    def __init__(self) -> None:
        self.steps: deque[_Step] = deque()

    def __bool__(self) -> bool:
        return bool(self.steps)

    @property
    def last_ns(self) -> int:
        """The time up to which it is known."""
        return self.steps[-1].t_ns

    def move(self, since_ns: int, t_ns: int, transform: Floats) -> None:
        """Take a step; a time without any is taken for a rest."""
        if not self.steps:
            self.steps.append(_Step(since_ns, 0j, 0.0, 0.0))
        last = self.steps[-1]
        if t_ns <= last.t_ns:
            return
        if since_ns > last.t_ns:
            self.steps.append(replace(last, t_ns=since_ns))
        moved = complex(transform[0, 3], transform[1, 3])
        turned = float(np.arctan2(transform[1, 0], transform[0, 0]))
        place = last.place + moved * np.exp(1j * last.heading)
        self.steps.append(_Step(t_ns, complex(place), last.heading + turned, last.way + abs(moved)))

    def at(self, t_ns: int, lever: Floats) -> tuple[complex, float] | None:
        """Return where a lever (3,) was at a time, and the way until then; None before the first step."""
        while len(self.steps) > 1 and self.steps[1].t_ns < t_ns:
            self.steps.popleft()
        a, b = self.steps[0], self.steps[min(1, len(self.steps) - 1)]
        if t_ns < a.t_ns or b is a:
            return None
        part = (t_ns - a.t_ns) / (b.t_ns - a.t_ns)
        heading = a.heading + part * (b.heading - a.heading)
        arm = complex(lever[0], lever[1]) * np.exp(1j * heading)
        return complex(a.place + part * (b.place - a.place) + arm), a.way + part * (b.way - a.way)
