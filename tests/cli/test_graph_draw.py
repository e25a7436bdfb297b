"""`transect graph draw`: files a person can look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from lxml import etree

from transect.cli.graph import draw_command as draw
from transect.errors import UsageError

COMPOUND = """
name: Odometry
input_ports: [{name: imu, type: Imu}]
output_ports: [{name: pose, type: Pose}]
implementations:
  - name: Wheels
    nodes: {filter: {node: AttitudeFilter}}
    wires: [imu -> filter.imu, filter.pose ~> filter.guess, filter.pose -> pose]
  - name: Visual
    nodes: {vo: {node: VisualOdometry}}
    wires: [vo.pose -> pose]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "Odometry.yaml"
    path.write_text(COMPOUND)
    return path


def run(*arguments: object) -> str:
    done = CliRunner().invoke(draw, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_svg_is_written_and_the_command_says_what_is_on_it(file: Path, tmp_path: Path) -> None:
    said = run(file, "-o", tmp_path / "x.svg")
    assert said == f"wrote {tmp_path / 'x.svg'}: Odometry / Wheels, 1 node, 3 wires\n"
    root = etree.fromstring((tmp_path / "x.svg").read_bytes())
    assert "filter" in [element.text for element in root.iter("{*}text")]


def test_mermaid_is_written(file: Path, tmp_path: Path) -> None:
    run(file, "-o", tmp_path / "x.mmd")
    assert "flowchart LR" in (tmp_path / "x.mmd").read_text()


def test_an_implementation_is_chosen_by_name(file: Path, tmp_path: Path) -> None:
    assert "Odometry / Visual" in run(file, "-o", tmp_path / "x.svg", "--implementation", "Visual")


def test_other_suffixes_are_refused_before_anything_is_written(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        run(file, "-o", tmp_path / "x.png")
    assert ".svg or .mmd" in caught.value.why
    assert not (tmp_path / "x.png").exists()


def test_ports_come_from_other_descriptions_too(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "dfn"
    folder.mkdir()
    (folder / "AttitudeFilter_desc.yaml").write_text(
        "name: AttitudeFilter\ninput_ports: [{name: imu, type: Imu}, {name: temperature, type: float}]\n"
    )
    run(file, folder, "-o", tmp_path / "x.svg")
    assert ">temperature<" in (tmp_path / "x.svg").read_text()


def test_a_compound_of_ours_is_named_with_its_implementation(tmp_path: Path):
    said = run("VisualOdometry/Mono", "-o", tmp_path / "mono.mmd")
    assert "VisualOdometry / Mono" in said
    assert "MonoOdometry" in (tmp_path / "mono.mmd").read_text()
