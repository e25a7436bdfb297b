"""Everything that sensors saw at one time, side by side: images, points from above, radar spectra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .figures import new_figure
from .frames import INK, QUIET
from .overlay import SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

WIDTH, HEIGHT, TITLE, HEAD = 4.4, 3.7, 0.4, 0.45
"""Inches of a panel, of the title above each, and of the one above all."""
COLUMNS = 4
HITS, DETECTED, ROBOT = "#2f6fb3", "#7dd3fc", "#d1495b"
FEW = 2000
"""Points up to which each is drawn as a dot that can be seen by itself."""


@dataclass(frozen=True, eq=False)
class Photo:
    """An image.

    Attributes
    ----------
    name : str
    rgb : (h, w, 3) uint8 array
    dt : float
        Seconds by which the sample is later than the moment.
    """

    name: str
    rgb: NDArray[Any]
    dt: float = 0.0


@dataclass(frozen=True, eq=False)
class FromAbove:
    """Points of a scan or a cloud.

    Attributes
    ----------
    name : str
    points : (n, 3) array
        x forward, y left, z up, in metres; NaN where nothing came back.
    dt : float
    by_height : bool
        Whether colours tell z.
    frame : str
        Whose axes they are; its origin is at (0, 0).
    """

    name: str
    points: Floats
    dt: float = 0.0
    by_height: bool = False
    frame: str = "sensor"


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A revolution of a radar.

    Attributes
    ----------
    name : str
    reflectivity : (n, bins) array
        As the radar scales it.
    bearings : (n,) array
        rad to the left.
    ranges : (bins,) array
        m.
    dt : float
    detected : (k, 2) array
        Bearing (rad) and range (m) of what the radar took for targets.
    frame : str
        From whose x axis bearings count.
    """

    name: str
    reflectivity: Floats
    bearings: Floats
    ranges: Floats
    dt: float = 0.0
    detected: Floats | None = None
    frame: str = "sensor"


Panel = Photo | FromAbove | Spectrum


def moment_figure(panels: Sequence[Panel], title: str = "", columns: int = COLUMNS) -> Figure:
    """Draw what sensors saw at one time.

    Parameters
    ----------
    panels : sequence of Photo, FromAbove or Spectrum
        Left to right, then down.
    title : str
    columns : int
        At most so many panels side by side.

    Returns
    -------
    matplotlib Figure
    """
    high = max(1, -(-len(panels) // columns))
    wide = max(1, -(-len(panels) // high))
    figure = new_figure(WIDTH * wide, high * max(map(_height, panels), default=HEIGHT) + HEAD)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, color=INK, weight="bold")
    for k, panel in enumerate(panels):
        ax = figure.add_subplot(high, wide, k + 1)
        draw_panel(ax, panel)
        ax.set_title(f"{panel.name},  {_late(panel.dt)}", fontsize=10, color=INK, loc="left")
    return figure


def draw_panel(ax: Axes, panel: Panel) -> None:
    """Draw what one sensor saw into axes of your own figure."""
    if isinstance(panel, Photo):
        _draw_photo(ax, panel)
    elif isinstance(panel, FromAbove):
        _draw_points(ax, panel)
    else:
        _draw_spectrum(ax, panel)
    ax.tick_params(labelsize=8, colors=SOFT, length=2)
    for side in ax.spines.values():
        side.set_edgecolor(QUIET)


def _height(panel: Panel) -> float:
    """Return the inches that a panel needs: an image has a shape of its own."""
    if not isinstance(panel, Photo):
        return HEIGHT
    h, w = panel.rgb.shape[:2]
    return min(HEIGHT, WIDTH * h / w + TITLE)


def _late(seconds: float) -> str:
    return f"ΔT {seconds * 1e3:+.0f} ms".replace("-", "\N{MINUS SIGN}")


def _draw_photo(ax: Axes, photo: Photo) -> None:
    ax.imshow(photo.rgb, interpolation="antialiased")
    ax.set(xticks=(), yticks=())


# Points


def _draw_points(ax: Axes, seen: FromAbove) -> None:
    """Draw x up and y to the left; points that are higher lie on top."""
    there = seen.points[np.isfinite(seen.points).all(axis=1)]
    there = there[np.argsort(there[:, 2], kind="stable")]
    area = 5.0 if len(there) <= FEW else 0.6
    if seen.by_height and len(there):
        low, high = np.percentile(there[:, 2], (1, 99))
        marks = ax.scatter(
            there[:, 1], there[:, 0], s=area, c=there[:, 2], cmap="viridis", vmin=low, vmax=high, linewidths=0
        )
        bar = ax.figure.colorbar(marks, ax=ax, shrink=0.8, pad=0.02)
        bar.set_label("height / m", fontsize=8.5, color=INK)
        bar.ax.tick_params(labelsize=8, colors=SOFT)
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    else:
        ax.scatter(there[:, 1], there[:, 0], s=area, c=HITS, linewidths=0)
    ax.plot(0, 0, marker="^", color=ROBOT, ms=7, mec="white", mew=0.8, zorder=5)
    reach = _reach(there)
    ax.set_xlim(reach, -reach)
    ax.set_ylim(*_ahead(there, reach))
    ax.set_aspect("equal")
    ax.set_xlabel(f"left of {seen.frame} / m", fontsize=8.5, color=INK)
    ax.set_ylabel("forward / m", fontsize=8.5, color=INK)
    ax.grid(color="#e8ecef", lw=0.6)
    ax.set_axisbelow(True)


def _reach(points: Floats) -> float:
    """Return how far the picture goes to either side: not for the sake of a few far points."""
    return 1.2 * max(float(np.percentile(np.abs(points[:, :2]), 90)), 1.0) if len(points) else 10.0


def _ahead(points: Floats, reach: float) -> tuple[float, float]:
    """Return from where to where the picture goes: behind the sensor only where something was seen."""
    behind = bool(len(points)) and float(np.percentile(points[:, 0], 3)) < -0.1 * reach
    return (-reach if behind else -0.12 * reach, reach)


# Radars


def _draw_spectrum(ax: Axes, seen: Spectrum) -> None:
    order = np.argsort(seen.bearings, kind="stable")
    bearings = np.degrees(seen.bearings[order])
    shade = seen.reflectivity[order].T
    low, high = np.nanpercentile(shade, (40, 99.7))  # most of a spectrum is noise
    ax.pcolormesh(bearings, seen.ranges, shade, cmap="magma", vmin=low, vmax=high, rasterized=True)
    top = float(seen.ranges[-1])
    if seen.detected is not None and len(seen.detected):
        angle, distance = seen.detected.T
        ax.plot(np.degrees(angle), distance, "o", ms=3, mfc="none", mec=DETECTED, mew=0.7, label="detected")
        ax.legend(loc="upper right", fontsize=8, facecolor=INK, labelcolor="white", edgecolor="none")
        top = min(top, 1.25 * float(np.nanmax(distance)))
    ax.set_xlim(float(bearings[-1]), float(bearings[0]))
    ax.set_ylim(0, top)
    ax.set_xlabel(f"bearing to the left of {seen.frame} / °", fontsize=8.5, color=INK)
    ax.set_ylabel("range / m", fontsize=8.5, color=INK)
