"""Where to write names so that they hide nothing: near what they name, on the emptiest spot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats

Bounds = tuple[float, float, float, float]
"""Left, bottom, right, top."""
# In heights of a line of text: how far from its point a name may stand.
DISTANCES = (0.9, 1.5, 2.3, 3.3, 4.6, 6.2, 8.2, 10.6, 13.5)
DIRECTIONS = 24
ROUNDS = 3
# What a spot costs: a name over a name or off the picture, over a mark; its line over a name, over a mark,
# over another line; and each height of distance.
OVER_NAME, OVER_MARK, LINE_OVER_NAME, LINE_OVER_MARK, CROSSING, FAR = 1000.0, 6.0, 40.0, 1.2, 15.0, 0.7


def write_names(
    ax: Any,
    names: Sequence[str],
    anchors: Floats,
    marks: Floats,
    bounds: Bounds,
    *,
    margin: float = 0.0,
    **style: Any,
) -> None:
    """Write the names of points where they hide little, each with a line to its point.

    Parameters
    ----------
    ax : Axes
        Of a figure that was laid out.
    anchors, marks, bounds
        See `place_names`; in points (1/72 inch) of the figure.
    margin : float
        Points by which a name is taken to be wider and higher than it is.
    **style
        Of its text, box and line, as `Axes.annotate` takes them.
    """
    from matplotlib.text import Text

    style |= {"xycoords": "figure points", "annotation_clip": False, "ha": "center", "va": "center"}
    notes = [
        ax.annotate(name, xy=tuple(anchor), xytext=tuple(anchor), **style)
        for name, anchor in zip(names, anchors, strict=True)
    ]
    boxes = [Text.get_window_extent(note) for note in notes]  # an annotation's own extent includes its line
    sizes = np.array([(box.width, box.height) for box in boxes]) * 72 / ax.figure.dpi + margin
    for note, centre in zip(notes, place_names(anchors, sizes, marks, bounds), strict=True):
        note.set_position(tuple(centre))


def place_names(anchors: Floats, sizes: Floats, marks: Floats, bounds: Bounds) -> Floats:
    """Choose where the names of points stand.

    Each takes the cheapest of some spots around its point, the most crowded point first, and once more when
    all stand. The same input gives the same picture.

    Parameters
    ----------
    anchors : (n, 2)
        The points, in pixels or any unit that is the same across and up.
    sizes : (n, 2)
        Width and height of each name.
    marks : (m, 2)
        What should stay visible, densely sampled; NaN rows count for nothing.
    bounds : (left, bottom, right, top)
        Names stay inside.

    Returns
    -------
    (n, 2) array
        Centres of the names.
    """
    centres = np.array(anchors, dtype=np.float64).reshape(-1, 2)
    if not len(centres):
        return centres
    line = float(np.median(sizes[:, 1]))
    marks = np.concatenate([marks[np.isfinite(marks).all(axis=1)], anchors])
    order = _sort_by_crowding(anchors, marks, line)
    spots = [_spots(anchor, size, line) for anchor, size in zip(anchors, sizes, strict=True)]
    alone = [_cost(spots[k], anchors[k], sizes[k], marks, bounds, line) for k in range(len(anchors))]
    standing: list[int] = []
    for k in order * ROUNDS:
        standing = [other for other in standing if other != k]
        clashes = [
            _clash(spots[k], anchors[k], sizes[k], anchors[other], centres[other], sizes[other])
            for other in standing
        ]
        centres[k] = spots[k][int(np.argmin(np.sum([alone[k], *clashes], axis=0)))]
        standing.append(k)
    return centres


def _sort_by_crowding(anchors: Floats, marks: Floats, line: float) -> list[int]:
    near = np.linalg.norm(anchors[:, None] - marks[None], axis=-1) < 4 * line
    return np.argsort(-near.sum(axis=1), kind="stable").tolist()


def _spots(anchor: Floats, size: Floats, line: float) -> Floats:
    """Centres (s, 2) of a name all around its point: its nearest edge is at each of the distances."""
    angle = np.arange(DIRECTIONS) * (2 * np.pi / DIRECTIONS)
    way = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    # From the centre of a box to its rim in that direction.
    reach = np.min(size / 2 / np.maximum(np.abs(way), 1e-9), axis=-1)
    distance = reach[None] + line * np.asarray(DISTANCES)[:, None]
    return (anchor + distance[..., None] * way).reshape(-1, 2)


def _cost(
    spots: Floats,
    anchor: Floats,
    size: Floats,
    marks: Floats,
    bounds: Bounds,
    line: float,
) -> Floats:
    """What each spot (s,) costs without regard to other names."""
    half = size / 2
    low, high = spots - half, spots + half
    outside = (low < bounds[:2]).any(axis=1) | (high > bounds[2:]).any(axis=1)
    margin = 0.25 * line
    hidden = ((marks > low[:, None] - margin) & (marks < high[:, None] + margin)).all(axis=-1).sum(axis=1)
    gap = np.linalg.norm(np.maximum(np.abs(spots - anchor) - half, 0.0), axis=1)
    struck = _near_line(marks, anchor, spots, 0.3 * line).sum(axis=1)
    return OVER_NAME * outside + OVER_MARK * hidden + LINE_OVER_MARK * struck + FAR * gap / line


def _near_line(points: Floats, start: Floats, ends: Floats, within: float) -> NDArray[np.bool_]:
    """Tell (s, m) which points (m, 2) lie on lines from `start` to `ends` (s, 2), but not at the start."""
    along = ends - start
    length = np.linalg.norm(along, axis=1, keepdims=True)
    unit = along / np.maximum(length, 1e-9)
    offset = points - start
    ahead = offset @ unit.T
    aside = np.abs(offset[:, :1] * unit[:, 1] - offset[:, 1:] * unit[:, 0])
    return ((aside < within) & (ahead > 3 * within) & (ahead < length[:, 0])).T


def _clash(
    spots: Floats, anchor: Floats, size: Floats, other_anchor: Floats, other: Floats, other_size: Floats
) -> Floats:
    """What each spot (s,) costs beside a name that stands already."""
    apart = np.abs(spots - other) - (size + other_size) / 2
    over = (apart < 0.15 * size[1]).all(axis=1)
    steps = np.linspace(0.0, 1.0, 24)[:, None]
    line = other_anchor + steps * (other - other_anchor)
    struck = (np.abs(line[None] - spots[:, None]) < size / 2).all(axis=-1).any(axis=-1)
    mine = anchor + steps[None] * (spots - anchor)[:, None]
    strikes = (np.abs(mine - other) < other_size / 2).all(axis=-1).any(axis=-1)
    crossed = _cross(anchor, spots, other_anchor, other)
    return OVER_NAME * over + LINE_OVER_NAME * (1.0 * struck + strikes) + CROSSING * crossed


def _cross(a: Floats, ends: Floats, c: Floats, d: Floats) -> NDArray[np.bool_]:
    """Tell whether the lines from `a` to `ends` (s, 2) cross that from `c` to `d`."""

    def side(p: Floats, q: Floats, r: Floats) -> Floats:
        return (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (
            r[..., 0] - p[..., 0]
        )

    return (side(a, ends, c) * side(a, ends, d) < 0) & (side(c, d, a) * side(c, d, ends) < 0)
