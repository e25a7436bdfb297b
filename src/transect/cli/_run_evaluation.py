"""What `transect run` says of its poses and map where the recording has truth: table, results, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transect.base.clocks import NS
from transect.errors import TransectError

from ._run_maps import judged_map
from ._run_reference import POSE, Fed, reference_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from transect.engine import Run
    from transect.evaluation.result import Input, Result
    from transect.recording import Recording, Stream

FIGURES = "evaluation"
"""The folder of the figures, below the run's."""
STRAIGHT = 0.05
MAP_FRAME = "map"
"""The frame of poses that is east, north, up by what was measured: it need not be rolled onto the truth."""
MODEL = "pointCloud"
"""The port of what was seen from the run's own trajectory, in the frame of its first pose."""


def evaluated(run: Run, recording: Recording) -> list[Result]:
    """Compare trajectories and the map that a run wrote with the recording's; write results and figures.

    One that cannot be compared is a result too, which says why. What the run cost stands in each, and alone
    in `run.result` where there is nothing to compare.
    """
    from transect.evaluation.loading import POSES
    from transect.types import NavFix

    truth = recording.truth
    if run.folder is None:
        return []
    judged = truth is not None and issubclass(truth.type, (*POSES, NavFix)) and not run.config["used_truth"]
    results = list(_results(run, run.folder, recording, truth)) if judged and truth else []
    costs = {"run": _costs(run)}
    metrics = costs | (_model_metrics(run.folder, recording) if results else {})
    results = _joined(results, judged_map(run.folder, recording, run.name))
    results = [replace(result, metrics={**result.metrics, **metrics}) for result in results]
    _write(results or [_bare(run, costs)], run.folder)
    if not judged:
        _draw_path(run.folder, run.name)
    _draw_clouds(run.folder)
    return results


def _joined(results: list[Result], made: Result | None) -> list[Result]:
    """Return results of which the first says also how good the map is; a map without poses has its own."""
    if made is None or not results:
        return results if made is None else [made]
    first, *others = results
    unlike = (f"the map is not compared: {made.failure}",) if made.failure else made.notes
    joined = replace(
        first,
        metrics={**first.metrics, **made.metrics},
        arrays={**first.arrays, **made.arrays},
        notes=(*first.notes, *unlike),
    )
    return [joined, *others]


def _model_metrics(folder: Path, recording: Recording) -> dict[str, dict[str, float]]:
    """Return how far a model of the scene is from the true ground; nothing where one of them is missing."""
    from transect import formats
    from transect.evaluation.reconstruction import model_errors

    from ._eval_open import open_input

    if not ((folder / f"{MODEL}.ply").is_file() and (folder / f"{POSE}.tum").is_file()):
        return {}
    points = formats.open(folder / f"{MODEL}.ply").streams[0][0].payload.points
    camera = open_input(f"{folder}:{POSE}").trajectory
    found = model_errors(recording, points, camera.t_ns, camera.child)
    return {} if found is None else {"cloud": found.metric()}


def _draw_path(folder: Path, name: str) -> None:
    """Draw where the run went, if it has poses, where nothing says how good they are."""
    from transect.draw.evaluation import path_figure
    from transect.draw.figures import save_figure

    from ._eval_open import open_input

    if (folder / f"{POSE}.tum").is_file():
        positions = open_input(f"{folder}:{POSE}").trajectory.positions
        save_figure(path_figure(positions, title=name), folder / FIGURES / "path.png", dpi=200)


def _draw_clouds(folder: Path) -> None:
    """Draw every cloud that the run wrote, from above."""
    from transect import formats
    from transect.draw.clouds import DRAWN, cloud_figure
    from transect.draw.figures import save_figure

    for file in sorted(folder.glob("*.ply")):
        points = formats.open(file).streams[0][0].payload.points
        if len(points) >= DRAWN:
            save_figure(cloud_figure(points, title=file.stem), folder / FIGURES / f"{file.stem}.png", dpi=130)


