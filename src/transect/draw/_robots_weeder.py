"""A robot that steers its front wheels: Ackermann's geometry, the antenna, and two forms of the steering.

The body is x forward, y left, z up at the middle of the rear axle; m and rad.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats

from ._robots_parts import (
    ACCENT,
    BODY,
    SECOND,
    SOFT,
    THIRD,
    TOP_LEFT,
    arc,
    arrow,
    box,
    dimension,
    drawing,
    graph,
    shifted,
    show,
    signed,
    title,
    triad,
    turning,
    write,
)
from .frames import DASHES, INK, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

PLANE = TOP_LEFT[:, :2]
FORMS = {"paper": ACCENT, "scripts": SECOND}
LOOKS = {"paper": "solid", "scripts": DASHES}


@dataclass(frozen=True, eq=False)
class Steering:
    """How units of the stepper become a turn.

    Attributes
    ----------
    wheelbase, wheel : float
        From axle to axle, and a wheel's diameter.
    antenna : (2,)
        In the body.
    angle, radius : float
        Of the steered wheel, to the left, and of the circle on which the body goes.
    units : (n,)
        Of the stepper, to the right.
    angles : mapping of str to (n,)
        By form: the steering angle that it uses, to the left.
    zero_raw : float
        Units in the raw log when the robot drives straight ahead.
    """

    wheelbase: float
    wheel: float
    antenna: Floats
    angle: float
    radius: float
    units: Floats
    angles: Mapping[str, Floats]
    zero_raw: float


def draw_steering(figure: FigureBase, steering: Steering) -> None:
    """Draw a turn to the left from above, and the steering angle over the stepper's units."""
    title(
        figure,
        "Steering: the rear axle turns about a point beside it, the antenna swings wider",
        "How far apart the wheels of an axle are is not in the document, nor needed: one stands for both.",
    )
    above, forms = figure.subplots(1, 2, width_ratios=(1.55, 1.0))
    _turn_from_above(above, steering)
    _steering_forms(forms, steering)


def _turn_from_above(ax: Axes, s: Steering) -> None:
    drawing(ax, f"from above, steered {signed(np.degrees(s.angle))}, the most to the left")
    centre, front, antenna = np.array([-s.radius, 0.0]), np.array([0.0, s.wheelbase]), PLANE @ s.antenna
    ahead = np.array([-np.sin(s.angle), np.cos(s.angle)])
    for end in ((0.0, 0.0), front):
        ax.plot(*np.stack([centre, end]).T, color=QUIET, lw=0.9, ls=DASHES, zorder=1)
    box(ax, front / 2, (0, 1), s.wheelbase + 0.3, 0.55, fc=BODY, ec=QUIET, zorder=1)
    box(ax, (0, 0), (0, 1), s.wheel, 0.18)
    box(ax, front, ahead, s.wheel, 0.18)
    ax.plot(*np.stack([front, shifted(front, 0, 1.3)]).T, color=QUIET, lw=0.9, zorder=1)
    ax.plot(*np.stack([front, front + 1.3 * ahead]).T, color=ACCENT, lw=1, ls=DASHES, zorder=4)
    turning(ax, arc(front, 1.15, np.pi / 2, np.pi / 2 + s.angle), ACCENT)
    write(ax, shifted(front, 0.12, 1.15), "δ", color=ACCENT, fontsize=11)
    triad(ax, TOP_LEFT, np.eye(4), 0.62)
    write(ax, (0.35, -0.42), "base_link", ha="left")
    ax.plot(*antenna, "*", ms=13, color=THIRD, zorder=7)
    write(ax, shifted(antenna, 0.2, 0.0), "gps antenna", ha="left", color=THIRD)
    _tracks(ax, s, centre, antenna)
    dimension(ax, (0.6, 0.0), (0.6, s.wheelbase), f"wheelbase\n{s.wheelbase:.2f} m", (0.62, -0.2))
    show(ax, (-s.radius - 0.2, -0.65), (1.75, 3.1))


