"""Soil mechanics with the arm (SIS 2.6.2.3): what an indentation says of the ground.

The scoop is pressed down by a guarded move until contact is made, and further. Depth is the tool's z in the
IDA frame, which points down; force is what the tool presses with, positive into the ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import StreamError
from transect.geometry import robust
from transect.geometry.array_checks import floats, same_length
from transect.recording import Recording

from .science import devices

RIGID_TOOLS = (0, 1, 2)
"""Blade 1, Blade 2 and Scoop (SIS Table 14): what can be pressed into the ground."""
CONTACT_SHARE = 0.05
"""Share of the largest force at which contact begins, unless a force is given."""
FIT_SHARES = (0.2, 0.8)
"""Shares of the peak force between which a line is fitted: clear of the toe of the curve, and of the backlash
and creep at its peak."""
MIN_PEAK_DEPTH = 0.5
"""Part of a press's depth at which the force is largest, at least: soil resists more the deeper a tool is.
The current of a starting motor is largest at once, and falls while the tool moves on, if it does."""
MIN_DEPTH_M = 5e-4
"""The arm's joints do not tell less than half a millimetre."""
FEWEST_ROWS = 3
MOST_FITTED = 1000
"""The fit takes the slopes of all pairs, so longer branches are thinned."""


@dataclass(frozen=True, eq=False)
class Branch:
    """Force over depth while pressing, or while letting go."""

    # depth, force: (k,), m, N; in the order recorded
    depth: Floats
    force: Floats
    stiffness: float  # slope of the line fitted to it, N/m; NaN where too few rows lie between `FIT_SHARES`
    zero_depth: float  # where that line has no force, m

    @property
    def work(self) -> float:
        """Work that the tool does on the ground, J; negative where the ground gives it back."""
        return float(np.trapezoid(self.force, self.depth))


@dataclass(frozen=True, eq=False)
class Indentation:
    """One press and its release."""

    # start, peak, stop: rows: the first in contact, that of the largest force, and the first free again
    start: int
    peak: int
    stop: int
    contact_depth: float  # depth at which the force passes the contact force, m
    depth: float  # how far below `contact_depth` the tool came, m
    force: float  # largest force, N
    loading: Branch
    unloading: Branch

    @property
    def dissipated(self) -> float:
        """Work that stayed in the ground, J."""
        return self.loading.work + self.unloading.work


def indentations(
    depth: ArrayLike, force: ArrayLike, contact_force: float | None = None, free_force: float = 0.0
) -> tuple[Indentation, ...]:
    """Find the presses in a record of depth and force.

    Parameters
    ----------
    depth : (n,)
        Of the tool, m, down; rows without a number are left out.
    force : (n,)
        Which the tool exerts, N, positive into the ground.
    contact_force : float, optional
        Force above which the tool is in contact, N; default `CONTACT_SHARE` of the largest.
    free_force : float
        What the force reads in free air, N; it is taken off. The force model has an offset of newtons.

    Returns
    -------
    tuple of Indentation
        Those of at least three rows in which the force grows with the depth, in the order recorded. Forces
        come from motor currents, so that a motor that starts shows one, too: that is no press.
    """
    z, f = floats("depth", depth, ("n",)), floats("force", force, ("n",)) - free_force
    same_length(depth=z, force=f)
    rows = np.flatnonzero(np.isfinite(z) & np.isfinite(f))
    z, f = z[rows], f[rows]
    least = CONTACT_SHARE * float(f.max(initial=0.0)) if contact_force is None else contact_force
    starts, stops = robust.runs(f > least)
    found = [
        _indentation(z, f, rows, least, int(start), int(stop))
        for start, stop in zip(starts, stops, strict=True)
        if stop - start >= FEWEST_ROWS
    ]
    return tuple(each for each in found if _is_press(each))


def _is_press(found: Indentation) -> bool:
    """Tell whether the tool went into the ground until the force was largest."""
    into = float(found.loading.depth[-1]) - found.contact_depth
    return into > MIN_DEPTH_M and into >= MIN_PEAK_DEPTH * found.depth


def _indentation(z: Floats, f: Floats, rows: np.ndarray, least: float, start: int, stop: int) -> Indentation:
    peak = start + int(f[start:stop].argmax())
    touch = _crossing(z, f, start, least)
    before, after = max(start - 1, 0), min(stop + 1, len(z))
    return Indentation(
        start=int(rows[start]),
        peak=int(rows[peak]),
        stop=int(rows[stop]) if stop < len(rows) else int(rows[-1]) + 1,
        contact_depth=touch,
        depth=float(z[start:stop].max() - touch),
        force=float(f[peak]),
        loading=_branch(z[before : peak + 1], f[before : peak + 1]),
        unloading=_branch(z[peak:after], f[peak:after]),
    )


def _crossing(z: Floats, f: Floats, row: int, level: float) -> float:
    """Depth at which the force passes `level` between `row` and the one before it."""
    if row == 0:
        return float(z[0])
    part = (level - f[row - 1]) / (f[row] - f[row - 1])
    return float(z[row - 1] + part * (z[row] - z[row - 1]))


def _branch(depth: Floats, force: Floats) -> Branch:
    slope, zero = _line(depth, force)
    return Branch(depth, force, slope, zero)


def _line(depth: Floats, force: Floats) -> tuple[float, float]:
    """Theil and Sen's slope, which withstands 29 % of wild rows, and where the line crosses zero force."""
    from scipy.stats import theilslopes

    low, high = (share * force.max() for share in FIT_SHARES)
    inside = np.flatnonzero((force >= low) & (force <= high))
    inside = inside[:: -(-len(inside) // MOST_FITTED) or 1]
    if len(inside) < 2 or np.ptp(depth[inside]) == 0.0:
        return float("nan"), float("nan")
    fit: Any = theilslopes(force[inside], depth[inside])
    slope, at_zero = float(fit.slope), float(fit.intercept)
    return slope, -at_zero / slope if slope else float("nan")


def indentations_of(
    recording: Recording, contact_force: float | None = None, free_force: float = 0.0, sense: float = 1.0
) -> tuple[Indentation, ...]:
    """Find the presses of blades and scoop in a recording; see `indentations`.

    Depth is `z_enc_defl`, or `z_enc` where the file has no deflected pose; force is `Fz`; rows with another
    tool selected are left out, since forces on a hanging or a watching tool mean nothing.

    Parameters
    ----------
    sense : float
        -1 for files in which the tool presses down with a negative Fz: the sense of Fz follows from that of
        the joint torques, which the SIS does not say.
    """
    device = devices(recording)[0]
    place = recording[f"{device}/Tool"]
    names = [name for name in ("z_enc_defl", "z_enc") if name in place.columns]
    measured = [name for name in names if np.isfinite(place.column(name)).any()]
    if not measured:
        raise StreamError(
            f"{place.name} says nowhere how deep the tool is", hint="it needs z_enc_defl or z_enc"
        )
    pressing = np.isin(recording[device].column("tool"), RIGID_TOOLS)
    depth = np.where(pressing, place.column(measured[0]), np.nan)
    force = sense * recording[f"{device}/Forces"].column("Fz")
    return indentations(depth, force, contact_force, free_force)
