"""A run against the truth of its recording: results and figures, written into its folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.errors import TransectError
from transect.evaluation.inputs import trajectory_of_run
from transect.evaluation.positions.paths import facts_of
from transect.evaluation.positions.streams import POSES
from transect.evaluation.result import FIGURES, HEIGHT_MAP, SUFFIX, Result, count_successes, port_of_path
from transect.evaluation.tables import SETTINGS, path_arrays, settings_of
from transect.recording import Recording
from transect.types import NavFix, Trajectory

if TYPE_CHECKING:
    from transect.engine import Run


@dataclass
class JudgedRun:
    """How good a run is."""

    # One for each trajectory, and the height map; empty where nothing can be compared
    results: list[Result] = field(default_factory=list[Result])
    error: TransectError | None = None  # why the truth of the recording could not be used
    trajectory: Trajectory | None = None  # the poses of the run
    # Pictures that were drawn, below the folder of the run
    figures: list[str] = field(default_factory=list[str])

    def summary(self) -> str:
        """Return what matters in one line: poses, length, duration, errors."""
        parts = list[str]()
        first = self.results[0] if self.results else None
        if self.trajectory is not None:
            matched = first.pairs if first and "ate" in first.metrics else None
            poses = f"{len(self.trajectory)} poses"
            if matched and matched["by"] != "cells":
                poses = f"{matched['matched']} of {matched['candidates']} poses compared"
            facts = facts_of(self.trajectory)
            parts += [poses, f"{facts['length_m']:.1f} m"]
            parts += [f"{facts['duration_s']:.1f} s"] if np.isfinite(facts["duration_s"]) else []
        if first and (ate := first.metrics.get("ate")):
            percent = "" if ate["percent"] is None else f" ({ate['percent']:.2g} % of the path)"
            parts.append(f"ATE {ate['translation']['rmse']:.3g} m{percent}")
        if first and (heights := first.metrics.get("map")):
            parts.append(f"map RMSE {heights['rmse']:.3g} m")
        return ", ".join(parts)


def judge_run(run: Run, recording: Recording, draw: Callable[[Path], object] | None = None) -> JudgedRun:
    """Compare trajectories and the map that a run wrote with the recording's; write results and figures.

    One that cannot be compared is a result too, which says why. What the run cost stands in each, and alone
    in `run.result` where there is nothing to compare. A run that was not written to a folder is not judged.

    Parameters
    ----------
    draw : callable, optional
        Draws the figures of a folder; by default `draw_run`.
    """
    judged = JudgedRun()
    folder, truth = run.folder, recording.truth
    if folder is None:
        return judged
    judged.trajectory = trajectory_of_run(folder)
    can_be_judged = (
        truth is not None and issubclass(truth.type, (*POSES, NavFix)) and not run.config["used_truth"]
    )
    results: list[Result] = []
    metrics: dict[str, Any] = {"run": _costs(run), **count_successes(folder)}
    if can_be_judged and truth:  # a run without truth needs none of what compares
        from .comparison import judge_trajectories, model_metrics

        try:
            results = list(judge_trajectories(run, folder, recording, truth))
        except TransectError as error:
            judged.error = error
        metrics |= model_metrics(folder, recording) if results else {}
    if (folder / f"{HEIGHT_MAP}.tif").is_file():
        from .reference import judge_map

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
    if draw is None:
        from .figures import draw_run as draw  # matplotlib is imported only where this process draws
    draw(folder)
    judged.figures = sorted(f"{FIGURES}/{path.name}" for path in (folder / FIGURES).glob("*.png"))
    return judged


def _why_not_judged(run: Run, recording: Recording, judged: JudgedRun) -> str:
    if run.config["used_truth"]:
        return "not judged: it used truth"
    if recording.truth is not None and judged.trajectory is None:
        return "not judged: it made no poses that truth could be compared with"
    return "not judged: no truth"


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


def _save(result: Result, folder: Path) -> None:
    _, _, port = result.estimate.rpartition(":")
    name = port_of_path(folder) if result.reference else "run"
    result.save(folder / f"{port if ':' in result.estimate else name}{SUFFIX}")
