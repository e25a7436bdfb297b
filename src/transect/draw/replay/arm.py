"""An arm that moves over the deck it stands on: its links and tools, the way of a tool, and its joints.

The RSVP replay of document 002, section 5.1.7: from joint angles over the lander's deck.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.planar import hull_of

from ..figures import INK
from ..frames import AXIS_COLOURS
from ..robots import Scene, Solid
from .stage import (
    HEIGHT,
    WIDTH,
    Curve,
    Judged,
    Pixels,
    Progress,
    Stage,
    add_clock,
    add_strips,
    clean_axes,
    new_stage_figure,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

BOX = (0.03, 0.11, 0.66, 0.79)
"""Of the scene in the figure, in parts of it."""
AZIMUTH, ELEVATION = np.radians(-52.0), np.radians(24.0)
"""Where the viewer stands: right of the front, and above; rad."""
LIGHT = np.array([0.35, -0.45, 0.82])
STEP = 0.25
"""Metres between lines of the ground's grid."""
LINK, WAY, DECK = "#d9a441", "#d1495b", np.array([0.80, 0.845, 0.885])
LOOKED_AT = 60
"""Moments from which the size of the picture is found."""


@dataclass(frozen=True, eq=False)
class Move:
    """A movement of an arm to be shown.

    Attributes
    ----------
    title, subtitle : str
    scene_at : callable
        Returns the robot at a second: frames with z up, m; its first chain is the arm, from base to wrist.
    tools : sequence of str
        Frames that are fixed to the wrist, the one whose way is drawn first.
    curves : sequence of Curve
        Joints over time.
    states : sequence of Judged
    duration : float
        Seconds.
    clock : callable
        Returns the time of a second, as text.
    """

    title: str
    subtitle: str
    scene_at: Callable[[float], Scene]
    tools: Sequence[str]
    curves: Sequence[Curve]
    states: Sequence[Judged]
    duration: float
    clock: Callable[[float], str]


def view_axes() -> tuple[Floats, Floats]:
    """Return the (2, 3) projection to the right and up of the paper, and the (3,) direction to the viewer."""
    c, s, ce, se = np.cos(AZIMUTH), np.sin(AZIMUTH), np.cos(ELEVATION), np.sin(ELEVATION)
    return np.array([[-s, c, 0.0], [-se * c, -se * s, ce]]), np.array([ce * c, ce * s, se])


def move_frames(move: Move, seconds: Iterable[float]) -> Iterator[Pixels]:
    """Yield a picture (720, 1280, 3) for each of some times, which go up."""
    figure = new_stage_figure(move.title, move.subtitle)
    axes = figure.add_axes(BOX)
    looked = [move.scene_at(second) for second in np.linspace(0, move.duration, LOOKED_AT).tolist()]
    floor = _draw_still(axes, looked, move)
    strips = add_strips(figure, move.curves, move.duration, 0.72)
    progress = Progress(figure, move.duration, move.states)
    time = add_clock(figure)
    way = axes.plot([], [], color=WAY, lw=1.8, animated=True, zorder=6, solid_capstyle="round")[0]
    arm, stage = _Figure(axes, looked[0], move, floor), Stage(figure)
    before: Floats | None = None
    for second in seconds:
        scene = move.scene_at(second)
        tip = view_axes()[0] @ _tip(scene, move)
        if before is not None:
            way.set_data(*np.stack([before, tip]).T)
            stage.keep([way])
        before = tip
        time.set_text(move.clock(second))  # pyright: ignore[reportAttributeAccessIssue]
        beside = [artist for strip in strips for artist in strip.at(second)]
        yield stage.show([*arm.at(scene), time, *progress.at(second), *beside])


def _tip(scene: Scene, move: Move) -> Floats:
    return scene.poses[move.tools[0]][:3, 3] if move.tools else scene.chains[0][-1]


def _points(scene: Scene, move: Move) -> Floats:
    return np.concatenate([*scene.chains, *(scene.poses[name][None, :3, 3] for name in move.tools)])


