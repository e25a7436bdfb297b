"""Figures drawn and saved without a display, and label placement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.base.files import staged
from transect.base.processes import is_own_process
from transect.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

INK, QUIET = "#22303c", "#9aa5b1"
"""Colours of lines and text, and of secondary elements."""
SUFFIXES = (".png", ".svg", ".pdf")
LEGEND_ROW_IN = 0.2
POINTS_PER_INCH = 72.0
TITLE_MARGIN_RATIO = 0.02
"""Fraction of a figure's width that is left empty on each side of its title."""


class Drawing(NamedTuple):
    """A figure that is still to be drawn."""

    path: Path  # of the PNG
    make: Callable[[], Figure | None]  # returns the figure; None if there is nothing to draw
    dpi: int = 150


@cache
def figure_class() -> type[Figure]:
    """Return matplotlib's `Figure`; a `matplotlibrc` in the working directory is ignored by commands.

    Such a file comes with a recording of somebody else, and could switch on LaTeX typesetting.
    """
    import matplotlib
    from matplotlib.figure import Figure

    if is_own_process() and Path(matplotlib.matplotlib_fname()).absolute().parent == Path.cwd():
        matplotlib.rcdefaults()
    return Figure


def prepare_drawing() -> None:
    """Draw an empty plot, so that matplotlib is imported and its fonts are loaded.

    Only for a process that does nothing else: generating the docstrings of matplotlib's classes, a third of
    its import time, is switched off.
    """
    from io import BytesIO

    import matplotlib.artist

    matplotlib.artist.kwdoc = lambda artist: ""
    figure = new_figure(1, 1)
    figure.add_subplot()
    _picture(_draw(figure, 50)).save(BytesIO(), "png")


def drawable(values: ArrayLike) -> Floats:
    """Return values that matplotlib can lay out an axis for: clipped to 1e100, NaN where not finite."""
    given = np.asarray(values, np.float64)
    return np.where(np.isfinite(given), np.clip(given, -1e100, 1e100), np.nan)


class Margins(NamedTuple):
    """Inches around the axes of a figure, for labels and titles."""

    left: float
    right: float
    bottom: float
    top: float


def new_figure(width: float, height: float, margins: Margins | None = None) -> Figure:
    """Return an empty figure of a size in inches, without a backend.

    Parameters
    ----------
    margins : Margins, optional
        By default a constrained layout, which doubles the drawing time.
    """
    Figure = figure_class()
    if margins is None:
        return Figure(figsize=(width, height), layout="constrained")
    figure = Figure(figsize=(width, height))
    left, right, bottom, top = margins
    figure.subplots_adjust(left / width, bottom / height, 1 - right / width, 1 - top / height)
    return figure


@dataclass(frozen=True)
class Title:
    """A title whose lines fit into the width of a figure."""

    text: str
    size: float  # points
    extra_in: float  # height of its lines below the first

    def write(self, figure: Figure, colour: str) -> None:
        """Write it at the upper left of a figure."""
        figure.suptitle(self.text, fontsize=self.size, color=colour, x=TITLE_MARGIN_RATIO, ha="left")


def fit_title(title: str, width_in: float, *, size_pt: float = 11.0, min_size_pt: float = 8.0) -> Title:
    """Shrink a title down to `min_size_pt`, then break its lines, so that it fits into a figure's width."""
    width_pt = POINTS_PER_INCH * width_in * (1 - 2 * TITLE_MARGIN_RATIO)
    lines = title.split("\n")
    widest = max(_text_width(line, size_pt) for line in lines)
    size = float(np.clip(size_pt * width_pt / max(widest, 1.0), min_size_pt, size_pt))
    lines = [part for line in lines for part in break_text(line, width_pt, size)]
    return Title("\n".join(lines), size, (len(lines) - 1) * 1.25 * size / POINTS_PER_INCH)


