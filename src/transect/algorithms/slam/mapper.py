"""Makes a map of the places that a front end sees, whatever its sensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import rotations, se3
from transect.types import Trajectory
from transect.types.places import LOOP, ODOMETRY, Anchor, Observation, PlaceMap

from .loop_consistency import Found, Judge, LoopRules, guess_of
from .place_recognition import Recogniser
from .pose_graph import PoseGraph, Relative

GAP_S, GAP_PERIODS = 2.0, 20
"""A gap that is longer than both begins a new session."""
ASIDE = 2.0
"""Metres that a place counts as further away for each radian that the body looks aside."""
SIGMAS = 3.0
"""How far around the believed place old ones are looked for."""


@dataclass(frozen=True)
class MappingSettings:
    """How a map is made.

    Attributes
    ----------
    distance, turn : float
        Metres and radians from one keyframe to the next.
    reach : float
        Metres within which two places can show the same things.
    recent : float
        Metres of the way behind the robot in which no loop is looked for.
    tries : int
        Old places that are verified at each keyframe, at most.
    searches : int
        The same for a robot that is lost, or where nothing joins some of them with the keyframe yet.
    sure : float
        Metres: where three sigmas of the graph are more, as many are tried as for a lost robot, so that
        places which look alike are found out.
    drift : (2,) tuple
        Sigma of an odometry that does not tell its own: part of the way, and rad per rad of turn; over 10 m
        without a turn it is wrong by as much as after a turn of 1 rad.
    around : bool
        Whether the sensor sees all sides: a place is then the same whichever way the body faces.
    """

    distance: float = 0.5
    turn: float = 0.3
    reach: float = 5.0
    recent: float = 10.0
    tries: int = 3
    drift: tuple[float, float] = (0.02, 0.02)
    searches: int = 3
    sure: float = np.inf
    rules: LoopRules = field(default_factory=LoopRules)
    around: bool = False


@dataclass(frozen=True, eq=False)
class MapStep:
    """What became of one pose of the odometry.

    Attributes
    ----------
    pose : (4, 4) array or None
        T_map_body, as far as it is known now; None where a robot is lost.
    located : bool
        Whether it is known where in the map it is.
    loops : sequence of Found
        Loops that were believed now.
    keyframe : int or None
        The keyframe that was made of it.
    """

    pose: Floats | None
    located: bool = True
    loops: Sequence[Found] = ()
    keyframe: int | None = None


@dataclass
class Reckoning:
    """Odometry since a keyframe: the motion, its covariance, the way; and whether time went on without it."""

    manner: MappingSettings
    motion: Floats = field(default_factory=lambda: np.eye(4))
    covariance: Floats = field(default_factory=lambda: np.zeros((6, 6)))
    way: float = 0.0
    last: Floats | None = None
    t_ns: int = 0
    periods: list[int] = field(default_factory=list[int])

    def breaks(self, t_ns: int) -> bool:
        """Tell whether a sample comes after a gap, or at the very beginning."""
        if self.last is None:
            return True
        period = float(np.median(self.periods)) if self.periods else 0.0
        return t_ns - self.t_ns > max(GAP_S * NS, GAP_PERIODS * period)

    def begin(self, t_ns: int, T_odom_body: Floats) -> None:
        """Start anew: nothing is known of the motion before."""
        self.restart()
        self.last, self.t_ns = T_odom_body, t_ns

    def restart(self) -> None:
        """Count from here."""
        self.motion, self.covariance, self.way = np.eye(4), np.zeros((6, 6)), 0.0

    def add(self, t_ns: int, T_odom_body: Floats, covariance: Floats | None) -> None:
        """Go on by a pose, whose motion has a covariance (6, 6) in the axes of the body."""
        assert self.last is not None
        moved = se3.invert(self.last) @ T_odom_body
        spread = drift_of(moved, self.manner.drift) if covariance is None else covariance
        self.covariance = se3.transform_covariance(se3.invert(moved), self.covariance) + spread
        self.motion = self.motion @ moved
        self.way += float(np.linalg.norm(moved[:3, 3]))
        self.periods = [*self.periods[-50:], t_ns - self.t_ns]
        self.last, self.t_ns = T_odom_body, t_ns

    @property
    def is_far(self) -> bool:
        """Whether the body has come far enough for a keyframe."""
        turned = np.linalg.norm(rotations.rotation_vector_from_matrix(self.motion[:3, :3]))
        shift = np.linalg.norm(self.motion[:3, 3])
        return bool(shift >= self.manner.distance or turned >= self.manner.turn)


def drift_of(motion: Floats, drift: tuple[float, float]) -> Floats:
    """Return the covariance (6, 6) of a motion of an odometry that does not tell its own."""
    way = float(np.linalg.norm(motion[:3, 3]))
    turn = float(np.linalg.norm(rotations.rotation_vector_from_matrix(motion[:3, :3])))
    shift, angle = drift[0] * (way + 1e-3), drift[1] * np.sqrt(turn**2 + way / 10.0 + 1e-6)
    return np.diag([shift**2] * 3 + [angle**2] * 3)


class Path:
    """All poses of the odometry, each hung on the keyframe before it."""

    def __init__(self) -> None:
        self.t_ns: list[int] = []
        self.keyframe: list[int] = []
        self.motion: list[Floats] = []

    def add(self, t_ns: int, keyframe: int, motion: Floats) -> None:
        """Take a pose at its motion (4, 4) since a keyframe."""
        self.t_ns.append(t_ns)
        self.keyframe.append(keyframe)
        self.motion.append(motion)

    def correct(self, poses: Sequence[Floats], follows: Mapping[int, Floats], times: Sequence[int]) -> Floats:
        """Return all poses (n, 4, 4), with what odometry missed of the next keyframe spread over the way.

        Parameters
        ----------
        follows : mapping
            By keyframe, the odometry's motion to the next one, where they are joined by it.
        times : sequence of int
            Of the keyframes, ns.
        """
        k, motion = np.array(self.keyframe), np.array(self.motion)
        placed = np.array(poses)[k] @ motion
        after = np.array([i in follows for i in self.keyframe])
        if not after.any():
            return placed
        rows = k[after]
        ends = np.array(poses)[rows] @ np.array([follows[i] for i in rows.tolist()])
        missed = se3.log(se3.invert(ends) @ np.array(poses)[rows + 1])
        stamps = np.array(times)
        share = (np.array(self.t_ns)[after] - stamps[rows]) / np.maximum(stamps[rows + 1] - stamps[rows], 1)
        placed[after] = placed[after] @ se3.exp(np.clip(share, 0, 1)[:, None] * missed)
        return placed


@dataclass
class Mapper:
    """Decides what is a keyframe, asks the recogniser for loops, and keeps the graph.

    Parameters
    ----------
    kind : str
        Name of the compound, which the map bears.
    recogniser : Recogniser
    calibration : mapping
        What the map is to say of the sensor.
    """

    kind: str
    recogniser: Recogniser
    manner: MappingSettings = field(default_factory=MappingSettings)
    calibration: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.graph, self.path = PoseGraph(), Path()
        self.judge = Judge(self.manner.rules)
        self.reckoning = Reckoning(self.manner)
        self.times: list[int] = []
        self.session: list[int] = []
        self.way: list[float] = []
        self.observations: list[Observation] = []
        self.anchor: Anchor | None = None
        self.frame, self.child = "map", ""
        self.given = 0
        self.unsure: list[int] = []

    def extend(self, places: PlaceMap) -> None:
        """Go on with a map; what follows is another session until a loop joins it."""
        self.graph = PoseGraph.of(places)
        self.times, self.session = places.t_ns.tolist(), places.session.tolist()
        self.observations = list(places.observations)
        self.way = [0.0] * len(places)
        self.anchor, self.frame, self.given = places.anchor, places.frame, len(places)
        for k, seen in enumerate(self.observations):
            if is_seen(seen):
                self.recogniser.add(k, seen)

    def step(
        self,
        t_ns: int,
        T_odom_body: Floats,
        covariance: Floats | None,
        observe: Callable[[], Observation],
        *,
        joined: bool | None = None,
    ) -> MapStep:
        """Take the next pose of the odometry.

        Parameters
        ----------
        T_odom_body : (4, 4) array
        covariance : (6, 6) array or None
            Of the motion since the pose before, in the axes of the body: m, then rad. None if not known.
        observe : callable
            Called if this becomes a keyframe.
        joined : bool, optional
            Whether odometry leads from the pose before to this one; by default, unless there was a gap.
        """
        apart = self.reckoning.breaks(t_ns) if joined is None else not joined
        if apart or self.reckoning.last is None:
            self.reckoning.begin(t_ns, T_odom_body)
            return self._begin(t_ns, T_odom_body, observe())
        self.reckoning.add(t_ns, T_odom_body, covariance)
        if self.reckoning.is_far:
            return self._follow(t_ns, observe())
        last = len(self.graph) - 1
        self.path.add(t_ns, last, self.reckoning.motion)
        return MapStep(self.graph.poses[last] @ self.reckoning.motion)

    def _begin(self, t_ns: int, T_odom_body: Floats, seen: Observation) -> MapStep:
        """Begin a session, where odometry believes it to be until a loop says more: so its z stays up."""
        self.graph.begin(T_odom_body)
        self.session.append(self.session[-1] + 1 if self.session else 0)
        self.way.append(self.way[-1] if self.way else 0.0)
        return self._take(t_ns, seen)

    def _follow(self, t_ns: int, seen: Observation) -> MapStep:
        self.graph.follow(self.reckoning.motion, self.reckoning.covariance)
        self.session.append(self.session[-1])
        self.way.append(self.way[-1] + self.reckoning.way)
        self.reckoning.restart()
        return self._take(t_ns, seen)

    def _take(self, t_ns: int, seen: Observation) -> MapStep:
        """Remember the newest keyframe, and close its loops."""
        k = len(self.graph) - 1
        self.times.append(t_ns)
        self.path.add(t_ns, k, np.eye(4))
        loops = self._close_loops(k, seen)
        known = any(self._is_same_place(each) for each in loops if each.new == k)
        self.observations.append({name: values[:0] for name, values in seen.items()} if known else seen)
        if not known and is_seen(seen):
            self.recogniser.add(k, seen)
        return MapStep(self.graph.poses[k], True, loops, k)

    def _close_loops(self, k: int, seen: Observation, *, again: bool = False) -> list[Found]:
        """Add the loops of a keyframe that are believed; `again`, only if it is known well where it is."""
        if not is_seen(seen):
            return []
        relative = self.graph.relative(k)
        allowed = self._allowed(k, relative)
        found: list[Found] = []
        sure = self._is_sure(relative, allowed)
        if again and not sure:
            return []
        tries = self.manner.tries if sure else self.manner.searches
        for old in list(self.recogniser.candidates(seen, allowed))[:tries] if len(allowed) else ():
            guess = guess_of(relative, old) if relative.known[old] else None
            loop = self.recogniser.verify(old, seen, guess)
            found += [Found(old, k, loop)] if loop is not None else []
        believed = self._choose(k, self.judge.judge(found, self.graph))
        for each in believed:
            self.graph.join(each.old, each.new, each.loop.T_old_new, each.loop.covariance)
        if believed:
            self.graph.optimise()
        if not sure and not any(each.new == k for each in believed):
            self.unsure.append(k)
        return believed

    def _ask_again(self) -> None:
        """Look for loops of keyframes that found none while it was hardly known where they were.

        The newest first: what the last loops tell reaches back from where they closed.
        """
        for k in self.unsure[::-1]:
            self._close_loops(k, self.observations[k], again=True)

    def _choose(self, k: int, believed: list[Found]) -> list[Found]:
        """Return loops, of keyframe `k` the best: many of them tell of one place, and err together."""
        here = sorted((each for each in believed if each.new == k), key=lambda each: -each.loop.score)
        return [each for each in believed if each.new != k] + here[: self.manner.tries]

    def _is_sure(self, relative: Relative, allowed: Ints) -> bool:
        """Tell whether the graph knows well enough where a keyframe is, seen from others."""
        if not relative.known[allowed].all():
            return False
        spread = np.linalg.eigvalsh(relative.covariance[allowed, :3, :3])[:, -1]
        return bool((SIGMAS * np.sqrt(spread) <= self.manner.sure).all())

    def _allowed(self, k: int, relative: Relative) -> Ints:
        """Return old keyframes that may show the same place, the nearest that look the same way first."""
        old = np.arange(k)
        session, way = np.array(self.session), np.array(self.way)
        far = (session[:k] != session[k]) | (way[k] - way[:k] > self.manner.recent)
        useful = np.array([is_seen(seen) for seen in self.observations[:k]], bool)
        away = np.linalg.norm(relative.T_i_k[:k, :3, 3], axis=1)
        known = relative.known[:k]
        spread = np.trace(
            np.where(known[:, None, None], relative.covariance[:k, :3, :3], 0.0), axis1=1, axis2=2
        )
        near = ~known | (away <= self.manner.reach + SIGMAS * np.sqrt(spread))
        chosen = old[far & useful & near]
        turned = np.linalg.norm(rotations.rotation_vector_from_matrix(relative.T_i_k[chosen, :3, :3]), axis=1)
        cost = np.where(known[chosen], away[chosen] + ASIDE * turned, np.inf)
        return chosen[np.argsort(cost, kind="stable")]

    def _is_same_place(self, found: Found) -> bool:
        """Tell whether a loop leads to a keyframe that saw what this one sees."""
        motion = found.loop.T_old_new
        turned = np.linalg.norm(rotations.rotation_vector_from_matrix(motion[:3, :3]))
        faces = self.manner.around or turned < self.manner.turn
        return bool(np.linalg.norm(motion[:3, 3]) < self.manner.distance and faces)

    def finish(self) -> tuple[Trajectory, PlaceMap] | None:
        """Solve everything at once; return the corrected trajectory and the map, None without a sample."""
        if not len(self.graph):
            return None
        self._ask_again()
        self.graph.settle()
        covariances = self.graph.covariances()
        follows = {edge.a: edge.T_a_b for edge in self.graph.edges if edge.what == ODOMETRY}
        places = PlaceMap(
            self.kind, np.array(self.times), np.array(self.graph.poses), covariances, np.array(self.session),
            self.graph.as_edges(), tuple(self.observations), dict(self.calibration), self.anchor, self.frame,
            self.child,
        )  # fmt: skip
        return self._trajectory(follows, covariances), places

    def _trajectory(self, follows: Mapping[int, Floats], covariances: Floats) -> Trajectory:
        poses = self.path.correct(self.graph.poses, follows, self.times)
        attitudes, positions = se3.to_quaternion(poses)
        spread = covariances[np.array(self.path.keyframe)]
        t_ns = np.array(self.path.t_ns, np.int64)
        return Trajectory(t_ns, positions, attitudes, spread, self.frame, self.child)

    @property
    def loops(self) -> int:
        """How many loops are believed."""
        return sum(edge.what == LOOP for edge in self.graph.edges)


def is_seen(seen: Observation) -> bool:
    """Tell whether something was kept of what was seen."""
    return any(len(values) for values in seen.values())
