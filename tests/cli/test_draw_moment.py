"""`transect draw moment`, and what it takes from a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from transect import robots
from transect.cli import command
from transect.cli._draw_moment import Moment, moment_of, revolution
from transect.draw.moment import FromAbove, Spectrum
from transect.errors import StreamError, TransectError
from transect.recording import Recording, Stream, arrow
from transect.types import LaserScan, RadarRange, RadarSpectrum

NS = 1_000_000_000


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=True)


def radar_streams(turns: float = 3.0, lines: int = 300) -> tuple[Stream, Stream]:
    """A radar that turns once a second, and sees a target at 5 m wherever it looks; bins are 1 m."""
    t_ns = np.arange(lines) * round(turns * NS / lines)
    angle = (2 * np.pi * t_ns / NS) % (2 * np.pi)
    spectra = np.zeros((lines, 8))
    spectra[:, 4] = 30.0
    columns = {
        "reflectivity": arrow.ragged_from_offsets(spectra.ravel(), 8 * np.arange(lines + 1)),
        "angle": angle,
        "bin_width": np.ones(lines),
        "range_offset": np.zeros(lines),
    }
    found = {"range": np.full(lines, 5.0), "angle": angle, "reflectivity": np.full(lines, 30.0)}
    return (
        Stream("RadarSpectrum", RadarSpectrum, arrow.table(t_ns, columns), frame="Radar"),
        Stream("RadarRangeBearing", RadarRange, arrow.table(t_ns, found), frame="Radar", role="derived"),
    )


def scan_stream() -> Stream:
    """One scan with a return straight ahead at 4 m, one to starboard at 2 m, and one that is no return."""
    columns = {
        "ranges": arrow.ragged_from_offsets(np.array([4.0, 2.0, 81.91]), np.array([0, 3])),
        "start_angle": np.zeros(1),
        "angle_increment": np.full(1, np.pi / 2),
    }
    return Stream("LaserPort", LaserScan, arrow.table(np.array([NS]), columns), frame="LaserPort")


@pytest.fixture
def day() -> Recording:
    argo = robots.load("argo")
    return Recording("day", (*radar_streams(), scan_stream()), frames=argo.frames, robot=argo)


def test_a_revolution_is_half_a_turn_to_either_side(day: Recording):
    turn = revolution(day["RadarRangeBearing"], 3 * NS // 2)
    assert turn.t_ns[0] == pytest.approx(NS, abs=NS // 100)
    assert turn.t_ns[-1] == pytest.approx(2 * NS, abs=NS // 100)


def test_detected_ranges_lie_in_their_spectrum_and_have_no_panel_of_their_own(day: Recording):
    panel = Moment(day, "utc", 3 * NS // 2, 0.5).panel(day["RadarSpectrum"], day["RadarRangeBearing"])
    assert isinstance(panel, Spectrum)
    assert panel.reflectivity.shape == (len(panel.bearings), 8)
    assert panel.detected is not None
    assert panel.detected[:, 1] == pytest.approx(np.full(len(panel.bearings), 5.0))
    assert np.sort(panel.detected[:, 0]) == pytest.approx(np.sort(panel.bearings))
    titles = [ax.get_title(loc="left") for ax in moment_of(day, "+1.5s", (), 0.6).axes]
    assert [title.partition(",")[0] for title in titles] == ["LaserPort", "RadarSpectrum"]


def test_scans_are_drawn_in_the_body_with_left_positive_and_without_what_did_not_return(day: Recording):
    panel = Moment(day, "utc", NS, 0.5).panel(day["LaserPort"])
    assert isinstance(panel, FromAbove)
    assert panel.frame == "Body"
    # Table 2.2.5 of document 004: the laser is 0.55 m to port of the body, which is left.
    assert np.isnan(panel.points[2]).all()
    ahead, starboard = panel.points[:2]
    assert ahead[1] == pytest.approx(0.55, abs=0.3)
    assert starboard[1] < ahead[1] - 1.5


def test_a_stream_that_is_far_in_time_is_left_out_and_named(
    day: Recording, capsys: pytest.CaptureFixture[str]
):
    figure = moment_of(day, "+2.5s", (), 0.5)
    assert len(figure.axes) == 1
    assert "left out: LaserPort: its nearest sample is -1.500 s away" in capsys.readouterr().err


def test_streams_without_pictures_are_refused(day: Recording):
    with pytest.raises(StreamError, match="no images, scans, radars or clouds"):
        moment_of(day.select("Laser*").replace(streams=()), "+0s", (), 0.5)


def test_the_picture_of_a_recording_is_written(tmp_path: Path):
    assert run("demo", "-o", tmp_path).exit_code == 0
    out = tmp_path / "moment.png"
    done = run("draw", "moment", tmp_path / "etna", "--at", "+2s", "--dpi", 60, "-o", out)
    assert done.exit_code == 0, done.output
    assert out.read_bytes().startswith(b"\x89PNG")


def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path):
    assert run("demo", "-o", tmp_path).exit_code == 0
    done = run("draw", "moment", tmp_path / "etna", "--streams", "Gnss*", "-o", tmp_path / "m.png")
    assert isinstance(done.exception, TransectError)
    assert not (tmp_path / "m.png").exists()
