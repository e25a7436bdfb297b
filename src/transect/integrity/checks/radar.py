"""C06: does a radar see as well as usual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.robust import NORMAL
from transect.integrity.baselines import Usual
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import RadarRange, RadarSpectrum

BEARING = np.radians(2.0)
"""Width of the bearings in which ranges are compared, rad."""
LEAST_HITS = 4
"""Ranges at a bearing that tell how much they scatter."""
STEADY = 1.0
"""Deviation in metres up to which there is a target at a bearing, and not now this, now that."""
LEARNED = 8
"""Windows after which the deviation at a bearing is known."""
LEAST_TARGETS = 10
"""Bearings with a target that tell how much ranges scatter: of one it is known to a third."""


class RadarStrength(Check, id="C06", group="content", least=20, version=4):
    """How strong and how steady a radar's targets are, against its first windows.

    ``loss = usual - median(peak)`` in dB: of a spectrum the peak above the median of its bins (signal to
    noise), of a range its reflectivity. ``scatter``: the deviation of ranges within the window over the usual
    one at that bearing, the median over bearings that usually have a target (deviation below 1 m). While the
    robot moves targets are others, some of them slanted or far: then it is UNKNOWN.

    Motive: Document 004, 5.1: in dust the radar shows a "slight increase of the level of noise ... and lower
    reflectivities". It stays usable, and this check must say so.
    """

    loss = Limit(3.0, 10.0, "NOISE", "dB", "by how much targets are weaker than usual")
    scatter = Limit(1.5, 3.0, "NOISE", "", "deviation of ranges at a bearing over the usual one")

    learns_baseline = True

    def reset(self) -> None:
        """Nothing is usual yet."""
        self._strength = Usual()
        self._scatter: dict[int, Usual] = {}
        self._ratio = np.inf

    def look(
        self, radar: Window[RadarSpectrum | RadarRange], moving: Sequence[Window[Moving]] = ()
    ) -> Finding | Unknown:
        """Compare strength and scatter with the usual ones."""
        if is_moving(moving):
            self.reset()
            return Unknown("MOVING", "other targets are there than before", len(radar))
        spectra = issubclass(radar.stream.type, RadarSpectrum)
        strength = float(np.median(_above_noise(radar) if spectra else radar.column("reflectivity")))
        spread = {} if spectra else _find_spread(radar.column("angle"), radar.column("range"))
        usual = self._strength.value
        ratio = self._compare(spread)
        if not (usual - strength > self.loss.warn or ratio > self.scatter.warn):
            self._learn(strength, spread)
        if np.isnan(usual):
            return Unknown("LEARNING", n=len(radar))
        steady = [each for each in spread.values() if each < STEADY]
        spread_m = float(np.median(steady)) if steady else np.nan
        found = {"strength_dB": strength, "usual_dB": usual, "scatter_m": spread_m}
        # What passes by is gone in the next window.
        scatter, self._ratio = min(ratio, self._ratio), ratio
        return Finding({"loss": usual - strength, "scatter": scatter}, len(radar), found)

    def _learn(self, strength: float, spread: Mapping[int, float]) -> None:
        self._strength.learn(strength)
        for bearing, each in spread.items():
            self._scatter.setdefault(bearing, Usual(least=LEARNED)).learn(each)

    def _compare(self, spread: Mapping[int, float]) -> float:
        """Return the median of spreads over the usual ones, NaN if few bearings usually have a target."""
        usual = {bearing: self._scatter[bearing].value for bearing in spread if bearing in self._scatter}
        targets = [bearing for bearing, each in usual.items() if 0.0 < each < STEADY]
        if len(targets) < LEAST_TARGETS:
            return np.nan
        return float(np.median([spread[bearing] / usual[bearing] for bearing in targets]))


def _above_noise(radar: Window[RadarSpectrum | RadarRange]) -> Floats:
    """Return by how many dB the strongest bin of each spectrum (n,) is above the median of all."""
    bins = radar.array("reflectivity")
    return np.asarray(bins.max(axis=1) - np.median(bins, axis=1), np.float64)


def _find_spread(angle: Floats, ranges: Floats) -> dict[int, float]:
    """Return the deviation of ranges by bearing, m, for bearings that were seen often enough."""
    place = np.rint(angle / BEARING).astype(np.int64)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=place[order[:1]] - 1))
    groups = np.split(ranges[order], starts[1:])
    return {
        bearing: NORMAL * float(np.median(np.abs(each - np.median(each))))
        for bearing, each in zip(place[order[starts]].tolist(), groups, strict=True)
        if len(each) >= LEAST_HITS
    }
