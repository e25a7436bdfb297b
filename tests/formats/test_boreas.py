"""Boreas drives, hand-made after the guides of its development kit (DATA_REFERENCE.md, odometry.md)."""

from __future__ import annotations

import shutil
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.formats.recordings import losses, opened, put, said_of

import transect
from transect.errors import ParseError, UsageError
from transect.geometry import rotations
from transect.recording import Recording, Stream
from transect.types import Image, Imu, Pose, Record, RigidBodyState

Matrix = np.ndarray
T0_US = 1606417097528152
"""us; November 2020, before the radar was exchanged."""
HEADER = (
    "GPSTime,easting,northing,altitude,vel_east,vel_north,vel_up,"
    "roll,pitch,heading,angvel_z,angvel_y,angvel_x"
)
LIDAR_YAW = 0.75
T_APPLANIX_LIDAR = np.array(
    [
        [np.cos(LIDAR_YAW), -np.sin(LIDAR_YAW), 0, 0.02],
        [np.sin(LIDAR_YAW), np.cos(LIDAR_YAW), 0, -0.01],
        [0, 0, 1, 0.13],
        [0, 0, 0, 1],
    ]
)
T_RADAR_LIDAR = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, -1, 0.36], [0, 0, 0, 1.0]])
T_CAMERA_LIDAR = np.array([[1, 0, 0, 0.1], [0, 0, -1, -0.3], [0, 1, 0, -0.2], [0, 0, 0, 1.0]])
P_CAMERA = "1460.98 0 1230.0 0\n0 1460.93 1035.08 0\n0 0 1 0\n0 0 0 1\n"
INTRINSICS = "image_size: [2448.000000, 2048.000000]\nfocal_length: [1475.6, 1475.3]\nskew: 0.0\n"


def passive(axis: int, angle: float) -> Matrix:
    """Return a principal rotation as in Barfoot's State Estimation, which turns the axes by the angle."""
    c, s = np.cos(angle), np.sin(angle)
    rows = {0: [[1, 0, 0], [0, c, s], [0, -s, c]], 1: [[c, 0, -s], [0, 1, 0], [s, 0, c]]}
    return np.array(rows.get(axis, [[c, s, 0], [-s, c, 0], [0, 0, 1]]))


def angles_of(C: Matrix) -> tuple[float, float, float]:
    """Return roll, pitch, heading of C = roll @ pitch @ yaw, by its elements."""
    return np.arctan2(C[1, 2], C[2, 2]), np.arcsin(-C[0, 2]), np.arctan2(C[0, 1], C[0, 0])


def standing(heading: float, nose_up: float, right_down: float) -> Matrix:
    """Return R_enu_applanix, whose columns are where the car's right side, its front and its roof point to.

    The heading is clockwise from north. The nose goes up about the right side, then the right side goes down.
    """
    ahead = np.array([np.sin(heading), np.cos(heading), 0])
    level = np.array([np.cos(heading), -np.sin(heading), 0])
    front = np.cos(nose_up) * ahead + np.array([0, 0, np.sin(nose_up)])
    roof = np.cross(level, front)
    return np.column_stack([np.cos(right_down) * level - np.sin(right_down) * roof, front,
                            np.cos(right_down) * roof + np.sin(right_down) * level])  # fmt: skip


def row(time: object, position: Sequence[float], velocity: Sequence[float], angles: Sequence[float],
        rates: Sequence[float] = (0.01, -0.02, 0.3)) -> str:  # fmt: skip
    values = (*position, *velocity, *angles, *reversed(rates))
    return ",".join([str(time), *(repr(float(v)) for v in values)]) + "\n"


def text_of(T: Matrix) -> str:
    return "\n".join(" ".join(f"{v:.18e}" for v in line) for line in T) + "\n"


