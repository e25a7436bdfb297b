"""`transect draw moment`: its options, and the file that it writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._options import from_option, streams_option, to_option

if TYPE_CHECKING:
    from transect.recording import Recording

OPTIONS = (
    streams_option,
    click.option(
        "--panel",
        "panels",
        multiple=True,
        metavar="STREAM[:VIEW]",
        help="Draw this stream, in this order; STREAM+STREAM draws both into one. A wrong VIEW lists what "
        "there is; the name of a column draws its numbers over time, Y~X one column over another.",
    ),
    click.option(
        "--beside",
        multiple=True,
        metavar="PATH",
        help="Another recording, drawn after the first at the same time; may be repeated.",
    ),
    click.option("--at", "times", multiple=True, metavar="TIME", help="When; may be repeated. Default: +0s."),
    from_option,
    to_option,
    click.option(
        "--tolerance",
        type=float,
        metavar="S",
        default=0.5,
        help="Seconds that a sample may be away from the time: 0.5.",
    ),
    click.option(
        "--row",
        type=click.FloatRange(0, 1),
        default=0.5,
        help="Which line of images, as a share of their height: 0.5.",
    ),
    click.option("--sector", type=click.FloatRange(1, 180), metavar="DEG", help="Bearings up to this."),
    click.option("--reach", type=click.FloatRange(min=0.1), metavar="M", help="Ranges up to this."),
    click.option("--title", help="Above the picture; default: the recording and the time."),
    click.option("--columns", type=click.IntRange(1, 12), help="So many pictures side by side."),
    click.option(
        "--colours", type=click.IntRange(2, 256), help="A PNG of so many colours only: a smaller file."
    ),
)


def moment_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `draw moment`."""
    for decorate in reversed(OPTIONS):
        function = decorate(function)
    return function


def draw_moment(
    recordings: Sequence[Recording], out: Path, dpi: int, colours: int | None, **choice: Any
) -> None:
    """Draw what recordings saw into a file, and say on stderr what is left out, and why."""
    from transect.draw.figures import save_figure
    from transect.errors import UsageError
    from transect.robots.moment import Choice, draw_recordings

    if colours and out.suffix.lower() != ".png":
        raise UsageError(f"--colours is for PNG, not for {out.name}")
    figure, notes = draw_recordings(recordings, Choice(**choice))
    for note in notes:
        click.echo(note, err=True)
    save_figure(figure, out, dpi)
    if colours:
        _keep_colours(out, colours)


def _keep_colours(path: Path, count: int) -> None:
    """Write a PNG again with a palette, which takes half of the bytes; colours that are rare are kept too."""
    import io

    from PIL import Image

    from transect.base.files import write_bytes

    small = io.BytesIO()
    with Image.open(path) as picture:
        palette = picture.convert("RGB").quantize(count, Image.Quantize.MAXCOVERAGE, kmeans=1)
        palette.save(small, "png", optimize=True)
    write_bytes(path, small.getvalue())