def _draw_still(axes: Axes, looked: Sequence[Scene], move: Move) -> float:
    """Draw deck, ground and axes, and set the window; return the height of the ground's grid."""
    project, _ = view_axes()
    fixed = [solid for solid in looked[0].solids if solid.kind == "body"]
    moved = np.concatenate([_points(scene, move) for scene in looked])
    every = np.concatenate([moved, *(solid.points for solid in fixed)])
    floor = float(every[:, 2].min()) - 0.03
    low, high = every[:, :2].min(axis=0) - 0.2, every[:, :2].max(axis=0) + 0.2
    edges = (np.floor(low / STEP) * STEP, np.ceil(high / STEP) * STEP)
    corners = np.array(
        [[x, y, floor] for x in (edges[0][0], edges[1][0]) for y in (edges[0][1], edges[1][1])]
    )
    _set_window(axes, np.concatenate([every, corners]) @ project.T)
    clean_axes(axes)
    _draw_grid(axes, *edges, floor)
    for solid in fixed:
        _draw_solid(axes, solid, floor)
    _draw_triad(axes, looked[0].chains[0][0])
    return floor


def _set_window(axes: Axes, flat: Floats) -> None:
    low, high = flat.min(axis=0), flat.max(axis=0)
    shape = BOX[2] * WIDTH / (BOX[3] * HEIGHT)
    width, height = 1.06 * (high - low)
    size = np.array([max(width, height * shape), max(height, width / shape)])
    middle = (low + high) / 2
    (left, bottom), (right, top) = middle - size / 2, middle + size / 2
    axes.set(xlim=(left, right), ylim=(bottom, top))


def _draw_grid(axes: Axes, low: Floats, high: Floats, floor: float) -> None:
    """Draw the lines of a level plane, the lowest place of what is seen."""
    project, _ = view_axes()
    corners = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])
    plane = np.column_stack([corners, np.full(4, floor)]) @ project.T
    axes.fill(*plane.T, color="#f4efe9", zorder=0)
    for axis in (0, 1):
        for value in np.arange(low[axis], high[axis] + STEP / 2, STEP):
            ends = np.array([[0.0, 0.0, floor]] * 2)
            ends[:, axis], ends[:, 1 - axis] = value, (low[1 - axis], high[1 - axis])
            whole = abs(value - round(value)) < 1e-9
            axes.plot(*(ends @ project.T).T, color="#d8cdc2", lw=1.1 if whole else 0.5, zorder=0.5)
    place = plane.min(axis=0)
    axes.annotate(
        f"grid of {STEP:g} m, {-floor:.2f} m below the frame of the deck", (plane[:, 0].mean(), place[1]),
        xytext=(0, -11), textcoords="offset points", ha="center", fontsize=8, color="#8a7f74",
    )  # fmt: skip


def _draw_solid(axes: Axes, solid: Solid, floor: float) -> None:
    """Draw a convex part with its sides in the light, and its shadow on the ground."""
    from scipy.spatial import ConvexHull

    project, viewer = view_axes()
    shadow = solid.points * (1, 1, 0) + np.array([0.0, 0.0, floor])
    axes.fill(*hull_of(shadow @ project.T).T, color="#b9ada1", alpha=0.35, lw=0, zorder=0.8)
    hull = ConvexHull(solid.points)
    for corners, normal in zip(hull.simplices, hull.equations[:, :3], strict=True):
        if normal @ viewer > 0:
            shade = 0.72 + 0.28 * max(0.0, float(normal @ LIGHT))
            colour = tuple(np.clip(DECK * shade, 0, 1))
            axes.fill(*(solid.points[corners] @ project.T).T, color=colour, ec=colour, lw=0.6, zorder=1)
    edge: dict[str, Any] = {"ls": (0, (4, 2))} if solid.invented else {}
    axes.fill(*hull_of(solid.points @ project.T).T, fc="none", ec="#7d8a96", lw=1.0, zorder=1.2, **edge)
    flat = solid.points @ project.T
    place = 0.6 * flat.mean(axis=0) + 0.4 * flat[flat[:, 0].argmin()]  # away from the arm
    note = f"{solid.name}, its size a guess" if solid.invented else solid.name
    axes.text(place[0], place[1], note, fontsize=8.5, color="#5a6570", ha="center", va="center", zorder=1.4)


