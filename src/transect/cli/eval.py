"""`transect eval REF EST...`: how good trajectories are, and height maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ._eval_options import figure_options, format_options, how_option
from ._options import json_option, strict_option

if TYPE_CHECKING:
    from ._eval_inputs import Judged


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="REF EST...")
@how_option
@format_options
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), metavar="FILE.result|DIR",
    help="Write a result file, or one for each estimate into a folder.",
)  # fmt: skip
@figure_options
@click.option(
    "--shift", metavar="X,Y,Z",
    help="Of maps: where the origin of EST's frame is in REF's, in metres; then it fits within ten cells.",
)  # fmt: skip
@strict_option
@json_option
def command(
    paths: tuple[str, ...],
    align: str,
    relations: tuple[str, ...],
    per: str,
    step: float,
    pairs: str,
    max_diff: float | None,
    least: float,
    offset: str,
    relations_file: Path | None,
    written_as: str,
    layout: str,
    out: Path | None,
    figure: Path | None,
    ground: str | None,
    shift: str | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Compare trajectories, or height maps, with a reference.

    REF and EST are files of poses (TUM, KITTI, EuRoC), recordings, PATH:STREAM, or folders of runs. Of
    several EST each is a row. With `--relation relations --relations FILE` there is no REF: the file is the
    truth. If REF is a map (.tif, PATH:STREAM), so is EST: what is taken out of it is a shift, and nothing
    with `--align none`.

    Exits with 1 if an estimate cannot be compared (the others are shown), 3 if data was lost on reading.
    """
    from ._eval_inputs import asked_from, command_line, judged, judged_by_relations
    from ._eval_maps import is_map, judged_maps
    from ._eval_report import refuse_places, show, write

    asked = asked_from(
        align=align, relations=relations, per=per, step=step, pairs=pairs, max_diff=max_diff, least=least,
        offset=offset, relations_file=relations_file,
    )  # fmt: skip
    refuse_places(out, len(paths) - (not judged_by_relations(asked)))
    if is_map(paths[0]):
        found = judged_maps(paths, align, shift, command_line("eval"), strict)
    else:
        found = judged(paths, asked, command_line("eval"), strict)
    for path in write(found.results, out, figure, ground):
        click.echo(f"wrote {path}", err=True)
    show(found.results, written_as, layout, as_json)
    return _exit(found)


def _exit(found: Judged) -> int:
    """Say what went wrong on stderr; return the exit code."""
    from . import LOSSY

    for name, error in found.errors.items():
        click.echo(f"error: {name}: {error}", err=True)
    for path, losses in found.losses.items():
        count = sum(loss.count for loss in losses) or "some"
        click.echo(f"warning: {count} lines of {path} could not be read: {losses[0].where}", err=True)
    if found.errors:
        return next(iter(found.errors.values())).exit_code
    return LOSSY if found.losses else 0
