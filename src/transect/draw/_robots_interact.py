"""A rover with four steered wheels: where they are, how they are set, what encoders say, and slip.

Platform is x forward, y left, z up; arrays have one row for each wheel, m and rad.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats

from ._robots_parts import (
    ACCENT,
    BEHIND,
    BODY,
    SECOND,
    SOFT,
    TOP_LEFT,
    arc,
    arrow,
    box,
    dimension,
    drawing,
    graph,
    number,
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

WHEEL = (0.30, 0.11)
"""Length and width of a wheel as drawn, m; no document gives them."""
PLANE = TOP_LEFT[:, :2]
LEGEND = (
    "angles: to the left is +\n\narrows: how the wheels roll\n\n"
    "dashed: axles meet where\nthe rover turns about"
)


@dataclass(frozen=True, eq=False)
class Wheels:
    """Where the wheels are.

    Attributes
    ----------
    swivels : (4, 2)
        The steering axes.
    poses : (4, 4, 4)
        T_Platform_Wheel, straight ahead.
    steered : (4, 4)
        That of the first wheel, turned by `angle`.
    angle : float
    origin : (4, 4)
        T_Platform_Origin.
    names : sequence of str
    """

    swivels: Floats
    poses: Floats
    steered: Floats
    angle: float
    origin: Floats
    names: Sequence[str]


def draw_wheels(figure: FigureBase, wheels: Wheels) -> None:
    """Draw the wheels from above and from behind."""
    title(
        figure,
        "The wheels: counted from front left, axles (x) outwards, steering φ to the left",
        "The wheels' size is made up: the document gives no radius, so there is no line for the ground.",
    )
    above, behind = figure.subplots(1, 2, width_ratios=(1.35, 1.0))
    _wheels_above(above, wheels)
    _wheels_behind(behind, wheels)


def _wheels_above(ax: Axes, wheels: Wheels) -> None:
    drawing(ax, "from above")
    _platform(ax, wheels.swivels)
    _ghost(ax, wheels)
    for k, pose in enumerate(wheels.poses):
        centre, swivel = TOP_LEFT @ pose[:3, 3], PLANE @ wheels.swivels[k]
        ax.plot(*np.stack([swivel, centre]).T, color=INK, lw=2.2, zorder=2)
        ax.plot(*swivel, "o", ms=6, mfc="white", mec=INK, zorder=4)
        box(ax, centre, (0, 1), *WHEEL)
        triad(ax, TOP_LEFT, pose, 0.19)
        beside = centre + 0.14 * np.sign(centre)
        number(ax, shifted(beside, 0, 0.12 * np.sign(centre[1])), str(k + 1))
        write(ax, shifted(beside, 0, 0.23 * np.sign(centre[1])), wheels.names[k])
    triad(ax, TOP_LEFT, np.eye(4), 0.2)
    write(ax, (0.0, -0.17), "Platform", ground=BODY)
    _dimensions_above(ax, wheels)
    show(ax, (-1.0, -0.85), (0.95, 0.85))


def _ghost(ax: Axes, wheels: Wheels) -> None:
    """The first wheel once more, turned, with the angle between both."""
    T, swivel = wheels.steered, PLANE @ wheels.swivels[0]
    centre, axle = TOP_LEFT @ T[:3, 3], TOP_LEFT @ T[:3, 0]
    ahead = np.array([axle[1], -axle[0]])
    box(ax, centre, ahead, *WHEEL, fc="none", ec=ACCENT, ls=DASHES, lw=1.3, zorder=2)
    ax.plot(*np.stack([swivel, swivel + 0.4 * ahead]).T, color=ACCENT, lw=1, ls=DASHES, zorder=2)
    ax.plot(*np.stack([swivel, shifted(swivel, 0, 0.4)]).T, color=QUIET, lw=1, zorder=2)
    turning(ax, arc(swivel, 0.33, np.pi / 2, np.pi / 2 + wheels.angle), ACCENT)
    write(ax, shifted(swivel, 0.03, 0.33), "φ > 0", color=ACCENT, ha="left")


def _dimensions_above(ax: Axes, wheels: Wheels) -> None:
    length, width = wheels.swivels[0]
    swivel, centre = PLANE @ wheels.swivels[1], TOP_LEFT @ wheels.poses[1, :3, 3]
    dimension(ax, (0.0, 0.0), (width, 0.0), f"W  {width:.3f} m", (0.03, 0.06))
    dimension(ax, (0.2, 0.0), (0.2, -length), f"L  {length:.3f} m", (0.0, -0.06))
    arm = float(np.linalg.norm(centre - swivel))
    dimension(ax, shifted(swivel, 0, 0.23), shifted(centre, 0, 0.23), f"d  {arm:.3f} m", (-0.06, 0.07))


def _wheels_behind(ax: Axes, wheels: Wheels) -> None:
    drawing(ax, "from behind; the frames are drawn apart")
    left, right = wheels.poses[1:3, :3, 3] @ BEHIND.T  # those that one sees
    for k, centre in ((2, left), (3, right)):
        box(ax, centre, (0, 1), *WHEEL, alpha=0.55)
        number(ax, shifted(centre, 0, -0.22), str(k))
    up = float(wheels.origin[2, 3])
    for height in (left[1], 0.0, up):
        ax.plot((left[0], right[0]), (height, height), color=QUIET, lw=0.8, zorder=0)
    aside = np.array([[0.0, -0.23, 0.0], [0.0, 0.23, 0.0]])
    for pose, move, name in zip((wheels.origin, np.eye(4)), aside, ("Origin", "Platform"), strict=True):
        moved = pose.copy()
        moved[:3, 3] += move
        triad(ax, BEHIND, moved, 0.15)
        beside = (0.0, 0.27) if name == "Platform" else (0.09, 0.08)
        write(ax, BEHIND @ moved[:3, 3] + beside, name)
    dimension(ax, (0.0, 0.0), (0.0, left[1]), f"H  {-left[1]:.3f} m", (0.0, -0.12))
    dimension(ax, (0.0, 0.0), (0.0, up), f"{up:.3f} m", (0.0, 0.1))
    show(ax, (-0.64, -0.42), (0.64, 0.32))


def _platform(ax: Axes, swivels: Floats) -> None:
    from matplotlib.patches import Polygon

    corners = swivels @ PLANE.T
    ax.add_patch(Polygon(corners, closed=True, fc=BODY, ec=QUIET, lw=1.2, zorder=1))


def _set_wheels(ax: Axes, swivels: Floats, poses: Floats, scale: float = 1.0) -> Floats:
    """Draw platform and wheels as they are set, and return where these are on the paper (4, 2)."""
    _platform(ax, swivels)
    centres = poses[:, :3, 3] @ TOP_LEFT.T
    for swivel, centre, axle in zip(swivels @ PLANE.T, centres, poses[:, :3, 0] @ TOP_LEFT.T, strict=True):
        ax.plot(*np.stack([swivel, centre]).T, color=INK, lw=1.4, zorder=2)
        box(ax, centre, (-axle[1], axle[0]), scale * WHEEL[0], scale * WHEEL[1], lw=0.7)
    return centres


# Manoeuvres


@dataclass(frozen=True, eq=False)
class Manoeuvre:
    """One setting of the wheels.

    Attributes
    ----------
    name : str
        What the model calls it.
    steering : (4,)
    poses : (4, 4, 4)
        T_Platform_Wheel.
    velocities : (4, 2)
        Of the wheels over the ground in Platform, m/s.
    centre : (2,)
        About which the platform turns; NaN where it does not.
    """

    name: str
    steering: Floats
    poses: Floats
    velocities: Floats
    centre: Floats


def draw_manoeuvres(figure: FigureBase, manoeuvres: Sequence[Manoeuvre], swivels: Floats) -> None:
    """Draw the manoeuvres side by side, each wheel with its steering angle and the way it rolls."""
    title(
        figure,
        "The manoeuvres of Figure 7, told from the signs of the four steering angles",
        "The figure is lost in our copy; its signs follow from the text. "
        "On Etna only left and right turns were commanded.",
    )
    rows = -(-len(manoeuvres) // 4)
    panels = figure.subplots(rows, 4).ravel().tolist()
    for ax, manoeuvre in zip(panels, manoeuvres, strict=False):
        _draw_manoeuvre(ax, manoeuvre, swivels)
    for ax in panels[len(manoeuvres) :]:
        drawing(ax)
        write(ax, (0.05, 0.5), LEGEND, ha="left", color=SOFT)


def _draw_manoeuvre(ax: Axes, manoeuvre: Manoeuvre, swivels: Floats) -> None:
    drawing(ax)
    ax.set_title(manoeuvre.name, fontsize=10, color=INK, weight="bold", pad=2)
    centres = _set_wheels(ax, swivels, manoeuvre.poses)
    if np.isfinite(manoeuvre.centre).all():
        meet = PLANE @ manoeuvre.centre
        for centre in centres:
            ax.plot(*np.stack([centre, meet]).T, color=QUIET, lw=0.8, ls=DASHES, zorder=1.5)
        ax.plot(*meet, "o", ms=5, color=ACCENT, zorder=6)
    fastest = float(np.linalg.norm(manoeuvre.velocities, axis=1).max()) or 1.0
    for k, centre in enumerate(centres):
        way = PLANE @ manoeuvre.velocities[k] / fastest
        arrow(ax, centre, centre + 0.36 * way, ACCENT, lw=1.5, mutation_scale=9)
        write(ax, 0.5 * PLANE @ swivels[k], signed(np.degrees(manoeuvre.steering[k])), ground=BODY)
    show(ax, (-1.0, -0.85), (1.0, 0.85))


# Encoders


@dataclass(frozen=True, eq=False)
class Encoders:
    """What ticks mean.

    Attributes
    ----------
    drive_ticks, drive_angles : (n,)
    steer_ticks : (m,)
    steer_angles : (m, 4)
    polarity : (4,)
    ticks_per_turn, ticks_per_degree, ticks_per_mm : float
    """

    drive_ticks: Floats
    drive_angles: Floats
    steer_ticks: Floats
    steer_angles: Floats
    polarity: Floats
    ticks_per_turn: float
    ticks_per_degree: float
    ticks_per_mm: float


def draw_encoders(figure: FigureBase, encoders: Encoders) -> None:
    """Draw the angles over the ticks of the drive and the steering motors."""
    title(figure, "From ticks to angles: a wheel's turn, and its steering by a rack")
    drive, steer = figure.subplots(1, 2)
    graph(drive, "drive (eq. 4)", "thousand ticks, forward positive", "ψ in turns")
    turns = encoders.drive_angles / (2 * np.pi)
    drive.plot(encoders.drive_ticks / 1000, turns, color=INK, lw=2)
    drive.plot((encoders.ticks_per_turn / 1000,) * 2, (turns.min(), 1), color=ACCENT, lw=1, ls=DASHES)
    drive.plot((0, encoders.ticks_per_turn / 1000), (1, 1), color=ACCENT, lw=1, ls=DASHES)
    drive.plot(encoders.ticks_per_turn / 1000, 1, "o", color=ACCENT)
    mark = f"{encoders.ticks_per_turn:,.0f} ticks: one turn"
    drive.annotate(mark, (encoders.ticks_per_turn / 1000, 1), (-8, 9), textcoords="offset points", **_WORDS)
    _draw_steering(steer, encoders)


_WORDS = {"ha": "right", "fontsize": 9, "color": ACCENT}


def _draw_steering(ax: Axes, encoders: Encoders) -> None:
    graph(ax, "steering (eq. 5, with its minus)", "thousand ticks", "φ in degrees, to the left")
    for sign, colour, name in ((1.0, SECOND, "2, 3 (rear): p = +1"), (-1.0, ACCENT, "1, 4 (front): p = −1")):
        wheel = int(np.flatnonzero(encoders.polarity == sign)[0])
        angle = np.degrees(encoders.steer_angles[:, wheel])
        ax.plot(encoders.steer_ticks / 1000, angle, color=colour, lw=2, label=f"wheels {name}")
    ax.plot(0, 0, "o", color=INK, zorder=5)
    ax.annotate(
        "no ticks: straight ahead", (0, 0), (9, -3), textcoords="offset points", fontsize=9, color=INK
    )
    ax.legend(loc="upper center", fontsize=9, frameon=False, labelcolor="linecolor", handlelength=1.2)
    ax.set_ylim(top=float(np.degrees(encoders.steer_angles).max()) * 1.5)
    per_mm, per_degree = encoders.ticks_per_mm, encoders.ticks_per_degree

    def to_rack(thousands: Any) -> Any:
        return thousands * 1000 / per_mm

    def from_rack(millimetres: Any) -> Any:
        return millimetres * per_mm / 1000

    rack = ax.secondary_xaxis(-0.24, functions=(to_rack, from_rack))
    told = f"mm of the rack ({per_mm:g} ticks each; {per_degree:.0f} ticks a degree)"
    rack.set_xlabel(told, fontsize=9, color=SOFT)
    rack.tick_params(labelsize=8.5, colors=SOFT, length=3)
    rack.spines["bottom"].set_color(QUIET)


# Slip


@dataclass(frozen=True, eq=False)
class Slipping:
    """Wheels that slip.

    Attributes
    ----------
    swivels : (4, 2)
    poses : (4, 4, 4)
        T_Platform_Wheel.
    ground : (4, 2)
        Velocities over the ground, in Platform, m/s.
    rim : (4, 2)
        Velocities that the encoders tell, along each wheel, m/s.
    ratio, angle : (4,)
    """

    swivels: Floats
    poses: Floats
    ground: Floats
    rim: Floats
    ratio: Floats
    angle: Floats


def draw_slip(figure: FigureBase, slipping: Slipping) -> None:
    """Draw what the rims do beside what the ground does, on a platform, and enlarged on one wheel."""
    title(
        figure,
        "Slip: what a wheel's encoder says against how its contact point really moves",
        "A left turn on a slope that falls to the right, with spinning wheels. The ground's velocity is "
        "that of the platform's twist at the wheel.",
    )
    whole, one = figure.subplots(1, 2, width_ratios=(1.1, 1.0))
    drawing(whole, "four wheels from above")
    centres = _set_wheels(whole, slipping.swivels, slipping.poses)
    longest = float(np.linalg.norm(slipping.rim, axis=1).max())
    for k, centre in enumerate(centres):
        for velocity, colour in ((slipping.rim[k], ACCENT), (slipping.ground[k], SECOND)):
            arrow(whole, centre, centre + 0.5 * PLANE @ velocity / longest, colour)
        inward = PLANE @ slipping.swivels[k] * (0.6, 0.72)
        told = f"{signed(100 * slipping.ratio[k], 0, ' %')}\n{signed(np.degrees(slipping.angle[k]), 0)}"
        write(whole, inward, told, ground=BODY)
    write(whole, (0, 0), "slip ratio\nslip angle", color=SOFT, ground=BODY)
    show(whole, (-0.8, -0.65), (0.8, 0.85))
    _draw_one_slip(one, slipping)


def _draw_one_slip(ax: Axes, slipping: Slipping) -> None:
    drawing(ax, "wheel 1, with its own line upright")
    along = slipping.rim[0] / np.linalg.norm(slipping.rim[0])
    left = np.array([-along[1], along[0]])
    rim, rolling, lateral = (
        float(v) for v in (slipping.rim[0] @ along, slipping.ground[0] @ along, slipping.ground[0] @ left)
    )
    tip = np.array([-lateral, rolling])
    box(ax, (0, 0), (0, 1), 0.5 * rim, 0.18 * rim, alpha=0.6)
    ax.plot((0, 0), (-0.35 * rim, 1.15 * rim), color=QUIET, lw=0.9, ls=DASHES)
    arrow(ax, (0, 0), (0, rim), ACCENT, lw=2.4)
    arrow(ax, (0, 0), tip, SECOND, lw=2.4)
    ax.plot((0, tip[0]), (rolling, rolling), color=SECOND, lw=1, ls=DASHES)
    start = np.pi / 2
    turning(ax, arc((0, 0), 0.55 * rim, start, np.arctan2(tip[1], tip[0])), SOFT)
    write(ax, (-0.04 * rim, 0.97 * rim), "rim", color=ACCENT, ha="right", weight="bold")
    write(ax, shifted(tip, 0.05 * rim, -0.02 * rim), "ground", color=SECOND, ha="left", weight="bold")
    write(ax, (-0.06 * rim, rolling), "rolling", color=SECOND, ha="right")
    write(ax, (tip[0] / 2, rolling + 0.07 * rim), "lateral", color=SECOND, fontsize=8.5)
    write(
        ax, (0.37 * rim, 0.38 * rim), f"angle {signed(np.degrees(slipping.angle[0]))}", color=SOFT, ha="left"
    )
    told = (
        f"ratio {signed(100 * slipping.ratio[0], 0, ' %')}  =  (rim − rolling) / max(|rim|, |rolling|)\n"
        "0 rolls,  +100 % spins on the spot,  −100 % is dragged\n"
        f"angle {signed(np.degrees(slipping.angle[0]))}  =  atan2(lateral, |rolling|),  to the left positive"
    )
    write(ax, (-0.85 * rim, -0.52 * rim), told, ha="left", linespacing=1.5)
    show(ax, (-0.9 * rim, -0.72 * rim), (0.95 * rim, 1.1 * rim))
