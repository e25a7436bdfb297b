"""MCAP files without ROS: JSON messages as columns, images of Foxglove's schema, other messages as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base import Match, no
from ..rosbag import MCAP_MAGIC

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source


def recognises(source: Source) -> Match:
    """Recognise one MCAP file."""
    found = [name for name in source.names if name.lower().endswith(".mcap")]
    if len(source.names) != 1 or not found:
        return no("it is not one .mcap file")
    if source.head(found[0], len(MCAP_MAGIC)) != MCAP_MAGIC:
        return no(f"{found[0]} is named .mcap but does not begin like one")
    return Match(0.9, "an MCAP file")


def read(source: Source) -> Recording:
    """Read an MCAP file; each channel is a stream."""
    from ..rosbag.mcap import McapFile
    from ..rosbag.streams import recording_of

    name = source.names[0]
    return recording_of(source, [McapFile(name, source.content(name))])


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording as JSON messages with a schema, one channel per stream.

    Images are of the schema `foxglove.CompressedImage`: a PNG or JPEG file in base64.

    Parameters
    ----------
    recording : Recording
    path : Path
        The `.mcap` file.

    Returns
    -------
    tuple of str
        What the file cannot carry: clouds and other payloads, frames and cameras.
    """
    from . import writing

    return writing.write(recording, path)
