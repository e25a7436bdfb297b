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


def save_figure(figure: Figure, path: Path | str, dpi: int = 150) -> None:
    """Save a figure as PNG, SVG or PDF, without a date inside, so that the same picture is the same file."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"a picture cannot be written as {path.name}", hint=f"end it in {', '.join(SUFFIXES)}"
        )
    date = {".png": "Creation Time", ".svg": "Date", ".pdf": "CreationDate"}[path.suffix.lower()]
    with staged(path) as new:
        figure.savefig(new, dpi=dpi, metadata={date: None}, facecolor="white")
