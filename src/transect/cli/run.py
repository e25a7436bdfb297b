"""`transect run COMPOUND PATH... -o DIR`: one execution of a compound on a recording."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ._options import from_option, json_option, opening, to_option

if TYPE_CHECKING:
    from transect.engine import Compound, Options, Replay, Run
    from transect.engine.folder import RunFolder
    from transect.recording import Recording

    from ._progress import Progress


@dataclass(frozen=True)
class How:
    """How a run is played, shown and judged; nothing of it changes the result."""

    rate: float | None
    jobs: int
    step: bool
    strict: bool
    as_json: bool
    golden: Run | None
    progress: Progress


@click.command()
@click.argument("compound", metavar="COMPOUND")
@opening
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
    "--offset", "offsets", multiple=True, metavar="STREAM=S|auto", help="Added to a stream's times."
)
@from_option
@to_option
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), metavar="X",
    help="Times real time; by default as fast as possible.",
)  # fmt: skip
@click.option(
    "--golden", type=click.Path(path_type=Path), metavar="DIR", help="A run that this one must equal."
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Threads.")
@click.option("--step", is_flag=True, help="Play nothing by itself: step, play and look from a prompt.")
@json_option
def command(
    compound: str,
    paths: tuple[str, ...],
    strict: bool,
    read_as: str | None,
    options: tuple[str, ...],
    out: Path | None,
    settings: tuple[str, ...],
    wires: tuple[str, ...],
    clock: Literal["sample", "log"],
    reorder: float,
    offsets: tuple[str, ...],
    start: str | None,
    end: str | None,
    rate: float | None,
    golden: Path | None,
    jobs: int,
    step: bool,
    as_json: bool,
) -> int:
    """Run a compound on a recording.

    COMPOUND is Name, Name/Implementation, file.yaml or file.yaml/Implementation; 'Name/*' runs all
    implementations, each into a folder below DIR, and compares them.

    The folder DIR has every output as a file, what was run on what, statistics, and a digest: same bytes in,
    same digest out. Exits with 1 if a node failed (the rest is kept), 3 if data was lost on reading, 4 if it
    is not the same as the golden run, 130 if it was interrupted (what there is is kept).
    """
    from transect import formats
    from transect.engine import Options, Run
    from transect.engine.offsets import parse_offsets

    from . import _run_all, _run_asked
    from ._progress import Progress
    from ._recordings import parsed_options
    from ._run_terminal import refuse_company

    if step:
        refuse_company(jobs, as_json)
    set_, wired = _run_asked.settings(settings), _run_asked.wires(wires)
    asked = Options(set_, wired, clock, reorder, parse_offsets(offsets), start, end)
    expected = Run.load(golden) if golden else None
    _refuse_occupied(out)
    every = compound.endswith(_run_all.ALL)
    if every:
        _run_all.refuse_alone(out, as_json, step)
    made = _run_all.compounds(compound) if every else [_run_asked.compound(compound)]
    for each in made:
        each.graph(asked.set)
    recording = formats.open(*paths, format=read_as, **parsed_options(options))
    how = How(rate, jobs, step, strict, as_json, expected, Progress(quiet=as_json))
    if every and out is not None:
        return _run_all.run_all(made, out, lambda one, place: _run(one, recording, asked, place, how))
    return _run(made[0], recording, asked, out, how)


def _refuse_occupied(out: Path | None) -> None:
    from ._asked import new_folder

    if out is not None:
        new_folder(out)


def _run(compound: Compound, recording: Recording, asked: Options, out: Path | None, how: How) -> int:
    from transect.engine import Replay
    from transect.engine.run import new_folder

    from ._run_asked import usage
    from ._run_report import show_wiring

    with new_folder(out) as folder:
        with usage():
            replay = Replay(
                compound, recording, asked, folder=folder.path if folder else None, rate=how.rate,
                jobs=how.jobs, in_memory=False, strict=how.strict,
            )  # fmt: skip
        used = _used(replay, how.strict)
        if not how.as_json:
            show_wiring(replay)
        result, interrupted = _played(replay, folder, how)
    used = used.replace(reader_losses=(*used.reader_losses, *replay.losses))
    return _reported(result, used, recording, interrupted, how)


def _used(replay: Replay, strict: bool) -> Recording:
    """Return the recording with only the streams that are played, if there is something to play."""
    from transect.errors import UsageError

    recording, wiring = replay.recording, replay.wiring.streams
    used = recording.replace(streams=tuple(recording[s.name] for s in dict.fromkeys(wiring.values())))
    if strict and used.losses:
        raise used.losses[0].error()
    if wiring and replay.span is None:
        cut = replay.options.start is not None or replay.options.end is not None
        what = "there is nothing between these times" if cut else f"{recording.name} has nothing to play"
        raise UsageError(
            what, why=f"{', '.join(s.name for s in used)}: no samples", hint="transect info lists streams"
        )
    return used


def _played(replay: Replay, folder: RunFolder | None, how: How) -> tuple[Run, bool]:
    """Play to the end, or as a person says; return the run, and whether Ctrl-C ended it."""
    from transect.engine.folder import RUN
    from transect.engine.run import finished

    from ._run_playing import bar, pausing
    from ._run_terminal import Terminal

    try:
        if how.step:
            terminal = Terminal(replay)
            return finished(replay, folder, terminal.talk), terminal.interrupted
        with bar(how.progress, replay), pausing(replay.player):
            result = finished(replay, folder)
        return result, result.status == "interrupted"
    except BaseException:
        kept = folder and (folder.target / RUN).is_file()
        where = f"what there was until then is kept in {folder.target}" if folder and kept else ""
        click.echo(where or "nothing is kept", err=True)
        raise


def _reported(result: Run, used: Recording, whole: Recording, interrupted: bool, how: How) -> int:
    """Print what came of it, judged by the truth of the whole recording; return the exit code, or raise."""
    from transect.engine.comparing import RunsDifferError

    from . import BAD_VERDICT, INTERRUPTED
    from ._recordings import exit_for
    from ._run_evaluation import evaluated, show_evaluation
    from ._run_report import document, is_silent, show_result
    from ._tables import show_json

    complete = result.status == "complete"
    found = result.diff(how.golden) if how.golden and complete else None
    judged = evaluated(result, whole) if complete else []
    if how.as_json:
        golden = how.golden.folder if how.golden else None
        show_json(document(result, found, golden, used.losses, judged))
    else:
        show_result(result, found)
        if result.folder:
            show_evaluation(judged, result.folder)
    if how.golden and not complete:
        click.echo(f"not compared with {how.golden.folder}: the run is {result.status}", err=True)
    code = exit_for(used)
    for error in result.errors if interrupted else result.errors[1:]:  # the first is raised
        click.echo(f"error: {error}", err=True)
    if result.status == "interrupted":
        _say_how_far(result, interrupted)
    if interrupted:
        return INTERRUPTED
    if result.errors:
        raise result.errors[0]
    if found and how.golden:
        raise RunsDifferError(found, str(how.golden.folder))
    return BAD_VERDICT if complete and is_silent(result) else code


def _say_how_far(result: Run, interrupted: bool) -> None:
    from ._run_report import where_it_is

    at = where_it_is(result.replay) if result.replay else ""
    kept = f"what there is until then is kept in {result.folder}" if result.folder else "nothing is kept"
    click.echo(f"{'interrupted' if interrupted else 'stopped'}: {at}; {kept}", err=True)
