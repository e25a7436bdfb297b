"""Python files read without being executed, for the ports and parameters of the nodes in them.

Checking or drawing a description of somebody else must not run what lies beside it. A file is parsed: nodes,
controllers and types become classes with the same names, ports, policies and parameters, whose methods do
nothing. Imports of transect, numpy and typing are followed, as signatures are made of these; nothing else is
imported. A value that only running the file could tell is not known, and fits everything.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import importlib.util
import inspect
import math
import operator
import sys
import types
import typing
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from transect.errors import ImportFailedError, TransectError

from .controller import Controller
from .nodes import Node, NotExecutedError, node, param
from .ports import Frame, Shape, Synced, Unit, outputs

MAX_FILE_BYTES = 2_000_000  # of a Python file that is read
FOLLOWED = ("transect", "numpy", "typing", "typing_extensions", "collections", "math")
"""Packages whose modules are imported: they only define, and a signature may name what is in them."""
CALLED = (param, Synced, Shape, Unit, Frame, math.radians, math.degrees)
"""Functions and classes that a file may call in signatures and in the bodies of classes."""
BUILTINS = ("float", "int", "bool", "str", "bytes", "object", "list", "dict", "tuple", "set", "None")
PREFIX = "_transect_file_outline_"
BASE = "__transect_base__"
"""Attribute of a class with the name of an unknown base."""
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class _Unknown:
    def __repr__(self) -> str:
        return "?"


UNKNOWN: Any = _Unknown()
"""A value that is unknown unless the file is executed."""


def outline_file(file: Path, package: str = "") -> types.ModuleType:
    """Return a module with the classes and functions of a Python file, without their code.

    Parameters
    ----------
    package : str
        That relative imports are relative to; "" for a file that is in no package.

    Raises
    ------
    ImportFailedError
        If it is not valid Python, imports a missing package, or has an invalid node.
    """
    file = file.resolve()
    name = PREFIX + hashlib.sha256(f"{file}\n{file.stat().st_mtime_ns}".encode()).hexdigest()[:16]
    if name not in sys.modules:
        module = types.ModuleType(name)
        module.__file__ = str(file)
        sys.modules[name] = module  # where a class is asked for its file
        try:
            _Outline(module, file, package).read(_parse(file))
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def outline_module(name: str) -> types.ModuleType:
    """Return the outline of a module by its dotted name; no package above it is imported."""
    first, *rest = name.split(".")
    if first == "transect":
        return importlib.import_module(name)
    spec = _find_spec(first)
    places = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    files = [Path(spec.origin)] if spec is not None and spec.origin and not rest else []
    files += [place.joinpath(*rest).with_suffix(".py") for place in places if rest]
    files += [place.joinpath(*rest, "__init__.py") for place in places]
    found = next((file for file in files if file.suffix == ".py" and file.is_file()), None)
    if found is None:
        raise ImportFailedError(f"{name} cannot be imported", where=name, why=f"no module named {name!r}")
    return outline_file(found, name if found.name == "__init__.py" else name.rpartition(".")[0])


def refuse_unknown(module: types.ModuleType, name: str) -> None:
    """Raise if a name of an outlined module may be that of a node, and only running the file could tell."""
    found = vars(module).get(name)
    base = getattr(found, BASE, "")
    if found is UNKNOWN or base:
        raise NotExecutedError(
            f"{name} cannot be checked without running its file",
            where=str(module.__file__),
            why=f"its base class {base} is defined elsewhere" if base else "it is not a plain class",
            hint="--execute runs it",
        )


def _parse(file: Path) -> list[ast.stmt]:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ImportFailedError(f"{file} is too large to be read", where=str(file))
        return ast.parse(file.read_bytes(), str(file)).body
    except SyntaxError as error:
        place = f"{file}:{error.lineno or 0}"
        raise ImportFailedError(
            f"{file} cannot be imported", where=place, why=f"SyntaxError: {error.msg}"
        ) from error
    except (ValueError, RecursionError, MemoryError, OSError) as error:
        raise ImportFailedError(f"{file} cannot be read", where=str(file), why=str(error)) from error


def _find_spec(package: str) -> Any:
    """Return where a package without dots would be imported from; that imports nothing."""
    try:
        return importlib.util.find_spec(package)
    except ValueError:  # it is there, and does not say from where
        return ModuleSpec(package, None)


class _Outline:
    """Reads the statements of one file, in their order, into a module.

    Attributes
    ----------
    all_known : bool
        False once names may have come from somewhere that is not looked into.
    """

    def __init__(self, module: types.ModuleType, file: Path, package: str) -> None:
        self.module, self.file, self.package = module, file, package
        self.names: dict[str, Any] = vars(module)
        self.all_known = True

    def read(self, body: Iterable[ast.stmt]) -> None:
        """Read statements; one that would fail is an error."""
        for part in body:
            try:
                self._read_one(part)
            except ImportFailedError:
                raise
            except (Exception, RecursionError) as error:  # as when it is executed
                why = error.what if isinstance(error, TransectError) else str(error)
                raise self._failure(part, f"{type(error).__name__}: {why}") from error

    def _failure(self, part: ast.stmt, why: str) -> ImportFailedError:
        return ImportFailedError(
            f"{self.file} cannot be imported", where=f"{self.file}:{part.lineno}", why=why
        )

    def _read_one(self, part: ast.stmt) -> None:
        if isinstance(part, ast.Import | ast.ImportFrom):
            self._import(part)
        elif isinstance(part, ast.ClassDef):
            self.names[part.name] = self._class(part)
        elif isinstance(part, ast.FunctionDef):
            self.names[part.name] = self._function(part)
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            self.names.update(self._list_assigned(part))
        elif isinstance(part, ast.Raise):
            raise self._failure(part, ast.unparse(part))
        else:
            self._skim(part)

    def _skim(self, part: ast.stmt) -> None:
        """Read what a block may define; which of its branches would run is unknown."""
        for inner in ast.walk(part):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                self._import(inner, surely=False)
            elif isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                self.names.setdefault(inner.name, UNKNOWN)
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self.names.setdefault(inner.id, UNKNOWN)

    # Imports

    def _import(self, part: ast.Import | ast.ImportFrom, surely: bool = True) -> None:
        if isinstance(part, ast.Import):
            for each in part.names:
                found = self._module(each.name, part, surely)
                first = each.name.partition(".")[0]
                bound = found if each.asname or found is UNKNOWN else sys.modules[first]
                self.names[each.asname or first] = bound
            return
        if part.level and surely and not self.package:
            raise self._failure(part, "ImportError: attempted relative import with no known parent package")
        parts = self.package.split(".")[: 1 - part.level or None] if part.level else []
        named = ".".join([*parts, *([part.module] if part.module else [])])
        found = self._module(named, part, surely)
        for each in part.names:
            if each.name == "*":
                self._import_all(found)
            else:
                self.names[each.asname or each.name] = self._member(found, named, each.name)

    def _import_all(self, found: Any) -> None:
        if found is UNKNOWN:
            self.all_known = False
            return
        public = getattr(found, "__all__", [name for name in vars(found) if not name.startswith("_")])
        self.names.update({name: getattr(found, name) for name in public})

    def _module(self, name: str, part: ast.stmt, surely: bool) -> Any:
        first = name.partition(".")[0]
        if first in FOLLOWED:
            try:
                return importlib.import_module(name)
            except ImportError:
                if surely:
                    raise
                return UNKNOWN
        if surely and first not in sys.builtin_module_names and _find_spec(first) is None:
            raise self._failure(part, f"ModuleNotFoundError: No module named {first!r}")
        return UNKNOWN

    def _member(self, found: Any, module: str, name: str) -> Any:
        if found is UNKNOWN:
            return UNKNOWN
        try:
            return getattr(found, name)
        except AttributeError:
            return importlib.import_module(f"{module}.{name}")

    # Classes and functions

    def _class(self, part: ast.ClassDef) -> type:
        bases = [self._value(base) for base in part.bases]
        unknown = [ast.unparse(e) for e, base in zip(part.bases, bases, strict=True) if base is UNKNOWN]
        base_classes = tuple(base for base in bases if _is_base(base))
        members = self._members(part)
        if any(issubclass(base, Node | Controller) for base in base_classes):
            members["reset"] = _do_nothing  # that of a base would ask for methods which do nothing here
        elif unknown:
            members[BASE] = unknown[0]
        keywords = {each.arg: self._value(each.value) for each in part.keywords if each.arg != "metaclass"}
        is_node = any(issubclass(base, Node) for base in base_classes)
        known = {name: value for name, value in keywords.items() if is_node and name and value is not UNKNOWN}
        with _keep_implementations(base_classes):
            made = types.new_class(part.name, base_classes, known, lambda body: body.update(members))
        marked = any(self._value(each) is outputs for each in part.decorator_list)
        return outputs(made) if marked else made

    def _members(self, part: ast.ClassDef) -> dict[str, Any]:
        """Return what the body of a class defines: values, parameters, and methods that do nothing."""
        members: dict[str, Any] = {"__module__": self.module.__name__, "__doc__": ast.get_docstring(part)}
        hints: dict[str, Any] = {}
        for each in part.body:
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                hints[each.target.id] = self._hint(each.annotation, strict=False)
            if isinstance(each, ast.Assign | ast.AnnAssign):
                for name, value in self._list_assigned(each).items():
                    if value is not UNKNOWN and not name.startswith("__"):
                        members[name] = value
                    if getattr(value, "default", None) is UNKNOWN:
                        hints[name] = object
            elif isinstance(each, ast.FunctionDef) and each.name == "process":
                members[each.name] = self._stub(each)
            elif isinstance(each, ast.FunctionDef) and not each.name.startswith("__"):
                members[each.name] = _do_nothing
        members["__annotations__"] = hints
        return members

    def _function(self, part: ast.FunctionDef) -> Any:
        is_node = any(self._value(each) is node for each in part.decorator_list)
        return node(self._stub(part)) if is_node else _do_nothing

    def _stub(self, part: ast.FunctionDef) -> Any:
        """Return a function with the same signature, which does nothing."""

        def stub(*args: Any, **kwargs: Any) -> None:
            return None

        parameters = list(self._parameters(part.args))
        hints = {p.name: p.annotation for p in parameters if p.annotation is not inspect.Parameter.empty}
        if part.returns is not None:
            hints["return"] = self._hint(part.returns)
        stub.__name__ = stub.__qualname__ = part.name
        stub.__doc__, stub.__module__ = ast.get_docstring(part), self.module.__name__
        stub.__annotations__ = hints
        stub.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
        return stub

    def _parameters(self, args: ast.arguments) -> Iterator[inspect.Parameter]:
        kinds = inspect.Parameter
        positional = [*args.posonlyargs, *args.args]
        defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
        for number, (each, default) in enumerate(zip(positional, defaults, strict=True)):
            early = number < len(args.posonlyargs)
            kind = kinds.POSITIONAL_ONLY if early else kinds.POSITIONAL_OR_KEYWORD
            yield self._parameter(each, kind, default)
        if args.vararg:
            yield self._parameter(args.vararg, kinds.VAR_POSITIONAL, None)
        for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            yield self._parameter(each, kinds.KEYWORD_ONLY, default)
        if args.kwarg:
            yield self._parameter(args.kwarg, kinds.VAR_KEYWORD, None)

    def _parameter(self, each: ast.arg, kind: Any, default: ast.expr | None) -> inspect.Parameter:
        empty = inspect.Parameter.empty
        hint = empty if each.annotation is None else self._hint(each.annotation)
        value = empty if default is None else self._value(default)
        return inspect.Parameter(each.arg, kind, default=value, annotation=hint)

    # Values

    def _list_assigned(self, part: ast.Assign | ast.AnnAssign) -> dict[str, Any]:
        """Return the plain names that a statement assigns to, with their value."""
        targets = part.targets if isinstance(part, ast.Assign) else [part.target]
        names = [inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]
        if part.value is None:
            return {}
        simple = all(isinstance(target, ast.Name) for target in targets)
        value = self._value(part.value) if simple else UNKNOWN
        return dict.fromkeys(names, value)

    def _hint(self, part: ast.expr, strict: bool = True) -> Any:
        """Return the type that an annotation means; `object` where it is not known.

        No text may be left in it: to look up what an annotation means, Python evaluates text as code.
        """
        match part:
            case ast.Constant(value=str(text)):
                return self._hint(ast.parse(text, mode="eval").body, strict)
            case ast.Tuple() | ast.List():
                made = [self._hint(each, strict) for each in part.elts]
                return tuple(made) if isinstance(part, ast.Tuple) else made
            case ast.Subscript():
                return self._subscript(part, strict)
            case ast.BinOp(op=ast.BitOr()):
                return _unite(self._hint(part.left, strict), self._hint(part.right, strict))
            case _:
                value = self._value(part, strict)
                return object if isinstance(value, _Unknown | str | bytes | list | tuple | dict) else value

    def _subscript(self, part: ast.Subscript, strict: bool) -> Any:
        """Return a type with others in brackets; `Annotated` adds, and `Literal` lists, plain values."""
        owner = self._hint(part.value, strict)
        inside = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        if owner is typing.Literal:
            values = [self._value(each) for each in inside]
        elif owner is typing.Annotated:
            values = [self._hint(inside[0], strict), *(self._value(each) for each in inside[1:])]
        else:
            values = [self._hint(each, strict) for each in inside]
        try:
            return owner[tuple(values) if isinstance(part.slice, ast.Tuple) else values[0]]
        except TypeError:
            return object

    def _value(self, part: ast.expr, strict: bool = False) -> Any:
        """Return the value of an expression, `UNKNOWN` where it takes more than names and plain values.

        Parameters
        ----------
        strict : bool
            Whether a name that nothing defines is an error, as in a signature.
        """
        match part:
            case ast.Constant():
                return part.value
            case ast.Name():
                return self._look_up(part.id, strict)
            case ast.Attribute():
                owner = self._value(part.value, strict)
                # A default may be that of the settings of an algorithm: `param(Settings.window_s)`.
                is_followed = isinstance(owner, types.ModuleType) or is_dataclass(owner)
                return getattr(owner, part.attr, UNKNOWN) if is_followed else UNKNOWN
            case ast.Tuple() | ast.List():
                values = [self._value(each) for each in part.elts]
                made = tuple(values) if isinstance(part, ast.Tuple) else values
                return UNKNOWN if _any_unknown(values) else made
            case ast.Dict():
                keys = [UNKNOWN if key is None else self._value(key) for key in part.keys]
                values = [self._value(each) for each in part.values]
                return UNKNOWN if _any_unknown([*keys, *values]) else dict(zip(keys, values, strict=True))
            case ast.Subscript() | ast.BinOp(op=ast.BitOr()):
                return self._hint(part, strict=False)
            case ast.BinOp() | ast.UnaryOp():
                return self._number(part)
            case ast.Call():
                return self._call_known(part)
            case _:
                return UNKNOWN

    def _look_up(self, name: str, strict: bool) -> Any:
        if name in self.names:
            return self.names[name]
        if name in BUILTINS:
            return getattr(builtins, name)
        if strict and self.all_known and not hasattr(builtins, name):
            raise NameError(f"name {name!r} is not defined")
        return UNKNOWN

    def _number(self, part: ast.BinOp | ast.UnaryOp) -> Any:
        """Return the result of plain arithmetic."""
        sides = [part.left, part.right] if isinstance(part, ast.BinOp) else [part.operand]
        values = [self._value(side) for side in sides]
        if not all(type(value) in (int, float) for value in values):
            return UNKNOWN
        if isinstance(part, ast.UnaryOp):
            return -values[0] if isinstance(part.op, ast.USub) else UNKNOWN
        work = _ARITHMETIC.get(type(part.op))
        return UNKNOWN if work is None or abs(values[1]) == 0 else work(*values)

    def _call_known(self, part: ast.Call) -> Any:
        """Return what one of a few known functions makes of plain values; an unknown limit is no limit."""
        function = self._value(part.func)
        if not any(function is known for known in CALLED):
            return UNKNOWN
        positional = [self._value(each) for each in part.args]
        named = {each.arg: self._value(each.value) for each in part.keywords if each.arg}
        if _any_unknown([*positional, named.get("default")]):
            return param(UNKNOWN) if function is param else UNKNOWN
        return function(*positional, **{name: value for name, value in named.items() if value is not UNKNOWN})


def _any_unknown(values: Iterable[Any]) -> bool:
    return any(value is UNKNOWN for value in values)


def _do_nothing(*args: object, **kwargs: object) -> None:
    """Stand for a function that is not executed."""


def _is_base(kind: Any) -> bool:
    """Return whether a class may be a base of an outlined one."""
    if not isinstance(kind, type) or kind is object:
        return False
    own = kind.__module__.startswith(("transect.", PREFIX))
    return own or kind in (float, int, str)


@contextmanager
def _keep_implementations(bases: Iterable[type]) -> Generator[None]:
    """Keep an outlined class out of the implementations of an executable interface."""
    above = [base.interface for base in bases if issubclass(base, Node) and base is not Node]
    before = {each: dict(each.implementations) for each in above if not each.__module__.startswith(PREFIX)}
    try:
        yield
    finally:
        for each, known in before.items():
            each.implementations.clear()
            each.implementations.update(known)


def _unite(left: Any, right: Any) -> Any:
    try:
        return left | right
    except TypeError:
        return object
