"""Streams of a recording from the topics of a bag, each parsed on access."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from transect import types
from transect.base.clocks import CLOCKS, Clock
from transect.recording import FrameTree, Loss, Parsed, Recording, Role, Source, Stream, arrow
from transect.recording.arrow import PAYLOAD
from transect.recording.stream import LOGGED_TYPE
from transect.types import Record

from .bag_file import BagFile
from .cameras import Cameras, cameras_of
from .json_messages import IMAGES, columns_of, rows_of
from .ros_messages import (
    NS,
    PAYLOADS,
    UNMEASURED,
    MessageTable,
    fields_of,
    mapping_of,
    sample_times,
    tabulate,
)
from .stream_names import restore_names
from .topics import Head, Topic, TopicMessages, header_of, topics_of
from .transforms import TF_TYPES, LazyFrameTree, add_tf, is_static, tabulate_tf

if TYPE_CHECKING:
    from transect.types import CameraModel

    from .ros_payloads import Read

MIN_UTC_NS = 946_684_800 * NS
"""2000-01-01: earlier stamps are the time of a simulation or a device, not Unix time."""
METADATA = "transect"
"""Key of a channel's metadata with the attributes of a stream written by transect, as JSON."""
_CLOCKS: dict[str, Clock] = {clock: clock for clock in CLOCKS}
_ROLES: dict[str, Role] = {
    "measurement": "measurement",
    "derived": "derived",
    "truth": "truth",
    "estimate": "estimate",
}
_TRUTH = {"ground_truth", "groundtruth", "truth", "gt"}
_ESTIMATE = {"filtered", "estimate", "estimated", "amcl_pose"}
_TAGS = ("left", "right", "main", "aux", "front", "rear")


def recording_of(
    source: Source,
    files: Sequence[BagFile],
    notes: Iterable[str] = (),
    losses: Iterable[Loss] = (),
    topics: Sequence[Topic] | None = None,
) -> Recording:
    """Return the recording of a bag's files, or of some of their topics; messages are read on access."""
    topics = restore_names(topics_of(files) if topics is None else topics)
    read_heads_only(topic for topic in topics if not _has_columns(topic))
    cameras = cameras_of(topics)
    streams = tuple(_stream(source, topic, cameras) for topic in topics)
    tf = [stream for stream, topic in zip(streams, topics, strict=True) if topic.channel.type in TF_TYPES]
    return Recording(
        name=source.stem,
        streams=streams,
        frames=_frames(tf),
        cameras=cameras.models,
        source=source,
        notes=(*notes, *(note for file in files for note in file.notes), *cameras.notes),
        reader_losses=(*losses, *(loss for file in files for loss in file.losses)),
    )


def read_heads_only(topics: Iterable[Topic]) -> None:
    """Make the files of topics read only the first bytes of messages when they are listed."""
    for topic in topics:
        for file, number in topic.parts:
            file.heads |= {number}


def _has_columns(topic: Topic) -> bool:
    """Return whether a topic's messages are read as columns, not as payloads."""
    if topic.channel.encoding == "json":
        return topic.channel.type != IMAGES
    return topic.is_ros and topic.channel.type not in PAYLOADS


def _frames(tf: Sequence[Stream]) -> FrameTree:
    def fill(tree: FrameTree) -> None:
        for stream in sorted(tf, key=lambda stream: not is_static(stream.name)):
            if len(stream):
                static = is_static(stream.name)
                add_tf(tree, stream.table, static=static, clock=stream.clock, source=stream.name)

    return LazyFrameTree(fill) if tf else FrameTree()


