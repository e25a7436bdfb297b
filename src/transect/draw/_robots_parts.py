"""What the drawings of robots are made of: views, axes, wheels, dimensions and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats

from .frames import AXIS_COLOURS, INK, MOVING, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase


SOFT, BODY, RUBBER, ACCENT, SECOND, THIRD = "#5c6873", "#eef2f5", "#8894a0", MOVING, "#7b4fa3", "#16808a"
"""Words of less weight, bodies, wheels, and three colours that are no axis."""

TOP_LEFT = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])
"""From above on x forward, y left, z up: x goes up the paper, y to the left."""
TOP_RIGHT = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
"""From above on x forward, y right, z down: x goes up the paper, y to the right."""
BEHIND = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
"""From behind on x forward, y left, z up."""
SIDE = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
"""From the right on x forward, z down: x goes to the right, z down the paper."""

UPRIGHT = 0.995
"""Cosine from which an axis counts as standing on the paper, and is drawn as a dot or a cross."""


def title(figure: FigureBase, text: str, note: str = "") -> None:
    """Write what one sees above a picture, and what one must know below it."""
    figure.suptitle(text, x=0.012, ha="left", fontsize=12, weight="bold", color=INK)
    if note:
        figure.supxlabel(note, x=0.012, ha="left", fontsize=8.5, color=SOFT)


def drawing(ax: Axes, heading: str = "") -> None:
    """Make axes a drawing: equal scales, no frame, and a heading."""
    ax.set_aspect("equal", adjustable="box")
    ax.axis("off")
    if heading:
        ax.set_title(heading, loc="left", fontsize=10, color=INK)


def graph(ax: Axes, heading: str, across: str, up: str) -> None:
    """Make axes a graph: a light grid, names of both axes, and a heading."""
    ax.set_title(heading, loc="left", fontsize=10, color=INK)
    ax.set_xlabel(across, fontsize=9, color=INK)
    ax.set_ylabel(up, fontsize=9, color=INK)
    ax.tick_params(labelsize=8.5, colors=INK, length=3)
    ax.grid(color="#e3e8ec", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(QUIET)


def show(ax: Axes, low: tuple[float, float], high: tuple[float, float]) -> None:
    """Show at least the part of the paper between two corners."""
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])


def write(ax: Axes, place: ArrayLike, text: str, *, ground: str = "white", **how: Any) -> None:
    """Write words at a place on the paper, on a ground that hides what is below; "none" for no ground."""
    x, y = np.asarray(place, dtype=np.float64)
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "color": INK, "zorder": 9}
    patch = {"boxstyle": "square,pad=0.08", "fc": ground, "ec": "none", "alpha": 0.85}
    ax.text(x, y, text, **(style | {"bbox": None if ground == "none" else patch} | how))


def shifted(place: ArrayLike, x: float, y: float) -> Floats:
    """Return a place (2,) beside another."""
    return np.asarray(place, dtype=np.float64) + np.array([x, y])


def arrow(ax: Axes, start: ArrayLike, end: ArrayLike, colour: str = INK, **how: Any) -> None:
    """Draw an arrow between two places on the paper."""
    style: dict[str, Any] = {"arrowstyle": "-|>,head_width=0.22,head_length=0.45", "lw": 1.8}
    style |= {"color": colour, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 12, "zorder": 6} | how
    points = (tuple(np.asarray(p, dtype=np.float64)) for p in (end, start))
    zorder = style.pop("zorder")
    ax.annotate("", *points, arrowprops=style, zorder=zorder, annotation_clip=False)


def turning(ax: Axes, points: ArrayLike, colour: str = INK, **how: Any) -> None:
    """Draw a line through points (n, 2) with an arrowhead at its end, such as an angle's arc."""
    line = np.asarray(points, dtype=np.float64)
    style: dict[str, Any] = {"lw": 1.3, "zorder": 5, "solid_capstyle": "butt"} | how
    ax.plot(*line.T, color=colour, **style)
    arrow(ax, line[-2], line[-1], colour, lw=style["lw"])


