"""Validation: each label and its files, then all labels together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from transect.archive.schemas import find_schemas
from transect.base.processes import process_pool
from transect.base.xml import MAX_BYTES, local_name
from transect.errors import ParseError
from transect.formats.pds4.label import NAMESPACE

from .files import extension_problems, file_name, file_problems, find_file, manifest_problems, read_manifest
from .integrity import LabelSet, LabelSummary, common_problems, growth_problems, unlabelled
from .labels import FileEntry, Label, folder_problems, name_problems, text_of, tree_problems
from .objects import define_objects, object_problems, undescribed
from .options import ValidationOptions, ValidationTarget, batches, survey
from .problems import ValidationProblem, ValidationReport, located, problem
from .references import (
    REGISTERED,
    ContextCatalogue,
    context_problems,
    count_problems,
    find_context,
    identifier_problems,
    inventory_problems,
    local_problems,
    members_of,
)
from .xml_schema import Checker

PDS4 = b"pds.nasa.gov/pds4"


@dataclass(frozen=True)
class LabelResult:
    """The result for one label; `seen` is None if the file is not a label."""

    problems: tuple[ValidationProblem, ...]
    seen: LabelSummary | None


@dataclass
class LabelValidator:
    """Checks labels, one after the other; schemas, rules and context products are loaded once."""

    options: ValidationOptions
    root: Path  # the folder that names are told from
    checker: Checker = field(init=False)
    context: ContextCatalogue = field(init=False)

    def __post_init__(self) -> None:
        schemas = find_schemas(self.options.schemas, self.options.catalogs)
        self.checker = Checker(schemas, self.options.xsd, self.options.sch)
        listed = self.options.context_file or find_context(schemas.folders)
        self.context = ContextCatalogue(is_complete=listed is not None)
        if listed is not None and self.options.context:
            self.context.add(listed)
        for path in self.options.added_context if self.options.context else ():
            self.context.add(path)
        manifest = self.options.checksums
        self.manifest = None if manifest is None else read_manifest(manifest, self.root)

    def check(self, path: Path) -> LabelResult:
        """Check a label and its files."""
        name = relative(path, self.root)
        label, found = open_label(path, name)
        if label is None:
            return LabelResult(tuple(located(found, file=name)), None)
        if self.options.products:
            found += self._problems(label)
        elif self.options.rule in ("bundle", "collection"):
            found += count_problems(label)
        return LabelResult(tuple(located(found, file=name)), seen_of(label, self.root))

    def _problems(self, label: Label) -> Iterator[ValidationProblem]:
        yield from name_problems(label.path.name)
        yield from reserved_names(label)
        yield from self.checker.problems(label)
        yield from identifier_problems(label)
        yield from local_problems(label)
        if self.context:
            yield from context_problems(label, self.context, self.options.mismatches)
        if self.manifest is not None:
            yield from manifest_problems(self.manifest, label.path, label.name)
        if self.options.content:
            yield from inventory_problems(label)
        elif self.options.rule in ("bundle", "collection"):
            yield from count_problems(label)
        for entry in label.files:
            yield from self._file_problems(label, entry)

    def _file_problems(self, label: Label, entry: FileEntry) -> Iterator[ValidationProblem]:
        objects, found = define_objects(entry)
        yield from found
        yield from extension_problems(entry.name, entry.area)
        if not self.options.content:
            return
        path, found = find_file(label, entry)
        yield from found
        if path is None:
            return
        yield from file_problems(entry, path)
        if self.manifest is not None:
            yield from manifest_problems(self.manifest, path, entry.name)
        yield from object_problems(entry, path, objects, self.options)
        if self.options.complete:
            yield from undescribed(objects, entry, path.stat().st_size)


def open_label(path: Path, name: str) -> tuple[Label | None, list[ValidationProblem]]:
    """Return a label, or what keeps the file from being one.

    A file `.xml` that is no label may be data: that is a warning. If it names PDS4, or ends in `.lblx`, it
    was meant as a label.
    """
    if path.stat().st_size > MAX_BYTES:
        text = f"{path.stat().st_size} bytes are too many for a label"
        return None, [problem("label.not_understandable", text, severity="error")]
    content = path.read_bytes()
    meant = path.suffix.lower() == ".lblx" or PDS4 in content[: 1 << 16]
    severity = "error" if meant else "warning"
    try:
        label = Label(path, name, content)
    except ParseError as error:
        line = int(error.where.rpartition(":")[2]) if error.where.rpartition(":")[2].isdecimal() else 0
        what = error.what.removeprefix(name).strip()
        text = f"{what}: {error.why}" if error.why else what
        return None, [problem("label.not_understandable", f"the file {text}", severity=severity, line=line)]
    if not label.is_label:
        text = f"its root is {local_name(label.root)!r}, and no product of PDS4"
        severity = "error" if path.suffix.lower() == ".lblx" else "info"
        line = label.root.sourceline or 0
        return None, [problem("label.not_understandable", text, severity=severity, line=line)]
    return label, []


def reserved_names(label: Label) -> Iterator[ValidationProblem]:
    """Yield a warning for a label that is called as a bundle or a collection is, and is none."""
    lowered = label.path.name.lower()
    for word, kind in (("bundle", "Product_Bundle"), ("collection", "Product_Collection")):
        if lowered.startswith((f"{word}_", f"{word}.")) and label.kind not in (
            "Product_Bundle",
            "Product_Collection",
        ):
            text = f"names that begin with {word} are for a {kind}; this is a {label.kind}"
            yield problem("file.reserved_name_mismatch", text)


def seen_of(label: Label, root: Path) -> LabelSummary:
    """Return what is kept of a label for the checks of many."""
    folder = PurePosixPath(relative(label.path.parent, root))
    files = tuple(str(folder / file_name(label, entry)) for entry in label.files if entry.name)
    listed = label.root.find(f"{NAMESPACE}Reference_List")
    inside = set() if listed is None else set(listed.iter(f"{NAMESPACE}Internal_Reference"))
    context = [each for each in label.references if ":context:" in each.target]
    return LabelSummary(
        label.name, label.kind, label.lid, label.vid, text_of(label.area, "information_model_version"), files,
        tuple(members_of(label)),
        tuple((each.target, each.line) for each in label.references if each.element in inside),
        frozenset(each.lid for each in context), frozenset(each.lid for each in label.references),
    )  # fmt: skip


def relative(path: Path, root: Path) -> str:
    """Return a path from the root, or as it is if it is elsewhere."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def choose_members(
    seen: Sequence[LabelSummary], what: ValidationTarget
) -> tuple[list[LabelSummary], LabelSummary | None]:
    """Return the labels that count, and the one that names the others.

    Of several bundles the one that was named counts, else the newest in the root folder; of several versions
    of a collection the one that the bundle names, else the newest. All other products count.
    """
    if what.rule not in ("bundle", "collection"):
        return list(seen), None
    kind = "Product_Bundle" if what.rule == "bundle" else "Product_Collection"
    root = _root(seen, what, kind)
    if root is None:
        return list(seen), None
    named = {member.lid: member.vid for member in root.members}
    collections = _newest([each for each in seen if each.kind == "Product_Collection"], named)
    kept: list[LabelSummary] = []
    for each in seen:
        if each.kind == kind:
            wanted = each is root
        elif each.kind == "Product_Collection":
            wanted = each is root or each in collections
        else:
            wanted = each.kind != "Product_Bundle"
        if wanted:
            kept.append(each)
    return kept, root


