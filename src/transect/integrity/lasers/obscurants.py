"""Detection of dust, smoke and rain in the returns of planar lasers, standing and moving.

Checks of planar lasers share it: dust, rain and objects are all returns in front of the usual scene.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.integrity.model import NO_BASELINE, Check, CheckContext, Finding, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import LaserScan

from .background import SETTINGS as BACKGROUND
from .background import EarlyReturnMask, RangeBackground, find_cloud
from .free_space import SETTINGS as FREE_SPACE
from .free_space import CellState, FreeSpaceGrid, ReturnKind, SweepHistory, poses_of
from .returns import find_porous, find_repeated, find_unstable, sweep_poses
from .sweeps import Sweeps, sweeps_of


@dataclass(frozen=True)
class ObscurantSettings:
    """Numbers of the detection of clouds over several windows."""

    # Ratio of returns from unobserved cells beyond which nothing can be concluded.
    max_unknown_ratio: float = 0.7
    standing_beam_step: int = 5  # At rest, every n-th beam is stored for when the robot drives on.
    expected_windows: int = 4  # Windows for which a cloud is expected to persist.
    # Angle to each side in which beams must see as far, for space to be free.
    free_angle_rad: float = float(np.radians(3.0))
    min_scans: int = 3  # Scans of a window.


SETTINGS = ObscurantSettings()


@dataclass(frozen=True, eq=False)
class WindowAnalysis:
    """Early returns of a laser in one window, without the context of other windows."""

    sweeps: Sweeps
    moves: bool | None
    poses: Floats | None  # (n, 4, 4) T_world_laser of the scans
    cells: Ints | None  # (s, d) `CellState` of each return, if early returns depend on it
    early: EarlyReturnMask | None  # None if undefined

    @property
    def is_mostly_unknown(self) -> bool:
        """Whether most returns are from unobserved cells."""
        return self.cells is not None and _are_mostly_unknown(self.sweeps, self.cells)


class ObscurantDetector:
    """Detects obscurants in the returns of one laser.

    At rest, early returns are nearer than the background. In motion, and until the background is known,
    they are from cells that beams crossed recently, if the robot's poses are known. A window is processed in
    two steps: its early returns, and their classification if a cloud is expected.
    """

    def __init__(self) -> None:
        self._background = RangeBackground()
        self._free_space = FreeSpaceGrid()
        self._sweep_history = SweepHistory()
        self._cloud_windows = 0
        self._unstable: deque[float] = deque(maxlen=BACKGROUND.max_clear_windows)

    def analyse(
        self, laser: Window[LaserScan], moving: Sequence[Window[Moving]], context: CheckContext
    ) -> WindowAnalysis:
        """Find the early returns of a window; windows come in order."""
        sweeps, moves = sweeps_of(laser, context), is_moving(moving)
        poses = poses_of(moving, laser.t_ns, context.frames, laser.stream.frame)
        if moves:
            self._background.forget()
        early, cells = None if moves else self._background.compare(sweeps), None
        if early is not None and early.ratio <= BACKGROUND.max_clear_ratio:
            self._background.learn(sweeps)
        if poses is not None:
            self._free_space.move(poses[-1, :3, 3])
            if early is None:
                cells = self._classify_cells(sweeps, poses)
                early = self._find_new(sweeps, poses, cells)
                if _are_mostly_unknown(sweeps, cells):
                    early = find_cloud(sweeps, poses) or early
        return WindowAnalysis(sweeps, moves, poses, cells, early)

    def learn_reference(self, sweeps: Sweeps) -> None:
        """Learn the background from a window of a recording in clear air."""
        self._background.learn_reference(sweeps)

    def sees_cloud(self, analysis: WindowAnalysis) -> bool:
        """Return whether a window by itself shows a cloud that is dense enough for other lasers."""
        early = self._apply_expectation(analysis, ())
        return early is not None and early.is_conclusive and early.is_dense

    def conclude(self, analysis: WindowAnalysis, peers: tuple[str, ...]) -> EarlyReturnMask | Unknown:
        """Return the early returns of an analysed window; `peers` are lasers that see a cloud."""
        early = self._apply_expectation(analysis, peers)
        if early is not None and analysis.early is not None and analysis.poses is not None:
            self._add_beams(
                analysis.early, analysis.poses, cloudy=early.cloud_expected or analysis.early.is_cloud
            )
        if early is not None and not early.is_conclusive:
            return early
        if early is None or (early.ratio <= BACKGROUND.max_clear_ratio and analysis.is_mostly_unknown):
            reason = "MOVING" if analysis.moves and analysis.poses is None else "LEARNING"
            return Unknown(reason, n=analysis.sweeps.shape[0])
        if early.is_cloud:
            early = replace(early, porous=_find_dust(early, analysis.poses))
        is_there = early.is_cloud and not early.is_rain and self._is_cloud_confirmed(analysis, peers)
        if early.moving and early.unstable is not None and not (self._cloud_windows or early.is_cloud):
            self._unstable.append(early.sweeps.ratio(early.unstable))
        self._cloud_windows = SETTINGS.expected_windows if is_there else max(0, self._cloud_windows - 1)
        return early

    def _is_cloud_confirmed(self, analysis: WindowAnalysis, peers: tuple[str, ...]) -> bool:
        """Return whether a cloud is seen, and not only expected: an expectation must not renew itself."""
        early = analysis.early
        if early is None or not early.moving or peers or (early.is_conclusive and early.is_cloud):
            return True
        return self._is_unstable(early)

    def _is_unstable(self, early: EarlyReturnMask) -> bool:
        """Return whether more returns are unstable than usual in clear air, as in a cloud."""
        if early.unstable is None:
            return False
        usual = self._usual_unstable_ratio
        threshold = (
            BACKGROUND.cloud_ratio_moving if usual is None else usual + BACKGROUND.max_unstable_ratio_moving
        )
        return early.sweeps.ratio(early.unstable) > threshold

    @property
    def _usual_unstable_ratio(self) -> float | None:
        """Ratio of beams that are unstable in clear air, as from leaves; None while unknown."""
        return (
            float(np.median(self._unstable)) if len(self._unstable) >= BACKGROUND.min_clear_windows else None
        )

    def _apply_expectation(self, analysis: WindowAnalysis, peers: tuple[str, ...]) -> EarlyReturnMask | None:
        """Return the early returns if a cloud is expected: after a recent one, or if peers see one.

        Behind a dense cloud, and in unobserved space, no cell is known to be free. There, returns from no
        surface belong to the cloud as well, if they are many. A hedge beside the robot has as many in
        clear air: unless another laser sees the cloud now, more returns must be unstable than usual.
        """
        early = analysis.early
        peers = peers if early is not None and (early.moving or not early.has_background) else ()
        if early is None or not (self._cloud_windows or peers):
            return early
        if not early.moving:
            return replace(early, cloud_expected=True, peers=peers)
        if early.repeated is None:
            early = replace(
                early, repeated=find_repeated(early.sweeps, sweep_poses(early.sweeps, analysis.poses))
            )
        many = early.sweeps.ratio(early.unexplained) >= BACKGROUND.min_dense_ratio
        many = many and (bool(peers) or self._is_unstable(early))
        mask = early.mask | early.unexplained if many else early.mask
        return replace(early, mask=mask, cloud_expected=True, peers=peers)

    def _classify_cells(self, sweeps: Sweeps, poses: Floats) -> Ints:
        """Return the `CellState` (s, d) of each return."""
        origins, directions, ranges = _rays_of(sweeps, poses)
        near = np.flatnonzero(ranges < FREE_SPACE.max_range_m)
        cells = np.full(sweeps.ranges.shape, CellState.UNKNOWN)
        found = self._free_space.classify(origins[near] + ranges[near, None] * directions[near])
        cells[sweeps.sweep[near], sweeps.direction[near]] = found
        return cells

    def _find_new(self, sweeps: Sweeps, poses: Floats, cells: Ints) -> EarlyReturnMask:
        """Return the returns from cells that beams crossed before."""
        new = cells == CellState.FREE
        isolated = (
            self._sweep_history.find_isolated(sweeps, poses)
            if sweeps.period_s > FREE_SPACE.slow_period_s
            else None
        )
        new = new if isolated is None else new | isolated
        repeated = (
            find_repeated(sweeps, sweep_poses(sweeps, poses)) if new.any() or self._cloud_windows else None
        )
        unknown = (sweeps.ranges < FREE_SPACE.max_range_m) & (cells != CellState.OCCUPIED)
        usual = self._usual_unstable_ratio or 0.0
        early = EarlyReturnMask(
            sweeps,
            new,
            unknown,
            moving=True,
            repeated=repeated,
            isolated_in_free_space=isolated,
            usual_unstable_ratio=usual,
        )
        if (
            early.ratio > BACKGROUND.max_clear_ratio
            or self._cloud_windows
            or len(self._unstable) < BACKGROUND.max_clear_windows
        ):
            early = replace(early, unstable=find_unstable(sweeps, poses))
        return early

    def _add_beams(self, early: EarlyReturnMask, poses: Floats, *, cloudy: bool) -> None:
        """Add the beams to the free-space grid."""
        sweeps = early.sweeps
        obstacles = (sweeps.surface if cloudy else np.isfinite(sweeps.ranges)) & ~early.mask
        smooth = sweeps.surface if early.repeated is None else sweeps.surface & early.repeated
        kind = np.where(smooth, ReturnKind.SMOOTH, np.where(early.mask, ReturnKind.NEW, ReturnKind.ROUGH))
        free = _free_lengths(sweeps, obstacles)[sweeps.sweep, sweeps.direction]
        what = kind[sweeps.sweep, sweeps.direction]
        selected = slice(None, None, 1 if early.moving else SETTINGS.standing_beam_step)
        origins, directions, ranges = (each[selected] for each in _rays_of(sweeps, poses))
        self._free_space.add_beams(origins, directions, free[selected], ranges, what[selected], cloudy=cloudy)


class ObscurantDetectors:
    """Detectors of the lasers of a robot: in motion, those that see a cloud inform the others.

    All lasers analyse a window before any of them concludes, so that the result does not depend on their
    order.
    """

    def __init__(self) -> None:
        self._detectors: dict[str, ObscurantDetector] = {}
        self._until_ns: int | None = None
        self._learned: dict[str, int] = {}
        self._found: dict[str, EarlyReturnMask | Unknown | Exception] = {}

    @classmethod
    def of(cls, context: CheckContext) -> ObscurantDetectors:
        """Return the detectors of a session, which all checks share."""
        return _DETECTORS.setdefault(context, cls())

    def find_early(
        self,
        laser: Window[LaserScan],
        peers: Sequence[Window[LaserScan]],
        moving: Sequence[Window[Moving]],
        context: CheckContext,
    ) -> EarlyReturnMask | Unknown:
        """Return the early returns of a window, computed once; windows come in order."""
        if len(laser) < SETTINGS.min_scans:
            return Unknown("TOO_FEW", n=len(laser))
        if self._until_ns != laser.t1_ns:
            self._until_ns, self._found = laser.t1_ns, {}
            self._analyse(
                [each for each in (laser, *peers) if len(each) >= SETTINGS.min_scans], moving, context
            )
        found = self._found[laser.stream.name]
        if isinstance(found, Exception):
            raise found
        return found

    def learn_reference(
        self, laser: Window[LaserScan], moving: Sequence[Window[Moving]], context: CheckContext
    ) -> None:
        """Learn the background of a laser from a recording in clear air, once for all checks."""
        if (
            len(laser) < SETTINGS.min_scans
            or is_moving(moving)
            or self._learned.get(laser.stream.name) == laser.t1_ns
        ):
            return
        self._learned[laser.stream.name] = laser.t1_ns
        detector = self._detectors.setdefault(laser.stream.name, ObscurantDetector())
        detector.learn_reference(sweeps_of(laser, context))

    def _analyse(
        self, lasers: Sequence[Window[LaserScan]], moving: Sequence[Window[Moving]], context: CheckContext
    ) -> None:
        analyses: dict[str, WindowAnalysis] = {}
        seeing: list[str] = []
        for laser in sorted(lasers, key=lambda each: each.stream.name):
            name = laser.stream.name
            detector = self._detectors.setdefault(name, ObscurantDetector())
            try:
                analyses[name] = detector.analyse(laser, moving, context)
                seeing += [name] if detector.sees_cloud(analyses[name]) else []
            except Exception as error:  # noqa: BLE001 - raised for checks of this laser only
                self._found[name] = error
        for name, analysis in analyses.items():
            try:
                others = tuple(each for each in seeing if each != name)
                self._found[name] = self._detectors[name].conclude(analysis, others)
            except Exception as error:  # noqa: BLE001
                self._found[name] = error


_DETECTORS: WeakKeyDictionary[CheckContext, ObscurantDetectors] = WeakKeyDictionary()


def _are_mostly_unknown(sweeps: Sweeps, cells: Ints) -> bool:
    """Return whether most returns are from unobserved cells, by their states (s, d)."""
    near = sweeps.ranges < FREE_SPACE.max_range_m
    unknown = near & (cells == CellState.UNKNOWN)
    return bool(np.count_nonzero(unknown) > SETTINGS.max_unknown_ratio * np.count_nonzero(near))


def _rays_of(sweeps: Sweeps, poses: Floats) -> tuple[Floats, Floats, Floats]:
    """Return origins (m, 3), unit vectors (m, 3) and ranges (m,) of all beams, by poses (n, 4, 4)."""
    angles, T = sweeps.angles[sweeps.direction], poses[sweeps.scan]
    directions = T[:, :3, 0] * np.cos(angles)[:, None] + T[:, :3, 1] * np.sin(angles)[:, None]
    return np.ascontiguousarray(T[:, :3, 3]), directions, sweeps.ranges[sweeps.sweep, sweeps.direction]


def _find_dust(early: EarlyReturnMask, poses: Floats | None) -> Mask:
    """Return the returns (s, d) from porous positions that are not smooth and persistent.

    Positions that no other beam observes are classified by earlier windows.
    """
    sweeps = early.sweeps
    T = sweep_poses(sweeps, poses if early.moving else None)
    porous, unobserved = find_porous(sweeps, T)
    near = (
        early.in_front
        if early.has_background and not early.moving
        else sweeps.ranges < FREE_SPACE.max_range_m
    )
    return ((near & porous) | (early.in_front & unobserved)) & ~(sweeps.surface & find_repeated(sweeps, T))


def _free_lengths(sweeps: Sweeps, obstacles: Mask) -> Floats:
    """Return how far (s, d) beams show free space, m: not beyond the obstacles of their neighbours.

    Beams along a wall end at a few distant points of it; the wall is between them, too.
    """
    from scipy.ndimage import minimum_filter1d

    obstacle_ranges = np.where(obstacles, sweeps.ranges, np.inf)
    step = abs(float(sweeps.angles[1] - sweeps.angles[0])) if len(sweeps.angles) > 1 else np.inf
    around = 2 * max(1, round(SETTINGS.free_angle_rad / step)) + 1
    nearest = minimum_filter1d(obstacle_ranges, around, axis=1, mode="nearest")
    return np.minimum(np.fmin(nearest, sweeps.ranges) - FREE_SPACE.clearance_m, FREE_SPACE.max_range_m)


class BackgroundCheck(Check):
    """Base class of checks of early returns; subclasses implement `judge`."""

    def evaluate(
        self,
        laser: Window[LaserScan],
        moving: Sequence[Window[Moving]] = (),
        peers: Sequence[Window[LaserScan]] = (),
    ) -> Finding | Unknown:
        """Find early returns and judge them."""
        early = ObscurantDetectors.of(self.context).find_early(laser, peers, moving, self.context)
        if isinstance(early, Unknown):
            return early
        if not early.is_conclusive:
            return Unknown(NO_BASELINE, n=len(laser), evidence={"unstable": early.ratio})
        return self.judge(early, len(laser))

    def learn_reference(self, *windows: Any) -> None:
        """Learn the background from a window of a recording in clear air."""
        laser, moving, _ = windows
        ObscurantDetectors.of(self.context).learn_reference(laser, moving, self.context)

    def judge(self, early: EarlyReturnMask, n: int) -> Finding:
        """Return the finding for the early returns of a window of n scans."""
        raise NotImplementedError
