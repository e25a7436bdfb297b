"""Noise of measured positions that state none, or all state the same, estimated as they arrive.

The noise of each class of positions is estimated from all positions until now and the dead reckoning (see
`gnss_noise`), so that a filter is causal. The typical or stated noise is a weak prior.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

from .events import MeasuredPosition, OdometryStep
from .gnss_noise import GNSS_NOISE, FixSample, GnssNoiseComponents, estimate_components
from .gnss_sigma import UNTYPED


@dataclass(frozen=True)
class PositionNoiseSettings:
    """Windows and prior of the estimate."""

    window_size: int = 30  # fixes
    # Spacing of the fixes in a second set of windows, if they arrive faster: within seconds correlated noise
    # is constant, and is not observable.
    spacing_s: float = 1.0
    max_windows: int = 12  # of each set; longer recordings are sampled uniformly
    correlated_ratio: float = 0.75  # part of the variance of a fix that is not RTK which is correlated
    prior_count: float = 2.0  # degrees of freedom of the prior
    wrong_ratio: float = 2.0  # of the estimated to the stated sigma, from which a stated constant is wrong
    update_ratio: float = 1.2  # growth of the number of fixes until the next estimate


POSITION_NOISE = PositionNoiseSettings()


@dataclass(frozen=True)
class NoiseLevel:
    """Sigmas in m at a factor of 1: white and correlated noise, each horizontal and vertical."""

    white: tuple[float, float]
    correlated: tuple[float, float]

    @property
    def total(self) -> Floats:
        """Return the horizontal and vertical sigma (2,)."""
        return np.hypot(self.white, self.correlated)


@dataclass(eq=False)
class NoiseClass:
    """Positions with the same noise."""

    nominal: tuple[float, float]  # horizontal and vertical sigma at a factor of 1, m: stated or typical
    white: bool  # whether none of it is correlated
    stated: bool  # whether every position states this sigma
    level: NoiseLevel  # current estimate
    count: int = 0  # positions used in the estimate; 0 while `level` is nominal
    varies: bool = False  # whether the stated sigma has changed: then it is used as stated
    has_correlated: bool = False  # whether correlated noise was estimated: this needs dead reckoning

    @property
    def prior(self) -> NoiseLevel:
        """Return the prior of white and correlated noise."""
        ratio = 0.0 if self.white else POSITION_NOISE.correlated_ratio
        (h, v), a, b = self.nominal, float(np.sqrt(1 - ratio)), float(np.sqrt(ratio))
        return NoiseLevel((a * h, a * v), (b * h, b * v))

    @property
    def is_replaced(self) -> bool:
        """Whether the estimate replaces the nominal sigma: none is stated, or a wrong constant."""
        if not self.stated or not self.count:
            return not self.stated
        nominal = np.maximum(self.nominal, GNSS_NOISE.min_std_m)
        lower = self.level.total if self.has_correlated else np.array(self.level.white)
        ratio = POSITION_NOISE.wrong_ratio
        return bool((lower > ratio * nominal).any() or (self.level.total < nominal / ratio).any())

    def describe(self, name: str) -> str:
        """Return a phrase on the estimated noise of the class `name`."""
        (h, v), correlated = self.level.total, self.level.correlated[0]
        why = f"the {self.nominal[0]:.2g} m that each states is wrong" if self.stated else "none is stated"
        fix_type = "" if self.stated or name in ("", UNTYPED) else f" of type {name}"
        part = (
            f", {correlated:.2g} m of it correlated over about {GNSS_NOISE.correlation_time_s:g} s"
            if correlated > h / 4
            else ""
        )
        return (
            f"standard deviation{fix_type} {h:.2g} m horizontally and {v:.2g} m vertically, estimated from "
            f"{self.count} of them ({why}){part}"
        )


@dataclass(eq=False)
class PositionNoise:
    """Estimates the noise of measured positions, class by class."""

    classes: dict[str, NoiseClass] = field(default_factory=dict[str, NoiseClass])
    samples: list[FixSample] = field(default_factory=list[FixSample])
    version: int = 0  # number of estimates
    settings: PositionNoiseSettings = POSITION_NOISE
    _estimated_count: int = 0
    _path: _ReckonedPath = field(default_factory=lambda: _ReckonedPath())
    _waiting: deque[MeasuredPosition] = field(default_factory=deque[MeasuredPosition])

    def assign_class(
        self, sensor: str, name: str, nominal: tuple[float, float], *, white: bool, stated: bool
    ) -> str:
        """Return the key of the class of a position; "" if its stated sigma varies and is used."""
        key = f"{sensor} stated {white}" if stated else f"{sensor} {name}"
        known = self.classes.get(key)
        if known is None:
            known = self.classes[key] = NoiseClass(nominal, white, stated, NoiseLevel(nominal, (0.0, 0.0)))
            known.level = known.prior
        if known.stated and not np.allclose(nominal, known.nominal, rtol=1e-6):
            known.varies = True
        return "" if known.varies else key

    def add_step(self, step: OdometryStep) -> None:
        """Add a step of planar dead reckoning."""
        if step.sensor != "motion":
            self._path.add(step)

    def add(self, position: MeasuredPosition) -> None:
        """Add a position, to be used when dead reckoning has arrived up to its time."""
        if position.noise_class and position.trust == 1.0:
            self._waiting.append(position)

    def level_of(self, position: MeasuredPosition) -> tuple[Floats, Floats] | None:
        """Return sigmas (3,) of white and of correlated noise of a position, m; None if they are stated."""
        known = self.classes.get(position.noise_class)
        if known is None or known.varies or not known.is_replaced:
            return None
        (h, v), (correlated_h, correlated_v) = known.level.white, known.level.correlated
        factor = position.noise_factor
        return factor * np.array([h, h, v]), factor * np.array([correlated_h, correlated_h, correlated_v])

    def describe(self) -> list[str]:
        """Return a sentence on the estimated noise of each class."""
        return [
            f"{key.partition(' ')[0]}: {known.describe(key.partition(' ')[2])}"
            for key, known in self.classes.items()
            if known.count and known.is_replaced and not known.varies
        ]

    def update(self, *, last: bool = False) -> bool:
        """Estimate again if the number of positions has grown enough; return whether that was done."""
        self._make_samples()
        n, before = len(self.samples), self._estimated_count
        due = min(self.settings.update_ratio * before, before + self.settings.window_size)
        if n < GNSS_NOISE.min_fixes or n == before or (n < due and not last):
            return False
        self._estimated_count = n
        self.version += 1
        correlated = [self._relative_correlated(axis) for axis in (0, 1)]
        found = estimate_components(self._windows(), correlated)
        for name, known in self.classes.items():
            known.level = _posterior(name, known.prior, found, correlated, self.settings)
            known.has_correlated = bool(self._path)
            known.count = sum(each.noise_class == name for each in self.samples)
        return True

    def _make_samples(self) -> None:
        """Make samples of the positions up to the end of dead reckoning."""
        while self._waiting:
            place = self._waiting[0]
            if self._path and place.t_ns > self._path.last_ns:
                return
            self._waiting.popleft()
            reckoned = self._path.at(place.t_ns, place.lever_arm) if self._path else (None, 0.0)
            if reckoned is not None:
                position = place.position if place.has_height else place.position * [1.0, 1.0, np.nan]
                self.samples.append(
                    FixSample(place.t_ns, place.noise_class, place.noise_factor, position, *reckoned)
                )

    def _relative_correlated(self, axis: int) -> dict[str, float]:
        """Return the correlated noise of each class, relative to that of the class with the largest.

        It is 0 without dead reckoning: then it cannot be separated from motion, and is part of white noise.
        """
        has_path = bool(self._path)
        sizes = {name: known.prior.correlated[axis] * has_path for name, known in self.classes.items()}
        largest = max(sizes.values()) or 1.0
        return {name: each / largest for name, each in sizes.items()}

    def _windows(self) -> list[list[FixSample]]:
        """Return windows of consecutive positions, and of positions `spacing_s` apart if they are faster."""
        sets, t_ns, size = [self.samples], [each.t_ns for each in self.samples], self.settings.window_size
        period = float(np.median(np.diff(t_ns))) / NS
        if 0 < period <= self.settings.spacing_s / 2:
            sets.append(self.samples[:: round(self.settings.spacing_s / period)])
        windows: list[list[FixSample]] = []
        for samples in sets:
            starts = np.arange(0, len(samples), size)
            count = min(len(starts), self.settings.max_windows)
            chosen = np.linspace(0, len(starts) - 1, count).round().astype(int)
            windows += [samples[i : i + size] for i in starts[np.unique(chosen)].tolist()]
        return windows


def _log_mean(sigma: float, count: float, prior: float, prior_count: float) -> float:
    """Return the geometric mean of an estimated sigma with `count` degrees of freedom and its prior."""
    return float(np.exp((count * np.log(sigma) + prior_count * np.log(prior)) / (count + prior_count)))


def _posterior(
    name: str,
    prior: NoiseLevel,
    found: Sequence[GnssNoiseComponents],
    correlated_scales: Sequence[Mapping[str, float]],
    settings: PositionNoiseSettings,
) -> NoiseLevel:
    white, correlated = list(prior.white), list(prior.correlated)
    for axis, (components, scales) in enumerate(zip(found, correlated_scales, strict=True)):
        count = components.counts.get(name, 0.0)
        if count >= GNSS_NOISE.min_fixes:
            white[axis] = _log_mean(components.white[name], count, prior.white[axis], settings.prior_count)
        if not any(scales.values()):
            correlated[axis] = prior.correlated[axis] * white[axis] / prior.white[axis]
        elif scales[name]:
            size = scales[name] * components.correlated
            count = components.seconds / GNSS_NOISE.correlation_time_s
            correlated[axis] = _log_mean(size, count, prior.correlated[axis], settings.prior_count)
    floor = GNSS_NOISE.min_std_m
    return NoiseLevel((max(white[0], floor), max(white[1], floor)), (correlated[0], correlated[1]))


@dataclass(frozen=True, eq=False)
class _PathNode:
    """End of a step of planar dead reckoning."""

    t_ns: int
    position: complex  # m
    heading: float  # rad
    distance: float  # m driven until then


class _ReckonedPath:
    """Path by planar dead reckoning, from the last requested time on; false while it is empty."""

    def __init__(self) -> None:
        self._nodes: deque[_PathNode] = deque()

    def __bool__(self) -> bool:
        return bool(self._nodes)

    @property
    def last_ns(self) -> int:
        """End of the path."""
        return self._nodes[-1].t_ns

    def add(self, step: OdometryStep) -> None:
        """Add a step. The robot is assumed to stand in gaps."""
        if not self._nodes:
            self._nodes.append(_PathNode(step.start_ns, 0j, 0.0, 0.0))
        last = self._nodes[-1]
        if step.t_ns <= last.t_ns:
            return
        if step.start_ns > last.t_ns:
            self._nodes.append(replace(last, t_ns=step.start_ns))
        T = step.transform
        translation = complex(T[0, 3], T[1, 3])
        turn = float(np.arctan2(T[1, 0], T[0, 0]))
        position = complex(last.position + translation * np.exp(1j * last.heading))
        self._nodes.append(
            _PathNode(step.t_ns, position, last.heading + turn, last.distance + abs(translation))
        )

    def at(self, t_ns: int, lever_arm: Floats) -> tuple[complex, float] | None:
        """Return a lever arm's (3,) position and the distance driven at a time; None before the start."""
        while len(self._nodes) > 1 and self._nodes[1].t_ns < t_ns:
            self._nodes.popleft()
        a, b = self._nodes[0], self._nodes[min(1, len(self._nodes) - 1)]
        if t_ns < a.t_ns or b is a:
            return None
        fraction = (t_ns - a.t_ns) / (b.t_ns - a.t_ns)
        heading = a.heading + fraction * (b.heading - a.heading)
        arm = complex(lever_arm[0], lever_arm[1]) * np.exp(1j * heading)
        position = complex(a.position + fraction * (b.position - a.position) + arm)
        return position, a.distance + fraction * (b.distance - a.distance)
