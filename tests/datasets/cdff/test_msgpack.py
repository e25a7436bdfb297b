"""CDFF MessagePack logs, written by hand as the logs of CDFF-Dev are, and read back."""

import dataclasses
import os
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transect
from transect.datasets.cdff.msgpack import file as log_file
from transect.datasets.cdff.msgpack.cursor import decode_octets, decode_rows
from transect.datasets.cdff.rock.kinds import detect_order
from transect.errors import ParseError, TransectError, UnknownFormatError, UsageError
from transect.formats import recognise, write
from transect.recording import FrameTree, Recording, Stream, stream_of_values
from transect.types import Image, Imu, JointState, LaserScan, NavFix, PointCloud, Pose, Record, RigidBodyState

START_US = 1_530_195_435_000_000
"""28 June 2018 in microseconds."""
NAN_VECTOR, NAN_MATRIX = [np.nan] * 3, [[np.nan] * 3] * 3


def time(us: int) -> dict[str, int]:
    return {"microseconds": us}


def imu(us: int, n: int = 0) -> dict[str, Any]:
    return {"gyro": [0.1, 0.2, n], "ref_time": time(us), "acc": [1.0, 2.0, 9.8], "mag": [0.3, 0.4, 0.5]}


def state(us: int, orient: list[float], pos: list[float] | None = None) -> dict[str, Any]:
    return {
        "timestamp": time(us),
        "sourceFrame": "body",
        "targetFrame": "world",
        "pos": pos or [0.0, 0.0, 0.0],
        "orient": orient,
        "velocity": NAN_VECTOR,
        "angular_velocity": NAN_VECTOR,
        **{f"cov_{name}": NAN_MATRIX for name in ("position", "orientation", "velocity", "angular_velocity")},
    }


def frame(us: int, pixels: np.ndarray, row_size: int | None = None) -> dict[str, Any]:
    rows, cols = pixels.shape[:2]
    step = row_size or cols * pixels.itemsize * (pixels.shape[2] if pixels.ndim == 3 else 1)
    raw = np.zeros((rows, step), np.uint8)
    content = np.ascontiguousarray(pixels).view(np.uint8).reshape(rows, -1)
    raw[:, : content.shape[1]] = content
    return {
        "metadata": {
            "timeStamp": time(us),
            "receivedTime": time(us + 5),
            "mode": "mode_GRAY",
            "status": "status_VALID",
        },
        "intrinsic": {
            "sensorId": "cam",
            "cameraModel": "cam_PINHOLE",
            "cameraMatrix": [[500.0, 0.0, 2.0], [0.0, 510.0, 1.0], [0.0, 0.0, 1.0]],
            "distCoeffs": [-0.1, 0.2] + [0.0] * 10,
        },
        "data": {
            "data": raw.reshape(-1).tolist(),
            "channels": 1,
            "rowSize": step,
            "rows": rows,
            "cols": cols,
            "depth": f"depth_{8 * pixels.itemsize}U",
        },
    }


def port(name: str, kind: str, samples: list[Any], times: list[int]) -> dict[str, Any]:
    return {name: samples, f"{name}.meta": {"type": kind, "timestamps": times}}


def imu_log(count: int = 5) -> dict[str, Any]:
    times = [START_US + 10_000 * i for i in range(count)]
    return port("/imu.data", "IMUSensors", [imu(t, i) for i, t in enumerate(times)], [t + 7 for t in times])


def save(path: Path, log: Any) -> Path:
    path.write_bytes(msgpack.packb(log))
    return path


def opened(tmp_path: Path, log: Any, **options: Any) -> Recording:
    """Open a log under a name of its own: what was opened before stays mapped."""
    name = f"log{len(list(tmp_path.iterdir()))}.msg"
    return transect.open(save(tmp_path / name, log), format="cdff_msgpack", **options)