def _stream(source: Source, topic: Topic, cameras: Cameras) -> Stream:
    if topic.channel.encoding == "json":
        return (_json_images if topic.channel.type == IMAGES else json_stream)(source, topic)
    if not topic.is_ros:
        return _raw_stream(source, topic)
    if topic.channel.type in PAYLOADS:
        return _payload_stream(source, topic, cameras)
    if topic.channel.type in TF_TYPES:
        clock = guess_clock(_first_tf_stamp(topic) or topic.first_log_ns)
        build = partial(tabulate_tf, topic=topic.name, clock=clock)
        return _ros_stream(topic, Record, partial(_parse_columns, source, topic, build), clock=clock)
    raw = topic.first()
    stamp_ns, frame = header_of(raw, topic.channel.encoding) if topic.is_headed else (0, "")
    said = {"clock": guess_clock(stamp_ns or topic.first_log_ns), "frame": frame, "child": _child(topic, raw)}
    kind = mapping_of(topic.channel.type)
    build = partial(tabulate, kind=kind, topic=topic.name, unmeasured=topic.unmeasured, **said)
    return _ros_stream(topic, kind.type, partial(_parse_columns, source, topic, build), **said)


def _ros_stream(topic: Topic, kind: type, parse: Callable[[], Parsed], **attributes: Any) -> Stream:
    meta = {
        "channel": topic.channel, "raw": topic.raw, "timeless": is_static(topic.name),
        LOGGED_TYPE: topic.channel.type, UNMEASURED: topic.unmeasured,
    }  # fmt: skip
    attributes = {"tag": _tag(topic.name), "role": _role(topic.name), **attributes, **_labels(topic)}
    return Stream(topic.name, kind, parse, meta=meta, **attributes)


def _labels(topic: Topic) -> dict[str, str]:
    """Return the attributes of a stream recorded by transect, without unknown clocks and roles."""
    known = {"clock": _CLOCKS, "role": _ROLES}
    return {name: text for name, text in topic.labels.items() if text in known.get(name, (text,))}


def _role(topic: str) -> Role:
    words = set(re.split(r"[/.\-]", topic.lower()))
    return "truth" if words & _TRUTH else "estimate" if words & _ESTIMATE else "measurement"


def _tag(topic: str) -> str:
    words = re.split(r"[/._\-]", topic.lower())
    return next((word for word in words if word in _TAGS), "")


def _side_of(name: str, cameras: Mapping[str, CameraModel]) -> str:
    """Return `left` or `right` for a camera of a rectified pair: only the right one's P has a baseline."""
    pair = {n: c.P[0, 3] for n, c in cameras.items() if c.P is not None and c.P[0, 3] <= 0}
    if len(pair) != 2 or sorted(shift < 0 for shift in pair.values()) != [False, True]:
        return ""
    return ("right" if pair[name] < 0 else "left") if name in pair else ""


def guess_clock(first_ns: int) -> Clock:
    """Return the clock that the first time indicates."""
    return "device" if 0 < first_ns < MIN_UTC_NS else "utc"


def _first_tf_stamp(topic: Topic) -> int:
    columns = topic.decode_first()
    if columns is None:
        return 0
    stamps = tabulate_tf(columns, np.zeros(1, dtype=np.int64), topic.name, "device").table
    return int(arrow.numbers(stamps, "t_ns")[0]) if len(stamps) else 0


def _child(topic: Topic, raw: bytes | None) -> str:
    """Return the moving frame, which follows the header of messages that have one."""
    if raw is None or not mapping_of(topic.channel.type).child:
        return ""
    try:
        head = Head(raw, topic.channel.encoding)
        head.header()
        return head.text().lstrip("/")
    except struct.error:
        return ""


def read_topic(source: Source, topic: Topic) -> TopicMessages:
    """Read the messages of a topic; only the first bytes of payloads."""
    for file, _ in topic.parts:
        source.record_read(file.name)
    return topic.messages()


def _parse_columns(source: Source, topic: Topic, build: Callable[..., MessageTable]) -> Parsed:
    """Decode all messages of a topic into a table."""
    found = read_topic(source, topic)
    decoder, notes = topic.decoder(found.raws[0]) if found.raws else (None, [])
    if decoder is None and found.raws:
        return _sizes(found, f"{topic.name}: the definition of {topic.channel.type} cannot be used")
    columns, kept, bad = decoder.decode(found.raws) if decoder else ({}, np.zeros(0, dtype=np.int64), {})
    made = build(columns, log_ns=found.log_ns[kept])
    return Parsed(made.table, (*found.losses, *topic.losses(found, bad)), (*notes, *made.notes))


