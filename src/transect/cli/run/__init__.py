"""`transect run COMPOUND PATH... -o DIR`: one execution of a compound on a recording."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from transect.cli._opening import Opening, opening
from transect.cli._options import json_option
from transect.cli._tables import all_option

if TYPE_CHECKING:
    from transect.cli._progress import Progress
    from transect.engine import Compound, Options, Replay, Run
    from transect.engine.context import KeptMap
    from transect.engine.folder import RunFolder
    from transect.engine.trust import VerdictSource
    from transect.evaluation.runs import JudgedRun
    from transect.recording import Recording

EVERY = "/*"
"""The end of a name that means all implementations."""
NAMED = "transect.run.named"
"""Where the name of the compound is kept, for the help."""


@dataclass(frozen=True)
class Manner:
    """How a run is played, shown and judged; nothing of it but `verdicts` and `map` changes the result."""

    rate: float | None
    jobs: int
    step: bool
    show: Callable[[str], object] | None
    strict: bool
    stats: bool
    as_json: bool
    golden: Run | None
    progress: Progress
    draw: Callable[[Path], object]
    verdicts: VerdictSource | None
    map: KeptMap | None
    keep: Callable[[Run], object]


TYPED = "transect.run.typed"
"""Where the words of the command are kept, for those that an error shows."""


class RunCommand(click.Command):
    """`transect run NAME --help` says what NAME takes and gives before what the verb does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = tuple(args)
        ctx.meta[NAMED] = next((arg for arg in args if not arg.startswith("-")), "")
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        from transect.errors import TransectError

        if name := ctx.meta.get(NAMED, ""):
            from transect.cli._compounds import show_description
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
    "--clock", type=click.Choice(["sample", "log"]), default="sample", show_default=True,
    help="Play by when samples were taken, or by when they were logged.",
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
def command(
    compound: str | None,
    opening: Opening,
    out: Path | None,
    settings: tuple[str, ...],
    wires: tuple[str, ...],
    clock: Literal["sample", "log"],
    reorder: float,
    offsets: tuple[str, ...],
    rate: float | None,
    golden: Path | None,
    checks: bool,
    verdicts: Path | None,
    config: Path | None,
    kept_map: Path | None,
    extend: bool,
    store: str | None,
    mission: str,
    jobs: int,
    step: bool,
    view: bool,
    browser: bool,
    stats: bool,
    as_json: bool,
) -> int:
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

    drawing = DrawingProcess()
    if store is not None and out is None:
        raise click.UsageError("--store keeps a run that is written: add -o DIR")
    if extend and kept_map is None:
        raise click.UsageError("--extend goes on with a map: add --map MAP")
    if compound is not None and out is not None:
        click.get_current_context().with_resource(drawing)  # works while this process still imports
    from transect.cli._compounds import parse_settings, show_compounds
    from transect.cli._options import new_folder, parse_pairs
    from transect.cli._progress import Progress
    from transect.engine import Options, Run
    from transect.engine.context import KeptMap
    from transect.engine.offsets import parse_offsets

    from .implementations import refuse_options_of_one, run_each
    from .terminal import refuse_company

    if compound is None:
        show_compounds(as_json)
        return 0
    if not opening.paths:
        raise click.UsageError(
            f"nothing to open: transect run {compound} PATH...; with --help it says what it needs"
        )
    played_by = "--step" if step else "--view" if view else ""
    if played_by:
        refuse_company(played_by, jobs, as_json)
    asked = Options(
        parse_settings(settings), parse_pairs(wires, "--wire", "left=Cam0"), clock, reorder,
        parse_offsets(offsets), opening.start, opening.end,
    )  # fmt: skip
    expected = Run.load(golden) if golden else None
    every = compound.endswith(EVERY)
    if every:
        refuse_options_of_one(out, as_json, played_by)
    elif out is not None:
        new_folder(out)
    compounds = _find_compounds(compound, asked)
    recording = opening.open_unread()
    manner = Manner(
        rate, jobs, step, _find_shower(browser) if view else None, opening.strict, stats, as_json, expected,
        Progress(quiet=as_json), drawing.draw, _find_verdicts(checks, config, verdicts),
        KeptMap.read(kept_map, extend) if kept_map else None,
        _find_keeper(store, mission),
    )  # fmt: skip
    if every and out is not None:
        return run_each(compounds, out, lambda one, place: _run(one, recording, asked, place, manner))
    return _run(compounds[0], recording, asked, out, manner)


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
    from transect.integrity.acting import choose_source

    return choose_source(config or checks, verdicts)


def _find_compounds(name: str, asked: Options) -> list[Compound]:
    """Return the compound of a name, or all its implementations, each with nodes that take the parameters."""
    from transect.cli._compounds import find_compound

    found = find_compound(name.removesuffix(EVERY))
    compounds = found.candidates() if name.endswith(EVERY) else [found]
    for each in compounds:
        each.graph(asked.set)
    return compounds


