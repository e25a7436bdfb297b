"""A vehicle with lasers, a radar and two cameras: what they see, which way bearings run, ranges from peaks.

Body is x forward, y starboard, z down; m and rad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats

from ._robots_parts import (
    ACCENT,
    SECOND,
    SIDE,
    SOFT,
    THIRD,
    TOP_RIGHT,
    arrow,
    box,
    dimension,
    drawing,
    graph,
    show,
    signed,
    title,
    triad,
    write,
)
from .frames import DASHES, INK, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

FLAT = 0.25
"""Metres; a fan seen so thin has no arrow on its rim."""
COLOURS = {"laser": ACCENT, "radar": SECOND, "camera": THIRD}


@dataclass(frozen=True, eq=False)
class Field:
    """What one sensor sees.

    Attributes
    ----------
    name : str
    kind : {"laser", "radar", "camera"}
    origin : (3,)
        In Body.
    rim : (n, 3)
        In Body, in the order in which bearings grow; of a camera the corners of its view.
    ahead : (3,)
        End of the beam at bearing 0, or of the optical axis, in Body.
    below : float
        How far that looks below the horizon, rad.
    """

    name: str
    kind: str
    origin: Floats
    rim: Floats
    ahead: Floats
    below: float


def draw_sensors(figure: FigureBase, fields: Sequence[Field]) -> None:
    """Draw the fields of all sensors from above and from the side."""
    title(
        figure,
        "Five range sensors and two cameras: where they look, and which way bearings run",
        "Fans end at a range that suits the picture. Arrows on their rims point to growing bearings: "
        "the radar hangs upside down, so its run\nthe other way round than the lasers'. "
        "Dashed: bearing 0, and how far it points below the horizon.",
    )
    above, aside = figure.subplots(1, 2, width_ratios=(1.0, 1.0))
    drawing(above, "from above")
    for field in fields:
        _draw_field(above, TOP_RIGHT, field)
    triad(above, TOP_RIGHT, np.eye(4), 0.2)
    write(above, (0.2, -0.13), "Body", ground="none")
    _name(above, TOP_RIGHT, fields, _ABOVE)
    show(above, (-1.4, -0.6), (1.45, 1.7))
    drawing(aside, "from starboard")
    for field in fields:
        _draw_field(aside, SIDE, field)
    triad(aside, SIDE, np.eye(4), 0.2)
    write(aside, (0.1, 0.12), "Body", ha="left")
    _name(aside, SIDE, fields, _ASIDE, angles=True)
    show(aside, (-0.6, -0.35), (2.25, 1.95))


def _outline(view: Floats, field: Field) -> Floats:
    """The rim (n, 2) on the paper; of a camera's view, which is a triangle from any side, two corners."""
    rim = field.rim @ view.T
    if field.kind != "camera":
        return rim
    angle = np.unwrap(np.arctan2(*(rim - view @ field.origin).T[::-1]))
    return rim[[int(angle.argmin()), int(angle.argmax())]]


def _draw_field(ax: Axes, view: Floats, field: Field) -> None:
    from matplotlib.patches import Polygon

    colour, origin, rim = COLOURS[field.kind], view @ field.origin, _outline(view, field)
    ax.add_patch(Polygon(np.vstack([origin, rim]), closed=True, fc=colour, ec="none", alpha=0.13, zorder=1))
    closed = rim if field.kind == "radar" else np.vstack([origin, rim, origin])
    ax.plot(*closed.T, color=colour, lw=1.0, zorder=3)
    ax.plot(*np.stack([origin, view @ field.ahead]).T, color=colour, lw=1.1, ls=DASHES, zorder=4)
    ax.plot(*origin, "o", ms=4.5, color=colour, zorder=6)
    if field.kind != "camera" and np.ptp(rim, axis=0).min() > FLAT:
        k = int(0.82 * len(rim))
        arrow(ax, rim[k - 1], rim[k], colour, lw=1.2, mutation_scale=13)


_ABOVE = {
    "LaserPort": (-1.0, -0.12),
    "LaserStarboard": (1.0, -0.12),
    "LaserHorizontal": (0.78, 1.3),
    "LaserVertical": (-0.02, 1.6),
    "Radar": (-0.62, -0.42),
    "VideoVisual": (1.15, 1.02),
    "VideoIR": (-0.98, 1.25),
}
_ASIDE = {
    "LaserPort": (1.35, 0.45),
    "LaserStarboard": (1.75, 1.0),
    "LaserHorizontal": (1.85, 0.62),
    "LaserVertical": (0.8, 1.85),
    "Radar": (-0.35, 1.62),
    "VideoVisual": (1.45, 1.72),
    "VideoIR": (1.65, 1.22),
}


def _name(
    ax: Axes,
    view: Floats,
    fields: Sequence[Field],
    places: Mapping[str, tuple[float, float]],
    angles: bool = False,
) -> None:
    """Write the sensors' names, each with a line to the nearest point of its field."""
    for field in fields:
        place, rim = np.array(places[field.name]), np.vstack([_outline(view, field), view @ field.ahead])
        nearest = rim[int(np.argmin(np.linalg.norm(rim - place, axis=1)))]
        ax.plot(*np.stack([nearest, place]).T, color=QUIET, lw=0.8, zorder=2)
        told = f"{field.name}  {np.degrees(field.below):.1f}°" if angles else field.name
        write(ax, place, told, color=COLOURS[field.kind])


# Where the cameras are


