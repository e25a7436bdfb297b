"""Which files of a folder are tracks, and of which sequence."""

from __future__ import annotations

import re

from transect.errors import UsageError
from transect.recording import Source

TRUTH = re.compile(r"(?:sequence(?P<n>\d\d)_new_gt_IMU_frame|flourish_Dataset(?P<f>[A-Z])_GT)\.txt")
ODOMETRY = re.compile(
    r"(?:odometry_sequence(?P<n>\d\d)|flourish_odometry_(?P<c>com\w*_)?Dataset(?P<f>[A-Z]))\.txt"
)
SAMPLE = re.compile(r"sequence(?P<n>\d\d)_(?P<which>max|min)_inliers_(?P<before>prev_)?\d+\.jpg")


def base_of(name: str) -> str:
    """Return a file's name without its folders."""
    return name.rpartition("/")[2]


def sequences(source: Source) -> dict[str, list[str]]:
    """Return the files of each sequence: `01` to `06` of Rosario, a letter for Flourish."""
    found: dict[str, list[str]] = {}
    for name in source.names:
        for pattern in (TRUTH, ODOMETRY, SAMPLE):
            if match := pattern.fullmatch(base_of(name)):
                groups = match.groupdict()
                found.setdefault(groups["n"] or groups["f"], []).append(name)
    return dict(sorted(found.items()))


def chosen_sequence(known: dict[str, list[str]], sequence: str | int | None, source: Source) -> str:
    """Return the key of the sequence that is meant: the only one, where none is named."""
    text = str(next(iter(known)) if sequence is None and len(known) == 1 else sequence or "")
    key = text.removeprefix("sequence").removeprefix("flourish")
    key = f"{int(key):02d}" if key.isdigit() else key.upper()
    if key in known:
        return key
    raise UsageError(
        f"there are {len(known)} sequences here"
        if sequence is None
        else f"there is no sequence {sequence!r} here",
        where=str(source.path),
        why=f"found: {', '.join(known) or 'none'}",
        hint=f"--option sequence={next(iter(known), '01')}",
    )
