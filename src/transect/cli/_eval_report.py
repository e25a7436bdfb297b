"""What `eval` and `compare` print, write and draw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transect.errors import UsageError

if TYPE_CHECKING:
    from transect.evaluation.result import Result

SUFFIX = ".result"


def refuse_places(out: Path | None, estimates: int) -> None:
    """Refuse one file for several results, before any work is done."""
    if out is None:
        return
    if out.suffix == SUFFIX and estimates > 1:
        raise UsageError(f"{out} cannot hold {estimates} results", hint="-o DIR writes one for each estimate")
    if out.suffix != SUFFIX and out.is_file():
        raise UsageError(f"{out} is a file", hint=f"-o FILE{SUFFIX}, or a folder")


def write(results: Sequence[Result], out: Path | None, figure: Path | None, ground: str | None) -> list[Path]:
    """Write result files and figures; return their paths."""
    from ._eval_figures import draw, file_name

    if ground is not None and figure is None:
        raise UsageError("--map is for figures", hint="--figure DIR")
    written: list[Path] = []
    if out is not None:
        for result in results:
            path = out if out.suffix == SUFFIX else out / f"{file_name(result.estimate)}{SUFFIX}"
            result.save(path)
            written.append(path)
    if figure is not None:
        written += draw(results, figure, ground)
    return written


def show(results: Sequence[Result], written_as: str, layout: str, as_json: bool) -> None:
    """Print results: a JSON document, a table for a paper, or a table and what to know of it."""
    from transect.evaluation.tables import table_of, text_of

    from ._tables import show_json, show_table

    if as_json:
        show_json({"results": [result.to_dict() for result in results]})
        return
    table = table_of(results, layout)  # pyright: ignore[reportArgumentType]
    if written_as != "table":
        click.echo(text_of(table, written_as), nl=False)  # pyright: ignore[reportArgumentType]
        return
    show_table(table.headings, table.texts(), right=frozenset(range(table.names, len(table.headings))))
    for line in _remarks(results):
        click.echo(line)


def _remarks(results: Sequence[Result]) -> list[str]:
    """Return what holds for all rows, then what holds for one, each once."""
    lines = [""]
    for text in dict.fromkeys(_conditions(result) for result in results if not result.failure):
        lines.append(text)
    shared = [note for note in results[0].notes if all(note in result.notes for result in results)]
    lines += shared
    before = len(results) > 1
    for result in results:
        own = [note for note in result.notes if note not in shared]
        own += [f"failed: {result.failure}"] if result.failure else []
        lines += [f"{result.estimate}: {note}" if before else note for note in own]
    return lines


def _conditions(result: Result) -> str:
    truth, pairs = result.truth, result.pairs
    said = [f"reference {result.reference}"]
    if truth:
        said[0] += f": {truth['poses']} poses, {truth['length_m']:.1f} m"
    mode = result.alignment["mode"]
    scale = f" (scale {result.alignment['scale']:.6g})" if mode == "sim3" else ""
    said.append(f"alignment {mode}{scale}")
    limit = f" within {pairs['max_diff_s']:g} s" if pairs["by"] != "rows" and "max_diff_s" in pairs else ""
    said.append(f"pairs by {pairs['by']}{limit}")
    if offset := pairs["offset_s"]:
        said.append(f"offset {offset:+g} s")
    if rpe := result.metrics.get("rpe"):
        said.append(f"RPE per {rpe['step']:g} {rpe['per']}")
    return "; ".join(said)
