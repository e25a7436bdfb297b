"""Your own robot: a recording.yaml says what any files are, and a first one is guessed."""

import json
import runpy
import zipfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import transect
from transect.base.units import unit_of
from transect.errors import ParseError, TransectError, UsageError
from transect.formats.described.guess import guess, pattern_of
from transect.formats.described.layout import layout_of
from transect.formats.described.model import json_schema, parse
from transect.formats.shared.clouds import encode_cloud
from transect.recording import source_of
from transect.types import Imu, NavFix, Odometry, PointCloud, Pose, Record, Twist

ROOT = Path(__file__).resolve().parents[2]

DESCRIPTION = """\
name: first drive
conditions: {weather: dry}
streams:
  - name: Imu
    type: Imu
    file: imu.csv
    time: {column: stamp, unit: ms}
    columns:
      acc_x: {source: ax, unit: g}
      acc_y: {source: ay, unit: g}
      acc_z: {source: az, unit: g}
      gyro_x: {source: 4, unit: deg/s}
      gyro_y: {source: 5, unit: deg/s}
      gyro_z: {source: 6, unit: deg/s}
      state: {source: state, text: true}
    frame: imu
frames:
  - {frame: base, child: imu, xyz: [0.1, 0.0, 0.2], euler: {order: xyz, degrees: [0, 0, 90]}}
cameras:
  left: {size: [8, 6], focal: [10, 10], centre: [4, 3]}
"""
IMU = """\
stamp,ax,ay,az,wx,wy,wz,state
1657000000123.456,0,0,1,90,0,0,idle
1657000000133.456,0,0.5,1,0,180,0,moving
"""


def folder(tmp_path: Path, description: str = DESCRIPTION, **files: str) -> Path:
    (tmp_path / "recording.yaml").write_text(description)
    for name, text in ({"imu.csv": IMU} | {k.replace("_", "."): v for k, v in files.items()}).items():
        (tmp_path / name).write_text(text)
    return tmp_path


def one_stream(tmp_path: Path, text: str, **spec: Any) -> transect.Stream:
    """Open one table with one stream's description."""
    (tmp_path / "data.txt").write_text(text)
    content = {"streams": [{"name": "it", "file": "data.txt", **spec}]}
    (tmp_path / "recording.yaml").write_text(yaml.safe_dump(content))
    return transect.open(tmp_path)["it"]


def test_columns_units_times_and_frames_are_what_the_description_says(tmp_path: Path):
    recording = transect.open(folder(tmp_path))
    assert (recording.format, recording.name) == ("described", "first drive")
    assert recording.conditions == {"weather": "dry"}
    imu = recording["Imu"]
    assert (imu.type, imu.clock, imu.frame) == (Imu, "utc", "imu")
    assert imu.t_ns.tolist() == [1657000000_123456000, 1657000000_133456000]
    np.testing.assert_allclose(imu[1].value.acceleration, [0, 0.5 * 9.80665, 9.80665])
    np.testing.assert_allclose(imu[0].value.angular_velocity, [np.pi / 2, 0, 0])
    assert imu.units["gyro_x"] == "rad/s"
    assert imu["state"] == ["idle", "moving"]
    np.testing.assert_allclose(recording.frames.lookup("base", "imu")[:3, 3], [0.1, 0, 0.2])
    assert recording.cameras["left"].K[0, 0] == 10


def test_a_zip_opens_like_the_folder(tmp_path: Path):
    folder(tmp_path / "a" if (tmp_path / "a").mkdir() is None else tmp_path)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for file in (tmp_path / "a").iterdir():
            archive.write(file, f"drive/{file.name}")
    assert transect.open(tmp_path / "a.zip")["Imu"].table.equals(transect.open(tmp_path / "a")["Imu"].table)


def test_the_description_s_own_path_opens_the_recording(tmp_path: Path):
    path = folder(tmp_path)
    assert len(transect.open(path / "recording.yaml")["Imu"]) == 2


@pytest.mark.parametrize(
    ("text", "time", "t_ns"),
    [
        ("d,h,v\n2022-07-01,12:00:00.123456789,1\n", {"columns": ["d", "h"]}, 1656676800_123456789),
        ("t;v\n2022-07-01T12:00:00Z;1\n", {"column": "t", "unit": "iso"}, 1656676800_000000000),
        ("t;v\n2022-07-01T14:00:00.5+02:00;1\n", {"column": "t", "unit": "iso"}, 1656676800_500000000),
        (
            "d\th\tv\n01.07.2022\t12:00:00.25\t1\n",
            {"columns": ["d", "h"], "format": "%d.%m.%Y %H:%M:%S"},
            1656676800_250000000,
        ),
        ("t v\n1656676800.123456789 1\n", {"column": "t"}, 1656676800_123456789),
        ("t v\n1656676800123456789 1\n", {"column": "t", "unit": "ns"}, 1656676800_123456789),
        ("1656676800123456 1\n", {"column": 0, "unit": "us"}, 1656676800_123456000),
        ("   1656676800  1\n", 0, 1656676800_000000000),
    ],
)
def test_times_of_every_spelling_are_exact(tmp_path: Path, text: str, time: Any, t_ns: int):
    assert one_stream(tmp_path, text, time=time).t_ns.tolist() == [t_ns]


def test_rows_without_a_time_are_counted(tmp_path: Path):
    stream = one_stream(tmp_path, "a,b\n1,2\n3,4\n")
    assert (stream.clock, stream.t_ns.tolist()) == ("index", [0, 10**9])
    assert stream.columns == ("a", "b")


