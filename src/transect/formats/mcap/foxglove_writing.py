"""A recording as messages of Foxglove's schemas.

A stream of a type that has a schema is one channel of it. What the schema has no place for, and numbers that
it would give back changed, go as JSON on a channel beside it, `NAME/columns`, with equal times: plots can
show them, and reading puts both together again. A stream whose type has no schema is rows of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.clocks import NS
from transect.base.files import reached
from transect.base.units import DEGREES
from transect.errors import UnsupportedError
from transect.geometry import rotations
from transect.recording import FrameTree, Recording, Sample, Stream
from transect.recording.arrow import LOG_NS, PAYLOAD, T_NS
from transect.types import (
    CameraModel,
    GridMap,
    Image,
    LaserScan,
    NavFix,
    Odometry,
    PointCloud,
    Pose,
    Record,
    RigidBodyState,
    Trajectory,
)

from ..shared.bags.cameras import rectify_cameras
from ..shared.bags.json_messages import message_of, schema_of
from ..shared.bags.ros_messages import FIX_SIGMAS
from ..shared.file_heads import suffix_of
from ..shared.payloads import PAYLOAD_ERRORS, LeftOut, source_file
from ..shared.rows import from_si_exactly
from .foxglove_payloads import WRITERS, Beside, set_pose
from .foxglove_schemas import PACKAGE, descriptor_set, message_class
from .outlets import ChannelText, TopicWriter, describe, json_outlet, times_of

Row = dict[str, Any]
BESIDE = "columns"
"""Suffix of the name of a companion channel."""
PAYLOAD_BESIDE = "payload"
"""Key of the companion message with the attributes that the schema of a payload does not have."""
STATIC, MOVING = "frames/static", "frames/moving"
_TOLD_BESIDE = (PointCloud, GridMap, Trajectory)
"""Payloads with attributes that their schema does not have."""
_POSES = (Pose, RigidBodyState, Odometry)
_FILES = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png"}
_POSITION, _TURN = ("x", "y", "z"), ("qx", "qy", "qz", "qw")
_MODELS = {"none": "plumb_bob", "radtan": "plumb_bob", "equidistant": "kannala_brandt"}
LOG_LEVEL_INFO = 2
"""foxglove.Log.Level."""


def list_outlets(recording: Recording) -> tuple[list[TopicWriter], list[str]]:
    """Return the channels of a recording with their messages, and what is left out."""
    outlets: list[TopicWriter] = []
    notes: list[str] = []
    cameras = rectify_cameras(recording)
    for stream in recording.streams:
        if stream.loader is not None and stream.type not in WRITERS:
            kind = stream.type.__name__
            notes.append(f"{stream.name} is not written: Foxglove has no schema for a {kind}")
        elif stream.loader is not None:
            outlets.append(_payload_outlet(recording, stream, cameras))
        elif (kind := _schema_for(stream)) is not None:
            outlets.append(_columns_outlet(stream, kind))
        else:
            outlets.append(json_outlet(recording, stream))
    firsts = [int(outlet.log_ns.min()) for outlet in outlets if len(outlet.log_ns)]
    start_ns = min(firsts, default=0)
    outlets += _frame_outlets(recording.frames, start_ns)
    filmed = {stream.camera for stream in recording.streams if stream.type in WRITERS}
    outlets += (_camera_outlet(recording, cameras[name], start_ns) for name in cameras if name not in filmed)
    return outlets, notes


def _channel(topic: str, schema: str, said: Row) -> ChannelText:
    definition = descriptor_set().SerializeToString()
    return ChannelText(topic, f"{PACKAGE}.{schema}", "protobuf", definition, said)


def _stamp(message: Any, t_ns: int) -> None:
    message.timestamp.seconds, message.timestamp.nanos = divmod(t_ns, NS)


def _schema_for(stream: Stream) -> str | None:
    names = set(stream.columns)
    if stream.type in _POSES:
        return "PoseInFrame" if {"x", "y"} <= names else None
    if stream.type is LaserScan:
        return "LaserScan" if {"ranges", "start_angle", "angle_increment"} <= names else None
    if stream.type is NavFix:
        return "LocationFix" if {"lat", "lon"} <= names else None
    return "Log" if stream.type is Record and _text_of(stream) else None


def _text_of(stream: Stream) -> str:
    """Return the text column of a stream without numbers; "" if there is none of that kind."""
    kinds = {field.name: field.type for field in stream.table.schema if field.name not in (T_NS, LOG_NS)}
    texts = [
        name for name, kind in kinds.items() if pa.types.is_string(kind) or pa.types.is_large_string(kind)
    ]
    if not texts or len(texts) < len(kinds):
        return ""
    return next((name for name in ("message", "text", "event") if name in texts), texts[-1])


def _columns_outlet(stream: Stream, kind: str) -> TopicWriter:
    fill, carried = _FILLERS[kind](stream)
    beside = [name for name in stream.columns if name not in carried]
    properties = schema_of(stream.table, kind)["properties"]
    channel = _channel(
        stream.name, kind, describe(stream) | {"columns": properties, "text": _text_of(stream)}
    )
    channels = (channel, *_beside_channel(stream, beside))

    def rows() -> Iterator[Sequence[bytes]]:
        times = iter(stream.t_ns.tolist())
        made = message_class(kind)
        for batch in stream.table.select(list(stream.columns)).to_batches(max_chunksize=1024):
            for row in batch.to_pylist():
                message = made()
                _stamp(message, next(times))
                fill(message, row)
                if kind != "Log":
                    message.frame_id = stream.frame
                rest = [message_of({name: row[name] for name in beside})] if beside else []
                yield [message.SerializeToString(), *rest]

    return TopicWriter(channels, *times_of(stream), rows())


def _beside_channel(stream: Stream, names: Sequence[str], always: bool = False) -> list[ChannelText]:
    if not names and not always:
        return []
    schema = schema_of(stream.table.select(list(names)), stream.type.__name__)
    name, said = f"transect.{stream.type.__name__}", {"beside": stream.name}
    return [ChannelText(f"{stream.name}/{BESIDE}", name, "json", json.dumps(schema).encode(), said)]


Fill = Callable[[Any, Row], None]
"""Fills a message from a row."""
Filler = Callable[[Stream], tuple[Fill, set[str]]]
"""Returns for a stream a function that fills messages, and the columns that they represent exactly."""


def _pose_filler(stream: Stream) -> tuple[Fill, set[str]]:
    def fill(message: Any, row: Row) -> None:
        position = [row.get(name) for name in _POSITION]
        turn = [row.get(name) for name in _TURN]
        known = all(v is not None and np.isfinite(v) for v in turn)
        place = [0.0 if v is None or not np.isfinite(v) else v for v in position]
        set_pose(message.pose, place, turn if known else (0.0, 0.0, 0.0, 1.0))

    whole = [set(part) for part in (_POSITION, _TURN) if _is_finite(stream, part)]
    return fill, set().union(*whole)


def _is_finite(stream: Stream, names: Sequence[str]) -> bool:
    return all(bool(np.isfinite(stream[name]).all()) for name in names if name in stream.columns)


def _scan_filler(stream: Stream) -> tuple[Fill, set[str]]:
    def fill(message: Any, row: Row) -> None:
        set_pose(message.pose)
        ranges = row["ranges"] or []
        message.start_angle = row["start_angle"]
        message.end_angle = row["start_angle"] + max(len(ranges) - 1, 0) * row["angle_increment"]
        message.ranges.extend(np.nan if v is None else v for v in ranges)
        message.intensities.extend(np.nan if v is None else v for v in row.get("remission") or [])

    return fill, {"start_angle", "ranges", "remission"}


def _fix_filler(stream: Stream) -> tuple[Fill, set[str]]:
    degrees = {name: from_si_exactly(stream[name], DEGREES) for name in ("lat", "lon")}
    same = {n for n, v in degrees.items() if np.array_equal(DEGREES.to_si(v), stream[n], equal_nan=True)}
    places = zip(degrees["lat"].tolist(), degrees["lon"].tolist(), strict=True)

    def fill(message: Any, row: Row) -> None:
        message.latitude, message.longitude = next(places)
        height = row.get("alt")
        message.altitude = np.nan if height is None else height
        sigmas = [row.get(name) for name in FIX_SIGMAS]
        known = [v for v in sigmas if v is not None and np.isfinite(v)]
        if len(known) == 3:
            message.position_covariance.extend(np.diag(np.square(known)).reshape(-1).tolist())
            message.position_covariance_type = 2

    return fill, {"alt"} | same


def _log_filler(stream: Stream) -> tuple[Fill, set[str]]:
    text = _text_of(stream)

    def fill(message: Any, row: Row) -> None:
        message.level, message.message, message.name = LOG_LEVEL_INFO, row[text] or "", stream.name

    return fill, {text}


_FILLERS: dict[str, Filler] = {
    "PoseInFrame": _pose_filler,
    "LaserScan": _scan_filler,
    "LocationFix": _fix_filler,
    "Log": _log_filler,
}


def _payload_outlet(recording: Recording, stream: Stream, cameras: dict[str, CameraModel]) -> TopicWriter:
    """Return a stream of payloads: messages, companion messages, and the camera's calibration."""
    filed = stream.type is Image and all(
        suffix_of(source_file(recording, sample) or "") in _FILES for sample in stream
    )
    schema, make = ("CompressedImage", None) if filed else WRITERS[stream.type]
    left_out = LeftOut(stream.name)
    said = describe(stream) | {"camera": stream.camera, "mode": _mode_of(stream, filed)}
    names = [name for name in stream.columns if name != PAYLOAD]
    camera = cameras.get(stream.camera)
    beside = _beside_channel(stream, names, always=stream.type in _TOLD_BESIDE)
    channels = [_channel(stream.name, schema, said), *beside]
    if camera is not None:
        channels.append(_camera_channel(f"{stream.name}/calibration", recording, camera))

    def rows() -> Iterator[Sequence[bytes]]:
        for sample in stream:
            reached(sample.t_ns, stream.clock)
            try:
                message, told = _file_message(recording, sample) if make is None else make(sample.value)
            except PAYLOAD_ERRORS as error:
                left_out.add(error)
                yield ()
                continue
            _stamp(message, sample.t_ns)
            message.frame_id = stream.frame
            messages = [message.SerializeToString()]
            if beside:
                rest = {name: sample.row[name] for name in names}
                messages.append(message_of(rest | {PAYLOAD_BESIDE: message_of(told).decode()}))
            yield messages if camera is None else [*messages, _calibration(camera, stream.frame, sample.t_ns)]

    return TopicWriter(tuple(channels), *times_of(stream), rows(), left_out)


