"""`transect run COMPOUND PATH... -o DIR`: one execution of a compound on a recording."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option
from transect.cli.shared.recordings import Opening, opening

from .execution import COMMAND_WORDS, Playback, refuse_options_of_one, run_each, run_one

if TYPE_CHECKING:
    from transect.cli.shared.recordings import Opening
    from transect.engine import Compound, Options, Run
    from transect.engine.trust import VerdictSource


@dataclass(frozen=True)
class RunArguments:
    """The options of `transect run`, by their names; the compound and the recording are not among them."""

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


def refuse_incomplete(arguments: RunArguments) -> None:
    """Raise if an option is there without the one that it needs."""
    if arguments.store is not None and arguments.out is None:
        raise click.UsageError("--store keeps a run that is written: add -o DIR")
    if arguments.extend and arguments.kept_map is None:
        raise click.UsageError("--extend goes on with a map: add --map MAP")


def refuse_conflicts(arguments: RunArguments, every: bool) -> None:
    """Raise if options do not go together, or if the folder of the results is there already."""
    from transect.cli.shared.options import new_folder

    from .prompt import refuse_options_with_player

    if arguments.played_by:
        refuse_options_with_player(arguments.played_by, arguments.jobs, arguments.as_json)
    if every:
        refuse_options_of_one(arguments.out, arguments.as_json, arguments.played_by)
    elif arguments.out is not None:
        new_folder(arguments.out)


def read_options(arguments: RunArguments, opening: Opening) -> Options:
    """Return what decides the result, from what was typed."""
    from transect.cli.shared.compounds import parse_settings
    from transect.cli.shared.options import parse_pairs
    from transect.engine import Options
    from transect.engine.offsets import parse_offsets

    return Options(
        parse_settings(arguments.settings),
        parse_pairs(arguments.wires, "--wire", "left=Cam0"),
        arguments.clock,
        arguments.reorder,
        parse_offsets(arguments.offsets),
        opening.start,
        opening.end,
    )


def choose_playback(arguments: RunArguments, strict: bool, draw: Callable[[Path], object]) -> Playback:
    """Return how the run is played, shown and judged, from what was typed."""
    from transect.cli.shared.output import Progress
    from transect.engine import Run
    from transect.engine.folder import read_kept_map

    return Playback(
        rate=arguments.rate,
        jobs=arguments.jobs,
        step=arguments.step,
        show=_page_opener(arguments.browser) if arguments.view else None,
        strict=strict,
        stats=arguments.stats,
        as_json=arguments.as_json,
        golden=Run.load(arguments.golden) if arguments.golden else None,
        progress=Progress(quiet=arguments.as_json),
        draw=draw,
        verdicts=_find_verdicts(arguments.checks, arguments.config, arguments.verdicts),
        map=read_kept_map(arguments.kept_map, arguments.extend) if arguments.kept_map else None,
        keep=_result_keeper(arguments.store, arguments.mission),
    )


def _result_keeper(store: str | None, mission: str) -> Callable[[Run], object]:
    """Return what is done with a complete run: its outputs become products."""
    if store is None:
        return lambda run: None
    from transect.cli.products import show_products
    from transect.products import open_store
    from transect.products.run_products import keep_run

    words = shlex.join(["transect", "run", *click.get_current_context().meta.get(COMMAND_WORDS, ())])

    def keep(run: Run) -> None:
        assert run.folder is not None
        with open_store(store) as opened:
            kept = [opened.get(identifier) for identifier in keep_run(opened, run.folder, mission, words)]
        click.echo(f"kept in {store}:", err=True)
        with redirect_stdout(sys.stderr):
            show_products(kept)

    return keep


def _page_opener(browser: bool) -> Callable[[str], object]:
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


EVERY = "/*"
"""The end of a name that means all implementations."""
NAMED = "transect.run.named"
"""Where the name of the compound is kept, for the help."""


class RunCommand(click.Command):
    """`transect run NAME --help` says what NAME takes and gives before what the verb does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[COMMAND_WORDS] = tuple(args)
        ctx.meta[NAMED] = next((arg for arg in args if not arg.startswith("-")), "")
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        from transect.errors import TransectError

        if name := ctx.meta.get(NAMED, ""):
            from transect.cli.shared.compounds import show_description
            from transect.engine.overview import describe

            try:
                show_description(describe(name))
                click.echo("")
            except TransectError as error:
                click.echo(f"{error}\n")
        return super().get_help(ctx)


