"""`transect draw overlay PATH`: what lasers and radars saw, in a camera's image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.options import streams_option
from ..shared.recordings import Opening, dpi_option, draw_recording, opening, picture_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.recording import Recording
    from transect.robots.overlay import View


@click.command()
@opening()
@picture_option("overlay.png")
@dpi_option
@streams_option
@click.option("--at", "time", metavar="TIME", default="+0s", help="Of the image; default: the start.")
@click.option("--camera", metavar="NAME", help="Whose image, if there are several cameras.")
@click.option(
    "--tolerance", metavar="S", default=0.1, help="Seconds that a sample may be away from the image: 0.1."
)
@click.option(
    "--coloured",
    type=click.Path(path_type=Path),
    help="Write the cloud with the image's colours: .ply, .pcd.",
)
def command(
    opening: Opening,
    out: Path,
    dpi: int,
    streams: tuple[str, ...],
    time: str,
    camera: str | None,
    tolerance: float,
    coloured: Path | None,
) -> int:
    """Draw what lasers and radars saw into a camera's image.

    Points are coloured by depth; frames are drawn too.
    """
    from transect.robots.overlay import view

    def figure_of(recording: Recording) -> Figure:
        seen = view(recording, camera, time, streams=streams, tolerance=tolerance)
        for note in seen.notes:
            click.echo(f"note: {note}", err=True)
        if coloured is not None:
            _write_coloured(seen, coloured)
        return seen.figure(f"{recording.name}: ")

    return draw_recording(opening, out, dpi, figure_of)


def _write_coloured(seen: View, path: Path) -> None:
    from transect.base.files import write_bytes
    from transect.errors import UsageError
    from transect.formats.shared.clouds import encode_cloud
    from transect.geometry.colours import colours
    from transect.types import PointCloud

    clouds = [s for s in seen.sightings if isinstance(s.value, PointCloud) and s.T_camera_sensor is not None]
    if len(clouds) != 1:
        names = ", ".join(s.stream.name for s in clouds) or "none"
        raise UsageError(
            f"--coloured takes one point cloud, and there are {len(clouds)} at this time",
            why=f"they are {names}",
            hint="choose one with --streams, or a longer --tolerance",
        )
    cloud, T = clouds[0].value, clouds[0].T_camera_sensor
    assert T is not None
    result = colours(cloud, seen.image, seen.camera, T)
    write_bytes(path, encode_cloud(result, path.suffix.lower()))
    click.echo(f"wrote {path}: {len(result)} of {len(cloud)} points are in the image and not hidden")
