"""The topics of a bag: the messages of all its files under one name and type."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from transect.base.arrays import Ints
from transect.errors import ParseError
from transect.recording import Loss

from .bag_file import BagFile, Channel, MessagePosition
from .ros_decoder import Columns, MessageDecoder
from .ros_messages import NS, PAYLOADS, frame_name, mapping_of
from .ros_types import candidates, paths_of, standard_types

ROS_ENCODINGS = ("ros1", "cdr")
LABELS = ("clock", "role", "tag", "child")
"""Attributes of a stream that ROS does not have."""
_COMMENTS_AND_CONSTANTS = r"(?:[ \t]*(?:#[^\n]*|\w+[ \t]+\w+[ \t]*=[^\n]*)?\n)*"
_HEADER_FIRST = re.compile(_COMMENTS_AND_CONSTANTS + r"[ \t]*(?:std_msgs/)?(?:msg/)?Header[ \t]+header\b")


@dataclass(frozen=True)
class TopicMessages:
    """Messages of a topic from all files."""

    log_ns: Ints  # (n,) int64
    publish_ns: Ints
    sizes: Ints
    raws: list[bytes]
    places: list[tuple[str, Ints]]  # Name of each file, and the positions (m, 2) of its messages
    losses: tuple[Loss, ...]

    @cached_property
    def names(self) -> list[str]:
        """`file@chunk:offset` of each message, for `Topic.raw`."""
        return [f"{file}@{chunk}:{at}" for file, places in self.places for chunk, at in places.tolist()]


@dataclass(frozen=True, eq=False)
class Topic:
    """One topic of one type, with its files and channels."""

    name: str  # Name of its stream
    channel: Channel
    parts: tuple[tuple[BagFile, int], ...]  # Files, and the number of the channel in each
    unmeasured: tuple[str, ...] = ()  # Columns for which transect had no values when it wrote the bag
    labels: Mapping[str, str] = field(default_factory=dict[str, str])  # Recorded `LABELS` of the stream

    @property
    def is_ros(self) -> bool:
        """Whether its messages are ROS messages of a known type."""
        if self.channel.encoding not in ROS_ENCODINGS:
            return False
        return bool(self.channel.definition) or self.channel.type in standard_types(self.channel.encoding)

    @property
    def is_headed(self) -> bool:
        """Whether its messages start with a header."""
        known = mapping_of(self.channel.type).headed or self.channel.type in PAYLOADS
        return known or _HEADER_FIRST.match(self.channel.definition) is not None

    @property
    def first_log_ns(self) -> int:
        """Log time of its first message; 0 without messages."""
        times = (file.first_log(channel) for file, channel in self.parts)
        return next((t_ns for t_ns in times if t_ns is not None), 0)

    def first(self) -> bytes | None:
        """Return the first bytes of its first message."""
        found = (file.first(channel) for file, channel in self.parts)
        return next((raw for raw in found if raw is not None), None)

    def first_whole(self) -> bytes | None:
        """Read its whole first message."""
        for file, channel in self.parts:
            rows = np.flatnonzero(file.index.channel == channel)
            if len(rows):
                return file.payload((int(file.index.chunk[rows[0]]), int(file.index.offset[rows[0]])))
        return None

    def messages(self) -> TopicMessages:
        """Read all messages; only the first bytes of payloads."""
        parts = [file.messages(channel) for file, channel in self.parts]
        places = [(file.name, part.places) for (file, _), part in zip(self.parts, parts, strict=True)]
        return TopicMessages(
            np.concatenate([part.log_ns for part in parts]),
            np.concatenate([part.publish_ns for part in parts]),
            np.concatenate([part.sizes for part in parts]),
            [raw for part in parts for raw in part.raws],
            places,
            tuple(loss for part in parts for loss in part.losses),
        )

    def raw(self, name: str) -> bytes:
        """Read the message of that name."""
        file, place = self._place(name)
        return file.payload(place)

    def _place(self, name: str) -> tuple[BagFile, MessagePosition]:
        file, _, place = name.rpartition("@")
        chunk, _, offset = place.partition(":")
        known = next((part for part, _ in self.parts if part.name == file), None)
        if known is None or not (chunk.isdigit() and offset.isdigit()):
            raise ParseError(f"there is no message {name}", where=self.name)
        return known, (int(chunk), int(offset))

    def losses(self, found: TopicMessages, bad: dict[int, str]) -> tuple[Loss, ...]:
        """Return the losses of messages that could not be decoded, one per file and reason."""
        names = found.names if bad else []
        grouped: dict[tuple[str, str], list[int]] = {}
        for number, reason in bad.items():
            grouped.setdefault((names[number].rpartition("@")[0], reason), []).append(number)
        losses: list[Loss] = []
        for (name, reason), numbers in grouped.items():
            file, place = self._place(names[numbers[0]])
            text = f"messages of {self.name} are not {self.channel.type or self.channel.encoding}: {reason}"
            losses.append(Loss(name, text, byte=file.byte(place), count=len(numbers)))
        return tuple(losses)

    def decoder(self, sample: bytes) -> tuple[MessageDecoder | None, list[str]]:
        """Return the decoder that can read a message, with a note if the bag's own definition cannot."""
        kind = self.channel.type
        known = list(candidates(self.channel))
        decoders = [MessageDecoder(kind, types, self.channel.encoding == "cdr") for types, _ in known]
        fitting = [k for k, decoder in enumerate(decoders) if decoder.fits(sample)]
        chosen = fitting[0] if fitting else 0
        if len(fitting) > 1 and not paths_of(kind, known[1][0]) <= paths_of(kind, known[0][0]):
            chosen = 1
        if chosen == 0:
            return (decoders[0] if decoders else None), []
        return decoders[1], [f"{known[0][1]} of {kind} is not right, {known[1][1]} is used"]

    def decode_first(self) -> Columns | None:
        """Decode the first message; None if impossible, or if it is longer than `MESSAGE_HEAD_BYTES`."""
        raw = self.first()
        decoder = self.decoder(raw)[0] if raw is not None else None
        if raw is None or decoder is None:
            return None
        columns, kept, _ = decoder.decode([raw])
        return columns if len(kept) else None