@click.command(cls=RunCommand)
@click.argument("compound", required=False, metavar="COMPOUND")
@opening("times", required=False)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="A new folder for everything that comes of it."
)
@click.option("--set", "settings", multiple=True, metavar="NODE.PARAM=VALUE", help="A parameter of a node.")
@click.option(
    "--wire", "wires", multiple=True, metavar="INPUT=STREAM", help="The stream that feeds an input."
)
@click.option(
    "--clock", type=click.Choice(["auto", "sample", "log"]), default="auto", show_default=True,
    help="Play by when samples were taken, or by when they were logged; auto: as they were taken, unless "
    "their stamps are noisy.",
)  # fmt: skip
@click.option(
    "--reorder", type=click.FloatRange(0), default=0.5, show_default=True, metavar="S",
    help="Seconds by which a sample may come after a newer one before it is late.",
)  # fmt: skip
@click.option(
    "--offset",
    "offsets",
    multiple=True,
    metavar="STREAM=S|auto",
    help="Added to the times of a stream and its frames.",
)
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), metavar="X",
    help="Times real time; by default as fast as possible.",
)  # fmt: skip
@click.option(
    "--golden", type=click.Path(path_type=Path), metavar="DIR", help="A run that this one must equal."
)
@click.option("--check", "checks", is_flag=True, help="Check the sensors in the same pass, and act on it.")
@click.option(
    "--verdicts", type=click.Path(path_type=Path), metavar="FILE",
    help="Act on verdicts that `transect check -o` wrote: hindsight.",
)  # fmt: skip
@click.option(
    "--config", type=click.Path(path_type=Path), help="With --check: limits, mutes, sensors (YAML)."
)
@click.option(
    "--map", "kept_map", type=click.Path(path_type=Path), metavar="MAP",
    help="The run, or map (a folder or its zip), in which this one finds itself; the map stays as it is.",
)  # fmt: skip
@click.option("--extend", is_flag=True, help="With --map: go on with it; the new map has both.")
@click.option("--store", metavar="STORE", help="Keep every output as a product there: mission.gpkg.")
@click.option("--mission", default="", help="With --store: which campaign they belong to.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Threads.")
@click.option("--step", is_flag=True, help="Play nothing by itself: step, play and look from a prompt.")
@click.option(
    "--view", is_flag=True, help="The same from a page in the browser, which shows what comes of it."
)
@click.option("--browser/--no-browser", default=True, help="With --view: open it, or only print the address.")
@click.option("--stats", is_flag=True, help="Show what each node took; statistics.txt has it anyway.")
@all_option
@json_option
def command(compound: str | None, opening: Opening, **words: Any) -> int:
    """Compute something from a recording; without a name, list what.

    A compound is a computation: nodes that are wired together.

    COMPOUND is Name, Name/Implementation, file.yaml or file.yaml/Implementation; 'Name/*' runs all
    implementations that the recording can feed, each into a folder below DIR, compares them, and says why the
    others did not run. A single node runs too: by its name, or as file.py or file.py/Name.

    With --check sensors that are found to be wrong count for less, BAD ones not at all where others can stand
    in for them, and beams from dust or rain are dropped; verdicts.parquet has all verdicts.

    The folder DIR has every output as a file, what was run on what, statistics, and a digest: same bytes in,
    same digest out. It appears when all of it is written. What there is of a run that failed or was
    interrupted is kept as DIR.failed or DIR.interrupted. Exits with 1 if a node failed, 3 if data was lost on
    reading, 4 if the result is written but must not be trusted (a fusion that refused most of one sensor, a
    first output that gave nothing) or is not the same as the golden run, 130 if it was interrupted.
    """
    from .figure_process import DrawingProcess

    arguments, drawing = RunArguments(**words), DrawingProcess()
    refuse_incomplete(arguments)
    if compound is not None and arguments.out is not None:
        click.get_current_context().with_resource(drawing)  # works while this process still imports
    from transect.cli.shared.compounds import show_compounds

    if compound is None:
        show_compounds(arguments.as_json)
        return 0
    if not opening.paths:
        raise click.UsageError(
            f"nothing to open: transect run {compound} PATH...; with --help it says what it needs"
        )
    asked = read_options(arguments, opening)
    refuse_conflicts(arguments, every=compound.endswith(EVERY))
    compounds = _find_compounds(compound, asked)
    recording = opening.open_unread()
    playback = choose_playback(arguments, opening.strict, drawing.draw)
    if not compound.endswith(EVERY) or arguments.out is None:
        return run_one(compounds[0], recording, asked, arguments.out, playback)
    return run_each(
        compounds, arguments.out, lambda one, place: run_one(one, recording, asked, place, playback)
    )


def _find_compounds(name: str, asked: Options) -> list[Compound]:
    """Return the compound of a name, or all its implementations, each with nodes that take the parameters."""
    from transect.cli.shared.compounds import find_compound

    found = find_compound(name.removesuffix(EVERY))
    compounds = found.candidates() if name.endswith(EVERY) else [found]
    for each in compounds:
        each.graph(asked.set)
    return compounds
