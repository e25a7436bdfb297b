"""The tracks that another project derived from Rosario."""

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.errors import UsageError
from transect.formats import rosario_tracks
from transect.recording import source_of

ECHO = "x: 0.0\ny: 0.0\nz: 0.0\n---\nx: 0.10595021224231577\ny: -1.5e-05\nz: 0.0\n---\n"
TRACK = """\
1.514301955465e+18 1.96 -0.017 1.02 0.0 -0.0 0.0 0.01918167
1.5143019560610002e+18 2.96 -0.517 1.02 0.0 -0.0 0.0 0.01918167
"""


@pytest.fixture
def tracks(tmp_path: Path) -> Path:
    root = tmp_path / "tracks"
    root.mkdir()
    for n in ("01", "04"):
        (root / f"sequence{n}_new_gt_IMU_frame.txt").write_text(TRACK)
        (root / f"odometry_sequence{n}.txt").write_text(ECHO)
    (root / "flourish_DatasetA_GT.txt").write_text("1497960452000000000 0.5 -0.66 2.19 0.0 -0.1 0.0 0.99\n")
    (root / "flourish_odometry_DatasetA.txt").write_text(ECHO)
    (root / "flourish_odometry_comombined_DatasetA.txt").write_text(ECHO)
    return root


def test_tracks_need_a_choice_that_the_error_lists(tracks: Path) -> None:
    assert rosario_tracks.recognises(source_of(tracks)).confidence >= 0.9
    with pytest.raises(UsageError) as refused:
        transect.open(tracks, format="rosario_tracks")
    assert "01, 04, A" in refused.value.why


def test_float_nanoseconds_are_read_exactly_and_the_added_constant_is_taken_off(tracks: Path) -> None:
    rec = transect.open(tracks, format="rosario_tracks", sequence="01")
    truth = rec["GroundTruth"]
    assert truth.t_ns.tolist() == [1514301955465000000, 1514301956061000200]
    np.testing.assert_allclose(truth.array("x", "y", "z"), [[0, 0, 0], [1.0, -0.5, 0]], atol=1e-15)
    assert np.isnan(truth[0].value.orientation).all()
    assert rec.conditions["sequence"] == 1


def test_echoed_odometry_has_no_times(tracks: Path) -> None:
    odometry = transect.open(tracks, format="rosario_tracks", sequence=4)["Odometry"]
    assert odometry.clock == "index"
    assert odometry.t_ns.tolist() == [0, 10**9]
    assert odometry["y"].tolist() == [0.0, -1.5e-05]


def test_flourish_lies_in_the_same_folder(tracks: Path) -> None:
    rec = transect.open(tracks, format="rosario_tracks", sequence="A")
    assert [s.name for s in rec] == ["GroundTruth", "Odometry", "Odometry/Combined"]
    assert rec.robot is None
    assert rec["GroundTruth"]["x"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("text", "kept", "line"),
    [
        (ECHO[:-4], 1, 5),
        (ECHO[:30], 1, 5),
        (ECHO.replace("x: 0.0\n", "x: zero\n"), 1, 1),
        ("hello\n" + ECHO, 2, 1),
        (ECHO.replace("---\nx: 0.1", "x: 0.1"), 1, 1),
    ],
)
def test_blocks_that_are_not_whole_are_lost_and_located(
    tracks: Path, text: str, kept: int, line: int
) -> None:
    (tracks / "odometry_sequence01.txt").write_text(text)
    rec = transect.open(tracks, format="rosario_tracks", sequence="01")
    assert len(rec["Odometry"]) == kept
    assert [loss.line for loss in rec.losses] == [line]
