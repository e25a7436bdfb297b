"""Figures made and saved without a screen, and names placed where they hide nothing."""

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
"""Colours of lines and text, and of what is less important."""
SUFFIXES = (".png", ".svg", ".pdf")
ROW = 0.2
"""Inches of a row of a legend."""
POINTS_PER_INCH = 72.0
TITLE_SIZE, MIN_TITLE_SIZE = 11.0, 8.0
"""Points."""
TITLE_LEFT = 0.02
"""Part of the width of a figure that is left empty on each side of its title."""
LINE_SPACING = 1.25
"""Of a title, in heights of its letters."""
LARGEST = 1e100
"""Values beyond are drawn there."""


class Drawing(NamedTuple):
    """A figure that is still to be drawn."""

    path: Path  # of the PNG
    make: Callable[[], Figure | None]  # returns the figure; None if there is nothing to draw
    dpi: int = 150  # pixels to an inch


@cache
def figure_class() -> type[Figure]:
    """Return matplotlib's `Figure`; a command takes no settings from a `matplotlibrc` where it works.

    It would be part of a recording, and could have LaTeX typeset what it says.
    """
    import matplotlib
    from matplotlib.figure import Figure

    if is_own_process() and Path(matplotlib.matplotlib_fname()).absolute().parent == Path.cwd():
        matplotlib.rcdefaults()
    return Figure


def prepare_drawing() -> None:
    """Draw an empty plot for nobody: what draws is then imported, and the fonts are loaded.

    For a process that does nothing else: the pages of help that matplotlib writes for each of its classes, a
    third of its import, are left out.
    """
    from io import BytesIO

    import matplotlib.artist

    matplotlib.artist.kwdoc = lambda artist: ""
    figure = new_figure(1, 1)
    figure.add_subplot()
    _picture(_draw(figure, 50)).save(BytesIO(), "png")


def drawable(values: ArrayLike) -> Floats:
    """Return values that matplotlib can lay out an axis for: at most `LARGEST`, NaN where not finite."""
    given = np.asarray(values, np.float64)
    return np.where(np.isfinite(given), np.clip(given, -LARGEST, LARGEST), np.nan)


class Margins(NamedTuple):
    """Inches around the axes of a figure, for what is written there."""

    left: float
    right: float
    bottom: float
    top: float


def new_figure(width: float, height: float, margins: Margins | None = None) -> Figure:
    """Return an empty figure of a size in inches, on no backend at all.

    Parameters
    ----------
    margins : Margins, optional
        By default they fit what is written, which takes as long as all else that is drawn.
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
        figure.suptitle(self.text, fontsize=self.size, color=colour, x=TITLE_LEFT, ha="left")


def fit_title(title: str, width_in: float) -> Title:
    """Make a title smaller, down to `MIN_TITLE_SIZE`, then break its lines, so that a figure can hold it."""
    room = POINTS_PER_INCH * width_in * (1 - 2 * TITLE_LEFT)
    lines = title.split("\n")
    widest = max(_text_width(line, TITLE_SIZE) for line in lines)
    size = float(np.clip(TITLE_SIZE * room / max(widest, 1.0), MIN_TITLE_SIZE, TITLE_SIZE))
    lines = [part for line in lines for part in break_text(line, room, size)]
    return Title("\n".join(lines), size, (len(lines) - 1) * LINE_SPACING * size / POINTS_PER_INCH)


def break_text(text: str, room: float, size: float) -> list[str]:
    """Break a line into parts no wider than `room` (points): behind a blank or a sign, else anywhere."""
    if _text_width(text, size) <= room or len(text) < 2:
        return [text]
    fitting = next(n for n in range(len(text) - 1, 0, -1) if n == 1 or _text_width(text[:n], size) <= room)
    signs = [n for n in range(1, fitting + 1) if not text[n - 1].isalnum()]
    end = signs[-1] if signs and signs[-1] > fitting // 3 else fitting
    return [text[:end].rstrip(), *break_text(text[end:].lstrip(), room, size)]


def _text_width(text: str, size: float) -> float:
    """Return how wide a text is in matplotlib's font, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0]


def add_legend_below(figure: Figure, columns: int, rows: int) -> None:
    """Put one legend for all panels below them, and make the figure higher by its rows."""
    before, outside = figure.get_figheight(), figure.get_layout_engine() is not None
    height = before + ROW * rows
    figure.set_figheight(height)
    if not outside:
        edges = figure.subplotpars
        bottom, top = edges.bottom * before + ROW * rows, (1 - edges.top) * before
        figure.subplots_adjust(bottom=bottom / height, top=1 - top / height)
    place = "outside lower center" if outside else "lower center"
    figure.legend(loc=place, ncols=columns, frameon=False, fontsize=8)


def save_figure(figure: Figure, path: Path | str, dpi: int = 150, colours: int | None = None) -> None:
    """Save a figure as PNG, SVG or PDF, without dates and random ids: the same picture is the same file.

    Parameters
    ----------
    dpi : int
        Pixels to an inch.
    colours : int, optional
        Number of colours of a PNG with a palette, which takes half of the bytes; rare colours are kept too.
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
        for _, written in saved:  # here, since a signal while the thread is joined would let go of it
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
    """Return pixels (h, w, 4) as a picture; what is white already needs no opacity."""
    from PIL.Image import frombuffer

    height, width, _ = pixels.shape
    return frombuffer("RGBA", (width, height), pixels).convert("RGB")


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
