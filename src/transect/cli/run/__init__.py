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

from .execution import COMMAND_WORDS, PlaybackOptions, refuse_options_of_one, run_each, run_one

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
        """The option for interactive playback; empty if the run is not interactive."""
        return "--step" if self.step else "--view" if self.view else ""


def refuse_incomplete(arguments: RunArguments) -> None:
    """Raise if an option is there without the one that it needs."""
    if arguments.store is not None and arguments.out is None:
        raise click.UsageError("--store needs a written run: add -o DIR")
    if arguments.extend and arguments.kept_map is None:
        raise click.UsageError("--extend needs a map: add --map MAP")


def refuse_conflicts(arguments: RunArguments, every: bool) -> None:
    """Raise if options conflict, or if the output folder exists."""
    from transect.cli.shared.options import new_folder

    from .prompt import refuse_options_with_player

    if arguments.played_by:
        refuse_options_with_player(arguments.played_by, arguments.jobs, arguments.as_json)
    if every:
        refuse_options_of_one(arguments.out, arguments.as_json, arguments.played_by)
    elif arguments.out is not None:
        new_folder(arguments.out)


def read_options(arguments: RunArguments, opening: Opening) -> Options:
    """Return the options that affect the result."""
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


def choose_playback(arguments: RunArguments, strict: bool, draw: Callable[[Path], object]) -> PlaybackOptions:
    """Return how the run is played, shown and evaluated, from the arguments."""
    from transect.cli.shared.output import ProgressDisplay
    from transect.engine import Run
    from transect.engine.folder import read_kept_map

    return PlaybackOptions(
        rate=arguments.rate,
        jobs=arguments.jobs,
        step=arguments.step,
        show=_page_opener(arguments.browser) if arguments.view else None,
        strict=strict,
        stats=arguments.stats,
        as_json=arguments.as_json,
        golden=Run.load(arguments.golden) if arguments.golden else None,
        progress=ProgressDisplay(quiet=arguments.as_json),
        draw=draw,
        verdicts=_find_verdicts(arguments.checks, arguments.config, arguments.verdicts),
        map=read_kept_map(arguments.kept_map, arguments.extend) if arguments.kept_map else None,
        keep=_result_keeper(arguments.store, arguments.mission),
    )


def _result_keeper(store: str | None, mission: str) -> Callable[[Run], object]:
    """Return a function that stores the outputs of a complete run as products."""
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
        click.echo(f"stored in {store}:", err=True)
        with redirect_stdout(sys.stderr):
            show_products(kept)

    return keep


def _page_opener(browser: bool) -> Callable[[str], object]:
    """Return a function that prints the address of a page, and opens it if `browser`."""

    def show(address: str) -> None:
        import webbrowser

        click.echo(f"play the run at {address}")
        click.echo("close the page, or press Ctrl-C, to stop")
        if browser:
            webbrowser.open(address)

    return show


def _find_verdicts(checks: bool, config: Path | None, verdicts: Path | None) -> VerdictSource | None:
    """Return the source of the verdicts that a run uses; None if sensors are not checked."""
    if not (checks or config or verdicts):
        return None
    from transect.integrity.verdict_sources import choose_source

    return choose_source(config or checks, verdicts)


ALL_IMPLEMENTATIONS = "/*"
"""End of a name that stands for all implementations."""
COMPOUND_NAME = "transect.run.named"
"""Key of the compound's name in the context, for the help."""


