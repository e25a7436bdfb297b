"""Surveys: which labels, files and folders a path stands for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .options import Options, Rule
from .problems import Problem, problem


@dataclass(frozen=True)
class Survey:
    """What is validated together."""

    root: Path  # folder that all names are told from
    rule: Rule
    labels: tuple[Path, ...]
    # everything below the root, for bundles and collections; else nothing
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    chosen: Path | None = None  # the label of the bundle or collection, if it was named
    problems: tuple[Problem, ...] = ()  # what is wrong with the paths themselves


def survey(paths: Sequence[Path], options: Options) -> list[Survey]:
    """Return what paths stand for: labels and folders together, each bundle and collection by itself."""
    single = [path for path in paths if options.rule not in ("bundle", "collection") or not path.exists()]
    found = [_tree(path, options) for path in paths if path not in single]
    return [_plain(single, options), *found] if single else found


def _plain(paths: Sequence[Path], options: Options) -> Survey:
    labels: list[Path] = []
    found: list[Problem] = []
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
    rule: Rule = "folder" if any(path.is_dir() for path in paths) else "label"
    return Survey(_common([*paths]), rule, tuple(dict.fromkeys(labels)), problems=tuple(found))


def _tree(path: Path, options: Options) -> Survey:
    root = path if path.is_dir() else path.parent
    files, folders = _walk(root, options.recurse)
    labels = tuple(each for each in files if _is_label(each, options))
    found: tuple[Problem, ...] = ()
    if not labels:
        found = (problem("execution.no_products_found", "the folder has no labels", file=str(path)),)
    return Survey(
        root, options.rule or "folder", labels, tuple(each.relative_to(root).as_posix() for each in files),
        tuple(each.relative_to(root).as_posix() for each in folders), None if path.is_dir() else path, found,
    )  # fmt: skip


def _is_label(path: Path, options: Options) -> bool:
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
    """Give paths in parts of equal size."""
    for start in range(0, len(paths), size):
        yield paths[start : start + size]
