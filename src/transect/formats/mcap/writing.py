"""Writing columns and images as JSON messages in an MCAP file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transect.base.files import atomic_write
from transect.errors import UnsupportedError, UsageError
from transect.recording import Recording, Stream
from transect.types import Image

from .._payloads import LeftOut
from ..rosbag.json_schema import IMAGES
from ..rosbag.streams import METADATA


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write columns and images as JSON messages; see `transect.formats.mcap.write`."""
    from mcap.writer import Writer

    from ..rosbag.outgoing import in_log_order

    if path.is_dir():
        raise UsageError(
            f"{path} is a folder", where=str(path), hint="MCAP is one file: give it a name ending in .mcap"
        )
    path = path if path.suffix else path.with_suffix(".mcap")
    carried = [stream for stream in recording.streams if stream.loader is None or stream.type is Image]
    for stream in carried:
        _refuse_negative(stream)
    left_out = [LeftOut(stream.name) for stream in carried]
    with atomic_write(path) as out:
        writer = Writer(out, enable_data_crcs=True)
        writer.start(library="transect")
        channels = [_channel(writer, stream) for stream in carried]
        messages = [_messages(recording, *pair) for pair in zip(carried, left_out, strict=True)]
        logged = [stream.t_ns if stream.log_ns is None else stream.log_ns for stream in carried]
        for which, row in in_log_order(logged):
            message, t_ns = next(messages[which]), int(carried[which].t_ns[row])
            if message is not None:
                writer.add_message(channels[which], int(logged[which][row]), message, publish_time=t_ns)
        writer.finish()
    lost = [sentence for s, bad in zip(carried, left_out, strict=True) for sentence in bad.said(len(s))]
    return (*lost, *_not_carried(recording, carried))


def _messages(recording: Recording, stream: Stream, left_out: LeftOut) -> Iterator[bytes | None]:
    """Iterate over the rows of a stream as messages; None for an image that cannot be had."""
    if stream.type is Image:
        from ..rosbag.json_images import image_messages

        return image_messages(recording, stream, left_out)
    from ..rosbag.json_schema import messages_of

    return messages_of(stream.table)


def _channel(writer: Any, stream: Stream) -> int:
    from ..rosbag.json_images import SCHEMA, mosaic_of
    from ..rosbag.json_schema import schema_of

    kind = stream.type.__name__
    name, schema = f"transect.{kind}", schema_of(stream.table, kind)
    said = {
        "type": kind,
        "clock": stream.clock,
        "role": stream.role,
        "tag": stream.tag,
        "frame": stream.frame,
        "child": stream.child,
        "logged": stream.log_ns is not None,
    }
    if stream.type is Image:
        name, schema = IMAGES, SCHEMA
        said |= {"mode": mosaic_of(stream)}
    number = writer.register_schema(name, "jsonschema", json.dumps(schema).encode())
    return writer.register_channel(stream.name, "json", number, {METADATA: json.dumps(said)})


def _refuse_negative(stream: Stream) -> None:
    if (
        len(stream)
        and min(stream.t_ns.min(), (stream.t_ns if stream.log_ns is None else stream.log_ns).min()) < 0
    ):
        raise UnsupportedError(
            f"{stream.name} has times before zero",
            where=stream.name,
            why="MCAP counts nanoseconds from zero up",
        )


def _not_carried(recording: Recording, carried: list[Stream]) -> list[str]:
    kept = {stream.name for stream in carried}
    pictures = [stream for stream in carried if stream.type is Image and stream.columns]
    said = [f"{stream.name}: no columns for {', '.join(stream.columns)}" for stream in pictures]
    said += [
        f"{stream.name} is not written: JSON messages carry columns and images, not a "
        f"{stream.type.__name__}; a ROS bag in MCAP does (format rosbag)"
        for stream in recording.streams
        if stream.name not in kept
    ]
    said += ["the frames are not written"] if recording.frames.edges else []
    return said + (["the calibrations of the cameras are not written"] if recording.cameras else [])
