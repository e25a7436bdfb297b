"""Three wheel models on known circles."""

from __future__ import annotations

import numpy as np
import pytest

from transect.geometry import rotations
from transect.nodes.state.odometry_pose import OdometryPose
from transect.nodes.state.side_wheels import SideWheels
from transect.nodes.state.wheel_odometry import Ackermann, Differential, WheelOdometry, model_for
from transect.types import Odometry, Record, WheelState

NS = 1_000_000_000


def after(node: WheelOdometry, wheels: WheelState, seconds: float) -> np.ndarray:
    """Return the pose (x, y, heading) of a node after constant wheel samples at 10 Hz."""
    for k in range(round(seconds * 10) + 1):
        node.ctx.time = k * NS // 10
        pose = node(wheels)
    heading = rotations.euler_from_quaternion("rpy", pose.orientation)[2]
    return np.array([*pose.position[:2], heading])


def test_the_weeder_drives_the_circle_of_its_steering_angle():
    """README of the data: omega = v / 1.6 tan(0.95 steer)."""
    wheels = WheelState(velocity=np.array([1.0, 1.0]), steering=np.array(0.2))
    turned = np.tan(0.95 * 0.2) / 1.6 * 5.0
    radius = 5.0 / turned
    wanted = [radius * np.sin(turned), radius * (1 - np.cos(turned)), turned]
    np.testing.assert_allclose(after(Ackermann(), wheels, 5.0), wanted, atol=1e-9)


def test_wheels_of_opposite_speeds_turn_on_the_spot():
    wheels = WheelState(velocity=np.array([-0.3, -0.3, 0.3, 0.3]))
    np.testing.assert_allclose(after(Differential(track=0.6), wheels, 1.0), [0.0, 0.0, 1.0], atol=1e-9)


def test_without_a_track_samples_are_skipped():
    wheels = WheelState(velocity=np.array([1.0, 1.0]))
    assert Differential()(wheels) is None
    assert model_for(wheels) is None
    assert model_for(wheels, track=0.5) is not None


def test_separate_records_of_both_sides_are_joined():
    left, right = Record({"angular_velocity": 2.0}, t_ns=5), Record({"angular_velocity": 3.0})
    np.testing.assert_allclose(SideWheels(radius=0.3)(left, right).velocity, [0.6, 0.9])
    assert SideWheels()(left, right) is None


@pytest.mark.parametrize("kind", ["poses", "twists", "positions"])
def test_poses_positions_and_twists_give_the_same_path(kind: str):
    node = OdometryPose()
    for k in range(21):
        heading = 0.05 * k
        at = 2.0 * np.array([np.sin(heading), 1 - np.cos(heading), 0.0])
        turned = rotations.quaternion_from_euler("Z", [heading])
        twist = {"velocity": np.array([1.0, 0, 0]), "angular_velocity": np.array([0, 0, 0.5])}
        given = {
            "poses": {"position": at, "orientation": turned},
            "twists": twist,
            "positions": {"position": at},
        }[kind]
        pose = node(Odometry(**given, t_ns=k * NS // 10))
    wanted = [2 * np.sin(1.0), 2 * (1 - np.cos(1.0))]
    np.testing.assert_allclose(pose.position[:2], wanted, atol=0.05 if kind == "positions" else 1e-9)
