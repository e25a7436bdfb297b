"""Smoothing as samples come: the last seconds are solved anew at every keyframe, what is older is summed up.

Factors join neighbours only, so that what all older keyframes say is a Gaussian on the variables of the
oldest one that is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.geometry import rotations, se3

from .._gtsam import Kept, gtsam
from ..fusion.measurements import Event, Place
from .batch import first_values
from .factor_graph import (
    SWAPPED,
    SmootherNoise,
    Stretch,
    copy_value,
    covariances_of,
    eliminate,
    path_of,
    paths_of,
    poses_of,
    solve,
    stretch_of,
    widen,
)
from .filter_odometry import Follower
from .initial_values import HeadingUnknownError, guess, path_poses
from .observations import Evidence, grid_times, keyframe_times
from .odometry_paths import PosePath
from .position_factors import GATE, Hung, Judged, judge
from .wheel_factors import WheelLinks

T = TypeVar("T")
Fit = tuple[Sequence[Place], Judged]
"""New positions, and how they fitted."""

LEAST_WAIT = 1.0
"""Seconds after which every sensor that works has sent something."""
SPEED_STD = 0.5
"""m/s, of a body after the newest keyframe, where an IMU and positions are all that there is."""
PATIENCE = 10
"""Positions refused in a row after which one is believed."""


@dataclass(frozen=True, eq=False)
class Keyframe:
    """Pose (4, 4) at a time, and its covariance (6, 6): translation, then rotation vector, in its frame."""

    t_ns: int
    pose: Floats
    covariance: Floats


@dataclass(eq=False)
class FixedLagWindow:
    """The keyframes that are solved for.

    Attributes
    ----------
    noise : SmootherNoise
    spacing, lag : float
        Seconds between keyframes, and from the first to the last of them.
    wait : float
        Seconds for which it waits for positions; then it begins without, and leaves out later ones.
    evidence : Evidence
        From the first keyframe on.
    times : (n,)
        Of the keyframes; empty until it has begun.
    first : int
        Number of the first keyframe.
    newest : Keyframe or None
        The last one.
    done : list of Keyframe
        Those that have left.
    kinds : frozenset of str
        Of evidence that had come when it began; others are left out.
    follower : Follower or None
        Where an IMU and positions are all that there is.
    """

    noise: SmootherNoise
    spacing: float
    lag: float
    wait: float
    evidence: Evidence = field(default_factory=Evidence)
    times: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    first: int = 0
    newest: Keyframe | None = None
    done: list[Keyframe] = field(default_factory=list[Keyframe])
    kinds: frozenset[str] = frozenset()
    follower: Follower | None = None
    _prior: Kept | None = None
    _solved: Kept | None = None
    _row: int = 0

    def advance(self, events: Sequence[Event], *, last: bool = False) -> Fit | None:
        """Take events in the order of time, make the keyframes that are due, and solve if there are any.

        Returns how the new positions fitted; `last` makes a keyframe at the end of dead reckoning.
        """
        self._add(events)
        due = self._due(last)
        if not len(due):
            return None
        times = np.concatenate([self.times, due])
        values = self._extend(times) if len(self.times) else self._begin(times)
        if values is None:
            return None
        since, self.times = (self.times[-1] if len(self.times) else times[0]), times
        fit = self._settle(values, int(since))
        while (self.times[-1] - self.times[0]) * 1e-9 > self.lag:
            self._forget()
        return fit

    def predict(self, t_ns: int) -> Keyframe | None:
        """Return where the body is at a time after the newest keyframe, by dead reckoning from there."""
        known = self.newest
        if known is None:
            return None
        ahead = self.evidence.since(known.t_ns)
        pair = np.array([known.t_ns, min(t_ns, ahead.reckoning[1])])
        if pair[1] <= pair[0]:
            return known
        moved, grown = self._motion_between(ahead, pair)
        reach = np.eye(6)
        reach[:3, 3:] = -rotations.skew(known.pose[:3, :3] @ moved[:3, 3])
        turn = np.kron(np.eye(2), known.pose[:3, :3])
        spread = reach @ known.covariance @ reach.T + turn @ grown @ turn.T
        return Keyframe(int(pair[1]), known.pose @ moved, spread)

    def _motion_between(self, ahead: Evidence, pair: Ints) -> tuple[Floats, Floats]:
        """Return the motion (4, 4) between two times, and its covariance (6, 6) in the axes of the body."""
        wheels, motion = paths_of(ahead, self.noise)
        path = path_of(ahead, self.noise)
        moved = se3.relative_motions(path_poses(path, pair))[0]
        if isinstance(path, PosePath):
            grown = path.between(pair[:1], pair[1:])[1][0]
            by_speed = 0.0 if motion is not None else SPEED_STD * (pair[1] - pair[0]) * 1e-9
            return moved, grown + np.diag([by_speed**2] * 3 + [0.0] * 3)
        sigmas = self.noise.wheels.sigmas(_one(wheels).between(pair[:1], pair[1:]))[0]
        return moved, np.diag(sigmas[SWAPPED] ** 2)

    def finish(self) -> list[Keyframe]:
        """Return all keyframes, after a last one at the end of dead reckoning."""
        self.advance((), last=True)
        if self._solved is None:
            return []
        values = self._known[0]
        spread = widen(covariances_of(self._stretch(), values), self.evidence)
        kept = zip(self.times.tolist(), poses_of(values), spread, strict=True)
        return [*self.done, *(Keyframe(*each) for each in kept)]

    def _add(self, events: Sequence[Event]) -> None:
        """Take events, but of no sensor that was silent until it had begun: its variables are not there."""
        self.evidence.add(events)
        if self.newest is None:
            self.kinds = self.evidence.kinds
        for name in self.evidence.kinds - self.kinds:
            setattr(self.evidence, name, [])

    def _due(self, last: bool) -> Ints:
        """Return the times of the keyframes to make."""
        if not (self.evidence.wheels or self.evidence.motion or self.evidence.followed):
            return np.zeros(0, np.int64)
        start, end = self.evidence.reckoning
        begun, step = len(self.times) > 0, round(self.spacing * NS)
        measured = self.evidence.times
        due = grid_times(int(self.times[-1]) + step if begun else start, end + 1, step, measured)
        if last:
            first = int(self.times[-1]) if begun else start
            due = keyframe_times(first, end, self.spacing, measured)[int(begun) :] if end > first else due[:0]
        return due if begun or len(due) > 1 else due[:0]

    def _begin(self, times: Ints) -> Any:
        """Return first values; None while it waits for positions, or they do not tell the heading."""
        waited = (times[-1] - times[0]) * 1e-9
        if waited < (LEAST_WAIT if self.evidence.places else self.wait):
            return None
        stretch = stretch_of(self.evidence, times, self.noise)
        if self.evidence.places and not len(stretch.hung):
            return None
        try:
            start = self.follower.start if self.follower else None
            return first_values(stretch, guess(stretch.path, times, stretch.hung, start))
        except HeadingUnknownError:
            return None

    def _extend(self, times: Ints) -> Any:
        """Return the values with those of new keyframes: poses by dead reckoning, all else as it was."""
        g, before = gtsam(), self._known[0]
        values = g.Values(before)
        last = self.first + len(self.times) - 1
        path = path_of(self.evidence.since(int(self.times[-1])), self.noise)
        reckoned = path_poses(path, times[len(self.times) - 1 :])
        base = before.atPose3(g.symbol("x", last)).matrix() @ se3.invert(reckoned[0])
        for i, pose in enumerate(base @ reckoned[1:], start=last + 1):
            values.insert(g.symbol("x", i), g.Pose3(pose))
            for name in "cvb":
                if before.exists(g.symbol(name, last)):
                    copy_value(before, g.symbol(name, last), values, g.symbol(name, i))
        return values

    def _settle(self, values: Any, since_ns: int) -> Fit:
        """Solve; leave out positions after a time that do not fit, and solve again."""
        stretch = self._stretch()
        values = solve(stretch, values)
        places = [each for each in self.evidence.places if self.times[0] <= each.t_ns <= self.times[-1]]
        new = np.array([each.t_ns > since_ns for each in places], dtype=np.bool_)
        spread = self._spread(stretch, values, stretch.hung.keyframe[new])
        judged = self._judge(stretch, values, spread, new)
        if not judged.used.all():
            wrong = {id(places[i]) for i in np.flatnonzero(new)[~judged.used]}
            kept = [each for each in self.evidence.places if id(each) not in wrong]
            self.evidence = replace(self.evidence, places=kept)
            stretch = self._stretch()
            values = solve(stretch, values)
            spread = self._spread(stretch, values, np.zeros(0, np.int64))
        self._solved = Kept(values, spread, stretch.links)
        spread = widen(spread[-1:], self.evidence)
        self.newest = Keyframe(int(self.times[-1]), poses_of(values)[-1], spread[0])
        return [places[i] for i in np.flatnonzero(new)], judged

    def _stretch(self) -> Stretch:
        prior = None if self._prior is None else self._prior.things
        return stretch_of(self.evidence, self.times, self.noise, self.first, prior)

    def _spread(self, stretch: Stretch, values: Any, also: Ints) -> Floats:
        """Return covariances (n, 6, 6) of the first keyframe, the last and others; NaN elsewhere."""
        which = sorted({0, len(self.times) - 1, *also.tolist()})
        spread = np.full((len(self.times), 6, 6), np.nan)
        spread[which] = covariances_of(stretch, values, which)
        return spread

    def _judge(self, stretch: Stretch, values: Any, spread: Floats, new: NDArray[np.bool_]) -> Judged:
        """Return how new positions fit; after `PATIENCE` that do not, one is believed."""
        hung = stretch.hung
        some = Hung(hung.keyframe[new], hung.arm[new], hung.position[new], hung.sigma[new])
        judged = judge(some, np.ones(len(some), np.bool_), poses_of(values), spread)
        used = judged.nis <= GATE
        for i, fits in enumerate(used):
            self._row = 0 if fits else self._row + 1
            used[i] = fits or self._row > PATIENCE
        return replace(judged, used=used)

    def _forget(self) -> None:
        """Sum up what the first keyframe and all before it say of the second, and let it go."""
        g, (values, spread, links) = gtsam(), self._known
        if np.isnan(spread[0]).any():
            spread = self._spread(self._stretch(), values, np.zeros(0, np.int64))
        oldest = widen(spread[:1], self.evidence)[0]
        self.done.append(Keyframe(int(self.times[0]), poses_of(values)[0], oldest))
        prior = None if self._prior is None else self._prior.things
        known = self.evidence.before(int(self.times[1]))
        pair = stretch_of(known, self.times[:2], self.noise, self.first, prior, goes_on=True)
        if links is not None:
            pair.links = links.piece(0, 1)
            self._remember(links)
        both, kept, rest = g.Values(), g.Values(), g.Values(values)
        for key in pair.keys(0):
            copy_value(values, key, both)
            rest.erase(key)
        for key in pair.keys(1):
            copy_value(values, key, both)
            copy_value(values, key, kept)
        left = eliminate(pair.linear(both), pair.keys(0))
        factors = [left.at(i) for i in range(left.size())]
        self._prior = Kept(*(g.LinearContainerFactor(each, kept) for each in factors if each is not None))
        self.times, self.first = self.times[1:], self.first + 1
        self.evidence = self.evidence.since(int(self.times[0]))
        self._solved = Kept(rest, spread[1:], links.piece(1, len(self.times)) if links else None)

    def _remember(self, links: WheelLinks) -> None:
        """Keep the usual speed, by which slow is told from fast, when samples that told it go."""
        usual = self.noise.wheels.usual_speed(links.span)
        self.noise = replace(self.noise, wheels=replace(self.noise.wheels, usual=usual))

    @property
    def biases(self) -> Floats | None:
        """Biases (6,) of the IMU at the newest keyframe: m/s2, then rad/s; None without one."""
        if self._solved is None:
            return None
        values, key = self._known[0], gtsam().symbol("b", self.first + len(self.times) - 1)
        return np.asarray(values.atConstantBias(key).vector()) if values.exists(key) else None

    @property
    def _known(self) -> tuple[Any, Floats, WheelLinks | None]:
        """Values, covariances (n, 6, 6) as far as they were asked for, and the wheels between keyframes."""
        return _one(self._solved).things  # pyright: ignore[reportReturnType]


def _one(thing: T | None) -> T:
    """Return what must be there by now."""
    if thing is None:
        raise TransectError("the window has not begun")
    return thing
