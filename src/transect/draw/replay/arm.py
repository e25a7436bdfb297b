"""An animation of an arm over its deck: its links and tools, the path of a tool, and its joints.

Like the RSVP replay in the InSight SIS, section 5.1.7: from joint angles, over the lander's deck.
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
from ..robots import RobotScene, RobotSolid
from .stage import (
    FRAME,
    Pixels,
    ProgressStrip,
    SignalCurve,
    Stage,
    VerdictInterval,
    add_clock,
    add_strips,
    clean_axes,
    new_stage_figure,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

SCENE_BOX = (0.03, 0.11, 0.66, 0.79)
"""Left, bottom, width and height of the scene in figure coordinates."""
AZIMUTH, ELEVATION = np.radians(-52.0), np.radians(24.0)
"""Direction of the viewer: right of the front, and above."""
LIGHT = np.array([0.35, -0.45, 0.82])
GRID_SPACING_M = 0.25
LINK_COLOUR, PATH_COLOUR, DECK_COLOUR = "#d9a441", "#d1495b", np.array([0.80, 0.845, 0.885])


@dataclass(frozen=True, eq=False)
class ArmFilm:
    """The content of an animation of an arm."""

    title: str
    subtitle: str
    # the robot at a second, in a frame with z up; its first chain is the arm, from base to wrist
    scene_at: Callable[[float], RobotScene]
    tools: Sequence[str]  # frames that are fixed to the wrist; the path of the first is drawn
    curves: Sequence[SignalCurve]  # joints over time
    states: Sequence[VerdictInterval]
    duration: float  # seconds
    clock: Callable[[float], str]  # formats the time at a second


def view_axes() -> tuple[Floats, Floats]:
    """Return the (2, 3) projection to the right and up, and the (3,) direction to the viewer."""
    c, s, ce, se = np.cos(AZIMUTH), np.sin(AZIMUTH), np.cos(ELEVATION), np.sin(ELEVATION)
    return np.array([[-s, c, 0.0], [-se * c, -se * s, ce]]), np.array([ce * c, ce * s, se])


def move_frames(move: ArmFilm, seconds: Iterable[float]) -> Iterator[Pixels]:
    """Yield a picture (720, 1280, 3) for each of some ascending times."""
    figure = new_stage_figure(move.title, move.subtitle)
    axes = figure.add_axes(SCENE_BOX)
    samples = [move.scene_at(second) for second in np.linspace(0, move.duration, 60).tolist()]
    floor = _draw_static(axes, samples, move)
    strips = add_strips(figure, move.curves, move.duration, 0.72)
    progress = ProgressStrip(figure, move.duration, move.states)
    time = add_clock(figure)
    path = axes.plot([], [], color=PATH_COLOUR, lw=1.8, animated=True, zorder=6, solid_capstyle="round")[0]
    arm, stage = _ArmArtists(axes, samples[0], move, floor), Stage(figure)
    before: Floats | None = None
    for second in seconds:
        scene = move.scene_at(second)
        tip = view_axes()[0] @ _tip(scene, move)
        if before is not None:
            path.set_data(*np.stack([before, tip]).T)
            stage.keep([path])
        before = tip
        time.set_text(move.clock(second))  # pyright: ignore[reportAttributeAccessIssue]
        beside = [artist for strip in strips for artist in strip.at(second)]
        yield stage.show([*arm.at(scene), time, *progress.at(second), *beside])


def _tip(scene: RobotScene, move: ArmFilm) -> Floats:
    return scene.poses[move.tools[0]][:3, 3] if move.tools else scene.chains[0][-1]


def _points(scene: RobotScene, move: ArmFilm) -> Floats:
    return np.concatenate([*scene.chains, *(scene.poses[name][None, :3, 3] for name in move.tools)])


def _draw_static(axes: Axes, samples: Sequence[RobotScene], move: ArmFilm) -> float:
    """Draw deck, ground and axes, set the window for all sampled scenes; return the grid's height."""
    project, _ = view_axes()
    fixed = [solid for solid in samples[0].solids if solid.kind == "body"]
    moved = np.concatenate([_points(scene, move) for scene in samples])
    every = np.concatenate([moved, *(solid.points for solid in fixed)])
    floor = float(every[:, 2].min()) - 0.03
    low, high = every[:, :2].min(axis=0) - 0.2, every[:, :2].max(axis=0) + 0.2
    edges = (np.floor(low / GRID_SPACING_M) * GRID_SPACING_M, np.ceil(high / GRID_SPACING_M) * GRID_SPACING_M)
    corners = np.array(
        [[x, y, floor] for x in (edges[0][0], edges[1][0]) for y in (edges[0][1], edges[1][1])]
    )
    _set_window(axes, np.concatenate([every, corners]) @ project.T)
    clean_axes(axes)
    _draw_grid(axes, *edges, floor)
    for solid in fixed:
        _draw_solid(axes, solid, floor)
    _draw_triad(axes, samples[0].chains[0][0])
    return floor


def _set_window(axes: Axes, flat: Floats) -> None:
    low, high = flat.min(axis=0), flat.max(axis=0)
    shape = SCENE_BOX[2] * FRAME.width / (SCENE_BOX[3] * FRAME.height)
    width, height = 1.06 * (high - low)
    size = np.array([max(width, height * shape), max(height, width / shape)])
    middle = (low + high) / 2
    (left, bottom), (right, top) = middle - size / 2, middle + size / 2
    axes.set(xlim=(left, right), ylim=(bottom, top))


