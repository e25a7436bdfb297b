"""Descriptions checked before anything runs: everything that is wrong with them, in one report per file.

Files that are checked together see each other: a description of a node is the interface that the wires of a
compound are checked against. Errors and contradictions are problems; suspicious
content is a hint.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from transect.base.yaml_parts import DescriptionProblem, problem_at
from transect.errors import TransectError
from transect.types import __all__ as own_types
from transect.types.aliases import CDFF_NAMES, CDFF_OTHER_NAMES

from .catalogue import Catalogue, catalogue_for
from .compound_checks import (
    ResolvedImplementation,
    find_problems,
    find_wrong_names,
    find_wrong_types,
    flow_of,
    list_ports,
    unwritten,
)
from .compounds import Compound, CompoundError, graph_of
from .description import CompoundText
from .interfaces import Description, DescriptionFinding, Faces, Given
from .reading import FILE_KEYS, NODE_KEYS, PORT_KEYS, DescriptionError, examine, text_of

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
MIN_WORD_LETTERS = 4
"""Shorter words are similar to too many others and are not checked."""
MIN_FREQUENCY_RATIO = 5
"""How much more common a similar word must be for a word to be considered misspelt."""


@dataclass(frozen=True)
class FileReport:
    """Findings in one file, in the order of its lines."""

    problems: list[DescriptionProblem] = field(default_factory=list[DescriptionProblem])
    hints: list[DescriptionProblem] = field(default_factory=list[DescriptionProblem])


def check(
    paths: Sequence[Path], catalogue: Catalogue | None = None, execute: bool = False
) -> dict[str, FileReport]:
    """Return what is wrong with descriptions, by file.

    Parameters
    ----------
    paths : sequence of Path
        Descriptions of nodes and compounds, in any form.
    catalogue : Catalogue, optional
        Where the names are found that the files themselves do not describe; by default beside each file and
        among transect's own.
    execute : bool
        Whether Python files that are found so are run, and not only read: that shows more.
    """
    reports = {str(path): FileReport() for path in paths}
    read = {Path(file): _read(file, report) for file, report in reports.items()}
    given = Given()
    for file, text in read.items():
        given.add(file, text)
    counts = _count_words(filter(None, read.values()))
    for file, text in read.items():
        if text is not None:
            known = catalogue or catalogue_for(file, read, execute)
            faces = Faces(given, known)
            _note(reports[str(file)], str(file), _findings(text, faces, counts))
            if isinstance(text, CompoundText) and not reports[str(file)].problems:
                _note(reports[str(file)], str(file), _try_to_make(text, known, faces))
    for report in reports.values():
        report.problems.sort(key=lambda problem: problem.line)
        report.hints.sort(key=lambda problem: problem.line)
    return reports


def check_compound(compound: Compound) -> FileReport:
    """Return what is wrong with a compound that was not read from a file, such as a single node."""
    report, faces = FileReport(), Faces(Given(), compound.catalogue)
    _note(report, "", find_problems(compound.text, faces))
    if not report.problems:
        _note(report, "", _try_to_make(compound.text, compound.catalogue, faces))
    return report


def _read(file: str, report: FileReport) -> Description | None:
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


def _note(report: FileReport, file: str, findings: Iterable[DescriptionFinding]) -> None:
    for line, what, hint, grave in dict.fromkeys(findings):
        (report.problems if grave else report.hints).append(problem_at(file, line, what, hint))


def _findings(text: Description, faces: Faces, counts: Counter[str]) -> Iterator[DescriptionFinding]:
    yield from _check_documents(text)
    yield from _check_spelling(text, counts)
    if isinstance(text, CompoundText):
        yield from find_problems(text, faces)
    else:
        yield from find_wrong_names(text)
        yield from find_wrong_types(text)


def _try_to_make(text: CompoundText, catalogue: Catalogue, faces: Faces) -> Iterator[DescriptionFinding]:
    """Make the nodes of each implementation, as a run would; what is only described cannot be made yet.

    Neither can what only stands in other files that are checked together.
    """
    for name, implementation in text.implementations.items():
        flow, _ = flow_of(text, implementation, faces)
        missing = list(unwritten(flow)) if implementation.complete else []
        yield from (each._replace(grave=False) for each in missing)
        if not implementation.complete or missing or not _is_known(flow, catalogue):
            continue
        try:
            graph_of(text, name, catalogue)
        except CompoundError as error:
            first = error.problems[0]
            yield DescriptionFinding(
                implementation.line, f"{error.what}: {first.where} {first.what}".strip(), error.hint
            )
        except TransectError as error:
            message = f"{error.what}: {error.why}" if error.why else error.what
            yield DescriptionFinding(implementation.line, message, error.hint)


def _is_known(flow: ResolvedImplementation, catalogue: Catalogue) -> bool:
    """Return whether all nodes of an implementation can be read, and are found without the files given."""
    return all(
        (face := flow.found.get(use.id)) is not None
        and face.readable
        and (face.node is not None or catalogue.compound(use.node) is not None)
        for use in flow.text.nodes.values()
    )


def _check_documents(text: Description) -> Iterator[DescriptionFinding]:
    """What has no documentation."""
    if not text.doc:
        yield DescriptionFinding(text.line, f"{text.name} has no doc", "doc: what it does", grave=False)
    if bare := [port for port in list_ports(text) if not port.doc]:
        what = "ports without doc: " + ", ".join(port.name for port in bare)
        yield DescriptionFinding(bare[0].line, what, "doc: what it carries", grave=False)


def words_of(name: str) -> list[str]:
    """Return the words in a name, in small letters: point, cloud of `pointCloud` and `point_cloud`."""
    return [word.lower() for word in WORD.findall(name)]


def _count_words(texts: Iterable[Description]) -> Counter[str]:
    """Return how common words are in the ports and documentation of descriptions, and among our own."""
    counts = Counter(dict.fromkeys(_own_words(), MIN_FREQUENCY_RATIO))
    for text in texts:
        for port in list_ports(text):
            counts.update(words_of(port.name) + words_of(port.doc))
        counts.update(words_of(text.doc))
    return counts


@cache
def _own_words() -> frozenset[str]:
    known = (*own_types, *CDFF_NAMES, *CDFF_OTHER_NAMES, *FILE_KEYS, *PORT_KEYS, *NODE_KEYS)
    return frozenset(word for name in known for word in words_of(name))


def _check_spelling(text: Description, counts: Counter[str]) -> Iterator[DescriptionFinding]:
    """Words in the names of ports that are one letter away from a much more common one."""
    for port in list_ports(text):
        for word in words_of(port.name):
            if len(word) >= MIN_WORD_LETTERS and (better := _guess_word(word, counts)):
                yield DescriptionFinding(
                    port.line, f"{port.name}: is {word!r} meant to be {better!r}?", grave=False
                )


def _guess_word(word: str, counts: Counter[str]) -> str:
    enough = MIN_FREQUENCY_RATIO * counts[word]
    near = [(-count, other) for other, count in counts.items() if count >= enough and _one_apart(word, other)]
    return min(near)[1] if near else ""


def _one_apart(a: str, b: str) -> bool:
    """Return whether one letter is left out, added, changed or swapped with its neighbour.

    Plurals are not.
    """
    if a == b or abs(len(a) - len(b)) > 1 or a in (f"{b}s", f"{b}d") or b in (f"{a}s", f"{a}d"):
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[:2][::-1] and a[2:] == b[2:])
