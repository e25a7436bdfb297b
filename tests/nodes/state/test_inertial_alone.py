"""Pose fusion of a car by an IMU and a receiver alone; the car is simulated here, by other formulas.

Its path is a speed and a curvature over time on a road that rises and falls. The IMU feels second differences
of that path, and turns between its attitudes; both by scipy, none of the fusion's own functions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from transect.algorithms.fusion.gnss_sigma import deviation_of
from transect.algorithms.fusion.heading_alignment import align_by_acceleration
from transect.algorithms.fusion.measurements import Inertial, Place
from transect.nodes.state.batch_smoother import BatchSmoother
from transect.nodes.state.error_state_filter import ErrorStateFilter
from transect.nodes.state.fixed_lag_smoother import FixedLagSmoother
from transect.recording import FrameTree
from transect.types import Imu, NavFix, Trajectory

NS, G, HZ, SIGMA = 1_000_000_000, 9.80665, 50, 0.5
EARTH = 6_378_137.0
"""m: near the equator's zero meridian, where east and north are y and x of a geodesist's globe."""


@dataclass
class Drive:
    """True place (n, 3) and attitude of the IMU at HZ, and what was measured."""

    place: np.ndarray
    attitude: Rotation
    imu: list[Imu]
    fix: list[NavFix]


def drive(
    start: str,
    *,
    mount: tuple[float, float, float] = (0.0, 0.0, 0.0),
    heights: bool = True,
    sigma: float = SIGMA,
) -> Drive:
    """Drive 24 s from a start; `mount` is yaw, pitch and roll of the IMU in the car."""
    rng = np.random.default_rng(5)
    t = np.arange(24 * HZ) / HZ
    speed, bend = {
        "standing": (np.clip(2 * (t - 3), 0, 10), 0.02 * np.sin(t / 3)),
        "reverse": (
            np.where(t < 9, -2 * np.sin(np.clip(t - 2, 0, 7) / 7 * np.pi), np.clip(2 * (t - 10), 0, 9)),
            0.01 + 0 * t,
        ),
        "turn": (np.clip(2 * (t - 1), 0, 7), np.where(t < 12, 0.1, 0.0)),
        "cruise": (np.full(len(t), 12.0), np.where(t < 18, 0.0, 0.03)),
    }[start]
    smooth = np.hanning(HZ) / np.hanning(HZ).sum()
    speed, bend = (
        np.convolve(np.pad(each, HZ // 2, mode="edge"), smooth)[HZ:-HZ][: len(t)] for each in (speed, bend)
    )
    t = t[: len(speed)]
    yaw = 2.0 + np.cumsum(speed * bend) / HZ
    pitch = -0.03 * np.sin(np.cumsum(speed) / HZ / 40)
    car = Rotation.from_euler("ZYX", np.column_stack([yaw, pitch, np.zeros(len(t))]))
    velocity = speed[:, None] * car.apply([1.0, 0.0, 0.0])
    place = np.cumsum(velocity, axis=0) / HZ
    attitude = car * Rotation.from_euler("ZYX", mount)
    force = attitude.inv().apply(np.gradient(velocity, 1 / HZ, axis=0) + np.array([0, 0, G]))
    turns = (attitude[:-1].inv() * attitude[1:]).as_rotvec() * HZ
    rate = np.concatenate([turns[:1], (turns[1:] + turns[:-1]) / 2, turns[-1:]])
    force += 0.05 * rng.normal(size=3) + 0.03 * rng.normal(size=force.shape)
    rate += 0.003 * rng.normal(size=3) + 0.002 * rng.normal(size=rate.shape)
    imu = [Imu(f, w, t_ns=round(s * NS)) for s, f, w in zip(t, force, rate, strict=True)]
    seen = range(HZ // 10, len(t), HZ // 5)
    said = place + sigma * rng.normal(size=place.shape) * [1, 1, 2]
    fixes = [
        NavFix(
            said[i, 1] / (EARTH * (1 - 0.00669438)),
            said[i, 0] / EARTH,
            said[i, 2] if heights else np.nan,
            std=np.array([1.0, 1.0, 2.0]) * sigma,
            t_ns=round(t[i] * NS),
        )
        for i in seen
    ]
    return Drive(place - said[seen[0]], attitude, imu, fixes)


def fuse(node: Any, driven: Drive) -> tuple[Trajectory | None, list[str]]:
    """Play a drive to a node ten times a second; return its trajectory and its conclusions."""
    said: list[str] = []
    node.ctx._concluded = lambda text, bad: said.append("BAD: " * bad + text)
    result = None
    for _ in range(node.passes):
        i = j = 0
        for now in range(0, driven.imu[-1].t_ns, NS // 10):
            a, b = i, j
            while i < len(driven.imu) and driven.imu[i].t_ns <= now:
                i += 1
            while j < len(driven.fix) and driven.fix[j].t_ns <= now:
                j += 1
            node.ctx.time = now
            node(imu=driven.imu[a:i], fix=driven.fix[b:j])
        result = node.finish()
    return (result.trajectory if result else None), said


def errors(found: Trajectory, driven: Drive) -> tuple[np.ndarray, np.ndarray]:
    """Distances (n,) in the plane, m, and headings off by (n,), rad."""
    k = np.round(found.t_ns / NS * HZ).astype(int)
    assert found.orientations is not None
    off = Rotation.from_quat(found.orientations) * Rotation.from_quat(driven.attitude.as_quat()[k]).inv()
    return np.hypot(*(found.positions - driven.place[k])[:, :2].T), np.abs(off.as_rotvec()[:, 2])


@pytest.mark.parametrize(
    ("start", "mount"),
    [("standing", (0.0, 0.0, 0.0)), ("reverse", (0.0, 0.0, np.pi)), ("turn", (1.2, 0.3, -0.2))],
)
def test_an_imu_and_a_receiver_alone_tell_place_and_heading(start: str, mount: tuple[float, float, float]):
    driven = drive(start, mount=mount)
    found, said = fuse(ErrorStateFilter(), driven)
    assert found is not None
    assert found.covariances is not None
    off, heading = errors(found, driven)
    assert np.sqrt(np.mean(off**2)) < 2 * SIGMA
    assert heading[-50:].max() < 0.15
    assert (heading < 4 * np.sqrt(found.covariances[:, 5, 5])).mean() > 0.9
    assert said[0] == "no frame tells how the IMU is mounted: its axes are taken for those of the body"
    assert any(text.startswith("heading at the start: by accelerations, one sigma ") for text in said)
    assert not any(text.startswith("BAD") for text in said)


@pytest.mark.parametrize("kind", [BatchSmoother, FixedLagSmoother])
def test_smoothers_do_without_a_dead_reckoning_and_without_heights(kind: Any):
    pytest.importorskip("gtsam")
    driven = drive("turn", mount=(1.2, 0.3, -0.2), heights=False)
    found, said = fuse(kind(spacing=2.0), driven)
    assert found is not None
    assert found.covariances is not None
    off, heading = errors(found, driven)
    assert np.sqrt(np.mean(off**2)) < 1.5 * SIGMA
    assert heading.mean() < 0.1
    assert (np.sqrt(found.covariances[:, 2, 2]) > 5).all()
    assert "fix tells no height: it is taken for 0, within 10 m" in said


def test_without_accelerations_the_way_tells_the_heading_only_if_forward_is_known():
    driven = drive("cruise")
    driven.imu, driven.fix = driven.imu[: 17 * HZ], driven.fix[: 17 * 5]
    found, said = fuse(ErrorStateFilter(), driven)
    assert found is None
    assert [text[:23] for text in said if text.startswith("BAD")] == ["BAD: there are no poses"]
    assert said[-1].endswith("positions are taken to be right within 0.5 m, and worse ones tell less")
    node = ErrorStateFilter()
    node.ctx.frames = FrameTree()
    node.ctx.frames.add_static("base_link", "imu", np.eye(4))
    driven.imu = [replace(each, frame="imu") for each in driven.imu]
    found, said = fuse(node, driven)
    assert found is not None
    assert errors(found, driven)[1].max() < 0.3
    assert "heading at the start: that of the way; nothing accelerated, so x is taken for forward" in said


def test_a_slow_robot_has_the_heading_of_its_way_by_fixes_that_state_no_deviation():
    t = np.arange(0, 20, 0.1)
    imu = [Inertial(round(s * NS), np.array([0.0, 0.05, G]), np.array([0.0, 0.0, 0.05])) for s in t]
    at = np.arange(20.0)
    turned = 0.7 + 0.05 * at
    way = np.column_stack([np.sin(turned) - np.sin(0.7), np.cos(0.7) - np.cos(turned), 0 * at]) / 0.05
    way += np.random.default_rng(2).normal(size=way.shape)
    std = deviation_of(NavFix(0.0, 0.0, 0.0)).std
    places = [Place("fix", round(s * NS), p, std, np.zeros(3), False) for s, p in zip(at, way, strict=True)]
    found = align_by_acceleration(imu, places, np.eye(3), G, knows_forward=True)
    assert found is not None
    assert found.by_course
    assert np.arctan2(found.pose[1, 0], found.pose[0, 0]) == pytest.approx(0.7, abs=0.15)


def tell_attitudes(driven: Drive) -> None:
    """Let an RTK receiver tell roll, pitch, yaw: of forward, right, down in north, east, down."""
    ned_enu = Rotation.from_matrix([[0, 1, 0], [1, 0, 0], [0, 0, -1]])
    flu_frd = Rotation.from_matrix(np.diag([1.0, -1.0, -1.0]))
    for i, each in enumerate(driven.fix):
        turned = ned_enu * driven.attitude[round(each.t_ns * HZ / NS)] * flu_frd
        driven.fix[i] = replace(each, attitude=turned.as_euler("ZYX")[::-1], fix="rtk fixed")


def test_a_log_may_begin_in_the_middle_of_a_drive():
    driven = drive("cruise", sigma=0.02)
    tell_attitudes(driven)
    driven.imu, driven.fix = driven.imu[: 8 * HZ], driven.fix[: 8 * 5]
    node = ErrorStateFilter()
    found, _ = fuse(node, driven)
    assert found is not None
    assert node.filter is not None
    assert node.filter.sensors["fix"].refused <= 1
    assert errors(found, driven)[0].max() < 0.2


def test_a_second_of_wrong_accelerations_costs_a_few_places_and_not_the_rest_of_the_drive():
    """The velocity that they leave is wrong; a fusion that doubts its position alone never finds out."""
    driven = drive("cruise", sigma=0.02)
    tell_attitudes(driven)
    for i in range(3 * HZ, 4 * HZ):
        wrong = driven.imu[i].acceleration + np.array([0.0, 3.0, 0.0])
        driven.imu[i] = replace(driven.imu[i], acceleration=wrong)
    driven.imu, driven.fix = driven.imu[: 12 * HZ], driven.fix[: 12 * 5]
    node = ErrorStateFilter()
    found, _ = fuse(node, driven)
    assert found is not None
    assert node.filter is not None
    assert node.filter.sensors["fix"].refused < 8
    assert errors(found, driven)[0][-40:].max() < 0.2


def test_an_imu_in_g_ends_with_words():
    driven = drive("standing")
    driven.imu = [replace(each, acceleration=each.acceleration / G) for each in driven.imu]
    _, said = fuse(ErrorStateFilter(), driven)
    assert any(text.startswith("BAD: ") for text in said)
