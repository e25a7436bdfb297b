"""Descriptions checked before anything runs: everything that is wrong with them, in one report per file.

Files that are checked together see each other: a description of a node is the interface that the wires of a
compound are checked against. What keeps a compound from running, or contradicts itself, is a problem; what
merely looks odd is a hint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transect.base.yaml_parts import Problem, problem_at
from transect.errors import TransectError, did_you_mean

from ..catalogue import Catalogue, catalogue_for
from ..description import CompoundText, ImplementationText
from ..reading import DescriptionError, examine, text_of
from .faces import Description, Faces, Finding, Given
from .flow import check_flow, flow_of
from .types import kind_of, known_names
from .words import documents, names, ports, spelling, vocabulary

__all__ = ["Problem", "Report", "check"]


@dataclass(frozen=True)
class Report:
    """What was found in one file, in the order of its lines.

    Attributes
    ----------
    problems, hints : list of Problem
    """

    problems: list[Problem] = field(default_factory=list[Problem])
    hints: list[Problem] = field(default_factory=list[Problem])


def check(paths: Sequence[Path], catalogue: Catalogue | None = None) -> dict[str, Report]:
    """Return what is wrong with descriptions, by file.

    Parameters
    ----------
    paths : sequence of Path
        Descriptions of nodes and compounds, in any form.
    catalogue : Catalogue, optional
        Where the names are found that the files themselves do not describe; by default beside each file and
        among transect's own.
    """
    reports = {str(path): Report() for path in paths}
    read = {Path(file): _read(file, report) for file, report in reports.items()}
    given = Given()
    for file, text in read.items():
        given.add(file, text)
    counts = vocabulary(filter(None, read.values()))
    for file, text in read.items():
        if text is not None:
            faces = Faces(given, catalogue or catalogue_for(file))
            _note(reports[str(file)], str(file), _findings(text, faces, counts))
    for report in reports.values():
        report.problems.sort(key=lambda problem: problem.line)
        report.hints.sort(key=lambda problem: problem.line)
    return reports


def _read(file: str, report: Report) -> Description | None:
    """Return as much of a file as can be read, and note what is wrong with it.

    A file that is YAML but for its tabs is read with blanks for them, so that others are checked against it.
    """
    try:
        text = text_of(file)
    except DescriptionError as error:
        report.problems.extend(error.problems)
        return None
    description, problems = examine(text, file)
    report.problems.extend(problems)
    if description is None and "\t" in text:
        description, _ = examine(text.expandtabs(), file)
    return description


def _note(report: Report, file: str, findings: Iterable[Finding]) -> None:
    for line, what, hint, grave in dict.fromkeys(findings):
        (report.problems if grave else report.hints).append(problem_at(file, line, what, hint))


def _findings(text: Description, faces: Faces, counts: Counter[str]) -> Iterator[Finding]:
    yield from names(text)
    yield from documents(text)
    yield from spelling(text, counts)
    if not isinstance(text, CompoundText):
        yield from _types(text)
        return
    also: set[type] = set()
    for implementation in text.implementations.values():
        flow, findings = flow_of(text, implementation, faces)
        also |= flow.types
        yield from findings
        yield from check_flow(flow)
    yield from _types(text, also)
    yield from _nesting(text, faces)


def _types(text: Description, also: Iterable[type] = ()) -> Iterator[Finding]:
    """Types of ports and operations that are not known."""
    operations = text.operations if isinstance(text, CompoundText) else ()
    typed = [(port.line, port.name, port.type) for port in ports(text)]
    typed += [(each.line, each.name, each.output_type) for each in operations if each.output_type != "void"]
    typed += [(port.line, port.name, port.type) for each in operations for port in each.inputs]
    for line, name, kind in typed:
        if kind and kind_of(kind, also) is None:
            yield Finding(line, f"{name}: unknown type {kind!r}", did_you_mean(kind, known_names(kind)))


def _nesting(text: CompoundText, faces: Faces) -> Iterator[Finding]:
    """Compounds that contain themselves, directly or through others."""
    for implementation in text.implementations.values():
        for use in implementation.nodes.values():
            if way := _way_to(text.name, use.node, faces, ()):
                chain = " > ".join((text.name, *way))
                yield Finding(use.line, f"{text.name} contains itself: {chain}")


def _way_to(goal: str, name: str, faces: Faces, passed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the compounds that lead from one to another, () if none do."""
    if name == goal:
        return (*passed, name)
    if name in passed:
        return ()
    inside = {use.node for each in _implementations(name, faces) for use in each.nodes.values()}
    ways = (_way_to(goal, each, faces, (*passed, name)) for each in sorted(inside))
    return next(filter(None, ways), ())


def _implementations(name: str, faces: Faces) -> Iterable[ImplementationText]:
    """Return the implementations of a compound; none of a node, or of a file that is itself reported."""
    try:
        compound = faces.compound(name)
    except TransectError:
        return ()
    return compound.implementations.values() if compound else ()
