"""A lander's arm: its frames and tools from the side, how it sags, and the limits of joints and currents.

The base is x forward, z down; the arm is seen in its own plane, outwards to the right; m and rad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats

from ._robots_parts import (
    ACCENT,
    BODY,
    SECOND,
    SOFT,
    THIRD,
    arrow,
    drawing,
    graph,
    number,
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

KINDS = {"rigid": ACCENT, "camera": THIRD, "hanging": SECOND}
HELD = {"rigid": "on the wrist", "camera": "on the forearm", "hanging": "hangs along gravity"}


@dataclass(frozen=True, eq=False)
class ToolPlace:
    """Where a tool is.

    Attributes
    ----------
    name : str
    kind : {"rigid", "camera", "hanging"}
    held : (3,)
        Where it is held: on the wrist, on the forearm, or where its umbilical begins; in ArmBase.
    place : (3,)
    approach : (3,)
        Its approach axis.
    """

    name: str
    kind: str
    held: Floats
    place: Floats
    approach: Floats


@dataclass(frozen=True, eq=False)
class Posture:
    """The arm at one set of joint angles.

    Attributes
    ----------
    name : str
    angles : (4,)
    frames : (5, 4, 4)
        T_ArmBase_i of the Denavit-Hartenberg frames.
    tools : sequence of ToolPlace
    computed, printed : (4,)
        x, y, z, th of one tool: ours, and the document's.
    of : str
        Which tool.
    """

    name: str
    angles: Floats
    frames: Floats
    tools: Sequence[ToolPlace]
    computed: Floats
    printed: Floats
    of: str

    @property
    def view(self) -> Floats:
        """(2, 3): to the paper, outwards to the right and down."""
        yaw = self.angles[0]
        return np.array([[np.cos(yaw), np.sin(yaw), 0.0], [0.0, 0.0, -1.0]])


def draw_arm(figure: FigureBase, postures: Sequence[Posture]) -> None:
    """Draw the arm in its plane at two postures, with its frames and tools."""
    title(
        figure,
        "The arm in its own plane: frames, joints, and three ways in which tools are held",
        "Standard Denavit-Hartenberg frames 0, 2 and 4; frames 1 and 3 stand at joints 2 and 4. "
        "Payload's z points down: a negative\nangle of joint 2 lifts the arm. Where the grapple hangs is "
        "fitted to the posture on the right (invented): the document lost it.",
    )
    wide, tall = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    _draw_posture(wide, postures[0], (0.0, -0.68), ((-0.14, 0.1), (0.05, 0.16), (-0.13, -0.12)))
    show(wide, (-0.25, -0.8), (1.85, 0.75))
    _draw_posture(tall, postures[1], (-0.7, -0.42), ((-0.16, 0.12), (-0.19, 0.04), (0.13, 0.13)))
    show(tall, (-0.72, -0.55), (0.95, 2.1))


def _draw_posture(
    ax: Axes, p: Posture, at: tuple[float, float], joints: Sequence[tuple[float, float]]
) -> None:
    """Draw one posture; its numbers stand `at` a place, those of joints 2 to 4 beside these."""
    angles = ", ".join(signed(np.degrees(angle)) for angle in p.angles)
    drawing(ax, f"{p.name}  ({angles})")
    origins = p.frames[:, :3, 3] @ p.view.T
    ax.plot((-0.25, 0.4), (0, 0), color=INK, lw=1.2, zorder=1)
    write(ax, (-0.24, -0.1), "deck", ha="left", color=SOFT)
    _draw_links(ax, origins)
    for tool in p.tools:
        _draw_tool(ax, p.view, tool)
    for k in (0, 2, 4):
        triad(ax, p.view, p.frames[k], 0.17, lw=1.7)
    for joint, (place, beside) in enumerate(zip(origins[1:4], joints, strict=True), 2):
        number(ax, place + beside, str(joint))
    _write_poses(ax, p, at)


def _draw_links(ax: Axes, origins: Floats, colour: str = QUIET, width: float = 7.0, **how: Any) -> None:
    """Draw the arm's links through the origins (n, 2) of its frames."""
    style: dict[str, Any] = {"solid_capstyle": "round", "solid_joinstyle": "round", "zorder": 2, "alpha": 0.6}
    ax.plot(*origins.T, color=colour, lw=width, **(style | how))


