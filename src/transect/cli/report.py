"""`transect report PATH|RUN... -o report.html`: recordings and runs, summarised on one page."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .shared.recordings import Opening, opening

if TYPE_CHECKING:
    from transect.products import Product
    from transect.recording import Recording
    from transect.view.report import ReportOptions


@click.command()
@opening(metavar="PATH|RUN...")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True,
    help="The page to write.",
)  # fmt: skip
@click.option("--title", default="", help="Title of the page; default: the names of recordings and runs.")
@click.option("--over", metavar="MAP", help="Background of the map, as for draw track.")
@click.option("--store", metavar="STORE", help="List the products of this store.")
@click.option("--citation", type=click.Path(path_type=Path), help="Citation of the data (YAML).")
@click.option(
    "--verdicts", type=click.Path(path_type=Path), metavar="FILE",
    help="Verdicts that transect check -o wrote, instead of checking again.",
)  # fmt: skip
@click.option(
    "--truth", metavar="FILE", default="",
    help="Evaluate runs against these poses instead of the recording's ground truth: a file, or PATH:STREAM.",
)  # fmt: skip
@click.option("--check/--no-check", default=True, help="Check the sensors; --no-check is faster.")
@click.option(
    "--pictures", type=click.IntRange(0, 40), default=12, show_default=True, metavar="N",
    help="Maximum number of pictures of problems; 0 for a page without pictures.",
)  # fmt: skip
def command(
    opening: Opening,
    out: Path,
    title: str,
    over: str | None,
    store: str | None,
    citation: Path | None,
    verdicts: Path | None,
    truth: str,
    check: bool,
    pictures: int,
) -> int:
    """Write a report on recordings and runs as one HTML page.

    Streams, problems, trajectory, accuracy, provenance and citation. The page is a single file: it opens
    without a network, is readable without JavaScript, and can be printed.

    PATH is a recording, RUN the folder of a run, whose recording is opened too. The trajectories and errors
    of several runs of one recording are drawn together.
    """
    from transect.recording.citation import load_citation
    from transect.view.report import ReportOptions

    from .shared.recordings import report_losses, warn_of_run

    warn_of_run(*opening.paths)
    recordings = write_report(
        opening, out, ReportOptions(check, pictures, verdicts, use_cache=True), title=title,
        command=_command_line(),
        over=over, store=store or "", truth=truth,
        citation=None if citation is None else load_citation(citation),
    )  # fmt: skip
    click.echo(f"wrote {out}")
    return max((report_losses(recording) for recording in recordings), default=0)


def write_report(
    opening: Opening, out: Path, wanted: ReportOptions, store: str = "", **choice: Any
) -> list[Recording]:
    """Write the page of recordings and runs; return the recordings that were opened."""
    from transect.base.files import write_text
    from transect.products import open_store
    from transect.view.report import gather, write_page

    from .shared.output import ProgressDisplay

    def open_recording(paths: Sequence[str], read_as: str, options: Mapping[str, Any]) -> Recording:
        own = tuple(f"{key}={value}" for key, value in options.items())
        chosen = dataclasses.replace(
            opening, paths=tuple(paths), read_as=read_as or opening.read_as, options=own or opening.options
        )
        return chosen.open(ProgressDisplay())

    products: list[Product] = []
    if store:
        with open_store(store, create=False) as opened:
            products = opened.find()
    report, recordings = gather(
        opening.paths, open_recording, wanted, products=products, store=store, **choice
    )
    write_text(out, write_page(report))
    return recordings


def _command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["transect", *sys.argv[1:]])
