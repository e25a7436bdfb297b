"""E03: does a satellite receiver keep its fix, and do single positions stand out."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.engine.nodes import param
from transect.geometry.robust import NORMAL
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import FIX_TYPES, NavFix

EARTH = 6_371_000.0
PAST_S = 60.0
"""Over which the usual scatter of fixes is measured."""
LEAST = 10
"""Fixes that tell a scatter."""
K = 6.18
"""Deviations within which a position is taken to be; the constant that SBAS has for flight en route."""
SPREAD = float(np.sqrt(1.5))
"""Deviation of ``x1 - (x0 + x2) / 2`` over that of x."""
FLOAT, FIXED = FIX_TYPES.index("rtk float"), FIX_TYPES.index("rtk fixed")
LOST = ("none", "2d")
"""Fixes without a position in space."""
DEVIATIONS = ("std_north", "std_east")


PATIENCE = 3
"""Positions in a row that are off, and go on from one another, before they are believed: no spikes do."""
REMEMBERED_S = 60.0
"""Seconds for which a step is remembered."""
UNDONE = 0.3
"""Part of a step that may be left of it when it is undone."""
ALONE_S = 3.0
"""Seconds after which the way before tells nothing."""


class Gnss(Check, id="E03", group="state", version=5, k_on=1):
    """Steps of the fix type below the best one so far; positions off from their neighbours in deviations.

    ``nu = p1 - (p0 + p2) / 2`` with p0, p2 the fixes before and after, over the root of
    ``1.5 sigma^2 + usual^2 + (a dt^2 / 2)^2``. `sigma` is declared, `usual` the median of `nu` over the last
    minute, `a` its largest acceleration. A lost fix counts 1 from RTK fixed to float, 2 from RTK to less,
    3 for none. ``6.18 sigma`` is a bound with k deviations and no certified protection level; it is held
    against `alert` where that is set. Positions that are off from where the two good ones before them lead,
    by more than k deviations and that acceleration, are masked at once; more than three in a row that go on
    from one another are believed. If they stay there it was a step:
    `stepped` is where they are less where they led, until a step back, another type of fix, or a minute has
    passed; of two places nobody knows which is right, so it is SUSPECT at most.

    Motive: Document 000 has fix types 0 to 7, and a column "RTK coverage" for each traverse.
    """

    lost = Limit(0.0, 3.0, "FIX_LOST", "", "steps of the fix type that were lost")
    innovation = Limit(4.0, K, "NIS", "", "largest deviation of a position from its neighbours")
    bound = Limit(1.0, 2.0, "NIS", "", "k-sigma bound over the alert limit")
    stepped = Limit(K, 10 * K, "POSITION_JUMP", "", "steps of the position that nothing undid, in deviations")
    acceleration: float = param(3.0, ge=0.0, unit="m/s2", doc="of the robot, at most")
    alert: float = param(0.0, ge=0.0, unit="m", doc="largest k-sigma bound of use; 0: any")

    def reset(self) -> None:
        """No fix was seen yet."""
        self._best = -1
        self._course = Course(self.acceleration)

    def look(self, fixes: Window[NavFix]) -> Finding | Unknown:
        """Judge the fix types of the window, and the positions that have both neighbours."""
        statistics, evidence = dict[str, float](), dict[str, float]()
        ranks = _ranks(fixes)
        if ranks:
            self._best = max(self._best, *ranks)
            statistics["lost"] = float(np.median([_steps_lost(rank, self._best) for rank in ranks]))
            evidence |= {"fix": float(np.median(ranks)), "best_fix": float(self._best)}
        sigma = _declared(fixes)
        if sigma.size:
            evidence["bound_m"] = K * float(np.max(sigma))
            if self.alert:
                statistics["bound"] = evidence["bound_m"] / self.alert
        off = np.zeros(len(fixes), np.bool_)
        if fixes.has("lat", "lon"):
            off = self._course.find_spikes(fixes)
            statistics["stepped"], evidence["stepped_m"] = self._course.step_at(fixes.t1_ns / 1e9, ranks)
            nis = _innovation(fixes, self.acceleration)
            if nis is not None:
                statistics["innovation"], evidence["off_m"], self._course.usual = nis
        if not statistics:
            return Unknown("TOO_FEW", n=len(fixes))
        scores = {name: self.limits[name].score(value) for name, value in statistics.items()}
        worst = min(((score, name) for name, score in scores.items() if score is not None), default=(1.0, ""))
        # Where nothing is declared there is no covariance that it does not fit.
        reason = "POSITION_JUMP" if worst[1] == "innovation" and not sigma.size else ""
        spikes = statistics.get("innovation", 0.0) > self.innovation.warn and not statistics.get("lost", 0.0)
        region = off[:, None] if off.any() or spikes else None
        floor = 0.0 if spikes or statistics.get("lost", 0.0) or statistics.get("bound", 0.0) > 1.0 else 0.2
        return Finding(statistics, len(fixes), evidence, reason, region=region, floor=floor)


class Course:
    """Follows good positions, and tells of each new one at once whether it is far from where they lead.

    Attributes
    ----------
    usual : float or None
        By how much positions usually differ from their neighbours, m; None while that is not known.
    """

    def __init__(self, acceleration: float) -> None:
        self.usual: float | None = None
        self._acceleration = acceleration
        self._origin: Floats | None = None
        self._good: list[tuple[float, Floats]] = []
        self._row = 0
        self._off = (0.0, np.zeros(2))
        self._met: tuple[float, Floats, float] = (0.0, np.zeros(2), 1.0)
        self._stepped = (-np.inf, np.zeros(2), 1.0)
        self._kind = -1

    def step_at(self, t: float, ranks: list[int]) -> tuple[float, float]:
        """Return how far positions are from where they led before a step: in deviations, and in m."""
        kind = ranks[-1] if ranks else self._kind
        since, _, deviation = self._stepped
        if t - since > REMEMBERED_S or kind != self._kind:
            self._stepped = (-np.inf, np.zeros(2), 1.0)
        self._kind = kind
        length = float(np.linalg.norm(self._stepped[1]))
        return length / deviation, length

    def find_spikes(self, fixes: Window[Any]) -> Mask:
        """Return which positions (n,) of a window are off; windows come in order."""
        points, sigma = fixes.array("lat", "lon"), np.zeros(len(fixes))
        if fixes.has(*DEVIATIONS):
            sigma = np.nan_to_num(fixes.array(*DEVIATIONS).max(axis=1))
        known = np.isfinite(points).all(axis=1) & (np.abs(points) > 0).any(axis=1)
        if self._origin is None and known.any():
            self._origin = points[known][0]
        off = np.zeros(len(points), np.bool_)
        for i in np.flatnonzero(known):
            assert self._origin is not None
            metres = (points[i] - self._origin) * EARTH * np.array([1.0, np.cos(self._origin[0])])
            off[i] = self._is_off(fixes.t_ns[i] / 1e9, metres, float(sigma[i]))
        return off

    def _is_off(self, t: float, place: Floats, sigma: float) -> bool:
        """Tell whether a position is a spike; if not, go on from there."""
        miss, deviation, far = self._miss(t, place, sigma)
        # With time more may be driven: one that is near enough by now may still be off as the first was.
        stays = self._row > 0 and float(np.linalg.norm(miss - self._met[1])) < float(np.linalg.norm(miss))
        self._row = 0 if not far else self._row + 1 if self._goes_on(t, place, sigma) else 1
        self._off = t, place
        if self._row == 1:
            stuck = np.array_equal(
                self._good[0][1], self._good[1][1]
            )  # it led nowhere, and so misses nothing
            self._met = t, np.zeros(2) if stuck else miss, deviation
        if far and self._row <= PATIENCE:
            return True
        if far or stays:
            self._step(t)
        self._good = [*([] if far else self._good[-1:]), (t, place)]
        return False

    def _goes_on(self, t: float, place: Floats, sigma: float) -> bool:
        """Tell whether a position is where the one before, off as well, leads at the good ones' speed."""
        if not self._row:
            return False
        (t0, p0), (t1, p1), (before, last) = *self._good, self._off
        ahead = (t - before) / (t1 - t0)
        miss = float(np.linalg.norm(place - last - ahead * (p1 - p0)))
        deviation = np.hypot(sigma, (self.usual or 0.0) / SPREAD) * np.sqrt(2 + 2 * ahead**2)
        return miss <= K * deviation + self._acceleration * (t - before) * (t - t0)

    def _step(self, t: float) -> None:
        """Add the step that was met to the last one; both together may be none."""
        met, way, deviation = self._met
        if t - met > ALONE_S:
            return
        since, before, known = self._stepped
        after, both = way + before, float(np.hypot(deviation, known)) if np.isfinite(since) else deviation
        undone = np.linalg.norm(after) < max(UNDONE * np.linalg.norm(way), K * both)
        self._stepped = (-np.inf, np.zeros(2), 1.0) if undone else (t, after, both)

    def _miss(self, t: float, place: Floats, sigma: float) -> tuple[Floats, float, bool]:
        """Return by how much (2,) m a position misses where the way leads, its deviation, and whether far."""
        if self.usual is None or len(self._good) < 2:
            return np.zeros(2), 1.0, False
        (t0, p0), (t1, p1) = self._good
        if not (0 < t1 - t0 <= ALONE_S and 0 < t - t1 <= ALONE_S):
            return np.zeros(2), 1.0, False
        ahead = (t - t1) / (t1 - t0)
        miss = place - p1 - ahead * (p1 - p0)
        deviation = float(np.hypot(sigma, self.usual / SPREAD) * np.sqrt(1 + (1 + ahead) ** 2 + ahead**2))
        drive = self._acceleration * (t - t1) * (t - t0) / 2
        return miss, deviation, float(np.linalg.norm(miss)) > K * deviation + drive


