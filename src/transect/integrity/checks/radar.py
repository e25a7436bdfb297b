"""C06: does a radar see as well as usual."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.robust import NORMAL
from transect.integrity.learning import Usual
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import RadarRange, RadarSpectrum

BEARING = np.radians(2.0)
"""Width of the bearings in which ranges are compared, rad."""
LEAST_HITS = 4
"""Ranges at a bearing that tell how much they scatter."""
STEADY = 1.0
"""Deviation in metres up to which there is a target at a bearing, and not now this, now that."""


class RadarStrength(Check, id="C06", group="content", least=20, version=2):
    """How strong and how steady a radar's targets are, against its first windows.

    ``loss = usual - median(peak)`` in dB: of a spectrum the peak above the median of its bins (signal to
    noise), of a range its reflectivity. ``scatter``: the median over bearings with a target (deviation below
    1 m) of the deviation of ranges within the window, over the usual one.

    Motive: Document 004, 5.1: in dust the radar shows a "slight increase of the level of noise ... and lower
    reflectivities". It stays usable, and this check must say so.
    """

    loss = Limit(3.0, 10.0, "NOISE", "dB", "by how much targets are weaker than usual")
    scatter = Limit(1.5, 3.0, "NOISE", "", "deviation of ranges at a bearing over the usual one")

    def reset(self) -> None:
        """Nothing is usual yet."""
        self._strength, self._scatter = Usual(), Usual()

    def look(self, radar: Window[RadarSpectrum | RadarRange]) -> Finding | Unknown:
        """Compare strength and scatter with the usual ones."""
        spectra = issubclass(radar.stream.type, RadarSpectrum)
        strength = float(np.median(_above_noise(radar) if spectra else radar.column("reflectivity")))
        scatter = np.nan if spectra else _scatter(radar.column("angle"), radar.column("range"))
        usual, steady = self._strength.value, self._scatter.value
        self._strength.learn(strength)
        self._scatter.learn(scatter)
        if np.isnan(usual):
            return Unknown("LEARNING", n=len(radar))
        found = {"strength_dB": strength, "usual_dB": usual, "scatter_m": scatter}
        ratio = scatter / steady if steady > 0 else np.nan
        return Finding({"loss": usual - strength, "scatter": ratio}, len(radar), found)


def _above_noise(radar: Window[RadarSpectrum | RadarRange]) -> Floats:
    """Return by how many dB the strongest bin of each spectrum (n,) is above the median of all."""
    bins = radar.array("reflectivity")
    return np.asarray(bins.max(axis=1) - np.median(bins, axis=1), np.float64)


def _scatter(angle: Floats, ranges: Floats) -> float:
    """Return the usual deviation of ranges at a bearing, m; NaN if no bearing was seen often enough."""
    place = np.rint(angle / BEARING).astype(np.int64)
    order = np.argsort(place, kind="stable")
    groups = np.split(ranges[order], np.flatnonzero(np.diff(place[order])) + 1)
    spread = [
        NORMAL * np.median(np.abs(each - np.median(each))) for each in groups if len(each) >= LEAST_HITS
    ]
    targets = [each for each in spread if each < STEADY]
    return float(np.median(targets)) if targets else np.nan