def png(pixels: np.ndarray) -> bytes:
    """Encode (rows, columns) uint8 by the PNG specification."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    lines = b"".join(b"\0" + bytes(line) for line in pixels.astype(np.uint8))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )


def radar_image(time: int, steps: Sequence[int], bins: int = 5) -> bytes:
    """Return rows of int64 time, uint16 encoder, a byte, and powers 10 i + j of bearing i and bin j."""
    rows = [
        struct.pack("<qHB", time + 622 * i, step, 255) + bytes(10 * i + j for j in range(bins))
        for i, step in enumerate(steps)
    ]
    return png(np.frombuffer(b"".join(rows), np.uint8).reshape(len(steps), 11 + bins))


CAR = standing(1.2, 0.05, -0.02)
R_ENU_LIDAR = CAR @ T_APPLANIX_LIDAR[:3, :3]
R_ENU_RADAR = R_ENU_LIDAR @ T_RADAR_LIDAR[:3, :3].T
POINTS = [
    (1.0, 2.0, 0.5, 7.0, 3.0, -0.05),
    (4.0, -2.0, 0.25, 200.0, 127.0, 0.0),
    (9.0, 1.0, 0.0, 0.0, 0.0, 0.04),
]


def make(folder: Path) -> Path:
    times = [T0_US + 100_000 * i for i in range(4)]
    for sensor, R in (("lidar", R_ENU_LIDAR), ("radar", R_ENU_RADAR)):
        rows = [row(t, (i, 2 * i, 0.5), (5 * CAR[:, 1]).tolist(), angles_of(R)) for i, t in enumerate(times)]
        put(folder, f"applanix/{sensor}_poses.csv", HEADER + "\n" + "".join(rows))
    put(folder, "calib/T_applanix_lidar.txt", text_of(T_APPLANIX_LIDAR))
    put(folder, "calib/T_radar_lidar.txt", text_of(T_RADAR_LIDAR))
    put(folder, "calib/T_camera_lidar.txt", text_of(T_CAMERA_LIDAR))
    put(folder, "calib/P_camera.txt", P_CAMERA)
    put(folder, "calib/camera0_intrinsics.yaml", INTRINSICS)
    for i, t in enumerate(times[:3]):
        put(folder, f"camera/{t}.png", png(np.full((4, 6), i)))
        put(folder, f"lidar/{t}.bin", b"".join(struct.pack("<6f", *p) for p in POINTS))
        put(folder, f"radar/{t}.png", radar_image(t, (0, 1400, 5586)))
    put(folder, "route.html", "<html></html>")
    return folder


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    return make(tmp_path / "boreas-2020-11-26-13-58")


def matrices(stream: Stream) -> Matrix:
    return rotations.matrix_from_quaternion(stream.array("qx", "qy", "qz", "qw"))


def test_a_drive_is_recognised_and_holds_its_streams(drive: Path) -> None:
    recording = transect.open(drive)
    assert (recording.format, recording.name) == ("boreas", "boreas-2020-11-26-13-58")
    assert [(s.name, s.type.__name__, s.role, s.frame, s.child, len(s)) for s in recording] == [
        ("applanix/lidar_poses", "RigidBodyState", "truth", "enu", "lidar", 4),
        ("applanix/radar_poses", "RigidBodyState", "truth", "enu", "radar", 4),
        ("camera", "Image", "measurement", "camera", "", 3),
        ("lidar", "PointCloud", "measurement", "lidar", "", 3),
        ("radar", "RadarSpectrum", "measurement", "radar", "", 3),
    ]
    assert not recording.losses
    assert not recording.all_notes


def test_poses_and_calibration_alone_open_and_so_does_a_zip(drive: Path, tmp_path: Path) -> None:
    for folder in ("camera", "lidar", "radar"):
        shutil.rmtree(drive / folder)
    archive = shutil.make_archive(str(tmp_path / "zipped"), "zip", drive.parent, drive.name)
    for path in (drive, Path(archive)):
        recording = transect.open(path)
        assert [s.name for s in recording] == ["applanix/lidar_poses", "applanix/radar_poses"]
        assert recording.frames.frames == ("applanix", "camera", "lidar", "radar")


def test_a_file_of_poses_opens_alone_and_so_does_its_folder(drive: Path) -> None:
    for path in (drive / "applanix/lidar_poses.csv", drive / "applanix"):
        recording = transect.open(path)
        assert recording.format == "boreas"
        np.testing.assert_allclose(matrices(recording["lidar_poses"])[0], R_ENU_LIDAR, atol=1e-12)


def test_a_folder_of_several_drives_is_refused_with_their_names(drive: Path) -> None:
    make(drive.parent / "boreas-2021-01-26-11-22")
    with pytest.raises(UsageError, match="holds 2 recordings"):
        transect.open(drive.parent)


def test_something_else_in_a_folder_applanix_is_not_taken(tmp_path: Path) -> None:
    put(tmp_path, "applanix/lidar_poses.csv", "time,x,y\n1,2,3\n")
    assert not said_of(tmp_path, "boreas")
    assert "it has applanix/ but no poses" in said_of(tmp_path, "boreas").reason
    with pytest.raises(ParseError, match="nothing of a Boreas drive"):
        opened(tmp_path, "boreas")


@pytest.mark.parametrize(
    ("time", "t_ns"),
    [
        ("1628184886518267", 1628184886518267000),
        ("1628184886551599081", 1628184886551599081),
        ("1628184886.505085123", 1628184886505085123),
        ("1628184886.5", 1628184886500000000),
        ("1628184886518", 1628184886518000000),
    ],
)
def test_the_size_of_a_time_tells_its_unit_to_the_last_digit(tmp_path: Path, time: str, t_ns: int) -> None:
    pose = row(time, (0, 0, 0), (0, 0, 0), (0, 0, 0))
    put(tmp_path, "applanix/lidar_poses.csv", f"{HEADER}\n{pose}")
    put(tmp_path, "applanix/gps_post_process.csv", f"{HEADER}\n{pose}")
    for stream in transect.open(tmp_path):
        assert stream.clock == "utc"
        assert stream.t_ns.tolist() == [t_ns]


def test_a_sensor_stands_as_the_matrices_of_the_guide_say(drive: Path) -> None:
    """C_enu_sensor is roll(r) pitch(p) yaw(y), of matrices that turn axes; here the car stands on a hill."""
    recording = transect.open(drive)
    for sensor, R in (("lidar", R_ENU_LIDAR), ("radar", R_ENU_RADAR)):
        roll, pitch, heading = angles_of(R)
        np.testing.assert_allclose(passive(0, roll) @ passive(1, pitch) @ passive(2, heading), R, atol=1e-12)
        stream = recording[f"applanix/{sensor}_poses"]
        assert stream.type is RigidBodyState
        np.testing.assert_allclose(matrices(stream), np.broadcast_to(R, (4, 3, 3)), atol=1e-12)
        np.testing.assert_allclose(stream.array("wx", "wy", "wz")[0], R @ (0.01, -0.02, 0.3), atol=1e-12)
        assert stream.array("x", "y", "z")[2].tolist() == [2, 4, 0.5]
        assert stream.array("vx", "vy", "vz")[1].tolist() == (5 * CAR[:, 1]).tolist()


def test_poses_of_two_sensors_agree_with_the_calibration(drive: Path) -> None:
    recording = transect.open(drive)
    lidar, radar = (matrices(recording[f"applanix/{s}_poses"])[0] for s in ("lidar", "radar"))
    np.testing.assert_allclose(lidar.T @ radar, recording.frames.lookup("lidar", "radar")[:3, :3], atol=1e-12)
    np.testing.assert_allclose(recording.frames.lookup("camera", "lidar"), T_CAMERA_LIDAR, atol=1e-15)
    np.testing.assert_allclose(recording.frames.lookup("radar", "lidar"), T_RADAR_LIDAR, atol=1e-15)


# Poses in UTM


UTM_POSITION_M = (623425.5, 4848821.0, 153.8)
HILLS = [(0.3, 0.05, 0.0), (1.7, -0.04, 0.02), (3.0, 0.03, -0.03), (-1.4, 0.0, 0.05)]
"""Heading, nose up, right side down."""


def make_utm(folder: Path) -> Path:
    """Make poses as the first release has them.

    The car's roll and pitch, with changed signs, were put into the guide's formula, and the sensor was placed
    by the result: the angles of the product were written.
    """
    rows: list[str] = []
    for i, (heading, nose_up, right_down) in enumerate(HILLS):
        taken = passive(0, -right_down) @ passive(1, -nose_up) @ passive(2, heading)
        lidar = taken @ T_APPLANIX_LIDAR[:3, :3]
        velocity = 10 * standing(heading, nose_up, right_down)[:, 1]
        position = np.array(UTM_POSITION_M) + taken @ T_APPLANIX_LIDAR[:3, 3]
        rows.append(row(T0_US + i, position.tolist(), velocity.tolist(), angles_of(lidar)))
    put(folder, "applanix/lidar_poses.csv", f"{HEADER}\n{''.join(rows)}")
    put(folder, "calib/T_applanix_lidar.txt", text_of(T_APPLANIX_LIDAR))
    return folder


def test_in_utm_a_car_drives_where_it_points(tmp_path: Path) -> None:
    recording = transect.open(make_utm(tmp_path))
    poses = recording["applanix/lidar_poses"]
    ahead = T_APPLANIX_LIDAR[:3, :3].T @ (0, 10, 0)
    seen = np.einsum("nji,nj->ni", matrices(poses), poses.array("vx", "vy", "vz"))
    np.testing.assert_allclose(seen, np.broadcast_to(ahead, (4, 3)), atol=1e-9)
    for i, hill in enumerate(HILLS):
        np.testing.assert_allclose(matrices(poses)[i], standing(*hill) @ T_APPLANIX_LIDAR[:3, :3], atol=1e-9)
        np.testing.assert_allclose(
            poses.array("x", "y", "z")[i],
            UTM_POSITION_M + standing(*hill) @ T_APPLANIX_LIDAR[:3, 3],
            atol=1e-8,
        )
    assert (poses.frame, poses.child) == ("utm", "lidar")
    assert "roll and pitch are read in the axes of the car" in recording.all_notes[0]


def test_in_utm_only_the_turn_about_the_vertical_is_known(tmp_path: Path) -> None:
    poses = transect.open(make_utm(tmp_path))["applanix/lidar_poses"]
    assert np.isnan(poses.array("wx", "wy")).all()
    np.testing.assert_allclose(poses["wz"], 0.3, rtol=3e-3)


def test_in_utm_the_reading_of_the_development_kit_can_be_had(tmp_path: Path) -> None:
    recording = transect.open(make_utm(tmp_path), attitude="devkit")
    heading, nose_up, right_down = HILLS[1]
    taken = passive(0, -right_down) @ passive(1, -nose_up) @ passive(2, heading)
    found = matrices(recording["applanix/lidar_poses"])[1]
    np.testing.assert_allclose(found, taken @ T_APPLANIX_LIDAR[:3, :3], atol=1e-12)
    assert "does not fit the velocities" in recording.all_notes[0]
    with pytest.raises(UsageError, match="auto or devkit"):
        transect.open(tmp_path, attitude="pyboreas")


def test_in_utm_a_sensor_that_is_nowhere_is_reported(tmp_path: Path) -> None:
    (make_utm(tmp_path) / "calib/T_applanix_lidar.txt").unlink()
    assert "wrong by the tilt of the road" in transect.open(tmp_path).all_notes[0]


# Images, scans, inertial data


def test_the_camera_is_rectified_and_its_images_are_loaded_late(drive: Path) -> None:
    recording = transect.open(drive)
    camera = recording.cameras["camera"]
    assert (camera.width, camera.height, camera.distortion) == (2448, 2048, "none")
    assert camera.K.tolist() == [[1460.98, 0, 1230.0], [0, 1460.93, 1035.08], [0, 0, 1]]
    image = recording["camera"][2].value
    assert isinstance(image, Image)
    assert image.data.tolist() == [[2] * 6] * 4
    assert (image.t_ns, image.camera) == ((T0_US + 200_000) * 1000, camera)


def test_a_scan_has_six_numbers_for_each_point(drive: Path) -> None:
    cloud = transect.open(drive)["lidar"][0].value
    assert cloud.points.tolist() == [list(p[:3]) for p in POINTS]
    assert cloud.fields["intensity"].tolist() == [7, 200, 0]
    assert cloud.fields["ring"].tolist() == [3, 127, 0]
    assert cloud.fields["t_offset_ns"].dtype == np.int64
    np.testing.assert_allclose(cloud.fields["t_offset_ns"], [-50_000_000, 0, 40_000_000], atol=5)


def test_an_aeva_scan_has_velocities_and_flags(drive: Path) -> None:
    point = struct.pack("<8fQ", 1, 2, 3, -4.5, 0.5, 0.25, 0.125, 0.01, 2**63 + 5)
    put(drive, f"aeva/{T0_US}.bin", 2 * point + b"cut")
    recording = transect.open(drive)
    cloud = recording["aeva"][0].value
    assert len(cloud) == 2
    assert cloud.fields["velocity"].tolist() == [-4.5, -4.5]
    assert cloud.fields["flags"].tolist() == [2**63 + 5] * 2
    assert [loss[0] for loss in losses(recording)] == [f"aeva/{T0_US}.bin"]


def test_a_radar_image_is_read_past_its_eleven_bytes(drive: Path) -> None:
    spectrum = transect.open(drive)["radar"][1].value
    assert spectrum.reflectivity.tolist() == [[10 * i + j for j in range(5)] for i in range(3)]
    np.testing.assert_allclose(spectrum.angle, np.radians([0, 90, 5586 * 360 / 5600]), atol=1e-12)
    np.testing.assert_allclose(spectrum.ranges, 0.0596 * (np.arange(5) + 0.5), atol=1e-12)
    assert spectrum.frame == "radar"


def test_the_later_radar_has_narrower_bins_and_perhaps_an_offset(drive: Path) -> None:
    later = 1632182401_000000
    put(drive, f"radar/{later}.png", radar_image(later, (0, 14)))
    ranges = transect.open(drive)["radar"][3].value.ranges
    np.testing.assert_allclose(ranges, 0.04381 * (np.arange(5) + 0.5), atol=1e-12)
    put(drive, "calib/misc_calibrations.yaml", "wheel_radius: 0.34\nradar_offset: -0.31\n")
    ranges = transect.open(drive)["radar"][3].value.ranges
    np.testing.assert_allclose(ranges, 0.04381 * np.arange(5) - 0.31, atol=1e-12)


def test_files_are_in_the_order_of_their_times_and_other_files_are_told(drive: Path) -> None:
    put(drive, f"camera/{(T0_US - 50_000) * 1000}.png", png(np.full((4, 6), 9)))
    put(drive, "camera/preview.png", png(np.zeros((2, 2))))
    put(drive, f"radar/cart/{T0_US}.png", png(np.zeros((2, 2))))
    recording = transect.open(drive)
    expected = [(T0_US + dt) * 1000 for dt in (-50_000, 0, 100_000, 200_000)]
    assert recording["camera"].t_ns.tolist() == expected
    assert recording["camera"][0].value.data[0, 0] == 9
    assert len(recording["radar"]) == 3
    assert losses(recording) == [("camera/preview.png", None, 1, "its name is no time")]


def test_inertial_data_with_gravity_is_an_imu_and_without_a_record(drive: Path) -> None:
    header = "GPSTime,angvel_z,angvel_y,angvel_x,accelz,accely,accelx\n"
    rows = [f"1606417097.50{i},0.3,-0.2,0.1,0,0.02,0.01\n" for i in range(3)]
    put(drive, "applanix/imu.csv", header + "".join(rows))
    row_ns = "1606417097500000001,0.1,-0.2,0.3,0.01,0.02,-9.81\n"
    put(drive, "imu/dmu_imu.csv", "time,wx,wy,wz,ax,ay,az\n" + row_ns)
    recording = transect.open(drive)
    without, whole = recording["applanix/imu"], recording["imu/dmu_imu"]
    assert (without.type, without.role, without.frame) == (Record, "derived", "applanix")
    assert without.array("gyro_x", "gyro_y", "gyro_z")[0].tolist() == [0.1, -0.2, 0.3]
    assert without.array("linear_acc_x", "linear_acc_y", "linear_acc_z")[0].tolist() == [0.01, 0.02, 0]
    assert without.t_ns[2] == 1606417097502000000
    assert (whole.type, whole.role, whole.frame) == (Imu, "measurement", "dmu")
    sample = whole[0].value
    assert sample.acceleration.tolist() == [0.01, 0.02, -9.81]
    assert (sample.angular_velocity.tolist(), sample.t_ns) == ([0.1, -0.2, 0.3], 1606417097500000001)
    assert recording.all_notes == (
        "gravity has been taken off the accelerations in applanix/imu.csv: it is no Imu",
    )


def test_the_solution_of_the_navigation_unit_is_the_truth(drive: Path) -> None:
    further = ",accelz,accely,accelx,latitude,longitude"
    pose = row("1606417097.505", (1, 2, 3), (0, 0, 0), angles_of(CAR)).strip() + ",0.3,0.2,0.1,0.764,-1.387\n"
    put(drive, "applanix/gps_post_process.csv", HEADER + further + "\n" + pose)
    recording = transect.open(drive)
    assert recording.truth is not None
    assert (recording.truth.name, recording.truth.child) == ("applanix", "applanix")
    np.testing.assert_allclose(matrices(recording.truth)[0], CAR, atol=1e-12)
    assert recording.truth.array("ax", "ay", "az", "lat", "lon")[0].tolist() == [0.1, 0.2, 0.3, 0.764, -1.387]


def test_pulses_of_the_wheel_are_rows(drive: Path) -> None:
    put(drive, "applanix/dmi.csv", "GPSTime,pulse_count\n1606417097.505,16777215\n1606417097.510,3\n")
    assert transect.open(drive)["applanix/dmi"]["pulse_count"].tolist() == [16777215, 3]


# Damage


def test_bad_rows_are_lost_and_the_others_kept(drive: Path) -> None:
    good = [row(T0_US + i, (i, 0, 0), (0, 0, 0), (0, 0, 0)) for i in range(5)]
    good[1] = good[1].replace(",0.0", ",x", 1)
    good[2] = good[2][: len(good[2]) // 2] + "\n"
    good[3] = good[3].replace(str(T0_US + 3), str(T0_US // 1000))
    put(drive, "applanix/lidar_poses.csv", (HEADER + "\n" + "".join(good)).replace("\n", "\r\n"))
    recording = transect.open(drive)
    assert recording["applanix/lidar_poses"]["x"].tolist() == [0, 4]
    assert [(line, count) for _, line, count, _ in losses(recording)] == [(3, 1), (4, 1), (None, 1)]
    assert losses(recording)[-1][3] == "the time is in another unit than the first"


def test_columns_that_are_missing_are_not_measured(drive: Path) -> None:
    put(drive, "applanix/lidar_poses.csv", f"GPSTime,easting,northing,altitude\n{T0_US},1,2,3\n")
    recording = transect.open(drive)
    poses = recording["applanix/lidar_poses"]
    assert poses.array("x", "y", "z").tolist() == [[1, 2, 3]]
    assert np.isnan(poses.array("qx", "qw", "vx", "wz")).all()
    assert "its header has no vel_east" in losses(recording)[0][3]


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("T_applanix_lidar.txt", "1 2 3\n", "it does not hold 4 x 4 numbers"),
        ("T_radar_lidar.txt", text_of(2 * np.eye(4)), "rows"),
        ("P_camera.txt", "a " * 12, "not 3 x 4 number"),
        ("camera0_intrinsics.yaml", "image_size: [1]\n", "image_size is not 2 numbers"),
    ],
)
def test_a_bad_calibration_is_a_loss(drive: Path, file: str, content: str, reason: str) -> None:
    put(drive, f"calib/{file}", content)
    recording = transect.open(drive)
    assert len(recording.losses) == 1
    assert reason in recording.losses[0].reason
    assert len(recording["applanix/lidar_poses"]) == 4


def test_a_scan_or_an_image_that_is_cut_is_reported(drive: Path) -> None:
    put(drive, f"lidar/{T0_US}.bin", (drive / f"lidar/{T0_US}.bin").read_bytes()[:-3])
    put(drive, f"lidar/{T0_US + 100_000}.bin", b"")
    put(drive, f"radar/{T0_US}.png", png(np.zeros((3, 11))))
    recording = transect.open(drive)
    assert len(recording["lidar"]) == 2
    assert len(recording["lidar"][0].value) == 2
    assert {loss[0] for loss in losses(recording)} == {f"lidar/{T0_US}.bin", f"lidar/{T0_US + 100_000}.bin"}
    with pytest.raises(ParseError, match="no polar radar image"):
        _ = recording["radar"][0].value


# Results of the odometry benchmark


def result(attitudes: Sequence[Matrix]) -> str:
    """Return lines as eval/odometry.md has them: T_vk_i, with the car 10 m further east at each."""
    lines: list[str] = []
    for i, R in enumerate(attitudes):
        T_vehicle_world = np.hstack([R.T, -R.T @ [[10.0 * i], [2.0], [0.5]]])
        lines.append(" ".join([str(T0_US + i), *(repr(float(v)) for v in T_vehicle_world.ravel())]) + "\n")
    return "".join(lines)


def open_result(path: Path, text: str) -> Recording:
    put(path, "boreas-2021-08-05-13-34.txt", text)
    return transect.open(path / "boreas-2021-08-05-13-34.txt")


def test_a_result_is_the_path_of_the_vehicle_in_the_world(tmp_path: Path) -> None:
    recording = open_result(tmp_path, result([standing(*hill) for hill in HILLS]))
    stream = recording["Trajectory"]
    assert (recording.format, stream.type, stream.role, stream.child) == (
        "boreas",
        Pose,
        "estimate",
        "applanix",
    )
    assert stream.t_ns.tolist() == [(T0_US + i) * 1000 for i in range(4)]
    np.testing.assert_allclose(stream.array("x", "y", "z"), [[10 * i, 2, 0.5] for i in range(4)], atol=1e-12)
    np.testing.assert_allclose(matrices(stream), [standing(*hill) for hill in HILLS], atol=1e-12)
    assert transect.open(tmp_path)["Trajectory"].t_ns.tolist() == stream.t_ns.tolist()


def test_a_result_in_the_plane_is_the_path_of_the_radar(tmp_path: Path) -> None:
    flat = result([passive(2, 0.1 * i) for i in range(4)]).replace(" -0.5\n", " 0.0\n")
    assert open_result(tmp_path, flat)["Trajectory"].child == "radar"


def test_bad_lines_of_a_result_are_lost(tmp_path: Path) -> None:
    lines = result([standing(*hill) for hill in (*HILLS, *HILLS)]).splitlines(keepends=True)
    numbers = lines[2].split()
    lines[2] = " ".join([numbers[0], "3.0", *numbers[2:]]) + "\n"
    lines[5] = lines[5].replace(" ", " x", 1)
    lines[6] = "1 2 3\n"
    lines.insert(7, lines[7].replace(str(T0_US)[:13], str(T0_US)[:10], 1))
    recording = open_result(tmp_path, "".join(lines))
    assert recording["Trajectory"].t_ns.tolist() == [(T0_US + i) * 1000 for i in (0, 1, 3, 4, 7)]
    assert sorted((line, reason) for _, line, _, reason in losses(recording)) == [
        (3, "the matrix is no rotation"),
        (6, "text where a number should be"),
        (7, "not 13 fields"),
        (8, "the time is in another unit than the first"),
    ]


def test_thirteen_numbers_that_are_no_pose_are_not_taken(tmp_path: Path) -> None:
    put(tmp_path, "numbers.txt", f"{T0_US} {' '.join(['1.5'] * 12)}\n" * 5)
    assert not said_of(tmp_path / "numbers.txt", "boreas")
