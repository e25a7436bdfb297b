"""The Argo's sensors and cameras, against the tables of SDI, 2.2.5, and the errata."""

import numpy as np
import pytest

from transect import robots
from transect.datasets.marulan.robot.calibration import (
    TABLES,
    camera_in_body,
    frames_with_camera,
    usable_lasers,
)
from transect.errors import FrameError
from transect.robots import robot_from_description

ARGO = robots.load("argo")
LASERS = ("LaserHorizontal", "LaserPort", "LaserStarboard")


def cameras_in_body(camera: str) -> dict[str, np.ndarray]:
    """Return T_Body_camera (4, 4) by each laser with a usable table."""
    return {laser: camera_in_body(ARGO, camera, laser) for laser in usable_lasers(ARGO, camera)}


def pitch_and_yaw(T_body_camera: np.ndarray) -> np.ndarray:
    """Return pitch (positive up) and yaw (positive to starboard) of the optical axis, rad."""
    x, y, z = T_body_camera[:3, 2]
    return np.array([-np.arcsin(z), np.arctan2(y, x)])


# 2.2.5, "Transformations Body Frame to Sensor Frame": RollX, PitchY, YawZ in degrees, dX, dY, dZ in metres.
SENSORS = {
    "LaserHorizontal": (-0.732828, -8.586863, -1.631319, 0.108987, 0.008302, -0.919726),
    "LaserVertical": (88.562966, -0.118007, -1.123153, -0.000291, -0.082272, -1.126802),
    "LaserPort": (-0.500234, -2.616210, -1.805911, 0.190857, -0.548777, -0.763776),
    "LaserStarboard": (-0.608178, -0.431051, -2.349991, 0.198663, 0.534253, -0.849538),
    "Radar": (-0.151571, 191.161703, 173.278081, -0.025753, -0.047174, -1.399104),
}
# 2.2.5, laser to visual camera: dX, dY, dZ in metres, phiX, phiY in degrees.
VISUAL = {
    "LaserHorizontal": (0.4139, -0.2976, -0.0099, -4.7341, -0.3780),
    "LaserPort": (0.9592, -0.5011, -0.0867, -10.6026, -0.0747),
    "LaserStarboard": (-0.1343, -0.4976, -0.0532, -12.6652, 0.2409),
}
# Errata: height (m), pitch and yaw (degrees) of the visual camera in Body, by the rows H, P, S.
HEIGHTS, PITCHES, YAWS = (-1.217, -1.265, -1.347), (-13.3, -13.2, -13.1), (-2.0, -1.9, -2.1)


def turn(axis: int, degrees: float) -> np.ndarray:
    """The textbook rotation about one axis."""
    a = np.radians(degrees)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i] = R[j, j] = np.cos(a)
    R[i, j], R[j, i] = -np.sin(a), np.sin(a)
    return R


@pytest.mark.parametrize("sensor", SENSORS)
def test_the_five_range_sensors_stand_as_the_table_says(sensor: str):
    roll, pitch, yaw, *place = SENSORS[sensor]
    T = ARGO.frames.lookup("Body", sensor)
    np.testing.assert_allclose(T[:3, :3], turn(2, yaw) @ turn(1, pitch) @ turn(0, roll), atol=1e-12)
    np.testing.assert_array_equal(T[:3, 3], place)


def test_sensors_look_where_section_2_2_1_says():
    forward = {sensor: ARGO.frames.lookup("Body", sensor)[:3, 0] for sensor in SENSORS}
    for sensor in ("LaserHorizontal", "LaserPort", "LaserStarboard", "LaserVertical", "Radar"):
        assert forward[sensor][0] > 0.97, sensor
    # "a few degrees of pitch, less than for the LaserHorizontal"; z is down.
    assert forward["LaserHorizontal"][2] > forward["LaserPort"][2] > forward["LaserStarboard"][2] > 0
    assert ARGO.frames.lookup("Body", "LaserVertical")[2, 1] > 0.99  # its y, in the scan plane, points down


def test_the_errata_are_the_sums_of_both_tables():
    for laser, height, pitch, yaw in zip(LASERS, HEIGHTS, PITCHES, YAWS, strict=True):
        _, pitch_y, yaw_z, _, _, dz = SENSORS[laser]
        _, down, _, phi_x, phi_y = VISUAL[laser]
        assert dz + down == pytest.approx(height, abs=0.0005)
        assert pitch_y + phi_x == pytest.approx(pitch, abs=0.05)
        assert yaw_z + phi_y == pytest.approx(yaw, abs=0.05)


@pytest.mark.parametrize("number", range(3))
def test_each_laser_puts_the_visual_camera_where_the_errata_say(number: int):
    T = camera_in_body(ARGO, "VideoVisual", LASERS[number])
    pitch, yaw = np.degrees(pitch_and_yaw(T))
    # The sums neglect that the lasers are tilted: P rolls by 0.5 degree, which over 0.96 m is 8 mm.
    assert T[2, 3] == pytest.approx(HEIGHTS[number], abs=0.013)
    assert pitch == pytest.approx(PITCHES[number], abs=0.05)
    assert yaw == pytest.approx(YAWS[number], abs=0.15)


