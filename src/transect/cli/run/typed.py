"""What was typed after `transect run COMPOUND PATH`, and what it means."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from .running import TYPED, Manner

if TYPE_CHECKING:
    from transect.cli.shared.recordings import Opening
    from transect.engine import Options, Run
    from transect.engine.trust import VerdictSource


@dataclass(frozen=True)
class Typed:
    """What was typed besides the compound and the recording: the options of the command, by their names."""

    out: Path | None
    settings: tuple[str, ...]
    wires: tuple[str, ...]
    clock: Literal["auto", "sample", "log"]
    reorder: float
    offsets: tuple[str, ...]
    rate: float | None
    golden: Path | None
    checks: bool
    verdicts: Path | None
    config: Path | None
    kept_map: Path | None
    extend: bool
    store: str | None
    mission: str
    jobs: int
    step: bool
    view: bool
    browser: bool
    stats: bool
    as_json: bool

    @property
    def played_by(self) -> str:
        """The option by which a person plays the run; empty if it plays by itself."""
        return "--step" if self.step else "--view" if self.view else ""


def refuse_incomplete(typed: Typed) -> None:
    """Raise if an option is there without the one that it needs."""
    if typed.store is not None and typed.out is None:
        raise click.UsageError("--store keeps a run that is written: add -o DIR")
    if typed.extend and typed.kept_map is None:
        raise click.UsageError("--extend goes on with a map: add --map MAP")


def refuse_conflicts(typed: Typed, every: bool) -> None:
    """Raise if options do not go together, or if the folder of the results is there already."""
    from transect.cli.shared.options import new_folder

    from .implementations import refuse_options_of_one
    from .terminal import refuse_company

    if typed.played_by:
        refuse_company(typed.played_by, typed.jobs, typed.as_json)
    if every:
        refuse_options_of_one(typed.out, typed.as_json, typed.played_by)
    elif typed.out is not None:
        new_folder(typed.out)


def read_options(typed: Typed, opening: Opening) -> Options:
    """Return what decides the result, from what was typed."""
    from transect.cli.shared.compounds import parse_settings
    from transect.cli.shared.options import parse_pairs
    from transect.engine import Options
    from transect.engine.offsets import parse_offsets

    return Options(
        parse_settings(typed.settings), parse_pairs(typed.wires, "--wire", "left=Cam0"), typed.clock,
        typed.reorder, parse_offsets(typed.offsets), opening.start, opening.end,
    )  # fmt: skip


def choose_manner(typed: Typed, strict: bool, draw: Callable[[Path], object]) -> Manner:
    """Return how the run is played, shown and judged, from what was typed."""
    from transect.cli.shared.output import Progress
    from transect.engine import Run
    from transect.engine.validity import read_kept_map

    return Manner(
        rate=typed.rate,
        jobs=typed.jobs,
        step=typed.step,
        show=_find_shower(typed.browser) if typed.view else None,
        strict=strict,
        stats=typed.stats,
        as_json=typed.as_json,
        golden=Run.load(typed.golden) if typed.golden else None,
        progress=Progress(quiet=typed.as_json),
        draw=draw,
        verdicts=_find_verdicts(typed.checks, typed.config, typed.verdicts),
        map=read_kept_map(typed.kept_map, typed.extend) if typed.kept_map else None,
        keep=_find_keeper(typed.store, typed.mission),
    )


def _find_keeper(store: str | None, mission: str) -> Callable[[Run], object]:
    """Return what is done with a complete run: its outputs become products."""
    if store is None:
        return lambda run: None
    from transect.cli.products import show_products
    from transect.products import open_store
    from transect.products.keeping import keep_run

    words = shlex.join(["transect", "run", *click.get_current_context().meta.get(TYPED, ())])

    def keep(run: Run) -> None:
        assert run.folder is not None
        with open_store(store) as opened:
            kept = [opened.get(identifier) for identifier in keep_run(opened, run.folder, mission, words)]
        click.echo(f"kept in {store}:", err=True)
        with redirect_stdout(sys.stderr):
            show_products(kept)

    return keep


def _find_shower(browser: bool) -> Callable[[str], object]:
    """Return what is done with the address of a page."""

    def show(address: str) -> None:
        import webbrowser

        click.echo(f"to be played at {address}")
        click.echo("Closing the page, or Ctrl-C, ends it.")
        if browser:
            webbrowser.open(address)

    return show


def _find_verdicts(checks: bool, config: Path | None, verdicts: Path | None) -> VerdictSource | None:
    """Return what makes the verdicts that a run acts on; None if it is to trust everything."""
    if not (checks or config or verdicts):
        return None
    from transect.integrity.verdict_sources import choose_source

    return choose_source(config or checks, verdicts)
