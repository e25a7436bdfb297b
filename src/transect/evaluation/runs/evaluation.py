"""A run against the truth of its recording: results and figures, written into its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect import formats
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.evaluation.body_frames import are_unrelated
from transect.evaluation.inputs import open_input
from transect.evaluation.positions.streams import POSES
from transect.evaluation.report import DOWN_IS_Y, Asked, evaluate, facts_of, report_failure
from transect.evaluation.result import POSE, SUFFIX, Input, Result, port_of_path, warnings_of
from transect.evaluation.tables import SETTINGS, path_arrays, settings_of
from transect.geometry import robust
from transect.geometry.align import FLAT
from transect.recording import Recording, Stream
from transect.recording.place_maps import FOLDER, MAP, is_anchored
from transect.types import NavFix, Trajectory

from .figures import FIGURES, draw_run, own_trajectory, plan_run
from .reference import Fed, judge_map, reference_of

if TYPE_CHECKING:
    from transect.engine import Run

STRAIGHT = 0.05
"""Extent across a line, as a share of that along it, below which a path is straight."""
MAP_FRAME = "map"
"""The frame of poses that is east, north, up by what was measured: it need not be rolled onto the truth."""
SUCCESS = "success"
"""The port by which a run says of each attempt whether it found a pose."""
MODEL = "pointCloud"
"""The port of what was seen from the run's own trajectory, in the frame of its first pose."""


@dataclass
class JudgedRun:
    """How good a run is.

    Attributes
    ----------
    results : list of Result
        One for each trajectory, and the height map; empty where nothing can be compared.
    error : TransectError or None
        Why the truth of the recording could not be used.
    trajectory : Trajectory or None
        The poses of the run.
    figures : list of str
        Pictures that were drawn, below the folder of the run.
    """

    results: list[Result] = field(default_factory=list[Result])
    error: TransectError | None = None
    trajectory: Trajectory | None = None
    figures: list[str] = field(default_factory=list[str])

    def summary(self) -> str:
        """Return what matters in one line: poses, length, duration, errors."""
        said = list[str]()
        first = self.results[0] if self.results else None
        if self.trajectory is not None:
            matched = first.pairs if first and "ate" in first.metrics else None
            poses = f"{len(self.trajectory)} poses"
            if matched and matched["by"] != "cells":
                poses = f"{matched['matched']} of {matched['candidates']} poses compared"
            facts = facts_of(self.trajectory)
            said += [poses, f"{facts['length_m']:.1f} m"]
            said += [f"{facts['duration_s']:.1f} s"] if np.isfinite(facts["duration_s"]) else []
        if first and (ate := first.metrics.get("ate")):
            percent = "" if ate["percent"] is None else f" ({ate['percent']:.2g} % of the path)"
            said.append(f"ATE {ate['translation']['rmse']:.3g} m{percent}")
        if first and (heights := first.metrics.get("map")):
            said.append(f"map RMSE {heights['rmse']:.3g} m")
        return ", ".join(said)


def judge_run(run: Run, recording: Recording, draw: Callable[[Path], object] = draw_run) -> JudgedRun:
    """Compare trajectories and the map that a run wrote with the recording's; write results and figures.

    One that cannot be compared is a result too, which says why. What the run cost stands in each, and alone
    in `run.result` where there is nothing to compare. A run that was not written to a folder is not judged.

    Parameters
    ----------
    draw : callable
        Draws the figures of a folder, as `draw_run`.
    """
    judged = JudgedRun()
    folder, truth = run.folder, recording.truth
    if folder is None:
        return judged
    judged.trajectory = own_trajectory(folder)
    can_be_judged = (
        truth is not None and issubclass(truth.type, (*POSES, NavFix)) and not run.config["used_truth"]
    )
    results: list[Result] = []
    if can_be_judged and truth:
        try:
            results = list(_judge_trajectories(run, folder, recording, truth))
        except TransectError as error:
            judged.error = error
    costs = {"run": _costs(run), **_count_found(folder)}
    metrics = costs | (_model_metrics(folder, recording) if results else {})
    results = _join(results, judge_map(folder, recording, run.name))
    judged.results = [replace(result, metrics={**result.metrics, **metrics}) for result in results]
    arrays = path_arrays(judged.trajectory)
    bare = Result(
        run.name,
        "",
        _describe(run, judged.trajectory),
        arrays,
        notes=(_why_not_judged(run, recording, judged),),
    )
    for result in judged.results or [bare]:
        _save(result, folder)
    if next(plan_run(folder), None) is not None:
        draw(folder)
    judged.figures = sorted(f"{FIGURES}/{path.name}" for path in (folder / FIGURES).glob("*.png"))
    return judged


