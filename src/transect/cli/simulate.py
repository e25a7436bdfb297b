"""`transect simulate WORLD -o DIR`: a simulated field day with ground truth, in the robot's format."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .shared.options import json_option, streams_option
from .shared.output import all_option

if TYPE_CHECKING:
    from transect.simulation.day import Day, WorldOptions


@click.command()
@click.argument("world", required=False)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="New folder to write.")
@click.option("--seconds", type=float, help="Duration of the recording.")
@click.option("--seed", type=int, help="Seed of the random numbers; equal seeds give equal bytes.")
@click.option("--scale", type=float, help="Image size relative to the real cameras.")
@streams_option
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    metavar="KEY=VALUE",
    help="Condition such as light=night; may be repeated.",
)
@all_option
@json_option
def command(
    world: str | None,
    out: Path | None,
    seconds: float | None,
    seed: int | None,
    scale: float | None,
    streams: tuple[str, ...],
    conditions: tuple[str, ...],
    as_json: bool,
) -> int:
    """Simulate a day in a world; without WORLD, list the worlds.

    DIR opens as a recording of the world's format, with the ground truth in DIR/truth. The expected time and
    size are printed at the start.
    """
    from transect.simulation import day

    from .shared.options import new_folder
    from .shared.output import ProgressDisplay

    if world is None:
        _list_worlds(as_json)
        return 0
    target = new_folder(out)
    options = _options(world, seconds, seed, scale, streams, conditions)
    made = day.simulate(world, options)
    if not as_json:
        _announce(world, made, target)
    expected = sum(len(s) if s.loader else 1 for s in made.recording) + len(made.truth.files)
    with ProgressDisplay(quiet=as_json, lines=True).of_files(expected, "simulating"):
        said = day.write_day(made, target)
    _report(target, world, options, said, as_json)
    return 0


def _list_worlds(as_json: bool) -> None:
    from transect.simulation import day

    from .shared.output import show_json, show_table

    rows = [(name, _what(name)) for name in day.names()]
    if as_json:
        show_json({"worlds": [{"name": name, "what": what} for name, what in rows]})
    else:
        show_table(("world", "description"), rows, prose=(1,))


def _what(world: str) -> str:
    """Return the first line of a world's docstring, without importing it."""
    import ast

    from transect.base.plugins import file_of_module, strings

    file = file_of_module(strings("worlds")[world])
    text = file.read_text(encoding="utf-8") if file else ""
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def _options(
    world: str,
    seconds: float | None,
    seed: int | None,
    scale: float | None,
    streams: tuple[str, ...],
    conditions: tuple[str, ...],
) -> WorldOptions:
    from transect.simulation.day import WorldOptions, usual_seconds

    from .shared.options import parse_pairs

    asked = parse_pairs(conditions, "--condition", "light=night")
    given = {"seconds": seconds, "seed": seed, "scale": scale}
    for name in ("seconds", "scale"):
        _refuse_not_positive(name, given[name])
    chosen = {name: value for name, value in given.items() if value is not None}
    usual = WorldOptions(seconds=usual_seconds(world, asked), streams=streams, conditions=asked)
    return dataclasses.replace(usual, **chosen)


def _refuse_not_positive(name: str, value: float | None) -> None:
    from transect.errors import UsageError

    if value is not None and not value > 0:
        raise UsageError(f"--{name} {value:g} is not more than 0")


MIN_ANNOUNCED_S = 3.0
"""Shorter simulations are not announced."""


def _announce(world: str, made: Day, target: Path) -> None:
    """Print the expected time and size; warn if the disk is too small."""
    import shutil

    from transect.base.tables import size_text
    from transect.simulation.instruments import estimate

    from .shared.output import duration

    expected = estimate(made)
    if expected.seconds > MIN_ANNOUNCED_S:
        said = f"simulating {world}: about {duration(expected.seconds)} and {size_text(expected.size)}"
        click.echo(said, err=True)
    free = shutil.disk_usage(next(each for each in target.absolute().parents if each.is_dir())).free
    if expected.size > free:
        click.echo(f"warning: only {size_text(free)} of disk space are free", err=True)


def _report(target: Path, world: str, options: WorldOptions, said: tuple[str, ...], as_json: bool) -> None:
    from .shared.output import show_json
    from .shared.recordings import report_left_out

    report_left_out(said)
    if as_json:
        asked = dataclasses.asdict(options)
        show_json({"path": str(target), "world": world, "options": asked, "not_carried": list(said)})
    else:
        click.echo(f"wrote {target}")
