"""`transect draw streams PATH`: when each stream was there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.recordings import Opening, dpi_option, draw_recording, opening, picture_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.recording import Recording


@click.command()
@opening()
@picture_option("streams.png")
@dpi_option
def command(opening: Opening, out: Path, dpi: int) -> int:
    """Draw when each stream was there, and its gaps."""
    return draw_recording(opening, out, dpi, stream_figure)


def stream_figure(recording: Recording) -> Figure:
    """Return the figure of a recording's streams over time, on its main clock."""
    from transect.base import clocks
    from transect.draw.timeline import Strip, timeline_figure
    from transect.recording.summary import duration_text, rate_text

    clock = recording.clock
    first = recording.spans().get(clock, (0, 0))[0]
    if others := [s.name for s in recording.streams if s.clock != clock]:
        click.echo(f"not drawn, since they are not on the {clock} clock: {', '.join(others)}", err=True)
    strips = [
        Strip(
            s.name,
            (s.t_ns - first) / clocks.NS,
            s.role,
            f"{rate_text(s.timing.rate)}, gap {duration_text(s.timing.gap_s)}",
        )
        for s in recording.streams
        if s.clock == clock
    ]
    return timeline_figure(strips, recording.name, clocks.text_from_ns(first, clock))
