"""One run of `transect run`: played, judged, and told."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from transect.cli.shared.output import Progress
    from transect.engine import Compound, Options, Replay, Run
    from transect.engine.context import KeptMap
    from transect.engine.folder import RunFolder
    from transect.engine.trust import VerdictSource
    from transect.evaluation.runs import JudgedRun
    from transect.recording import Recording

TYPED = "transect.run.typed"
"""Where the words of the command are kept, for those that an error shows."""


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


def run_one(
    compound: Compound, recording: Recording, asked: Options, out: Path | None, manner: Manner
) -> int:
    """Run a compound, say what came of it, and return the exit code, or raise."""
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
    from transect.cli.shared.recordings import describe_span
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
    from transect.cli.shared.output import show_json
    from transect.cli.shared.recordings import report_losses
    from transect.engine.comparing import RunsDifferError

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
    bad = any(each.bad for each in result.conclusions)
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
