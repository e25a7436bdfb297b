"""LaserMapping on a drive past a wall, with one laser and a radar; recordings are in memory."""

from __future__ import annotations

import numpy as np
import pytest
from tests.nodes.lidar.test_laser_assembly import (
    FIRST_NS,
    LEVEL,
    WALL_EAST_M,
    moving_frames,
    position,
    spectrum,
    wall_scan,
)

import transect
from transect import robots
from transect.engine.wiring import WiringError
from transect.recording import FrameTree, Recording, Stream, stream_of_values
from transect.types import LaserScan, Odometry, Pose, RadarSpectrum, RigidBodyState, Twist

TIMES_NS = FIRST_NS + np.arange(60) * 20_000_000


@pytest.fixture(scope="module")
def drive() -> Recording:
    return Recording(
        name="drive", streams=(laser(), radar(), nav()), frames=moving_frames(), robot=robots.load("argo")
    )


def laser() -> Stream:
    scans = [wall_scan(t) for t in TIMES_NS.tolist()]
    columns = {
        "ranges": np.stack([scan.ranges for scan in scans]),
        "start_angle": np.zeros(len(TIMES_NS)),
        "angle_increment": np.full(len(TIMES_NS), scans[0].angle_increment),
    }
    return stream_of_values("LaserPort", TIMES_NS, columns, type=LaserScan, tag="port", frame="Laser")


def radar() -> Stream:
    lines = [spectrum(t) for t in TIMES_NS.tolist()]
    columns = {
        "reflectivity": np.stack([line.reflectivity for line in lines]),
        "angle": np.array([line.angle for line in lines]),
        "bin_width": np.full(len(TIMES_NS), 0.25),
        "range_offset": np.zeros(len(TIMES_NS)),
    }
    return stream_of_values("RadarSpectrum", TIMES_NS, columns, type=RadarSpectrum, frame="Laser")


def nav() -> Stream:
    values = np.column_stack([[position(t) for t in TIMES_NS.tolist()], np.tile(LEVEL, (len(TIMES_NS), 1))])
    columns = dict(zip(("x", "y", "z", "qx", "qy", "qz", "qw"), values.T, strict=True))
    attributes = {"role": "truth", "frame": "Navigation", "child": "Body"}
    return stream_of_values("Nav", TIMES_NS, columns, type=RigidBodyState, **attributes)


@pytest.mark.parametrize(("name", "wire"), [("RecordedFrames", {}), ("NavStates", {"nav": "Nav"})])
def test_the_wall_is_mapped_at_its_position(drive: Recording, name: str, wire: dict[str, str]):
    run = transect.run(f"LaserMapping/{name}", drive, wire=wire)
    cloud, echoes = run["map"].values[0], run["radar"].values[0]
    np.testing.assert_allclose(cloud.points[:, 1], WALL_EAST_M, atol=1e-6)
    np.testing.assert_allclose(echoes.points[:, 1], 41 * 0.25, atol=1e-9)
    assert cloud.frame == echoes.frame == "Navigation"


SCAN_BEAMS, STEP_S = 90, 1e-3
"""Beams and time between them, of a laser with 10 revolutions per second and a view of 90 degrees."""
AHEAD_M = 0.5
"""Position of the laser in front of the body's origin, m."""
SPEED_M_S, TURN_RAD_S = 0.8, 0.6
"""Velocities of a robot on a circle, m/s and rad/s."""