def test_an_imu_keeps_its_numbers_and_both_its_times(tmp_path: Path):
    stream = opened(tmp_path, imu_log())["/imu.data"]
    assert stream.type is Imu
    assert stream.clock == "utc"
    assert stream.t_ns.tolist() == [(START_US + 10_000 * i) * 1000 for i in range(5)]
    assert stream.log_ns is not None
    assert stream.log_ns.tolist() == [(START_US + 10_000 * i + 7) * 1000 for i in range(5)]
    assert (
        stream.array("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y").tolist()
        == [[1.0, 2.0, 9.8, 0.1, 0.2]] * 5
    )
    assert stream["gyro_z"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert stream.units["acc_x"] == "m/s2"
    assert stream.units["mag_raw_x"] == ""  # the format gives the magnetometer no unit


def test_keys_may_come_in_any_order(tmp_path: Path):
    backwards = dict(reversed(imu_log().items()))
    assert opened(tmp_path, backwards)["/imu.data"].table.equals(
        opened(tmp_path, imu_log())["/imu.data"].table
    )


def test_a_rigid_body_state_is_the_pose_of_its_source_in_its_target(tmp_path: Path):
    samples = [state(START_US + i, [0.0, 0.0, 0.6, 0.8], [1.0, 2.0, 3.0]) for i in range(3)]
    rec = opened(tmp_path, port("/odo.pose", "RigidBodyState", samples, [START_US] * 3))
    stream = rec["/odo.pose"]
    assert (stream.type, stream.role, stream.frame, stream.child) == (
        RigidBodyState,
        "estimate",
        "world",
        "body",
    )
    value = stream[0].value
    assert value.position.tolist() == [1.0, 2.0, 3.0]
    assert value.orientation.tolist() == [0.0, 0.0, 0.6, 0.8]
    assert np.isnan(value.velocity).all()
    (note,) = [note for note in rec.all_notes if "not estimated" in note]
    assert "vx" in note
    assert "cov_angular_velocity" in note


def test_a_laser_scan_is_in_metres_and_its_error_codes_are_nan(tmp_path: Path):
    scan = {
        "ref_time": time(START_US),
        "start_angle": -1.5,
        "angular_resolution": 0.01,
        "speed": 0.0,
        "ranges": [1, 2, 1500, 30_000],  # too far, too near, 1.5 m, 30 m
        "minRange": 20,
        "maxRange": 40_000,
        "remission": [0.0, 1.0, 2.0, 3.0],
    }
    longer = {**scan, "ranges": [2000] * 6, "remission": [0.5] * 6}
    stream = opened(tmp_path, port("/laser.scan", "LaserScan", [scan, longer], [START_US, START_US]))[
        "/laser.scan"
    ]
    value = stream[0].value
    assert stream.type is LaserScan
    assert np.isnan(value.ranges[:2].astype(float)).all()
    assert value.ranges[2:].tolist() == [1.5, 30.0]
    assert (value.start_angle, value.angle_increment) == (-1.5, 0.01)
    assert (value.range_min, value.range_max) == (0.02, 40.0)
    assert value.remission.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert stream[1].value.ranges.tolist() == [2.0] * 6
    assert stream[0].row["range_error"] == [1, 2, 0, 0]


def test_the_codes_of_other_lasers_become_those_of_rock(tmp_path: Path):
    columns = {
        "ranges": np.array([[1.5, np.nan, np.nan, np.nan]]),
        "range_error": np.array([[0, 8191, 8190, 2]]),
        "start_angle": np.zeros(1),
        "angle_increment": np.full(1, 0.01),
    }
    scans = stream_of_values("laser", np.array([START_US * 1000]), columns, type=LaserScan)
    write(Recording("r", (scans,)), tmp_path / "log.msg", "cdff_msgpack")
    (again,) = transect.open(tmp_path / "log.msg").streams
    np.testing.assert_array_equal(again[0].value.measured, [1.5, np.nan, np.nan, np.nan])
    assert again[0].value.range_error.tolist() == [0, 1, 3, 2]  # too far, measurement error, too near


def test_joints_become_one_row_of_all_joints(tmp_path: Path):
    def joints(us: int) -> dict[str, Any]:
        each = [
            {"position": p, "speed": 0.1, "effort": 2.0, "raw": np.nan, "acceleration": np.nan}
            for p in (1.0, 2.0)
        ]
        return {"timestamp": time(us), "names": ["pan", "tilt"], "elements": each}

    stream = opened(
        tmp_path, port("/arm.joints", "Joints", [joints(START_US), joints(START_US + 1)], [START_US] * 2)
    )["/arm.joints"]
    assert stream.type is JointState
    assert stream["position"].tolist() == [[1.0, 2.0]] * 2
    assert stream["velocity"].tolist() == [[0.1, 0.1]] * 2
    assert stream.table.column("names").to_pylist() == [["pan", "tilt"]] * 2


def test_fields_that_are_called_like_our_own_columns_do_not_replace_them(tmp_path: Path):
    samples = [{"t_ns": 5, "payload": "x", "value": 1.5}]
    stream = opened(tmp_path, port("/a.b", "Things", samples, [START_US]))["/a.b"]
    assert stream.t_ns.tolist() == [START_US * 1000]
    assert stream.columns == ("t_ns_", "payload_", "value")


def test_a_port_that_has_lost_its_samples_is_reported(tmp_path: Path):
    log = imu_log(2)
    rec = opened(tmp_path, {**log, "/gone.port.meta": {"type": "T", "timestamps": [1]}})
    assert [s.name for s in rec] == ["/imu.data"]
    assert [loss.reason for loss in rec.losses] == ["/gone.port has times but no samples"]


def test_lists_of_maps_may_be_empty_in_some_samples(tmp_path: Path):
    samples = [{"found": []}] * 1500 + [{"found": [{"x": 1.0}, {"x": 2.0}]}] + [{"found": []}]
    stream = opened(tmp_path, port("/a.b", "Things", samples, list(range(1502))))["/a.b"]
    assert stream.type is Record
    assert stream.table.column("found.x").to_pylist()[1499:] == [[], [1.0, 2.0], []]


def test_lists_of_lists_of_unequal_length_are_kept_as_messagepack(tmp_path: Path):
    stream = opened(tmp_path, port("/a.b", "Things", [{"x": [[1], [2, 3]]}] * 2, [1, 2]))["/a.b"]
    assert [msgpack.unpackb(packed) for packed in stream.table.column("x").to_pylist()] == [[[1], [2, 3]]] * 2


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_an_image_is_decoded_when_asked_for(tmp_path: Path, kind: type):
    pixels = np.arange(12, dtype=kind).reshape(3, 4) * 17 + 60
    rec = opened(
        tmp_path, port("/cam/left.image", "Frame", [frame(START_US, pixels, row_size=16)], [START_US])
    )
    stream = rec["/cam/left.image"]
    assert (stream.type, stream.tag, stream.frame, len(stream)) == (Image, "left", "cam", 1)
    assert "data.data" not in stream.table.column_names
    image = stream[0].value
    assert image.data.dtype == kind
    assert image.data.tolist() == pixels.tolist()
    assert (image.mode, image.t_ns) == ("gray", START_US * 1000)
    assert stream["received_ns"].tolist() == [(START_US + 5) * 1000]
    camera = rec.cameras[stream.camera]
    assert (camera.width, camera.height, camera.distortion) == (4, 3, "radtan")
    assert camera.K[1, 1] == 510.0
    assert camera.coefficients.tolist() == [-0.1, 0.2, 0.0, 0.0]


def test_a_stereo_pair_becomes_two_streams(tmp_path: Path):
    left, right = np.full((2, 2), 1, np.uint8), np.full((2, 2), 200, np.uint8)
    pair = {"baseline": 0.1, "left": frame(START_US, left), "right": frame(START_US, right)}
    rec = opened(tmp_path, port("/rig.pair", "FramePair", [pair], [START_US]))
    assert [(s.name, s.tag) for s in rec] == [("/rig.pair/left", "left"), ("/rig.pair/right", "right")]
    assert rec["/rig.pair/right"][0].value.data.tolist() == right.tolist()


def test_a_cloud_is_decoded_when_asked_for(tmp_path: Path):
    points = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    data = {"points": points, "colors": [], "intensity": [1, 2.5]}
    sample = {"metadata": {"timeStamp": time(START_US), "frameId": "lidar"}, "data": data}
    stream = opened(tmp_path, port("/lidar.cloud", "Pointcloud", [sample], [START_US]))["/lidar.cloud"]
    cloud = stream[0].value
    assert (stream.type, cloud.frame) == (PointCloud, "lidar")
    assert cloud.points.tolist() == points
    assert cloud.fields["intensity"].tolist() == [1.0, 2.5]
    assert "rgba" not in cloud.fields


@given(st.lists(st.one_of(st.integers(0, 255), st.sampled_from([127, 128, 204]))))
def test_bytes_written_as_numbers_are_decoded_as_an_array(values: list[int]):
    assert decode_octets(memoryview(msgpack.packb(values))).tolist() == values


def test_rows_of_any_numbers_are_decoded_as_an_array():
    for rows in ([[1.0, 2.0, 3.0]] * 3, [[1, 2.0, -3], [4.5, 5, 6]], []):
        assert decode_rows(memoryview(msgpack.packb(rows)), 3).tolist() == rows


def test_a_flattened_log_reads_as_the_plain_one(tmp_path: Path):
    times = [START_US + i for i in range(3)]
    plain = {
        "time": {"microseconds": START_US},
        "names": ["a"],
        "elements": [{"position": 0.5, "speed": 0.1}],
    }
    nested = [{**plain, "time": time(t)} for t in times]
    flat = {
        "/arm.joints.meta": {"type": "/base/samples/Joints", "timestamps": times},
        "/arm.joints/time/microseconds": times,
        "/arm.joints/names": [["a"]] * 3,
        "/arm.joints/elements/position": [[0.5]] * 3,
        "/arm.joints/elements/speed": [[0.1]] * 3,
    }
    expected = opened(tmp_path, port("/arm.joints", "/base/samples/Joints", nested, times))["/arm.joints"]
    stream = opened(tmp_path, flat)["/arm.joints"]
    assert stream.type is expected.type is JointState
    assert stream.table.to_pylist() == expected.table.to_pylist()
    del flat["/arm.joints.meta"]
    assert opened(tmp_path, flat)["/arm.joints"].t_ns.tolist() == expected.t_ns.tolist()


def test_a_flattened_image_stays_in_its_file(tmp_path: Path):
    flat = {
        "/cam.frame.meta": {"type": "/base/samples/frame/Frame", "timestamps": [START_US] * 2},
        "/cam.frame/time/microseconds": [START_US, START_US + 1],
        "/cam.frame/image": [[1, 2, 3, 200], [5, 6, 7, 8]],
        "/cam.frame/size/width": [2, 2],
        "/cam.frame/size/height": [2, 2],
        "/cam.frame/pixel_size": [1, 1],
        "/cam.frame/data_depth": [8, 8],
        "/cam.frame/frame_mode": ["MODE_GRAYSCALE"] * 2,
    }
    stream = opened(tmp_path, flat)["/cam.frame"]
    assert stream.type is Image
    assert [s.value.data.tolist() for s in stream] == [[[1, 2], [3, 200]], [[5, 6], [7, 8]]]


def test_a_compressed_log_reads_as_the_plain_one(tmp_path: Path):
    log = {
        **imu_log(),
        **port("/cam.image", "Frame", [frame(START_US, np.full((2, 2), 9, np.uint8))], [START_US]),
    }
    path = tmp_path / "log.msg.zz"
    path.write_bytes(zlib.compress(msgpack.packb(log)))
    rec = transect.open(path)
    assert rec.format == "cdff_msgpack"
    assert rec["/imu.data"].table.equals(opened(tmp_path, log)["/imu.data"].table)
    assert rec["/cam.image"][0].value.data.tolist() == [[9, 9], [9, 9]]


def test_a_compressed_log_is_unpacked_to_a_limit_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_file, "LIMITS", dataclasses.replace(log_file.LIMITS, unpacked_bytes=5000))
    path = tmp_path / "log.msg.zz"
    path.write_bytes(zlib.compress(msgpack.packb(imu_log(100))))
    rec = transect.open(path, format="cdff_msgpack")
    assert 0 < len(rec["/imu.data"]) < 100
    assert any("unpacks to more than 5000 bytes" in loss.reason for loss in rec.losses)


