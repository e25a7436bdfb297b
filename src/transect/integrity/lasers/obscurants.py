"""What lasers see that was not there before.

Checks of planar lasers share it: dust, rain and objects are all returns in front of what is usually there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.integrity.model import NO_BASELINE, Check, Finding, Surroundings, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import LaserScan

from .background import (
    CLEAR,
    CLOUD_RATIO_MOVING,
    LEAST,
    MAX_UNSTABLE_RATIO_MOVING,
    REMEMBERED,
    THICK,
    Background,
    Early,
    find_cloud,
)
from .free_space import FREE, NEW, REACH, ROUGH, SHORT, SLOW_S, SMOOTH, STRANGE, TAKEN, Sight, Space, poses_of
from .returns import find_again, find_porous, find_unstable, place_sweeps
from .sweeps import Sweeps, sweeps_of

STRANGERS = 0.7
"""Part of the returns from places that were not seen before, from which on nothing can be told."""
STANDING = 5
"""While the robot stands every so many of the beams are remembered for when it drives on."""
LINGERS = 4
"""Windows for which a cloud is expected to be there still."""
WIDE = np.radians(3.0)
"""Angle to each side in which a beam must see as far, for what it passes to be free."""
LEAST_SCANS = 3
"""Scans that a window must have."""


@dataclass(frozen=True, eq=False)
class Glance:
    """What a laser sees in a window by itself.

    Attributes
    ----------
    sweeps : Sweeps
    moves : bool or None
    poses : (n, 4, 4) array or None
        ``T_world_laser`` of the scans.
    seen_before : (s, d) int array or None
        What was known of the place of each return, where that tells what is early.
    early : Early or None
        None if nothing tells.
    """

    sweeps: Sweeps
    moves: bool | None
    poses: Floats | None
    seen_before: Ints | None
    early: Early | None

    @property
    def is_strange(self) -> bool:
        """Whether most returns are from places that were not seen before."""
        return self.seen_before is not None and _are_strange(self.sweeps, self.seen_before)


class Watch:
    """What a laser sees that was not there before.

    While it stands, what is early is told from the usual background. While it moves, and until the background
    is known, from the space through which beams went of late, if the robot's poses are known. A window is
    looked at in two steps: what it shows by itself, and what that means where a cloud is expected.
    """

    def __init__(self) -> None:
        self._background, self._space, self._sight = Background(), Space(), Sight()
        self._cloudy = 0
        self._unstable: deque[float] = deque(maxlen=REMEMBERED)

    def look(self, laser: Window[LaserScan], moving: Sequence[Window[Moving]], about: Surroundings) -> Glance:
        """Look at a window; windows come in order."""
        sweeps, moves = sweeps_of(laser, about), is_moving(moving)
        poses = poses_of(moving, laser.t_ns, about.frames, laser.stream.frame)
        if moves:
            self._background.forget()
        early, seen_before = None if moves else self._background.compare(sweeps), None
        if early is not None and early.share <= CLEAR:
            self._background.learn(sweeps)
        if poses is not None:
            self._space.move(poses[-1, :3, 3])
            if early is None:
                seen_before = self._look_up(sweeps, poses)
                early = self._find_new(sweeps, poses, seen_before)
                if _are_strange(sweeps, seen_before):
                    early = find_cloud(sweeps, poses) or early
        return Glance(sweeps, moves, poses, seen_before, early)

    def learn_reference(self, sweeps: Sweeps) -> None:
        """Learn the background from a window of a recording in clear air."""
        self._background.learn_reference(sweeps)

    def knows_cloud(self, glance: Glance) -> bool:
        """Tell whether a window shows a cloud by itself, and enough of it to tell other lasers."""
        early = self._expect(glance, ())
        return early is not None and early.is_decided and early.is_dense

    def conclude(self, glance: Glance, peers: tuple[str, ...]) -> Early | Unknown:
        """Return what is early in the window that was looked at; `peers` are lasers that know a cloud."""
        early = self._expect(glance, peers)
        if early is not None and glance.early is not None and glance.poses is not None:
            self._lay_beams(glance.early, glance.poses, cloudy=early.lingers or glance.early.is_cloud)
        if early is not None and not early.is_decided:
            return early
        if early is None or (early.share <= CLEAR and glance.is_strange):
            reason = "MOVING" if glance.moves and glance.poses is None else "LEARNING"
            return Unknown(reason, n=glance.sweeps.shape[0])
        if early.is_cloud:
            early = replace(early, porous=_find_dust(early, glance.poses))
        is_there = early.is_cloud and not early.is_rain and self._shows_cloud(glance, peers)
        if early.moving and early.unstable is not None and not (self._cloudy or early.is_cloud):
            self._unstable.append(early.sweeps.share(early.unstable))
        self._cloudy = LINGERS if is_there else max(0, self._cloudy - 1)
        return early

    def _shows_cloud(self, glance: Glance, peers: tuple[str, ...]) -> bool:
        """Tell whether a cloud is there by more than that one was expected: else it would stay for ever."""
        early = glance.early
        if early is None or not early.moving or peers or (early.is_decided and early.is_cloud):
            return True
        return self._is_unstable(early)

    def _is_unstable(self, early: Early) -> bool:
        """Tell whether more returns are unstable than usually are in clear air, as in a cloud."""
        if early.unstable is None:
            return False
        usual = self._usual_unstable
        least = CLOUD_RATIO_MOVING if usual is None else usual + MAX_UNSTABLE_RATIO_MOVING
        return early.sweeps.share(early.unstable) > least

    @property
    def _usual_unstable(self) -> float | None:
        """Part of the beams that is unstable in clear air, as from leaves; None while that is not known."""
        return float(np.median(self._unstable)) if len(self._unstable) >= LEAST else None

    def _expect(self, glance: Glance, peers: tuple[str, ...]) -> Early | None:
        """Return what is early, by what is expected: a cloud that was just there, or that peers know.

        Behind a dense cloud, and where nobody looked before, no place is known to be free. There returns from
        no surface are the cloud's, too, if they are many. A hedge beside the robot gives as many in clear
        air: unless another laser knows the cloud now, more returns must be unstable than usually are.
        """
        early = glance.early
        peers = peers if early is not None and (early.moving or not early.has_baseline) else ()
        if early is None or not (self._cloudy or peers):
            return early
        if not early.moving:
            return replace(early, lingers=True, peers=peers)
        if early.again is None:
            early = replace(early, again=find_again(early.sweeps, place_sweeps(early.sweeps, glance.poses)))
        many = early.sweeps.share(early.loose) >= THICK
        many = many and (bool(peers) or self._is_unstable(early))
        which = early.which | early.loose if many else early.which
        return replace(early, which=which, lingers=True, peers=peers)

    def _look_up(self, sweeps: Sweeps, poses: Floats) -> Ints:
        """Return what was known of the place of each return (s, d) before."""
        origins, towards, ranges = _rays_of(sweeps, poses)
        near = np.flatnonzero(ranges < REACH)
        seen_before = np.full(sweeps.ranges.shape, STRANGE)
        found = self._space.look_up(origins[near] + ranges[near, None] * towards[near])
        seen_before[sweeps.sweep[near], sweeps.direction[near]] = found
        return seen_before

    def _find_new(self, sweeps: Sweeps, poses: Floats, seen_before: Ints) -> Early:
        """Return what comes back from places through which beams went before."""
        new = seen_before == FREE
        lone = self._sight.find_lone(sweeps, poses) if sweeps.period_s > SLOW_S else None
        new = new if lone is None else new | lone
        again = find_again(sweeps, place_sweeps(sweeps, poses)) if new.any() or self._cloudy else None
        unknown = (sweeps.ranges < REACH) & (seen_before != TAKEN)
        usual = self._usual_unstable or 0.0
        early = Early(sweeps, new, unknown, moving=True, again=again, lone=lone, usual_unstable=usual)
        if early.share > CLEAR or self._cloudy or len(self._unstable) < REMEMBERED:
            early = replace(early, unstable=find_unstable(sweeps, poses))
        return early

    def _lay_beams(self, early: Early, poses: Floats, *, cloudy: bool) -> None:
        """Remember where beams went, and what they struck."""
        sweeps = early.sweeps
        stops = (sweeps.surface if cloudy else np.isfinite(sweeps.ranges)) & ~early.which
        smooth = sweeps.surface if early.again is None else sweeps.surface & early.again
        kind = np.where(smooth, SMOOTH, np.where(early.which, NEW, ROUGH))
        free = _clear_way(sweeps, stops)[sweeps.sweep, sweeps.direction]
        what = kind[sweeps.sweep, sweeps.direction]
        some = slice(None, None, 1 if early.moving else STANDING)
        origins, towards, ranges = (each[some] for each in _rays_of(sweeps, poses))
        self._space.lay_beams(origins, towards, free[some], ranges, what[some], cloudy=cloudy)


class Lookout:
    """The lasers of a robot: while it moves, those that know a cloud tell the others.

    All of them look at a window before any of them concludes, so that it does not matter who is asked first.
    """

    def __init__(self) -> None:
        self._watches: dict[str, Watch] = {}
        self._until_ns: int | None = None
        self._learned: dict[str, int] = {}
        self._found: dict[str, Early | Unknown | Exception] = {}

    @classmethod
    def of(cls, about: Surroundings) -> Lookout:
        """Return the one of a session, which all checks share."""
        return _LOOKOUTS.setdefault(about, cls())

    def find_early(
        self,
        laser: Window[LaserScan],
        peers: Sequence[Window[LaserScan]],
        moving: Sequence[Window[Moving]],
        about: Surroundings,
    ) -> Early | Unknown:
        """Return what is early in a window, which is looked at once; windows come in order."""
        if len(laser) < LEAST_SCANS:
            return Unknown("TOO_FEW", n=len(laser))
        if self._until_ns != laser.t1_ns:
            self._until_ns, self._found = laser.t1_ns, {}
            self._look([each for each in (laser, *peers) if len(each) >= LEAST_SCANS], moving, about)
        found = self._found[laser.stream.name]
        if isinstance(found, Exception):
            raise found
        return found

    def learn_reference(
        self, laser: Window[LaserScan], moving: Sequence[Window[Moving]], about: Surroundings
    ) -> None:
        """Learn the background of a laser from a window of a recording in clear air, once for all checks."""
        if (
            len(laser) < LEAST_SCANS
            or is_moving(moving)
            or self._learned.get(laser.stream.name) == laser.t1_ns
        ):
            return
        self._learned[laser.stream.name] = laser.t1_ns
        watch = self._watches.setdefault(laser.stream.name, Watch())
        watch.learn_reference(sweeps_of(laser, about))

    def _look(
        self, lasers: Sequence[Window[LaserScan]], moving: Sequence[Window[Moving]], about: Surroundings
    ) -> None:
        glances: dict[str, Glance] = {}
        knowing: list[str] = []
        for laser in sorted(lasers, key=lambda each: each.stream.name):
            name = laser.stream.name
            watch = self._watches.setdefault(name, Watch())
            try:
                glances[name] = watch.look(laser, moving, about)
                knowing += [name] if watch.knows_cloud(glances[name]) else []
            except Exception as error:  # noqa: BLE001 - for who asks of this laser; the others go on
                self._found[name] = error
        for name, glance in glances.items():
            try:
                others = tuple(each for each in knowing if each != name)
                self._found[name] = self._watches[name].conclude(glance, others)
            except Exception as error:  # noqa: BLE001
                self._found[name] = error


_LOOKOUTS: WeakKeyDictionary[Surroundings, Lookout] = WeakKeyDictionary()


def _are_strange(sweeps: Sweeps, seen_before: Ints) -> bool:
    """Tell whether most returns are from places that were not seen before, by what was known (s, d)."""
    near = sweeps.ranges < REACH
    strange = near & (seen_before == STRANGE)
    return bool(np.count_nonzero(strange) > STRANGERS * np.count_nonzero(near))


def _rays_of(sweeps: Sweeps, poses: Floats) -> tuple[Floats, Floats, Floats]:
    """Return origins (m, 3), unit vectors (m, 3) and ranges (m,) of all beams, by poses (n, 4, 4)."""
    angles, T = sweeps.angles[sweeps.direction], poses[sweeps.scan]
    towards = T[:, :3, 0] * np.cos(angles)[:, None] + T[:, :3, 1] * np.sin(angles)[:, None]
    return np.ascontiguousarray(T[:, :3, 3]), towards, sweeps.ranges[sweeps.sweep, sweeps.direction]


def _find_dust(early: Early, poses: Floats | None) -> Mask:
    """Return which returns (s, d) are from places through which beams go, and not smooth and there to stay.

    Where no beam tells, what was known before does.
    """
    sweeps = early.sweeps
    T = place_sweeps(sweeps, poses if early.moving else None)
    porous, untold = find_porous(sweeps, T)
    near = early.before if early.has_baseline and not early.moving else sweeps.ranges < REACH
    return ((near & porous) | (early.before & untold)) & ~(sweeps.surface & find_again(sweeps, T))


def _clear_way(sweeps: Sweeps, stops: Mask) -> Floats:
    """Return how far (s, d) beams show that nothing is there, m: not beyond what stops those beside them.

    A wall along which beams go comes back from a few places that are far apart; between them it is, too.
    """
    from scipy.ndimage import minimum_filter1d

    stop = np.where(stops, sweeps.ranges, np.inf)
    step = abs(float(sweeps.angles[1] - sweeps.angles[0])) if len(sweeps.angles) > 1 else np.inf
    around = 2 * max(1, round(WIDE / step)) + 1
    nearest = minimum_filter1d(stop, around, axis=1, mode="nearest")
    return np.minimum(np.fmin(nearest, sweeps.ranges) - SHORT, REACH)


class BackgroundCheck(Check):
    """A check of what a laser sees in front of what was there before; it writes `judge`."""

    def look(
        self,
        laser: Window[LaserScan],
        moving: Sequence[Window[Moving]] = (),
        peers: Sequence[Window[LaserScan]] = (),
    ) -> Finding | Unknown:
        """Find early returns and judge them."""
        early = Lookout.of(self.about).find_early(laser, peers, moving, self.about)
        if isinstance(early, Unknown):
            return early
        if not early.is_decided:
            return Unknown(NO_BASELINE, n=len(laser), evidence={"unstable": early.share})
        return self.judge(early, len(laser))

    def learn_reference(self, *windows: Any) -> None:
        """Learn the background from a window of a recording in clear air."""
        laser, moving, _ = windows
        Lookout.of(self.about).learn_reference(laser, moving, self.about)

    def judge(self, early: Early, n: int) -> Finding:
        """Return what the early returns of a window of n scans mean."""
        raise NotImplementedError
