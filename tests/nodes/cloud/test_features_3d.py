"""Keypoints and descriptors as nodes: ports, refusals, and that the functions behind them are used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from transect.geometry import descriptors, surfaces
from transect.nodes.cloud.features_3d import (
    FeaturesDescription3D,
    FeaturesExtraction3D,
    Fpfh,
    HarrisDetector3D,
    Iss,
    PfhDescriptor3D,
    ShotDescriptor3D,
    Uniform,
)
from transect.types import PointCloud

LINE = np.linspace(0, 1, 11)
GRID = np.stack(np.meshgrid(LINE, LINE, LINE), axis=-1).reshape(-1, 3)
BOX = PointCloud(
    np.vstack([GRID[((GRID == 0) | (GRID == 1)).any(axis=1)], [[np.nan, 0, 0]]]),
    t_ns=5,
    frame="lidar",
    viewpoint=np.array([0.5, 0.5, 0.5, 0, 0, 0, 1]),
)


@pytest.mark.parametrize("node", [Iss(radius=0.35), HarrisDetector3D(radius=0.35)], ids=["iss", "harris"])
def test_keypoints_of_a_box_are_near_its_eight_corners(node: FeaturesExtraction3D):
    found = node(BOX)
    assert len({tuple(row) for row in np.round(found.points)}) == 8
    assert (np.linalg.norm(found.points - np.round(found.points), axis=1) < 0.3).all()
    assert (found.t_ns, found.frame, len(found.response)) == (5, "lidar", len(found))


@pytest.mark.parametrize("node", [Iss(), HarrisDetector3D()])
def test_too_few_points_have_no_keypoints(node: FeaturesExtraction3D):
    assert node(PointCloud(np.zeros((3, 3)))) is None


@pytest.mark.parametrize(
    ("node", "describe", "size"),
    [
        (Fpfh(radius=0.66, neighbours=9), descriptors.fpfh, 33),
        (PfhDescriptor3D(radius=0.33, neighbours=9), descriptors.pfh, 125),
        (ShotDescriptor3D(radius=0.66, neighbours=9), descriptors.shot, 352),
    ],
)
def test_every_measured_point_can_be_a_keypoint_and_is_described(
    node: FeaturesDescription3D, describe: Callable[..., np.ndarray], size: int
):
    described = node(BOX, Uniform()(BOX))
    assert described.descriptors.shape == (len(BOX) - 1, size)
    points = BOX.points[:-1]
    normals = surfaces.normals(points, 9, [0.5, 0.5, 0.5]).normals
    np.testing.assert_allclose(described.descriptors, describe(points, normals, node.radius), atol=1e-6)
    np.testing.assert_array_equal(described.normals, normals)


def test_fewer_corners_are_suppressed_within_a_smaller_distance():
    few, many = HarrisDetector3D(radius=0.35)(BOX), HarrisDetector3D(radius=0.35, suppression=0.05)(BOX)
    assert len(many) > 2 * len(few)
    assert {tuple(row) for row in few.points} <= {tuple(row) for row in many.points}


def test_normals_that_are_given_are_used():
    normals = np.tile([0.0, 0, 1], (len(BOX), 1))
    described = Fpfh()(BOX, Iss(radius=0.35)(BOX), PointCloud(normals))
    np.testing.assert_array_equal(described.normals, np.tile([0, 0, 1], (len(described), 1)))
