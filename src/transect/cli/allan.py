"""`transect allan PATH`: the noise of an inertial sensor from its Allan deviation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .shared.options import json_option
from .shared.output import all_option
from .shared.recordings import Opening, opening

if TYPE_CHECKING:
    from transect.evaluation.static import ImuNoiseReport


@click.command()
@opening("times")
@click.option("--stream", metavar="NAME", help="The IMU, if there are several.")
@click.option("--whole", is_flag=True, help="Use all samples, not only the longest standstill.")
@click.option(
    "--kalibr", type=click.Path(path_type=Path), metavar="FILE", help="Write an IMU file for Kalibr."
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the Allan deviations and the fitted lines.",
)
@all_option
@json_option
def command(
    opening: Opening, stream: str | None, whole: bool, kalibr: Path | None, figure: Path | None, as_json: bool
) -> int:
    """Print the noise of an IMU at rest: N, B and K of every axis.

    N is the white noise density, B the bias instability and K the random walk, from the Allan deviation.

    The longest standstill is found first: the axes show uncorrelated noise only, and neither wheels nor GNSS
    fixes indicate motion. A standstill of less than five seconds is an error, which names its length.
    """
    from transect.base.files import write_text
    from transect.evaluation.result import plain
    from transect.evaluation.static import analyse_imu, find_motion, imu_of

    from .shared.output import show_json
    from .shared.recordings import report_losses

    opened = opening.open_unread()
    imu = imu_of(opened, stream)
    recording = opening.check(opened.replace(streams=(imu,), reader_losses=()))
    motions = [] if whole else find_motion(opened, imu.clock)
    found = analyse_imu(opening.cut(recording).streams[0], whole=whole, motions=motions)
    if kalibr is not None:
        write_text(kalibr, found.kalibr())
    if figure is not None:
        from transect.draw.figures import save_figure

        save_figure(found.figure(recording.name), figure, dpi=200)
    if as_json:
        show_json(plain(found.to_dict()))
    else:
        _show(found)
    for path in (kalibr, figure):
        if path is not None:
            click.echo(f"wrote {path}", err=True)
    return report_losses(recording)


def _show(found: ImuNoiseReport) -> None:
    from transect.evaluation.static import unit_of

    from .shared.output import show_table

    rows = [
        (name, *(_number(v) for v in (m.white, m.instability, m.walk, m.tau)), unit_of(name))
        for name, m in ((name, axis.model) for name, axis in found.axes.items())
    ]
    show_table(("axis", "N", "B", "K", "minimum at [s]", "unit"), rows, right=frozenset(range(1, 5)))
    first, last = found.rest
    click.echo(
        f"\n{found.stream}: samples {first} to {last - 1} of {found.samples}, {found.seconds:.1f} s at "
        f"{found.rate:.6g} Hz"
    )
    click.echo("N: unit / sqrt(Hz); B: unit; K: unit * sqrt(Hz); -: not observable in the curve")
    for note in found.notes:
        click.echo(note)


def _number(value: float) -> str:
    return f"{value:.4g}" if value == value else "-"
