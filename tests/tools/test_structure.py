"""`python -m tools.structure` on a tiny made-up package in which every number is known."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from tools import structure
from tools.structure import Package

import transect

FILES = {
    "__init__.py": "",
    "cli/__init__.py": """\
        def main():
            import sys
            if "--deep" in sys.argv:
                from ..maps import grids
            if "--fail" in sys.argv:
                raise SystemExit(3)
        """,
    "maps/__init__.py": "",
    "maps/grids.py": """\
        from . import shading
        from ..formats import sand
        sand.used()
        CELL_M, NAME = 0.5, "grid"
        LIMITS = (1, 2)
        HALF = CELL_M / 2
        class Step: ...
        def lay_out(): return shading.Step
        """,
    "maps/shading.py": """\
        class Step: ...
        def shade():
            from .grids import CELL_M
            return CELL_M
        """,
    "maps/_tiles.py": "SIZE: int = -7\n",
    "formats/__init__.py": "from ..datasets import dunes\n",
    "formats/sand.py": """\
        from typing import TYPE_CHECKING
        from ..maps import _tiles
        if TYPE_CHECKING:
            from . import salt
        def used(): return forgotten_twice()
        def forgotten(): return forgotten_too()
        def forgotten_too(): return forgotten()
        def forgotten_twice(): return _tiles
        class Base: ...
        class Found(Base): ...
        """,
    "formats/salt.py": "from . import sand\nfrom .sand import used\n",
    "datasets/__init__.py": "",
    "datasets/dunes.py": "from tiny.formats import sand\nfrom .lakes import depth\n",
    "datasets/lakes.py": "import tiny.maps._tiles\ndepth = tiny.maps._tiles.SIZE\n",
}


@pytest.fixture
def tiny(tmp_path: Path) -> Package:
    for name, text in FILES.items():
        path = tmp_path / "tiny" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    page = tmp_path / "page.md"
    page.write_text("`lay_out` and `shade` draw a map; `main` is the command.\n")
    return Package(tmp_path / "tiny", texts=[page])


def found(items: list[structure.Item], root: Path) -> list[str]:
    return [f"{item.path.relative_to(root)}:{item.line} {item.text}" for item in items]


def test_files_and_lines_are_counted_apart_for_core_and_data_sets(tiny: Package):
    texts = {name: dedent(text) for name, text in FILES.items()}
    inside = [name for name in texts if name.startswith("datasets/")]
    assert tiny.size(in_datasets=True) == (3, sum(texts[name].count("\n") for name in inside))
    assert tiny.size(in_datasets=False) == (
        len(texts) - 3,
        sum(text.count("\n") for name, text in texts.items() if name not in inside),
    )


def test_imports_of_data_sets_are_found_in_the_core_and_between_them(tiny: Package):
    assert found(tiny.list_edges(), tiny.root) == [
        "formats/__init__.py:1 tiny.formats imports tiny.datasets.dunes"
    ]
    assert found(tiny.list_between(), tiny.root) == [
        "datasets/dunes.py:2 tiny.datasets.dunes imports tiny.datasets.lakes"
    ]


def test_a_module_that_has_no_folder_of_its_own_yet_counts_for_its_data_set(tiny: Package):
    named = Package(tiny.root, {"dunes": ("formats.sand",)})
    assert found(named.list_edges(), tiny.root) == [
        "formats/__init__.py:1 tiny.formats imports tiny.datasets.dunes",
        "formats/salt.py:1 tiny.formats.salt imports tiny.formats.sand",
        "maps/grids.py:2 tiny.maps.grids imports tiny.formats.sand",
    ]


def test_cycles_among_siblings_are_found_but_not_those_of_types_alone(tiny: Package):
    # grids and shading; formats and datasets with maps, which sand imports and which imports sand
    small, large = tiny.find_cycles()
    assert {(each.source, each.target) for each in small} == {
        ("tiny.maps.grids", "tiny.maps.shading"),
        ("tiny.maps.shading", "tiny.maps.grids"),
    }
    assert {(each.source.split(".")[1], each.target.split(".")[1]) for each in large} == {
        ("maps", "formats"),
        ("formats", "maps"),
        ("formats", "datasets"),
        ("datasets", "formats"),
        ("datasets", "maps"),
    }


def test_private_modules_may_be_imported_by_their_own_package_alone(tiny: Package):
    assert found(tiny.list_private(), tiny.root) == [
        "datasets/lakes.py:1 tiny.datasets.lakes imports tiny.maps._tiles",
        "formats/sand.py:2 tiny.formats.sand imports tiny.maps._tiles",
    ]


def test_numbers_in_capitals_are_counted(tiny: Package):
    assert found(tiny.list_constants(), tiny.root) == [
        "maps/_tiles.py:1 SIZE",
        "maps/grids.py:4 CELL_M",
        "maps/grids.py:6 HALF",
    ]


def test_a_class_name_with_two_meanings_is_listed_with_both(tiny: Package):
    assert found(tiny.list_twice(), tiny.root) == [
        "maps/grids.py:7 class Step",
        "maps/shading.py:1 class Step",
    ]


def test_definitions_that_only_each_other_mention_are_unreached(tiny: Package):
    assert found(tiny.list_unreached(), tiny.root) == [
        "formats/sand.py:6 forgotten, 1 lines",
        "formats/sand.py:7 forgotten_too, 1 lines",
    ]


def test_files_that_a_command_executes_are_counted_in_a_process_of_its_own(tiny: Package):
    few = structure.count_loaded(tiny.root, "look")
    assert few == 2  # tiny, tiny.cli
    # maps, grids, shading, _tiles; formats, sand; datasets, dunes, lakes
    assert structure.count_loaded(tiny.root, "look", "--deep") == few + 9
    with pytest.raises(SystemExit, match="failed"):
        structure.count_loaded(tiny.root, "look", "--fail")


def test_the_scans_that_commands_are_measured_on_can_be_read(tmp_path: Path):
    first = structure.write_scans(tmp_path / "scans")
    [stream] = transect.open(first.parent)
    assert len(stream) == 3
    assert not stream.losses
    assert [len(sample.value.points) for sample in stream] == [41 * 33 * 5] * 3


def test_the_table_says_which_target_is_not_reached_yet(tiny: Package, capsys: pytest.CaptureFixture[str]):
    assert structure.main(["--static", "--root", str(tiny.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if "cycles" in line or "lines in datasets" in line] == [
        ["lines", "in", "datasets/", "4", "<=", "30000"],
        ["import", "cycles", "among", "siblings", "2", "<=", "0", "not", "yet"],
    ]
    structure.main(["--list", "private", "--root", str(tiny.root)])
    assert len(capsys.readouterr().out.splitlines()) == 2
