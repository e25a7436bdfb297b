"""Writing MCAP files: rows of JSON, or messages of Foxglove's schemas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from transect.base.files import atomic_write
from transect.errors import UsageError
from transect.recording import Recording, Stream
from transect.types import Image

from ..shared.payloads import frames_left_out
from .outlets import TopicWriter, json_outlet

Messages = Literal["json", "foxglove"]


def write(recording: Recording, path: Path, messages: Messages = "json") -> tuple[str, ...]:
    """Write a recording as one `.mcap` file.

    Parameters
    ----------
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
    if path.is_dir():
        raise UsageError(
            f"{path} is a folder", where=str(path), hint="MCAP is one file: give it a name ending in .mcap"
        )
    path = path if path.suffix else path.with_suffix(".mcap")
    if messages == "foxglove":
        from .foxglove_writing import list_outlets

        outlets, notes = list_outlets(recording)
    else:
        carried = [stream for stream in recording.streams if stream.loader is None or stream.type is Image]
        outlets = [json_outlet(recording, stream) for stream in carried]
        notes = _not_carried(recording, carried)
    if outlets or not notes:  # nothing to write is no empty file, unless there was nothing
        _write_outlets(outlets, path)
    return (*(sentence for outlet in outlets for sentence in outlet.said), *notes)


def _write_outlets(outlets: Sequence[TopicWriter], path: Path) -> None:
    from mcap.writer import Writer

    from ..shared.bags.bag_file import in_log_order

    with atomic_write(path) as out:
        writer = Writer(out, enable_data_crcs=True)
        writer.start(library="transect")
        channels = [[channel.register(writer) for channel in outlet.channels] for outlet in outlets]
        for which, row in in_log_order([outlet.log_ns for outlet in outlets]):
            outlet = outlets[which]
            times = int(outlet.log_ns[row]), int(outlet.t_ns[row])
            for channel, message in zip(channels[which], next(outlet.rows), strict=False):
                writer.add_message(channel, times[0], message, publish_time=times[1])
        writer.finish()


def _not_carried(recording: Recording, carried: list[Stream]) -> list[str]:
    kept = {stream.name for stream in carried}
    pictures = [stream for stream in carried if stream.type is Image and stream.columns]
    notes = [f"{stream.name}: no columns for {', '.join(stream.columns)}" for stream in pictures]
    notes += [
        f"{stream.name} is not written: JSON messages carry columns and images, not a "
        f"{stream.type.__name__}; --format foxglove does, and so does a ROS bag (--format rosbag)"
        for stream in recording.streams
        if stream.name not in kept
    ]
    notes += frames_left_out(recording.frames.edges, carried)
    return notes + (["the calibrations of the cameras are not written"] if recording.cameras else [])
