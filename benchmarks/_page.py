"""The results as a page: below what people wrote, a section for each benchmark.

A section begins with what the benchmark says of itself; those that did not run keep their numbers.
"""

import ast
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks._harness import Row, environment

HEAD = "# All measurements\n"
"""Above this line the page is written by hand, below it by `write_page`."""
COLUMNS = ("", "ours", "peer", "ratio", "limit", "")
MACHINE = "Measured on "


def write_page(path: Path, sections: Mapping[str, Iterable[Row]]) -> None:
    """Put the rows of benchmarks into a page, in the order of their names."""
    front, _, measured = (path.read_text("utf-8") if path.is_file() else HEAD).partition(HEAD)
    kept = _tables(measured) | {name: _table(rows) for name, rows in sections.items()}
    texts = [f"## {name}\n\n{_about(name)}\n\n{kept[name].strip()}\n" for name in sorted(kept)]
    path.write_text("\n".join([f"{front}{HEAD}", *texts]), "utf-8")


def _tables(text: str) -> dict[str, str]:
    """Return where and what each section measured, by name."""
    parts = re.split(r"^## (\S+)\n", text, flags=re.MULTILINE)[1:]
    return {
        name: MACHINE + text.partition(MACHINE)[2] for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def _about(name: str) -> str:
    source = Path(__file__).with_name(f"bench_{name}.py").read_text("utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def _table(rows: Iterable[Row]) -> str:
    lines = [_machine(), "", _cells(COLUMNS), _cells(("---", *("---:",) * 4, "---"))]
    return "\n".join([*lines, *(_cells((row.name, *row.shown)) for row in rows)])


def _machine() -> str:
    """Return what the numbers were measured on, in one sentence."""
    info = Path("/proc/cpuinfo")
    text = info.read_text("utf-8") if info.is_file() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    known = environment()
    packages = ", ".join(f"{name} {known[name]}" for name in ("python", "numpy", "opencv", "transect"))
    return f"{MACHINE}{found[1] if found else platform.machine()}, {known['cores']} cores; {packages}."


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
