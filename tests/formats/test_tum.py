"""TUM trajectories: `time x y z qx qy qz qw` (cvg.cit.tum.de/data/datasets/rgbd-dataset/file_formats)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.formats.recordings import (
    assert_same,
    damaged,
    losses,
    opened,
    rewritten,
    said_of,
)

import transect
from transect.errors import ParseError, TransectError, UsageError
from transect.recording import Recording, stream_of_values
from transect.types import Imu, Pose

LINES = (
    "# ground truth trajectory\n",
    "# timestamp tx ty tz qx qy qz qw\n",
    "1305031098.6659 1.3563 0.6305 1.6380 0.6132 0.5962 -0.3311 -0.3986\n",
    "1305031098.6758 1.3543 0.6306 1.6360 0.6129 0.5966 -0.3316 -0.3980\n",
    "1305031098.6858 1.3554 0.6304 1.6346 0.6129 0.5963 -0.3314 -0.3984\n",
    "1305031098.6958 1.3553 0.6305 1.6345 0.6128 0.5965 -0.3312 -0.3985\n",
)
POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return written(tmp_path, "".join(LINES))


def written(folder: Path, text: str | bytes, name: str = "groundtruth.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_every_number_of_a_sample_is_read(sample: Path) -> None:
    stream = opened(sample, "tum")["Trajectory"]
    assert stream.t_ns.tolist() == [1305031098665900000 + i for i in (0, 9900000, 19900000, 29900000)]
    expected = [[float(v) for v in line.split()[1:]] for line in LINES[2:]]
    np.testing.assert_array_equal(stream.array(*POSE), expected)
    assert (stream.type, stream.clock, stream.role) == (Pose, "utc", "truth")
    assert stream.units["x"] == "m"


def test_a_sample_is_recognised_by_its_lines_alone(sample: Path) -> None:
    assert said_of(sample, "tum").confidence > 0.8


@pytest.mark.parametrize(("line", "near"), [
    ("1 2 3 4 5 6 7\n", False),
    ("1 2 3 4 0 0 0 1 9\n", False),
    ("1305031098 1 2 3 4 5 6 7\n", True),
    ("1.5e18 1 2 3 0 0 0 1\n", True),
    ("time x y z qx qy qz qw\n", False),
])  # fmt: skip
def test_other_lines_are_declined_and_near_ones_say_so(tmp_path: Path, line: str, near: bool) -> None:
    match = said_of(written(tmp_path, line * 3), "tum")
    assert not match
    assert (" but " in match.reason) is near


def test_a_damaged_first_line_does_not_hide_what_the_file_is(tmp_path: Path) -> None:
    path = written(tmp_path, "1305031098.66 1.3 oops 1.6 0 0 0 1\n" + "".join(LINES))
    assert said_of(path, "tum")
    assert losses(opened(path, "tum")) == [(path.name, 1, 1, "text where a number should be")]


def test_stamps_with_an_exponent_are_exact(tmp_path: Path) -> None:
    path = written(tmp_path, "1.403715529112143517e+09 0 0 0 0 0 0 1\n", "V102.txt")
    stream = opened(path, "tum")["Trajectory"]
    assert stream.t_ns.tolist() == [1403715529112143517]
    assert stream.role == "estimate"


@pytest.mark.parametrize(("name", "role"), [
    ("groundtruth.txt", "truth"),
    ("fr1-groundtruth.txt", "truth"),
    ("KITTI_00_gt.txt", "truth"),
    ("ground_truth.tum", "truth"),
    ("orb.txt", "estimate"),
    ("gtsam_result.txt", "estimate"),
])  # fmt: skip
def test_a_file_is_truth_if_it_says_so(tmp_path: Path, name: str, role: str) -> None:
    assert opened(written(tmp_path, "".join(LINES), name), "tum")["Trajectory"].role == role


def test_times_that_count_from_zero_are_the_devices_own(tmp_path: Path) -> None:
    path = written(tmp_path, "0.5 0 0 0 0 0 0 1\n1.5 0 0 0 0 0 0 1\n")
    assert opened(path, "tum")["Trajectory"].clock == "device"


def test_a_cut_last_line_is_left_out_and_located(tmp_path: Path) -> None:
    path = written(tmp_path, "".join(LINES)[:-20])
    recording = opened(path, "tum")
    assert len(recording["Trajectory"]) == 3
    assert losses(recording) == [(path.name, 6, 1, "the last line is cut off")]


def test_text_in_a_number_loses_that_row_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "".join(LINES).replace("0.6306", "0.6E06x"))
    recording = opened(path, "tum")
    assert len(recording["Trajectory"]) == 3
    assert losses(recording) == [(path.name, 4, 1, "text where a number should be")]
    with pytest.raises(ParseError, match="cannot read all of") as caught:
        transect.open(path, format="tum", strict=True)
    assert caught.value.where == f"{path.name}:4"


def test_a_row_of_another_width_is_lost_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "".join(LINES).replace(" 1.6360", ""))
    assert losses(opened(path, "tum")) == [(path.name, 4, 1, "not 8 fields")]


def test_a_time_beyond_64_bits_is_a_lost_row(tmp_path: Path) -> None:
    path = written(tmp_path, "".join(LINES) + "1e999999999 0 0 0 0 0 0 1\n")
    recording = opened(path, "tum")
    assert len(recording["Trajectory"]) == 4
    assert losses(recording) == [(path.name, 7, 1, "the time cannot be read")]


def test_windows_line_ends_and_commas_do_no_harm(tmp_path: Path, sample: Path) -> None:
    text = "".join(LINES).replace(" ", ",").replace("\n", "\r\n").replace("#,", "# ")
    assert_same(opened(written(tmp_path, text, "gt.csv"), "tum"), opened(sample, "tum"))


def test_what_was_not_measured_stays_in_the_row(tmp_path: Path) -> None:
    recording = opened(written(tmp_path, "".join(LINES).replace("0.6306", "nan")), "tum")
    assert np.isnan(recording["Trajectory"]["y"]).tolist() == [False, True, False, False]
    assert losses(recording) == []


def test_times_that_repeat_or_go_back_are_kept_in_their_order(tmp_path: Path) -> None:
    path = written(tmp_path, "".join((*LINES, LINES[2], LINES[2])))
    timing = opened(path, "tum")["Trajectory"].timing
    assert (timing.count, timing.backwards, timing.repeated) == (6, 1, 1)


def test_an_empty_file_has_no_poses(tmp_path: Path) -> None:
    assert len(opened(written(tmp_path, ""), "tum")["Trajectory"]) == 0


def test_a_written_trajectory_opens_the_same(tmp_path: Path, sample: Path) -> None:
    recording = opened(sample, "tum")
    assert_same(recording, rewritten(recording, tmp_path / "again_gt.tum", "tum"))
    assert_same(recording, rewritten(recording, tmp_path / "folder", "tum"))
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["groundtruth.tum"]


@given(
    hnp.arrays(np.float64, (4, 7), elements=st.floats(width=64)),
    st.lists(st.integers(-(2**62), 2**62), min_size=4, max_size=4),
)
def test_any_pose_at_any_time_survives_being_written(
    tmp_path_factory: pytest.TempPathFactory, poses: np.ndarray, times: list[int]
) -> None:
    assume(not np.isnan(poses[:, 3:]).all())
    values = {name: poses[:, i].copy() for i, name in enumerate(POSE)}
    stream = stream_of_values("Trajectory", np.array(times), values, type=Pose)
    again = rewritten(Recording("r", (stream,)), tmp_path_factory.mktemp("tum") / "a.tum", "tum")
    assert again["Trajectory"].t_ns.tolist() == times
    np.testing.assert_array_equal(again["Trajectory"].array(*POSE), poses)


@pytest.mark.parametrize("format", ["tum", "carmen", "euroc", "kitti", "radiate"])
@pytest.mark.parametrize("count", [0, 2])
def test_a_folder_that_is_something_else_is_refused_even_if_the_format_is_named(
    tmp_path: Path, format: str, count: int
) -> None:
    for number in range(count):
        written(tmp_path, "1 2 3\n", f"{number}.txt")
    with pytest.raises(TransectError):
        opened(tmp_path, format)


def test_what_is_no_trajectory_is_refused_or_said_to_be_left_out(tmp_path: Path, sample: Path) -> None:
    poses = opened(sample, "tum")
    imu = stream_of_values("imu", np.zeros(1, np.int64), {"acc_x": np.zeros(1)}, type=Imu)
    with pytest.raises(UsageError, match="no stream of poses"):
        transect.formats.write(Recording("r", (imu,)), tmp_path / "a.tum", "tum")
    both = poses.replace(streams=(imu, *poses.streams))
    assert transect.formats.write(both, tmp_path / "b.tum", "tum") == (
        "a TUM file holds one trajectory, Trajectory: imu left out",
    )
    with pytest.raises(UsageError, match="exists already"):
        transect.formats.write(both, tmp_path / "b.tum", "tum")


@given(
    at=st.integers(len(LINES[0] + LINES[1]), len("".join(LINES)) - 1),
    letter=st.sampled_from([b"x", b"\n", b" ", b"\0", b'"', b"\xff", b"-", b"e"]),
)
def test_no_row_is_lost_in_silence(tmp_path_factory: pytest.TempPathFactory, at: int, letter: bytes) -> None:
    path = written(tmp_path_factory.mktemp("tum"), damaged("".join(LINES).encode(), [(at, 1, letter)]))
    recording = opened(path, "tum")
    assert len(recording["Trajectory"]) == 4 or recording.losses


def test_positions_without_attitudes_get_the_identity_and_that_is_said(tmp_path: Path):
    positions = {name: np.arange(3.0) for name in "xyz"}
    track = stream_of_values("Track", np.arange(3) * 10**9, positions, type=Pose)
    said = transect.formats.write(Recording("r", (track,)), tmp_path / "r.tum", "tum")
    assert said == ("Track has no attitudes: 0 0 0 1 is written",)
    assert transect.open(tmp_path / "r.tum").streams[0]["qw"].tolist() == [1.0] * 3


def test_the_truth_is_written_before_the_longest_poses(tmp_path: Path):
    columns = dict.fromkeys((*"xyz", "qx", "qy", "qz"), np.zeros(2)) | {"qw": np.ones(2)}
    short = stream_of_values("Gt", np.arange(2), columns, type=Pose, role="truth")
    longer = {name: np.concatenate([values, values]) for name, values in columns.items()}
    long = stream_of_values("Estimate", np.arange(4), longer, type=Pose)
    (said,) = transect.formats.write(Recording("r", (long, short)), tmp_path / "r.tum", "tum")
    assert said == "a TUM file holds one trajectory, Gt: Estimate left out"