def test_all_columns_come_along_where_none_are_named(tmp_path: Path):
    stream = one_stream(tmp_path, "t,speed [km/h],note\n1,36,a\n2,72,b\n", time="t", columns={})
    assert stream.units["speed"] == "m/s"
    np.testing.assert_allclose(stream["speed"], [10, 20])


def test_several_columns_make_a_list(tmp_path: Path):
    columns = {"position": {"source": ["q1", "q2", "q3"], "unit": "deg"}}
    stream = one_stream(tmp_path, "t,q1,q2,q3\n1,90,0,180\n", type="JointState", time="t", columns=columns)
    np.testing.assert_allclose(stream[0].value.position, [np.pi / 2, 0, np.pi])


def test_what_the_file_does_not_have_may_be_a_value(tmp_path: Path):
    columns = {"ranges": {"source": ["a", "b"]}, "start_angle": {"value": -90, "unit": "deg"}}
    stream = one_stream(tmp_path, "t,a,b\n1,4,5\n2,4,5\n", type="LaserScan", time="t", columns=columns)
    assert [each.value.start_angle for each in stream] == [-np.pi / 2, -np.pi / 2]
    for wrong in ({"unit": "deg"}, {"value": 1, "source": "a"}):
        with pytest.raises(ParseError, match="either a `source` or a `value`"):
            one_stream(tmp_path, "t,a\n1,2\n", time="t", columns={"a": wrong})


def test_a_field_may_hold_many_numbers(tmp_path: Path):
    columns = {
        "ranges": {"source": "r", "numbers": True, "unit": "mm"},
        "start_angle": "a",
        "angle_increment": "i",
    }
    text = "t,r,a,i\n1,1000 2000 3000,0,0.1\n2,500,0,0.1\n"
    stream = one_stream(tmp_path, text, type="LaserScan", time="t", columns=columns)
    np.testing.assert_allclose(stream[0].value.ranges, [1, 2, 3])
    np.testing.assert_allclose(stream[1].value.ranges, [0.5])


def test_numbers_that_say_that_nothing_was_measured_are_nan(tmp_path: Path):
    columns = {
        "ranges": {"source": "r", "numbers": True, "unit": "cm", "missing": [8191, 8190]},
        "start_angle": "a",
        "angle_increment": "i",
        "temperature": {"source": "c", "unit": "degC", "missing": [-999]},
    }
    text = "t,r,a,i,c\n1,100 8191 300 8190 8189,0,0.1,-999\n2,500,0,0.1,21\n"
    stream = one_stream(tmp_path, text, type="LaserScan", time="t", columns=columns)
    np.testing.assert_allclose(stream[0].value.measured, [1, np.nan, 3, np.nan, 81.89])
    np.testing.assert_allclose(stream["temperature"], [np.nan, 21])


def test_only_numbers_with_decimals_can_be_missing(tmp_path: Path):
    columns = {"n": {"source": "n", "type": "int64", "missing": [-1]}}
    with pytest.raises(ParseError, match="`missing` needs a `type`"):
        one_stream(tmp_path, "t,n\n1,2\n", time="t", columns=columns)


def test_log_times_and_number_types_are_kept(tmp_path: Path):
    columns = {"n": {"source": "n", "type": "int64"}, "ok": {"source": "ok", "type": "bool"}}
    text = "t,l,n,ok\n1,1.5,9007199254740993,true\n"
    stream = one_stream(tmp_path, text, time="t", log_time={"column": "l"}, columns=columns)
    assert stream.log_ns is not None
    assert stream.log_ns.tolist() == [1_500_000_000]
    assert stream["n"].tolist() == [9007199254740993]
    assert stream["ok"].tolist() == [True]


def test_several_files_are_read_one_behind_the_other(tmp_path: Path):
    (tmp_path / "b.csv").write_text("t,v\n3,30\n")
    (tmp_path / "a.csv").write_text("t,v\n1,10\n2,20\n")
    (tmp_path / "recording.yaml").write_text("streams: [{name: x, files: '*.csv', time: t}]\n")
    assert transect.open(tmp_path)["x"]["v"].tolist() == [10, 20, 30]


def test_images_and_clouds_are_streams_with_tags_and_cameras(tmp_path: Path):
    (tmp_path / "left").mkdir()
    for i in range(3):
        cv2.imwrite(str(tmp_path / f"left/{1657000000 + i}.png"), np.full((6, 8), i, np.uint8))
        cloud = PointCloud(np.full((4, 3), float(i), "f4"))
        (tmp_path / f"scan{i}.pcd").write_bytes(encode_cloud(cloud, ".pcd"))
    streams = """\
  - {name: LeftCam, type: Image, files: 'left/*.png', tag: left, camera: left, frame: left}
  - {name: Lidar, type: PointCloud, files: 'scan*.pcd'}
"""
    recording = transect.open(folder(tmp_path, DESCRIPTION.replace("frames:\n", streams + "frames:\n")))
    left = recording["LeftCam"]
    assert (left.clock, left.tag, left.t_ns[1]) == ("utc", "left", 1657000001 * 10**9)
    assert left[2].value.data[0, 0] == 2
    assert left[2].value.camera is recording.cameras["left"]
    assert recording["Lidar"].clock == "index"
    assert recording["Lidar"][1].value.points[0, 0] == 1


def test_a_calibration_file_beside_it_gives_cameras_and_frames(tmp_path: Path):
    (tmp_path / "camchain.yaml").write_text(
        "cam0: {camera_model: pinhole, intrinsics: [1, 2, 3, 4], distortion_model: none, resolution: [5, 6],"
        " T_cam_imu: [[1, 0, 0, 1], [0, 1, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]]}\n"
    )
    description = DESCRIPTION.split("frames:")[0] + "calibration: camchain.yaml\n"
    recording = transect.open(folder(tmp_path, description))
    assert recording.cameras["cam0"].K[1, 1] == 2
    assert recording.frames.lookup("cam0", "imu")[2, 3] == 3


