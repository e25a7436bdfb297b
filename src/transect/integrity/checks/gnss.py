"""E03: has a satellite receiver lost its fix, and are single positions outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.engine.nodes import param
from transect.geometry.robust import SIGMA_PER_MAD
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import EARTH_RADIUS_M
from transect.integrity.windows import Window
from transect.types import FIX_TYPES, NavFix

MIDPOINT_SIGMA = float(np.sqrt(1.5))
"""Standard deviation of ``x1 - (x0 + x2) / 2`` over that of x."""
RTK_FLOAT = FIX_TYPES.index("rtk float")
LOST_FIXES = ("none", "2d")
"""Fixes without a position in space."""
SIGMA_COLUMNS = ("std_north", "std_east")


@dataclass(frozen=True)
class GnssSettings:
    """Numbers of the search for position outliers and steps."""

    # Half width of the position bound: the constant of SBAS for flight en route (RTCA DO-229).
    bound_sigmas: float = 6.18
    span_s: float = 60.0  # Past over which the usual scatter of fixes is measured.
    min_fixes: int = 10  # Fixes that determine the scatter.
    # Consecutive outliers that continue each other before they are accepted; spikes do not.
    max_spike_fixes: int = 3
    step_memory_s: float = 60.0  # Time for which a step is reported.
    max_undone_ratio: float = 0.3  # Ratio of a step that remains when it is undone.
    max_fix_interval_s: float = 3.0  # Time after which earlier positions predict nothing.


class Gnss(Check, id="E03", group="state", version=5, k_on=1):
    """Loss of the fix type, and positions that deviate from their neighbours, in sigmas.

    ``nu = p1 - (p0 + p2) / 2`` with the fixes p0, p2 before and after, over the root of ``1.5 sigma^2 +
    usual^2 + (a dt^2 / 2)^2``. `sigma` is declared, `usual` the median of `nu` over the last minute, `a`
    the robot's maximum acceleration. A lost fix counts 1 from RTK fixed to float, 2 from RTK to less, 3
    for none. ``6.18 sigma`` is a bound with k sigmas, not a certified protection level; it is compared
    with `alert` if that is set. A position that differs from the prediction of the last two accepted ones
    by more than k sigmas and that acceleration is masked at once; more than three consecutive ones that
    continue each other are accepted. Positions that stay there are a step: `stepped` is its size, until a
    step back, another fix type, or a minute has passed. Either position may be the right one, so a step
    is SUSPECT at most.

    Motive: AMEDS has fix types 0 to 7, and a column "RTK coverage" for each traverse.
    """

    settings = GnssSettings()

    lost = Limit(0.0, 3.0, "FIX_LOST", "", "levels of the fix type lost")
    innovation = Limit(4.0, settings.bound_sigmas, "NIS", "", "sigmas of a position from its neighbours")
    bound = Limit(1.0, 2.0, "NIS", "", "times the alert limit")
    stepped = Limit(
        settings.bound_sigmas,
        10 * settings.bound_sigmas,
        "POSITION_JUMP",
        "",
        "sigmas of a step of the position",
    )
    acceleration: float = param(3.0, ge=0.0, unit="m/s2", doc="maximum acceleration of the robot")
    alert: float = param(0.0, ge=0.0, unit="m", doc="alert limit of the k-sigma bound; 0: none")

    def reset(self) -> None:
        """Start without a fix."""
        self._best = -1
        self._prediction = PositionPrediction(self.acceleration, self.settings)

    def evaluate(self, fixes: Window[NavFix]) -> Finding | Unknown:
        """Judge the fix types of the window, and the positions that have both neighbours."""
        statistics, evidence = dict[str, float](), dict[str, float]()
        ranks = _ranks(fixes)
        if ranks:
            self._best = max(self._best, *ranks)
            statistics["lost"] = float(np.median([_steps_lost(rank, self._best) for rank in ranks]))
            evidence |= {"fix": float(np.median(ranks)), "best_fix": float(self._best)}
        sigma = _declared(fixes)
        if sigma.size:
            evidence["bound_m"] = self.settings.bound_sigmas * float(np.max(sigma))
            if self.alert:
                statistics["bound"] = evidence["bound_m"] / self.alert
        off = np.zeros(len(fixes), np.bool_)
        if fixes.has("lat", "lon"):
            off = self._prediction.find_spikes(fixes)
            statistics["stepped"], evidence["stepped_m"] = self._prediction.step_at(fixes.t1_ns / 1e9, ranks)
            nis = _innovation(fixes, self.acceleration, self.settings)
            if nis is not None:
                statistics["innovation"], evidence["off_m"], self._prediction.usual = nis
        if not statistics:
            return Unknown("TOO_FEW", n=len(fixes))
        scores = {name: self.limits[name].score(value) for name, value in statistics.items()}
        worst = min(((score, name) for name, score in scores.items() if score is not None), default=(1.0, ""))
        # Without a declared sigma there is no covariance to contradict.
        reason = "POSITION_JUMP" if worst[1] == "innovation" and not sigma.size else ""
        spikes = statistics.get("innovation", 0.0) > self.innovation.warn and not statistics.get("lost", 0.0)
        region = off[:, None] if off.any() or spikes else None
        floor = 0.0 if spikes or statistics.get("lost", 0.0) or statistics.get("bound", 0.0) > 1.0 else 0.2
        return Finding(statistics, len(fixes), evidence, reason, region=region, min_score=floor)


class PositionPrediction:
    """Predicts positions from the last two accepted ones, and classifies each new one at once."""

    def __init__(self, acceleration: float, settings: GnssSettings) -> None:
        self._settings = settings
        # usual deviation of a position from its neighbours, m; None while unknown
        self.usual: float | None = None
        self._acceleration = acceleration
        self._origin: Floats | None = None
        self._accepted: list[tuple[float, Floats]] = []
        self._outliers = 0
        self._last_outlier = (0.0, np.zeros(2))
        self._first_outlier: tuple[float, Floats, float] = (0.0, np.zeros(2), 1.0)
        self._step = (-np.inf, np.zeros(2), 1.0)
        self._kind = -1

    def step_at(self, t: float, ranks: list[int]) -> tuple[float, float]:
        """Return the size of the current step, in sigmas and in m."""
        kind = ranks[-1] if ranks else self._kind
        since, _, deviation = self._step
        if t - since > self._settings.step_memory_s or kind != self._kind:
            self._step = (-np.inf, np.zeros(2), 1.0)
        self._kind = kind
        length = float(np.linalg.norm(self._step[1]))
        return length / deviation, length

    def find_spikes(self, fixes: Window[Any]) -> Mask:
        """Return which positions (n,) of a window are outliers; windows come in order."""
        points, sigma = fixes.array("lat", "lon"), np.zeros(len(fixes))
        if fixes.has(*SIGMA_COLUMNS):
            sigma = np.nan_to_num(fixes.array(*SIGMA_COLUMNS).max(axis=1))
        known = np.isfinite(points).all(axis=1) & (np.abs(points) > 0).any(axis=1)
        if self._origin is None and known.any():
            self._origin = points[known][0]
        is_outlier = np.zeros(len(points), np.bool_)
        for i in np.flatnonzero(known):
            assert self._origin is not None
            metres = (points[i] - self._origin) * EARTH_RADIUS_M * np.array([1.0, np.cos(self._origin[0])])
            is_outlier[i] = self._is_outlier(fixes.t_ns[i] / 1e9, metres, float(sigma[i]))
        return is_outlier

    def _is_outlier(self, t: float, position: Floats, sigma: float) -> bool:
        """Return whether a position is an outlier; if not, accept it."""
        error, sigma_m, is_far = self._prediction_error(t, position, sigma)
        # The bound grows with time: a position within it may still have the first outlier's offset.
        stays = self._outliers > 0 and float(np.linalg.norm(error - self._first_outlier[1])) < float(
            np.linalg.norm(error)
        )
        self._outliers = (
            0 if not is_far else self._outliers + 1 if self._continues_outlier(t, position, sigma) else 1
        )
        self._last_outlier = t, position
        if self._outliers == 1:
            # A constant position does not predict motion, hence no offset.
            stuck = np.array_equal(self._accepted[0][1], self._accepted[1][1])
            self._first_outlier = t, np.zeros(2) if stuck else error, sigma_m
        if is_far and self._outliers <= self._settings.max_spike_fixes:
            return True
        if is_far or stays:
            self._add_step(t)
        self._accepted = [*([] if is_far else self._accepted[-1:]), (t, position)]
        return False

    def _continues_outlier(self, t: float, position: Floats, sigma: float) -> bool:
        """Return whether a position continues the previous outlier at the accepted ones' speed."""
        if not self._outliers:
            return False
        (t0, p0), (t1, p1), (before, last) = *self._accepted, self._last_outlier
        ahead = (t - before) / (t1 - t0)
        miss = float(np.linalg.norm(position - last - ahead * (p1 - p0)))
        deviation = np.hypot(sigma, (self.usual or 0.0) / MIDPOINT_SIGMA) * np.sqrt(2 + 2 * ahead**2)
        return miss <= self._settings.bound_sigmas * deviation + self._acceleration * (t - before) * (t - t0)

    def _add_step(self, t: float) -> None:
        """Combine the new step with the last one; they may cancel."""
        time, offset, sigma_m = self._first_outlier
        if t - time > self._settings.max_fix_interval_s:
            return
        since, before, known = self._step
        after, both = offset + before, float(np.hypot(sigma_m, known)) if np.isfinite(since) else sigma_m
        undone = np.linalg.norm(after) < max(
            self._settings.max_undone_ratio * np.linalg.norm(offset), self._settings.bound_sigmas * both
        )
        self._step = (-np.inf, np.zeros(2), 1.0) if undone else (t, after, both)

    def _prediction_error(self, t: float, position: Floats, sigma: float) -> tuple[Floats, float, bool]:
        """Return the prediction error (2,) m of a position, its sigma, and whether it is an outlier."""
        if self.usual is None or len(self._accepted) < 2:
            return np.zeros(2), 1.0, False
        (t0, p0), (t1, p1) = self._accepted
        if not (
            0 < t1 - t0 <= self._settings.max_fix_interval_s
            and 0 < t - t1 <= self._settings.max_fix_interval_s
        ):
            return np.zeros(2), 1.0, False
        ahead = (t - t1) / (t1 - t0)
        miss = position - p1 - ahead * (p1 - p0)
        deviation = float(
            np.hypot(sigma, self.usual / MIDPOINT_SIGMA) * np.sqrt(1 + (1 + ahead) ** 2 + ahead**2)
        )
        driven = self._acceleration * (t - t1) * (t - t0) / 2
        bound = self._settings.bound_sigmas * deviation + driven
        return miss, deviation, float(np.linalg.norm(miss)) > bound


