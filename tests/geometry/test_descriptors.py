"""Descriptors beside those of PCL 1.13 (`tests/oracles`); nothing depends on where the cloud stands."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles import pcl_cloud

from transect.errors import GeometryError
from transect.geometry import descriptors, rotations, se3, surfaces

BOTH = [descriptors.shot, descriptors.pfh]


@pytest.fixture(scope="module")
def cloud():
    return pcl_cloud.cloud()


def test_shot_is_what_pcl_says_to_its_single_precision(cloud):
    rows, theirs = pcl_cloud.answers("shot")
    assert theirs.shape == (pcl_cloud.KEYPOINT_COUNT, 352)
    ours = descriptors.shot(*cloud, pcl_cloud.SUPPORT_RADIUS, rows)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_pfh_is_what_pcl_says_in_percent_to_its_single_precision(cloud):
    rows, theirs = pcl_cloud.answers("pfh")
    assert theirs.shape == (pcl_cloud.KEYPOINT_COUNT, 125)
    ours = descriptors.pfh(*cloud, pcl_cloud.SUPPORT_RADIUS, rows)
    np.testing.assert_allclose(100 * ours, theirs, atol=1e-3)


def test_harris_responses_are_those_of_pcl(cloud):
    _, theirs = pcl_cloud.answers("harris")
    ours = surfaces.harris_responses(*cloud, pcl_cloud.CORNER_SIZE)
    known = np.isfinite(ours)
    assert np.count_nonzero(known) > 480  # PCL gives a response with fewer neighbours, too
    np.testing.assert_allclose(ours[known], theirs[0, known], atol=1e-7)


@pytest.mark.parametrize("describe", BOTH)
def test_descriptors_stay_when_the_cloud_moves(cloud, describe):
    points, normals = (each.astype(np.float64) for each in cloud)
    T = se3.from_matrix(rotations.matrix_from_rotation_vector([0.4, -1.1, 2.0]), [3.0, -5.0, 1.0])
    moved = describe(se3.apply(T, points), normals @ T[:3, :3].T, 0.25, pcl_cloud.rows())
    np.testing.assert_allclose(moved, describe(points, normals, 0.25, pcl_cloud.rows()), atol=1e-6)


@pytest.mark.parametrize("describe", BOTH)
def test_points_alone_have_no_descriptor_and_unknown_normals_do_not_vote(describe):
    points, normals = (each.astype(np.float64) for each in pcl_cloud.cloud())
    lonely = np.vstack([points, [[50.0, 0, 0]]])
    unknown = np.vstack([normals, [[0, 0, 1.0]]])
    near = np.argsort(np.linalg.norm(points - points[0], axis=1))[3]
    unknown[near] = np.nan
    found = describe(lonely, unknown, 0.25, [0, len(points)])
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[0]).all()
    assert not np.allclose(found[0], describe(points, normals, 0.25, [0])[0])


@pytest.mark.parametrize("describe", BOTH)
def test_some_keypoints_at_a_time_are_described_as_all_at_once(cloud, describe, monkeypatch):
    whole = describe(*cloud, 0.25, pcl_cloud.rows())
    monkeypatch.setattr(descriptors, "MAX_BATCH_NEIGHBOURS", 100)
    np.testing.assert_allclose(describe(*cloud, 0.25, pcl_cloud.rows()), whole, atol=1e-12)
    assert describe(*cloud, 0.25, []).shape == (0, whole.shape[1])


def test_a_radius_with_too_many_neighbours_is_refused(cloud, monkeypatch):
    monkeypatch.setattr(descriptors, "MAX_NEIGHBOUR_PAIRS", 1000)
    with pytest.raises(GeometryError, match="too large for this cloud"):
        descriptors.shot(*cloud, 2.0)


def test_shot_tells_a_corner_from_a_plane_however_densely_it_is_sampled():
    def alike(a: np.ndarray, b: np.ndarray) -> float:
        return float(descriptors.shot(a, _up(a), 0.5, [0])[0] @ descriptors.shot(b, _up(b), 0.5, [0])[0])

    assert alike(_ramp(0.0, 600, 1), _ramp(0.0, 2400, 2)) > alike(_ramp(0.0, 600, 1), _ramp(1.0, 2400, 2))


def _ramp(slope: float, count: int, seed: int) -> np.ndarray:
    """A plane, flat for x < 0 and rising for x > 0; the first point is the origin."""
    xy = np.random.default_rng(seed).uniform(-1, 1, (count, 2))
    return np.vstack([np.zeros(3), np.column_stack([xy, slope * np.maximum(xy[:, 0], 0)])])


def _up(points: np.ndarray) -> np.ndarray:
    return surfaces.normals(points, 12, [0, 0, 10]).normals