def test_a_robot_file_beside_it_is_the_robot(tmp_path: Path):
    (tmp_path / "rover.yaml").write_text(
        "name: rover\nframes: [{frame: base, child: mast, xyz: [0, 0, 2]}]\n"
    )
    recording = transect.open(folder(tmp_path, "robot: rover.yaml\n" + DESCRIPTION))
    assert recording.robot is not None
    assert recording.robot.name == "rover"
    assert recording.frames.lookup("mast", "imu")[2, 3] == pytest.approx(-1.8)


# What is wrong is named with line, key and what was expected


@pytest.mark.parametrize(
    ("old", "new", "line", "what", "hint"),
    [
        ("    time:", "    tyme:", 7, "has an unknown key 'tyme'", "'time'"),
        ("name: Imu", "nmae: Imu", 4, "has an unknown key 'nmae'", "'name'"),
        ("conditions:", "condtions:", 2, "has an unknown key 'condtions'", "'conditions'"),
        ("type: Imu", "type: Imo", 5, "no type 'Imo'", "'Imu'"),
        ("ax, unit: g", "ax, unit: gg", 9, "no unit 'gg'", "'g'"),
        ("ax, unit: g", "ax, unit: deg", 9, "acc_x is in m/s2", ""),
        ("ax, unit: g", "ax, unti: g", 9, "has an unknown key 'unti'", "'unit'"),
        ("unit: ms", "unit: msec", 7, "unit should be s, ms, us, ns or iso, not 'msec'", "'ms'"),
        ("column: stamp, unit: ms", "unit: ms", 7, "column", ""),
        ("    file: imu.csv\n", "", 4, "file", ""),
        ("  - name: Imu\n    type", "  - type", 4, "an entry of streams has no name", ""),
        ("frame: imu", "frame: imu\n    header: -1", 17, "header", ""),
        ("frame: imu", "frame: imu\n    header: '1'", 17, "header should be a whole number, not '1'", ""),
        ("frame: imu", "frame: 3", 16, "frame should be text, not 3", 'write "3"'),
        ("source: 4", "source: {x: 4}", 12, "source should be a whole number or text or a list", ""),
        ("source: 4", "source: [4, 5.5]", 12, "an entry of source should be a whole number or text", ""),
        ("conditions: {weather: dry}", "conditions: {weather: dry", 3, "not YAML", ""),
    ],
)
def test_a_wrong_description_names_line_key_and_what_was_expected(
    tmp_path: Path, old: str, new: str, line: int, what: str, hint: str
):
    assert DESCRIPTION.count(old) >= 1
    with pytest.raises(ParseError) as caught:
        transect.open(folder(tmp_path, DESCRIPTION.replace(old, new, 1)))
    assert what in caught.value.what
    assert caught.value.where == f"recording.yaml:{line}"
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("old", "new", "what", "hint"),
    [
        ("column: stamp", "column: stmp", "no column 'stmp'", "'stamp'"),
        ("source: 4", "source: 40", "no column 40", ""),
        ("name: first drive", "robot: weedr", "no robot 'weedr'", "weeder"),
        ("name: first drive", "calibration: cam.yaml", "no file 'cam.yaml'", ""),
        ("child: imu", "chlid: imu", "a frame has", ""),
        ("degrees: [0, 0, 90]", "degrees: [0, 0]", "", ""),
        ("focal: [10, 10]", "focal: 10", "camera left", ""),
        ("    frame: imu", "    frame: imu\n    camera: lfet", "no camera 'lfet'", "'left'"),
    ],
)
def test_what_a_description_asks_for_has_to_be_there(
    tmp_path: Path, old: str, new: str, what: str, hint: str
):
    with pytest.raises(TransectError) as caught:
        assert transect.open(folder(tmp_path, DESCRIPTION.replace(old, new, 1)))["Imu"].table
    assert what in caught.value.what
    assert hint in caught.value.hint


LAUGHS = "".join(f"  b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("conditions:\n  b0: &b0 [ha]\n" + LAUGHS, "recording.yaml is too large", "recording.yaml"),
        ("streams:\n  b0: &b0 [ha]\n" + LAUGHS, "recording.yaml is too large", "recording.yaml"),
        ("streams: &all\n  - *all\n", "an alias refers to itself", "recording.yaml:2"),
    ],
)
def test_aliases_that_unfold_without_end_are_refused(tmp_path: Path, text: str, what: str, where: str):
    with pytest.raises(ParseError) as caught:
        transect.open(folder(tmp_path, text))
    assert (caught.value.what, caught.value.where) == (what, where)


def test_a_small_alias_is_what_it_stands_for(tmp_path: Path):
    text = DESCRIPTION.replace("acc_x: {source: ax, unit: g}", "acc_x: &g {source: ax, unit: g}")
    text = text.replace("acc_y: {source: ay, unit: g}", "acc_y: {<<: *g, source: ay}")
    np.testing.assert_allclose(transect.open(folder(tmp_path, text))["Imu"]["acc_y"], [0, 0.5 * 9.80665])


def test_all_problems_are_listed_each_with_its_line(tmp_path: Path):
    text = DESCRIPTION.replace("unit: ms", "unit: msec").replace("ax, unit: g", "ax, unti: g")
    text = text.replace("xyz: [0.1, 0.0, 0.2]", "xyz: [0.1, 0.0]").replace("focal: [10, 10]", "focal: 10")
    with pytest.raises(ParseError) as caught:
        transect.open(folder(tmp_path, text))
    assert caught.value.what == "recording.yaml has 4 problems"
    places = [line.split(": ")[0].strip() for line in caught.value.why.splitlines()]
    assert places == [f"recording.yaml:{line}" for line in (7, 9, 18, 20)]


