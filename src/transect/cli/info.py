"""`transect info PATH`: the streams of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .shared.options import json_option
from .shared.output import all_option
from .shared.recordings import Opening, opening

if TYPE_CHECKING:
    from transect.recording import Recording


@click.command()
@opening()
@all_option
@json_option
@click.option("--clocks", is_flag=True, help="Compare sample times with log times.")
@click.option("--frames", is_flag=True, help="Print the tree of frames.")
@click.option(
    "--formats",
    "every_format",
    is_flag=True,
    help="Show how confident each format is to recognise PATH, and exit.",
)
def command(opening: Opening, as_json: bool, clocks: bool, frames: bool, every_format: bool) -> int:
    """Show the streams of a recording.

    Types, rates, durations and gaps, data that could not be read, and units that are not plausible.

    Several paths are joined into one recording. Times are UTC unless the table names another clock.
    """
    from .shared.output import ProgressDisplay, show_json
    from .shared.recordings import report_losses

    if every_format:
        _show_formats(opening.paths, as_json)
        return 0
    recording = opening.open(ProgressDisplay(quiet=as_json))
    if as_json:
        show_json(_document(recording, clocks, frames))
    else:
        show_summary(recording)
        if frames:
            click.echo(f"\n{recording.frames!r}")
        if clocks:
            _show_clocks(recording)
        show_findings(recording)
    return report_losses(recording)


def _show_formats(paths: tuple[str, ...], as_json: bool) -> None:
    """Print the confidence of each format to recognise a path, and the reason, in descending order."""
    from transect import formats

    from .shared.output import show_json, show_table

    matches = {path: formats.recognise(path) for path in paths}
    if as_json:
        show_json({path: {name: match._asdict() for name, match in found} for path, found in matches.items()})
        return
    for path, found in matches.items():
        click.echo(path)
        rows = [(name, f"{match.confidence:g}", match.reason) for name, match in found]
        show_table(("format", "confidence", "reason"), rows, right=frozenset({1}), names=(0,))


def show_summary(recording: Recording) -> None:
    """Print a headline, a table of streams that fits the terminal, losses and notes."""
    from transect.recording import summary

    from .shared.output import show_table

    click.echo(summary.headline(recording))
    if recording.streams:
        table = summary.stream_table(recording)
        show_table(table.headings, table.rows, table.right, table.order, names=(0,))
    for line in (*summary.camera_lines(recording), *summary.footer_lines(recording)):
        click.echo(line)


def show_findings(recording: Recording) -> None:
    """Warn of implausible units."""
    from transect.recording.plausibility import find_implausible

    for found in find_implausible(recording):
        click.echo(f"warning: {found}", err=True)


def _document(recording: Recording, clocks: bool, frames: bool) -> dict[str, Any]:
    from dataclasses import asdict

    from transect.recording.clock_comparison import compare_clocks
    from transect.recording.plausibility import find_implausible
    from transect.recording.summary import stream_facts

    document: dict[str, Any] = {
        "name": recording.name,
        "format": recording.format,
        "path": str(recording.path) if recording.path else None,
        "robot": recording.robot.name if recording.robot else None,
        "conditions": dict(recording.conditions),
        "spans_ns": recording.spans(),
        "streams": [stream_facts(s) for s in recording.streams],
        "cameras": {n: _camera(c) for n, c in recording.cameras.items()},
        "losses": [loss.to_dict() for loss in recording.losses],
        "notes": list(recording.all_notes),
        "findings": [found.to_dict() for found in find_implausible(recording)],
        "sources": [s.to_dict() for s in recording.provenance.sources],
    }
    if clocks:
        document["clocks"] = [asdict(compare_clocks(s)) for s in recording.streams]
    if frames:
        document["frames"] = [
            {"parent": e.parent, "child": e.child, "moving": e.moving} for e in recording.frames.edges
        ]
    return document


def _camera(camera: Any) -> dict[str, Any]:
    return {
        "width": camera.width,
        "height": camera.height,
        "K": camera.K.tolist(),
        "distortion": camera.distortion,
        "coefficients": camera.coefficients.tolist(),
    }


def _show_clocks(recording: Recording) -> None:
    from transect.recording.clock_comparison import compare_clocks, comparison_row

    from .shared.output import show_table

    click.echo("")
    headings = (
        "stream",
        "clock",
        "log - sample time: median",
        "min",
        "max",
        "drift",
        "backwards",
        "repeated",
    )
    rows = [comparison_row(compare_clocks(s)) for s in recording.streams]
    show_table(headings, rows, right=frozenset(range(2, 8)))
