"""Writing Rosario sequences, and opening what was written."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets.rosario import sample
from tests.datasets.rosario.sample import assert_same, opened

from transect import formats
from transect.datasets.rosario.bags.tables import read_imu, read_odometry
from transect.datasets.rosario.bags.writing import _imu_text, _wheel_text
from transect.errors import UsageError
from transect.recording import Recording, Stream, arrow, stream_of_values
from transect.types import Imu, NavFix, PointCloud, Pose, WheelState


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    sample.write_scripts_layout(tmp_path / "dataset")
    return tmp_path / "dataset"


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    sample.write_papers_layout(tmp_path / "paper")
    return tmp_path / "paper"


def test_writing_and_opening_again_changes_nothing(scripts: Path, tmp_path: Path) -> None:
    first = opened(scripts)
    assert formats.write(first, tmp_path / "again", "rosario") == ()
    assert_same(first, opened(tmp_path / "again"))


def test_what_is_written_is_the_layout_of_the_scripts_line_by_line(scripts: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    formats.write(opened(scripts), again, "rosario")
    names = sorted(p.relative_to(again).as_posix() for p in again.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(scripts).as_posix() for p in scripts.rglob("*") if p.is_file())
    assert (again / "sequence01" / "imu.log").read_text().split() == [_plain(t) for t in sample.IMU_9.split()]
    raw = (again / "sequence01" / "odometry_raw.log").read_text().split()
    assert raw == sample.telegrams().split()
    left = "sequence01/zed/left_1514301955.531250.png"
    assert (again / left).read_bytes() == (scripts / left).read_bytes()


def _plain(token: str) -> str:
    """Spell a number as Python does; words and times stand."""
    return (
        token
        if len(token) > 15 or not token.lstrip("-").replace(".", "").isdigit() or len(token) == 1
        else repr(float(token))
    )


def test_the_papers_form_survives_too(paper: Path, tmp_path: Path) -> None:
    first = opened(paper)
    formats.write(first, tmp_path / "again", "rosario")
    again = opened(tmp_path / "again")
    assert again.name == "sequence00"
    assert again.conditions == {}
    assert_same(first, again)


def test_changed_wheel_speeds_are_written_and_not_what_was_read(scripts: Path, tmp_path: Path) -> None:
    first = opened(scripts)
    table = first["Odometry/Raw"].table
    slowed = table.set_column(
        1,
        "wheel_velocity",
        arrow.column(np.array([[0.5, 0.5], [-0.25, -0.25], [0.0, 0.0]])),
    )
    changed = first.replace(streams=(first["Odometry/Raw"].replace(source=slowed),))
    formats.write(changed, tmp_path / "again", "rosario")
    again = opened(tmp_path / "again")["Odometry/Raw"]
    np.testing.assert_allclose(again["wheel_velocity"], [[0.5, 0.5], [-0.25, -0.25], [0.0, 0.0]], rtol=1e-15)
    assert again["direction_raw"].tolist() == [0, 1, 0]


def test_a_slice_keeps_the_direction_of_a_robot_that_only_goes_back() -> None:
    coded = next(read_odometry(b"1.0 0.5 0.5 0.0 0\n2.0 0.5 0.5 0.0 1\n", "odometry.txt")).table
    assert coded["wheel_velocity"].to_pylist() == [[0.5, 0.5], [-0.5, -0.5]]
    name, text = _wheel_text(Stream("Odometry", WheelState, coded.slice(1)))
    assert name == "odometry.log"
    assert next(read_odometry(text, name)).table["wheel_velocity"].to_pylist() == [[-0.5, -0.5]]


def test_recordings_of_other_robots_are_written_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    t_ns = np.array([1514301955465123456, 1514301955565123456])
    two, zero = np.zeros(2), np.zeros((2, 4))
    imu = stream_of_values(
        "Imu", t_ns, {f"{s}_{a}": two + 0.1 for s in ("acc", "gyro") for a in "xyz"}, type=Imu
    )
    wheels = stream_of_values("Wheels", t_ns, {"wheel_velocity": zero}, type=WheelState)
    pose = stream_of_values(
        "Truth",
        t_ns,
        dict.fromkeys(("x", "y", "z", "qx", "qy", "qz", "qw"), two),
        type=Pose,
        role="truth",
        child="body",
    )
    fix = stream_of_values("Gnss", t_ns, {"lat": two, "lon": two, "alt": two}, type=NavFix)
    cloud = stream_of_values("Lidar", t_ns, {"n": two}, type=PointCloud)
    said = formats.write(Recording("field", (imu, wheels, pose, fix, cloud)), tmp_path / "out", "rosario")
    assert any("Lidar" in text for text in said)
    assert any("Wheels" in text for text in said)
    assert any("microsecond" in text for text in said)
    assert any("attitude" in text for text in said)
    again = opened(tmp_path / "out")
    assert again["Imu"]["acc_x"].tolist() == [0.1, 0.1]
    assert again["Imu"].t_ns.tolist() == [t // 1000 * 1000 for t in t_ns.tolist()]
    assert len(again["Gps/Fix"]) == 2


def test_writing_refuses_a_folder_with_something_in_it(scripts: Path) -> None:
    with pytest.raises(UsageError):
        formats.write(opened(scripts), scripts, "rosario")


@given(
    st.lists(
        st.tuples(st.integers(0, 4 * 10**15), st.floats(-2000, 2000), st.floats(-4000, 4000)),
        min_size=1,
        max_size=5,
    )
)
def test_any_imu_values_survive_writing(rows: list[tuple[int, float, float]]) -> None:
    text = "".join(f"{t // 10**6}.{t % 10**6:06d} {g!r} 0 0 {a!r} 0 0\n" for t, g, a in rows).encode()
    offsets = {"gyro_offset": [0.0, 0.0, 0.0], "acc_offset": [0.0, 0.0, 0.0]}
    first = next(read_imu(text, "imu.log", np.zeros(3), np.zeros(3))).table
    written = _imu_text(Stream("Imu", Imu, first, meta=offsets))
    (again,) = read_imu(written, "imu.log", np.zeros(3), np.zeros(3))
    assert not again.losses
    assert again.table.equals(first)


def test_a_log_that_has_another_name_is_said_not_to_be_read(tmp_path: Path):
    sample.write_scripts_layout(tmp_path)
    log = tmp_path / "sequence01" / "odometry_raw.log"
    assert not any("not read" in note for note in opened(tmp_path).notes)
    log.rename(log.with_name("wheels.log"))
    assert any("not read" in note and "wheels.log" in note for note in opened(tmp_path).notes)
