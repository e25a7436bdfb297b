"""`transect run 'NAME/*'`: every implementation of a compound on the same recording, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transect.cli.shared.output import show_table
from transect.errors import TransectError, UsageError

if TYPE_CHECKING:
    from transect.engine import Compound


def refuse_options_of_one(out: Path | None, as_json: bool, played_by: str) -> None:
    """Refuse what goes with one run only, and a place that has runs already, but for unfinished ones."""
    from transect.base.files import refuse_existing
    from transect.engine.folder import is_unfinished

    if out is None:
        raise UsageError("several runs need a place", hint="-o DIR gets a folder for each")
    finished = (place for place in (out.iterdir() if out.is_dir() else ()) if not is_unfinished(place))
    if out.is_file() or next(finished, None):
        refuse_existing(out, hint="choose another name with -o")
    if as_json or played_by:
        raise UsageError(
            f"{'--json' if as_json else played_by} is for one run", hint="name one implementation"
        )


def run_each(compounds: Sequence[Compound], out: Path, run: Callable[[Compound, Path], int]) -> int:
    """Run one after the other, each into its folder, and print them in one table; one may fail.

    Those that cannot be fed from the recording are listed with the reason.

    Returns
    -------
    int
        The first exit code that is not 0 of those that ran; 2 if none did.
    """
    codes: list[int] = []
    unfed: list[tuple[str, str]] = []
    is_new = not out.exists()
    for compound in compounds:
        click.echo(click.style(f"> {compound.name}", bold=True))
        try:
            codes.append(run(compound, out / compound.implementation))
        except UsageError as error:
            unfed.append((compound.name, ": ".join(part for part in (error.what, error.why) if part)))
            click.echo(f"not run: {error.what}")
        except TransectError as error:
            click.echo(f"error: {error}", err=True)
            codes.append(error.exit_code)
        click.echo("")
    if codes:
        _show(out)
    elif is_new and out.exists():
        out.rmdir()  # made for runs of which none came
    if unfed:
        show_table(("not run", "why"), unfed, prose=(1,))
    return next((code for code in codes if code), 0 if codes else UsageError.exit_code)


def _show(out: Path) -> None:
    """Print the runs in CDFF's Table 5."""
    from transect.cli.shared.results import show_results
    from transect.evaluation.result import SUFFIX, load_result

    folders = sorted(place for place in out.iterdir() if place.is_dir() and not place.is_symlink())
    results = [load_result(file) for folder in folders for file in sorted(folder.glob(f"*{SUFFIX}"))]
    if results:
        show_results(results, "table", "runs")
        click.echo(f"again: transect compare {out} --layout runs\n")
