"""Suitability of sensors for conditions: mean scores, and the remaining range, targets and contrast.

The tables correspond to the summary tables 4.2.4 and 4.3.4 of the Marulan data set (SDI).
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


@dataclass(frozen=True)
class SuitabilitySettings:
    """Numbers of the measurements, and of the advice."""

    max_scans: int = 200  # Scans of a laser that are used, evenly spaced.
    range_percentile: float = 95.0  # Percentile of a laser's ranges that is its range.
    bearing_width_rad: float = float(np.radians(2.0))  # A radar has a target at a bearing if ...
    min_target_ranges: int = 4  # ... this number of ranges in a second ...
    max_target_sigma_m: float = 0.5  # ... have a smaller sigma.
    min_usable_score: float = 0.9  # Mean score of a sensor that can be used, ...
    min_limited_score: float = 0.5  # ... or used with care.
    min_object_windows: int = 3  # Windows with an object that indicate a person.


SETTINGS = SuitabilitySettings()


@dataclass(frozen=True)
class SensorRow:
    """One sensor in one recording; unknown numbers are None.

    `meanwhile` and the numbers after it are for the time with an obscurant; for all of a clear recording.
    """

    recording: str
    conditions: tuple[str, ...]
    sensor: str
    kind: str
    state: str
    score: float | None  # mean over all known windows
    ok: float | None  # ratio of the time
    meanwhile: float | None  # mean score
    beams: float | None = None  # laser: ratio of the beams with a return that is not masked
    reach_m: float | None = None  # laser: 95th percentile of the ranges
    targets: float | None = None  # radar: median number of bearings with a target in a second
    strength_dB: float | None = None  # radar: median strength
    contrast: float | None = None  # camera: remaining ratio of the contrast in clear air

    @property
    def condition(self) -> str:
        """The conditions as a heading."""
        return " and ".join(self.conditions)

    @property
    def sees(self) -> str:
        """The remaining measurements in words."""
        parts = [
            (self.beams, lambda v: f"{100 * v:.0f} % of beams"), (self.reach_m, lambda v: f"to {v:.1f} m"),
            (self.targets, lambda v: f"{v:.0f} targets"), (self.strength_dB, lambda v: f"{v:.0f} dB"),
            (self.contrast, lambda v: f"{100 * v:.0f} % of contrast"),
        ]  # fmt: skip
        return ", ".join(say(value) for value, say in parts if value is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return asdict(self)


def measure_sensors(recording: Recording, verdicts: VerdictTable) -> list[SensorRow]:
    """Return scores and remaining measurements of each sensor of a recording."""
    conditions = conditions_among(recording, verdicts)
    span_ns = _obscured_span(verdicts)
    streams: dict[str, list[str]] = {}
    for sensor, stream in zip(verdicts.column("sensor"), verdicts.column("stream"), strict=True):
        if stream not in streams.setdefault(sensor, []):
            streams[sensor].append(stream)
    rows: list[SensorRow] = []
    for sensor, windows in verdicts.by_sensor.items():
        known = [v for v in windows if v.state != "UNKNOWN"]
        ok_ns = sum(v.t1_ns - v.t0_ns for v in known if v.state == "OK")
        known_ns = sum(v.t1_ns - v.t0_ns for v in known)
        stream = next((recording[n] for n in streams[sensor] if recording[n].type in MEASUREMENTS), None)
        measured = _measure(stream, verdicts, span_ns) if stream else {}
        row = SensorRow(
            recording.name,
            conditions,
            sensor,
            stream.type.__name__ if stream else "",
            worst(v.state for v in known),
            mean_score(windows),
            ok_ns / known_ns if known_ns else None,
            mean_score(v for v in windows if _overlaps(v, span_ns)),
            **measured,
        )
        rows.append(row)
    return rows


def _obscured_span(verdicts: VerdictTable) -> tuple[int, int]:
    """Return start and end of the time with an obscurant, ns; of all verdicts without one."""
    found = air_windows(verdicts) or list(verdicts)
    return min((v.t0_ns for v in found), default=0), max((v.t1_ns for v in found), default=0)


# Measurements of each type of sensor


def _measure(stream: Stream, verdicts: VerdictTable, span_ns: tuple[int, int]) -> dict[str, float | None]:
    return MEASUREMENTS[stream.type](stream.between(*span_ns), verdicts.select(stream=stream.name), span_ns)


def _measure_scans(
    laser: Stream, verdicts: VerdictTable, span_ns: tuple[int, int]
) -> dict[str, float | None]:
    if not len(laser):
        return {}
    chosen = laser.take(np.arange(len(laser)) % -(-len(laser) // SETTINGS.max_scans) == 0)
    ranges = np.concatenate([sample.value.measured for sample in chosen])
    returned = np.isfinite(ranges)
    windows = [v for v in verdicts.by_stream.get(laser.name, []) if _overlaps(v, span_ns)]
    masked = float(np.mean([masked_ratio(v.region) for v in windows])) if windows else 0.0
    reach = float(np.percentile(ranges[returned], SETTINGS.range_percentile)) if returned.any() else None
    return {"beams": max(float(returned.mean()) - masked, 0.0), "reach_m": reach}


def _measure_ranges(
    radar: Stream, verdicts: VerdictTable, span_ns: tuple[int, int]
) -> dict[str, float | None]:
    seconds = (radar.t_ns - span_ns[0]) // NS
    counts = [
        _count_targets(*radar.array("angle", "range")[seconds == second].T) for second in np.unique(seconds)
    ]
    found: dict[str, float | None] = {"targets": float(np.median(counts)) if counts else None}
    return found | _measure_strength(radar, verdicts, span_ns)


def _count_targets(angle: Floats, ranges: Floats) -> int:
    """Return the number of bearings with a target in a radar's ranges of one second."""
    bearing = np.rint(angle / SETTINGS.bearing_width_rad).astype(np.int64)
    groups = [ranges[bearing == each] for each in np.unique(bearing)]
    return sum(
        bool(SIGMA_PER_MAD * np.median(np.abs(group - np.median(group))) < SETTINGS.max_target_sigma_m)
        for group in groups
        if len(group) >= SETTINGS.min_target_ranges
    )


