"""Messages of Foxglove's schemas, in protobuf or JSON, as streams, frames and cameras.

Messages of any other protobuf schema become rows of named values.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.base.units import to_si
from transect.errors import FrameError
from transect.geometry import se3
from transect.recording import FrameTree, Loss, Parsed, Recording, Source, Stream, arrow
from transect.recording.arrow import PAYLOAD, T_NS
from transect.recording.stream import LOGGED_TYPE
from transect.types import CameraModel, DepthMap, LaserScan, NavFix, Pose, Record

from ..shared.bags.bag_file import Channel
from ..shared.bags.cameras import camera_of
from ..shared.bags.json_messages import IMAGES, columns_of, stamps_of
from ..shared.bags.json_messages import rows_of as json_rows
from ..shared.bags.ros_messages import FIX_POSITION, pose_columns, standard_deviations, transform_columns
from ..shared.bags.ros_payloads import PayloadContext
from ..shared.bags.streams import json_stream, properties_of, read_heads_only, read_topic, stream_record
from ..shared.bags.topics import Topic, TopicMessages
from ..shared.bags.transforms import LazyFrameTree
from .foxglove_payloads import READERS, read_depth
from .foxglove_schemas import PACKAGE, decode_fields, decode_rows, import_protobuf, is_readable
from .foxglove_writing import PAYLOAD_BESIDE

Columns = dict[str, Any]
FRAMES = (f"{PACKAGE}.FrameTransform", f"{PACKAGE}.FrameTransforms")
CALIBRATION = f"{PACKAGE}.CameraCalibration"
_POSE, _TRANSFORM = pose_columns("pose"), transform_columns("")


@dataclass(frozen=True)
class SchemaReader:
    """Mapping of a schema to a transect type."""

    type: type
    paths: Mapping[str, str]  # Column names by the path of a field
    adapt: Callable[[Columns], None] = lambda columns: None  # Converts columns from Foxglove's conventions
    needs: tuple[str, ...] = ()  # Numeric columns that `adapt` needs

    def fits(self, columns: Columns) -> bool:
        """Return whether messages have the required columns."""
        found = [columns.get(name) for name in self.needs]
        return all(isinstance(c, np.ndarray) and c.ndim == 1 and c.dtype.kind in "fiu" for c in found)


def _adapt_fix(columns: Columns) -> None:
    for name in ("lat", "lon"):
        columns[name] = to_si(columns[name], "deg")
    covariance = columns.pop("position_covariance", None)
    kinds = columns.pop("position_covariance_type", None)
    if isinstance(covariance, np.ndarray) and covariance.ndim == 2 and covariance.shape[1] == 9:
        columns |= standard_deviations(covariance, np.asarray(kinds) != (None if kinds is None else 0))


def _adapt_scan(columns: Columns) -> None:
    last = columns.pop("end_angle")
    steps: Ints = np.zeros(len(last), dtype=np.int64)
    ranges = columns.get("ranges")
    if isinstance(ranges, np.ndarray) and ranges.ndim == 2:
        steps = np.full(len(last), ranges.shape[1] - 1)
    elif isinstance(ranges, pa.LargeListArray):
        steps = np.diff(arrow.lists_of(pa.table({"ranges": ranges}), "ranges")[1]) - 1
    columns["angle_increment"] = (last - columns["start_angle"]) / np.maximum(steps, 1)
    for path, name in _POSE.items():
        values = columns.get(path)
        if values is not None and np.all(values == (1.0 if name == "qw" else 0.0)):
            del columns[path]


SCHEMA_READERS = {
    f"{PACKAGE}.LaserScan": SchemaReader(
        LaserScan, {"intensities": "remission"}, _adapt_scan, ("start_angle", "end_angle")
    ),
    f"{PACKAGE}.LocationFix": SchemaReader(NavFix, FIX_POSITION, _adapt_fix, ("lat", "lon")),
    f"{PACKAGE}.PoseInFrame": SchemaReader(Pose, _POSE),
    f"{PACKAGE}.Log": SchemaReader(Record, {}),
    f"{PACKAGE}.FrameTransform": SchemaReader(Pose, _TRANSFORM),
    CALIBRATION: SchemaReader(Record, {}),
}
"""Schemas that are read as columns."""


def is_known(topic: Topic) -> bool:
    """Return whether a topic is protobuf, a Foxglove schema in JSON, or the companion of such a topic."""
    channel = topic.channel
    if channel.encoding == "protobuf":
        return bool(channel.definition) and is_readable()
    if channel.encoding != "json":
        return False
    named = channel.type in (*SCHEMA_READERS, *READERS, *FRAMES) and channel.type != IMAGES
    return named or "beside" in stream_record(topic)


def attach(recording: Recording, source: Source, topics: Sequence[Topic]) -> Recording:
    """Return a recording with the streams, frames and cameras of topics for which `is_known` is true."""
    records = [(topic, stream_record(topic)) for topic in topics]
    beside = {str(record["beside"]): topic for topic, record in records if "beside" in record}
    cameras = _cameras(source, [topic for topic in topics if topic.channel.type == CALIBRATION])
    main = [topic for topic, record in records if not (record and {"beside", "frames"} & set(record))]
    main = [topic for topic in main if not (stream_record(topic) and topic.channel.type == CALIBRATION)]
    read_heads_only(topic for topic in main if topic.channel.type in READERS)
    streams = [_stream(_TopicReader(source, topic, beside.get(topic.name)), cameras) for topic in main]
    named = sorted((*recording.streams, *streams), key=lambda stream: stream.name)
    moved = [_TopicReader(source, topic, None) for topic in topics if topic.channel.type in FRAMES]
    return recording.replace(
        streams=tuple(named),
        frames=LazyFrameTree(partial(_fill, moved)) if moved else recording.frames,
        cameras={**recording.cameras, **cameras},
    )


@dataclass(frozen=True)
class _TopicReader:
    """Reads a topic, and its companion topic with the columns that are not in its schema."""

    source: Source
    topic: Topic
    beside: Topic | None  # The companion

    @cached_property
    def said(self) -> dict[str, Any]:
        return stream_record(self.topic)

    @cached_property
    def found(self) -> TopicMessages:
        return read_topic(self.source, self.topic)

    @cached_property
    def first(self) -> dict[str, Any]:
        """Fields of the first message; empty if it cannot be read."""
        raw = self.topic.first_whole()
        try:
            return self.fields(raw) if raw is not None else {}
        except ValueError:
            return {}

    def fields(self, raw: bytes) -> dict[str, Any]:
        """Return the fields of one message, bytes as bytes."""
        channel = self.topic.channel
        if channel.encoding == "protobuf":
            return decode_fields(raw, descriptors_of(channel), channel.type)
        rows, _, bad = json_rows([raw])
        if bad:
            raise ValueError(bad[0])
        data = rows[0].get("data")
        if isinstance(data, str):
            try:
                rows[0]["data"] = base64.b64decode(data, validate=True)
            except binascii.Error as error:
                raise ValueError(f"its data are not base64 ({error})") from error
        return {path: _flatten_objects(value) for path, value in rows[0].items()}

    def rows(self) -> tuple[list[dict[str, Any]], list[int], dict[int, str]]:
        """Return the fields of all messages as JSON values."""
        channel = self.topic.channel
        if channel.encoding == "json":
            return json_rows(self.found.raws)
        return decode_rows(self.found.raws, descriptors_of(channel), channel.type)

    @property
    def log_ns(self) -> Ints | None:
        return None if self.said.get("logged") is False else self.found.log_ns

    def times(self, rows: Sequence[Mapping[str, Any]], kept: Sequence[int]) -> Ints:
        """Return the times of measurement: the publish time if transect wrote the file, else the stamp."""
        found = self.found
        published = np.where(found.publish_ns > 0, found.publish_ns, found.log_ns)[kept]
        if self.said:
            return found.publish_ns[kept]
        stamps = np.array([_stamp_ns(row) for row in rows], dtype=np.int64)
        return np.where(stamps > 0, stamps, published)

    @cached_property
    def companion_rows(self) -> tuple[list[dict[str, Any]], tuple[Loss, ...]]:
        """One row per message of the companion topic; empty with a loss if the times do not match."""
        if self.beside is None:
            return [], ()
        other = read_topic(self.source, self.beside)
        rows, _, bad = json_rows(other.raws)
        if bad or not np.array_equal(other.publish_ns, self.found.publish_ns):
            reason = f"the columns of {self.topic.name} that its schema has no place for do not fit to it"
            return [], (Loss(self.beside.parts[0][0].name, reason, count=len(self.found.raws)),)
        return rows, ()

    @cached_property
    def payloads_beside(self) -> dict[str, str]:
        """Additional fields of each payload, as JSON, by the name of its message."""
        texts = (str(row.get(PAYLOAD_BESIDE, "{}")) for row in self.companion_rows[0])
        return dict(zip(self.found.names, texts, strict=False))


def descriptors_of(channel: Channel) -> bytes:
    """Return the bytes of the schema of a channel."""
    return channel.definition.encode("latin-1", "replace")


def _mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object; an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def _units(wanted: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(said["unit"]) for name, said in wanted.items() if "unit" in _mapping(said)}


def _stamp_ns(row: Mapping[str, Any]) -> int:
    """Return the stamp of a message in ns; 0 if it has none."""
    parts = [row.get("timestamp.sec", 0), row.get("timestamp.nsec", 0)]
    whole = all(isinstance(part, int) and abs(part) < 2**62 // NS for part in parts)
    return parts[0] * NS + parts[1] if whole else 0


def _stream(reader: _TopicReader, cameras: Mapping[str, CameraModel]) -> Stream:
    topic, said = reader.topic, reader.said
    stream = json_stream(reader.source, topic)  # role, tag, clock and names are recorded in the same way
    frame = stream.frame or str(reader.first.get("frame_id", ""))
    meta = {} if said else {LOGGED_TYPE: topic.channel.type}
    if topic.channel.type in READERS:
        return _payload_stream(reader, stream.replace(frame=frame, meta=meta), cameras)
    kind = SCHEMA_READERS.get(topic.channel.type, SchemaReader(Record, {}))
    made = stream.type if said else kind.type
    if topic.channel.type in FRAMES:
        made, frame = Record, ""
    return stream.replace(type=made, source=partial(_parse, reader, kind), frame=frame, meta=meta)


def _parse(reader: _TopicReader, kind: SchemaReader) -> Parsed:
    """Read messages as columns; those written by transect keep their order and types."""
    rows, kept, bad = reader.rows()
    if reader.topic.channel.type in FRAMES:
        rows, kept = _spread_transforms(rows, kept)
    t_ns = reader.times(rows, kept)
    drop = (
        ("timestamp.sec", "timestamp.nsec", "frame_id") if reader.topic.channel.type in SCHEMA_READERS else ()
    )
    rows = [{path: v for path, v in row.items() if path not in drop} for row in rows]
    wanted = _mapping(reader.said.get("columns"))
    if reader.said.get("text"):
        kind = replace(kind, paths={"message": str(reader.said["text"])})
    paths = {column: path for path, column in kind.paths.items()}
    columns = columns_of(rows, {paths.get(name, name): said for name, said in wanted.items()})
    columns = {kind.paths.get(path, path): values for path, values in columns.items()}
    notes: list[str] = []
    if rows and kind.fits(columns):
        kind.adapt(columns)
    elif rows:
        notes.append(f"{reader.topic.name}: its messages lack {' or '.join(kind.needs)}")
    rest, losses = reader.companion_rows
    if reader.beside is not None:
        columns |= columns_of([rest[k] for k in kept] if rest else [], wanted)
    if wanted:
        columns = {name: columns[name] for name in wanted if name in columns}
    units = _units(wanted)
    units |= {} if wanted else getattr(kind.type, "units", dict)()
    log_ns = None if reader.log_ns is None else reader.log_ns[kept]
    table = arrow.table(t_ns, columns, units=units, log_ns=log_ns)
    return Parsed(
        table, (*reader.found.losses, *reader.topic.losses(reader.found, bad), *losses), tuple(notes)
    )


def _spread_transforms(rows: list[dict[str, Any]], kept: list[int]) -> tuple[list[dict[str, Any]], list[int]]:
    """Return one row for each transform of the messages."""
    spread: list[dict[str, Any]] = []
    numbers: list[int] = []
    for row, number in zip(rows, kept, strict=True):
        held = row.get("transforms", [row])
        held = held if isinstance(held, list) else []
        found = [dict(_join_names("", item)) for item in held if isinstance(item, dict)]
        spread += [{_TRANSFORM.get(path, path): value for path, value in item.items()} for item in found]
        numbers += [number] * len(found)
    return spread, numbers


def _flatten_objects(value: Any) -> Any:
    """Return a list with its JSON objects as dicts of dotted paths; any other value as it is."""
    if not isinstance(value, list):
        return value
    return [dict(_join_names("", item)) if isinstance(item, dict) else item for item in value]


def _join_names(prefix: str, value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    parts = [
        _join_names(f"{prefix}{key}.", inner) if isinstance(inner, dict) else [(f"{prefix}{key}", inner)]
        for key, inner in value.items()
    ]
    return [pair for part in parts for pair in part]


def _payload_stream(reader: _TopicReader, stream: Stream, cameras: Mapping[str, CameraModel]) -> Stream:
    """Return a stream of payloads, which are read on access."""
    kind, read = READERS[reader.topic.channel.type]
    if reader.said.get("type") == DepthMap.__name__:
        kind, read = DepthMap, read_depth
    name = str(reader.said.get("camera", ""))
    camera = cameras.get(name)

    def load(row: Mapping[str, Any]) -> Any:
        where = f"{reader.topic.name}, {row[PAYLOAD]}"
        context = PayloadContext(where, int(row[T_NS]), stream.frame, camera)
        try:
            fields = reader.fields(reader.topic.raw(row[PAYLOAD]))
            beside = _mapping(json.loads(reader.payloads_beside.get(row[PAYLOAD], "{}")))
            beside.setdefault("mode", reader.said.get("mode", ""))
            return read(fields, replace(context, frame=stream.frame or str(fields["frame_id"])), beside)
        except (KeyError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
            raise context.error("a message cannot be decoded", f"{type(error).__name__}: {error}") from error

    return stream.replace(type=kind, source=partial(_list_payloads, reader), loader=load, camera=name)


def _list_payloads(reader: _TopicReader) -> Parsed:
    """List messages with their times and the columns of the companion topic."""
    found = reader.found
    t_ns = reader.times([_head_stamp(raw, reader) for raw in found.raws], range(len(found.raws)))
    rows, losses = reader.companion_rows
    wanted = properties_of(reader.beside.channel.definition) if reader.beside else {}
    columns = {name: v for name, v in columns_of(rows, wanted).items() if name in wanted}
    units = _units(wanted)
    columns[PAYLOAD] = arrow.strings(found.names)
    table = arrow.table(t_ns, columns, units=units, log_ns=reader.log_ns)
    return Parsed(table, (*found.losses, *losses))


def _head_stamp(raw: bytes, reader: _TopicReader) -> dict[str, int]:
    """Return the time in the first bytes of a message."""
    if reader.said:
        return {}
    if reader.topic.channel.encoding == "json":
        sec, nsec = divmod(int(stamps_of([raw])[0]), NS)
        return {"timestamp.sec": sec, "timestamp.nsec": nsec}
    if raw[:1] != b"\x0a" or len(raw) < 2:  # field 1, a message
        return {}
    pb = import_protobuf()
    try:
        stamp = pb.timestamp_pb2.Timestamp.FromString(raw[2 : 2 + raw[1]])
    except pb.message.DecodeError:
        return {}
    return {"timestamp.sec": stamp.seconds, "timestamp.nsec": stamp.nanos}


def _cameras(source: Source, topics: Iterable[Topic]) -> dict[str, CameraModel]:
    """Return the cameras of calibrations by their recorded name, else by their topic."""
    cameras: dict[str, CameraModel] = {}
    for topic in topics:
        reader = _TopicReader(source, topic, None)
        said, first = reader.said, reader.first
        name = str(said.get("camera") or topic.name.rpartition("/")[0] or topic.name)
        try:
            fields = {key.lower(): first[key] for key in "DKRP"} | first
            model = camera_of(fields | {"header.frame_id": first["frame_id"]}, name)
        except (KeyError, ValueError, TypeError):
            continue
        if model.distortion != "none" and first["distortion_model"] == "kannala_brandt":
            model = replace(model, distortion="equidistant")
        if said:
            model = _restore_camera(model, said, first)
        cameras[name] = model
    return cameras


def _restore_camera(model: CameraModel, said: Mapping[str, Any], first: Mapping[str, Any]) -> CameraModel:
    """Return a camera written by transect, undoing the conversion to Foxglove's conventions."""
    changes: dict[str, Any] = {"frame": str(said.get("frame", "")), "invented": bool(said.get("invented"))}
    changes["distortion"] = str(said.get("distortion", model.distortion))
    changes["coefficients"] = np.array(first["D"], dtype=np.float64)
    if said.get("rectified") is False:
        changes |= {"R": np.eye(3), "P": None}
    return replace(model, **changes)


