"""Statements of SDI (5.1, 5.2) about dust, smoke and rain, tested with measured numbers.

The numbers are the evidence of verdicts: the ratio of early returns (C01), the ratio of isolated ones (C03),
the ratio that the radar sees through (X01), and the scatter of the radar's ranges (C06). Each is the median
over the windows in which the laser has early returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.integrity.table import VerdictTable
from transect.recording import Recording
from transect.types import LaserScan, RadarRange, Verdict

from .excerpts import CLEAR, conditions_among

CHECKS = ("C01", "C02", "C03", "X01", "C06")
"""Checks that supply the evidence."""
EARLY_RETURN_CHECKS = ("C01", "C02", "C03")
"""Checks that detect early returns."""


@dataclass(frozen=True)
class ObscurantEffect:
    """Effect of an obscurant or a person on a laser and a radar; unknown numbers are NaN."""

    early: float  # f_e: ratio of the laser's beams with an early return
    isolated: float  # ratio of the early returns that are isolated in space and time
    disagreement: float  # D: ratio of the early returns that the radar sees through
    scatter_m: float  # sigma of the radar's ranges at a bearing in these windows, ...
    clear_m: float  # ... and in all others
    windows: int  # with early returns


def measure_effect(verdicts: VerdictTable, laser: str, radar: str) -> ObscurantEffect:
    """Return the effect on a laser and a radar, by the evidence of verdicts."""
    selected = list(verdicts.select(stream=(laser, radar), check=CHECKS))
    of = {check: [v for v in selected if v.check == check] for check in CHECKS}
    early = {v.t0_ns for check in EARLY_RETURN_CHECKS for v in of[check] if v.reason and v.score is not None}
    confirmed = [v for v in of["X01"] if "confirmed" in v.evidence]
    scatter = [v for v in of["C06"] if v.stream == radar]
    return ObscurantEffect(
        early=_median(of["C01"], "share", early),
        isolated=_median(of["C03"], "isolated", early),
        disagreement=_median(confirmed, "disagreement", early),
        scatter_m=_median(scatter, "scatter_m", early),
        clear_m=_median([v for v in scatter if v.t0_ns not in early], "scatter_m"),
        windows=len(early),
    )


def _median(verdicts: Sequence[Verdict], name: str, windows: set[int] | None = None) -> float:
    values = [v.evidence.get(name, np.nan) for v in verdicts if windows is None or v.t0_ns in windows]
    known = np.array([value for value in values if value == value], np.float64)
    return float(np.median(known)) if len(known) else float("nan")


def choose_pair(recording: Recording) -> tuple[str, str]:
    """Return the names of the laser and the radar to compare: one tagged `horizontal`, else the first."""
    lasers = [s for s in recording if issubclass(s.type, LaserScan) and len(s)]
    radars = [s for s in recording if issubclass(s.type, RadarRange) and len(s)]
    lasers.sort(key=lambda stream: stream.tag != "horizontal")
    return lasers[0].name if lasers else "", radars[0].name if radars else ""


Effects = Mapping[str, ObscurantEffect]
"""Effects by condition."""


@dataclass(frozen=True)
class Statement:
    """A statement of SDI, and the test that decides it."""

    claim: str  # as a formula
    section: str
    quote: str
    needs: tuple[str, ...]  # conditions for which a recording is required
    values: Callable[[Effects], dict[str, float]]  # returns the arguments of `holds`
    holds: Callable[..., bool]


STATEMENTS = (
    Statement(
        "f_e(dust) > 10 f_e(rain)", "5.1, 5.2",
        "Lasers are extremely affected by dust and smoke. [...] The laser data appear not to be "
        "significantly affected by rain, except for a small number of isolated returns",
        ("dust", "rain"),
        lambda by: {"dust": by["dust"].early, "rain": by["rain"].early},
        lambda dust, rain: dust > 10 * rain,
    ),
    Statement(
        "isolated(rain) > 0.9 and isolated(smoke) < 0.2", "5.1, 5.2",
        "these points are isolated, spatially and temporally [...] in the presence of smoke: the laser "
        "detects it as it would detect an actual obstacle",
        ("rain", "smoke"),
        lambda by: {"rain": by["rain"].isolated, "smoke": by["smoke"].isolated},
        lambda rain, smoke: rain > 0.9 and smoke < 0.2,
    ),
    Statement(
        "D(dust) > 0.9", "5.1",
        "dust generates random points in the laser scans, located between the vehicle and the actual "
        "position of the obstacle, whereas the range measurements from the radar are not visibly affected",
        ("dust",),
        lambda by: {"dust": by["dust"].disagreement},
        lambda dust: dust > 0.9,
    ),
    Statement(
        "sigma_radar(dust) < 1.5 sigma_radar(clear)", "5.1",
        "it is much less affected by dust or smoke, except for a slight increase of the level of noise in "
        "the data",
        ("dust",),
        lambda by: {
            "dust": by["dust"].scatter_m,
            "clear": by[CLEAR].clear_m if CLEAR in by else by["dust"].clear_m,
        },
        lambda dust, clear: dust < 1.5 * clear,
    ),
    Statement(
        "D(human) < 0.3", "5.1",
        "a cloud of dust or smoke is almost seen as an actual obstacle. Thus, a basic interpretation of "
        "the data provided by them might lead to false detection",
        ("human",),
        lambda by: {"human": by["human"].disagreement},
        lambda human: human < 0.3,
    ),
)  # fmt: skip
"""The last statement is the control: the radar sees an actual obstacle, too."""


@dataclass(frozen=True)
class StatementResult:
    """A statement, its numbers, and whether it holds; None if a recording or a sensor is missing."""

    statement: Statement
    values: Mapping[str, float]
    holds: bool | None
    missing: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Return claim, numbers and result: `f_e(dust) > 10 f_e(rain): dust 0.41, rain 0.003: holds`."""
        if self.holds is None:
            unknown = "no laser and radar gave the numbers"
            why = f"no recording of {', '.join(self.missing)}" if self.missing else unknown
            return f"{self.statement.claim}: not measured, {why}"
        numbers = ", ".join(f"{name} {value:.2g}" for name, value in self.values.items())
        return f"{self.statement.claim}: {numbers}: {'holds' if self.holds else 'does NOT hold'}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        numbers = {name: value if value == value else None for name, value in self.values.items()}
        plain = {
            "claim": self.statement.claim,
            "section": self.statement.section,
            "quote": self.statement.quote,
        }
        return {**plain, "values": numbers, "holds": self.holds, "missing": list(self.missing)}


