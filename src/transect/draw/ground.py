"""The ground below tracks (heights, occupancy, orthophoto, cloud), and the alignment of height maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats

from .clouds import COLOUR_RANGE_PERCENTILE, Extent
from .evaluation import COLOURS, WIDTH_IN, hillshade, name_ground, write_title
from .figures import INK, fit_title, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_CELLS_PER_SIDE = 1200
MAX_CLOUD_POINTS = 200_000
COLOUR_STRENGTH = 0.45
"""The ground's colours are mixed with white, so that tracks are clearly visible."""


@dataclass(frozen=True, eq=False)
class GroundLayer:
    """A map or cloud below tracks."""

    # (rows, columns) heights in metres, occupancy in percent, colours from 0 to 1, or points in metres
    image: NDArray[Any]
    # affine of a cell's corner: `right = a * col + b * row + c`, `up = d * col + e * row + f`
    transform: tuple[float, float, float, float, float, float] = (1.0, 0.0, 0.0, 0.0, -1.0, 0.0)
    kind: Literal["heights", "occupancy", "colours", "points"] = "heights"
    # metres of height after which the colours repeat; None: they do not
    cycle: float | None = None

    def cut(self, low: Floats, high: Floats) -> GroundLayer:
        """Return the cells of a window between two corners (2,), subsampled to `MAX_CELLS_PER_SIDE`."""
        a, b, c, d, e, f = self.transform
        rows, columns = self.image.shape[:2]
        corners = np.array([[x, y] for x in (low[0], high[0]) for y in (low[1], high[1])])
        cells = np.linalg.solve([[a, b], [d, e]], (corners - (c, f)).T)
        left, top = np.clip(np.floor(cells.min(axis=1)), 0, (columns, rows)).astype(int)
        right, bottom = np.clip(np.ceil(cells.max(axis=1)), 0, (columns, rows)).astype(int)
        step = max(1, -(-max(right - left, bottom - top) // MAX_CELLS_PER_SIDE))
        corner = a * left + b * top + c, d * left + e * top + f
        moved = (a * step, b * step, corner[0], d * step, e * step, corner[1])
        return replace(self, image=self.image[top:bottom:step, left:right:step], transform=moved)

    @property
    def corners(self) -> Floats:
        """Right and up (4, 2) of its corners, metres."""
        a, b, c, d, e, f = self.transform
        rows, columns = self.image.shape[:2]
        return np.array([[a * x + b * y + c, d * x + e * y + f] for x in (0, columns) for y in (0, rows)])


def draw_ground(axes: Axes, ground: GroundLayer | None, window: tuple[Floats, Floats]) -> Any:
    """Draw the ground in pale colours; return the mappable for a colour bar, or None."""
    from matplotlib.transforms import Affine2D

    if ground is None:
        return None
    if ground.kind == "points":
        step = max(1, len(ground.image) // MAX_CLOUD_POINTS)
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


def colour_ground(part: GroundLayer) -> tuple[NDArray[Any], Any]:
    """Return pale colours (rows, columns, 3), 0 to 1, of heights, occupancy or a photo; and a mappable.

    The mappable is for a colour bar of heights; None for the others.
    """
    if part.kind == "occupancy":
        return _colour_occupancy(part.image), None
    if part.kind != "heights":
        return part.image, None
    bar = _scale_heights(part)
    shown = part.image if part.cycle is None else np.mod(part.image, part.cycle)
    return _shade(bar.to_rgba(shown), part.image), bar


def _scale_heights(ground: GroundLayer) -> Any:
    """Return a mappable of pale colours for heights, from the lowest to the highest or within a cycle."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    name, low, high, ends = "hsv", 0.0, ground.cycle or 1.0, (0.0, 1.0)
    if ground.cycle is None:
        known = ground.image[np.isfinite(ground.image)]
        name, ends = "gist_earth", (0.2, 0.95)  # without its black end
        low, high = np.percentile(known, (1, 99)) if known.size else (0.0, 1.0)
    strong = colormaps[name](np.linspace(*ends, 256))[:, :3]
    return ScalarMappable(
        Normalize(low, max(high, low + 1e-3)), ListedColormap(1.0 - COLOUR_STRENGTH * (1.0 - strong))
    )


def _colour_occupancy(percent: NDArray[Any]) -> Floats:
    """Return colours (rows, columns, 3): free is white, occupied dark, unknown pale blue."""
    grey = 1.0 - 0.8 * np.clip(np.nan_to_num(percent) / 100.0, 0.0, 1.0)
    return np.where(np.isnan(percent)[..., None], (0.87, 0.90, 0.93), grey[..., None])


def _shade(colours: Floats, heights: NDArray[Any]) -> Floats:
    """Return hillshaded colours (rows, columns, 3); white where heights are not known."""
    lit = colours[..., :3] * (0.72 + 0.28 * hillshade(heights))[..., None]
    return np.where(np.isnan(heights)[..., None], 1.0, lit)


def widen(window: tuple[Floats, Floats], ground: GroundLayer | None) -> tuple[Floats, Floats]:
    """Enlarge a window until the ratio of known cells is half that of the whole map.

    A lidar does not observe the ground close to itself, so a window around a short track may be empty.
    """
    if ground is None or ground.kind not in ("heights", "occupancy"):
        return window
    enough = 0.5 * float(np.isfinite(ground.image).mean())
    for _ in range(8):
        part = ground.cut(*window)
        if part.image.size and np.isfinite(part.image).mean() >= enough:
            break
        middle, half = (window[0] + window[1]) / 2, (window[1] - window[0]) / 2
        window = middle - 1.5 * half, middle + 1.5 * half
    return window


def alignment_figure(
    before: Floats, after: Floats, reference: Floats, extent: Extent, *, titles: Sequence[str] = ("", "")
) -> Figure:
    """Draw differences of a map from its reference, before and after its alignment.

    Parameters
    ----------
    before, after, reference : (rows, cols)
        Metres, first row northmost: map minus reference, NaN where one is not known; the reference's
        heights.
    extent : (4,)
        West, east, south, north in metres.
    titles : (2,) of str
    """
    figure = new_figure(1.5 * WIDTH_IN, 4.0)
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
    span = max(float(np.percentile(size, COLOUR_RANGE_PERCENTILE)) if len(size) else 0.0, 1e-6)
    drawn = axis.imshow(
        difference, extent=extent, cmap="RdBu_r", vmin=-span, vmax=span, interpolation="nearest",
        aspect="equal",
    )  # fmt: skip
    bar = axis.figure.colorbar(drawn, ax=axis, shrink=0.85, pad=0.02)
    bar.set_label("too low  |  too high [m]", fontsize=9)
    bar.ax.tick_params(labelsize=8)


@dataclass(frozen=True, eq=False)
class MapOutline:
    """A candidate position of a map: its corners (n, 2) in metres, and its probability."""

    corners: Floats
    probability: float


def localisation_figure(
    reference: Floats, extent: Extent, outlines: Sequence[MapOutline], *, title: str = ""
) -> Figure:
    """Draw the candidate positions of a small map in a large one.

    Parameters
    ----------
    reference : (rows, cols)
        Heights in metres, first row northmost.
    extent : (4,)
        West, east, south, north in metres.
    outlines : sequence of Outline
        Most probable first.
    """
    figure = new_figure(WIDTH_IN, 0.9 * WIDTH_IN)
    axis = figure.subplots()
    _draw_ground(axis, reference, extent)
    for k, each in enumerate(outlines):
        closed = np.vstack([each.corners, each.corners[:1]])
        colour = COLOURS[k % len(COLOURS)]
        label = f"{k + 1}: {each.probability:.1%}"
        axis.plot(*closed.T, color=colour, lw=2.0 if k == 0 else 1.2, label=label)
    axis.legend(fontsize=8, frameon=True, title="probability", title_fontsize=8, loc="upper right")
    name_ground(axis, "x", "y")
    fit_title(title, WIDTH_IN).write(figure, INK)
    return figure


def _draw_ground(axis: Axes, reference: Floats, extent: Extent) -> None:
    axis.imshow(hillshade(reference), extent=extent, cmap="gray", vmin=-0.6, vmax=1.1, aspect="equal")
    axis.grid(visible=False)
    axis.tick_params(labelsize=8)
