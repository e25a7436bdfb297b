"""A robot's frames: as a tree, and in space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import FrameError, GeometryError

from .figures import INK, QUIET, draw_labels, figure_class

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


AXIS_COLOURS = ("#d1495b", "#3a9d5d", "#2f6fb3")
"""Red, green, blue for x, y, z, as usual in robotics."""

MOVING = "#d07a00"
DASHES = (0, (3, 1.6))
LEADER: dict[str, Any] = {"arrowstyle": "-", "color": QUIET, "lw": 0.7, "shrinkA": 0, "shrinkB": 2.5}


@dataclass(frozen=True)
class _TreeLayout:
    """Sizes in inches."""

    row: float = 0.34
    indent: float = 0.45
    letter: float = 0.088
    coordinates: float = 2.0  # the columns of x, y and z
    margin: float = 0.4


LAYOUT = _TreeLayout()


@dataclass(frozen=True)
class _TreeRow:
    """A frame's line in the tree, and the line of its parent."""

    name: str
    depth: int
    parent_row: int | None
    moving: bool


def frame_tree_figure(
    edges: Sequence[tuple[str, str, bool]],
    poses: Mapping[str, ArrayLike] | None = None,
    *,
    title: str = "",
    z_down: bool = False,
) -> Figure:
    """Draw frames as a tree, and in space with their axes.

    Parameters
    ----------
    edges : sequence of (parent, child, moving)
        The tree, or several.
    poses : mapping of str to (4, 4) array
        T_root_frame of the frames to show in space, in metres; one root for all. Frames without a pose, or
        with NaN, are in the tree only.
    title : str
    z_down : bool
        Whether z of the root points down (e.g. NED): the scene is then rotated by 180 degrees about x.

    Returns
    -------
    matplotlib Figure with an Agg canvas, ready for ``savefig``; no display is needed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    rows = _rows(edges)
    placed = _check(poses or {}, {row.name for row in rows})
    height = max(5.5 if placed else 0.0, LAYOUT.row * (len(rows) + 1) + 2 * LAYOUT.margin)
    names = max(
        (LAYOUT.indent * (row.depth + 1) + LAYOUT.letter * len(row.name) for row in rows), default=0.0
    )
    tree = max(names, 3.0) + (LAYOUT.coordinates if placed else 0.0)
    space = 0.8 * height + 1.5 * LAYOUT.letter * max(map(len, placed)) if placed else 0.0
    width = tree + space + 3 * LAYOUT.margin
    # The layout is in inches here; `new_figure` would leave it to matplotlib.
    figure = figure_class()(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    below = LAYOUT.margin / height
    _draw_tree(
        figure.add_axes((LAYOUT.margin / width, below, tree / width, 1 - 2 * below)), rows, placed, tree
    )
    if placed:
        left = (tree + 2 * LAYOUT.margin) / width
        _draw_space(figure, (left, 0.03, space / width, 0.94), rows, placed, z_down)
    _draw_legend(figure, LAYOUT.margin / width, any(row.moving for row in rows), bool(placed))
    figure.text(
        LAYOUT.margin / width,
        1 - below / 4,
        title,
        ha="left",
        va="top",
        fontsize=13,
        color=INK,
        weight="bold",
    )
    return figure


def _check(poses: Mapping[str, ArrayLike], known: set[str]) -> dict[str, Floats]:
    unknown = sorted(set(poses) - known)
    if unknown:
        raise FrameError(f"poses of frames that no edge names: {', '.join(unknown)}")
    matrices = {name: np.asarray(pose, dtype=np.float64) for name, pose in poses.items()}
    for name, matrix in matrices.items():
        if matrix.shape != (4, 4):
            raise GeometryError(f"pose of {name!r}: expected shape (4, 4), got {matrix.shape}")
    return {name: matrix for name, matrix in matrices.items() if np.isfinite(matrix).all()}


# The tree


def _rows(edges: Sequence[tuple[str, str, bool]]) -> list[_TreeRow]:
    """Return one row for each frame, depth first, children in the order of the edges."""
    children: dict[str, list[tuple[str, bool]]] = {}
    for parent, child, moving in edges:
        children.setdefault(parent, []).append((child, moving))
    with_parent = {child for _, child, _ in edges}
    rows: list[_TreeRow] = []
    pending = [_TreeRow(name, 0, None, False) for name in reversed(children) if name not in with_parent]
    while pending:
        row = pending.pop()
        rows.append(row)
        here = len(rows) - 1
        below = [_TreeRow(child, row.depth + 1, here, moving) for child, moving in children.get(row.name, [])]
        pending += reversed(below)
    return rows


def _draw_tree(ax: Axes, rows: Sequence[_TreeRow], placed: Mapping[str, Floats], width: float) -> None:
    """Draw one row per frame, indented by depth; `width` is that of the axes in inches."""
    joined: dict[int, int] = {}  # the row to which the line of a parent has been drawn
    for k, row in enumerate(rows):
        edge, style = (MOVING, DASHES) if row.moving else (QUIET, "solid")
        if row.parent_row is not None:
            start = joined.get(row.parent_row, row.parent_row)
            ax.plot([row.depth - 1, row.depth - 1, row.depth], [start, k, k], color=edge, lw=1.6, ls=style)
            joined[row.parent_row] = k
        rim, face = (MOVING, "white") if row.moving else (INK, INK)
        ax.plot(row.depth, k, "o", ms=6, mfc=face, mec=rim, mew=1.5, zorder=4)
        ax.text(row.depth + 0.28, k, row.name, va="center", ha="left", fontsize=10.5, color=INK)
    ax.set_xlim(-0.2, width / LAYOUT.indent - 0.2)
    ax.set_ylim(len(rows) - 0.4, -1.2)
    ax.axis("off")
    if placed:
        root = next(row.name for row in rows if row.name in placed)
        place: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
        ax.text(1.0 - LAYOUT.coordinates / width, -0.85, f"in {root}", fontsize=9, color=QUIET, **place)
    for column in range(3 if placed else 0):
        _write_positions(ax, rows, placed, column, 1.0 - (2 - column) * LAYOUT.coordinates / 3 / width)


def _write_positions(
    ax: Axes, rows: Sequence[_TreeRow], placed: Mapping[str, Floats], column: int, right: float
) -> None:
    """Write x, y or z of each frame's origin in the root."""
    style: dict[str, Any] = {
        "transform": ax.get_yaxis_transform(),
        "ha": "right",
        "va": "center",
        "fontsize": 9,
    }
    ax.text(right, -0.85, f"{'xyz'[column]} [m]", color=AXIS_COLOURS[column], **style)
    for k, row in enumerate(rows):
        if row.name in placed:
            value = round(float(placed[row.name][column, 3]), 3) + 0.0  # turns -0.0 into 0.0
            ax.text(right, k, f"{value:.3f}".replace("-", "\N{MINUS SIGN}"), color=INK, **style)