def _root(seen: Sequence[LabelSummary], what: ValidationTarget, kind: str) -> LabelSummary | None:
    found = [each for each in seen if each.kind == kind]
    if what.chosen is not None:
        name = relative(what.chosen, what.root)
        return next((each for each in found if each.name == name), None)
    top = [each for each in found if "/" not in each.name] or found
    return max(top, key=lambda each: each.version, default=None)


def _newest(collections: Sequence[LabelSummary], named: dict[str, str]) -> list[LabelSummary]:
    """Return one version of each collection: that which is named, else the newest."""
    chosen: dict[str, LabelSummary] = {}
    for each in collections:
        vid = named.get(each.lid, "")
        best = chosen.get(each.lid)
        if (
            best is None
            or (each.vid == vid) > (best.vid == vid)
            or (best.vid != vid and each.version > best.version)
        ):
            chosen[each.lid] = each
    return list(chosen.values())


MIN_PARALLEL_LABELS, BATCH = 60, 50
"""Smallest number of labels for parallel processing, and labels per batch."""


def validate(paths: Sequence[Path], options: ValidationOptions, jobs: int = 1) -> ValidationReport:
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
    added = [
        _report_unregistered(lidvid)
        for path in options.added_context
        for lidvid in ContextCatalogue().add(path)
    ]
    notes = dict.fromkeys(note for each in reports for note in each.notes)
    found = [each for report in reports for each in report.problems]
    return ValidationReport(
        tuple(map(str, paths)), sum(each.labels for each in reports), sum(each.skipped for each in reports),
        tuple(notes), (*added, *found),
    )  # fmt: skip


