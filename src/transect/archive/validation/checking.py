"""One label: everything that can be said of it and of its files without knowing the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from transect.archive.schemas import find_schemas
from transect.base.xml import MAX_BYTES, local_name
from transect.errors import ParseError
from transect.formats.pds4.label import NAMESPACE

from .file_types import extension_problems
from .files import file_name, file_problems, find_file, manifest_problems, read_manifest
from .integrity import Seen
from .inventory import count_problems, inventory_problems, members_of
from .labels import FileEntry, Label, text_of
from .names import name_problems
from .objects import define_objects, object_problems, undescribed
from .options import Options
from .problems import Problem, located, problem
from .references import Context, context_problems, find_context, identifier_problems, local_problems
from .schemata import Checker

PDS4 = b"pds.nasa.gov/pds4"


@dataclass(frozen=True)
class Checked:
    """What came out for one label; `seen` is None if it is none."""

    problems: tuple[Problem, ...]
    seen: Seen | None


@dataclass
class Judge:
    """Checks labels, one after the other; schemas, rules and context products are loaded once."""

    options: Options
    root: Path  # the folder that names are told from
    checker: Checker = field(init=False)
    context: Context = field(init=False)

    def __post_init__(self) -> None:
        schemas = find_schemas(self.options.schemas, self.options.catalogs)
        self.checker = Checker(schemas, self.options.xsd, self.options.sch)
        listed = self.options.context_file or find_context(schemas.folders)
        self.context = Context(is_complete=listed is not None)
        if listed is not None and self.options.context:
            self.context.add(listed)
        for path in self.options.added_context if self.options.context else ():
            self.context.add(path)
        manifest = self.options.checksums
        self.manifest = None if manifest is None else read_manifest(manifest, self.root)

    def check(self, path: Path) -> Checked:
        """Check a label and its files."""
        name = relative(path, self.root)
        label, found = open_label(path, name)
        if label is None:
            return Checked(tuple(located(found, file=name)), None)
        if self.options.products:
            found += self._problems(label)
        elif self.options.rule in ("bundle", "collection"):
            found += count_problems(label)
        return Checked(tuple(located(found, file=name)), seen_of(label, self.root))

    def _problems(self, label: Label) -> Iterator[Problem]:
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

    def _file_problems(self, label: Label, entry: FileEntry) -> Iterator[Problem]:
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


def open_label(path: Path, name: str) -> tuple[Label | None, list[Problem]]:
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


def reserved_names(label: Label) -> Iterator[Problem]:
    """Give a warning for a label that is called as a bundle or a collection is, and is none."""
    lowered = label.path.name.lower()
    for word, kind in (("bundle", "Product_Bundle"), ("collection", "Product_Collection")):
        if lowered.startswith((f"{word}_", f"{word}.")) and label.kind not in (
            "Product_Bundle",
            "Product_Collection",
        ):
            text = f"names that begin with {word} are for a {kind}; this is a {label.kind}"
            yield problem("file.reserved_name_mismatch", text)


def seen_of(label: Label, root: Path) -> Seen:
    """Return what is kept of a label for the checks of many."""
    folder = PurePosixPath(relative(label.path.parent, root))
    files = tuple(str(folder / file_name(label, entry)) for entry in label.files if entry.name)
    listed = label.root.find(f"{NAMESPACE}Reference_List")
    inside = set() if listed is None else set(listed.iter(f"{NAMESPACE}Internal_Reference"))
    context = [each for each in label.references if ":context:" in each.target]
    return Seen(
        label.name, label.kind, label.lid, label.vid, text_of(label.area, "information_model_version"), files,
        tuple(members_of(label)),
        tuple((each.target, each.line) for each in label.references if each.element in inside),
        frozenset(each.lid for each in context), frozenset(each.lid for each in label.references),
    )  # fmt: skip


def relative(path: Path, root: Path) -> str:
    """Return a path from the root, or as it is if it is elsewhere."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