def test_anchors_and_stars_that_are_no_aliases_are_fine(tmp_path: Path):
    conditions = "conditions: &day {weather: '*dry'}"
    recording = transect.open(folder(tmp_path, DESCRIPTION.replace("conditions: {weather: dry}", conditions)))
    assert recording.conditions == {"weather": "*dry"}


@pytest.mark.parametrize("depth", [50, 100_000])
def test_nesting_without_end_is_refused(tmp_path: Path, depth: int):
    with pytest.raises(ParseError, match="more than 50 deep") as caught:
        transect.open(folder(tmp_path, f"name: deep\nconditions: {'[' * depth}"))
    assert caught.value.where == "recording.yaml:2"


def test_two_streams_of_one_name_are_refused(tmp_path: Path):
    with pytest.raises(ParseError, match="two streams"):
        transect.open(folder(tmp_path, "streams: [{name: a, file: x.csv}, {name: a, file: y.csv}]\n"))


def test_a_missing_file_is_a_loss_and_the_other_streams_stay(tmp_path: Path):
    more = "  - {name: gone, file: im.csv}\nframes:\n"
    recording = transect.open(folder(tmp_path, DESCRIPTION.replace("frames:\n", more)))
    assert [s.name for s in recording] == ["Imu"]
    assert "im.csv" in recording.losses[0].reason
    assert "imu.csv" in recording.losses[0].reason
    with pytest.raises(ParseError):
        transect.open(tmp_path, strict=True)


# Bad rows


@pytest.mark.parametrize(
    ("text", "kept", "line"),
    [
        (IMU + "1657000000143.456,0,0,1,0,0,0,idle\n1657000000153.4", 3, 5),
        (IMU + "1657000000143.456,0,x,1,0,0,0,idle\n", 2, 4),
        (IMU + "1657000000143.456,0,0,1,0,0,idle\n", 2, 4),
        (IMU + "later,0,0,1,0,0,0,idle\n", 2, 4),
        (IMU.replace("\n", "\r\n"), 2, None),
        (IMU + "1657000000143.456,nan,,1,0,0,0,idle\n", 3, None),
        (IMU + "1657000000103.456,0,0,1,0,0,0,idle\n1657000000103.456,0,0,1,0,0,0,idle\n", 4, None),
    ],
)
def test_bad_rows_are_located_and_the_good_ones_stay(tmp_path: Path, text: str, kept: int, line: int | None):
    recording = transect.open(folder(tmp_path, imu_csv=text))
    assert len(recording["Imu"]) == kept
    assert [loss.line for loss in recording.losses] == ([] if line is None else [line])
    if line is not None:
        with pytest.raises(ParseError):
            transect.open(tmp_path, strict=True)


def test_an_empty_file_is_a_loss(tmp_path: Path):
    recording = transect.open(folder(tmp_path, imu_csv=""))
    assert len(recording["Imu"]) == 0
    assert recording.losses[0].reason == "it is empty"


def test_bad_dates_lists_and_flags_are_located(tmp_path: Path):
    columns = {"r": {"source": "r", "numbers": 2}, "ok": {"source": "ok", "type": "bool"}}
    text = (
        "d,h,r,ok\n2022-07-01,12:00:00,1 2,true\n2022-07-41,12:00:01,1 2,true\n"
        "2022-07-01,12:00:02,1,true\n2022-07-01,12:00:03,1 2,perhaps\n"
    )
    stream = one_stream(tmp_path, text, time={"columns": ["d", "h"]}, columns=columns)
    assert len(stream) == 1
    assert sorted(loss.line or 0 for loss in stream.losses) == [3, 4, 5]


def test_a_missing_image_of_a_list_is_a_loss(tmp_path: Path):
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((2, 2), np.uint8))
    text = "t,f\n1,a.png\n2,b.png\n"
    stream = one_stream(
        tmp_path, text, type="Image", time="t", columns={"payload": {"source": "f", "text": True}}
    )
    assert stream[0].value.data.shape == (2, 2)
    assert len(stream) == 1
    assert "b.png" in stream.losses[0].reason


@given(
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4),
    both=st.booleans(),
)
def test_mutated_files_raise_nothing_but_transect_errors(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[float, int]], both: bool
):
    path = folder(tmp_path_factory.mktemp("m"))
    for name in ("imu.csv", "recording.yaml")[: 1 + both]:
        data = bytearray((path / name).read_bytes())
        for place, value in changes:
            data[int(place * (len(data) - 1))] = value
        (path / name).write_bytes(bytes(data))
    try:
        recording = transect.open(path, format="described")
        rows = sum(len(stream) for stream in recording)
    except TransectError:
        return
    assert rows + sum(loss.count for loss in recording.losses) >= 1


# Guessing


def guessed(path: Path) -> tuple[transect.Recording, list[str]]:
    text, said = guess(source_of(path))
    (path / "recording.yaml").write_text(text)
    return transect.open(path), said


def table(path: Path, name: str, header: str, rows: list[str]) -> None:
    (path / name).write_text("\n".join([*([header] if header else []), *rows]) + "\n")


def test_an_imu_in_g_and_degrees_is_guessed(tmp_path: Path):
    rows = [f"{1657000000 + i / 100:.2f},0.01,-0.02,1.0,{i % 90},0,1" for i in range(200)]
    table(tmp_path, "imu.csv", "timestamp,accel_x,accel_y,accel_z,gyro_x,gyro_y,gyro_z", rows)
    recording, said = guessed(tmp_path)
    imu = recording["imu"]
    assert (imu.type, imu.clock, len(imu)) == (Imu, "utc", 200)
    np.testing.assert_allclose(imu[1].value.acceleration[2], 9.80665)
    np.testing.assert_allclose(imu[1].value.angular_velocity[0], np.pi / 180)
    assert any("in g" in s for s in said)
    assert any("deg/s" in s for s in said)
    assert recording.losses == ()


