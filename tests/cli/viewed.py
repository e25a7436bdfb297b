"""What `transect view` tells a page, asked over HTTP from a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any


def view(place: Path, *words: str) -> dict[str, Any]:
    """Return what the page is told when it opens; the server is ended then, and says nothing of that."""
    command = [sys.executable, "-m", "transect", "view", *words, "--no-browser", "--no-check"]
    child = subprocess.Popen(command, cwd=place, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert child.stdout is not None
        address = next(line for line in child.stdout if "http://" in line).split()[-1]
        with urllib.request.urlopen(f"{address}index.json", timeout=30) as answer:
            scene = json.load(answer)
    finally:
        child.terminate()
        _, said = child.communicate(timeout=30)
    assert "Traceback" not in said, said
    return scene
