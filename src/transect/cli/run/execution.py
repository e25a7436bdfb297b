"""Execution of `transect run`: one implementation, or all of them and their comparison."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transect.cli.shared.output import show_table
from transect.errors import TransectError, UsageError

if TYPE_CHECKING:
    from transect.cli.shared.output import ProgressDisplay
    from transect.engine import Compound, Options, Replay, Run
    from transect.engine.context import KeptMap
    from transect.engine.folder import RunFolder
    from transect.engine.trust import VerdictSource
    from transect.evaluation.runs import JudgedRun
    from transect.recording import Recording

COMMAND_WORDS = "transect.run.typed"
"""Key of the command's words in the context, for hints in errors."""


@dataclass(frozen=True)
class PlaybackOptions:
    """How a run is played, shown and evaluated; only `verdicts` and `map` affect the result."""

    rate: float | None
    jobs: int
    step: bool
    show: Callable[[str], object] | None
    strict: bool
    stats: bool
    as_json: bool
    golden: Run | None
    progress: ProgressDisplay
    draw: Callable[[Path], object]
    verdicts: VerdictSource | None
    map: KeptMap | None
    keep: Callable[[Run], object]


def run_one(
    compound: Compound, recording: Recording, asked: Options, out: Path | None, playback: PlaybackOptions
) -> int:
    """Run a compound, report the result, and return the exit code, or raise."""
    from transect.cli.info import show_findings
    from transect.engine import Replay
    from transect.engine.runs import new_folder

    from .report import show_wiring

    with new_folder(out) as folder:
        with _times_as_usage(), _commands_to_copy():
            replay = Replay(
                compound, recording, asked, folder=folder.path if folder else None, rate=playback.rate,
                jobs=playback.jobs, in_memory=False, strict=playback.strict, verdicts=playback.verdicts,
                map=playback.map,
            )  # fmt: skip
        used = _streams_used(replay, recording, playback.strict)
        if not playback.as_json:
            show_wiring(replay)
        show_findings(used)
        with _report_kept_outputs(folder):
            result, interrupted = _play(replay, folder, playback)
            judged = _judge(result, recording, playback.draw)
    used = used.replace(reader_losses=(*used.reader_losses, *replay.losses))
    code = _report(result, judged, used, interrupted, playback)
    if result.status == "complete":
        playback.keep(result)
    return code


def _streams_used(replay: Replay, whole: Recording, strict: bool) -> Recording:
    """Return the recording with only the streams that are played; raise if there are no samples."""
    from transect.cli.shared.recordings import describe_span
    from transect.errors import UsageError

    recording, wiring = replay.recording, [stream for _, stream in replay.playback.wiring.pairs]
    used = recording.replace(streams=tuple(recording[s.name] for s in dict.fromkeys(wiring)))
    if strict and used.losses:
        raise used.losses[0].error()
    if wiring and replay.playback.span is None:
        names = f"{', '.join(s.name for s in used)}: no samples"
        if replay.options.start is None and replay.options.end is None:
            hint = "transect info lists streams"
            raise UsageError(f"{recording.name} has nothing to play", why=names, hint=hint)
        why = f"{names}; {describe_span(whole, next(iter(used)).clock)}"
        raise UsageError("there is nothing between these times", why=why)
    return used


def _play(replay: Replay, folder: RunFolder | None, playback: PlaybackOptions) -> tuple[Run, bool]:
    """Play to the end, or interactively; return the run, and whether Ctrl-C ended it."""
    from transect.engine.runs import finish

    from .prompt import Terminal, bar, pausing

    if playback.step:
        terminal = Terminal(replay)
        return finish(replay, folder, terminal.talk), terminal.interrupted
    if playback.show is not None:
        from transect.view import watch

        return finish(replay, folder, partial(watch, replay, show=playback.show)), False
    with bar(playback.progress, replay), pausing(replay.player):
        result = finish(replay, folder)
    return result, result.status == "interrupted"


def _judge(result: Run, recording: Recording, draw: Callable[[Path], object]) -> JudgedRun:
    """Evaluate a complete run against the ground truth of the whole recording."""
    from transect.evaluation.runs import JudgedRun, judge_run

    return judge_run(result, recording, draw) if result.status == "complete" else JudgedRun()


@contextmanager
def _report_kept_outputs(folder: RunFolder | None) -> Generator[None]:
    """Print where partial outputs are if playback or evaluation fails."""
    try:
        yield
    except BaseException as error:
        kept = folder.close(error) if folder else None
        click.echo(f"partial outputs are kept in {kept}" if kept else "no outputs are kept", err=True)
        raise


