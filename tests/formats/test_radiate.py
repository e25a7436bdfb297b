"""RADIATE folders, hand-made after the data set's description ("Folder Structure and File Format")."""

from __future__ import annotations

import json
import shutil
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
    put,
    rewritten,
    said_of,
)

import transect
from transect.errors import ParseError, UsageError
from transect.formats.shared.images import encode_image
from transect.recording import Recording, stream_of_values
from transect.types import Image, Imu, JointState, NavFix, PointCloud, RadarSpectrum, Twist

T0_S = 1574859771
INDEX = "".join(f"Frame: {i:06d} Time: {T0_S}.{i}44660272\n" for i in (1, 2, 3))
T_NS = [T0_S * 10**9 + i * 10**8 + 44660272 for i in (1, 2, 3)]
ZEROS = "0.000000000000000,0.000000000000000,0.000000000000000 \n"
PACKET_POINTS = (
    "55.892359288186391,-3.321673745285121,209.238311767578125 \n"
    "0.026894760054574,0.000000000000000,0.000000000000000 \n"
    " 0.000000000000000,0.040273964608809,0.000000000000000 \n"
    " 0.000000000000000,0.000000000000000,0.146884650049395 \n"
    "-0.00388,0.00605,-0.98632,-0.16469 \n"
    "-0.00266,-0.01089,0.03308 \n"
    "-0.52967,0.51694,-0.04700 \n" + 3 * (ZEROS + 2 * f" {ZEROS}") + "-7.38780,-10.16996,-0.29324 \n"
    "-0.00266,-0.01089,0.03308 \n"
)
LIDAR = "-0.45196,-0.21056,-0.058308,2,18\n-0.47925,-0.22327,-0.036971,3,20\n"
CONFIG = "radar_calib:\n    T: [0.0, 0.0, 0.0]\n    R: [0.0, 0.0, 0.0]\n    range_res: 0.25\n"
CALIBRATION = """# Lidar calibration parameters
lidar_calib:
    T: [0.6, -0.1, 0.25]
    R: [0.0, 0.0, 0.0]
left_cam_calib:
    T: [0.34, -0.07, 0.29]
    R: [0.0, 0.0, 0.0]
    fx: 3.379191448899105e+02
    fy: 3.386957068549526e+02
    cx: 3.417366010946575e+02
    cy: 2.007359735313929e+02
    k1: -0.183879883467351
    k2: 0.0308609205858947
    k3: 0
    p1: 0
    p2: 0
    res: [672, 376]
right_cam_calib:
    T: [0.46, -0.06, 0.29]
    R: [0.0, 0.0, 0.0]
    fx: 337.873451599077
    fy: 338.530902554779
    cx: 329.137695760749
    cy: 186.166590759716
    k1: -0.181771143569008
    k2: 0.0295682692890613
    k3: 0
    p1: 0
    p2: 0
    res: [672, 376]
stereo_calib:
    TX: -120.7469
    TY: 0.1726
    TZ: 1.1592
    R: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
"""
META = {"name": "fog_6_0", "type": "fog", "set": "test"}
OBJECTS = [{"id": 1, "class_name": "bus", "bboxes": []}, {"id": 2, "class_name": "car", "bboxes": []}]


def polar(number: int) -> np.ndarray:
    """Return an image as RADIATE stores it: three bins (rows) at four azimuths (columns)."""
    return np.arange(number, number + 12, dtype=np.uint8).reshape(3, 4)


def make(folder: Path) -> Path:
    for sensor in ("Navtech_Polar", "Navtech_Cartesian", "zed_left", "zed_right"):
        put(folder, f"{sensor}.txt", INDEX)
        for i in (1, 2, 3):
            put(folder, f"{sensor}/{i:06d}.png", encode_image(Image(polar(i)), ".png"))
    put(folder, "velo_lidar.txt", INDEX)
    put(folder, "GPS_IMU_Twist.txt", INDEX)
    for i in (1, 2, 3):
        put(folder, f"velo_lidar/{i:06d}.csv", LIDAR.replace("18", str(i)))
        put(folder, f"GPS_IMU_Twist/{i:06d}.txt", PACKET_POINTS.replace("209.2", f"20{i}.2"))
    put(folder, "config.yaml", CONFIG)
    put(folder, "default-calib.yaml", CALIBRATION)
    put(folder, "meta.json", json.dumps(META))
    put(folder, "annotations/annotations.json", json.dumps(OBJECTS))
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return make(tmp_path / "fog_6_0")


