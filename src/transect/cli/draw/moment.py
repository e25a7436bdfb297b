"""`transect draw moment PATH`: what all sensors saw at one time."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..shared.options import add_options, from_option, streams_option, to_option
from ..shared.recordings import Opening, dpi_option, opening, picture_option

if TYPE_CHECKING:
    pass


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


@click.command()
@opening()
@picture_option("moment.png")
@dpi_option
@moment_options
def command(
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
