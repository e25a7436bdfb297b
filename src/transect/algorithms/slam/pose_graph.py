"""Pose graph optimisation with GTSAM.

Measurements are stored as plain values, from which GTSAM's objects are built: a copy of a graph is a copy of
these values, and gives the same results.
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

ROTATION_FIRST = np.r_[3:6, 0:3]  # GTSAM's order of a twist
REJECTED = "doubted"  # kind of a loop that the batch solution rejected; stored in map files


@dataclass(frozen=True)
class PoseGraphSettings:
    """Settings of pose graph optimisation."""

    root_sigma: float = 1e-4  # m and rad, of the first keyframe of each component
    lever_arm_m: float = 10.0  # weighs rotation against translation in the cost of a path through the graph

    # Incremental solver (iSAM2)
    updates_per_step: int = 3  # each of them relinearises
    relinearise_threshold: float = 0.01  # m and rad

    # Batch solution: graduated non-convexity
    inlier_probability: float = 0.999  # of keeping a true loop
    odometry_sigma_factor: float = 3.0  # odometry drifts more than its noise model states

    # Measured positions
    huber_sigmas: float = 2.0
    min_positions: int = 3  # that determine the heading
    min_extent_sigmas: float = 10.0  # extent of these positions over their largest sigma


POSE_GRAPH = PoseGraphSettings()


class PoseEdge(NamedTuple):
    """A measured motion between two keyframes."""

    a: int
    b: int
    T_a_b: Floats  # (4, 4)
    covariance: Floats  # (6, 6) of a small motion in the axes of b: m, then rad
    kind: str


class PositionMeasurement(NamedTuple):
    """A measured position of keyframe `k`."""

    k: int
    position: Floats  # (3,) m
    covariance: Floats  # (3, 3)


class VerticalMeasurement(NamedTuple):
    """The measured up direction in the axes of keyframe `k`."""

    k: int
    direction: Floats  # (3,) unit vector
    sigma: float  # rad


@dataclass(frozen=True, eq=False)
class RelativePoses:
    """Pose of keyframe k relative to all others."""

    T_i_k: Floats  # (n, 4, 4)
    covariance: Floats  # (n, 6, 6) in the axes of k, along the most certain path: m, then rad
    connected: Mask  # (n,) whether a keyframe is in the same component as k


class PathCovariances(NamedTuple):
    """Covariances (n, 6, 6) of the paths to keyframe `k`, for a number of edges."""

    k: int
    edges: int
    covariance: Floats


class PoseGraph:
    """Keyframes with their poses, and the measurements between and of them."""

    def __init__(self, settings: PoseGraphSettings = POSE_GRAPH) -> None:
        self.settings = settings
        self.poses: list[Floats] = []  # T_map_body (4, 4)
        self.edges: list[PoseEdge] = []
        self.positions: list[PositionMeasurement] = []
        self.verticals: list[VerticalMeasurement] = []
        self._component: list[int] = []
        self._path_covariances: PathCovariances | None = None
        self._solver = IncrementalSolver(self.settings)

    def __len__(self) -> int:
        return len(self.poses)

    def add_root(self, pose: Floats) -> int:
        """Add a keyframe that no odometry connects with earlier ones; return its number."""
        self.poses.append(np.array(pose, np.float64))
        self._component.append(len(self) - 1)
        return len(self) - 1

    def add_odometry(self, motion: Floats, covariance: Floats) -> int:
        """Add a keyframe after a motion (4, 4) from the last one; return its number."""
        last = len(self) - 1
        self.poses.append(self.poses[last] @ motion)
        self._component.append(self._component[last])
        self.edges.append(PoseEdge(last, last + 1, motion, covariance, ODOMETRY))
        return last + 1

    def add_loop(self, a: int, b: int, T_a_b: Floats, covariance: Floats, kind: str = LOOP) -> None:
        """Add an edge between two keyframes; if they are in two components, these are aligned and merged."""
        if self._component[a] != self._component[b]:
            self._merge_components(a, b, T_a_b)
        self.edges.append(PoseEdge(a, b, T_a_b, covariance, kind))
        self._path_covariances = None

    def _merge_components(self, a: int, b: int, T_a_b: Floats) -> None:
        """Move the component that began later to the pose that an edge implies."""
        first, second = self._component[a], self._component[b]
        correction = self.poses[a] @ T_a_b @ se3.invert(self.poses[b])
        moved, target = (second, first) if first < second else (first, second)
        correction = correction if moved == second else se3.invert(correction)
        for k, component in enumerate(self._component):
            if component == moved:
                self.poses[k] = correction @ self.poses[k]
        self._unite(target, moved)
        self._solver = IncrementalSolver(self.settings)

    def add_position(self, k: int, position: Floats, covariance: Floats) -> None:
        """Add a measured position of a keyframe, m in a frame of its own; used by `optimise_batch`."""
        self.positions.append(PositionMeasurement(k, position, covariance))

    def add_vertical(self, k: int, direction: Floats, sigma: float) -> None:
        """Add a measured up direction in the axes of a keyframe; sigma in rad."""
        self.verticals.append(VerticalMeasurement(k, direction, sigma))

    def optimise(self) -> None:
        """Update all poses by what was added since the last time (iSAM2)."""
        self.poses, self._path_covariances = self._solver.update(self), None

    def optimise_batch(self) -> None:
        """Optimise everything at once, and mark outlier loops as rejected."""
        library = gtsam()
        if self.positions:
            self._align_to_positions()
        values = initial_values(self.poses)
        loops = [n for n, edge in enumerate(self.edges) if edge.kind == LOOP]
        if loops:
            outliers = self._find_outliers(loops, values)
            self.edges = [e._replace(kind=REJECTED) if n in outliers else e for n, e in enumerate(self.edges)]
        graph = self._graph()
        params = library.LevenbergMarquardtParams()
        result = library.LevenbergMarquardtOptimizer(graph, values, params).optimize()
        self.poses, self._path_covariances = poses_from(result, len(self)), None
        self._solver = IncrementalSolver(self.settings)

    def _find_outliers(self, loops: Sequence[int], values: Any) -> set[int]:
        """Return the loops that graduated non-convexity (GNC, truncated least squares) rejects."""
        library = gtsam()
        inliers = [
            edge._replace(covariance=edge.covariance * self.settings.odometry_sigma_factor**2)
            for edge in self.edges
            if edge.kind not in (LOOP, REJECTED)
        ]
        graph = self._build_factors(inliers)
        known = list(range(graph.size()))
        for n in loops:
            graph.add(between_factor(self.edges[n]))
        params = library.GncLMParams()
        params.setLossType(library.GncLossType.TLS)
        params.setKnownInliers(known)
        optimizer = library.GncLMOptimizer(graph, values, params)
        optimizer.setInlierCostThresholdsAtProbability(self.settings.inlier_probability)
        optimizer.optimize()
        weights = optimizer.getWeights()[len(known) :]
        return {n for n, weight in zip(loops, weights, strict=True) if weight < 0.5}

    def _graph(self) -> Any:
        accepted = [edge for edge in self.edges if edge.kind != REJECTED]
        return self._build_factors(accepted)

    def _build_factors(self, edges: Sequence[PoseEdge]) -> Any:
        return build_factors(
            edges,
            self._free_roots(),
            self.poses,
            self.verticals,
            self._used_positions(),
            self.settings,
        )

    def _free_roots(self) -> list[int]:
        """Return the first keyframe of each component that no position constrains."""
        positioned = {self._component[position.k] for position in self._used_positions()}
        return [k for k, component in enumerate(self._component) if component == k and k not in positioned]

    def _used_positions(self) -> list[PositionMeasurement]:
        return self.positions if self.is_georeferenced else []

    @property
    def is_georeferenced(self) -> bool:
        """Whether there are positions, far enough apart to determine the heading."""
        if len(self.positions) < self.settings.min_positions:
            return False
        positions = np.array([position.position for position in self.positions])
        sigma = np.sqrt(max(np.trace(p.covariance) for p in self.positions))
        extent = float(np.linalg.norm(np.ptp(positions, axis=0)))
        return extent > self.settings.min_extent_sigmas * sigma

    def _align_to_positions(self) -> None:
        """Transform all poses to the frame of the positions, with a rotation about the vertical."""
        if not self.is_georeferenced:
            return
        estimated = np.array([self.poses[position.k][:3, 3] for position in self.positions])
        measured = np.array([position.position for position in self.positions])
        correction = align.yaw(estimated, measured).matrix
        self.poses = [correction @ pose for pose in self.poses]

    def relative(self, k: int) -> RelativePoses:
        """Return the poses of keyframe `k` relative to all others, with their covariances."""
        poses = np.array(self.poses)
        connected = np.array(self._component) == self._component[k]
        path_covariance = self._covariances_to(k, poses)
        inside = connected & np.isfinite(path_covariance[:, 0, 0])
        covariance = np.full(path_covariance.shape, np.inf)
        covariance[inside] = se3.transform_covariance(se3.invert(poses[k]), path_covariance[inside])
        return RelativePoses(se3.invert(poses) @ poses[k], covariance, inside)

    def _covariances_to(self, k: int, poses: Floats) -> Floats:
        """Return covariances (n, 6, 6) of the paths to `k` as twists in the map's frame: there they add up.

        All paths to a keyframe that only odometry connects pass through its predecessor.
        """
        known = self._path_covariances
        if known is not None and known.k == k and len(known.covariance) == len(self):
            return known.covariance
        if known is not None and known.k == k - 1 == len(self) - 2 and known.edges == len(self.edges) - 1:
            extended = known.covariance + edge_covariances(self.edges[-1:], poses)[0]
            covariance = np.concatenate([extended, np.zeros((1, 6, 6))])
        else:
            covariance = self._sum_covariances(k, poses)
        if k == len(self) - 1:
            self._path_covariances = PathCovariances(k, len(self.edges), covariance)
        return covariance

    def _sum_covariances(self, k: int, poses: Floats) -> Floats:
        """Sum the covariances along the most certain path from each keyframe to `k`."""
        covariance = np.full((len(self), 6, 6), np.inf)
        covariance[k] = 0.0
        edges = [edge for edge in self.edges if edge.kind != REJECTED]
        if not edges:
            return covariance
        added = edge_covariances(edges, poses)
        order, predecessor, edge = find_certain_paths(edges, k, len(self), self.settings.lever_arm_m)
        for i in order.tolist():
            covariance[i] = covariance[predecessor[i]] + added[edge[i]]
        return covariance

    def covariances(self) -> Floats:
        """Return the covariances (n, 6, 6) of all poses, in the axes of each body: m, then rad."""
        library = gtsam()
        try:
            marginals = library.Marginals(self._graph(), initial_values(self.poses))
            marginal = np.array(
                [marginals.marginalCovariance(library.symbol("x", k)) for k in range(len(self))]
            )
        except RuntimeError:  # ill-conditioned
            return self._path_bound_covariances()
        return marginal.reshape(-1, 6, 6)[:, ROTATION_FIRST][:, :, ROTATION_FIRST]

    def _path_bound_covariances(self) -> Floats:
        """Return upper bounds (n, 6, 6) of the covariances: those of the most certain path from a root."""
        poses = np.array(self.poses)
        covariance = np.array([self._sum_covariances(first, poses) for first in self.roots()]).min(axis=0)
        return se3.transform_covariance(se3.invert(poses), covariance)

    def as_edges(self) -> Edges:
        """Return the edges as arrays."""
        if not self.edges:
            return Edges.none()
        a, b, motions, covariances, kind = zip(*self.edges, strict=True)
        return Edges(np.array(a), np.array(b), np.array(motions), np.array(covariances), kind)

    @staticmethod
    def from_map(place_map: PlaceMap, settings: PoseGraphSettings = POSE_GRAPH) -> PoseGraph:
        """Return the graph of a stored map."""
        graph, edges = PoseGraph(settings), place_map.edges
        for pose in place_map.poses:
            graph.add_root(pose)
        for row in zip(
            edges.a.tolist(), edges.b.tolist(), edges.T_a_b, edges.covariance, edges.what, strict=True
        ):
            graph.edges.append(PoseEdge(*row))
            if row[4] != REJECTED:
                graph._unite(row[0], row[1])
        return graph

    def _unite(self, a: int, b: int) -> None:
        target, other = sorted((self._component[a], self._component[b]))
        self._component = [target if component == other else component for component in self._component]

    def roots(self) -> list[int]:
        """Return the first keyframe of each component."""
        return sorted(set(self._component))

    def component_of(self, k: int) -> int:
        """Return the first keyframe of the component of a keyframe."""
        return self._component[k]


class IncrementalSolver:
    """Incremental solution of a growing graph (iSAM2). A copy repeats all updates."""

    def __init__(self, settings: PoseGraphSettings) -> None:
        self.settings = settings
        self._steps: list[tuple[Any, Any]] = []
        self._solver: Any = None
        self._counts = (0, 0, 0)

    def update(self, graph: PoseGraph) -> list[Floats]:
        """Add what a graph has more than before, and return the poses."""
        library = gtsam()
        known, edges, verticals = self._counts
        new = library.Values()
        for k in range(known, len(graph)):
            new.insert(library.symbol("x", k), library.Pose3(graph.poses[k]))
        roots = [k for k in graph.roots() if k >= known]
        accepted = [edge for edge in graph.edges[edges:] if edge.kind != REJECTED]
        factors = build_factors(accepted, roots, graph.poses, graph.verticals[verticals:], (), self.settings)
        self._counts = len(graph), len(graph.edges), len(graph.verticals)
        self._steps.append((factors, new))
        return poses_from(self._advance(self._steps[-1:] if self._solver else self._steps), len(graph))

    def _advance(self, steps: Sequence[tuple[Any, Any]]) -> Any:
        library = gtsam()
        if self._solver is None:
            params = library.ISAM2Params()
            params.setRelinearizeThreshold(self.settings.relinearise_threshold)
            params.relinearizeSkip = 1
            params.setFactorization("QR")  # Cholesky fails if edges differ much in certainty
            self._solver = library.ISAM2(params)
        for factors, new in steps:
            self._solver.update(factors, new)
            for _ in range(self.settings.updates_per_step):
                self._solver.update()
        return self._solver.calculateEstimate()

    def __deepcopy__(self, memo: dict[int, Any]) -> IncrementalSolver:
        other = IncrementalSolver(self.settings)
        other._steps, other._counts = list(self._steps), copy.copy(self._counts)
        return other


def edge_covariances(edges: Sequence[PoseEdge], poses: Floats) -> Floats:
    """Return the covariances (m, 6, 6) of edges as twists in the map's frame."""
    ends = poses[[edge.b for edge in edges]]
    return se3.transform_covariance(ends, np.array([edge.covariance for edge in edges]))


