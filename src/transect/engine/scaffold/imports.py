"""Imports of Python written by a program: which are needed, and where they go."""

from __future__ import annotations

import ast
import builtins
import itertools
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from .code import WIDTH, write_call

Imports = dict[str, set[str]]
"""Names by the module that they come from."""


def find_imports(kinds: Iterable[type]) -> Imports:
    """Return what annotations of these types need."""
    found: Imports = {}
    for kind in kinds:
        if kind is np.ndarray:
            found |= {"typing": {"Any"}, "numpy.typing": {"NDArray"}}
        elif not hasattr(builtins, kind.__name__):
            found.setdefault("transect.types", set()).add(kind.__name__)
    return found


def _write_import(module: str, names: Iterable[str]) -> str:
    """Return an import statement whose names are sorted as ruff does."""
    ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name.lower()))
    line = f"from {module} import {', '.join(ordered)}"
    return line if len(line) <= WIDTH else write_call(f"from {module} import ", ordered)


def add_imports(source: str, needed: Imports) -> str:
    """Return a module with the imports that it lacks, in its statements for the same modules if it can be."""
    for module, names in sorted(needed.items()):
        source = _add_import(source, module, names)
    return source


def _add_import(source: str, module: str, names: set[str]) -> str:
    kinds = (ast.Expr, ast.Import, ast.ImportFrom)
    top = list(itertools.takewhile(lambda node: isinstance(node, kinds), ast.parse(source).body))
    same = [node for node in top if isinstance(node, ast.ImportFrom) and node.module == module]
    missing = names - {alias.name for node in same for alias in node.names if not alias.asname}
    if not missing:
        return source
    lines = source.split("\n")
    if plain := [node for node in same if not any(alias.asname for alias in node.names)]:
        merged = missing | {alias.name for alias in plain[-1].names}
        lines[plain[-1].lineno - 1 : plain[-1].end_lineno] = [_write_import(module, merged)]
    else:
        _insert(lines, top, module, _write_import(module, missing))
    return "\n".join(lines)


def _insert(lines: list[str], top: Sequence[ast.stmt], module: str, statement: str) -> None:
    """Put an import where sorting would: in its block, or in a block of its own."""
    key = _import_key(ast.ImportFrom(module, [], 0))
    after = next((node for node in top if _import_key(node) > key), None)
    before = next((node for node in reversed(top) if _import_key(node) <= key), None)
    if after is not None and _import_key(after)[0] == key[0]:
        lines.insert(after.lineno - 1, statement)
    else:
        at = (before.end_lineno or 0) if before is not None else 0
        same = before is not None and _import_key(before)[0] == key[0]
        lines[at:at] = [statement] if same else ["", statement]


def _import_key(node: ast.stmt) -> tuple[int, bool, str]:
    """Return what sorts imports: docstring, future, standard library, others; `import` before `from`."""
    if isinstance(node, ast.Expr):
        return 0, False, ""
    is_from = isinstance(node, ast.ImportFrom)
    name = (node.module or "") if is_from else node.names[0].name if isinstance(node, ast.Import) else ""
    first = name.split(".")[0]
    block = 1 if first == "__future__" else 2 if first in sys.stdlib_module_names else 3
    return block, is_from, name