def _run(compound: Compound, recording: Recording, asked: Options, out: Path | None, manner: Manner) -> int:
    from transect.cli.info import show_findings
    from transect.engine import Replay
    from transect.engine.run import new_folder

    from .report import show_wiring

    with new_folder(out) as folder:
        with _times_as_usage(), _commands_to_copy():
            replay = Replay(
                compound, recording, asked, folder=folder.path if folder else None, rate=manner.rate,
                jobs=manner.jobs, in_memory=False, strict=manner.strict, verdicts=manner.verdicts,
                map=manner.map,
            )  # fmt: skip
        used = _streams_used(replay, recording, manner.strict)
        if not manner.as_json:
            show_wiring(replay)
        show_findings(used)
        with _say_what_is_kept(folder):
            result, interrupted = _play(replay, folder, manner)
            judged = _judge(result, recording, manner.draw)
    used = used.replace(reader_losses=(*used.reader_losses, *replay.losses))
    code = _report(result, judged, used, interrupted, manner)
    if result.status == "complete":
        manner.keep(result)
    return code


def _streams_used(replay: Replay, whole: Recording, strict: bool) -> Recording:
    """Return the recording with only the streams that are played, if there is something to play."""
    from transect.cli._opening import describe_span
    from transect.errors import UsageError

    recording, wiring = replay.recording, [stream for _, stream in replay.wiring.pairs]
    used = recording.replace(streams=tuple(recording[s.name] for s in dict.fromkeys(wiring)))
    if strict and used.losses:
        raise used.losses[0].error()
    if wiring and replay.span is None:
        names = f"{', '.join(s.name for s in used)}: no samples"
        if replay.options.start is None and replay.options.end is None:
            hint = "transect info lists streams"
            raise UsageError(f"{recording.name} has nothing to play", why=names, hint=hint)
        why = f"{names}; {describe_span(whole, next(iter(used)).clock)}"
        raise UsageError("there is nothing between these times", why=why)
    return used


def _play(replay: Replay, folder: RunFolder | None, manner: Manner) -> tuple[Run, bool]:
    """Play to the end, or as a person says; return the run, and whether Ctrl-C ended it."""
    from transect.engine.run import finish

    from .playing import bar, pausing
    from .terminal import Terminal

    if manner.step:
        terminal = Terminal(replay)
        return finish(replay, folder, terminal.talk), terminal.interrupted
    if manner.show is not None:
        from transect.view import watch

        return finish(replay, folder, partial(watch, replay, show=manner.show)), False
    with bar(manner.progress, replay), pausing(replay.player):
        result = finish(replay, folder)
    return result, result.status == "interrupted"


def _judge(result: Run, recording: Recording, draw: Callable[[Path], object]) -> JudgedRun:
    """Judge a complete run by the truth of the whole recording."""
    from transect.evaluation.runs import JudgedRun, judge_run

    return judge_run(result, recording, draw) if result.status == "complete" else JudgedRun()


@contextmanager
def _say_what_is_kept(folder: RunFolder | None) -> Generator[None]:
    """Say where the outputs are when an error ends the playing or the judging of a run."""
    try:
        yield
    except BaseException as error:
        kept = folder.close(error) if folder else None
        click.echo(f"what there was until then is kept in {kept}" if kept else "nothing is kept", err=True)
        raise


def _report(result: Run, judged: JudgedRun, used: Recording, interrupted: bool, manner: Manner) -> int:
    """Print what came of it; return the exit code, or raise."""
    from transect.cli import BAD_VERDICT, INTERRUPTED
    from transect.cli._opening import report_losses
    from transect.cli._tables import show_json
    from transect.engine.comparing import RunsDifferError
    from transect.engine.silence import is_silent

    from .report import document, show_conclusion, show_evaluation, show_result

    complete = result.status == "complete"
    found = result.diff(manner.golden) if manner.golden and complete else None
    if manner.as_json:
        golden = manner.golden.folder if manner.golden else None
        show_json(document(result, found, golden, used.losses, judged.results))
    else:
        show_result(result, found, stats=manner.stats)
        show_evaluation(judged)
        show_conclusion(result, judged)
    if manner.golden and not complete:
        click.echo(f"not compared with {manner.golden.folder}: the run is {result.status}", err=True)
    code = report_losses(used)
    for error in result.errors if interrupted else result.errors[1:]:  # the first is raised
        click.echo(f"error: {error}", err=True)
    if result.status == "interrupted":
        _say_how_far(result, interrupted)
    if interrupted:
        return INTERRUPTED
    if result.errors:
        raise result.errors[0]
    if found and manner.golden:
        raise RunsDifferError(found, str(manner.golden.folder))
    bad = is_silent(result) or any(each.bad for each in result.conclusions)
    return BAD_VERDICT if complete and bad else code


def _say_how_far(result: Run, interrupted: bool) -> None:
    from .report import where_it_is

    at = where_it_is(result.replay) if result.replay else ""
    kept = f"what there is until then is kept in {result.folder}" if result.folder else "nothing is kept"
    click.echo(f"{'interrupted' if interrupted else 'stopped'}: {at}; {kept}", err=True)


@contextmanager
def _times_as_usage() -> Generator[None]:
    """Turn times and clocks that do not go with the recording into errors of usage."""
    from transect.errors import TimeError, UsageError

    try:
        yield
    except TimeError as error:
        raise UsageError(error.what, where=error.where, why=error.why, hint=error.hint) from error


@contextmanager
def _commands_to_copy() -> Generator[None]:
    """Let an error about inputs end with the commands that would choose a stream."""
    from transect.engine.wiring import WiringError

    try:
        yield
    except WiringError as error:
        if error.options:
            typed = shlex.join(["transect", "run", *click.get_current_context().meta.get(TYPED, ())])
            first, *others = error.options
            rest = "".join(f" {wires[0]}" for wires in others)
            error.hint = "\n         ".join(f"{typed} {wire}{rest}" for wire in first)
        raise
