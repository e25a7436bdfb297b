"""Rosario ground truth with echoed odometry: `sequence0N_new_gt_IMU_frame.txt` and `odometry_sequence0N.txt`.

Tracks that another project derived from the Rosario bags (and one of Flourish). The ground truth is
nanoseconds written as a float, a position to which a constant was added (it is subtracted here), and a
quaternion that means nothing. The odometry is what `rostopic echo` prints of a position, without times: of
Rosario they are found, and its ground truth, which is the track of its RTK receiver, is a measurement too.
Writing adds the constant again and puts the identity where the quaternion was.
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
    """Look at file names only."""
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
        "01", ... of Rosario, "A" of Flourish; needed where there are several.
    stamps : {"auto", "none"}
        Whether Rosario's odometry gets times of the ground truth's clock where its speed tells them, or
        stays on the index clock.
    """
    from . import track_files

    return track_files.read(source, sequence, stamps)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one sequence to a new folder: its ground truth, its odometry as echoed, its sample images.

    Everything that came from such a folder reads back exactly; a position from elsewhere to the rounding of
    the one addition that reading undoes.
    """
    from .track_files import write_tracks

    return write_tracks(recording, path)
