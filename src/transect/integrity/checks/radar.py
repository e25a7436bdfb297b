"""C06: have the targets of a radar lost strength, or their ranges precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.robust import SIGMA_PER_MAD
from transect.integrity.baselines import Baseline
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import RadarRange, RadarSpectrum


@dataclass(frozen=True)
class RadarSettings:
    """Numbers of the targets of a radar."""

    bearing_width_rad: float = float(np.radians(2.0))
    min_ranges: int = 4  # Ranges at a bearing that determine their scatter.
    max_target_sigma_m: float = 1.0  # Sigma of the ranges at a bearing with one target.
    min_windows: int = 8  # Windows that determine the baseline of a bearing.
    min_targets: int = 10  # Bearings that determine the scatter: one gives it only to a third.


class RadarStrength(Check, id="C06", group="content", min_samples=20, version=4):
    """Strength and range scatter of a radar's targets against the first windows.

    ``loss = usual - median(peak)`` in dB: for a spectrum the peak above the median of its bins (signal to
    noise), for a range its reflectivity. ``scatter``: sigma of the ranges in the window over the baseline
    at that bearing, median over bearings that usually have a target (sigma below 1 m). While the robot
    moves the targets change, and the check is UNKNOWN.

    Motive: SDI, 5.1: in dust the radar shows a "slight increase of the level of noise ... and lower
    reflectivities". It stays usable, and this check must say so.
    """

    settings = RadarSettings()

    loss = Limit(3.0, 10.0, "NOISE", "dB", "loss of target strength")
    scatter = Limit(1.5, 3.0, "NOISE", "", "times the usual scatter of ranges at a bearing")

    learns_baseline = True

    def reset(self) -> None:
        """Start without baselines."""
        self._strength = Baseline()
        self._scatter: dict[int, Baseline] = {}
        self._ratio = np.inf

    def evaluate(
        self, radar: Window[RadarSpectrum | RadarRange], moving: Sequence[Window[Moving]] = ()
    ) -> Finding | Unknown:
        """Compare strength and scatter with their baselines."""
        if is_moving(moving):
            self.reset()
            return Unknown("MOVING", "the targets change while the robot moves", len(radar))
        spectra = issubclass(radar.stream.type, RadarSpectrum)
        strength = float(np.median(_above_noise(radar) if spectra else radar.column("reflectivity")))
        spread = {} if spectra else _find_spread(radar.column("angle"), radar.column("range"), self.settings)
        usual = self._strength.value
        ratio = self._compare(spread)
        if not (usual - strength > self.loss.warn or ratio > self.scatter.warn):
            self._learn(strength, spread)
        if np.isnan(usual):
            return Unknown("LEARNING", n=len(radar))
        steady = [each for each in spread.values() if each < self.settings.max_target_sigma_m]
        spread_m = float(np.median(steady)) if steady else np.nan
        found = {"strength_dB": strength, "usual_dB": usual, "scatter_m": spread_m}
        # A passing object is gone in the next window.
        scatter, self._ratio = min(ratio, self._ratio), ratio
        return Finding({"loss": usual - strength, "scatter": scatter}, len(radar), found)

    def _learn(self, strength: float, spread: Mapping[int, float]) -> None:
        self._strength.learn(strength)
        for bearing, each in spread.items():
            self._scatter.setdefault(bearing, Baseline(min_windows=self.settings.min_windows)).learn(each)

    def _compare(self, spread: Mapping[int, float]) -> float:
        """Return the median ratio of spreads to baselines, NaN with too few targets."""
        usual = {bearing: self._scatter[bearing].value for bearing in spread if bearing in self._scatter}
        targets = [
            bearing for bearing, each in usual.items() if 0.0 < each < self.settings.max_target_sigma_m
        ]
        if len(targets) < self.settings.min_targets:
            return np.nan
        return float(np.median([spread[bearing] / usual[bearing] for bearing in targets]))


def _above_noise(radar: Window[RadarSpectrum | RadarRange]) -> Floats:
    """Return the strongest bin of each spectrum (n,) above the median of all bins, dB."""
    bins = radar.array("reflectivity")
    return np.asarray(bins.max(axis=1) - np.median(bins, axis=1), np.float64)


def _find_spread(angle: Floats, ranges: Floats, settings: RadarSettings) -> dict[int, float]:
    """Return the sigma of the ranges by bearing, m, for bearings with enough ranges."""
    bearings = np.rint(angle / settings.bearing_width_rad).astype(np.int64)
    order = np.argsort(bearings, kind="stable")
    starts = np.flatnonzero(np.diff(bearings[order], prepend=bearings[order[:1]] - 1))
    groups = np.split(ranges[order], starts[1:])
    return {
        bearing: SIGMA_PER_MAD * float(np.median(np.abs(each - np.median(each))))
        for bearing, each in zip(bearings[order[starts]].tolist(), groups, strict=True)
        if len(each) >= settings.min_ranges
    }
