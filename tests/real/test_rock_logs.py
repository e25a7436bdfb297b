"""Real CDFF MessagePack logs and real Rock logs.

Values of the Rock logs are those that the tests of pocolog2msgpack (`test/test.py`) state for the same files;
those of the MessagePack logs were read with `msgpack` alone, or are stated in CDFF's own description.
"""

from pathlib import Path

import msgpack
import numpy as np
import pytest

import transect
from transect.formats import write
from transect.types import Image, Imu, JointState, LaserScan, Record, RigidBodyState


@pytest.fixture(scope="module")
def packed(real_data: Path) -> Path:
    return real_data / "rock_logs" / "msgpack"


@pytest.fixture(scope="module")
def rock(real_data: Path) -> Path:
    return real_data / "rock_logs" / "pocolog"


def test_every_file_opens_without_a_loss(packed: Path, rock: Path):
    logs, rocks = sorted(packed.glob("*.msg")), sorted(rock.glob("*.log"))
    assert (len(logs), len(rocks)) == (8, 10)
    for path, name in [(p, "cdff_msgpack") for p in logs] + [(p, "pocolog") for p in rocks]:
        rec = transect.open(path, strict=True)
        assert rec.format == name
        assert all(len(stream) for stream in rec), path


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_imu_keeps_its_own_perfect_clock(packed: Path, number: int):
    path = packed / f"xsens_imu_0{number}.msg"
    stream = transect.open(path)["calibrated_sensors"]
    raw = msgpack.unpackb(path.read_bytes())["/xsens_imu.calibrated_sensors"]
    assert (stream.type, len(stream)) == (Imu, 100)
    steps = set((np.diff(stream.t_ns) // 1_000_000).tolist())
    assert steps == ({10, 30, 80, 90} if number == 0 else {10})
    assert stream.timing.gap_s == (0.09 if number == 0 else 0.01)
    assert stream.array("acc_x", "acc_y", "acc_z").tolist() == [sample["acc"] for sample in raw]
    assert stream.t_ns.tolist() == [sample["ref_time"]["microseconds"] * 1000 for sample in raw]


def test_the_imu_log_clock_is_up_to_951_ms_late_and_bursty(packed: Path):
    late: list[int] = []
    for path in sorted(packed.glob("xsens_imu_*.msg")):
        rec = transect.open(path)
        stream = rec["calibrated_sensors"]
        assert stream.log_ns is not None
        late.append(int((stream.log_ns - stream.t_ns).max()) // 1_000_000)
        assert np.median(np.diff(stream.log_ns)) <= 15_000
        assert np.diff(stream.log_ns).max() // 1_000_000 in (86, 87)
        assert any("behind sample time" in note and f"{late[-1]}." in note for note in rec.all_notes)
    assert late == [951, 951, 951]


def test_the_pan_tilt_unit_writes_its_quaternions_scalar_first(packed: Path):
    path = packed / "dynamixel_0.msg"
    rec = transect.open(path)
    stream = rec["transforms"]
    assert (stream.type, len(stream)) == (RigidBodyState, 100)
    assert (stream.frame, stream.child) == ("lower_dynamixel", "upper_dynamixel")
    assert any("scalar first" in note for note in rec.all_notes)
    assert any("not estimated" in note and "vx" in note for note in rec.all_notes)
    first = stream[0].value.orientation
    assert first.round(3).tolist() == [0.0, -0.164, 0.0, 0.986]
    assert np.isnan(stream["cov_position"]).all()
    as_cdff = transect.open(path, quaternion="xyzw")["transforms"]
    assert as_cdff[0].value.orientation.round(3).tolist() == [0.986, 0.0, -0.164, 0.0]


def test_images_of_a_log_in_nanoseconds(packed: Path):
    path = packed / "frames2.msg"
    rec = transect.open(path)
    (stream,) = rec.streams
    raw = msgpack.unpackb(path.read_bytes())["/hcru0/pt_stereo_rect/left/image"]
    assert (stream.type, stream.tag, stream.frame) == (Image, "left", "/camera_left")
    assert stream.t_ns.tolist() == [1532433037769027709, 1532433037838941812]
    assert stream.log_ns.tolist() == [1532433037836744066, 1532433037906064777]
    assert sum("counts nanoseconds" in note for note in rec.all_notes) == 2
    for sample, expected in zip(stream, raw, strict=True):
        image = sample.value
        assert image.data.shape == (772, 1032)
        assert image.mode == "gray"
        assert image.data.reshape(-1).tolist() == expected["data"]["data"]
    assert rec.cameras == {}  # its matrix is the identity: not calibrated


def test_a_bit_stream_whose_definition_is_not_known_is_kept(packed: Path):
    path = packed / "asn1_bitstream.msg"
    rec = transect.open(path)
    raw = msgpack.unpackb(path.read_bytes())["/pom_pose"][0]
    assert rec["/pom_pose"].table.column("data").to_pylist() == [bytes(raw["data"])]
    assert any("asn1SccTransformWithCovariance" in note for note in rec.notes)


def test_the_folder_is_one_recording_of_joined_chunks(packed: Path):
    rec = transect.open(packed)
    assert {s.name: len(s) for s in rec} == {
        "/pom_pose": 1,
        "/dynamixel.transforms": 300,
        "/hcru0/pt_stereo_rect/left/image": 2,
        "/xsens_imu.calibrated_sensors": 300,
    }
    assert rec["transforms"].timing.backwards == rec["calibrated_sensors"].timing.backwards == 0
    assert rec["/hcru0/pt_stereo_rect/left/image"][1].value.data.shape == (772, 1032)


def test_configurations_give_frames_and_cameras(real_data: Path):
    rec = transect.open(real_data / "rock_logs" / "cdff_dev_descriptors")
    assert len(rec.frames.edges) == 10
    # The left camera is half a baseline to the left of the colour camera, on the same pan-tilt head.
    left, middle = (rec.frames.lookup("tcp", f"camera_{name}")[:3, 3] for name in ("left", "color"))
    assert (left - middle).round(6).tolist() == [0.0, 0.045, 0.0]
    assert sorted(rec.cameras) == ["/hcru1/pt_stereo_rect/left", "/hcru1/pt_stereo_rect/right"]
    right = rec.cameras["/hcru1/pt_stereo_rect/right"]
    assert right.K[0, 0] == 867.356
    assert right.baseline == pytest.approx(0.0900125)


def test_integers_and_strings(rock: Path):
    integers = transect.open(rock / "integers.0.log")["/messages.messages"]
    assert integers["value"].tolist() == [1337] * 5
    strings = transect.open(rock / "strings.0.log")["/messages.messages"]
    assert strings["value"] == ["1337"] * 6
    assert (np.diff(strings.t_ns) > 0).all()


def test_vectors(rock: Path):
    numbers = transect.open(rock / "vector_int.0.log")["/message_producer.messages"]
    assert numbers["value"].tolist() == [[132, 2054829, -233235]] * 5
    assert numbers.log_ns[1] == 1500996133689733 * 1000
    words = transect.open(rock / "vector_string.0.log")["/message_producer.messages"]
    assert words.table.column("value").to_pylist() == [["hello", "world"]] * 5


def test_a_rigid_body_state(rock: Path):
    rec = transect.open(rock / "rigid_body_state.0.log")
    stream = rec["/message_producer.messages"]
    value = stream[0].value
    assert (stream.type, len(stream), stream.child, stream.frame) == (RigidBodyState, 2, "source", "target")
    assert value.position.tolist() == [1.23, 2.52, 2.13]
    assert value.orientation.tolist() == [1.0, 5.0, -2.0, 2.0]  # im, re
    assert stream["cov_position"][0].tolist() == np.eye(3).reshape(-1).tolist()
    assert any("2 of 2 samples have no time of their own" in note for note in rec.all_notes)


def test_a_laser_scan(rock: Path):
    stream = transect.open(rock / "laser_scan.0.log")["/message_producer.messages"]
    value = stream[0].value
    assert (stream.type, len(stream)) == (LaserScan, 2)
    assert stream.t_ns[0] == 1501161448845619 * 1000
    assert value.ranges.tolist() == [0.030, 0.031]
    assert (value.start_angle, value.angle_increment, stream["speed"][0]) == (0.0, 0.1, 0.1)
    assert (value.range_min, value.range_max) == (0.020, 0.040)


def test_joints(rock: Path):
    one = transect.open(rock / "joint_state.0.log")["/message_producer.messages"]
    assert (one.type, len(one)) == (JointState, 3)
    names = ("position", "velocity", "effort", "raw", "acceleration")
    assert [float(one[name][0, 0]) for name in names] == [1.0, 2.0, 3.0, 4.0, 5.0]
    two = transect.open(rock / "joints.0.log")["/message_producer.messages"]
    assert two.t_ns.tolist() == [1502180215405251000, 1502180216405234000]
    assert two.log_ns.tolist() == [1502180215405385000, 1502180216405284000]
    assert two["position"].tolist() == [[1.0, 2.0]] * 2
    assert two.table.column("names").to_pylist() == [["j1", "j2"]] * 2
    assert np.isnan(two["velocity"]).all()


def test_a_depth_map_of_a_lidar_stays_a_record(rock: Path):
    stream = transect.open(rock / "depth_map.0.log")["/message_producer.messages"]
    assert (stream.type, len(stream)) == (Record, 2)
    assert stream["vertical_projection"] == ["POLAR"] * 2
    assert stream["horizontal_projection"] == ["PLANAR"] * 2  # bytes 01 00 00 00, which its XML calls so


def test_an_image_that_a_32_bit_machine_logged(rock: Path):
    path = rock / "camera32bit.0.log"
    stream = transect.open(path)["camera_a.frame"]
    image = stream[0].value
    assert (image.data.shape, image.mode) == ((360, 640), "bayer_grbg")
    # The only block is the last of the file; pixels come before 5 attributes, the size and five numbers.
    content = path.read_bytes()
    at = content.index((640 * 360).to_bytes(8, "little")) + 8
    assert image.data.tobytes() == content[at : at + 640 * 360]
    assert stream[0].row["attributes.name_"][0] == "FrameCount"


def test_real_logs_survive_both_writers(packed: Path, rock: Path, tmp_path: Path):
    for path in (packed / "xsens_imu_01.msg", packed / "dynamixel_2.msg", rock / "joints.0.log"):
        recording = transect.open(path)
        for number, name in enumerate(("cdff_msgpack", "pocolog")):
            target = tmp_path / f"{path.stem}{number}.0.{'msg' if name == 'cdff_msgpack' else 'log'}"
            write(recording, target, name)
            stream, found = recording.streams[0], transect.open(target).streams[0]
            kept = [n for n in stream.table.column_names if n != "logical_ns"]
            assert repr(found.table.select(kept).to_pylist()) == repr(stream.table.select(kept).to_pylist())
