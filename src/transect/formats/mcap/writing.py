"""Writing columns as JSON messages in an MCAP file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transect.base.files import atomic_write
from transect.errors import UnsupportedError, UsageError
from transect.recording import Recording, Stream

from ..rosbag.streams import METADATA


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write columns as JSON messages; see `transect.formats.mcap.write`."""
    from mcap.writer import Writer

    from ..rosbag.json_schema import messages_of, schema_of
    from ..rosbag.outgoing import in_log_order

    if path.is_dir():
        raise UsageError(
            f"{path} is a folder", where=str(path), hint="MCAP is one file: give it a name ending in .mcap"
        )
    path = path if path.suffix else path.with_suffix(".mcap")
    carried = [stream for stream in recording.streams if stream.loader is None]
    for stream in carried:
        _refuse_negative(stream)
    with atomic_write(path) as out:
        writer = Writer(out, enable_data_crcs=True)
        writer.start(library="transect")
        channels = [
            _channel(writer, stream, schema_of(stream.table, stream.type.__name__)) for stream in carried
        ]
        messages = [messages_of(stream.table) for stream in carried]
        logged = [stream.t_ns if stream.log_ns is None else stream.log_ns for stream in carried]
        for which, row in in_log_order(logged):
            t_ns = int(carried[which].t_ns[row])
            writer.add_message(
                channels[which], int(logged[which][row]), next(messages[which]), publish_time=t_ns
            )
        writer.finish()
    return tuple(_left_out(recording, carried))


def _channel(writer: Any, stream: Stream, schema: dict[str, Any]) -> int:
    name = f"transect.{stream.type.__name__}"
    number = writer.register_schema(name, "jsonschema", json.dumps(schema).encode())
    said = {
        "type": stream.type.__name__,
        "clock": stream.clock,
        "role": stream.role,
        "tag": stream.tag,
        "frame": stream.frame,
        "child": stream.child,
        "logged": stream.log_ns is not None,
    }
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


def _left_out(recording: Recording, carried: list[Stream]) -> list[str]:
    kept = {stream.name for stream in carried}
    said = [
        f"{stream.name} is not written: JSON messages carry columns, not a {stream.type.__name__}; "
        "a ROS bag in MCAP does (format rosbag)"
        for stream in recording.streams
        if stream.name not in kept
    ]
    said += ["the frames are not written"] if recording.frames.edges else []
    return said + (["the calibrations of the cameras are not written"] if recording.cameras else [])
