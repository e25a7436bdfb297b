"""Estimates that a person names by their paths, each compared with one reference: poses, or height maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from transect.base import clocks
from transect.errors import TimeError, TransectError, UsageError
from transect.recording import Loss

from .association import rows
from .inputs import Reader, open_input, split_name
from .report import EvaluationSettings, evaluate, judge_relations, report_failure
from .result import Input, Result, distinct_names, warnings_of


@dataclass
class TrajectoryComparisons:
    """Results in the order of the estimates; errors and losses by the path that they are of."""

    results: list[Result] = field(default_factory=list[Result])
    errors: dict[str, TransectError] = field(default_factory=dict[str, TransectError])
    losses: dict[str, tuple[Loss, ...]] = field(default_factory=dict[str, tuple[Loss, ...]])


def judge_trajectories(
    paths: Sequence[str],
    asked: EvaluationSettings,
    *,
    span: tuple[str | None, str | None] = (None, None),
    command: str = "",
    strict: bool = False,
    reader: Reader | None = None,
) -> TrajectoryComparisons:
    """Compare trajectories with the first of them; an error of one of several does not stop the others.

    Parameters
    ----------
    paths : sequence of str
        The reference, then the estimates: files of poses, recordings, ``PATH:STREAM``, folders of runs. If
        relations from a file are all that is asked for, there is no reference: all are estimates.
    span : tuple of two str or None
        First time of the reference that is compared, and the time before which it ends: ``+60s`` counts from
        its first pose.
    command : str
        What was typed, for the provenance.
    strict : bool
        Raise if something could not be read.
    reader : Reader, optional
        Format and options of the recordings.

    Raises
    ------
    TransectError
        If the reference cannot be opened, or the only estimate cannot be compared.
    """
    found, reader = TrajectoryComparisons(), reader or Reader()
    by_relations = is_judged_by_relations(asked)
    estimates = paths if by_relations else paths[1:]
    if not estimates:
        raise UsageError("there is nothing to compare", hint="transect eval REF EST")
    reference = None if by_relations else _cut(_open(paths[0], True, strict, found, reader), *span)

    names: dict[str, str] = {}

    def compare(path: str) -> Result:
        estimate = _open(path, False, strict, found, reader)
        names[path] = estimate.name
        return _compare(reference, estimate, asked, command)

    def fail(path: str, error: TransectError) -> Result:
        return report_failure(reference, names.get(path, Path(path).name), error.what, command)

    _judge_each(estimates, compare, fail, found)
    reader.refuse_unused()
    return found


def judge_maps(
    paths: Sequence[str],
    *,
    register: bool = True,
    shift: ArrayLike = (0.0, 0.0, 0.0),
    reach: float | None = None,
    command: str = "",
    strict: bool = False,
    reader: Reader | None = None,
) -> TrajectoryComparisons:
    """Compare height maps with the first of them; an error of one of several does not stop the others.

    Parameters
    ----------
    paths : sequence of str
        The reference, then the estimates: ``*.tif``, ``PATH:STREAM``, ``RUN``, ``RUN:PORT``.
    register : bool
        Find the shift in x, y, z that fits best, and take it out.
    shift : (3,)
        Metres that are added to the estimates first.
    reach : float, optional
        Metres that they may then be off; ten cells of the reference by default.
    """
    from .map_reports import MapInput, evaluate_maps, open_map

    if len(paths) < 2:
        raise UsageError("there is nothing to compare", hint="transect eval REF.tif EST.tif")
    found, reader = TrajectoryComparisons(), reader or Reader()

    def open_one(path: str) -> MapInput:
        grid, losses = open_map(path, reader)
        _note_losses(path, losses, strict, found)
        return replace(grid, notes=(*warnings_of(Path(split_name(path)[0])), *grid.notes))

    reference = open_one(paths[0])

    def compare(path: str) -> Result:
        return evaluate_maps(
            reference, open_one(path), register=register, shift=shift, reach=reach, command=command
        )

    def fail(path: str, error: TransectError) -> Result:
        return Result(Path(path).name, reference.name, failure=error.what)

    _judge_each(paths[1:], compare, fail, found)
    reader.refuse_unused()
    return found


def is_judged_by_relations(settings: EvaluationSettings) -> bool:
    """Return whether a file of relations is all that estimates are held against."""
    return settings.truths is not None and settings.relations == ("relations",)


def _judge_each(
    paths: Sequence[str],
    compare: Callable[[str], Result],
    fail: Callable[[str, TransectError], Result],
    found: TrajectoryComparisons,
) -> None:
    for path in paths:
        try:
            result = compare(path)
        except TransectError as error:
            if len(paths) == 1:
                raise
            found.errors[path] = error
            result = fail(path, error)
        found.results.append(result)
    names = distinct_names([result.estimate for result in found.results], paths)
    found.results = [replace(r, estimate=name) for r, name in zip(found.results, names, strict=True)]


def _open(path: str, truth: bool, strict: bool, found: TrajectoryComparisons, reader: Reader) -> Input:
    opened = open_input(path, truth=truth, reader=reader)
    _note_losses(path, opened.losses, strict, found)
    return replace(opened, notes=(*warnings_of(Path(split_name(path)[0])), *opened.notes))


def _cut(source: Input, start: str | None, end: str | None) -> Input:
    """Return the part of an input between two times; `end` is not included."""
    if start is None and end is None:
        return source
    path = source.trajectory
    first = int(path.t_ns[0]) if len(path) else 0
    keep = np.ones(len(path), dtype=bool)
    if start is not None:
        keep &= path.t_ns >= clocks.resolve(start, first, path.clock)
    if end is not None:
        keep &= path.t_ns < clocks.resolve(end, first, path.clock)
    if not keep.any():
        raise TimeError(
            f"{source.name} has no pose between {start or 'its start'} and {end or 'its end'}",
            why=f"it lasts from {clocks.text_from_ns(first, path.clock)} "
            f"to {clocks.text_from_ns(int(path.t_ns[-1]) if len(path) else 0, path.clock)}",
        )
    note = f"the reference is compared from {start or 'its start'} to {end or 'its end'}"
    return replace(source, trajectory=rows(path, np.flatnonzero(keep)), notes=(*source.notes, note))


def _note_losses(path: str, losses: tuple[Loss, ...], strict: bool, found: TrajectoryComparisons) -> None:
    if losses and strict:
        raise losses[0].error()
    if losses:
        found.losses[path] = losses


def _compare(reference: Input | None, estimate: Input, settings: EvaluationSettings, command: str) -> Result:
    if reference is not None:
        return evaluate(reference, estimate, settings, command)
    assert settings.truths is not None
    return judge_relations(estimate, settings.truths, settings, command)
