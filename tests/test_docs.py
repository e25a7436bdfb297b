"""The pages in docs/: their code runs, prints what they show, and their links and pictures are there."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
from benchmarks._page import write_page
from tests.test_project import ROOT, run_page

from transect.cli import command
from transect.datasets.insight.robot.faults import table_of_faults
from transect.datasets.insight.robot.parameters import Parameters

PAGES = sorted((ROOT / "docs").rglob("*.md"))
LARGEST = {
    "robots": 150_000,
    "field-days": 250_000,
    "evaluation": 150_000,
    "integrity": 150_000,
    "reconstruction": 250_000,
    "results": 150_000,
    "reconstruction-pairs": 250_000,
}
"""Folder of pictures, and the largest size of one of them in bytes."""
MAX_FOLDER_BYTES = 3_000_000
"""Size of all pictures of a folder."""


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
    printed = run_page(page, tmp_path)
    assert [block for block in shown_outputs(text) if block not in printed] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_what_is_linked_is_there(page: Path):
    assert [target for target in linked(page) if not (page.parent / target).exists()] == []


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name
)
def test_every_file_of_code_that_is_named_exists(page: Path):
    names = re.findall(r"`((?:[\w.<>*-]+/)+[\w.<>*-]+\.(?:py|js|css|html|md))`", page.read_text("utf-8"))
    patterns = {name: re.sub(r"<\w+>", "*", name) for name in names}
    roots = (ROOT, ROOT / "src" / "transect", ROOT / "docs")
    assert [n for n, pattern in patterns.items() if not any(any(root.glob(pattern)) for root in roots)] == []


@pytest.mark.parametrize("folder", LARGEST)
def test_every_picture_is_shown_on_a_page_and_small(folder: str):
    sizes = {path: path.stat().st_size for path in (ROOT / "docs" / folder).iterdir()}
    shown = {(page.parent / target).resolve() for page in PAGES for target in linked(page)}
    assert set(sizes) <= shown
    assert [path.name for path, size in sizes.items() if size > LARGEST[folder]] == []
    assert sum(sizes.values()) < MAX_FOLDER_BYTES


def test_every_figure_of_chapter_5_of_the_sdi_report_has_its_counterpart_in_order():
    text = (ROOT / "docs" / "datasets" / "sdi-figures.md").read_text("utf-8")
    assert re.findall(r"field-days/figure-(\d+)\.png", text) == [str(k) for k in range(24, 39)]


@pytest.fixture(scope="module")
def drawing(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, dict[str, Any]]]:
    """The verbs and options with which the pictures of field days are drawn; nothing is run but the shell."""
    folder = tmp_path_factory.mktemp("drawing")
    stub, log = folder / "transect", folder / "log"
    stub.write_text(f"#!/bin/sh\nprintf '%s\\t' \"$@\" >> '{log}'\necho >> '{log}'\n", "utf-8")
    stub.chmod(0o755)
    environment = os.environ | {"TRANSECT": str(stub), "TMPDIR": str(folder)}
    script = ROOT / "tools" / "draw-field-days.sh"
    subprocess.run([script, "pictures"], cwd=ROOT, env=environment, check=True, timeout=60)
    assert sorted(path.name for path in folder.iterdir()) == ["log", "transect"]  # it cleans up
    return [parsed(line.split("\t")[:-1]) for line in log.read_text("utf-8").splitlines()]


def parsed(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """What click makes of a command line: the verb, and its parameters; it raises where that is wrong."""
    verb, chosen, rest = command.resolve_command(click.Context(command), arguments)
    while isinstance(chosen, click.Group):
        _, chosen, rest = chosen.resolve_command(click.Context(chosen), rest)
    assert verb is not None
    assert chosen is not None
    return verb, chosen.make_context(verb, rest).params


def test_the_pictures_of_field_days_are_those_that_are_drawn(drawing: list[tuple[str, dict[str, Any]]]):
    drawn = [params["out"].name for verb, params in drawing if verb == "draw"]
    assert sorted(drawn) == sorted(path.name for path in (ROOT / "docs" / "field-days").iterdir())


def test_what_is_drawn_of_field_days_is_simulated_or_injected_before(
    drawing: list[tuple[str, dict[str, Any]]],
):
    made: set[str] = set()
    for verb, params in drawing:
        used = [*params.get("paths", ()), *params.get("beside", ())]
        assert [
            path for path in used if not any(path == day or path.startswith(f"{day}/") for day in made)
        ] == []
        if verb != "draw":
            made.add(str(params["out"]))


def test_the_worlds_and_faults_of_field_days_are_known(drawing: list[tuple[str, dict[str, Any]]]):
    from transect.simulation.day import names
    from transect.simulation.faults import FAULTS

    assert {params["world"] for verb, params in drawing if verb == "simulate"} == set(names())
    assert {params["fault"] for verb, params in drawing if verb == "inject"} <= set(FAULTS)


def test_the_table_of_faults_is_that_of_the_code():
    text = (ROOT / "docs" / "datasets" / "insight-arm.md").read_text("utf-8")
    rows = [
        f"| {fault.name} | {fault.what} | {fault.parameters} | {fault.declared} | {fault.section} |"
        for fault in table_of_faults(Parameters.printed())
    ]
    assert "\n".join(rows) in text


def test_the_numbers_cited_on_the_results_page_are_those_of_its_tables(tmp_path: Path):
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    copy = tmp_path / "results.md"
    copy.write_text(page, "utf-8")
    write_page(copy, {})
    assert copy.read_text("utf-8").splitlines() == page.splitlines()
    assert page.count("<!--") > 15
    broken = re.sub(r"\d\.\d\d( %<!--)", r"9.99\1", page, count=1)
    copy.write_text(broken, "utf-8")
    write_page(copy, {})
    assert broken != page == copy.read_text("utf-8")
