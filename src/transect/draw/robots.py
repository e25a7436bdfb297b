"""A robot as on a technical drawing: from above, from the right and from the front, at one scale.

A `Robot` here is a `Scene`: points in one frame with x forward, y left and z up, in metres.
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

from .figures import INK, QUIET, figure_class, write_names
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
"""What each view is called, and its (2, 3) projection: what goes to the right of the paper, and up."""

WIDTH, HIGHEST = 8.6, 9.5
"""Inches: width of the sheet, and its largest height."""
MARGIN, ROOM, ROW, FACTS, HEADING = 0.15, 0.55, 0.34, 2.5, 0.45
"""Inches: at the edges, around a view for names, a row of lengths, least width of the facts, the title."""
AXIS = 0.3
"""Inches: length of the axes of a frame."""
SOFT, CAMERA, SCAN = "#5c6873", "#16808a", "#d07a00"
STYLES: dict[Kind, dict[str, Any]] = {
    "body": {"fc": "#e4eaef", "ec": SOFT, "lw": 1.0, "zorder": 1, "alpha": 0.75},
    "wheel": {"fc": "#8894a0", "ec": INK, "lw": 0.9, "zorder": 2, "alpha": 0.8},
    "camera": {"fc": CAMERA, "ec": CAMERA, "lw": 0.8, "zorder": 3, "alpha": 0.18},
    "scan": {"fc": SCAN, "ec": SCAN, "lw": 0.8, "zorder": 3, "alpha": 0.13},
}
UPRIGHT = 0.97
"""Cosine from which an axis counts as standing on the paper, and is drawn as a dot or a cross."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A convex part of a robot, or what a sensor sees of its surroundings."""

    points: Floats  # (k, 3) its corners, m; the drawing is their hull
    kind: Kind = "body"
    name: str = ""  # written on it; may be empty
    invented: bool = False  # whether its size is a guess: it is drawn dashed


@dataclass(frozen=True, eq=False)
class Span:
    """A length to show: its name, and its ends (3,) in m."""

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
class Scene:
    """A robot in one frame: x forward, y left, z up, m."""

    title: str
    poses: Mapping[str, Floats]  # frames that get axes and a name
    solids: Sequence[Solid] = ()
    chains: Sequence[Floats] = ()  # joints of each arm from its base to its end
    spans: Sequence[Span] = ()
    facts: Sequence[tuple[str, Sequence[str]]] = ()  # headings and lines that stand beside the drawing

    @property
    def points(self) -> Floats:
        """(n, 3): everything that has to be on the paper."""
        single = [point for span in self.spans for point in (span.start, span.end)]
        single += [pose[:3, 3] for pose in self.poses.values()]
        return np.concatenate([*(solid.points for solid in self.solids), *self.chains, np.stack(single)])

    @property
    def ground(self) -> float | None:
        """Height of the lowest point of the wheels; None without wheels."""
        wheels = [solid.points[:, 2].min() for solid in self.solids if solid.kind == "wheel"]
        return float(min(wheels)) if wheels else None


def robot_figure(scene: Scene, view: str | None = None) -> Figure:
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
    # Laid out here in inches, so that all views have one scale.
    figure = figure_class()(figsize=(WIDTH, sheet.height), facecolor="white")
    FigureCanvasAgg(figure)
    top = 1 - 0.14 / sheet.height
    figure.text(0.15 / WIDTH, top, scene.title, ha="left", va="top", fontsize=13, weight="bold", color=INK)
    for name in sheet.views:
        _draw_view(figure, sheet, name)
    _write_facts(figure, sheet)
    return figure


class _Sheet:
    """Where the views stand on the paper, in inches from its lower left corner.

    The views from above and from the right share a column, so that what is ahead stands below itself. The
    view from the front is at the height of that from the right, under the facts.

    Attributes
    ----------
    scale : float
        Inches to a metre.
    left, below : dict of str to float
        Room beside and below the robot in each view.
    boxes : dict of str to (x, y, width, height)
    facts : (x, y)
        Upper left corner of the facts.
    """

    def __init__(self, scene: Scene, views: tuple[str, ...]) -> None:
        self.scene, self.views = scene, views
        low, high = scene.points.min(axis=0), scene.points.max(axis=0)
        self.low, size = low, np.maximum(high - low, 1e-3)
        self.spans = {name: _spans_of(scene, name, views) for name in views}
        rows = {name: _rows(spans, VIEWS[name][1]) for name, spans in self.spans.items()}
        column, aside = views[:2], views[2:]
        beside = max(ROOM + ROW * rows[name][1] for name in column)
        self.left = dict.fromkeys(column, beside) | {name: ROOM + ROW * rows[name][1] for name in aside}
        self.below = {name: ROOM + ROW * rows[name][0] for name in views}
        extents = {name: VIEWS[name][1] @ size for name in views}
        self.scale = self._choose_scale(extents, column, aside)
        wide = {name: self.left[name] + self.scale * extents[name][0] + ROOM for name in views}
        tall = {name: self.below[name] + self.scale * extents[name][1] + ROOM for name in views}
        self.height = HEADING + max(sum(tall[name] for name in column), _facts_height(scene.facts))
        x, y = max(wide[name] for name in column), self.height - HEADING
        self.facts = x + MARGIN, y
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
        room = max(self.left[name] for name in column) + ROOM
        scale = (WIDTH - room - FACTS) / wide
        for name in aside:
            other = self.left[name] + ROOM
            scale = min(scale, (WIDTH - room - other) / (wide + extents[name][0]))
        tall = sum(self.below[name] + ROOM for name in column)
        return float(min(scale, (HIGHEST - HEADING - tall) / sum(extents[name][1] for name in column)))


