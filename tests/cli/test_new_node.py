"""`transect new node` and `transect new compound`: what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from transect.cli.new import command
from transect.errors import UsageError

NODE = """
name: AttitudeFilter
doc: attitude from an inertial sensor
input_ports: [{name: imu, type: Imu, doc: raw}]
output_ports: [{name: attitude, type: Pose, doc: at the time of the sample}]
implementations: [Complementary]
"""
COMPOUND = """
name: Attitude
dfns: [{name: AttitudeFilter}]
input_ports: [{name: imu, type: Imu, connections: [{dfn: AttitudeFilter, port: imu}]}]
output_ports: [{name: pose, type: Pose, connections: [{dfn: AttitudeFilter, port: attitude}]}]
"""


def run(*arguments: object) -> list[str]:
    done = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "node.yaml").write_text(NODE)
    (tmp_path / "compound.yaml").write_text(COMPOUND)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_node_says_what_was_written_and_what_to_type_next(folder: Path) -> None:
    assert run("node", "node.yaml") == [
        "wrote attitude_filter.py",
        "wrote test_attitude_filter.py",
        "next: python -m pytest test_attitude_filter.py",
    ]


def test_a_second_call_says_what_was_kept_and_what_was_regenerated(folder: Path) -> None:
    run("node", "node.yaml")
    (folder / "node.yaml").write_text(NODE.replace("doc: raw", "doc: filtered"))
    assert run("node", "node.yaml") == [
        "regenerated attitude_filter.py",
        "kept test_attitude_filter.py",
        "next: python -m pytest test_attitude_filter.py",
    ]


def test_files_go_to_the_folder_that_is_asked_for(folder: Path) -> None:
    run("node", "node.yaml", "-o", "nodes")
    assert {path.name for path in (folder / "nodes").iterdir()} == {
        "attitude_filter.py",
        "test_attitude_filter.py",
    }


def test_a_compound_is_written_in_our_form_and_its_check_comes_next(folder: Path) -> None:
    run("node", "node.yaml")
    assert run("compound", "compound.yaml") == [
        "wrote Attitude.yaml",
        "wrote test_attitude.py",
        "next: transect graph check Attitude.yaml",
    ]
    assert "STILL_WRONG: list[str] = []" in (folder / "test_attitude.py").read_text()


def test_there_is_no_way_to_force_it(folder: Path) -> None:
    done = CliRunner().invoke(command, ["node", "node.yaml", "--force"])
    assert done.exit_code == 2
    assert "No such option" in done.output


def test_the_wrong_kind_of_description_names_the_right_command(folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        run("node", "compound.yaml")
    assert caught.value.hint == "transect new compound compound.yaml"
