"""`transect compare RESULT...`: the errors of several runs in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .shared.options import json_option
from .shared.results import figure_options, format_options

if TYPE_CHECKING:
    from transect.evaluation.result import Result


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RESULT|DIR...")
@click.option(
    "--truth", metavar="FILE", default="",
    help="Evaluate the runs against these poses: a file, or PATH:STREAM.",
)  # fmt: skip
@click.option("--sort", is_flag=True, help="Sort by absolute error, the best first.")
@format_options
@figure_options
@json_option
def command(
    paths: tuple[Path, ...],
    truth: str,
    sort: bool,
    written_as: str,
    layout: str,
    figure: Path | None,
    ground: str | None,
    as_json: bool,
) -> int:
    """Show the results of several runs and evaluations in one table.

    RESULT is a file of `transect eval -o`, DIR a run of `transect run -o`, or a folder of runs or results.

    Stored results are shown without computing them again. With --truth every DIR is a run, or a folder of
    runs, and their poses are compared with FILE.

    Exits with 1 if the poses of a run cannot be compared with FILE (the others are shown).
    """
    from transect.evaluation.result import load_results

    from .shared.results import draw_figures, show_results

    results = _evaluate(paths, truth) if truth else load_results(paths)
    if sort:
        results = sorted(results, key=_error)
    draw_figures(results, figure, ground)
    show_results(results, written_as, layout, as_json=as_json)
    return int(bool(truth) and any(result.failure for result in results))


def _evaluate(paths: tuple[Path, ...], truth: str) -> list[Result]:
    """Return the results of runs, also of those in folders, evaluated against a file of poses."""
    from dataclasses import replace

    from transect.engine import Run
    from transect.errors import UsageError
    from transect.evaluation.result import RUN, distinct_names
    from transect.evaluation.runs.comparison import judge_by

    folders: list[Path] = []
    for path in paths:
        found = sorted(file.parent for file in path.rglob(RUN)) if path.is_dir() else []
        if not found:
            raise UsageError(
                f"{path} is not a run, nor a folder of runs",
                why="--truth evaluates poses, and result files have none",
                hint="transect run NAME PATH -o DIR writes one",
            )
        folders += [folder for folder in found if not folder.is_symlink()]
    results = [
        (result, folder) for folder in folders for result in judge_by(folder, truth, Run.load(folder).name)
    ]
    names = distinct_names([r.estimate for r, _ in results], [str(folder / RUN) for _, folder in results])
    return [replace(r, estimate=name) for (r, _), name in zip(results, names, strict=True)]


def _error(result: Result) -> float:
    ate = result.metrics.get("ate")
    return float("inf") if ate is None else float(ate["translation"]["rmse"])
