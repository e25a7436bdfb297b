"""`transect export`: the suffix chooses the container, and what is said is what was written."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from tests.commands import transect
from tests.formats.test_kitti import make_drive

import transect as library
from transect import formats
from transect.recording import Recording, Stream, arrow
from transect.types import Pose, Twist


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_drive(tmp_path_factory.mktemp("kitti") / "drive")


@pytest.mark.parametrize("suffix", [".bag", ".mcap", ".db3"])
def test_the_suffix_chooses_the_container_and_left_and_right_survive(
    drive: Path, tmp_path: Path, suffix: str
):
    out = tmp_path / f"drive{suffix}"
    done = transect("export", drive, "-o", out)
    assert done.returncode == 3, done.stderr  # ROS has no place for all of KITTI's columns
    assert out.is_file()
    assert done.stdout.splitlines()[-1] == f"wrote {out}"
    assert list(tmp_path.iterdir()) == [out]
    before, after = library.open(drive), library.open(out)
    assert {s.name: s.tag for s in after if s.type.__name__ == "Image"} == {
        "image_00": "left",
        "image_01": "right",
    }
    for name in ("image_00", "image_01"):
        np.testing.assert_array_equal(after[name][1].payload.data, before[name][1].payload.data)
    with AnyReader([out]) as reader:  # somebody else's reader finds the same messages
        counts = {c.topic: c.msgcount for c in reader.connections}
    assert counts["/image_00"] == len(before["image_00"])


def old_tf(path: Path) -> Path:
    """Write a ROS 1 bag as of 2012: `tf/tfMessage`, `rosgraph_msgs/Log`, and a type of its own."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    store.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf/msg/tfMessage"))
    store.register(get_types_from_msg("Header header\nfloat32 volts", "rover_msgs/msg/Power"))
    make = store.types
    with Writer(path) as bag:

        def topic(name: str, kind: str) -> Callable[[int, object], None]:
            connection = bag.add_connection(name, kind, typestore=store)
            return lambda t_ns, message: bag.write(connection, t_ns, store.serialize_ros1(message, kind))

        tf, log, power = (
            topic("/tf", "tf/msg/tfMessage"),
            topic("/rosout", "rosgraph_msgs/msg/Log"),
            topic("/power", "rover_msgs/msg/Power"),
        )
        for i in range(7):
            t_ns = 1_400_000_000 * 10**9 + i * 10**8
            stamp = make["builtin_interfaces/msg/Time"](*divmod(t_ns, 10**9))
            header = make["std_msgs/msg/Header"](i, stamp, "odom")
            pose = make["geometry_msgs/msg/Transform"](
                make["geometry_msgs/msg/Vector3"](0.1 * i, 0.0, 0.0),
                make["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0),
            )
            moved = make["geometry_msgs/msg/TransformStamped"](header, "base", pose)
            tf(t_ns, make["tf/msg/tfMessage"]([moved]))
            log(t_ns, make["rosgraph_msgs/msg/Log"](header, 2, "node", "hello", "f.cpp", "main", i, []))
            power(t_ns, make["rover_msgs/msg/Power"](header, 24.0))
    return path


def counts_of(path: Path) -> dict[str, int]:
    with AnyReader([path]) as reader:
        return {c.topic: c.msgcount for c in reader.connections}


def test_topics_without_a_type_in_the_other_ros_are_listed_and_the_exit_code_is_3(tmp_path: Path):
    bag = old_tf(tmp_path / "old.bag")
    done = transect("export", bag, "-o", tmp_path / "new.mcap")
    assert done.returncode == 3
    counts = counts_of(tmp_path / "new.mcap")
    assert counts == {"/tf": 7}
    named = {line.split()[2] for line in done.stderr.splitlines() if line.startswith("not written:")}
    assert named == set(counts_of(bag)) - set(counts)  # what is listed is left out, and nothing else is
    same = library.open(tmp_path / "new.mcap").frames.lookup("odom", "base", 1_400_000_000_300_000_000)
    np.testing.assert_allclose(same[:3, 3], [0.3, 0, 0])
    known = transect("export", bag, "-o", tmp_path / "tf.mcap", "--streams", "/tf")
    assert (known.returncode, known.stderr) == (0, "")


@pytest.mark.parametrize("format", ["csv", "parquet", "mcap", "cdff_msgpack"])
def test_frames_that_stand_in_the_rows_of_a_stream_are_not_called_left_out(format: str, tmp_path: Path):
    done = transect("export", old_tf(tmp_path / "old.bag"), "--format", format, "-o", tmp_path / "out",
                    "--streams", "/tf")  # fmt: skip
    assert "frames are written as rows of /tf" in done.stderr
    assert "not written: 1 frames" not in done.stderr


def test_frames_that_no_stream_holds_are_lost_in_a_log(tmp_path: Path):
    made = transect("simulate", "rosario", "--seconds", 1, "--scale", 0.05, "-o", tmp_path / "day")
    assert made.returncode == 0
    done = transect("export", tmp_path / "day", "-o", tmp_path / "day.mcap", "--format", "mcap")
    assert done.returncode == 3
    assert "frames are not written: " in done.stderr


def test_what_is_written_in_another_form_is_a_note_and_no_loss(tmp_path: Path):
    t_ns = np.array([1_700_000_000_000_000_001, 1_700_000_000_100_000_000])
    track = Stream("Track", Pose, arrow.table(t_ns, {axis: np.zeros(2) for axis in "xyz"}), role="truth")
    formats.write(Recording("r", (track,)), tmp_path / "r", "parquet")
    done = transect("export", tmp_path / "r", "-o", tmp_path / "r.tum")
    assert (done.returncode, done.stderr) == (0, "note: Track has no attitudes: 0 0 0 1 is written\n")


def test_what_is_not_carried_is_one_line_for_each_stream(drive: Path, tmp_path: Path):
    done = transect("export", drive, "-o", tmp_path / "drive.mcap")
    lines = [line for line in done.stderr.splitlines() if "oxts/imu" in line]
    assert len(lines) == 1
    assert "levelled_af, levelled_al, levelled_au" in lines[0]


def test_a_name_that_tells_no_format_is_refused(drive: Path, tmp_path: Path):
    done = transect("export", drive, "-o", tmp_path / "drive.foo")
    assert done.returncode == 2
    assert "--format NAME" in done.stderr
    table = transect("export", drive, "-o", tmp_path / "drive.csv")
    assert table.stderr.splitlines()[-1] == f"  try:   --format csv -o {tmp_path / 'drive'}"
    assert not list(tmp_path.iterdir())


def test_the_path_that_is_said_is_the_one_that_was_written(drive: Path, tmp_path: Path):
    done = transect("export", drive, "--format", "mcap", "-o", tmp_path / "plain")
    assert done.stdout.splitlines()[-1] == f"wrote {tmp_path / 'plain.mcap'}"
    assert (tmp_path / "plain.mcap").is_file()


@pytest.mark.parametrize(
    "words", ["export --format csv", "inject --fault dropout", "draw moment", "draw track", "table traverse"]
)
def test_a_window_outside_of_the_recording_is_an_error_that_says_when_it_was(tmp_path: Path, words: str):
    """A folder of images without times is in every window, and made an empty export look like one of data."""
    drive = make_drive(tmp_path / "drive")
    shutil.copytree(drive / "image_00" / "data", drive / "image_02" / "data")
    out = () if "table" in words else ("-o", tmp_path / "out")
    done = transect(*words.split(), drive, *out, "--from", "+100s", "--to", "+200s")
    assert done.returncode == 2
    assert "from 2011-09-30T12:08:26.403 to 2011-09-30T12:08:26.610" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_window_in_which_one_of_two_clocks_has_nothing_is_refused(tmp_path: Path):
    """Seconds of a device are far from any time of day: half of the streams would be written empty."""
    second = 1_000_000_000
    times = {"utc": 1_700_000_000 * second, "device": 100 * second}
    tables = {
        name: arrow.table(first + np.arange(100) * second // 10, {"vx": np.ones(100)})
        for name, first in times.items()
    }
    streams = [Stream("a", Twist, tables["utc"]), Stream("b", Twist, tables["device"], clock="device")]
    formats.write(Recording("two", tuple(streams)), tmp_path / "two", "parquet")
    out = ("-o", tmp_path / "part", "--format", "parquet")
    done = transect("export", tmp_path / "two", *out, "--from", 102, "--to", 104)
    assert done.returncode == 2
    assert "nothing between these times on the clock utc" in done.stderr
    assert "a use that clock" in done.stderr
    assert not (tmp_path / "part").exists()
    done = transect("export", tmp_path / "two", *out, "--from", 102, "--to", 104, "--streams", "b")
    assert done.returncode == 0, done.stderr
    assert [len(s) for s in library.open(tmp_path / "part")] == [20]
