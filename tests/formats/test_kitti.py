"""KITTI raw drives, odometry sequences and pose files, hand-made after the development kits' readme files."""

from __future__ import annotations

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
from transect.formats.kitti.oxts import OXTS
from transect.formats.shared.images import encode_image
from transect.recording import Recording, stream_of_values
from transect.types import Image, Imu, NavFix, Odometry, PointCloud, Pose, Twist

STAMPS = """2011-09-30 12:08:26.403042304
2011-09-30 12:08:26.507540992
2011-09-30 12:08:26.610835712
"""
T_NS = [1317384506403042304, 1317384506507540992, 1317384506610835712]
PACKET = (
    "49.05349304789598 8.39721998765449 113.11204528806999 0.04639000000000 0.00972900000000 "
    "-3.05417498038470 -0.96664699572200 -11.46267377701100 11.50278260417200 0.00566649892757 "
    "0.05684849170355 -0.24564946046682 2.29976693059022 9.60400659891081 -0.15513867440169 "
    "1.83610698047628 9.68757744475609 -0.02776516775726 0.00852361897934 0.04793661907718 "
    "-0.02737106135888 0.00660649706107 0.04844920233976 0.01345362404707 0.01131370849898 "
    "4 10 -1 -1 -1\n"
)
CAM_TO_CAM = """calib_time: 09-Jan-2012 13:59:33
corner_dist: 9.950000e-02
S_00: 1.392000e+03 5.120000e+02
K_00: 9.786977e+02 0.000000e+00 6.900000e+02 0.000000e+00 9.717435e+02 2.497222e+02 0.000000e+00 0.000000e+00 1.000000e+00
S_rect_00: 1.226000e+03 3.700000e+02
R_rect_00: 9.999280e-01 8.085985e-03 -8.866797e-03 -8.123205e-03 9.999583e-01 -4.169750e-03 8.832711e-03 4.241477e-03 9.999520e-01
P_rect_00: 7.070912e+02 0.000000e+00 6.018873e+02 0.000000e+00 0.000000e+00 7.070912e+02 1.831104e+02 0.000000e+00 0.000000e+00 0.000000e+00 1.000000e+00 0.000000e+00
S_rect_01: 1.226000e+03 3.700000e+02
P_rect_01: 7.070912e+02 0.000000e+00 6.018873e+02 -3.798145e+02 0.000000e+00 7.070912e+02 1.831104e+02 0.000000e+00 0.000000e+00 0.000000e+00 1.000000e+00 0.000000e+00
"""  # noqa: E501
VELO_TO_CAM = """calib_time: 15-Mar-2012 11:45:23
R: 7.027555e-03 -9.999753e-01 2.599616e-05 -2.254837e-03 -4.184312e-05 -9.999975e-01 9.999728e-01 7.027479e-03 -2.255075e-03
T: -7.137748e-03 -7.482656e-02 -3.336324e-01
delta_f: 0.000000e+00 0.000000e+00
"""  # noqa: E501
IMU_TO_VELO = """calib_time: 25-May-2012 16:47:16
R: 9.999976e-01 7.553071e-04 -2.035826e-03 -7.854027e-04 9.998898e-01 -1.482298e-02 2.024406e-03 1.482454e-02 9.998881e-01
T: -8.086759e-01 3.195559e-01 -7.997231e-01
"""  # noqa: E501
TURN = "0 -1 0 {x} 1 0 0 {y} 0 0 1 {z}\n"
"""A pose a quarter turn to the left: x' = -y, y' = x."""


def picture(number: int) -> np.ndarray:
    return np.arange(number, number + 12, dtype=np.uint8).reshape(3, 4)


def points(number: int) -> np.ndarray:
    return np.arange(number, number + 8, dtype="<f4").reshape(2, 4)


