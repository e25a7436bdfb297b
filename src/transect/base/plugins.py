"""Plug-ins: the registry of formats, robots, worlds, faults, checks, nodes, compounds, tables and commands.

A manifest is an object of class `Plugin` that maps names to dotted strings, which are imported on use.
Manifests are searched in this order; the first one with a name wins:

1. transect itself, `transect.manifest`;
2. each data set that is part of it, `transect.datasets.NAME.manifest`;
3. each installed package with an entry point of the group `transect.plugins`::

       [project.entry-points."transect.plugins"]
       fieldkit = "fieldkit.manifest:plugin"

A dotted string is ``package.module`` or ``package.module:attribute``; a file in a package is
``package:file.yaml``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from transect.errors import TransectError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

CORE = "transect.manifest"
DATASETS = "transect.datasets"
GROUP = "transect.plugins"

Kind = Literal[
    "archives",
    "calibrations",
    "catalogues",
    "checks",
    "commands",
    "compounds",
    "drawings",
    "faults",
    "formats",
    "judges",
    "limits",
    "nodes",
    "robots",
    "tables",
    "worlds",
]


class PluginError(TransectError):
    """A plug-in that does not exist, or cannot be imported."""


def _nothing() -> dict[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """The contributions of a package: for each kind, names mapped to dotted strings."""

    name: str
    # modules with the labels of one mission's archive
    archives: Mapping[str, str] = field(default_factory=_nothing)
    # tuples of `Dialect` (`transect.formats.calibration`), by a common name: text formats of calibrations,
    # recognised by their first bytes
    calibrations: Mapping[str, str] = field(default_factory=_nothing)
    # modules with the recordings of a published data set: `TITLE`, `COLUMNS`, `CATALOGUE`, and optionally
    # `find_published` and `find_misprints`
    catalogues: Mapping[str, str] = field(default_factory=_nothing)
    checks: Mapping[str, str] = field(default_factory=_nothing)  # classes of checks, or modules with one
    # click commands of `transect`, `transect draw` and `transect table`
    commands: Mapping[str, str] = field(default_factory=_nothing)
    compounds: Mapping[str, str] = field(default_factory=_nothing)  # YAML files
    drawings: Mapping[str, str] = field(default_factory=_nothing)
    # tuples of `Fault`, by a common name
    faults: Mapping[str, str] = field(default_factory=_nothing)
    # modules with `recognises`, `read` and optionally `write`
    formats: Mapping[str, str] = field(default_factory=_nothing)
    # functions of the options `check` and `verdicts` of a run that return its source of verdicts
    judges: Mapping[str, str] = field(default_factory=_nothing)
    # YAML files with limits of checks, by the name of the robot
    limits: Mapping[str, str] = field(default_factory=_nothing)
    # node classes, or functions converted to nodes, by name
    nodes: Mapping[str, str] = field(default_factory=_nothing)
    robots: Mapping[str, str] = field(default_factory=_nothing)  # YAML files
    tables: Mapping[str, str] = field(default_factory=_nothing)
    worlds: Mapping[str, str] = field(default_factory=_nothing)  # modules with `make_day`
    # aliases of formats, `{"msgpack": "cdff_msgpack"}`, and the format to write for a suffix,
    # `{".gpx": "gpx"}`; not dotted strings
    aliases: Mapping[str, str] = field(default_factory=_nothing)
    suffixes: Mapping[str, str] = field(default_factory=_nothing)

    def list_offered(self) -> list[str]:
        """Return its contributions as text, such as `formats: mybot`."""
        kinds = ((each.name, getattr(self, each.name)) for each in fields(self) if each.name != "name")
        return [f"{kind}: {', '.join(offered)}" for kind, offered in kinds if offered]


def list_modules(package: str, attribute: str = "", without: str = "") -> dict[str, str]:
    """Return the public modules of a package by name, without importing them.

    Parameters
    ----------
    attribute : str
        Name of the object in each module, such as ``command``; by default the module itself.
    without : str
        A module to omit, with code shared by the others.
    """
    end = f":{attribute}" if attribute else ""
    names = sorted(
        path.stem
        for path in folder_of(package).iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    )
    return {name: f"{package}.{name}{end}" for name in names if not name.startswith("_") and name != without}


def list_files(package: str, suffix: str) -> dict[str, str]:
    """Return the files of a package with a suffix, by stem."""
    files = sorted(path.name for path in folder_of(package).iterdir() if path.suffix == suffix)
    return {name.removesuffix(suffix): f"{package}:{name}" for name in files}


def folder_of(package: str) -> Path:
    """Return the folder of a package, without importing it."""
    first, *rest = package.split(".")
    folder = _find_folder(first)
    if folder is None:
        raise PluginError(f"the package {first} is not installed", where=package)
    return folder.joinpath(*rest)


def names(kind: Kind) -> tuple[str, ...]:
    """Return the sorted names of a kind, without importing anything."""
    return tuple(sorted(strings(kind)))


def strings(kind: Kind | Literal["aliases", "suffixes"]) -> Mapping[str, str]:
    """Return the dotted strings of a kind by name, in the order of the manifests."""
    return _merged(kind)


def find(kind: Kind, name: str) -> str | None:
    """Return the dotted string of a name, None if no manifest has it.

    Other manifests are imported only if that of transect itself does not have the name.
    """
    return getattr(_core_plugin(), kind).get(name) or strings(kind).get(name)


@cache
def _merged(kind: str) -> Mapping[str, str]:
    merged: dict[str, str] = {}
    for plugin in every_plugin():
        for name, value in getattr(plugin, kind).items():
            merged.setdefault(name, value)
    return merged


def load(kind: Kind, name: str) -> Any:
    """Import and return the object of a name.

    Raises
    ------
    PluginError
        If the name does not exist, or cannot be imported.
    """
    value = _string_of(kind, name)
    try:
        return load_dotted(value)
    except TransectError:
        raise
    except Exception as error:
        raise PluginError(
            f"{name}, one of the {kind}, cannot be imported",
            where=value,
            why=f"{type(error).__name__}: {error}",
        ) from error


def load_dotted(dotted: str) -> Any:
    """Import a dotted string of a manifest: ``package.module`` or ``package.module:attribute``."""
    module, _, attribute = dotted.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def file_of(kind: Kind, name: str) -> Path:
    """Return the file of a robot or a compound, without importing its package."""
    value = _string_of(kind, name)
    package, _, file = value.partition(":")
    first, *rest = package.split(".")
    folder = _find_folder(first)
    if folder is None or not (path := folder.joinpath(*rest, file)).is_file():
        raise PluginError(f"the file of {name}, one of the {kind}, does not exist", where=value)
    return path


def file_of_module(module: str) -> Path | None:
    """Return the Python file of a module, None if it does not exist, without importing it."""
    first, *rest = module.split(".")
    folder = _find_folder(first)
    if folder is None or not rest:
        return None
    found = folder.joinpath(*rest)
    return next((f for f in (found.with_suffix(".py"), found / "__init__.py") if f.is_file()), None)


def _find_folder(package: str) -> Path | None:
    """Return the folder of a top-level package, None if it is not installed, without importing it."""
    places = (spec := find_spec(package)) and spec.submodule_search_locations
    return Path(next(iter(places))) if places else None


def _string_of(kind: Kind, name: str) -> str:
    found = find(kind, name)
    if found is None:
        raise PluginError(f"there is no {name!r} among the {kind}", hint=did_you_mean(name, strings(kind)))
    return found


def every_plugin() -> tuple[Plugin, ...]:
    """Return all manifests in search order."""
    return (_core_plugin(), *_dataset_plugins(), *_find_installed().plugins, *_added)


def installed_plugins() -> tuple[Plugin, ...]:
    """Return the manifests of packages outside transect."""
    return _find_installed().plugins


def foreign_plugins() -> tuple[Plugin, ...]:
    """Return the manifests of packages outside transect and those of `added`."""
    return (*installed_plugins(), *_added)


def failures() -> Mapping[str, TransectError]:
    """Return the installed plug-ins whose manifest cannot be imported, and why."""
    return _find_installed().failed


_added: list[Plugin] = []


@contextmanager
def added(plugin: Plugin) -> Generator[None]:
    """Register a plug-in in this process within a block, e.g. in scripts, notebooks and tests."""
    _added.append(plugin)
    _merged.cache_clear()
    try:
        yield
    finally:
        _added.remove(plugin)
        _merged.cache_clear()


@cache
def _core_plugin() -> Plugin:
    return importlib.import_module(CORE).plugin


@cache
def _dataset_plugins() -> tuple[Plugin, ...]:
    folder = folder_of(DATASETS)
    found = sorted(path.parent.name for path in folder.glob("*/manifest.py")) if folder.is_dir() else []
    return tuple(importlib.import_module(f"{DATASETS}.{name}.manifest").plugin for name in found)


class _Installed(NamedTuple):
    plugins: tuple[Plugin, ...]
    failed: Mapping[str, TransectError]


@cache
def _find_installed() -> _Installed:
    installed: list[Plugin] = []
    failed: dict[str, TransectError] = {}
    for point in _entry_points():
        try:
            plugin = point.load()
        except Exception as error:  # noqa: BLE001 - a plug-in must not break every command
            why = f"{type(error).__name__}: {error}"
        else:
            if isinstance(plugin, Plugin):
                installed.append(plugin)
                continue
            why = f"it is a {type(plugin).__name__}, not a Plugin"
        failed[point.name] = PluginError(
            f"the plug-in {point.name} cannot be used",
            where=point.value,
            why=why,
            hint="uninstall its package, or fix it",
        )
    return _Installed(tuple(installed), failed)


def _entry_points() -> list[EntryPoint]:
    """Return the entry points of installed packages, not of the working directory."""
    places = [place for place in sys.path if place and Path(place).resolve() != Path.cwd()]
    if not any(map(_may_have_group, map(Path, places))):
        return []
    from importlib.metadata import distributions

    found = [point for package in distributions(path=places) for point in package.entry_points]
    return sorted((point for point in found if point.group == GROUP), key=lambda point: point.name)


def _may_have_group(place: Path) -> bool:
    """Return whether installed packages name the group; ten times as fast as importlib.metadata."""
    if place.is_file():  # an archive, which only importlib.metadata can read
        return True
    files = (
        folder / "entry_points.txt" for kind in ("*.dist-info", "*.egg-info") for folder in place.glob(kind)
    )
    return any(map(_names_group, files))


def _names_group(file: Path) -> bool:
    try:
        return GROUP.encode() in file.read_bytes()
    except OSError:
        return False
