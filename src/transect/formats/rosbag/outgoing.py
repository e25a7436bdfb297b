"""What of a recording goes into a bag, topic by topic, and what cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from transect.base.arrays import Ints
from transect.errors import UnsupportedError
from transect.recording import Recording, Stream

from .._payloads import PAYLOAD_ERRORS, LeftOut
from .cameras import CAMERA_INFO
from .frames import TF_TYPES
from .sinks import encoding_of, sink_for
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
