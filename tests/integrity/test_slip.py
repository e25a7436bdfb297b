"""Slip of wheels against fixes: several speeds, on curves and slopes, with good and poor receivers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.datasets.ameds.robot.recordings import circle
from tests.integrity.recordings import START_NS

from transect import robots
from transect.base.clocks import NS
from transect.integrity import check
from transect.integrity.figures import picture_problems
from transect.integrity.report import report_sensors
from transect.recording import Recording, stream_of_values
from transect.simulation.faults import inject
from transect.types import Imu, NavFix, Odometry, Twist, WheelState

DRIVES: dict[str, dict[str, Any]] = {
    "slow": {"speed": 0.2, "noise": 0.005},
    "quick": {"speed": 6.0, "noise": 0.02},
    "curves": {"speed": 1.0, "turn": 0.5, "arm": (0.2, 0.2)},
    "rims": {"speed": 0.8, "turn": 0.4, "arm": (0.8, 0.3), "kind": WheelState},
    "slope": {"speed": 0.5, "slope": 0.35},
    "slow fixes": {"speed": 1.0, "rate": 0.5},
    "slow fixes in curves": {"speed": 1.0, "rate": 0.5, "turn": 0.15},
    "no gyroscopes": {"speed": 1.0, "turn": 0.3, "gyros": False},
}


def drive(
    speed: float, *, turn: float = 0.0, arm: tuple[float, float] = (0.0, 0.0), slope: float = 0.0,
    rate: float = 5.0, noise: float = 0.01, wander: float = 0.0, kind: type = Odometry, gyros: bool = True,
) -> Recording:  # fmt: skip
    """Return wheels (20 Hz), gyroscopes (50 Hz) and fixes of an antenna at an arm, on a way that winds.

    `slope` is in rad, `noise` in m; the error of fixes is a random walk with
    steps of this size in m, which is declared.
    """
    rng, t = np.random.default_rng(3), np.arange(60 * 50) / 50
    t_ns = START_NS + np.rint(t * NS).astype(np.int64)
    rates = turn * np.sin(2 * np.pi * t / 20)
    yaw = np.cumsum(rates) / 50
    way = speed * np.cumsum(np.exp(1j * yaw)) / 50 * np.cos(slope) + (arm[0] + 1j * arm[1]) * np.exp(1j * yaw)
    still = {name: np.zeros(len(t)) for name in ("gyro_x", "gyro_y", "acc_x", "acc_y")}
    imu = stream_of_values("imu", t_ns, {**still, "gyro_z": rates, "acc_z": still["acc_x"] + 9.81}, type=Imu)
    some = slice(None, None, 2)
    rolled = speed + 0.01 * speed * rng.normal(size=len(t[some]))
    columns = {"vx": rolled, "wz": rates[some]} if kind is Odometry else {"wheel_velocity": rolled[:, None]}
    wheels = stream_of_values("wheels", t_ns[some], columns, type=kind)
    some = slice(None, None, round(50 / rate))
    error = noise * rng.normal(size=(len(t[some]), 3)) + wander * _wander(t[some], rng)
    place = np.column_stack([way.real, -way.imag, speed * t * np.sin(slope)])[some] + error
    stated = np.full(len(place), np.hypot(noise, wander))
    fixes = {
        "lat": 0.6 + place[:, 0] / 6.371e6,
        "lon": place[:, 1] / 6.371e6 / np.cos(0.6),
        "alt": place[:, 2],
    }
    gps = stream_of_values("gps", t_ns[some], {**fixes, "std_north": stated, "std_east": stated}, type=NavFix)
    return Recording("drive", (imu, wheels, gps) if gyros else (wheels, gps))


def _wander(t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return (n, 3) a sum of slow waves of deviation 1."""
    periods, phases = np.array([40.0, 90.0, 200.0]), rng.uniform(0, 2 * np.pi, (3, 3))
    return np.sqrt(2 / 3) * np.sin(2 * np.pi * t[:, None, None] / periods + phases).sum(axis=2)


@pytest.mark.parametrize("name", DRIVES)
def test_a_slip_of_a_third_is_found_and_a_drive_without_is_clear(name: str) -> None:
    recording = drive(**DRIVES[name])
    clear = check(recording, checks=["X05"])
    assert {v.raw for v in clear} <= {"OK", "UNKNOWN"}
    assert sum(v.state == "OK" for v in clear) > 20
    for slip in (0.3, 0.4, 0.6):
        changed, _ = inject(recording, "wheel_slip", slip / 0.8, streams=["wheels"])
        found = [v for v in check(changed, checks=["X05"]) if v.reason == "SLIP" and v.score is not None]
        assert len(found) > 15
        assert max(v.evidence["slip"] for v in found) == pytest.approx(slip, abs=0.1)


def test_what_a_poor_receiver_cannot_tell_is_unknown() -> None:
    recording = drive(0.3, wander=3.0)
    assert {v.raw for v in check(recording, checks=["X05"])} == {"UNKNOWN"}


def test_the_picture_of_a_slip_has_the_speed_that_it_is_told_by() -> None:
    changed, _ = inject(drive(1.0, gyros=False), "wheel_slip", 0.75, streams=["wheels"])
    (report,) = (each for each in report_sensors(check(changed, checks=["X05"])) if each.sensor == "wheels")
    starts = {stream.name: int(stream.t_ns[0]) for stream in changed}
    ((_, figure),) = picture_problems(changed, [report], starts)
    lines = {str(line.get_label()): line for line in figure.axes[0].lines}
    assert list(lines) == ["wheels", *report.problems[0].worst.peers]
    told = [np.asarray(line.get_ydata(), np.float64) for line in lines.values()]
    middle = len(told[0]) // 2
    assert 1 - told[1][middle] / told[0][middle] == pytest.approx(0.6, abs=0.1)


def test_a_robot_of_one_s_own_names_its_four_wheels_and_its_navigation() -> None:
    # The wheels turn for 0.5 m/s; a navigation unit, x forward and z down, goes half as fast.
    names = {"encoders": "Base/Motors", "velocity": "Ins/Velocity", "turn_rate": "Ins/Rates"}
    driven = circle(20.0)
    motors, t_ns = driven["Platform/MotorEncoders"], driven["Platform/2DTwistEstimate"].t_ns
    none = np.zeros(len(t_ns))
    moved = {"vx": none + 0.25, "vy": none, "vz": none}
    turned = {"wx": none, "wy": none, "wz": none - 0.05}
    velocity = stream_of_values(names["velocity"], t_ns, moved, type=Twist)
    rates = stream_of_values(names["turn_rate"], t_ns, turned, type=Twist)
    interact = robots.load("interact")
    mine = replace(interact, name="mine", constants={**interact.constants, "wheel_streams": names})
    streams = (motors.replace(name=names["encoders"]), velocity, rates)
    found = check(Recording("drive", streams, robot=mine), checks=["X05"])
    told = [v for v in found if v.reason == "SLIP" and v.score is not None]
    assert len(told) > 10
    assert {v.peers for v in told} == {("Ins/Velocity", "Ins/Rates")}
    assert [v.evidence["slip"] for v in told] == pytest.approx([0.5] * len(told))
