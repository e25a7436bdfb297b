"""Boreas: a car in all seasons with lidar, Navtech radar, camera and post-processed poses; odometry results.

A drive is a folder `boreas-YYYY-MM-DD-HH-MM` with `applanix/*.csv` (poses of each sensor, inertial data),
`calib/*.txt`, and `camera`, `lidar`, `radar`, `aeva` with one file per frame, named after its time. A result
of the odometry benchmark is one text: each line is a time and the upper 3 x 4 of ``T_vehicle_world``.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Literal

from transect.base.clocks import NS
from transect.base.lazy import exporter
from transect.recording.text import is_number

from ..shared.file_heads import first_rows, number_rows
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source

Attitude = Literal["auto", "devkit"]
APPLANIX, CALIB = "applanix", "calib"
SOLUTION = "gps_post_process.csv"
"""Poses of the navigation unit at 200 Hz, in the folder `applanix`."""
TIMES = ("GPSTime", "ROSTime")
"""Names of the first column of a file of poses."""
PLACED = f"{CALIB}/T_applanix_lidar.txt"
ANGLES = {"roll", "pitch", "heading"}
_SIZES = ((10**11, NS), (10**14, 10**6), (10**17, 10**3))
"""Times below each number count seconds, milliseconds, microseconds; larger ones count nanoseconds."""
_MAX_ORTHONORMALITY_ERROR = 0.01


def recognises(source: Source) -> Match:
    """Recognise the folders of a drive, or lines of a time and twelve numbers with a rotation in them."""
    poses = pose_files(source)
    if poses:
        return Match(0.95, f"{poses[0]} has poses by {TIMES[0]}, easting, northing, ...")
    if PLACED in source:
        return Match(0.9, f"it has {PLACED}")
    if len(source.names) == 1 and result_rows(source.head(source.names[0])):
        return Match(0.85, "lines of a time and a 3 x 4 pose")
    if APPLANIX in source.folders:
        return no(f"it has {APPLANIX}/ but no poses in it that begin with {TIMES[0]}, nor {PLACED}")
    return no(f"no {APPLANIX}/*_poses.csv, nor lines of a time and twelve numbers")


def pose_files(source: Source) -> list[str]:
    """Return the files of poses of a drive, or of its folder `applanix`, or the one file itself."""
    named = [n for n in source.names if n.endswith(("_poses.csv", SOLUTION))]
    return [n for n in named if _has_poses(n.rpartition("/")[0], header_of(source.head(n, 4096)))]


def _has_poses(folder: str, header: tuple[str, ...]) -> bool:
    """Return whether a header is that of poses; outside `applanix` others may have eastings, too."""
    begins = header[0] in TIMES and header[1:2] == ("easting",)
    return begins and (folder == APPLANIX or (not folder and {*header} >= ANGLES))


def header_of(head: bytes) -> tuple[str, ...]:
    """Return the names in the first line of a text."""
    line = head.partition(b"\n")[0].decode("utf-8-sig", "replace")
    return tuple(word.strip() for word in line.split(","))


def unit_of(time: str) -> int:
    """Return the unit of a time since 1970 in ns, by its size: Boreas has s, us and ns."""
    try:
        size = abs(Decimal(time))
        return next((unit for limit, unit in _SIZES if size < limit), 1)
    except InvalidOperation:
        return NS


def unit_of_head(head: bytes) -> int:
    """Return the unit of the times in the first column of a text, by its first row of numbers."""
    times = [row[0].decode("ascii", "replace") for row in first_rows(head) if row[0][:1].isdigit()]
    return unit_of(times[0]) if times else NS


def rows_of(head: bytes, width: int) -> list[tuple[float, ...]]:
    """Return the first rows of a text that are `width` numbers."""
    rows = [row for row in first_rows(head) if len(row) == width and all(map(is_number, row))]
    return [tuple(map(float, row)) for row in rows]


def result_rows(head: bytes) -> list[tuple[float, ...]]:
    """Return the first lines of a text that are a time (in us or ns) and a 3 x 4 pose, if most lines are."""
    rows = number_rows(head, 13)
    poses = [row for row in rows if row[0] > _SIZES[1][0] and _turns(row)]
    return poses if 2 * len(poses) > len(rows) else []


def _turns(row: tuple[float, ...]) -> bool:
    """Return whether the rows of the 3 x 3 matrix are of length 1 and at right angles."""
    axes = [row[i : i + 3] for i in (1, 5, 9)]
    dots = [sum(a * b for a, b in zip(axes[i], axes[j], strict=True)) for i in range(3) for j in range(i, 3)]
    return all(
        abs(dot - one) < _MAX_ORTHONORMALITY_ERROR for dot, one in zip(dots, (1, 0, 0, 1, 0, 1), strict=True)
    )


__getattr__, __dir__ = exporter(__name__, {"drive": ("read",)})
