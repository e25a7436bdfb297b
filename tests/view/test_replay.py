"""Films of a rover over its map and of an arm over its deck: what is drawn, when, and what is said."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import transect as command

import transect
from transect import robots
from transect.draw.replay.arm import LINK_COLOUR, PATH_COLOUR
from transect.draw.replay.stage import BLUE
from transect.draw.timelines import STATE_COLOURS
from transect.errors import UsageError
from transect.integrity.table import VerdictTable, table_of
from transect.recording import Recording, arrow, stream_of_values
from transect.types import GridMap, Imu, JointState, Pose, Verdict
from transect.view.film import ReplayFilm, replay

NS = 10**9
START_NS = 1_700_000_000 * NS
T_NS = START_NS + np.arange(101) * NS // 10
"""Ten seconds."""


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])


def count(picture: np.ndarray, colour: str) -> int:
    return int((np.abs(picture.astype(int) - rgb(colour)).max(axis=2) < 12).sum())


def middle(picture: np.ndarray, colour: str) -> np.ndarray:
    """Return the mean place (right, down) of pixels of a colour."""
    return np.argwhere(np.abs(picture.astype(int) - rgb(colour)).max(axis=2) < 12).mean(axis=0)[::-1]


def drive(**more: object) -> Recording:
    """Return a drive of 10 m to the east, then 10 m to the north, in 10 s."""
    leg = np.clip(np.arange(101) / 50, 0, 1) * 10, np.clip(np.arange(101) / 50 - 1, 0, 1) * 10
    unit = {"qx": np.zeros(101), "qy": np.zeros(101), "qz": np.zeros(101), "qw": np.ones(101)}
    pose = stream_of_values(
        "pose", T_NS, {"x": leg[0], "y": leg[1], "z": np.zeros(101), **unit}, type=Pose, frame="map"
    )
    return Recording("drive", (pose,), **more)  # pyright: ignore[reportArgumentType]


def arm() -> Recording:
    """Return InSight's arm, whose first joint turns by half a radian in 10 s."""
    joints = np.tile([0.0, -0.4, 1.4, 0.1], (101, 1))
    joints[:, 0] = np.linspace(0, 0.5, 101)
    stream = stream_of_values("Arm/Encoders", T_NS, {"position": joints}, type=JointState, clock="sclk")
    return Recording("arm", (stream,), robot=robots.load("ida"))


def verdicts(*stretches: tuple[float, float, str], stream: str = "pose") -> VerdictTable:
    found = [
        Verdict("s", stream, START_NS + round(a * NS), START_NS + round(b * NS), state=state)  # pyright: ignore[reportArgumentType]
        for a, b, state in stretches
    ]
    return VerdictTable(table_of(found, {}))


def pictures(film: ReplayFilm, *seconds: float) -> list[np.ndarray]:
    return list(film.frames(seconds))


def test_a_rover_goes_right_then_up_and_leaves_its_way_behind() -> None:
    first, halfway, last = pictures(replay(drive()), 0.0, 5.0, 10.0)
    assert first.shape == (720, 1280, 3)
    map_only = [picture[190:600, 60:870] for picture in (first, halfway, last)]
    blue = [count(picture, BLUE) for picture in map_only]
    assert blue[0] < blue[1] < blue[2]
    start, middle_way = middle(map_only[0], BLUE), middle(map_only[1], BLUE)
    assert middle_way[0] > start[0] + 100
    assert abs(middle_way[1] - start[1]) < 15


def test_a_bad_stretch_is_red_while_it_lasts_and_stays_red_on_the_way() -> None:
    film = replay(drive(), verdicts=verdicts((0, 4, "OK"), (4, 6, "BAD"), (6, 10, "OK")))
    good, bad, after = pictures(film, 2.0, 5.0, 9.0)
    red = [count(picture[110:600, 60:870], STATE_COLOURS["BAD"]) for picture in (good, bad, after)]
    assert red[0] == 0
    assert red[1] > red[2] > 0  # the rover itself is red only then


def test_the_worst_verdict_of_all_streams_counts() -> None:
    several = [*verdicts((0, 10, "OK")), *verdicts((3, 5, "SUSPECT"), (4, 5, "BAD"))]
    film = replay(drive(), verdicts=VerdictTable(table_of(several, {})))
    shown = film.frames.args[0].states  # pyright: ignore[reportFunctionMemberAccess]
    assert [(j.start, j.end, j.state) for j in shown] == [
        (0.0, 3.0, "OK"), (3.0, 4.0, "SUSPECT"), (4.0, 5.0, "BAD"), (5.0, 10.0, "OK"),
    ]  # fmt: skip


