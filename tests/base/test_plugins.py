"""Everything that can be added is found by a manifest, and imported when it is used."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import get_args

import pytest
from tests.commands import transect

from transect.base import plugins
from transect.base.plugins import Kind, Plugin
from transect.engine.nodes import Node, NodeFunction
from transect.errors import TransectError

FORMAT = '''
"""A robot that writes speeds, one to a line."""

from transect.formats import Match, no
from transect.recording import Recording, stream_of_values
from transect.types import Twist


def recognises(source):
    return Match(0.95, "speeds.fieldkit") if "speeds.fieldkit" in source else no("no speeds.fieldkit")


def read(source):
    speeds = [float(line) for line in source.read("speeds.fieldkit").split()]
    t_ns = [k * 10**9 for k in range(len(speeds))]
    return Recording(source.stem, (stream_of_values("Speed", t_ns, {"vx": speeds}, type=Twist),))
'''
MANIFEST = """
from transect.base.plugins import Plugin

plugin = Plugin(
    name="fieldkit",
    formats={"fieldkit": "fieldkit.speeds"},
    tables={"fieldkit": "fieldkit.table:command"},
    robots={"hauler": "fieldkit:hauler.yaml"},
)
"""
TABLE = '''
import click


@click.command()
def command() -> None:
    """Print one number."""
    click.echo("42")
'''


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder as pip installs into, with a package that registers a plug-in."""
    package = tmp_path / "site" / "fieldkit"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "manifest.py").write_text(MANIFEST)
    (package / "speeds.py").write_text(FORMAT)
    (package / "table.py").write_text(TABLE)
    (package / "hauler.yaml").write_text("name: hauler\ntitle: A hauler\n")
    register(package.parent, "fieldkit.manifest:plugin")
    return package.parent


def register(site: Path, value: str) -> None:
    """Write what pip writes beside an installed package that has an entry point."""
    info = site / "fieldkit-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fieldkit\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{plugins.GROUP}]\nfieldkit = {value}\n")


def run_installed(site: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own that has the package installed."""
    code = f"import sys; sys.path.append({str(site)!r}); from transect.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_an_installed_package_offers_formats_tables_and_robots(site: Path, tmp_path: Path) -> None:
    day = tmp_path / "day"
    day.mkdir()
    (day / "speeds.fieldkit").write_text("1\n2\n4\n")
    said = json.loads(run_installed(site, "info", day, "--json").stdout)
    assert (said["format"], said["streams"][0]["samples"]) == ("fieldkit", 3)
    assert run_installed(site, "table", "fieldkit").stdout == "42\n"
    assert "hauler" in run_installed(site, "draw", "robot", "haulr").stderr
    plain = transect("info", str(day))
    assert (plain.returncode, "no format recognises" in plain.stderr) == (1, True)


@pytest.mark.parametrize("value", ["fieldkit.gone:plugin", "fieldkit.speeds:read"])
def test_a_manifest_that_fails_costs_only_itself_and_is_named(site: Path, value: str) -> None:
    register(site, value)
    listed = run_installed(site, "ls")
    assert (listed.returncode, "rosario" in listed.stdout) == (0, True)
    asked = run_installed(site, "draw", "robot", "hauler")
    assert (asked.returncode, "fieldkit" in asked.stderr) == (1, True)
    assert "fieldkit" in run_installed(site, "doctor").stdout


def test_the_first_that_offers_a_name_has_it() -> None:
    before = plugins.strings("formats")["rosbag"]
    with plugins.added(Plugin(name="other", formats={"rosbag": "other.rosbag", "new": "other.new"})):
        assert plugins.strings("formats")["rosbag"] == before
        assert plugins.strings("formats")["new"] == "other.new"
    assert "new" not in plugins.strings("formats")


def test_all_that_transect_offers_is_there() -> None:
    for kind in get_args(Kind):
        for name in plugins.names(kind):
            if kind in ("compounds", "limits", "robots"):
                assert plugins.file_of(kind, name).is_file()
            else:
                assert plugins.load(kind, name) is not None


def test_nodes_are_listed_by_the_names_of_their_classes() -> None:
    for name in plugins.names("nodes"):
        found = plugins.load("nodes", name)
        kind = found.Class if isinstance(found, NodeFunction) else found
        assert issubclass(kind, Node)
        assert kind.__name__ == name


def test_every_node_that_is_defined_can_be_named() -> None:
    """An interface that is not in the list of its package cannot be used by any description."""
    modules = {value.partition(":")[0] for value in plugins.strings("nodes").values()}
    for module in modules:
        for thing in vars(__import__(module, fromlist=["_"])).values():
            if isinstance(thing, type) and issubclass(thing, Node) and thing.__module__ == module:
                assert thing.interface.__name__ in plugins.names("nodes")


def test_a_name_that_nothing_has_is_answered_with_what_was_meant() -> None:
    with pytest.raises(TransectError, match="rosario") as raised:
        plugins.load("catalogues", "rosaria")
    assert "rosario" in raised.value.hint


def test_a_package_that_lies_in_the_working_directory_is_not_installed(site: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from transect.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor"], capture_output=True, text=True, check=True, cwd=site
    )
    assert "fieldkit" not in done.stdout


EXAMPLE_DIR = Path(__file__).parents[2] / "examples" / "fieldkit"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example package was installed from its wheel."""
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(EXAMPLE_DIR, tmp_path_factory.mktemp("source") / "fieldkit")
    code = "import sys, hatchling.build; print(hatchling.build.build_wheel(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=source, capture_output=True, text=True, check=True
    )
    wheel = folder / built.stdout.strip().splitlines()[-1]
    with zipfile.ZipFile(wheel) as archive:  # a wheel of plain Python is installed by unpacking it
        archive.extractall(folder)
    wheel.unlink()
    return folder


def test_the_example_package_is_installed_and_used(installed: Path, tmp_path: Path) -> None:
    day = tmp_path / "day"
    day.mkdir()
    volts = [18.0 if 300 <= k < 500 else 24.5 for k in range(800)]
    rows = [f"{1000 + k / 100},0,0,9.81,0,0,{k % 2 * 90},{volt}" for k, volt in enumerate(volts)]
    (day / "hauler.csv").write_text("stamp,ax,ay,az,wx,wy,wz,volt\n" + "\n".join(rows) + "\n")
    told = run_installed(installed, "info", day)
    assert (told.returncode, "hauler" in told.stdout, "800" in told.stdout) == (0, True, True)
    assert run_installed(installed, "table", "hauler", day).stdout == "lowest voltage  18.0 V\n"
    checked = run_installed(installed, "check", day, "--check", "U01", "--json")
    assert (checked.returncode, checked.stdout.count('"BROWNOUT"') > 0) == (4, True), checked.stdout
    ran = run_installed(installed, "run", "SmoothMotion", day, "-o", tmp_path / "run")
    assert (ran.returncode, (tmp_path / "run" / "run.json").is_file()) == (0, True), ran.stderr
