"""Wheel odometry compared with GNSS: nodes alone, and the compound on a simulated day."""

from __future__ import annotations

import numpy as np
import pytest

from transect import run
from transect.datasets.ameds.robot.locomotion import wheel_odometry
from transect.geometry import rotations
from transect.nodes.state.local_pose import LocalPose
from transect.nodes.state.pose_drift import PoseDrift
from transect.nodes.state.wheel_odometry import FourWheelSteer
from transect.recording import FrameTree, Recording
from transect.simulation.day import WorldOptions, simulate
from transect.types import NavFix, Pose, WheelState

STREAMS = ("Platform/MotorEncoders", "Gnss/Pose")


@pytest.fixture(scope="module")
def firm() -> Recording:
    """Four seconds on Etna without wheel slip."""
    return simulate("etna", WorldOptions(seconds=4.0, streams=STREAMS, conditions={"soil": "firm"})).recording


@pytest.fixture(scope="module")
def loose() -> Recording:
    return simulate("etna", WorldOptions(seconds=4.0, streams=STREAMS)).recording


def pose(x: float, y: float, heading: float) -> Pose:
    return Pose(np.array([x, y, 0.0]), rotations.quaternion_from_euler("Z", [heading]))


def test_the_node_gives_the_path_of_the_model_on_the_whole_recording(loose: Recording):
    found = run("WheelDrift", loose)["odometry"]
    model = wheel_odometry(loose)
    np.testing.assert_array_equal(found.t_ns, model.t_ns)
    np.testing.assert_allclose([p.position for p in found.values], model.array("x", "y", "z"), atol=1e-9)


def test_wheels_that_do_not_slip_drift_less_than_wheels_that_do(firm: Recording, loose: Recording):
    """Loose soil has a slip of 3 % on the level, and half the slope uphill (`simulation.wheels.Soil`)."""
    drifts = {}
    for name, day in (("firm", firm), ("loose", loose)):
        result = run("WheelDrift", day)
        drifts[name] = result["error"].values[-1] / result["travelled"].values[-1]
    assert drifts["firm"] < 0.03
    assert drifts["firm"] < drifts["loose"] < 0.15


def test_a_gap_longer_than_allowed_is_not_bridged():
    odometry = FourWheelSteer(max_gap=0.5)
    wheels = WheelState(velocity=np.ones(4), steer_ticks=np.zeros(4))
    for seconds, x in ((0.0, 0.0), (0.4, 0.4), (2.0, 0.4), (2.1, 0.5)):
        odometry.ctx.time = round(seconds * 1e9)
        np.testing.assert_allclose(odometry(wheels).position, [x, 0, 0], atol=1e-9)


def test_wheels_without_steering_are_skipped():
    assert FourWheelSteer()(WheelState(velocity=np.ones(4))) is None


def test_heading_north_is_along_y_of_east_north_up():
    local = LocalPose()
    level = np.zeros(3)
    first = local(NavFix(0.5, 0.2, 100.0, attitude=level))
    np.testing.assert_allclose(first.position, 0, atol=1e-9)
    np.testing.assert_allclose(rotations.rotate(first.orientation, [1.0, 0, 0]), [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(rotations.rotate(first.orientation, [0, 0, 1.0]), [0, 0, -1], atol=1e-12)
    above = local(NavFix(0.5, 0.2, 103.0, attitude=level))
    np.testing.assert_allclose(above.position, [0, 0, 3], atol=1e-6)


def test_fixes_without_position_or_attitude_are_skipped():
    assert LocalPose()(NavFix(np.nan, 0.2, 100.0, attitude=np.zeros(3))) is None
    assert LocalPose()(NavFix(0.5, 0.2, 100.0)) is None


def test_drift_is_relative_to_the_start_pose():
    drift = PoseDrift(reference_body="body", estimate_body="body")
    drift.ctx.frames = FrameTree()
    drift.ctx.frames.add_static("world", "body", np.eye(4))
    start = drift(pose(10, 5, np.pi / 2), pose(0, 0, 0))
    assert (start.error, start.travelled) == (0.0, 0.0)
    along = drift(pose(10, 7, np.pi / 2), pose(2.1, 0, 0))
    assert along.error == pytest.approx(0.1)
    assert along.travelled == pytest.approx(2.1)
