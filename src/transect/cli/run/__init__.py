"""`transect run COMPOUND PATH... -o DIR`: one execution of a compound on a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transect.cli.shared.options import json_option
from transect.cli.shared.output import all_option
from transect.cli.shared.recordings import Opening, opening

from .running import TYPED, run_one
from .typed import Typed, choose_manner, read_options, refuse_conflicts, refuse_incomplete

if TYPE_CHECKING:
    from transect.engine import Compound, Options

EVERY = "/*"
"""The end of a name that means all implementations."""
NAMED = "transect.run.named"
"""Where the name of the compound is kept, for the help."""


class RunCommand(click.Command):
    """`transect run NAME --help` says what NAME takes and gives before what the verb does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = tuple(args)
        ctx.meta[NAMED] = next((arg for arg in args if not arg.startswith("-")), "")
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        from transect.errors import TransectError

        if name := ctx.meta.get(NAMED, ""):
            from transect.cli.shared.compounds import show_description
            from transect.engine.listing import describe

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
    from .drawing import DrawingProcess

    typed, drawing = Typed(**words), DrawingProcess()
    refuse_incomplete(typed)
    if compound is not None and typed.out is not None:
        click.get_current_context().with_resource(drawing)  # works while this process still imports
    from transect.cli.shared.compounds import show_compounds

    if compound is None:
        show_compounds(typed.as_json)
        return 0
    if not opening.paths:
        raise click.UsageError(
            f"nothing to open: transect run {compound} PATH...; with --help it says what it needs"
        )
    asked = read_options(typed, opening)
    refuse_conflicts(typed, every=compound.endswith(EVERY))
    compounds = _find_compounds(compound, asked)
    recording = opening.open_unread()
    manner = choose_manner(typed, opening.strict, drawing.draw)
    if not compound.endswith(EVERY) or typed.out is None:
        return run_one(compounds[0], recording, asked, typed.out, manner)
    from .implementations import run_each

    return run_each(compounds, typed.out, lambda one, place: run_one(one, recording, asked, place, manner))


def _find_compounds(name: str, asked: Options) -> list[Compound]:
    """Return the compound of a name, or all its implementations, each with nodes that take the parameters."""
    from transect.cli.shared.compounds import find_compound

    found = find_compound(name.removesuffix(EVERY))
    compounds = found.candidates() if name.endswith(EVERY) else [found]
    for each in compounds:
        each.graph(asked.set)
    return compounds
