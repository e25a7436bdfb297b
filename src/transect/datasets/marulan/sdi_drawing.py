"""`transect draw sdi PATH...`: Figures 24 to 38 of SDI, and its statements with measured numbers."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transect.cli.shared.options import json_option
from transect.cli.shared.recordings import Opening, opening

if TYPE_CHECKING:
    from .statements import StatementResult


@click.command()
@opening("streams", "times")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="A new folder for the figures (PNG).")
@click.option(
    "--at", "times", multiple=True, metavar="TIME",
    help="Time to draw, for all PATHs or for each; default: the worst moment, or the start in clear air.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=0.05), default=5.0, show_default=True, metavar="S",
    help="Length of the drawn excerpt.",
)  # fmt: skip
@click.option(
    "--sector", type=click.FloatRange(1, 180), default=45.0, show_default=True, metavar="DEG",
    help="Largest bearing.",
)  # fmt: skip
@click.option("--reach", type=click.FloatRange(min=0.1), metavar="M", help="Largest range.")
@click.option(
    "--row", type=click.FloatRange(0, 1),
    help="Image row, as a ratio of the height; default: where the laser meets the scene.",
)  # fmt: skip
@click.option("--dpi", type=click.IntRange(50, 600), default=110, show_default=True, help="Pixels per inch.")
@click.option(
    "--colours",
    type=click.IntRange(2, 256),
    help="Number of colours of the PNG files: fewer give smaller files.",
)
@json_option
def command(
    opening: Opening,
    out: Path | None,
    times: tuple[str, ...],
    seconds: float,
    sector: float,
    reach: float | None,
    row: float | None,
    dpi: int,
    colours: int | None,
    as_json: bool,
) -> int:
    """Draw the effect of dust, smoke and rain on sensors.

    The figures correspond to Figures 24 to 38 of SDI, for any recording with such sensors: range over angle
    as dots and as lines, and R, G, B of one image row. Several PATHs, such as clear, dust, smoke and rain,
    are drawn side by side with common axes. Without -o nothing is drawn.

    The statements of sections 5.1 and 5.2 of SDI follow, tested with measured numbers.
    """
    from transect.cli.shared.options import new_folder
    from transect.cli.shared.output import ProgressDisplay, show_json
    from transect.cli.shared.recordings import report_losses
    from transect.draw.figures import save_figure
    from transect.integrity import check

    from .excerpts import choose_excerpts
    from .figures import FigureLimits, draw_excerpts
    from .statements import judge_statements

    folder = new_folder(out) if out is not None else None
    progress = ProgressDisplay(quiet=as_json)
    recordings = [each.cut(each.open(progress)) for each in opening.each()]
    judged = [(r, check(r)) for r in progress.over(recordings, "checking", lambda r: r.name)]
    drawn: list[tuple[str, str]] = []
    if folder is not None:
        excerpts = choose_excerpts(judged, times, seconds)
        for each in draw_excerpts(excerpts, FigureLimits(math.radians(sector), reach, row)):
            save_figure(each.figure, folder / f"{each.name}.png", dpi, colours)
            drawn.append((f"{each.name}.png", each.caption))
    results = judge_statements(judged)
    if as_json:
        figures = [{"file": str(name), "caption": caption} for name, caption in drawn]
        show_json({"figures": figures, "statements": [result.to_dict() for result in results]})
    else:
        _show_figures(folder, drawn)
        _show_results(results)
    return max(report_losses(recording) for recording in recordings)


def _show_figures(folder: Path | None, drawn: Sequence[tuple[str, str]]) -> None:
    for name, caption in drawn:
        click.echo(f"wrote {folder}/{name}")
        _echo_wrapped(caption, "    ")
    if drawn:
        click.echo()


def _show_results(results: Sequence[StatementResult]) -> None:
    for result in results:
        _echo_wrapped(result.sentence(), "")
        _echo_wrapped(f'{result.statement.section}: "{result.statement.quote}"', "    ")
    counts = [sum(result.holds is each for result in results) for each in (True, False, None)]
    summary = zip(counts, ("hold", "do not hold", "could not be measured"), strict=True)
    click.echo("; ".join(f"{count} {words}" for count, words in summary if count))


def _echo_wrapped(text: str, indent: str, width: int = 80) -> None:
    for line in textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=f"{indent}  "):
        click.echo(line)
