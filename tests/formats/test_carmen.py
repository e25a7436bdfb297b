"""CARMEN logs, hand-made after the format's own header lines (`# message_name [message contents] ...`)."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.recordings import (
    assert_same,
    damaged,
    losses,
    opened,
    rewritten,
    said_of,
)

import transect
from transect.errors import ParseError, UsageError
from transect.recording import Recording, arrow, stream_of_values
from transect.types import Imu, LaserScan, Odometry, Pose

HEADER = (
    "# CARMEN Logfile\n"
    "# message_name [message contents] ipc_timestamp ipc_hostname logger_timestamp\n"
    "# ODOM x y theta tv rv accel\n"
    "# FLASER num_readings [range_readings] x y theta odom_x odom_y odom_theta\n"
    "PARAM robot_frontlaser_offset 0.0 nohost 0\n"
)
ODOM = "ODOM -0.000602 0.012727 -1.570796 0.25 0.125 0.000000 70.179699 nohost 0.000000\n"
FLASER = (
    "FLASER 4 1.40 81.91 2.70 0.98 -0.5 0.25 -1.5 -0.75 0.125 -1.25 70.289900 nohost 0.110201\n"
    "FLASER 3 1.41 81.90 2.71 -0.5 0.25 -1.5 -0.75 0.125 -1.25 70.410399 nohost 0.230700\n"
)
RAW = "RAWLASER1 99 -1.5 3.0 1.5 50.0 0.01 0 3 1.5 50.0 49.5 2 7 9 70.5 host.local 0.3\n"
ROBOT = "ROBOTLASER1 0 -1 2 1 80 0.01 0 2 1.5 2.5 0 1 2 3 4 5 6 0.5 0.25 0.4 0.3 0.2 70.6 nohost 0.4\n"
TRUEPOS = "TRUEPOS 1 2 0.5 1.5 2.5 0.75 70.7 nohost 0.5\n"
SAMPLE_LOG = HEADER + ODOM + FLASER
PACKERS = {".bz2": bz2.compress, ".gz": gzip.compress}


def written(folder: Path, text: str | bytes, name: str = "log.clf") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(tmp_path, SAMPLE_LOG)


def test_a_log_is_recognised_by_its_messages(tmp_path: Path, log: Path) -> None:
    assert said_of(log, "carmen").confidence == 0.95
    assert said_of(written(tmp_path, HEADER, "b.clf"), "carmen").confidence == 0.9
    assert not said_of(written(tmp_path, "FLASERS 1 2 3\n", "c.clf"), "carmen")


def test_a_scan_has_its_readings_angles_and_poses(log: Path) -> None:
    stream = opened(log, "carmen")["FLASER"]
    assert (stream.type, stream.clock) == (LaserScan, "device")
    assert stream.t_ns.tolist() == [70289900000, 70410399000]
    scan = stream[0].value
    np.testing.assert_array_equal(scan.ranges, [1.40, np.nan, 2.70, 0.98])
    np.testing.assert_allclose(scan.angles, np.radians([-90, -45, 0, 45]))
    np.testing.assert_allclose(stream[1].value.angles, np.radians([-90, 0, 90]))
    assert stream.array("x", "y", "theta").tolist() == [[-0.5, 0.25, -1.5]] * 2
    assert stream.array("odom_x", "odom_y", "odom_theta").tolist() == [[-0.75, 0.125, -1.25]] * 2
    assert stream["logger_ns"].tolist() == [110201000, 230700000]


def test_odometry_is_planar(log: Path) -> None:
    stream = opened(log, "carmen")["ODOM"]
    assert (stream.type, stream.t_ns.tolist()) == (Odometry, [70179699000])
    assert stream.array("x", "y", "theta", "vx", "wz", "accel").tolist() == [
        [-0.000602, 0.012727, -1.570796, 0.25, 0.125, 0.0]
    ]
    np.testing.assert_allclose(stream[0].value.orientation, [0, 0, -np.sqrt(0.5), np.sqrt(0.5)], atol=1e-6)
    assert not stream.array("z", "vy", "vz", "wx", "wy").any()


def test_newer_messages_carry_their_own_geometry(tmp_path: Path) -> None:
    recording = opened(written(tmp_path, RAW + ROBOT + TRUEPOS), "carmen")
    raw, robot, true = recording["RAWLASER1"], recording["ROBOTLASER1"], recording["TRUEPOS"]
    np.testing.assert_array_equal(raw[0].value.ranges, [1.5, np.nan, 49.5])
    np.testing.assert_array_equal(raw[0].value.angles, [-1.5, 0, 1.5])
    np.testing.assert_array_equal(raw[0].value.remission, [7, 9])
    assert (raw[0].value.range_max, raw["laser_type"][0]) == (50, 99)
    np.testing.assert_array_equal(robot[0].value.ranges, [1.5, 2.5])
    assert robot.array("x", "odom_theta", "tv", "turn_axis").tolist() == [[1, 6, 0.5, 0.2]]
    assert (true.type, true.role) == (Pose, "truth")
    assert true.array("x", "y", "theta", "odom_x").tolist() == [[1, 2, 0.5, 1.5]]


def test_messages_that_are_not_read_are_counted(log: Path) -> None:
    assert opened(log, "carmen").notes == ("lines that are not read: 1 of PARAM",)


@pytest.mark.parametrize("suffix", ["", ".bz2", ".gz"])
def test_what_is_written_opens_the_same(tmp_path: Path, suffix: str) -> None:
    recording = opened(written(tmp_path, SAMPLE_LOG + RAW + ROBOT + TRUEPOS), "carmen")
    assert_same(recording, rewritten(recording, tmp_path / f"again.clf{suffix}", "carmen"))


def test_a_log_is_written_to_a_folder_in_order_of_time(tmp_path: Path, log: Path) -> None:
    recording = opened(log, "carmen")
    assert_same(recording, rewritten(recording, tmp_path / "folder", "carmen"))
    lines = (tmp_path / "folder" / "log.clf").read_text().splitlines()
    assert [line.split()[0] for line in lines if line[0] != "#"] == ["ODOM", "FLASER", "FLASER"]
    assert lines[2] == "ODOM -0.000602 0.012727 -1.570796 0.25 0.125 0.0 70.179699000 transect 0.000000000"


def test_a_laser_that_is_no_sick_keeps_its_angles(tmp_path: Path) -> None:
    ranges = arrow.ragged([np.array([1.0, 120.0, np.nan]), np.array([3.0])])
    angles = {"start_angle": np.array([-0.1, 0.2]), "angle_increment": np.array([0.01, 0.02])}
    stream = stream_of_values("scan", np.array([5, 2 * 10**17]), {"ranges": ranges, **angles}, type=LaserScan)
    again = rewritten(Recording("r", (stream,)), tmp_path / "r.clf", "carmen")["RAWLASER1"]
    np.testing.assert_array_equal(again[0].value.ranges, [1.0, 120.0, np.nan])
    assert again["start_angle"].tolist() == [-0.1, 0.2]
    assert again["angle_increment"].tolist() == [0.01, 0.02]
    assert again.t_ns.tolist() == [5, 2 * 10**17]


@given(st.lists(st.tuples(
    st.integers(0, 2**61),
    st.lists(st.one_of(st.floats(0, 81.8), st.just(np.nan)), max_size=5),
    st.lists(st.floats(allow_nan=False, width=64), min_size=6, max_size=6),
), min_size=1, max_size=4))  # fmt: skip
def test_any_scan_survives_being_written(
    tmp_path_factory: pytest.TempPathFactory, scans: list[tuple[int, list[float], list[float]]]
) -> None:
    lines = [
        f"FLASER {len(ranges)} {' '.join('81.91' if r != r else repr(r) for r in ranges)} "
        f"{' '.join(map(repr, pose))} {t // 10**9}.{t % 10**9:09d} host 0\n"
        for t, ranges, pose in sorted(scans, key=lambda scan: scan[0])
    ]
    folder = tmp_path_factory.mktemp("carmen")
    recording = opened(written(folder, "".join(lines)), "carmen")
    assert len(recording["FLASER"]) == len(scans)
    assert_same(recording, rewritten(recording, folder / "again.clf", "carmen"))


def same_readings(tmp_path: Path, text: str) -> tuple[Recording, list[list[str]]]:
    """Open a log; return it, and the readings in what is written of it."""
    recording = opened(written(tmp_path, text), "carmen")
    transect.formats.write(recording, tmp_path / "again.clf", "carmen")
    assert_same(recording, opened(tmp_path / "again.clf", "carmen"))
    lines = [line.split() for line in (tmp_path / "again.clf").read_text().splitlines()]
    return recording, [line[2 : 2 + int(line[1])] for line in lines if line[0] == "FLASER"]


def test_the_codes_of_a_sick_are_no_ranges_and_are_written_as_they_were_sent(tmp_path: Path) -> None:
    recording, readings = same_readings(tmp_path, SAMPLE_LOG)
    assert [scan.value.range_error.tolist() for scan in recording["FLASER"]] == [
        [0, 8191, 0, 0],
        [0, 8190, 0],
    ]
    assert readings == [["1.4", "81.91", "2.7", "0.98"], ["1.41", "81.9", "2.71"]]


def test_a_limit_above_the_codes_of_a_sick_does_not_make_them_ranges(tmp_path: Path) -> None:
    limits = RAW.replace(" 50.0 ", " 81.92 ", 1).replace("1.5 50.0 49.5", "1.5 81.91 81.92")
    scan = opened(written(tmp_path, limits), "carmen")["RAWLASER1"][0].value
    np.testing.assert_array_equal(scan.ranges, [1.5, np.nan, np.nan])
    assert scan.range_error.tolist() == [0, 8191, 1]
    farther = limits.replace(" 81.92 0.01", " 250.0 0.01")
    scan = opened(written(tmp_path, farther, "far.clf"), "carmen")["RAWLASER1"][0].value
    np.testing.assert_array_equal(scan.ranges, [1.5, 81.91, 81.92])  # no SICK of the series 200


def test_the_largest_range_is_told_by_a_parameter(tmp_path: Path) -> None:
    text = "PARAM robot_front_laser_max 30.0 nohost 0\n" + SAMPLE_LOG.replace("2.70", "30.0").replace(
        "2.71", "31.5"
    )
    recording, readings = same_readings(tmp_path, text)
    first, second = (scan.value for scan in recording["FLASER"])
    np.testing.assert_array_equal(first.ranges, [1.40, np.nan, np.nan, 0.98])
    assert (first.range_error.tolist(), second.range_error.tolist()) == ([0, 8191, 1, 0], [0, 8190, 1])
    assert first.range_max == 30.0
    assert readings[0] == ["1.4", "81.91", "30.0", "0.98"]


def scans_of(ranges: np.ndarray) -> str:
    rows = [" ".join(f"{r:.2f}" for r in row) for row in ranges]
    return "".join(f"FLASER {ranges.shape[1]} {row} 0 0 0 0 0 0 {i} h {i}\n" for i, row in enumerate(rows))


def test_a_reading_that_is_the_largest_and_all_too_frequent_is_no_return(tmp_path: Path) -> None:
    """As in ACES, whose FLASER lines have 50.00 where nothing came back, and no parameter says so."""
    rng = np.random.default_rng(0)
    ranges = np.minimum(rng.uniform(0.5, 52.0, (60, 90)).round(2), 50.0)
    ranges[rng.random(ranges.shape) < 0.2] = 50.0
    recording = opened(written(tmp_path, scans_of(ranges)), "carmen")
    found = recording["FLASER"].column("ranges")
    np.testing.assert_array_equal(np.isnan(found), ranges == 50.0)
    assert "readings of 50 m, the most that the log has" in " ".join(recording["FLASER"].parsed.notes)
    part = recording.slice("+0s", "+1s")  # of one scan nobody could tell
    transect.formats.write(part, tmp_path / "part.clf", "carmen")
    again = opened(tmp_path / "part.clf", "carmen")["FLASER"]
    np.testing.assert_array_equal(again.column("ranges"), found[:1])


def test_a_wall_at_the_end_of_a_room_is_no_missing_return(tmp_path: Path) -> None:
    wall = np.minimum(np.random.default_rng(1).normal(20.0, 0.01, (60, 90)), 20.0)  # half of them 20.00 m
    found = opened(written(tmp_path, scans_of(wall)), "carmen")["FLASER"].column("ranges")
    assert np.isfinite(found).all()


def test_what_carmen_has_no_message_for_is_said(tmp_path: Path, log: Path) -> None:
    imu = stream_of_values("imu", np.zeros(1, np.int64), {"acc_x": np.zeros(1)}, type=Imu)
    with pytest.raises(UsageError, match="no laser scan"):
        transect.formats.write(Recording("r", (imu,)), tmp_path / "a.clf", "carmen")
    recording = opened(log, "carmen")
    both = recording.replace(streams=(imu, *recording.streams))
    said = transect.formats.write(both, tmp_path / "b.clf", "carmen")
    assert said == ("imu: CARMEN has no message for it",)
    with pytest.raises(UsageError, match="exists already"):
        transect.formats.write(recording, tmp_path / "b.clf", "carmen")


def test_a_number_of_readings_that_lies_loses_that_scan_alone(tmp_path: Path) -> None:
    path = written(tmp_path, SAMPLE_LOG.replace("FLASER 4", "FLASER 400"))
    recording = opened(path, "carmen")
    assert recording["FLASER"].t_ns.tolist() == [70410399000]
    assert losses(recording) == [("log.clf", 7, 1, "the number of fields is wrong, or one is text")]
    with pytest.raises(ParseError) as caught:
        transect.open(path, format="carmen", strict=True)
    assert caught.value.where == "log.clf:7"


@pytest.mark.parametrize("count", ["nan", "inf", "-1", "3.5", "x", "1e300"])
def test_an_invalid_number_of_readings_loses_only_that_scan(tmp_path: Path, count: str) -> None:
    recording = opened(written(tmp_path, SAMPLE_LOG.replace("FLASER 4", f"FLASER {count}")), "carmen")
    assert (len(recording["FLASER"]), [loss.count for loss in recording.losses]) == (1, [1])


@pytest.mark.parametrize(("old", "new", "line"), [
    ("-0.000602", "oops", 6),
    (" 0.250000", "", 6),
    ("2.70", "2.7o", 7),
    ("70.289900", "later", 7),
])  # fmt: skip
def test_text_in_a_number_loses_that_line_alone(tmp_path: Path, old: str, new: str, line: int) -> None:
    text = SAMPLE_LOG.replace("0.25 0.125 0.000000", "0.250000 0.125 0.000000")
    recording = opened(written(tmp_path, text.replace(old, new)), "carmen")
    assert sum(len(stream) for stream in recording) == 2
    assert [loss.line for loss in recording.losses] == [line]


def test_a_cut_last_line_is_left_out_and_located(tmp_path: Path) -> None:
    recording = opened(written(tmp_path, SAMPLE_LOG[:-10]), "carmen")
    assert len(recording["FLASER"]) == 1
    assert losses(recording) == [("log.clf", 8, 1, "the last line is cut off")]


def test_windows_line_ends_do_no_harm(tmp_path: Path, log: Path) -> None:
    windows = written(tmp_path, SAMPLE_LOG.replace("\n", "\r\n"), "windows.clf")
    assert_same(opened(windows, "carmen"), opened(log, "carmen"))


def test_a_host_may_be_called_by_a_number(tmp_path: Path, log: Path) -> None:
    numbered = written(tmp_path, SAMPLE_LOG.replace("nohost", "7"), "numbered.clf")
    assert_same(opened(numbered, "carmen"), opened(log, "carmen"))


def test_times_that_repeat_or_go_back_are_kept(tmp_path: Path) -> None:
    timing = opened(written(tmp_path, SAMPLE_LOG + FLASER + ODOM + ODOM), "carmen")["FLASER"].timing
    assert (timing.count, timing.backwards, timing.repeated) == (4, 1, 0)


@pytest.mark.parametrize("text", ["", HEADER])
def test_a_log_without_messages_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ParseError, match="holds no scan and no odometry"):
        opened(written(tmp_path, text), "carmen")


def test_a_word_without_numbers_is_a_lost_message(tmp_path: Path) -> None:
    recording = opened(written(tmp_path, "FLASER\n"), "carmen")
    assert losses(recording) == [("log.clf", 1, 1, "the number of fields is wrong, or one is text")]


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_logs_open_without_being_unpacked(tmp_path: Path, log: Path, suffix: str) -> None:
    path = written(tmp_path, PACKERS[suffix](SAMPLE_LOG.encode()), f"packed.clf{suffix}")
    assert said_of(path, "carmen").confidence == 0.95
    recording = opened(path, "carmen")
    assert recording.name == "packed"
    assert_same(recording, opened(log, "carmen"))


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_damaged_archive_keeps_its_good_part(tmp_path: Path, suffix: str) -> None:
    whole = PACKERS[suffix](SAMPLE_LOG.encode()) + PACKERS[suffix](FLASER.encode() * 200)
    recording = opened(written(tmp_path, whole[:-20], f"cut.clf{suffix}"), "carmen")
    assert len(recording["FLASER"]) >= 2
    assert "the compressed data is damaged" in recording.losses[0].reason


def test_an_archive_that_grows_beyond_belief_is_read_no_further(tmp_path: Path) -> None:
    bomb = bz2.compress(SAMPLE_LOG.encode() + b" " * 50_000_000)
    recording = opened(written(tmp_path, bomb, "bomb.clf.bz2"), "carmen")
    assert len(recording["FLASER"]) == 2
    assert recording.losses[0].reason == "it unpacks to more than 200 times its size"


@given(
    at=st.integers(len(HEADER), len(SAMPLE_LOG) - 1),
    letter=st.sampled_from([b"x", b"\n", b" ", b"\0", b'"', b"\xff", b"9"]),
)
def test_no_message_is_lost_in_silence(
    tmp_path_factory: pytest.TempPathFactory, at: int, letter: bytes
) -> None:
    path = written(tmp_path_factory.mktemp("carmen"), damaged(SAMPLE_LOG.encode(), [(at, 1, letter)]))
    recording = opened(path, "carmen")
    unread = recording.notes != ("lines that are not read: 1 of PARAM",)
    assert sum(len(stream) for stream in recording) == 3 or recording.losses or unread


def test_of_several_scanners_those_beside_the_first_say_which_they_are(tmp_path: Path) -> None:
    scan = "1 2.5 0 0 0 0 0 0 7.0 host 7.0\n"
    day = opened(written(tmp_path, f"FLASER {scan}RLASER {scan}{RAW}"), "carmen")
    assert {stream.name: stream.tag for stream in day if stream.type is LaserScan} == {
        "FLASER": "", "RLASER": "rear", "RAWLASER1": "raw1",
    }  # fmt: skip


# Times of arrival


def odometry_lines(stamps: np.ndarray, logged: np.ndarray) -> str:
    """Return a drive of 5 cm from line to line."""
    return "".join(
        f"ODOM {0.05 * k:.2f} 0 0 0.5 0 0 {t:.6f} nohost {at:.6f}\n"
        for k, (t, at) in enumerate(zip(stamps.tolist(), logged.tolist(), strict=True))
    )


def test_log_times_are_the_loggers_however_noisy_the_stamps_are(tmp_path: Path) -> None:
    true = 10.0 + 0.1 * np.arange(60)
    noisy = true + np.random.default_rng(3).normal(0, 0.4, 60)
    recording = opened(written(tmp_path, odometry_lines(noisy, true)), "carmen")
    stream = recording["ODOM"]
    assert (np.diff(stream.t_ns) < 0).sum() > 10
    np.testing.assert_array_equal(stream.log_ns, np.round(true * 1e9))
    assert recording.notes == ()


def test_a_loggers_own_clock_is_brought_to_that_of_the_stamps(tmp_path: Path) -> None:
    true = 1_100_000_000.0 + 0.25 * np.arange(40)
    recording = opened(written(tmp_path, odometry_lines(true, 0.25 * np.arange(40))), "carmen")
    np.testing.assert_array_equal(recording["ODOM"].log_ns, recording["ODOM"].t_ns)
    assert "1100000000.000000 s is added" in " ".join(recording.notes)


def test_noisy_logger_times_are_estimated_from_the_order_of_the_lines(tmp_path: Path) -> None:
    true = 10.0 + 0.1 * np.arange(400)
    noisy = true + np.random.default_rng(3).normal(0, 0.3, 400)
    recording = opened(written(tmp_path, odometry_lines(noisy, noisy)), "carmen")
    log_ns = recording["ODOM"].log_ns
    assert (np.diff(log_ns) > 0).all()
    error = log_ns / 1e9 - true
    assert np.sqrt(np.mean(error**2)) < 0.5 * 0.3
    assert "go back" in " ".join(recording.notes)


def test_single_wrong_logger_times_do_not_move_the_others(tmp_path: Path) -> None:
    true = 10.0 + 0.1 * np.arange(200)
    wrong = true.copy()
    wrong[50::40] = 0.0  # what the correction of another program's log left
    log_ns = opened(written(tmp_path, odometry_lines(wrong, wrong)), "carmen")["ODOM"].log_ns
    np.testing.assert_allclose(log_ns / 1e9, true, atol=0.11)


def test_times_that_were_never_set_leave_those_of_other_messages_alone(tmp_path: Path) -> None:
    lines = odometry_lines(*[np.round(100.0 + 0.22 * np.arange(240), 2)] * 2).splitlines(keepends=True)
    scans = np.round(100.0 + 0.22 * np.arange(0, 240, 12) - 0.07, 2)  # stamped before the odometry above them
    for k, t in reversed(list(enumerate(scans.tolist()))):
        scan = f"FLASER 3 1 2 3 0 0 0 0 0 0 {t:.2f} nohost {t:.2f}\n"
        lines.insert(12 * k + 1, scan + f"ODOM {0.6 * k + 1} 0 0 0.5 0 0 0 nohost 0\n")  # its own has no time
    recording = opened(written(tmp_path, "".join(lines)), "carmen")
    np.testing.assert_array_equal(recording["FLASER"].log_ns, np.round(scans * 1e9))
    np.testing.assert_array_equal(recording["FLASER"].t_ns, recording["FLASER"].log_ns)
    odometry = recording["ODOM"]
    assert (np.diff(odometry.log_ns) > 0).all()
    is_set = odometry.t_ns > 0
    assert (~is_set).sum() == len(scans)
    np.testing.assert_array_equal(odometry.log_ns[is_set], odometry.t_ns[is_set])
    assert f"{len(scans)} logger times are not set" in " ".join(recording.notes)


def test_a_log_without_any_clock_still_has_an_order(tmp_path: Path) -> None:
    recording = opened(written(tmp_path, odometry_lines(np.zeros(30), np.zeros(30))), "carmen")
    assert (np.diff(recording["ODOM"].log_ns) > 0).all()
    assert "no clock ran" in " ".join(recording.notes)


def test_without_a_clock_a_scan_has_the_time_of_the_odometry_before_it(tmp_path: Path) -> None:
    """Only the order is known: a scan that seems later than its odometry has it extrapolated."""
    moving = odometry_lines(np.zeros(12), np.zeros(12)).splitlines()
    scan = "FLASER 3 1 1 1 0 0 0 0 0 0 0 nohost 0"
    text = "\n".join([*moving[:5], scan, *moving[5:9], scan, *moving[9:]]) + "\n"
    recording = opened(written(tmp_path, text), "carmen")
    odometry, scans = recording["ODOM"].log_ns, recording["FLASER"].log_ns
    assert scans.tolist() == odometry[[4, 8]].tolist()
    assert len(np.unique(np.diff(odometry))) == 1


def test_odometry_lines_that_repeat_a_corrected_pose_without_stamps_are_left_out(tmp_path: Path) -> None:
    """A mapping program writes them after each scan; the same pose with a stamp of its own is odometry."""
    text = """\