def _mode_of(stream: Stream, filed: bool) -> str:
    """Return the mode of images if messages do not have it: a Bayer pattern, or thermal."""
    try:
        mode = getattr(stream[0].value, "mode", "") if len(stream) else ""
    except PAYLOAD_ERRORS:
        return ""
    return mode if not filed or mode.startswith("bayer") else ""


def _file_message(recording: Recording, sample: Sample) -> tuple[Any, Beside]:
    name, source = source_file(recording, sample), recording.source_of(sample)
    if name is None or source is None:
        raise UnsupportedError("an image has no file of its own")
    return message_class("CompressedImage")(data=source.read(name), format=_FILES[suffix_of(name)]), {}


def _camera_channel(topic: str, recording: Recording, camera: CameraModel) -> ChannelText:
    said: Row = {"camera": camera.name, "frame": camera.frame, "distortion": camera.distortion}
    said |= {"invented": True} if camera.invented else {}
    said |= {} if recording.cameras[camera.name].P is not None else {"rectified": False}
    return _channel(topic, "CameraCalibration", said)


def _camera_outlet(recording: Recording, camera: CameraModel, t_ns: int) -> TopicWriter:
    """Return a camera without images: its calibration once, at the start."""
    channel = _camera_channel(f"{camera.name}/calibration", recording, camera)
    times = np.array([t_ns])
    return TopicWriter((channel,), times, times, iter([[_calibration(camera, camera.frame, t_ns)]]))