def make_drive(folder: Path) -> Path:
    for camera in ("image_00", "image_01"):
        put(folder, f"{camera}/timestamps.txt", STAMPS)
        for i in range(2):
            put(folder, f"{camera}/data/{i:010d}.png", encode_image(Image(picture(i)), ".png"))
    put(folder, "velodyne_points/timestamps.txt", STAMPS)
    for i in range(3):
        put(folder, f"velodyne_points/data/{i:010d}.bin", points(i).tobytes())
    put(folder, "oxts/timestamps.txt", STAMPS)
    put(folder, "oxts/dataformat.txt", "lat:   latitude of the oxts-unit (deg)\n")
    for i in range(3):
        put(folder, f"oxts/data/{i:010d}.txt", PACKET.replace("49.0", f"4{i}.0"))
    put(folder, "calib_cam_to_cam.txt", CAM_TO_CAM)
    put(folder, "calib_velo_to_cam.txt", VELO_TO_CAM)
    put(folder, "calib_imu_to_velo.txt", IMU_TO_VELO)
    put(folder, "gt_poses.txt", "".join(TURN.format(x=i, y=0, z=10 * i) for i in range(3)))
    return folder


def make_sequence(folder: Path) -> Path:
    """Write `sequences/06` and `poses/06.txt` as the odometry benchmark lays them out; return the former."""
    sequence = folder / "sequences" / "06"
    put(sequence, "times.txt", "0.000000e+00\n1.037359e-01\n2.073381e-01\n")
    for i in range(3):
        put(sequence, f"image_0/{i:06d}.png", encode_image(Image(picture(i)), ".png"))
        put(sequence, f"image_1/{i:06d}.png", encode_image(Image(picture(i)), ".png"))
        put(sequence, f"velodyne/{i:06d}.bin", points(i).tobytes())
    P0 = "7.07e+02 0 6.01e+02 0 0 7.07e+02 1.83e+02 0 0 0 1 0"
    Tr = "0 -1 0 -0.01 0 0 -1 -0.06 1 0 0 -0.33"
    put(sequence, "calib.txt", f"P0: {P0}\nP1: {P0.replace('01e+02 0 0', '01e+02 -3.798e+02 0')}\nTr: {Tr}\n")
    put(folder, "poses/06.txt", "".join(TURN.format(x=i, y=0, z=0) for i in range(3)))
    return sequence


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    return make_drive(tmp_path / "2011_09_30" / "2011_09_30_drive_0020_sync")


@pytest.fixture
def sequence(tmp_path: Path) -> Path:
    return make_sequence(tmp_path / "dataset")


def test_a_drive_is_recognised_and_holds_its_streams(drive: Path) -> None:
    assert said_of(drive, "kitti").confidence > 0.9
    recording = opened(drive, "kitti")
    assert [(s.name, s.type, s.clock, len(s)) for s in recording] == [
        ("image_00", Image, "utc", 2),
        ("image_01", Image, "utc", 2),
        ("velodyne", PointCloud, "utc", 3),
        ("oxts/fix", NavFix, "utc", 3),
        ("oxts/imu", Imu, "utc", 3),
        ("oxts/velocity", Twist, "utc", 3),
        ("poses/gt_poses", Pose, "utc", 3),
    ]
    assert losses(recording) == []
    assert recording.notes == ("KITTI's stamps name no time zone: they are taken as UTC",)


def test_frames_are_timed_by_the_line_of_their_number(drive: Path) -> None:
    (drive / "image_00/data/0000000000.png").unlink()
    stream = opened(drive, "kitti")["image_00"]
    assert stream.t_ns.tolist() == T_NS[1:2]
    np.testing.assert_array_equal(stream[0].value.data, picture(1))


