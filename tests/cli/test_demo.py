"""The compounds that the demo runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from transect.cli import demo
from transect.simulation.day import WorldOptions, simulate


def test_the_demo_prints_the_digest_of_the_run_that_it_kept_and_how_good_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    streams = ("Platform/MotorEncoders", "Gnss/Pose")
    day = simulate("etna", WorldOptions(seconds=4.0, streams=streams)).recording
    shown = []
    for _ in range(2):  # the second time the folder is there already
        demo._run("WheelDrift", day, tmp_path / "etna", tmp_path / "run")
        shown.append(capsys.readouterr().out.splitlines())
    kept = json.loads((tmp_path / "run" / "run.json").read_text())
    assert shown[0][0].endswith(f"transect run WheelDrift {tmp_path / 'etna'} -o {tmp_path / 'run'}")
    assert shown[0][1].endswith(f"digest {kept['digest']} (equal inputs give equal digests)")
    assert shown[1][1] == shown[0][1]
    assert (tmp_path / "run" / "odometry.tum").stat().st_size > 1000


def test_the_demo_looks_fuses_breaks_compares_and_names_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(demo.DRIVE, "seconds", 6.0)
    monkeypatch.setitem(demo.STEREO_DRIVE, "seconds", 1.0)
    monkeypatch.setitem(demo.STEREO_DRIVE, "scale", 0.25)
    monkeypatch.setitem(demo.LOOP_DRIVE, "seconds", 4.0)
    done = CliRunner().invoke(demo.command, ["-o", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0
    for shown in (
        "longest gap",
        "VisualOdometry/KltKeyframes",
        "PoseFusion/ErrorStateFilter",
        "samples modified",
        "4 sensors: ",
        "PoseFusion/ErrorStateFilter: identical, digest ",
        "urn:nasa:pds:sequence00::1.0",
        ": 0 errors, ",
        f"transect maps show {tmp_path / 'round'} -o {tmp_path / 'round.png'}",
        "RMSE against ground truth",
    ):
        assert shown in done.output
    named = [
        Path(line.strip()) for line in done.output.splitlines() if line.endswith(".png") and line[0] == " "
    ]
    runs = [path.parent.parent.name for path in named[:-2]]
    assert runs == ["fused", "fused-with-spikes", "odometry"]
    assert named[-2:] == [tmp_path / "round.png", tmp_path / "products.png"]
    assert f"Report: open {tmp_path / 'report.html'} in a browser" in done.output.splitlines()[-1]
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "The trajectory of fused-with-spikes has a length of" in page
    assert f"Products in {tmp_path / 'products.gpkg'}" in page
    if shutil.which("ogrinfo"):
        listed = subprocess.run(
            ["ogrinfo", "-so", "-al", tmp_path / "products.gpkg"], capture_output=True, text=True
        )
        assert "Layer name: tracks_site_sequence00" in listed.stdout
    assert all(path.is_file() for path in named)