def test_units_are_guessed_from_the_whole_drive_not_from_the_rest_before_it(tmp_path: Path):
    """In a zip as in a folder, with a pulse of noise that no unit explains."""
    drive = [(0.2, 0.3) if i < 2000 else (50 * np.sin(i / 40), i * 360 / 2500) for i in range(2500)]
    rows = [
        f"{i / 50:.2f},0.01,-0.02,1,0,0,{90000 if i == 2100 else w:.3f}" for i, (w, _) in enumerate(drive)
    ]
    table(tmp_path, "imu.csv", "t,ax,ay,az,gx,gy,gz", rows)
    table(tmp_path, "pose.csv", "t,x,y,yaw", [f"{i / 50:.2f},1,2,{a:.3f}" for i, (_, a) in enumerate(drive)])
    recording, said = guessed(tmp_path)
    assert any("turn rates are taken to be in deg/s: they reach 50" in s for s in said)
    assert np.abs(recording["imu"]["gyro_z"][2300:]).max() == pytest.approx(np.radians(50), rel=0.01)
    assert any("attitude angles are taken to be in deg" in s for s in said)
    with zipfile.ZipFile(tmp_path / "drive.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.write(tmp_path / "imu.csv", "imu.csv")
    assert "unit: deg/s" in guess(source_of(tmp_path / "drive.zip"))[0]


def test_commas_between_brackets_in_a_header_are_part_of_a_name(tmp_path: Path):
    header = "t,acc_x [m/s2, body],acc_y [m/s2, body],acc_z [m/s2, body],speed (km/h, raw),state (on,off)"
    table(tmp_path, "imu.csv", header, [f"{i / 10:.1f},0,0,9.8,36,1" for i in range(20)])
    recording, _ = guessed(tmp_path)
    imu = recording["imu"]
    assert (imu.type, len(imu), recording.losses) == (Imu, 20, ())
    np.testing.assert_allclose(imu["acc_z"], 9.8)
    np.testing.assert_allclose(imu["speed"], 10)
    assert "state (on,off)" in imu.columns


def test_date_and_time_in_two_columns_and_degrees_are_guessed(tmp_path: Path):
    rows = [f"2022-07-01;12:00:{i:02d}.250;37.7{i:02d};15.0;1700" for i in range(30)]
    table(tmp_path, "gps.txt", "date;time;latitude;longitude;altitude", rows)
    recording, said = guessed(tmp_path)
    gps = recording["gps"]
    assert gps.type is NavFix
    assert gps.t_ns[0] == 1656676800_250000000
    np.testing.assert_allclose(gps[0].value.latitude, np.radians(37.7))
    assert any("date and time of day" in s for s in said)


def test_units_in_headers_are_taken_at_their_word(tmp_path: Path):
    rows = [f"{i * 0.1:.1f},{12000 + i},36,{i}" for i in range(20)]
    table(tmp_path, "status.csv", "time [s],battery [mV],speed_kmh,count", rows)
    recording, _ = guessed(tmp_path)
    status = recording["status"]
    assert (status.type, status.clock) == (Record, "device")
    assert status.units["battery"] == "V"
    np.testing.assert_allclose(status["battery"][0], 12)
    np.testing.assert_allclose(status["speed"], 10)


@pytest.mark.parametrize(
    ("stamps", "unit", "clock"),
    [
        ([1657000000123 + 10 * i for i in range(20)], "ms", "utc"),
        ([1657000000123456 + 10 * i for i in range(20)], "us", "utc"),
        ([1657000000123456789 + 10 * i for i in range(20)], "ns", "utc"),
        ([20 * i for i in range(20)], "ms", "device"),
        ([10_000 * i for i in range(20)], "us", "device"),
        ([0.05 * i for i in range(20)], "s", "device"),
    ],
)
def test_the_unit_of_a_time_is_told_by_its_size(tmp_path: Path, stamps: list[float], unit: str, clock: str):
    table(tmp_path, "x.log", "", [f"{t!r} {(i * 7) % 5} 2.5" for i, t in enumerate(stamps)])
    recording, said = guessed(tmp_path)
    assert recording["x"].clock == clock
    assert f"in {unit}" in said[0]
    assert len(recording["x"]) == 20


def test_a_row_counter_is_not_taken_for_a_time(tmp_path: Path):
    table(tmp_path, "x.csv", "id,a", [f"{i},{(i * 3) % 7}" for i in range(20)])
    recording, said = guessed(tmp_path)
    assert recording["x"].clock == "index"
    assert "rows are counted" in said[0]


def test_images_clouds_and_a_calibration_are_found(tmp_path: Path):
    for side in ("left", "right"):
        (tmp_path / side).mkdir()
        for i in range(2):
            cv2.imwrite(str(tmp_path / side / f"{1657000000 + i}.png"), np.zeros((6, 8), np.uint8))
    (tmp_path / "scan1.ply").write_bytes(encode_cloud(PointCloud(np.ones((3, 3), "f4")), ".ply"))
    (tmp_path / "calib.yaml").write_text("cam0: {intrinsics: [1, 2, 3, 4], resolution: [8, 6]}\n")
    (tmp_path / "README.md").write_text("hello")
    recording, said = guessed(tmp_path)
    assert {s.name: s.tag for s in recording} == {"left": "left", "right": "right", "scan1": ""}
    assert "cam0" in recording.cameras
    assert any("calib.yaml" in s for s in said)
    assert recording.losses == ()


def test_a_folder_without_any_table_is_not_described(tmp_path: Path):
    (tmp_path / "diary.txt").write_text("we left early\nand came back late\n")
    with pytest.raises(TransectError, match="could be a stream") as refused:
        guess(source_of(tmp_path))
    assert "diary.txt" in refused.value.why


@given(
    names=st.lists(
        st.text(
            st.characters(codec="ascii", exclude_categories=["C"], exclude_characters=",;|\"'\\#[]"),
            max_size=8,
        ),
        min_size=2,
        max_size=6,
    ),
    rows=st.lists(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6), min_size=3, max_size=10),
)
def test_a_guess_opens_for_any_column_names(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], rows: list[list[float]]
):
    path = tmp_path_factory.mktemp("g")
    lines = [",".join(repr(v) for v in row[: len(names)]) for row in rows]
    table(path, "some.csv", ",".join(names), lines)
    text, _ = guess(source_of(path))
    (path / "recording.yaml").write_text(text)
    recording = transect.open(path, format="described")
    for stream in recording:
        kept = len(stream) if stream.type is not PointCloud else len(stream[0].value)
        assert kept + sum(loss.count for loss in stream.losses) >= len(rows) - 1