def test_its_own_map_lies_below_and_is_named() -> None:
    heights = np.add.outer(np.arange(30.0), np.arange(30.0)).astype(np.float32)
    ground = GridMap({"elevation": heights}, (1.0, 0.0, -10.0, 0.0, -1.0, 20.0), "", "map")
    rec = drive()
    dem = rec["pose"].replace(
        name="dem", type=GridMap, source=arrow.table(T_NS[:1], {}), loader=lambda row: ground
    )
    film = replay(rec.replace(streams=(*rec.streams, dem)))
    assert film.notes == ("the background is dem",)
    (with_map,), (without,) = pictures(film, 0.0), pictures(replay(rec), 0.0)
    assert (with_map[300, 300] != without[300, 300]).any()


@pytest.mark.parametrize(("seconds", "speed"), [(10, 1), (100, 5), (1500, 60), (10**6, 600)])
def test_a_film_lasts_forty_seconds_at_most_if_a_round_speed_will_do(seconds: int, speed: int) -> None:
    rec = drive()
    slow = START_NS + (T_NS - START_NS) * seconds // 10
    stretched = arrow.table(slow, {n: rec["pose"][n] for n in rec["pose"].columns})
    film = replay(rec.replace(streams=(rec["pose"].replace(source=stretched),)))
    assert (film.duration, film.speed) == (seconds, speed)
    assert film.seconds[-1] == seconds
    assert speed == 600 or len(film.seconds) <= 40 * 25 + 1


def test_an_arm_turns_and_its_tool_leaves_a_way() -> None:
    film = replay(arm(), speed=10.0)
    assert len(film.seconds) == 26
    first, last = pictures(film, 0.0, 10.0)
    scene = slice(90, 640), slice(0, 900)
    assert np.linalg.norm(middle(first[scene], LINK_COLOUR) - middle(last[scene], LINK_COLOUR)) > 20
    assert count(last[scene], PATH_COLOUR) > count(first[scene], PATH_COLOUR) + 100


def test_the_tool_is_where_the_arms_kinematics_put_it() -> None:
    from transect.robots.urdf import arms_of

    film, rec = replay(arm()), arm()
    assert rec.robot is not None
    (known,) = arms_of(rec.robot)
    scene = film.frames.args[0].scene_at(10.0)  # pyright: ignore[reportFunctionMemberAccess]
    base = np.diag([1.0, -1.0, -1.0, 1.0]) @ rec.robot.frames.lookup("Payload", "ArmBase")
    wrist = base @ known.chain.forward(np.array([0.5, -0.4, 1.4, 0.1]))
    np.testing.assert_allclose(scene.chains[0][-1], wrist[:3, 3], atol=1e-12)


def test_the_film_opens_again_with_all_its_frames(tmp_path: Path) -> None:
    out = command("export", _written(tmp_path), "--replay", "--speed", "50", "-o", tmp_path / "r.mp4")
    assert "10.0 s, 50 times as fast" in out.stdout
    film = transect.open(tmp_path / "r.mp4")["r"]
    assert len(film) == 6
    assert (film[0].value.width, film[0].value.height) == (1280, 720)


def _written(folder: Path) -> Path:
    from transect import formats

    formats.write(drive(), folder / "drive.tum", "tum")
    return folder / "drive.tum"


def test_what_cannot_be_replayed_is_said() -> None:
    imu = stream_of_values("imu", T_NS, {"acc_x": np.zeros(101)}, type=Imu)
    with pytest.raises(UsageError, match="has nothing to replay"):
        replay(Recording("still", (imu,)))


def test_a_map_lies_below_no_arm() -> None:
    with pytest.raises(UsageError, match=r"dem\.tif is for rovers"):
        replay(arm(), over="dem.tif")


def test_options_of_a_replay_need_one(tmp_path: Path) -> None:
    path = _written(tmp_path)
    found = command("export", path, "--speed", "3", "-o", tmp_path / "a.gpx")
    assert (found.returncode, "--speed is for --replay" in found.stderr) == (2, True)
    found = command("export", path, "--replay", "-o", tmp_path / "a.gpx")
    assert (found.returncode, "a replay is a film, not gpx" in found.stderr) == (2, True)