def test_a_folder_is_recognised_and_holds_its_streams(sample: Path) -> None:
    assert said_of(sample, "radiate").confidence > 0.9
    recording = opened(sample, "radiate")
    assert [(s.name, s.type, s.clock, s.tag) for s in recording] == [
        ("Navtech_Polar", RadarSpectrum, "utc", ""),
        ("Navtech_Cartesian", Image, "utc", ""),
        ("velo_lidar", PointCloud, "utc", ""),
        ("zed_left", Image, "utc", "left"),
        ("zed_right", Image, "utc", "right"),
        ("GPS_IMU_Twist/fix", NavFix, "utc", ""),
        ("GPS_IMU_Twist/imu", Imu, "utc", ""),
        ("GPS_IMU_Twist/velocity", Twist, "utc", ""),
    ]
    assert all(stream.t_ns.tolist() == T_NS for stream in recording)
    assert losses(recording) == []


def test_folders_without_lists_are_declined_as_near(tmp_path: Path) -> None:
    put(tmp_path, "Navtech_Polar/000001.png", b"")
    match = said_of(tmp_path, "radiate")
    assert not match
    assert " but " in match.reason


def test_the_weather_and_the_objects_are_conditions(sample: Path) -> None:
    assert opened(sample, "radiate").conditions == {
        "weather": "fog",
        "name": "fog_6_0",
        "set": "test",
        "annotations": "annotations/annotations.json",
        "objects": {"bus": 1, "car": 1},
    }


def test_a_radar_image_is_a_spectrum_per_azimuth(sample: Path) -> None:
    """Index 0 of the azimuths is straight ahead and they go clockwise; index 0 of the ranges is 0 m."""
    spectrum = opened(sample, "radiate")["Navtech_Polar"][1].value
    np.testing.assert_array_equal(spectrum.reflectivity, polar(2).T)
    assert spectrum.bin_width == 0.25
    np.testing.assert_array_equal(spectrum.ranges, [0.0, 0.25, 0.5])
    directions = np.column_stack([np.cos(spectrum.angle), np.sin(spectrum.angle)])
    np.testing.assert_allclose(directions, [[0, 1], [1, 0], [0, -1], [-1, 0]], atol=1e-15)
    assert (spectrum.t_ns, spectrum.frame) == (T_NS[1], "radar")


def test_a_cloud_has_intensity_and_ring(sample: Path) -> None:
    cloud = opened(sample, "radiate")["velo_lidar"][2].value
    np.testing.assert_array_equal(
        cloud.points, [[-0.45196, -0.21056, -0.058308], [-0.47925, -0.22327, -0.036971]]
    )
    assert cloud.fields["intensity"].tolist() == [2, 3]
    assert cloud.fields["ring"].tolist() == [3, 20]


def test_a_packet_becomes_position_motion_and_velocity(sample: Path) -> None:
    recording = opened(sample, "radiate")
    fix, imu, velocity = (recording[f"GPS_IMU_Twist/{name}"] for name in ("fix", "imu", "velocity"))
    assert fix["lat"][0] == np.radians(55.892359288186391)
    assert fix["lon"][0] == np.radians(-3.321673745285121)
    assert fix["alt"].tolist() == [201.238311767578125, 202.238311767578125, 203.238311767578125]
    std = fix.array("std_east", "std_north", "std_down")[0]
    np.testing.assert_allclose(std**2, [0.026894760054574, 0.040273964608809, 0.146884650049395])
    assert imu.array("qx", "qy", "qz", "qw")[0].tolist() == [-0.00388, 0.00605, -0.98632, -0.16469]
    assert imu.array("gyro_x", "gyro_y", "gyro_z")[0].tolist() == [-0.00266, -0.01089, 0.03308]
    assert imu.array("acc_x", "acc_y", "acc_z")[0].tolist() == [-0.52967, 0.51694, -0.047]
    assert velocity.array("vx", "vy", "vz")[0].tolist() == [-7.3878, -10.16996, -0.29324]
    assert velocity.frame == "NED"