def _spans_of(scene: Scene, view: str, views: Sequence[str]) -> list[Span]:
    """Return the lengths that a view shows: those that lie in its paper, and that no view before it shows."""

    def lies_in(span: Span, other: str) -> bool:
        along = span.end - span.start
        return bool(np.linalg.norm(VIEWS[other][1] @ along) > 0.999 * np.linalg.norm(along))

    return [s for s in scene.spans if next((v for v in views if lies_in(s, v)), None) == view]


def _direction(span: Span, projection: Floats) -> Literal["level", "upright", "sloped"]:
    across, up = np.abs(projection @ (span.end - span.start))
    return "level" if up < 0.02 * across else "upright" if across < 0.02 * up else "sloped"


def _rows(spans: Sequence[Span], projection: Floats) -> tuple[int, int]:
    """How many rows of lengths stand below a view, and beside it."""
    directions = [_direction(span, projection) for span in spans]
    return directions.count("level"), directions.count("upright")


def _draw_view(figure: Figure, sheet: _Sheet, name: str) -> None:
    heading, projection = VIEWS[name]
    x, y, width, height = sheet.boxes[name]
    ax = figure.add_axes((x / WIDTH, y / sheet.height, width / WIDTH, height / sheet.height))
    low = projection @ sheet.low - np.array([sheet.left[name], sheet.below[name]]) / sheet.scale
    ax.set(xlim=(low[0], low[0] + width / sheet.scale), ylim=(low[1], low[1] + height / sheet.scale))
    ax.axis("off")
    place = (x + MARGIN) / WIDTH, (y + height) / sheet.height
    figure.text(*place, heading, ha="left", va="top", fontsize=10, color=SOFT)
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
        _draw_axes(ax, projection, pose, AXIS / sheet.scale)
    taken = _draw_spans(ax, sheet, name)
    if name == "top":
        taken += _write_on_solids(ax, projection, scene.solids, 1 / sheet.scale)
    if name != "front" or len(sheet.views) == 1:
        marks = np.concatenate([_marks(scene, projection, AXIS / sheet.scale), *taken])
        _write_names(figure, ax, scene, projection, marks)


def _draw_solid(ax: Axes, projection: Floats, solid: Solid) -> None:
    from matplotlib.patches import Polygon

    corners = hull_of(solid.points @ projection.T)
    if len(corners) > 2:
        dashed = {"ls": (0, (4, 2))} if solid.invented else {}
        ax.add_patch(Polygon(corners, closed=True, **STYLES[solid.kind], **dashed))


