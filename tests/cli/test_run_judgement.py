"""`transect run` ends with a judgement in words; a fusion that refused most of a sensor exits with 4."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from transect.cli.info import command as info
from transect.cli.run import command as run
from transect.simulation.day import WorldOptions, simulate, write_day

STANDARD_GRAVITY = 9.80665


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged") / "day"
    streams = ("Imu", "Gps/*", "Odometry*")
    write_day(simulate("rosario", WorldOptions(seed=3, seconds=8.0, streams=streams)), folder)
    return folder


@pytest.fixture(scope="module")
def day_in_g(day: Path) -> Path:
    """The same day; its IMU says 1 where 9.8 m/s2 are declared (milli-g in the file)."""
    folder = day.parent / "in-g"
    sequence = folder / "sequence00"
    sequence.mkdir(parents=True)
    (folder / "calibration00.yaml").write_bytes((day / "calibration00.yaml").read_bytes())
    for name in ("gps.log", "odometry.log"):
        (sequence / name).write_bytes((day / "sequence00" / name).read_bytes())
    rows = [line.split() for line in (day / "sequence00" / "imu.log").read_text().splitlines()]
    lines = [
        " ".join([*row[:-3], *(repr(float(value) / STANDARD_GRAVITY) for value in row[-3:])]) for row in rows
    ]
    (sequence / "imu.log").write_text("\n".join(lines) + "\n")
    return folder


def fused(day: Path, out: Path, implementation: str) -> Result:
    arguments = [f"PoseFusion/{implementation}", str(day), "-o", str(out)]
    return CliRunner(env={"COLUMNS": "1000"}).invoke(run, arguments, standalone_mode=False)


@pytest.mark.parametrize(
    ("implementation", "said", "written"),
    [
        ("ErrorStateFilter", "BAD: fix: ", "pose.tum"),
        ("BatchSmoother", "BAD: imu: its accelerometers fit only with a bias of ", "pose.tum"),
        ("FixedLagSmoother", "BAD: the smoother did not converge", "success.parquet"),  # it gives no pose
    ],
)
def test_an_imu_in_g_does_not_look_like_success(
    day_in_g: Path, tmp_path: Path, implementation: str, said: str, written: str
) -> None:
    result = fused(day_in_g, tmp_path / "run", implementation)
    assert result.return_value == 4
    assert "warning: Imu: its mean acceleration is 0.9" in result.stderr
    assert "it is probably in g" in result.stderr
    lines = [line for line in result.stdout.splitlines() if line.startswith("BAD: ")]
    assert any(line.startswith(said) for line in lines)
    assert all(line.endswith("do not trust this result") for line in lines)
    assert (tmp_path / "run" / written).is_file()  # it is written all the same
    kept = json.loads((tmp_path / "run" / "run.json").read_text())["conclusions"]
    assert [each["text"] for each in kept if each["bad"]] == [line.removeprefix("BAD: ") for line in lines]


def test_a_good_fusion_says_how_good_it_is(day: Path) -> None:
    arguments = ["PoseFusion/ErrorStateFilter", str(day), "--json"]
    result = CliRunner().invoke(run, arguments, standalone_mode=False)
    assert result.return_value == 0
    assert "warning" not in result.stderr
    said = json.loads(result.stdout)["conclusions"]
    assert not any(each["bad"] for each in said)
    text = "\n".join(each["text"] for each in said)
    for words in ("fix: ", " rejected (", "NIS", "longest time without a position: 0.", "heading: sigma"):
        assert words in text


def test_info_warns_of_the_unit(day: Path, day_in_g: Path) -> None:
    assert "it is probably in g" in CliRunner().invoke(info, [str(day_in_g)]).stderr
    assert "warning" not in CliRunner().invoke(info, [str(day)]).stderr
    found = json.loads(CliRunner().invoke(info, [str(day_in_g), "--json"]).stdout)["findings"]
    assert [each["check"] for each in found] == ["acceleration unit"]
