"""MCAP files without ROS: rows of JSON, Foxglove's schemas in protobuf or JSON, other protobuf as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..rosbag import MCAP_MAGIC
from ..shared.interface import Match, no

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


Messages = Literal["json", "foxglove"]


def read(source: Source) -> Recording:
    """Read an MCAP file; each channel is a stream, or the frames or calibrations of Foxglove's schemas."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path, messages: Messages = "json") -> tuple[str, ...]:
    """Write a recording as one `.mcap` file.

    Parameters
    ----------
    recording : Recording
    path : Path
        The `.mcap` file.
    messages : {"json", "foxglove"}
        `json`: rows of JSON with a schema, one channel per stream; images are of the schema
        `foxglove.CompressedImage`, a PNG or JPEG file in base64. `foxglove`: Foxglove's schemas in protobuf,
        for scans, clouds, fixes, poses, paths, grids, images, texts, frames and calibrations, else JSON.

    Returns
    -------
    tuple of str
        What the file cannot carry: of rows of JSON these are clouds and other payloads, frames and cameras.
    """
    from . import writing

    return writing.write(recording, path, messages)