def arc(centre: ArrayLike, radius: float, start: float, end: float) -> Floats:
    """Points (49, 2) of an arc on the paper, angles in rad from the right, counter-clockwise."""
    angle = np.linspace(start, end, 49)
    return np.asarray(centre) + radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def dimension(ax: Axes, start: ArrayLike, end: ArrayLike, text: str, aside: ArrayLike = (0.0, 0.0)) -> None:
    """Draw a length between two places, with its words moved `aside` of the middle."""
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    arrow(ax, a, b, SOFT, arrowstyle="<|-|>,head_width=0.14,head_length=0.3", lw=0.9)
    write(ax, (a + b) / 2 + np.asarray(aside), text, fontsize=8.5, color=SOFT)


def triad(
    ax: Axes,
    view: Floats,
    pose: Floats,
    size: float,
    letters: str = "xyz",
    gap: float = 0.28,
    lw: float = 2.0,
) -> None:
    """Draw the axes of a frame as a view shows them.

    Parameters
    ----------
    view : (2, 3) array
        From the root of the poses to the paper.
    pose : (4, 4) array
        T_root_frame, m.
    size : float
        Length of an axis, m. One that stands on the paper is a ring, with a dot if it comes towards the
        reader and a cross if it goes away.
    letters : str
        Written at the tips; a blank for none.
    gap : float
        From a tip to its letter, as a part of the axis.
    """
    origin, towards = view @ pose[:3, 3], np.cross(view[0], view[1])
    for axis in range(3):
        direction, colour = pose[:3, axis], AXIS_COLOURS[axis]
        away = float(direction @ towards)
        if abs(away) > UPRIGHT:
            _upright(ax, origin, away > 0, colour)
            tip = origin - (view @ pose[:3, :3].sum(axis=1)) * size * 0.42
        else:
            end = origin + size * (view @ direction)
            arrow(ax, origin, end, colour, lw=lw, mutation_scale=10)
            tip = end + size * gap * (view @ direction) / np.linalg.norm(view @ direction)
        if letters.strip():
            write(ax, tip, letters[axis], color=colour, fontsize=9, weight="bold", ground="none")


def _upright(ax: Axes, place: Floats, near: bool, colour: str) -> None:
    ax.plot(*place, "o", ms=9, mfc="white", mec=colour, mew=1.6, zorder=7)
    mark: dict[str, Any] = {"marker": "o", "ms": 3} if near else {"marker": "x", "ms": 5, "mew": 1.5}
    ax.plot(*place, color=colour, zorder=8, ls="", **mark)


def box(ax: Axes, centre: ArrayLike, heading: ArrayLike, length: float, width: float, **how: Any) -> None:
    """Draw a rounded box such as a wheel from above; `heading` (2,) is the way of its length on paper."""
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.transforms import Affine2D

    x, y = np.asarray(heading, dtype=np.float64)
    round_ = f"round,pad=0,rounding_size={0.3 * min(width, length):.6g}"
    patch = FancyBboxPatch((-length / 2, -width / 2), length, width, boxstyle=round_)
    patch.set(**({"fc": RUBBER, "ec": INK, "lw": 0.9, "zorder": 3} | how))
    place = Affine2D().rotate(float(np.arctan2(y, x))).translate(*np.asarray(centre, dtype=np.float64))
    patch.set_transform(place + ax.transData)
    ax.add_patch(patch)


def number(ax: Axes, place: ArrayLike, text: str) -> None:
    """Write a number in a white ring."""
    ring = {"boxstyle": "circle,pad=0.22", "fc": "white", "ec": INK, "lw": 0.9}
    write(ax, place, text, fontsize=8.5, weight="bold", bbox=ring)


def signed(value: float, digits: int = 0, unit: str = "°") -> str:
    """Return a number with its sign: +12°, −3.4°, 0°."""
    shown = f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return (shown if shown.strip("+\N{MINUS SIGN}0.") else shown[1:]) + unit