# Space


def _draw_space(
    figure: Figure,
    place: tuple[float, float, float, float],
    rows: Sequence[_TreeRow],
    placed: Mapping[str, Floats],
    z_down: bool,
) -> None:
    # Rotated, not mirrored: a right-handed frame stays right-handed.
    upright = np.diag([1.0, -1.0, -1.0, 1.0]) if z_down else np.eye(4)
    shown = {name: upright @ matrix for name, matrix in placed.items()}
    ax: Any = figure.add_axes(place, projection="3d")
    ax.set_proj_type("ortho")
    ax.view_init(elev=22, azim=-58)
    ax.axis("off")
    size = _axis_length(shown)
    _fit(ax, shown, size)
    segments: list[Floats] = []
    for row in rows:
        parent = rows[row.parent_row].name if row.parent_row is not None else ""
        if row.name in shown and parent in shown:
            ends = np.stack([shown[parent][:3, 3], shown[row.name][:3, 3]])
            edge, style = (MOVING, DASHES) if row.moving else (QUIET, "solid")
            ax.plot(*ends.T, color=edge, lw=1.2, ls=style, zorder=1, clip_on=False)
            segments.append(ends)
    for matrix in shown.values():
        segments += _draw_axes(ax, matrix, size)
    _draw_names(figure, ax, shown, segments)
    caption = f"axes {size:g} m long" + (", z of the root points down" if z_down else "")
    ax.text2D(0.5, 0.0, caption, transform=ax.transAxes, ha="center", fontsize=8.5, color=QUIET)


