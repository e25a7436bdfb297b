"""`transect draw moment`: what it may be asked, and how the picture is put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._options import from_option, streams_option, to_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.draw.moment import Panel
    from transect.recording import Recording, Stream

    from ._draw_moment_sample import Moment

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


@dataclass(frozen=True)
class Asked:
    """What is drawn of each recording, when, and how; see OPTIONS."""

    streams: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    tolerance: float = 0.5
    row: float = 0.5
    sector: float | None = None
    reach: float | None = None
    title: str | None = None
    columns: int | None = None


def moment_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `draw moment`."""
    for decorate in reversed(OPTIONS):
        function = decorate(function)
    return function


def draw_moment(
    recordings: Sequence[Recording], out: Path, dpi: int, colours: int | None, asked: Asked
) -> None:
    """Draw what recordings saw into a file."""
    from transect.draw.figures import save_figure
    from transect.errors import UsageError

    if colours and out.suffix.lower() != ".png":
        raise UsageError(f"--colours is for PNG, not for {out.name}")
    save_figure(moment_of(recordings, asked), out, dpi)
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


def moment_of(recordings: Sequence[Recording], asked: Asked) -> Figure:
    """Return the figure of a moment, and say on stderr what is left out, and why."""
    import numpy as np

    from transect.draw.moment import Limits, moment_figure
    from transect.errors import StreamError

    _refuse(recordings, asked)
    several = len(recordings) > 1, len(asked.times) > 1
    drawn: list[Panel] = []
    for recording in recordings:
        for moment in _moments(recording, asked, several):
            drawn += _panels(moment, asked)
    names = " and ".join(recording.name for recording in recordings)
    if not drawn:
        when = " or ".join(asked.times) or "the start"
        raise StreamError(f"{names} has nothing at {when}", hint="another --at, or more --tolerance")
    limits = Limits(None if asked.sector is None else float(np.radians(asked.sector)), asked.reach)
    title = asked.title if asked.title is not None else _title(recordings[0], asked, names)
    return moment_figure(drawn, title, asked.columns, limits)


def _title(recording: Recording, asked: Asked, names: str) -> str:
    moment = next(_moments(recording, asked, (False, False)))
    return f"{names} at {moment.time}"


def _moments(recording: Recording, asked: Asked, several: tuple[bool, bool]) -> Iterator[Moment]:
    """Yield the times of a recording that are drawn; names tell them apart where there are several."""
    from transect.base import clocks

    from ._draw_moment_sample import Moment

    streams = _asked_streams(recording, asked)
    clock = streams[0].clock
    spans = recording.spans()
    first, last = spans.get(clock, (0, 0))

    def resolved(time: str) -> int:
        return clocks.resolve(time, first, clock)

    window = None
    if asked.start or asked.end:
        window = resolved(asked.start or "+0s"), resolved(asked.end) if asked.end else last + 1
    for time in asked.times or ("+0s",):
        words = [word for word, wanted in zip((recording.name, time), several, strict=True) if wanted]
        heading = f"{', '.join(words)}: " if words else ""
        yield Moment(recording, clock, resolved(time), asked.tolerance, window, asked.row, heading, first)


def _asked_streams(recording: Recording, asked: Asked) -> list[Stream]:
    """Return the streams that could be drawn, of which the first has the clock."""
    from transect.errors import StreamError
    from transect.robots.overlay import ROLES

    from ._draw_moment_views import KINDS

    if asked.panels:
        streams = [s for panel in asked.panels for parts, _ in _jobs(recording, panel) for s in parts]
    else:
        chosen = recording.select(*asked.streams) if asked.streams else recording
        streams = [s for s in chosen.streams if s.type in KINDS and (asked.streams or s.role in ROLES)]
        streams.sort(key=lambda s: KINDS.index(s.type))
    streams = [s for s in streams if len(s)]
    patterns = asked.panels or asked.streams
    if not streams:
        raise StreamError(
            f"{recording.name} has no images, scans, radars or clouds to draw",
            why=f"none match {' or '.join(patterns)}" if patterns else "",
            hint="transect info PATH lists what there is",
        )
    return streams


def _refuse(recordings: Sequence[Recording], asked: Asked) -> None:
    """Refuse two ways of choosing, and a panel that no recording has; it may be one of several only."""
    from transect.errors import StreamError, UsageError

    if asked.panels and asked.streams:
        raise UsageError("--panel and --streams both choose what is drawn", hint="give one of them")
    for panel in asked.panels:
        if not any(_jobs(recording, panel) for recording in recordings):
            raise StreamError(
                f"there is no stream for --panel {panel}", hint="transect info PATH lists what there is"
            )


def _panels(moment: Moment, asked: Asked) -> list[Panel]:
    from transect.errors import TransectError

    from ._draw_moment_views import everything, panel_of

    if not asked.panels:
        jobs = everything(_asked_streams(moment.recording, asked))
    else:
        jobs = [job for panel in asked.panels for job in _jobs(moment.recording, panel)]
    panels: list[Panel] = []
    for streams, view in jobs:
        try:
            panels.append(panel_of(moment, streams, view))
        except TransectError as error:
            if asked.panels:
                raise
            click.echo(f"left out: {streams[0].name}: {error.what}", err=True)
    return panels


def _jobs(recording: Recording, panel: str) -> list[tuple[list[Stream], str]]:
    """Return what a --panel draws: streams of one picture, and the view; each match of a glob is one."""
    names, _, view = panel.partition(":")
    parts = [_matching(recording, name) for name in names.split("+")]
    if len(parts) == 1:
        return [([stream], view) for stream in parts[0]]
    return [([stream for part in parts for stream in part], view)] if all(parts) else []


def _matching(recording: Recording, name: str) -> list[Stream]:
    return [stream for stream in recording.streams if len(stream) and fnmatchcase(stream.name, name)]
