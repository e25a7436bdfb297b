"""The trajectories and the model of a run, compared with the truth of its recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from transect import formats
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.evaluation.body_frames import are_unrelated
from transect.evaluation.inputs import open_input
from transect.evaluation.positions.paths import DOWN_IS_Y
from transect.evaluation.report import EvaluationSettings, evaluate, report_failure
from transect.evaluation.result import POSE, Input, Result, count_successes, port_of_path, warnings_of
from transect.geometry import robust
from transect.geometry.align import MIN_EXTENT_RATIO
from transect.recording import Recording, Stream
from transect.recording.place_maps import FOLDER, MAP, is_anchored

from .reference import Fed, reference_of

if TYPE_CHECKING:
    from transect.engine import Run

MAX_STRAIGHT_RATIO = 0.05  # of the extents of a path across and along its line: straight up to here
MAP_FRAME = "map"  # frame of poses whose axes are measured as east, north, up: its roll needs no alignment
MODEL = "pointCloud"  # port of the points seen from the run's own trajectory, in the frame of its first pose


def judge_trajectories(run: Run, folder: Path, recording: Recording, truth: Stream) -> Iterator[Result]:
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
    found, warnings = count_successes(folder), warnings_of(folder)
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
    is_same_frame = fed != "not" and reference.trajectory.frame == estimate.trajectory.frame != ""
    level = _is_level(estimate) and reference.trajectory.frame not in DOWN_IS_Y
    sides, trees = (reference.trajectory, estimate.trajectory), (reference.frames, estimate.frames)
    have_attitudes = all(side.orientations is not None for side in sides)
    by_first_pose = straight and have_attitudes and not level and not are_unrelated(*sides, *trees)
    by_direction = (
        not level and not have_attitudes and any(_is_straight(each, MIN_EXTENT_RATIO) for each in positions)
    )
    settings = EvaluationSettings(
        align="none"
        if is_same_frame
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
    return evaluate(reference, estimate, settings, command)


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


def _is_straight(positions: Floats, ratio: float = MAX_STRAIGHT_RATIO) -> bool:
    """Return whether positions (n, 3) extend across their line by at most this ratio of their length."""
    extents = np.linalg.svd(positions - positions.mean(axis=0), compute_uv=False)
    return bool(extents[1] <= ratio * extents[0]) if len(extents) > 1 else True


def model_metrics(folder: Path, recording: Recording) -> dict[str, dict[str, float]]:
    """Return how far a model of the scene is from the true ground; nothing where one of them is missing."""
    from transect.evaluation.clouds import model_errors

    if not ((folder / f"{MODEL}.ply").is_file() and (folder / f"{POSE}.tum").is_file()):
        return {}
    points = formats.open(folder / f"{MODEL}.ply").streams[0][0].payload.points
    camera = open_input(f"{folder}:{POSE}").trajectory
    found = model_errors(recording, points, camera.t_ns, camera.child)
    return {} if found is None else {"cloud": found.metric()}
