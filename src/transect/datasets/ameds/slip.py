"""`transect table slip` and `transect draw slip`: wheel slip of Interact."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option
from transect.cli.shared.recordings import Opening, dpi_option, draw_recording, opening, picture_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.datasets.ameds.robot.locomotion import SlipReport
    from transect.recording import Recording
    from transect.robots.slip import SlipSummary


HEADINGS = ("wheel", "rolled [m]", "over ground [m]", "lost", "median", "5 %", "95 %", "angle [deg]")
WHEELS = ("all four", "1 front left", "2 rear left", "3 rear right", "4 front right")


@click.command()
@opening("times")
@click.option(
    "--twist", metavar="NAME", help="Stream of the platform's motion over the ground; default: the INS."
)
@click.option(
    "--average",
    type=click.FloatRange(min=0.0),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds over which speeds are averaged.",
)
@all_option
@json_option
def table_command(opening: Opening, twist: str | None, average: float, as_json: bool) -> int:
    """Print the slip of each wheel of Interact.

    The rim speed of each wheel is compared with its speed over the ground, by the velocity and turn rate of
    the inertial navigation system. A slip of 0.1 means that a tenth of the rolled distance was lost, of -0.1
    that the wheel was dragged. `transect draw slip` draws it.
    """
    from transect.cli.shared.output import ProgressDisplay
    from transect.cli.shared.recordings import report_losses
    from transect.datasets.ameds.robot.locomotion import slip_report

    recording = opening.open(ProgressDisplay(quiet=as_json))
    report = slip_report(opening.cut(recording), twist, average)
    (_show_json if as_json else _show)(recording, report)
    return report_losses(recording)


def _show_json(recording: Recording, report: SlipReport) -> None:
    from transect.cli.shared.output import show_json

    def plain(summary: SlipSummary) -> dict[str, Any]:
        values = summary._asdict().items()
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values}

    worst = [dict(zip(("t_ns", "wheel", "slip"), moment, strict=True)) for moment in report.worst]
    facts = {"name": recording.name, "source": report.source, "average_s": report.average}
    show_json({**facts, "wheels": [plain(row) for row in report.wheels], "worst": worst})


def _show(recording: Recording, report: SlipReport) -> None:
    from transect.base.clocks import NS
    from transect.cli.shared.output import show_table

    show_table(HEADINGS, [_row(summary) for summary in report.wheels], right=frozenset(range(1, 8)))
    click.echo(f"\nover the ground by {report.source}")
    click.echo(f"speeds averaged over {report.average:g} s; angle: 95 % are smaller")
    start = recording.span[0] if recording.span else 0
    for t_ns, wheel, ratio in report.worst:
        click.echo(f"worst at +{(t_ns - start) / NS:.1f}s: {ratio:+.2f}, wheel {WHEELS[wheel]}")


def _row(summary: SlipSummary) -> tuple[str, ...]:
    ratios = (summary.lost, summary.median, summary.low, summary.high)
    return (
        WHEELS[summary.wheel],
        f"{summary.rolled_m:.2f}",
        f"{summary.ground_m:.2f}",
        *("-" if math.isnan(ratio) else f"{ratio:.3f}" for ratio in ratios),
        "-" if math.isnan(summary.angle) else f"{math.degrees(summary.angle):.1f}",
    )


@click.command()
@opening("times")
@picture_option("slip.png")
@dpi_option
@click.option(
    "--twist", metavar="NAME", help="Stream of the platform's motion over the ground; default: the INS."
)
def drawing_command(opening: Opening, out: Path, dpi: int, twist: str | None) -> int:
    """Draw the wheel slip of Interact, and its tracks."""
    from transect.base.clocks import NS
    from transect.datasets.ameds.robot import locomotion
    from transect.datasets.ameds.slip_figure import slip_figure

    def figure_of(whole: Recording) -> Figure:
        recording = opening.cut(whole)
        report = locomotion.slip_report(recording, twist)
        _, tracks = locomotion.wheel_tracks(recording, twist)
        start = whole.span[0] if whole.span else 0
        return slip_figure(
            (report.stream.t_ns - start) / NS,
            report.stream.array("slip_ratio"),
            report.stream.array("slip_angle"),
            tracks.odometry,
            tracks.inverse,
            ("1 front left", "2 rear left", "3 rear right", "4 front right"),
            title=f"{recording.name}: slip of the wheels",
            source="INS" if report.source == " and ".join(locomotion.INS) else report.source,
        )

    return draw_recording(opening, out, dpi, figure_of)
