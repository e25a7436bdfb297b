"""Keyframes and edges, and the poses that fit all of them best (GTSAM).

Everything that was measured is kept as plain values, from which GTSAM's objects are made: so a copy of a
graph is a copy of these, and gives the same numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.geometry import align, se3
from transect.types.places import LOOP, ODOMETRY, Edges, PlaceMap

from .._gtsam import gtsam

SWAPPED = np.r_[3:6, 0:3]
"""Rotation and translation change places: GTSAM has the rotation first."""
FIXED = 1e-4
"""Sigma of the first keyframe of what hangs together: m and rad."""
SETTLED = 3
"""Rounds of the incremental solution after a loop: each one relinearises."""
INLIER = 0.999
"""Part of true loops that fit better than what graduated non-convexity takes for a wrong one."""
DRIFTING = 3.0
"""Times the sigma of odometry, where loops are doubted: what it says of its noise is not all of its drift."""
DOUBTED = "doubted"
"""What a loop is called that the batch solution did not believe."""
LEVER = 10.0
"""Metres: over such a lever a turn counts as much as a shift, where a path through the graph is chosen."""


class Edge(NamedTuple):
    """A measured motion T_a_b, with the covariance of a small one in the axes of b: m, then rad."""

    a: int
    b: int
    T_a_b: Floats
    covariance: Floats
    what: str


class Position(NamedTuple):
    """Where keyframe `k` was measured to be: (3,) in m, with its covariance (3, 3)."""

    k: int
    place: Floats
    covariance: Floats


class Up(NamedTuple):
    """Which way is up in the axes of keyframe `k`: a unit vector (3,), with its sigma in rad."""

    k: int
    direction: Floats
    sigma: float


@dataclass(frozen=True, eq=False)
class Relative:
    """Where one keyframe is, seen from all others.

    Attributes
    ----------
    T_i_k : (n, 4, 4) array
    covariance : (n, 6, 6) array
        Of a small motion in the axes of k, along the surest way through the graph: m, then rad.
    known : (n,) bool array
        Which keyframes hang together with k.
    """

    T_i_k: Floats
    covariance: Floats
    known: Mask


class Ways(NamedTuple):
    """Covariances (n, 6, 6) of the ways to keyframe `k`, as a number of edges made them."""

    k: int
    edges: int
    spread: Floats


class PoseGraph:
    """Keyframes with their poses, and what was measured between and of them.

    Attributes
    ----------
    poses : list of (4, 4) array
        T_map_body, as far as it is known.
    edges : list of Edge
    """

    def __init__(self) -> None:
        self.poses: list[Floats] = []
        self.edges: list[Edge] = []
        self.positions: list[Position] = []
        self.ups: list[Up] = []
        self._part: list[int] = []
        self._ways: Ways | None = None
        self._solver = Incremental()

    def __len__(self) -> int:
        return len(self.poses)

    def begin(self, pose: Floats) -> int:
        """Add a keyframe that no odometry joins with those before; return its number."""
        self.poses.append(np.array(pose, np.float64))
        self._part.append(len(self) - 1)
        return len(self) - 1

    def follow(self, motion: Floats, covariance: Floats) -> int:
        """Add a keyframe after a motion (4, 4) from the last one; return its number."""
        last = len(self) - 1
        self.poses.append(self.poses[last] @ motion)
        self._part.append(self._part[last])
        self.edges.append(Edge(last, last + 1, motion, covariance, ODOMETRY))
        return last + 1

    def join(self, a: int, b: int, T_a_b: Floats, covariance: Floats, what: str = LOOP) -> None:
        """Add an edge between two keyframes; what b hangs together with is moved to it if it was apart."""
        if self._part[a] != self._part[b]:
            self._move(a, b, T_a_b)
        self.edges.append(Edge(a, b, T_a_b, covariance, what))
        self._ways = None

    def _move(self, a: int, b: int, T_a_b: Floats) -> None:
        """Bring the part that began later to the place that an edge says."""
        first, second = self._part[a], self._part[b]
        moves = self.poses[a] @ T_a_b @ se3.invert(self.poses[b])
        moved, kept = (second, first) if first < second else (first, second)
        moves = moves if moved == second else se3.invert(moves)
        for k, part in enumerate(self._part):
            if part == moved:
                self.poses[k] = moves @ self.poses[k]
        self._unite(kept, moved)
        self._solver = Incremental()

    def add_position(self, k: int, place: Floats, covariance: Floats) -> None:
        """Say where a keyframe was measured to be, m in a frame of its own; counts in `settle`."""
        self.positions.append(Position(k, place, covariance))

    def add_up(self, k: int, direction: Floats, sigma: float) -> None:
        """Say which way is up in the axes of a keyframe; sigma in rad."""
        self.ups.append(Up(k, direction, sigma))

    def optimise(self) -> None:
        """Bring all poses to where they fit everything that was added since the last time."""
        self.poses, self._ways = self._solver.update(self), None

    def settle(self) -> None:
        """Solve everything at once; loops that do not fit are taken out, and called doubted."""
        library = gtsam()
        if self.positions:
            self._go_to_positions()
        values = values_of(self.poses)
        loops = [n for n, edge in enumerate(self.edges) if edge.what == LOOP]
        if loops:
            wrong = self._find_wrong(loops, values)
            self.edges = [e._replace(what=DOUBTED) if n in wrong else e for n, e in enumerate(self.edges)]
        graph = self._graph()
        params = library.LevenbergMarquardtParams()
        found = library.LevenbergMarquardtOptimizer(graph, values, params).optimize()
        self.poses, self._ways = poses_from(found, len(self)), None
        self._solver = Incremental()

    def _find_wrong(self, loops: Sequence[int], values: Any) -> set[int]:
        """Return the loops that graduated non-convexity takes for wrong ones."""
        library = gtsam()
        certain = [
            edge._replace(covariance=edge.covariance * DRIFTING**2)
            for edge in self.edges
            if edge.what not in (LOOP, DOUBTED)
        ]
        graph = factors_of(certain, self._firsts(), self.poses, self.ups, self._places())
        known = list(range(graph.size()))
        for n in loops:
            graph.add(factor_of(self.edges[n]))
        params = library.GncLMParams()
        params.setLossType(library.GncLossType.TLS)
        params.setKnownInliers(known)
        optimizer = library.GncLMOptimizer(graph, values, params)
        optimizer.setInlierCostThresholdsAtProbability(INLIER)
        optimizer.optimize()
        weights = optimizer.getWeights()[len(known) :]
        return {n for n, weight in zip(loops, weights, strict=True) if weight < 0.5}

    def _graph(self) -> Any:
        believed = [edge for edge in self.edges if edge.what != DOUBTED]
        return factors_of(believed, self._firsts(), self.poses, self.ups, self._places())

    def _firsts(self) -> list[int]:
        """Return the first keyframe of each part that hangs together, and that no position holds."""
        held = {self._part[place.k] for place in self._places()}
        return [k for k, part in enumerate(self._part) if part == k and k not in held]

    def _places(self) -> list[Position]:
        return self.positions if self.is_held else []

    @property
    def is_held(self) -> bool:
        """Whether there are positions, far enough apart to tell the heading."""
        if len(self.positions) < 3:
            return False
        places = np.array([position.place for position in self.positions])
        sigma = np.sqrt(max(np.trace(p.covariance) for p in self.positions))
        return float(np.linalg.norm(np.ptp(places, axis=0))) > 10 * sigma

    def _go_to_positions(self) -> None:
        """Bring all poses to the frame of the positions, turned about the vertical."""
        if not self.is_held:
            return
        mine = np.array([self.poses[position.k][:3, 3] for position in self.positions])
        theirs = np.array([position.place for position in self.positions])
        moves = align.yaw(mine, theirs).matrix
        self.poses = [moves @ pose for pose in self.poses]

    def relative(self, k: int) -> Relative:
        """Return where keyframe `k` is, seen from all others, and how sure that is."""
        poses = np.array(self.poses)
        known = np.array(self._part) == self._part[k]
        spread = self._spread_to(k, poses)
        inside = known & np.isfinite(spread[:, 0, 0])
        covariance = np.full(spread.shape, np.inf)
        covariance[inside] = se3.transform_covariance(se3.invert(poses[k]), spread[inside])
        return Relative(se3.invert(poses) @ poses[k], covariance, inside)

    def _spread_to(self, k: int, poses: Floats) -> Floats:
        """Return covariances (n, 6, 6) of the ways to `k` as twists of the map's frame: there they add up.

        All ways to a keyframe that odometry alone has joined lead through the one before it.
        """
        ways = self._ways
        if ways is not None and ways.k == k and len(ways.spread) == len(self):
            return ways.spread
        if ways is not None and ways.k == k - 1 == len(self) - 2 and ways.edges == len(self.edges) - 1:
            longer = ways.spread + spreads_of(self.edges[-1:], poses)[0]
            spread = np.concatenate([longer, np.zeros((1, 6, 6))])
        else:
            spread = self._sum_ways(k, poses)
        if k == len(self) - 1:
            self._ways = Ways(k, len(self.edges), spread)
        return spread

    def _sum_ways(self, k: int, poses: Floats) -> Floats:
        """Add up the covariances along the surest way from each keyframe to `k`."""
        spread = np.full((len(self), 6, 6), np.inf)
        spread[k] = 0.0
        edges = [edge for edge in self.edges if edge.what != DOUBTED]
        if not edges:
            return spread
        added = spreads_of(edges, poses)
        order, before, edge = find_surest_ways(edges, k, len(self))
        for i in order.tolist():
            spread[i] = spread[before[i]] + added[edge[i]]
        return spread

    def covariances(self) -> Floats:
        """Return the covariances (n, 6, 6) of all poses, in the axes of each body: m, then rad."""
        library = gtsam()
        try:
            marginals = library.Marginals(self._graph(), values_of(self.poses))
            found = np.array([marginals.marginalCovariance(library.symbol("x", k)) for k in range(len(self))])
        except RuntimeError:  # some edges are too sure beside others
            return self._bound_covariances()
        return found.reshape(-1, 6, 6)[:, SWAPPED][:, :, SWAPPED]

    def _bound_covariances(self) -> Floats:
        """Return covariances (n, 6, 6) that are not too small: those of the surest way from the first."""
        poses = np.array(self.poses)
        spread = np.array([self._sum_ways(first, poses) for first in self.firsts()]).min(axis=0)
        return se3.transform_covariance(se3.invert(poses), spread)

    def as_edges(self) -> Edges:
        """Return the edges as arrays."""
        if not self.edges:
            return Edges.none()
        a, b, motions, covariances, what = zip(*self.edges, strict=True)
        return Edges(np.array(a), np.array(b), np.array(motions), np.array(covariances), what)

    @staticmethod
    def of(places: PlaceMap) -> PoseGraph:
        """Return the graph of a map that was kept."""
        graph, edges = PoseGraph(), places.edges
        for pose in places.poses:
            graph.begin(pose)
        for row in zip(
            edges.a.tolist(), edges.b.tolist(), edges.T_a_b, edges.covariance, edges.what, strict=True
        ):
            graph.edges.append(Edge(*row))
            if row[4] != DOUBTED:
                graph._unite(row[0], row[1])
        return graph

    def _unite(self, a: int, b: int) -> None:
        kept, other = sorted((self._part[a], self._part[b]))
        self._part = [kept if part == other else part for part in self._part]

    def firsts(self) -> list[int]:
        """Return the first keyframe of each part that hangs together."""
        return sorted(set(self._part))

    def part_of(self, k: int) -> int:
        """Return the first keyframe of the part that a keyframe hangs together with."""
        return self._part[k]


class Incremental:
    """The incremental solution of a growing graph (iSAM2); a copy does again what was done before."""

    def __init__(self) -> None:
        self._steps: list[tuple[Any, Any]] = []
        self._solver: Any = None
        self._counts = (0, 0, 0)

    def update(self, graph: PoseGraph) -> list[Floats]:
        """Take what a graph has more than before, and return the poses."""
        library = gtsam()
        known, edges, ups = self._counts
        new = library.Values()
        for k in range(known, len(graph)):
            new.insert(library.symbol("x", k), library.Pose3(graph.poses[k]))
        firsts = [k for k in graph.firsts() if k >= known]
        believed = [edge for edge in graph.edges[edges:] if edge.what != DOUBTED]
        factors = factors_of(believed, firsts, graph.poses, graph.ups[ups:], ())
        self._counts = len(graph), len(graph.edges), len(graph.ups)
        self._steps.append((factors, new))
        return poses_from(self._advance(self._steps[-1:] if self._solver else self._steps), len(graph))

    def _advance(self, steps: Sequence[tuple[Any, Any]]) -> Any:
        library = gtsam()
        if self._solver is None:
            params = library.ISAM2Params()
            params.setRelinearizeThreshold(0.01)
            params.relinearizeSkip = 1
            params.setFactorization("QR")  # Cholesky gives up where some edges are far surer than others
            self._solver = library.ISAM2(params)
        for factors, new in steps:
            self._solver.update(factors, new)
            for _ in range(SETTLED):
                self._solver.update()
        return self._solver.calculateEstimate()

    def __deepcopy__(self, memo: dict[int, Any]) -> Incremental:
        other = Incremental()
        other._steps, other._counts = list(self._steps), copy.copy(self._counts)
        return other


def spreads_of(edges: Sequence[Edge], poses: Floats) -> Floats:
    """Return the covariances (m, 6, 6) of edges as twists of the map's frame."""
    ends = poses[[edge.b for edge in edges]]
    return se3.transform_covariance(ends, np.array([edge.covariance for edge in edges]))


