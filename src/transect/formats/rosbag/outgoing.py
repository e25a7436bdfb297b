"""What of a recording goes into a bag, topic by topic, and what cannot."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.arrays import Ints
from transect.base.files import atomic_write, refuse_existing, staged
from transect.errors import UnsupportedError
from transect.recording import Recording, Stream

from .._payloads import PAYLOAD_ERRORS, LeftOut
from .cameras import CAMERA_INFO
from .frames import TF_TYPES
from .write_payloads import camera_outgoing, frames_outgoing, payload_outgoing
from .writing import Outgoing, columns_outgoing, log_times

LATEST_STAMP_S = {"ros1": 2**32, "cdr": 2**31}
LATEST_LOG_S = {"ros1": 2**32, "cdr": 2**63 // 10**9}
"""How far stamps and log times reach, in seconds."""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording as a bag; see `transect.formats.rosbag.write`."""
    topics, said = outgoing_of(recording, encoding_of(path))
    with sink_for(path) as open_topic:
        writes = [open_topic(topic.topic, topic.type, topic.store) for topic in topics]
        bad = [LeftOut(topic.topic) for topic in topics]
        for which, row in in_log_order([topic.log_ns for topic in topics]):
            log_ns = int(topics[which].log_ns[row])
            try:
                message = topics[which].message(row)
            except PAYLOAD_ERRORS as error:
                bad[which].add(error)
                continue
            writes[which](log_ns, log_ns, message)
    said += [text for lost, topic in zip(bad, topics, strict=True) for text in lost.said(len(topic.log_ns))]
    return tuple(said)


def outgoing_of(recording: Recording, encoding: str) -> tuple[list[Outgoing], list[str]]:
    """Return the topics of a recording for an encoding, and sentences on what they leave out."""
    topics: list[Outgoing] = []
    said: list[str] = []
    for stream in recording.streams:
        _refuse_times(stream, stream.t_ns, LATEST_STAMP_S[encoding])
        _refuse_times(stream, log_times(stream), LATEST_LOG_S[encoding])
        if stream.loader is not None:
            topic, lost = payload_outgoing(stream, recording, encoding)
        else:
            topic, lost = columns_outgoing(stream, encoding)
        topics += [topic] if topic is not None else []
        said += lost
    start = recording.span[0] if recording.span else 0
    topics += _cameras(recording, topics, start, encoding)
    if not any(topic.type in TF_TYPES for topic in topics):
        topics += frames_outgoing(recording.frames, start, encoding)
    said += [
        f"{s.name}: its clock is {s.clock}, which a bag does not say"
        for s in recording
        if s.clock in ("sclk", "index")
    ]
    return topics, said


def _refuse_times(stream: Stream, times: Ints, seconds: int) -> None:
    if len(times) and not (times.min() >= 0 and times.max() // 10**9 < seconds):
        raise UnsupportedError(
            f"{stream.name} has times that a bag cannot hold",
            where=stream.name,
            why=f"they run from {times.min()} to {times.max()} ns",
        )


def _cameras(
    recording: Recording, topics: Sequence[Outgoing], t_ns: int, encoding: str
) -> Iterator[Outgoing]:
    """Write the calibration of each image stream beside it, unless it is there as a stream."""
    there = {topic.topic.rpartition("/")[0].strip("/") for topic in topics if topic.type == CAMERA_INFO}
    for stream in recording.streams:
        camera = recording.cameras.get(stream.camera)
        if camera is not None and stream.camera not in there:
            there.add(stream.camera)
            yield camera_outgoing(camera, f"/{stream.camera}/camera_info", t_ns, encoding)


def in_log_order(axes: Sequence[Ints]) -> Iterator[tuple[int, int]]:
    """Iterate over (axis, row) of several time axes in order of time; rows of an axis keep their order."""
    if not axes:
        return
    axes = [np.maximum.accumulate(axis) for axis in axes]
    which = np.repeat(np.arange(len(axes)), [len(axis) for axis in axes])
    row = np.concatenate([np.arange(len(axis)) for axis in axes])
    order = np.argsort(np.concatenate(axes), kind="stable")
    yield from zip(which[order].tolist(), row[order].tolist(), strict=True)


Write = Callable[[int, int, bytes], None]
"""Writes a message: log time, sample time, data."""
Sink = Callable[[str, str, Any], Write]
"""Opens a topic: name, type, and a typestore that knows it."""


def encoding_of(path: Path) -> str:
    """How messages are encoded in a file of that name."""
    return "ros1" if path.suffix == ".bag" else "cdr"


def sink_for(path: Path) -> Any:
    """Return the context in which a bag of that name is written; it appears when the context ends."""
    if path.suffix == ".bag":
        return _ros1(path)
    return _mcap(path) if path.suffix == ".mcap" else _folder(path)


@contextmanager
def _ros1(path: Path) -> Generator[Sink, None, None]:
    from rosbags.rosbag1 import Writer

    with staged(path) as building, Writer(building) as bag:
        yield partial(_open_topic, bag)


@contextmanager
def _folder(path: Path) -> Generator[Sink, None, None]:
    from rosbags.rosbag2 import Writer

    refuse_existing(path, hint="give a new folder, or an empty one")
    with staged(path) as building, Writer(building, version=8) as bag:
        yield partial(_open_topic, bag)


def _open_topic(bag: Any, topic: str, kind: str, store: Any) -> Write:
    connection = bag.add_connection(topic, kind, typestore=store)
    return lambda log_ns, _, data: bag.write(connection, log_ns, data)


@contextmanager
def _mcap(path: Path) -> Generator[Sink, None, None]:
    """Write with the mcap library: rosbags' own writer leaves out the checksums."""
    from mcap.writer import Writer

    with atomic_write(path) as stream:
        bag = Writer(stream, enable_data_crcs=True)
        bag.start(profile="ros2")
        schemas: dict[str, int] = {}

        def open_topic(topic: str, kind: str, store: Any) -> Write:
            if kind not in schemas:
                definition, _ = store.generate_msgdef(kind, ros_version=2)
                schemas[kind] = bag.register_schema(kind, "ros2msg", definition.encode())
            channel = bag.register_channel(topic, "cdr", schemas[kind])
            return lambda log_ns, t_ns, data: bag.add_message(channel, log_ns, data, publish_time=t_ns)

        yield open_topic
        bag.finish()
