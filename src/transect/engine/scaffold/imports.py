"""Imports of Python written by a program: which are needed, and where they go."""

from __future__ import annotations

import ast
import builtins
import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .code import write_call

Imports = dict[str, set[str]]
"""Names by the module that they come from; none where the module itself is imported."""


def find_imports(kinds: Iterable[type]) -> Imports:
    """Return what annotations of these types need."""
    found: Imports = {}
    for kind in kinds:
        if kind is np.ndarray:
            found |= {"typing": {"Any"}, "numpy.typing": {"NDArray"}}
        elif not hasattr(builtins, kind.__name__):
            found.setdefault("transect.types", set()).add(kind.__name__)
    return found


def write_imports(imports: Mapping[str, Iterable[str]]) -> str:
    """Return import statements: the standard library first, then others, each sorted as ruff does."""
    ordered = sorted(imports, key=lambda module: (module != "typing", bool(imports[module]), module))
    text = "\n".join(_import(module, imports[module]) for module in ordered)
    return text.replace("import Any\n", "import Any\n\n", 1)


def _import(module: str, names: Iterable[str]) -> str:
    ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name.lower()))
    if not ordered:
        return f"import {module}"
    return write_call(f"from {module} import ", ordered, "", brackets=False)


def add_imports(source: str, needed: Imports) -> str:
    """Return a module with the imports that it lacks, in its statements for the same modules if it can be."""
    lines = source.split("\n")
    top = list(_top(ast.parse(source)))
    statements = {node.module: node for node in top if isinstance(node, ast.ImportFrom)}
    for module, names in sorted(needed.items()):
        statement = statements.get(module)
        aliases = statement.names if statement else []
        have = {alias.name for alias in aliases if not alias.asname}
        if names <= have:
            continue
        if statement and len(have) == len(aliases):
            lines[statement.lineno - 1 : statement.end_lineno] = [_import(module, have | names)]
        else:
            _insert(lines, top, module, _import(module, names - have))
        return add_imports("\n".join(lines), needed)
    return source


def _top(tree: ast.Module) -> Iterable[ast.stmt]:
    """Return the docstring and the imports at the top of a module."""
    kinds = (ast.Expr, ast.Import, ast.ImportFrom)
    return itertools.takewhile(lambda node: isinstance(node, kinds), tree.body)


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
