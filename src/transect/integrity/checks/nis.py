"""E01: are errors as large as what is declared of them."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, NamedTuple

import numpy as np

from transect.algorithms.fusion.innovation_gate import limit
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine.nodes import param
from transect.evaluation.trajectory_errors import consistency
from transect.integrity.baselines import Usual
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import NavFix, Record

EARTH = 6_371_000.0
SPAN_S = 6.0
"""Of the past over which squares are added up."""
FIXES, DEGREE = 9, 3
"""Fixes of a stretch, and the degree of the polynomial in time that is laid through them."""
NEWEST_S = 2.5
"""Of it in which squares must be large as well: what is over is said no more."""
LEAST_STEP_S, LONGEST_STEP_S = 0.1, 0.55
"""From one fix to the next that is used, and within a stretch: a robot's way is no cubic for long."""
LEAST = 20
"""Degrees of freedom that tell anything."""
LIKELY = 0.9
"""Chance of smaller sums of the newest squares of a sound sensor."""
CHANCE = 1e-4
"""With which sums of a sound sensor are beyond each of the two limits."""
WHITE = 0.2
"""Usual squares below which errors last from fix to fix, so that these tell nothing of their size."""
GREW = 1.5
"""By which declared deviations must have grown, for small squares to be their fault."""
DEVIATIONS = ("std_north", "std_east")
NIS, COUNT, SCALE = "_nis", "_count", "_scale"
"""Ends of the columns of a fusion's innovations."""
NUMBERS, ADAPTED = 3, 2.0
"""Of a measurement of a fusion, and the factor on its variances that it may come to by itself."""


class _Fix(NamedTuple):
    """A fix: latitude and longitude (rad), declared deviations to north and east (m), type."""

    t_ns: int
    place: Floats
    sigma: Floats
    kind: str


class _Part(NamedTuple):
    """Squares of one stretch: their sum, degrees of freedom, when it ended (ns), deviation, type of fix."""

    total: float
    freedom: int
    t_ns: int
    sigma: float
    kind: str


