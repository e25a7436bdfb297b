"""What all drawings share: where the picture goes, and how it is made of a recording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._opening import Opening

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.recording import Recording


def picture_option(default: str) -> Callable[..., Any]:
    kind = click.Path(path_type=Path)
    return click.option(
        "-o", "--out", type=kind, default=Path(default), help=f"PNG, SVG or PDF; default {default}."
    )


dpi_option = click.option(
    "--dpi", type=click.IntRange(50, 600), default=150, show_default=True, help="Pixels to an inch."
)


def draw(
    opening: Opening,
    out: Path,
    dpi: int,
    figure_of: Callable[[Recording], Figure],
) -> int:
    from transect.draw.figures import save_figure

    from .._opening import report_losses

    recording = opening.open()
    save_figure(figure_of(recording), out, dpi)
    click.echo(f"wrote {out}")
    return report_losses(recording)
