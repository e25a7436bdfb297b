"""Localisation in a stored map, which stays unchanged, with detection of a lost robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import se3
from transect.types import Trajectory
from transect.types.places import Observation, PlaceMap

from .keyframe_odometry import KeyframeOdometry
from .loop_consistency import (
    ZERO_MOTION,
    LoopCandidate,
    chi2_threshold,
    cycle_chi2,
    prior_chi2,
    select_hypothesis,
)
from .mapper import MapStep, has_data
from .place_recognition import Loop, MappingSettings, PosePrior, Recogniser


@dataclass(frozen=True)
class MapLocalisationSettings:
    """Settings of localisation in a stored map."""

    max_sigma_m: float = 1.0  # a robot whose position is less certain is lost
    max_pending: int = 30  # unconfirmed matches that are stored
    map_sigma: tuple[float, float] = (1e-3, 1e-4)  # m and rad, of one keyframe of the map relative to another

    @property
    def map_covariance(self) -> Floats:
        """(6, 6) of one keyframe of the map relative to another."""
        return np.diag(np.repeat(self.map_sigma, 3)) ** 2


@dataclass(frozen=True, eq=False)
class PendingMatch:
    """A match with the map that is not confirmed yet, and the odometry since."""

    old: int
    loop: Loop
    since: PosePrior

    def propagate(self, motion: Floats, covariance: Floats) -> PendingMatch:
        """Return the match after a further motion."""
        total = se3.transform_covariance(se3.invert(motion), self.since.covariance) + covariance
        return replace(self, since=PosePrior(self.since.T_old_new @ motion, total))


@dataclass
class Localiser:
    """Tracks a robot in a map by odometry and place recognition.

    Parameters
    ----------
    recogniser : Recogniser
        An empty one, to which the map's keyframes are added.
    """

    place_map: PlaceMap
    recogniser: Recogniser
    settings: MappingSettings = field(default_factory=MappingSettings)
    localisation: MapLocalisationSettings = field(default_factory=MapLocalisationSettings)

    def __post_init__(self) -> None:
        self.odometry = KeyframeOdometry(self.settings)
        self.estimate: PosePrior | None = None
        self.pending: list[PendingMatch] = []
        self.t_ns: list[int] = []
        self.poses: list[Floats] = []
        self.covariances: list[Floats] = []
        self.samples = self.lost_count = 0
        self._map_covariance = self.localisation.map_covariance
        self._threshold = chi2_threshold(self.settings.loops.probability)
        self._has_data = np.array(
            [has_data(observation) for observation in self.place_map.observations], bool
        )
        for k in np.flatnonzero(self._has_data).tolist():
            self.recogniser.add(k, self.place_map.observations[k])

    def step(
        self,
        t_ns: int,
        T_odom_body: Floats,
        covariance: Floats | None,
        observe: Callable[[], Observation],
        *,
        connected: bool | None = None,
    ) -> MapStep:
        """Process the next pose of the odometry; see `Mapper.step`."""
        after_gap = self.odometry.has_gap(t_ns) if connected is None else not connected
        candidates: list[LoopCandidate] = []
        if after_gap or self.odometry.last_pose is None:
            self._reset_estimate()
            self.odometry.start(t_ns, T_odom_body)
            candidates = self._recognise(observe())
        else:
            self.odometry.add(t_ns, T_odom_body, covariance)
            if self.odometry.needs_keyframe:
                self._propagate()
                candidates = self._recognise(observe())
        return self._record(t_ns, candidates)

    def _reset_estimate(self) -> None:
        self.lost_count += self.estimate is not None
        self.estimate, self.pending = None, []

    def _propagate(self) -> None:
        """Propagate the estimate and all pending matches by the odometry."""
        motion, covariance = self.odometry.motion, self.odometry.covariance
        self.pending = [
            each.propagate(motion, covariance) for each in self.pending[-self.localisation.max_pending :]
        ]
        self.estimate = self._current_estimate()
        self.odometry.reset()

    def _current_estimate(self) -> PosePrior | None:
        """Return the pose of the body in the map, None if it is lost."""
        if self.estimate is None:
            return None
        motion = self.odometry.motion
        total = (
            se3.transform_covariance(se3.invert(motion), self.estimate.covariance) + self.odometry.covariance
        )
        return PosePrior(self.estimate.T_old_new @ motion, total)

    def _recognise(self, observation: Observation) -> list[LoopCandidate]:
        """Match an observation with the map; return accepted matches. An ambiguous one is rejected."""
        max_candidates = (
            self.settings.max_candidates_lost if self.estimate is None else self.settings.max_candidates
        )
        candidates: list[LoopCandidate] = []
        for old in list(self.recogniser.candidates(observation, self._eligible_keyframes()))[:max_candidates]:
            loop = self.recogniser.verify(old, observation, self._prior(old))
            candidates += [LoopCandidate(old, len(self.place_map), loop)] if loop is not None else []
        chosen = select_hypothesis(candidates, self._is_consistent, self.settings.loops.max_second_best_ratio)
        return [each for each in chosen if self._accept(each.old, each.loop)]

    def _accept(self, old: int, loop: Loop) -> bool:
        """Return whether a match is accepted, and update the estimate with it."""
        prior = self._prior(old)
        if prior is None or prior_chi2(loop, prior) > self._threshold:
            return self._initialise(old, loop)
        self._update(old, loop)
        return True

    def _is_consistent(self, first: LoopCandidate, second: LoopCandidate) -> bool:
        """Return whether two matches of one observation imply the same pose of the body."""
        between = self._relative_prior(first.old, second.old)
        return cycle_chi2(first.loop, second.loop, between, ZERO_MOTION) <= self._threshold

    def _relative_prior(self, first: int, second: int) -> PosePrior:
        """Return the pose of a keyframe of the map in the frame of another."""
        between = se3.invert(self.place_map.poses[first]) @ self.place_map.poses[second]
        return PosePrior(between, self._map_covariance)

    def _eligible_keyframes(self) -> np.ndarray:
        """Return keyframes of the map that may be in view, the nearest first."""
        stored = np.flatnonzero(self._has_data)
        if self.estimate is None:
            return stored
        distance = np.linalg.norm(
            self.place_map.poses[stored, :3, 3] - self.estimate.T_old_new[:3, 3], axis=1
        )
        near = distance <= self.settings.search_radius_m + self.settings.search_sigmas * _sigma(self.estimate)
        return stored[near][np.argsort(distance[near], kind="stable")]

    def _prior(self, old: int) -> PosePrior | None:
        if self.estimate is None:
            return None
        predicted = se3.invert(self.place_map.poses[old]) @ self.estimate.T_old_new
        return PosePrior(predicted, self.estimate.covariance + self._map_covariance)

    def _update(self, old: int, loop: Loop) -> None:
        """Fuse a match with the estimate (Kalman update)."""
        assert self.estimate is not None
        measured = self.place_map.poses[old] @ loop.T_old_new
        prior_covariance = self.estimate.covariance
        gain = prior_covariance @ np.linalg.inv(prior_covariance + loop.covariance + self._map_covariance)
        correction = se3.exp(gain @ se3.log(se3.invert(self.estimate.T_old_new) @ measured))
        self.estimate = PosePrior(self.estimate.T_old_new @ correction, (np.eye(6) - gain) @ prior_covariance)

    def _initialise(self, old: int, loop: Loop) -> bool:
        """Initialise the estimate if enough pending matches are consistent with one; else make it pending."""
        consistent = [each for each in self.pending if self._is_consistent_with(each, old, loop)]
        self.pending.append(PendingMatch(old, loop, PosePrior(np.eye(4), np.zeros((6, 6)))))
        if len(consistent) + 1 < self.settings.loops.min_votes:
            return False
        self.estimate = PosePrior(
            self.place_map.poses[old] @ loop.T_old_new, loop.covariance + self._map_covariance
        )
        self.pending = []
        return True

    def _is_consistent_with(self, pending_match: PendingMatch, old: int, loop: Loop) -> bool:
        """Return whether a pending match of another keyframe leads to the same pose by odometry."""
        if not pending_match.since.covariance.any():
            return False
        between = self._relative_prior(pending_match.old, old)
        return cycle_chi2(pending_match.loop, loop, between, pending_match.since) <= self._threshold

    def _record(self, t_ns: int, candidates: list[LoopCandidate]) -> MapStep:
        self.samples += 1
        current = self._current_estimate()
        if current is None or _sigma(current) > self.localisation.max_sigma_m:
            if current is not None:
                self._reset_estimate()
            return MapStep(None, False, candidates)
        self.t_ns.append(t_ns)
        self.poses.append(current.T_old_new)
        self.covariances.append(current.covariance)
        return MapStep(current.T_old_new, True, candidates)

    def finish(self, child: str = "") -> Trajectory | None:
        """Return all poses in the map, None if the robot was never located."""
        if not self.poses:
            return None
        attitudes, positions = se3.to_quaternion(np.array(self.poses))
        t_ns = np.array(self.t_ns, np.int64)
        return Trajectory(t_ns, positions, attitudes, np.array(self.covariances), self.place_map.frame, child)

    def describe(self) -> str:
        """Return a sentence on how well the robot was located."""
        percent = 100.0 * len(self.poses) / max(self.samples, 1)
        times = (
            "never" if not self.lost_count else "once" if self.lost_count == 1 else f"{self.lost_count} times"
        )
        if not self.poses:
            return (
                f"LOST: no sample of {self.samples} was located in the map of {len(self.place_map)} keyframes"
            )
        return f"FOUND: {percent:.1f} % of {self.samples} samples located in the map; lost {times}"


def _sigma(prior: PosePrior) -> float:
    return float(np.sqrt(np.trace(prior.covariance[:3, :3])))