def _sizes(found: TopicMessages, why: str) -> Parsed:
    """Return times and sizes of messages that cannot be decoded."""
    columns = {"size": found.sizes, PAYLOAD: arrow.strings(found.names)}
    t_ns = np.where(found.publish_ns > 0, found.publish_ns, found.log_ns)
    table = arrow.table(t_ns, columns, units={"size": "B"}, log_ns=found.log_ns)
    return Parsed(table, found.losses, (f"{why}, its messages are kept as bytes",))


def _raw_stream(source: Source, topic: Topic) -> Stream:
    channel = topic.channel
    described = f"{channel.type or 'without a schema'}, encoding {channel.encoding or 'unknown'}"
    why = f"{topic.name}: messages of this type cannot be read here ({described})"
    attributes = {"clock": guess_clock(topic.first_log_ns), "loader": lambda row: topic.raw(row[PAYLOAD])}
    return _ros_stream(topic, Record, lambda: _sizes(read_topic(source, topic), why), **attributes)


def _payload_stream(source: Source, topic: Topic, cameras: Cameras) -> Stream:
    from .ros_payloads import DEPTH, READERS

    raw = topic.first()
    kind, read = PAYLOADS[topic.channel.type], READERS[topic.channel.type]
    if _is_depth(topic, raw):
        kind, read = "DepthMap", DEPTH[topic.channel.type]
    stamp_ns, frame = header_of(raw, topic.channel.encoding)
    clock = guess_clock(stamp_ns or topic.first_log_ns)
    camera = cameras.beside(topic) if kind in ("Image", "DepthMap") else ""
    loader = _loader(topic, read, frame, cameras.models.get(camera))
    said = {"clock": clock, "frame": frame, "camera": camera, "loader": loader}
    said["tag"] = _tag(topic.name) or _side_of(camera, cameras.models)
    return _ros_stream(topic, getattr(types, kind), partial(_parse_payloads, source, topic, clock), **said)


def _parse_payloads(source: Source, topic: Topic, clock: str) -> Parsed:
    """List the messages of a topic with the stamps in their headers."""
    found = read_topic(source, topic)
    stamps = [header_of(raw, topic.channel.encoding)[0] for raw in found.raws]
    t_ns, notes = sample_times(np.array(stamps, dtype=np.int64), found.log_ns, topic.name, clock)
    table = arrow.table(t_ns, {PAYLOAD: arrow.strings(found.names)}, log_ns=found.log_ns)
    return Parsed(table, found.losses, tuple(notes))


def _is_depth(topic: Topic, raw: bytes | None) -> bool:
    """Return whether an image is a depth image, from its encoding and, for millimetres, its topic."""
    if raw is None or PAYLOADS[topic.channel.type] != "Image":
        return False
    head = Head(raw, topic.channel.encoding)
    try:
        head.header()
        if topic.channel.type.endswith("CompressedImage"):
            return "compressedDepth" in head.text()
        _height, _width, encoding = head.number(), head.number(), head.text()
    except struct.error:
        return False
    return encoding == "32FC1" or (encoding == "16UC1" and "depth" in topic.name.lower())


