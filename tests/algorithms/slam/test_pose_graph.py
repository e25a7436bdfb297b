"""The pose graph: optimisation, covariances, and rejection of outlier loops."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

from transect.algorithms.slam.pose_graph import REJECTED, PoseGraph
from transect.geometry import se3
from transect.types.places import PlaceMap

pytest.importorskip("gtsam")
EDGE_COVARIANCE = np.diag([0.02, 0.02, 0.01, 0.002, 0.002, 0.01]) ** 2


def square(side: int = 5) -> list[np.ndarray]:
    """Return the true poses of a walk around a square, 1 m apart, and two more steps."""
    turn = se3.exp([0, 0, 0, 0, 0, np.pi / 2])
    ahead = se3.exp([1.0, 0, 0, 0, 0, 0])
    poses = [np.eye(4)]
    for n in range(4 * side + 2):
        poses.append(poses[-1] @ ahead @ (turn if n % side == side - 1 else np.eye(4)))
    return poses


def odometry_graph(poses: list[np.ndarray], drift: float = 0.02) -> PoseGraph:
    """Return the graph of an odometry that turns slightly too far at each step."""
    graph = PoseGraph()
    graph.add_root(poses[0])
    for a, b in itertools.pairwise(poses):
        graph.add_odometry(se3.invert(a) @ b @ se3.exp([0, 0, 0, 0, 0, drift]), EDGE_COVARIANCE)
    return graph


def max_error(graph: PoseGraph, poses: list[np.ndarray]) -> float:
    return max(float(np.linalg.norm(a[:3, 3] - b[:3, 3])) for a, b in zip(graph.poses, poses, strict=True))


def loop(graph: PoseGraph, poses: list[np.ndarray], a: int, b: int, error_m: float = 0.0) -> None:
    shift = se3.exp([error_m, 0, 0, 0, 0, 0])
    graph.add_loop(a, b, se3.invert(poses[a]) @ poses[b] @ shift, EDGE_COVARIANCE)


def test_loops_correct_the_drift_incrementally_and_in_batch() -> None:
    poses = square()
    graph = odometry_graph(poses)
    before = max_error(graph, poses)
    assert before > 0.8
    loop(graph, poses, 0, 20)
    loop(graph, poses, 2, 22)
    graph.optimise()
    assert max_error(graph, poses) < 0.25 * before
    graph.optimise_batch()
    assert max_error(graph, poses) < 0.25 * before


def test_the_batch_solution_rejects_only_the_wrong_loop() -> None:
    poses = square()
    graph = odometry_graph(poses)
    for a, b in ((0, 20), (1, 21), (2, 22)):
        loop(graph, poses, a, b)
    loop(graph, poses, 3, 16, error_m=4.0)
    graph.optimise_batch()
    loops = [(edge.a, edge.b, edge.kind) for edge in graph.edges if edge.kind != "odometry"]
    assert loops == [(0, 20, "loop"), (1, 21, "loop"), (2, 22, "loop"), (3, 16, REJECTED)]
    assert max_error(graph, poses) < 0.25


def test_the_first_loop_aligns_a_disconnected_component() -> None:
    poses = square()
    graph = odometry_graph(poses[:5], drift=0.0)
    first = graph.add_root(np.eye(4))
    for a, b in itertools.pairwise(poses[8:12]):
        graph.add_odometry(se3.invert(a) @ b, EDGE_COVARIANCE)
    assert not graph.relative(first).connected[0]
    graph.add_loop(4, first + 2, se3.invert(poses[4]) @ poses[10], EDGE_COVARIANCE)
    graph.optimise()
    truth = [*poses[:5], *poses[8:12]]
    assert max_error(graph, truth) < 1e-6
    assert graph.relative(first).connected.all()


def test_covariances_add_up_along_a_chain_and_shrink_with_a_loop() -> None:
    poses = square()
    graph = odometry_graph(poses, drift=0.0)
    relative = graph.relative(22)
    random = np.random.default_rng(3)
    twists = random.multivariate_normal(np.zeros(6), EDGE_COVARIANCE, (4000, 22))
    ends = np.tile(np.eye(4), (4000, 1, 1))
    for n in range(22):
        ends = ends @ (se3.invert(poses[n]) @ poses[n + 1]) @ se3.exp(twists[:, n])
    expected = np.cov(se3.log(se3.invert(poses[22]) @ ends).T)
    assert np.sqrt(np.diag(relative.covariance[0])) == pytest.approx(
        np.sqrt(np.diag(expected)), rel=0.1, abs=0.01
    )
    loop(graph, poses, 1, 21)
    near = graph.relative(22).covariance[0]
    assert np.trace(near) < 0.3 * np.trace(relative.covariance[0])


def test_incremental_path_covariances_equal_recomputed_ones() -> None:
    poses = square()
    graph = odometry_graph(poses[:10])
    loop(graph, poses, 0, 7)
    for k in range(9, 15):
        extended = graph.relative(k)
        copied = copy.deepcopy(graph)
        copied._path_covariances = None
        np.testing.assert_allclose(
            copied.relative(k).covariance[:k], extended.covariance[:k], rtol=1e-9, atol=1e-15
        )
        graph.add_odometry(se3.invert(poses[k]) @ poses[k + 1], EDGE_COVARIANCE)


def test_a_copy_gives_identical_results() -> None:
    poses = square()
    graph = odometry_graph(poses[:21])
    loop(graph, poses, 0, 20)
    graph.optimise()
    other = copy.deepcopy(graph)
    for each in (graph, other):
        each.add_odometry(se3.invert(poses[20]) @ poses[21], EDGE_COVARIANCE)
        loop(each, poses, 1, 21)
        each.optimise()
    np.testing.assert_array_equal(graph.poses, other.poses)


def test_positions_and_verticals_define_the_frame_of_the_map() -> None:
    poses = square()
    graph = odometry_graph(poses)
    T_world_map = se3.exp([0, 0, 0, 0, 0, 1.0])
    T_world_map[:3, 3] = (100.0, 50.0, 7.0)
    for k in range(0, len(poses), 2):
        graph.add_position(k, (T_world_map @ poses[k])[:3, 3], np.eye(3) * 0.01**2)
        graph.add_vertical(k, poses[k][2, :3], 0.01)
    graph.optimise_batch()
    assert max_error(graph, [T_world_map @ pose for pose in poses]) < 0.05


def test_covariances_grow_from_the_first_keyframe_and_shrink_with_a_loop() -> None:
    poses = square()
    graph = odometry_graph(poses)
    before = np.trace(graph.covariances(), axis1=1, axis2=2)
    assert np.all(np.diff(before[:5]) > 0)
    loop(graph, poses, 0, 20)
    after = np.trace(graph.covariances(), axis1=1, axis2=2)
    assert after[20] < 0.1 * before[20]


def test_a_stored_graph_has_the_same_components() -> None:
    poses = square()
    graph = odometry_graph(poses[:6])
    graph.add_root(np.eye(4))
    graph.add_odometry(np.eye(4), EDGE_COVARIANCE)
    places = PlaceMap(
        "x", np.arange(8), np.array(graph.poses), graph.covariances(), np.repeat([0, 1], [6, 2]),
        graph.as_edges(), [{}] * 8,
    )  # fmt: skip
    copied = PoseGraph.from_map(places)
    assert [copied.component_of(k) for k in range(8)] == [0] * 6 + [6] * 2
    assert len(copied.edges) == 6
    np.testing.assert_array_equal(copied.relative(7).connected, graph.relative(7).connected)
