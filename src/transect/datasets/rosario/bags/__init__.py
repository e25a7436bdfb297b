"""Raw Rosario data set (4.4): stereo PNG, IMU, NMEA, wheels and ground truth of the weed-removing robot.

Units are converted: deg/s to rad/s and milli-g to m/s2 (after subtraction of the calibrated offsets), turns
per minute to m/s at the rim, stepper units to radians to the left; raw values are in columns `..._raw`. Times
are those of the computer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.formats.shared.interface import Match, no

from .files import KINDS, is_specific_name, kind_of

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source


def recognises(source: Source) -> Match:
    """Recognise file names: zed/left_<time>.png, imu.log, gps.log, odometry.log, sequence0N_gt.txt."""
    named = [(kind, name) for name in source.names if (kind := kind_of(name))]
    kinds = {kind for kind, _ in named}
    is_specific = any(is_specific_name(kind, name) for kind, name in named)
    shown = ", ".join(kind for kind in KINDS if kind in kinds)
    if len(kinds) >= 2:
        confidence = 0.6 + 0.1 * min(len(kinds) - 2, 2) + (0.15 if is_specific else 0.0)
        return Match(confidence, f"it has Rosario's {shown}")
    if is_specific:
        return Match(0.5, f"it has files named as Rosario's {shown}")
    if kinds:
        return no(f"it has a file named as Rosario's {shown} but nothing else of a sequence")
    return no("no zed/left_<time>.png, imu.log, gps.log, odometry.log or sequence0N_gt.txt")


def read(source: Source, sequence: str | int | None = None) -> Recording:
    """Read a sequence.

    Parameters
    ----------
    source : Source
        Folder of a sequence, or of several.
    sequence : str or int, optional
        Number of the sequence, such as "01", if there are several.
    """
    from . import reading

    return reading.read(source, sequence)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a sequence in the layout of the published scripts.

    ``sequence0N/{zed/, imu.log, gps.log, odometry_raw.log or odometry.log}``, ``calibration0N.yaml`` and
    ``sequence0N_gt.txt``; times to the microsecond, all values exactly.
    """
    from .writing import write_sequence

    return write_sequence(recording, path)
