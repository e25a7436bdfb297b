"""Registration: a simulated room moved by known transforms, and what must be refused."""

from __future__ import annotations

import copy
import sys

import numpy as np
import pytest
from tests.oracles import pcl_cloud

from transect.algorithms.registration.ambiguity import Rival
from transect.algorithms.registration.cloud_alignment import CloudAlignment
from transect.algorithms.registration.coarse_to_fine import Quality
from transect.algorithms.registration.gicp import VoxelMap, thin
from transect.algorithms.registration.icp import (
    fit_planes,
    fit_points,
    iterate,
    keep_near,
    keep_nearest,
    sample_surface,
)
from transect.errors import MissingExtraError
from transect.geometry import rotations, se3
from transect.nodes.cloud.features_3d import Fpfh, Uniform
from transect.nodes.cloud.point_cloud_filtering import VoxelGrid
from transect.nodes.registration.features_matching_3d import (
    FeaturesMatching3D,
    KissMatcher,
    Ransac3D,
    consensus,
)
from transect.nodes.registration.registration_3d import (
    Gicp,
    Icp3D,
    IcpCC,
    IcpMatcher,
    PointToPlane,
    PointToPoint,
    Registration3D,
)
from transect.types import Features3D, PointCloud, Pose

WRONG = se3.exp(np.array([0.6, -0.7, 0.38, 0.2, 0.15, 0.25]))
"""About a metre and twenty degrees."""


def faces(rng: np.random.Generator, low: np.ndarray, high: np.ndarray, n: int) -> np.ndarray:
    """Points scattered over the faces of a box, as many on each."""
    points = rng.uniform(low, high, (6, n, 3))
    for axis in range(3):
        points[2 * axis, :, axis], points[2 * axis + 1, :, axis] = low[axis], high[axis]
    return points.reshape(-1, 3)


def room(seed: int) -> np.ndarray:
    """A room of 8 by 6 by 3 m with four boxes in it, with 5 mm of noise; every seed samples it anew."""
    rng = np.random.default_rng(seed)
    parts = [faces(rng, np.array([-3.0, -2, -1.2]), np.array([5.0, 4, 1.8]), 600)]
    for x, y, a, b, h in (
        (1, 2, 1, 0.6, 1),
        (3, -1, 0.5, 1.4, 1.5),
        (-2, 1, 0.7, 0.7, 0.5),
        (4, 3, 0.8, 0.4, 2),
    ):
        low = np.array([x, y, -1.2])
        parts.append(faces(rng, low, low + np.array([a, b, h]), 120))
    points = np.vstack(parts)
    return points + rng.normal(0, 0.005, points.shape)


