"""`transect compare RESULT...`: which of my runs was best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ._eval_options import figure_options, format_options
from ._options import json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """Show results of `transect eval -o` in one table.

    DIR is a folder of results, or of a run that results were written to. Files are read again; nothing is
    computed.
    """
    from transect.evaluation.result import load_result

    from ._eval_report import show, write

    files = [file for path in paths for file in _files(path)]
    results = _told_apart([load_result(file) for file in files], files)
    if sort:
        results = sorted(results, key=_error)
    for path in write(results, None, figure, ground):
        click.echo(f"wrote {path}", err=True)
    show(results, written_as, layout, as_json)
    return 0


def _files(path: Path) -> list[Path]:
    from transect.errors import UsageError

    from ._eval_report import SUFFIX

    if path.is_file():
        return [path]
    inside = path.rglob(f"*{SUFFIX}") if path.is_dir() else ()
    found = sorted(file for file in inside if not file.parent.is_symlink())  # `latest` is one of the others
    if not found:
        what = f"{path} has no results" if path.is_dir() else f"there is no {path}"
        raise UsageError(what, hint=f"transect eval REF EST -o {path if path.is_dir() else 'DIR'}")
    return found


def _told_apart(results: Sequence[Result], files: Sequence[Path]) -> list[Result]:
    """Return results of which no two have the same reference and estimate."""
    from dataclasses import replace

    from ._eval_open import distinct_names

    named = list(results)
    for reference in dict.fromkeys(r.reference for r in results):
        mine = [k for k, r in enumerate(results) if r.reference == reference]
        names = distinct_names([results[k].estimate for k in mine], [str(files[k]) for k in mine])
        for k, name in zip(mine, names, strict=True):
            named[k] = replace(results[k], estimate=name)
    return named


def _error(result: Result) -> float:
    ate = result.metrics.get("ate")
    return float("inf") if ate is None else float(ate["translation"]["rmse"])