def break_text(text: str, width_pt: float, size: float) -> list[str]:
    """Break a line into parts no wider than `width_pt`: after a space or punctuation, else anywhere."""
    if _text_width(text, size) <= width_pt or len(text) < 2:
        return [text]
    fitting = next(
        n for n in range(len(text) - 1, 0, -1) if n == 1 or _text_width(text[:n], size) <= width_pt
    )
    break_positions = [n for n in range(1, fitting + 1) if not text[n - 1].isalnum()]
    end = break_positions[-1] if break_positions and break_positions[-1] > fitting // 3 else fitting
    return [text[:end].rstrip(), *break_text(text[end:].lstrip(), width_pt, size)]


def _text_width(text: str, size: float) -> float:
    """Return the width of a text in matplotlib's font, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0]


def add_legend_below(figure: Figure, columns: int, rows: int) -> None:
    """Put one legend for all panels below them, and increase the figure's height by its rows."""
    before, has_layout = figure.get_figheight(), figure.get_layout_engine() is not None
    height = before + LEGEND_ROW_IN * rows
    figure.set_figheight(height)
    if not has_layout:
        edges = figure.subplotpars
        bottom, top = edges.bottom * before + LEGEND_ROW_IN * rows, (1 - edges.top) * before
        figure.subplots_adjust(bottom=bottom / height, top=1 - top / height)
    location = "outside lower center" if has_layout else "lower center"
    figure.legend(loc=location, ncols=columns, frameon=False, fontsize=8)


def save_figure(figure: Figure, path: Path | str, dpi: int = 150, colours: int | None = None) -> None:
    """Save a figure as PNG, SVG or PDF, without dates and random ids: equal figures give equal files.

    Parameters
    ----------
    colours : int, optional
        Palette size of a PNG, which halves the file size; rare colours are kept too.
    """
    from matplotlib import rc_context

    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"a picture cannot be written as {path.name}", hint=f"end it in {', '.join(SUFFIXES)}"
        )
    if colours and suffix != ".png":
        raise UsageError(f"--colours is for PNG, not for {path.name}")
    if suffix == ".png":
        _write_png(_draw(figure, dpi), path, dpi, colours)
        return
    date = {".svg": "Date", ".pdf": "CreationDate"}[suffix]
    with staged(path) as new, rc_context({"svg.hashsalt": "transect"}):
        figure.savefig(new, dpi=dpi, metadata={date: None}, facecolor="white")


def save_figures(drawings: Iterable[Drawing]) -> list[Path]:
    """Make figures and save them as `save_figure` does; each is compressed while the next one is drawn."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as writer:
        saved = [
            (path, writer.submit(_write_png, _draw(figure, dpi), path, dpi))
            for path, make, dpi in drawings
            if (figure := make()) is not None
        ]
        for _, written in saved:  # wait here: a signal while the thread is joined would abandon it
            written.result()
    return [path for path, _ in saved]


def webp_of(figure: Figure, dpi: int, quality: int = 72) -> tuple[bytes, int, int]:
    """Return a figure as the bytes of a WebP, and its width and height in pixels."""
    from io import BytesIO

    picture = _picture(_draw(figure, dpi))
    content = BytesIO()
    picture.save(content, "webp", quality=quality, method=4)
    return content.getvalue(), picture.width, picture.height


def _draw(figure: Figure, dpi: int) -> Any:
    """Return the pixels (h, w, 4) of a figure; `savefig` would draw it twice, first for the layout."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(dpi)
    figure.set_facecolor("white")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.buffer_rgba()


def _write_png(pixels: Any, path: Path, dpi: int, colours: int | None = None) -> None:
    from PIL.Image import Quantize

    picture = _picture(pixels)
    if colours:
        picture = picture.quantize(colours, Quantize.MAXCOVERAGE, kmeans=1)
    with staged(path) as new:
        picture.save(new, "png", dpi=(dpi, dpi), optimize=colours is not None)


def _picture(pixels: Any) -> Image:
    """Return pixels (h, w, 4) as an image without its alpha channel; the background is white already."""
    from PIL.Image import frombuffer

    height, width, _ = pixels.shape
    return frombuffer("RGBA", (width, height), pixels).convert("RGB")


Bounds = tuple[float, float, float, float]
"""Left, bottom, right, top."""


