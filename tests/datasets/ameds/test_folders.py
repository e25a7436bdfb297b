"""AMEDS, on a folder written by hand as Table 7 describes it, and on what our writer writes."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets.ameds.sample import (
    CLOUD,
    IMAGES,
    T_NS,
    TABLES,
    jpeg,
    sample_files,
    stored_zip,
    video,
    write_sample,
)
from tests.formats.films import number_of

import transect
from transect import Recording
from transect.datasets.ameds import folders as ameds
from transect.datasets.ameds.folders.columns import BY_STEM, CSV_FILES
from transect.datasets.ameds.folders.headers import read_header
from transect.datasets.ameds.folders.reading import stamped_table
from transect.datasets.ameds.folders.sample import sample_recording
from transect.errors import ParseError, TransectError, UnknownFormatError, UsageError
from transect.formats import recognise
from transect.recording import arrow, source_of
from transect.simulation.faults import inject
from transect.types import Image

NS_PER_MS = 1_000_000
CALIBRATED = (("AuxCam", (1280, 720)), ("MainCam", (1920, 1080)))
ODD_SHAPE = "images are 16 x 16, the calibration is for {} x {}, with another aspect ratio; it is not changed"
PAYLOADS = ["AuxCam", "MainCam", "MainAuxCam/Projected", "Lidar"]
STREAMS = [*(file.stream for file in CSV_FILES), *PAYLOADS, "AuxCam/VideoFeed", "MainCam/VideoFeed"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "traverse_3")


@pytest.fixture
def rec(folder: Path) -> Recording:
    return transect.open(folder)


def with_table(path: Path, name: str, text: str) -> Path:
    """The sample with one file replaced."""
    write_sample(path)
    (path / name).write_bytes(text.encode())
    return path


def only(path: Path, name: str, text: str, **options: object) -> transect.Stream:
    """The stream of a folder with one CSV file."""
    stem = name.removesuffix(".csv")
    return transect.open(write_sample(path, {name: text.encode()}), **options)[BY_STEM[stem].stream]


def assert_same_streams(one: transect.Stream, other: transect.Stream) -> None:
    assert one.table.schema.equals(other.table.schema, check_metadata=True), one.name
    for name in one.table.column_names:
        if name != "payload":
            np.testing.assert_array_equal(one.column(name), other.column(name), err_msg=f"{one.name} {name}")


def assert_same_tables(a: Recording, b: Recording) -> None:
    assert [s.name for s in a] == [s.name for s in b]
    for one, other in zip(a, b, strict=True):
        assert_same_streams(one, other)


# Reading the hand-made sample


def test_every_file_of_table_7_becomes_a_stream(rec: Recording):
    assert [stream.name for stream in rec] == STREAMS
    assert rec.format == "ameds"
    assert not rec.losses
    shapes = [f"{camera}: {ODD_SHAPE.format(*size)}" for camera, size in CALIBRATED]
    assert list(rec.all_notes) == shapes


def test_raw_data_are_measurements_and_processed_data_are_derived(rec: Recording):
    derived = {stream.name for stream in rec if stream.role == "derived"}
    assert derived == {
        *("AuxCam/PoseEstimate", "MainCam/PoseEstimate", "MainAuxCam/Projected"),
        *("Platform/2DPoseEstimate", "Platform/2DTwistEstimate", "Platform/WheelPoseEstimate"),
        *("AuxCam/VideoFeed", "MainCam/VideoFeed"),  # "reconstructed"
    }
    assert {s.role for s in rec} == {"derived", "measurement"}


def test_a_frame_of_a_film_has_the_time_of_the_image_that_it_was_made_from(rec: Recording):
    feed = rec["MainCam/VideoFeed"]
    assert (feed.type, feed.clock, feed.tag, feed.frame) == (Image, "utc", "main", "MainCam")
    assert feed.t_ns.tolist() == rec["MainCam"].t_ns.tolist()
    assert feed["film_ns"].tolist() == [0, 33_333_333, 66_666_666]
    assert [number_of(sample.value.data) for sample in feed] == [0, 1, 2]


@pytest.mark.parametrize(
    ("frames", "expected", "said"),
    [
        # 1.25 s from the first image to the last; at 30 Hz, 38 frames last 1.23 s
        (38, np.arange(38) / 30, "those of the film, from the first image on"),
        (5, np.arange(5) * 0.3125, "as it lasts 0.1 s, the images 1.2 s"),
    ],
)
def test_a_film_with_another_number_of_frames_starts_at_the_first_image(
    folder: Path, frames: int, expected: np.ndarray, said: str
):
    (folder / "MainCamVideoFeed.mp4").write_bytes(video(frames))
    rec = transect.open(folder)
    feed = rec["MainCam/VideoFeed"]
    first = rec["MainCam"].t_ns[0]
    np.testing.assert_allclose((feed.t_ns - first) / 1e9, expected, atol=1e-5)
    (note,) = feed.parsed.notes
    assert f"it has {frames} frames of 3 images" in note
    assert said in note


def test_a_film_without_images_has_its_own_times(folder: Path):
    for image in folder.glob("MainCam_*.jpg"):
        image.unlink()
    feed = transect.open(folder)["MainCam/VideoFeed"]
    assert feed.clock == "device"
    assert feed.t_ns.tolist() == [0, 33_333_333, 66_666_666]
    assert "without images beside it" in feed.parsed.notes[0]


def test_an_invalid_film_loses_nothing_else(folder: Path):
    (folder / "MainCamVideoFeed.mp4").write_bytes(b"\x00\x00\x00\x18ftypmp42 not really a film")
    rec = transect.open(folder)
    assert [(loss.file, loss.count) for loss in rec.losses] == [("MainCamVideoFeed.mp4", 0)]
    assert len(rec["MainCam/VideoFeed"]) == 0
    assert len(rec["MainCam"]) == 3


def test_without_pyav_the_rest_of_a_recording_opens(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "av", None)
    rec = transect.open(folder)
    assert [stream.name for stream in rec] == STREAMS[:-2]
    hints = [note for note in rec.all_notes if "pip install 'transect[video]'" in note]
    assert [hint.split()[0] for hint in hints] == ["AuxCamVideoFeed.mp4", "MainCamVideoFeed.mp4"]


def test_joint_angles_are_a_list_of_seven(rec: Recording):
    arm = rec["AuxArm/JointAngles"]
    assert arm.t_ns.tolist() == [T_NS + 123_000, T_NS + 1_000_124_000]
    assert arm["position"][0].tolist() == [0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7]
    assert arm[1].value.position.tolist() == [0.11, -0.21, 0.31, -0.41, 0.51, -0.61, 0.71]
    assert arm.frame == "AuxArm (base)"
    assert rec["MainArm/JointAngles"]["position"].tolist() == [[1, 2, 3, -1, -2, -3, 0]]


def test_camera_poses_have_quaternions_beside_their_angles(rec: Recording):
    pose = rec["AuxCam/PoseEstimate"][0].value
    assert pose.position.tolist() == [1.0, 0.25, -0.5]
    np.testing.assert_allclose(pose.orientation, [0, 0, np.sqrt(0.5), np.sqrt(0.5)], atol=1e-15)
    assert (pose.frame, pose.child) == ("Origin", "AuxCam")
    assert rec["AuxCam/PoseEstimate"]["yaw"].tolist() == [np.pi / 2] * 2


def test_body_and_ned_vectors_are_in_their_frames(rec: Recording):
    acceleration = rec["Gnss/BodyAcceleration"]
    assert acceleration.array("ax", "ay", "az").tolist() == [[0.01, -0.02, 0.03]]
    assert rec["Gnss/BodyAngularVelocity"][0].value.angular_velocity.tolist() == [0.001, -0.002, 0.05]
    for name, velocity in (
        ("Gnss/BodyVelocity", [0.3, 0.01, -0.02]),
        ("Gnss/NedVelocity", [0.2, 0.25, -0.02]),
    ):
        twist = rec[name][0].value
        assert twist.velocity.tolist() == velocity
        assert twist.velocity_std.tolist() == [0.007, 0.008, 0.009]
    assert [rec[f"Gnss/{n}"].frame for n in ("BodyAcceleration", "BodyVelocity", "NedVelocity")] == [
        *("Origin", "Origin", "NED")
    ]


def test_the_imu_is_in_si(rec: Recording):
    imu = rec["Gnss/Imu"]
    np.testing.assert_allclose(imu[0].value.angular_velocity, [np.pi, -np.pi / 2, np.pi / 4], rtol=1e-15)
    np.testing.assert_allclose(imu[0].value.magnetic_field, [2.5e-5, -5e-5, 7.5e-5], rtol=1e-15)
    assert imu[0].value.acceleration.tolist() == [0.1, 0.2, -9.8]
    assert imu.array("temperature", "pressure", "outside_temperature")[0].tolist() == [41.5, 73512.25, 18.5]
    assert (imu.units["gyro_x"], imu.units["mag_x"], imu.units["pressure"]) == ("rad/s", "T", "Pa")


def test_the_fix_is_at_the_device_time_and_logged_at_the_first_column(rec: Recording):
    fix = rec["Gnss/Pose"]
    assert fix.t_ns.tolist() == [T_NS + 10 * NS_PER_MS, T_NS + 20 * NS_PER_MS, T_NS + 30 * NS_PER_MS]
    assert fix.log_ns is not None
    assert fix.log_ns.tolist() == [T_NS + 13 * NS_PER_MS, T_NS + 24 * NS_PER_MS, T_NS + 33 * NS_PER_MS]
    assert fix["device_ns"].tolist() == fix.t_ns.tolist()
    assert fix["fix"] == ["rtk fixed", "rtk float", "none"]
    value = fix[1].value
    assert (value.latitude, value.longitude, value.altitude) == (
        0.6583994549090061,
        0.26191597579318265,
        2629.838,
    )
    assert value.std.tolist() == [0.01, 0.02, 0.03]
    assert value.attitude.tolist() == [0.1, -0.2, 1.5]


def test_wheels_and_steering_are_lists_of_four(rec: Recording):
    wheels = rec["Platform/MotorEncoders"][0].value
    assert wheels.velocity.tolist() == [0.31, 0.32, 0.33, 0.34]
    assert wheels.commanded.tolist() == [0.3] * 4
    assert wheels.drive_ticks.tolist() == [30000, 15000, -7500, 0]
    assert wheels.steer_ticks.tolist() == [-900, 900, 901, -901]
    estimate = rec["Platform/WheelPoseEstimate"]
    assert estimate["roll"].tolist() == [[1.1, 2.1, 3.1, 4.1]]
    assert estimate["pitch"].tolist() == [[1.2, 2.2, 3.2, 4.2]]
    assert estimate["yaw"].tolist() == [[1.3, 2.3, 3.3, 4.3]]
    assert estimate["drive_angle"].tolist() == [[0.1, 0.2, 0.3, 0.4]]
    assert estimate[0].value.steering.tolist() == [0.01, 0.02, 0.03, 0.04]


def test_what_a_planar_sensor_does_not_measure_is_nan(rec: Recording):
    odometry = rec["Platform/2DVelocity"][0].value
    np.testing.assert_array_equal(odometry.velocity, [0.3, -0.01, np.nan])
    np.testing.assert_array_equal(odometry.angular_velocity, [np.nan, np.nan, 0.05])
    assert rec["Platform/2DVelocity"]["std_wz"].tolist() == [0.002]
    pose = rec["Platform/2DPoseEstimate"]
    np.testing.assert_array_equal(pose[0].value.position, [12.5, -3.25, np.nan])
    np.testing.assert_allclose(pose[0].value.orientation, [0, 0, 1, 0], atol=1e-15)
    assert pose.array("std_x", "std_y", "std_yaw").tolist() == [[0.1, 0.2, 0.3]]
    assert pose.frame == "NWU"
    np.testing.assert_array_equal(rec["Platform/2DTwistEstimate"][0].value.velocity, [0.29, -0.02, np.nan])


def test_images_and_clouds_are_loaded_when_asked_for(rec: Recording):
    assert rec["MainCam"].t_ns.tolist() == [T_NS + 1000, T_NS + 500 * NS_PER_MS, T_NS + 1250 * NS_PER_MS]
    image = rec["MainCam"][1].payload
    assert (image.mode, image.frame, image.width) == ("rgb", "MainCam", 16)
    assert abs(int(image.data[8, 8, 0]) - IMAGES["MainCam_1657013071.5.jpg"]) <= 1
    assert image.camera.K[0, 0] == 885.015
    assert rec["MainAuxCam/Projected"][0].payload.camera is None
    cloud = rec["Lidar"].at("+0s").payload
    assert cloud.points.tolist() == [[1.5, 2.5, -1.25], [-4.5, 0.5, -1.5], [0.25, 8, 0.75]]
    assert cloud.fields["intensity"].tolist() == [10, 255, 0]
    assert (cloud.frame, cloud.t_ns) == ("Lidar", T_NS + 200 * NS_PER_MS)


def test_opening_reads_no_table_and_no_payload(folder: Path):
    rec = transect.open(folder)
    assert rec.frames.frames
    assert rec.provenance.sources == ()
    assert len(rec["Gnss/Imu"]) == 2
    assert [file.path for file in rec.provenance.sources] == ["GnssImu.csv"]


# Frames, robot, catalogue


def test_origin_to_main_camera_is_what_the_estimate_says(rec: Recording):
    T = rec.frames.lookup("Origin", "MainCam", T_NS + 500 * NS_PER_MS)
    np.testing.assert_allclose(T[:3, 3], [0.5, 0.0, -1.25], atol=1e-12)
    np.testing.assert_allclose(T[:3, :3], [[1, 0, 0], [0, 0, -1], [0, 1, 0]], atol=1e-12)
    aux = rec.frames.lookup("Origin", "AuxCam", T_NS + 100 * NS_PER_MS)
    np.testing.assert_allclose(aux[:3, 3], [1.0, 0.25, -0.5], atol=1e-12)


def test_the_world_is_ned_at_the_lander(rec: Recording):
    first, second = rec["Gnss/Pose"].t_ns[:2]
    np.testing.assert_allclose(rec.frames.lookup("NED", "Origin", int(first)), np.eye(4), atol=1e-6)
    np.testing.assert_allclose(rec.frames.lookup("NED", "Origin", int(second))[:3, 3], [0, 0, 10], atol=1e-6)
    # Table 2: the lidar sits 1.389 m above the Spatial Dual and 0.549 m behind it; z is down.
    lidar = rec.frames.lookup("NED", "Lidar", int(first))
    np.testing.assert_allclose(lidar[:3, 3], [-0.549, 0, -1.389], atol=1e-6)


def test_roll_pitch_yaw_of_the_fix_turn_yaw_first(rec: Recording):
    R = rec.frames.lookup("NED", "Origin", T_NS + 20 * NS_PER_MS)[:3, :3]
    assert np.arctan2(R[1, 0], R[0, 0]) == pytest.approx(1.5)
    assert -np.arcsin(R[2, 0]) == pytest.approx(-0.2)
    assert np.arctan2(R[2, 1], R[2, 2]) == pytest.approx(0.1)


def test_the_robot_is_interact_with_the_cameras_of_table_4(rec: Recording):
    assert rec.robot is not None
    assert rec.robot.name == "interact"
    aux = rec.cameras["AuxCam"]
    assert (aux.width, aux.height) == (1280, 720)
    assert aux.K.tolist() == [[908.087, 0, 656.119], [0, 910.723, 356.394], [0, 0, 1]]
    assert aux.coefficients.tolist() == [0.1431, -0.4744, 0.00068, 0.00123, 0.4215]
    main = rec.cameras["MainCam"]
    assert (main.width, main.height) == (1920, 1080)
    assert main.K[:2].tolist() == [[885.015, 0, 955.893], [0, 887.440, 533.638]]
    assert main.coefficients.tolist() == [-0.2418, 0.0974, 0.00048, 0.00019, -0.0226]


def test_the_constants_are_those_of_section_4_with_the_errata(rec: Recording):
    constants = rec.robot.constants
    assert np.degrees(constants["world_origin"]["latitude"]) == pytest.approx(37.72351, abs=1e-12)
    assert np.degrees(constants["world_origin"]["longitude"]) == pytest.approx(15.00668, abs=1e-12)
    platform, steer, arm = constants["platform"], constants["steer"], constants["arm"]
    assert [platform[k] for k in ("half_length", "half_width", "wheel_height", "swivel_length")] == [
        *(0.402, 0.396, 0.135, 0.143)
    ]
    # Errata: dE = 0 gives 90 - 101.25 / 1.125 = 0 degrees, wheels straight.
    rest = steer["angle_at_rest"] - (steer["rack_at_rest"] + steer["rack_offset"]) / steer["rack_per_radian"]
    assert rest == pytest.approx(0.0, abs=1e-12)
    assert sum(arm["d"]) == pytest.approx(0.31 + 0.40 + 0.39)
    assert np.degrees(arm["alpha"]).round(9).tolist() == [0, 90, -90, -90, 90, 90, -90]


def test_the_catalogue_adds_up_to_the_totals_of_table_6():
    from transect.datasets.ameds.catalogue import CATALOGUE

    traverses = [entry for entry in CATALOGUE if entry.name.startswith("traverse")]
    assert len(traverses) == 9
    assert sum(entry.length_m or 0 for entry in traverses) == pytest.approx(2054.8)
    assert sum(entry.duration_s for entry in traverses) == 99 * 60 + 9
    assert [entry.name for entry in traverses if entry.rtk] == [f"traverse_{i}" for i in (2, 3, 4, 5)]
    assert {e.name: e.duration_s for e in CATALOGUE if "picking" in e.name} == {
        "rock_picking_0": 141,
        "rock_picking_1": 105,
    }


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        *(("traverse_3", "traverse_3"), ("Traverse-03", "traverse_3"), ("AMEDS_traverse3_raw", "traverse_3")),
        *(("rock_picking_1", "rock_picking_1"), ("RockPicking0", "rock_picking_0")),
        *(("traverse_9", None), ("traverse_12", None), ("etna", None)),
    ],
)
def test_a_recording_finds_its_own_entry_by_its_name(tmp_path: Path, name: str, entry: str | None):
    rec = transect.open(write_sample(tmp_path / name))
    assert rec.conditions.get("experiment") == entry
    if entry == "traverse_3":
        assert rec.conditions["rtk_coverage"] is True
        assert rec.conditions["printed_length_m"] == 239.1


# Where the files are


def test_a_zip_is_read_like_its_folder_with_or_without_a_top_folder(tmp_path: Path, rec: Recording):
    files = sample_files()
    flat = transect.open(stored_zip(tmp_path / "a.zip", files))
    deep = transect.open(stored_zip(tmp_path / "b.zip", {f"traverse_4/{n}": d for n, d in files.items()}))
    assert_same_tables(flat, rec)
    assert_same_tables(deep, rec)
    assert deep.name == "traverse_4"
    assert flat["Lidar"][0].payload.points.shape == deep["Lidar"][0].payload.points.shape == (3, 3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.zip", "b.zip", "traverse_3"]


def test_files_may_lie_in_a_folder_for_each_device(tmp_path: Path, rec: Recording):
    def device(name: str) -> str:
        return next(d for d in ("Gnss", "Platform", "Lidar", "Aux", "Main") if name.startswith(d))

    sorted_out = write_sample(tmp_path / "t", {f"{device(n)}/{n}": d for n, d in sample_files().items()})
    assert_same_tables(transect.open(sorted_out), rec)


def test_one_csv_file_alone_opens(folder: Path):
    rec = transect.open(folder / "GnssPose.csv")
    assert [stream.name for stream in rec] == ["Gnss/Pose"]
    assert rec.frames.lookup("NED", "Origin", T_NS + 10 * NS_PER_MS)[2, 3] == pytest.approx(0, abs=1e-6)


def test_a_folder_of_several_recordings_is_refused_by_name(tmp_path: Path):
    write_sample(tmp_path / "traverse_0")
    write_sample(tmp_path / "traverse_1")
    with pytest.raises(UsageError, match="more than one AMEDS recording") as error:
        transect.open(tmp_path)
    assert "traverse_0" in error.value.hint


def test_two_recordings_are_joined_end_to_end(tmp_path: Path):
    first = sample_recording(2.0, name="traverse_0")
    second = sample_recording(2.0, start_ns=first["Gnss/Pose"].t_ns[0] + 10 * 10**9, name="traverse_1")
    for rec in (first, second):
        ameds.write(rec, tmp_path / rec.name)
    both = transect.open(tmp_path / "traverse_1", tmp_path / "traverse_0")
    assert both.name == "traverse_1+traverse_0"
    assert len(both["Gnss/Imu"]) == 400
    assert both["Gnss/Imu"].seams == (200,)
    assert both["Gnss/Imu"].timing.rate == pytest.approx(100, rel=0.01)
    assert both["MainCam"][-1].payload.t_ns == second["MainCam"].t_ns[-1]
    late = int(second["Gnss/Pose"].t_ns[5])
    np.testing.assert_array_equal(
        both.frames.lookup("NED", "Origin", late), second.frames.lookup("NED", "Origin", late)
    )


def test_an_unknown_csv_with_a_unix_time_becomes_records(folder: Path):
    (folder / "Battery.csv").write_text(
        "time,Voltage [V],state\n1657013071.5,48.5,ok\n1657013072.5,48.25,low\n"
    )
    (folder / "readings.csv").write_text("a,b\n1,2\n")
    (folder / "README.txt").write_text("about")
    rec = transect.open(folder)
    battery = rec["Battery"]
    assert battery.t_ns.tolist() == [T_NS + 500 * NS_PER_MS, T_NS + 1500 * NS_PER_MS]
    assert battery["Voltage"].tolist() == [48.5, 48.25]
    assert battery["state"] == ["ok", "low"]
    assert battery.units["Voltage"] == "V"
    assert any("Battery.csv is not described in Table 7" in note for note in rec.all_notes)
    assert any("not read" in note and "README.txt, readings.csv" in note for note in rec.notes)


def test_columns_of_ones_own_never_hide_ours(tmp_path: Path):
    text = "time,t_ns,payload,time,time\n1657013071.5,1,2,3,4\n"
    folder = write_sample(
        tmp_path / "t", {"Other.csv": text.encode(), "GnssPose.csv": TABLES["GnssPose.csv"].encode()}
    )
    other = transect.open(folder)["Other"]
    assert other.t_ns.tolist() == [T_NS + 500 * NS_PER_MS]
    assert other.array("t_ns_2", "payload_2", "time_2", "time_3").tolist() == [[1, 2, 3, 4]]
    text = (
        TABLES["AuxCamPoseEstimate.csv"].replace("timestamp", "stamp").replace("yaw-z\n", "yaw-z,qx,time\n")
    )
    text = text.replace("6\n", "6,9,7\n")
    columns = {"AuxCamPoseEstimate": {"time": "stamp"}}
    pose = only(tmp_path / "p", "AuxCamPoseEstimate.csv", text, columns=columns)
    assert pose.array("qx", "qx_2", "time_2").tolist() == [[0, 9, 7]] * 2
    assert pose.t_ns.tolist() == [T_NS + 100 * NS_PER_MS, T_NS + 1100 * NS_PER_MS]


# Headers


@pytest.mark.parametrize("file", CSV_FILES, ids=lambda file: file.stem)
def test_the_writers_own_headers_mean_their_columns(file):
    for column in file.columns:
        said = read_header(column.header, file.ignored).meaning - file.implied
        assert any(said == meaning - file.implied for meaning in column.meanings), column.header


@pytest.mark.parametrize(
    "header",
    [
        "time,x,y,z,roll,pitch,yaw",
        "Timestamp [s],pos_x,pos_y,pos_z,roll_x,pitch_y,yaw_z",
        "unix time,Position X [m],Position Y [m],Position Z [m],Roll-X [rad],Pitch-Y [rad],Yaw-Z [rad]",
        "t,positionX,positionY,positionZ,attitudeX,attitudeY,attitudeZ",
        "Time,px,py,pz,rot_x_rad,rot_y_rad,rot_z_rad",
        '"time","x (m)","y (m)","z (m)","roll (rad)","pitch (rad)","yaw (rad)"',
        "# time,x,y,z,roll,pitch,yaw",
    ],
)
def test_columns_are_found_by_meaning_however_they_are_spelled(tmp_path: Path, header: str):
    stream = only(tmp_path, "MainCamPoseEstimate.csv", f"{header}\n1657013071.5,1,2,3,0.1,0.2,0.3\n")
    assert stream.array("x", "y", "z", "roll", "pitch", "yaw").tolist() == [[1, 2, 3, 0.1, 0.2, 0.3]]
    assert not stream.losses
    assert not stream.parsed.notes


def test_columns_in_another_order_are_found_by_meaning(tmp_path: Path):
    text = "time,yaw,pitch,roll,z,y,x\n1657013071.5,0.3,0.2,0.1,3,2,1\n"
    stream = only(tmp_path, "MainCamPoseEstimate.csv", text)
    assert stream.array("x", "y", "z", "roll", "pitch", "yaw").tolist() == [[1, 2, 3, 0.1, 0.2, 0.3]]


def test_the_time_may_stand_elsewhere_if_the_header_says_so(tmp_path: Path):
    text = "sample,x,y,z,timestamp\n7,1,2,3,1657013071.5\n"
    stream = only(tmp_path, "GnssBodyAcceleration.csv", text, format="ameds")
    assert stream.t_ns.tolist() == [T_NS + 500 * NS_PER_MS]
    assert stream.array("ax", "ay", "az").tolist() == [[1, 2, 3]]


def test_a_header_that_states_another_unit_is_honoured(tmp_path: Path):
    text = (
        "time [ms],x [mm],y [cm],z [m],roll [deg],pitch [°],yaw [rad]\n1657013071500,1500,25,3,180,90,0.5\n"
    )
    stream = only(tmp_path, "MainCamPoseEstimate.csv", text)
    np.testing.assert_allclose(stream.array("x", "y", "z"), [[1.5, 0.25, 3]], rtol=1e-15)
    np.testing.assert_allclose(stream.array("roll", "pitch", "yaw"), [[np.pi, np.pi / 2, 0.5]], rtol=1e-15)
    assert stream.t_ns.tolist() == [T_NS + 500 * NS_PER_MS]


def test_gyroscope_and_magnetometer_may_be_in_si_already(tmp_path: Path):
    text = TABLES["GnssImu.csv"].replace("gyro_x,gyro_y,gyro_z", "gyro_x_rad/s,gyro_y [rad/s],gyro_z [rad/s]")
    text = text.replace("mag_x,", "mag_x [uT],")
    imu = only(tmp_path, "GnssImu.csv", text)
    assert imu.array("gyro_x", "gyro_y", "gyro_z")[0].tolist() == [180, -90, 45]
    assert imu["mag_x"][0] == pytest.approx(0.25e-6)
    assert imu["mag_y"][0] == pytest.approx(-0.5e-4)


def test_a_unit_that_cannot_be_meant_is_noted(tmp_path: Path):
    stream = only(tmp_path, "GnssBodyAcceleration.csv", "time,x [m],y,z\n1657013071.5,1,2,3\n")
    assert stream["ax"].tolist() == [1]
    assert any("ax cannot be in 'm'" in note for note in stream.parsed.notes)


def test_joints_may_be_counted_from_zero(tmp_path: Path):
    header = "time," + ",".join(f"q{i}" for i in range(7))
    stream = only(tmp_path, "MainArmJointAngles.csv", f"{header}\n1657013071.5,1,2,3,4,5,6,7\n")
    assert stream["position"].tolist() == [[1, 2, 3, 4, 5, 6, 7]]
    assert not stream.parsed.notes


def test_a_header_that_says_nothing_falls_back_to_the_documented_order(tmp_path: Path):
    lines = TABLES["PlatformMotorEncoders.csv"].splitlines()
    header = "c0," + ",".join(f"field{chr(97 + i)}" for i in range(16))
    stream = only(tmp_path, "PlatformMotorEncoders.csv", f"{header}\n{lines[1]}\n")
    assert stream["steer_ticks"].tolist() == [[-900, 900, 901, -901]]
    assert stream.parsed.notes == ("PlatformMotorEncoders.csv: all columns assigned by the documented order",)


def test_a_header_that_says_half_is_completed_by_the_order(tmp_path: Path):
    stream = only(tmp_path, "Platform2DVelocity.csv", "time,x,y,z,std\n1657013071.5,0.3,0.1,0.05,0.002\n")
    assert stream["wz"].tolist() == [0.05]
    assert stream["std_wz"].tolist() == [0.002]
    assert stream.parsed.notes == ("Platform2DVelocity.csv: wz, std_wz assigned by the documented order",)


def test_a_header_is_not_completed_against_what_it_says(tmp_path: Path):
    stream = only(
        tmp_path, "Platform2DVelocity.csv", "time,vx,vy,vz,std_vz\n1657013071.5,0.3,0.1,0.05,0.002\n"
    )
    assert stream["vx"].tolist() == [0.3]
    assert stream["vz"].tolist() == [0.05]
    assert "wz" not in stream.columns
    (loss,) = stream.losses
    assert "no column means wz, std_wz" in loss.reason


@pytest.mark.parametrize("name", TABLES)
def test_every_file_reads_without_its_header_by_the_documented_order(
    tmp_path: Path, rec: Recording, name: str
):
    rows = TABLES[name].partition("\n")[2]
    stream = only(tmp_path / "bare", name, rows)
    whole = rec[BY_STEM[name.removesuffix(".csv")].stream]
    assert_same_streams(stream, whole)
    assert stream.parsed.notes == (f"{name}: all columns assigned by the documented order",)


def test_too_few_columns_without_a_header_are_a_loss_that_names_file_and_columns(tmp_path: Path):
    stream = only(tmp_path, "GnssPose.csv", "1657013071.5,0.65,0.26\n1657013072.5,0.65,0.26\n")
    (loss,) = stream.losses
    assert loss.file == "GnssPose.csv"
    assert "3 columns without a header" in loss.reason
    assert "device_ns, lat, lon, alt and 7 more" in loss.reason
    assert stream["column_2"].tolist() == [0.65, 0.65]
    with pytest.raises(ParseError, match=r"GnssPose\.csv"):
        transect.open(tmp_path, strict=True)


def test_a_column_that_no_header_means_is_a_loss_and_the_others_are_kept(tmp_path: Path):
    text = TABLES["GnssPose.csv"].replace("lat,lon,", "Breite,Länge,").replace("fix_type", "fix_type,foo")
    text = text.replace(",7\n", ",7,1\n").replace(",6\n", ",6,1\n").replace(",0\n", ",0,1\n")
    stream = only(tmp_path, "GnssPose.csv", text)
    (loss,) = stream.losses
    assert "no column means lat, lon; the header is: timestamp,device_timestamp,Breite" in loss.reason
    assert stream["alt"].tolist() == [2639.838, 2629.838, 2619.838]
    assert stream["Breite"].tolist() == [0.6583994549090061] * 3


SPELLINGS = "GnssPose:\n  lat: breite\n  lon: [Länge, Laenge]\n  roll: {header: Rollwinkel, unit: deg}\n"


def foreign_fix() -> str:
    text = TABLES["GnssPose.csv"].replace("lat,lon,", "Breite,Laenge,").replace("roll-x", "Rollwinkel")
    return text.replace("timestamp,device_timestamp", "x1,device_timestamp")


def test_a_user_adds_spellings_beside_the_recording(tmp_path: Path):
    write_sample(
        tmp_path / "t", {"GnssPose.csv": foreign_fix().encode(), "ameds_columns.yaml": SPELLINGS.encode()}
    )
    rec = transect.open(tmp_path / "t")
    fix = rec["Gnss/Pose"]
    assert fix["lat"].tolist() == [0.6583994549090061] * 3
    assert fix["lon"].tolist() == [0.26191597579318265] * 3
    np.testing.assert_allclose(fix["roll"], np.radians([0, 0.1, 0]))
    assert not rec.losses
    assert not rec.all_notes


def test_a_user_adds_spellings_in_his_own_folder_or_in_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "transect").mkdir()
    (tmp_path / "transect" / "ameds_columns.yaml").write_text(SPELLINGS, "utf-8")
    folder = write_sample(tmp_path / "t", {"GnssPose.csv": foreign_fix().encode()})
    columns = {"GnssPose": {"lat": "Breite", "lon": "Laenge", "roll": "Rollwinkel"}}
    assert transect.open(folder, columns=columns)["Gnss/Pose"]["roll"].tolist() == [0, 0.1, 0]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    np.testing.assert_allclose(transect.open(folder)["Gnss/Pose"]["roll"], np.radians([0, 0.1, 0]))
    # What is given in the call wins, its unit too.
    assert transect.open(folder, columns=columns)["Gnss/Pose"]["roll"].tolist() == [0, 0.1, 0]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("GnssPoze: {lat: a}", "no file 'GnssPoze'", 1),
        ("GnssPose:\n  latitude: a", "no column 'latitude'", 2),
        ("GnssPose: {lat: {header: a, unit: m}}", "'m' is no unit", 1),
        ("- a", "mapping of files", 1),
        ("GnssPose: 3", "mapping of its columns", 1),
        ("a: [\n", "not YAML", 2),
    ],
)
def test_a_wrong_table_of_spellings_says_what_is_wrong(folder: Path, text: str, message: str, line: int):
    (folder / "ameds_columns.yaml").write_text(text)
    with pytest.raises(ParseError, match=message) as error:
        transect.open(folder)
    assert error.value.where == f"ameds_columns.yaml:{line}"


def test_doubled_lines_of_table_7_are_read_if_they_are_there(tmp_path: Path):
    header = (
        "time," + "acc_x,acc_y,acc_z," * 2 + "gyro_x,gyro_y,gyro_z,mag_x,mag_y,mag_z,temp,press,outside_temp"
    )
    row = "1657013071.5,1,2,3,4,5,6,0,0,0,0,0,0,20,70000,10"
    for text in (f"{header}\n{row}\n", f"{row}\n"):
        imu = only(tmp_path / str(len(text)), "GnssImu.csv", text)
        assert imu.array("acc_x", "acc2_x", "acc2_z", "pressure").tolist() == [[1, 4, 6, 70000]]
    twist = only(tmp_path / "w", "Platform2DTwistEstimate.csv", "1657013071.5,0.3,0.1,0.05,0.01,0.02,0.002\n")
    assert twist.array("std_vx", "std_vy", "std_wz").tolist() == [[0.01, 0.02, 0.002]]
    twist = only(tmp_path / "d", "Platform2DTwistEstimate.csv", "1657013071.5,0.3,0.1,0.05,0.01,0.02\n")
    assert twist.array("std_wz", "std_wz_2").tolist() == [[0.01, 0.02]]


@given(st.text(max_size=30))
def test_any_header_is_read_without_an_error(text: str):
    header = read_header(text)
    assert header.text == text


# Times


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_the_size_of_a_unix_time_tells_its_unit(tmp_path: Path, unit: int):
    text = f"time,x,y,z\n{(T_NS + 123 * NS_PER_MS) // unit}{'' if unit < 10**9 else '.123'},1,2,3\n"
    assert only(tmp_path, "GnssBodyAcceleration.csv", text).t_ns.tolist() == [T_NS + 123 * NS_PER_MS]


def test_nine_decimals_are_kept_to_the_nanosecond(tmp_path: Path):
    text = "time,x,y,z\n1657013071.123456789,1,2,3\n1657013071.1234567891,1,2,3\n"
    assert only(tmp_path, "GnssBodyAcceleration.csv", text).t_ns.tolist() == [T_NS + 123_456_789] * 2


def test_a_device_stamp_far_from_the_log_is_rejected(tmp_path: Path):
    rows = TABLES["GnssPose.csv"].splitlines()
    rows[1] = rows[1].replace(",1657013071.010,", ",0,")
    rows[2] = rows[2].replace(",1657013071.020,", ",,")
    fix = only(tmp_path, "GnssPose.csv", "\n".join(rows) + "\n")
    assert fix.t_ns.tolist() == [T_NS + 13 * NS_PER_MS, T_NS + 24 * NS_PER_MS, T_NS + 30 * NS_PER_MS]
    assert fix["device_ns"].tolist() == [0, 0, T_NS + 30 * NS_PER_MS]
    assert fix["alt"].tolist() == [2639.838, 2629.838, 2619.838]
    assert not fix.losses
    assert any("2 device stamps" in note for note in fix.parsed.notes)


@given(st.lists(st.integers(0, 10**18), min_size=1, max_size=20, unique=True), st.integers(0, 9))
def test_times_in_file_names_are_exact(times: list[int], digits: int):
    cut = 10 ** (9 - digits)
    times = sorted({10**18 + t - t % cut for t in times})
    stamps = [f"{t // 10**9}.{t % 10**9:09d}"[: 11 + digits].removesuffix(".") for t in times]
    parsed = stamped_table([f"a/MainCam_{s}.jpg" for s in reversed(stamps)], "a/MainCam_")
    assert arrow.numbers(parsed.table, "t_ns").tolist() == times
    assert arrow.texts(parsed.table, "payload") == [f"a/MainCam_{s}.jpg" for s in stamps]
    assert not parsed.losses


def test_names_of_different_lengths_and_bad_ones_are_distinguished():
    names = ["MainCam_1657013071.25.jpg", "MainCam_1657013071.5.jpg", "MainCam_1657013072.jpg"]
    names += [
        "MainCam_1657013071_75.jpg",
        "MainCam_1657013070500123.jpg",
        "MainCam_1657013071.2x.jpg",
        "MainCam_.jpg",
    ]
    parsed = stamped_table(names, "MainCam_")
    found = [t - T_NS for t in arrow.numbers(parsed.table, "t_ns").tolist()]
    assert found == [-499_877_000, 250 * NS_PER_MS, 500 * NS_PER_MS, 750 * NS_PER_MS, 1000 * NS_PER_MS]
    assert [(loss.count, loss.reason) for loss in parsed.losses] == [(2, "no unix time in the file's name")]


# Writing


def test_writing_and_opening_again_changes_nothing(rec: Recording, tmp_path: Path):
    said = ameds.write(rec, tmp_path / "out")
    assert said == ()
    again = transect.open(tmp_path / "out")
    assert_same_tables(rec, again)
    assert not again.losses
    for name in (*IMAGES, CLOUD, "MainCamVideoFeed.mp4"):
        assert (tmp_path / "out" / name).read_bytes() == sample_files()[name]


def test_the_writer_puts_columns_in_the_order_and_units_of_table_7(rec: Recording, tmp_path: Path):
    ameds.write(rec, tmp_path / "out")
    for name, text in TABLES.items():
        written = (tmp_path / "out" / name).read_text().splitlines()
        assert len(written) == len(text.splitlines())
        for ours, theirs in zip(written[1:], text.splitlines()[1:], strict=True):
            assert [float(f) for f in ours.split(",")] == [float(f) for f in theirs.split(",")], name
    header = (tmp_path / "out" / "GnssImu.csv").read_text().splitlines()[0].split(",")
    assert header[4] == "x gyroscope [deg/s]"
    assert header[7] == "x magnetometer [G]"


def test_a_made_up_recording_is_read_back_exactly(tmp_path: Path):
    made = sample_recording(1.5)
    said = ameds.write(made, tmp_path / "out")
    assert all("encoded as JPEG" in sentence for sentence in said)
    again = transect.open(tmp_path / "out")
    assert_same_tables(made, again)
    assert not again.losses
    assert all("with another aspect ratio" in note for note in again.all_notes)  # its images are 64 x 48
    cloud, other = made["Lidar"][3].payload, again["Lidar"][3].payload
    np.testing.assert_array_equal(cloud.points, other.points)
    np.testing.assert_array_equal(cloud.fields["intensity"], other.fields["intensity"])
    image, picture = made["MainCam"][3].payload, again["MainCam"][3].payload
    assert np.abs(image.data.astype(int) - picture.data).mean() < 5


def test_columns_of_ones_own_and_unknown_files_are_carried(folder: Path, tmp_path: Path):
    (folder / "extra").mkdir()
    (folder / "extra" / "Battery.csv").write_text('time,Voltage [V],state\n1657013071.5,48.5,"ok, full"\n')
    text = (
        TABLES["GnssBodyAcceleration.csv"].replace(",z\n", ",z,quality [%]\n").replace("0.03\n", "0.03,99\n")
    )
    (folder / "GnssBodyAcceleration.csv").write_text(text)
    rec = transect.open(folder)
    assert rec["Gnss/BodyAcceleration"]["quality"].tolist() == [99]
    assert rec["extra/Battery"]["state"] == ["ok, full"]
    assert ameds.write(rec, tmp_path / "out") == ()
    again = transect.open(tmp_path / "out")
    assert_same_tables(rec, again)
    assert again["Gnss/BodyAcceleration"].units["quality"] == "%"


def test_a_slice_keeps_its_format_and_leaves_the_film_behind(rec: Recording, tmp_path: Path):
    said = ameds.write(rec.slice(T_NS, T_NS + 400 * NS_PER_MS), tmp_path / "out")
    assert said == ("MainCamVideoFeed.mp4 is not written: it contains more images than the recording",)
    cut = transect.open(tmp_path / "out")
    assert len(cut["MainCam"]) == 1
    assert (tmp_path / "out" / "AuxCamVideoFeed.mp4").read_bytes() == video(2)
    assert not (tmp_path / "out" / "MainCamVideoFeed.mp4").exists()


def test_a_film_of_images_that_are_other_ones_now_is_left_behind(rec: Recording, tmp_path: Path):
    bright, _ = inject(rec, "overexposure", 1.0, streams=("MainCam",), start=T_NS, end=T_NS + 10**12)
    said = ameds.write(bright, tmp_path / "out")
    assert "MainCamVideoFeed.mp4 is not written: some of its images were changed" in said
    assert not (tmp_path / "out" / "MainCamVideoFeed.mp4").exists()
    assert (tmp_path / "out" / "AuxCamVideoFeed.mp4").read_bytes() == video(2)


def test_smaller_images_have_the_intrinsics_of_their_size(tmp_path: Path):
    small = {name: jpeg(90, 64, 36) for name in IMAGES}
    rec = transect.open(write_sample(tmp_path / "small", {**sample_files(), **small}))
    full = rec.robot.cameras["MainCam"]
    scaled = rec.cameras["MainCam"]
    assert (full.width, full.height, scaled.width, scaled.height) == (1920, 1080, 64, 36)
    assert scaled.K[0, 0] == pytest.approx(full.K[0, 0] / 30)
    assert scaled.K[0, 2] + 0.5 == pytest.approx((full.K[0, 2] + 0.5) / 30)  # of the corner, not the pixel
    assert rec["MainCam"][0].value.camera == scaled
    assert (
        "MainCam: images are 64 x 36, the calibration is for 1920 x 1080; it is scaled to them" in rec.notes
    )


def test_what_the_format_cannot_carry_is_said(rec: Recording, tmp_path: Path):
    odd = rec["Gnss/Imu"].replace(name="Somewhere/Imu")
    other_clock = rec["Gnss/BodyAcceleration"].replace(clock="device")
    logged = rec["Gnss/Pose"].replace(name="Battery", type=rec["Gnss/BodyAcceleration"].type)
    outside = logged.replace(name="../Battery")
    streams = (odd, other_clock, logged, outside)
    said = ameds.write(rec.replace(streams=streams, robot=None, source=None), tmp_path / "out")
    assert said == (
        "Somewhere/Imu (Imu) has no file in AMEDS",
        "Gnss/BodyAcceleration is on the device clock, and AMEDS has unix times only",
        "Battery: the log times of samples are not written",
        "../Battery cannot be the name of a file in AMEDS",
        "frames and calibrations are not written: readers will use those of the rover Interact",
    )
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["Battery.csv"]


def test_a_pose_without_angles_is_written_with_those_of_its_quaternion(rec: Recording, tmp_path: Path):
    stream = rec["MainCam/PoseEstimate"]
    bare = stream.replace(source=stream.table.drop_columns(["roll", "pitch", "yaw"]))
    ameds.write(rec.replace(streams=(bare,), source=None), tmp_path / "out")
    again = transect.open(tmp_path / "out")["MainCam/PoseEstimate"]
    np.testing.assert_allclose(
        again.array("roll", "pitch", "yaw"), stream.array("roll", "pitch", "yaw"), atol=1e-15
    )


def test_a_folder_with_something_in_it_is_not_written_over(rec: Recording, folder: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="exists already"):
        ameds.write(rec, folder)
    with pytest.raises(UsageError, match="folder"):
        ameds.write(rec, tmp_path / "out.zip")


# Recognition


def test_the_sample_is_recognised_with_a_reason(folder: Path):
    name, match = recognise(folder)[0]
    assert name == "ameds"
    assert match.confidence >= 0.9
    assert "Table 7" in match.reason


def test_a_file_of_that_name_without_unix_time_is_declined_with_a_reason(tmp_path: Path):
    (tmp_path / "GnssPose.csv").write_text("frame,x\n1,2\n")
    match = ameds.recognises(source_of(tmp_path))
    assert not match
    assert match.reason == "it has GnssPose.csv but no unix time in its first column"


def test_a_folder_of_something_else_is_declined(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("nothing")
    assert not ameds.recognises(source_of(tmp_path))
    with pytest.raises(UnknownFormatError):
        transect.open(tmp_path)
    with pytest.raises(ParseError, match="no file of AMEDS"):
        transect.open(tmp_path, format="ameds")


# Bad input


def imu_row(t: str) -> str:
    return f"{t},0.1,0.2,-9.8,1,2,3,0.25,-0.5,0.75,41.5,73512.25,18.5\n"


GOOD_IMU_FILE = (
    TABLES["GnssImu.csv"].partition("\n")[0] + "\n" + imu_row("1657013071.01") + imu_row("1657013071.02")
)


@pytest.mark.parametrize(
    ("text", "kept", "line", "reason"),
    [
        (GOOD_IMU_FILE + imu_row("1657013071.03")[:40], 2, 4, "cut off"),
        (GOOD_IMU_FILE + imu_row("1657013071.03")[:-3], 2, 4, "cut off"),
        (GOOD_IMU_FILE + imu_row("soon") + imu_row("1657013071.04"), 3, 4, "time is not a time"),
        (GOOD_IMU_FILE + imu_row("1657013071.03").replace("-9.8", "up"), 2, 4, "acc_z is not a number"),
        (GOOD_IMU_FILE + imu_row("1657013071.03").replace("-9.8,", ""), 2, 4, "12 fields where 13"),
        (
            GOOD_IMU_FILE + '"' + imu_row("1657013071.03") + imu_row("1657013071.04"),
            3,
            4,
            "time is not a time",
        ),
        (GOOD_IMU_FILE + "\x00\x01\x02\n" + imu_row("1657013071.04"), 3, 4, "1 fields where 13"),
        ("", 0, None, "empty"),
        ("\n\n", 0, None, "empty"),
    ],
)
def test_bad_rows_are_left_out_and_located(tmp_path: Path, text: str, kept: int, line: int, reason: str):
    path = with_table(tmp_path / "t", "GnssImu.csv", text)
    rec = transect.open(path)
    assert len(rec["Gnss/Imu"]) == kept
    (loss,) = rec.losses
    assert (loss.file, loss.line) == ("GnssImu.csv", line)
    assert reason in loss.reason
    assert len(rec["Gnss/Pose"]) == 3
    with pytest.raises(ParseError, match=r"GnssImu\.csv"):
        transect.open(path, strict=True)


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path):
    text = "\ufeff" + GOOD_IMU_FILE.replace("\n", "\r\n")
    imu = only(tmp_path, "GnssImu.csv", text)
    assert len(imu) == 2
    assert imu["outside_temperature"].tolist() == [18.5, 18.5]
    assert not imu.losses


def test_a_missing_value_is_nan_and_its_row_is_kept(tmp_path: Path):
    imu = only(
        tmp_path,
        "GnssImu.csv",
        GOOD_IMU_FILE + imu_row("1657013071.03").replace("-9.8", "nan").replace("41.5", ""),
    )
    np.testing.assert_array_equal(imu["acc_z"], [-9.8, -9.8, np.nan])
    np.testing.assert_array_equal(imu["temperature"], [41.5, 41.5, np.nan])
    assert not imu.losses


def test_clocks_that_jump_back_and_repeat_are_kept_and_counted(tmp_path: Path):
    imu = only(tmp_path, "GnssImu.csv", GOOD_IMU_FILE + imu_row("1657013071.02") + imu_row("1657013070.0"))
    assert imu.t_ns.tolist()[-1] == T_NS - 10**9
    assert (imu.timing.repeated, imu.timing.backwards) == (1, 1)


def test_a_fix_code_beyond_the_table_stays_a_number(tmp_path: Path):
    text = TABLES["GnssPose.csv"].replace(",7\n", ",9\n").replace(",6\n", ",\n")
    fix = only(tmp_path, "GnssPose.csv", text)
    assert fix["fix"] == ["9", "", "none"]


def test_a_latitude_beyond_the_pole_is_not_looked_up(tmp_path: Path):
    text = TABLES["GnssPose.csv"].replace("010,0.6583994549090061", "010,37.72351")
    only(tmp_path, "GnssPose.csv", text)
    frames = transect.open(tmp_path).frames
    assert frames.lookup("NED", "Origin", T_NS + 20 * NS_PER_MS)[2, 3] == pytest.approx(10, abs=1e-6)
    with pytest.raises(TransectError, match="not known"):
        frames.lookup("NED", "Origin", T_NS + 10 * NS_PER_MS)


def test_a_header_without_rows_is_an_empty_stream(tmp_path: Path):
    fix = only(tmp_path, "GnssPose.csv", TABLES["GnssPose.csv"].partition("\n")[0] + "\n", format="ameds")
    assert len(fix) == 0
    assert not fix.losses
    assert "lat" in fix.columns


def test_a_header_wider_than_the_rows_is_a_loss_and_the_rows_are_kept(tmp_path: Path):
    header, _, rows = GOOD_IMU_FILE.partition("\n")
    imu = only(tmp_path, "GnssImu.csv", f"{header},{rows}")
    assert len(imu) == 1
    assert [loss.line for loss in imu.losses] == [1]
    assert "the header has 26 fields" in imu.losses[0].reason


def test_missing_files_are_no_loss(tmp_path: Path):
    files = sample_files()
    rec = transect.open(
        write_sample(tmp_path / "t", {n: d for n, d in files.items() if n.startswith("Gnss")})
    )
    assert [stream.name for stream in rec] == [s for s in STREAMS if s.startswith("Gnss")]
    assert not rec.losses


def test_an_invalid_image_and_a_lying_cloud_are_parse_errors_when_loaded(folder: Path):
    (folder / "MainCam_1657013071.5.jpg").write_bytes(b"no picture")
    (folder / "AuxCam_1657013071.033333.jpg").write_bytes(b"")
    (folder / CLOUD).write_text((folder / CLOUD).read_text().replace("POINTS 3", "POINTS 1000000000"))
    rec = transect.open(folder)
    with pytest.raises(ParseError, match=r"MainCam_1657013071\.5\.jpg"):
        _ = rec["MainCam"][1].payload
    with pytest.raises(ParseError, match="empty"):
        _ = rec["AuxCam"][0].payload
    with pytest.raises(ParseError, match="Lidar"):
        _ = rec["Lidar"][0].payload
    assert rec["MainCam"][0].payload.width == 16


def touch_everything(path: Path) -> Recording:
    rec = transect.open(path)
    repr(rec)
    for stream in rec:
        assert len(stream) == len(stream.t_ns)
        if stream.loader is not None and len(stream):
            try:
                _ = stream[0].payload
            except TransectError:
                continue
    for target in ("NED", "Origin"):
        if target in rec.frames:
            rec.frames.lookup(target, "MainCam", np.array([T_NS, T_NS + 20 * NS_PER_MS]), missing="nan")
    return rec


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What our writer wrote of a second of made-up data: a few files of each kind."""
    folder = tmp_path_factory.mktemp("written") / "out"
    ameds.write(sample_recording(0.2), folder)
    files = {p.name: p.read_bytes() for p in sorted(folder.iterdir())}
    pictures = [n for n in files if n.endswith((".jpg", ".pcd"))]
    return {n: d for n, d in files.items() if n not in pictures} | {n: files[n] for n in pictures[::6]}


