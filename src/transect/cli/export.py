"""`transect export PATH --format NAME -o DIR`: a recording, or a part of it, in another format."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from .shared.options import out_option
from .shared.recordings import Opening, opening


@click.command()
@opening("streams", "times")
@click.option(
    "--format",
    "format_name",
    metavar="NAME",
    help="Format to write, such as csv; by default from the suffix of -o.",
)
@out_option
@click.option(
    "--write-option", "write_options", multiple=True, metavar="KEY=VALUE",
    help="Option of the written format, such as chunk=10000; --option is for the one that is read.",
)  # fmt: skip
@click.option(
    "--replay",
    is_flag=True,
    help="With mp4: an animation of the arm, or of the rover on its map, instead of the cameras.",
)
@click.option(
    "--over", metavar="MAP", help="With --replay: background of the rover's map, as for draw track."
)
@click.option(
    "--verdicts",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --replay: colour by the verdicts that transect check -o wrote.",
)
@click.option(
    "--speed", type=click.FloatRange(min=0, min_open=True), metavar="X",
    help="With --replay: times real time; by default the film lasts at most 40 s.",
)  # fmt: skip
def command(
    opening: Opening, format_name: str | None, out: Path, write_options: tuple[str, ...], **choice: Any
) -> int:
    """Write a recording, or a part of it, in a format.

    Data that the format cannot hold are listed, and the exit code is then 3; --streams selects what is
    written. With the recording's own format this cuts it: --from +60s --to +90s.

    \b
    -o out.mcap                    ROS 2 bag, MCAP
    -o out.db3                     ROS 2 bag, SQLite
    -o out --format rosbag         ROS 2 bag, a folder with metadata.yaml (SQLite)
    -o out.bag                     ROS 1 bag
    -o out.mcap --format foxglove  MCAP with Foxglove's schemas
    -o out.mcap --format mcap      MCAP with JSON messages, for tools without ROS
    -o out.tum                     one trajectory
    -o out.mp4 --streams CAMERA    video of one camera; of all: --format video
    -o out.mp4 --replay            animation of the arm, or of the rover on its map
    -o out.gpx                     positions on Earth; also .kml, .geojson
    -o out --format csv            a table for each stream; or parquet
    """  # noqa: D301, the sign is click's
    from transect import formats

    from .shared.options import parse_format_options
    from .shared.output import ProgressDisplay
    from .shared.recordings import report_left_out, report_losses

    format_name = format_name or formats.format_of_suffix(out)
    formats.check_target(out, format_name)
    _refuse_mixed(choice, format_name, opening.paths)
    if choice["replay"]:
        return _write_replay(opening, out, choice)
    progress = ProgressDisplay()
    whole = opening.open(progress)
    part = opening.cut(whole)
    expected = sum(len(s) if s.loader else 1 for s in part.streams)
    with progress.of_files(expected, "writing"):
        left_out = formats.write(part, out, format_name, **parse_format_options(write_options))
    code = report_left_out(left_out)
    click.echo(f"wrote {_find_written(out)}")
    return report_losses(whole) or code


def _refuse_mixed(choice: dict[str, Any], format_name: str, paths: Sequence[str]) -> None:
    """Raise if options of a replay are given without --replay, or --replay with another format than video."""
    from transect.errors import UsageError

    given = [name for name in ("over", "verdicts", "speed") if choice[name] is not None]
    if given and not choice["replay"]:
        raise UsageError(
            f"--{given[0]} is for --replay",
            hint=f"transect export {shlex.join(paths)} --replay -o replay.mp4",
        )
    if choice["replay"] and format_name not in ("mp4", "video"):
        raise UsageError(f"a replay is a film, not {format_name}", hint="-o replay.mp4")


def _write_replay(opening: Opening, out: Path, choice: dict[str, Any]) -> int:
    from transect.integrity.table import VerdictTable
    from transect.view.film import replay

    from .shared.output import ProgressDisplay
    from .shared.recordings import report_losses

    out = out if out.suffix else out.with_suffix(".mp4")
    progress = ProgressDisplay()
    whole = opening.open(progress)
    verdicts = None if choice["verdicts"] is None else VerdictTable.read(choice["verdicts"])
    film = replay(opening.cut(whole), over=choice["over"], verdicts=verdicts, speed=choice["speed"])
    for note in film.notes:
        click.echo(f"note: {note}", err=True)
    film.write(out, progress.over(film.seconds, "drawing", "{:.1f} s".format))
    click.echo(f"wrote {out}: {film.duration:.1f} s, {film.speed:g} times as fast")
    return report_losses(whole)


def _find_written(out: Path) -> Path:
    """Return the path that was written: the format may have added its suffix."""
    return out if out.exists() else next(iter(sorted(out.parent.glob(f"{out.name}.*"))), out)
