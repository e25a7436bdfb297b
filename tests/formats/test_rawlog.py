"""MRPT rawlogs, made byte by byte after what its classes write (`serializeTo` of each, versions beside)."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from tests.formats.recordings import opened, said_of

import transect
from transect.errors import ParseError
from transect.types import Imu, LaserScan, Odometry

T0_NS = 1_400_843_350_000_000_000
EPOCH_OFFSET_TICKS = 11_644_473_600 * 10**7
"""Tenths of a microsecond from 1601 to 1970."""


def named(name: str, version: int, *fields: bytes) -> bytes:
    return bytes([0x80 | len(name)]) + name.encode() + bytes([version]) + b"".join(fields) + b"\x88"


def text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode()


def stamp(t_ns: int) -> bytes:
    return struct.pack("<Q", t_ns // 100 + EPOCH_OFFSET_TICKS)


def planar(x: float, y: float, phi: float) -> bytes:
    return named("CPose2D", 1, struct.pack("<3d", x, y, phi))


def matrix(values: np.ndarray, name: str = "CMatrix", kind: str = "<f4") -> bytes:
    return named(name, 0, struct.pack("<2I", *values.shape), values.astype(kind).tobytes())


QUARTER = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
T_QUARTER = np.block([[QUARTER, np.array([[2.0], [0.5], [0.25]])], [np.zeros((1, 3)), np.ones((1, 1))]])
POSES = {
    0: named("CPose3D", 0, matrix(T_QUARTER)),
    1: named("CPose3D", 1, matrix(T_QUARTER, "CMatrixD", "<f8")),
    2: named("CPose3D", 2, struct.pack("<7d", 2, 0.5, 0.25, np.sqrt(0.5), 0, 0, np.sqrt(0.5))),
    3: named("CPose3D", 3, struct.pack("<3d", 2, 0.5, 0.25), QUARTER.tobytes()),
}
RANGES = [1.5, 0.0, 81.91, 2.5, 3.5]
VALID = bytes([1, 1, 0, 0, 1])


def scan(
    version: int = 6, t_ns: int = T0_NS, *, leftwards: bool = True, label: str = "SICK", pose: int = 2
) -> bytes:
    fields = [struct.pack("<f?f", np.pi, leftwards, 81.0), POSES[pose]]
    fields += [matrix(np.zeros((6, 6)))] if version < 6 else []
    fields += [struct.pack("<I5f", 5, *RANGES)]
    fields += [VALID] if version >= 1 else []
    fields += [struct.pack("<f", 0.25)] if version >= 2 else []
    fields += [stamp(t_ns)] if version >= 3 else []
    fields += [struct.pack("<f", 0.125)] if version >= 4 else []
    fields += [text(label), struct.pack("<d", 0.0)] if version >= 5 else []
    fields += [b"\x01" + struct.pack("<5i", 7, 8, 9, 10, 11)] if version >= 7 else []
    return named("CObservation2DRangeScan", version, *fields)


def odometry(version: int = 1, t_ns: int = T0_NS, x: float = 1.0) -> bytes:
    fields = [planar(x, 2.0, np.pi / 2), text("WHEELS"), stamp(t_ns)]
    if version == 1:
        fields += [struct.pack("<?2i?2f", True, 381, -381, True, 2.5, -0.0625)]
    if version == 2:
        fields += [struct.pack("<?", False), struct.pack("<?3d", True, 2.5, 0.5, -0.0625)]
    return named("CObservationOdometry", version, *fields)


def motion(x: float, phi: float, version: int = 5, t_ns: int | None = None) -> bytes:
    fields = [struct.pack("<I", 0), planar(x, 0, phi), struct.pack("<I6f", 0, *[0.5] * 6)]
    fields += [struct.pack("<I", 300), struct.pack("<4f", *[0.5] * 4)]
    fields += [struct.pack("<2f", 0.5, 0.5)] if version >= 5 else []
    if version >= 7:
        fields += [struct.pack("<?3d", True, 1, 2, 3), struct.pack("<?", False)]
    else:
        fields += [struct.pack("<?2f?2i", False, 0, 0, False, 0, 0)]
    if version >= 6:
        fields += [struct.pack("<Q", 0) if t_ns is None else stamp(t_ns)]
    return named("CActionRobotMovement2D", version, *fields)


def actions(*of: bytes) -> bytes:
    return named("CActionCollection", 0, struct.pack("<I", len(of)), *of)


def frame(*of: bytes, version: int = 2) -> bytes:
    head = [struct.pack("<I", 77)] if version < 2 else []
    head += [struct.pack("<Q", 0)] if version == 0 else []
    return named("CSensoryFrame", version, *head, struct.pack("<I", len(of)), *of)


def imu(version: int = 3) -> bytes:
    values = np.arange(31.0)
    there = np.ones(31, np.uint8)
    if version < 4:
        size = struct.pack("<I", 25)
        told = values[:25].astype("<f8" if version else "<f4").tobytes()
        fields = [size, there[:25].tobytes(), stamp(T0_NS), size, told, text("MTi")]
    else:
        fields = [there.tobytes(), stamp(T0_NS), values.tobytes(), text("MTi")]
    return named("CObservationIMU", version, POSES[2], *fields)


COMMENT = named("CObservationComment", 0, text("a day"), stamp(T0_NS))
SAMPLE_LOG = COMMENT + odometry() + scan() + odometry(t_ns=T0_NS + 10**8, x=1.5) + scan(t_ns=T0_NS + 10**8)


def written(folder: Path, *objects: bytes, packed: bool = True) -> Path:
    path = folder / "day.rawlog"
    data = b"".join(objects)
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    return path


@pytest.mark.parametrize("packed", [True, False])
def test_a_log_is_known_by_its_first_object(tmp_path: Path, packed: bool) -> None:
    path = written(tmp_path, SAMPLE_LOG, packed=packed)
    assert said_of(path, "rawlog").confidence == 0.95
    recording = transect.open(path)
    assert (recording.format, recording.name) == ("rawlog", "day")
    assert [(s.name, s.type, len(s)) for s in recording] == [("WHEELS", Odometry, 2), ("SICK", LaserScan, 2)]
    assert recording.losses == ()
    assert recording.notes == ("objects that are not read: 1 of CObservationComment",)


def test_another_file_that_gzip_packed_is_not_one(tmp_path: Path) -> None:
    path = tmp_path / "a.rawlog"
    path.write_bytes(gzip.compress(b"\x88hello"))
    assert not said_of(path, "rawlog")


@pytest.mark.parametrize("version", range(3, 8))
def test_a_scan_of_each_version_has_ranges_angles_and_time(tmp_path: Path, version: int) -> None:
    stream = opened(written(tmp_path, scan(version)), "rawlog")["SICK" if version >= 5 else "scan"]
    assert (stream.t_ns.tolist(), stream.clock) == ([T0_NS], "utc")
    value = stream[0].value
    np.testing.assert_array_equal(value.ranges, [1.5, np.nan, np.nan, np.nan, 3.5])
    np.testing.assert_array_equal(value.range_error, [0, 0, 1, 0, 0])  # beyond the limit of 81 m
    np.testing.assert_allclose(value.angles, np.radians([-90, -45, 0, 45, 90]), atol=1e-6)
    assert (value.range_max, stream["std_error"][0]) == (81, 0.25)
    if version == 7:
        np.testing.assert_array_equal(value.remission, [7, 8, 9, 10, 11])


def test_a_scan_from_left_to_right_is_turned(tmp_path: Path) -> None:
    value = opened(written(tmp_path, scan(leftwards=False)), "rawlog")["SICK"][0].value
    np.testing.assert_allclose(value.angles, np.radians([90, 45, 0, -45, -90]), atol=1e-6)


def test_a_scan_without_a_time_is_lost_and_said(tmp_path: Path) -> None:
    recording = opened(written(tmp_path, scan(2), scan(6)), "rawlog")
    assert [(s.name, len(s)) for s in recording] == [("SICK", 1)]
    assert [(loss.reason, loss.count) for loss in recording.losses] == [("an object has no time", 1)]


@pytest.mark.parametrize("pose", POSES)
def test_the_place_of_a_sensor_is_a_frame(tmp_path: Path, pose: int) -> None:
    recording = opened(written(tmp_path, scan(pose=pose)), "rawlog")
    np.testing.assert_allclose(recording.frames.lookup("robot", "SICK"), T_QUARTER, atol=1e-7)


def test_a_sensor_that_is_moved_about_has_a_moving_frame(tmp_path: Path) -> None:
    other = scan(t_ns=T0_NS + 100).replace(
        struct.pack("<7d", 2, 0.5, 0.25, np.sqrt(0.5), 0, 0, np.sqrt(0.5)),
        struct.pack("<7d", 3, 0.5, 0.25, np.sqrt(0.5), 0, 0, np.sqrt(0.5)),
    )
    frames = opened(written(tmp_path, scan(), other), "rawlog").frames
    assert frames.lookup("robot", "SICK", T0_NS)[0, 3] == 2
    assert frames.lookup("robot", "SICK", T0_NS + 100)[0, 3] == 3


@pytest.mark.parametrize("version", [0, 1, 2])
def test_odometry_of_each_version(tmp_path: Path, version: int) -> None:
    stream = opened(written(tmp_path, odometry(version)), "rawlog")["WHEELS"]
    assert (stream.frame, stream.child) == ("odom", "robot")
    value = stream[0].value
    np.testing.assert_allclose(value.position, [1, 2, 0])
    np.testing.assert_allclose(value.orientation, [0, 0, np.sqrt(0.5), np.sqrt(0.5)])
    if version:
        np.testing.assert_allclose(value.velocity, [2.5, 0.5 * (version == 2), 0])
        np.testing.assert_allclose(value.angular_velocity, [0, 0, -0.0625])
    else:
        assert value.velocity is None
    assert ("ticks_left" in stream.columns) == (version == 1)


@pytest.mark.parametrize("version", range(5))
def test_an_imu_has_its_axes_in_order(tmp_path: Path, version: int) -> None:
    """MRPT: 0 to 2 acceleration, 3 to 5 rates about z, y, x, 15 to 17 gauss, 20 degC, 21 to 24 x, y, z, w."""
    stream = opened(written(tmp_path, imu(version)), "rawlog")["MTi"]
    assert stream.type is Imu
    value = stream[0].value
    np.testing.assert_array_equal(value.acceleration, [0, 1, 2])
    rates = [5, 4, 3] if version >= 2 else [3, 4, 5]  # the first two had them the other way round
    np.testing.assert_array_equal(value.angular_velocity, rates)
    np.testing.assert_allclose(value.magnetic_field, [15e-4, 16e-4, 17e-4])
    np.testing.assert_array_equal(value.orientation, [21, 22, 23, 24])
    assert value.temperature == 20


@pytest.mark.parametrize("version", [4, 5, 6, 7])
def test_motions_add_up_to_poses_at_the_time_of_the_frame_that_follows(tmp_path: Path, version: int) -> None:
    objects = [actions(motion(2.0, np.pi / 2, version)), frame(scan(t_ns=T0_NS))]
    objects += [actions(motion(1.0, 0.0, version)), frame(scan(t_ns=T0_NS + 10**9), version=1)]
    recording = opened(written(tmp_path, *objects), "rawlog")
    assert recording.losses == ()
    stream = recording["odometry"]
    assert stream.t_ns.tolist() == [T0_NS, T0_NS + 10**9]
    np.testing.assert_allclose(
        stream.array("x", "y", "theta"), [[2, 0, np.pi / 2], [2, 1, np.pi / 2]], atol=1e-9
    )
    assert len(recording["SICK"]) == 2


def test_a_motion_has_its_own_time_where_it_tells_one(tmp_path: Path) -> None:
    log = actions(motion(1, 0, 6, T0_NS - 500)) + frame(scan())
    assert opened(written(tmp_path, log), "rawlog")["odometry"].t_ns.tolist() == [T0_NS - 500]


def test_names_with_a_namespace_are_the_same_classes(tmp_path: Path) -> None:
    old, new = b"\x97CObservation2DRangeScan", b"mrpt::obs::CObservation2DRangeScan"
    log = scan().replace(old, bytes([0x80 | len(new)]) + new)
    path = written(tmp_path, log)
    assert said_of(path, "rawlog")
    assert len(opened(path, "rawlog")["SICK"]) == 1


def test_labels_that_two_kinds_share_get_the_kind_added(tmp_path: Path) -> None:
    log = scan(label="WHEELS") + odometry()
    assert [s.name for s in opened(written(tmp_path, log), "rawlog")] == ["WHEELS/scan", "WHEELS/odometry"]


def test_a_log_that_is_cut_keeps_what_is_whole(tmp_path: Path) -> None:
    recording = opened(written(tmp_path, SAMPLE_LOG[:-30]), "rawlog")
    assert [len(s) for s in recording] == [2, 1]
    [loss] = recording.losses
    assert (loss.reason, loss.byte) == ("the file ends within an object", len(SAMPLE_LOG) - len(scan()))


def test_a_packed_log_that_is_cut_keeps_its_good_part(tmp_path: Path) -> None:
    path = written(tmp_path, SAMPLE_LOG * 50)
    path.write_bytes(path.read_bytes()[:-100])
    recording = opened(path, "rawlog")
    assert len(recording["SICK"]) >= 1
    assert "damaged" in recording.losses[0].reason


def test_an_object_that_is_damaged_costs_itself_alone(tmp_path: Path) -> None:
    bad = scan(t_ns=T0_NS + 100)[:-1] + b"\x00"
    recording = opened(written(tmp_path, scan(), bad, scan(t_ns=T0_NS + 200)), "rawlog")
    assert recording["SICK"].t_ns.tolist() == [T0_NS, T0_NS + 200]
    [loss] = recording.losses
    assert (loss.byte, loss.reason) == (len(scan()), "an object does not end where it should")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (scan(label="x" * 70_000), "a text that is too long"),
        (scan().replace(b"CPose3D", b"CPose2D"), "a CPose2D instead of a CPose3D"),
        (scan().replace(bytes([0x80 | 7]) + b"CPose3D", bytes([7]) + b"CPose3D"), "no object begins here"),
        (scan().replace(b"CPose3D", b"-Pose3D"), "no object begins here"),
        (scan(pose=0).replace(POSES[0], named("CPose3D", 0, matrix(QUARTER))), "no matrix of 4 x 4"),
        (scan(pose=3).replace(QUARTER.tobytes(), (3 * QUARTER).tobytes()), "an invalid attitude"),
        (named("CObservationOdometry", 99, b""), "version 99 is not known"),
        (
            actions(named("CActionRobotMovement2D", 5, struct.pack("<I", 1))),
            "a motion that is not by odometry",
        ),
    ],
)
def test_an_object_that_cannot_be_meant_is_lost_alone(tmp_path: Path, bad: bytes, reason: str) -> None:
    recording = opened(written(tmp_path, scan(), bad, scan(t_ns=T0_NS + 200)), "rawlog")
    assert recording["SICK"].t_ns.tolist() == [T0_NS, T0_NS + 200]
    assert any(reason in loss.reason for loss in recording.losses)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_observations_stand_in_frames_of_each_version(tmp_path: Path, version: int) -> None:
    log = frame(scan(), odometry(), version=version) + frame(scan(t_ns=T0_NS + 200), version=version)
    recording = opened(written(tmp_path, log), "rawlog")
    assert [(s.name, len(s)) for s in recording] == [("SICK", 2), ("WHEELS", 1)]
    assert recording.losses == ()


def test_a_scan_that_claims_too_many_beams_is_lost(tmp_path: Path) -> None:
    bad = scan().replace(
        struct.pack("<I", 5) + struct.pack("<f", 1.5), struct.pack("<I", 2**31) + struct.pack("<f", 1.5)
    )
    recording = opened(written(tmp_path, bad, odometry()), "rawlog")
    assert [s.name for s in recording] == ["WHEELS"]
    assert recording.losses[0].reason == "the file ends within an object"


def test_objects_of_other_classes_are_counted_and_passed(tmp_path: Path) -> None:
    image = named("CObservationImage", 4, bytes(range(256)) * 4)
    recording = opened(written(tmp_path, image, scan(), image, odometry(), image), "rawlog")
    assert [s.name for s in recording] == ["SICK", "WHEELS"]
    assert recording.notes == ("objects that are not read: 3 of CObservationImage",)
    assert recording.losses == ()


def test_a_log_of_nothing_that_is_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="holds no scan, odometry or IMU"):
        opened(written(tmp_path, COMMENT), "rawlog")