@dataclass(frozen=True, eq=False)
class CameraPlaces:
    """Where the tables of several lasers put one camera.

    Attributes
    ----------
    name : str
    poses : mapping of str to (4, 4)
        T_Body_camera by laser.
    """

    name: str
    poses: Mapping[str, Floats]


def draw_cameras(figure: FigureBase, cameras: Sequence[CameraPlaces]) -> None:
    """Draw where each table puts the cameras, and which way they look, from the side."""
    title(
        figure,
        "Where are the cameras? Each laser's table puts them at another height",
        "From starboard, heights above Body. They look the same way in all tables. "
        "Draw a laser into an image with its own table.",
    )
    for ax, camera in zip(figure.subplots(1, len(cameras)), cameras, strict=True):
        drawing(ax, camera.name)
        _draw_places(ax, camera)


def _draw_places(ax: Axes, camera: CameraPlaces) -> None:
    places = np.stack([T[:3, 3] for T in camera.poses.values()]) @ SIDE.T
    for (laser, T), colour in zip(camera.poses.items(), (ACCENT, SECOND, THIRD), strict=True):
        place, way = SIDE @ T[:3, 3], SIDE @ T[:3, 2]
        ax.plot(*np.stack([place, place + 0.12 * way]).T, color=colour, lw=1.2, ls=DASHES)
        box(ax, place - 0.009 * way, way, 0.03, 0.02, fc=colour, ec="none", alpha=0.45)
        ax.plot(*place, "o", ms=5, color=colour, zorder=5)
        pitch, yaw = np.degrees(np.arcsin(T[2, 2])), np.degrees(np.arctan2(T[1, 2], T[0, 2]))
        side = "port" if yaw < 0 else "starboard"
        told = f"{laser}:  {place[1]:.3f} m\n{pitch:.1f}° down,  {abs(yaw):.1f}° to {side}"
        write(ax, (places[:, 0].max() + 0.15, place[1] - 0.03), told, ha="left", color=colour)
    low, high = places.min(axis=0), places.max(axis=0)
    dimension(
        ax, (low[0] - 0.05, low[1]), (low[0] - 0.05, high[1]), f"{100 * (high - low)[1]:.0f} cm", (-0.035, 0)
    )
    middle = float(low[1] + high[1]) / 2
    show(ax, (low[0] - 0.12, middle - 0.15), (low[0] + 0.42, middle + 0.13))


# Ranges from peaks


@dataclass(frozen=True, eq=False)
class PeakFits:
    """A target's spectrum, and how far ranges from its peak are off.

    Attributes
    ----------
    ranges, spectrum : (n,)
        Of the bins around the peak, m and dB.
    true : float
        Range of the target.
    curves : mapping of str to (ranges, dB)
        The parabolas by their names, each (k,).
    found : mapping of str to float
        Their ranges.
    between : (m,)
        Where targets are, in bins from the middle of one.
    errors : mapping of str to (m,)
        Range minus truth by name, m; the bin's own among them.
    bin_width : float
    """

    ranges: Floats
    spectrum: Floats
    true: float
    curves: Mapping[str, tuple[Floats, Floats]]
    found: Mapping[str, float]
    between: Floats
    errors: Mapping[str, Floats]
    bin_width: float


LOWEST = -16.0
"""dB; lower bins are not drawn."""
FITS = {"amplitude": ACCENT, "dB": SECOND, "bin": SOFT}


def draw_peaks(figure: FigureBase, peaks: PeakFits) -> None:
    """Draw the parabolas through a peak, and the errors of the ranges between the bins."""
    title(
        figure,
        "The radar's range: a parabola through the peak, in amplitudes or in dB",
        "A pure tone in a Hann window, made for this picture. "
        "The report does not say which of the two it used.",
    )
    peak, error = figure.subplots(1, 2, width_ratios=(1.1, 1.0))
    graph(peak, f"a target at {peaks.true:.2f} m", "range in m", "dB over the strongest bin")
    peak.vlines(peaks.true, LOWEST, 1.6, color=INK, lw=1.4, label="truth")
    peak.vlines(peaks.ranges, LOWEST, peaks.spectrum, color=QUIET, lw=1.2)
    apart = f"bins, {peaks.bin_width:.2f} m apart"
    peak.plot(peaks.ranges, peaks.spectrum, "o", color=INK, ms=6, zorder=5, label=apart)
    for name, (x, y) in peaks.curves.items():
        told = f"through {name}: {signed(1000 * (peaks.found[name] - peaks.true), 0, ' mm')}"
        peak.plot(x, y, color=FITS[name], lw=2, label=told)
        peak.plot((peaks.found[name],) * 2, (y.max(), LOWEST), color=FITS[name], lw=1.3, ls=DASHES)
    peak.set_ylim(LOWEST, 6.5)
    peak.legend(loc="upper left", fontsize=8.5, frameon=False, ncols=2, handlelength=1.4, columnspacing=1.0)
    _draw_errors(error, peaks)


def _draw_errors(ax: Axes, peaks: PeakFits) -> None:
    graph(ax, "error over the place between two bins", "bins from the middle of one", "range − truth in mm")
    for name, errors in peaks.errors.items():
        label = f"{name}{' alone' * (name == 'bin')}: up to {1000 * float(np.abs(errors).max()):.0f} mm"
        ax.plot(peaks.between, 1000 * errors, color=FITS[name], lw=2 if name != "bin" else 1.2, label=label)
    ax.set_ylim(-45, 45)
    ax.legend(loc="lower left", fontsize=8.5, frameon=False, handlelength=1.4, labelcolor="linecolor")