def test_cameras_are_the_rectified_ones(drive: Path) -> None:
    recording = opened(drive, "kitti")
    left, right = recording.cameras["image_00"], recording.cameras["image_01"]
    assert (left.width, left.height, left.distortion) == (1226, 370, "none")
    np.testing.assert_array_equal(left.K, [[707.0912, 0, 601.8873], [0, 707.0912, 183.1104], [0, 0, 1]])
    assert right.baseline == pytest.approx(379.8145 / 707.0912)
    assert recording["image_01"][0].value.camera is right
    T = recording.frames.lookup("image_00", "image_01")
    np.testing.assert_allclose(T[:3, 3], [379.8145 / 707.0912, 0, 0])


def test_the_lidar_and_the_inertial_unit_are_placed(drive: Path) -> None:
    """The kit's readme: x_cam0 = R_rect_00 (R|T)_velo_to_cam x_velo; forward is ahead of the lens."""
    frames = opened(drive, "kitti").frames
    ahead = frames.lookup("image_00", "velo") @ [10.0, 0.0, 0.0, 1.0]
    assert ahead[2] == pytest.approx(9.66, abs=0.02)
    assert frames.lookup("velo", "imu")[:3, 3].tolist() == [-0.8086759, 0.3195559, -0.7997231]


def test_a_packet_becomes_position_motion_and_velocity(drive: Path) -> None:
    recording = opened(drive, "kitti")
    packet = dict(zip(OXTS, [float(v) for v in PACKET.split()], strict=True))
    fix, imu, velocity = (recording[f"oxts/{name}"] for name in ("fix", "imu", "velocity"))
    assert fix.t_ns.tolist() == T_NS
    assert fix["lon"][0] == np.radians(packet["lon"])
    assert imu.array("acc_x", "acc_y", "acc_z")[0].tolist() == [packet[k] for k in ("ax", "ay", "az")]
    assert imu.array("gyro_x", "gyro_y", "gyro_z")[0].tolist() == [packet[k] for k in ("wx", "wy", "wz")]
    assert velocity.array("vx", "vy", "vz")[0].tolist() == [packet[k] for k in ("vf", "vl", "vu")]
    assert (fix["std_north"][0], fix["satellites"][0]) == (packet["pos_accuracy"], 10)


def test_the_attitude_is_turned_from_enu_to_ned(drive: Path) -> None:
    """KITTI's yaw is 0 to the east and grows to the left; its pitch grows with the front going down."""
    fix = opened(drive, "kitti")["oxts/fix"]
    assert fix["yaw"][0] == np.pi / 2 + 3.05417498038470
    assert fix["pitch"][0] == -0.009729
    heading = np.array([np.cos(fix["yaw"][0]), np.sin(fix["yaw"][0])])
    velocity = np.array([-0.966646995722, -11.462673777011])  # north, east: the car drives forwards
    assert heading @ velocity / np.linalg.norm(velocity) == pytest.approx(1.0, abs=1e-4)


def test_clouds_have_points_and_intensity(drive: Path) -> None:
    cloud = opened(drive, "kitti")["velodyne"][1].value
    np.testing.assert_array_equal(cloud.points, points(1)[:, :3])
    np.testing.assert_array_equal(cloud.fields["intensity"], points(1)[:, 3])


def test_poses_take_points_of_camera_0_to_its_first_place(drive: Path) -> None:
    stream = opened(drive, "kitti")["poses/gt_poses"]
    assert (stream.role, stream.frame, stream.child) == ("truth", "cam0_first", "image_00")
    assert stream.array("x", "y", "z").tolist() == [[0, 0, 0], [1, 0, 10], [2, 0, 20]]
    half = np.sqrt(0.5)
    np.testing.assert_allclose(stream.array("qx", "qy", "qz", "qw"), [[0, 0, half, half]] * 3, atol=1e-15)


def test_trajectories_beside_a_drive_are_its_truth_if_they_are_called_so(drive: Path) -> None:
    row = "1317384506.5 1 2 3 0 0 0 1\n"
    (drive / "gt_06.tum").write_text(row)
    (drive / "orb.tum").write_text(f"# frame map, child imu\n{row}")
    recording = transect.open(drive)
    assert [(s.name, s.role, s.frame, s.child) for s in recording if len(s) == 1] == [
        ("poses/gt_06", "truth", "cam0_first", "image_00"),
        ("poses/orb", "estimate", "map", "imu"),
    ]
    assert recording["poses/gt_06"].t_ns.tolist() == [1317384506_500000000]