def _fill(readers: Sequence[_TopicReader], tree: FrameTree) -> None:
    """Add the transforms of topics to a tree; an edge with a single time is static."""
    for reader in readers:
        rows, kept, _ = reader.rows()
        rows, _ = _spread_transforms(rows, kept)
        edges: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in rows:
            names = str(row.get("parent_frame_id") or ""), str(row.get("child_frame_id") or "")
            edges.setdefault(names, []).append(row)
        for (parent, child), found in edges.items():
            _add_edge(tree, parent, child, found, reader)


def _add_edge(
    tree: FrameTree, parent: str, child: str, rows: list[dict[str, Any]], reader: _TopicReader
) -> None:
    t_ns = np.array([_stamp_ns(row) for row in rows], dtype=np.int64)
    said = reader.said
    try:
        xyz = np.array([[row.get(axis) or 0.0 for axis in "xyz"] for row in rows], dtype=np.float64)
        turn = np.array([[row.get(f"q{axis}") or 0.0 for axis in "xyzw"] for row in rows], dtype=np.float64)
        if said.get("frames") == "moving" or (not said and len(set(t_ns.tolist())) > 1):
            clock, source = str(said.get("clock", "utc")), str(said.get("source", reader.topic.name))
            tree.add_moving(parent, child, t_ns, xyz, turn, clock=clock, source=source, replace=True)
            return
        source = str(_mapping(said.get("sources")).get(child, reader.topic.name))
        matrix = _mapping(said.get("matrices")).get(child)
        matrix = se3.from_quaternion(turn[-1], xyz[-1]) if matrix is None else np.array(matrix, np.float64)
        tree.add_static(parent, child, matrix, source=source, replace=True)
    except (FrameError, ValueError, TypeError) as error:
        import logging

        text = "%s: the transform of %s is left out of the frame tree: %s"
        logging.getLogger("transect").warning(text, reader.topic.name, child, error)
