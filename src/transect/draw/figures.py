"""Making and saving figures without ever touching a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.base.files import staged
from transect.base.processes import is_own_process
from transect.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

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
