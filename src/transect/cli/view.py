"""`transect view PATH|RUN`: scrub a recording in a browser, on this machine alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ._opening import Opening, opening

if TYPE_CHECKING:
    from transect.view.viewer import Scene


@click.command()
@opening("streams", "times", metavar="PATH|RUN...")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: any that is free.")
@click.option("--browser/--no-browser", default=True, help="Open a browser, or only print the address.")
@click.option("--check/--no-check", default=True, help="Judge the sensors meanwhile.")
def command(opening: Opening, port: int, browser: bool, check: bool) -> int:
    """Look at a recording: cameras, lasers and clouds in 3-D, plots, verdicts, all at one time.

    PATH is a recording, RUN the folder of a run, whose recording is opened and whose path is shown. The page
    is served on the loopback address, to those who know the address that is printed. Ctrl-C ends it.
    """
    import webbrowser

    from transect.view.viewer import Viewer

    from ._opening import report_losses

    scene = _open_scene(opening)
    report_losses(scene.recording)
    viewer = Viewer(scene, port, check)
    click.echo(f"{scene.recording.name} is shown at {viewer.url}")
    click.echo("Ctrl-C ends it.")
    if browser:
        webbrowser.open(viewer.url)
    try:
        viewer.serve()
    except KeyboardInterrupt:
        click.echo("ended")
    finally:
        viewer.close()
    return 0


def _open_scene(opening: Opening) -> Scene:
    """Open the recording that is meant, by itself or by the first run, and the paths of the runs."""
    from transect.evaluation.loading import split_run
    from transect.evaluation.paths import path_of_trajectory
    from transect.evaluation.runs.figures import own_trajectory
    from transect.view.report.runs import recorded_by
    from transect.view.viewer import Scene

    from ._progress import Progress

    runs = [Path(path) for path in opening.paths if split_run(path) is not None]
    paths = tuple(path for path in opening.paths if split_run(path) is None)
    if runs and not paths:
        played = recorded_by(runs[0])
        options = tuple(f"{key}={value}" for key, value in played.get("options", {}).items())
        paths, read_as = tuple(played["paths"]), played.get("format") or None
        opening = dataclasses.replace(
            opening, read_as=opening.read_as or read_as, options=opening.options or options
        )
    found = [(run.resolve().name, own_trajectory(run)) for run in runs]
    extra = tuple(path_of_trajectory(path, name) for name, path in found if path is not None)
    return Scene(dataclasses.replace(opening, paths=paths).open(Progress()), extra)