def test_patterns_select_what_they_were_made_from():
    assert pattern_of(["left/img_1.png", "left/img_20.png"]) == "left/img_[0-9]*.png"
    assert pattern_of(["1657000000.1.png", "1657000000.25.png"]) == "[0-9]*.png"
    assert pattern_of(["000001_left.png", "000002_left.png"]) == "[0-9]*_left.png"


@pytest.mark.parametrize(
    ("text", "delimiter", "skip", "names"),
    [
        ("a,b\n1,2\n3,4\n", ",", 1, ("a", "b")),
        ("1 2 3\n4 5 6\n", " ", 0, ("0", "1", "2")),
        ("# made by x\n# a b\n1 2\n", " ", 2, ("a", "b")),
        ("time;x\n2022-07-01 12:00:00;1\n", ";", 1, ("time", "x")),
        ("log of today\n\nt\tv\n1\t2\n3\t4\n", "\t", 3, ("t", "v")),
    ],
)
def test_the_layout_of_a_text_is_found_out(text: str, delimiter: str, skip: int, names: tuple[str, ...]):
    found = layout_of(text.encode())
    assert (found.delimiter, found.skip, found.names) == (delimiter, skip, names)


# Units and schema


@pytest.mark.parametrize(
    ("unit", "value", "si", "name"),
    [
        ("deg", 180, np.pi, "rad"),
        ("deg/s", 180, np.pi, "rad/s"),
        ("rpm", 60, 2 * np.pi, "rad/s"),
        ("km/h", 36, 10, "m/s"),
        ("knots", 1, 0.514444, "m/s"),
        ("mm", 1500, 1.5, "m"),
        ("cm", 150, 1.5, "m"),
        ("g", 1, 9.80665, "m/s2"),
        ("milli-g", 1000, 9.80665, "m/s2"),
        ("mg", 1000, 9.80665, "m/s2"),
        ("G", 1, 1e-4, "T"),
        ("mG", 1000, 1e-4, "T"),
        ("uT", 50, 5e-5, "T"),
        ("µT", 50, 5e-5, "T"),
        ("m/s²", 2, 2, "m/s2"),
        ("m/s^2", 2, 2, "m/s2"),
        ("degF", 212, 100, "degC"),
        ("K", 273.15, 0, "degC"),
        ("degrees per second", 180, np.pi, "rad/s"),
        ("RPM", 60, 2 * np.pi, "rad/s"),
    ],
)
def test_units_are_converted_by_their_definitions(unit: str, value: float, si: float, name: str):
    found = unit_of(unit)
    assert found.si == name
    assert found.scale * value + found.offset == pytest.approx(si, rel=1e-6, abs=1e-9)


def test_an_unknown_unit_has_a_hint():
    with pytest.raises(UsageError) as caught:
        unit_of("furlongs")
    assert caught.value.hint


def test_the_json_schema_names_every_key():
    schema = json.loads(json.dumps(json_schema()))
    assert {"streams", "frames", "cameras", "calibration", "robot"} <= set(schema["properties"])
    assert {"columns", "time", "type", "files"} <= set(schema["$defs"]["StreamSpec"]["properties"])


def test_a_key_of_a_frame_that_is_not_known_is_refused(tmp_path: Path):
    (tmp_path / "imu.csv").write_text("t,x\n1.0,2.0\n")
    (tmp_path / "recording.yaml").write_text(
        "streams: [{name: Imu, file: imu.csv, time: t}]\n"
        "frames: [{frame: base, child: imu, translation: [0, 0, 1]}]\n"
    )
    with pytest.raises(ParseError, match="unknown key 'translation'"):
        transect.open(tmp_path)


SEMICOLONS = """millis;ax_g;ay_g;az_g;gx_dps;gy_dps;gz_dps;note
100;0,01;-0,02;0,99;0,5;1,5;-40,2;start
110;0,01;-0,02;0,99;0,5;1,5;-3,2;go
120;0,02;-0,01;1,00;0,5;1,5;-3,2;go
"""


def guess_of(folder: Path, name: str, text: str) -> transect.Recording:
    (folder / name).write_text(text, "utf-8")
    return guessed(folder)[0]


def test_a_log_with_semicolons_decimal_commas_g_degrees_and_milliseconds_is_guessed(tmp_path: Path):
    imu = guess_of(tmp_path, "log.csv", SEMICOLONS)["log"]
    assert imu.type is Imu
    assert imu.t_ns.tolist() == [100_000_000, 110_000_000, 120_000_000]
    np.testing.assert_allclose(imu["acc_z"], np.array([0.99, 0.99, 1.0]) * 9.80665)
    np.testing.assert_allclose(imu["gyro_z"], np.radians([-40.2, -3.2, -3.2]))
    assert list(imu["note"]) == ["start", "go", "go"]