@dataclass(frozen=True)
class LabelSettings:
    """Candidate positions of a label around its point, and their costs (greedy point-feature labelling)."""

    # distances of a label from its point, in heights of a line of text
    distances: tuple[float, ...] = (0.9, 1.5, 2.3, 3.3, 4.6, 6.2, 8.2, 10.6, 13.5)
    directions: int = 24
    rounds: int = 3  # each label is placed again, with all others in place
    # Radius around a point in which marks crowd it, margin of a label to marks, and of a leader to marks, in
    # heights of a line of text
    crowding_radius: float = 4.0
    mark_margin: float = 0.25
    leader_margin: float = 0.3
    leader_start: float = 3.0  # marks nearer to the label's point do not count, in leader margins
    label_margin: float = 0.15  # between two labels, in heights of the label
    leader_samples: int = 24  # samples along a leader, to find labels over it
    # Costs
    label_over_label: float = 1000.0  # or outside the picture
    label_over_mark: float = 6.0
    leader_over_label: float = 40.0
    leader_over_mark: float = 1.2
    leader_over_leader: float = 15.0
    distance: float = 0.7  # for each height of a line of text


LABELS = LabelSettings()


def draw_labels(
    ax: Any,
    names: Sequence[str],
    anchors: Floats,
    marks: Floats,
    bounds: Bounds,
    *,
    margin: float = 0.0,
    **style: Any,
) -> None:
    """Write the names of points where they hide little, each with a leader line to its point.

    Parameters
    ----------
    ax : Axes
        Of a figure that was laid out.
    anchors, marks, bounds
        See `place_labels`; in points (1/72 inch) of the figure.
    margin : float
        Points that are added to the width and height of a name.
    **style
        Keyword arguments of `Axes.annotate` for text, box and line.
    """
    from matplotlib.text import Text

    style |= {"xycoords": "figure points", "annotation_clip": False, "ha": "center", "va": "center"}
    notes = [
        ax.annotate(name, xy=tuple(anchor), xytext=tuple(anchor), **style)
        for name, anchor in zip(names, anchors, strict=True)
    ]
    boxes = [Text.get_window_extent(note) for note in notes]  # an annotation's own extent includes its line
    sizes = np.array([(box.width, box.height) for box in boxes]) * 72 / ax.figure.dpi + margin
    for note, centre in zip(notes, place_labels(anchors, sizes, marks, bounds), strict=True):
        note.set_position(tuple(centre))


def place_labels(anchors: Floats, sizes: Floats, marks: Floats, bounds: Bounds) -> Floats:
    """Choose the positions of labels.

    Greedy and deterministic: each label takes the candidate position of least cost, the most crowded point
    first; then all are placed again, with the others in place.

    Parameters
    ----------
    anchors : (n, 2)
        The labelled points, in pixels or any unit that is equal on both axes.
    sizes : (n, 2)
        Width and height of each label.
    marks : (m, 2)
        Points that should stay visible, densely sampled; NaN rows are ignored.
    bounds : (left, bottom, right, top)
        Limits of the label positions.

    Returns
    -------
    (n, 2) array
        Centres of the labels.
    """
    centres = np.array(anchors, dtype=np.float64).reshape(-1, 2)
    if not len(centres):
        return centres
    line_height = float(np.median(sizes[:, 1]))
    marks = np.concatenate([marks[np.isfinite(marks).all(axis=1)], anchors])
    order = _sort_by_crowding(anchors, marks, line_height)
    candidates = [_candidates(anchor, size, line_height) for anchor, size in zip(anchors, sizes, strict=True)]
    own_costs = [
        _own_cost(candidates[k], anchors[k], sizes[k], marks, bounds, line_height)
        for k in range(len(anchors))
    ]
    placed: list[int] = []
    for k in order * LABELS.rounds:
        placed = [other for other in placed if other != k]
        pair_costs = [
            _pair_cost(candidates[k], anchors[k], sizes[k], anchors[other], centres[other], sizes[other])
            for other in placed
        ]
        centres[k] = candidates[k][int(np.argmin(np.sum([own_costs[k], *pair_costs], axis=0)))]
        placed.append(k)
    return centres


