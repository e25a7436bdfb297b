"""Which sensors suit which conditions: how far each could be trusted, and what it still saw.

The second question of document 004, and its summary tables (4.2.4, 4.3.4), answered from recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.evaluation.tables import Cell, Table
from transect.geometry.robust import SIGMA_PER_MAD
from transect.recording import Recording, Stream
from transect.types import Image, LaserScan, RadarRange, RadarSpectrum, Verdict

from .events import AIR, RAIN, air_windows, conditions_among
from .report import mean_score
from .rules import masked_ratio, worst
from .table import VerdictTable

Layout = Literal["sensors", "matrix", "summary"]
MOST_SCANS = 200
"""Scans of a laser that are looked at, evenly spaced."""
FAR = 95
"""Percentile of a laser's ranges up to which it reaches."""
BEARING, LEAST_HITS, STEADY_M = np.radians(2.0), 4, 0.5
"""A radar has a target at a bearing (rad) where so many ranges of a second deviate by less (m)."""
USE, CARE = 0.9, 0.5
"""Mean scores from which on a sensor can be used, and used with care."""
LEAST_OBJECTS = 3
"""Windows with an object that are somebody."""


@dataclass(frozen=True)
class SensorRow:
    """One sensor in one recording; numbers are None where they were not measured.

    Attributes
    ----------
    score, ok : float or None
        Mean score, and part of the time that it was OK, of all windows that are known.
    meanwhile : float or None
        Mean score while there was something in the air; of all windows where it was clear.
    beams, reach_m : float or None
        Of a laser meanwhile: part of the beams that came back and are not masked; range that 95 % of all
        returns do not exceed.
    targets, strength_dB : float or None
        Of a radar meanwhile: bearings with a steady range in a second; median strength.
    contrast : float or None
        Of a camera meanwhile: part of the clear line's contrast that is left.
    """

    recording: str
    conditions: tuple[str, ...]
    sensor: str
    kind: str
    state: str
    score: float | None
    ok: float | None
    meanwhile: float | None
    beams: float | None = None
    reach_m: float | None = None
    targets: float | None = None
    strength_dB: float | None = None
    contrast: float | None = None

    @property
    def condition(self) -> str:
        """The conditions as a heading has them."""
        return " and ".join(self.conditions)

    @property
    def sees(self) -> str:
        """What it still saw, in words."""
        parts = [
            (self.beams, lambda v: f"{100 * v:.0f} % of beams"), (self.reach_m, lambda v: f"to {v:.1f} m"),
            (self.targets, lambda v: f"{v:.0f} targets"), (self.strength_dB, lambda v: f"{v:.0f} dB"),
            (self.contrast, lambda v: f"{100 * v:.0f} % of contrast"),
        ]  # fmt: skip
        return ", ".join(say(value) for value, say in parts if value is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def measure_sensors(recording: Recording, verdicts: VerdictTable) -> list[SensorRow]:
    """Return how far each sensor of a recording could be trusted, and what it still saw."""
    conditions = conditions_among(recording, verdicts)
    while_ns = _find_while(verdicts)
    streams: dict[str, list[str]] = {}
    for sensor, stream in zip(verdicts.column("sensor"), verdicts.column("stream"), strict=True):
        if stream not in streams.setdefault(sensor, []):
            streams[sensor].append(stream)
    rows: list[SensorRow] = []
    for sensor, windows in verdicts.by_sensor.items():
        known = [v for v in windows if v.state != "UNKNOWN"]
        ok_ns = sum(v.t1_ns - v.t0_ns for v in known if v.state == "OK")
        known_ns = sum(v.t1_ns - v.t0_ns for v in known)
        stream = next((recording[n] for n in streams[sensor] if recording[n].type in SEEING), None)
        seen = _look(stream, verdicts, while_ns) if stream else {}
        row = SensorRow(
            recording.name,
            conditions,
            sensor,
            stream.type.__name__ if stream else "",
            worst(v.state for v in known),
            mean_score(windows),
            ok_ns / known_ns if known_ns else None,
            mean_score(v for v in windows if _is_within(v, while_ns)),
            **seen,
        )
        rows.append(row)
    return rows


def _find_while(verdicts: VerdictTable) -> tuple[int, int]:
    """Return from when to when there was something in the air, ns; all the time where it was clear."""
    found = air_windows(verdicts) or list(verdicts)
    return min((v.t0_ns for v in found), default=0), max((v.t1_ns for v in found), default=0)


# What a sensor still sees


def _look(stream: Stream, verdicts: VerdictTable, while_ns: tuple[int, int]) -> dict[str, float | None]:
    return SEEING[stream.type](stream.between(*while_ns), verdicts.select(stream=stream.name), while_ns)


def _look_at_scans(
    laser: Stream, verdicts: VerdictTable, while_ns: tuple[int, int]
) -> dict[str, float | None]:
    if not len(laser):
        return {}
    chosen = laser.take(np.arange(len(laser)) % -(-len(laser) // MOST_SCANS) == 0)
    ranges = np.concatenate([sample.value.measured for sample in chosen])
    came = np.isfinite(ranges)
    windows = [v for v in verdicts.by_stream.get(laser.name, []) if _is_within(v, while_ns)]
    masked = float(np.mean([masked_ratio(v.region) for v in windows])) if windows else 0.0
    reach = float(np.percentile(ranges[came], FAR)) if came.any() else None
    return {"beams": max(float(came.mean()) - masked, 0.0), "reach_m": reach}


def _look_at_ranges(
    radar: Stream, verdicts: VerdictTable, while_ns: tuple[int, int]
) -> dict[str, float | None]:
    seconds = (radar.t_ns - while_ns[0]) // NS
    counts = [
        _count_targets(*radar.array("angle", "range")[seconds == second].T) for second in np.unique(seconds)
    ]
    found: dict[str, float | None] = {"targets": float(np.median(counts)) if counts else None}
    return found | _look_at_strength(radar, verdicts, while_ns)


def _count_targets(angle: Floats, ranges: Floats) -> int:
    """Return at how many bearings a radar's ranges of one second are steady."""
    place = np.rint(angle / BEARING).astype(np.int64)
    groups = [ranges[place == each] for each in np.unique(place)]
    return sum(
        bool(SIGMA_PER_MAD * np.median(np.abs(group - np.median(group))) < STEADY_M)
        for group in groups
        if len(group) >= LEAST_HITS
    )


def _look_at_strength(
    radar: Stream, verdicts: VerdictTable, while_ns: tuple[int, int]
) -> dict[str, float | None]:
    return {"strength_dB": _evidence(verdicts, "C06", "strength_dB", while_ns)}


def _look_at_images(
    camera: Stream, verdicts: VerdictTable, while_ns: tuple[int, int]
) -> dict[str, float | None]:
    lost = _evidence(verdicts, "C09", "contrast", while_ns)
    return {"contrast": None if lost is None else min(max(1.0 - lost, 0.0), 1.0)}


def _evidence(verdicts: VerdictTable, check: str, name: str, while_ns: tuple[int, int]) -> float | None:
    values = [
        v.evidence[name]
        for v in verdicts.select(check=check)
        if _is_within(v, while_ns) and name in v.evidence
    ]
    known = [value for value in values if value == value]
    return float(np.median(known)) if known else None


def _is_within(verdict: Verdict, while_ns: tuple[int, int]) -> bool:
    return verdict.t0_ns < while_ns[1] and while_ns[0] < verdict.t1_ns


_Look = Callable[[Stream, VerdictTable, tuple[int, int]], dict[str, float | None]]
SEEING: Mapping[type, _Look] = {
    LaserScan: _look_at_scans,
    RadarRange: _look_at_ranges,
    RadarSpectrum: _look_at_strength,
    Image: _look_at_images,
}


# Tables


def sensors_table(rows: Sequence[SensorRow]) -> Table:
    """Return a row for each recording and sensor."""
    several = len({row.recording for row in rows}) > len({row.condition for row in rows})
    first = ("condition", *(("recording",) if several else ()), "sensor", "still sees")
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        where = (row.condition, row.recording) if several else (row.condition,)
        ok = None if row.ok is None else round(100 * row.ok)
        cells.append((*where, row.sensor, row.sees, _round(row.score), ok, _round(row.meanwhile)))
    return Table((*first, "score", "OK [%]", "then"), tuple(cells), names=len(first))


def matrix_table(rows: Sequence[SensorRow]) -> Table:
    """Return a row for each sensor, a column for each recording: the mean score meanwhile."""
    recordings = list(dict.fromkeys(row.recording for row in rows))
    by = {(row.sensor, row.recording): row for row in rows}
    heads = {row.recording: row.condition for row in rows}
    unique = len(set(heads.values())) == len(heads)
    names = [heads[each] if unique else f"{each} ({heads[each]})" for each in recordings]
    cells: list[tuple[Cell, ...]] = [
        (
            sensor,
            *(_round(by[sensor, each].meanwhile) if (sensor, each) in by else None for each in recordings),
        )
        for sensor in dict.fromkeys(row.sensor for row in rows)
    ]
    return Table(("sensor", *names), tuple(cells))


GROUPS: Mapping[str, tuple[str, ...]] = {
    "lasers": ("LaserScan",),
    "radar": ("RadarRange", "RadarSpectrum"),
    "cameras": ("Image",),
}
SUMMARY = (*AIR, "human", "night")
ALWAYS = ("dust", "smoke", "rain", "human")
"""Columns of the document's summary tables, and fog; and those that both of them have."""


def summary_table(recordings: Sequence[tuple[Recording, VerdictTable]]) -> Table:
    """Return the document's tables 4.2.4 and 4.3.4 from data: a row for each recording.

    X is what the checks found, o what the recording is said to have and no check found, ? a cloud that may be
    dust, smoke or fog. Then the mean scores of its lasers, radars and cameras meanwhile.
    """
    said = [set(conditions_among(*each)) for each in recordings]
    found = [find_conditions(verdicts) for _, verdicts in recordings]
    columns = [
        word
        for word in SUMMARY
        if word in ALWAYS or any(word in s | f for s, f in zip(said, found, strict=True))
    ]
    cells: list[tuple[Cell, ...]] = []
    for (recording, verdicts), words, seen in zip(recordings, said, found, strict=True):
        marks = ["X" if w in seen else "?" if f"{w}?" in seen else "o" if w in words else "" for w in columns]
        rows = measure_sensors(recording, verdicts)
        scores = [_average([r.meanwhile for r in rows if r.kind in kinds]) for kinds in GROUPS.values()]
        cells.append((recording.name, *marks, *scores))
    return Table(("dataset", *columns, *GROUPS), tuple(cells), names=1 + len(columns))


def find_conditions(verdicts: VerdictTable) -> set[str]:
    """Return what the checks found: dust, smoke, rain, human, night; `dust?` where a cloud has no name."""
    found: set[str] = set()
    air = air_windows(verdicts)
    if any(v.reason == RAIN for v in air):
        found.add("rain")
    elif air:
        coloured = [v for v in air if v.check == "C09" and v.state == "BAD"]
        smoke = sum(v.reason == "SMOKE" for v in coloured)
        found |= {"dust?", "smoke?"} if not coloured else {"smoke"} if 2 * smoke > len(coloured) else {"dust"}
    objects = {v.t0_ns for v in verdicts.select(check="C01", reason="OBJECT")}
    found |= {"human"} if len(objects) >= LEAST_OBJECTS else set()
    dark = verdicts.select(check="C08")
    found |= (
        {"night"} if len(dark) and 2 * len(dark.select(reason="DARK", state="BAD")) > len(dark) else set()
    )
    return found


def advise(rows: Sequence[SensorRow]) -> list[str]:
    """Return a sentence for each condition: which sensors to use in it, and which not."""
    said: list[str] = []
    for condition in dict.fromkeys(row.condition for row in rows):
        of = {
            row.sensor: row.meanwhile
            for row in rows
            if row.condition == condition and row.meanwhile is not None
        }
        use = [name for name, score in of.items() if score >= USE]
        care = [name for name, score in of.items() if CARE <= score < USE]
        avoid = [name for name, score in of.items() if score < CARE]
        parts = [f"use {', '.join(use)}"] if use else ["no sensor can be used"]
        parts += [f"with care {', '.join(care)}"] if care else []
        parts += [f"not {', '.join(avoid)}"] if avoid else []
        said.append(f"{condition}: {'; '.join(parts)}")
    return said


def _average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _round(sum(known) / len(known)) if known else None


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
