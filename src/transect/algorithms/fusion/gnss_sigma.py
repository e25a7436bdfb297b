"""How uncertain a satellite fix is: by its own word, else by its type and its HDOP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.types import NavFix

from .position_noise import UNTYPED

USUAL_STD = {"rtk fixed": 0.02, "rtk float": 0.2, "ppp": 0.2, "differential": 0.7, "sbas": 1.0}
"""Horizontal sigma, m per axis, of fixes by type at an HDOP of 1."""
SINGLE_STD, HEIGHT_FACTOR = 2.5, 2.0
"""The same of any other fix, and how many times larger the sigma of a height is."""
NO_HDOP = 50.0
"""Receivers write 50, 99.9 and the like where they know none."""
AXES = "east", "north", "up"


@dataclass(frozen=True, eq=False)
class Deviation:
    """How uncertain a fix is.

    Attributes
    ----------
    std : (3,) array
        One sigma east, north, up, m.
    note : str
        A sentence on what of it was assumed; "" if nothing was.
    kind : str
        Fixes of the same kind are alike noisy, where they state no deviation; "" if they state one.
    factor : float
        By which a fix of that kind is noisier than at an HDOP of 1.
    """

    std: Floats
    note: str = ""
    kind: str = ""
    factor: float = 1.0


def deviation_of(fix: NavFix, assumed: float = 0.0) -> Deviation:
    """Return how uncertain a fix is.

    Parameters
    ----------
    assumed : float
        Horizontal sigma, m, of fixes that state none; 0 for what is usual for their type and HDOP.
    """
    told = np.full(3, np.nan) if fix.std is None else fix.std[[1, 0, 2]].astype(np.float64)
    told[~(told > 0)] = np.nan
    level = told[:2][np.isfinite(told[:2])]
    if len(level):
        return _complete(told, float(level.max()))
    horizontal = assumed or _usual(fix)
    std = np.array([horizontal, horizontal, HEIGHT_FACTOR * horizontal])
    if assumed or np.isfinite(told).any():
        return Deviation(np.where(np.isfinite(told), told, std), _describe(fix, assumed))
    return Deviation(std, _describe(fix, assumed), kind=fix.fix or UNTYPED, factor=_hdop(fix) or 1.0)


def _complete(told: Floats, level: float) -> Deviation:
    """Return what was told of some axes, and for the others what these let one expect."""
    missing = ~np.isfinite(told)
    if not missing.any():
        return Deviation(told)
    std = np.where(missing, [level, level, HEIGHT_FACTOR * level], told)
    axes = " and ".join(name for name, is_missing in zip(AXES, missing, strict=True) if is_missing)
    source = "that of the other horizontal axis" if missing[:2].any() else "twice the horizontal one"
    return Deviation(std, f"fix: the standard deviation {axes} is zero or NaN: {source} is assumed")


def _usual(fix: NavFix) -> float:
    return USUAL_STD.get(fix.fix or "", SINGLE_STD) * (_hdop(fix) or 1.0)


def _hdop(fix: NavFix) -> float | None:
    return fix.hdop if fix.hdop is not None and 0 < fix.hdop < NO_HDOP else None


def _describe(fix: NavFix, assumed: float) -> str:
    level = assumed or USUAL_STD.get(fix.fix or "", SINGLE_STD)
    kind = f" of type {fix.fix}" if fix.fix else ""
    times_hdop = ", times the HDOP" if not assumed and _hdop(fix) is not None else ""
    change = "by fix_std" if assumed else "fix_std sets another value"
    sizes = f"{level:g} m horizontally and {HEIGHT_FACTOR * level:g} m vertically{times_hdop}"
    return f"fix: no standard deviation is stated{kind}: {sizes} are assumed ({change})"