def _measure_strength(
    radar: Stream, verdicts: VerdictTable, span_ns: tuple[int, int]
) -> dict[str, float | None]:
    return {"strength_dB": _median_evidence(verdicts, "C06", "strength_dB", span_ns)}


def _measure_images(
    camera: Stream, verdicts: VerdictTable, span_ns: tuple[int, int]
) -> dict[str, float | None]:
    lost = _median_evidence(verdicts, "C09", "contrast", span_ns)
    return {"contrast": None if lost is None else min(max(1.0 - lost, 0.0), 1.0)}


def _median_evidence(verdicts: VerdictTable, check: str, name: str, span_ns: tuple[int, int]) -> float | None:
    values = [
        v.evidence[name] for v in verdicts.select(check=check) if _overlaps(v, span_ns) and name in v.evidence
    ]
    known = [value for value in values if value == value]
    return float(np.median(known)) if known else None


def _overlaps(verdict: Verdict, span_ns: tuple[int, int]) -> bool:
    return verdict.t0_ns < span_ns[1] and span_ns[0] < verdict.t1_ns


_Measurement = Callable[[Stream, VerdictTable, tuple[int, int]], dict[str, float | None]]
MEASUREMENTS: Mapping[type, _Measurement] = {
    LaserScan: _measure_scans,
    RadarRange: _measure_ranges,
    RadarSpectrum: _measure_strength,
    Image: _measure_images,
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
    """Return the mean scores with an obscurant: a row for each sensor, a column for each recording."""
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
"""Columns of the summary tables of SDI, and fog; and those that both tables have."""


def summary_table(recordings: Sequence[tuple[Recording, VerdictTable]]) -> Table:
    """Return tables 4.2.4 and 4.3.4 of SDI from data: a row for each recording.

    X is a condition that the checks detected, o one by labels only, ? a cloud that may be dust, smoke or fog.
    The other columns are the mean scores of the lasers, radars and cameras with an obscurant.
    """
    labelled = [set(conditions_among(*each)) for each in recordings]
    detected = [find_conditions(verdicts) for _, verdicts in recordings]
    columns = [
        word
        for word in SUMMARY
        if word in ALWAYS or any(word in s | f for s, f in zip(labelled, detected, strict=True))
    ]
    cells: list[tuple[Cell, ...]] = []
    for (recording, verdicts), words, seen in zip(recordings, labelled, detected, strict=True):
        marks = ["X" if w in seen else "?" if f"{w}?" in seen else "o" if w in words else "" for w in columns]
        rows = measure_sensors(recording, verdicts)
        scores = [_average([r.meanwhile for r in rows if r.kind in kinds]) for kinds in GROUPS.values()]
        cells.append((recording.name, *marks, *scores))
    return Table(("dataset", *columns, *GROUPS), tuple(cells), names=1 + len(columns))


def find_conditions(verdicts: VerdictTable) -> set[str]:
    """Return the detected conditions: dust, smoke, rain, human, night; `dust?`, `smoke?` if undecided."""
    found: set[str] = set()
    air = air_windows(verdicts)
    if any(v.reason == RAIN for v in air):
        found.add("rain")
    elif air:
        coloured = [v for v in air if v.check == "C09" and v.state == "BAD"]
        smoke = sum(v.reason == "SMOKE" for v in coloured)
        found |= {"dust?", "smoke?"} if not coloured else {"smoke"} if 2 * smoke > len(coloured) else {"dust"}
    objects = {v.t0_ns for v in verdicts.select(check="C01", reason="OBJECT")}
    found |= {"human"} if len(objects) >= SETTINGS.min_object_windows else set()
    dark = verdicts.select(check="C08")
    found |= (
        {"night"} if len(dark) and 2 * len(dark.select(reason="DARK", state="BAD")) > len(dark) else set()
    )
    return found


def advise(rows: Sequence[SensorRow]) -> list[str]:
    """Return a sentence for each condition: which sensors to use, and which to avoid."""
    usable, limited = SETTINGS.min_usable_score, SETTINGS.min_limited_score
    sentences: list[str] = []
    for condition in dict.fromkeys(row.condition for row in rows):
        scores = {
            row.sensor: row.meanwhile
            for row in rows
            if row.condition == condition and row.meanwhile is not None
        }
        use = [name for name, score in scores.items() if score >= usable]
        care = [name for name, score in scores.items() if limited <= score < usable]
        avoid = [name for name, score in scores.items() if score < limited]
        parts = [f"use {', '.join(use)}"] if use else ["no sensor can be used"]
        parts += [f"with care {', '.join(care)}"] if care else []
        parts += [f"not {', '.join(avoid)}"] if avoid else []
        sentences.append(f"{condition}: {'; '.join(parts)}")
    return sentences


def _average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _round(sum(known) / len(known)) if known else None


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
