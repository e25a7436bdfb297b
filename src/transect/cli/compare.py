"""`transect compare RESULT...`: which of my runs was best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ._options import json_option
from ._results import figure_options, format_options

if TYPE_CHECKING:
    from transect.evaluation.result import Result


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RESULT|DIR...")
@click.option("--sort", is_flag=True, help="The best absolute error first.")
@format_options
@figure_options
@json_option
def command(
    paths: tuple[Path, ...],
    sort: bool,
    written_as: str,
    layout: str,
    figure: Path | None,
    ground: str | None,
    as_json: bool,
) -> int:
    """Show the results of several runs and evaluations in one table.

    They are folders of `transect run -o` and files of `transect eval -o`.

    DIR is a folder of results, or of a run. Files are read again; nothing is computed.
    """
    from transect.evaluation.result import load_results

    from ._results import draw_figures, show_results

    results = load_results(paths)
    if sort:
        results = sorted(results, key=_error)
    draw_figures(results, figure, ground)
    show_results(results, written_as, layout, as_json=as_json)
    return 0


def _error(result: Result) -> float:
    ate = result.metrics.get("ate")
    return float("inf") if ate is None else float(ate["translation"]["rmse"])