DAMAGE = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=4
)
"""Where (modulo the length), how many bytes go, and what comes instead."""


@given(which=st.integers(0, 10**6), damage=DAMAGE)
def test_damaged_bytes_never_raise_anything_but_our_errors_nor_lose_rows_unseen(
    which: int,
    damage: list[tuple[int, int, bytes]],
    written: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
):
    name = sorted(written)[which % len(written)]
    content = bytearray(written[name])
    for at, gone, new in damage:
        start = at % (len(content) + 1)
        content[start : start + gone] = new
    folder = write_sample(tmp_path_factory.mktemp("damaged"), {**written, name: bytes(content)})
    try:
        rec = touch_everything(folder)
    except TransectError:
        return
    stem = name.removesuffix(".csv")
    if stem in BY_STEM and BY_STEM[stem].stream in rec:
        rows = len([line for line in bytes(content).split(b"\n")[1:] if line.strip()])
        stream = rec[BY_STEM[stem].stream]
        assert len(stream) + sum(loss.count for loss in stream.losses) >= rows


def test_jpeg_helper_writes_pictures():
    assert jpeg(3)[:2] == b"\xff\xd8"


def test_text_in_a_device_stamp_is_lost_and_located(folder: Path):
    path = next(folder.rglob("GnssPose.csv"))
    lines = path.read_text().splitlines(keepends=True)
    fields = lines[1].split(",")
    fields[1] = "foo"
    path.write_text(lines[0] + ",".join(fields) + "".join(lines[2:]))
    rec = transect.open(folder)
    assert [(loss.file, loss.line) for loss in rec["Gnss/Pose"].losses] == [("GnssPose.csv", 2)]
    assert len(rec["Gnss/Pose"]) == len(lines) - 1


@pytest.mark.parametrize("stem", ["GnssPose", "MainCamPoseEstimate", "PlatformMotorEncoders"])
def test_a_table_without_its_columns_leaves_the_other_frames(folder: Path, stem: str):
    header, _, rows = (folder / f"{stem}.csv").read_bytes().partition(b"\n")
    names = header.split(b",")
    (folder / f"{stem}.csv").write_bytes(b",".join(names[-1:] * len(names)) + b"\n" + rows)
    rec = transect.open(folder)
    assert "Platform" in repr(rec.frames)
    rec.frames.lookup("AuxArm (base)", "AuxArm (end)", rec["AuxCam/PoseEstimate"].t_ns[0])
    assert [loss.file for loss in rec.losses] == [f"{stem}.csv"]