def test_a_decimal_comma_can_be_declared_and_a_list_of_words_is_invalid(tmp_path: Path):
    (tmp_path / "a.csv").write_text("t;x;note\n1;2,5;one, two\n2;3,5;three\n3;4,5;x\n")
    columns = "{x: x, note: {source: note, text: true}}"
    (tmp_path / "recording.yaml").write_text(
        f"streams: [{{name: a, file: a.csv, decimal: ',', time: t, columns: {columns}}}]"
    )
    stream = transect.open(tmp_path)["a"]
    assert stream["x"].tolist() == [2.5, 3.5, 4.5]
    assert list(stream["note"]) == ["one, two", "three", "x"]


def test_a_table_of_a_pose_and_an_inertial_unit_is_two_streams(tmp_path: Path):
    rows = "".join(f"{i / 10},{i},2,0,0,0,90,0,0,9.8\n" for i in range(12))
    recording = guess_of(tmp_path, "track.csv", f"t,x,y,z,roll,pitch,yaw,ax,ay,az\n{rows}")
    pose, imu = recording["track/Pose"], recording["track/Imu"]
    assert (pose.type, imu.type) == (Pose, Imu)
    assert imu.columns == ("acc_x", "acc_y", "acc_z")
    np.testing.assert_allclose(pose[0].value.orientation, [0, 0, np.sqrt(0.5), np.sqrt(0.5)])


def test_roll_pitch_and_yaw_turn_as_the_conventions_say(tmp_path: Path):
    rng = np.random.default_rng(4)
    angles = rng.uniform(-80, 80, (5, 3))
    rows = "".join(f"{i},0,0,0,{r},{p},{y}\n" for i, (r, p, y) in enumerate(angles.tolist()))
    (tmp_path / "p.csv").write_text(f"t,x,y,z,r,p,h\n{rows}")
    columns = ", ".join(
        f"{n}: {{source: {s}, unit: deg}}" for n, s in (("roll", "r"), ("pitch", "p"), ("yaw", "h"))
    )
    (tmp_path / "recording.yaml").write_text(
        f"streams: [{{name: p, type: Pose, file: p.csv, time: t, columns: {{x: x, y: y, z: z, {columns}}}}}]"
    )
    stream = transect.open(tmp_path)["p"]
    turned = np.column_stack([stream[f"q{axis}"] for axis in "xyzw"])
    expected = Rotation.from_euler("ZYX", angles[:, ::-1], degrees=True)
    assert (Rotation.from_quat(turned).inv() * expected).magnitude().max() < 1e-12


def test_a_robot_in_the_plane_needs_no_height(tmp_path: Path):
    rows = "".join(f"{i / 10},{i},2,{i / 100}\n" for i in range(12))
    pose = guess_of(tmp_path, "odom.csv", f"time_s,x,y,theta\n{rows}")["odom"]
    assert pose.type is Pose
    assert np.isnan(pose["z"]).all()
    np.testing.assert_allclose(2 * np.arctan2(pose["qz"], pose["qw"]), np.arange(12) / 100, atol=1e-12)


@pytest.mark.parametrize(("file", "kind"), [("odo", Odometry), ("wheels", Odometry), ("gnss_vel", Twist)])
def test_velocities_of_wheels_are_odometry_by_the_name_of_their_file(tmp_path: Path, file: str, kind: type):
    rows = "".join(f"{i * 100},1.{i},0.2\n" for i in range(12))
    stream = guess_of(tmp_path, f"{file}.csv", f"time_ms,vx,wz\n{rows}")[file]
    assert stream.type is kind
    assert (stream.frame, stream.child) == (("odom", "base_link") if kind is Odometry else ("", ""))


def test_one_letter_is_a_unit_only_where_it_fits(tmp_path: Path):
    text = "time_ms,lat,lon,altitude_m,row_m\n0,48,11,5,1\n9,48,11,5,1\n9,48,11,5,1\n"
    fix = guess_of(tmp_path, "gnss.csv", text)
    assert {"alt", "row_m"} <= set(fix["gnss"].columns)


def test_the_page_of_keys_is_what_the_classes_say():
    tool = runpy.run_path(str(ROOT / "tools" / "recording_yaml.py"))
    assert tool["PAGE"].read_text("utf-8") == tool["page"]()


def test_a_new_description_shows_the_first_row_as_it_was_understood(tmp_path: Path):
    from tests.commands import transect as command_line

    (tmp_path / "log.csv").write_text(SEMICOLONS)
    done = command_line("new", "recording", tmp_path)
    assert done.returncode == 0
    assert "log (Imu): at 0.100 (device), acc_x 0.0980665 m/s2" in " ".join(done.stdout.split())


def test_one_table_of_several_gets_a_description_beside_it_that_is_not_overwritten(tmp_path: Path):
    from tests.commands import transect as command_line

    for name in ("log.csv", "other.csv"):
        (tmp_path / name).write_text(SEMICOLONS)
    refused = command_line("info", tmp_path / "log.csv")
    assert f"transect new recording {tmp_path / 'log.csv'}" in refused.stderr
    done = command_line("new", "recording", tmp_path / "log.csv")
    assert done.returncode == 0, done.stderr
    assert [stream.name for stream in transect.open(tmp_path)] == ["log"]
    again = command_line("new", "recording", tmp_path / "other.csv")
    assert (again.returncode, "replace it with --force" in again.stderr) == (2, True)
    assert f"transect info {tmp_path}  opens" in command_line("info", tmp_path / "log.csv").stderr


