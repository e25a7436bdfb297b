"""Plug-ins: where formats, robots, worlds, faults, checks, nodes, compounds, tables and commands are found.

A manifest is an object of class `Plugin`: names mapped to dotted strings, imported when they are used.
There are three places for one, asked in this order; the first that offers a name has it:

1. transect itself, `transect.manifest`;
2. each data set that comes with it, `transect.datasets.NAME.manifest`;
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
    """A plug-in that is not there, or that cannot be imported."""


def _nothing() -> dict[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """What a package offers: for each kind, names mapped to dotted strings."""

    name: str
    # modules with the labels of one mission's archive
    archives: Mapping[str, str] = field(default_factory=_nothing)
    # tuples of `Dialect` (`transect.formats.calibration`), by a name for the whole tuple: text files of
    # calibrations, told by a sign in their first bytes
    calibrations: Mapping[str, str] = field(default_factory=_nothing)
    # modules with the recordings of a published data set: `TITLE`, `COLUMNS`, `CATALOGUE` and, where it
    # prints lengths of drives or times twice, `find_published`, `find_misprints`
    catalogues: Mapping[str, str] = field(default_factory=_nothing)
    checks: Mapping[str, str] = field(default_factory=_nothing)  # classes of checks, or modules that have one
    # commands of click: verbs of `transect`, of `transect draw` and of `transect table`
    commands: Mapping[str, str] = field(default_factory=_nothing)
    compounds: Mapping[str, str] = field(default_factory=_nothing)  # YAML files
    drawings: Mapping[str, str] = field(default_factory=_nothing)
    # tuples of `Fault`, by a name for the whole tuple
    faults: Mapping[str, str] = field(default_factory=_nothing)
    # modules with `recognises`, `read` and perhaps `write`
    formats: Mapping[str, str] = field(default_factory=_nothing)
    # functions that take `check` and `verdicts` of a run and return what makes its verdicts; that of the
    # checks is called `checks`
    judges: Mapping[str, str] = field(default_factory=_nothing)
    # YAML files with limits of checks, by the name of the robot for which they hold
    limits: Mapping[str, str] = field(default_factory=_nothing)
    # classes of nodes, or functions made nodes, by the name of the class
    nodes: Mapping[str, str] = field(default_factory=_nothing)
    robots: Mapping[str, str] = field(default_factory=_nothing)  # YAML files
    tables: Mapping[str, str] = field(default_factory=_nothing)
    worlds: Mapping[str, str] = field(default_factory=_nothing)  # modules with `make_day`
    # other names of formats, `{"msgpack": "cdff_msgpack"}`, and the format in which a file of a suffix is
    # written, `{".gpx": "gpx"}`. No dotted strings.
    aliases: Mapping[str, str] = field(default_factory=_nothing)
    suffixes: Mapping[str, str] = field(default_factory=_nothing)

    def list_offered(self) -> list[str]:
        """Return what it offers in words, such as `formats: mybot`."""
        kinds = ((each.name, getattr(self, each.name)) for each in fields(self) if each.name != "name")
        return [f"{kind}: {', '.join(offered)}" for kind, offered in kinds if offered]


def list_modules(package: str, attribute: str = "", without: str = "") -> dict[str, str]:
    """Return the public modules of a package by name; none is imported.

    Parameters
    ----------
    attribute : str
        Name of the object in each module, such as ``command``; by default the module itself is meant.
    without : str
        A module that is left out: the one with the code that the others share.
    """
    end = f":{attribute}" if attribute else ""
    names = sorted(
        path.stem
        for path in folder_of(package).iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    )
    return {name: f"{package}.{name}{end}" for name in names if not name.startswith("_") and name != without}


def list_files(package: str, suffix: str) -> dict[str, str]:
    """Return the files of a package that have a suffix, by their names without it."""
    files = sorted(path.name for path in folder_of(package).iterdir() if path.suffix == suffix)
    return {name.removesuffix(suffix): f"{package}:{name}" for name in files}


def folder_of(package: str) -> Path:
    """Return where a package would be; no package is imported."""
    first, *rest = package.split(".")
    folder = _find_folder(first)
    if folder is None:
        raise PluginError(f"the package {first} is not installed", where=package)
    return folder.joinpath(*rest)


def names(kind: Kind) -> tuple[str, ...]:
    """Return the sorted names of all things of a kind; none of them is imported."""
    return tuple(sorted(strings(kind)))


def strings(kind: Kind | Literal["aliases", "suffixes"]) -> Mapping[str, str]:
    """Return the dotted strings of all things of a kind by name, in the order of their manifests."""
    return _merged(kind)


def find(kind: Kind, name: str) -> str | None:
    """Return the dotted string of a thing, None if no manifest offers it.

    The other manifests are imported only if that of transect itself does not have the name.
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
    """Return the thing of a name, imported.

    Raises
    ------
    PluginError
        If nothing of this kind has the name, or it cannot be imported.
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
    """Return what a dotted string of a manifest means: ``package.module`` or ``package.module:attribute``."""
    module, _, attribute = dotted.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def file_of(kind: Kind, name: str) -> Path:
    """Return the file of a robot or a compound; the package that it is in is not imported."""
    value = _string_of(kind, name)
    package, _, file = value.partition(":")
    first, *rest = package.split(".")
    folder = _find_folder(first)
    if folder is None or not (path := folder.joinpath(*rest, file)).is_file():
        raise PluginError(f"the file of {name}, one of the {kind}, is not there", where=value)
    return path


def file_of_module(module: str) -> Path | None:
    """Return the Python file of a module, None if it is not there; the module is not imported."""
    first, *rest = module.split(".")
    folder = _find_folder(first)
    if folder is None or not rest:
        return None
    found = folder.joinpath(*rest)
    return next((f for f in (found.with_suffix(".py"), found / "__init__.py") if f.is_file()), None)


def _find_folder(package: str) -> Path | None:
    """Return the folder of a package without dots, None if it is not installed; it is not imported."""
    places = (spec := find_spec(package)) and spec.submodule_search_locations
    return Path(next(iter(places))) if places else None


def _string_of(kind: Kind, name: str) -> str:
    found = find(kind, name)
    if found is None:
        raise PluginError(f"there is no {name!r} among the {kind}", hint=did_you_mean(name, strings(kind)))
    return found


def every_plugin() -> tuple[Plugin, ...]:
    """Return all manifests in the order in which they are asked."""
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
    """Offer what a plug-in has while a block runs, in this process: for scripts, notebooks and tests."""
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
        except Exception as error:  # noqa: BLE001 - others must not break every command
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
            hint="uninstall its package, or mend it",
        )
    return _Installed(tuple(installed), failed)


def _entry_points() -> list[EntryPoint]:
    """Return the entry points of installed packages; what lies in the working directory is not installed."""
    places = [place for place in sys.path if place and Path(place).resolve() != Path.cwd()]
    if not any(map(_may_have_group, map(Path, places))):
        return []
    from importlib.metadata import distributions

    found = [point for package in distributions(path=places) for point in package.entry_points]
    return sorted((point for point in found if point.group == GROUP), key=lambda point: point.name)


def _may_have_group(place: Path) -> bool:
    """Look for the group among what is installed: a tenth of the time that importlib.metadata takes."""
    if place.is_file():  # an archive, into which only importlib.metadata looks
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
