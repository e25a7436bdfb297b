"""Range over bearing: scans, turns of a radar, and what lies in its spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats

from ..frames import INK
from .panels import Limits, Ranges, Spectrum
from .parts import draw_bar, draw_grid, draw_things, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BEAM, DETECTED = "#2f6fb3", "#7dd3fc"
INCHES = (3.8, 2.0)
"""About the size of the axes."""
NOISE = (40, 99.7)
"""Percentiles of a spectrum that are black and white: most of it is noise."""
FEW = 10_000
"""Ranges up to which each is drawn as a dot that can be seen by itself."""
MANY = 20
"""Scans from which on lines are so thin that a single one among them can still be seen."""


def draw_ranges(ax: Axes, seen: Ranges, limits: Limits) -> None:
    """Draw all scans into one picture, left on the left."""
    from matplotlib.collections import LineCollection

    scans = [np.column_stack([np.degrees(scan[:, 0]), scan[:, 1]]) for scan in seen.scans]
    if seen.lines:
        width = 0.9 if len(scans) < MANY else 0.35
        ordered = [scan[np.argsort(scan[:, 0], kind="stable")] for scan in scans]
        ax.add_collection(LineCollection(ordered, colors=BEAM, linewidths=width))
    else:
        everything = np.concatenate([*scans, np.zeros((0, 2))])
        ax.plot(*everything.T, ".", ms=2.8 if len(everything) < FEW else 1.6, color=BEAM, mew=0)
    bearings, far = _limits(scans, limits)
    ax.set_xlim(*bearings)
    ax.set_ylim(0, far)
    draw_grid(ax)
    things = [(name, float(np.degrees(place[0])), float(place[1])) for name, place in seen.things]
    draw_things(ax, things, np.concatenate([*scans, np.zeros((0, 2))]), INCHES)
    name_axes(ax, f"bearing to the left of {seen.frame} / °", "range / m")


def _limits(scans: Sequence[Floats], limits: Limits) -> tuple[tuple[float, float], float]:
    """Return the first and last bearing in degrees, and the range in m up to which most returns lie."""
    everything = np.concatenate([*scans, np.zeros((1, 2))])
    if limits.sector is not None:
        side = float(np.degrees(limits.sector))
        everything = everything[np.abs(everything[:, 0]) <= side]
        bearings = (side, -side)
    else:
        bearings = (float(np.nanmax(everything[:, 0])), float(np.nanmin(everything[:, 0])))
    far = limits.reach or 1.15 * max(float(np.nanpercentile(everything[:, 1], 90)), 1.0)
    return bearings, far


def draw_spectrum(ax: Axes, seen: Spectrum, limits: Limits) -> None:
    """Draw a turn of a radar as reflectivity over bearing and range."""
    order = np.argsort(seen.bearings, kind="stable")
    bearings = np.degrees(seen.bearings[order])
    shade = seen.reflectivity[order].T
    low, high = np.nanpercentile(shade, NOISE)
    mesh = ax.pcolormesh(bearings, seen.ranges, shade, cmap="magma", vmin=low, vmax=high, rasterized=True)
    draw_bar(ax, mesh, "reflectivity")
    top = float(seen.ranges[-1])
    if seen.detected is not None and len(seen.detected):
        angle, distance = seen.detected.T
        ax.plot(np.degrees(angle), distance, "o", ms=3, mfc="none", mec=DETECTED, mew=0.7, label="detected")
        ax.legend(loc="upper right", fontsize=8, facecolor=INK, labelcolor="white", edgecolor="none")
        top = min(top, 1.25 * float(np.nanmax(distance)))
    side = None if limits.sector is None else float(np.degrees(limits.sector))
    ax.set_xlim(*((float(bearings[-1]), float(bearings[0])) if side is None else (side, -side)))
    ax.set_ylim(0, limits.reach or top)
    name_axes(ax, f"bearing to the left of {seen.frame} / °", "range / m")