def _why_not_judged(run: Run, recording: Recording, judged: JudgedRun) -> str:
    if run.config["used_truth"]:
        return "not judged: it used truth"
    if recording.truth is not None and judged.trajectory is None:
        return "not judged: it made no poses that truth could be compared with"
    return "not judged: no truth"


def _judge_trajectories(run: Run, folder: Path, recording: Recording, truth: Stream) -> Iterator[Result]:
    """Yield a result for each trajectory, that of the path first."""
    estimates = open_paths(folder, run.name)
    if not estimates:
        return
    reference, fed = reference_of(run, recording, truth)
    command = f"transect run {run.name}"
    for name, estimate in estimates.items():
        if isinstance(estimate, TransectError):
            yield report_failure(reference, name, estimate.what, command)
            continue
        try:
            yield compare_run(reference, replace(estimate, frames=recording.frames), fed, command)
        except TransectError as error:
            yield report_failure(reference, name, error.what, command)


def open_paths(folder: Path, name: str) -> dict[str, Input | TransectError]:
    """Return the trajectories of a run by their names in tables, that of the path first.

    Ports that gave the same poses are one. A name says the port, unless `pose` is the only one.
    """
    path = port_of_path(folder)
    ports = sorted((file.stem for file in folder.glob("*.tum")), key=lambda port: (port != path, port))
    opened: dict[str, Input | TransectError] = {}
    seen: set[bytes] = set()
    for port in ports:
        try:
            found = open_input(f"{folder}:{port}")
        except TransectError as error:
            opened[port] = error
            continue
        poses = found.trajectory.t_ns.tobytes() + found.trajectory.positions.tobytes()
        if poses not in seen:
            opened[port] = found
        seen.add(poses)
    names = {port: name if list(opened) == [POSE] else f"{name}:{port}" for port in opened}
    return {
        names[port]: one if isinstance(one, TransectError) else replace(one, name=names[port])
        for port, one in opened.items()
    }


def judge_by(folder: Path, truth: str, name: str) -> list[Result]:
    """Compare the trajectories of a run with poses that are not in its recording.

    Parameters
    ----------
    truth : str
        A file of poses, or ``PATH:STREAM``.
    name : str
        What to call the run.
    """
    reference = open_input(truth, truth=True)
    results: list[Result] = []
    command = f"transect compare {folder} --truth {truth}"
    for called, estimate in open_paths(folder, name).items():
        try:
            if isinstance(estimate, TransectError):
                raise estimate
            results.append(compare_run(reference, estimate, "not", command))
        except TransectError as error:
            results.append(report_failure(reference, called, error.what, command))
    if not results:
        results.append(report_failure(reference, name, f"the run {folder} has no poses", command))
    found, warnings = _count_found(folder), warnings_of(folder)
    return [
        replace(result, metrics={**result.metrics, **found}, notes=(*warnings, *result.notes))
        for result in results
    ]


def compare_run(reference: Input, estimate: Input, fed: Fed, command: str) -> Result:
    """Compare one trajectory; the truth is interpolated, as sensors and truth rarely share stamps.

    Over gaps of the truth, longer than its own rate, nothing is compared. A path that is too straight to be
    turned onto the truth, as its roll would be anything, is turned about the vertical if both are level, else
    compared from its first pose on; if no frames connect the bodies, its positions alone are compared. Where
    one side has positions only there is no first pose to go by, and positions are turned onto positions;
    those on a line tell its direction alone. One that was `fed` with positions of the truth is compared as it
    is, if it is in their frame; with some of them, there is no path through the others to measure motions on.
    """
    times = reference.trajectory.t_ns
    usual = float(robust.median(np.diff(times))) / NS if len(times) > 1 else 0.0
    positions = [side.trajectory.positions for side in (reference, estimate)]
    straight = any(_is_straight(each) for each in positions)
    there = fed != "not" and reference.trajectory.frame == estimate.trajectory.frame != ""
    level = _is_level(estimate) and reference.trajectory.frame not in DOWN_IS_Y
    sides, trees = (reference.trajectory, estimate.trajectory), (reference.frames, estimate.frames)
    turned = all(side.orientations is not None for side in sides)
    by_first_pose = straight and turned and not level and not are_unrelated(*sides, *trees)
    by_direction = not level and not turned and any(_is_straight(each, FLAT) for each in positions)
    asked = Asked(
        align="none"
        if there
        else "origin"
        if by_first_pose
        else "line"
        if by_direction
        else "yaw"
        if straight and level
        else "se3",
        relations=("ate",) if fed == "in part" else ("ate", "rpe", "segments", "drift"),
        by="interpolate",
        max_diff=1.5 * usual,
        least=0.0,
    )
    return evaluate(reference, estimate, asked, command)


