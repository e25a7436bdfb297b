"""Any folder of images or point clouds, with a calibration file beside them.

The files of one sensor are a stream: those in one folder that are called alike but for a number, which is a
time where it plainly is unix time, and else a place on the `index` clock. `left` and `right` in the names (or
L and R, cam0 and cam1, Middlebury's im2 and im6) make a pair. A calibration applies to the images beside and
below it whose size it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..shared.file_heads import IMAGE_SUFFIXES, SURE_SUFFIXES, suffix_counts
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source


def recognises(source: Source) -> Match:
    """Say that these are images or clouds; every format that knows more than that is surer."""
    counts = suffix_counts(source)
    images, clouds = (sum(counts[s] for s in kinds) for kinds in (IMAGE_SUFFIXES, SURE_SUFFIXES))
    if not images and not clouds:
        return no("no images or point clouds")
    return Match(0.2, f"{images} images and {clouds} point clouds")


def read(source: Source) -> Recording:
    """Read all images and clouds, and the calibration beside them."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write images and clouds, a folder per stream, named by their times, and a calibration.yml."""
    from . import writing

    return writing.write(recording, path)