def _draw_tool(ax: Axes, view: Floats, tool: ToolPlace) -> None:
    colour, held, place = KINDS[tool.kind], view @ tool.held, view @ tool.place
    style = DASHES if tool.kind == "hanging" else "solid"
    ax.plot(*np.stack([held, place]).T, color=colour, lw=1.6, ls=style, zorder=3)
    ax.plot(*place, "s", ms=6, color=colour, zorder=6)
    arrow(ax, place, place + 0.2 * (view @ tool.approach), colour, lw=1.4, mutation_scale=9)
    to_left = tool.kind != "hanging" and (place - held)[0] < 0
    aside = np.array([-0.09 if to_left else 0.09, 0.0 if tool.kind == "hanging" else -0.13])
    told = f"{tool.name}\n{HELD[tool.kind]}"
    write(ax, place + aside, told, color=colour, ha="right" if to_left else "left", fontsize=8.5)


def _write_poses(ax: Axes, p: Posture, at: tuple[float, float]) -> None:
    """Write where a tool is, by the model and by the document."""
    rows = [f"{p.of:8}" + "".join(f"{name:>8}" for name in ("x", "y", "z", "th"))]
    for who, pose in (("model", p.computed), ("printed", p.printed)):
        rows.append(f"{who:8}" + "".join(f"{value:8.3f}" for value in pose))
    write(ax, at, "\n".join(rows).replace("-", "\N{MINUS SIGN}"), ha="left", family="monospace", fontsize=8)


# Sag


@dataclass(frozen=True, eq=False)
class Sag:
    """How far the arm gives way.

    Attributes
    ----------
    points : (n, 2)
        Along the stiff arm, in its plane: outwards and up, m.
    moved : mapping of str to (n, 2)
        By load: by how much they move.
    down : mapping of str to float
        By load: how far the grapple comes down, m.
    printed : mapping of str to float
        What the document has of these.
    """

    points: Floats
    moved: Mapping[str, Floats]
    down: Mapping[str, float]
    printed: Mapping[str, float]


EXAGGERATED = 20.0
MARKS: tuple[dict[str, Any], ...] = (
    {"marker": "o", "ms": 10, "mfc": "none", "mec": THIRD, "mew": 2},
    {"marker": "s", "ms": 6, "color": SECOND},
    {"marker": "D", "ms": 5, "color": INK},
)


def draw_sag(figure: FigureBase, sag: Sag) -> None:
    """Draw the stiff and the sagging arm, and how far the grapple comes down by its load."""
    title(
        figure,
        "The arm sags: the same joint angles, the tool a few millimetres lower",
        "At the joint angles of Table 12, in Mars' gravity. For numbers that no source gives, "
        "those of the stowed arm are taken, and a stiff base.",
    )
    arm, bars = figure.subplots(1, 2, width_ratios=(1.35, 1.0))
    drawing(arm, f"from the side, the sag drawn {EXAGGERATED:.0f} times as large")
    _draw_links(arm, sag.points, width=6.0)
    write(arm, sag.points[1] * (0.5, 0) + sag.points[2] * 0.5 + (-0.05, 0.13), "stiff", color=SOFT)
    loads = list(sag.moved)
    for load, colour in ((loads[0], THIRD), (loads[-1], ACCENT)):
        bent = sag.points + EXAGGERATED * sag.moved[load]
        _draw_links(arm, bent, colour, 2.2, alpha=1.0)
        arrow(arm, sag.points[-1], bent[-1], colour, lw=1.0, ls=":", mutation_scale=8)
        told = f"{load} grappled, {1000 * sag.down[load]:.1f} mm"
        write(arm, bent[-1] + (0.06, 0.0), told, color=colour, ha="left")
    arm.plot((-0.1, 0.4), (0, 0), color=INK, lw=1.2, zorder=1)
    show(arm, (-0.1, -0.75), (1.95, 0.62))
    _draw_loads(bars, sag)