def _loader(
    topic: Topic, read: Read, frame: str, camera: CameraModel | None
) -> Callable[[Mapping[str, Any]], Any]:
    from .ros_payloads import PayloadContext

    def load(row: Mapping[str, Any]) -> Any:
        raw = topic.raw(row[PAYLOAD])
        where, child = f"{topic.name}, {row[PAYLOAD]}", topic.labels.get("child", "")
        context = PayloadContext(where, int(row["t_ns"]), frame, camera, child)
        decoder, _ = topic.decoder(raw)
        if decoder is None:
            raise context.error("a message cannot be decoded", f"{topic.channel.type} is not described")
        columns, kept, bad = decoder.decode([raw])
        if not len(kept):
            raise context.error("a message cannot be decoded", bad[0])
        try:
            return read(fields_of(columns), context)
        except (KeyError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
            raise context.error("a message cannot be decoded", f"{type(error).__name__}: {error}") from error

    return load


def json_stream(source: Source, topic: Topic) -> Stream:
    """Return JSON messages as a stream of columns, with the attributes recorded by transect if there are."""
    record = stream_record(topic)
    kind = getattr(types, str(record.get("type", "")), Record)
    return Stream(
        topic.name,
        kind if isinstance(kind, type) else Record,
        partial(_parse_json, source, topic, record.get("logged")),
        clock=_CLOCKS.get(str(record.get("clock")), guess_clock(topic.first_log_ns)),
        role=_ROLES.get(str(record.get("role")), _role(topic.name)),
        tag=str(record.get("tag", "")),
        frame=str(record.get("frame", "")),
        child=str(record.get("child", "")),
        meta={} if record else {LOGGED_TYPE: topic.channel.type},
    )


def _json_images(source: Source, topic: Topic) -> Stream:
    """Return the stream of images in JSON messages, which are read on access."""
    from .json_messages import frame_of, read_image

    stream = json_stream(source, topic)
    record = stream_record(topic)
    frame = stream.frame or frame_of(topic.first())

    def load(row: Mapping[str, Any]) -> Any:
        where = f"{topic.name}, {row[PAYLOAD]}"
        raw, mode = topic.raw(row[PAYLOAD]), str(record.get("mode", ""))
        return read_image(raw, where, t_ns=int(row["t_ns"]), frame=frame, camera=None, mode=mode)

    return stream.replace(
        type=types.Image,
        source=partial(_parse_json_images, source, topic, record.get("logged")),
        tag=stream.tag or _tag(topic.name),
        frame=frame,
        loader=load,
    )


def _parse_json_images(source: Source, topic: Topic, logged: bool | None) -> Parsed:
    """List messages with their times: the publish time if transect wrote them, else the stamp if any."""
    from .json_messages import stamps_of

    found = read_topic(source, topic)
    t_ns = np.where((found.publish_ns > 0) | (logged is not None), found.publish_ns, found.log_ns)
    if logged is None:
        stamps = stamps_of(found.raws)
        t_ns = np.where(stamps > 0, stamps, t_ns)
    log_ns = None if logged is False else found.log_ns
    return Parsed(arrow.table(t_ns, {PAYLOAD: arrow.strings(found.names)}, log_ns=log_ns), found.losses)


def stream_record(topic: Topic) -> dict[str, Any]:
    """Return the attributes of a stream as recorded by transect; empty for other writers."""
    return _object(topic.channel.metadata.get(METADATA, ""))


def _object(text: str) -> dict[str, Any]:
    """Return a JSON object; an empty one for any other text."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _parse_json(source: Source, topic: Topic, logged: bool | None) -> Parsed:
    """Read JSON messages; `logged` (whether there is a log time) is None if transect did not write them."""
    found = read_topic(source, topic)
    rows, kept, bad = rows_of(found.raws)
    properties = properties_of(topic.channel.definition)
    columns = columns_of(rows, properties)
    units = {
        name: str(text["unit"])
        for name, text in properties.items()
        if isinstance(text, dict) and "unit" in text
    }
    t_ns = np.where((found.publish_ns > 0) | (logged is not None), found.publish_ns, found.log_ns)[kept]
    if logged is None and {"timestamp.sec", "timestamp.nsec"} <= set(columns):
        t_ns = columns.pop("timestamp.sec").astype(np.int64) * NS + columns.pop("timestamp.nsec").astype(
            np.int64
        )
    table = arrow.table(t_ns, columns, units=units, log_ns=None if logged is False else found.log_ns[kept])
    return Parsed(table, (*found.losses, *topic.losses(found, bad)))


def properties_of(schema: str) -> dict[str, Any]:
    """Return the properties of a JSON Schema."""
    found = _object(schema).get("properties", {})
    return found if isinstance(found, dict) else {}
