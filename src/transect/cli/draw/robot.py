"""`transect draw robot NAME`: a robot from three sides."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.recordings import dpi_option

if TYPE_CHECKING:
    pass


@click.command()
@click.argument("name")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="PNG, SVG or PDF, or a folder for NAME-views.png; default NAME.png.",
)
@dpi_option
@click.option("--picture", metavar="VIEW", help="Draw one view only: top, side or front.")
def command(name: str, out: Path | None, dpi: int, picture: str | None) -> int:
    """Draw a robot from three sides, with its frames and lengths.

    NAME is a robot (argo, ida, interact, weeder), or the path of your own .yaml or .urdf file.
    """
    from transect.draw.figures import save_figure
    from transect.draw.robots import robot_figure
    from transect.robots.pictures import load_scene

    called, scene = load_scene(name)
    out = out or Path(f"{called}.png")
    path = out if out.suffix else out / f"{called}-{picture or 'views'}.png"
    save_figure(robot_figure(scene, picture), path, dpi)
    click.echo(f"wrote {path}")
    return 0
