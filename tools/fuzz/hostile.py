"""Files that are wrong on purpose: bombs, nesting, forged sizes, and what earlier campaigns found.

Each file and each folder is looked at by `transect info`, or the command that it is meant for, and then read
whole, in a process of its own that has imported the readers. What it takes beyond that is counted.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import mutations, workers

FOLDER = mutations.ROOT.parent / "shared" / "hostile"
MAX_CPU_S, MAX_MEMORY_BYTES = 1.0, 200 * 2**20
"""CPU time and memory within which a file is opened or refused."""
HEADINGS = ("file", "info", "s", "MB", "reading all", "s", "MB")
COMMANDS = {".result": ("compare",), ".urdf": ("draw", "robot"), "_compound.yaml": ("graph", "check")}
"""Commands for files that are no recordings, by how their names end."""


@dataclass
class Row:
    """What came of one path: of a command, and of reading everything."""

    path: str
    looks: list[dict[str, Any]]

    def cells(self) -> tuple[str, ...]:
        """Return the line of the table."""
        cells = ((each["outcome"], f"{each['seconds']:.2f}", str(each["peak"] >> 20)) for each in self.looks)
        return (self.path, *(cell for look in cells for cell in look))

    @property
    def worst(self) -> float:
        """How far it went: 1 is all that is allowed."""
        shares = (max(look["seconds"] / MAX_CPU_S, look["peak"] / MAX_MEMORY_BYTES) for look in self.looks)
        bad = any(look["outcome"] not in ("opened", "refused") for look in self.looks)
        return max([10.0 * bad, *shares])


def paths_in(folder: Path) -> list[Path]:
    """Return all files and folders but the outermost ones."""
    return sorted(path for path in folder.glob("*/**/*") if not path.name.startswith("."))


def open_path(path: Path, scratch: Path) -> Row:
    """Look at a path in a process of its own."""
    told = list(workers.answers(look_at, (path, scratch), time.monotonic() + 300))
    looks = [{"error": "", "seconds": 0.0, "peak": 0, **each} for each in told]
    return Row(str(path.relative_to(FOLDER)), [*looks, looks[-1]][:2])


def look_at(path: Path, scratch: Path) -> Iterator[dict[str, Any]]:
    """Be the process: say what came of the command, and of reading everything."""
    _command(scratch, scratch)  # an empty folder: imports are part of starting up
    mutations.limit_memory()
    yield {}
    yield _measure(lambda: _command(path, scratch))
    yield _measure(lambda: mutations.judge(path, None, {}))


def _measure(look: Callable[[], tuple[str, str]]) -> dict[str, Any]:
    mutations.forget_peak()
    before, began = mutations.status_bytes("VmRSS"), time.process_time()
    outcome, error = look()
    seconds, peak = time.process_time() - began, mutations.status_bytes("VmHWM") - before
    return {"outcome": outcome, "error": error, "seconds": seconds, "peak": max(0, peak)}


def _command(path: Path, scratch: Path) -> tuple[str, str]:
    """Run the command for a path; return what `judge` does."""
    from transect.cli import command

    words = next((words for end, words in COMMANDS.items() if path.name.endswith(end)), ("info",))
    out = ("-o", str(scratch / "x.png")) if words[0] == "draw" else ()
    return mutations.outcome_of(lambda: command.main([*words, str(path), *out], standalone_mode=False))


def run(scratch: Path) -> list[Row]:
    """Open everything; return the rows, the worst first."""
    workers.import_readers([])
    rows = [open_path(path, scratch) for path in paths_in(FOLDER)]
    return sorted(rows, key=lambda row: -row.worst)


def start_up(scratch: Path) -> tuple[float, int]:
    """Return the CPU seconds and peak bytes of `transect info` of a good, small file, imports and all."""
    from tests.formats.corpus import sample

    path = sample("tum").write(scratch / "good")
    code = "from transect.cli import main; main()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-P", "-c", code, "info", path], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss * 1024
