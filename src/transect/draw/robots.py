"""A robot as in a technical drawing: from above, from the right and from the front, at one scale.

A robot is a `RobotScene` here: points in one frame with x forward, y left and z up, in metres.
`transect.robots.pictures` makes it from a robot's description.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import UsageError, did_you_mean
from transect.geometry.planar import hull_of

from .figures import INK, QUIET, draw_labels, figure_class
from .frames import AXIS_COLOURS, LEADER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal["body", "wheel", "camera", "scan"]
VIEWS: dict[str, tuple[str, Floats]] = {
    "top": ("from above", np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])),
    "side": ("from the right", np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])),
    "front": ("from the front", np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])),
}
"""Title of each view, and its (2, 3) projection to the right and up."""


@dataclass(frozen=True)
class SheetLayout:
    """Sizes in inches."""

    width: float = 8.6
    max_height: float = 9.5
    margin: float = 0.15
    view_border: float = 0.55  # around a view, for names
    dimension_row: float = 0.34
    facts_width: float = 2.5  # at least
    title: float = 0.45
    frame_axis: float = 0.3
    fact_line: float = 0.165
    fact_gap: float = 0.1  # between two facts


SHEET = SheetLayout()
SOFT_COLOUR, CAMERA_COLOUR, SCAN_COLOUR = "#5c6873", "#16808a", "#d07a00"
STYLES: dict[Kind, dict[str, Any]] = {
    "body": {"fc": "#e4eaef", "ec": SOFT_COLOUR, "lw": 1.0, "zorder": 1, "alpha": 0.75},
    "wheel": {"fc": "#8894a0", "ec": INK, "lw": 0.9, "zorder": 2, "alpha": 0.8},
    "camera": {"fc": CAMERA_COLOUR, "ec": CAMERA_COLOUR, "lw": 0.8, "zorder": 3, "alpha": 0.18},
    "scan": {"fc": SCAN_COLOUR, "ec": SCAN_COLOUR, "lw": 0.8, "zorder": 3, "alpha": 0.13},
}
MIN_PERPENDICULAR_COSINE = 0.97
"""An axis with a larger cosine to the line of sight is drawn as a dot or a cross."""


@dataclass(frozen=True, eq=False)
class RobotSolid:
    """A convex part of a robot, or the field of view of a sensor."""

    points: Floats  # (k, 3) corners, m; their convex hull is drawn
    kind: Kind = "body"
    name: str = ""  # written on it; may be empty
    invented: bool = False  # whether its size is an assumption: it is drawn dashed


@dataclass(frozen=True, eq=False)
class Dimension:
    """A labelled length: its name, and its ends (3,) in m."""

    name: str
    start: Floats
    end: Floats

    @property
    def text(self) -> str:
        """Name and metres."""
        metres = f"{np.linalg.norm(self.end - self.start):.3f}".rstrip("0")
        digits = metres + "0" * max(0, 2 - len(metres.partition(".")[2]))
        return f"{self.name} {digits} m".strip()


@dataclass(frozen=True, eq=False)
class RobotScene:
    """A robot in one frame: x forward, y left, z up, m."""

    title: str
    poses: Mapping[str, Floats]  # frames that are drawn with axes and a name
    solids: Sequence[RobotSolid] = ()
    chains: Sequence[Floats] = ()  # joints of each arm from its base to its end
    spans: Sequence[Dimension] = ()
    facts: Sequence[tuple[str, Sequence[str]]] = ()  # headings and lines beside the drawing

    @property
    def points(self) -> Floats:
        """(n, 3): all points that have to be on the sheet."""
        single = [point for span in self.spans for point in (span.start, span.end)]
        single += [pose[:3, 3] for pose in self.poses.values()]
        return np.concatenate([*(solid.points for solid in self.solids), *self.chains, np.stack(single)])

    @property
    def ground(self) -> float | None:
        """Height of the lowest point of the wheels; None without wheels."""
        wheels = [solid.points[:, 2].min() for solid in self.solids if solid.kind == "wheel"]
        return float(min(wheels)) if wheels else None


def robot_figure(scene: RobotScene, view: str | None = None) -> Figure:
    """Return all views of a robot with its facts on a sheet, or one view alone.

    Parameters
    ----------
    scene : Scene
    view : {"top", "side", "front"}, optional
    """
    if view not in (None, *VIEWS):
        raise UsageError(f"there is no view {view!r} of a robot", hint=did_you_mean(view, VIEWS))
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    sheet = _Sheet(scene, tuple(VIEWS) if view is None else (view,))
    # The layout is in inches, so that all views have one scale.
    figure = figure_class()(figsize=(SHEET.width, sheet.height), facecolor="white")
    FigureCanvasAgg(figure)
    top = 1 - 0.14 / sheet.height
    figure.text(
        0.15 / SHEET.width, top, scene.title, ha="left", va="top", fontsize=13, weight="bold", color=INK
    )
    for name in sheet.views:
        _draw_view(figure, sheet, name)
    _write_facts(figure, sheet)
    return figure


class _Sheet:
    """Positions of the views on the sheet, in inches from its lower left corner.

    The views from above and from the right share a column, so that equal x are below each other. The view
    from the front is at the height of that from the right, under the facts.
    """

    def __init__(self, scene: RobotScene, views: tuple[str, ...]) -> None:
        self.scene, self.views = scene, views
        low, high = scene.points.min(axis=0), scene.points.max(axis=0)
        self.low, size = low, np.maximum(high - low, 1e-3)
        self.spans = {name: _spans_of(scene, name, views) for name in views}
        rows = {name: _rows(spans, VIEWS[name][1]) for name, spans in self.spans.items()}
        column, aside = views[:2], views[2:]
        beside = max(SHEET.view_border + SHEET.dimension_row * rows[name][1] for name in column)
        # Space to the left of and below the robot in each view
        self.left = dict.fromkeys(column, beside) | {
            name: SHEET.view_border + SHEET.dimension_row * rows[name][1] for name in aside
        }
        self.below = {name: SHEET.view_border + SHEET.dimension_row * rows[name][0] for name in views}
        extents = {name: VIEWS[name][1] @ size for name in views}
        self.scale = self._choose_scale(extents, column, aside)  # inches per metre
        wide = {name: self.left[name] + self.scale * extents[name][0] + SHEET.view_border for name in views}
        tall = {name: self.below[name] + self.scale * extents[name][1] + SHEET.view_border for name in views}
        self.height = SHEET.title + max(sum(tall[name] for name in column), _facts_height(scene.facts))
        x, y = max(wide[name] for name in column), self.height - SHEET.title
        self.facts = x + SHEET.margin, y  # upper left corner of the facts
        self.boxes: dict[str, tuple[float, float, float, float]] = {}
        for name in column:
            y -= tall[name]
            self.boxes[name] = (0.0, y, wide[name], tall[name])
        for name in aside:
            self.boxes[name] = (x, y, wide[name], tall[name])

    def _choose_scale(
        self, extents: Mapping[str, Floats], column: Sequence[str], aside: Sequence[str]
    ) -> float:
        wide = max(extents[name][0] for name in column)
        room = max(self.left[name] for name in column) + SHEET.view_border
        scale = (SHEET.width - room - SHEET.facts_width) / wide
        for name in aside:
            other = self.left[name] + SHEET.view_border
            scale = min(scale, (SHEET.width - room - other) / (wide + extents[name][0]))
        tall = sum(self.below[name] + SHEET.view_border for name in column)
        return float(
            min(scale, (SHEET.max_height - SHEET.title - tall) / sum(extents[name][1] for name in column))
        )


def _spans_of(scene: RobotScene, view: str, views: Sequence[str]) -> list[Dimension]:
    """Return the dimensions of a view: those parallel to its plane, and not in a view before it."""

    def is_parallel(span: Dimension, other: str) -> bool:
        along = span.end - span.start
        return bool(np.linalg.norm(VIEWS[other][1] @ along) > 0.999 * np.linalg.norm(along))

    return [s for s in scene.spans if next((v for v in views if is_parallel(s, v)), None) == view]


def _direction(span: Dimension, projection: Floats) -> Literal["level", "upright", "sloped"]:
    across, up = np.abs(projection @ (span.end - span.start))
    return "level" if up < 0.02 * across else "upright" if across < 0.02 * up else "sloped"


def _rows(spans: Sequence[Dimension], projection: Floats) -> tuple[int, int]:
    """Return the number of rows of dimensions below a view, and beside it."""
    directions = [_direction(span, projection) for span in spans]
    return directions.count("level"), directions.count("upright")


def _draw_view(figure: Figure, sheet: _Sheet, name: str) -> None:
    heading, projection = VIEWS[name]
    x, y, width, height = sheet.boxes[name]
    ax = figure.add_axes((x / SHEET.width, y / sheet.height, width / SHEET.width, height / sheet.height))
    low = projection @ sheet.low - np.array([sheet.left[name], sheet.below[name]]) / sheet.scale
    ax.set(xlim=(low[0], low[0] + width / sheet.scale), ylim=(low[1], low[1] + height / sheet.scale))
    ax.axis("off")
    place = (x + SHEET.margin) / SHEET.width, (y + height) / sheet.height
    figure.text(*place, heading, ha="left", va="top", fontsize=10, color=SOFT_COLOUR)
    scene = sheet.scene
    if scene.ground is not None and name != "top":
        ax.axhline(scene.ground, color=QUIET, lw=1.2, zorder=0)
    for solid in scene.solids:
        _draw_solid(ax, projection, solid)
    for chain in scene.chains:
        across, up = projection @ chain.T
        ax.plot(
            across,
            up,
            color=QUIET,
            lw=5,
            alpha=0.55,
            solid_capstyle="round",
            solid_joinstyle="round",
            zorder=4,
        )
        ax.plot(across, up, "o", color="white", mec=INK, ms=4.5, mew=1.0, zorder=5)
    for pose in scene.poses.values():
        _draw_axes(ax, projection, pose, SHEET.frame_axis / sheet.scale)
    taken = _draw_spans(ax, sheet, name)
    if name == "top":
        taken += _write_on_solids(ax, projection, scene.solids, 1 / sheet.scale)
    if name != "front" or len(sheet.views) == 1:
        marks = np.concatenate([_marks(scene, projection, SHEET.frame_axis / sheet.scale), *taken])
        _draw_names(figure, ax, scene, projection, marks)


def _draw_solid(ax: Axes, projection: Floats, solid: RobotSolid) -> None:
    from matplotlib.patches import Polygon

    corners = hull_of(solid.points @ projection.T)
    if len(corners) > 2:
        dashed = {"ls": (0, (4, 2))} if solid.invented else {}
        ax.add_patch(Polygon(corners, closed=True, **STYLES[solid.kind], **dashed))


def _draw_axes(ax: Axes, projection: Floats, pose: Floats, size: float) -> None:
    """Draw the axes of a frame; one along the line of sight is a dot, or a cross if it points away."""
    origin, towards = projection @ pose[:3, 3], np.cross(projection[0], projection[1])
    for axis, colour in zip(pose[:3, :3].T, AXIS_COLOURS, strict=True):
        near = float(axis @ towards)
        if abs(near) > MIN_PERPENDICULAR_COSINE:
            ax.plot(*origin, "o", ms=6.5, mfc="white", mec=colour, mew=1.3, zorder=8)
            ax.plot(*origin, "o" if near > 0 else "x", ms=2 if near > 0 else 3.5, color=colour, zorder=9)
        else:
            _draw_arrow(ax, origin, origin + size * (projection @ axis), colour, lw=1.5)


def _draw_arrow(ax: Axes, start: ArrayLike, end: ArrayLike, colour: str, **how: Any) -> None:
    style: dict[str, Any] = {"arrowstyle": "-|>,head_width=0.18,head_length=0.36", "color": colour}
    style |= {"shrinkA": 0, "shrinkB": 0, "mutation_scale": 10} | how
    ends = (tuple(np.asarray(point, dtype=np.float64)) for point in (end, start))
    ax.annotate("", *ends, arrowprops=style, zorder=7, annotation_clip=False)


def _draw_spans(ax: Axes, sheet: _Sheet, name: str) -> list[Floats]:
    """Draw dimensions below and to the left of a view, each in a row of its own, the short ones nearest.

    A sloped one is drawn beside the part that it measures. Returns points (k, 2) of each, which names should
    not hide.
    """
    projection = VIEWS[name][1]
    low, inch = projection @ sheet.low, 1 / sheet.scale
    used, taken = [0, 0], list[Floats]()
    for span in sorted(sheet.spans[name], key=lambda s: float(np.linalg.norm(s.end - s.start))):
        ends = np.stack([projection @ span.start, projection @ span.end])
        ends = ends[np.lexsort(ends.T[::-1])]  # from left to right, or upwards
        direction = _direction(span, projection)
        row = ends.copy()
        if direction == "sloped":
            along = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
            outwards = np.array([-along[1], along[0]])
            row += 0.25 * inch * outwards
        else:
            fixed = 1 if direction == "level" else 0  # the axis across the row
            outwards = -np.eye(2)[fixed]
            row[:, fixed] = low[fixed] - (0.6 * SHEET.view_border + SHEET.dimension_row * used[fixed]) * inch
            used[fixed] += 1
        _draw_span(ax, span.text, ends, row, row.mean(axis=0) + 0.1 * inch * outwards)
        taken += [gap * inch * outwards + np.linspace(row[0], row[1], 20) for gap in (0.0, 0.08, 0.16)]
    return taken


def _draw_span(ax: Axes, text: str, ends: Floats, row: Floats, middle: Floats) -> None:
    """Draw a dimension on its row, with extension lines to its ends (2, 2)."""
    for end, foot in zip(ends, row, strict=True):
        ax.plot(*np.stack([end, foot]).T, color=QUIET, lw=0.6, zorder=0.5)
    _draw_arrow(ax, row[0], row[1], SOFT_COLOUR, arrowstyle="<|-|>,head_width=0.12,head_length=0.26", lw=0.9)
    angle = float(np.degrees(np.arctan2(*(row[1] - row[0])[::-1])))
    style: dict[str, Any] = {"ha": "center", "va": "center", "rotation_mode": "anchor", "zorder": 10}
    ax.text(middle[0], middle[1], text, rotation=angle, fontsize=8.5, color=SOFT_COLOUR, **style)


def _patch() -> dict[str, Any]:
    return {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8}


def _write_on_solids(ax: Axes, projection: Floats, solids: Sequence[RobotSolid], inch: float) -> list[Floats]:
    """Write names on wheels and in a corner of boxes if they fit; return points (k, 2) of the latter."""
    taken: list[Floats] = []
    style: dict[str, Any] = {"fontsize": 8, "zorder": 6}
    for solid in solids:
        corners = solid.points @ projection.T
        low, high = corners.min(axis=0), corners.max(axis=0)
        width = 0.07 * inch * len(solid.name)
        if solid.kind == "wheel":
            x, y = (low + high) / 2
            ax.text(x, y, solid.name, ha="center", va="center", color="white", weight="bold", **style)
        elif solid.name and high[0] - low[0] > 1.3 * width:
            x, y = low + 0.05 * inch
            ax.text(x, y, solid.name, ha="left", va="bottom", color=SOFT_COLOUR, **style)
            taken.append(low + 0.1 * inch + np.outer(np.linspace(0, width, 6), [1.0, 0.0]))
    return taken


def _draw_names(figure: Figure, ax: Axes, scene: RobotScene, projection: Floats, marks: Floats) -> None:
    """Label the frames; frames at one position share a label."""
    shared: dict[tuple[float, float], list[str]] = {}
    for name, pose in scene.poses.items():
        across, up = (projection @ pose[:3, 3]).round(2).tolist()
        shared.setdefault((across, up), []).append(name)
    points = 72 / figure.dpi

    def on_paper(positions: Floats) -> Floats:
        return np.asarray(ax.transData.transform(positions), dtype=np.float64) * points

    anchors = on_paper(np.array(list(shared)))
    frame = ax.get_window_extent()
    bounds = (frame.x0 * points, frame.y0 * points, frame.x1 * points, frame.y1 * points - 14)
    style: dict[str, Any] = {"fontsize": 8.5, "color": INK, "zorder": 11, "arrowprops": LEADER}
    draw_labels(
        ax, list(map(_short, shared.values())), anchors, on_paper(marks), bounds, bbox=_patch(), **style
    )


def _short(names: Sequence[str], most: int = 3) -> str:
    cut = [*names[: most - 1], f"and {len(names) - most + 1} more"] if len(names) > most else names
    return "\n".join(cut)


def _marks(scene: RobotScene, projection: Floats, size: float) -> Floats:
    """Return points (n, 2) that names should not hide: axes, arms and the rims of wheels."""
    steps = np.linspace(0.0, 1.0, 6)[:, None]
    axes = [pose[:3, 3] + size * steps * axis for pose in scene.poses.values() for axis in pose[:3, :3].T]
    arms = [a + steps * (b - a) for chain in scene.chains for a, b in pairwise(chain)]
    wheels = [solid.points for solid in scene.solids if solid.kind == "wheel"]
    return np.concatenate([*axes, *arms, *wheels, np.zeros((0, 3))]) @ projection.T


def _facts_height(facts: Sequence[tuple[str, Sequence[str]]]) -> float:
    lines = sum(1 + heading.count("\n") + len(lines) for heading, lines in facts)
    return SHEET.fact_line * (lines + 3) + SHEET.fact_gap * (len(facts) + 1)


def _write_facts(figure: Figure, sheet: _Sheet) -> None:
    """Write the facts beside the view from above, and a legend of the colours of axes."""
    x, y = sheet.facts
    style: dict[str, Any] = {"ha": "left", "va": "top", "fontsize": 8.5}
    for heading, lines in sheet.scene.facts:
        figure.text(x / SHEET.width, y / sheet.height, heading, color=SOFT_COLOUR, weight="bold", **style)
        y -= SHEET.fact_line * (1 + heading.count("\n"))
        figure.text(x / SHEET.width, y / sheet.height, "\n".join(lines), color=INK, linespacing=1.3, **style)
        y -= SHEET.fact_line * len(lines) + SHEET.fact_gap
    for k, (axis, colour) in enumerate(zip("xyz", AXIS_COLOURS, strict=True)):
        figure.text((x + 0.2 * k) / SHEET.width, y / sheet.height, axis, color=colour, weight="bold", **style)
    figure.text((x + 0.65) / SHEET.width, y / sheet.height, "axes of a frame", color=INK, **style)
