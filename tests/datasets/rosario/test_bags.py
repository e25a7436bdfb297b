"""Reading Rosario sequences: the paper's layout and that of the published scripts."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.rosario import sample
from tests.datasets.rosario.sample import assert_same, opened

import transect
from transect import robots
from transect.datasets.rosario import bags as rosario
from transect.datasets.rosario.bags.tables import read_odometry, read_truth
from transect.datasets.rosario.catalogue import CATALOGUE, entry_of
from transect.errors import FrameError, UsageError
from transect.recording import source_of


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    sample.write_scripts_layout(tmp_path / "dataset")
    return tmp_path / "dataset"


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    sample.write_papers_layout(tmp_path / "paper")
    return tmp_path / "paper"


def test_every_file_of_the_scripts_layout_becomes_a_stream(scripts: Path) -> None:
    rec = opened(scripts)
    assert rec.name == "sequence01"
    assert [s.name for s in rec] == [
        "Zed/Left",
        "Zed/Right",
        "Imu",
        "Gps/Fix",
        "Gps/Velocity",
        "Odometry/Raw",
        "GroundTruth",
    ]
    assert rec.robot is not None
    assert rec.robot.name == "weeder"
    assert not rec.losses


def test_imu_values_are_si_with_the_offsets_subtracted(scripts: Path) -> None:
    imu = opened(scripts)["Imu"]
    assert imu.t_ns.tolist() == [1514301955465123000] * 2 + [1514301955479001000]
    first = imu[0].value
    np.testing.assert_allclose(first.angular_velocity, np.radians([1.0, -2.0, 0.125]), rtol=1e-14)
    np.testing.assert_allclose(first.acceleration, 9.80665e-3 * np.array([10.0, -10.0, 1000.0]), rtol=1e-14)
    assert imu.column("undocumented_2") == ["x1", "x1", "x2"]
    assert imu.timing.repeated == 1


def test_without_offsets_imu_values_are_kept_and_said_to_be(scripts: Path) -> None:
    (scripts / "calibration01.yaml").unlink()
    rec = opened(scripts)
    assert rec["Imu"]["gyro_x"][0] == pytest.approx(math.radians(1.5), rel=1e-15)
    assert any("none are subtracted" in note for note in rec.notes)


def test_seven_and_nine_tokens_are_read_alike(paper: Path) -> None:
    imu = opened(paper)["Imu"]
    np.testing.assert_allclose(imu.array("gyro_x", "gyro_y")[0], np.radians([1.0, -2.0]), rtol=1e-14)
    assert "undocumented_1" not in imu.columns


def test_telegrams_of_the_motors_are_turns_per_minute_with_steering_to_the_right(scripts: Path) -> None:
    wheels = opened(scripts)["Odometry/Raw"]
    np.testing.assert_allclose(
        wheels["wheel_velocity"],
        sample.RIM_M_S_PER_RPM * np.array([[30, 32], [0, 0], [-20, -20]]),
        rtol=1e-14,
    )
    np.testing.assert_allclose(wheels["steering"], -np.radians(0.20 * np.array([-5, 95, 0])), rtol=1e-14)
    assert wheels["left_raw"].tolist() == [30, 0, 20]
    assert wheels["direction_raw"].tolist() == [0, 1, 1]
    assert wheels.units["left_raw"] == "rpm"


def test_the_cleaned_log_is_turns_per_minute() -> None:
    (parsed,) = read_odometry(
        b"1514301955.4 30.0 32.0 0.67 1\r\n1514301955.5 2.0 2.0 100.0 -1\r\n", "odometry.log"
    )
    speeds = np.array(parsed.table["wheel_velocity"].to_pylist())
    np.testing.assert_allclose(speeds, sample.RIM_M_S_PER_RPM * np.array([[30, 32], [-2, -2]]), rtol=1e-14)
    assert parsed.table["steering"].to_pylist()[1] == pytest.approx(-math.radians(20))
    assert "turns per minute" in parsed.notes[0]


def test_the_ends_of_lines_do_not_change_a_speed() -> None:
    log = b"1514301955.4 0.5 0.75 0.67 1\n1514301955.5 0.25 0.25 100.0 -1\n"
    unix, windows = (
        next(read_odometry(log, "odometry.log")),
        next(read_odometry(log.replace(b"\n", b"\r\n"), "odometry.log")),
    )
    assert unix.table.equals(windows.table)
    assert unix.table["wheel_velocity"].to_pylist() == [[0.5, 0.75], [-0.25, -0.25]]


def test_the_papers_odometry_is_metres_per_second(paper: Path) -> None:
    wheels = opened(paper)["Odometry"]
    assert wheels["wheel_velocity"].tolist() == [[0.5, 0.75], [-0.25, -0.25]]
    assert wheels["steering"].tolist() == pytest.approx([math.radians(2), -math.radians(20)])
    assert "m/s" in wheels.parsed.notes[0]


def test_speeds_no_robot_of_the_kind_reaches_are_turns_per_minute_for_any_line_ends() -> None:
    (parsed,) = read_odometry(b"1.0 30.0 32.0 0.0 1\n2.0 40.0 40.0 0.0 1\n", "odometry.log")
    assert parsed.table["wheel_velocity"].to_pylist()[0][0] == pytest.approx(30 * sample.RIM_M_S_PER_RPM)


def test_where_both_odometry_logs_are_there_the_cleaned_one_is_derived(scripts: Path) -> None:
    (scripts / "sequence01" / "odometry.log").write_bytes(b"1514301955.4 30.0 32.0 0.67 1\r\n")
    rec = opened(scripts)
    assert [rec[name].role for name in ("Odometry/Raw", "Odometry")] == ["measurement", "derived"]


def test_telegrams_are_known_by_their_form_not_by_the_name_of_the_file(paper: Path) -> None:
    (paper / "odometry.txt").write_text("1514301955.400 MOT 30,32,10,0\n")
    assert opened(paper)["Odometry"]["left_raw"].tolist() == [30.0]


def test_ground_truth_is_a_track_of_the_antenna_without_attitude(paper: Path) -> None:
    rec = opened(paper)
    truth = rec["GroundTruth"]
    assert rec.truth is not None
    assert rec.truth.name == "GroundTruth"
    assert (truth.role, truth.child) == ("truth", "gps")
    value = truth[1].value
    assert value.position.tolist() == [0.125, -0.25, 0.5]
    assert np.isnan(value.orientation).all()


def test_nanoseconds_that_lost_their_zeros_get_them_back(scripts: Path) -> None:
    truth = opened(scripts)["GroundTruth"]
    assert truth.t_ns.tolist() == [1514301955465000000, 1514301956061000000]
    assert "zeros" in truth.parsed.notes[0]


def test_decimal_seconds_of_any_length_keep_their_meaning_where_no_time_has_nine_digits() -> None:
    (parsed,) = read_truth(b"1.5 0 0 0\n2.25 0 0 0\n", "sequence01_gt.txt")
    assert parsed.table["t_ns"].to_pylist() == [1_500_000_000, 2_250_000_000]


def test_positions_and_velocities_take_the_computers_time(scripts: Path) -> None:
    rec = opened(scripts)
    fix = rec["Gps/Fix"]
    assert fix.t_ns.tolist() == [1514301955470000000]
    assert fix[0].value.fix == "rtk fixed"
    assert fix["lat"][0] == pytest.approx(-math.radians(32 + 57.1234567 / 60), rel=1e-15)
    assert rec["Gps/Velocity"]["vy"][0] == pytest.approx(1.5 * 1852 / 3600)


def test_images_are_named_by_their_time_and_loaded_when_asked_for(scripts: Path) -> None:
    rec = opened(scripts)
    right = rec["Zed/Right"]
    assert right.t_ns.tolist() == [1514301955465000000, 1514301955531250000]
    assert right.tag == "right"
    image = right[0].value
    assert image.data.shape == (376, 672, 3)
    assert image.data[0, 0].tolist() == [20, 20, 20]
    assert image.camera.K[0, 0] == 349.5


def test_the_calibration_files_cameras_and_frames_win(scripts: Path) -> None:
    rec = opened(scripts)
    assert rec.cameras["left"].K.tolist() == [[350.5, 0, 340.25], [0, 351.5, 188.75], [0, 0, 1]]
    assert rec.cameras["left"].coefficients.tolist() == [-0.17, 0.027, 5e-05, 0.0004]
    # T_cam_imu takes imu points to the camera; the tree holds the inverse.
    point_of_imu = rec.frames.lookup("left_camera", "imu") @ [1.0, 2.0, 3.0, 1.0]
    np.testing.assert_allclose(point_of_imu[:3], [2.1, -0.8, 3.3], atol=1e-15)
    np.testing.assert_allclose(rec.frames.lookup("base_link", "imu")[:3, 3], [1.96, -0.017, 1.02])
    baseline = rec.frames.lookup("left_camera", "right_camera")[:3, 3]
    np.testing.assert_allclose(baseline, [0.119, 0, 0], atol=1e-15)


def test_the_robots_frames_are_those_of_table_1() -> None:
    robot = robots.load("weeder")
    np.testing.assert_allclose(robot.frames.lookup("base_link", "gps")[:3, 3], [1.8, -0.030, 1.593])
    np.testing.assert_array_equal(robot.frames.lookup("base_link", "gps")[:3, :3], np.eye(3))
    np.testing.assert_allclose(robot.frames.lookup("imu", "right_camera")[:3, 3], [-0.030, 0.042, 0.033])
    # The cameras look along the imu's z axis (Table 1's quaternions are near a quarter turn about z).
    assert robot.frames.lookup("imu", "left_camera")[2, 2] > 0.99
    # 3.2: a baseline of 12 cm
    apart = robot.frames.lookup("left_camera", "right_camera")[:3, 3]
    assert np.linalg.norm(apart) == pytest.approx(0.12, abs=0.002)
    with pytest.raises(FrameError):
        robot.frames.lookup("base_link", "imu")


def test_the_robots_constants_and_cameras_are_those_of_the_document() -> None:
    robot = robots.load("weeder")
    assert (robot.constants["wheelbase"], robot.constants["wheel_diameter"]) == (1.6, 0.57)
    assert math.degrees(robot.constants["steering_limit"]) == pytest.approx(19)
    left = robot.cameras["left"]
    assert (left.width, left.height) == (672, 376)
    np.testing.assert_allclose(
        [left.K[0, 0], left.K[1, 1], left.K[0, 2], left.K[1, 2]], [348.52, 348.45, 344.48, 188.81], atol=0.006
    )


def test_the_catalogue_is_table_3() -> None:
    assert [e.length_m for e in CATALOGUE] == [615.15, 320.16, 169.45, 152.32, 330.43, 709.42]
    assert sum(e.length_m for e in CATALOGUE) == pytest.approx(2300, abs=5)  # 4.3: around 2.3 km
    assert [e.duration_min for e in CATALOGUE] == [9.3, 4.4, 3.3, 2.7, 5.2, 9.8]
    assert [e.difficulty for e in CATALOGUE] == ["easy", "easy", "medium", "medium", "difficult", "difficult"]
    assert CATALOGUE[5].conditions == ("2 × 180° turn", "people (occasional)", "road crossing")


@pytest.mark.parametrize(
    "name", ["sequence04", "04", "4", "rosario_sequence04_cut", "2017-12-29_11:23:00-part2"]
)
def test_a_recording_finds_its_entry_by_name(name: str) -> None:
    entry = entry_of(name)
    assert entry is not None
    assert entry.number == 4


@pytest.mark.parametrize("name", ["sequence00", "sequence14", "field", "1_apple", "sequence"])
def test_other_names_are_no_sequence_of_the_catalogue(name: str) -> None:
    assert entry_of(name) is None


def test_conditions_come_from_the_catalogue(scripts: Path, paper: Path) -> None:
    assert opened(scripts).conditions["difficulty"] == "easy"
    assert opened(paper).conditions == {}


def test_a_sequences_own_folder_finds_what_lies_beside_it(scripts: Path) -> None:
    rec = opened(scripts / "sequence01")
    assert rec.cameras["left"].K[0, 0] == 350.5
    assert len(rec["GroundTruth"]) == 2
    assert {"sequence01_gt.txt", "calibration01.yaml"} <= {s.path for s in rec.provenance.sources}


def test_a_zip_reads_as_the_folder_does(scripts: Path, tmp_path: Path) -> None:
    packed = shutil.make_archive(str(tmp_path / "rosario"), "zip", scripts)
    assert_same(opened(scripts), opened(Path(packed)))


def test_several_sequences_need_a_choice_that_the_error_lists(scripts: Path) -> None:
    shutil.copytree(scripts / "sequence01", scripts / "sequence02")
    with pytest.raises(UsageError) as refused:
        opened(scripts)
    assert "01, 02" in refused.value.why
    assert opened(scripts, sequence="02").conditions["sequence"] == 2
    assert opened(scripts, sequence=1).cameras["left"].K[0, 0] == 350.5
    with pytest.raises(UsageError, match="no sequence '07'"):
        opened(scripts, sequence="07")


def test_recognition_is_sure_of_a_sequence_and_near_a_lone_log(
    scripts: Path, paper: Path, tmp_path: Path
) -> None:
    assert rosario.recognises(source_of(scripts)).confidence >= 0.9
    assert rosario.recognises(source_of(paper)).confidence >= 0.9
    lone = tmp_path / "lone"
    lone.mkdir()
    (lone / "imu.log").write_text(sample.IMU_7)
    assert " but " in rosario.recognises(source_of(lone)).reason
    assert not rosario.recognises(source_of(lone))


def test_the_path_alone_is_enough(scripts: Path) -> None:
    assert transect.open(scripts).format == "rosario"
