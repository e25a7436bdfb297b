"""Selection of the tests that a change affects."""

from __future__ import annotations

import pytest
from tools.changed_tests import select_tests


@pytest.mark.parametrize(
    ("files", "tests"),
    [
        ((), []),
        (("src/transect/datasets/ameds/arms.py",), ["tests/datasets/ameds"]),
        (
            ("tests/datasets/cdff/test_pocolog.py", "src/transect/datasets/insight/manifest.py"),
            ["tests/datasets/cdff", "tests/datasets/insight"],
        ),
        (("src/transect/datasets/ameds/arms.py", "src/transect/base/units.py"), ["tests"]),
        (("src/transect/datasets/__init__.py",), ["tests"]),
        (("tests/draw/test_graph.py",), ["tests/draw/test_graph.py"]),
        (("tests/cli/run_sample.py", "tests/cli/test_run.py"), ["tests/cli"]),
        (("tests/conftest.py",), ["tests"]),
        (("pyproject.toml", "docs/report.md"), ["tests"]),
        (("docs/report.md",), ["tests/test_docs.py", "tests/test_project.py", "tests/test_tutorial.py"]),
    ],
)
def test_changes_select_the_tests_that_they_affect(files: tuple[str, ...], tests: list[str]) -> None:
    assert select_tests(files) == tests
