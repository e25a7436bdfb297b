"""Options of validation, and the labels, files and folders that a path stands for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from .labels import EXTENSIONS
from .problems import ValidationProblem, problem

ValidationScope = Literal["label", "folder", "collection", "bundle"]


@dataclass(frozen=True)
class ValidationOptions:
    """Strictness and input files of a validation."""

    rule: ValidationScope | None = (
        None  # what each path is; None: a file is a label, a folder a folder of labels
    )
    schemas: tuple[Path, ...] = ()  # folders of .xsd and .sch files
    # files that are used instead of those that the labels name
    xsd: tuple[Path, ...] = ()
    sch: tuple[Path, ...] = ()
    content: bool = True  # whether data files are looked into
    context: bool = True  # whether context products must be registered
    mismatches: bool = True  # whether their names and types are compared
    # whether a collection must name the context products of its products, as NASA's tool once required
    context_references: bool = False
    products: bool = True  # whether labels are checked individually, in addition to their references
    formats: bool = True  # whether values are compared with `field_format` and `validation_format`
    strict_fields: bool = False  # whether characters other than blanks between fixed fields are reported
    strict_members: bool = True  # whether a member that does not exist is an error; else a warning
    complete: bool = False  # whether each byte of a data file must be described
    unlabelled: bool = True  # whether files that no label names are told
    recurse: bool = True  # whether folders inside a folder are looked into
    extensions: tuple[str, ...] = EXTENSIONS  # of labels
    context_file: Path | None = None  # NASA's list; None: the one beside the schemas
    # more lists of the same form, of products that are not registered yet
    added_context: tuple[Path, ...] = ()
    checksums: Path | None = None  # a manifest of MD5 sums that the labels and their files must have
    against: Path | None = None  # an older state of the same archive
    # folders whose products count as members that are there; they are not judged
    alternates: tuple[Path, ...] = ()
    catalogs: tuple[Path, ...] = ()  # OASIS XML catalogs that say where schemas are

    def reading_only(self) -> ValidationOptions:
        """Return options by which labels are read, and nothing is judged."""
        return replace(self, rule="folder", products=False, against=None, checksums=None, alternates=())


@dataclass(frozen=True)
class ValidationTarget:
    """Labels that are validated together."""

    root: Path  # folder that all names are told from
    rule: ValidationScope
    labels: tuple[Path, ...]
    # everything below the root, for bundles and collections; else nothing
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    chosen: Path | None = None  # the label of the bundle or collection, if it was named
    problems: tuple[ValidationProblem, ...] = ()  # what is wrong with the paths themselves


def survey(paths: Sequence[Path], options: ValidationOptions) -> list[ValidationTarget]:
    """Return what paths stand for: labels and folders together, each bundle and collection by itself."""
    single = [path for path in paths if options.rule not in ("bundle", "collection") or not path.exists()]
    found = [_tree(path, options) for path in paths if path not in single]
    return [_plain(single, options), *found] if single else found


def _plain(paths: Sequence[Path], options: ValidationOptions) -> ValidationTarget:
    labels: list[Path] = []
    found: list[ValidationProblem] = []
    for path in paths:
        if not path.exists():
            found.append(problem("label.missing_file", f"{path.name} is not there", file=str(path)))
        elif path.is_dir():
            inside = [each for each in _walk(path, options.recurse)[0] if _is_label(each, options)]
            labels += inside
            if not inside:
                known = " or ".join(options.extensions)
                text = f"the folder has no labels ({known})"
                found.append(problem("execution.no_products_found", text, file=str(path)))
        elif not _is_label(path, options):
            known = " or ".join(options.extensions)
            found.append(
                problem("label.bad_extension", f"the name of a label ends in {known}", file=path.name)
            )
        else:
            labels.append(path)
    rule: ValidationScope = "folder" if any(path.is_dir() for path in paths) else "label"
    return ValidationTarget(_common([*paths]), rule, tuple(dict.fromkeys(labels)), problems=tuple(found))


def _tree(path: Path, options: ValidationOptions) -> ValidationTarget:
    root = path if path.is_dir() else path.parent
    files, folders = _walk(root, options.recurse)
    labels = tuple(each for each in files if _is_label(each, options))
    found: tuple[ValidationProblem, ...] = ()
    if not labels:
        found = (problem("execution.no_products_found", "the folder has no labels", file=str(path)),)
    return ValidationTarget(
        root, options.rule or "folder", labels, tuple(each.relative_to(root).as_posix() for each in files),
        tuple(each.relative_to(root).as_posix() for each in folders), None if path.is_dir() else path, found,
    )  # fmt: skip


def _is_label(path: Path, options: ValidationOptions) -> bool:
    return path.suffix.lower() in options.extensions


def _walk(root: Path, recurse: bool) -> tuple[list[Path], list[Path]]:
    """Return the files and folders below a folder, in order; links to folders are not followed."""
    files: list[Path] = []
    folders: list[Path] = []
    for place, inside, names in os.walk(root):
        inside[:] = sorted(inside) if recurse else []
        files += [Path(place) / name for name in sorted(names)]
        folders += [Path(place) / name for name in inside]
    return files, folders


def _common(paths: Sequence[Path]) -> Path:
    folders = [path if path.is_dir() else path.parent for path in paths]
    return Path(os.path.commonpath([each.absolute() for each in folders])) if len(folders) > 1 else folders[0]


def batches(paths: Sequence[Path], size: int) -> Iterator[Sequence[Path]]:
    """Yield paths in parts of equal size."""
    for start in range(0, len(paths), size):
        yield paths[start : start + size]
