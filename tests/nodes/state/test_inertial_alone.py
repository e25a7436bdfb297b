"""Pose fusion of a car by an IMU and a receiver alone, simulated here independently of the fusion's code.

The path is a speed and a curvature over time on a hilly road. The IMU measures second differences of that
path, and turns between its attitudes, computed with scipy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from transect.algorithms.fusion.events import ImuSample, MeasuredPosition
from transect.algorithms.fusion.gnss_sigma import sigma_of_fix
from transect.algorithms.fusion.heading_alignment import align_by_acceleration
from transect.nodes.state.batch_smoother import BatchSmoother
from transect.nodes.state.error_state_filter import ErrorStateFilter
from transect.nodes.state.fixed_lag_smoother import FixedLagSmoother
from transect.recording import FrameTree
from transect.types import Imu, NavFix, Trajectory

NS, GRAVITY_M_S2, RATE_HZ, SIGMA_M = 1_000_000_000, 9.80665, 50, 0.5
EARTH_RADIUS_M = 6_378_137.0
"""m: near the equator's zero meridian, where east and north are y and x of a geodesist's globe."""


@dataclass
class Drive:
    """True position (n, 3) and attitude of the IMU at HZ, and its measurements."""

    position: np.ndarray
    attitude: Rotation
    imu: list[Imu]
    fix: list[NavFix]


def drive(
    start: str,
    *,
    mount: tuple[float, float, float] = (0.0, 0.0, 0.0),
    heights: bool = True,
    sigma: float = SIGMA_M,
) -> Drive:
    """Simulate 24 s with a kind of start; `mount` is yaw, pitch and roll of the IMU in the car."""
    rng = np.random.default_rng(5)
    t = np.arange(24 * RATE_HZ) / RATE_HZ
    speed, bend = {
        "standing": (np.clip(2 * (t - 3), 0, 10), 0.02 * np.sin(t / 3)),
        "reverse": (
            np.where(t < 9, -2 * np.sin(np.clip(t - 2, 0, 7) / 7 * np.pi), np.clip(2 * (t - 10), 0, 9)),
            0.01 + 0 * t,
        ),
        "turn": (np.clip(2 * (t - 1), 0, 7), np.where(t < 12, 0.1, 0.0)),
        "cruise": (np.full(len(t), 12.0), np.where(t < 18, 0.0, 0.03)),
    }[start]
    smooth = np.hanning(RATE_HZ) / np.hanning(RATE_HZ).sum()
    speed, bend = (
        np.convolve(np.pad(each, RATE_HZ // 2, mode="edge"), smooth)[RATE_HZ:-RATE_HZ][: len(t)]
        for each in (speed, bend)
    )
    t = t[: len(speed)]
    yaw = 2.0 + np.cumsum(speed * bend) / RATE_HZ
    pitch = -0.03 * np.sin(np.cumsum(speed) / RATE_HZ / 40)
    car = Rotation.from_euler("ZYX", np.column_stack([yaw, pitch, np.zeros(len(t))]))
    velocity = speed[:, None] * car.apply([1.0, 0.0, 0.0])
    position = np.cumsum(velocity, axis=0) / RATE_HZ
    attitude = car * Rotation.from_euler("ZYX", mount)
    force = attitude.inv().apply(np.gradient(velocity, 1 / RATE_HZ, axis=0) + np.array([0, 0, GRAVITY_M_S2]))
    turns = (attitude[:-1].inv() * attitude[1:]).as_rotvec() * RATE_HZ
    rate = np.concatenate([turns[:1], (turns[1:] + turns[:-1]) / 2, turns[-1:]])
    force += 0.05 * rng.normal(size=3) + 0.03 * rng.normal(size=force.shape)
    rate += 0.003 * rng.normal(size=3) + 0.002 * rng.normal(size=rate.shape)
    imu = [Imu(f, w, t_ns=round(s * NS)) for s, f, w in zip(t, force, rate, strict=True)]
    seen = range(RATE_HZ // 10, len(t), RATE_HZ // 5)
    said = position + sigma * rng.normal(size=position.shape) * [1, 1, 2]
    fixes = [
        NavFix(
            said[i, 1] / (EARTH_RADIUS_M * (1 - 0.00669438)),
            said[i, 0] / EARTH_RADIUS_M,
            said[i, 2] if heights else np.nan,
            std=np.array([1.0, 1.0, 2.0]) * sigma,
            t_ns=round(t[i] * NS),
        )
        for i in seen
    ]
    return Drive(position - said[seen[0]], attitude, imu, fixes)


def fuse(node: Any, simulated: Drive) -> tuple[Trajectory | None, list[str]]:
    """Run a node on a drive at 10 Hz; return its trajectory and its conclusions."""
    said: list[str] = []
    node.ctx._concluded = lambda text, bad: said.append("BAD: " * bad + text)
    result = None
    for _ in range(node.passes):
        i = j = 0
        for now in range(0, simulated.imu[-1].t_ns, NS // 10):
            a, b = i, j
            while i < len(simulated.imu) and simulated.imu[i].t_ns <= now:
                i += 1
            while j < len(simulated.fix) and simulated.fix[j].t_ns <= now:
                j += 1
            node.ctx.time = now
            node(imu=simulated.imu[a:i], fix=simulated.fix[b:j])
        result = node.finish()
    return (result.trajectory if result else None), said


def errors(found: Trajectory, simulated: Drive) -> tuple[np.ndarray, np.ndarray]:
    """Return horizontal errors (n,), m, and heading errors (n,), rad."""
    k = np.round(found.t_ns / NS * RATE_HZ).astype(int)
    assert found.orientations is not None
    off = Rotation.from_quat(found.orientations) * Rotation.from_quat(simulated.attitude.as_quat()[k]).inv()
    return np.hypot(*(found.positions - simulated.position[k])[:, :2].T), np.abs(off.as_rotvec()[:, 2])


@pytest.mark.parametrize(
    ("start", "mount"),
    [("standing", (0.0, 0.0, 0.0)), ("reverse", (0.0, 0.0, np.pi)), ("turn", (1.2, 0.3, -0.2))],
)
def test_position_and_heading_by_an_imu_and_a_receiver_alone(start: str, mount: tuple[float, float, float]):
    simulated = drive(start, mount=mount)
    found, said = fuse(ErrorStateFilter(), simulated)
    assert found is not None
    assert found.covariances is not None
    off, heading = errors(found, simulated)
    assert np.sqrt(np.mean(off**2)) < 2 * SIGMA_M
    assert heading[-50:].max() < 0.15
    assert (heading < 4 * np.sqrt(found.covariances[:, 5, 5])).mean() > 0.9
    assert said[0] == "no frame gives the mount of the IMU: its axes are assumed to be those of the body"
    assert any(text.startswith("initial heading: by accelerations, sigma ") for text in said)
    assert not any(text.startswith("BAD") for text in said)


@pytest.mark.parametrize("kind", [BatchSmoother, FixedLagSmoother])
def test_smoothers_work_without_dead_reckoning_and_without_heights(kind: Any):
    pytest.importorskip("gtsam")
    simulated = drive("turn", mount=(1.2, 0.3, -0.2), heights=False)
    found, said = fuse(kind(spacing=2.0), simulated)
    assert found is not None
    assert found.covariances is not None
    off, heading = errors(found, simulated)
    assert np.sqrt(np.mean(off**2)) < 1.5 * SIGMA_M
    assert heading.mean() < 0.1
    assert (np.sqrt(found.covariances[:, 2, 2]) > 5).all()
    assert "fix has no heights: 0 is assumed, with a standard deviation of 10 m" in said


def test_without_accelerations_the_heading_is_the_course_only_if_forward_is_known():
    simulated = drive("cruise")
    simulated.imu, simulated.fix = simulated.imu[: 17 * RATE_HZ], simulated.fix[: 17 * 5]
    found, said = fuse(ErrorStateFilter(), simulated)
    assert found is None
    assert [text[:23] for text in said if text.startswith("BAD")] == ["BAD: there are no poses"]
    assert said[-1].endswith("the sigma of the positions is 0.5 m, and more accurate ones need less motion")
    node = ErrorStateFilter()
    node.ctx.frames = FrameTree()
    node.ctx.frames.add_static("base_link", "imu", np.eye(4))
    simulated.imu = [replace(each, frame="imu") for each in simulated.imu]
    found, said = fuse(node, simulated)
    assert found is not None
    assert errors(found, simulated)[1].max() < 0.3
    assert "initial heading: course over ground; without accelerations x is assumed to be forward" in said


def test_a_slow_robot_gets_its_course_from_fixes_without_standard_deviation():
    t = np.arange(0, 20, 0.1)
    imu = [
        ImuSample(round(s * NS), np.array([0.0, 0.05, GRAVITY_M_S2]), np.array([0.0, 0.0, 0.05])) for s in t
    ]
    at = np.arange(20.0)
    turned = 0.7 + 0.05 * at
    way = np.column_stack([np.sin(turned) - np.sin(0.7), np.cos(0.7) - np.cos(turned), 0 * at]) / 0.05
    way += np.random.default_rng(2).normal(size=way.shape)
    std = sigma_of_fix(NavFix(0.0, 0.0, 0.0)).std
    places = [
        MeasuredPosition("fix", round(s * NS), p, std, np.zeros(3), False)
        for s, p in zip(at, way, strict=True)
    ]
    found = align_by_acceleration(imu, places, np.eye(3), GRAVITY_M_S2, forward_is_known=True)
    assert found is not None
    assert found.by_course
    assert np.arctan2(found.pose[1, 0], found.pose[0, 0]) == pytest.approx(0.7, abs=0.15)


def add_attitudes(simulated: Drive) -> None:
    """Add roll, pitch and yaw (forward, right, down in north, east, down) to the fixes."""
    ned_enu = Rotation.from_matrix([[0, 1, 0], [1, 0, 0], [0, 0, -1]])
    flu_frd = Rotation.from_matrix(np.diag([1.0, -1.0, -1.0]))
    for i, each in enumerate(simulated.fix):
        turned = ned_enu * simulated.attitude[round(each.t_ns * RATE_HZ / NS)] * flu_frd
        simulated.fix[i] = replace(each, attitude=turned.as_euler("ZYX")[::-1], fix="rtk fixed")


def test_a_log_may_start_during_motion():
    simulated = drive("cruise", sigma=0.02)
    add_attitudes(simulated)
    simulated.imu, simulated.fix = simulated.imu[: 8 * RATE_HZ], simulated.fix[: 8 * 5]
    node = ErrorStateFilter()
    found, _ = fuse(node, simulated)
    assert found is not None
    assert node.filter is not None
    assert node.filter.statistics.sensors["fix"].rejected <= 1
    assert errors(found, simulated)[0].max() < 0.2


def test_the_filter_recovers_from_a_second_of_wrong_accelerations():
    """The velocity is wrong afterwards: increasing the uncertainty of the position alone is not enough."""
    simulated = drive("cruise", sigma=0.02)
    add_attitudes(simulated)
    for i in range(3 * RATE_HZ, 4 * RATE_HZ):
        wrong = simulated.imu[i].acceleration + np.array([0.0, 3.0, 0.0])
        simulated.imu[i] = replace(simulated.imu[i], acceleration=wrong)
    simulated.imu, simulated.fix = simulated.imu[: 12 * RATE_HZ], simulated.fix[: 12 * 5]
    node = ErrorStateFilter()
    found, _ = fuse(node, simulated)
    assert found is not None
    assert node.filter is not None
    assert node.filter.statistics.sensors["fix"].rejected < 8
    assert errors(found, simulated)[0][-40:].max() < 0.2


def test_an_imu_in_g_is_reported_as_bad():
    simulated = drive("standing")
    simulated.imu = [replace(each, acceleration=each.acceleration / GRAVITY_M_S2) for each in simulated.imu]
    _, said = fuse(ErrorStateFilter(), simulated)
    assert any(text.startswith("BAD: ") for text in said)