def _draw_triad(axes: Axes, origin: Floats) -> None:
    """Draw x, y and z at the arm's base."""
    project, _ = view_axes()
    for direction, colour, name in zip(np.eye(3) * 0.22, AXIS_COLOURS, "xyz", strict=True):
        ends = np.stack([origin, origin + direction]) @ project.T
        axes.plot(*ends.T, color=colour, lw=1.6, zorder=2)
        axes.annotate(name, ends[1], xytext=3 * np.sign(ends[1] - ends[0]), textcoords="offset points",
                      fontsize=8, color=colour, ha="center", va="center", zorder=2)  # fmt: skip


class _Figure:
    """The arm: shadow, what its camera sees, links, joints and tools, made once and then moved."""

    def __init__(self, axes: Axes, scene: Scene, move: Move, floor: float) -> None:
        self._move, self._floor = move, floor
        tools = len(move.tools)
        self._shadows = [
            _new_line(axes, "#9a8e82", 5 if k == 0 else 2.5, 1, alpha=0.4) for k in range(1 + tools)
        ]
        cameras = [solid for solid in scene.solids if solid.kind == "camera"]
        look: dict[str, Any] = {"color": "#16808a", "alpha": 0.13, "lw": 0, "zorder": 3, "animated": True}
        self._cameras = [axes.fill([0, 1, 1], [0, 0, 1], **look)[0] for _ in cameras]
        self._links = [_new_line(axes, *how) for how in ((INK, 11, 4), (LINK, 8, 5), ("#f3d28e", 2.2, 5.5))]
        self._stubs = [
            [_new_line(axes, *how) for how in ((INK, 5.5, 6), ("#8894a0", 3.2, 6.5))] for _ in range(tools)
        ]
        self._joints = _new_line(axes, "white", 0, 7, marker="o", ms=7, mec=INK, mew=1.4)
        self._tip = _new_line(axes, WAY, 0, 8, marker="o", ms=6, mec="white", mew=1.2)
        name = move.tools[0] if move.tools else ""
        self._name = axes.annotate(
            name, (0, 0), xytext=(9, -9), textcoords="offset points", fontsize=9, color=WAY, weight="bold",
            animated=True, zorder=9,
        )  # fmt: skip

    def at(self, scene: Scene) -> list[Artist]:
        """Return what is drawn of one moment."""
        project, _ = view_axes()
        chain = scene.chains[0]
        stubs = [np.stack([chain[-1], scene.poses[name][:3, 3]]) for name in self._move.tools]
        for line, part in zip(self._shadows, (chain, *stubs), strict=True):
            line.set_data(project @ (part * (1, 1, 0) + np.array([0.0, 0.0, self._floor])).T)
        fields = [solid for solid in scene.solids if solid.kind == "camera"]
        for patch, solid in zip(self._cameras, fields, strict=True):
            patch.set_xy(hull_of(solid.points @ project.T))
        for line, lifted in zip(self._links, (0.0, 0.0, 0.008), strict=True):
            line.set_data(project @ (chain + np.array([0.0, 0.0, lifted])).T)
        for lines, stub in zip(self._stubs, stubs, strict=True):
            for line in lines:
                line.set_data(project @ stub.T)
        self._joints.set_data(project @ chain.T)
        tip = project @ _tip(scene, self._move)
        self._tip.set_data(tip[:1], tip[1:])
        self._name.xy = tuple(tip)
        tools = [line for lines in self._stubs for line in lines]
        return [*self._shadows, *self._cameras, *self._links, *tools, self._joints, self._tip, self._name]


def _new_line(axes: Axes, colour: str, width: float, order: float, **look: Any) -> Line2D:
    return axes.plot(
        [], [], color=colour, lw=width, zorder=order, animated=True, solid_capstyle="round",
        solid_joinstyle="round", **look,
    )[0]  # fmt: skip
