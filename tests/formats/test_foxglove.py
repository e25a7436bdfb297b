"""Foxglove's schemas in MCAP: numbers of fields, what is written and read back, files of others."""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import NonSeekingReader, make_reader
from mcap.stream_reader import StreamReader
from mcap.writer import Writer
from tests.formats import every_type
from tests.formats.comparing import differences

import transect
from transect.errors import MissingExtraError
from transect.formats import write
from transect.formats.mcap import foxglove_schemas as schemas
from transect.recording import Recording, stream_of_values
from transect.types import GridMap, Image, LaserScan, NavFix, PointCloud, Pose, Record, Trajectory

START = every_type.START_NS


def sample() -> Recording:
    return every_type.recording()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("foxglove") / "every.mcap"
    assert write(sample(), path, "foxglove") == ()
    return path


def messages(path: Path, topic: str) -> list[tuple[Any, Any]]:
    """Return (schema, message) of a topic's messages, as the mcap library gives them."""
    with path.open("rb") as stream:
        return [(schema, message) for schema, _, message in make_reader(stream).iter_messages([topic])]


def decode(schema: Any, message: Any) -> Any:
    """Read a message by the classes that Foxglove publishes, not by ours."""
    name = schema.name.removeprefix("foxglove.")
    theirs = importlib.import_module(f"foxglove_schemas_protobuf.{name}_pb2")
    return getattr(theirs, name).FromString(message.data)


@pytest.mark.parametrize("name", schemas._FIELDS)  # pyright: ignore[reportPrivateUsage]
def test_every_field_has_the_number_and_type_that_foxglove_gave_it(name: str):
    theirs = importlib.import_module(f"foxglove_schemas_protobuf.{name}_pb2")
    known = {f.name: (f.number, f.type, f.is_repeated) for f in getattr(theirs, name).DESCRIPTOR.fields}
    for field in schemas.message_class(name).DESCRIPTOR.fields:
        assert known[field.name] == (field.number, field.type, field.is_repeated)
        if field.enum_type is not None:
            enum = getattr(theirs, name).DESCRIPTOR.fields_by_name[field.name].enum_type
            assert {v.name: v.number for v in field.enum_type.values} == {
                v.name: v.number for v in enum.values
            }


@pytest.mark.parametrize("format", ["mcap", "foxglove"])
def test_the_mcap_library_reads_it_strictly_with_checksums(tmp_path: Path, format: str):
    path = tmp_path / "out.mcap"
    write(sample(), path, format)
    with path.open("rb") as stream:
        records = list(StreamReader(stream, validate_crcs=True).records)
    assert {type(record).__name__ for record in records} >= {"Message", "DataEnd", "Statistics", "Footer"}
    with path.open("rb") as stream:
        counted = len(list(NonSeekingReader(stream, validate_crcs=True).iter_messages()))
    with path.open("rb") as stream:
        summary = make_reader(stream, validate_crcs=True).get_summary()
    assert summary is not None
    assert summary.statistics is not None
    assert counted == summary.statistics.message_count > 0


def test_what_was_written_reads_back_exactly(written: Path):
    assert {
        name: found for name, found in differences(sample(), transect.open(written)).items() if found
    } == {}


def test_each_stream_has_the_schema_that_foxglove_has_for_it(written: Path):
    with written.open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert summary is not None
    found = {c.topic: summary.schemas[c.schema_id].name for c in summary.channels.values()}
    expected = {
        "scan": "LaserScan", "lidar": "PointCloud", "fix": "LocationFix", "pose": "PoseInFrame",
        "odom": "PoseInFrame", "track": "PosesInFrame", "camera": "RawImage", "depth": "RawImage",
        "camera/calibration": "CameraCalibration", "log": "Log", "dem": "Grid",
        "frames/static": "FrameTransforms", "frames/moving/body": "FrameTransform",
    }  # fmt: skip
    assert {topic: found[topic] for topic in expected} == {t: f"foxglove.{n}" for t, n in expected.items()}
    assert found["imu"] == "transect.Imu"


