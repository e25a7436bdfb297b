"""Names of files and folders that an archive may have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from transect.archive.identifiers import LONGEST, is_reserved

from .problems import Problem, problem

_LEGAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*").fullmatch
COLLECTIONS = frozenset(
    {
        "browse",
        "calibration",
        "context",
        "data",
        "document",
        "geometry",
        "miscellaneous",
        "spice_kernels",
        "xml_schema",
    }
)


def name_problems(name: str, folder: bool = False) -> Iterator[Problem]:
    """Give what is wrong with one name; of several things the first."""
    what = "directory" if folder else "file"
    if len(name) > LONGEST:
        text = f"the name has {len(name)} letters; {LONGEST} are allowed"
        yield problem(f"{what}.name_too_long", text)
    elif not _LEGAL(name) or (folder and "." in name):
        allowed = "letters, digits, _ and -" if folder else "letters, digits, _, . and -"
        text = f"{name!r} has other signs than {allowed}, or does not begin with a letter or digit"
        yield problem(f"{what}.name_has_invalid_characters", text)
    elif not folder and name.lower() == "a.out":
        yield problem("file.unallowed_name", f"no file may be called {name}")
    elif is_reserved(name):
        kind = "directory.unallowed_name" if folder else "file.unallowed_base_name"
        yield problem(kind, f"{name.partition('.')[0]} is a reserved name")


def tree_problems(files: Iterable[str], folders: Iterable[str]) -> Iterator[Problem]:
    """Give what is wrong with the names in a tree, paths from its root."""
    seen: dict[str, str] = {}
    for path, folder in [*((each, False) for each in files), *((each, True) for each in folders)]:
        name = PurePosixPath(path).name
        for each in name_problems(name, folder):
            yield problem(each.kind, each.text, file=path)
        other = seen.setdefault(path.lower(), path)
        if other != path:
            text = f"its name differs from {PurePosixPath(other).name} in upper and lower case only"
            yield problem("validation.file_naming_problem", text, file=path)


def folder_problems(folders: Iterable[str], depth: int) -> Iterator[Problem]:
    """Give a warning for each folder inside a collection that has the name of a collection.

    Parameters
    ----------
    depth : int
        Of folders that may have such a name: 1 in a bundle, 0 in a collection.
    """
    for path in folders:
        parts = PurePosixPath(path).parts
        if len(parts) > depth and parts[-1].lower() in COLLECTIONS:
            text = f"{parts[-1]} is the name of a collection, which stands in the bundle's own folder"
            yield problem("sub_directory.unallowed_name", text, file=path)
