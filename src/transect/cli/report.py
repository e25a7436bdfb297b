"""`transect report PATH|RUN... -o report.html`: the whole story of recordings and runs, as one page."""

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
    from transect.view.report import Wanted


@click.command()
@opening(metavar="PATH|RUN...")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True,
    help="The page to write.",
)  # fmt: skip
@click.option("--title", default="", help="Above the page; default: the names of what it is about.")
@click.option("--over", metavar="MAP", help="What lies below the map: as for draw track.")
@click.option("--store", metavar="STORE", help="List what this store of products holds.")
@click.option("--citation", type=click.Path(path_type=Path), help="How to cite the data (YAML).")
@click.option(
    "--verdicts", type=click.Path(path_type=Path), metavar="FILE",
    help="What transect check -o wrote of the recording, instead of checking again.",
)  # fmt: skip
@click.option(
    "--truth", metavar="FILE", default="",
    help="Judge runs by these poses instead of their recordings' own truth: a file, or PATH:STREAM.",
)  # fmt: skip
@click.option("--check/--no-check", default=True, help="Judge the sensors; --no-check is quicker.")
@click.option(
    "--pictures", type=click.IntRange(0, 40), default=12, show_default=True, metavar="N",
    help="Pictures of bad moments at most; 0 for a page without any picture.",
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
    """Write one page that tells the whole story of a recording.

    What was there, what broke, where the robot went, how well that is known, and how to cite it. The page is
    one file: it opens without a network, can be read without JavaScript, and prints.

    PATH is a recording, RUN the folder of a run, whose recording is opened too. Of several runs of one
    recording the paths and errors are drawn together.
    """
    from transect.recording.citation import load_citation
    from transect.view.report import Wanted

    from .shared.recordings import report_losses, warn_of_run

    warn_of_run(*opening.paths)
    recordings = write_report(
        opening, out, Wanted(check, pictures, verdicts, kept=True), title=title, command=_tell_command(),
        over=over, store=store or "", truth=truth,
        citation=None if citation is None else load_citation(citation),
    )  # fmt: skip
    click.echo(f"wrote {out}")
    return max((report_losses(recording) for recording in recordings), default=0)


def write_report(
    opening: Opening, out: Path, wanted: Wanted, store: str = "", **choice: Any
) -> list[Recording]:
    """Write the page of recordings and runs; return the recordings that were opened."""
    from transect.base.files import write_text
    from transect.products import open_store
    from transect.view.report import gather, write_page

    from .shared.output import Progress

    def open_recording(paths: Sequence[str], read_as: str, options: Mapping[str, Any]) -> Recording:
        own = tuple(f"{key}={value}" for key, value in options.items())
        chosen = dataclasses.replace(
            opening, paths=tuple(paths), read_as=read_as or opening.read_as, options=own or opening.options
        )
        return chosen.open(Progress())

    products: list[Product] = []
    if store:
        with open_store(store, create=False) as opened:
            products = opened.find()
    report, recordings = gather(
        opening.paths, open_recording, wanted, products=products, store=store, **choice
    )
    write_text(out, write_page(report))
    return recordings


def _tell_command() -> str:
    """Return the command as it was typed."""
    return shlex.join(["transect", *sys.argv[1:]])
