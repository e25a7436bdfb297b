"""CARMEN log: planar laser and odometry, one message per line (`.clf`, `.log`, also as `.bz2` or `.gz`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transect.base.lazy import exporter

from ..shared.compression import UNPACK, unpack_head
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source

_PACKED_HEAD_BYTES = 1 << 20
"""Large enough for a whole bzip2 block, which has up to 900,000 bytes of text."""
PLANAR = ("ODOM", "TRUEPOS")
POSES = ("x", "y", "theta", "odom_x", "odom_y", "odom_theta")
_ROBOT = ("tv", "rv", "forward_safety_dist", "side_safety_dist", "turn_axis")


@dataclass(frozen=True)
class CarmenLogForm:
    """Layout of a scan message."""

    head: tuple[str, ...] = ()  # Columns between the keyword and the number of readings
    tail: tuple[str, ...] = ()  # Columns after the readings
    remissions: bool = False  # Whether remissions follow the readings


OLD = CarmenLogForm(tail=POSES)
_DEVICE = ("laser_type", "start_angle", "field_of_view", "angle_increment", "range_max", "accuracy")
RAW = CarmenLogForm((*_DEVICE, "remission_mode"), remissions=True)
ROBOT = CarmenLogForm(RAW.head, (*POSES, *_ROBOT), remissions=True)
LIMITS = {"FLASER": "robot_front_laser_max", "RLASER": "robot_rear_laser_max"}
"""Parameters with the maximum range (m) of scans of the old form."""
SCANS: dict[str, CarmenLogForm] = {
    **dict.fromkeys(("FLASER", "RLASER", "LASER3", "LASER4", "LASER5"), OLD),
    **{f"RAWLASER{n}": RAW for n in range(1, 6)},
    **{f"ROBOTLASER{n}": ROBOT for n in range(6)},
}


TAGS = {
    "RLASER": "rear",
    **{f"{word}{n}": f"laser{n}" for word in ("LASER", "ROBOTLASER") for n in range(2, 6)},
    **{f"RAWLASER{n}": f"raw{n}" for n in range(1, 6)},
}
"""Names of further lasers, and of repeated scans without the robot's pose."""


def recognises(source: Source) -> Match:
    """Recognise one file whose lines start with FLASER, ODOM or similar keywords."""
    if len(source.names) != 1:
        return no("a CARMEN log is one file")
    head = _head(source, source.names[0])
    words = {line.split(None, 1)[0] for line in head.split(b"\n") if line.strip()}
    if known := words & {word.encode() for word in (*SCANS, *PLANAR)}:
        return Match(0.95, f"its lines begin with {', '.join(sorted(w.decode() for w in known))}")
    if b"CARMEN" in head[:200]:
        return Match(0.9, "it calls itself a CARMEN log")
    return no("no line begins with FLASER or ODOM")


def _head(source: Source, name: str) -> bytes:
    suffix = Path(name).suffix.lower()
    if suffix not in UNPACK:
        return source.head(name)
    return unpack_head(source.head(name, _PACKED_HEAD_BYTES), suffix)


__getattr__, __dir__ = exporter(__name__, {"reading": ("read",), "writing": ("write",)})