def _calibration(camera: CameraModel, frame: str, t_ns: int) -> bytes:
    long = len(camera.coefficients) > 5
    message = message_class("CameraCalibration")(
        width=camera.width,
        height=camera.height,
        frame_id=frame or camera.frame,
        distortion_model="rational_polynomial" if long else _MODELS[camera.distortion],
        **{
            name: np.asarray(values, dtype=np.float64).reshape(-1).tolist()
            for name, values in (
                ("D", camera.coefficients), ("K", camera.K), ("R", camera.R), ("P", camera.P),
            )
        },
    )  # fmt: skip
    _stamp(message, t_ns)
    return message.SerializeToString()


def _frame_outlets(frames: FrameTree, start_ns: int) -> Iterator[TopicWriter]:
    """Yield the static edges as one message at the start, and the poses of moving edges at their times."""
    fixed = [(edge, edge.matrix) for edge in frames.edges if edge.matrix is not None]
    if fixed:
        message = message_class("FrameTransforms")()
        for edge, matrix in fixed:
            pose = (matrix[:3, 3], rotations.quaternion_from_matrix(matrix[:3, :3]))
            _set_transform(message.transforms.add(), edge.parent, edge.child, start_ns, *pose)
        matrices = {edge.child: matrix.tolist() for edge, matrix in fixed}
        said = {"frames": "static", "matrices": matrices, "sources": {e.child: e.source for e, _ in fixed}}
        times = np.array([start_ns])
        rows = iter([[message.SerializeToString()]])
        yield TopicWriter((_channel(STATIC, "FrameTransforms", said),), times, times, rows)
    for edge in frames.edges:
        if edge.motion is not None:
            said = {"frames": "moving", "clock": edge.clock, "source": edge.source}
            channel = _channel(f"{MOVING}/{edge.child}", "FrameTransform", said)
            yield TopicWriter((channel,), edge.motion.t_ns, edge.motion.t_ns, _motion_rows(edge))


def _motion_rows(edge: Any) -> Iterator[Sequence[bytes]]:
    made = message_class("FrameTransform")
    for t_ns, pose in zip(edge.motion.t_ns.tolist(), edge.motion.poses.tolist(), strict=True):
        message = made()
        _set_transform(message, edge.parent, edge.child, t_ns, pose[:3], pose[3:])
        yield [message.SerializeToString()]


def _set_transform(message: Any, parent: str, child: str, t_ns: int, position: Any, turn: Any) -> None:
    _stamp(message, t_ns)
    message.parent_frame_id, message.child_frame_id = parent, child
    move, rotation = message.translation, message.rotation
    move.x, move.y, move.z = (float(v) for v in position)
    rotation.x, rotation.y, rotation.z, rotation.w = (float(v) for v in turn)
