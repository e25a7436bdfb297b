"""The six sequences of the Rosario dataset (document 001, Table 3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One sequence as its authors describe it.

    Attributes
    ----------
    name : str
        Name of its folder.
    number : int
    difficulty : str
        `easy`, `medium` or `difficult`, judged by eye and by how stereo SLAM fared.
    length_m : float
        Metres driven.
    duration_min : float
        Minutes.
    identifier : str
        Local date and time of the recording.
    conditions : tuple of str
        The table's summary.
    """

    name: str
    number: int
    difficulty: str
    length_m: float
    duration_min: float
    identifier: str
    conditions: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """Return what `Recording.conditions` says of the sequence."""
        return {
            "sequence": self.number,
            "difficulty": self.difficulty,
            "length_m": self.length_m,
            "duration_min": self.duration_min,
            "identifier": self.identifier,
            "summary": self.conditions,
        }


_BACKWARDS = "occasional backwards motion"
_PEOPLE = "people (occasional)"
_VISIBLE = "easily visible furrows"

CATALOGUE: tuple[Entry, ...] = (
    Entry(
        "sequence01",
        1,
        "easy",
        615.15,
        9.3,
        "2017-12-26_12:25:45",
        ("3 × 180° turn", _BACKWARDS, _PEOPLE, "partial occlusions", _VISIBLE, "green crops"),
    ),
    Entry(
        "sequence02",
        2,
        "easy",
        320.16,
        4.4,
        "2017-12-29_11:13:55",
        ("1 × 180° turn", "dried crops", _PEOPLE, "hardly visible furrows"),
    ),
    Entry(
        "sequence03",
        3,
        "medium",
        169.45,
        3.3,
        "2017-12-29_11:23:00-part1",
        ("1 × 180° turn", _BACKWARDS, "dried and green crops", _VISIBLE),
    ),
    Entry(
        "sequence04",
        4,
        "medium",
        152.32,
        2.7,
        "2017-12-29_11:23:00-part2",
        ("no turns", _VISIBLE, "green crops"),
    ),
    Entry(
        "sequence05",
        5,
        "difficult",
        330.43,
        5.2,
        "2017-12-29_11:47:35",
        ("1 × 180° turn", _BACKWARDS, "varied furrow visibility", _PEOPLE),
    ),
    Entry(
        "sequence06",
        6,
        "difficult",
        709.42,
        9.8,
        "2017-12-29_12:00:07",
        ("2 × 180° turn", _PEOPLE, "road crossing"),
    ),
)

_NUMBERED = re.compile(r"(?:.*sequence[_-]?)?0?([1-6])|.*sequence[_-]?0?([1-6])\D.*", re.IGNORECASE)


def entry_of(name: str) -> Entry | None:
    """Return the sequence that a recording's name means (`sequence01`, `01`, or its identifier), or None."""
    text = name.strip()
    by_identifier = next((e for e in CATALOGUE if e.identifier in text), None)
    match = _NUMBERED.fullmatch(text)
    return by_identifier or (CATALOGUE[int(match[1] or match[2]) - 1] if match else None)