ODOM 0.1 0 0 0 0 0 20.0 nohost 20.0
FLASER 3 1 1 1 0.15 0.02 0.1 0.15 0.02 0.1 20.1 nohost 20.1
ODOM 0.15 0.02 0.1 0 0 0 0 nohost 0
ODOM 0.2 0 0 0 0 0 20.2 nohost 20.2
FLASER 3 1 1 1 0.25 0 0 0.25 0 0 20.3 nohost 20.3
ODOM 0.25 0 0 0 0 0 20.3 nohost 20.3
ODOM 0.25 0 0 0 0 0 30.2 nohost 30.2
FLASER 3 1 1 1 0.35 0 0 0.35 0 0 30.3 nohost 30.3
ODOM 0.35 0 0 0 0 0 9.98035 nohost 9.98035
"""
    recording = opened(written(tmp_path, text), "carmen")
    assert recording["ODOM"].column("x").tolist() == [0.1, 0.2, 0.25, 0.25]
    assert len(recording["FLASER"]) == 3
    assert "2 ODOM lines repeat the pose of the scan before them" in " ".join(recording.notes)
    assert recording.losses == ()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=7))
def test_the_isotonic_fit_is_the_best_of_all(values: list[int]) -> None:
    from itertools import combinations_with_replacement

    from transect.formats.carmen.reading import isotonic_l1

    data = np.array(values, float)
    found = isotonic_l1(data)
    assert (np.diff(found) >= 0).all()
    every = combinations_with_replacement(sorted(set(values)), len(values))
    best = min(np.abs(data - np.array(levels)).sum() for levels in every)  # a best one has only such levels
    assert np.abs(data - found).sum() == pytest.approx(best)


def test_lines_are_written_in_the_order_of_arrival(tmp_path: Path) -> None:
    true = 10.0 + 0.1 * np.arange(60)
    noisy = true + np.random.default_rng(3).normal(0, 0.4, 60)
    recording = opened(written(tmp_path, odometry_lines(noisy, true)), "carmen")
    again = rewritten(recording, tmp_path / "again.clf", "carmen")
    np.testing.assert_allclose(again["ODOM"].column("x"), 0.05 * np.arange(60), atol=1e-9)
    np.testing.assert_array_equal(again["ODOM"].log_ns, recording["ODOM"].log_ns)
