"""Soil mechanics with the arm (SIS 2.6.2.3): stiffness and work of indentations.

A guarded move presses the scoop down until contact and further. Depth is z of the tool in the IDA frame,
which points down; force is that of the tool on the ground, positive downwards.
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

from .codes import DIGGING_TOOLS
from .science import devices


@dataclass(frozen=True)
class IndentationSettings:
    """Detection of indentations and the fit of their stiffness."""

    contact_ratio: float = 0.05  # contact force relative to the largest force, unless one is given
    # forces relative to the peak between which a line is fitted: without the toe of the curve, and without
    # the backlash and creep at its peak
    fit_range: tuple[float, float] = (0.2, 0.8)
    # Smallest depth at the largest force relative to the depth of the indentation: the resistance of soil
    # grows with depth. The current of a starting motor is largest at once, and falls while the tool moves on.
    min_peak_depth_ratio: float = 0.5
    min_depth_m: float = 5e-4  # resolution of the joint angles
    min_rows: int = 3
    max_fitted_rows: int = 1000  # longer branches are downsampled: the fit uses the slopes of all pairs


SETTINGS = IndentationSettings()


@dataclass(frozen=True, eq=False)
class LoadBranch:
    """Force over depth during loading or unloading."""

    # depth, force: (k,), m, N; in the order recorded
    depth: Floats
    force: Floats
    stiffness: float  # slope of the fitted line, N/m; NaN with too few rows in the fit range
    zero_depth: float  # depth at which the force of that line is zero, m

    @property
    def work(self) -> float:
        """Work of the tool on the ground, J; negative during unloading."""
        return float(np.trapezoid(self.force, self.depth))


@dataclass(frozen=True, eq=False)
class Indentation:
    """Loading and unloading of one indentation."""

    # start, peak, stop: first row in contact, row of the largest force, and first row without contact
    start: int
    peak: int
    stop: int
    contact_depth: float  # depth at which the force exceeds the contact force, m
    depth: float  # largest depth below `contact_depth`, m
    force: float  # largest force, N
    loading: LoadBranch
    unloading: LoadBranch

    @property
    def dissipated(self) -> float:
        """Dissipated work, J."""
        return self.loading.work + self.unloading.work


def indentations(
    depth: ArrayLike, force: ArrayLike, contact_force: float | None = None, free_force: float = 0.0
) -> tuple[Indentation, ...]:
    """Find the indentations in a series of depth and force.

    Parameters
    ----------
    depth : (n,)
        Of the tool, m, down; rows with NaN are ignored.
    force : (n,)
        Of the tool, N, positive downwards.
    contact_force : float, optional
        Force above which the tool is in contact, N; default: `contact_ratio` of the largest.
    free_force : float
        Measured force without contact, N, which is subtracted: the force model has an offset of newtons.

    Returns
    -------
    tuple of Indentation
        Those of at least three rows in which the force grows with the depth, in the order of recording.
        Apparent forces of the starting current of a motor are rejected.
    """
    z, f = floats("depth", depth, ("n",)), floats("force", force, ("n",)) - free_force
    same_length(depth=z, force=f)
    rows = np.flatnonzero(np.isfinite(z) & np.isfinite(f))
    z, f = z[rows], f[rows]
    threshold = SETTINGS.contact_ratio * float(f.max(initial=0.0)) if contact_force is None else contact_force
    starts, stops = robust.runs(f > threshold)
    found = [
        _indentation(z, f, rows, threshold, int(start), int(stop))
        for start, stop in zip(starts, stops, strict=True)
        if stop - start >= SETTINGS.min_rows
    ]
    return tuple(each for each in found if _is_indentation(each))


def _is_indentation(found: Indentation) -> bool:
    """Whether the depth increased until the largest force."""
    into = float(found.loading.depth[-1]) - found.contact_depth
    return into > SETTINGS.min_depth_m and into >= SETTINGS.min_peak_depth_ratio * found.depth


def _indentation(
    z: Floats, f: Floats, rows: np.ndarray, threshold: float, start: int, stop: int
) -> Indentation:
    peak = start + int(f[start:stop].argmax())
    contact_depth = _crossing(z, f, start, threshold)
    before, after = max(start - 1, 0), min(stop + 1, len(z))
    return Indentation(
        start=int(rows[start]),
        peak=int(rows[peak]),
        stop=int(rows[stop]) if stop < len(rows) else int(rows[-1]) + 1,
        contact_depth=contact_depth,
        depth=float(z[start:stop].max() - contact_depth),
        force=float(f[peak]),
        loading=_branch(z[before : peak + 1], f[before : peak + 1]),
        unloading=_branch(z[peak:after], f[peak:after]),
    )


def _crossing(z: Floats, f: Floats, row: int, level: float) -> float:
    """Depth at which the force crosses `level` between `row - 1` and `row`, by linear interpolation."""
    if row == 0:
        return float(z[0])
    fraction = (level - f[row - 1]) / (f[row] - f[row - 1])
    return float(z[row - 1] + fraction * (z[row] - z[row - 1]))


def _branch(depth: Floats, force: Floats) -> LoadBranch:
    slope, zero = _fit_line(depth, force)
    return LoadBranch(depth, force, slope, zero)


def _fit_line(depth: Floats, force: Floats) -> tuple[float, float]:
    """Theil-Sen slope (breakdown point 29 %), and the depth of zero force."""
    from scipy.stats import theilslopes

    low, high = (ratio * force.max() for ratio in SETTINGS.fit_range)
    inside = np.flatnonzero((force >= low) & (force <= high))
    inside = inside[:: -(-len(inside) // SETTINGS.max_fitted_rows) or 1]
    if len(inside) < 2 or np.ptp(depth[inside]) == 0.0:
        return float("nan"), float("nan")
    fit: Any = theilslopes(force[inside], depth[inside])
    slope, at_zero = float(fit.slope), float(fit.intercept)
    return slope, -at_zero / slope if slope else float("nan")


def indentations_of(
    recording: Recording, contact_force: float | None = None, free_force: float = 0.0, sense: float = 1.0
) -> tuple[Indentation, ...]:
    """Find the indentations of blades and scoop in a recording; see `indentations`.

    Depth is `z_enc_defl`, or `z_enc` where the file has no deflected pose; force is `Fz`. Rows with other
    tools are ignored, since the forces are not defined for hanging tools and the camera.

    Parameters
    ----------
    sense : float
        -1 for files in which a downward force is negative: the SIS does not give the sign of the joint
        torques, from which that of Fz follows.
    """
    device = devices(recording)[0]
    poses = recording[f"{device}/Tool"]
    names = [name for name in ("z_enc_defl", "z_enc") if name in poses.columns]
    measured = [name for name in names if np.isfinite(poses.column(name)).any()]
    if not measured:
        raise StreamError(f"{poses.name} has no depth of the tool", hint="it needs z_enc_defl or z_enc")
    pressing = np.isin(recording[device].column("tool"), DIGGING_TOOLS)
    depth = np.where(pressing, poses.column(measured[0]), np.nan)
    force = sense * recording[f"{device}/Forces"].column("Fz")
    return indentations(depth, force, contact_force, free_force)