def _draw_axes(ax: Axes, projection: Floats, pose: Floats, size: float) -> None:
    """Draw the axes of a frame; one that stands on the paper is a dot, or a cross if it goes away."""
    origin, towards = projection @ pose[:3, 3], np.cross(projection[0], projection[1])
    for axis, colour in zip(pose[:3, :3].T, AXIS_COLOURS, strict=True):
        near = float(axis @ towards)
        if abs(near) > UPRIGHT:
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
    """Draw lengths below and to the left of a view, each in a row of its own, the short ones nearest.

    A sloped one is drawn beside what it measures. Returns points (k, 2) of each, which names should not hide.
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
            fixed = 1 if direction == "level" else 0  # the coordinate of the row on the paper
            outwards = -np.eye(2)[fixed]
            row[:, fixed] = low[fixed] - (0.6 * ROOM + ROW * used[fixed]) * inch
            used[fixed] += 1
        _draw_span(ax, span.text, ends, row, row.mean(axis=0) + 0.1 * inch * outwards)
        taken += [gap * inch * outwards + np.linspace(row[0], row[1], 20) for gap in (0.0, 0.08, 0.16)]
    return taken


def _draw_span(ax: Axes, text: str, ends: Floats, row: Floats, middle: Floats) -> None:
    """Draw a length on its row, with lines to the points (2, 2) that it is between."""
    for end, foot in zip(ends, row, strict=True):
        ax.plot(*np.stack([end, foot]).T, color=QUIET, lw=0.6, zorder=0.5)
    _draw_arrow(ax, row[0], row[1], SOFT, arrowstyle="<|-|>,head_width=0.12,head_length=0.26", lw=0.9)
    angle = float(np.degrees(np.arctan2(*(row[1] - row[0])[::-1])))
    style: dict[str, Any] = {"ha": "center", "va": "center", "rotation_mode": "anchor", "zorder": 10}
    ax.text(middle[0], middle[1], text, rotation=angle, fontsize=8.5, color=SOFT, **style)


def _patch() -> dict[str, Any]:
    return {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8}


def _write_on_solids(ax: Axes, projection: Floats, solids: Sequence[Solid], inch: float) -> list[Floats]:
    """Write names on wheels and in a corner of boxes with room for them; return where (k, 2) those stand."""
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
            ax.text(x, y, solid.name, ha="left", va="bottom", color=SOFT, **style)
            taken.append(low + 0.1 * inch + np.outer(np.linspace(0, width, 6), [1.0, 0.0]))
    return taken


def _write_names(figure: Figure, ax: Axes, scene: Scene, projection: Floats, marks: Floats) -> None:
    """Write the names of frames where they hide little; frames at one place share a name."""
    shared: dict[tuple[float, float], list[str]] = {}
    for name, pose in scene.poses.items():
        across, up = (projection @ pose[:3, 3]).round(2).tolist()
        shared.setdefault((across, up), []).append(name)
    points = 72 / figure.dpi

    def on_paper(places: Floats) -> Floats:
        return np.asarray(ax.transData.transform(places), dtype=np.float64) * points

    anchors = on_paper(np.array(list(shared)))
    frame = ax.get_window_extent()
    bounds = (frame.x0 * points, frame.y0 * points, frame.x1 * points, frame.y1 * points - 14)
    style: dict[str, Any] = {"fontsize": 8.5, "color": INK, "zorder": 11, "arrowprops": LEADER}
    write_names(
        ax, list(map(_short, shared.values())), anchors, on_paper(marks), bounds, bbox=_patch(), **style
    )


def _short(names: Sequence[str], most: int = 3) -> str:
    cut = [*names[: most - 1], f"and {len(names) - most + 1} more"] if len(names) > most else names
    return "\n".join(cut)


def _marks(scene: Scene, projection: Floats, size: float) -> Floats:
    """Return points (n, 2) that names should not hide: axes, arms and the rims of wheels."""
    steps = np.linspace(0.0, 1.0, 6)[:, None]
    axes = [pose[:3, 3] + size * steps * axis for pose in scene.poses.values() for axis in pose[:3, :3].T]
    arms = [a + steps * (b - a) for chain in scene.chains for a, b in pairwise(chain)]
    wheels = [solid.points for solid in scene.solids if solid.kind == "wheel"]
    return np.concatenate([*axes, *arms, *wheels, np.zeros((0, 3))]) @ projection.T


LINE, GAP = 0.165, 0.1
"""Inches: a line of the facts, and the gap between two of them."""


def _facts_height(facts: Sequence[tuple[str, Sequence[str]]]) -> float:
    lines = sum(1 + heading.count("\n") + len(lines) for heading, lines in facts)
    return LINE * (lines + 3) + GAP * (len(facts) + 1)


def _write_facts(figure: Figure, sheet: _Sheet) -> None:
    """Write what is known in words beside the view from above, and which colour is which axis."""
    x, y = sheet.facts
    style: dict[str, Any] = {"ha": "left", "va": "top", "fontsize": 8.5}
    for heading, lines in sheet.scene.facts:
        figure.text(x / WIDTH, y / sheet.height, heading, color=SOFT, weight="bold", **style)
        y -= LINE * (1 + heading.count("\n"))
        figure.text(x / WIDTH, y / sheet.height, "\n".join(lines), color=INK, linespacing=1.3, **style)
        y -= LINE * len(lines) + GAP
    for k, (axis, colour) in enumerate(zip("xyz", AXIS_COLOURS, strict=True)):
        figure.text((x + 0.2 * k) / WIDTH, y / sheet.height, axis, color=colour, weight="bold", **style)
    figure.text((x + 0.65) / WIDTH, y / sheet.height, "axes of a frame", color=INK, **style)
