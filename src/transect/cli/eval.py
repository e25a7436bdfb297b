"""`transect eval REF EST...`: errors of trajectories and height maps against a reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .shared.options import add_options, json_option
from .shared.recordings import Opening, opening
from .shared.results import figure_options, format_options

if TYPE_CHECKING:
    from transect.evaluation.comparisons import TrajectoryComparisons
    from transect.evaluation.inputs import Reader
    from transect.evaluation.report import EvaluationSettings

how_options = add_options(
    click.option(
        "--align", type=click.Choice(["none", "origin", "line", "yaw", "se3", "sim3"]), default="se3",
        show_default=True, help="Transformation that is fitted before errors are computed.",
    ),
    click.option(
        "--relation", "relations", multiple=True,
        type=click.Choice(["ate", "rpe", "segments", "relations", "drift", "nees", "all"]),
        help="Metric; may be repeated. By default ate, and rpe where possible.",
    ),
    click.option(
        "--by", "per", type=click.Choice(["frames", "seconds", "metres"]), default="frames",
        show_default=True, help="Unit of --step.",
    ),
    click.option(
        "--step", type=click.FloatRange(0, min_open=True), default=1.0, show_default=True, metavar="X",
        help="Interval between the two poses of a relative error.",
    ),
    click.option(
        "--pairs", type=click.Choice(["auto", "nearest", "interpolate", "rows"]), default="auto",
        show_default=True, help="How poses are associated; auto: nearest in time, or with the interpolated "
        "reference where these are too far apart.",
    ),
    click.option(
        "--max-diff", type=click.FloatRange(0), metavar="S",
        help="Largest time difference of associated poses, s. Default: 0.01; 1.5 periods of the reference if "
        "it is interpolated; 0.5 for --relations.",
    ),
    click.option(
        "--least", type=click.FloatRange(0, 1), default=0.5, show_default=True, metavar="X",
        help="Smallest fraction of poses that must be associated.",
    ),
    click.option(
        "--offset", default="0", metavar="S|auto",
        help="Time offset added to the estimate; auto estimates it from the motion.",
    ),
    click.option(
        "--relations", "relations_file", type=click.Path(path_type=Path), metavar="FILE",
        help="File of true relative poses: t_i t_j x y z roll pitch yaw.",
    ),
)  # fmt: skip


span_options = add_options(
    click.option(
        "--reference-from", "start", metavar="TIME",
        help="Start of the evaluated part: +60s, 12:04:31.2, ISO, or clock seconds.",
    ),
    click.option("--reference-to", "end", metavar="TIME", help="End of the evaluated part, not included."),
)  # fmt: skip


@click.command()
@opening(metavar="REF EST...")
@how_options
@span_options
@format_options
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), metavar="FILE.result|DIR",
    help="Write a result file, or one for each estimate into a folder.",
)  # fmt: skip
@figure_options
@click.option("--shift", metavar="X,Y,Z", help="For maps: initial offset of EST's frame in REF's, metres.")
@click.option(
    "--reach", type=click.FloatRange(0, min_open=True), metavar="M",
    help="For maps: search radius around the initial offset; by default ten cells of REF.",
)  # fmt: skip
@json_option
def command(
    opening: Opening,
    align: str,
    relations: tuple[str, ...],
    per: str,
    step: float,
    pairs: str,
    max_diff: float | None,
    least: float,
    offset: str,
    relations_file: Path | None,
    start: str | None,
    end: str | None,
    written_as: str,
    layout: str,
    out: Path | None,
    figure: Path | None,
    ground: str | None,
    shift: str | None,
    reach: float | None,
    as_json: bool,
) -> int:
    """Compare trajectories, or height maps, with a reference.

    REF and EST are files of poses (TUM, KITTI, EuRoC), recordings, PATH:STREAM, folders of runs, or RUN:PORT.
    Each EST is a row of the table. With `--relation relations --relations FILE` there is no REF: the file is
    the ground truth. If REF is a map (.tif, PATH:STREAM, RUN:PORT), so is EST; a shift is fitted as by
    `transect maps align`, or none with `--align none`. An `--option` applies to the recordings whose format
    has it.

    Exits with 1 if an estimate cannot be evaluated (the others are shown), 3 if data was lost on reading.
    """
    from transect.evaluation.comparisons import is_judged_by_relations, judge_maps, judge_trajectories
    from transect.evaluation.inputs import Reader
    from transect.evaluation.result import refuse_one_file_for_many, save_results

    from .shared.options import parse_format_options
    from .shared.results import draw_figures, show_results

    paths = opening.paths
    asked = _read_asked(
        align=align, relations=relations, per=per, step=step, pairs=pairs, max_diff=max_diff, least=least,
        offset=offset, relations_file=relations_file,
    )  # fmt: skip
    if out is not None:
        refuse_one_file_for_many(out, len(paths) - (not is_judged_by_relations(asked)))
    reader = Reader(opening.read_as, parse_format_options(opening.options))
    how: dict[str, Any] = {"command": _command_line(), "strict": opening.strict, "reader": reader}
    if _is_map(paths[0], reader):
        found = judge_maps(paths, register=align != "none", shift=_metres(shift), reach=reach, **how)
    else:
        found = judge_trajectories(paths, asked, span=(start, end), **how)
    for path in save_results(found.results, out) if out is not None else ():
        click.echo(f"wrote {path}", err=True)
    draw_figures(found.results, figure, ground)
    show_results(found.results, written_as, layout, as_json=as_json)
    return _exit(found)


def _read_asked(
    *, relations: tuple[str, ...], offset: str, pairs: str, relations_file: Path | None, **how: Any
) -> EvaluationSettings:
    """Return the evaluation settings from the options."""
    from transect.evaluation.report import ALL, DEFAULT_RELATIONS, EvaluationSettings

    named = bool(relations) and "all" not in relations
    chosen = tuple(r for r in ALL if r in relations) if named else ALL if relations else DEFAULT_RELATIONS
    asked = EvaluationSettings(relations=chosen, named=named, by=pairs, offset=_seconds(offset), **how)  # pyright: ignore[reportArgumentType]
    return asked if relations_file is None else asked.with_relations(relations_file, alone=not relations)


def _seconds(text: str) -> Any:
    from transect.errors import UsageError

    if text.strip().lower() == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            f"--offset {text} is neither seconds nor auto", hint="--offset 0.25 or auto"
        ) from None


def _metres(text: str | None) -> tuple[float, ...]:
    from transect.errors import UsageError

    try:
        parts = tuple(float(part) for part in (text or "0,0,0").split(","))
    except ValueError:
        parts = ()
    if len(parts) != 3:
        raise UsageError(f"--shift {text} is not three lengths", hint="--shift 500012.5,4178800,1920")
    return parts


def _is_map(source: str, reader: Reader) -> bool:
    """Return whether the reference is a map, if possible by its name alone, without importing maps."""
    from transect.evaluation.result import RUN

    named = ":" in source or Path(source).suffix.lower() in (".tif", ".tiff")
    if not named and not (Path(source) / RUN).is_file():
        return False
    from transect.evaluation.map_reports import is_map

    return is_map(source, reader)


def _command_line() -> str:
    """Return the command line, for the provenance."""
    import shlex
    import sys

    arguments = sys.argv[1:] if "eval" in sys.argv[1:] else ["eval"]
    return shlex.join(["transect", *arguments])


def _exit(found: TrajectoryComparisons) -> int:
    """Print errors on stderr; return the exit code."""
    from . import ExitCode

    for name, error in found.errors.items():
        click.echo(f"error: {name}: {error}", err=True)
    for path, losses in found.losses.items():
        count = sum(loss.count for loss in losses) or "some"
        click.echo(f"warning: {count} lines of {path} could not be read: {losses[0].where}", err=True)
    if found.errors:
        return next(iter(found.errors.values())).exit_code
    return ExitCode.DATA_LOST if found.losses else 0
