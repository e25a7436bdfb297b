"""The traverses and rock pickings of AMEDS (Table 6 and section 5.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transect.recording import Recording

TITLE = "ARCHES Mount Etna rover data set: traverses and rock pickings"
COLUMNS = ("name", "duration_s", "length_m", "height_m", "velocity_m_s", "rtk", "conditions")
"""Columns of the table; `--json` contains all fields."""


@dataclass(frozen=True)
class AmedsEntry:
    """One experiment with its printed numbers; None if they are not printed."""

    name: str  # `traverse_0` to `traverse_8`, `rock_picking_0`, `rock_picking_1`
    duration_s: int
    length_m: float | None = None
    height_m: float | None = None  # largest height difference
    # printed mean velocity, which is not length / duration (errata): probably the mean in motion
    velocity_m_s: float | None = None
    rtk: bool | None = None  # RTK coverage
    conditions: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return the entry as `Recording.conditions`, with the printed numbers."""
        facts = {
            "experiment": self.name,
            "rtk_coverage": self.rtk,
            "printed_length_m": self.length_m,
            "printed_height_difference_m": self.height_m,
            "printed_duration_s": self.duration_s,
            "printed_mean_velocity_m_s": self.velocity_m_s,
            "remarks": self.conditions,
        }
        return {key: value for key, value in facts.items() if value is not None}


_LUNAR = ("lunar analogue",)
_RETURN = ("driving backwards", "cars and people in view")
_PICKING = ("stationary", "arm moving")

CATALOGUE: tuple[AmedsEntry, ...] = (
    AmedsEntry("traverse_0", 25 * 60 + 2, 329.8, 46.6, 0.22, rtk=False, conditions=_LUNAR),
    AmedsEntry("traverse_1", 8 * 60 + 55, 195.6, 4.7, 0.36, rtk=False, conditions=_LUNAR),
    AmedsEntry("traverse_2", 8 * 60 + 46, 202.8, 1.7, 0.41, rtk=True, conditions=_LUNAR),
    AmedsEntry("traverse_3", 14 * 60 + 44, 239.1, 4.8, 0.30, rtk=True, conditions=_LUNAR),
    AmedsEntry("traverse_4", 7 * 60 + 26, 210.9, 9.6, 0.50, rtk=True, conditions=_LUNAR),
    AmedsEntry("traverse_5", 9 * 60 + 31, 134.1, 6.5, 0.37, rtk=True, conditions=_LUNAR),
    AmedsEntry("traverse_6", 9 * 60 + 39, 191.7, 2.1, 0.39, rtk=False, conditions=_LUNAR),
    AmedsEntry("traverse_7", 8 * 60 + 26, 304.2, 22.2, 0.67, rtk=False, conditions=_RETURN),
    AmedsEntry("traverse_8", 6 * 60 + 40, 246.6, 22.4, 0.81, rtk=False, conditions=_RETURN),
    AmedsEntry("rock_picking_0", 2 * 60 + 21, conditions=_PICKING),
    AmedsEntry("rock_picking_1", 1 * 60 + 45, conditions=_PICKING),
)

_NAME = re.compile(r"(traverse|rock[\W_]*picking)[\W_]*0*(\d)(?!\d)", re.IGNORECASE)


def entry_of(name: str) -> AmedsEntry | None:
    """Return the entry of a recording called `traverse_3`, `Traverse3`, `AMEDS-rock-picking-01`, ..."""
    found = _NAME.search(name)
    if found is None:
        return None
    kind = "traverse" if found[1].lower() == "traverse" else "rock_picking"
    return next((entry for entry in CATALOGUE if entry.name == f"{kind}_{found[2]}"), None)


def find_published(recording: Recording) -> dict[str, Any] | None:
    """Return the row of Table 6 for a recording of this data set, None for others."""
    entry = entry_of(recording.name) if recording.format == "ameds" else None
    if entry is None or not entry.length_m:
        return None
    return {
        "table": "AMEDS Table 6",
        "length_m": entry.length_m,
        "height_m": entry.height_m,
        "duration_s": entry.duration_s,
        "mean_velocity_m_s": entry.velocity_m_s,
        "rtk": entry.rtk,
    }
