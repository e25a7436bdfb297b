"""Lookup of the names in a description: nodes, compounds, and descriptions of nodes.

Of files beside a description the file name is the name. Names are listed without importing anything, and
such a file is imported when its interface is named; only where a description is run, else it is read
(`outline`). Looked for, in this order:

1. what was given: classes, description files and Python files;
2. beside the description, and in the folder `nodes` there;
3. what transect, its data sets and installed plug-ins offer (`base/plugins.py`).
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

from transect.base import plugins
from transect.errors import ImportFailedError, TransectError, UsageError, did_you_mean

from .description import CompoundText, NodeText
from .nodes import Node, NodeFunction
from .reading import read_description

T = TypeVar("T", bound="type[Node] | NodeFunction[..., Any] | NodeText | CompoundText")
Registered = type[Node] | NodeText | CompoundText

PACKAGE = Path(__file__).resolve().parents[1]
SUFFIXES = (".py", ".yaml", ".yml")
DESCRIBES = re.compile(r"(?:interface)?(?:_?(?:dfn|dfpc))?(?:_?desc)?$", re.IGNORECASE)
"""What CDFF appends to the name of an interface in the name of its file."""
SPEC = re.compile(r"(?P<name>.*\.(?:ya?ml|py)|[^/]+)(?:/(?P<implementation>[^/]+))?")


def key_of(name: str) -> str:
    """Return a name as it is compared with file names: `features_extraction_2d` is `FeaturesExtraction2D`."""
    return name.replace("_", "").lower()


@cache
def keys_of(file: Path) -> frozenset[str]:
    """Return the names that a file may stand for."""
    return frozenset((key_of(file.stem), key_of(DESCRIBES.sub("", file.stem))))


class Catalogue:
    """Finds nodes and compounds by their names.

    Parameters
    ----------
    folders : iterable of Path
        Searched in this order, after the files.
    files : iterable of Path
        Python files and descriptions.
    execute : bool
        Whether Python files that are not transect's own are run; else they are only read (`outline`).
    offered : bool
        Whether nodes and compounds of transect and plug-ins are found, too.
    """

    def __init__(
        self,
        folders: Iterable[Path] = (),
        files: Iterable[Path] = (),
        execute: bool = True,
        offered: bool = False,
    ) -> None:
        self._registered: dict[str, list[Registered]] = {}
        self._read: dict[Path, CompoundText | NodeText] = {}
        self._given = [Path(file) for file in files]
        self._folders = list(folders)
        self.execute, self.offered = execute, offered

    def register(self, thing: T) -> T:
        """Add a class of nodes, a function made a node, or a description.

        It takes precedence over all others.
        """
        definition = thing.Class if isinstance(thing, NodeFunction) else thing
        name = definition.__name__ if isinstance(definition, type) else definition.name
        self._registered.setdefault(name, []).append(definition)
        return thing

    def node(self, name: str) -> type[Node] | None:
        """Return the class of a node by the name of its interface, or of the function that it is."""
        for known in self._registered.get(name, ()):
            if isinstance(known, type):
                return known
        for file in self._python_files(name):
            module = self.load_file(file)
            if (found := _in_module(module, name)) is not None:
                return found
            if not self.execute:
                from .outline import refuse_unknown

                refuse_unknown(module, name)
        return self._offered_node(name)

    def implementation(self, name: str, implementation: str = "") -> type[Node] | None:
        """Return the class that implements an interface, which may be in another file beside the description.

        Without a name it is the only one, or None.
        """
        interface = self.node(name)
        if interface is None:
            return None
        known = interface.implementations
        if not implementation:
            return next(iter(known.values())) if len(known) == 1 else None
        if implementation in known:
            return known[implementation]
        found = self.node(implementation)  # defining a class adds it to the implementations of its interface
        return found if found is not None and issubclass(found, interface) else known.get(implementation)

    def load_file(self, file: Path) -> ModuleType:
        """Return the module of a Python file, or its outline."""
        if not self.execute and not file.resolve().is_relative_to(PACKAGE):
            imported = _import_as(file.resolve())
            return _outline_file(file) if imported is None else imported
        return load_file(file)

    def load_object(self, spec: str, folder: Path) -> Any:
        """Return what `module:Name`, or `file.py:Name` in a folder, means."""
        place, _, name = spec.partition(":")
        if not name:
            raise ImportFailedError(f"{spec!r} names no class", hint="write module:Class, or file.py:Class")
        module = self.load_file(_existing(folder / place)) if place.endswith(".py") else self._module(place)
        if not hasattr(module, name):
            raise ImportFailedError(f"{place} has no {name!r}", hint=did_you_mean(name, _public(module)))
        return getattr(module, name)

    def _module(self, name: str) -> ModuleType:
        if self.execute:
            return _guard(name, lambda: importlib.import_module(name))
        from .outline import outline_module

        return outline_module(name)

    def compound(self, name: str) -> CompoundText | None:
        """Return a compound's description."""
        return next((d for d in self._descriptions(name) if isinstance(d, CompoundText)), None)

    def text(self, name: str) -> NodeText | None:
        """Return the description of an interface of nodes, where there is a file for it."""
        return next((d for d in self._descriptions(name) if isinstance(d, NodeText)), None)

    def names(self) -> list[str]:
        """Return all names, as their files or classes spell them; nothing is imported for that."""
        files = [_name_of(file) for file in self._files if not file.stem.startswith("_")]
        return sorted({*self._registered, *files, *self._offers("nodes"), *self._offers("compounds")})

    def compound_names(self) -> list[str]:
        """Return the names of all descriptions, as their files spell them."""
        files = [DESCRIBES.sub("", file.stem) for file in self._files if file.suffix != ".py"]
        known = [name for name, things in self._registered.items() if not isinstance(things[0], type)]
        return sorted({*known, *map(_spell, files), *self._offers("compounds")})

    def _offers(self, kind: Literal["nodes", "compounds"]) -> Iterable[str]:
        return plugins.strings(kind) if self.offered else ()

    def _find_offered(self, kind: Literal["nodes", "compounds"], name: str) -> str:
        """Return a name as the manifest spells it, "" if none offers it."""
        if not self.offered:
            return ""
        if plugins.find(kind, name) is not None:
            return name
        return next((known for known in plugins.strings(kind) if key_of(known) == key_of(name)), "")

    def _offered_node(self, name: str) -> type[Node] | None:
        offered = self._find_offered("nodes", name)
        return _as_node(_guard(offered, lambda: plugins.load("nodes", offered))) if offered else None

    @cached_property
    def _files(self) -> list[Path]:
        return [*self._given, *(file for folder in self._folders for file in _files_in(folder))]

    def _python_files(self, name: str) -> Iterator[Path]:
        """Yield the files named so, then those that define it among others."""
        scripts = [file for file in self._files if file.suffix == ".py"]
        named = [file for file in scripts if key_of(name) in keys_of(file)]
        yield from named
        for file in scripts:
            if file not in named and _defines(file, name):
                yield file

    def _descriptions(self, name: str) -> Iterator[CompoundText | NodeText]:
        for known in self._registered.get(name, ()):
            if not isinstance(known, type):
                yield known
        for file in self._files:
            if file.suffix != ".py" and key_of(name) in keys_of(file):
                yield self._description(file)
        if offered := self._find_offered("compounds", name):
            yield self._description(plugins.file_of("compounds", offered))

    def _description(self, file: Path) -> CompoundText | NodeText:
        if file not in self._read:
            self._read[file] = read_description(file)
        return self._read[file]