def test_chunks_of_a_log_are_joined_in_the_order_of_their_numbers(tmp_path: Path):
    for chunk in range(12):
        times = [START_US + 1000 * (10 * chunk + i) for i in range(10)]
        samples = [imu(t, 10 * chunk + i) for i, t in enumerate(times)]
        save(tmp_path / f"run_{chunk:09d}.msg", port("/imu.data", "IMUSensors", samples, times))
    (tmp_path / "run_000000000.msg.cdff_idx").write_bytes(b"cos\nsystem\n(S'false'\ntR.")  # a pickle
    rec = transect.open(tmp_path)
    assert rec.format == "cdff_msgpack"
    assert rec["/imu.data"]["gyro_z"].tolist() == [float(i) for i in range(120)]
    assert rec["/imu.data"].timing.backwards == 0
    assert not rec.losses
    assert not any(file.path.endswith("idx") for file in rec.provenance.sources)


def test_chunks_with_other_fields_are_reported(tmp_path: Path):
    save(tmp_path / "run_000000000.msg", port("/a.b", "T", [{"x": 1.0}], [1]))
    save(tmp_path / "run_000000001.msg", port("/a.b", "T", [{"x": "text"}], [2]))
    rec = transect.open(tmp_path)
    assert rec["/a.b"]["x"].tolist() == [1.0]
    assert [loss.file for loss in rec.losses] == ["run_000000001.msg"]


