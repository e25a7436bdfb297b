"""Importing the file that a name was found in; a failure names the file and the line."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from transect.errors import TransectError, did_you_mean

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "_transect_file_"


class ImportFailedError(TransectError):
    """A file of nodes or controllers that cannot be imported."""


def load_file(file: Path) -> ModuleType:
    """Return the module of a Python file, imported once unless the file has changed.

    Files of the same name in different folders are different modules. A file that is imported already, or is
    the script that runs, is not executed again: its classes are those that its author has at hand.
    """
    file = file.resolve()
    if file.is_relative_to(ROOT / "transect"):
        dotted = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        return _guard(file, lambda: importlib.import_module(dotted))
    imported = _import_as(file)
    return imported if imported is not None else _guard(file, lambda: _execute(file))


def load_entry_point(point: importlib.metadata.EntryPoint) -> Any:
    """Return what an entry point of another package names."""
    return _guard(f"{point.group}: {point.name} = {point.value}", point.load)


def folders_of(package: str) -> list[Path]:
    """Return the folders of a package, none if it is not installed; it is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return []
    return [Path(place) for place in (spec and spec.submodule_search_locations) or ()]


def _import_as(file: Path) -> ModuleType | None:
    for name, module in list(sys.modules.items()):
        place = getattr(module, "__dict__", {}).get("__file__")  # anything at all may be in sys.modules
        if place == str(file) and not name.startswith(PREFIX):
            return module
    return None


def _execute(file: Path) -> ModuleType:
    stamp = f"{file}\n{file.stat().st_mtime_ns}"
    name = PREFIX + hashlib.sha256(stamp.encode()).hexdigest()[:16]
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportFailedError(f"{file} is not a Python file", where=str(file))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _guard(file: Path | str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:
        why = error.what if isinstance(error, TransectError) else str(error)
        raise ImportFailedError(
            f"{file} cannot be imported", where=_place(error, file), why=f"{type(error).__name__}: {why}"
        ) from error


def _place(error: Exception, file: Path | str) -> str:
    """Return the last line of the file itself that the error went through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 0}"
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)
    ]
    return f"{file}:{lines[-1]}" if lines else str(file)


def load_object(spec: str, folder: Path) -> Any:
    """Return what `module:Name`, or `file.py:Name` in a folder, means."""
    place, _, name = spec.partition(":")
    if not name:
        raise ImportFailedError(f"{spec!r} names no class", hint="write module:Class, or file.py:Class")
    module = load_file(_existing(folder / place)) if place.endswith(".py") else _load_module(place)
    if not hasattr(module, name):
        raise ImportFailedError(f"{place} has no {name!r}", hint=did_you_mean(name, _public(module)))
    return getattr(module, name)


def _load_module(name: str) -> ModuleType:
    return _guard(name, lambda: importlib.import_module(name))


def _existing(file: Path) -> Path:
    if not file.is_file():
        raise ImportFailedError(f"there is no file {file}")
    return file


def _public(module: ModuleType) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_")]