class RunCommand(click.Command):
    """With `transect run NAME --help`, the ports and parameters of NAME precede the general help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[COMMAND_WORDS] = tuple(args)
        ctx.meta[COMPOUND_NAME] = next((arg for arg in args if not arg.startswith("-")), "")
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        from transect.errors import TransectError

        if name := ctx.meta.get(COMPOUND_NAME, ""):
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
@click.option("-o", "--out", type=click.Path(path_type=Path), help="New folder for the outputs.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NODE.PARAM=VALUE",
    help="Value of a node's parameter; may be repeated.",
)
@click.option(
    "--wire", "wires", multiple=True, metavar="INPUT=STREAM", help="Stream of an input; may be repeated."
)
@click.option(
    "--clock", type=click.Choice(["auto", "sample", "log"]), default="auto", show_default=True,
    help="Order of samples: by sample time or log time; auto: by sample time, unless timestamps "
    "are noisy.",
)  # fmt: skip
@click.option(
    "--reorder", type=click.FloatRange(0), default=0.5, show_default=True, metavar="S",
    help="Largest delay of a sample behind a newer one; later samples are dropped.",
)  # fmt: skip
@click.option(
    "--offset",
    "offsets",
    multiple=True,
    metavar="STREAM=S|auto",
    help="Time offset added to a stream and its frames; auto estimates it.",
)
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), metavar="X",
    help="Playback speed, times real time; by default as fast as possible.",
)  # fmt: skip
@click.option(
    "--golden",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Reference run whose outputs this one must reproduce.",
)
@click.option(
    "--check", "checks", is_flag=True, help="Check the sensors while running, and use the verdicts."
)
@click.option(
    "--verdicts", type=click.Path(path_type=Path), metavar="FILE",
    help="Use verdicts that `transect check -o` wrote (hindsight).",
)  # fmt: skip
@click.option(
    "--config", type=click.Path(path_type=Path), help="With --check: limits, muted checks, sensors (YAML)."
)
@click.option(
    "--map", "kept_map", type=click.Path(path_type=Path), metavar="MAP",
    help="Localise in the map of this run, or in this map (folder or zip); it is not modified.",
)  # fmt: skip
@click.option("--extend", is_flag=True, help="With --map: extend a copy of the map.")
@click.option("--store", metavar="STORE", help="Store of products for all outputs, such as mission.gpkg.")
@click.option("--mission", default="", help="With --store: campaign of the products.")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Number of threads."
)
@click.option("--step", is_flag=True, help="Play interactively at a prompt: step, play, show values.")
@click.option("--view", is_flag=True, help="Play interactively in the browser, with a view of the outputs.")
@click.option(
    "--browser/--no-browser", default=True, help="With --view: open the browser, or only print the address."
)
@click.option(
    "--stats", is_flag=True, help="Print the computing time of each node; statistics.txt has it in any case."
)
@all_option
@json_option
def command(compound: str | None, opening: Opening, **words: Any) -> int:
    """Run a compound on a recording; without COMPOUND, list all.

    A compound is a graph of connected nodes, such as PoseFusion.

    COMPOUND is Name, Name/Implementation, file.yaml or file.yaml/Implementation; 'Name/*' runs and compares
    all implementations whose inputs were recorded, each in a subfolder of DIR. A single node runs too: by its
    name, or as file.py or file.py/Name.

    With --check, measurements of SUSPECT sensors get less weight, BAD sensors are replaced if possible, and
    laser returns from dust or rain are dropped; verdicts.parquet has all verdicts.

    DIR holds the outputs as files, inputs and parameters, statistics, and a digest, which is equal for equal
    inputs. It appears when it is complete; partial results are kept in DIR.failed or DIR.interrupted. Exits
    with 1 if a node failed, 3 if data was lost on reading, 4 if the result is not trustworthy (e.g. most
    measurements of a sensor were rejected, or the first output is empty) or differs from the golden run, 130
    if it was interrupted.
    """
    from .figure_process import DrawingProcess

    arguments, drawing = RunArguments(**words), DrawingProcess()
    refuse_incomplete(arguments)
    if compound is not None and arguments.out is not None:
        click.get_current_context().with_resource(drawing)  # starts while this process still imports
    from transect.cli.shared.compounds import show_compounds

    if compound is None:
        show_compounds(arguments.as_json)
        return 0
    if not opening.paths:
        raise click.UsageError(f"no recording: transect run {compound} PATH...; --help lists its inputs")
    asked = read_options(arguments, opening)
    refuse_conflicts(arguments, every=compound.endswith(ALL_IMPLEMENTATIONS))
    compounds = _find_compounds(compound, asked)
    recording = opening.open_unread()
    playback = choose_playback(arguments, opening.strict, drawing.draw)
    if not compound.endswith(ALL_IMPLEMENTATIONS) or arguments.out is None:
        return run_one(compounds[0], recording, asked, arguments.out, playback)
    return run_each(
        compounds, arguments.out, lambda one, place: run_one(one, recording, asked, place, playback)
    )


def _find_compounds(name: str, asked: Options) -> list[Compound]:
    """Return the compound of a name, or all its implementations; raise if a parameter is not valid."""
    from transect.cli.shared.compounds import find_compound

    found = find_compound(name.removesuffix(ALL_IMPLEMENTATIONS))
    compounds = found.candidates() if name.endswith(ALL_IMPLEMENTATIONS) else [found]
    for each in compounds:
        each.graph(asked.set)
    return compounds