def test_two_logs_with_the_same_port_have_different_stream_names(tmp_path: Path):
    save(tmp_path / "monday.msg", imu_log(2))
    save(tmp_path / "tuesday.msg", imu_log(3))
    rec = transect.open(tmp_path)
    assert {s.name: len(s) for s in rec} == {"monday/imu.data": 2, "tuesday/imu.data": 3}


def test_configuration_files_give_frames_and_cameras(tmp_path: Path):
    half = float(np.sqrt(0.5))
    frames = {
        ("body", "arm"): {"translation": [1.0, 0.0, 0.0], "rotation": [0.0, 0.0, half, half]},
        ("arm", "camera"): {"translation": [0.0, 2.0, 0.0], "rotation": [0.0, 0.0, 0.0, 1.0]},
    }
    K = [[800.0, 0.0, 320.0], [0.0, 800.0, 240.0], [0.0, 0.0, 1.0]]
    intrinsic = {"cameraMatrix": K, "distCoeffs": [0.0] * 5, "cameraModel": "cam_PINHOLE"}
    cameras = {
        "/rig/right/camera_info": {"intrinsic": intrinsic, "baseline": 0.1},
        "/rig/none/camera_info": {
            "intrinsic": {**intrinsic, "cameraMatrix": np.eye(3).tolist()},
            "baseline": 0.0,
        },
    }
    save(tmp_path / "transformer_config.msg", frames)
    save(tmp_path / "camera_config.msg", cameras)
    save(
        tmp_path / "log.msg",
        port("/rig/right/image", "Frame", [frame(START_US, np.zeros((2, 2), np.uint8))], [START_US]),
    )
    rec = transect.open(tmp_path)
    # The arm points along y of the body, and the camera is 2 m along y of the arm: at (-1, 0, 0) in the body.
    assert rec.frames.lookup("body", "camera")[:3, 3].round(9).tolist() == [-1.0, 0.0, 0.0]
    assert list(rec.cameras) == ["/rig/right"]
    assert rec["/rig/right/image"].camera == "/rig/right"
    assert rec.cameras["/rig/right"].baseline == pytest.approx(0.1)
    assert any("placeholder" in note for note in rec.notes)


def test_a_configuration_with_a_bad_entry_keeps_the_others(tmp_path: Path):
    good = {"translation": [1.0, 0.0, 0.0], "rotation": [0.0, 0.0, 0.0, 1.0]}
    path = save(tmp_path / "transformer_config.msg", {("a", "b"): good, ("b", "c"): {"translation": [1.0]}})
    rec = transect.open(path)
    assert rec.frames.frames == ("a", "b")
    (loss,) = rec.losses
    assert loss.byte is not None


# The four traps of real logs (cdff.md, 1.8).


def test_nanoseconds_in_fields_named_microseconds_are_found(tmp_path: Path):
    # 1532433037836744066 is the stamp of a real log that was made from a ROS bag.
    t_ns = [1_532_433_037_836_744_066, 1_532_433_037_936_744_067]
    rec = opened(tmp_path, port("/imu.data", "IMUSensors", [imu(t) for t in t_ns], t_ns))
    assert rec["/imu.data"].t_ns.tolist() == t_ns
    assert rec["/imu.data"].log_ns.tolist() == t_ns
    assert sum("counts nanoseconds" in note for note in rec.all_notes) == 2


def test_times_that_are_no_dates_are_microseconds_of_the_device(tmp_path: Path):
    rec = opened(tmp_path, port("/imu.data", "IMUSensors", [imu(t) for t in (0, 10_000)], [5, 10_005]))
    assert rec["/imu.data"].clock == "device"
    assert rec["/imu.data"].t_ns.tolist() == [0, 10_000_000]
    assert not any("nanoseconds" in note for note in rec.all_notes)


def joint_turns(axis: int, scalar_first: bool) -> list[list[float]]:
    """A joint that sweeps from -0.3 to 1.2 rad about one axis, as the log's pan-tilt unit does."""
    turns: list[list[float]] = []
    for half in np.linspace(-0.15, 0.6, 40):
        vector = [0.0, 0.0, 0.0]
        vector[axis] = float(np.sin(half))
        turns.append([float(np.cos(half)), *vector] if scalar_first else [*vector, float(np.cos(half))])
    return turns


def test_quaternions_of_a_joint_written_scalar_first_are_found(tmp_path: Path):
    samples = [state(START_US + i, q) for i, q in enumerate(joint_turns(1, scalar_first=True))]
    log = port("/joint.transforms", "RigidBodyState", samples, [START_US + i for i in range(40)])
    rec = opened(tmp_path, log)
    expected = np.array(joint_turns(1, scalar_first=False))
    np.testing.assert_array_equal(rec["/joint.transforms"].array("qx", "qy", "qz", "qw"), expected)
    assert any("scalar first" in note and "quaternion=" in note for note in rec.all_notes)
    as_written = opened(tmp_path, log, quaternion="xyzw")
    np.testing.assert_array_equal(
        as_written["/joint.transforms"].array("qx", "qy", "qz", "qw"), joint_turns(1, scalar_first=True)
    )
    assert not any("scalar first" in note for note in as_written.all_notes)