def _report_unregistered(lidvid: str) -> ValidationProblem:
    return problem("product_not_registered", f"{lidvid} was added by hand, and is not registered")


def _run(what: ValidationTarget, options: ValidationOptions, jobs: int) -> ValidationReport:
    options = replace(options, rule=what.rule)
    judge = LabelValidator(options, what.root)
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
    return ValidationReport((), len(kept), len(names), notes, tuple(found))


def _without_data(
    found: Sequence[ValidationProblem], seen: Sequence[LabelSummary]
) -> Iterator[ValidationProblem]:
    """Yield problems, but not that a file is no label if a label says that it is data."""
    data = {file for each in seen for file in each.files}
    for each in found:
        if each.kind != "label.not_understandable" or each.file not in data:
            yield each


def _tree_problems(
    what: ValidationTarget,
    seen: list[LabelSummary],
    kept: list[LabelSummary],
    root: LabelSummary | None,
    options: ValidationOptions,
) -> Iterator[ValidationProblem]:
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
    archive = LabelSet(kept, root, options.strict_members, _elsewhere(options))
    yield from archive.problems()
    yield from archive.context_problems() if options.context_references else ()
    if options.unlabelled and options.products:
        yield from unlabelled(what.files, seen)


def _elsewhere(options: ValidationOptions) -> list[LabelSummary]:
    """Return the labels below the folders that count as part of the archive, unjudged."""
    found = survey(options.alternates, replace(options, rule="folder")) if options.alternates else []
    return [
        each.seen
        for what in found
        for each in _check_all(LabelValidator(options.reading_only(), what.root), what.labels, 1)
        if each.seen is not None
    ]


def _growth(
    options: ValidationOptions, seen: list[LabelSummary], what: ValidationTarget
) -> Iterator[ValidationProblem]:
    assert options.against is not None
    old = survey([options.against], replace(options, rule="folder"))[0]
    reader = LabelValidator(options.reading_only(), old.root)
    before = [each.seen for each in _check_all(reader, old.labels, 1) if each.seen is not None]
    yield from growth_problems(before, old.root, seen, what.root)


def _notes(judge: LabelValidator, found: Sequence[ValidationProblem]) -> Iterator[str]:
    """Yield what was not checked, and what to do about it."""
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


def _rule_notes(what: ValidationTarget, seen: Sequence[LabelSummary]) -> Iterator[str]:
    """Yield a note if a folder is a bundle or a collection, and was not judged as one."""
    top = {each.kind for each in seen if "/" not in each.name} if what.rule == "folder" else set()
    for kind, rule in (("Product_Bundle", "bundle"), ("Product_Collection", "collection")):
        if kind in top:
            yield f"members, inventories and references were not checked: --rule {rule}"
            return


# Many labels

_judge: LabelValidator | None = None


def _check_all(judge: LabelValidator, labels: Sequence[Path], jobs: int) -> Iterator[LabelResult]:
    """Yield what each label has, in their order; several processes take a batch each."""
    if jobs <= 1 or len(labels) < MIN_PARALLEL_LABELS:
        yield from (judge.check(path) for path in labels)
        return
    with process_pool(jobs, _start, (judge.options, judge.root)) as pool:
        for done in pool.map(_check_batch, batches(labels, BATCH)):
            yield from done


def _start(options: ValidationOptions, root: Path) -> None:
    global _judge  # a process has one, made when it starts
    _judge = LabelValidator(options, root)


def _check_batch(paths: Sequence[Path]) -> list[LabelResult]:
    assert _judge is not None
    return [_judge.check(path) for path in paths]