def _is_level(estimate: Input) -> bool:
    """Return whether z of an estimate's frame is known to be up.

    It is in `map`, with one exception: SLAM in space that had no fixes starts its map with the axes of its
    sensor, which may look down or be mounted at an angle.
    """
    if estimate.trajectory.frame != MAP_FRAME:
        return False
    folder = Path(estimate.path.rpartition(":")[0] or estimate.path)
    is_planar = not np.ptp(estimate.trajectory.positions[:, 2])
    return is_planar or not (folder / FOLDER / MAP).is_file() or is_anchored(folder)


def _is_straight(positions: Floats, ratio: float = STRAIGHT) -> bool:
    """Tell whether positions (n, 3) extend across their line by at most this ratio of their length."""
    extents = np.linalg.svd(positions - positions.mean(axis=0), compute_uv=False)
    return bool(extents[1] <= ratio * extents[0]) if len(extents) > 1 else True


def _model_metrics(folder: Path, recording: Recording) -> dict[str, dict[str, float]]:
    """Return how far a model of the scene is from the true ground; nothing where one of them is missing."""
    from transect.evaluation.clouds import model_errors

    if not ((folder / f"{MODEL}.ply").is_file() and (folder / f"{POSE}.tum").is_file()):
        return {}
    points = formats.open(folder / f"{MODEL}.ply").streams[0][0].payload.points
    camera = open_input(f"{folder}:{POSE}").trajectory
    found = model_errors(recording, points, camera.t_ns, camera.child)
    return {} if found is None else {"cloud": found.metric()}


def _costs(run: Run) -> dict[str, Any]:
    """Return what a run took, its steps, how many of them gave nothing, and how it was set."""
    assert run.stats is not None
    nodes = run.stats.nodes.values()
    return {
        "wall_s": run.stats.wall_s,
        "nodes_s": sum(node.wall_total for node in nodes),
        "steps": sum(node.calls for node in nodes),
        "skipped": sum(number for node in nodes for number in node.skipped.values()),
        SETTINGS: settings_of(run.config),
    }


def _describe(run: Run, trajectory: Trajectory | None) -> dict[str, dict[str, Any]]:
    """Return what is known of a run without truth: its costs, the digests of its outputs, its path."""
    described: dict[str, dict[str, Any]] = {
        "run": {**_costs(run), "digest": run.digest, "outputs": dict(run.ports)}
    }
    if trajectory is not None:
        facts = facts_of(trajectory)
        described["path"] = {"poses": len(trajectory), "length_m": facts["length_m"]}
    return described


def _join(results: list[Result], made: Result | None) -> list[Result]:
    """Return results of which the first says also how good the map is; a map without poses has its own."""
    if made is None or not results:
        return results if made is None else [made]
    first, *others = results
    notes = (f"the map is not compared: {made.failure}",) if made.failure else made.notes
    joined = replace(
        first,
        metrics={**first.metrics, **made.metrics},
        arrays={**first.arrays, **made.arrays},
        notes=(*first.notes, *notes),
    )
    return [joined, *others]


def _count_found(folder: Path) -> dict[str, dict[str, int]]:
    """Return how many of the attempts of a run succeeded, where it says so."""
    file = folder / f"{SUCCESS}.parquet"
    if not file.is_file():
        return {}
    values = formats.open(file).streams[0].column("value")
    return {"found": {"count": int(np.count_nonzero(values)), "of": len(values)}}


def _save(result: Result, folder: Path) -> None:
    _, _, port = result.estimate.rpartition(":")
    name = port_of_path(folder) if result.reference else "run"
    result.save(folder / f"{port if ':' in result.estimate else name}{SUFFIX}")
