"""Mistakes of a first day, and whether what is said about them helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from transect.engine import node
from transect.engine.catalogue import catalogue_for, compound_named
from transect.engine.digest import Difference, PortDifference
from transect.engine.picture import read_picture
from transect.engine.reading import examine
from transect.errors import UsageError

from .flows import flow_of, play


def test_text_with_a_comma_and_without_quotes_is_said_to_need_them():
    text = "name: X\ndoc: d\noutput_ports:\n  - {name: y, type: float, doc: near, or far}\n"
    _, problems = examine(text, "x.yaml")
    assert [problem.hint for problem in problems] == ["text with a comma needs quotes"]


def test_a_key_that_is_only_misspelt_is_not_taken_for_torn_text():
    _, problems = examine("name: X\ndoc: d\noutput_ports:\n  - {name: y, type: float, dok: far}\n", "x.yaml")
    assert "doc" in problems[0].hint


def test_a_compound_named_as_its_file_in_this_folder_is_offered_with_the_suffix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "slip.yaml").write_text("name: Slip\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no compound 'Slip'") as caught:
        compound_named("Slip", catalogue_for())
    assert caught.value.hint == "did you mean the file slip.yaml?"


def test_a_misspelt_compound_is_compared_with_compounds_only():
    with pytest.raises(UsageError) as caught:
        compound_named("WheelDrfit", catalogue_for())
    assert "WheelDrift" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        compound_named("Nothing", catalogue_for())
    assert "LocalPose" not in caught.value.hint


def test_a_picture_of_a_file_that_is_not_there_says_so(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no file"):
        read_picture(tmp_path / "x.yaml")


def divided(x: float) -> float:
    return x / 0


def test_a_failing_node_names_the_line_of_its_file_that_failed():
    flow = flow_of({"d": node(divided)}, ["x -> d.x", "d.out -> y"])
    play(flow, [(1.0, "x", 2.0)])
    line = divided.__code__.co_firstlineno + 1
    assert flow.errors[0].where == f"d.x@1000000000 ns, {Path(__file__).name}:{line}"


def test_a_difference_counts_in_good_english():
    one = PortDifference("a.out", 5, (3, 3), 1)
    assert str(Difference((one,), ("b.out",))).startswith("1 port equal, 1 differs\n")
    assert str(Difference((one, one), ())).startswith("0 ports equal, 2 differ\n")
