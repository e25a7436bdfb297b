"""Making and saving figures without ever touching a screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transect.base.files import staged
from transect.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")


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
    date = {".png": "Creation Time", ".svg": "Date", ".pdf": "CreationDate"}[suffix]
    with staged(path) as new, rc_context({"svg.hashsalt": "transect"}):
        figure.savefig(new, dpi=dpi, metadata={date: None}, facecolor="white")
        if colours:
            _keep_colours(new, colours)


def _keep_colours(path: Path, count: int) -> None:
    from PIL import Image

    with Image.open(path) as picture:
        palette = picture.convert("RGB").quantize(count, Image.Quantize.MAXCOVERAGE, kmeans=1)
    palette.save(path, "png", optimize=True)
