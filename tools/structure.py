"""How the package is put together: the targets of its structure, measured.

    python -m tools.structure                  # a table: what is measured, and the target
    python -m tools.structure --list cycles    # each item with its file and line

Imports are read from the syntax tree, also those inside functions; those for type checking alone count as
well, except in cycles. Modules in `DATA_SETS` count as those of a data set although they are not in
`datasets/`.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "transect"
DATA_SETS: Mapping[str, tuple[str, ...]] = {}
"""Modules of a data set that are outside of its folder in `datasets/`."""
HARMLESS_DECORATORS = {
    "cache",
    "lru_cache",
    "dataclass",
    "contextmanager",
    "njit",
    "runtime_checkable",
    "wraps",
    "final",
}
"""A definition with another decorator may be registered by it, and counts as reached."""
HELP_RUNS = 7


@dataclass(frozen=True)
class Import:
    """A module imports another one."""

    source: str
    target: str
    line: int
    is_for_types: bool
    is_lazy: bool


@dataclass(frozen=True)
class Item:
    """Something that was found, and where."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Module:
    """A file of the package."""

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, str(self.path))

    @property
    def is_package(self) -> bool:
        """Whether it is an `__init__.py`."""
        return self.path.name == "__init__.py"


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Package:
    """All modules of a package, and what can be measured of them without running it."""

    def __init__(
        self, root: Path, data_sets: Mapping[str, Sequence[str]] = DATA_SETS, texts: Sequence[Path] = ()
    ) -> None:
        self.root = root
        self.name = root.name
        self.modules = {module.name: module for module in self._read()}
        self.data_sets = data_sets
        self.texts = texts

    def _read(self) -> Iterator[Module]:
        for path in sorted(self.root.rglob("*.py")):
            parts = [self.name, *path.relative_to(self.root).with_suffix("").parts]
            yield Module(
                ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path, path.read_text("utf-8")
            )

    # -------------------------------------------------------------------------------------------- sizes

    def data_set_of(self, module: str) -> str:
        """Return the name of the data set that a module belongs to; empty in the core."""
        inner = module.removeprefix(f"{self.name}.")
        if inner.startswith("datasets."):
            return inner.split(".")[1]
        for name, prefixes in self.data_sets.items():
            if any(_is_within(inner, prefix) for prefix in prefixes):
                return name
        return ""

    def size(self, in_datasets: bool) -> tuple[int, int]:
        """Return the number of files and of lines in the core, or in the folder `datasets/`."""
        folder = f"{self.name}.datasets"
        chosen = [m for m in self.modules.values() if _is_within(m.name, folder) == in_datasets]
        return len(chosen), sum(m.text.count("\n") for m in chosen)

    # ------------------------------------------------------------------------------------------ imports

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Every import of a module of the package by another one."""
        every = (each for module in self.modules.values() for each in self._imports_of(module))
        return tuple(dict.fromkeys(every))

    def _imports_of(self, module: Module) -> Iterator[Import]:
        for node, is_for_types, is_lazy in _walk_imports(module.tree.body, False, False):
            for target in self._targets(module, node):
                if target != module.name:
                    yield Import(module.name, target, node.lineno, is_for_types, is_lazy)

    def _targets(self, module: Module, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in self.modules)
            return
        base = node.module or ""
        if node.level:
            parts = module.name.split(".")
            parts = parts[: len(parts) - node.level + module.is_package]
            base = ".".join([*parts, base] if base else parts)
        if base not in self.modules:
            return
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield inner if inner in self.modules else base

    def list_edges(self) -> list[Item]:
        """Return the imports of a data set's modules by the core, once for each pair of modules."""
        return self._first_of_each(
            each
            for each in self.imports
            if not self.data_set_of(each.source) and self.data_set_of(each.target)
        )

    def list_between(self) -> list[Item]:
        """Return the imports of one data set by another, once for each pair of modules."""
        owners = self.data_set_of
        return self._first_of_each(
            each for each in self.imports
            if owners(each.source) and owners(each.target) and owners(each.source) != owners(each.target)
        )  # fmt: skip

    def list_private(self) -> list[Item]:
        """Return the imports of a module with an underscore from outside of the package that it is in."""
        return self._first_of_each(each for each in self.imports if _is_private_to_others(each))

    def _first_of_each(self, imports: Iterable[Import]) -> list[Item]:
        first: dict[tuple[str, str], Import] = {}
        for each in imports:
            first.setdefault((each.source, each.target), each)
        return [self._item(each) for each in first.values()]

    def _item(self, each: Import) -> Item:
        return Item(self.modules[each.source].path, each.line, f"{each.source} imports {each.target}")

    def find_cycles(self) -> list[list[Import]]:
        """Return the cycles among siblings, small ones first: the imports that make each of them.

        Siblings are the modules and packages in one package; one imports another if anything in it does.
        """
        edges: dict[str, dict[tuple[str, str], list[Import]]] = defaultdict(lambda: defaultdict(list))
        for each in self.imports:
            if each.is_for_types:
                continue
            a, b = each.source.split("."), each.target.split(".")
            same = next(
                (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
            )
            if same < min(len(a), len(b)):
                edges[".".join(a[:same])][a[same], b[same]].append(each)
        cycles: list[list[Import]] = []
        for pairs in edges.values():
            for component in _strong_components(pairs):
                cycles.append(
                    [each for (x, y), found in pairs.items() if {x, y} <= component for each in found]
                )
        return sorted(cycles, key=len)

    def list_cycles(self) -> list[Item]:
        """Return the imports of each cycle, numbered."""
        return [
            Item(item.path, item.line, f"cycle {number}: {item.text}")
            for number, cycle in enumerate(self.find_cycles(), 1)
            for item in map(self._item, cycle)
        ]

    # -------------------------------------------------------------------------------------- definitions

    def list_constants(self) -> list[Item]:
        """Return the numbers that modules name in capitals."""
        return [
            Item(module.path, node.lineno, name)
            for module in self.modules.values()
            for node in module.tree.body
            for name in _numeric_constants(node)
        ]

    def list_twice(self) -> list[Item]:
        """Return the classes whose name another class has too, all of one name together."""
        found: dict[str, list[Item]] = defaultdict(list)
        for module in self.modules.values():
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(Item(module.path, node.lineno, f"class {node.name}"))
        return [item for name in sorted(found) if len(found[name]) > 1 for item in found[name]]

    def list_unreached(self) -> list[Item]:
        """Return functions and classes of modules whose name nothing in the package or its texts mentions.

        What only such definitions mention does not count. A name that is mentioned anywhere else counts as
        reached, and so does a class with a base, which may be found through it (nodes, checks), and what a
        decorator may register: the list is rather too short than wrong.
        """
        candidates: dict[str, list[tuple[Module, _Definition]]] = defaultdict(list)
        mentioned: set[str] = set()
        for module in self.modules.values():
            for node in module.tree.body:
                if isinstance(node, _Definition) and not _may_be_registered(node):
                    candidates[node.name].append((module, node))
                else:
                    mentioned.update(_names_in(node))
        for path in self.texts:
            mentioned.update(re.findall(r"\w+", path.read_text("utf-8")))
        waiting = list(mentioned)
        while waiting:
            for _, node in candidates.pop(waiting.pop(), ()):
                waiting += _names_in(node)
        return [
            Item(
                module.path,
                node.lineno,
                f"{node.name}, {(node.end_lineno or node.lineno) - node.lineno + 1} lines",
            )
            for module, node in sorted(
                (each for found in candidates.values() for each in found),
                key=lambda each: (each[0].name, each[1].lineno),
            )
        ]


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _is_private_to_others(each: Import) -> bool:
    parts = each.target.split(".")
    return any(
        part.startswith("_")
        and not part.startswith("__")
        and not _is_within(each.source, ".".join(parts[:i]))
        for i, part in enumerate(parts)
    )


def _walk_imports(
    body: Iterable[ast.AST], is_for_types: bool, is_lazy: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, is_for_types, is_lazy
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _walk_imports(node.body, True, is_lazy)
            yield from _walk_imports(node.orelse, is_for_types, is_lazy)
        else:
            lazy = is_lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _walk_imports(ast.iter_child_nodes(node), is_for_types, lazy)


def _strong_components(pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the sets of at least two nodes of a directed graph that all reach each other."""
    after: dict[str, set[str]] = defaultdict(set)
    for a, b in pairs:
        after[a].add(b)
    reached = {node: _reachable(node, after) for node in list(after)}
    found: list[set[str]] = []
    for node, others in reached.items():
        if node in others and not any(node in component for component in found):
            found.append({other for other in others if node in reached.get(other, ())})
    return [component for component in found if len(component) > 1]


def _reachable(start: str, after: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for node in after.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def _numeric_constants(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.AnnAssign):
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    else:
        return
    for target, value in pairs:
        if (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            inner = list(zip(target.elts, value.elts, strict=True))
        else:
            inner = [(target, value)]
        for name, content in inner:
            if (
                isinstance(name, ast.Name)
                and name.id.isupper()
                and content is not None
                and _is_number(content)
            ):
                yield name.id


def _is_number(value: ast.expr) -> bool:
    """Whether an expression is a number, or is calculated from numbers and at least one literal."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float | complex) and not isinstance(value.value, bool)
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    if isinstance(value, ast.BinOp):
        sides = (value.left, value.right)
        return any(map(_is_number, sides)) and all(
            _is_number(s) or isinstance(s, ast.Name | ast.Attribute) for s in sides
        )
    return False


def _may_be_registered(node: _Definition) -> bool:
    if node.name.startswith("__"):
        return True
    names = (
        decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list
    )
    if any(ast.unparse(name).rpartition(".")[2] not in HARMLESS_DECORATORS for name in names):
        return True
    return isinstance(node, ast.ClassDef) and bool(node.bases)


def _names_in(tree: ast.AST) -> Iterator[str]:
    """Yield every name that code uses, and every word of its strings; a string by itself is documentation."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.name.rpartition(".")[2]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield from re.findall(r"\w+", node.value)


# ----------------------------------------------------------------------------------------------- running

PCD_HEADER = (
    "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
    "WIDTH {0}\nHEIGHT 1\nPOINTS {0}\nDATA binary\n"
)


def write_scans(folder: Path) -> Path:
    """Write three scans of a room of 10 m x 8 m, 0.1 m apart; return the first."""
    folder.mkdir()
    for step in range(3):
        wall = [(x / 4, y / 4) for x in range(41) for y in range(33)]
        points = [(a - 5 + step / 10, b - 4, -1.5) for a, b in wall]
        points += [(a - 5 + step / 10, side, b / 4 - 1.5) for a, b in wall for side in (-4.0, 4.0)]
        points += [(side + step / 10, b - 4, a / 4 - 1.5) for a, b in wall for side in (-5.0, 5.0)]
        values = struct.pack(f"<{3 * len(points)}f", *(value for point in points for value in point))
        path = folder / f"scan_{1_600_000_000 + step / 10:.1f}.pcd"
        path.write_bytes(PCD_HEADER.format(len(points)).encode() + values)
    return min(folder.iterdir())


LOADED = """
import sys
from pathlib import Path
from {name}.cli import main
sys.argv = {argv!r}
try:
    main()
except SystemExit as exit_:
    if exit_.code:
        raise
finally:
    root = Path({root!r})
    files = {{str(m.__file__) for m in list(sys.modules.values()) if getattr(m, "__file__", None)}}
    print("loaded:", sum(Path(f).is_relative_to(root) for f in files), file=sys.stderr)
"""


def count_loaded(package: Path, *arguments: object) -> int:
    """Return how many files of the package a command executes, in a process of its own."""
    argv = [package.name, *map(str, arguments)]
    code = LOADED.format(name=package.name, argv=argv, root=str(package))
    done = _run([sys.executable, "-c", code], package)
    return int(re.findall(r"^loaded: (\d+)$", done, re.MULTILINE)[-1])


def _run(command: Sequence[str], package: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:2])} ... failed: {done.stderr[-2000:]}")
    return done.stderr


def time_help(package: Path) -> float:
    """Return the seconds of CPU time of `PACKAGE --help`, the least of several runs."""
    code = f"import sys; sys.argv = [{package.name!r}, '--help']; from {package.name}.cli import main; main()"
    seconds: list[float] = []
    for _ in range(HELP_RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run([sys.executable, "-c", code], package)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(seconds)


# ------------------------------------------------------------------------------------------------- table

Row = tuple[str, float, str]
LISTS: Mapping[str, Callable[[Package], list[Item]]] = {
    "edges": Package.list_edges, "between": Package.list_between, "cycles": Package.list_cycles,
    "private": Package.list_private, "constants": Package.list_constants, "twice": Package.list_twice,
    "unreached": Package.list_unreached,
}  # fmt: skip


def measure(package: Package) -> Iterator[Row]:
    """Yield what can be counted without running the package: its name, the number, the target."""
    for where, in_datasets, targets in (
        ("core", False, ("720", "125000")),
        ("datasets/", True, ("150", "30000")),
    ):
        for word, number, target in zip(("files", "lines"), package.size(in_datasets), targets, strict=True):
            yield f"{word} in {where}", number, target
    yield "imports from core to data sets", len(package.list_edges()), "0"
    yield "imports between data sets", len(package.list_between()), "0"
    yield "import cycles among siblings", len(package.find_cycles()), "0"
    yield "imports of another package's private module", len(package.list_private()), "0"
    yield "numeric module constants", len(package.list_constants()), ""
    yield "class names with two meanings", len({item.text for item in package.list_twice()}), "59"
    unreached = package.list_unreached()
    yield "definitions that nothing reaches", len(unreached), "0"
    yield "  their lines", sum(int(item.text.split()[-2]) for item in unreached), "0"


def measure_commands(root: Path) -> Iterator[Row]:
    """Yield what commands execute and how long the help takes."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        scan = write_scans(folder / "scans")
        yield "files executed by info SCAN", count_loaded(root, "info", scan), "50"
        run = ("run", "LidarOdometry", folder / "scans", "-o", folder / "run")
        yield "files executed by run LidarOdometry", count_loaded(root, *run), "120"
        request = (
            "request",
            "Pose",
            "--recording",
            folder / "scans",
            "--store",
            folder / "x.gpkg",
            "--dry-run",
        )
        yield "files executed by request --dry-run", count_loaded(root, *request), "120"
    yield "CPU seconds of --help", round(time_help(root), 3), "0.1"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or one list."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.structure", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--list", choices=LISTS, help="print each item with its file and line")
    parser.add_argument("--root", type=Path, default=PACKAGE, help="folder of the package (src/transect)")
    parser.add_argument(
        "--static", action="store_true", help="only what can be counted without running commands"
    )
    chosen = parser.parse_args(arguments)
    texts = [
        path for folder in ("docs", "examples", "tools") for path in sorted((ROOT / folder).rglob("*.*"))
    ]
    texts = [
        path for path in (*texts, ROOT / "README.md", *chosen.root.rglob("*.yaml")) if path.suffix in TEXTS
    ]
    package = Package(chosen.root, texts=texts)
    if chosen.list:
        for item in LISTS[chosen.list](package):
            print(Item(_shorten(item.path), item.line, item.text))
        return 0
    rows = [*measure(package), *(() if chosen.static else measure_commands(chosen.root))]
    width = max(len(row[0]) for row in rows)
    print(f"{'':{width}}  {'measured':>8}  target")
    for name, number, target in rows:
        held = "" if not target else f"<= {target}" if number <= float(target) else f"<= {target}  not yet"
        print(f"{name:{width}}  {number:>8}  {held}".rstrip())
    return 0


TEXTS = {".md", ".py", ".yaml", ".yml", ".ipynb", ".toml"}


def _shorten(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == "__main__":
    raise SystemExit(main())
