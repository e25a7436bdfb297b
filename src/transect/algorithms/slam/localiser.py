"""Finds a robot in a map that was kept, and says when it is lost; the map stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import se3
from transect.types import Trajectory
from transect.types.places import Observation, PlaceMap

from .loop_consistency import STILL, Found, choose_place, disagreement, limit_of, misfit
from .mapper import SIGMAS, MappingSettings, MapStep, Reckoning, is_seen
from .place_recognition import Guess, Loop, Recogniser

LOST = 1.0
"""Metres: sigma of the position from which on a robot says that it is lost."""
MOST_WAITING = 30
EXACT = Guess(np.eye(4), np.diag([1e-3] * 3 + [1e-4] * 3) ** 2)
"""How far keyframes of a map are believed to stand still against each other."""


@dataclass(frozen=True, eq=False)
class Sighting:
    """A place of the map that was seen a while ago, and the odometry since."""

    old: int
    loop: Loop
    since: Guess

    def moved(self, motion: Floats, covariance: Floats) -> Sighting:
        """Return it after a further motion."""
        spread = se3.transform_covariance(se3.invert(motion), self.since.covariance) + covariance
        return replace(self, since=Guess(self.since.T_old_new @ motion, spread))


@dataclass
class Localiser:
    """Tracks a robot in a map by odometry, and by places that it knows again.

    Parameters
    ----------
    places : PlaceMap
    recogniser : Recogniser
        Gets the map's keyframes, and nothing else.
    lost : float
        Metres: sigma from which on the robot is lost.
    """

    places: PlaceMap
    recogniser: Recogniser
    manner: MappingSettings = field(default_factory=MappingSettings)
    lost: float = LOST

    def __post_init__(self) -> None:
        self.reckoning = Reckoning(self.manner)
        self.fix: Guess | None = None
        self.sightings: list[Sighting] = []
        self.t_ns: list[int] = []
        self.poses: list[Floats] = []
        self.spreads: list[Floats] = []
        self.samples = self.losses = 0
        self._limit = limit_of(self.manner.rules.probability)
        self._useful = np.array([is_seen(seen) for seen in self.places.observations], bool)
        for k in np.flatnonzero(self._useful).tolist():
            self.recogniser.add(k, self.places.observations[k])

    def step(
        self,
        t_ns: int,
        T_odom_body: Floats,
        covariance: Floats | None,
        observe: Callable[[], Observation],
        *,
        joined: bool | None = None,
    ) -> MapStep:
        """Take the next pose of the odometry; see `Mapper.step`."""
        apart = self.reckoning.breaks(t_ns) if joined is None else not joined
        found: list[Found] = []
        if apart or self.reckoning.last is None:
            self._forget()
            self.reckoning.begin(t_ns, T_odom_body)
            found = self._look(observe())
        else:
            self.reckoning.add(t_ns, T_odom_body, covariance)
            if self.reckoning.is_far:
                self._advance()
                found = self._look(observe())
        return self._report(t_ns, found)

    def _forget(self) -> None:
        self.losses += self.fix is not None
        self.fix, self.sightings = None, []

    def _advance(self) -> None:
        """Bring the fix and all sightings to where the body is now."""
        motion, spread = self.reckoning.motion, self.reckoning.covariance
        self.sightings = [each.moved(motion, spread) for each in self.sightings[-MOST_WAITING:]]
        self.fix = self._now()
        self.reckoning.restart()

    def _now(self) -> Guess | None:
        """Return where the body is in the map, None if it is lost."""
        if self.fix is None:
            return None
        motion = self.reckoning.motion
        spread = se3.transform_covariance(se3.invert(motion), self.fix.covariance) + self.reckoning.covariance
        return Guess(self.fix.T_old_new @ motion, spread)

    def _look(self, seen: Observation) -> list[Found]:
        """Look for known places; return those that were believed. What fits several places tells of none."""
        tries = self.manner.searches if self.fix is None else self.manner.tries
        found: list[Found] = []
        for old in list(self.recogniser.candidates(seen, self._allowed()))[:tries]:
            loop = self.recogniser.verify(old, seen, self._guess(old))
            found += [Found(old, len(self.places), loop)] if loop is not None else []
        chosen = choose_place(found, self._agree, self.manner.rules.rival)
        return [each for each in chosen if self._believes(each.old, each.loop)]

    def _believes(self, old: int, loop: Loop) -> bool:
        """Tell whether a place that was seen is believed, and go by it if so."""
        guess = self._guess(old)
        if guess is None or misfit(loop, guess) > self._limit:
            return self._settle(old, loop)
        self._correct(old, loop)
        return True

    def _agree(self, one: Found, other: Found) -> bool:
        """Tell whether two places that were seen at once say the same of where the body is."""
        between = self._between(one.old, other.old)
        return disagreement(one.loop, other.loop, between, STILL) <= self._limit

    def _between(self, one: int, other: int) -> Guess:
        """Return where a keyframe of the map is, seen from another."""
        between = se3.invert(self.places.poses[one]) @ self.places.poses[other]
        return Guess(between, EXACT.covariance)

    def _allowed(self) -> np.ndarray:
        """Return keyframes of the map that may be in sight, the nearest first."""
        every = np.flatnonzero(self._useful)
        if self.fix is None:
            return every
        away = np.linalg.norm(self.places.poses[every, :3, 3] - self.fix.T_old_new[:3, 3], axis=1)
        near = away <= self.manner.reach + SIGMAS * _sigma(self.fix)
        return every[near][np.argsort(away[near], kind="stable")]

    def _guess(self, old: int) -> Guess | None:
        if self.fix is None:
            return None
        seen = se3.invert(self.places.poses[old]) @ self.fix.T_old_new
        return Guess(seen, self.fix.covariance + EXACT.covariance)

    def _correct(self, old: int, loop: Loop) -> None:
        """Weigh a place that was seen with where the body was believed to be."""
        assert self.fix is not None
        said = self.places.poses[old] @ loop.T_old_new
        spread = self.fix.covariance
        gain = spread @ np.linalg.inv(spread + loop.covariance + EXACT.covariance)
        moved = se3.exp(gain @ se3.log(se3.invert(self.fix.T_old_new) @ said))
        self.fix = Guess(self.fix.T_old_new @ moved, (np.eye(6) - gain) @ spread)

    def _settle(self, old: int, loop: Loop) -> bool:
        """Believe a place that enough others agree with; else remember it."""
        agreeing = [each for each in self.sightings if self._agrees(each, old, loop)]
        self.sightings.append(Sighting(old, loop, Guess(np.eye(4), np.zeros((6, 6)))))
        if len(agreeing) + 1 < self.manner.rules.votes:
            return False
        self.fix = Guess(self.places.poses[old] @ loop.T_old_new, loop.covariance + EXACT.covariance)
        self.sightings = []
        return True

    def _agrees(self, sighting: Sighting, old: int, loop: Loop) -> bool:
        """Tell whether a sighting from somewhere else leads to the same place by odometry."""
        if not sighting.since.covariance.any():
            return False
        apart = self._between(sighting.old, old)
        return disagreement(sighting.loop, loop, apart, sighting.since) <= self._limit

    def _report(self, t_ns: int, found: list[Found]) -> MapStep:
        self.samples += 1
        now = self._now()
        if now is None or _sigma(now) > self.lost:
            if now is not None:
                self._forget()
            return MapStep(None, False, found)
        self.t_ns.append(t_ns)
        self.poses.append(now.T_old_new)
        self.spreads.append(now.covariance)
        return MapStep(now.T_old_new, True, found)

    def finish(self, child: str = "") -> Trajectory | None:
        """Return all poses in the map, None if the robot never found itself."""
        if not self.poses:
            return None
        attitudes, positions = se3.to_quaternion(np.array(self.poses))
        t_ns = np.array(self.t_ns, np.int64)
        return Trajectory(t_ns, positions, attitudes, np.array(self.spreads), self.places.frame, child)

    def describe(self) -> str:
        """Return in words how well it went."""
        share = 100.0 * len(self.poses) / max(self.samples, 1)
        times = "never" if not self.losses else "once" if self.losses == 1 else f"{self.losses} times"
        if not self.poses:
            return f"LOST: none of {self.samples} samples was found in the map of {len(self.places)} places"
        return f"FOUND {share:.1f} % of {self.samples} samples in the map; lost again {times}"


def _sigma(guess: Guess) -> float:
    return float(np.sqrt(np.trace(guess.covariance[:3, :3])))