def topics_of(files: Sequence[BagFile]) -> list[Topic]:
    """Group the channels of files by topic and type."""
    grouped: dict[tuple[str, str], list[tuple[BagFile, int]]] = {}
    for file in files:
        for number, channel in file.channels.items():
            grouped.setdefault((channel.topic, channel.type), []).append((file, number))
    names = [topic for topic, _ in grouped]
    topics: list[Topic] = []
    for (topic, kind), parts in grouped.items():
        name = topic if names.count(topic) == 1 else f"{topic} ({kind})"
        channels = [file.channels[number] for file, number in parts]
        described = next((channel for channel in channels if channel.definition), channels[0])
        topics.append(Topic(name, described, tuple(parts)))
    return sorted(topics, key=lambda topic: topic.name)


class Head:
    """Reads the first values of a message one by one; raises `struct.error` at its end."""

    def __init__(self, raw: bytes, encoding: str) -> None:
        self._raw = raw
        self._cdr = encoding == "cdr"
        self._number = struct.Struct(">I" if self._cdr and raw[1:2] == b"\x00" else "<I")
        self._at = 4 if self._cdr else 0

    def number(self) -> int:
        """Read an unsigned integer of 4 bytes."""
        self._at += -self._at % 4 if self._cdr else 0
        value = self._number.unpack_from(self._raw, self._at)[0]
        self._at += 4
        return value

    def text(self) -> str:
        """Read a string."""
        length = self.number()
        value = self._raw[self._at : self._at + length]
        self._at += length
        return value.rstrip(b"\x00").decode("utf-8", "replace")

    def header(self) -> tuple[int, str]:
        """Read a header: stamp in ns, and frame."""
        if not self._cdr:
            self.number()
        sec, nsec = self.number(), self.number()
        if self._cdr and sec >= 2**31:
            sec -= 2**32
        return sec * NS + nsec, frame_name(self.text())


def header_of(raw: bytes | None, encoding: str) -> tuple[int, str]:
    """Return stamp and frame of a message that starts with a header; 0 and "" if it is too short."""
    try:
        return Head(raw or b"", encoding).header()
    except struct.error:
        return 0, ""
