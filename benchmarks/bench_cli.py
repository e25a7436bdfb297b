"""How soon the command line answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ._harness import duration


def main() -> None:
    """Time `transect --help` beside an interpreter that does nothing."""
    transect = Path(sys.executable).with_name("transect")
    duration("transect --help", lambda: _run(transect, "--help"), target=0.2)
    duration("python -c pass", lambda: _run(sys.executable, "-c", "pass"))


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