def test_a_scan_keeps_its_beam_without_a_return(written: Path):
    scans = [decode(*pair) for pair in messages(written, "scan")]
    rows = every_type.streams()["LaserScan"]["ranges"]
    assert [np.isnan(list(scan.ranges)).sum() for scan in scans] == [0, 1, 0]
    assert len(rows) == len(scans)
    assert scans[0].start_angle == -0.7
    assert scans[0].end_angle == pytest.approx(-0.7 + 3 * 0.35, abs=1e-15)
    assert scans[0].frame_id == "laser"


def test_a_fix_is_in_degrees_at_its_time(written: Path):
    (schema, message), *_ = messages(written, "fix")
    fix = decode(schema, message)
    assert (fix.latitude, fix.longitude, fix.altitude) == (37.7, 15.0, 1700.5)
    assert fix.timestamp.seconds * 10**9 + fix.timestamp.nanos == message.publish_time == START


def test_a_cloud_has_packed_fields_that_numpy_reads(written: Path):
    cloud = decode(*messages(written, "lidar")[0])
    forms = {1: "u1", 3: "u2", 5: "u4", 7: "f4", 8: "f8"}
    dtype = np.dtype(
        {
            "names": [f.name for f in cloud.fields],
            "formats": [f"<{forms[f.type]}" for f in cloud.fields],
            "offsets": [f.offset for f in cloud.fields],
            "itemsize": cloud.point_stride,
        }
    )
    points = np.frombuffer(cloud.data, dtype)
    assert points["ring"].tolist() == [0, 1, 2, 3, 4]
    assert points["alpha"].tolist() == [255] * 5
    assert np.isnan(points["x"]).tolist() == [False, False, True, False, False]
    assert cloud.pose.orientation.w == 1.0


def test_a_grid_begins_at_its_lowest_y(written: Path):
    grid = decode(*messages(written, "dem")[0])
    assert (grid.column_count, grid.row_stride, grid.cell_stride) == (3, 12, 4)
    assert (grid.cell_size.x, grid.cell_size.y) == (0.1, 0.1)
    assert (grid.pose.position.x, grid.pose.position.y) == (5.3, pytest.approx(7.7 - 0.4))
    assert [(f.name, f.offset, f.type) for f in grid.fields] == [("elevation", 0, 7)]


def test_each_image_has_a_calibration_of_equal_stamp(written: Path):
    images, calibrations = messages(written, "camera"), messages(written, "camera/calibration")
    assert [m.publish_time for _, m in images] == [m.publish_time for _, m in calibrations]
    calibration = decode(*calibrations[0])
    assert (calibration.width, calibration.height, calibration.frame_id) == (8, 6, "camera")
    assert calibration.distortion_model == "plumb_bob"
    assert list(calibration.K) == every_type.CAMERA.K.reshape(-1).tolist()
    assert np.reshape(calibration.P, (3, 4))[:, :3].tolist() == every_type.CAMERA.K.tolist()


def test_a_frame_that_moves_is_sent_at_its_times(written: Path):
    moved = [decode(*pair) for pair in messages(written, "frames/moving/body")]
    assert [(m.parent_frame_id, m.child_frame_id) for m in moved] == [("map", "body")] * 3
    (fixed,) = [decode(*pair) for pair in messages(written, "frames/static")]
    assert [(t.parent_frame_id, t.translation.z) for t in fixed.transforms] == [("body", 0.3)]


def test_text_is_a_log_and_numbers_beside_a_pose_are_json(written: Path):
    assert [decode(*pair).message for pair in messages(written, "log")] == ["drove", "stopped: é", ""]
    rows = [json.loads(message.data) for _, message in messages(written, "odom/columns")]
    assert [row["vx"] for row in rows] == every_type.streams()["Odometry"]["vx"].tolist()


