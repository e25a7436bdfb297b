"""Making and saving figures without ever touching a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transect.base.files import staged
from transect.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")


class Drawing(NamedTuple):
    """A figure that is still to be drawn.

    Attributes
    ----------
    path : Path
        Of the PNG.
    make : callable
        Returns the figure; None if there is nothing to draw.
    dpi : int
        Pixels to an inch.
    """

    path: Path
    make: Callable[[], Figure | None]
    dpi: int = 150


def prepare_drawing() -> None:
    """Draw an empty plot for nobody: what draws is then imported, and the fonts are loaded."""
    from io import BytesIO

    from matplotlib.image import imsave

    figure = new_figure(1, 1)
    figure.add_subplot()
    imsave(BytesIO(), _draw(figure, 50), format="png")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches, on no backend at all."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


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
    for _, written in saved:
        written.result()
    return [path for path, _ in saved]


def _draw(figure: Figure, dpi: int) -> Any:
    """Return the pixels (h, w, 4) of a figure; `savefig` would draw it twice, first for the layout."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(dpi)
    figure.set_facecolor("white")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.buffer_rgba()


def _write_png(pixels: Any, path: Path, dpi: int, colours: int | None = None) -> None:
    from matplotlib.image import imsave

    with staged(path) as new:
        imsave(new, pixels, format="png", dpi=dpi)
        if colours:
            _keep_colours(new, colours)


def _keep_colours(path: Path, count: int) -> None:
    from PIL import Image

    with Image.open(path) as picture:
        palette = picture.convert("RGB").quantize(count, Image.Quantize.MAXCOVERAGE, kmeans=1)
    palette.save(path, "png", optimize=True)
