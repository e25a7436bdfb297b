"""`transect draw` and `transect new urdf`, as a person types them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import transect
from transect.cli import command
from transect.errors import TransectError
from transect.formats.shared.clouds import decode_cloud


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=True)


@pytest.fixture(scope="module")
def etna(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    day = folder / "etna"
    assert run("simulate", "etna", "-o", day, "--seconds", "4", "--scale", "0.05").exit_code == 0
    return day


def test_an_overlay_and_the_coloured_cloud_are_written(etna: Path, tmp_path: Path):
    picture, cloud = tmp_path / "x.png", tmp_path / "cloud.ply"
    done = run(
        "draw", "overlay", etna, "--at", "+2s", "--camera", "MainCam", "-o", picture, "--coloured", cloud
    )
    assert done.exit_code == 0, done.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert decode_cloud(cloud.read_bytes(), "cloud.ply").fields["rgb"].shape[1] == 3
    assert "points are visible in the image" in done.output


def test_cameras_to_choose_from_are_listed(etna: Path, tmp_path: Path):
    done = run("draw", "overlay", etna, "-o", tmp_path / "x.png")
    assert isinstance(done.exception, TransectError)
    assert "AuxCam, MainCam" in str(done.exception)


def test_a_cloud_that_is_not_there_cannot_be_coloured(etna: Path, tmp_path: Path):
    arguments = (
        "--camera",
        "MainCam",
        "--at",
        "+2.05s",
        "--tolerance",
        "0.001",
        "--coloured",
        tmp_path / "c.ply",
    )
    done = run("draw", "overlay", etna, "-o", tmp_path / "x.png", *arguments)
    assert isinstance(done.exception, TransectError)
    assert "needs one point cloud" in str(done.exception)
    assert not (tmp_path / "c.ply").exists()


@pytest.mark.parametrize("name", ["argo", "ida", "interact", "weeder"])
def test_the_frames_of_a_robot_are_drawn_by_its_name(name: str, tmp_path: Path):
    out = tmp_path / "frames.svg"
    assert run("draw", "frames", name, "-o", out).exit_code == 0
    assert "<svg" in out.read_text()


def test_all_frames_that_are_fixed_to_the_robot_are_placed(tmp_path: Path):
    """The robot's description begins at the IMU; the calibration of the recording hangs that on base_link."""
    day, out = tmp_path / "day", tmp_path / "frames.svg"
    asked = ("--seconds", "2", "--streams", "Imu", "--streams", "Gps/*")
    assert run("simulate", "rosario", "-o", day, *asked).exit_code == 0
    assert run("draw", "frames", day, "-o", out).exit_code == 0
    written = re.findall("<!-- (.*?) -->", out.read_text())
    assert "in rear_wheel_odometry" in written
    for column in "xyz":
        start = written.index(f"{column} [m]") + 1
        assert all(re.fullmatch(r"\u2212?\d\.\d{3}", each) for each in written[start : start + 6])
    frames = transect.open(day).frames
    x, y, z = frames.lookup("rear_wheel_odometry", "gps")[:3, 3]
    for name, value in zip("xyz", (x, y, z), strict=True):
        row = written[written.index(f"{name} [m]") + 1 :]
        assert float(row[2].replace("\u2212", "-")) == pytest.approx(value, abs=5e-4)


def test_a_robot_goes_to_urdf_and_its_frames_are_drawn(tmp_path: Path):
    path, picture = tmp_path / "ida.urdf", tmp_path / "frames.png"
    done = run("new", "urdf", "ida", "-o", path)
    assert done.exit_code == 0, done.output
    assert "(4 movable)" in done.output
    assert run("draw", "frames", path, "-o", picture).exit_code == 0
    assert picture.exists()


def test_a_urdf_is_not_replaced_unless_forced(tmp_path: Path):
    path = tmp_path / "mine.urdf"
    path.write_text("mine")
    assert "exists already" in str(run("new", "urdf", "argo", "-o", path).exception)
    assert path.read_text() == "mine"
    assert run("new", "urdf", "argo", "-o", path, "--force").exit_code == 0
    assert "<robot" in path.read_text()


def test_one_s_own_description_is_drawn_and_missing_meshes_are_told(tmp_path: Path):
    urdf = tmp_path / "a.urdf"
    mesh = '<visual><geometry><mesh filename="gone.stl"/></geometry></visual>'
    joint = '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'
    urdf.write_text(f'<robot name="a"><link name="a">{mesh}</link><link name="b"/>{joint}</robot>')
    done = run("draw", "frames", urdf, "-o", tmp_path / "f.png")
    assert done.exit_code == 0
    assert "a.urdf:1: the mesh gone.stl is not there" in done.output


def test_a_track_is_drawn_over_the_heights_in_whose_frame_it_was_not(etna: Path, tmp_path: Path):
    out = tmp_path / "track.png"
    place = "lander=37.7235,15.0067"
    done = run(
        "draw", "track", etna, "--over", f"{etna}:truth/dem", "--label", "Interact", "--dpi", "50", "-o", out
    )
    assert done.exit_code == 0, done.output
    assert "Interact is aligned with" in done.output
    assert "is aligned with etna truth/trajectory" in done.output
    alone = run("draw", "track", etna, f"{etna}:2DPoseEstimate", "--place", place, "--dpi", "50", "-o", out)
    assert alone.exit_code == 0, alone.output
    assert "etna 2DPoseEstimate is aligned with etna" in alone.output.replace("Platform/", "")
    for wrong in (["--place", "lander=1"], ["--label", "a", "--label", "b"], ["--streams", "MainCam"]):
        assert isinstance(run("draw", "track", etna, *wrong).exception, TransectError)
