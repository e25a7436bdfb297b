"""E01: are errors consistent with their declared uncertainty."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from transect.algorithms.fusion.innovation_gate import chi2_quantile
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine.nodes import param
from transect.evaluation.trajectory_errors import consistency
from transect.integrity.baselines import Baseline
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import EARTH_RADIUS_M
from transect.integrity.windows import Window
from transect.types import NavFix, Record

SIGMA_COLUMNS = ("std_north", "std_east")
NIS, COUNT, SCALE = "_nis", "_count", "_scale"
"""Suffixes of the columns of a fusion's innovations."""


@dataclass(frozen=True)
class NisSettings:
    """Numbers of the chi-squared tests."""

    span_s: float = 6.0  # Past over which squares are summed.
    segment_fixes: int = 9  # Fixes of a segment, and ...
    degree: int = 3  # ... degree of the polynomial in time that is fitted to them.
    recent_s: float = 2.5  # Most recent time, in which squares must be large as well.
    min_step_s: float = 0.1  # Time between fixes that are used; ...
    max_step_s: float = 0.55  # ... a robot's path is no cubic for long.
    min_freedom: int = 20  # Degrees of freedom of a test.
    recent_quantile: float = 0.9  # Quantile that the newest squares must exceed.
    false_alarm_ratio: float = 1e-4  # Probability of exceeding each of the two limits.
    min_usual_square: float = 0.2  # Below it errors persist from fix to fix, and do not show their size.
    min_sigma_growth: float = 1.5  # Growth of declared sigmas that explains small squares.
    fix_components: int = 3  # Components of a measurement of a fusion, and ...
    max_adapted_scale: float = 2.0  # ... factor on its variances that it may adapt by itself.


class _Fix(NamedTuple):
    """A fix: latitude and longitude (rad), declared sigmas to north and east (m), type."""

    t_ns: int
    position: Floats
    sigma: Floats
    kind: str


class _Segment(NamedTuple):
    """Squares of one segment: sum, degrees of freedom, end (ns), median sigma (m), fix type."""

    total: float
    freedom: int
    t_ns: int
    sigma: float
    kind: str


