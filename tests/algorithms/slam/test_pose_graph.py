"""The pose graph: what fits best, how sure it is, and what a wrong loop cannot do."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

from transect.algorithms.slam.pose_graph import DOUBTED, PoseGraph
from transect.geometry import se3
from transect.types.places import PlaceMap

pytest.importorskip("gtsam")
SPREAD = np.diag([0.02, 0.02, 0.01, 0.002, 0.002, 0.01]) ** 2


def square(side: int = 5) -> list[np.ndarray]:
    """Return the true poses of a walk once round a square, 1 m apart, and two steps more."""
    turn = se3.exp([0, 0, 0, 0, 0, np.pi / 2])
    ahead = se3.exp([1.0, 0, 0, 0, 0, 0])
    poses = [np.eye(4)]
    for n in range(4 * side + 2):
        poses.append(poses[-1] @ ahead @ (turn if n % side == side - 1 else np.eye(4)))
    return poses


def walked(poses: list[np.ndarray], drift: float = 0.02) -> PoseGraph:
    """Return the graph of an odometry that turns a little too far at each step."""
    graph = PoseGraph()
    graph.begin(poses[0])
    for a, b in itertools.pairwise(poses):
        graph.follow(se3.invert(a) @ b @ se3.exp([0, 0, 0, 0, 0, drift]), SPREAD)
    return graph


def worst(graph: PoseGraph, poses: list[np.ndarray]) -> float:
    return max(float(np.linalg.norm(a[:3, 3] - b[:3, 3])) for a, b in zip(graph.poses, poses, strict=True))


def loop(graph: PoseGraph, poses: list[np.ndarray], a: int, b: int, wrong: float = 0.0) -> None:
    shift = se3.exp([wrong, 0, 0, 0, 0, 0])
    graph.join(a, b, se3.invert(poses[a]) @ poses[b] @ shift, SPREAD)


def test_loops_take_the_drift_away_incrementally_and_at_once() -> None:
    poses = square()
    graph = walked(poses)
    before = worst(graph, poses)
    assert before > 0.8
    loop(graph, poses, 0, 20)
    loop(graph, poses, 2, 22)
    graph.optimise()
    assert worst(graph, poses) < 0.25 * before
    graph.settle()
    assert worst(graph, poses) < 0.25 * before


def test_the_batch_solution_doubts_the_wrong_loop_and_no_other() -> None:
    poses = square()
    graph = walked(poses)
    for a, b in ((0, 20), (1, 21), (2, 22)):
        loop(graph, poses, a, b)
    loop(graph, poses, 3, 16, wrong=4.0)
    graph.settle()
    loops = [(edge.a, edge.b, edge.what) for edge in graph.edges if edge.what != "odometry"]
    assert loops == [(0, 20, "loop"), (1, 21, "loop"), (2, 22, "loop"), (3, 16, DOUBTED)]
    assert worst(graph, poses) < 0.25


def test_a_part_that_nothing_joined_is_moved_by_its_first_loop() -> None:
    poses = square()
    graph = walked(poses[:5], drift=0.0)
    first = graph.begin(np.eye(4))
    for a, b in itertools.pairwise(poses[8:12]):
        graph.follow(se3.invert(a) @ b, SPREAD)
    assert not graph.relative(first).known[0]
    graph.join(4, first + 2, se3.invert(poses[4]) @ poses[10], SPREAD)
    graph.optimise()
    truth = [*poses[:5], *poses[8:12]]
    assert worst(graph, truth) < 1e-6
    assert graph.relative(first).known.all()


def test_the_covariance_along_a_chain_is_that_of_its_edges_and_a_loop_is_a_shorter_way() -> None:
    poses = square()
    graph = walked(poses, drift=0.0)
    seen = graph.relative(22)
    random = np.random.default_rng(3)
    twists = random.multivariate_normal(np.zeros(6), SPREAD, (4000, 22))
    ends = np.tile(np.eye(4), (4000, 1, 1))
    for n in range(22):
        ends = ends @ (se3.invert(poses[n]) @ poses[n + 1]) @ se3.exp(twists[:, n])
    wanted = np.cov(se3.log(se3.invert(poses[22]) @ ends).T)
    assert np.sqrt(np.diag(seen.covariance[0])) == pytest.approx(np.sqrt(np.diag(wanted)), rel=0.1, abs=0.01)
    loop(graph, poses, 1, 21)
    near = graph.relative(22).covariance[0]
    assert np.trace(near) < 0.3 * np.trace(seen.covariance[0])


def test_ways_that_grow_with_odometry_are_those_that_are_found_anew() -> None:
    poses = square()
    graph = walked(poses[:10])
    loop(graph, poses, 0, 7)
    for k in range(9, 15):
        grown = graph.relative(k)
        again = copy.deepcopy(graph)
        again._ways = None
        np.testing.assert_allclose(
            again.relative(k).covariance[:k], grown.covariance[:k], rtol=1e-9, atol=1e-15
        )
        graph.follow(se3.invert(poses[k]) @ poses[k + 1], SPREAD)


def test_a_copy_gives_the_same_numbers_as_the_graph_itself() -> None:
    poses = square()
    graph = walked(poses[:21])
    loop(graph, poses, 0, 20)
    graph.optimise()
    other = copy.deepcopy(graph)
    for each in (graph, other):
        each.follow(se3.invert(poses[20]) @ poses[21], SPREAD)
        loop(each, poses, 1, 21)
        each.optimise()
    np.testing.assert_array_equal(graph.poses, other.poses)


def test_positions_turn_the_map_into_their_frame_and_gravity_levels_it() -> None:
    poses = square()
    graph = walked(poses)
    place = se3.exp([0, 0, 0, 0, 0, 1.0])
    place[:3, 3] = (100.0, 50.0, 7.0)
    for k in range(0, len(poses), 2):
        graph.add_position(k, (place @ poses[k])[:3, 3], np.eye(3) * 0.01**2)
        graph.add_up(k, poses[k][2, :3], 0.01)
    graph.settle()
    assert worst(graph, [place @ pose for pose in poses]) < 0.05


def test_covariances_grow_from_the_first_keyframe_and_shrink_with_a_loop() -> None:
    poses = square()
    graph = walked(poses)
    before = np.trace(graph.covariances(), axis1=1, axis2=2)
    assert np.all(np.diff(before[:5]) > 0)
    loop(graph, poses, 0, 20)
    after = np.trace(graph.covariances(), axis1=1, axis2=2)
    assert after[20] < 0.1 * before[20]


def test_a_kept_graph_hangs_together_as_it_did() -> None:
    poses = square()
    graph = walked(poses[:6])
    graph.begin(np.eye(4))
    graph.follow(np.eye(4), SPREAD)
    places = PlaceMap(
        "x", np.arange(8), np.array(graph.poses), graph.covariances(), np.repeat([0, 1], [6, 2]),
        graph.as_edges(), [{}] * 8,
    )  # fmt: skip
    again = PoseGraph.of(places)
    assert [again.part_of(k) for k in range(8)] == [0] * 6 + [6] * 2
    assert len(again.edges) == 6
    np.testing.assert_array_equal(again.relative(7).known, graph.relative(7).known)
