"""The results as a page: a section for each benchmark, those that did not run left as they were."""

import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks._harness import Row, environment

HEAD = """# Results

Measured by `make bench ARGS="--page docs/results.md NAME..."`; each section says on what. Limits are those
that we set ourselves; a limit that was missed says so.
"""
COLUMNS = ("", "ours", "peer", "ratio", "limit", "")


def write_page(path: Path, sections: Mapping[str, Iterable[Row]]) -> None:
    """Put the rows of benchmarks into a page, in the order of their names."""
    kept = _sections(path.read_text("utf-8")) if path.is_file() else {}
    kept |= {name: _section(rows) for name, rows in sections.items()}
    text = "\n".join([HEAD, *(f"## {name}\n\n{kept[name].strip()}\n" for name in sorted(kept))])
    path.write_text(text, "utf-8")


def _sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (\S+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _section(rows: Iterable[Row]) -> str:
    lines = [_machine(), "", _cells(COLUMNS), _cells(("---", *("---:",) * 4, "---"))]
    return "\n".join([*lines, *(_cells((row.name, *row.shown)) for row in rows)])


def _machine() -> str:
    """Return what the numbers were measured on, in one sentence."""
    info = Path("/proc/cpuinfo")
    text = info.read_text("utf-8") if info.is_file() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    known = environment()
    packages = ", ".join(f"{name} {known[name]}" for name in ("python", "numpy", "opencv", "transect"))
    return f"{found[1] if found else platform.machine()}, {known['cores']} cores; {packages}."


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
