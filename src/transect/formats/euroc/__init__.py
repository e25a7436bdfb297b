"""EuRoC / ASL folder: `mav0` with cam, imu and ground-truth folders, each with data.csv and sensor.yaml."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from transect.recording.text import is_number

from ..shared.file_heads import first_rows
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

_SENSOR = re.compile(r"(?:(?P<root>.*)/)?(?:cam|imu)\d*/(?:sensor\.yaml|data\.csv)")


def recognises(source: Source) -> Match:
    """Recognise `mav0/imu0/data.csv` and its like, and a ground-truth CSV on its own."""
    roots = find_roots(source)
    if len(roots) > 1:
        return no(f"it has imu or cam folders with data.csv but in several places: {', '.join(roots[:3])}")
    if roots:
        return Match(0.95, "it has imu or cam folders with data.csv and sensor.yaml")
    if len(source.names) == 1 and is_truth(source.head(source.names[0])):
        return Match(0.9, "a ground-truth CSV in ns with 17 columns")
    return no("no mav0 folder with data.csv and sensor.yaml")


def find_roots(source: Source) -> list[str]:
    """Return the folders that hold cam and imu folders, at least one of them with a sensor.yaml."""
    ends = ("/sensor.yaml", "/data.csv")
    found = [m for name in source.names if name.endswith(ends) and (m := _SENSOR.fullmatch(name))]
    return sorted({m["root"] or "" for m in found if m[0].endswith("yaml")})


def is_truth(head: bytes) -> bool:
    """Tell whether a text is a header and rows of a time in ns, a position and a quaternion, or more."""
    rows = list(first_rows(head))
    time, *rest = rows[0] if rows and is_number(rows[0][0]) else rows[1] if len(rows) > 1 else [b""]
    return (
        head.lstrip()[:5].lower() in (b"#time", b"times", b"time(")
        and len(time) == 19
        and time.isdigit()
        and len(rest) >= 7
        and all(is_number(field) for field in rest)
    )


def read(source: Source) -> Recording:
    """Read the folder, or a ground-truth file on its own."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write images, IMU and poses as an ASL folder."""
    from .writing import write_folder

    return write_folder(recording, path)