def corridor(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = faces(rng, np.array([-15.0, -1, -1]), np.array([15.0, 1, 1]), 900)[1800:]
    return points + rng.normal(0, 0.005, points.shape)


SINK = PointCloud(room(0), frame="map")
SOURCE = PointCloud(se3.apply(WRONG, room(1)), frame="lidar", viewpoint=np.array([*WRONG[:3, 3], 0, 0, 0, 1]))
TRUTH = se3.invert(WRONG)


def guess(T: np.ndarray) -> Pose:
    q, p = se3.to_quaternion(T)
    return Pose(p, q)


def error(pose: Pose) -> tuple[float, float]:
    """Metres and degrees from the truth."""
    off = TRUTH @ se3.invert(se3.from_quaternion(pose.orientation, pose.position))
    turn = rotations.rotation_vector_from_matrix(off[:3, :3])
    return float(np.linalg.norm(pose.position - TRUTH[:3, 3])), float(np.degrees(np.linalg.norm(turn)))


@pytest.mark.parametrize("method", [Gicp, PointToPlane, PointToPoint])
def test_a_room_is_laid_on_itself_from_a_near_guess(method: type[Registration3D]):
    start = TRUTH @ se3.exp(np.array([0.1, -0.05, 0.1, 0.03, -0.04, 0.03]))
    found = method()(SOURCE, SINK, guess(start))
    far, turned = error(found.transform)
    assert found.success
    assert found.converged
    assert far < (0.03 if method is PointToPoint else 0.01)
    assert turned < (0.4 if method is PointToPoint else 0.1)
    assert found.fitness > 0.8
    assert found.rmse < 0.2
    assert found.degeneracy > 0.05
    assert (found.transform.frame, found.transform.child) == ("map", "lidar")
    deviation = np.sqrt(np.diag(found.covariance))
    assert (deviation[:3] > 1e-4).all()
    assert (deviation[:3] < 0.02).all()


def test_the_same_clouds_give_the_same_bits():
    one, two = (Gicp()(SOURCE, SINK, guess(TRUTH)) for _ in range(2))
    np.testing.assert_array_equal(one.transform.position, two.transform.position)
    np.testing.assert_array_equal(one.covariance, two.covariance)


def test_a_guess_that_shall_not_be_used_is_not():
    moved = PointCloud(se3.apply(se3.exp(np.array([0.05, 0.02, 0, 0, 0, 0.01])), room(1)))
    nonsense = guess(se3.exp(np.array([40.0, 0, 0, 0, 0, 0])))
    assert Gicp()(moved, SINK, nonsense, False).success
    assert not Gicp()(moved, SINK, nonsense, True).success


def test_clouds_without_overlap_are_refused_and_no_pose_is_given():
    away = PointCloud(SINK.points + np.array([100.0, 0, 0]))
    found = Gicp()(away, SINK)
    assert found.success is False
    assert found.transform is None


def test_too_few_points_are_refused():
    found = PointToPlane()(PointCloud(SINK.points[:20]), SINK)
    assert found.success is False
    assert found.transform is None


def test_too_few_iterations_do_not_pass_for_convergence():
    found = PointToPoint(iterations=2)(SOURCE, SINK, guess(TRUTH @ se3.exp(np.full(6, 0.08))))
    assert not found.converged
    assert not found.success


@pytest.mark.parametrize("method", [Gicp, PointToPoint])
def test_a_corridor_is_told_to_leave_its_direction_open(method: type[Registration3D]):
    found = method()(PointCloud(corridor(1)), PointCloud(corridor(0)))
    assert found.success is False
    assert found.degeneracy < 0.01
    assert abs(found.weakest[0]) > 0.95


@pytest.mark.parametrize(
    ("node", "limits"),
    [(Icp3D(), (0.03, 0.4)), (IcpCC(), (0.03, 0.4)), (IcpMatcher(), (0.01, 0.1))],
    ids=["pcl", "cloudcompare", "libpointmatcher"],
)
def test_the_alternatives_of_table_5_lay_a_room_on_itself_and_say_the_same_twice(
    node: Registration3D, limits: tuple[float, float]
):
    start = guess(TRUTH @ se3.exp(np.array([0.1, -0.05, 0.1, 0.03, -0.04, 0.03])))
    found, again = node(SOURCE, SINK, start), type(node)()(SOURCE, SINK, start)
    far, turned = error(found.transform)
    assert found.success
    assert far < limits[0]
    assert turned < limits[1]
    assert found.fitness > 0.8
    assert found.iterations < node.iterations
    np.testing.assert_array_equal(found.transform.position, again.transform.position)


@pytest.mark.parametrize("node", [Icp3D(), IcpCC(), IcpMatcher()])
def test_the_alternatives_of_table_5_refuse_what_does_not_overlap(node: Registration3D):
    found = node(PointCloud(np.random.default_rng(0).uniform(-20, 20, (2000, 3))), SINK)
    assert found.success is False
    assert found.transform is None


class Told(Registration3D):
    """Ends where the test says, with a rival that fits so many times worse."""

    def align(self, source: np.ndarray, sink: np.ndarray, begin: np.ndarray) -> CloudAlignment:
        return CloudAlignment(self.place, True, 5, Quality(0.8, 0.02, rival=Rival(self.ratio, 0.3)))


def test_on_a_sink_that_a_cloud_was_lost_on_the_next_must_not_stay_where_it_began():
    """A rover that drives on is ever further away, and what it sees fits best where ICP begins."""
    node, stays, moves = Told(), np.eye(4), se3.exp(np.array([1.6, 0, 0, 0, 0, 0]))
    other = PointCloud(SINK.points + np.float32(0.5))

    def ends(place: np.ndarray, ratio: float, sink: PointCloud = SINK) -> bool | None:
        node.place, node.ratio = place, ratio
        return node(SOURCE, sink).success

    assert ends(stays, 1.3)  # nothing was lost yet
    assert not ends(stays, 0.8)
    assert not ends(stays, 1.3)
    assert not ends(stays, 1.3)
    assert ends(stays, 1.3, other)  # of another sink nothing is known
    assert not ends(stays, 0.8)
    assert ends(moves, 1.3)
    assert ends(stays, 1.3)


def test_steps_of_icp_are_those_of_pcl():
    points = pcl_cloud.cloud()[0].astype(np.float64)
    source = se3.apply(pcl_cloud.moved(), points)
    for count, theirs in zip(*pcl_cloud.answers("icp"), strict=True):
        found = iterate(
            source, points, np.eye(4), keep_near(pcl_cloud.REACH), fit_points(points), lambda *_: False, count
        )
        np.testing.assert_allclose(found.matrix[:3].ravel(), theirs, atol=1e-4)


@pytest.mark.parametrize(("what", "limits"), [("trimmed", (1e-4, 1e-4)), ("planes", (5e-4, 1e-4))])
def test_steps_of_the_nearest_pairs_are_those_of_pcl(what: str, limits: tuple[float, float]):
    """The loops of `IcpCC` (points) and `IcpMatcher` (planes), with PCL's rejection of the farthest 15 %.

    PCL makes a matrix of the angles of a plane fit by Euler's formulas, we by the exponential map: while
    steps are large that is another step, and the same place in the end.
    """
    points, normals = (each.astype(np.float64) for each in pcl_cloud.cloud())
    source = se3.apply(pcl_cloud.moved(), points)
    fit = fit_points(points) if what == "trimmed" else fit_planes(points, normals)
    for count, theirs in zip(*pcl_cloud.answers(what), strict=True):
        found = iterate(source, points, np.eye(4), keep_nearest(0.85), fit, lambda *_: False, count)
        limit = limits[1] if count == 10 else limits[0]
        np.testing.assert_allclose(found.matrix[:3].ravel(), theirs, atol=limit)


def test_a_sampled_surface_has_the_normals_of_its_boxes():
    faces = np.random.default_rng(0).uniform(0, 1, (2, 2000, 3))
    faces[0, :, 0], faces[1, :, 2] = 2, -1  # one face looks along x, the other along z
    points, normals = sample_surface(faces.reshape(-1, 3), 7, 0.5, np.random.default_rng(0))
    assert 1900 < len(points) < 2100
    on_first = points[:, 0] == 2
    np.testing.assert_allclose(np.abs(normals[on_first]), np.tile([1, 0, 0], (on_first.sum(), 1)), atol=1e-6)
    np.testing.assert_allclose(
        np.abs(normals[~on_first]), np.tile([0, 0, 1], ((~on_first).sum(), 1)), atol=1e-6
    )


@pytest.fixture(scope="module")
def described() -> tuple[Features3D, Features3D]:
    """Both clouds thinned and described."""
    thin, describe = VoxelGrid(points=1500), Fpfh()
    source, sink = (describe(cloud, Uniform()(cloud)) for cloud in (thin(SOURCE), thin(SINK)))
    return source, sink


@pytest.mark.parametrize("node", [Ransac3D(), KissMatcher()], ids=["ransac", "kiss"])
def test_features_tell_where_the_room_lies_without_a_guess(
    node: FeaturesMatching3D, described: tuple[Features3D, Features3D]
):
    found, again = node(*described), node(*described)
    far, turned = error(found.transform)
    assert found.success
    assert far < 0.15
    assert turned < 3
    assert 10 <= found.inliers <= found.matches
    np.testing.assert_array_equal(found.transform.position, again.transform.position)


@pytest.mark.parametrize("node", [Ransac3D(), KissMatcher()], ids=["ransac", "kiss"])
def test_features_that_have_nothing_in_common_are_refused(node: FeaturesMatching3D):
    rng = np.random.default_rng(0)
    a, b = (Features3D(rng.uniform(0, 9, (60, 3)), descriptors=rng.uniform(size=(60, 33))) for _ in range(2))
    found = node(a, b)
    assert found.success is False
    assert found.transform is None
    assert node(Features3D(a.points), b).success is False


def test_samples_find_the_few_right_matches_among_many_wrong_ones():
    rng = np.random.default_rng(0)
    source = rng.uniform(-5, 5, (200, 3))
    sink = se3.apply(TRUTH, source) + rng.normal(0, 0.01, (200, 3))
    sink[60:] = rng.uniform(-5, 5, (140, 3))
    found = consensus(source, sink, 0.1, 20_000, np.random.default_rng(1))
    assert found is not None
    np.testing.assert_allclose(found.matrix, TRUTH, atol=0.02)
    assert found.inliers[:60].all()


def test_a_copy_of_a_map_that_forgot_scans_aligns_to_the_same_bits():
    voxels, scan = VoxelMap(0.5, history=10), thin(SINK.points, 0.4)
    for i in range(60):  # a room every 0.7 m: only the last dozen overlap with any that is remembered
        voxels.insert([scan], se3.exp(np.array([[0.7 * i, 0, 0, 0, 0, 0]])))
    other = copy.deepcopy(voxels)
    last = se3.exp(np.array([0.7 * 59, 0, 0, 0, 0, 0]))
    start = last @ se3.exp(np.array([0.1, 0, 0, 0, 0, 0.02]))
    one, two = voxels.align(scan, start), other.align(scan, start)
    assert len(voxels._scans) < 40
    assert len(voxels) == len(other)
    np.testing.assert_array_equal(one.T_target_source, two.T_target_source)
    np.testing.assert_allclose(one.T_target_source, last, atol=0.05)


@pytest.mark.parametrize("library", ["small_gicp", "kiss_matcher"])
def test_a_library_that_is_missing_is_named_with_its_extra(
    library: str, monkeypatch: pytest.MonkeyPatch, described: tuple[Features3D, Features3D]
):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'transect\[fusion\]'"):
        Gicp()(SOURCE, SINK) if library == "small_gicp" else KissMatcher()(*described)


def plain(shift: float) -> PointCloud:
    """Return bumps on a plain, seen from `shift` m along it: always the piece of them before the camera."""
    rng = np.random.default_rng(7)
    centres, sizes = rng.uniform(-3, 4, (900, 2)), rng.uniform(0.02, 0.06, 900)
    points = np.random.default_rng(round(100 * shift)).uniform(-1.2, 1.2, (3000, 2))
    squared = np.sum((points[:, None] + np.array([shift, 0.0]) - centres) ** 2, axis=2)
    height = np.sum(sizes * np.exp(-squared / (2 * 0.08**2)), axis=1)
    return PointCloud(np.column_stack([points, height]))


@pytest.mark.parametrize(
    ("kind", "shift", "finds"), [(IcpCC, 0.01, True), (IcpCC, 0.4, False), (IcpMatcher, 0.4, True)]
)
def test_clouds_that_stay_where_they_began_on_ground_that_is_alike_are_no_success(
    kind: type[Registration3D], shift: float, finds: bool
) -> None:
    """Point to point ICP converges there, with a good overlap, 0.4 m off: the paper's dense variants did."""
    found = kind()(sourceCloud=plain(shift), sinkCloud=plain(0.0))
    assert found.success == finds
    if finds:
        assert found.transform.position == pytest.approx([shift, 0, 0], abs=0.02)