@pytest.mark.parametrize("camera", TABLES)
def test_offsets_along_the_lasers_axes_make_the_rows_agree_best_in_the_plane(camera: str):
    """Three ways to read "expressed in the camera frame"; in height the rows are 12 cm apart in each."""
    optical = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])

    def spread(axes: str) -> np.ndarray:
        places: list[np.ndarray] = []
        for laser, T in cameras_in_body(camera).items():
            body = ARGO.frames.lookup("Body", laser)
            turned = {"laser": body[:3, :3] @ optical, "camera": T[:3, :3], "Body": optical}[axes]
            places.append(body[:3, 3] + turned @ np.array(ARGO.constants[TABLES[camera]][laser]["metres"]))
        return np.ptp(places, axis=0)

    assert spread("laser")[0] < 0.020
    assert spread("laser")[1] < 0.021
    for other, forward in (("Body", 0.040), ("camera", 0.070)):
        assert spread(other)[0] > forward
        assert spread(other)[1] > spread("laser")[1]
    positions = [T[:3, 3] for T in cameras_in_body(camera).values()]
    np.testing.assert_allclose(np.ptp(positions, axis=0), spread("laser"))
    assert min(spread(axes)[2] for axes in ("laser", "camera", "Body")) > 0.12


def test_the_other_sign_of_the_angles_would_set_the_rows_degrees_apart():
    def pitches(sign: float) -> np.ndarray:
        looks: list[float] = []
        for laser in LASERS:
            row = ARGO.constants["laser_to_visual_camera"][laser]["degrees"]
            looks.append(SENSORS[laser][1] + sign * row[0])
        return np.array(looks)

    assert np.ptp(pitches(+1.0)) < 0.3
    assert np.ptp(pitches(-1.0)) > 10
    ours = [np.degrees(pitch_and_yaw(T)[0]) for T in cameras_in_body("VideoVisual").values()]
    np.testing.assert_allclose(ours, pitches(+1.0), atol=0.05)


def test_a_camera_beside_a_level_laser_by_hand():
    row = {"metres": [0.4, -0.3, 0.1], "degrees": [-10.0, 0.0, 0.0]}
    robot = robot_from_description(
        {
            "name": "level",
            "frames": [
                {"frame": "Body", "child": "LaserHorizontal", "xyz": [0, 0, -1]},
                {
                    "frame": "LaserHorizontal",
                    "child": "LaserHorizontalOptical",
                    "matrix": [[0, 0, 1], [1, 0, 0], [0, 1, 0]],
                },
            ],
            "constants": {"laser_to_visual_camera": {"LaserHorizontal": row}},
        },
        "here",
    )
    T = camera_in_body(robot, "VideoVisual")
    # 0.4 m to the right, 0.3 up and 0.1 forward of a laser 1 m above the body, looking 10 degrees down.
    np.testing.assert_allclose(T[:3, 3], [0.1, 0.4, -1.3])
    np.testing.assert_allclose(np.degrees(pitch_and_yaw(T)), [-10, 0], atol=1e-12)
    np.testing.assert_allclose(T[:3, 0], [0, 1, 0], atol=1e-12)  # the picture's x is starboard


@pytest.mark.parametrize("camera", TABLES)
def test_the_robots_own_cameras_stand_by_the_table_of_laser_horizontal(camera: str):
    np.testing.assert_allclose(ARGO.frames.lookup("Body", camera), camera_in_body(ARGO, camera), atol=1e-15)


@pytest.mark.parametrize("camera", TABLES)
def test_the_tables_of_laser_vertical_are_refused(camera: str):
    with pytest.raises(FrameError, match="cannot be used") as refused:
        camera_in_body(ARGO, camera, "LaserVertical")
    assert "wrong forward sign" in refused.value.why
    assert set(usable_lasers(ARGO, camera)) == set(LASERS)


def test_unknown_lasers_and_cameras_are_named():
    with pytest.raises(FrameError, match="LaserPot") as unknown:
        camera_in_body(ARGO, "VideoVisual", "LaserPot")
    assert "LaserPort" in unknown.value.hint
    with pytest.raises(FrameError, match="VideoVisible"):
        camera_in_body(ARGO, "VideoVisible")


def test_a_laser_meets_the_image_by_its_own_table():
    frames = frames_with_camera(ARGO.frames, ARGO, "VideoVisual", "LaserPort")
    T = frames.lookup("LaserPort", "VideoVisual")
    right, down, forward, *_ = VISUAL["LaserPort"]
    np.testing.assert_allclose(T[:3, 3], [forward, right, down], atol=1e-12)
    before = ARGO.frames.lookup("Body", "VideoVisual")[2, 3]
    assert before == camera_in_body(ARGO, "VideoVisual")[2, 3]  # the robot's own frames are as they were
    assert frames.lookup("Body", "VideoVisual")[2, 3] < before - 0.05