def test_a_written_drive_opens_the_same(tmp_path: Path, drive: Path) -> None:
    recording = opened(drive, "kitti")
    again = rewritten(recording, tmp_path / "again", "kitti")
    assert_same(recording, again, attitude=1e-15)
    assert (tmp_path / "again/image_00/timestamps.txt").read_text() == "".join(
        STAMPS.splitlines(keepends=True)[:2]
    )
    original = drive / "image_00/data/0000000001.png"
    assert (tmp_path / "again/image_00/data/0000000001.png").read_bytes() == original.read_bytes()


def test_a_zip_opens_like_its_folder(tmp_path: Path, drive: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", drive.parent, drive.name)
    assert_same(opened(drive, "kitti"), opened(Path(archive), "kitti"))


def test_a_sliced_drive_is_renumbered(tmp_path: Path, drive: Path) -> None:
    part = opened(drive, "kitti").slice(T_NS[1], None)
    again = rewritten(part, tmp_path / "part", "kitti")
    assert_same(part, again, attitude=1e-15)
    assert again["velodyne"].t_ns.tolist() == T_NS[1:]


def test_an_odometry_sequence_has_seconds_and_its_poses_elsewhere(sequence: Path) -> None:
    assert said_of(sequence, "kitti").confidence > 0.9
    recording = opened(sequence, "kitti")
    assert [(s.name, s.clock, len(s)) for s in recording] == [
        ("image_0", "device", 3),
        ("image_1", "device", 3),
        ("velodyne", "device", 3),
        ("poses/06", "device", 3),
    ]
    assert recording["image_0"].t_ns.tolist() == [0, 103735900, 207338100]
    assert recording["poses/06"].role == "truth"
    assert recording.cameras["image_1"].baseline == pytest.approx(379.8 / 707)
    np.testing.assert_allclose(
        recording.frames.lookup("image_0", "velo") @ [1, 0, 0, 1], [-0.01, -0.06, 0.67, 1]
    )
    assert losses(recording) == []
    assert {file.path for file in recording.provenance.sources} == {"06.txt", "times.txt", "calib.txt"}


def test_a_written_sequence_opens_the_same(tmp_path: Path, sequence: Path) -> None:
    recording = opened(sequence, "kitti")
    again = rewritten(recording, tmp_path / "again", "kitti")
    assert_same(recording, again, attitude=1e-15)
    assert (tmp_path / "again/times.txt").read_text().splitlines()[1] == "0.103735900"
    assert (tmp_path / "again/image_1/000002.png").exists()


def test_the_calibration_of_the_day_is_found_above_the_drive(drive: Path) -> None:
    for name in ("calib_cam_to_cam.txt", "calib_velo_to_cam.txt", "calib_imu_to_velo.txt"):
        (drive / name).rename(drive.parent / name)
    recording = opened(drive, "kitti")
    assert recording.cameras["image_00"].width == 1226
    assert "calib_cam_to_cam.txt" in {file.path for file in recording.provenance.sources}
    whole_day = opened(drive.parent, "kitti")
    assert whole_day.name == drive.name
    assert whole_day.cameras["image_00"].width == 1226
    make_drive(drive.parent / "2011_09_30_drive_0027_sync")
    assert " but " in said_of(drive.parent, "kitti").reason


def test_a_pose_file_alone_is_numbered_or_timed(tmp_path: Path) -> None:
    poses = tmp_path / "KITTI_00_gt.txt"
    put(tmp_path, poses.name, TURN.format(x=0, y=0, z=0) + TURN.format(x=1, y=0, z=0))
    assert said_of(poses, "kitti")
    stream = opened(poses, "kitti")["Trajectory"]
    assert (stream.clock, stream.t_ns.tolist(), stream.role) == ("index", [0, 10**9], "truth")
    put(tmp_path, "stamps.txt", "0.5\n1.5\n")
    assert opened(poses, "kitti", times=str(tmp_path / "stamps.txt"))["Trajectory"].t_ns.tolist() == [
        5 * 10**8,
        15 * 10**8,
    ]
    put(tmp_path, "KITTI_00_gt_times.txt", "0.000000e+00\n1.037359e-01\n")
    stream = opened(poses, "kitti")["Trajectory"]
    assert (stream.clock, stream.t_ns.tolist()) == ("device", [0, 103735900])
    with pytest.raises(UsageError, match="there is no file"):
        opened(poses, "kitti", times="nowhere.txt")


@pytest.mark.parametrize("path", ["poses.txt", "folder"])
def test_written_poses_open_the_same(tmp_path: Path, path: str) -> None:
    put(tmp_path, "a_gt.txt", "".join(TURN.format(x=0.1 * i, y=1 / 3, z=-1e-9) for i in range(3)))
    put(tmp_path, "a_gt_times.txt", "100000000.5\n100000001.25\n100000000.125\n")
    recording = opened(tmp_path / "a_gt.txt", "kitti")
    again = rewritten(recording, tmp_path / path, "kitti")
    assert again["Trajectory"].t_ns.tolist() == recording["Trajectory"].t_ns.tolist()
    columns = ("x", "y", "z", "qx", "qy", "qz", "qw")
    np.testing.assert_allclose(
        again["Trajectory"].array(*columns), recording["Trajectory"].array(*columns), rtol=0, atol=1e-15
    )


@given(st.lists(st.floats(-90, 90), min_size=1, max_size=5), st.floats(-3.14159, 3.14159))
def test_every_packet_survives_being_written(
    tmp_path_factory: pytest.TempPathFactory, latitudes: list[float], yaw: float
) -> None:
    folder = tmp_path_factory.mktemp("oxts")
    put(folder, "oxts/timestamps.txt", "".join(f"2011-09-30 12:08:{i:02d}.0\n" for i in range(5)))
    for i, latitude in enumerate(latitudes):
        text = PACKET.replace("49.05349304789598", repr(latitude)).replace("-3.05417498038470", repr(yaw))
        put(folder, f"oxts/data/{i:010d}.txt", text)
    recording = opened(folder, "kitti")
    assert_same(recording, rewritten(recording, folder / "again", "kitti"))


def test_recordings_of_other_formats_become_a_drive(tmp_path: Path) -> None:
    t = np.array(T_NS)
    fix = stream_of_values("Gnss", t, {"lat": np.ones(3), "lon": np.ones(3), "alt": np.ones(3)}, type=NavFix)
    imu = stream_of_values("Imu", t + 1, {"acc_x": np.ones(3)}, type=Imu)
    odometry = stream_of_values("Odom", t, {"x": np.ones(3)}, type=Odometry)
    said = transect.formats.write(Recording("r", (fix, imu, odometry)), tmp_path / "r", "kitti")
    assert said == (
        "Odom: KITTI has no place for Odometry",
        "Imu: a KITTI drive has one oxts unit with one time axis",
    )
    again = opened(tmp_path / "r", "kitti")
    assert again["oxts/fix"]["lat"].tolist() == [1.0] * 3
    assert [stream.name for stream in again] == ["oxts/fix"]
    with pytest.raises(UsageError, match="no images"):
        transect.formats.write(Recording("r", (odometry,)), tmp_path / "s", "kitti")
    with pytest.raises(UsageError, match="exists already"):
        transect.formats.write(Recording("r", (fix,)), tmp_path / "r", "kitti")


def test_a_line_that_is_no_time_loses_its_frame_only(drive: Path) -> None:
    put(drive, "velodyne_points/timestamps.txt", STAMPS.replace("12:08:26.507540992", "nonsense"))
    recording = opened(drive, "kitti")
    assert recording["velodyne"].t_ns.tolist() == [T_NS[0], T_NS[2]]
    assert losses(recording) == [("velodyne_points/timestamps.txt", 2, 1, "the line is no time")]
    with pytest.raises(ParseError) as caught:
        transect.open(drive, format="kitti", strict=True)
    assert caught.value.where == "velodyne_points/timestamps.txt:2"


def test_an_empty_line_among_the_times_keeps_the_numbering(drive: Path) -> None:
    lines = STAMPS.splitlines(keepends=True)
    put(drive, "velodyne_points/timestamps.txt", lines[0] + "\r\n" + lines[2])
    assert opened(drive, "kitti")["velodyne"].t_ns.tolist() == [T_NS[0], T_NS[2]]


def test_the_end_of_a_truncated_list_of_times_is_rejected(drive: Path) -> None:
    put(drive, "velodyne_points/timestamps.txt", STAMPS[:-5])
    recording = opened(drive, "kitti")
    assert recording["velodyne"].t_ns.tolist() == T_NS[:2]
    assert [(loss.line, loss.reason) for loss in recording.losses] == [
        (None, "velodyne_points/timestamps.txt has only 2 times"),
        (3, "the last line is cut off"),
    ]


def test_windows_line_ends_do_no_harm(drive: Path) -> None:
    put(drive, "velodyne_points/timestamps.txt", STAMPS.replace("\n", "\r\n"))
    put(drive, "calib_cam_to_cam.txt", CAM_TO_CAM.replace("\n", "\r\n"))
    recording = opened(drive, "kitti")
    assert recording["velodyne"].t_ns.tolist() == T_NS
    assert recording.cameras["image_00"].width == 1226


def test_files_beyond_the_times_are_a_loss(drive: Path) -> None:
    put(drive, "velodyne_points/data/0000000003.bin", points(3).tobytes())
    put(drive, "velodyne_points/data/0000000099.bin", points(3).tobytes())
    recording = opened(drive, "kitti")
    reason = "velodyne_points/timestamps.txt has only 3 times"
    assert losses(recording) == [("velodyne_points/data/0000000003.bin", None, 2, reason)]


def test_a_drive_cut_out_of_a_longer_one_pairs_files_and_times_in_order(drive: Path) -> None:
    for folder in ("velodyne_points", "oxts"):
        for path in sorted((drive / folder / "data").iterdir()):
            path.rename(path.with_name(f"{int(path.stem) + 400:010d}{path.suffix}"))
    recording = opened(drive, "kitti")
    assert losses(recording) == []
    assert recording["velodyne"].t_ns.tolist() == recording["oxts/imu"].t_ns.tolist() == T_NS
    np.testing.assert_array_equal(recording["velodyne"][2].payload.points[:, 0], points(2)[:, 0])
    note = "files from number 400 on are paired with the 3 times in order"
    assert {f"velodyne_points: {note}", f"oxts: {note}"} <= set(recording.all_notes)


def test_a_folder_without_times_is_numbered(drive: Path) -> None:
    (drive / "image_01/timestamps.txt").unlink()
    stream = opened(drive, "kitti")["image_01"]
    assert (stream.clock, stream.t_ns.tolist()) == ("index", [0, 10**9])


def test_a_bad_packet_is_lost_alone(drive: Path) -> None:
    put(drive, "oxts/data/0000000001.txt", PACKET.replace("113.11204528806999", "x"))
    recording = opened(drive, "kitti")
    assert recording["oxts/fix"].t_ns.tolist() == [T_NS[0], T_NS[2]]
    assert losses(recording) == [("oxts/data/0000000001.txt", None, 1, "it does not hold 30 numbers")]


def test_an_empty_list_of_times_leaves_no_frame(drive: Path) -> None:
    put(drive, "velodyne_points/timestamps.txt", "")
    recording = opened(drive, "kitti")
    assert len(recording["velodyne"]) == 0
    assert losses(recording)[0][2] == 3


def test_a_cut_cloud_keeps_its_whole_points(drive: Path) -> None:
    put(drive, "velodyne_points/data/0000000000.bin", points(0).tobytes()[:-3])
    recording = opened(drive, "kitti")
    assert len(recording["velodyne"][0].value) == 1
    assert [loss.where for loss in recording.losses] == ["velodyne_points/data/0000000000.bin@16"]


def test_times_that_repeat_or_go_back_are_kept(drive: Path) -> None:
    lines = STAMPS.splitlines(keepends=True)
    put(drive, "velodyne_points/timestamps.txt", lines[1] + lines[1] + lines[0])
    timing = opened(drive, "kitti")["velodyne"].timing
    assert (timing.count, timing.backwards, timing.repeated) == (3, 1, 1)


def test_poses_that_are_no_rotation_are_lost_and_located(tmp_path: Path) -> None:
    lines = [TURN.format(x=i, y=0, z=0) for i in range(4)]
    lines[1] = lines[1].replace("-1", "-2")
    lines[2] = lines[2].replace("0 -1 0", "0 1 0")
    lines[3] = lines[3].replace("0 0 1", "0 nan 1")
    put(tmp_path, "a.txt", "".join(lines))
    recording = opened(tmp_path / "a.txt", "kitti")
    stream = recording["Trajectory"]
    assert stream.t_ns.tolist() == [0, 3 * 10**9]
    assert np.isnan(stream["qw"]).tolist() == [False, True]
    assert stream["x"].tolist() == [0, 3]
    assert losses(recording) == [("a.txt", 2, 2, "the matrix is no rotation")]


@pytest.mark.parametrize(("old", "new"), [
    ("P_rect_01: 7.070912e+02", "P_rect_01: x"),
    ("P_rect_01: 7.070912e+02", "P_rect_01: nan"),
    ("P_rect_01: 7.070912e+02", "P_rect_01: 0 0"),
    ("P_rect_01: 7.070912e+02 0.000000e+00", "P_rect_01: 0 0"),
])  # fmt: skip
def test_a_bad_projection_costs_that_camera_only(drive: Path, old: str, new: str) -> None:
    put(drive, "calib_cam_to_cam.txt", CAM_TO_CAM.replace(old, new))
    recording = opened(drive, "kitti")
    assert set(recording.cameras) == {"image_00"}
    assert len(recording["image_01"]) == 2
    assert [loss.file for loss in recording.losses] == ["calib_cam_to_cam.txt"]


def test_a_lidar_that_is_not_placed_rigidly_is_left_unplaced(drive: Path) -> None:
    put(drive, "calib_velo_to_cam.txt", VELO_TO_CAM.replace("9.999728e-01", "5"))
    recording = opened(drive, "kitti")
    assert "image_00" not in recording.frames or "velo" not in {
        e.child for e in recording.frames.edges if e.parent == "image_00"
    }
    assert [loss.file for loss in recording.losses] == ["calib_velo_to_cam.txt"]


@given(
    at=st.integers(0, 3 * len(TURN.format(x=0, y=0, z=0)) - 1),
    letter=st.sampled_from([b"x", b"\n", b" ", b"\0", b'"', b"\xff", b"9"]),
)
def test_no_pose_is_lost_in_silence(tmp_path_factory: pytest.TempPathFactory, at: int, letter: bytes) -> None:
    folder = tmp_path_factory.mktemp("kitti")
    text = "".join(TURN.format(x=i, y=0, z=0) for i in range(3))
    put(folder, "a.txt", damaged(text.encode(), [(at, 1, letter)]))
    recording = opened(folder / "a.txt", "kitti")
    assert len(recording["Trajectory"]) == 3 or recording.losses
