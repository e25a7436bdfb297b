"""`transect run` says first which noise it used, refuses what it cannot feed, and folds what it says."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path

import pytest
from tests.commands import transect

import transect as package
from transect import formats
from transect.base.tables import ELLIPSIS
from transect.recording import Recording, Stream
from transect.simulation.day import WorldOptions, simulate, write_day


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels, an IMU and fixes that declare their deviations."""
    folder = tmp_path_factory.mktemp("noise") / "day"
    streams = ("Imu", "Gps/*", "Odometry*")
    write_day(simulate("rosario", WorldOptions(seed=5, seconds=8.0, streams=streams)), folder)
    return folder


def without_deviations(recording: Recording) -> Recording:
    fixes = recording["Gps/Fix"]
    bare = [name for name in fixes.columns if name.startswith(("std", "cov")) or name in ("fix", "hdop")]
    fixes = fixes.replace(source=dataclasses.replace(fixes.parsed, table=fixes.table.drop_columns(bare)))
    return recording.replace(streams=tuple(fixes if s.name == fixes.name else s for s in recording.streams))


@pytest.fixture(scope="module")
def undeclared(day: Path) -> Path:
    folder = day.parent / "undeclared"
    formats.write(without_deviations(package.open(day)), folder, "parquet")
    return folder


def lines_of(stdout: str) -> list[str]:
    return [line for line in stdout.splitlines() if line]


@pytest.mark.parametrize("implementation", ["ErrorStateFilter", "BatchSmoother", "FixedLagSmoother"])
def test_the_covariance_of_the_fixes_is_said_before_the_outputs(
    day: Path, undeclared: Path, tmp_path: Path, implementation: str
) -> None:
    said: dict[str, list[str]] = {}
    for name, folder in (("declared", day), ("found", undeclared)):
        done = transect("run", f"PoseFusion/{implementation}", folder, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        before, _, _ = done.stdout.partition("\noutput ")
        said[name] = [line for line in lines_of(before) if line.startswith("noise: ")]
        kept = json.loads((tmp_path / name / "run.json").read_text())["statistics"]["noise"]
        assert [f"noise: {text}" for text in kept] == said[name]
        assert said[name][0] in (tmp_path / name / "statistics.txt").read_text()
    declared, found = said["declared"][0], said["found"][0]
    assert declared.startswith("noise: fix: standard deviation ")
    assert declared.endswith("as declared")
    assert found.startswith("noise: fix: standard deviation ")
    assert "none is stated" in found
    assert "as declared" not in " ".join(said["found"])
    assumed = "not declared in the data; defaults are assumed"
    assert all(each[-1].endswith(assumed) and "wheels" in each[-1] for each in said.values())


def test_an_imu_that_is_not_used_is_said_first(day: Path, tmp_path: Path) -> None:
    recording = package.open(day)
    loose = recording.replace(
        streams=tuple(s.replace(frame="loose") if s.name == "Imu" else s for s in recording.streams)
    )
    formats.write(loose, tmp_path / "loose", "parquet")
    done = transect("run", "PoseFusion/FixedLagSmoother", tmp_path / "loose")
    before, _, _ = done.stdout.partition("\noutput ")
    assert "noise: imu: not used, because no frame gives the mount of loose on base_link" in lines_of(before)


def test_nothing_is_suggested_that_the_recording_does_not_have(day: Path, tmp_path: Path) -> None:
    formats.write(package.open(day).select("Odometry"), tmp_path / "wheels", "parquet")
    done = transect("run", "PoseFusion", tmp_path / "wheels")
    assert done.returncode == 2
    assert "without anything that corrects it" in done.stderr
    assert "--wire" not in done.stderr
    formats.write(package.open(day).select("Odometry", "Imu"), tmp_path / "both", "parquet")
    done = transect("run", "PoseFusion", tmp_path / "both", "--wire", "imu=none")
    assert "try:   --wire imu=Imu\n" in f"{done.stderr}\n"


def test_sentences_are_folded_at_the_width_of_the_terminal(undeclared: Path) -> None:
    done = transect("run", "PoseFusion/ErrorStateFilter", undeclared, COLUMNS="60")
    after = done.stdout.partition("digest ")[2].splitlines()[1:]
    assert any(line.startswith("  ") for line in after)
    assert max(len(line) for line in after) <= 60
    noise = done.stdout.partition("\nnoise: ")[2].partition("\noutput ")[0].splitlines()
    assert max(map(len, noise)) <= 60
    assert ELLIPSIS not in "".join(after)  # folded, not cut


@pytest.fixture(scope="module")
def uncalibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `bag.mcap`, images without calibration, and `calibration00.yaml` of its cameras."""
    folder = tmp_path_factory.mktemp("uncalibrated")
    write_day(simulate("rosario", WorldOptions(seconds=1.0, scale=0.25, streams=("Zed/*",))), folder / "day")

    def bare(stream: Stream) -> Stream:
        return stream.replace(camera="")

    recording = package.open(folder / "day")
    images = recording.select("Zed/*").replace(cameras={})
    formats.write(images.replace(streams=tuple(map(bare, images.streams))), folder / "bag.mcap", "mcap")
    (folder / "day" / "calibration00.yaml").rename(folder / "calibration00.yaml")
    return folder


def test_images_without_calibration_are_refused_before_anything_runs(uncalibrated: Path) -> None:
    done = transect("run", "VisualOdometry", "bag.mcap", "-o", "run", cwd=uncalibrated)
    assert done.returncode == 2
    assert "the images of Zed/Left and Zed/Right come without calibration" in done.stderr
    assert "failed" not in done.stderr
    assert not list(uncalibrated.glob("run*"))
    typed = done.stderr.partition("try:   ")[2].partition("  with")[0]
    assert shlex.split(typed)[:4] == ["transect", "run", "VisualOdometry/KltKeyframes", "bag.mcap"]


def test_a_calibration_file_beside_them_calibrates_the_images(uncalibrated: Path) -> None:
    done = transect("run", "VisualOdometry", "bag.mcap", "calibration00.yaml", cwd=uncalibrated)
    assert done.returncode == 0, done.stderr
    told = transect("info", "bag.mcap", "calibration00.yaml", cwd=uncalibrated).stdout
    assert "note: Zed/Left: calibrated by cam0 of calibration00" in told
    assert "note: Zed/Right: calibrated by cam1 of calibration00" in told
    whole = package.open(uncalibrated / "bag.mcap", uncalibrated / "calibration00.yaml")
    left, right = (whole[name][0].payload.camera for name in ("Zed/Left", "Zed/Right"))
    T_left_right = whole.frames.lookup(left.frame, right.frame)
    assert T_left_right[0, 3] == pytest.approx(0.119, abs=0.002)  # the baseline of Rosario's ZED
