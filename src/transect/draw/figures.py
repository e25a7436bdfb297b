"""Making and saving figures without ever touching a screen."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.base.files import staged
from transect.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")


def import_early() -> None:
    """Import what draws on a thread: where figures come last, it is there by then."""
    from importlib import import_module
    from threading import Thread

    Thread(target=import_module, args=("matplotlib.backends.backend_agg",), daemon=True).start()


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


def save_figures(figures: Iterable[tuple[Path, Figure]], dpi: int = 150) -> list[Path]:
    """Save figures as PNG, as `save_figure`; each is compressed while the next one is drawn."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as writer:
        saved = [(path, writer.submit(_write_png, _draw(figure, dpi), path, dpi)) for path, figure in figures]
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