def body_at(seconds: np.ndarray | float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, y and heading on the circle, in closed form."""
    heading = TURN_RAD_S * np.asarray(seconds)
    radius = SPEED_M_S / TURN_RAD_S
    return radius * np.sin(heading), radius * (1 - np.cos(heading)), heading


def turning_laser(ahead: float, name: str = "/any_scan", frame: str = "hokuyo") -> Stream:
    """Return scans of a wall, each beam at the pose of the laser at its own time."""
    t_ns = FIRST_NS + np.arange(20) * 100_000_000
    beam = np.arange(SCAN_BEAMS)
    _, y, heading = body_at((t_ns[:, None] - FIRST_NS) / 1e9 + beam * STEP_S)
    step = np.radians(1.0)
    bearing = heading + np.radians(45.0) + beam * step
    with np.errstate(divide="ignore"):
        ranges = (WALL_EAST_M - y - ahead * np.sin(heading)) / np.sin(bearing)
    ranges[(ranges < 0) | (ranges > 30)] = np.nan
    columns = {
        "ranges": ranges,
        "start_angle": np.full(len(t_ns), np.radians(45.0)),
        "angle_increment": np.full(len(t_ns), step),
        "time_increment": np.full(len(t_ns), STEP_S),
    }
    return stream_of_values(name, t_ns, columns, type=LaserScan, frame=frame)


def moving(kind: type, name: str = "/anything", **attributes: str) -> Stream:
    t_ns = FIRST_NS + np.arange(0, 2100, 50) * 1_000_000
    x, y, heading = body_at((t_ns - FIRST_NS) / 1e9)
    zeros = np.zeros(len(t_ns))
    pose = {"x": x, "y": y, "z": zeros, "qx": zeros, "qy": zeros}
    pose |= {"qz": np.sin(heading / 2), "qw": np.cos(heading / 2)}
    if attributes.pop("height", ""):
        pose["z"] = np.full(len(t_ns), np.nan)
    twist = dict.fromkeys(("vy", "vz", "wx", "wy"), zeros)
    twist |= {"vx": np.full(len(t_ns), SPEED_M_S), "wz": np.full(len(t_ns), TURN_RAD_S)}
    columns = twist if kind is Twist or attributes.pop("only", "") else pose
    attributes = {"frame": "base"} if kind is Twist else {"frame": "odom", "child": "base", **attributes}
    return stream_of_values(name, t_ns, columns, type=kind, **attributes)


def mounted() -> FrameTree:
    tree = FrameTree()
    ahead = np.eye(4)
    ahead[0, 3] = AHEAD_M
    tree.add_static("base", "hokuyo", ahead)
    return tree


PATHS = {
    "odometry": moving(Odometry),
    "velocities": moving(Odometry, only="twist"),
    "pose": moving(Pose),
    "planar": moving(Pose, height="none"),
    "planar odometry": moving(Odometry, height="none"),
    "state": moving(RigidBodyState),
    "twist": moving(Twist),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_map_is_made_from_any_laser_and_any_motion(path: str):
    run = transect.run(
        "LaserMapping", Recording("r", (turning_laser(AHEAD_M), PATHS[path]), frames=mounted())
    )
    points = run["map"].values[0].points
    assert run.name == "LaserMapping/NavStates"
    assert len(points) > 100
    # Integrated velocities are as good as poses here, since both are steady.
    np.testing.assert_allclose(points[:, 1], WALL_EAST_M, atol=1e-3)
    text = " ".join(each.text for each in run.conclusions)
    assert ("velocities are integrated" in text) == (path in ("velocities", "twist"))
    assert ("poses have no height: z = 0 m is assumed" in text) == path.startswith("planar")


def test_scans_without_angles_are_ignored_and_the_remedy_is_reported():
    scans = turning_laser(AHEAD_M)
    columns = {name: np.stack(scans.column(name)) for name in ("ranges", "angle_increment")}
    blind = stream_of_values("/scan", scans.t_ns, columns, type=LaserScan, frame="hokuyo")
    run = transect.run("LaserMapping", Recording("r", (blind, PATHS["pose"]), frames=mounted()))
    nothing, text = (each.text for each in run.conclusions)
    assert nothing == "no output of map"
    assert text.startswith("scans of hokuyo are ignored: they have no start_angle, so the direction of ")
    assert text.endswith("add to the stream's columns: start_angle: {value: DEGREES, unit: deg}")
    assert run.stats is not None
    assert "there is no radar" in run.stats.nodes["assembly"].skipped


def test_moving_frames_of_any_name_determine_the_path():
    tree = mounted()
    steps = moving(Pose)
    tree.add_moving(
        "world", "base", steps.t_ns, steps.array("x", "y", "z"), steps.array("qx", "qy", "qz", "qw")
    )
    run = transect.run("LaserMapping", Recording("r", (turning_laser(AHEAD_M),), frames=tree))
    assert (run.name, run["map"].values[0].frame) == ("LaserMapping/RecordedFrames", "world")
    np.testing.assert_allclose(run["map"].values[0].points[:, 1], WALL_EAST_M, atol=1e-3)


def test_a_time_offset_of_the_frames_is_applied():
    tree, late_ns = mounted(), 500_000_000
    steps = moving(Pose)
    places, turns = steps.array("x", "y", "z"), steps.array("qx", "qy", "qz", "qw")
    tree.add_moving("world", "base", steps.t_ns + late_ns, places, turns, source="/anything")
    drive = Recording("r", (turning_laser(AHEAD_M), steps), frames=tree)
    run = transect.run("LaserMapping", drive, offset={"/anything": -0.5})
    np.testing.assert_allclose(run["map"].values[0].points[:, 1], WALL_EAST_M, atol=1e-3)


def test_an_unknown_mounting_is_assumed_at_the_origin_and_reported():
    run = transect.run("LaserMapping", Recording("r", (turning_laser(0.0), PATHS["odometry"])))
    np.testing.assert_allclose(run["map"].values[0].points[:, 1], WALL_EAST_M, atol=1e-3)
    texts = [each.text for each in run.conclusions]
    assert texts[1:] == ["the frame hokuyo is assumed to coincide with base: no frames connect them"]


def test_streams_without_frames_give_a_map():
    wheels = moving(Odometry, only="twist", frame="", child="")
    run = transect.run("LaserMapping", Recording("r", (turning_laser(0.0, frame=""), wheels)))
    np.testing.assert_allclose(run["map"].values[0].points[:, 1], WALL_EAST_M, atol=1e-3)
    assert "coincide with the vehicle" in run.conclusions[-1].text + run.conclusions[1].text


def test_all_lasers_are_in_the_map():
    lasers = turning_laser(AHEAD_M, "/left_scan"), turning_laser(0.0, "/scan_2", frame="base")
    run = transect.run("LaserMapping", Recording("r", (*lasers, PATHS["odometry"]), frames=mounted()))
    assert [wire["stream"] for wire in run.config["wiring"].values()] == [
        "/left_scan",
        "/scan_2",
        "/anything",
    ]
    assert int(run["map"].values[0].fields["count"].sum()) == sum(
        int(np.isfinite(np.stack(s.column("ranges"))).sum()) for s in lasers
    )


def test_two_paths_are_a_choice_to_make_and_not_an_empty_map():
    drive = Recording(
        "r",
        (
            turning_laser(0.0),
            PATHS["odometry"],
            moving(Odometry, "/other"),
            PATHS["twist"].replace(name="/t"),
        ),
    )
    with pytest.raises(WiringError) as caught:
        transect.run("LaserMapping", drive)
    wires = ["--wire odometry=/anything", "--wire odometry=/other", "--wire twist=/t"]
    assert caught.value.options == [wires]
    run = transect.run("LaserMapping", drive, wire={"odometry": "/other"})
    assert len(run["map"].values[0])


def test_no_laser_and_no_path_are_errors_that_say_so():
    with pytest.raises(WiringError, match="no laser and no radar"):
        transect.run("LaserMapping", Recording("r", (PATHS["pose"],)))
    with pytest.raises(WiringError) as caught:
        transect.run(
            "LaserMapping", Recording("r", (turning_laser(0.0), moving(Pose, "/slam", role="estimate")))
        )
    assert caught.value.options == [["--wire pose=/slam"]]