class Nis(Check, id="E01", group="state", version=2):
    """Sum of ``nu' S^-1 nu`` over six seconds against the limits of chi-squared, on both sides.

    Of fixes nu is what they differ by from a cubic through nine of them, and S what they declare, with a
    `snap` that no cubic follows. Of a fusion whose innovations were recorded it is its NIS, times the factor
    beyond 2 by which it had to widen declared variances. `large` is the sum over chi2(0.9999): errors are
    larger than declared, or there is a jump; it counts while the newest squares are beyond chi2(0.9), too.
    `small` is chi2(0.0001) over the sum, by the squares that were usual for that type of fix, and only if
    declared deviations have grown and errors are new in each fix: those of most receivers last for minutes.
    With 95 % one window in twenty of a sound receiver would be SUSPECT.

    Motive: Document 003: a "single large error can compromise" an estimate.
    """

    large = Limit(1.0, 2.0, "NIS", "", "sum of the squares over what chance explains")
    small = Limit(1.0, 2.0, "NIS", "", "what chance explains over the sum of the squares")
    snap: float = param(1.0, ge=0.0, unit="m/s4", doc="of the robot: change of its acceleration's change")

    def reset(self) -> None:
        """Nothing was declared yet."""
        self._parts: deque[_Part] = deque()
        self._open: list[_Fix] = []
        self._sigma: defaultdict[str, Usual] = defaultdict(Usual)
        self._mean: defaultdict[str, Usual] = defaultdict(Usual)

    def look(self, stream: Window[NavFix | Record]) -> Finding | Unknown:
        """Add up the squares of the last seconds."""
        if issubclass(stream.stream.type, Record):
            return self._judge_fusion(stream)
        if not stream.has("lat", "lon", *DEVIATIONS):
            return Unknown("NOT_DECLARED", "it does not say how uncertain it is", len(stream))
        self._take(stream)
        while self._parts and self._parts[0].t_ns < stream.t1_ns - round(SPAN_S * NS):
            self._parts.popleft()
        kind = self._parts[-1].kind if self._parts else ""
        parts = [part for part in self._parts if part.kind == kind]
        freedom = sum(part.freedom for part in parts)
        if freedom < LEAST:
            return Unknown("TOO_FEW", n=len(stream))
        return self._judge(parts, freedom, kind, len(stream))

    def _judge(self, parts: list[_Part], freedom: int, kind: str, n: int) -> Finding:
        total, sigma = sum(part.total for part in parts), float(np.median([part.sigma for part in parts]))
        mean, usual, before = total / freedom, self._mean[kind].value, self._sigma[kind].value
        self._mean[kind].learn(mean)
        self._sigma[kind].learn(sigma)
        newest = [part for part in parts if part.t_ns > parts[-1].t_ns - round(NEWEST_S * NS)]
        large = total / limit(1 - CHANCE, freedom)
        is_over = sum(part.total for part in newest) < limit(LIKELY, sum(part.freedom for part in newest))
        statistics = {"large": min(large, self.large.warn) if is_over else large}
        if usual > WHITE and sigma > GREW * before:
            least = min(usual, 1.0) * limit(CHANCE, freedom)
            statistics["small"] = least / max(total, 1e-9)
        evidence = {"nis": mean, "usual": usual, "sigma_m": sigma}
        return Finding(
            statistics, n, evidence, note=_say(statistics), floor=0.0 if kind else _floor(statistics)
        )

    def _take(self, fixes: Window[Any]) -> None:
        """Cut the fixes that are new into stretches, and add up the squares of each."""
        points, sigma = fixes.array("lat", "lon"), fixes.array(*DEVIATIONS)
        good = np.isfinite(points).all(axis=1) & np.isfinite(sigma).all(axis=1) & (sigma > 0).all(axis=1)
        kinds = fixes.column("fix") if fixes.has("fix") else [""] * len(fixes)
        for k in np.flatnonzero(good):
            new = _Fix(int(fixes.t_ns[k]), points[k], sigma[k], str(kinds[k]))
            step = (new.t_ns - self._open[-1].t_ns) / NS if self._open else np.inf
            if 0 <= step < LEAST_STEP_S - 1e-3:
                continue
            if self._open and (new.kind != self._open[-1].kind or not 0 < step < LONGEST_STEP_S):
                self._open = []
            self._open.append(new)
            if len(self._open) == FIXES:
                self._parts.append(_square(self._open, self.snap))
                self._open = []

    def _judge_fusion(self, stream: Window[Any]) -> Finding | Unknown:
        names = [name.removesuffix(NIS) for name in sorted(stream.track.names) if name.endswith(NIS)]
        past = stream.history(SPAN_S)
        worst, evidence, said = 0.0, dict[str, float](), ""
        for name in (name for name in names if past.has(name + COUNT)):
            count = np.nan_to_num(past.array(name + COUNT)[:, 0])
            scale = past.array(name + SCALE)[:, 0] if past.has(name + SCALE) else np.ones(len(past))
            widened = np.maximum(1.0, scale / ADAPTED)
            total = float(np.nansum(np.where(count > 0, count * past.array(name + NIS)[:, 0] * widened, 0.0)))
            freedom = int(count.sum()) * NUMBERS
            if freedom < LEAST:
                continue
            short = name.removeprefix("values.")
            evidence[short] = total * NUMBERS / freedom
            large = total * NUMBERS / limit(1 - CHANCE, freedom)
            worst, said = (large, short) if large > worst else (worst, said)
        if not evidence:
            return Unknown("NO_NUMBERS" if not names else "TOO_FEW", n=len(stream))
        note = f"{said} errs more than it declares" if worst > self.large.warn else ""
        return Finding({"large": worst}, len(stream), evidence, note=note)


def _square(stretch: list[_Fix], snap: float) -> _Part:
    """Return the squares of what fixes differ by from a cubic through them."""
    t = np.array([fix.t_ns - stretch[0].t_ns for fix in stretch]) / NS
    points, sigma = np.array([fix.place for fix in stretch]), np.array([fix.sigma for fix in stretch])
    metres = (points - points[0]) * EARTH * np.array([1.0, np.cos(points[0, 0])])
    half = t[-1] / 2
    # What a quartic leaves over a cubic at its ends is 8/35 of it.
    spread = np.sqrt(sigma**2 + (snap * half**4 / 24 * 8 / 35) ** 2)
    powers = np.vander((t - half) / half, DEGREE + 1)
    off: Floats = np.empty_like(metres)
    for axis in range(2):
        weight = 1.0 / spread[:, axis, None]
        fitted = np.linalg.lstsq(powers * weight, metres[:, axis] * weight[:, 0], rcond=None)[0]
        off[:, axis] = metres[:, axis] - powers @ fitted
    squares = consistency(off, spread[:, :, None] ** 2 * np.eye(2)).nees
    freedom = 2 * (len(t) - DEGREE - 1)
    return _Part(float(squares.sum()), freedom, stretch[-1].t_ns, float(np.median(sigma)), stretch[-1].kind)


def _say(statistics: dict[str, float]) -> str:
    if statistics["large"] > 1.0:
        return "it errs more than it declares; declare larger deviations"
    return (
        "it errs less than it declares; declare smaller deviations"
        if statistics.get("small", 0.0) > 1
        else ""
    )


def _floor(statistics: dict[str, float]) -> float:
    """Return the smallest score of a receiver that does not tell its type of fix: it may have lost that."""
    return 0.2 if statistics["large"] <= 1.0 else 0.0
