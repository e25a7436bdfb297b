"""RADIATE's tiny_foggy: real fog, and real defects that are kept and reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.formats.recordings import assert_same, rewritten

import transect
from transect.recording import Recording


@pytest.fixture(scope="module")
def fog(real_data: Path) -> Recording:
    return transect.open(real_data / "radiate_fog")


def test_every_listed_frame_that_is_there_is_opened(real_data: Path, fog: Recording) -> None:
    folder = real_data / "radiate_fog"
    assert fog.format == "radiate"
    for sensor, suffix in (("Navtech_Polar", "png"), ("Navtech_Cartesian", "png"), ("velo_lidar", "csv"),
                           ("zed_left", "png"), ("zed_right", "png"), ("GPS_IMU_Twist", "txt")):  # fmt: skip
        listed = [line.split() for line in (folder / f"{sensor}.txt").read_text().splitlines()]
        here = [(f, t) for _, f, _, t in listed if (folder / sensor / f"{f}.{suffix}").exists()]
        stream = next(s for s in fog if s.name.startswith(sensor))
        assert stream.t_ns.tolist() == [int(t.replace(".", "")) for _, t in here], sensor


def test_lists_and_files_that_disagree_are_reported(fog: Recording) -> None:
    assert {loss.file.partition("/")[0]: loss.count for loss in fog.losses} == {
        "Navtech_Polar": 8,
        "Navtech_Cartesian": 16,
        "velo_lidar": 28,
        "zed_left": 70,
        "zed_right": 20,
    }
    notes = "\n".join(fog.all_notes)
    assert "2 files of velo_lidar are not in velo_lidar.txt: velo_lidar/000016.csv" in notes


def test_stamps_that_repeat_and_a_clock_that_is_off_are_reported(fog: Recording) -> None:
    """data/README.md: GPS time does not overlap the rest, repeated stamps."""
    notes = "\n".join(fog.all_notes)
    assert "of 250 times of GPS_IMU_Twist, 125 repeat the one before and 1 go back in time" in notes
    assert "GPS_IMU_Twist does not overlap the other sensors" in notes
    assert fog["GPS_IMU_Twist/fix"].timing.repeated == 125


def test_the_radar_sees_a_hundred_metres_all_around(fog: Recording) -> None:
    spectrum = fog["Navtech_Polar"][0].value
    assert spectrum.reflectivity.shape == (400, 576)
    assert spectrum.bin_width == 0.173611
    assert spectrum.ranges[0] == 0
    assert spectrum.ranges[-1] == pytest.approx(100, abs=0.2)
    np.testing.assert_allclose(np.abs(np.diff(spectrum.angle)), np.radians(0.9))


def test_polar_and_cartesian_images_show_the_same(fog: Recording) -> None:
    """The data set's own Cartesian image, x to the right and y forward, is what the polar one says it is."""
    spectrum, image = fog["Navtech_Polar"][0].value, fog["Navtech_Cartesian"][0].value
    assert (image.width, image.height) == (1152, 1152)
    far = spectrum.ranges[50:570]
    x = np.outer(np.cos(spectrum.angle), far) / spectrum.bin_width + 575.5
    y = 575.5 - np.outer(np.sin(spectrum.angle), far) / spectrum.bin_width
    seen = image.data[np.round(y).astype(int), np.round(x).astype(int)]
    measured = spectrum.reflectivity[:, 50:570]
    assert np.corrcoef(seen.ravel(), measured.ravel())[0, 1] > 0.85
    mirrored = image.data[np.round(y).astype(int), 1151 - np.round(x).astype(int)]
    assert np.corrcoef(mirrored.ravel(), measured.ravel())[0, 1] < 0.7


def test_the_lidar_has_32_rings(fog: Recording) -> None:
    cloud = fog["velo_lidar"][0].value
    assert set(np.unique(cloud.fields["ring"])) == set(range(32))
    assert 0 <= cloud.fields["intensity"].min() <= cloud.fields["intensity"].max() <= 255
    ground = np.percentile(cloud.points[:, 2], 5)
    assert -2.2 < ground < -1.2  # config.yaml: sensors_height -1.8


def test_the_lidar_sees_the_road_where_the_camera_does(fog: Recording) -> None:
    points = fog["velo_lidar"][0].value.points
    ahead = (points[:, 1] > 5) & (points[:, 1] < 15) & (np.abs(points[:, 0]) < 2)
    road = points[ahead & (points[:, 2] < -1.4)]
    assert len(road) > 20
    in_camera = (fog.frames.lookup("left", "lidar") @ np.column_stack([road, np.ones(len(road))]).T)[:3].T
    assert (in_camera[:, 2] > 4).all()
    pixels = in_camera @ fog.cameras["left"].K.T
    rows = pixels[:, 1] / pixels[:, 2]
    assert ((rows > 200) & (rows < 376)).mean() > 0.9  # below the horizon, and in the image


def test_the_stereo_camera_is_the_zed(fog: Recording) -> None:
    image = fog["zed_left"][0].value
    assert (image.width, image.height, image.mode) == (672, 376, "rgb")
    assert np.linalg.norm(fog.frames.lookup("left", "right")[:3, 3]) == pytest.approx(0.1207, abs=1e-3)


def test_velocity_is_the_change_of_position(fog: Recording) -> None:
    """Velocities are north, east, down: their sum over time is the way that the positions went."""
    fix, velocity = fog["GPS_IMU_Twist/fix"], fog["GPS_IMU_Twist/velocity"]
    seconds = 0.05 * 0.5  # each sample stands twice, at 20 Hz
    went = velocity.array("vx", "vy").sum(axis=0) * seconds
    north = (fix["lat"][-1] - fix["lat"][0]) * 6.37e6
    east = (fix["lon"][-1] - fix["lon"][0]) * 6.37e6 * np.cos(fix["lat"][0])
    np.testing.assert_allclose(went, [north, east], atol=3)


def test_the_weather_is_fog(fog: Recording) -> None:
    assert fog.conditions["weather"] == "fog"
    assert fog.conditions["objects"] == {"bus": 1, "car": 12, "van": 4}


def test_what_is_written_of_it_opens_the_same(tmp_path: Path, fog: Recording) -> None:
    part = fog.slice(None, "+1s")
    again = rewritten(part, tmp_path / "part", "radiate")
    assert_same(part, again)
    assert again.losses == ()


def test_all_of_its_packets_are_written_as_they_were(tmp_path: Path, real_data: Path, fog: Recording) -> None:
    gps = fog.select("GPS_IMU_Twist/*")
    assert_same(gps, rewritten(gps, tmp_path / "gps", "radiate"))
    for name in ("000001.txt", "000125.txt", "000250.txt"):
        original = real_data / "radiate_fog/GPS_IMU_Twist" / name
        assert (tmp_path / "gps/GPS_IMU_Twist" / name).read_bytes() == original.read_bytes()