@pytest.mark.parametrize("text", ["t,p\n", "t,p\n\n", "t,p", "# t,p\n \n\n"])
def test_a_table_of_a_header_alone_has_no_rows_and_the_other_streams_stay(tmp_path: Path, text: str):
    (tmp_path / "arm.csv").write_text(text)
    (tmp_path / "good.csv").write_text("t,x\n1,2\n2,3\n")
    streams = [
        f"- {{name: {name}, file: {name}.csv, time: {{column: t, unit: s}}" for name in ("good", "arm")
    ]
    columns = "columns: {position: {source: p, numbers: 3}}"
    (tmp_path / "recording.yaml").write_text(f"streams:\n{streams[0]}}}\n{streams[1]}, {columns}}}\n")
    assert {stream.name: len(stream) for stream in transect.open(tmp_path)} == {"good": 2, "arm": 0}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("{name: s, file: a.csv}", "describes 2001 streams, at most 2000"),
        ("{name: s, type: Record, file: a.csv, tag: [" + "0," * 300 + "]}", "more than 500000 parts"),
    ],
)
def test_a_description_of_thousands_of_streams_is_refused_at_once(entry: str, why: str):
    with pytest.raises(ParseError, match="too large") as caught:
        parse("streams:\n" + f"- {entry}\n" * 2001)
    assert why in caught.value.why


def test_a_number_that_its_type_does_not_hold_is_a_loss(tmp_path: Path):
    """Such rows were once left out in silence."""
    (tmp_path / "a.csv").write_text("t,n\n1,5\n2,300\n3,7\n4,-1\n5,x\n6,8\n")
    columns = "columns: {n: {source: n, type: uint8}}"
    (tmp_path / "recording.yaml").write_text(f"streams: [{{name: a, file: a.csv, time: t, {columns}}}]")
    (stream,) = transect.open(tmp_path).streams
    assert stream["n"].tolist() == [5, 7, 8]
    assert {loss.reason: loss.count for loss in stream.losses}.pop("n is not a number that uint8 holds") == 2
    assert sum(loss.count for loss in stream.losses) == 3


def rows_of(header: str, dates: list[str]) -> str:
    """Return sixty rows at 100 Hz: a date, a unix time, three numbers near 0, 0 and 9.8."""
    lines = [header]
    for i in range(60):
        lines.append(f"{dates[i % len(dates)]},{1709287200 + i / 100:.3f},0.0{i % 7},0.0{i % 5},9.8{i % 3}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("accel.csv", "acc_x"),
        ("Accelerometer.csv", "acc_x"),
        ("imu_gyro.csv", "gyro_x"),
        ("Gyroscope.csv", "gyro_x"),
    ],
)
def test_x_y_z_in_a_file_of_an_inertial_sensor_are_no_positions(name: str, column: str, tmp_path: Path):
    (tmp_path / name).write_text(rows_of("date,time,x,y,z", ["2024-03-01 10:00:00"]))
    text, said = guess(source_of(tmp_path))
    (tmp_path / "recording.yaml").write_text(text)
    (stream,) = transect.open(tmp_path)
    assert stream.type is Imu
    assert column in stream.columns
    assert any("by the name of the file" in sentence for sentence in said)


def test_x_y_z_in_another_file_stay_positions(tmp_path: Path):
    (tmp_path / "magic_track.csv").write_text(rows_of("date,time,x,y,z", ["2024-03-01 10:00:00"]))
    text, _ = guess(source_of(tmp_path))
    assert yaml.safe_load(text)["streams"][0]["type"] == "Pose"


@pytest.mark.parametrize(
    "dates",
    [
        ["1970-01-01 00:00:00"],  # of a clock that was never set
        ["2024-03-01 10:00:00"],  # to the second, at 100 Hz
        ["2024-03-01 10:00:00", "2024-02-28 10:00:00"],  # goes back
        ["2024-13-41 10:00:00"],  # does not exist
    ],
)
def test_a_broken_date_gives_way_to_a_time_that_runs(dates: list[str], tmp_path: Path):
    (tmp_path / "track.csv").write_text(rows_of("date,time,x,y,z", dates))
    text, said = guess(source_of(tmp_path))
    (tmp_path / "recording.yaml").write_text(text)
    stream = transect.open(tmp_path)["track"]
    assert np.diff(stream.t_ns).tolist() == pytest.approx([10_000_000] * 59, abs=1000)
    assert any("`date` is not taken: it" in sentence for sentence in said)


def test_a_good_date_is_taken_before_a_counter(tmp_path: Path):
    dates = [f"2024-03-01 10:00:{i:02d}" for i in range(60)]
    (tmp_path / "track.csv").write_text(rows_of("date,counter,x,y,z", dates))
    text, _ = guess(source_of(tmp_path))
    assert yaml.safe_load(text)["streams"][0]["time"]["column"] == "date"


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_folder_of_rgb_d_images_with_a_ground_truth_is_no_rosario_sequence(rows: int, tmp_path: Path):
    (tmp_path / "rgb").mkdir()
    for i in range(3):
        file = tmp_path / "rgb" / f"{1305031102.1 + i:.6f}.png"
        file.write_bytes(cv2.imencode(".png", np.zeros((4, 6, 3), np.uint8))[1].tobytes())
    lines = [f"{1305031102.1 + i:.4f} 1.{i} 2 1.5 0 0 0 1\n" for i in range(rows)]
    (tmp_path / "groundtruth.txt").write_text("# timestamp tx ty tz qx qy qz qw\n" + "".join(lines))
    (stream,) = transect.open(tmp_path)
    assert len(stream) == 3