def _draw_loads(ax: Axes, sag: Sag) -> None:
    graph(ax, "how far the grapple comes down", "mm", "")
    loads = list(sag.down)
    values = [1000 * sag.down[load] for load in loads]
    ax.barh(range(len(loads)), values, height=0.55, color=[THIRD, QUIET, QUIET, ACCENT])
    for row, (load, value) in enumerate(zip(loads, values, strict=True)):
        told = f"{value:.1f}"
        if load in sag.printed:
            told += f"   (Table 12: {1000 * sag.printed[load]:.1f})"
        ax.text(value + 0.4, row, told, va="center", fontsize=9, color=INK)
    _rows(ax, loads)
    ax.set_xlim(0, 1.2 * max(values))


# Limits


@dataclass(frozen=True, eq=False)
class Limits:
    """What the joints and their motors may do.

    Attributes
    ----------
    joints : sequence of str
    lower, upper : (4,)
    margin : (4,)
        From a hard stop inwards, in which a move is a fault.
    marks : mapping of str to (4,)
        Joint angles to show.
    base, detent : (4,)
        The two parts of a current limit, A.
    printed : (4,)
        The limits in the document, A.
    """

    joints: Sequence[str]
    lower: Floats
    upper: Floats
    margin: Floats
    marks: Mapping[str, Floats]
    base: Floats
    detent: Floats
    printed: Floats


def draw_limits(figure: FigureBase, limits: Limits) -> None:
    """Draw the ranges of the joints, and the currents at which motors are stopped."""
    title(figure, "Limits: how far the joints turn, and at which currents the motors are stopped")
    angles, currents = figure.subplots(1, 2, width_ratios=(1.3, 1.0))
    graph(angles, "joint angles between the hard stops", "degrees", "")
    rows = np.arange(len(limits.joints))
    low, high = np.degrees(limits.lower), np.degrees(limits.upper)
    angles.barh(rows, high - low, left=low, height=0.5, color=BODY, edgecolor=QUIET)
    for edges, sign in ((low, 1.0), (high, -1.0)):
        angles.barh(rows, sign * np.degrees(limits.margin), left=edges, height=0.5, color=ACCENT, alpha=0.7)
        for row, edge in zip(rows, edges, strict=True):
            angles.text(
                edge - sign * 14,
                row,
                signed(edge),
                va="center",
                ha="right" if sign > 0 else "left",
                fontsize=8.5,
            )
    for (name, values), look in zip(limits.marks.items(), MARKS, strict=True):
        angles.plot(np.degrees(values), rows, ls="", label=name, zorder=4, **look)
    angles.legend(loc="lower left", fontsize=8.5, frameon=False)
    _rows(angles, limits.joints, 1.0)
    angles.set_xlim(-290, 300)
    _draw_currents(currents, limits)


def _rows(ax: Axes, names: Sequence[str], below: float = 0.0) -> None:
    """Name the rows of bars from the top down, with room for so many more below them."""
    ax.set_yticks(range(len(names)), names, fontsize=9)
    ax.set_ylim(len(names) - 0.5 + below, -0.5)
    ax.grid(visible=False, axis="y")


def _draw_currents(ax: Axes, limits: Limits) -> None:
    graph(ax, "current limits: model (printed)", "mA", "")
    rows, base, detent = np.arange(4), 1000 * limits.base, 1000 * limits.detent
    ax.barh(rows, base, height=0.5, color=QUIET, label="current_limit")
    ax.barh(rows, detent, left=base, height=0.5, color=THIRD, alpha=0.75, label="tau_detent / Ka")
    ax.plot(1000 * limits.printed, rows, "|", ms=16, mew=2, color=INK, label="printed")
    for row, (ours, theirs) in enumerate(zip(base + detent, 1000 * limits.printed, strict=True)):
        ax.text(
            max(ours, theirs) + 6, row, f"{ours:.1f} ({theirs:.0f})", va="center", fontsize=8.5, color=INK
        )
    _rows(ax, ("1", "2", "3", "4"), 1.0)
    ax.set_xlim(0, 430)
    ax.legend(loc="lower right", fontsize=8.5, frameon=False, ncols=2, columnspacing=1.0, handlelength=1.2)
