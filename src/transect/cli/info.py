"""`transect info PATH`: what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ._options import json_option, opening

if TYPE_CHECKING:
    from transect.recording import Recording


@click.command()
@opening
@json_option
@click.option("--clocks", is_flag=True, help="Compare sample time with log time, and the streams' clocks.")
@click.option("--frames", is_flag=True, help="Print the tree of frames.")
def command(
    paths: tuple[str, ...],
    strict: bool,
    read_as: str | None,
    options: tuple[str, ...],
    as_json: bool,
    clocks: bool,
    frames: bool,
) -> int:
    """Show what a recording holds.

    Streams, types, rates, spans, gaps, and what could not be read.

    Several paths are joined into one recording. Times are UTC unless the table names another clock.
    """
    from ._progress import Progress
    from ._recordings import exit_for, open_recording
    from ._tables import show_json

    recording = open_recording(paths, read_as, options, strict, Progress(quiet=as_json))
    if as_json:
        show_json(_document(recording, clocks, frames))
    else:
        click.echo(repr(recording))
        if frames:
            click.echo(f"\n{recording.frames!r}")
        if clocks:
            _show_clocks(recording)
    return exit_for(recording)


def _document(recording: Recording, clocks: bool, frames: bool) -> dict[str, Any]:
    from dataclasses import asdict

    from transect.recording.summary import stream_facts
    from transect.recording.timing import compare_clocks

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
        "sources": [asdict(s) for s in recording.provenance.sources],
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
    from transect.recording.timing import compare_clocks, comparison_row

    from ._tables import show_table

    click.echo("")
    headings = ("stream", "clock", "log minus sample: median", "min", "max", "drift", "backwards", "repeated")
    rows = [comparison_row(compare_clocks(s)) for s in recording.streams]
    show_table(headings, rows, right=frozenset(range(2, 8)))
