"""Satellite navigation: fixes of an antenna, with the errors that their type has.

The error of an RTK fix is white. That of a single fix wanders: it is nearly the same from second to second
and another one minutes later, so that averaging does not help.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.errors import UsageError, did_you_mean
from transect.geometry import geodesy
from transect.types import FIX_TYPES

from .motion import Motion
from .randomness import generator


@dataclass(frozen=True)
class FixError:
    """How far fixes of one type are off."""

    std: tuple[float, float, float]  # north, east, down, m
    # time in which the error changes (that of a first-order Gauss-Markov process); 0 is white
    seconds: float = 0.0
    satellites: int = 0  # about how many are used
    hdop: float = float("nan")


ERRORS: Mapping[str, FixError] = {
    "none": FixError((np.nan, np.nan, np.nan)),
    "2d": FixError((4.0, 4.0, 20.0), 60.0, 3, 4.0),
    "3d": FixError((1.2, 1.2, 2.0), 60.0, 9, 1.1),
    "sbas": FixError((0.7, 0.7, 1.2), 60.0, 10, 0.9),
    "differential": FixError((0.4, 0.4, 0.7), 60.0, 11, 0.9),
    "ppp": FixError((0.1, 0.1, 0.2), 120.0, 12, 0.8),
    "rtk float": FixError((0.15, 0.15, 0.30), 20.0, 12, 0.8),
    "rtk fixed": FixError((0.008, 0.008, 0.015), 0.0, 14, 0.7),
}
"""By type. That of RTK is the Spatial Dual's (document 000, Table 1); the others are usual ones, invented."""


@dataclass(frozen=True)
class Coverage:
    """Which fix a receiver has, when."""

    usual: str = "rtk fixed"  # one of `FIX_TYPES`
    except_in: Sequence[tuple[float, float, str]] = ()  # seconds after the first fix; later ones win
    errors: Mapping[str, FixError] = field(default_factory=lambda: ERRORS)

    def at(self, t_ns: Ints) -> Ints:
        """Index (n,) into `FIX_TYPES` at times (n,)."""
        elapsed = (t_ns - t_ns[:1]) * 1e-9
        kinds = np.full(len(t_ns), _index(self.usual))
        for begin, end, fix in self.except_in:
            kinds[(elapsed >= begin) & (elapsed < end)] = _index(fix)
        return kinds


def _index(fix: str) -> int:
    if fix not in FIX_TYPES:
        raise UsageError(f"there is no fix {fix!r}", hint=did_you_mean(fix, FIX_TYPES))
    return FIX_TYPES.index(fix)


def fixes(
    antenna: Motion, origin: ArrayLike, coverage: Coverage, seed: int, name: str = "gnss"
) -> dict[str, Any]:
    """Return the columns of a NavFix stream: lat, lon, alt, std_*, fix, satellites, hdop.

    Parameters
    ----------
    antenna : Motion
        Of the antenna (see `inertial.mount`) at the times of the fixes, evenly spaced.
    origin : (3,)
        Geodetic, of the world: rad, rad, m.
    seed, name
        Of the random numbers.

    Returns
    -------
    dict
        Where there is no fix, position and std are NaN. `std_*` is the deviation that the errors truly have.
    """
    kinds = coverage.at(antenna.t_ns)
    present = {FIX_TYPES[k]: kinds == k for k in np.unique(kinds).tolist()}
    std = np.empty((len(kinds), 3))
    error, satellites, hdop = np.empty_like(std), np.empty(len(kinds)), np.empty(len(kinds))
    wobble = np.rint(gauss_markov(generator(seed, name, "satellites"), antenna.t_ns, 1, 30.0)[:, 0])
    for fix, rows in present.items():
        kind, rng = coverage.errors[fix], generator(seed, name, "position", fix)
        std[rows] = kind.std
        error[rows] = (gauss_markov(rng, antenna.t_ns, 3, kind.seconds) * kind.std)[rows]
        satellites[rows] = np.maximum(kind.satellites + wobble[rows], 0) if kind.satellites else 0
        hdop[rows] = kind.hdop
    enu = geodesy.change_axes(error, "NED", "ENU")
    lat, lon, alt = geodesy.geodetic_from_local(antenna.position + enu, origin).T
    position = {"lat": lat, "lon": lon, "alt": alt}
    deviation = dict(zip(("std_north", "std_east", "std_down"), std.T, strict=True))
    names = [FIX_TYPES[k] for k in kinds.tolist()]
    return position | deviation | {"fix": names, "satellites": satellites, "hdop": hdop}


def gauss_markov(rng: np.random.Generator, t_ns: Ints, columns: int, seconds: float) -> Floats:
    """Noise (n, columns) of deviation 1 at evenly spaced times; correlated over `seconds`, white if 0."""
    white = rng.standard_normal((len(t_ns), columns))
    if not seconds or len(t_ns) < 2:
        return white
    kept = math.exp(-float(t_ns[1] - t_ns[0]) * 1e-9 / seconds)
    # The first sample has the deviation of the process already; the others add what each step forgets.
    white[1:] *= math.sqrt(1 - kept**2)
    walks = [list(accumulate(each, lambda before, new: kept * before + new)) for each in white.T.tolist()]
    return np.array(walks).T
