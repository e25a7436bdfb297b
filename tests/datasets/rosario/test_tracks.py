"""The tracks that another project derived from Rosario."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.formats.recordings import assert_same, opened, rewritten

import transect
from transect import formats
from transect.datasets.rosario import tracks as rosario_tracks
from transect.errors import UsageError
from transect.recording import Recording, Stream, arrow, source_of, stream_of_values
from transect.recording.arrow import PAYLOAD
from transect.types import Image, Imu, Odometry, Pose

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
    assert refused.value.hint == "--option sequence=01 (in Python sequence='01')"  # to be pasted


def test_float_nanoseconds_are_read_exactly_and_the_added_constant_is_taken_off(tracks: Path) -> None:
    rec = transect.open(tracks, format="rosario_tracks", sequence="01")
    truth = rec["GroundTruth"]
    assert truth.t_ns.tolist() == [1514301955465000000, 1514301956061000200]
    np.testing.assert_allclose(truth.array("x", "y", "z"), [[0, 0, 0], [1.0, -0.5, 0]], atol=1e-15)
    assert np.isnan(truth[0].value.orientation).all()
    assert rec.conditions["sequence"] == 1


BEGAN_NS = -270_000_000
"""When the odometry of `drive` began, after RTK's first fix."""


def drive(root: Path, reckoned_speed: str = "the same") -> Path:
    """Write a minute of driving at changing speed: fixes at 5 Hz, odometry at 10 Hz."""
    root.mkdir()

    def way(seconds: np.ndarray) -> np.ndarray:
        return 0.7 * seconds + 0.9 * np.sin(0.6 * seconds) + 0.4 * np.sin(1.1 * seconds + 1)

    fixes, samples = np.arange(0, 60, 0.2), np.arange(0, 60, 0.1) + BEGAN_NS / 1e9
    rows = [
        f"{1514301955000000000 + round(t * 1e9)} {float(way(t) + 1.96)!r} -0.017 1.02 0 0 0 1" for t in fixes
    ]
    (root / "sequence02_new_gt_IMU_frame.txt").write_text("\n".join(rows) + "\n")
    places = way(samples) if reckoned_speed == "the same" else np.cumsum(0.1 + 0.05 * np.sin(samples**2))
    echoed = "".join(f"x: {x!r}\ny: 0.0\nz: 0.0\n---\n" for x in places.tolist())
    (root / "odometry_sequence02.txt").write_text(echoed)
    return root


def test_odometry_gets_the_times_at_which_its_speed_is_that_of_rtk(tmp_path: Path) -> None:
    recording = opened(drive(tmp_path / "drive"), "rosario_tracks")
    odometry, truth = recording["Odometry"], recording["GroundTruth"]
    assert odometry.clock == "utc"
    assert odometry.t_ns[0] - truth.t_ns[0] == pytest.approx(BEGAN_NS, abs=10_000_000)
    assert set(np.diff(odometry.t_ns).tolist()) == {100_000_000}
    (note,) = odometry.parsed.notes
    assert "10 Hz are assumed (by the documentation), starting -0.27 s after RTK" in note
    again = rewritten(recording, tmp_path / "again", "rosario_tracks")
    assert_same(recording, again)
    assert again.all_notes == recording.all_notes


@pytest.mark.parametrize(
    ("speed", "options", "said"),
    [
        ("the same", {"stamps": "none"}, "documentation)"),
        ("another", {}, "its speed does not fit RTK's (corre"),
    ],
)
def test_times_that_are_not_wanted_or_not_told_are_left_out(
    tmp_path: Path, speed: str, options: dict[str, str], said: str
) -> None:
    recording = opened(drive(tmp_path / "drive", speed), "rosario_tracks", **options)
    assert (recording["Odometry"].clock, recording["Odometry"].t_ns[1]) == ("index", 10**9)
    assert said in recording.notes[0]


def test_odometry_alone_has_no_times_and_other_stamps_are_refused(tmp_path: Path) -> None:
    root = drive(tmp_path / "drive")
    with pytest.raises(UsageError, match="stamps is 'gps'"):
        opened(root, "rosario_tracks", stamps="gps")
    assert opened(root / "odometry_sequence02.txt", "rosario_tracks")["Odometry"].clock == "index"
    (root / "sequence02_new_gt_IMU_frame.txt").write_text("")
    assert opened(root, "rosario_tracks")["Odometry"].clock == "index"


