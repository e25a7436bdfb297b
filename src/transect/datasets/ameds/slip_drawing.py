"""`transect draw slip PATH`: how much the wheels slipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from transect.cli.shared.recordings import Opening, dpi_option, draw_recording, opening, picture_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.recording import Recording


@click.command()
@opening("times")
@picture_option("slip.png")
@dpi_option
@click.option(
    "--twist", metavar="NAME", help="Stream of the platform's motion over the ground; default: the INS."
)
def command(opening: Opening, out: Path, dpi: int, twist: str | None) -> int:
    """Draw how much the wheels of Interact slipped.

    Their tracks are drawn by odometry and over the ground.
    """
    from transect.base.clocks import NS

    from .robot import driven
    from .slip_figure import slip_figure

    def figure_of(whole: Recording) -> Figure:
        recording = opening.cut(whole)
        report = driven.slip_report(recording, twist)
        _, tracks = driven.wheel_tracks(recording, twist)
        start = whole.span[0] if whole.span else 0
        return slip_figure(
            (report.stream.t_ns - start) / NS,
            report.stream.array("slip_ratio"),
            report.stream.array("slip_angle"),
            tracks.odometry,
            tracks.inverse,
            ("1 front left", "2 rear left", "3 rear right", "4 front right"),
            title=f"{recording.name}: slip of the wheels",
            source="INS" if report.source == " and ".join(driven.INS) else report.source,
        )

    return draw_recording(opening, out, dpi, figure_of)