def _ranks(fixes: Window[Any]) -> list[int]:
    return (
        [FIX_TYPES.index(fix) for fix in fixes.column("fix") if fix in FIX_TYPES] if fixes.has("fix") else []
    )


def _steps_lost(rank: int, best: int) -> int:
    if FIX_TYPES[rank] in LOST_FIXES:
        return 3
    if best >= RTK_FLOAT:
        return 0 if rank == best else 1 if rank >= RTK_FLOAT else 2
    return 0


def _declared(window: Window[Any]) -> Floats:
    """Return the larger horizontal sigma of each fix that declares one."""
    if not window.has(*SIGMA_COLUMNS):
        return np.zeros(0)
    sigma = window.array(*SIGMA_COLUMNS).max(axis=1)
    return sigma[np.isfinite(sigma) & (sigma > 0)]


def _innovation(
    fixes: Window[Any], acceleration: float, settings: GnssSettings
) -> tuple[float, float, float] | None:
    """Return the largest deviation from neighbours in the window, in sigmas and m, and the usual one, m.

    None with too few fixes.
    """
    past = fixes.history(settings.span_s)
    points = past.array("lat", "lon")
    known = np.isfinite(points).all(axis=1) & (np.abs(points) > 0).any(axis=1)
    t, points = past.t_ns[known] / 1e9, points[known]
    if len(points) < settings.min_fixes:
        return None
    metres = (points - points[0]) * EARTH_RADIUS_M * np.array([1.0, np.cos(points[0, 0])])
    before, after = np.diff(t)[:-1, None], np.diff(t)[1:, None]
    good = (before > 0) & (after > 0)
    part = np.divide(before, before + after, out=np.full_like(before, 0.5), where=good)
    deviations = np.linalg.norm(metres[1:-1] - (metres[:-2] * (1 - part) + metres[2:] * part), axis=1)
    usual = SIGMA_PER_MAD * float(np.median(deviations))
    sigma = np.zeros(len(deviations))
    if past.has(*SIGMA_COLUMNS):
        sigma = np.nan_to_num(past.array(*SIGMA_COLUMNS).max(axis=1))[known][1:-1]
    steps = np.maximum(before, after)[:, 0]
    allowed = np.sqrt((MIDPOINT_SIGMA * sigma) ** 2 + usual**2 + (acceleration * steps**2 / 2) ** 2)
    ratio = np.where(good[:, 0] & (allowed > 0), deviations / np.maximum(allowed, 1e-9), 0.0)
    new = t[2:] >= fixes.t0_ns / 1e9  # judged once the fix after it has come
    if not new.any():
        return None
    at = int(np.argmax(np.where(new, ratio, -1.0)))
    return float(ratio[at]), float(deviations[at]), usual