def test_the_ground_truth_is_also_what_the_receiver_measured_and_is_written_once(tmp_path: Path) -> None:
    recording = opened(drive(tmp_path / "drive"), "rosario_tracks")
    rtk, truth = recording["Rtk"], recording["GroundTruth"]
    assert (rtk.role, rtk.tag, rtk.frame, rtk.child) == ("measurement", "position", "world", "gps")
    np.testing.assert_array_equal(rtk.array("x", "y", "z"), truth.array("x", "y", "z"))
    assert recording.truth is truth
    assert formats.write(recording, tmp_path / "again", "rosario_tracks") == ()
    fewer = rtk.take(np.arange(len(rtk)) < 200)
    streams = tuple(fewer if each is rtk else each for each in recording)
    said = formats.write(recording.replace(streams=streams), tmp_path / "fewer", "rosario_tracks")
    assert said == ("Rtk (Pose) cannot be written with the tracks",)


def test_images_are_written_only_if_they_came_as_samples(tmp_path: Path) -> None:
    recording = opened(drive(tmp_path / "drive"), "rosario_tracks")
    table = arrow.table(np.array([1, 2]), {PAYLOAD: arrow.strings(["a.png", "b.png"])})
    black = Image(np.zeros((2, 2), np.uint8), "gray")
    left = Stream("Left", Image, table, tag="left", loader=lambda row: black)
    said = formats.write(recording.replace(streams=(*recording, left)), tmp_path / "a", "rosario_tracks")
    assert "Left: 2 images are not samples and cannot be written with the tracks" in said
    with pytest.raises(UsageError, match="has no track to write") as caught:
        formats.write(Recording("r", ()), tmp_path / "b", "rosario_tracks")
    assert "neither a true position nor an odometry" in caught.value.why


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


@pytest.mark.parametrize("sequence", ["01", "04", "A"])
def test_written_tracks_open_the_same(tracks: Path, tmp_path: Path, sequence: str) -> None:
    recording = opened(tracks, "rosario_tracks", sequence=sequence)
    again = rewritten(recording, tmp_path / "again", "rosario_tracks")
    assert_same(recording, again)
    assert (again.name, again.conditions, again.notes) == (
        recording.name,
        recording.conditions,
        recording.notes,
    )


def test_the_added_constant_stands_in_the_written_file_again(tracks: Path, tmp_path: Path) -> None:
    formats.write(opened(tracks, "rosario_tracks", sequence="01"), tmp_path / "again", "rosario_tracks")
    lines = (tmp_path / "again/sequence01_new_gt_IMU_frame.txt").read_text().splitlines()
    assert lines == [
        "1514301955465000000 1.96 -0.017 1.02 0.0 0.0 0.0 1.0",
        "1514301956061000200 2.96 -0.517 1.02 0.0 0.0 0.0 1.0",
    ]
    assert (tmp_path / "again/odometry_sequence01.txt").read_text() == ECHO


@given(
    hnp.arrays(np.float64, (3, 3), elements=st.floats(-1e4, 1e4)),
    st.lists(st.integers(0, 2**62), min_size=3, max_size=3),
)
def test_any_track_survives_being_written(
    tmp_path_factory: pytest.TempPathFactory, positions: np.ndarray, times: list[int]
) -> None:
    columns = {axis: positions[:, i].copy() for i, axis in enumerate("xyz")}
    truth = stream_of_values("GroundTruth", np.array(times), columns, type=Pose, role="truth")
    index = 10**9 * np.arange(3)
    odometry = stream_of_values("Odometry", index, columns, type=Odometry, clock="index")
    recording = Recording("sequence05", (truth, odometry))
    again = rewritten(recording, tmp_path_factory.mktemp("tracks") / "a", "rosario_tracks")
    assert again["GroundTruth"].t_ns.tolist() == times
    # 1e4 m has a last bit of 1.8e-12 m, and one addition was undone
    np.testing.assert_allclose(again["GroundTruth"].array("x", "y", "z"), positions, rtol=0, atol=2e-12)
    np.testing.assert_array_equal(again["Odometry"].array("x", "y", "z"), positions)


def test_what_tracks_cannot_carry_is_said(tmp_path: Path) -> None:
    t_ns = np.array([5, 6])
    xyz = {axis: np.zeros(2) for axis in "xyz"}
    truth = stream_of_values(
        "Truth", t_ns, {**xyz, "qw": np.ones(2)}, type=Pose, role="truth", child="base_link"
    )
    odometry = stream_of_values("Odometry", t_ns, xyz, type=Odometry)
    imu = stream_of_values("Imu", t_ns, {"acc_x": np.zeros(2)}, type=Imu)
    said = formats.write(Recording("r", (truth, odometry, imu)), tmp_path / "a", "rosario_tracks")
    assert said == (
        "Imu (Imu) cannot be written with the tracks",
        "Truth: only positions are written, not qw",
        "Odometry: an echoed odometry has no times",
        "Truth is of base_link; it will be read as the track of gps",
    )
    with pytest.raises(UsageError, match="no track to write"):
        formats.write(Recording("r", (imu,)), tmp_path / "b", "rosario_tracks")