def catalogue_for(
    file: Path | str | None = None, also: Iterable[Path] = (), execute: bool = True
) -> Catalogue:
    """Return the catalogue for a description.

    Parameters
    ----------
    file : path, optional
        The description: what lies beside it is found.
    also : iterable of Path
        Python files and descriptions that are found before all else.
    execute : bool
        As of `Catalogue`.
    """
    folders = [] if not file else [Path(file).parent, Path(file).parent / "nodes"]
    return Catalogue(folders, also, execute, offered=True)


def compound_named(spec: str, catalogue: Catalogue) -> tuple[CompoundText, str]:
    """Return the compound of a specification, and the implementation, "" if none is named.

    Parameters
    ----------
    spec : str
        `Name`, `Name/Implementation`, `file.yaml` or `file.yaml/Implementation`. A file whose name is also
        that of a compound needs its suffix: otherwise files of a recording could replace compounds.
    catalogue : Catalogue
        Where names are found.
    """
    found = SPEC.fullmatch(spec)
    name, implementation = (found["name"], found["implementation"] or "") if found else ("", "")
    compound = catalogue.compound(name) if name and Path(name).suffix not in SUFFIXES else None
    if compound is None and Path(spec).is_file():
        return _compound_file(spec), ""
    if found is None:
        raise UsageError(f"{spec!r} does not name a compound", hint="Name/Implementation, or file.yaml")
    if Path(name).suffix in SUFFIXES:
        compound = _compound_file(name)
    if compound is None:
        raise UsageError(f"there is no compound {name!r}", hint=_nearest(name, catalogue))
    named = [known for known in compound.implementations if known]
    if implementation and implementation not in named:
        hint = did_you_mean(implementation, named)
        raise UsageError(f"{name} has no implementation {implementation!r}", where=compound.file, hint=hint)
    return compound, implementation