def _draw_grid(axes: Axes, low: Floats, high: Floats, floor: float) -> None:
    """Draw a grid on a level plane at the lowest visible height."""
    project, _ = view_axes()
    corners = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])
    plane = np.column_stack([corners, np.full(4, floor)]) @ project.T
    axes.fill(*plane.T, color="#f4efe9", zorder=0)
    for axis in (0, 1):
        for value in np.arange(low[axis], high[axis] + GRID_SPACING_M / 2, GRID_SPACING_M):
            ends = np.array([[0.0, 0.0, floor]] * 2)
            ends[:, axis], ends[:, 1 - axis] = value, (low[1 - axis], high[1 - axis])
            whole = abs(value - round(value)) < 1e-9
            axes.plot(*(ends @ project.T).T, color="#d8cdc2", lw=1.1 if whole else 0.5, zorder=0.5)
    lower_left = plane.min(axis=0)
    axes.annotate(
        f"{GRID_SPACING_M:g} m grid, {-floor:.2f} m below the deck frame",
        (plane[:, 0].mean(), lower_left[1]),
        xytext=(0, -11), textcoords="offset points", ha="center", fontsize=8, color="#8a7f74",
    )  # fmt: skip


def _draw_solid(axes: Axes, solid: RobotSolid, floor: float) -> None:
    """Draw a convex part with shaded faces, and its shadow on the ground."""
    from scipy.spatial import ConvexHull

    project, viewer = view_axes()
    shadow = solid.points * (1, 1, 0) + np.array([0.0, 0.0, floor])
    axes.fill(*hull_of(shadow @ project.T).T, color="#b9ada1", alpha=0.35, lw=0, zorder=0.8)
    hull = ConvexHull(solid.points)
    for corners, normal in zip(hull.simplices, hull.equations[:, :3], strict=True):
        if normal @ viewer > 0:
            shade = 0.72 + 0.28 * max(0.0, float(normal @ LIGHT))
            colour = tuple(np.clip(DECK_COLOUR * shade, 0, 1))
            axes.fill(*(solid.points[corners] @ project.T).T, color=colour, ec=colour, lw=0.6, zorder=1)
    edge: dict[str, Any] = {"ls": (0, (4, 2))} if solid.invented else {}
    axes.fill(*hull_of(solid.points @ project.T).T, fc="none", ec="#7d8a96", lw=1.0, zorder=1.2, **edge)
    flat = solid.points @ project.T
    label = 0.6 * flat.mean(axis=0) + 0.4 * flat[flat[:, 0].argmin()]  # away from the arm
    note = f"{solid.name}, assumed size" if solid.invented else solid.name
    axes.text(label[0], label[1], note, fontsize=8.5, color="#5a6570", ha="center", va="center", zorder=1.4)


def _draw_triad(axes: Axes, origin: Floats) -> None:
    """Draw x, y and z at the arm's base."""
    project, _ = view_axes()
    for direction, colour, name in zip(np.eye(3) * 0.22, AXIS_COLOURS, "xyz", strict=True):
        ends = np.stack([origin, origin + direction]) @ project.T
        axes.plot(*ends.T, color=colour, lw=1.6, zorder=2)
        axes.annotate(name, ends[1], xytext=3 * np.sign(ends[1] - ends[0]), textcoords="offset points",
                      fontsize=8, color=colour, ha="center", va="center", zorder=2)  # fmt: skip


class _ArmArtists:
    """The artists of the arm (shadow, camera view, links, joints, tools), created once and then moved."""

    def __init__(self, axes: Axes, scene: RobotScene, move: ArmFilm, floor: float) -> None:
        self._move, self._floor = move, floor
        tools = len(move.tools)
        self._shadows = [
            _new_line(axes, "#9a8e82", 5 if k == 0 else 2.5, 1, alpha=0.4) for k in range(1 + tools)
        ]
        cameras = [solid for solid in scene.solids if solid.kind == "camera"]
        look: dict[str, Any] = {"color": "#16808a", "alpha": 0.13, "lw": 0, "zorder": 3, "animated": True}
        self._cameras = [axes.fill([0, 1, 1], [0, 0, 1], **look)[0] for _ in cameras]
        self._links = [
            _new_line(axes, *how) for how in ((INK, 11, 4), (LINK_COLOUR, 8, 5), ("#f3d28e", 2.2, 5.5))
        ]
        self._stubs = [
            [_new_line(axes, *how) for how in ((INK, 5.5, 6), ("#8894a0", 3.2, 6.5))] for _ in range(tools)
        ]
        self._joints = _new_line(axes, "white", 0, 7, marker="o", ms=7, mec=INK, mew=1.4)
        self._tip = _new_line(axes, PATH_COLOUR, 0, 8, marker="o", ms=6, mec="white", mew=1.2)
        name = move.tools[0] if move.tools else ""
        self._name = axes.annotate(
            name, (0, 0), xytext=(9, -9), textcoords="offset points", fontsize=9, color=PATH_COLOUR,
            weight="bold", animated=True, zorder=9,
        )  # fmt: skip

    def at(self, scene: RobotScene) -> list[Artist]:
        """Return the updated artists for a scene."""
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
