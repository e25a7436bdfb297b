"""Mapping with any sensor: keyframes, loop closure, and the corrected trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations, se3
from transect.types import Trajectory
from transect.types.places import LOOP, ODOMETRY, Anchor, Observation, PlaceMap

from .keyframe_odometry import KeyframeOdometry
from .loop_consistency import LoopCandidate, LoopSelector, prior_of
from .place_recognition import MappingSettings, Recogniser
from .pose_graph import PoseGraph, RelativePoses


@dataclass(frozen=True, eq=False)
class MapStep:
    """Result of one odometry sample."""

    pose: Floats | None  # T_map_body (4, 4) as currently known; None if the robot is lost
    located: bool = True  # whether the pose in the map is known
    loops: Sequence[LoopCandidate] = ()  # accepted with this sample
    keyframe: int | None = None  # created from this sample


class SampleTrajectory:
    """All poses of the odometry, relative to the keyframe before each."""

    def __init__(self) -> None:
        self.t_ns: list[int] = []
        self.keyframe: list[int] = []
        self.motion: list[Floats] = []

    def add(self, t_ns: int, keyframe: int, motion: Floats) -> None:
        """Add a sample with its motion (4, 4) since a keyframe."""
        self.t_ns.append(t_ns)
        self.keyframe.append(keyframe)
        self.motion.append(motion)

    def correct(
        self, poses: Sequence[Floats], odometry_edges: Mapping[int, Floats], times: Sequence[int]
    ) -> Floats:
        """Return all poses (n, 4, 4), with the odometry error up to the next keyframe distributed over time.

        Parameters
        ----------
        odometry_edges : mapping
            Motion by odometry from a keyframe to the next one, where they are connected by it.
        times : sequence of int
            Times of the keyframes, ns.
        """
        k, motion = np.array(self.keyframe), np.array(self.motion)
        corrected = np.array(poses)[k] @ motion
        has_next = np.array([i in odometry_edges for i in self.keyframe])
        if not has_next.any():
            return corrected
        rows = k[has_next]
        predicted = np.array(poses)[rows] @ np.array([odometry_edges[i] for i in rows.tolist()])
        correction = se3.log(se3.invert(predicted) @ np.array(poses)[rows + 1])
        stamps = np.array(times)
        fraction = (np.array(self.t_ns)[has_next] - stamps[rows]) / np.maximum(
            stamps[rows + 1] - stamps[rows], 1
        )
        corrected[has_next] = corrected[has_next] @ se3.exp(np.clip(fraction, 0, 1)[:, None] * correction)
        return corrected


@dataclass
class Mapper:
    """Creates keyframes, asks the recogniser for loops, and maintains the pose graph.

    Parameters
    ----------
    kind : str
        Name of the compound, which is stored in the map.
    calibration : mapping
        Data of the sensor to store in the map.
    """

    kind: str
    recogniser: Recogniser
    settings: MappingSettings = field(default_factory=MappingSettings)
    calibration: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.graph, self.path = PoseGraph(self.settings.graph), SampleTrajectory()
        self.loop_selector = LoopSelector(self.settings.loops)
        self.odometry = KeyframeOdometry(self.settings)
        self.times: list[int] = []
        self.session: list[int] = []
        self.path_m: list[float] = []
        self.observations: list[Observation] = []
        self.anchor: Anchor | None = None
        self.frame, self.child = "map", ""
        self.uncertain_keyframes: list[int] = []

    def extend(self, place_map: PlaceMap) -> None:
        """Continue a map. What follows is another session until a loop connects it."""
        self.graph = PoseGraph.from_map(place_map, self.settings.graph)
        self.times, self.session = place_map.t_ns.tolist(), place_map.session.tolist()
        self.observations = list(place_map.observations)
        self.path_m = [0.0] * len(place_map)
        self.anchor, self.frame = place_map.anchor, place_map.frame
        for k, observation in enumerate(self.observations):
            if has_data(observation):
                self.recogniser.add(k, observation)

    def step(
        self,
        t_ns: int,
        T_odom_body: Floats,
        covariance: Floats | None,
        observe: Callable[[], Observation],
        *,
        connected: bool | None = None,
    ) -> MapStep:
        """Process the next pose of the odometry.

        Parameters
        ----------
        T_odom_body : (4, 4) array
        covariance : (6, 6) array or None
            Of the motion since the last pose, in the axes of the body: m, then rad. None if unknown.
        observe : callable
            Called if this becomes a keyframe.
        connected : bool, optional
            Whether odometry connects the last pose with this one; by default, unless there was a gap.
        """
        after_gap = self.odometry.has_gap(t_ns) if connected is None else not connected
        if after_gap or self.odometry.last_pose is None:
            self.odometry.start(t_ns, T_odom_body)
            return self._start_session(t_ns, T_odom_body, observe())
        self.odometry.add(t_ns, T_odom_body, covariance)
        if self.odometry.needs_keyframe:
            return self._follow_odometry(t_ns, observe())
        last = len(self.graph) - 1
        self.path.add(t_ns, last, self.odometry.motion)
        return MapStep(self.graph.poses[last] @ self.odometry.motion)

    def _start_session(self, t_ns: int, T_odom_body: Floats, observation: Observation) -> MapStep:
        """Start a session at the pose of the odometry, which keeps z vertical, until a loop connects it."""
        self.graph.add_root(T_odom_body)
        self.session.append(self.session[-1] + 1 if self.session else 0)
        self.path_m.append(self.path_m[-1] if self.path_m else 0.0)
        return self._add_keyframe(t_ns, observation)

    def _follow_odometry(self, t_ns: int, observation: Observation) -> MapStep:
        self.graph.add_odometry(self.odometry.motion, self.odometry.covariance)
        self.session.append(self.session[-1])
        self.path_m.append(self.path_m[-1] + self.odometry.path_m)
        self.odometry.reset()
        return self._add_keyframe(t_ns, observation)

    def _add_keyframe(self, t_ns: int, observation: Observation) -> MapStep:
        """Add the newest keyframe, and close its loops."""
        k = len(self.graph) - 1
        self.times.append(t_ns)
        self.path.add(t_ns, k, np.eye(4))
        loops = self._close_loops(k, observation)
        redundant = any(self._is_redundant(each) for each in loops if each.new == k)
        self.observations.append(
            {name: values[:0] for name, values in observation.items()} if redundant else observation
        )
        if not redundant and has_data(observation):
            self.recogniser.add(k, observation)
        return MapStep(self.graph.poses[k], True, loops, k)

    def _close_loops(self, k: int, observation: Observation, *, retry: bool = False) -> list[LoopCandidate]:
        """Add the accepted loops of a keyframe; on a retry, only if its pose is certain."""
        if not has_data(observation):
            return []
        relative = self.graph.relative(k)
        allowed = self._eligible_keyframes(k, relative)
        candidates: list[LoopCandidate] = []
        certain = self._is_certain(relative, allowed)
        if retry and not certain:
            return []
        max_candidates = self.settings.max_candidates if certain else self.settings.max_candidates_lost
        for old in (
            list(self.recogniser.candidates(observation, allowed))[:max_candidates] if len(allowed) else ()
        ):
            prior = prior_of(relative, old) if relative.connected[old] else None
            loop = self.recogniser.verify(old, observation, prior)
            candidates += [LoopCandidate(old, k, loop)] if loop is not None else []
        accepted = self._select_best(k, self.loop_selector.select(candidates, self.graph))
        for each in accepted:
            self.graph.add_loop(each.old, each.new, each.loop.T_old_new, each.loop.covariance)
        if accepted:
            self.graph.optimise()
        if not certain and not any(each.new == k for each in accepted):
            self.uncertain_keyframes.append(k)
        return accepted

    def _select_best(self, k: int, accepted: list[LoopCandidate]) -> list[LoopCandidate]:
        """Return accepted loops; of keyframe `k` only the best, since their errors are correlated."""
        own = sorted((each for each in accepted if each.new == k), key=lambda each: -each.loop.score)
        return [each for each in accepted if each.new != k] + own[: self.settings.max_candidates]

    def _is_certain(self, relative: RelativePoses, allowed: Ints) -> bool:
        """Return whether the graph determines the pose of a keyframe relative to others well enough."""
        if not relative.connected[allowed].all():
            return False
        variance = np.linalg.eigvalsh(relative.covariance[allowed, :3, :3])[:, -1]
        return bool(
            (self.settings.search_sigmas * np.sqrt(variance) <= self.settings.max_sure_radius_m).all()
        )

    def _eligible_keyframes(self, k: int, relative: RelativePoses) -> Ints:
        """Return old keyframes that may show the same place, the nearest with a similar heading first."""
        old = np.arange(k)
        session, path_m = np.array(self.session), np.array(self.path_m)
        eligible = (session[:k] != session[k]) | (path_m[k] - path_m[:k] > self.settings.min_loop_path_m)
        observed = np.array([has_data(observation) for observation in self.observations[:k]], bool)
        distance = np.linalg.norm(relative.T_i_k[:k, :3, 3], axis=1)
        connected = relative.connected[:k]
        variance = np.trace(
            np.where(connected[:, None, None], relative.covariance[:k, :3, :3], 0.0), axis1=1, axis2=2
        )
        near = ~connected | (
            distance <= self.settings.search_radius_m + self.settings.search_sigmas * np.sqrt(variance)
        )
        chosen = old[eligible & observed & near]
        angle = np.linalg.norm(rotations.rotation_vector_from_matrix(relative.T_i_k[chosen, :3, :3]), axis=1)
        cost = np.where(connected[chosen], distance[chosen] + self.settings.rotation_cost_m * angle, np.inf)
        return chosen[np.argsort(cost, kind="stable")]

    def _is_redundant(self, candidate: LoopCandidate) -> bool:
        """Return whether a loop leads to a keyframe with the same observation."""
        motion = candidate.loop.T_old_new
        angle = np.linalg.norm(rotations.rotation_vector_from_matrix(motion[:3, :3]))
        same_heading = self.settings.omnidirectional or angle < self.settings.keyframe_angle_rad
        return bool(np.linalg.norm(motion[:3, 3]) < self.settings.keyframe_distance_m and same_heading)

    def finish(self) -> tuple[Trajectory, PlaceMap] | None:
        """Optimise everything; return the corrected trajectory and the map, None without a sample."""
        if not len(self.graph):
            return None
        # The newest come first: the last loops reduce the uncertainty backwards from where they closed.
        for k in self.uncertain_keyframes[::-1]:
            self._close_loops(k, self.observations[k], retry=True)
        self.graph.optimise_batch()
        covariances = self.graph.covariances()
        odometry_edges = {edge.a: edge.T_a_b for edge in self.graph.edges if edge.kind == ODOMETRY}
        place_map = PlaceMap(
            self.kind, np.array(self.times), np.array(self.graph.poses), covariances, np.array(self.session),
            self.graph.as_edges(), tuple(self.observations), dict(self.calibration), self.anchor, self.frame,
            self.child,
        )  # fmt: skip
        return self._trajectory(odometry_edges, covariances), place_map

    def _trajectory(self, odometry_edges: Mapping[int, Floats], covariances: Floats) -> Trajectory:
        poses = self.path.correct(self.graph.poses, odometry_edges, self.times)
        attitudes, positions = se3.to_quaternion(poses)
        covariances = covariances[np.array(self.path.keyframe)]
        t_ns = np.array(self.path.t_ns, np.int64)
        return Trajectory(t_ns, positions, attitudes, covariances, self.frame, self.child)

    @property
    def loops(self) -> int:
        """Number of accepted loops."""
        return sum(edge.kind == LOOP for edge in self.graph.edges)


def has_data(observation: Observation) -> bool:
    """Return whether any data of an observation is stored."""
    return any(len(values) for values in observation.values())
