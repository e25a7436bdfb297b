"""`transect view PATH|RUN`: a local viewer of recordings in the browser."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import ExitCode
from .shared.recordings import Opening, cut_times, opening

if TYPE_CHECKING:
    from transect.view.viewer import ViewerScene


@click.command()
@opening("streams", "times", metavar="PATH|RUN...")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; default: any free one.")
@click.option("--browser/--no-browser", default=True, help="Open the browser, or only print the address.")
@click.option("--check/--no-check", default=True, help="Check the sensors in the background.")
@click.option("--urdf", type=click.Path(path_type=Path), metavar="FILE", help="Geometry of the robot.")
@click.option("--rerun", is_flag=True, help="Show the recording in Rerun instead.")
@click.option("--save", type=click.Path(path_type=Path), metavar="X.rrd", help="Write a Rerun file instead.")
def command(
    opening: Opening, port: int, browser: bool, check: bool, urdf: Path | None, rerun: bool, save: Path | None
) -> int:
    """View a recording in the browser, in 3-D and over time.

    Images, laser scans, clouds, the robot, maps, plots and verdicts at one time, which a cursor selects. PATH
    is a recording, RUN the folder of a run, whose recording is opened and whose trajectory, clouds, maps and
    signals are shown. The page is served on the loopback interface only, at a secret address. The command
    ends when the page is closed, or with Ctrl-C.

    transect run COMPOUND PATH --view shows a compound while it runs.
    """
    from .shared.recordings import report_losses

    scene = _open_scene(opening)
    for text in scene.failures:
        click.echo(f"BAD: {text}")
    for text in scene.warnings:
        click.echo(f"warning: {text}", err=True)
    code = report_losses(scene.recording)
    if urdf is not None:
        scene = _dress(scene, urdf)
    if save is not None or rerun:
        return max(code, _export_to_rerun(scene, save))
    _serve(scene, port, browser, check)
    return code


def _export_to_rerun(scene: ViewerScene, save: Path | None) -> int:
    """Export a scene to Rerun, as a file or in its window; return the exit code."""
    from transect.view.rerun_bridge import save_scene, show_scene

    warnings = show_scene(scene) if save is None else save_scene(scene, save)
    for sentence in warnings:
        click.echo(f"warning: {sentence}", err=True)
    if save is not None:
        click.echo(f"wrote {save}")
    return ExitCode.DATA_LOST if warnings else 0


def _serve(scene: ViewerScene, port: int, browser: bool, check: bool) -> None:
    import webbrowser

    from transect.view.viewer import Viewer

    viewer = Viewer(scene, port, check)
    click.echo(f"view {scene.recording.name} at {viewer.url}")
    click.echo("close the page, or press Ctrl-C, to stop")
    if browser:
        webbrowser.open(viewer.url)
    try:
        viewer.serve()
    except KeyboardInterrupt:
        click.echo("stopped")
    finally:
        viewer.close()


def _dress(scene: ViewerScene, urdf: Path) -> ViewerScene:
    """Return a scene with the robot's geometry from a URDF."""
    from transect.view.viewer.encoding import apply_urdf

    dressed, said = apply_urdf(scene, urdf)
    for sentence in said:
        click.echo(f"warning: {sentence}", err=True)
    return dressed


def _open_scene(opening: Opening) -> ViewerScene:
    """Open the given recording, or that of the first run, and the outputs of the runs."""
    from transect.engine.folder import check_run
    from transect.evaluation.inputs import split_run, trajectory_of_run
    from transect.evaluation.positions.paths import path_of_trajectory
    from transect.view.report.extraction import recorded_by
    from transect.view.viewer import ViewerScene
    from transect.view.viewer.run_streams import streams_of_run

    from .shared.output import ProgressDisplay

    runs = [Path(path) for path in opening.paths if split_run(path) is not None]
    paths = tuple(path for path in opening.paths if split_run(path) is None)
    if runs and not paths:
        played = recorded_by(runs[0])
        options = tuple(f"{key}={value}" for key, value in played.get("options", {}).items())
        paths, read_as = tuple(played["paths"]), played.get("format") or None
        opening = dataclasses.replace(
            opening, read_as=opening.read_as or read_as, options=opening.options or options
        )
    recording = dataclasses.replace(opening, paths=paths).open(ProgressDisplay())
    if not runs:
        return ViewerScene(opening.cut(recording))
    found = [(run, trajectory_of_run(run)) for run in runs]
    extra = tuple(path_of_trajectory(path, run.resolve().name) for run, path in found if path is not None)
    start_ns = ViewerScene(cut_times(recording, opening.start, opening.end)).axis.start_ns
    made = [
        stream
        for run, path in found
        for stream in streams_of_run(run, path.frame if path is not None else "", start_ns)
    ]
    known = {stream.name for stream in recording}
    new = tuple(stream for stream in made if stream.name not in known)
    several, checked = len(runs) > 1, [check_run(run) for run in runs]
    failures = tuple(
        f"{f'{run.name}: ' if several else ''}{text}" for run in checked for text in run.failures
    )
    warnings = tuple(run.outdated for run in checked if run.changes)
    whole = recording.replace(streams=(*recording.streams, *new))
    return ViewerScene(opening.cut(whole), extra, failures=failures, warnings=warnings)
