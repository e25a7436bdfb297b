"""`transect table slip` and `transect draw slip`, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.commands import transect
from tests.datasets.ameds.robot.circle import circle_wheels
from tests.datasets.ameds.robot.recordings import circle
from tests.datasets.ameds.robot.test_locomotion import ins

from transect.datasets.ameds import folders as ameds


@pytest.fixture(scope="module")
def slipping(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten seconds on a circle, in which a quarter of what the wheels roll is lost."""
    folder = tmp_path_factory.mktemp("slip") / "slipping"
    ameds.write(ins(circle(10.0), (0.375, 0.0, 0.0), (0.0, 0.0, -0.075)), folder)
    return folder


def test_a_row_for_each_wheel_and_who_measured(slipping: Path):
    done = transect("table", "slip", slipping)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:6]] == ["1", "2", "3", "4", "all"]
    _, speeds = circle_wheels(5.0, 0.1)
    rolled = 10 * speeds.mean()
    assert lines[5].split()[2:7] == [f"{rolled:.2f}", f"{0.75 * rolled:.2f}", "0.250", "0.250", "0.250"]
    assert "over the ground by Gnss/BodyVelocity and Gnss/BodyAngularVelocity" in done.stdout
    assert "worst at +" in done.stdout


def test_json_has_the_same_numbers(slipping: Path):
    document = json.loads(transect("table", "slip", slipping, "--json", "--from", "+2s").stdout)
    assert [row["lost"] for row in document["wheels"]] == pytest.approx([0.25] * 5, abs=1e-3)
    assert {moment["wheel"] for moment in document["worst"]} <= {1, 2, 3, 4}
    by_wheels = transect("table", "slip", slipping, "--json", "--twist", "Platform/2DVelocity")
    assert json.loads(by_wheels.stdout)["wheels"][4]["lost"] == pytest.approx(0.0, abs=1e-3)


def test_the_figure_is_written_and_a_recording_without_wheels_is_refused(slipping: Path, tmp_path: Path):
    picture = tmp_path / "slip.png"
    done = transect("draw", "slip", slipping, "-o", picture, "--dpi", "60")
    assert (done.returncode, done.stdout) == (0, f"wrote {picture}\n")
    assert picture.read_bytes()[:4] == b"\x89PNG"
    track = tmp_path / "track.tum"
    np.savetxt(track, [[1.0 + k, 0, 0, 0, 0, 0, 0, 1] for k in range(3)])
    refused = transect("table", "slip", track)
    assert refused.returncode == 1
    assert "has no wheel encoders of Interact" in refused.stderr
