"""A person walks through a room that a laser sees; where each beam ends is worked out by geometry."""

from __future__ import annotations

import numpy as np
import pytest

from transect.geometry import rotations, se3
from transect.nodes.cloud.point_cloud_filtering import FreeSpace
from transect.types import PointCloud, Pose

BEAMS = np.deg2rad(np.arange(-90, 90, 0.5))
WALL_DISTANCE_M = 8.0


def to_circle(origin: np.ndarray, rays: np.ndarray, centre: np.ndarray, radius: float) -> np.ndarray:
    """Distances (n,) along unit rays (n, 2) to a circle; infinite where they miss."""
    along = rays @ (centre - origin)
    miss = np.sum((origin + along[:, None] * rays - centre) ** 2, axis=1)
    hit = (miss < radius**2) & (along > 0)
    return np.where(hit, along - np.sqrt(np.where(hit, radius**2 - miss, 0)), np.inf)


def scan(pose: tuple[float, float, float], person: np.ndarray | None, rng: np.random.Generator):
    """Points of a sweep in the laser's frame, and which are on the person; a wall and a post stand still."""
    x, y, heading = pose
    angles = BEAMS + heading
    rays, origin = np.column_stack([np.cos(angles), np.sin(angles)]), np.array([x, y])
    with np.errstate(divide="ignore"):
        wall = np.where(rays[:, 0] > 0.2, (WALL_DISTANCE_M - x) / rays[:, 0], np.inf)
    still = np.minimum(wall, to_circle(origin, rays, np.array([4.0, 2.0]), 0.2))
    walker = np.full(len(rays), np.inf) if person is None else to_circle(origin, rays, person, 0.25)
    ranges = np.minimum(still, walker)
    seen = np.isfinite(ranges)
    reach = ranges[seen] + rng.normal(0, 0.01, seen.sum())
    points = np.column_stack([reach * np.cos(BEAMS[seen]), reach * np.sin(BEAMS[seen]), np.zeros(seen.sum())])
    return PointCloud(points), (walker < still)[seen]


def at(x: float, y: float, heading: float) -> Pose:
    return Pose(np.array([x, y, 0.0]), rotations.quaternion_from_euler("Z", [heading]))


@pytest.mark.parametrize("drives", [False, True])
def test_a_walking_person_is_left_out_and_walls_and_posts_stay(drives: bool):
    node, rng = FreeSpace(), np.random.default_rng(0)
    caught = total = lost = static = 0
    for k in range(25):
        pose = (0.05 * k, 0.02 * k, 0.01 * k) if drives else (0.0, 0.0, 0.0)
        cloud, on_person = scan(pose, np.array([3.5, -3.0 + 0.25 * k]), rng)
        out = node(cloud, at(*pose)) if drives else node(cloud)
        assert out.suppressed == len(out.movingPointCloud) == len(cloud) - len(out.staticPointCloud)
        if k < 5:
            continue
        moving = {tuple(point) for point in out.movingPointCloud.points}
        caught += sum(tuple(point) in moving for point in cloud.points[on_person])
        lost += sum(tuple(point) in moving for point in cloud.points[~on_person])
        total, static = total + on_person.sum(), static + (~on_person).sum()
    assert total > 200
    assert caught > 0.9 * total
    assert lost < 0.01 * static


def test_where_nothing_moves_nothing_is_left_out():
    node, rng = FreeSpace(), np.random.default_rng(0)
    assert sum(node(scan((0, 0, 0), None, rng)[0]).suppressed for _ in range(15)) == 0


def test_a_ball_that_rolls_over_the_floor_of_a_spinning_lidar_is_left_out():
    azimuth, elevation = np.meshgrid(np.arange(0, 2 * np.pi, 0.02), np.deg2rad(np.arange(-30, -4, 1.0)))
    rays = np.stack(
        [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)], -1
    )
    rays, height, node = rays.reshape(-1, 3), 1.5, FreeSpace(cell_degrees=2.0)
    ground = height / -rays[:, 2]
    for k in range(12):
        centre = np.array([5.0, -3 + 0.5 * k, -height + 0.4])
        along = rays @ centre
        miss = centre @ centre - along**2
        ball = np.where(miss < 0.16, along - np.sqrt(np.maximum(0.16 - miss, 0)), np.inf)
        out = node(PointCloud(rays * np.minimum(ground, ball)[:, None]))
    on_ball = (ball < ground).sum()
    # What is low on the ball is too near to the floor behind it to tell: floor that slopes away must stay.
    assert 0.5 * on_ball < out.suppressed <= on_ball
    assert (out.movingPointCloud.points[:, 2] > -height + 0.05).all()


def test_the_state_can_be_frozen():
    node, rng = FreeSpace(), np.random.default_rng(0)
    node(scan((0, 0, 0), None, rng)[0])
    other = FreeSpace()
    other.thaw(node.freeze())
    np.testing.assert_array_equal(other.images[0].nearest, node.images[0].nearest)
    assert se3.invert(other.images[0].T_sensor_fixed)[0, 0] == 1
