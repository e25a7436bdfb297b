"""Drawings of what sensors saw: all of them at one time, or lasers and radars in the image of a camera."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..shared.options import add_options, from_option, streams_option, to_option
from ..shared.recordings import Opening, dpi_option, draw_recording, opening, picture_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.recording import Recording
    from transect.robots.overlay import View

moment_options = add_options(
    streams_option,
    click.option(
        "--panel", "panels", multiple=True, metavar="STREAM[:VIEW]",
        help="Draw this stream, in this order; STREAM+STREAM draws both into one. A wrong VIEW lists what "
        "there is; the name of a column draws its numbers over time, Y~X one column over another.",
    ),
    click.option(
        "--beside", multiple=True, metavar="PATH",
        help="Another recording, drawn after the first at the same time; may be repeated.",
    ),
    click.option("--at", "times", multiple=True, metavar="TIME", help="When; may be repeated. Default: +0s."),
    from_option,
    to_option,
    click.option(
        "--tolerance", type=float, metavar="S", default=0.5,
        help="Seconds that a sample may be away from the time: 0.5.",
    ),
    click.option(
        "--row", type=click.FloatRange(0, 1), default=0.5,
        help="Which line of images, as a share of their height: 0.5.",
    ),
    click.option("--sector", type=click.FloatRange(1, 180), metavar="DEG", help="Bearings up to this."),
    click.option("--reach", type=click.FloatRange(min=0.1), metavar="M", help="Ranges up to this."),
    click.option("--title", help="Above the picture; default: the recording and the time."),
    click.option("--columns", type=click.IntRange(1, 12), help="So many pictures side by side."),
    click.option(
        "--colours", type=click.IntRange(2, 256), help="A PNG of so many colours only: a smaller file."
    ),
)  # fmt: skip


@click.command("moment")
@opening()
@picture_option("moment.png")
@dpi_option
@moment_options
def draw_moment(
    opening: Opening, out: Path, dpi: int, beside: tuple[str, ...], colours: int | None, **choice: Any
) -> int:
    """Draw what all sensors saw at one time, side by side.

    With --from and --to some views show all that was seen in between.
    """
    from transect.draw.figures import save_figure
    from transect.robots.moment import Choice, draw_recordings

    from ..shared.recordings import cut_times, report_losses

    others = [dataclasses.replace(opening, paths=(path,)) for path in beside]
    recordings = [each.open() for each in (opening, *others)]
    cut_times(recordings[0], choice["start"], choice["end"])
    figure, notes = draw_recordings(recordings, Choice(**choice))
    for note in notes:
        click.echo(note, err=True)
    save_figure(figure, out, dpi, colours)
    click.echo(f"wrote {out}")
    return max(report_losses(recording) for recording in recordings)


@click.command("overlay")
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
def draw_overlay(
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