def _ranks(fixes: Window[Any]) -> list[int]:
    return (
        [FIX_TYPES.index(fix) for fix in fixes.column("fix") if fix in FIX_TYPES] if fixes.has("fix") else []
    )


def _steps_lost(rank: int, best: int) -> int:
    if FIX_TYPES[rank] in LOST:
        return 3
    if best >= FLOAT:
        return 0 if rank == best else 1 if rank >= FLOAT else 2
    return 0


def _declared(window: Window[Any]) -> Floats:
    """Return the larger of the horizontal deviations that fixes declare, of those that do."""
    if not window.has(*DEVIATIONS):
        return np.zeros(0)
    sigma = window.array(*DEVIATIONS).max(axis=1)
    return sigma[np.isfinite(sigma) & (sigma > 0)]


def _innovation(fixes: Window[Any], acceleration: float) -> tuple[float, float, float] | None:
    """Return the largest innovation of the window, in deviations and in m, and the usual one, m.

    None with too few fixes.
    """
    past = fixes.history(PAST_S)
    points = past.array("lat", "lon")
    known = np.isfinite(points).all(axis=1) & (np.abs(points) > 0).any(axis=1)
    t, points = past.t_ns[known] / 1e9, points[known]
    if len(points) < LEAST:
        return None
    metres = (points - points[0]) * EARTH * np.array([1.0, np.cos(points[0, 0])])
    before, after = np.diff(t)[:-1, None], np.diff(t)[1:, None]
    good = (before > 0) & (after > 0)
    part = np.divide(before, before + after, out=np.full_like(before, 0.5), where=good)
    off = np.linalg.norm(metres[1:-1] - (metres[:-2] * (1 - part) + metres[2:] * part), axis=1)
    usual = NORMAL * float(np.median(off))
    sigma = np.zeros(len(off))
    if past.has(*DEVIATIONS):
        sigma = np.nan_to_num(past.array(*DEVIATIONS).max(axis=1))[known][1:-1]
    steps = np.maximum(before, after)[:, 0]
    allowed = np.sqrt((SPREAD * sigma) ** 2 + usual**2 + (acceleration * steps**2 / 2) ** 2)
    ratio = np.where(good[:, 0] & (allowed > 0), off / np.maximum(allowed, 1e-9), 0.0)
    new = t[2:] >= fixes.t0_ns / 1e9  # judged once the fix after it has come
    if not new.any():
        return None
    at = int(np.argmax(np.where(new, ratio, -1.0)))
    return float(ratio[at]), float(off[at]), usual
