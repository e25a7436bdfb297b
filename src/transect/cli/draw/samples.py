"""Figures of the data of all sensors at one time, and of points in a camera image."""

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
    from transect.robots.overlay import CameraOverlay

moment_options = add_options(
    streams_option,
    click.option(
        "--panel", "panels", multiple=True, metavar="STREAM[:VIEW]",
        help="Panel of a stream, or of several in one (STREAM+STREAM); may be repeated. VIEW is a kind of "
        "view (an unknown one lists all), a column to plot over time, or Y~X to plot one over another.",
    ),
    click.option(
        "--beside", multiple=True, metavar="PATH",
        help="Another recording to draw at the same time; may be repeated.",
    ),
    click.option("--at", "times", multiple=True, metavar="TIME", help="Time; may be repeated. Default: +0s."),
    from_option,
    to_option,
    click.option(
        "--tolerance", type=float, metavar="S", default=0.5,
        help="Largest time difference of a sample, s. Default: 0.5.",
    ),
    click.option(
        "--row", type=click.FloatRange(0, 1), default=0.5,
        help="Image row, as a fraction of the height. Default: 0.5.",
    ),
    click.option("--sector", type=click.FloatRange(1, 180), metavar="DEG", help="Largest bearing."),
    click.option("--reach", type=click.FloatRange(min=0.1), metavar="M", help="Largest range."),
    click.option("--title", help="Title; default: the recording and the time."),
    click.option("--columns", type=click.IntRange(1, 12), help="Number of panels side by side."),
    click.option(
        "--colours", type=click.IntRange(2, 256), help="Palette size of a PNG, for a smaller file."
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
    """Draw the data of all sensors at one time, side by side.

    With --from and --to, some views show the whole interval.
    """
    from transect.draw.figures import save_figure
    from transect.robots.moment import MomentOptions, draw_recordings

    from ..shared.recordings import cut_times, report_losses

    others = [dataclasses.replace(opening, paths=(path,)) for path in beside]
    recordings = [each.open() for each in (opening, *others)]
    cut_times(recordings[0], choice["start"], choice["end"])
    figure, notes = draw_recordings(recordings, MomentOptions(**choice))
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
@click.option("--at", "time", metavar="TIME", default="+0s", help="Time of the image; default: the start.")
@click.option("--camera", metavar="NAME", help="The camera, if there are several.")
@click.option(
    "--tolerance", metavar="S", default=0.1, help="Largest time difference to the image, s. Default: 0.1."
)
@click.option(
    "--coloured",
    type=click.Path(path_type=Path),
    help="Write the cloud with colours of the image: .ply or .pcd.",
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
    """Draw points of lasers and radars into a camera image.

    Points are coloured by depth; the robot's frames are drawn, too.
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


def _write_coloured(seen: CameraOverlay, path: Path) -> None:
    from transect.base.files import write_bytes
    from transect.errors import UsageError
    from transect.formats.shared.clouds import encode_cloud
    from transect.geometry.colours import colours
    from transect.types import PointCloud

    clouds = [s for s in seen.sightings if isinstance(s.value, PointCloud) and s.T_camera_sensor is not None]
    if len(clouds) != 1:
        names = ", ".join(s.stream.name for s in clouds) or "none"
        raise UsageError(
            f"--coloured needs one point cloud, and there are {len(clouds)} at this time",
            why=f"they are {names}",
            hint="choose one with --streams, or a longer --tolerance",
        )
    cloud, T = clouds[0].value, clouds[0].T_camera_sensor
    assert T is not None
    result = colours(cloud, seen.image, seen.camera, T)
    write_bytes(path, encode_cloud(result, path.suffix.lower()))
    click.echo(f"wrote {path}: {len(result)} of {len(cloud)} points are visible in the image")
