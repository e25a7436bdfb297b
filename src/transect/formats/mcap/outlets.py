"""Channels of an MCAP file and their messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.base.arrays import Ints
from transect.errors import UnsupportedError
from transect.recording import Recording, Stream
from transect.types import Image

from ..shared.bags.json_messages import IMAGES, messages_of, schema_of
from ..shared.bags.streams import METADATA
from ..shared.payloads import LeftOut


@dataclass(frozen=True)
class ChannelText:
    """A channel to be written."""

    topic: str
    schema: str
    encoding: str
    definition: bytes  # The schema: JSON Schema, or a FileDescriptorSet
    said: Mapping[str, Any]  # Attributes of the stream for the reader of transect

    def register(self, writer: Any) -> int:
        """Enter the channel in a file that is being written; return its number."""
        kind = "jsonschema" if self.encoding == "json" else self.encoding
        schema = writer.register_schema(self.schema, kind, self.definition)
        return writer.register_channel(self.topic, self.encoding, schema, {METADATA: json.dumps(self.said)})


@dataclass(frozen=True)
class TopicWriter:
    """A stream, or the frames, as rows of messages of equal time."""

    channels: tuple[ChannelText, ...]
    t_ns: Ints  # (n,) int64
    log_ns: Ints
    # One message for each channel; empty for a sample that cannot be loaded
    rows: Iterator[Sequence[bytes]]
    left_out: LeftOut = field(default_factory=lambda: LeftOut(""))  # Counts those

    @property
    def said(self) -> list[str]:
        """The sentence on samples that could not be loaded, if any, after all rows were read."""
        return self.left_out.said(len(self.t_ns))


def describe(stream: Stream) -> dict[str, Any]:
    """Return the attributes of a stream for its channel."""
    return {
        "type": stream.type.__name__,
        "clock": stream.clock,
        "role": stream.role,
        "tag": stream.tag,
        "frame": stream.frame,
        "child": stream.child,
        "logged": stream.log_ns is not None,
    }


def times_of(stream: Stream) -> tuple[Ints, Ints]:
    """Return when each sample was measured and logged, both (n,) ns; MCAP has no times before zero."""
    logged = stream.t_ns if stream.log_ns is None else stream.log_ns
    if len(stream) and min(stream.t_ns.min(), logged.min()) < 0:
        raise UnsupportedError(
            f"{stream.name} has times before zero",
            where=stream.name,
            why="MCAP counts nanoseconds from zero up",
        )
    return stream.t_ns, logged


def json_outlet(recording: Recording, stream: Stream) -> TopicWriter:
    """Return a stream of columns as rows of JSON, or one of images as foxglove.CompressedImage in JSON."""
    if stream.type is Image:
        from ..shared.bags.json_messages import SCHEMA, image_messages, mosaic_of

        left_out = LeftOut(stream.name)
        said = describe(stream) | {"mode": mosaic_of(stream)}
        channel = ChannelText(stream.name, IMAGES, "json", json.dumps(SCHEMA).encode(), said)
        rows = (() if m is None else (m,) for m in image_messages(recording, stream, left_out))
        return TopicWriter((channel,), *times_of(stream), rows, left_out)
    kind = stream.type.__name__
    schema = json.dumps(schema_of(stream.table, kind)).encode()
    channel = ChannelText(stream.name, f"transect.{kind}", "json", schema, describe(stream))
    return TopicWriter((channel,), *times_of(stream), ((m,) for m in messages_of(stream.table)))