def test_an_order_of_quaternions_that_does_not_exist_is_refused(tmp_path: Path):
    with pytest.raises(UsageError):
        opened(tmp_path, imu_log(), quaternion="zyxw")


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_quaternions_of_a_joint_written_scalar_last_are_left(axis: int):
    assert detect_order(np.array(joint_turns(axis, scalar_first=False)), None) == ("xyzw", "")


def test_a_rover_whose_z_axis_points_down_is_left_but_noted():
    """Half a turn about x, then yaw: its scalar part is zero, and it is written in the right order."""
    yaw = np.linspace(0.0, 2.0, 50)
    q = np.column_stack([np.cos(yaw), np.sin(yaw), np.zeros(50), np.zeros(50)])
    positions = np.column_stack([np.linspace(0, 10, 50), np.zeros((50, 2))])
    order, note = detect_order(q, positions)
    assert order == "xyzw"
    assert "half a turn" in note


@given(st.integers(0, 2**32 - 1), st.integers(0, 30))
def test_quaternions_at_random_are_never_reordered(seed: int, count: int):
    q = np.random.default_rng(seed).normal(size=(count, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    assert detect_order(q, np.zeros((count, 3))) == ("xyzw", "")


def test_a_constant_half_turn_is_left_but_noted():
    order, note = detect_order(np.tile([1.0, 0.0, 0.0, 0.0], (20, 1)), None)
    assert order == "xyzw"
    assert note


def test_a_log_clock_that_is_late_and_bursty_is_reported(tmp_path: Path):
    sampled = [START_US + 10_000 * i for i in range(30)]
    logged = [START_US + 900_000 + 90_000 * (i // 10) for i in range(30)]  # ten at a time
    rec = opened(tmp_path, port("/imu.data", "IMUSensors", [imu(t) for t in sampled], logged))
    stream = rec["/imu.data"]
    assert set(np.diff(stream.t_ns).tolist()) == {10_000_000}
    (note,) = [note for note in rec.all_notes if "behind" in note]
    assert "790.0 to 900.0 ms" in note
    assert "27 times not at all" in note


def test_samples_without_a_time_of_their_own_take_that_of_the_log(tmp_path: Path):
    rec = opened(
        tmp_path, port("/imu.data", "IMUSensors", [imu(0), imu(START_US)], [START_US + 1, START_US + 2])
    )
    assert rec["/imu.data"].t_ns.tolist() == [(START_US + 1) * 1000, START_US * 1000]
    assert any("1 of 2 samples have no time of their own" in note for note in rec.all_notes)


def test_samples_without_any_time_are_counted(tmp_path: Path):
    rec = opened(tmp_path, {"/a.b": [1.5, 2.5, 3.5]})
    assert (rec["/a.b"].clock, rec["/a.b"].t_ns.tolist()) == ("index", [0, 10**9, 2 * 10**9])
    assert rec["/a.b"]["value"].tolist() == [1.5, 2.5, 3.5]


def test_times_that_repeat_or_jump_back_are_kept(tmp_path: Path):
    times = [START_US, START_US, START_US - 500, START_US + 1]
    timing = opened(tmp_path, port("/imu.data", "IMUSensors", [imu(t) for t in times], times))[
        "/imu.data"
    ].timing
    assert (timing.count, timing.repeated, timing.backwards) == (4, 1, 1)


# Bit streams.

DEFINITIONS = """Base DEFINITIONS AUTOMATIC TAGS ::= BEGIN
Time ::= SEQUENCE { microseconds INTEGER (-9223372036854775808..9223372036854775807) }
IMUSensors ::= SEQUENCE {
  ref-time Time, acc SEQUENCE (SIZE(3)) OF INTEGER (0..100), gyro SEQUENCE (SIZE(3)) OF INTEGER (0..100) }
END"""


def bitstream() -> dict[str, Any]:
    asn1tools = pytest.importorskip("asn1tools")
    value = {"ref-time": time(START_US), "acc": [1, 2, 3], "gyro": [4, 5, 6]}
    data = asn1tools.compile_string(DEFINITIONS, "uper").encode("IMUSensors", value)
    sample = {"serialization_method": 0, "type": "asn1SccIMUSensors", "data": list(data)}
    return port("/imu.bits", "asn1_bitstream", [sample], [START_US])


def test_a_bit_stream_is_decoded_where_its_definition_lies_beside_the_log(tmp_path: Path):
    save(tmp_path / "log.msg", bitstream())
    (tmp_path / "base.asn").write_text(DEFINITIONS)
    stream = transect.open(tmp_path)["/imu.bits"]
    assert stream.type is Imu
    assert stream.array("acc_x", "acc_z", "gyro_y").tolist() == [[1.0, 3.0, 5.0]]
    assert stream.t_ns.tolist() == [START_US * 1000]


def test_a_bit_stream_without_a_definition_is_kept_as_bytes(tmp_path: Path):
    log = bitstream()
    rec = opened(tmp_path, log)
    assert rec["/imu.bits"].table.column("data").to_pylist() == [bytes(log["/imu.bits"][0]["data"])]
    assert any("asn1SccIMUSensors" in note and "kept as bytes" in note for note in rec.notes)
    (tmp_path / "base.asn").write_text(DEFINITIONS)
    named = opened(tmp_path, log, definitions=tmp_path / "base.asn")
    assert named["/imu.bits"].type is Imu


def test_definitions_that_are_none_are_an_error(tmp_path: Path):
    (tmp_path / "bad.asn").write_text("this is no ASN.1")
    with pytest.raises(ParseError, match="definitions"):
        opened(tmp_path, bitstream(), definitions=tmp_path / "bad.asn")
    with pytest.raises(TransectError):
        opened(tmp_path, bitstream(), definitions=tmp_path / "absent.asn")


# Bad input.


def test_a_log_cut_anywhere_keeps_its_whole_samples(tmp_path: Path):
    whole = msgpack.packb(imu_log(6))
    ends = [whole.index(b".meta") - 10 - len(msgpack.packb(imu(START_US))) * (5 - i) for i in range(6)]
    for size in range(40, whole.index(b".meta"), 7):
        path = tmp_path / f"{size}.msg"
        path.write_bytes(whole[:size])
        rec = transect.open(path, format="cdff_msgpack")
        count = len(rec["/imu.data"])
        assert count == sum(end <= size for end in ends)
        if count:
            assert rec["/imu.data"]["gyro_z"].tolist() == [float(i) for i in range(count)]
        assert any(loss.byte is not None and loss.byte <= size for loss in rec.losses)


def test_a_log_cut_in_its_times_keeps_every_sample_that_has_a_time_of_its_own(tmp_path: Path):
    whole = msgpack.packb(imu_log(6))
    (tmp_path / "log.msg").write_bytes(whole[:-20])
    rec = transect.open(tmp_path / "log.msg")
    stream = rec["/imu.data"]
    times = [(START_US + 10_000 * i) * 1000 for i in range(6)]
    assert stream.t_ns.tolist() == times
    assert stream.log_ns is not None
    assert stream.log_ns.tolist() == [t + 7000 for t in times[:3]] + times[3:]  # a time has nine bytes
    assert {loss.byte for loss in rec.losses} >= {len(whole) - 27}
    assert "3 of 6 log times are lost" in " ".join(rec.all_notes)


def test_a_sample_whose_only_time_is_cut_off_is_a_loss(tmp_path: Path):
    samples = [{"elements": [float(i)], "names": ["a"]} for i in range(6)]
    whole = msgpack.packb(port("/arm.state", "/base/Something", samples, [START_US + i for i in range(6)]))
    (tmp_path / "log.msg").write_bytes(whole[:-20])
    rec = transect.open(tmp_path / "log.msg")
    assert rec["/arm.state"].t_ns.tolist() == [(START_US + i) * 1000 for i in range(3)]
    assert [loss.count for loss in rec.losses if "the time is lost" in loss.reason] == [3]


def test_a_cut_log_says_where_and_strict_refuses_it(tmp_path: Path):
    whole = msgpack.packb(imu_log(6))
    third = whole.index(msgpack.packb(imu(START_US + 20_000, 2)))
    path = tmp_path / "log.msg"
    path.write_bytes(whole[: third + 10])
    rec = transect.open(path)
    assert len(rec["/imu.data"]) == 2
    (loss,) = [loss for loss in rec.losses if "2 of 6" in loss.reason]
    assert (loss.file, loss.byte, loss.count) == ("log.msg", third, 4)
    with pytest.raises(ParseError):
        transect.open(path, strict=True)


def test_a_sample_with_other_fields_is_left_out_and_located(tmp_path: Path):
    log = imu_log(5)
    log["/imu.data"][1] = {"something": "else"}
    rec = opened(tmp_path, log)
    assert rec["/imu.data"]["gyro_z"].tolist() == [0.0, 2.0, 3.0, 4.0]
    assert rec["/imu.data"].t_ns.tolist() == [(START_US + 10_000 * i) * 1000 for i in (0, 2, 3, 4)]
    (loss,) = rec.losses
    assert loss.byte == msgpack.packb(log).index(msgpack.packb({"something": "else"}))


def test_the_first_sample_does_not_decide_what_the_others_are(tmp_path: Path):
    log = imu_log(5)
    log["/imu.data"][0]["acc"] = "text in a number"
    rec = opened(tmp_path, log)
    assert (rec["/imu.data"].type, len(rec["/imu.data"])) == (Imu, 4)
    assert [loss.count for loss in rec.losses] == [1]


def test_more_samples_than_times_are_reported(tmp_path: Path):
    log = imu_log(5)
    del log["/imu.data.meta"]["timestamps"][3:]
    rec = opened(tmp_path, log)
    assert len(rec["/imu.data"]) == 5
    assert [loss.count for loss in rec.losses] == [2]


def test_a_log_that_lost_its_times_and_types_is_read_by_its_fields(tmp_path: Path):
    log = imu_log(3)
    del log["/imu.data.meta"]
    stream = opened(tmp_path, log)["/imu.data"]
    assert stream.type is Imu
    assert stream.t_ns.tolist() == [(START_US + 10_000 * i) * 1000 for i in range(3)]


def test_a_port_that_is_there_twice_and_odd_keys_are_reported(tmp_path: Path):
    packed = msgpack.packb(imu_log(2))
    path = tmp_path / "log.msg"
    path.write_bytes(bytes([packed[0] + 2]) + packed[1:] + msgpack.packb("/imu.data") + b"\x90" + b"\x05\x90")
    rec = transect.open(path)
    assert len(rec["/imu.data"]) == 2
    assert sorted(loss.reason for loss in rec.losses) == [
        "/imu.data is there twice: the first is kept",
        "5 is no name of a port",
    ]


def test_an_invalid_image_is_an_error_of_its_own(tmp_path: Path):
    short = frame(START_US, np.zeros((3, 4), np.uint8))
    del short["data"]["data"][5:]
    text = frame(START_US, np.zeros((3, 4), np.uint8))
    text["data"]["data"] = ["a"] * 12
    huge = frame(START_US, np.zeros((3, 4), np.uint8))
    huge["data"]["rows"] = 2**40
    rec = opened(tmp_path, port("/cam.image", "Frame", [short, text, huge], [START_US] * 3))
    for sample in rec["/cam.image"]:
        with pytest.raises(ParseError) as error:
            _ = sample.value
        assert error.value.where.startswith("log0.msg@")


def test_an_empty_file_and_a_folder_of_text_are_not_logs(tmp_path: Path):
    (tmp_path / "empty.msg").write_bytes(b"")
    with pytest.raises(TransectError):
        transect.open(tmp_path / "empty.msg")
    (tmp_path / "Point.msg").write_text("float64 x\nfloat64 y\n")
    said = dict(recognise(tmp_path / "Point.msg"))["cdff_msgpack"]
    assert not said
    assert " but " in said.reason


def test_one_bad_file_does_not_spoil_a_folder(tmp_path: Path):
    save(tmp_path / "good.msg", imu_log(2))
    (tmp_path / "bad.msg").write_bytes(b"\x01\x02")
    rec = transect.open(tmp_path, format="cdff_msgpack")
    assert len(rec["/imu.data"]) == 2
    assert [loss.file for loss in rec.losses] == ["bad.msg"]


def test_text_that_is_not_utf8_is_noted(tmp_path: Path):
    path = tmp_path / "log.msg"
    path.write_bytes(msgpack.packb(port("/a.b", "T", [{"x": "abc"}], [1])).replace(b"abc", b"a\xffc"))
    rec = transect.open(path)
    assert rec["/a.b"]["x"] == ["a\N{REPLACEMENT CHARACTER}c"]
    assert any("not UTF-8" in note for note in rec.all_notes)


def test_values_nested_too_deeply_are_refused(tmp_path: Path):
    path = tmp_path / "log.msg"
    path.write_bytes(b"\x81\xa4/a.b\x91" + b"\x91" * 5000 + b"\x01")
    rec = transect.open(path)
    assert len(rec["/a.b"]) == 0
    assert any("nested too deeply" in loss.reason for loss in rec.losses)


BOMBS = {
    "samples": b"\x81\xa4/a.b\xdd\x01\x31\x2d\x00" + b"\x80" * 20_000_000,
    "one sample": b"\x81\xa4/a.b\x91\x81\xa1x\xdd\x01\x31\x2d\x00" + b"\x80" * 20_000_000,
    "lists in a sample": b"\x81\xa4/a.b\x91\xdc\x00\x14"
    + (b"\xdd\x00\x0f\x42\x40" + b"\x80" * 1_000_000) * 20,
    "not even a map": b"\xdd\x01\x31\x2d\x00" + b"\x80" * 20_000_000,
}
OPEN = """
import sys, transect
for path in sys.argv[1:]:
    try:
        rec = transect.open(path, format="cdff_msgpack")
        print(sum(loss.count for loss in rec.losses), sum(len(s) for s in rec))
    except transect.errors.ParseError as error:
        print("ParseError", error.where)
    try:
        transect.open(path, format="cdff_msgpack", strict=True)
    except transect.errors.ParseError as error:
        print("strict:", error.where)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak.split()[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to measure memory")
def test_20_mb_of_empty_maps_stay_within_512_mb(tmp_path: Path):
    for number, bomb in enumerate(BOMBS.values()):
        (tmp_path / f"{number}.msg").write_bytes(bomb)
    command = [sys.executable, "-c", OPEN, *sorted(tmp_path.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=120)
    assert done.returncode == 0, done.stderr
    *said, peak = done.stdout.splitlines()
    assert said[::2] == ["20000000 0", "1 0", "1 0", "ParseError 3.msg@0"]
    assert [line.split("@")[0] for line in said[1::2]] == [f"strict: {number}.msg" for number in range(4)]
    assert int(peak) < 512 * 1024


# Writing.


def small_recording() -> Recording:
    t_ns = np.arange(4, dtype=np.int64) * 100_000_000 + START_US * 1000
    rng = np.random.default_rng(3)
    q = rng.normal(size=(4, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    pose = {
        **{n: rng.normal(size=4) for n in "xyz"},
        **{f"q{n}": q[:, i].copy() for i, n in enumerate("xyzw")},
    }
    columns = {
        Imu: {f"{n}_{a}": rng.normal(size=4) for n in ("acc", "gyro", "mag_raw") for a in "xyz"},
        Pose: pose,
        RigidBodyState: {
            **pose,
            **{f"{n}{a}": rng.normal(size=4) for n in "vw" for a in "xyz"},
            **{
                f"cov_{n}": rng.normal(size=(4, 9))
                for n in ("position", "orientation", "velocity", "angular_velocity")
            },
            "source_frame": ["body"] * 4,
            "target_frame": ["world"] * 4,
        },
        JointState: {
            **{n: rng.normal(size=(4, 2)) for n in ("position", "velocity", "effort", "raw", "acceleration")},
        },
        LaserScan: {
            "ranges": [np.array([1.5, np.nan]), np.array([2.25]), np.array([0.006]), np.array([np.nan])],
            "start_angle": np.zeros(4),
            "angle_increment": np.full(4, 0.1),
            "range_min": np.full(4, 0.02),
            "range_max": np.full(4, 30.0),
            "speed": np.full(4, 0.5),
            "remission": [np.array([1.0, 2.0]), np.array([3.0]), np.array([4.0]), np.array([5.0])],
        },
        NavFix: {
            "lat": rng.normal(size=4),
            "lon": rng.normal(size=4),
            "alt": rng.normal(size=4),
            "fix": ["3d"] * 4,
        },
        Record: {"voltage": rng.normal(size=4), "state": np.arange(4), "note": ["a", "b", "", "ü"]},
    }
    streams = [
        stream_of_values(
            f"/robot.{kind.__name__}", t_ns, parts, type=kind, log_ns=None if kind is Pose else t_ns + 5000
        )
        for kind, parts in columns.items()
    ]
    return Recording("small", (*streams, *payload_streams(t_ns)))


def payload_streams(t_ns: np.ndarray) -> list[Stream]:
    rng = np.random.default_rng(4)
    pixels = rng.integers(0, 256, (4, 5, 6, 3), dtype=np.uint8)
    points = rng.normal(size=(4, 7, 3))

    def image(row: Any) -> Image:
        return Image(pixels[int(np.searchsorted(t_ns, row["t_ns"]))], "rgb", t_ns=row["t_ns"], frame="cam")

    def cloud(row: Any) -> PointCloud:
        i = int(np.searchsorted(t_ns, row["t_ns"]))
        return PointCloud(points[i], {"intensity": points[i, :, 0]}, t_ns=row["t_ns"])

    return [
        stream_of_values("/cam.image", t_ns, {}, type=Image).replace(loader=image, frame="cam"),
        stream_of_values("/lidar.cloud", t_ns, {}, type=PointCloud).replace(loader=cloud, frame="lidar"),
    ]


def assert_same_values(expected: Stream, found: Stream) -> None:
    assert found.type is expected.type
    assert found.t_ns.tolist() == expected.t_ns.tolist()
    if expected.log_ns is not None:
        assert found.log_ns is not None
        assert found.log_ns.tolist() == expected.log_ns.tolist()
    for name in expected.columns:
        assert repr(found.table.column(name).to_pylist()) == repr(expected.table.column(name).to_pylist()), (
            name
        )


def test_what_is_written_reads_back_the_same(tmp_path: Path):
    recording = small_recording()
    said = write(recording, tmp_path / "log.msg", "cdff_msgpack")
    assert said == ()
    found = transect.open(tmp_path / "log.msg")
    assert not found.losses
    assert [s.name for s in found] == [s.name for s in recording]
    for stream in recording:
        if stream.loader is None:
            assert_same_values(stream, found[stream.name])
    for a, b in zip(recording["/cam.image"], found["/cam.image"], strict=True):
        assert (b.value.mode, b.value.frame, b.value.t_ns) == ("rgb", "cam", a.t_ns)
        np.testing.assert_array_equal(a.value.data, b.value.data)
    for a, b in zip(recording["/lidar.cloud"], found["/lidar.cloud"], strict=True):
        np.testing.assert_array_equal(a.value.points, b.value.points)
        np.testing.assert_array_equal(a.value.fields["intensity"], b.value.fields["intensity"])


def test_a_written_log_has_the_fields_of_cdff(tmp_path: Path):
    write(small_recording().select("*Imu", "*RigidBodyState"), tmp_path / "log", "cdff_msgpack")
    log = msgpack.unpackb((tmp_path / "log.msg").read_bytes())
    assert list(log) == [
        "/robot.Imu",
        "/robot.Imu.meta",
        "/robot.RigidBodyState",
        "/robot.RigidBodyState.meta",
    ]
    assert log["/robot.Imu.meta"]["type"] == "IMUSensors"
    assert log["/robot.Imu.meta"]["timestamps"] == [START_US + 5 + 100_000 * i for i in range(4)]
    assert set(log["/robot.Imu"][0]) == {"ref_time", "acc", "gyro", "mag"}
    assert log["/robot.Imu"][1]["ref_time"] == {"microseconds": START_US + 100_000}
    assert set(log["/robot.RigidBodyState"][0]) == set(state(0, [0, 0, 0, 1]))


def test_the_writer_says_what_it_cannot_carry(tmp_path: Path):
    t_ns = np.array([START_US * 1000 + 1, START_US * 1000 + 2000])
    frames = FrameTree()
    frames.add_static("a", "b", np.eye(4))
    imu = stream_of_values(
        "/a.imu", t_ns, {**dict.fromkeys(("acc_x", "gyro_x"), np.zeros(2)), "heat": np.zeros(2)}, type=Imu
    )
    said = write(Recording("r", (imu,), frames=frames), tmp_path / "log.msg", "cdff_msgpack")
    assert any("1 times have nanoseconds" in s for s in said)
    assert any("IMUSensors has no place for heat" in s for s in said)
    assert any("frames" in s for s in said)


def test_the_writer_replaces_nothing(tmp_path: Path):
    path = save(tmp_path / "log.msg", imu_log())
    before = path.read_bytes()
    with pytest.raises(UsageError):
        write(small_recording(), path, "cdff_msgpack")
    assert path.read_bytes() == before


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("written") / "log.msg"
    recording = small_recording()
    write(
        recording.replace(streams=tuple(s for s in recording if s.type is not PointCloud)),
        path,
        "cdff_msgpack",
    )
    return path.read_bytes()


@given(data=st.data())
def test_damaged_bytes_never_cause_an_untyped_error_or_a_silent_loss(
    data: st.DataObject, written: bytes, tmp_path_factory: pytest.TempPathFactory
):
    damaged = bytearray(written)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "log.msg"
    path.write_bytes(damaged[: data.draw(st.sampled_from([len(damaged), len(damaged) // 2]))])
    try:
        rec = transect.open(path, format="cdff_msgpack")
        counts = {s.name: len(s) for s in rec}
        lost = rec.losses
    except TransectError:
        return
    if sum(counts.values()) < 4 * 8:
        assert lost
    for stream in rec:
        if len(stream):
            with suppress(TransectError):
                _ = stream[0].value


def test_unknown_bytes_are_not_recognised(tmp_path: Path):
    (tmp_path / "x.msg").write_bytes(b"\x80" * 100)
    with pytest.raises(UnknownFormatError):
        transect.open(tmp_path / "x.msg")


def test_opening_builds_no_image_and_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from transect.datasets.cdff.msgpack import reading

    calls: list[Any] = []
    monkeypatch.setattr(reading, "decode_octets", lambda data: calls.append(1) or decode_octets(data))
    rec = opened(
        tmp_path, port("/cam.image", "Frame", [frame(START_US, np.zeros((3, 4), np.uint8))], [START_US])
    )
    assert len(rec["/cam.image"]) == 1
    assert dataclasses.is_dataclass(rec)
    assert calls == []
    assert rec["/cam.image"][0].value.data.shape == (3, 4)
    assert calls == [1]
