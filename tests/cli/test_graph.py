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