def _draw_axes(ax: Any, matrix: Floats, size: float) -> list[Floats]:
    """Draw three axes and return them as (2, 3) segments."""
    origin = matrix[:3, 3]
    segments = [np.stack([origin, origin + size * matrix[:3, column]]) for column in range(3)]
    for ends, colour in zip(segments, AXIS_COLOURS, strict=True):
        ax.plot(*ends.T, color=colour, lw=2.2, solid_capstyle="round", zorder=3, clip_on=False)
    ax.plot(*origin[:, None], "o", color=INK, ms=3.2, zorder=5, clip_on=False)
    return segments


def _axis_length(placed: Mapping[str, Floats]) -> float:
    """Return about an eighth of the scene, less for many frames, as 1, 2 or 5 times a power of ten."""
    origins = np.stack([matrix[:3, 3] for matrix in placed.values()])
    divisor = 8 * max(1.0, len(origins) / 16)
    wanted = float(np.linalg.norm(np.ptp(origins, axis=0))) / divisor or 1.0
    decade = 10.0 ** np.floor(np.log10(wanted))
    return float(decade * max(step for step in (1, 2, 5) if step * decade <= wanted * (1 + 1e-9)))


def _fit(ax: Any, placed: Mapping[str, Floats], size: float) -> None:
    """Set equal scales on all axes, with limits that enclose the frames."""
    tips = [matrix[:3, 3] + size * axis for matrix in placed.values() for axis in (*matrix[:3, :3].T, 0.0)]
    low, high = np.min(tips, axis=0), np.max(tips, axis=0)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.set_box_aspect(high - low, zoom=1.1)


def _draw_names(figure: Figure, ax: Any, placed: Mapping[str, Floats], segments: Sequence[Floats]) -> None:
    """Label each frame, with a leader line."""
    figure.draw_without_rendering()  # projections are known only after the layout
    anchors = _on_paper(figure, ax, np.stack([matrix[:3, 3] for matrix in placed.values()]))
    steps = np.linspace(0.0, 1.0, 12)[:, None]
    marks = [_on_paper(figure, ax, ends[0] + steps * (ends[1] - ends[0])) for ends in segments]
    frame = ax.get_position()
    width, height = figure.get_size_inches() * 72
    bounds = (frame.x0 * width, frame.y0 * height + 14, frame.x1 * width, frame.y1 * height)
    box = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.75}
    style: dict[str, Any] = {"fontsize": 9.5, "color": INK, "zorder": 6, "arrowprops": LEADER, "bbox": box}
    draw_labels(ax, list(placed), anchors, np.concatenate(marks), bounds, **style)


def _on_paper(figure: Figure, ax: Any, points: Floats) -> Floats:
    """Project points (n, 3) of the scene to (n, 2) points (1/72 inch) of the figure."""
    from mpl_toolkits.mplot3d import proj3d

    x, y, _ = proj3d.proj_transform(points[:, 0], points[:, 1], points[:, 2], ax.get_proj())
    return np.asarray(ax.transData.transform(np.column_stack([x, y])), dtype=np.float64) * 72 / figure.dpi


def _draw_legend(figure: Figure, left: float, with_moving: bool, with_axes: bool) -> None:
    from matplotlib.lines import Line2D

    dots: dict[str, Any] = {"lw": 1.6, "marker": "o", "ms": 6, "mew": 1.5}
    handles = [Line2D([], [], color=QUIET, mfc=INK, mec=INK, label="static", **dots)]
    if with_moving:
        moving = {"color": MOVING, "ls": DASHES, "mfc": "white", "mec": MOVING}
        handles.append(Line2D([], [], label="moving", **moving, **dots))
    if with_axes:
        colours = zip("xyz", AXIS_COLOURS, strict=True)
        handles += [Line2D([], [], color=colour, lw=2.2, label=axis) for axis, colour in colours]
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(left, 0.0),
        borderaxespad=0.3,
        ncols=5,
        frameon=False,
        fontsize=9,
    )
