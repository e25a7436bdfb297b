"""What is known of runs, from their folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from transect.errors import ParseError
from transect.evaluation.result import load_result, results_of_run

from ..axes import Axis
from .facts import RecordingFacts, RunFacts


def recorded_by(folder: Path) -> Mapping[str, Any]:
    """Return what a run says of the recording that it played: its paths, as they are now, format, options.

    A path that is not there from here is looked for from the folders above the run: it was typed there.
    """
    from transect.engine.folder import find_recorded

    try:
        recorded = _document(folder).get("request", {}).get("recording", {})
        return {**recorded, "paths": [find_recorded(path, folder) for path in recorded.get("paths", ())]}
    except (AttributeError, TypeError, ValueError) as error:
        where, why = str(folder / "run.json"), str(error)
        raise ParseError(f"{folder} is not a whole run", where=where, why=why) from error


def _document(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ParseError(f"{folder} is not a whole run", where=str(path), why=str(error)) from error


def gather_run(
    folder: Path, label: str, recordings: Sequence[RecordingFacts], number: int | None, gone: str = "",
    rename: bool = False, truth: str = "",
) -> RunFacts:  # fmt: skip
    """Return what a page says of a run.

    Parameters
    ----------
    label : str
        That tells it from the others of the page.
    number : int or None
        Which of the recordings it played; `gone` says why there is none.
    rename : bool
        Whether its results are called by the label: two runs of one compound have one name.
    truth : str
        What to judge it by instead of its recording: a file of poses, or ``PATH:STREAM``.
    """
    from transect.engine import Run
    from transect.engine.folder import check_run
    from transect.evaluation.runs.evaluation import judge_by
    from transect.evaluation.runs.figures import own_trajectory

    run = Run.load(folder)
    trajectory = own_trajectory(folder)
    results = tuple(judge_by(folder, truth, run.name) if truth else map(load_result, results_of_run(folder)))
    axis = recordings[number].axis if number is not None else None
    if axis is None and trajectory is not None and len(trajectory) > 1 and trajectory.clock != "index":
        first, last = int(trajectory.t_ns.min()), int(trajectory.t_ns.max())
        axis = Axis(f"r-{label}", trajectory.clock, first, last)
    if rename:
        results = tuple(replace(r, estimate=r.estimate.replace(run.name, label)) for r in results)
    results = tuple(sorted(results, key=lambda r: "ate_translation" not in r.arrays))
    checked = check_run(folder)
    return RunFacts(label, folder, run, _document(folder), results, trajectory, number, axis, checked, gone)
