"""Incomplete samples: odometry without poses or with unset poses, fixes without heights."""

from __future__ import annotations

import numpy as np
import pytest

from transect import run
from transect.algorithms.fusion.events import OdometryStep, YawRate
from transect.algorithms.fusion.measurements import FusionInputs
from transect.engine.context import Context
from transect.evaluation.positions.streams import trajectory_of
from transect.recording import FrameTree, Recording, Stream, arrow
from transect.types import Imu, NavFix, Odometry

NS = 1_000_000_000
T_NS = np.arange(0, 12 * NS, NS // 10)
EARTH_RADIUS_M = 6_378_137.0


def odometry(**columns: np.ndarray) -> Stream:
    table = arrow.table(T_NS, columns, units=Odometry.units())
    return Stream("odom", Odometry, table, clock="utc", child="base_link")


def steps(stream: Stream) -> list[OdometryStep]:
    """Return the steps of an odometry as input of a fusion."""
    inputs, ctx = FusionInputs(), Context()
    found = [inputs.gather(ctx, None, [each.value], *[None] * 5) for each in stream]
    return [event for events in found for event in events if isinstance(event, OdometryStep)]


ONE, ZERO, NAN = np.ones(len(T_NS)), np.zeros(len(T_NS)), np.full(len(T_NS), np.nan)
TWIST = {"vx": ONE, "wz": 0.2 * ONE}


@pytest.mark.parametrize(
    "columns",
    [
        TWIST,
        TWIST | {"vy": NAN, "vz": NAN, "wx": NAN, "wy": NAN},
        TWIST | dict.fromkeys(("x", "y", "z", "qx", "qy", "qz", "qw", "vy", "vz", "wx", "wy"), ZERO),
        TWIST | dict.fromkeys(("x", "y", "z", "qx", "qy", "qz", "vy"), ZERO) | {"qw": ONE},
    ],
    ids=["columns absent", "not measured", "pose of zeros", "pose at the origin"],
)
def test_speed_and_turn_rate_alone_give_dead_reckoning(columns: dict[str, np.ndarray]):
    found = steps(odometry(**columns))
    assert len(found) == len(T_NS) - 1
    assert np.allclose([each.transform[0, 3] for each in found], 0.1, rtol=1e-3)
    assert np.allclose([np.arctan2(*each.transform[[1, 0], 0]) for each in found], 0.02)


def test_a_quaternion_of_zeros_is_no_attitude():
    zeros = dict.fromkeys(("qx", "qy", "qz", "qw"), ZERO)
    found = steps(odometry(x=T_NS / NS, y=ZERO, z=ZERO, **zeros))
    assert np.allclose([each.transform[:3, 3] for each in found[1:]], [0.1, 0, 0])


def test_an_imu_with_an_odometry_without_body_frame_is_used_for_the_heading():
    inputs, ctx = FusionInputs(), Context()
    still = Imu(np.array([0.0, 0.0, 9.8]), np.array([0.0, 0.0, 0.2]), t_ns=0)
    nameless = next(iter(odometry(**TWIST).replace(child=""))).value
    found = inputs.gather(ctx, None, [nameless], None, None, [still], None, None)
    assert [each.rate for each in found if isinstance(each, YawRate)] == [pytest.approx(0.2)]
    assert inputs.notes[0].startswith("no frame names the body: the axes of the odometry are assumed")


@pytest.fixture(scope="module")
def flat() -> Recording:
    """A circle of 5 m radius at 1 m/s: fixes without a height, and an odometry of speed and turn rate."""
    turned = 0.2 * T_NS / NS
    lat, lon = (
        5 * (1 - np.cos(turned)) / (EARTH_RADIUS_M * (1 - 0.00669438)),
        5 * np.sin(turned) / EARTH_RADIUS_M,
    )
    table = arrow.table(T_NS[::5], {"lat": lat[::5], "lon": lon[::5]}, units=NavFix.units())
    return Recording("flat", (odometry(**TWIST), Stream("fix", NavFix, table, clock="utc")))


def test_fixes_without_a_height_are_fused_in_the_plane(flat: Recording):
    done = run("PoseFusion/ErrorStateFilter", flat)
    (found,) = done["trajectory"].values
    turned = 0.2 * found.t_ns / NS
    true = np.column_stack([5 * np.sin(turned), 5 * (1 - np.cos(turned))])
    assert np.hypot(*(found.positions[:, :2] - true).T)[-30:].max() < 0.3
    assert np.abs(found.positions[:, 2]).max() < 1
    assert any(each.text.startswith("fix has no heights: 0 is assumed") for each in done.conclusions)


def test_fixes_without_a_height_are_a_trajectory_in_the_plane(flat: Recording):
    found = trajectory_of(flat["fix"])
    assert len(found) == len(flat["fix"])
    assert np.abs(found.positions[:, 2]).max() < 1e-4
    assert found.positions[-1, 0] == pytest.approx(5 * np.sin(0.2 * 11.5), abs=0.01)


@pytest.fixture(scope="module")
def inertial(flat: Recording) -> Recording:
    """The same circle with an IMU at the origin of the body; fixes have a sigma of a metre."""
    rng, n = np.random.default_rng(4), len(T_NS)
    force = {"acc_x": ZERO, "acc_y": 0.2 * ONE, "acc_z": 9.80665 * ONE}
    rate = {"gyro_x": ZERO, "gyro_y": ZERO, "gyro_z": 0.2 * ONE}
    columns = {name: each + 0.005 * rng.normal(size=n) for name, each in (force | rate).items()}
    imu = Stream("imu", Imu, arrow.table(T_NS, columns, units=Imu.units()), clock="utc", frame="imu")
    frames = FrameTree()
    frames.add_static("base_link", "imu", np.eye(4))
    fix = flat["fix"]
    scatter = {name: fix[name] + rng.normal(size=len(fix)) / EARTH_RADIUS_M for name in ("lat", "lon")}
    fixes = Stream("fix", NavFix, arrow.table(fix.t_ns, scatter, units=NavFix.units()), clock="utc")
    return Recording("inertial", (odometry(**TWIST), fixes, imu), frames=frames)


@pytest.mark.parametrize("name", ["BatchSmoother", "FixedLagSmoother"])
def test_smoothers_estimate_the_noise_of_fixes_that_state_none(inertial: Recording, name: str):
    pytest.importorskip("gtsam")
    done = run(f"PoseFusion/{name}", inertial, set={"fusion.spacing": 2.0})
    (found,) = done["trajectory"].values
    turned = 0.2 * found.t_ns / NS
    true = np.column_stack([5 * np.sin(turned), 5 * (1 - np.cos(turned))])
    off = found.positions[:, :2] - true
    assert np.hypot(*(off - off.mean(axis=0)).T).max() < 1.0
    texts = [each.text for each in done.conclusions]
    [sigma] = [each for each in texts if each.startswith("fix: standard deviation ")]
    assert "none is stated" in sigma
    assert 0.5 < float(sigma.split()[3]) < 2.0  # m; the fixes scatter by 1 m
    assert any("estimated from" in each and "of them (none is stated)" in each for each in texts)
    assert not any(each.bad for each in done.conclusions)
