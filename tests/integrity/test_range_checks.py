"""Clouds of dust in clouds of points, lasers that contradict each other, and sensors that were knocked."""

from __future__ import annotations

import numpy as np
import pytest

from transect.base.clocks import NS
from transect.integrity import check
from transect.recording import Recording, Stream, stream_of_values
from transect.simulation.faults import inject
from transect.types import Imu, Verdict

from .recordings import START_NS, hall, planar, spinning


def judge(recording: Recording, name: str, stream: str) -> list[Verdict]:
    verdicts = list(check(recording, checks=[name]))
    assert {v.note for v in verdicts if v.reason == "CHECK_FAILED"} == set()
    return [v for v in verdicts if v.stream == stream]


# C04


@pytest.fixture(scope="module")
def clear() -> Recording:
    return Recording("hall", (spinning(seconds=13),))


def test_a_lidar_of_few_rings_in_a_clear_hall_sees_nothing_in_the_air(clear: Recording):
    assert {v.state for v in judge(clear, "C04", "lidar")} == {"OK"}
    rainy, _ = inject(clear, "rain", 1.0, seed=1, start="+6s", end="+9s")
    assert {v.state for v in judge(rainy, "C04", "lidar")} == {"OK"}


@pytest.mark.parametrize(("fault", "severity", "state"), [("fog", 1.0, "BAD"), ("dust", 0.4, "SUSPECT")])
def test_what_hangs_in_the_air_is_named_while_it_lasts(
    clear: Recording, fault: str, severity: float, state: str
):
    changed, _ = inject(clear, fault, severity, seed=1, start="+6s", end="+11s")
    found = judge(changed, "C04", "lidar")
    assert {v.state for v in found[:6]} == {"OK"}
    assert {v.reason for v in found[8:11]} == {"OBSCURANT"}
    assert {v.state for v in found[8:11]} == {state}
    assert {v.raw for v in found[11:]} == {"OK"}


def test_the_mask_has_most_of_the_fog_and_little_else(clear: Recording):
    foggy, _ = inject(clear, "fog", 0.3, seed=1, start="+6s", end="+8s")
    region = judge(foggy, "C04", "lidar")[7].region
    assert region is not None
    cloud, before = foggy["lidar"][7].payload, clear["lidar"][7].payload
    assert len(cloud) == len(before)
    fog = np.linalg.norm(cloud.points - before.points, axis=1) > 0.3
    masked = region[0, : len(cloud)]
    assert np.mean(masked[fog]) > 0.8
    assert np.mean(fog[masked]) > 0.9


@pytest.fixture(scope="module")
def still() -> Recording:
    return hall(spinning(seconds=10), feeling(10), seconds=10)


# X03


def test_a_laser_with_wrong_ranges_contradicts_others_that_see_the_same_surface(still: Recording):
    """With two sensors the wrong one is ambiguous; with three it is the one that contradicts both others."""
    assert {v.state for v in check(still, checks=["X03"])} == {"OK"}
    wrong, _ = inject(still, "bias_step", 1.0, streams=["flat"], start="+5s", end="+8s")
    two = wrong.replace(streams=tuple(s for s in wrong if s.name != "lidar"))
    for recording, name in ((two, "flat"), (two, "upright"), (wrong, "flat")):
        found = judge(recording, "X03", name)
        assert {v.state for v in found[:5]} == {"OK"}
        assert {(v.state, v.reason) for v in found[6:8]} == {("BAD", "DISAGREE")}
        assert {v.raw for v in found[8:]} == {"OK"}
    assert {v.state for v in judge(wrong, "X03", "upright")} == {"OK"}


def test_lasers_that_see_no_common_surface_are_not_judged():
    alone = hall(seconds=3)
    behind = np.diag([-1.0, 1.0, -1.0, 1.0])
    behind[2, 3] = 2.0
    frames = alone.frames.copy()
    frames.add_static("body", "behind", behind)
    two = Recording("two", (alone["flat"], planar("behind", behind, 3)), frames=frames)
    assert {(v.state, v.reason) for v in judge(two, "X03", "flat")} == {("UNKNOWN", "NO_OVERLAP")}