def test_cameras_and_sensors_stand_as_calibrated(sample: Path) -> None:
    """T is along a camera's axes (x right, y down, z forward), the lidar's are x right, y forward, z up."""
    recording = opened(sample, "radiate")
    left = recording.cameras["left"]
    assert (left.width, left.height, left.K[0, 0]) == (672, 376, 337.9191448899105)
    assert recording["zed_left"][0].value.camera is left
    frames = recording.frames
    assert frames.lookup("right", "left")[0, 3] == pytest.approx(-0.1207469)
    np.testing.assert_allclose(
        frames.lookup("left", "lidar") @ [0, 10, 0, 1], [0.26, -0.03, 9.96, 1], atol=1e-12
    )
    np.testing.assert_allclose(frames.lookup("radar", "lidar")[:3, 3], [0.6, 0.25, 0.1], atol=1e-12)


def test_what_is_written_opens_the_same(tmp_path: Path, sample: Path) -> None:
    recording = opened(sample, "radiate")
    again = rewritten(recording, tmp_path / "again", "radiate")
    assert_same(recording, again)
    assert again.conditions == recording.conditions
    for name in ("GPS_IMU_Twist/000002.txt", "velo_lidar/000001.csv", "zed_left.txt", "default-calib.yaml"):
        assert (tmp_path / "again" / name).read_bytes() == (sample / name).read_bytes(), name


