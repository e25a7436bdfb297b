"""Films (MP4, MOV, AVI, MKV, ...): frames as images, decoded when they are asked for.

The times are the film's own, from 0 at its first frame: what a film says of the time at which it was made is
when a file was written, in a zone that is not said, and stands in a note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..shared.file_heads import film_container, suffix_of
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

SUFFIXES = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg")


def recognises(source: Source) -> Match:
    """Recognise one film, or a folder of nothing else."""
    others = [name for name in source.names if suffix_of(name) not in SUFFIXES]
    if others or not source.names:
        return no(f"{others[0]} is no film" if others else "it has no files")
    first = source.names[0]
    if not film_container(source.head(first, 16)):
        return no(f"{first} does not begin as a film does")
    return Match(0.9 if len(source.names) == 1 else 0.6, f"{first} begins as a film does")


def read(source: Source) -> Recording:
    """Read films: a stream of images each, on the clock `device`."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write each stream of images as a film (H.264 in MP4): one `.mp4`, or a folder of them.

    Returns
    -------
    tuple of str
        What is not as it was: films are compressed with loss.
    """
    from . import writing

    return writing.write(recording, path)
