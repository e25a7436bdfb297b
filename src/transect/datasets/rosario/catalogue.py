"""The six sequences of the Rosario data set (Table 3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transect.recording import Recording

TITLE = "Rosario agricultural data set: sequences of the weeding robot"
COLUMNS = ("name", "difficulty", "length_m", "duration_min", "identifier", "conditions")
"""Columns of the table; `--json` contains all fields."""


@dataclass(frozen=True)
class RosarioEntry:
    """One sequence as described by its authors."""

    name: str  # of its folder
    number: int
    difficulty: str  # `easy`, `medium` or `difficult`, by inspection and by the results of stereo SLAM
    length_m: float
    duration_min: float
    identifier: str  # local date and time of the recording
    conditions: tuple[str, ...]  # summary of the table

    def facts(self) -> dict[str, Any]:
        """Return the entry as `Recording.conditions`."""
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

_ROWS = (
    ("easy", 615.15, 9.3, "2017-12-26_12:25:45"),
    ("easy", 320.16, 4.4, "2017-12-29_11:13:55"),
    ("medium", 169.45, 3.3, "2017-12-29_11:23:00-part1"),
    ("medium", 152.32, 2.7, "2017-12-29_11:23:00-part2"),
    ("difficult", 330.43, 5.2, "2017-12-29_11:47:35"),
    ("difficult", 709.42, 9.8, "2017-12-29_12:00:07"),
)
_SUMMARIES = (
    ("3 × 180° turn", _BACKWARDS, _PEOPLE, "partial occlusions", _VISIBLE, "green crops"),
    ("1 × 180° turn", "dried crops", _PEOPLE, "hardly visible furrows"),
    ("1 × 180° turn", _BACKWARDS, "dried and green crops", _VISIBLE),
    ("no turns", _VISIBLE, "green crops"),
    ("1 × 180° turn", _BACKWARDS, "varied furrow visibility", _PEOPLE),
    ("2 × 180° turn", _PEOPLE, "road crossing"),
)
CATALOGUE: tuple[RosarioEntry, ...] = tuple(
    RosarioEntry(f"sequence{number:02d}", number, *row, summary)
    for number, (row, summary) in enumerate(zip(_ROWS, _SUMMARIES, strict=True), 1)
)

_NUMBERED = re.compile(r"(?:.*sequence[_-]?)?0?([1-6])|.*sequence[_-]?0?([1-6])\D.*", re.IGNORECASE)


def entry_of(name: str) -> RosarioEntry | None:
    """Return the sequence of a recording's name (`sequence01`, `01`, or its identifier), None for others."""
    text = name.strip()
    by_identifier = next((e for e in CATALOGUE if e.identifier in text), None)
    match = _NUMBERED.fullmatch(text)
    return by_identifier or (CATALOGUE[int(match[1] or match[2]) - 1] if match else None)


def find_published(recording: Recording) -> dict[str, Any] | None:
    """Return length and duration of a recording of this data set, None for others."""
    entry = entry_of(recording.name) if recording.format.startswith("rosario") else None
    if entry is None:
        return None
    return {"table": "Rosario", "length_m": entry.length_m, "duration_s": entry.duration_min * 60}
