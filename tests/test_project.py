"""The project as a stranger meets it: import, command, README, examples."""

import os
import re
import runpy
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests import commands

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BIN = Path(sys.executable).parent

HEAVY = {
    *("cv2", "lxml", "matplotlib", "mcap", "msgpack", "numba", "numpy", "pandas", "polars", "pyarrow"),
    *("pydantic", "pymap3d", "pyproj", "rasterio", "rich", "rosbags", "scipy", "yaml"),
}
UNSAFE = {
    "unpickling": r"\b(pickle|marshal|shelve)\.(load|loads|open)\b",
    "eval": r"(?<![\w.])(eval|exec)\(",
    "numpy files that may hold pickles": r"\bnp\.load\((?!.*allow_pickle=False)",
    "pickles allowed": r"allow_pickle=True",
}


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def test_importing_transect_imports_nothing_heavy(tmp_path: Path):
    shown = run(sys.executable, "-c", "import sys, transect; print(*sys.modules)", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert not HEAVY & set(shown.stdout.split())


def test_help_lists_the_verbs_and_imports_nothing_heavy(tmp_path: Path):
    shown = run(sys.executable, "-X", "importtime", BIN / "transect", "--help", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"^\s+info\b", shown.stdout, re.MULTILINE)
    imported = {line.rpartition("|")[2].strip() for line in shown.stderr.splitlines() if "|" in line}
    assert not HEAVY & imported


def readme_as_script(text: str) -> str:
    """Code of all blocks on the lines where it stands in the README; everything else is blank.

    Python blocks are kept as they are, and `transect ...` lines of shell blocks become calls, so that blocks
    may build on each other in any language. Other shell lines (make, git, pip) are left out.
    """
    script = [""]
    language = None
    for line in text.splitlines()[1:]:
        fence = re.match(r"```(\w*)", line)
        if fence:
            language = fence[1] if language is None else None
            script.append("")
        elif language in {"python", "py"}:
            script.append(line)
        elif language in {"sh", "bash", "shell", "console"} and re.match(r"(\$ )?transect ", line):
            script.append(f"typed({line.removeprefix('$ ')!r})")
        else:
            script.append("")
    return "\n".join(script) + "\n"


def test_readme_script_keeps_code_on_its_line():
    text = "# Title\n```python\nx = 1\n```\nprose\n```sh\nmake demo\n$ transect info a\n```\n"
    lines = readme_as_script(text).splitlines()
    assert lines[2] == "x = 1"
    assert lines[7] == "typed('transect info a')"
    assert not any(lines[i] for i in (0, 1, 3, 4, 5, 6, 8))


def run_page(page: Path, folder: Path) -> str:
    """Run the code of a page in a folder, in order; what it printed."""
    path = folder / page.name
    path.write_text(readme_as_script(page.read_text("utf-8")), "utf-8")
    done = commands.script(path, cwd=folder, names={"typed": commands.typed})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_code_block_of_the_readme_runs_in_order(tmp_path: Path):
    printed = run_page(ROOT / "README.md", tmp_path)
    for shown in ("longest gap", "PoseFusion/ErrorStateFilter", "poses compared", "figures in "):
        assert shown in printed


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_runs(example: Path, tmp_path: Path):
    done = commands.script(example, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("pattern", UNSAFE.values(), ids=UNSAFE.keys())
def test_nothing_unsafe_is_called(pattern: str):
    found = [path.name for path in SOURCES if re.search(pattern, path.read_text("utf-8"))]
    assert not found


def test_yaml_is_loaded_by_the_one_module_that_guards_against_bombs():
    bare = re.compile(r"\byaml\.(\w*load\w*|parse|compose\w*|scan|\w*Loader)\b|from yaml\b")
    code = [
        path
        for folder in ("src", "tools", "examples", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    ]
    assert [path.name for path in code if bare.search(path.read_text("utf-8"))] == ["yaml_loading.py"]


def test_citation_and_changelog_know_the_version():
    from transect import __version__

    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_dependencies_page_lists_every_runtime_package_with_its_version_and_licence():
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    tool = runpy.run_path(str(ROOT / "tools" / "dependencies_page.py"))
    versions = tool["constrained_versions"]()
    assert set(tool["runtime_packages"]()) <= set(versions), "run make constraints"
    listed = dict(re.findall(r"^\| ([a-z0-9-]+) \| (\d[^ |]*) \| [^ |]", page, re.MULTILINE))
    assert listed.items() >= {(name, versions[name]) for name in tool["runtime_packages"]()}, (
        "run tools/dependencies_page.py"
    )


def test_installed_packages_are_those_of_the_constraints():
    """A machine that tests other versions than it says tests something else."""
    versions = runpy.run_path(str(ROOT / "tools" / "dependencies_page.py"))["constrained_versions"]()
    for name in ("numpy", "scipy", "pyarrow", "opencv-contrib-python-headless", "gtsam"):
        assert version(name) == versions[name], "run make setup"
