"""`transect draw sdi PATH...`: Figures 24 to 38 of document 004, and what they show as numbers."""

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
    from .statements import Outcome

WIDTH = 80


@click.command()
@opening("streams", "times")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="A new folder for the figures (PNG).")
@click.option(
    "--at", "times", multiple=True, metavar="TIME",
    help="When, once for all or once for each PATH; default: the worst moment, or the start if all is clear.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=0.05), default=5.0, show_default=True, metavar="S",
    help="How long a while around it is drawn.",
)  # fmt: skip
@click.option(
    "--sector", type=click.FloatRange(1, 180), default=45.0, show_default=True, metavar="DEG",
    help="Bearings up to this.",
)  # fmt: skip
@click.option("--reach", type=click.FloatRange(min=0.1), metavar="M", help="Ranges up to this.")
@click.option(
    "--row", type=click.FloatRange(0, 1),
    help="Which line of images, as a share of their height; default: where the laser meets the scene.",
)  # fmt: skip
@click.option(
    "--dpi", type=click.IntRange(50, 600), default=110, show_default=True, help="Pixels to an inch."
)
@click.option("--colours", type=click.IntRange(2, 256), help="PNGs of so many colours only: smaller files.")
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
    """Draw what dust, smoke and rain do to lasers, radar and cameras.

    These are Figures 24 to 38 of document 004, of any recording with such sensors: range over angle in dots
    and in lines, and R, G, B of one line of the images. Several PATHs, such as clear, dust, smoke and rain,
    stand side by side on common axes. Without -o nothing is drawn.

    Then the document's statements of sections 5.1 and 5.2 follow, as assertions about measured numbers.
    """
    from transect.cli.shared.options import new_folder
    from transect.cli.shared.output import Progress, show_json
    from transect.cli.shared.recordings import report_losses
    from transect.draw.figures import save_figure
    from transect.integrity import check

    from .figures import Frame, draw_shots
    from .shots import choose_shots
    from .statements import judge_statements

    folder = new_folder(out) if out is not None else None
    progress = Progress(quiet=as_json)
    recordings = [each.cut(each.open(progress)) for each in opening.each()]
    judged = [(r, check(r)) for r in progress.over(recordings, "checking", lambda r: r.name)]
    drawn: list[tuple[str, str]] = []
    if folder is not None:
        shots = choose_shots(judged, times, seconds)
        for each in draw_shots(shots, Frame(math.radians(sector), reach, row)):
            save_figure(each.figure, folder / f"{each.name}.png", dpi, colours)
            drawn.append((f"{each.name}.png", each.caption))
    outcomes = judge_statements(judged)
    if as_json:
        figures = [{"file": str(name), "caption": caption} for name, caption in drawn]
        show_json({"figures": figures, "statements": [outcome.to_dict() for outcome in outcomes]})
    else:
        _show_figures(folder, drawn)
        _show_outcomes(outcomes)
    return max(report_losses(recording) for recording in recordings)


def _show_figures(folder: Path | None, drawn: Sequence[tuple[str, str]]) -> None:
    for name, caption in drawn:
        click.echo(f"wrote {folder}/{name}")
        _say(caption, "    ")
    if drawn:
        click.echo()


def _show_outcomes(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        _say(outcome.sentence(), "")
        _say(f'{outcome.statement.section}: "{outcome.statement.quote}"', "    ")
    counts = [sum(outcome.holds is each for outcome in outcomes) for each in (True, False, None)]
    said = zip(counts, ("hold", "do not hold", "could not be measured"), strict=True)
    click.echo("; ".join(f"{count} {words}" for count, words in said if count))


def _say(text: str, indent: str) -> None:
    for line in textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  "):
        click.echo(line)