def find_surest_ways(edges: Sequence[Edge], k: int, count: int) -> tuple[Ints, Ints, Ints]:
    """Find the surest way from keyframe `k` to each of `count` others (Dijkstra).

    Returns
    -------
    order : (m,) int array
        Keyframes that there is a way to but `k`, the surest first.
    before, edge : (count,) int array
        The keyframe before each on its way, and the number of the edge between them.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import dijkstra

    ends = np.sort([(edge.a, edge.b) for edge in edges], axis=1)
    cost = np.array([e.covariance.diagonal() for e in edges]) @ np.r_[1.0, 1.0, 1.0, [LEVER**2] * 3]
    names = ends[:, 0] * count + ends[:, 1]
    surest = np.lexsort((cost, names))
    first = np.unique(names[surest], return_index=True)[1]
    chosen = surest[first]  # of several edges between the same two
    network = coo_matrix((cost[chosen], (ends[chosen, 0], ends[chosen, 1])), (count, count)).tocsr()
    away, before = dijkstra(network, directed=False, indices=k, return_predecessors=True)
    reached = np.flatnonzero(before >= 0)
    low, high = np.minimum(reached, before[reached]), np.maximum(reached, before[reached])
    edge = np.full(count, -1)
    edge[reached] = chosen[np.searchsorted(names[chosen], low * count + high)]
    return reached[np.argsort(away[reached], kind="stable")], before, edge


def factors_of(
    edges: Sequence[Edge],
    firsts: Sequence[int],
    poses: Sequence[Floats],
    ups: Sequence[Up],
    places: Sequence[Position],
) -> Any:
    """Return what was measured as a graph of GTSAM; each of `firsts` stays at its pose."""
    library = gtsam()
    graph = library.NonlinearFactorGraph()
    for k in firsts:
        still = library.noiseModel.Isotropic.Sigma(6, FIXED)
        graph.add(library.PriorFactorPose3(library.symbol("x", k), library.Pose3(poses[k]), still))
    for edge in edges:
        graph.add(factor_of(edge))
    for up in ups:
        model = library.noiseModel.Isotropic.Sigma(2, up.sigma)
        vertical, seen = library.Unit3(np.array([0.0, 0.0, 1.0])), library.Unit3(up.direction)
        graph.add(library.AttitudeFactorPose3(library.symbol("x", up.k), vertical, model, seen))
    for place in places:
        model = library.noiseModel.Robust.Create(
            library.noiseModel.mEstimator.Huber.Create(2.0),
            library.noiseModel.Gaussian.Covariance(place.covariance),
        )
        graph.add(library.GPSFactor(library.symbol("x", place.k), place.place, model))
    return graph


def factor_of(edge: Edge) -> Any:
    """Return an edge as a factor of GTSAM."""
    library = gtsam()
    model = library.noiseModel.Gaussian.Covariance(edge.covariance[SWAPPED][:, SWAPPED])
    a, b = (library.symbol("x", k) for k in (edge.a, edge.b))
    return library.BetweenFactorPose3(a, b, library.Pose3(edge.T_a_b), model)


def values_of(poses: Sequence[Floats]) -> Any:
    """Return poses as values of GTSAM."""
    library = gtsam()
    values = library.Values()
    for k, pose in enumerate(poses):
        values.insert(library.symbol("x", k), library.Pose3(pose))
    return values


def poses_from(values: Any, count: int) -> list[Floats]:
    """Return the first poses of values of GTSAM."""
    library = gtsam()
    return [values.atPose3(library.symbol("x", k)).matrix() for k in range(count)]
