"""The results as a page: below what people wrote, a section for each benchmark.

A section begins with what the benchmark says of itself; those that did not run keep their numbers. People
cite a number of a section in a comment behind it, ``4.4 cm<!--lidar: NAME OF THE ROW-->`` (``lidar peer:``
and ``lidar ratio:`` for these columns): it is written again whenever the page is.
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
CITED = re.compile(r"(-?[\d.]+)( ?)([^\s\d|<]*)<!--(\w+)(?: (peer|ratio))?: (.+?)-->")
"""A number, its unit, and where it stands: section, column, row."""
SCALES = {
    "m": ("m", 1.0),
    "cm": ("m", 100.0),
    "mm": ("m", 1000.0),
    "s": ("s", 1.0),
    "ms": ("s", 1000.0),
    "times": ("", 1.0),
}
"""Units that a page may choose among: what each measures, and how many make one."""


def write_page(path: Path, sections: Mapping[str, Iterable[Row]]) -> None:
    """Put the rows of benchmarks into a page, in the order of their names."""
    front, _, measured = (path.read_text("utf-8") if path.is_file() else HEAD).partition(HEAD)
    kept = _tables(measured) | {name: _table(rows) for name, rows in sections.items()}
    texts = [f"## {name}\n\n{_about(name)}\n\n{kept[name].strip()}\n" for name in sorted(kept)]
    path.write_text("\n".join([f"{_cite(front, kept)}{HEAD}", *texts]), "utf-8")


def _cite(front: str, tables: Mapping[str, str]) -> str:
    """Write the cited numbers of a text as the tables have them, each with as many decimals as before."""

    def number(cited: re.Match[str]) -> str:
        before, space, unit, section, column, row = cited.groups()
        value = _cell(tables.get(section, ""), row, COLUMNS.index(column or "ours"), unit)
        decimals = len(before.partition(".")[2])
        return f"{value:.{decimals}f}{space}{unit}{cited[0][cited[0].index('<!--') :]}"

    return CITED.sub(number, front)


def _cell(table: str, row: str, column: int, unit: str) -> float:
    """Return a number of a table in a unit: of the first row of that name that is measured in such units."""
    kind, scale = SCALES.get(unit, (unit, 1.0))
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) <= column or cells[0] != row:
            continue
        text, _, measured = cells[column].partition(" ")
        given_kind, given_scale = SCALES.get(measured, (measured, 1.0))
        if given_kind == kind:
            return float(text.replace(",", "").removesuffix("x")) / given_scale * scale
    raise ValueError(f"no row {row!r} in {unit or 'plain numbers'}: the page cites it")


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
