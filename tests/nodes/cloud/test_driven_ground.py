"""The driven ground: planes that can be worked out by hand, and the simulated field below true wheels."""

from __future__ import annotations

import numpy as np
import pytest

from transect import robots
from transect.datasets.rosario.world import SETTINGS
from transect.datasets.rosario.world.sensors import FIELD, load_weeder, make_chassis
from transect.engine.context import Context
from transect.engine.statistics import NodeCount
from transect.geometry import rotations
from transect.nodes.cloud.driven_ground import DrivenGround
from transect.simulation import driving, terrain
from transect.types import PointCloud, Pose, WheelState

NS = 1_000_000_000
WHEEL_RADIUS_M = 0.17
"""m, of wheels that an invented rover reports speeds of."""
TICKS_PER_TURN = 30_000.0  # AMEDS eq. 4
AXLE_HEIGHT_M = 0.135  # AMEDS section 4: H, from Platform down to the axles


def node_of(robot: str, **parameters: float) -> DrivenGround:
    node = DrivenGround(**parameters)
    node.ctx = Context(NodeCount(), robots.load(robot).frames)
    return node


def driven(node: DrivenGround, poses: list[Pose], wheels: list[WheelState] | None = None) -> PointCloud:
    for i, pose in enumerate(poses):
        node.process(pose, None, wheels[i] if wheels else None)
    ground = node.finish()
    assert ground is not None
    return ground


def poses_on(slope: float, above: float, ways: np.ndarray) -> list[Pose]:
    """Poses of Platform up a slope (rad) along x, at a height over the plane, at distances (n,) along it."""
    q = rotations.quaternion_from_euler("rpy", [0.0, -slope, 0.0])
    up, ahead = (rotations.rotate(q, axis) for axis in ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0]))
    return [
        Pose(way * ahead + above * up, q, round(i * NS / 10), "map", "Platform") for i, way in enumerate(ways)
    ]


def test_interact_touches_a_slope_where_its_wheels_are_with_the_radius_that_it_tells_itself():
    ways = np.linspace(0.0, 2.0, 21)  # 10 cm in each 0.1 s
    ticks = ways / (2 * np.pi * WHEEL_RADIUS_M) * TICKS_PER_TURN
    wheels = [
        WheelState(
            velocity=np.ones(4), drive_ticks=np.full(4, at), steer_ticks=np.zeros(4), t_ns=i * NS // 10
        )
        for i, at in enumerate(ticks)
    ]
    ground = driven(node_of("interact"), poses_on(0.2, AXLE_HEIGHT_M + WHEEL_RADIUS_M, ways), wheels)
    np.testing.assert_allclose(ground.points[:, 2], np.tan(0.2) * ground.points[:, 0], atol=1e-6)
    assert ground.frame == "map"
    # AMEDS section 4: L = 0.402, W + d = 0.396 + 0.143; front left, rear left, rear right, front right
    first = [ground.points[ground.fields["wheel"] == wheel][0] for wheel in range(4)]
    along = np.array([0.402, -0.402, -0.402, 0.402]) * np.cos(0.2)
    np.testing.assert_allclose(np.array(first)[:, 0], along, atol=1e-6)
    np.testing.assert_allclose(np.array(first)[:, 1], [0.539, 0.539, -0.539, -0.539], atol=1e-6)
    steps = np.linalg.norm(np.diff(ground.points[ground.fields["wheel"] == 2], axis=0), axis=1)
    np.testing.assert_allclose(steps, 0.05, atol=1e-6)
    assert len(ground) == 4 * 41  # 2 m, both ends


def test_the_weeder_touches_the_simulated_field_as_its_wheels_feel_it():
    robot = load_weeder()
    land = terrain.field(1, row_length=6.0, rows=6, headland=2.0, cell=0.05).smooth(SETTINGS.wheel_blur_m)
    way = driving.course([driving.straight(3.0, 0.8)], 4.0, start=(1.0, FIELD.lane_m, 0.1))
    motion = driving.drive(way, make_chassis(robot), land.at)
    poses = [
        Pose(motion.position[i], motion.quaternion[i], int(motion.t_ns[i]), "world", "base_link")
        for i in range(0, len(motion), driving.RATE_HZ // 10)
    ]
    ground = driven(node_of("weeder", track=FIELD.lane_m), poses)
    assert sorted(set(ground.fields["wheel"].tolist())) == [0, 1, 2, 3]
    # Four wheels of a stiff frame do not all touch uneven ground; the body shakes by a millimetre.
    off = ground.points[:, 2] - land.at(ground.points[:, :2].astype(float))
    assert np.sqrt(np.mean(off**2)) < 0.02
    assert np.ptp(ground.points[:, 2]) > 0.05


def test_without_a_track_the_ground_is_told_below_the_axles():
    q = np.array([0.0, 0.0, 0.0, 1.0])
    poses = [Pose(np.array([x, 2.0, 0.5]), q, 0, "world", "base_link") for x in np.arange(5) * 0.05]
    ground = driven(node_of("weeder"), poses)
    expected = [[x, 2.0, 0.5] for axle in (0.0, 1.6) for x in axle + np.arange(5) * 0.05]  # 001, 4.6: 1.6 m
    np.testing.assert_allclose(ground.points, expected, atol=1e-6)


def test_sigma_is_that_of_the_height_at_the_wheel():
    pose = Pose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), 0, "world", "base_link")
    covariance = np.diag([1.0, 1.0, 0.03**2, 0.01**2, 0.02**2, 1.0])
    covariance[2, 4] = covariance[4, 2] = 0.5 * 0.03 * 0.02
    node = node_of("weeder", track=1.0)
    node.process(pose, covariance)
    ground = node.finish()
    assert ground is not None
    # A turn about y (left) by e lowers what is 1.6 m ahead by 1.6 e, one about x (ahead) raises the left.
    rear = np.hypot(0.03, 0.5 * 0.01)
    front = np.sqrt(rear**2 + (1.6 * 0.02) ** 2 - 2 * 1.6 * covariance[2, 4])
    np.testing.assert_allclose(ground.fields["sigma"], [rear, rear, front, front], rtol=1e-6)


def test_standing_adds_nothing_and_what_lies_below_a_jump_is_not_told():
    q = np.array([0.0, 0.0, 0.0, 1.0])
    ways = [*np.arange(3) * 0.05, *(0.1 + 0.001 * np.sin(np.arange(100))), 0.1 + 1.0, 0.15 + 1.0]
    poses = [Pose(np.array([x, 0.0, 0.0]), q, 0, "world", "base_link") for x in ways]
    ground = driven(node_of("weeder"), poses)
    rear = ground.points[ground.fields["wheel"] == 0][:, 0]
    assert len(rear) == 4
    assert not ((rear > 0.11) & (rear < 0.09 + 1.0)).any()


@pytest.mark.parametrize(
    ("robot", "child", "reason"),
    [
        ("argo", "Body", "the wheels of this robot are not known"),
        ("weeder", "imu", "the wheels of this robot are not known"),
        ("interact", "Platform", "the radius of the wheels is not known: --set node.radius=METRES"),
    ],
)
def test_wheels_that_are_not_known_are_not_invented(robot: str, child: str, reason: str):
    node, count = DrivenGround(), NodeCount()
    node.ctx = Context(count, robots.load(robot).frames)
    node.process(Pose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), 0, "map", child))
    assert node.finish() is None
    assert dict(count.skipped) == {reason: 1}
