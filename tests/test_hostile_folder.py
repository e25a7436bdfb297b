"""A recording is data: no command executes any file of its folder.

Modules with names that Python, numpy and others import lie in the working directory; each leaves a mark when
it is executed. Commands run as the console script runs them, and start their real child processes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.commands import transect as run_here

from transect.cli import command

SCRIPT = Path(sys.executable).with_name("transect")
PLANTED = (
    "numpy", "transect", "sitecustomize", "usercustomize", "rerun", "runpy", "pickle", "socket", "typing",
    "yaml", "scipy", "numba", "cv2", "matplotlib", "multiprocessing", "webbrowser", "tempfile", "json",
)  # fmt: skip
MARK = "import pathlib; pathlib.Path({mark!r}, 'ran-' + __name__).touch()\n"
LINES = "".join(f"{k},{0.1 * k},{0.02 * k * k},0,0,0,0,1\n" for k in range(60))
ALL_VERBS = """
import json, runpy, sys
script, verbs = sys.argv[1], json.loads(sys.argv[2])
ended = {}
for verb, arguments in verbs.items():
    sys.argv = [script, verb, *arguments]
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as done:
        ended[verb] = done.code or 0
    print(flush=True)
print(json.dumps(ended))
"""
VERBS: dict[str, list[str]] = {
    "allan": ["tum.txt"],
    "archive": ["validate", "."],
    "cache": ["info"],
    "check": ["tum.txt"],
    "compare": ["tum.txt", "tum.txt"],
    "demo": ["--help"],
    "doctor": [],
    "draw": ["frames", "ida", "-o", "frames.png"],
    "eval": ["tum.txt", "tum.txt"],
    "export": ["tum.txt", "--format", "tum", "-o", "out"],
    "graph": ["list"],
    "info": ["tum.txt"],
    "inject": ["--help"],
    "ls": ["."],
    "maps": ["--help"],
    "new": ["recording", "."],
    "products": ["list", "--store", "store"],
    "report": ["tum.txt", "-o", "report.html"],
    "request": ["Pose", "tum.txt", "--dry-run"],
    "run": ["PoseSwitching", "tum.txt", "--wire", "first=Trajectory", "-o", "switched"],
    "simulate": [],
    "table": ["--help"],
    "view": ["tum.txt", "--save", "scene.rrd"],
}


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.fixture
def hostile(tmp_path: Path, marks: Path) -> Path:
    """A folder with a trajectory, modules that leave marks, and settings of other programs."""
    folder = tmp_path / "recording"
    folder.mkdir()
    (folder / "tum.txt").write_text(LINES.replace(",", " "))
    for name in PLANTED:
        (folder / f"{name}.py").write_text(MARK.format(mark=str(marks)))
    (folder / "matplotlibrc").write_text("text.usetex: True\nfigure.facecolor: red\n")
    return folder


def ran(marks: Path) -> list[str]:
    return sorted(mark.name for mark in marks.iterdir())


def environment() -> dict[str, str]:
    """Return the variables of a shell that sets nothing for Python."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def test_no_verb_executes_what_lies_in_the_working_directory(hostile: Path, marks: Path) -> None:
    with click.Context(command) as context:
        assert sorted(VERBS) == command.list_commands(context)
    done = subprocess.run(
        [sys.executable, "-P", "-c", ALL_VERBS, SCRIPT, json.dumps(VERBS)],
        cwd=hostile, env=environment(), capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert ran(marks) == []
    ended = json.loads(done.stdout.splitlines()[-1])
    for verb in ("check", "doctor", "draw", "eval", "export", "graph", "info", "report", "run", "view"):
        assert ended[verb] in (0, 3, 4), (verb, done.stderr)


def test_the_console_script_and_a_module_with_a_safe_path_execute_nothing(hostile: Path, marks: Path) -> None:
    for start in ([SCRIPT], [sys.executable, "-P", "-m", "transect"]):
        done = subprocess.run(
            [*start, "info", "tum.txt"], cwd=hostile, env=environment(), capture_output=True, timeout=600
        )
        assert (done.returncode, ran(marks)) == (0, [])


def test_python_m_transect_imports_nothing_more_from_the_working_directory(
    hostile: Path, marks: Path
) -> None:
    # What `python -m` itself imports comes before any line of transect, and cannot be protected.
    for name in ("transect", "runpy", "typing"):
        (hostile / f"{name}.py").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "transect", "check", "tum.txt"],
        cwd=hostile, env=environment(), capture_output=True, timeout=600,
    )  # fmt: skip
    assert (done.returncode in (0, 4), ran(marks)) == (True, []), done.stderr


@pytest.fixture
def served(hostile: Path) -> Iterator[str]:
    command = [SCRIPT, "view", "tum.txt", "--no-browser"]
    with subprocess.Popen(
        command, cwd=hostile, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


def test_the_checks_beside_the_viewer_execute_nothing(served: str, marks: Path) -> None:
    def ask(path: str, method: str = "GET") -> bytes:
        with urllib.request.urlopen(urllib.request.Request(f"{served}{path}", method=method)) as answer:
            return answer.read()

    ask("here/1", "POST")  # the checks begin with the first page
    verdicts = {"done": False}
    for _ in range(3000):
        verdicts = json.loads(ask("verdicts.json"))
        if verdicts["done"]:
            break
        time.sleep(0.1)
    assert verdicts["done"]
    assert "why" not in verdicts, verdicts
    assert ran(marks) == []


POOL = """
from transect.base.processes import process_pool
if __name__ == "__main__":
    with process_pool(2) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
"""


def test_a_pool_of_processes_executes_nothing(hostile: Path, marks: Path, tmp_path: Path) -> None:
    script = tmp_path / "elsewhere" / "pool.py"
    script.parent.mkdir()
    script.write_text(POOL)
    subprocess.run([sys.executable, script], cwd=hostile, env=environment(), check=True, timeout=600)
    assert ran(marks) == []


def test_the_figures_of_a_command_do_not_obey_a_matplotlibrc_beside_the_data(hostile: Path) -> None:
    clean = hostile.parent / "clean"
    clean.mkdir()
    shutil.copy(hostile / "tum.txt", clean)
    drawn: list[bytes] = []
    for folder in (clean, hostile):
        subprocess.run(
            [SCRIPT, "draw", "frames", "ida", "-o", "frames.png"],
            cwd=folder, env=environment(), check=True, capture_output=True, timeout=600,
        )  # fmt: skip
        drawn.append((folder / "frames.png").read_bytes())
    assert drawn[0] == drawn[1]


COMPOUND = """\
name: PoseSwitching
doc: replaces the compound of that name
input_ports: [{name: first, type: Pose}]
output_ports: [{name: pose, type: Pose}]
nodes: {n: {node: EvilNode}}
wires: ["first -> n.first", "n.pose -> pose"]
"""


@pytest.mark.parametrize("name", ["PoseSwitching", "PoseSwitching/EndToEnd", "PoseSwitch"])
def test_a_file_beside_the_data_does_not_replace_a_compound_or_node(
    hostile: Path, marks: Path, name: str
) -> None:
    (hostile / name).parent.mkdir(exist_ok=True)
    (hostile / name).write_text(COMPOUND)
    (hostile / name).with_name("evil_node.py").write_text(MARK.format(mark=str(marks)))
    done = run_here("run", name, "tum.txt", "-o", "made", cwd=hostile)
    assert ran(marks) == []
    assert "Evil" not in done.stdout + done.stderr
