"""Ground below tracks (heights, occupancy, orthophoto, cloud), and height maps aligned with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats

from .clouds import SHOWN, Extent
from .evaluation import COLOURS, WIDTH, hillshade, name_ground, write_title
from .figures import INK, fit_title, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CELLS = 1200
"""Along a side of the ground that is drawn."""
MOST_DOTS = 200_000
"""Of a cloud that is drawn."""
WIDEST = 8
"""Times that a picture is made half as wide again to show the ground around tracks on unknown ground."""
PALE = 0.45
"""How much of the ground's own colour is drawn, so that tracks stand out."""


@dataclass(frozen=True, eq=False)
class Ground:
    """What lies under tracks."""

    # (rows, columns) heights in metres; occupancy in percent; colours from 0 to 1; or points of a cloud,
    # metres
    image: NDArray[Any]
    # (6,) affine a b c d e f of a cell's corner: `right = a * col + b * row + c`, `up = d * col + e * row +
    # f`
    transform: tuple[float, float, float, float, float, float] = (1.0, 0.0, 0.0, 0.0, -1.0, 0.0)
    kind: Literal["heights", "occupancy", "colours", "points"] = "heights"
    # metres of height after which the colours repeat; None: each height has its own
    cycle: float | None = None

    def cut(self, low: Floats, high: Floats) -> Ground:
        """Return the cells that a window between two corners (2,) shows, no more than can be drawn."""
        a, b, c, d, e, f = self.transform
        rows, columns = self.image.shape[:2]
        corners = np.array([[x, y] for x in (low[0], high[0]) for y in (low[1], high[1])])
        cells = np.linalg.solve([[a, b], [d, e]], (corners - (c, f)).T)
        left, top = np.clip(np.floor(cells.min(axis=1)), 0, (columns, rows)).astype(int)
        right, bottom = np.clip(np.ceil(cells.max(axis=1)), 0, (columns, rows)).astype(int)
        step = max(1, -(-max(right - left, bottom - top) // MOST_CELLS))
        corner = a * left + b * top + c, d * left + e * top + f
        moved = (a * step, b * step, corner[0], d * step, e * step, corner[1])
        return replace(self, image=self.image[top:bottom:step, left:right:step], transform=moved)

    @property
    def corners(self) -> Floats:
        """Right and up (4, 2) of its corners, metres."""
        a, b, c, d, e, f = self.transform
        rows, columns = self.image.shape[:2]
        return np.array([[a * x + b * y + c, d * x + e * y + f] for x in (0, columns) for y in (0, rows)])


def draw_ground(axes: Axes, ground: Ground | None, window: tuple[Floats, Floats]) -> Any:
    """Draw the ground pale; return what a colour bar explains, or None."""
    from matplotlib.transforms import Affine2D

    if ground is None:
        return None
    if ground.kind == "points":
        step = max(1, len(ground.image) // MOST_DOTS)
        area = float(np.clip(1e5 / max(len(ground.image), 1), 0.5, 4.0))
        axes.scatter(*ground.image[::step].T, s=area, c="#8d99a6", linewidths=0, zorder=0)
        return None
    part = ground.cut(*window)
    rows, columns = part.image.shape[:2]
    if not np.isfinite(part.image).any():
        return None
    colours, bar = colour_ground(part)
    a, b, c, d, e, f = part.transform
    drawn = axes.imshow(colours, extent=(0, columns, rows, 0), interpolation="nearest", zorder=0)
    drawn.set_transform(Affine2D(np.array([[a, b, c], [d, e, f], [0, 0, 1]])) + axes.transData)
    return bar


def colour_ground(part: Ground) -> tuple[NDArray[Any], Any]:
    """Return the pale colours (rows, columns, 3), 0 to 1, of heights, occupancy or a photo; and its scale.

    The scale is what a colour bar explains: of heights; else None.
    """
    if part.kind == "occupancy":
        return _colour_occupancy(part.image), None
    if part.kind != "heights":
        return part.image, None
    bar = _scale_heights(part)
    shown = part.image if part.cycle is None else np.mod(part.image, part.cycle)
    return _shade(bar.to_rgba(shown), part.image), bar


def _scale_heights(ground: Ground) -> Any:
    """Return the pale colours of heights, from the lowest to the highest or within a cycle."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    name, low, high, ends = "hsv", 0.0, ground.cycle or 1.0, (0.0, 1.0)
    if ground.cycle is None:
        known = ground.image[np.isfinite(ground.image)]
        name, ends = "gist_earth", (0.2, 0.95)  # not the black of its depths
        low, high = np.percentile(known, (1, 99)) if known.size else (0.0, 1.0)
    strong = colormaps[name](np.linspace(*ends, 256))[:, :3]
    return ScalarMappable(Normalize(low, max(high, low + 1e-3)), ListedColormap(1.0 - PALE * (1.0 - strong)))


def _colour_occupancy(percent: NDArray[Any]) -> Floats:
    """Return colours (rows, columns, 3): free is white, occupied dark, unknown pale blue."""
    grey = 1.0 - 0.8 * np.clip(np.nan_to_num(percent) / 100.0, 0.0, 1.0)
    return np.where(np.isnan(percent)[..., None], (0.87, 0.90, 0.93), grey[..., None])


def _shade(colours: Floats, heights: NDArray[Any]) -> Floats:
    """Return colours (rows, columns, 3) as if lit from the north-west; white where heights are not known."""
    lit = colours[..., :3] * (0.72 + 0.28 * hillshade(heights))[..., None]
    return np.where(np.isnan(heights)[..., None], 1.0, lit)


def widen(window: tuple[Floats, Floats], ground: Ground | None) -> tuple[Floats, Floats]:
    """Return a window that shows known ground, half as much as elsewhere: no lidar sees below itself."""
    if ground is None or ground.kind not in ("heights", "occupancy"):
        return window
    enough = 0.5 * float(np.isfinite(ground.image).mean())
    for _ in range(WIDEST):
        part = ground.cut(*window)
        if part.image.size and np.isfinite(part.image).mean() >= enough:
            break
        middle, half = (window[0] + window[1]) / 2, (window[1] - window[0]) / 2
        window = middle - 1.5 * half, middle + 1.5 * half
    return window


PANEL = 4.0
"""Inches of height."""


def alignment_figure(
    before: Floats, after: Floats, reference: Floats, extent: Extent, *, titles: Sequence[str] = ("", "")
) -> Figure:
    """Draw differences of a map from its reference, where it was and where it was laid.

    Parameters
    ----------
    before, after, reference : (rows, cols)
        Metres, first row northmost: map minus reference, NaN where one is not known; the reference's
        heights.
    extent : (4,)
        West, east, south, north in metres.
    titles : (2,) of str
    """
    figure = new_figure(1.5 * WIDTH, PANEL)
    panels = figure.subplots(1, 2, sharey=True)
    for axis, difference, title in zip(panels, (before, after), titles, strict=True):
        _draw_ground(axis, reference, extent)
        _draw_difference(axis, difference, extent)
        write_title(axis, title)
        name_ground(axis, "x", "y")
    panels[1].set_ylabel("")
    return figure


def _draw_difference(axis: Axes, difference: Floats, extent: Extent) -> None:
    size = np.abs(difference[np.isfinite(difference)])
    span = max(float(np.percentile(size, SHOWN)) if len(size) else 0.0, 1e-6)
    drawn = axis.imshow(
        difference, extent=extent, cmap="RdBu_r", vmin=-span, vmax=span, interpolation="nearest",
        aspect="equal",
    )  # fmt: skip
    bar = axis.figure.colorbar(drawn, ax=axis, shrink=0.85, pad=0.02)
    bar.set_label("too low  |  too high [m]", fontsize=9)
    bar.ax.tick_params(labelsize=8)


@dataclass(frozen=True, eq=False)
class Outline:
    """Where a map may lie: its corners (n, 2) in metres, and the probability of that."""

    corners: Floats
    probability: float


def localisation_figure(
    reference: Floats, extent: Extent, outlines: Sequence[Outline], *, title: str = ""
) -> Figure:
    """Draw the places where a small map may lie over a large one.

    Parameters
    ----------
    reference : (rows, cols)
        Heights in metres, first row northmost.
    extent : (4,)
        West, east, south, north in metres.
    outlines : sequence of Outline
        Most probable first.
    """
    figure = new_figure(WIDTH, 0.9 * WIDTH)
    axis = figure.subplots()
    _draw_ground(axis, reference, extent)
    for k, each in enumerate(outlines):
        closed = np.vstack([each.corners, each.corners[:1]])
        colour = COLOURS[k % len(COLOURS)]
        label = f"{k + 1}: {each.probability:.1%}"
        axis.plot(*closed.T, color=colour, lw=2.0 if k == 0 else 1.2, label=label)
    axis.legend(fontsize=8, frameon=True, title="probability", title_fontsize=8, loc="upper right")
    name_ground(axis, "x", "y")
    fit_title(title, WIDTH).write(figure, INK)
    return figure


def _draw_ground(axis: Axes, reference: Floats, extent: Extent) -> None:
    axis.imshow(hillshade(reference), extent=extent, cmap="gray", vmin=-0.6, vmax=1.1, aspect="equal")
    axis.grid(visible=False)
    axis.tick_params(labelsize=8)
