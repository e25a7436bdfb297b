"""`transect draw sdi`: figures of SDI in a folder, captions and statements on the screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import transect
from tests.integrity.recordings import radar, yard

from transect import formats
from transect.recording import Recording
from transect.simulation.faults import inject


@pytest.fixture(scope="module")
def dusty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdi") / "dust"
    laser = inject(yard(), "dust", severity=0.6, seed=1, start="+10s", end="+20s")[0]
    formats.write(Recording("dust", (*laser.streams, radar()), frames=laser.frames), folder, format="parquet")
    return folder


def test_figures_captions_and_statements(dusty: Path, tmp_path: Path) -> None:
    done = transect("draw", "sdi", dusty, "-o", tmp_path / "figures", "--seconds", "1", "--dpi", "50")
    assert done.returncode == 0, done.stderr
    written = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert written == ["laser-and-radar.png", "ranges-laser.png", "ranges-radar.png"]
    assert max(map(len, done.stdout.replace(str(tmp_path), "").splitlines())) <= 80
    said = " ".join(done.stdout.split())
    assert "as dots (above) and as lines (below): clear at +0 s (dust), dust at +1" in said
    assert "D(dust) > 0.9: dust 0.9" in said  # a wall all around: the radar sees through everything
    assert "f_e(dust) > 10 f_e(rain): not measured, no recording of rain" in said
    assert '5.1: "dust generates random points in the laser scans' in said


def test_without_a_folder_only_statements_are_printed(dusty: Path) -> None:
    document = json.loads(transect("draw", "sdi", dusty, "--json").stdout)
    assert document["figures"] == []
    assert [each["holds"] for each in document["statements"]] == [None, None, True, None, None]
    assert document["statements"][3]["missing"] == []  # this radar looks too seldom at a bearing to scatter
    assert document["statements"][0]["missing"] == ["rain"]


def test_a_moment_that_is_not_in_the_recording_is_refused(dusty: Path, tmp_path: Path) -> None:
    done = transect("draw", "sdi", dusty, "-o", tmp_path / "figures", "--at", "+90s")
    assert done.returncode == 2
    assert "has nothing at +90s" in done.stderr
    assert not (tmp_path / "figures").exists()