def _report(
    result: Run, judged: JudgedRun, used: Recording, interrupted: bool, playback: PlaybackOptions
) -> int:
    """Print the result; return the exit code, or raise."""
    from transect.cli import ExitCode
    from transect.cli.shared.output import show_json
    from transect.cli.shared.recordings import report_losses
    from transect.engine.digest import RunsDifferError

    from .report import document, show_conclusion, show_evaluation, show_result

    complete = result.status == "complete"
    found = result.diff(playback.golden) if playback.golden and complete else None
    if playback.as_json:
        golden = playback.golden.folder if playback.golden else None
        show_json(document(result, found, golden, used.losses, judged.results))
    else:
        show_result(result, found, stats=playback.stats)
        show_evaluation(judged)
        show_conclusion(result, judged)
    if playback.golden and not complete:
        click.echo(f"not compared with {playback.golden.folder}: the run is {result.status}", err=True)
    code = report_losses(used)
    for error in result.errors if interrupted else result.errors[1:]:  # the first is raised
        click.echo(f"error: {error}", err=True)
    if result.status == "interrupted":
        _report_progress(result, interrupted)
    if interrupted:
        return ExitCode.INTERRUPTED
    if result.errors:
        raise result.errors[0]
    if found and playback.golden:
        raise RunsDifferError(found, str(playback.golden.folder))
    bad = any(each.bad for each in result.conclusions)
    return ExitCode.BAD_VERDICT if complete and bad else code


def _report_progress(result: Run, interrupted: bool) -> None:
    from .report import where_it_is

    at = where_it_is(result.replay) if result.replay else ""
    kept = f"partial outputs are kept in {result.folder}" if result.folder else "no outputs are kept"
    click.echo(f"{'interrupted' if interrupted else 'stopped'}: {at}; {kept}", err=True)


@contextmanager
def _times_as_usage() -> Generator[None]:
    """Raise times and clocks that do not match the recording as usage errors."""
    from transect.errors import TimeError, UsageError

    try:
        yield
    except TimeError as error:
        raise UsageError(error.what, where=error.where, why=error.why, hint=error.hint) from error


@contextmanager
def _commands_to_copy() -> Generator[None]:
    """Add the commands that would select a stream to errors about inputs."""
    from transect.engine.wiring import WiringError

    try:
        yield
    except WiringError as error:
        if error.options:
            typed = shlex.join(["transect", "run", *click.get_current_context().meta.get(COMMAND_WORDS, ())])
            first, *others = error.options
            rest = "".join(f" {wires[0]}" for wires in others)
            error.hint = "\n         ".join(f"{typed} {wire}{rest}" for wire in first)
        raise


def refuse_options_of_one(out: Path | None, as_json: bool, played_by: str) -> None:
    """Raise for options of a single run, and if the output folder has finished runs."""
    from transect.base.files import refuse_existing
    from transect.engine.folder import is_unfinished

    if out is None:
        raise UsageError("several runs need an output folder", hint="-o DIR gets a subfolder for each")
    finished = (place for place in (out.iterdir() if out.is_dir() else ()) if not is_unfinished(place))
    if out.is_file() or next(finished, None):
        refuse_existing(out, hint="choose another name with -o")
    if as_json or played_by:
        raise UsageError(
            f"{'--json' if as_json else played_by} is for one run", hint="name one implementation"
        )


def run_each(compounds: Sequence[Compound], out: Path, run: Callable[[Compound, Path], int]) -> int:
    """Run compounds one after the other, each into its subfolder, and compare them; some may fail.

    Those whose inputs were not recorded are listed with the reason.

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
        _show_comparison(out)
    elif is_new and out.exists():
        out.rmdir()  # created for runs, but none succeeded
    if unfed:
        show_table(("not run", "reason"), unfed, prose=(1,))
    return next((code for code in codes if code), 0 if codes else UsageError.exit_code)


def _show_comparison(out: Path) -> None:
    """Print a comparison of the runs, as in Table 5 of the CDFF paper."""
    from transect.cli.shared.results import show_results
    from transect.evaluation.result import SUFFIX, load_result

    folders = sorted(place for place in out.iterdir() if place.is_dir() and not place.is_symlink())
    results = [load_result(file) for folder in folders for file in sorted(folder.glob(f"*{SUFFIX}"))]
    if results:
        show_results(results, "table", "runs")
        click.echo(f"to repeat this table: transect compare {out} --layout runs\n")