def test_a_zip_opens_like_its_folder(tmp_path: Path, sample: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", sample.parent, sample.name)
    assert_same(opened(sample, "radiate"), opened(Path(archive), "radiate"))


def test_a_part_keeps_its_frame_numbers(tmp_path: Path, sample: Path) -> None:
    part = opened(sample, "radiate").slice(T_NS[1], None)
    again = rewritten(part, tmp_path / "part", "radiate")
    assert_same(part, again)
    assert (tmp_path / "part/zed_left.txt").read_text() == "".join(INDEX.splitlines(keepends=True)[1:])


@given(st.lists(st.floats(-90, 90), min_size=1, max_size=4), st.floats(width=64, allow_nan=False))
def test_any_packet_survives_being_written(
    tmp_path_factory: pytest.TempPathFactory, latitudes: list[float], speed: float
) -> None:
    folder = tmp_path_factory.mktemp("radiate")
    put(
        folder,
        "GPS_IMU_Twist.txt",
        "".join(f"Frame: {i:06d} Time: {T0_S}.{i}\n" for i in range(len(latitudes))),
    )
    for i, latitude in enumerate(latitudes):
        text = PACKET_POINTS.replace("55.892359288186391", repr(latitude)).replace("-10.16996", repr(speed))
        put(folder, f"GPS_IMU_Twist/{i:06d}.txt", text)
    recording = opened(folder, "radiate")
    assert_same(recording, rewritten(recording, folder / "again", "radiate"))


def test_other_recordings_become_a_folder_as_far_as_they_can(tmp_path: Path, sample: Path) -> None:
    recording = opened(sample, "radiate").replace(format="", source=None)
    arm = stream_of_values("arm", np.zeros(1, np.int64), {"position": np.zeros((1, 3))}, type=JointState)
    both = recording.replace(streams=(arm, *recording.streams))
    said = transect.formats.write(both, tmp_path / "r", "radiate")
    assert "arm: RADIATE has no folder for it" in said
    again = opened(tmp_path / "r", "radiate")
    assert again["Navtech_Polar"][0].value.bin_width == 0.25
    np.testing.assert_array_equal(again["Navtech_Polar"][0].value.reflectivity, polar(1).T)
    np.testing.assert_array_equal(
        again["velo_lidar"][0].value.points, recording["velo_lidar"][0].value.points
    )
    assert again.conditions["weather"] == "fog"
    with pytest.raises(UsageError, match="no radar"):
        transect.formats.write(Recording("r", (arm,)), tmp_path / "s", "radiate")
    with pytest.raises(UsageError, match="exists already"):
        transect.formats.write(recording, tmp_path / "r", "radiate")


def test_frames_that_are_listed_but_not_there_are_a_loss(sample: Path) -> None:
    (sample / "zed_left/000002.png").unlink()
    (sample / "GPS_IMU_Twist/000003.txt").unlink()
    recording = opened(sample, "radiate")
    assert recording["zed_left"].t_ns.tolist() == [T_NS[0], T_NS[2]]
    assert losses(recording) == [
        ("zed_left/000002.png", None, 1, "zed_left.txt lists it, but it is not there"),
        ("GPS_IMU_Twist/000003.txt", None, 1, "GPS_IMU_Twist.txt lists it, but it is not there"),
    ]
    with pytest.raises(ParseError):
        transect.open(sample, format="radiate", strict=True)


def test_files_that_no_line_lists_are_noted(sample: Path) -> None:
    put(sample, "velo_lidar/000009.csv", LIDAR)
    recording = opened(sample, "radiate")
    assert (
        recording.all_notes[0]
        == "1 files of velo_lidar are not in velo_lidar.txt: velo_lidar/000009.csv, ..."
    )
    assert losses(recording) == []


def test_times_that_repeat_or_go_back_are_kept_and_noted(sample: Path) -> None:
    lines = INDEX.splitlines(keepends=True)
    same = lines[1].replace("000002", "000003")
    put(sample, "GPS_IMU_Twist.txt", lines[1] + same + lines[0])
    recording = opened(sample, "radiate")
    assert recording["GPS_IMU_Twist/fix"].t_ns.tolist() == [T_NS[1], T_NS[1], T_NS[0]]
    assert "of 3 times of GPS_IMU_Twist, 1 repeat the one before and 1 go back in time" in recording.all_notes


def test_a_clock_that_does_not_overlap_the_others_is_noted(sample: Path) -> None:
    put(sample, "GPS_IMU_Twist.txt", INDEX.replace(str(T0_S), str(T0_S + 61)))
    note = "GPS_IMU_Twist does not overlap the other sensors: 60.800 s lie between them"
    assert note in opened(sample, "radiate").all_notes


def test_a_folder_without_its_list_is_numbered(sample: Path) -> None:
    (sample / "zed_left.txt").unlink()
    stream = opened(sample, "radiate")["zed_left"]
    assert (stream.clock, stream.t_ns.tolist()) == ("index", [10**9, 2 * 10**9, 3 * 10**9])
    assert stream.parsed.notes == ("there is no zed_left.txt: frames have numbers, but no times",)
    assert not any("does not overlap" in note for note in opened(sample, "radiate").all_notes)


def test_a_list_without_its_folder_is_a_loss(sample: Path) -> None:
    for path in (sample / "zed_left").iterdir():
        path.unlink()
    recording = opened(sample, "radiate")
    assert len(recording["zed_left"]) == 0
    assert losses(recording)[0][:3] == ("zed_left/000001.png", None, 3)


@pytest.mark.parametrize(("line", "reason"), [
    ("Frame: 000002 Time: later\n", "the time cannot be read"),
    ("Frame: 000002\n", "not `Frame: <number> Time: <seconds>`"),
    ("000002 1574859771.2\n", "not `Frame: <number> Time: <seconds>`"),
])  # fmt: skip
def test_a_bad_line_of_a_list_loses_that_frame(sample: Path, line: str, reason: str) -> None:
    lines = INDEX.splitlines(keepends=True)
    put(sample, "zed_left.txt", lines[0] + line + lines[2])
    recording = opened(sample, "radiate")
    assert recording["zed_left"].t_ns.tolist() == [T_NS[0], T_NS[2]]
    assert losses(recording) == [("zed_left.txt", 2, 1, reason)]


def test_the_end_of_a_truncated_list_is_rejected(sample: Path) -> None:
    put(sample, "zed_left.txt", INDEX[:-4])
    recording = opened(sample, "radiate")
    assert recording["zed_left"].t_ns.tolist() == T_NS[:2]
    assert losses(recording) == [("zed_left.txt", 3, 1, "the last line is cut off")]


def test_windows_line_ends_do_no_harm(sample: Path) -> None:
    put(sample, "zed_left.txt", INDEX.replace("\n", "\r\n"))
    put(sample, "GPS_IMU_Twist/000001.txt", PACKET_POINTS.replace("\n", "\r\n"))
    recording = opened(sample, "radiate")
    assert losses(recording) == []
    assert len(recording["zed_left"]) == 3


def test_an_empty_list_has_no_frames(sample: Path) -> None:
    put(sample, "zed_left.txt", "")
    recording = opened(sample, "radiate")
    assert len(recording["zed_left"]) == 0
    assert any("3 files of zed_left are not in" in note for note in recording.all_notes)


@pytest.mark.parametrize(
    "text", ["", PACKET_POINTS[:-30], PACKET_POINTS.replace("209.2", "x"), PACKET_POINTS + "1\n"]
)
def test_a_bad_packet_is_lost_alone(sample: Path, text: str) -> None:
    put(sample, "GPS_IMU_Twist/000002.txt", text)
    recording = opened(sample, "radiate")
    assert recording["GPS_IMU_Twist/imu"].t_ns.tolist() == [T_NS[0], T_NS[2]]
    assert losses(recording) == [("GPS_IMU_Twist/000002.txt", None, 1, "it does not hold 55 numbers")]


def test_what_was_not_measured_is_not_a_number(sample: Path) -> None:
    put(sample, "GPS_IMU_Twist/000002.txt", PACKET_POINTS.replace("-0.52967", "nan"))
    recording = opened(sample, "radiate")
    assert np.isnan(recording["GPS_IMU_Twist/imu"]["acc_x"]).tolist() == [False, True, False]
    assert losses(recording) == []


@pytest.mark.parametrize(("sensor", "content"), [
    ("Navtech_Polar", b"not an image"),
    ("Navtech_Polar", encode_image(Image(np.zeros((2, 2, 3), np.uint8), "rgb"), ".png")),
    ("zed_left", b""),
])  # fmt: skip
def test_an_invalid_payload_is_an_error_when_it_is_loaded(sample: Path, sensor: str, content: bytes) -> None:
    put(sample, f"{sensor}/000001.png", content)
    stream = opened(sample, "radiate")[sensor]
    with pytest.raises(ParseError, match="000001"):
        _ = stream[0].value


def test_a_cut_cloud_says_so_when_asked_for(sample: Path) -> None:
    put(sample, "velo_lidar/000001.csv", LIDAR[:-4])
    stream = opened(sample, "radiate")["velo_lidar"]
    with pytest.raises(ParseError, match="does not hold all its points"):
        _ = stream[0].value


@pytest.mark.parametrize(("name", "text"), [
    ("default-calib.yaml", CALIBRATION.replace("fx: 3.37", "fx: x")),
    ("default-calib.yaml", "left_cam_calib: ["),
    ("default-calib.yaml", "left_cam_calib: 3\n"),
    ("default-calib.yaml", CALIBRATION.replace("[[1.0,", "[[9.0,")),
    ("config.yaml", CONFIG.replace("0.25", "[1]")),
    ("meta.json", "{"),
    ("annotations/annotations.json", "[1, 2"),
])  # fmt: skip
def test_a_bad_description_costs_only_what_it_describes(sample: Path, name: str, text: str) -> None:
    put(sample, name, text)
    recording = opened(sample, "radiate")
    assert len(recording.losses) == 1
    assert all(len(stream) == 3 for stream in recording)


def test_without_a_configuration_the_radar_is_radiate_s_own(sample: Path) -> None:
    for name in ("config.yaml", "default-calib.yaml", "meta.json"):
        (sample / name).unlink()
    recording = opened(sample, "radiate")
    assert recording["Navtech_Polar"][0].value.bin_width == 0.173611
    assert recording.cameras == {}
    assert losses(recording) == []


@given(
    at=st.integers(0, len(INDEX) - 1),
    letter=st.sampled_from([b"x", b"\n", b" ", b"\0", b'"', b"\xff", b"9", b"#"]),
)
def test_no_frame_is_lost_in_silence(
    tmp_path_factory: pytest.TempPathFactory, at: int, letter: bytes
) -> None:
    folder = tmp_path_factory.mktemp("radiate")
    put(folder, "velo_lidar.txt", damaged(INDEX.encode(), [(at, 1, letter)]))
    for i in (1, 2, 3):
        put(folder, f"velo_lidar/{i:06d}.csv", LIDAR)
    recording = opened(folder, "radiate")
    assert len(recording["velo_lidar"]) == 3 or recording.losses