def _costs(run: Run) -> dict[str, float | int]:
    """Return what a run took, its steps, and how many of them gave nothing."""
    assert run.stats is not None
    nodes = run.stats.nodes.values()
    return {
        "wall_s": run.stats.wall_s,
        "nodes_s": sum(node.wall_total for node in nodes),
        "steps": sum(node.calls for node in nodes),
        "failed": sum(number for node in nodes for number in node.skipped.values()),
    }


def _bare(run: Run, costs: Mapping[str, Mapping[str, Any]]) -> Result:
    from transect.evaluation.result import Result

    return Result(run.name, "", costs, notes=("not judged: no truth",))


def show_evaluation(results: Sequence[Result], folder: Path) -> None:
    """Print the numbers, where something was judged, and where the figures are."""
    from ._eval_report import show

    if results:
        click.echo("")
        show(results, "table", "metrics", as_json=False)
    if drawn := sorted((folder / FIGURES).glob("*.png")):
        click.echo(f"figures: {', '.join(str(path) for path in drawn)}")


def _results(run: Run, folder: Path, recording: Recording, truth: Stream) -> Iterator[Result]:
    """Yield a result for each trajectory, `pose` first; ports that gave the same poses have one together."""
    from transect.evaluation.report import failed

    ports = sorted((path.stem for path in folder.glob("*.tum")), key=lambda port: (port != POSE, port))
    if not ports:
        return
    try:
        reference, fed = reference_of(run, recording, truth)
    except TransectError as error:
        click.echo(f"not evaluated: {error}", err=True)
        return
    seen: set[bytes] = set()
    for port in ports:
        name = run.name if port == POSE else f"{run.name}:{port}"
        try:
            estimate = _estimate(folder, port, recording, name)
            poses = estimate.trajectory.t_ns.tobytes() + estimate.trajectory.positions.tobytes()
            if poses not in seen:
                yield _compared(reference, estimate, fed, f"transect run {run.name}")
            seen.add(poses)
        except TransectError as error:
            yield failed(reference, name, error.what, f"transect run {run.name}")


def _estimate(folder: Path, port: str, recording: Recording, name: str) -> Input:
    from ._eval_open import open_input

    return replace(open_input(f"{folder}:{port}"), name=name, frames=recording.frames)


def _compared(reference: Input, estimate: Input, fed: Fed, command: str) -> Result:
    """Compare one trajectory; the truth is interpolated, as sensors and truth rarely share stamps.

    Over gaps of the truth, longer than its own rate, nothing is compared. A path that is too straight to be
    turned onto the truth, as its roll would be anything, is turned about the vertical if it is level, else
    compared from its first pose on. One that was `fed` with positions of the truth is compared as it is, if
    it is in their frame; with some of them, there is no way through the others to measure motions along.
    """
    import numpy as np

    from transect.evaluation.report import Asked, evaluate

    usual = (
        float(np.median(np.diff(reference.trajectory.t_ns))) / NS if len(reference.trajectory) > 1 else 0.0
    )
    straight = any(_is_straight(side.trajectory.positions) for side in (reference, estimate))
    there = fed != "not" and reference.trajectory.frame == estimate.trajectory.frame != ""
    level = estimate.trajectory.frame == MAP_FRAME
    asked = Asked(
        align="none" if there else "se3" if not straight else "yaw" if level else "origin",
        relations=("ate",) if fed == "in part" else ("ate", "rpe", "segments", "drift"),
        by="interpolate",
        max_diff=1.5 * usual,
        least=0.0,
    )
    return evaluate(reference, estimate, asked, command)


def _is_straight(positions: NDArray[np.float64]) -> bool:
    """Tell whether positions (n, 3) extend across their line by less than a twentieth of their length."""
    import numpy as np

    extents = np.linalg.svd(positions - positions.mean(axis=0), compute_uv=False)
    return bool(extents[1] <= STRAIGHT * extents[0]) if len(extents) > 1 else True


def _write(results: Sequence[Result], folder: Path) -> None:
    from ._eval_report import write

    for result in results:
        _, _, port = result.estimate.rpartition(":")
        name = POSE if result.reference else "run"
        result.save(folder / f"{port if ':' in result.estimate else name}.result")
    if shown := [result for result in results if result.arrays]:
        write(shown, None, folder / FIGURES, None)
