"""What document 004 says of dust, smoke and rain (5.1, 5.2), as assertions about measured numbers.

The numbers are the evidence of verdicts: the share of early returns (C01), how many of them are alone (C03),
how many the radar sees through (X01), and how much the radar's ranges scatter (C06). Each is the median over
the windows in which the laser came upon something.
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

from .shots import CLEAR, conditions_among

CHECKS = ("C01", "C02", "C03", "X01", "C06")
"""Checks whose evidence is needed."""
FOUND = ("C01", "C02", "C03")
"""Checks that say that there is something in front of what is usual."""


@dataclass(frozen=True)
class Effect:
    """What the air, or somebody, did to a laser and a radar; NaN where it was not measured.

    Attributes
    ----------
    early : float
        f_e, the part of the laser's beams that come back early.
    isolated : float
        The part of those that are alone, in space and in time.
    disagreement : float
        D, the part of those that the radar sees through.
    scatter_m, clear_m : float
        Deviation of the radar's ranges at a bearing, meanwhile, and in all other windows, m.
    windows : int
        In how many windows the laser came upon something.
    """

    early: float
    isolated: float
    disagreement: float
    scatter_m: float
    clear_m: float
    windows: int


def measure_effect(verdicts: VerdictTable, laser: str, radar: str) -> Effect:
    """Return what was done to a laser and a radar, by the evidence of verdicts."""
    mine = list(verdicts.select(stream=(laser, radar), check=CHECKS))
    of = {check: [v for v in mine if v.check == check] for check in CHECKS}
    found = {v.t0_ns for check in FOUND for v in of[check] if v.reason and v.score is not None}
    held = [v for v in of["X01"] if "confirmed" in v.evidence]
    scatter = [v for v in of["C06"] if v.stream == radar]
    return Effect(
        early=_median(of["C01"], "share", found),
        isolated=_median(of["C03"], "isolated", found),
        disagreement=_median(held, "disagreement", found),
        scatter_m=_median(scatter, "scatter_m", found),
        clear_m=_median([v for v in scatter if v.t0_ns not in found], "scatter_m"),
        windows=len(found),
    )


def _median(verdicts: Sequence[Verdict], name: str, windows: set[int] | None = None) -> float:
    values = [v.evidence.get(name, np.nan) for v in verdicts if windows is None or v.t0_ns in windows]
    known = np.array([value for value in values if value == value], np.float64)
    return float(np.median(known)) if len(known) else float("nan")


def choose_pair(recording: Recording) -> tuple[str, str]:
    """Return the laser and the radar that are compared: one that is tagged horizontal, else the first."""
    lasers = [s for s in recording if issubclass(s.type, LaserScan) and len(s)]
    radars = [s for s in recording if issubclass(s.type, RadarRange) and len(s)]
    lasers.sort(key=lambda stream: stream.tag != "horizontal")
    return lasers[0].name if lasers else "", radars[0].name if radars else ""


Effects = Mapping[str, Effect]
"""By condition."""


@dataclass(frozen=True)
class Statement:
    """One thing that the document says, and the numbers that decide it.

    Attributes
    ----------
    claim : str
        As a formula.
    section, quote : str
        Where the document says so, and in which words.
    needs : tuple of str
        Conditions of which there must be a recording.
    values : callable
        Returns the numbers by name, of which `holds` takes each.
    holds : callable
    """

    claim: str
    section: str
    quote: str
    needs: tuple[str, ...]
    values: Callable[[Effects], dict[str, float]]
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
"""The last one is the other side of the coin: what is an actual obstacle, the radar sees too."""


@dataclass(frozen=True)
class Outcome:
    """A statement, its numbers, and whether it holds; None where a recording or a sensor lacks."""

    statement: Statement
    values: Mapping[str, float]
    holds: bool | None
    missing: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Return claim, numbers and outcome: `f_e(dust) > 10 f_e(rain): dust 0.41, rain 0.003: holds`."""
        if self.holds is None:
            unknown = "no laser and radar gave the numbers"
            lacks = f"no recording of {', '.join(self.missing)}" if self.missing else unknown
            return f"{self.statement.claim}: not measured, {lacks}"
        numbers = ", ".join(f"{name} {value:.2g}" for name, value in self.values.items())
        return f"{self.statement.claim}: {numbers}: {'holds' if self.holds else 'does NOT hold'}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        numbers = {name: value if value == value else None for name, value in self.values.items()}
        plain = {
            "claim": self.statement.claim,
            "section": self.statement.section,
            "quote": self.statement.quote,
        }
        return {**plain, "values": numbers, "holds": self.holds, "missing": list(self.missing)}


def judge_statements(recordings: Sequence[tuple[Recording, VerdictTable]]) -> list[Outcome]:
    """Return whether the statements hold in recordings, of which each counts for its conditions.

    Several recordings of a condition count as one by the median of each number. A recording of dust with
    somebody in it counts for neither: who came back early cannot be told.
    """
    effects: dict[str, list[Effect]] = {}
    for recording, verdicts in recordings:
        words = conditions_among(recording, verdicts)
        if len(words) == 1:
            effects.setdefault(words[0], []).append(measure_effect(verdicts, *choose_pair(recording)))
    by = {word: _average(each) for word, each in effects.items()}
    return [_judge(statement, by) for statement in STATEMENTS]


def _average(effects: Sequence[Effect]) -> Effect:
    rows: Floats = np.array([list(vars(effect).values()) for effect in effects], np.float64)
    medians = [_middle(column) for column in rows.T[:-1]]
    return Effect(*medians, windows=sum(effect.windows for effect in effects))


def _middle(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")


def _judge(statement: Statement, by: Effects) -> Outcome:
    missing = tuple(word for word in statement.needs if word not in by)
    if missing:
        return Outcome(statement, {}, None, missing)
    values = statement.values(by)
    known = all(value == value for value in values.values())
    return Outcome(statement, values, statement.holds(**values) if known else None)
