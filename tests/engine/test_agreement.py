"""`transect graph check` and `transect run` accept the same descriptions, and refuse the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from transect.engine import Compound
from transect.engine.description_checks import check, check_compound
from transect.errors import TransectError

NODES = """
from transect.engine import Node, node, param
from transect.engine.controller import Controller
from transect.types import Imu, Pose

class Speed(Node):
    factor: float = param(1.0, gt=0, doc="factor")
    def reset(self) -> None:
        self.first = ([0.0] * int(self.factor))[0]
    def process(self, imu: Imu) -> float: ...

class Filter(Node, interface=True):
    def process(self, x: float) -> float: ...
class Mean(Filter):
    def process(self, x: float) -> float: ...
class Median(Filter):
    def process(self, x: float) -> float: ...

class Steps(Controller):
    def step(self, c): ...
class Stepless(Controller): ...
"""
GOOD = """
name: Main
input_ports: [{name: imu, type: Imu}]
output_ports: [{name: speed, type: float}]
nodes:
  a: {node: Speed}
wires: [imu -> a.imu, a.out -> speed]
"""
INNER = GOOD.replace("Main", "Inner")
OUTER = GOOD.replace("Speed", "Inner").replace("a.out", "a.speed")
FILTER = GOOD.replace("Imu", "float").replace("a.imu", "a.x")
NAMED = "name: Main\ndfns: [{name: Speed}]\nimplementations: [{name: One}]\n"

CASES: dict[str, tuple[str, dict[str, str], bool]] = {
    "good": (GOOD, {}, True),
    "a class named as the file": (GOOD, {"file": "speed.yaml"}, True),
    "a class named as the compound": (GOOD.replace("Main", "Speed"), {"file": "x.yaml"}, True),
    "a class named as compound and file": (GOOD.replace("Main", "Speed"), {"file": "speed.yaml"}, True),
    "another suffix": (GOOD, {"file": "main.txt"}, True),
    "no suffix": (GOOD, {"file": "main"}, True),
    "a compound inside": (OUTER, {"inner.yaml": INNER}, True),
    "a broken compound inside": (OUTER, {"inner.yaml": INNER.replace("a.imu", "a.imo")}, False),
    "a compound inside itself": (GOOD.replace("Speed", "Main"), {}, False),
    "an unknown type": (GOOD.replace("type: float", "type: Floot"), {}, False),
    "an invalid name": (GOOD.replace("Main", "my main"), {}, False),
    "an unknown port": (GOOD.replace("a.out", "a.ut"), {}, False),
    "an unknown node": (GOOD.replace("Speed", "Sped"), {}, False),
    "an unwired input": (GOOD.replace("imu -> a.imu, ", ""), {}, False),
    "a value out of range": (GOOD.replace("Speed}", "Speed, params: {factor: -1}}"), {}, False),
    "a value that reset refuses": (GOOD.replace("Speed}", "Speed, params: {factor: 0.5}}"), {}, False),
    "a period of zero": (GOOD.replace("Speed}", "Speed, every: 0}"), {}, False),
    "one of two implementations": (FILTER.replace("Speed", "Filter, implementation: Mean"), {}, True),
    "none of two implementations": (FILTER.replace("Speed", "Filter"), {}, False),
    "a controller": (GOOD.replace("wires:", "controller: nodes.py:Steps\nwires:"), {}, True),
    "a controller without step": (GOOD.replace("wires:", "controller: nodes.py:Stepless\nwires:"), {}, False),
    "a controller of a compound": (
        OUTER.replace("wires:", "controller: nodes.py:Steps\nwires:"),
        {"inner.yaml": INNER},
        False,
    ),
    "a file that cannot be imported": (GOOD, {"nodes.py": "import nowhere\nclass Speed(Node): ...\n"}, False),
    "not YAML": ("name: [", {}, False),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_checked_is_what_runs(case: str, tmp_path: Path) -> None:
    text, beside, good = CASES[case]
    file = tmp_path / beside.get("file", "main.yaml")
    others = {"nodes.py": NODES, **{name: text for name, text in beside.items() if name != "file"}}
    for name, content in {**others, file.name: text}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    for execute in (False, True):
        report = check([file], execute=execute)[str(file)]
        seen = execute or case != "a value that reset refuses"
        assert (not report.problems) == (good or not seen), report.problems
    assert _runs(file) == good


def _runs(file: Path) -> bool:
    try:
        return bool(Compound.of(str(file)).graph().parts)
    except TransectError:
        return False


def test_what_is_only_described_has_no_problem_and_a_hint_says_that_it_cannot_run(tmp_path: Path) -> None:
    file, interface = tmp_path / "main.yaml", tmp_path / "Speed.yaml"
    file.write_text(GOOD, encoding="utf-8")
    interface.write_text(
        "name: Speed\ninput_ports: [{name: imu, type: Imu}]\noutput_ports: [{name: out, type: float}]\n",
        encoding="utf-8",
    )
    report = check([file])[str(file)]
    assert report.problems == []
    assert "Speed is described, but there is no such class to run" in [hint.what for hint in report.hints]
    assert not _runs(file)


def test_a_single_node_is_checked_and_runs_by_its_file_or_name(tmp_path: Path) -> None:
    file = tmp_path / "speed.py"
    file.write_text(NODES, encoding="utf-8")
    found = Compound.of(str(file))
    assert (found.name, list(found.text.inputs), list(found.graph().outputs)) == ("Speed", ["imu"], ["out"])
    assert check_compound(found).problems == []
    assert list(Compound.of(f"{file}/Median").graph().parts) == ["node"]
    several = Compound.of(f"{file}/Filter").candidates()
    assert [each.name for each in several] == ["Filter/Mean", "Filter/Median"]
    assert list(Compound.of("LocalPose").graph().inputs) == ["fix"]
    with pytest.raises(TransectError, match="has no node 'Spede'"):
        Compound.of(f"{file}/Spede")
