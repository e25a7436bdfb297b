"""Standard deviation of a GNSS fix: as stated by the receiver, else typical of its type, times the HDOP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.types import TYPICAL_FIX_ERRORS, NavFix

VERTICAL_RATIO = TYPICAL_FIX_ERRORS["3d"].vertical_ratio
"""Ratio of the vertical to the horizontal sigma."""
MAX_HDOP = 50.0
"""Receivers write 50, 99.9 and the like if the HDOP is unknown."""
UNTYPED = "no type"
"""Noise class of fixes without a type."""
AXIS_NAMES = "east", "north", "up"


@dataclass(frozen=True, eq=False)
class FixSigma:
    """Standard deviation of a fix."""

    std: Floats  # (3,), east, north, up, m
    note: str = ""  # describes what was assumed; "" if nothing was
    noise_class: str = ""  # fixes of one class have the same noise at an HDOP of 1; "" if a sigma is stated
    factor: float = 1.0  # noise relative to that of the class (HDOP)


def sigma_of_fix(fix: NavFix, assumed: float = 0.0) -> FixSigma:
    """Return the standard deviation of a fix.

    Parameters
    ----------
    assumed : float
        Horizontal sigma, m, of fixes that state none; 0 for that typical of their type, times the HDOP.
    """
    stated = np.full(3, np.nan) if fix.std is None else fix.std[[1, 0, 2]].astype(np.float64)
    stated[~(stated > 0)] = np.nan
    horizontal_stated = stated[:2][np.isfinite(stated[:2])]
    if len(horizontal_stated):
        return _complete(stated, float(horizontal_stated.max()))
    horizontal = assumed or _typical_std(fix) * (_hdop(fix) or 1.0)
    std = np.array([horizontal, horizontal, VERTICAL_RATIO * horizontal])
    if assumed or np.isfinite(stated).any():
        return FixSigma(np.where(np.isfinite(stated), stated, std), _describe(fix, assumed))
    return FixSigma(std, _describe(fix, assumed), noise_class=fix.fix or UNTYPED, factor=_hdop(fix) or 1.0)


def _complete(stated: Floats, horizontal: float) -> FixSigma:
    """Return the stated sigmas, the missing ones derived from the others."""
    missing = ~np.isfinite(stated)
    if not missing.any():
        return FixSigma(stated)
    std = np.where(missing, [horizontal, horizontal, VERTICAL_RATIO * horizontal], stated)
    axes = " and ".join(name for name, is_missing in zip(AXIS_NAMES, missing, strict=True) if is_missing)
    source = "that of the other horizontal axis" if missing[:2].any() else "twice the horizontal one"
    return FixSigma(std, f"fix: the standard deviation {axes} is zero or NaN: {source} is assumed")


def _typical_std(fix: NavFix) -> float:
    return TYPICAL_FIX_ERRORS.get(fix.fix or "", TYPICAL_FIX_ERRORS["3d"]).horizontal_std


def _hdop(fix: NavFix) -> float | None:
    return fix.hdop if fix.hdop is not None and 0 < fix.hdop < MAX_HDOP else None


def _describe(fix: NavFix, assumed: float) -> str:
    horizontal = assumed or _typical_std(fix)
    fix_type = f" of type {fix.fix}" if fix.fix else ""
    times_hdop = ", times the HDOP" if not assumed and _hdop(fix) is not None else ""
    change = "by fix_std" if assumed else "fix_std sets another value"
    vertical = VERTICAL_RATIO * horizontal
    sizes = f"{horizontal:g} m horizontally and {vertical:g} m vertically{times_hdop}"
    return f"fix: no standard deviation is stated{fix_type}: {sizes} are assumed ({change})"