def write_foreign(path: Path, topics: dict[str, tuple[Any, list[Any]]], encoding: str = "protobuf") -> Path:
    """Write messages as a program of Foxglove's would: its classes, its files of schemas, no metadata."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        for topic, (made, sent) in topics.items():
            files: dict[str, Any] = {}
            waiting = [made.DESCRIPTOR.file]
            while waiting:
                file = waiting.pop()
                files = {file.name: file, **{k: v for k, v in files.items() if k != file.name}}
                waiting += file.dependencies
            described = FileDescriptorSet()
            for file in files.values():
                file.CopyToProto(described.file.add())
            schema = writer.register_schema(
                made.DESCRIPTOR.full_name, encoding, described.SerializeToString()
            )
            channel = writer.register_channel(topic, encoding, schema)
            for k, message in enumerate(sent):
                writer.add_message(channel, START + k, message.SerializeToString(), publish_time=START + k)
        writer.finish()
    return path


def theirs(name: str) -> Any:
    return getattr(importlib.import_module(f"foxglove_schemas_protobuf.{name}_pb2"), name)


def test_a_file_of_foxgloves_own_opens_with_types_times_and_frames(tmp_path: Path):
    stamp = {"seconds": 1_650_000_000, "nanos": 5}
    scan = theirs("LaserScan")(
        timestamp=stamp, frame_id="laser", start_angle=-1.0, end_angle=1.0, ranges=[1, 2, 3]
    )
    fix = theirs("LocationFix")(timestamp=stamp, frame_id="gps", latitude=45.0, longitude=90.0, altitude=7.0)
    fix.position_covariance.extend([4.0, 0, 0, 0, 9.0, 0, 0, 0, 16.0])
    fix.position_covariance_type = 2
    transform = theirs("FrameTransform")(timestamp=stamp, parent_frame_id="base", child_frame_id="laser")
    transform.translation.x, transform.rotation.w = 2.0, 1.0
    image = theirs("RawImage")(
        timestamp=stamp, frame_id="cam", width=2, height=1, step=6, encoding="rgb8", data=bytes(6)
    )
    path = write_foreign(
        tmp_path / "theirs.mcap",
        {m.DESCRIPTOR.name: (type(m), [m]) for m in (scan, fix, transform, image)},
    )
    rec = transect.open(path)
    assert {s.name: s.type for s in rec if s.name != "FrameTransform"} == {
        "LaserScan": LaserScan, "LocationFix": NavFix, "RawImage": Image,
    }  # fmt: skip
    assert {s.t_ns[0] for s in rec} == {1_650_000_000_000_000_005}
    assert rec["LaserScan"][0].value.angles.tolist() == [-1.0, 0.0, 1.0]
    assert rec["LaserScan"].frame == "laser"
    fixed = rec["LocationFix"]
    found = [fixed[name][0] for name in ("lat", "lon", "alt", "std_east", "std_north", "std_down")]
    assert found == [pytest.approx(np.pi / 4), pytest.approx(np.pi / 2), 7.0, 2.0, 3.0, 4.0]
    assert rec.frames.lookup("base", "laser")[0, 3] == 2.0
    assert (rec["RawImage"][0].value.mode, rec["RawImage"].frame) == ("rgb", "cam")


def test_other_protobuf_messages_become_columns(tmp_path: Path):
    from google.protobuf.type_pb2 import EnumValue

    path = write_foreign(
        tmp_path / "a.mcap", {"enum": (EnumValue, [EnumValue(name="a", number=3), EnumValue(number=4)])}
    )
    stream = transect.open(path)["enum"]
    assert stream.type is Record
    assert (stream["name"], stream["number"].tolist()) == (["a", ""], [3, 4])


def test_an_invalid_message_is_lost_and_located(tmp_path: Path):
    good = theirs("PoseInFrame")(frame_id="map")
    path = write_foreign(tmp_path / "a.mcap", {"pose": (type(good), [good])})
    with path.open("rb") as stream:
        (schema, _, _), *_ = make_reader(stream).iter_messages()
    assert schema is not None
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        number = writer.register_schema(schema.name, schema.encoding, schema.data)
        channel = writer.register_channel("pose", "protobuf", number)
        for data in (good.SerializeToString(), b"\x0a\xff\xff"):
            writer.add_message(channel, START, data, START)
        writer.finish()
    found = transect.open(path)["pose"]
    assert (found.type, len(found)) == (Pose, 1)
    assert [loss.count for loss in found.losses] == [1]


def test_scans_in_json_open_too(tmp_path: Path):
    scan = {
        "timestamp": {"sec": 1_650_000_000, "nsec": 1}, "frame_id": "laser", "start_angle": 0.0,
        "end_angle": 0.5, "ranges": [1.0, None], "intensities": [],
    }  # fmt: skip
    with (tmp_path / "a.mcap").open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        schema = writer.register_schema("foxglove.LaserScan", "jsonschema", b"{}")
        channel = writer.register_channel("scan", "json", schema)
        writer.add_message(channel, START, json.dumps(scan).encode(), START)
        writer.finish()
    found = transect.open(tmp_path / "a.mcap")["scan"]
    assert found.type is LaserScan
    assert (found["angle_increment"].tolist(), found.frame) == ([0.5], "laser")
    assert np.array_equal(found["ranges"], [[1.0, np.nan]], equal_nan=True)
    assert found.t_ns.tolist() == [1_650_000_000_000_000_001]


def test_a_mosaic_of_rows_and_a_grid_that_is_turned_read_back(tmp_path: Path):
    cells = {"cost": np.arange(6, dtype=np.uint8).reshape(2, 3), "far": np.arange(6).reshape(2, 3) * 2**40}
    turned = GridMap(cells, (0.3, -0.4, 1.0, 0.4, 0.3, 2.0), "", "map", START)
    base = every_type.streams()["GridMap"]
    rec = Recording("grid", (base.replace(loader=lambda row: turned),))
    write(rec, tmp_path / "grid.mcap", "foxglove")
    back = transect.open(tmp_path / "grid.mcap")["dem"][0].value
    assert back.transform == turned.transform
    assert {n: v.tolist() for n, v in back.layers.items()} == {n: v.tolist() for n, v in cells.items()}
    assert {n: v.dtype for n, v in back.layers.items()} == {n: v.dtype for n, v in cells.items()}


def test_times_of_a_path_and_a_track_without_attitude_are_kept(tmp_path: Path):
    flat = Trajectory(
        np.array([5, 9]), np.array([[1.0, 2.0, np.nan], [3.0, 4.0, np.nan]]), frame="map", clock="device"
    )
    rec = Recording("t", (every_type.streams()["Trajectory"].replace(loader=lambda row: flat),))
    write(rec, tmp_path / "t.mcap", "foxglove")
    back = transect.open(tmp_path / "t.mcap")["track"][0].value
    assert (back.t_ns.tolist(), back.orientations, back.clock) == ([5, 9], None, "device")
    assert np.array_equal(back.positions, flat.positions, equal_nan=True)


def test_images_of_files_are_copied_byte_for_byte(tmp_path: Path):
    import cv2

    folder = tmp_path / "images"
    folder.mkdir()
    for k in range(2):
        cv2.imwrite(str(folder / f"{START + k}.jpg"), np.full((4, 6), 40 * k, np.uint8))
    rec = transect.open(folder)
    write(rec, tmp_path / "out.mcap", "foxglove")
    (camera,) = [s for s in rec if s.type is Image]
    found = [decode(*pair) for pair in messages(tmp_path / "out.mcap", camera.name)]
    assert [m.data for m in found] == [(folder / f"{START + k}.jpg").read_bytes() for k in range(2)]
    assert {m.format for m in found} == {"jpeg"}


def test_without_protobuf_writing_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "google.protobuf", None)
    schemas.descriptor_set.cache_clear()
    with pytest.raises(MissingExtraError, match="protobuf"):
        write(sample(), tmp_path / "out.mcap", "foxglove")
    assert not (tmp_path / "out.mcap").exists()


def test_points_of_any_type_read_back(tmp_path: Path):
    fields = {
        "flag": np.array([True, False]),
        "id": np.array([2**60 + 1, -3]),
        "cov": np.arange(4.0).reshape(2, 2),
    }
    cloud = PointCloud(np.ones((2, 3)), fields, START, "laser", np.arange(7.0))
    rec = Recording("c", (every_type.streams()["PointCloud"].replace(loader=lambda row: cloud),))
    write(rec, tmp_path / "c.mcap", "foxglove")
    back = transect.open(tmp_path / "c.mcap")["lidar"][0].value
    for name, values in fields.items():
        assert back.fields[name].dtype == values.dtype
        assert np.array_equal(back.fields[name], values)
    assert back.viewpoint.tolist() == list(range(7))


def test_an_imu_has_no_schema_and_stays_rows_of_json(tmp_path: Path):
    imu = stream_of_values("imu", np.array([START]), {"acc_x": np.array([1.5])})
    write(Recording("i", (imu,)), tmp_path / "i.mcap", "foxglove")
    ((schema, message),) = messages(tmp_path / "i.mcap", "imu")
    assert (schema.encoding, json.loads(message.data)) == ("jsonschema", {"acc_x": 1.5})