def node_named(spec: str, catalogue: Catalogue) -> type[Node] | None:
    """Return the node of a specification, None if it is a compound or unknown.

    Parameters
    ----------
    spec : str
        `Name`, `Name/Implementation`, `file.py` or `file.py/Name`.
    catalogue : Catalogue
        Where names are found; a compound takes precedence over a node of the same name.
    """
    found = SPEC.fullmatch(spec)
    if found is None:
        return None
    name, chosen = found["name"], found["implementation"] or ""
    if Path(name).suffix == ".py":
        return _node_in_file(Path(name), chosen, catalogue)
    if Path(name).suffix in SUFFIXES or catalogue.compound(name) is not None:
        return None
    kind = catalogue.node(name)
    if kind is None or not chosen:
        return kind
    if (implementation := catalogue.implementation(name, chosen)) is None:
        hint = did_you_mean(chosen, kind.interface.implementations)
        raise UsageError(f"{name} has no implementation {chosen!r}", hint=hint)
    return implementation


def _node_in_file(file: Path, name: str, catalogue: Catalogue) -> type[Node]:
    """Return the node of a name in a Python file; without a name, that of the file's name or the only one."""
    if not file.is_file():
        raise UsageError(f"there is no file {file}")
    module = catalogue.load_file(file)
    own = {
        key: node
        for key, thing in vars(module).items()
        if (node := _as_node(thing)) is not None and node.__module__ == module.__name__
    }
    if name and name not in own:
        raise UsageError(f"{file} has no node {name!r}", hint=did_you_mean(name, own))
    if not own:
        hint = "class MyNode(Node), or @node above a function"
        raise UsageError(f"{file} defines no node, and describes no compound", hint=hint)
    alike = [key for key in own if key_of(key) in keys_of(file)]
    chosen = [name] if name else alike or list(own)
    if len(chosen) > 1:
        raise UsageError(f"{file} has several nodes", hint=", ".join(f"{file}/{key}" for key in chosen))
    return own[chosen[0]]


def _nearest(name: str, catalogue: Catalogue) -> str:
    """Return a suggestion for an unknown name: a file in the working directory needs its suffix."""
    files = [
        file.name for file in _files_in(Path()) if file.suffix != ".py" and key_of(name) in keys_of(file)
    ]
    return f"did you mean the file {files[0]}?" if files else did_you_mean(name, catalogue.compound_names())


def _compound_file(name: str) -> CompoundText:
    if not Path(name).is_file():
        raise UsageError(f"there is no file {name}")
    description = read_description(name)
    if isinstance(description, NodeText):
        raise UsageError(f"{name} describes a node, not a compound", hint="wire it into a compound")
    return description


def _files_in(folder: Path) -> list[Path]:
    """Return the descriptions and Python files of a folder by name."""
    return sorted(file for file in folder.glob("*") if file.suffix in SUFFIXES and file.is_file())


@cache
def _name_of(file: Path) -> str:
    """Return the name that a file stands for, with the spelling of its class or function if it has one."""
    stem = DESCRIBES.sub("", file.stem)
    if file.suffix == ".py":
        text = file.read_text(encoding="utf-8", errors="replace")
        for name in re.findall(r"^(?:class|def) (\w+)\(", text, re.MULTILINE):
            if key_of(name) == key_of(stem):
                return name
    return _spell(stem)


def _spell(stem: str) -> str:
    """Return the name that a file in snake case stands for."""
    return "".join(word[:1].upper() + word[1:] for word in stem.split("_"))


def _defines(file: Path, name: str) -> bool:
    """Return from its text alone whether a file defines a class or a function."""
    text = file.read_text(encoding="utf-8", errors="replace")
    return re.search(rf"^(class|def) {re.escape(name)}\(", text, re.MULTILINE) is not None


def _in_module(module: ModuleType, name: str) -> type[Node] | None:
    """Return the node of a name in a module; in a file of that name another spelling is accepted."""
    members = vars(module)
    spellings = (name, *(member for member in members if key_of(member) == key_of(name)))
    return next((found for s in spellings if (found := _as_node(members.get(s))) is not None), None)


def _as_node(thing: Any) -> type[Node] | None:
    if isinstance(thing, NodeFunction):
        return thing.Class
    return thing if isinstance(thing, type) and issubclass(thing, Node) else None


ROOT = Path(__file__).resolve().parents[2]
PREFIX = "_transect_file_"


def load_file(file: Path) -> ModuleType:
    """Return the module of a Python file, imported once unless the file has changed.

    Files of the same name in different folders are different modules. A file that is imported already, or is
    the script that runs, is not executed again: its classes are those of the running program.
    """
    file = file.resolve()
    if file.is_relative_to(ROOT / "transect"):
        dotted = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        return _guard(file, lambda: importlib.import_module(dotted))
    imported = _import_as(file)
    return imported if imported is not None else _guard(file, lambda: _execute(file))


def _outline_file(file: Path) -> ModuleType:
    from .outline import outline_file

    return outline_file(file)


def _import_as(file: Path) -> ModuleType | None:
    for name, module in sys.modules.copy().items():  # another thread may import meanwhile
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


def _existing(file: Path) -> Path:
    if not file.is_file():
        raise ImportFailedError(f"there is no file {file}")
    return file


def _public(module: ModuleType) -> list[str]:
    return [name for name in vars(module) if not name.startswith("_")]