class Nis(Check, id="E01", group="state", version=2):
    """Sum of ``nu' S^-1 nu`` over six seconds against both limits of chi-squared.

    For fixes, nu are the residuals of a cubic through nine of them, and S is what they declare, with a
    `snap` that no cubic follows. For a fusion with recorded innovations it is its NIS, times the factor
    beyond 2 by which it widened declared variances. `large` is the sum over chi2(0.9999): errors are
    larger than declared, or there is a jump; it counts while the newest squares exceed chi2(0.9), too.
    `small` is chi2(0.0001) over the sum, relative to the usual squares of that fix type, and only if
    declared sigmas have grown and errors are independent between fixes: those of most receivers persist
    for minutes. At 95 % one window in twenty of a sound receiver would be SUSPECT.

    Motive: CDFF: a "single large error can compromise" an estimate.
    """

    settings = NisSettings()

    large = Limit(1.0, 2.0, "NIS", "", "times its chi-squared bound, normalised innovations squared")
    small = Limit(1.0, 2.0, "NIS", "", "times below its chi-squared bound, normalised innovations squared")
    snap: float = param(1.0, ge=0.0, unit="m/s4", doc="maximum snap of the robot")

    def reset(self) -> None:
        """Start without fixes."""
        self._segments: deque[_Segment] = deque()
        self._current: list[_Fix] = []
        self._sigma: defaultdict[str, Baseline] = defaultdict(Baseline)
        self._mean: defaultdict[str, Baseline] = defaultdict(Baseline)

    def evaluate(self, stream: Window[NavFix | Record]) -> Finding | Unknown:
        """Sum the squares of the last seconds."""
        if issubclass(stream.stream.type, Record):
            return self._judge_fusion(stream)
        if not stream.has("lat", "lon", *SIGMA_COLUMNS):
            return Unknown("NOT_DECLARED", "it declares no uncertainty", len(stream))
        self._add_fixes(stream)
        while self._segments and self._segments[0].t_ns < stream.t1_ns - round(self.settings.span_s * NS):
            self._segments.popleft()
        kind = self._segments[-1].kind if self._segments else ""
        parts = [part for part in self._segments if part.kind == kind]
        freedom = sum(part.freedom for part in parts)
        if freedom < self.settings.min_freedom:
            return Unknown("TOO_FEW", n=len(stream))
        return self._judge(parts, freedom, kind, len(stream))

    def _judge(self, parts: list[_Segment], freedom: int, kind: str, n: int) -> Finding:
        total, sigma = sum(part.total for part in parts), float(np.median([part.sigma for part in parts]))
        mean, usual, before = total / freedom, self._mean[kind].value, self._sigma[kind].value
        self._mean[kind].learn(mean)
        self._sigma[kind].learn(sigma)
        newest = [part for part in parts if part.t_ns > parts[-1].t_ns - round(self.settings.recent_s * NS)]
        large = total / chi2_quantile(1 - self.settings.false_alarm_ratio, freedom)
        is_over = sum(part.total for part in newest) < chi2_quantile(
            self.settings.recent_quantile, sum(part.freedom for part in newest)
        )
        statistics = {"large": min(large, self.large.warn) if is_over else large}
        if usual > self.settings.min_usual_square and sigma > self.settings.min_sigma_growth * before:
            expected = min(usual, 1.0) * chi2_quantile(self.settings.false_alarm_ratio, freedom)
            statistics["small"] = expected / max(total, 1e-9)
        evidence = {"nis": mean, "usual": usual, "sigma_m": sigma}
        return Finding(
            statistics,
            n,
            evidence,
            note=_advise(statistics),
            min_score=0.0 if kind else _min_score(statistics),
        )

    def _add_fixes(self, fixes: Window[Any]) -> None:
        """Divide the new fixes into segments, and sum the squares of each."""
        points, sigma = fixes.array("lat", "lon"), fixes.array(*SIGMA_COLUMNS)
        good = np.isfinite(points).all(axis=1) & np.isfinite(sigma).all(axis=1) & (sigma > 0).all(axis=1)
        kinds = fixes.column("fix") if fixes.has("fix") else [""] * len(fixes)
        for k in np.flatnonzero(good):
            new = _Fix(int(fixes.t_ns[k]), points[k], sigma[k], str(kinds[k]))
            step = (new.t_ns - self._current[-1].t_ns) / NS if self._current else np.inf
            if 0 <= step < self.settings.min_step_s - 1e-3:
                continue
            if self._current and (
                new.kind != self._current[-1].kind or not 0 < step < self.settings.max_step_s
            ):
                self._current = []
            self._current.append(new)
            if len(self._current) == self.settings.segment_fixes:
                self._segments.append(_square(self._current, self.snap, self.settings))
                self._current = []

    def _judge_fusion(self, stream: Window[Any]) -> Finding | Unknown:
        names = [name.removesuffix(NIS) for name in sorted(stream.windowed.names) if name.endswith(NIS)]
        past = stream.history(self.settings.span_s)
        worst, evidence, name_of_worst = 0.0, dict[str, float](), ""
        for name in (name for name in names if past.has(name + COUNT)):
            count = np.nan_to_num(past.array(name + COUNT)[:, 0])
            scale = past.array(name + SCALE)[:, 0] if past.has(name + SCALE) else np.ones(len(past))
            widened = np.maximum(1.0, scale / self.settings.max_adapted_scale)
            total = float(np.nansum(np.where(count > 0, count * past.array(name + NIS)[:, 0] * widened, 0.0)))
            freedom = int(count.sum()) * self.settings.fix_components
            if freedom < self.settings.min_freedom:
                continue
            short = name.removeprefix("values.")
            evidence[short] = total * self.settings.fix_components / freedom
            large = (
                total
                * self.settings.fix_components
                / chi2_quantile(1 - self.settings.false_alarm_ratio, freedom)
            )
            worst, name_of_worst = (large, short) if large > worst else (worst, name_of_worst)
        if not evidence:
            return Unknown("NO_NUMBERS" if not names else "TOO_FEW", n=len(stream))
        note = f"{name_of_worst} has larger errors than declared" if worst > self.large.warn else ""
        return Finding({"large": worst}, len(stream), evidence, note=note)


def _square(segment: list[_Fix], snap: float, settings: NisSettings) -> _Segment:
    """Return the squared residuals of fixes from a cubic through them."""
    t = np.array([fix.t_ns - segment[0].t_ns for fix in segment]) / NS
    points, sigma = np.array([fix.position for fix in segment]), np.array([fix.sigma for fix in segment])
    metres = (points - points[0]) * EARTH_RADIUS_M * np.array([1.0, np.cos(points[0, 0])])
    half = t[-1] / 2
    # The residual of a quartic from a cubic at its ends is 8/35 of it.
    spread = np.sqrt(sigma**2 + (snap * half**4 / 24 * 8 / 35) ** 2)
    powers = np.vander((t - half) / half, settings.degree + 1)
    off: Floats = np.empty_like(metres)
    for axis in range(2):
        weight = 1.0 / spread[:, axis, None]
        fitted = np.linalg.lstsq(powers * weight, metres[:, axis] * weight[:, 0], rcond=None)[0]
        off[:, axis] = metres[:, axis] - powers @ fitted
    squares = consistency(off, spread[:, :, None] ** 2 * np.eye(2)).nees
    freedom = 2 * (len(t) - settings.degree - 1)
    return _Segment(
        float(squares.sum()), freedom, segment[-1].t_ns, float(np.median(sigma)), segment[-1].kind
    )


def _advise(statistics: dict[str, float]) -> str:
    if statistics["large"] > 1.0:
        return "the errors are larger than the declared standard deviations"
    return (
        "the errors are smaller than the declared standard deviations"
        if statistics.get("small", 0.0) > 1
        else ""
    )


def _min_score(statistics: dict[str, float]) -> float:
    """Return the minimum score of a receiver without fix types, which it may have lost."""
    return 0.2 if statistics["large"] <= 1.0 else 0.0
