"""`transect graph check` and `transect graph schema`, as a person types them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from transect.cli import command
from transect.errors import UsageError

GOOD = """\
name: Good
doc: one node
input_ports: [{name: x, type: float, doc: in}]
output_ports: [{name: y, type: float, doc: out}]
nodes: {twice: {node: double}}
wires: [x -> twice.x, twice.out -> y]
"""
NODES = """\
from transect.engine import node


@node
def double(x: float) -> float:
    return 2 * x
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, ["graph", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes.py").write_text(NODES, encoding="utf-8")
    (tmp_path / "Good.yaml").write_text(GOOD, encoding="utf-8")
    return tmp_path


@pytest.fixture
def bad(folder: Path) -> Path:
    file = folder / "bad" / "Bad.yml"
    file.parent.mkdir()
    nested = GOOD.replace("name: Good\ndoc: one node", "name: Bad").replace("node: double", "node: Good")
    file.write_text(nested.replace("twice.out", "twice.ot"), encoding="utf-8")
    return file


def test_a_good_description_exits_with_0(folder: Path) -> None:
    done = run("check", folder / "Good.yaml")
    assert done.exit_code == 0
    assert done.output == "1 file: no problems, 0 hints\n"


def test_a_bad_one_exits_with_4_and_says_what_and_where(folder: Path, bad: Path) -> None:
    done = run("check", folder)
    assert done.exit_code == 4
    assert done.output.splitlines() == [
        str(bad),
        "     line 5  problem  twice (Good) has no output 'ot' (known are: y)",
        "     line 1  hint     Bad has no doc (doc: what it does)",
        "",
        "2 files: 1 with problems (1), 1 hint",
    ]


def test_json_has_the_documented_schema(folder: Path, bad: Path) -> None:
    done = run("check", folder, "--json")
    assert done.exit_code == 4
    document = json.loads(done.output)
    assert list(document) == ["files"]
    assert document["files"][str(folder / "Good.yaml")] == {"problems": [], "hints": []}
    (problem,) = document["files"][str(bad)]["problems"]
    assert problem == {
        "what": "twice (Good) has no output 'ot'",
        "where": f"{bad}:5",
        "line": 5,
        "hint": "known are: y",
    }


def test_a_folder_is_searched_but_for_hidden_ones(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "x.yaml").write_text("[", encoding="utf-8")
    assert list(json.loads(run("check", folder, folder, "--json").output)["files"]) == [
        str(folder / "Good.yaml")
    ]


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_nothing_to_check_is_a_usage_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    done = run("check", tmp_path / name)
    assert isinstance(done.exception, UsageError)


EVIL = """\
import pathlib
from collections.abc import Callable
from typing import Annotated, List, Optional
from transect.engine import Controller, Latest, Node, node, param

pathlib.Path("{mark}").write_text("ran")


STRINGS = ["open('{mark}', 'w').close()"]
NAMED = "open('{mark}', 'w').close()"


class Hints(Node):
    # Python would evaluate these texts to find out what they mean.

    __annotations__ = {"z": "open('{mark}', 'w').close()"}
    b: Latest["open('{mark}', 'w').close()"] = param(1)
    c: NAMED = param(1)

    def process(
        self,
        x: Latest["open('{mark}', 'w').close()"],
        y: NAMED,
        z: Callable[STRINGS, List[int] | "open('{mark}', 'w').close()"],
        w: Annotated["open('{mark}', 'w').close()", NAMED] = None,
        v: Optional[NAMED] = None,
    ) -> Annotated[float, "open('{mark}', 'w').close()"]: ...


@node
def double(x: float, *, factor: float = float(pathlib.Path("{mark}").write_text("ran"))) -> float: ...


class Steps(Controller):
    pathlib.Path("{mark}").write_text("ran")

    def step(self, c): ...
"""


@pytest.mark.parametrize("controller", ["", "controller: evil.py:Steps\n", "controller: this:Steps\n"])
def test_nothing_beside_a_description_is_executed_unless_it_is_asked_for(
    tmp_path: Path, controller: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mark, file, python = (tmp_path / name for name in ("mark", "good.yaml", "evil.py"))
    python.write_text(EVIL.replace("{mark}", str(mark)), encoding="utf-8")
    file.write_text(GOOD + controller, encoding="utf-8")
    done = run("check", file)
    if "this" in controller:  # a module of Python's own that prints a poem
        assert "this has no 'Steps'" in done.output
        assert "Beautiful" not in capsys.readouterr().out
    else:
        assert (done.exit_code, done.output) == (0, "1 file: no problems, 0 hints\n")
    assert "wrote" in run("draw", file, "-o", tmp_path / "x.svg").output
    assert "double" in (tmp_path / "x.svg").read_text()
    nodes = (f"{python}/double", f"{python}/Hints")
    for look in (
        ("show", file),
        ("check", nodes[1]),
        *(("show", each) for each in nodes),
        ("check", tmp_path),
    ):
        assert run(*look).exception is None or "this" in controller
    assert not mark.exists()
    run("check", file, "--execute")
    assert mark.exists()


def test_a_node_with_a_base_from_elsewhere_is_a_hint_and_not_a_problem(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from unittest import Base\n\n\nclass double(Base):\n    def process(self, x: float) -> float: ...\n"
    )
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    done = run("check", tmp_path)
    assert done.exit_code == 0
    assert "double cannot be checked without running its file: its base class Base is" in done.output
    assert "(--execute runs it)" in done.output


def test_the_process_exits_with_4(bad: Path) -> None:
    code = "from transect.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "graph", "check", bad], capture_output=True, check=False
    )
    assert done.returncode == 4


def test_the_schema_is_printed() -> None:
    done = run("schema")
    assert done.exit_code == 0
    assert json.loads(done.output)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_jobs_are_listed_and_an_unknown_one_is_refused() -> None:
    assert {"check", "schema"} <= set(run("--help").output.split())
    assert run("chek").exit_code == 2


def test_a_compound_of_ours_is_checked_by_its_name():
    done = run("check", "WheelDrift", "--json")
    assert done.exit_code == 0
    assert [Path(file).name for file in json.loads(done.stdout)["files"]] == ["wheel_drift.yaml"]
