"""`transect allan PATH`: the noise of an inertial sensor."""

from __future__ import annotations

from pathlib import Path

import click

from ._options import from_option, json_option, opening, to_option


@click.command()
@opening
@click.option("--stream", metavar="NAME", help="The IMU, where there are several.")
@from_option
@to_option
@click.option("--whole", is_flag=True, help="Take all samples, not the longest rest among them.")
@click.option(
    "--kalibr", type=click.Path(path_type=Path), metavar="FILE", help="Write an IMU file for Kalibr."
)
@click.option(
    "--figure", type=click.Path(path_type=Path), metavar="FILE", help="Draw the curves and the fits."
)
@json_option
def command(
    paths: tuple[str, ...],
    strict: bool,
    read_as: str | None,
    options: tuple[str, ...],
    stream: str | None,
    start: str | None,
    end: str | None,
    whole: bool,
    kalibr: Path | None,
    figure: Path | None,
    as_json: bool,
) -> int:
    """Print N, B and K of every axis of an IMU at rest, from its Allan deviation.

    The longest stretch in which the sensor stays within its noise is found first.
    """
    from transect import formats

    from ._eval_allan import analysed, draw, imu_of, show, write_kalibr
    from ._recordings import cut, exit_for, parsed_options

    opened = formats.open(*paths, format=read_as, **parsed_options(options))
    recording = opened.replace(streams=(imu_of(opened, stream),), reader_losses=())
    if strict and recording.losses:
        raise recording.losses[0].error()
    found = analysed(cut(recording, (), start, end).streams[0], whole)
    if kalibr is not None:
        write_kalibr(found, kalibr)
    if figure is not None:
        draw(found, figure, recording.name)
    show(found, as_json)
    for path in (kalibr, figure):
        if path is not None:
            click.echo(f"wrote {path}", err=True)
    return exit_for(recording)
