"""The tests of what changed since a revision: `make test-changed`.

    python -m tools.changed_tests            # prints paths for pytest; nothing if no test is affected
    python -m tools.changed_tests --base REV # changes since REV; default: main, or HEAD on main

A change of a data set's folder (`src/transect/datasets/NAME`, `tests/datasets/NAME`, `docs/data-sets/NAME*`)
selects the tests of that data set, since nothing else imports it. A change of tests selects those tests. Any
other change of code selects all tests.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALL_TESTS = "tests"
DATA_SET = re.compile(r"(?:src/transect|tests)/datasets/([^/]+)/")
TEST_FILE = re.compile(r"tests/(?:.+/)?test_[^/]+\.py")
TEST_PACKAGE = re.compile(r"(tests/(?:datasets/)?[^/]+)/.+")
DOCUMENTS = re.compile(r"(?:docs/.*|[^/]+)\.md")
DOCUMENT_TESTS = ("tests/test_docs.py", "tests/test_project.py", "tests/test_tutorial.py")


def changed_files(base: str) -> list[str]:
    """Return the files that differ from a revision, with untracked ones."""
    tracked = _git("diff", "--name-only", _git("merge-base", base, "HEAD").strip())
    return sorted(
        {*tracked.split("\n"), *_git("ls-files", "--others", "--exclude-standard").split("\n")} - {""}
    )


def select_tests(files: Iterable[str]) -> list[str]:
    """Return the paths of the tests that changed files affect; `tests` stands for all."""
    selected: set[str] = set()
    for file in files:
        if data_set := DATA_SET.match(file):
            selected.add(f"tests/datasets/{data_set[1]}")
        elif TEST_FILE.fullmatch(file):
            selected.add(file)
        elif package := TEST_PACKAGE.fullmatch(file):  # helpers of the tests of one package
            selected.add(package[1])
        elif DOCUMENTS.fullmatch(file):
            selected.update(DOCUMENT_TESTS)
        else:
            return [ALL_TESTS]
    return sorted(path for path in selected if not any(path.startswith(f"{other}/") for other in selected))


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _default_base() -> str:
    branches = _git("branch", "--list", "main", "--format", "%(refname:short)").strip()
    return "main" if branches and _git("branch", "--show-current").strip() != "main" else "HEAD"


def main() -> None:
    """Print the selected tests, one path per line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", metavar="REV", help="default: main, or HEAD if main is checked out")
    base = parser.parse_args().base or _default_base()
    for path in select_tests(changed_files(base)):
        if (ROOT / path).exists():
            print(path)


if __name__ == "__main__":
    main()
