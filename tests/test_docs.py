"""The pages in docs/: their code runs, prints what they show, and their links and pictures are there."""

import re
import sys
from pathlib import Path

import pytest
from tests.test_project import ROOT, readme_as_script, run

from transect.robots.ida.faults import table_of_faults
from transect.robots.ida.parameters import Parameters

PAGES = sorted((ROOT / "docs").glob("*.md"))
LARGEST = 150_000
"""Bytes of a picture."""


def shown_outputs(text: str) -> list[str]:
    """The `text` blocks of a page: what its code prints."""
    return re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def linked(page: Path) -> list[str]:
    """What a page links to in the repository, without anchors."""
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))
    return [target for target in targets if "://" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_code_block_runs_in_order_and_prints_what_is_shown(page: Path, tmp_path: Path):
    text = page.read_text("utf-8")
    script = tmp_path / page.name
    script.write_text(readme_as_script(text), "utf-8")
    done = run(sys.executable, script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [block for block in shown_outputs(text) if block not in done.stdout] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_what_is_linked_is_there(page: Path):
    assert [target for target in linked(page) if not (page.parent / target).exists()] == []


def test_every_picture_of_the_robots_is_shown_and_small():
    pictures = {f"robots/{path.name}": path for path in (ROOT / "docs" / "robots").iterdir()}
    assert set(pictures) == set(linked(ROOT / "docs" / "robots.md")) - {"conventions.md"}
    assert [name for name, path in pictures.items() if path.stat().st_size > LARGEST] == []


def test_the_table_of_faults_is_that_of_the_code():
    text = (ROOT / "docs" / "robots.md").read_text("utf-8")
    rows = [
        f"| {fault.name} | {fault.what} | {fault.parameters} | {fault.declared} | {fault.section} |"
        for fault in table_of_faults(Parameters.printed())
    ]
    assert "\n".join(rows) in text