# X04


def feeling(seconds: int) -> Stream:
    t_ns = START_NS + np.arange(50 * seconds) * (NS // 50)
    noise = 0.02 * np.random.default_rng(4).normal(size=(6, len(t_ns)))
    names = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
    columns = {name: each + 9.81 * (name == "acc_z") for name, each in zip(names, noise, strict=True)}
    return stream_of_values("imu", t_ns, columns, type=Imu, frame="imu")


@pytest.mark.parametrize(
    ("stream", "severity", "state"),
    [
        ("flat", 0.112, "SUSPECT"),
        ("imu", 0.112, "SUSPECT"),
        ("lidar", 0.112, "SUSPECT"),
        ("upright", 1.0, "BAD"),
    ],
)
def test_a_sensor_that_was_knocked_by_a_degree_is_named_at_once(
    still: Recording, stream: str, severity: float, state: str
):
    """Severity 0.112 is one degree, 1 are five."""
    knocked, _ = inject(still, "extrinsic_bump", severity, seed=1, streams=[stream], start="+5s")
    verdicts = check(knocked, checks=["X04"])
    for name in ("flat", "upright", "lidar", "imu"):
        states = [v.state for v in verdicts.select(stream=name)]
        assert set(states[3:5]) == {"OK"}
        assert set(states[6:]) == {state if name == stream else "OK"}, name
    assert set(verdicts.select(state=state).column("reason")) == {"EXTRINSIC"}


def test_a_robot_that_was_pushed_has_no_loose_sensors():
    """Both lasers turn alike, and no wheel observes it; alone it is suspect, and not declared."""
    still = hall(seconds=10)
    turned = np.eye(4)
    c, s = np.cos(0.03), np.sin(0.03)
    turned[:2, :2] = [[c, -s], [s, c]]
    upright = turned @ still.frames.lookup("body", "upright")
    later = (planar("flat", turned, 10), planar("upright", upright, 10))
    pushed: list[Stream] = []
    for before, after in zip((still["flat"], still["upright"]), later, strict=True):
        ranges = [stream.table["ranges"].to_pylist() for stream in (before, after)]
        columns = {name: np.asarray(before[name]) for name in ("start_angle", "angle_increment")}
        columns["ranges"] = [*ranges[0][:50], *ranges[1][50:]]
        made = stream_of_values(before.name, before.t_ns, columns, type=before.type, frame=before.frame)
        pushed.append(made)
    two = Recording("pushed", (*pushed, still["wheels"]), frames=still.frames)
    assert {v.raw for v in check(two, checks=["X04"])} <= {"OK", "UNKNOWN"}
    one = Recording("pushed", (pushed[0], still["wheels"]), frames=still.frames)
    assert {v.state for v in judge(one, "X04", "flat")[6:]} == {"SUSPECT"}


@pytest.mark.parametrize(("fault", "severity"), [("smoke", 1.0), ("fog", 0.5)])
def test_a_cloud_before_a_sensor_is_no_knock_neither_while_it_lasts_nor_after(
    still: Recording, fault: str, severity: float
):
    cloudy, _ = inject(still, fault, severity, seed=1, start="+4s", end="+7s")
    verdicts = check(cloudy, checks=["X04"])
    assert {v.raw for v in verdicts} == {"OK", "UNKNOWN"}
    assert {v.state for v in verdicts.select(stream="flat")} == {"OK", "UNKNOWN"}
    assert [v.state for v in verdicts.select(stream="flat")][8:] == ["OK", "OK"]


def test_in_motion_and_without_any_other_sensor_a_mount_is_not_judged():
    assert {v.reason for v in judge(hall(seconds=4, speed=0.5), "X04", "flat")} == {"MOVING"}
    alone = Recording("alone", (hall(seconds=4)["flat"],))
    assert {v.reason for v in judge(alone, "X04", "flat")} == {"LEARNING", "NO_PEER"}
