"""Rosario ground truth with echoed odometry: `sequence0N_new_gt_IMU_frame.txt` and `odometry_sequence0N.txt`.

Tracks that another project derived from the Rosario bags (and one of Flourish). The ground truth consists of
nanoseconds written as a float, a position with an added constant (which is subtracted here), and a quaternion
without meaning. The odometry is the output of `rostopic echo` for a position, without times: for Rosario they
are estimated, and its ground truth, the track of its RTK receiver, is also a measurement. The writer adds the
constant again, and writes the identity quaternion.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from transect.formats.shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

TRUTH = re.compile(r"(?:sequence(?P<n>\d\d)_new_gt_IMU_frame|flourish_Dataset(?P<f>[A-Z])_GT)\.txt")
ODOMETRY = re.compile(
    r"(?:odometry_sequence(?P<n>\d\d)|flourish_odometry_(?P<c>com\w*_)?Dataset(?P<f>[A-Z]))\.txt"
)
SAMPLE = re.compile(r"sequence(?P<n>\d\d)_(?P<which>max|min)_inliers_(?P<before>prev_)?\d+\.jpg")


def base_of(name: str) -> str:
    """Return a file's name without its folders."""
    return name.rpartition("/")[2]


def recognises(source: Source) -> Match:
    """Recognise the names of the files."""
    truths = [name for name in source.names if TRUTH.fullmatch(base_of(name))]
    odometries = [name for name in source.names if ODOMETRY.fullmatch(base_of(name))]
    if truths and odometries:
        return Match(0.95, f"it has {base_of(truths[0])} and {base_of(odometries[0])}")
    if truths or odometries:
        return Match(0.9, f"it has {base_of([*truths, *odometries][0])}")
    return no("no sequence0N_new_gt_IMU_frame.txt and no odometry_sequence0N.txt")


def read(source: Source, sequence: str | int | None = None, stamps: str = "auto") -> Recording:
    """Read one sequence.

    Parameters
    ----------
    sequence : str or int, optional
        "01", ... of Rosario, "A" of Flourish; required if there are several.
    stamps : {"auto", "none"}
        Whether the times of Rosario's odometry are estimated by its speed, on the clock of the ground truth,
        or it is on the index clock.
    """
    from . import track_files

    return track_files.read(source, sequence, stamps)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one sequence to a new folder: ground truth, odometry as echoed, and sample images.

    Data from such a folder are read back exactly; other positions up to the rounding of one addition.
    """
    from .track_files import write_tracks

    return write_tracks(recording, path)