def judge_statements(recordings: Sequence[tuple[Recording, VerdictTable]]) -> list[StatementResult]:
    """Test the statements with recordings; each counts for its condition.

    Several recordings of a condition are combined by the median of each number. A recording with dust and a
    person is not used, as their early returns cannot be separated.
    """
    effects: dict[str, list[ObscurantEffect]] = {}
    for recording, verdicts in recordings:
        words = conditions_among(recording, verdicts)
        if len(words) == 1:
            effects.setdefault(words[0], []).append(measure_effect(verdicts, *choose_pair(recording)))
    by = {word: _average(each) for word, each in effects.items()}
    return [_judge(statement, by) for statement in STATEMENTS]


def _average(effects: Sequence[ObscurantEffect]) -> ObscurantEffect:
    rows: Floats = np.array([list(vars(effect).values()) for effect in effects], np.float64)
    medians = [_finite_median(column) for column in rows.T[:-1]]
    return ObscurantEffect(*medians, windows=sum(effect.windows for effect in effects))


def _finite_median(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _judge(statement: Statement, by: Effects) -> StatementResult:
    missing = tuple(word for word in statement.needs if word not in by)
    if missing:
        return StatementResult(statement, {}, None, missing)
    values = statement.values(by)
    known = all(value == value for value in values.values())
    return StatementResult(statement, values, statement.holds(**values) if known else None)