def _tracks(ax: Axes, s: Steering, centre: Floats, antenna: Floats) -> None:
    """Circles of the body and of the antenna about the centre, and their radii."""
    ax.plot(*centre, "o", ms=6, color=ACCENT, zorder=6)
    write(ax, shifted(centre, 0.0, -0.32), "turns about", color=ACCENT, ha="left")
    start = float(np.arctan2(*(antenna - centre)[::-1]))
    out = float(np.linalg.norm(antenna - centre))
    turning(ax, arc(centre, s.radius, 0.0, 0.62), INK, lw=1.2, ls="solid")
    turning(ax, arc(centre, out, start, start + 0.27), THIRD, lw=1.2)
    write(
        ax,
        shifted(centre, 0.45 * s.radius, -0.0),
        f"{s.radius:.2f} m = wheelbase / tan δ",
        fontsize=8.5,
        color=SOFT,
    )
    ax.plot(*np.stack([centre, antenna]).T, color=THIRD, lw=0.9, ls=DASHES, zorder=1)
    middle = centre + 0.42 * (antenna - centre)
    write(
        ax,
        middle,
        f"{out:.2f} m",
        fontsize=8.5,
        color=THIRD,
        rotation=np.degrees(start),
        rotation_mode="anchor",
    )


def _steering_forms(ax: Axes, s: Steering) -> None:
    graph(ax, "two forms of δ", "units of the stepper, to the right", "δ in degrees, to the left")
    for form, angle in s.angles.items():
        ax.plot(s.units, np.degrees(angle), color=FORMS[form], lw=2, ls=LOOKS[form], label=form)
    ax.axvline(s.zero_raw, color=SOFT, lw=1, ls=":")
    ax.annotate(
        f"straight ahead in\nthe raw log: {signed(s.zero_raw, 2, '')}",
        (s.zero_raw, float(np.degrees(s.angles["paper"]).min())),
        (-6, 2),
        textcoords="offset points",
        ha="right",
        fontsize=8.5,
        color=SOFT,
    )
    ax.legend(loc="upper right", fontsize=9, frameon=False, labelcolor="linecolor", handlelength=2.2)


@dataclass(frozen=True, eq=False)
class Turns:
    """A turn at a furrow's end, driven with one setting of the stepper.

    Attributes
    ----------
    paths : mapping of str to (n, 3)
        By form: x, y and heading of base_link.
    antennas : mapping of str to (n, 2)
        By form.
    units : float
        Of the stepper on the turn.
    """

    paths: Mapping[str, Floats]
    antennas: Mapping[str, Floats]
    units: float


def draw_turns(figure: FigureBase, turns: Turns) -> None:
    """Draw the paths of base_link and of the antenna, and those of both forms."""
    title(figure, "A turn at the furrow's end: which point is tracked, and which form of the steering")
    lever, forms = figure.subplots(1, 2)
    drawing(lever, "base_link and the antenna ahead of it")
    path, antenna = turns.paths["paper"], turns.antennas["paper"]
    lever.plot(*(path[:, :2] @ PLANE.T).T, color=INK, lw=2)
    lever.plot(*(antenna @ PLANE.T).T, color=THIRD, lw=2)
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path[:, :2], axis=0), axis=1))])
    for k in np.searchsorted(way, np.linspace(0.0, way[-1] * (1 - 1e-9), 12)):
        both = np.stack([path[k, :2], antenna[k]]) @ PLANE.T
        lever.plot(*both.T, color=QUIET, lw=1, zorder=1)
        lever.plot(*both[1], "*", ms=8, color=THIRD)
        lever.plot(*both[0], "o", ms=4, color=INK)
    ends = (path[-1, :2] @ PLANE.T, antenna[-1] @ PLANE.T)
    write(lever, ends[0] + (0.35, 0.0), "base_link: what odometry tells", ha="left", fontsize=8.5)
    write(lever, ends[1] + (0.35, 0.0), "antenna: what RTK tracks", ha="left", fontsize=8.5, color=THIRD)
    _fit(lever, np.concatenate([path[:, :2], antenna]) @ PLANE.T, 0.8)
    _draw_forms(forms, turns)


def _draw_forms(ax: Axes, turns: Turns) -> None:
    drawing(ax, f"{turns.units:.0f} units of the stepper, by both forms")
    for form, path in turns.paths.items():
        points = path[:, :2] @ PLANE.T
        ax.plot(*points.T, color=FORMS[form], lw=2, ls=LOOKS[form])
        arrow(ax, points[-2], points[-1], FORMS[form])
        turned = signed(np.degrees(path[-1, 2]))
        beside = {"paper": (0.25, "left"), "scripts": (-0.25, "right")}[form]
        write(ax, points[-1] + (beside[0], 0.1), f"{form}: {turned}", color=FORMS[form], ha=beside[1])
    _fit(ax, np.concatenate([path[:, :2] for path in turns.paths.values()]) @ PLANE.T, 1.0)


def _fit(ax: Axes, points: Floats, margin: float) -> None:
    show(ax, tuple(points.min(axis=0) - margin), tuple(points.max(axis=0) + margin))
