"""Files that a label names: whether they are there, and are the ones that it describes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from .file_types import type_problems
from .labels import FileEntry, Label, child_line, text_of
from .names import name_problems
from .problems import Problem, located, problem

PIECE = 1 << 20


def find_file(label: Label, entry: FileEntry) -> tuple[Path | None, list[Problem]]:
    """Return the file that a label names, or None, and what is wrong with how it is named."""
    if not entry.name:
        return None, [problem("validation.unknown_value", "the file has no name", line=entry.line)]
    if text_of(entry.element, "directory_path_name").startswith("/"):
        text = "directory_path_name is absolute; it counts from the folder of the label"
        line = child_line(entry.element, "directory_path_name")
        return None, [problem("directory.unallowed_name", text, line=line)]
    if not entry.safe:
        text = f"{entry.name!r} leads out of the folder of the label"
        return None, [problem("label.missing_file", text, line=entry.line)]
    path = label.path.parent / entry.name
    if not path.is_file() and "%" in entry.name:  # some write names as in addresses
        path = label.path.parent / unquote(entry.name)
    inside = path.resolve().is_relative_to(label.path.parent.resolve())
    if path.is_file() and inside:
        return path, []
    if path.is_file():
        text = f"{entry.name!r} is a link that leads out of the folder of the label"
        return None, [problem("label.missing_file", text, line=entry.line)]
    if (other := _other_case(path)) is not None:
        text = f"{entry.name} is {other.name} on the disk: upper and lower case differ"
        return other, [problem("label.file_ref_case_mismatch", text, line=entry.line)]
    return None, [
        problem(
            "label.missing_file", f"{entry.name} is not there", line=child_line(entry.element, "file_name")
        )
    ]


def file_name(label: Label, entry: FileEntry) -> str:
    """Return the name of a file from the folder of the label, as it is on the disk if it is there."""
    path = find_file(label, entry)[0] if entry.safe else None
    return entry.name if path is None else path.relative_to(label.path.parent).as_posix()


def _other_case(path: Path) -> Path | None:
    """Return the file whose name differs from this one in upper and lower case only."""
    folder = path.parent
    if not folder.is_dir():
        return None
    name = _names(folder, folder.stat().st_mtime_ns).get(path.name.lower())
    return None if name is None else folder / name


@lru_cache(16)
def _names(folder: Path, _: int) -> dict[str, str]:
    """Return the names in a folder by themselves in lower case; listed again only when it has changed."""
    return {path.name.lower(): path.name for path in folder.iterdir()}


def file_problems(entry: FileEntry, path: Path) -> Iterator[Problem]:
    """Give what is wrong with a file that is there: name, size, checksum, type."""
    found = [*name_problems(path.name), *_size(entry, path), *_checksum(entry, path)]
    found += type_problems(path, entry.area)
    yield from located(found, data=entry.name, line=entry.line)


def _size(entry: FileEntry, path: Path) -> Iterator[Problem]:
    text, size = text_of(entry.element, "file_size"), path.stat().st_size
    if not text:
        said = f"the label has no file_size: {entry.name} cannot be compared"
        yield problem("label.missing_filesize", said, severity="info")
    if text.isdecimal() and int(text) != size:
        yield problem(
            "label.filesize_mismatch", f"file_size is {text}, but the file has {size} bytes",
            line=child_line(entry.element, "file_size"),
        )  # fmt: skip


def _checksum(entry: FileEntry, path: Path) -> Iterator[Problem]:
    said = text_of(entry.element, "md5_checksum")
    if not said:
        text = f"the label has no md5_checksum: {entry.name} cannot be compared"
        yield problem("label.missing_checksum", text, severity="info")
    if said and (real := md5_of(path)) != said.lower():
        yield problem(
            "label.checksum_mismatch", f"md5_checksum is {said}, but the file has {real}",
            line=child_line(entry.element, "md5_checksum"),
        )  # fmt: skip


def md5_of(path: Path) -> str:
    """Return the MD5 of a file, which PDS4 labels state; it guards against accidents only."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def manifest_problems(manifest: Mapping[Path, str], path: Path, name: str) -> Iterator[Problem]:
    """Give what a checksum manifest says against a file."""
    said = manifest.get(path.resolve())
    if said is None:
        yield problem("label.missing_checksum", f"{name} is not in the checksum manifest")
    elif (real := md5_of(path)) != said:
        yield problem("label.checksum_mismatch", f"the checksum manifest says {said}, but {name} has {real}")


def read_manifest(path: Path, base: Path) -> dict[Path, str]:
    """Read a checksum manifest: a line has an MD5 and a path, from `base`."""
    found: dict[Path, str] = {}
    for line in path.read_text(errors="replace").splitlines():
        digest, _, name = line.strip().partition(" ") if "\t" not in line else line.strip().partition("\t")
        if len(digest) == 32 and name:
            found[(base / name.strip().lstrip("*")).resolve()] = digest.lower()
    return found
