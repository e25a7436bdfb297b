"""Validating: each label, then all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from transect.base.processes import process_pool

from .checking import Checked, Judge
from .growth import growth_problems
from .integrity import Archive, Seen, common_problems, unlabelled
from .members import choose_members
from .names import folder_problems, tree_problems
from .options import Options
from .problems import Problem, problem
from .references import REGISTERED, Context
from .report import Report
from .surveys import Survey, batches, survey

FEWEST, BATCH = 60, 50
"""Labels below which other processes cost more than they save, and labels that one is given at a time."""


def validate(paths: Sequence[Path], options: Options, jobs: int = 1) -> Report:
    """Validate labels, folders of labels, collections or bundles.

    Parameters
    ----------
    paths : sequence of Path
    options : Options
    jobs : int
        Processes that check labels side by side.

    Returns
    -------
    Report
    """
    reports = [_run(each, options, jobs) for each in survey(paths, options)]
    added = [_report_unregistered(lidvid) for path in options.added_context for lidvid in Context().add(path)]
    notes = dict.fromkeys(note for each in reports for note in each.notes)
    found = [each for report in reports for each in report.problems]
    return Report(
        tuple(map(str, paths)), sum(each.labels for each in reports), sum(each.skipped for each in reports),
        tuple(notes), (*added, *found),
    )  # fmt: skip


def _report_unregistered(lidvid: str) -> Problem:
    return problem("product_not_registered", f"{lidvid} was added by hand, and is not registered")


def _run(what: Survey, options: Options, jobs: int) -> Report:
    options = replace(options, rule=what.rule)
    judge = Judge(options, what.root)
    checked = list(_check_all(judge, what.labels, jobs))
    seen = [each.seen for each in checked if each.seen is not None]
    kept, root = choose_members(seen, what)
    names = {each.name for each in seen} - {each.name for each in kept}
    found = [*what.problems, *(p for each in checked for p in each.problems if p.file not in names)]
    found = list(_without_data(found, seen))
    if checked and not seen and all(each.severity == "info" for each in found):
        found.append(problem("execution.no_products_found", "no file is a label of PDS4", file=found[0].file))
    found += common_problems(kept)
    if what.rule in ("bundle", "collection"):
        found += _tree_problems(what, seen, kept, root, options)
    if options.against is not None:
        found += _growth(options, seen, what)
    notes = (*_notes(judge, found), *_rule_notes(what, seen))
    return Report((), len(kept), len(names), notes, tuple(found))


def _without_data(found: Sequence[Problem], seen: Sequence[Seen]) -> Iterator[Problem]:
    """Give problems, but not that a file is no label if a label says that it is data."""
    data = {file for each in seen for file in each.files}
    for each in found:
        if each.kind != "label.not_understandable" or each.file not in data:
            yield each


def _tree_problems(
    what: Survey, seen: list[Seen], kept: list[Seen], root: Seen | None, options: Options
) -> Iterator[Problem]:
    if root is None:
        kind = "Product_Bundle" if what.rule == "bundle" else "Product_Collection"
        yield problem(
            "validation.missing_required_file",
            f"there is no {kind} label: only what is there was checked",
            severity="warning",
            file=str(what.chosen or what.root),
        )
    labels = {each.name for each in seen}
    others = [
        file for file in what.files if file not in {name for each in seen for name in each.files} | labels
    ]
    yield from tree_problems(others, what.folders)
    yield from folder_problems(what.folders, 1 if what.rule == "bundle" else 0)
    archive = Archive(kept, root, options.strict_members, _elsewhere(options))
    yield from archive.problems()
    yield from archive.context_problems() if options.context_references else ()
    if options.unlabelled and options.products:
        yield from unlabelled(what.files, seen)


def _elsewhere(options: Options) -> list[Seen]:
    """Return the labels below the folders that count as part of the archive, unjudged."""
    found = survey(options.alternates, replace(options, rule="folder")) if options.alternates else []
    return [
        each.seen
        for what in found
        for each in _check_all(Judge(options.reading_only(), what.root), what.labels, 1)
        if each.seen is not None
    ]


def _growth(options: Options, seen: list[Seen], what: Survey) -> Iterator[Problem]:
    assert options.against is not None
    old = survey([options.against], replace(options, rule="folder"))[0]
    reader = Judge(options.reading_only(), old.root)
    before = [each.seen for each in _check_all(reader, old.labels, 1) if each.seen is not None]
    yield from growth_problems(before, old.root, seen, what.root)


def _notes(judge: Judge, found: Sequence[Problem]) -> Iterator[str]:
    """Give what was not checked, and what to do about it."""
    if not judge.options.products:
        return
    checker = judge.checker
    if not checker.schemas:
        yield (
            "XSD and Schematron were not checked: no schemas were found; name their folder by --schemas, "
            "or type transect archive schemas fetch"
        )
    elif not checker.schematron:
        yield "Schematron was not checked: pip install 'transect[archive]'"
    if judge.options.context and not judge.context:
        yield f"context products were not checked: there is no {REGISTERED} beside the schemas"
    elif judge.options.context and not judge.context.is_complete:
        yield f"only the added context products were checked: there is no {REGISTERED} beside the schemas"
    lacking = {
        each.text.partition(" ")[0].rpartition("/")[2]
        for each in found
        if each.kind == "label.unresolvable_resource"
    }
    if lacking:
        names = ", ".join(sorted(lacking)[:6]) + (", ..." if len(lacking) > 6 else "")
        yield f"not checked, since they are not among the schemas: {names}"


def _rule_notes(what: Survey, seen: Sequence[Seen]) -> Iterator[str]:
    """Give a note if a folder is a bundle or a collection, and was not judged as one."""
    top = {each.kind for each in seen if "/" not in each.name} if what.rule == "folder" else set()
    for kind, rule in (("Product_Bundle", "bundle"), ("Product_Collection", "collection")):
        if kind in top:
            yield f"members, inventories and references were not checked: --rule {rule}"
            return


# Many labels

_judge: Judge | None = None


def _check_all(judge: Judge, labels: Sequence[Path], jobs: int) -> Iterator[Checked]:
    """Give what each label has, in their order; several processes take a batch each."""
    if jobs <= 1 or len(labels) < FEWEST:
        yield from (judge.check(path) for path in labels)
        return
    with process_pool(jobs, _start, (judge.options, judge.root)) as pool:
        for done in pool.map(_check_batch, batches(labels, BATCH)):
            yield from done


def _start(options: Options, root: Path) -> None:
    global _judge  # a process has one, made when it starts
    _judge = Judge(options, root)


def _check_batch(paths: Sequence[Path]) -> list[Checked]:
    assert _judge is not None
    return [_judge.check(path) for path in paths]
