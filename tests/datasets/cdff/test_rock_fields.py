"""Which fields of Rock's and CDFF's types become which columns, told by small logs of every kind."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.datasets.cdff.test_msgpack import START_US, joint_turns, opened, port, state, time

from transect.datasets.cdff.msgpack.cursor import InvalidValue, decode_numbers, decode_octets, decode_rows
from transect.datasets.cdff.rock.kinds import detect_order
from transect.errors import TransectError
from transect.recording import Stream
from transect.types import LaserScan, NavFix, Pose, Record, RigidBodyState, Transform, Wrench


def stream_of(tmp_path: Path, kind: str, *samples: dict[str, Any]) -> Stream:
    return opened(tmp_path, port("/a.b", kind, list(samples), [START_US] * len(samples)))["/a.b"]


def test_a_wrench_has_its_forces_and_torques(tmp_path: Path):
    sample = {"time": time(START_US), "force": [1.0, 2.0, 3.0], "torque": [4.0, 5.0, 6.0]}
    stream = stream_of(tmp_path, "Wrench", sample)
    assert stream.type is Wrench
    assert stream.array("fx", "fy", "fz", "tx", "ty", "tz").tolist() == [[1, 2, 3, 4, 5, 6]]


def solution(**changes: Any) -> dict[str, Any]:
    return {
        "time": time(START_US), "latitude": 45.0, "longitude": 90.0, "altitude": 12.0,
        "deviationLatitude": 0.1,
        "deviationLongitude": 0.2, "deviationAltitude": 0.3, "positionType": "RTK_FIXED",
        "noOfSatellites": 9,
    } | changes  # fmt: skip


def test_a_solution_of_a_receiver_is_in_radians_with_its_deviations(tmp_path: Path):
    stream = stream_of(tmp_path, "/gps/Solution", solution(), solution(positionType="AUTONOMOUS"))
    assert stream.type is NavFix
    np.testing.assert_allclose(stream.array("lat", "lon")[0], [np.pi / 4, np.pi / 2])
    assert stream.array("alt", "std_north", "std_east", "std_down")[0].tolist() == [12.0, 0.1, 0.2, 0.3]
    assert stream["fix"] == ["rtk fixed", "3d"]
    assert stream["satellites"].tolist() == [9, 9]


def test_a_solution_without_deviations_or_height_has_none(tmp_path: Path):
    bare = {"time": time(START_US), "latitude": 45.0, "longitude": 90.0}
    stream = stream_of(tmp_path, "/gps/Solution", bare)
    assert stream.type is NavFix
    assert np.isnan(stream["alt"]).all()
    assert not {"std_north", "fix", "satellites"} & set(stream.table.column_names)


@pytest.mark.parametrize(
    ("kind", "sample"),
    [
        ("/gps/Solution", {"time": time(START_US), "altitude": 45.0}),
        ("LaserScan", {"time": time(START_US), "start_angle": 0.5}),
        ("Wrench", {"time": time(START_US), "torque": [1.0, 2.0, 3.0]}),
        ("RigidBodyState", {"time": time(START_US), "velocity": [1.0, 2.0, 3.0]}),
    ],
)
def test_a_type_without_its_required_fields_is_rows_of_what_there_is(
    tmp_path: Path, kind: str, sample: dict[str, Any]
):
    stream = stream_of(tmp_path, kind, sample)
    assert stream.type is Record
    (name,) = set(sample) - {"time"}
    assert stream[name].tolist() == [sample[name]]


def test_a_scan_may_say_nothing_but_its_ranges(tmp_path: Path):
    stream = stream_of(tmp_path, "LaserScan", {"time": time(START_US), "ranges": [1000, 2000]})
    assert stream.type is LaserScan
    value = stream[0].value
    assert value.ranges.tolist() == [1.0, 2.0]
    assert np.isnan([value.range_min, value.range_max]).all()
    assert not {"range_error", "remission", "speed"} & set(stream.table.column_names)


def test_frames_that_change_in_a_stream_are_columns_and_noted(tmp_path: Path):
    samples = [state(START_US, [0.0, 0.0, 0.6, 0.8]), {**state(START_US + 1, [0.0, 0.0, 0.6, 0.8])}]
    samples[1]["sourceFrame"] = "arm"
    recording = opened(tmp_path, port("/a.b", "RigidBodyState", samples, [START_US] * 2))
    assert recording["/a.b"].type is RigidBodyState
    assert recording["/a.b"]["source_frame"] == ["body", "arm"]
    (note,) = [note for note in recording.all_notes if "source_frame" in note]
    assert "arm, body" in note


def transform(us: int) -> dict[str, Any]:
    return {
        "metadata": {
            "parentFrameId": "world", "childFrameId": "rover", "producerId": "slam",
            "parentTime": time(us + 3), "childTime": time(us), "dataEstimated": [True] * 6 + [False],
        },
        "data": {
            "translation": [1.0, 2.0, 3.0], "orientation": [0.0, 0.0, 0.6, 0.8],
            "cov": np.diag([1.0, 2, 3, 4, 5, 6]).tolist(),
        },
    }  # fmt: skip


def test_a_transform_with_covariance_has_frames_producer_and_both_times(tmp_path: Path):
    stream = stream_of(tmp_path, "TransformWithCovariance", transform(START_US), transform(START_US + 10))
    assert stream.type is Transform
    assert (stream.frame, stream.child) == ("world", "rover")
    assert stream.array("x", "y", "z", "qz", "qw")[1].tolist() == [1.0, 2.0, 3.0, 0.6, 0.8]
    assert stream["covariance"].reshape(2, 6, 6)[0].diagonal().tolist() == [1, 2, 3, 4, 5, 6]
    assert stream["estimated"].tolist() == [[1] * 6 + [0]] * 2
    assert stream["producer"] == ["slam", "slam"]
    assert stream["target_t_ns"].tolist() == [(START_US + 3) * 1000, (START_US + 13) * 1000]
    assert stream.t_ns.tolist() == [START_US * 1000, (START_US + 10) * 1000]


def test_a_pose_in_rock_s_spelling_names_the_parts_of_its_quaternion(tmp_path: Path):
    sample = {
        "time": time(START_US), "position": {"data": [1.0, 2.0, 3.0]},
        "orientation": {"im": [0.1, 0.2, 0.3], "re": 0.9},
    }  # fmt: skip
    stream = stream_of(tmp_path, "Pose", sample)
    assert stream.type is Pose
    assert stream.array("x", "y", "z").tolist() == [[1.0, 2.0, 3.0]]
    assert stream.array("qx", "qy", "qz", "qw").tolist() == [[0.1, 0.2, 0.3, 0.9]]


def test_joints_of_one_number_are_one_joint_and_of_other_counts_a_list(tmp_path: Path):
    one = stream_of(tmp_path, "JointState", {"time": time(START_US), "position": 0.5, "speed": 0.1})
    assert one["position"].tolist() == [[0.5]]
    assert one["velocity"].tolist() == [[0.1]]

    def joints(*positions: float) -> dict[str, Any]:
        return {"time": time(START_US), "names": ["a"], "elements": [{"position": p} for p in positions]}

    uneven = stream_of(tmp_path, "Joints", joints(1.0), joints(2.0, 3.0))
    assert uneven.table.column("position").to_pylist() == [[1.0], [2.0, 3.0]]


def test_a_joint_whose_position_nobody_knows_is_still():
    turns = np.array(joint_turns(1, scalar_first=True))
    unknown = np.full((len(turns), 3), np.nan)
    moving = np.column_stack([np.arange(float(len(turns))), np.zeros((len(turns), 2))])
    assert [detect_order(turns, places)[0] for places in (None, unknown, moving)] == ["wxyz", "wxyz", "xyzw"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None, 1.5, 2], [np.nan, 1.5, 2.0]),  # nil is a number that is not there
        ([True, False, True], [1, 0, 1]),
        ([2**63 - 1, 2**62, 0], [2**63 - 1, 2**62, 0]),
        ([2**64 - 1, 2**63, 0], [2**64 - 1, 2**63, 0]),
    ],
)
def test_numbers_of_a_field_are_kept_exactly(tmp_path: Path, values: list[Any], expected: list[float]):
    stream = stream_of(tmp_path, "Odd", *({"time": time(START_US), "v": v} for v in values))
    np.testing.assert_array_equal(stream["v"], expected)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("text", 5.0), (1.0, "text"), (1.0, [1.0]), ([1.0, 2.0], 3.0), ([1.0], {"x": 1.0}), ({"x": 1.0}, 2.0),
        (b"bytes", "text"), ([{"x": 1.0}], [2.0]), (1.0, 2**70 * 1.0),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_left_out_and_the_others_stay(tmp_path: Path, good: Any, bad: Any):
    values = [good, bad, good]
    samples = [{"time": time(START_US + k), "v": v} for k, v in enumerate(values)]
    stream = stream_of(tmp_path, "Odd", *samples)
    fits = isinstance(bad, float) and isinstance(good, float)
    assert len(stream) == (3 if fits else 2)
    assert sum(loss.count for loss in stream.losses) == (0 if fits else 1)


def packed(*parts: bytes) -> bytes:
    return b"".join(parts)


@pytest.mark.parametrize(
    ("data", "width", "why"),
    [
        (packed(b"\x92", b"\x92\x01\x02", b"\x92\x03\x04"), 3, "2 numbers, not 3"),
        (packed(b"\x92", b"\x01", b"\xa1x"), 1, "something else"),
        (packed(b"\x91", b"\x91\x01"), 1, "something else"),
    ],
)
def test_rows_that_are_no_rows_are_broken(data: bytes, width: int, why: str):
    with pytest.raises(InvalidValue, match=why):
        decode_rows(data, width)


def test_rows_may_be_none_maps_or_of_other_number_types():
    assert decode_rows(b"\x90", 3).shape == (0, 3)
    # [{"data": [1, 2]}, {"data": [3, 4]}]
    maps = b"\x92" + b"".join(b"\x81\xa4data\x92" + bytes(pair) for pair in ((1, 2), (3, 4)))
    assert decode_rows(maps, 2).tolist() == [[1, 2], [3, 4]]
    # [[1.5f, 2.5f], [1, 2]]: the second row is of other numbers than the first
    floats = b"\xca\x3f\xc0\x00\x00\xca\x40\x20\x00\x00"
    assert decode_rows(b"\x92\x92" + floats + b"\x92\x01\x02", 2).tolist() == [[1.5, 2.5], [1, 2]]
    assert decode_rows(b"\x92\x92" + floats + b"\x92" + floats, 2).tolist() == [[1.5, 2.5]] * 2


def test_octets_are_a_list_of_small_numbers_or_a_block():
    assert decode_octets(b"\xc4\x02\x07\xff").tolist() == [7, 255]
    assert decode_octets(b"\x93\x07\xcc\xff\xcc\xcc").tolist() == [7, 255, 204]
    for data, why in (
        (b"\x93\x07\xcc\xff", "should have 3 bytes"),
        (b"\x91\xcd\x01\x00", "not a list of bytes"),
    ):
        with pytest.raises(InvalidValue, match=why):
            decode_octets(data)


def test_more_numbers_than_are_wanted_are_left_and_said_to_be_whole_or_not():
    data = b"\x93\x01\x02\xca\x3f\xc0\x00\x00"
    found, end, whole = decode_numbers(data, 0, 3)
    assert (found.tolist(), end, whole) == ([1, 2, 1.5], len(data), True)
    found, _, whole = decode_numbers(data[:-1], 0, 3)
    assert (found.tolist(), whole) == ([1, 2], False)
    found, _, whole = decode_numbers(data, 0, 2)
    assert (found.tolist(), whole) == ([1, 2], False)


def test_a_port_of_nothing_but_empty_maps_has_no_rows(tmp_path: Path):
    recording = opened(tmp_path, port("/a.b", "Odd", [{}, {}], [START_US, START_US + 1]))
    assert sum(len(stream) for stream in recording) == 0
    assert sum(loss.count for loss in recording.losses) == 2


def test_an_order_that_is_told_is_not_guessed(tmp_path: Path):
    log = port("/a.b", "RigidBodyState", [state(START_US, [0.8, 0.0, 0.0, 0.6])], [START_US])
    stream = opened(tmp_path, log, quaternion="wxyz")["/a.b"]
    assert stream.array("qx", "qy", "qz", "qw").tolist() == [[0.0, 0.0, 0.6, 0.8]]
    with pytest.raises(TransectError, match="quaternion"):
        opened(tmp_path, log, quaternion="zyxw")
