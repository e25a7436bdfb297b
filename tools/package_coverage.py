"""Print the line and branch coverage of every package, from what `pytest --cov` left: `make coverage`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parent.parent
COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")
WORST_FILE_COUNT = 10
"""Files that are named, those with most missing lines and branches."""


def main() -> None:
    """Print a table of the packages, and the files that miss most."""
    files = measured_files()
    packages: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTS, 0))
    for name, summary in files.items():
        for package in (package_of(name), "all"):
            for count in COUNTS:
                packages[package][count] += summary[count]
    print(f"\n{'package':12} {'lines':>8} {'branches':>9} {'together':>9}")
    for package in sorted(packages, key=lambda name: (name == "all", name)):
        statements, lines, branches, taken = (packages[package][count] for count in COUNTS)
        together = percent(lines + taken, statements + branches)
        shares = percent(lines, statements), percent(taken, branches)
        print(f"{package:12} {shares[0]:7.2f}% {shares[1]:8.2f}% {together:8.2f}%")
    print("\nmissing most (lines, branches):")
    missing = {name: (each["missing_lines"], each["missing_branches"]) for name, each in files.items()}
    for name in sorted(missing, key=lambda name: (-sum(missing[name]), name))[:WORST_FILE_COUNT]:
        print(f"  {missing[name][0]:4} {missing[name][1]:4}  {name}")


def measured_files() -> dict[str, dict[str, int]]:
    """By the path of a file of the package, coverage's counts of its lines and branches."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", report], cwd=ROOT, check=True)
        found = json.loads(report.read_text("utf-8"))["files"]
    return {name: each["summary"] for name, each in found.items() if "transect" in PurePath(name).parts}


def package_of(name: str) -> str:
    """The package of a file: what follows `transect/` in its path; modules beside the packages are `.`."""
    parts = PurePath(name).parts
    below = parts[parts.index("transect") + 1 :]
    return below[0] if len(below) > 1 else "."


def percent(part: int, whole: int) -> float:
    """Part of a whole in percent; all of nothing is 100."""
    return 100.0 * part / whole if whole else 100.0


if __name__ == "__main__":
    main()
