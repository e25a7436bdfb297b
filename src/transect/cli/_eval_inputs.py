"""What `transect eval` is asked, and what comes of each estimate."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.errors import TransectError, UsageError

if TYPE_CHECKING:
    from transect.evaluation.report import Asked
    from transect.evaluation.result import Input, Result
    from transect.recording import Loss


@dataclass
class Judged:
    """Results in the order of the estimates; errors and losses by the path that they are of."""

    results: list[Result] = field(default_factory=list["Result"])
    errors: dict[str, TransectError] = field(default_factory=dict[str, TransectError])
    losses: dict[str, tuple[Loss, ...]] = field(default_factory=dict[str, "tuple[Loss, ...]"])


def asked_from(
    *, relations: tuple[str, ...], offset: str, pairs: str, relations_file: Path | None, **how: Any
) -> Asked:
    """Return how to compare, from what was typed."""
    from transect.evaluation.relations import read_relations
    from transect.evaluation.report import ALL, USUAL, Asked
    from transect.recording.source import sha256_bytes
    from transect.types import SourceFile

    named = bool(relations) and "all" not in relations
    chosen = tuple(r for r in ALL if r in relations) if named else ALL if relations else USUAL
    asked = Asked(relations=chosen, named=named, by=pairs, offset=_seconds(offset), **how)  # pyright: ignore[reportArgumentType]
    if relations_file is None:
        return asked
    content = relations_file.read_bytes()
    file = SourceFile(str(relations_file), len(content), sha256_bytes(content))
    judged = asked if relations else replace(asked, relations=("relations",))
    return replace(judged, truths=read_relations(relations_file), truths_file=file)


def _seconds(text: str) -> Any:
    if text.strip().lower() == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            f"--offset {text} is neither seconds nor auto", hint="--offset 0.25 or auto"
        ) from None


def command_line(verb: str) -> str:
    """Return the command as it was typed, for the provenance."""
    arguments = sys.argv[1:] if verb in sys.argv[1:] else [verb]
    return shlex.join(["transect", *arguments])


def judged(paths: tuple[str, ...], asked: Asked, command: str, strict: bool) -> Judged:
    """Compare each estimate; an error of one of several does not stop the others."""
    from transect.evaluation.report import failed

    from ._eval_open import distinct_names

    found = Judged()
    by_relations = judged_by_relations(asked)
    estimates = paths if by_relations else paths[1:]
    if not estimates:
        raise UsageError("there is nothing to compare", hint="transect eval REF EST")
    reference = None if by_relations else _opened(paths[0], True, strict, found)
    for path in estimates:
        name = Path(path).name
        try:
            estimate = _opened(path, False, strict, found)
            name = estimate.name
            result = _compared(reference, estimate, asked, command)
        except TransectError as error:
            if len(estimates) == 1:
                raise
            found.errors[path] = error
            result = failed(reference, name, error.what, command)
        found.results.append(result)
    names = distinct_names([result.estimate for result in found.results], estimates)
    found.results = [replace(r, estimate=name) for r, name in zip(found.results, names, strict=True)]
    return found


def judged_by_relations(asked: Asked) -> bool:
    """Tell whether a file of relations is all that estimates are held against."""
    return asked.truths is not None and asked.relations == ("relations",)


def _opened(path: str, truth: bool, strict: bool, found: Judged) -> Input:
    from ._eval_open import open_input

    opened = open_input(path, truth=truth)
    if opened.losses:
        if strict:
            raise opened.losses[0].error()
        found.losses[path] = opened.losses
    return opened


def _compared(reference: Input | None, estimate: Input, asked: Asked, command: str) -> Result:
    from transect.evaluation.report import evaluate, judge_relations

    if reference is not None:
        return evaluate(reference, estimate, asked, command)
    assert asked.truths is not None
    return judge_relations(estimate, asked.truths, asked, command)