def _sort_by_crowding(anchors: Floats, marks: Floats, line_height: float) -> list[int]:
    near = np.linalg.norm(anchors[:, None] - marks[None], axis=-1) < LABELS.crowding_radius * line_height
    return np.argsort(-near.sum(axis=1), kind="stable").tolist()


def _candidates(anchor: Floats, size: Floats, line_height: float) -> Floats:
    """Return centres (s, 2) of a label around its point, its nearest edge at each of the distances."""
    angle = np.arange(LABELS.directions) * (2 * np.pi / LABELS.directions)
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    # from the centre of a box to its rim in that direction
    half_extent = np.min(size / 2 / np.maximum(np.abs(direction), 1e-9), axis=-1)
    distance = half_extent[None] + line_height * np.asarray(LABELS.distances)[:, None]
    return (anchor + distance[..., None] * direction).reshape(-1, 2)


def _own_cost(
    candidates: Floats,
    anchor: Floats,
    size: Floats,
    marks: Floats,
    bounds: Bounds,
    line_height: float,
) -> Floats:
    """Return the cost (s,) of each candidate position, other labels disregarded."""
    half = size / 2
    low, high = candidates - half, candidates + half
    outside = (low < bounds[:2]).any(axis=1) | (high > bounds[2:]).any(axis=1)
    margin = LABELS.mark_margin * line_height
    hidden = ((marks > low[:, None] - margin) & (marks < high[:, None] + margin)).all(axis=-1).sum(axis=1)
    gap = np.linalg.norm(np.maximum(np.abs(candidates - anchor) - half, 0.0), axis=1)
    crossed = _near_line(marks, anchor, candidates, LABELS.leader_margin * line_height).sum(axis=1)
    cost = LABELS.label_over_label * outside + LABELS.label_over_mark * hidden
    return cost + LABELS.leader_over_mark * crossed + LABELS.distance * gap / line_height


def _near_line(points: Floats, start: Floats, ends: Floats, within: float) -> NDArray[np.bool_]:
    """Return (s, m) whether points (m, 2) are on lines from `start` to `ends` (s, 2), the start excluded."""
    along = ends - start
    length = np.linalg.norm(along, axis=1, keepdims=True)
    unit = along / np.maximum(length, 1e-9)
    offset = points - start
    ahead = offset @ unit.T
    aside = np.abs(offset[:, :1] * unit[:, 1] - offset[:, 1:] * unit[:, 0])
    return ((aside < within) & (ahead > LABELS.leader_start * within) & (ahead < length[:, 0])).T


def _pair_cost(
    candidates: Floats, anchor: Floats, size: Floats, other_anchor: Floats, other: Floats, other_size: Floats
) -> Floats:
    """Return the cost (s,) of each candidate position next to a label that is placed already."""
    separation = np.abs(candidates - other) - (size + other_size) / 2
    over = (separation < LABELS.label_margin * size[1]).all(axis=1)
    steps = np.linspace(0.0, 1.0, LABELS.leader_samples)[:, None]
    leader = other_anchor + steps * (other - other_anchor)
    under_leader = (np.abs(leader[None] - candidates[:, None]) < size / 2).all(axis=-1).any(axis=-1)
    own_leader = anchor + steps[None] * (candidates - anchor)[:, None]
    leader_over = (np.abs(own_leader - other) < other_size / 2).all(axis=-1).any(axis=-1)
    crossed = _cross(anchor, candidates, other_anchor, other)
    cost = LABELS.label_over_label * over + LABELS.leader_over_label * (1.0 * under_leader + leader_over)
    return cost + LABELS.leader_over_leader * crossed


def _cross(a: Floats, ends: Floats, c: Floats, d: Floats) -> NDArray[np.bool_]:
    """Return whether the segments from `a` to `ends` (s, 2) cross that from `c` to `d`."""

    def side(p: Floats, q: Floats, r: Floats) -> Floats:
        return (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (
            r[..., 0] - p[..., 0]
        )

    return (side(a, ends, c) * side(a, ends, d) < 0) & (side(c, d, a) * side(c, d, ends) < 0)