def find_certain_paths(
    edges: Sequence[PoseEdge], k: int, count: int, lever_arm_m: float
) -> tuple[Ints, Ints, Ints]:
    """Find the most certain path from keyframe `k` to each of `count` others (Dijkstra).

    Returns
    -------
    order : (m,) int array
        Reachable keyframes except `k`, the most certain first.
    predecessor, edge : (count,) int array
        Predecessor of each keyframe on its path, and the index of the edge between them.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import dijkstra

    ends = np.sort([(edge.a, edge.b) for edge in edges], axis=1)
    weights = np.repeat([1.0, lever_arm_m**2], 3)
    cost = np.array([edge.covariance.diagonal() for edge in edges]) @ weights
    pair_ids = ends[:, 0] * count + ends[:, 1]
    order = np.lexsort((cost, pair_ids))
    first = np.unique(pair_ids[order], return_index=True)[1]
    best_edges = order[first]  # of parallel edges
    adjacency = coo_matrix(
        (cost[best_edges], (ends[best_edges, 0], ends[best_edges, 1])), (count, count)
    ).tocsr()
    cost_to, predecessor = dijkstra(adjacency, directed=False, indices=k, return_predecessors=True)
    reachable = np.flatnonzero(predecessor >= 0)
    low, high = np.minimum(reachable, predecessor[reachable]), np.maximum(reachable, predecessor[reachable])
    edge = np.full(count, -1)
    edge[reachable] = best_edges[np.searchsorted(pair_ids[best_edges], low * count + high)]
    return reachable[np.argsort(cost_to[reachable], kind="stable")], predecessor, edge


def build_factors(
    edges: Sequence[PoseEdge],
    roots: Sequence[int],
    poses: Sequence[Floats],
    verticals: Sequence[VerticalMeasurement],
    positions: Sequence[PositionMeasurement],
    settings: PoseGraphSettings,
) -> Any:
    """Return measurements as a GTSAM graph; each keyframe of `roots` is fixed at its pose."""
    library = gtsam()
    graph = library.NonlinearFactorGraph()
    for k in roots:
        model = library.noiseModel.Isotropic.Sigma(6, settings.root_sigma)
        graph.add(library.PriorFactorPose3(library.symbol("x", k), library.Pose3(poses[k]), model))
    for edge in edges:
        graph.add(between_factor(edge))
    for each in verticals:
        model = library.noiseModel.Isotropic.Sigma(2, each.sigma)
        z_axis, direction = library.Unit3(np.array([0.0, 0.0, 1.0])), library.Unit3(each.direction)
        graph.add(library.AttitudeFactorPose3(library.symbol("x", each.k), z_axis, model, direction))
    for each in positions:
        model = library.noiseModel.Robust.Create(
            library.noiseModel.mEstimator.Huber.Create(settings.huber_sigmas),
            library.noiseModel.Gaussian.Covariance(each.covariance),
        )
        graph.add(library.GPSFactor(library.symbol("x", each.k), each.position, model))
    return graph


def between_factor(edge: PoseEdge) -> Any:
    """Return an edge as a GTSAM factor."""
    library = gtsam()
    model = library.noiseModel.Gaussian.Covariance(edge.covariance[ROTATION_FIRST][:, ROTATION_FIRST])
    a, b = (library.symbol("x", k) for k in (edge.a, edge.b))
    return library.BetweenFactorPose3(a, b, library.Pose3(edge.T_a_b), model)


def initial_values(poses: Sequence[Floats]) -> Any:
    """Return poses as GTSAM values."""
    library = gtsam()
    values = library.Values()
    for k, pose in enumerate(poses):
        values.insert(library.symbol("x", k), library.Pose3(pose))
    return values


def poses_from(values: Any, count: int) -> list[Floats]:
    """Return the first `count` poses of GTSAM values."""
    library = gtsam()
    return [values.atPose3(library.symbol("x", k)).matrix() for k in range(count)]
