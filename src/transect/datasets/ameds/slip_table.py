"""`transect table slip PATH`: how much each wheel of Interact slipped."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option
from transect.cli.shared.recordings import Opening, opening

if TYPE_CHECKING:
    from transect.recording import Recording
    from transect.robots.four_wheel_steering.slip import SlipSummary

    from .robot.driven import SlipReport

HEADINGS = ("wheel", "rolled [m]", "went [m]", "lost", "median", "5 %", "95 %", "angle [deg]")
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
def command(opening: Opening, twist: str | None, average: float, as_json: bool) -> int:
    """Print how much each wheel of Interact slipped.

    The speed of each rim is compared with the speed of that wheel over the ground, which follows from the
    velocity and turn rate of the inertial navigation system. A slip of 0.1 means that a tenth of what the
    wheel rolled was lost, of -0.1 that it was dragged. `transect draw slip` draws it.
    """
    from transect.cli.shared.output import Progress
    from transect.cli.shared.recordings import report_losses

    from .robot.driven import slip_report

    recording = opening.open(Progress(quiet=as_json))
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
