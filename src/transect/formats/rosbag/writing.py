"""Writing of recordings as bags: topics, payloads, frames and cameras, and reports of what is left out."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.files import atomic_write, refuse_existing, staged
from transect.errors import TransectError, UnsupportedError
from transect.geometry import rotations
from transect.recording import FrameTree, Recording, Stream
from transect.recording.arrow import PAYLOAD
from transect.types import CameraModel, DepthMap, Image, PointCloud, Trajectory

from ..shared.bags.bag_file import Channel, in_log_order
from ..shared.bags.cameras import (
    CAMERA_INFO,
    RECTIFICATION,
    folder_of,
    info_topic,
    publish,
    rectify_cameras,
    topic_of,
)
from ..shared.bags.ros_messages import NS
from ..shared.bags.ros_payloads import pixel_encoding
from ..shared.bags.ros_types import standard_store
from ..shared.bags.stream_names import STREAMS_KEY, TOPIC, TYPE, topic_names
from ..shared.bags.transforms import TF_TYPES
from ..shared.interface import Note
from ..shared.payloads import PAYLOAD_ERRORS, LeftOut, good_payloads
from .messages import (
    Outgoing,
    columns_outgoing,
    header_maker,
    labels_of,
    log_times,
    make_serialiser,
    transform_maker,
    types_for,
)

LATEST_STAMP_S = {"ros1": 2**32, "cdr": 2**31}
LATEST_LOG_S = {"ros1": 2**32, "cdr": 2**63 // 10**9}
"""Upper limits of stamps and log times, in seconds."""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording as a bag, and return sentences on what it cannot represent.

    `*.bag` becomes a ROS 1 bag, `*.mcap` a ROS 2 bag in MCAP, `*.db3` one in SQLite, any other path a folder
    with one in SQLite and its metadata.yaml.
    """
    topics, notes = outgoing_of(recording, encoding_of(path))
    with sink_for(path) as open_topic:
        writes = [open_topic(name, topic.type, topic.store) for name, topic in topics.items()]
        outgoing = list(topics.values())
        bad = [LeftOut(topic.name) for topic in outgoing]
        for which, row in in_log_order([topic.log_ns for topic in outgoing]):
            log_ns = int(outgoing[which].log_ns[row])
            try:
                message = outgoing[which].message(row)
            except PAYLOAD_ERRORS as error:
                bad[which].add(error)
                continue
            writes[which](log_ns, log_ns, message)
    notes += [
        text for lost, topic in zip(bad, outgoing, strict=True) for text in lost.said(len(topic.log_ns))
    ]
    return tuple(notes)


def outgoing_of(recording: Recording, encoding: str) -> tuple[dict[str, Outgoing], list[str]]:
    """Return the messages of each topic, and sentences on what is left out."""
    recording, notes = publish(recording)
    topics: list[tuple[str, Outgoing]] = []
    for stream in recording.streams:
        _refuse_times(stream, stream.t_ns, LATEST_STAMP_S[encoding])
        _refuse_times(stream, log_times(stream), LATEST_LOG_S[encoding])
        if stream.loader is not None:
            topic, lost = payload_outgoing(stream, recording, encoding)
        else:
            topic, lost = columns_outgoing(stream, encoding)
        topics += [(topic_of(stream, recording), topic)] if topic is not None else []
        notes += lost
    topics += _cameras(recording, [topic for _, topic in topics], encoding)
    if not any(topic.type in TF_TYPES for _, topic in topics):
        start = recording.span[0] if recording.span else 0
        topics += [(topic.name, topic) for topic in frames_outgoing(recording.frames, start, encoding)]
    notes += [
        Note(f"{s.name}: its clock is {s.clock}, which a bag does not say")
        for s in recording
        if s.clock in ("sclk", "index")
    ]
    named = dict(zip(topic_names([name for name, _ in topics]), (topic for _, topic in topics), strict=True))
    return {topic.name: topic for topic in origin_outgoing(named, encoding)} | named, notes


def origin_outgoing(topics: Mapping[str, Outgoing], encoding: str) -> list[Outgoing]:
    """Return the message with the original names and unmeasured columns of topics."""
    records = {
        topic: {"name": outgoing.name, "not measured": list(outgoing.unmeasured), **outgoing.labels}
        for topic, outgoing in topics.items()
        if topic != outgoing.name or outgoing.unmeasured
    }
    times = [int(outgoing.log_ns.min()) for outgoing in topics.values() if len(outgoing.log_ns)]
    if not records or not times:
        return []
    store = standard_store(encoding)
    text = json.dumps({STREAMS_KEY: records})
    message = make_serialiser(store, encoding, TYPE, lambda _: store.types[TYPE](text))
    return [Outgoing(TOPIC, TYPE, store, np.array([min(times)]), message)]


def _refuse_times(stream: Stream, times: Ints, seconds: int) -> None:
    if len(times) and not (times.min() >= 0 and times.max() // 10**9 < seconds):
        raise UnsupportedError(
            f"{stream.name} has times that a bag cannot hold",
            where=stream.name,
            why=f"they run from {times.min()} to {times.max()} ns",
        )


def _cameras(
    recording: Recording, topics: Sequence[Outgoing], encoding: str
) -> Iterator[tuple[str, Outgoing]]:
    """Yield the calibration of each camera with every image, unless it is a stream of the recording."""
    there = {folder_of(topic.name) for topic in topics if topic.type == CAMERA_INFO}
    written, cameras = {topic.name for topic in topics}, rectify_cameras(recording)
    for stream in recording.streams:
        if stream.camera in cameras and stream.camera not in there and stream.name in written:
            there.add(stream.camera)
            topic = camera_outgoing(cameras[stream.camera], stream, encoding)
            filled = recording.cameras[stream.camera].P is None
            topic = replace(topic, unmeasured=(RECTIFICATION,)) if filled else topic
            yield info_topic(topic_of(stream, recording)), topic


Write = Callable[[int, int, bytes], None]
"""Writes a message: log time, sample time, data."""
Sink = Callable[[str, str, Any], Write]
"""Opens a topic: name, type, and a typestore that knows it."""


def encoding_of(path: Path) -> str:
    """Return the encoding of messages in a file of that name."""
    return "ros1" if path.suffix == ".bag" else "cdr"


def sink_for(path: Path) -> Any:
    """Return the context in which a bag of that name is written, atomically."""
    if path.suffix == ".bag":
        return _ros1(path)
    if path.suffix == ".db3":
        return _database(path)
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
    with _typed_errors(path), staged(path) as building, Writer(building, version=8) as bag:
        yield partial(_open_topic, bag)


@contextmanager
def _database(path: Path) -> Generator[Sink, None, None]:
    """Write a database alone, without the folder and metadata.yaml of a ROS 2 bag."""
    from rosbags.rosbag2 import Writer

    refuse_existing(path, hint="choose another name with -o")
    with _typed_errors(path), staged(path) as building:
        folder = building.with_suffix("")
        with Writer(folder, version=8) as bag:
            yield partial(_open_topic, bag)
        next(folder.glob("*.db3")).rename(building)
        shutil.rmtree(folder)


@contextmanager
def _typed_errors(path: Path) -> Generator[None, None, None]:
    """Convert errors of SQLite, which hide the system's error, to errors with path and hint."""
    try:
        yield
    except sqlite3.Error as error:
        what, hint = f"cannot write {path.name}", "free some space, or write elsewhere with -o"
        raise TransectError(what, where=str(path), why=str(error), hint=hint) from error


def _open_topic(bag: Any, topic: str, kind: str, store: Any) -> Write:
    connection = bag.add_connection(topic, kind, typestore=store)
    return lambda log_ns, _, data: bag.write(connection, log_ns, data)


@contextmanager
def _mcap(path: Path) -> Generator[Sink, None, None]:
    """Write with the mcap library, because the writer of rosbags has no checksums."""
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


_TYPES: dict[type, str] = {
    Image: "sensor_msgs/msg/Image",
    DepthMap: "sensor_msgs/msg/Image",
    PointCloud: "sensor_msgs/msg/PointCloud2",
    Trajectory: "nav_msgs/msg/Path",
}
_COMPRESSED = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png"}
_COMPRESSED_TYPE = "sensor_msgs/msg/CompressedImage"
_POINT_TYPES = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "f4": 7, "f8": 8}
_DISTORTIONS = {"none": "plumb_bob", "radtan": "plumb_bob", "equidistant": "equidistant"}


class _Maker:
    """Makes messages of the standard types."""

    def __init__(self, store: Any) -> None:
        self.types: Any = store.types
        self.header = header_maker(self.types)

    def image(self, header: Any, image: Image | DepthMap, *, bgr: bool = False) -> Any:
        pixels = np.ascontiguousarray(image.data)
        encoding = "32FC1" if isinstance(image, DepthMap) else pixel_encoding(image)
        if encoding == "rgb8" and bgr:
            pixels, encoding = np.ascontiguousarray(pixels[..., ::-1]), "bgr8"
        height, width = pixels.shape[:2]
        data = pixels.view(np.uint8).reshape(-1)
        return self.types[_TYPES[Image]](
            header, height, width, encoding, 0, data.size // max(height, 1), data
        )

    def compressed(self, header: Any, form: str, data: bytes) -> Any:
        return self.types[_COMPRESSED_TYPE](header, form, np.frombuffer(data, np.uint8))

    def cloud(self, header: Any, cloud: PointCloud) -> Any:
        points = pack_points(cloud)
        field = self.types["sensor_msgs/msg/PointField"]
        described = points.dtype.fields or {}
        fields = [
            field(name, int(at), _POINT_TYPES[f.base.str[1:]], 1) for name, (f, at, *_) in described.items()
        ]
        data, step = points.view(np.uint8).reshape(-1), points.dtype.itemsize
        dense = bool(np.isfinite(cloud.points).all())
        return self.types[_TYPES[PointCloud]](
            header, 1, len(points), fields, False, step, data.size, data, dense
        )

    def path(self, header: Any, track: Trajectory) -> Any:
        g = "geometry_msgs/msg"
        turns = (
            track.orientations if track.orientations is not None else np.tile([0.0, 0, 0, 1], (len(track), 1))
        )
        positions = np.array(track.positions)
        if np.isnan(positions[:, 2]).all():
            positions[:, 2] = 0.0  # a path in the plane
        poses = [
            self.types[f"{g}/PoseStamped"](
                self.header(i, t_ns, header.frame_id),
                self.types[f"{g}/Pose"](self.types[f"{g}/Point"](*xyz), self.types[f"{g}/Quaternion"](*q)),
            )
            for i, (t_ns, xyz, q) in enumerate(
                zip(track.t_ns.tolist(), positions.tolist(), turns.tolist(), strict=True)
            )
        ]
        return self.types[_TYPES[Trajectory]](header, poses)

    def camera(self, header: Any, camera: CameraModel) -> Any:
        model = "rational_polynomial" if len(camera.coefficients) > 5 else _DISTORTIONS[camera.distortion]
        roi = self.types["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
        matrices = [
            np.ascontiguousarray(m, dtype=np.float64).reshape(-1)
            for m in (camera.coefficients, camera.K, camera.R, camera.P)
        ]
        size = (camera.height, camera.width)
        return self.types[CAMERA_INFO](header, *size, model, *matrices, 0, 0, roi)


def pack_points(cloud: PointCloud) -> NDArray[np.void]:
    """Return a cloud as the points of a PointCloud2; the time of a point is `t` in ns after the stamp."""
    columns: dict[str, NDArray[Any]] = {axis: cloud.points[:, k] for k, axis in enumerate("xyz")}
    for name, values in cloud.fields.items():
        if name == "t_offset_ns":
            fits = len(values) == 0 or (values.min() >= 0 and values.max() < 2**32)
            columns |= {"t": values.astype("u4")} if fits else {"time": values / NS}
        elif name == "rgb":
            packed = values.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
            columns["rgb"] = packed.astype("u4").view("f4")
        elif values.ndim == 2:
            suffixes = "xyz" if name == "normal" else map(str, range(values.shape[1]))
            columns |= {f"{name}_{suffix}": values[:, k] for k, suffix in enumerate(suffixes)}
        else:
            columns[name] = values
    forms = {
        name: v.dtype.str[1:] if v.dtype.str[1:] in _POINT_TYPES else "f8" for name, v in columns.items()
    }
    points = np.zeros(len(cloud), dtype=[(name, f"<{form}") for name, form in forms.items()])
    for name, values in columns.items():
        points[name] = values
    return points


def payload_outgoing(
    stream: Stream, recording: Recording, encoding: str
) -> tuple[Outgoing | None, list[str]]:
    """Return a stream of images, clouds or paths as messages; those of a bag are copied byte for byte."""
    made = PAYLOAD not in stream.table.column_names  # computed on access, without files
    names = [""] * len(stream) if made else stream.table.column(PAYLOAD).to_pylist()
    channel, raw = stream.meta.get("channel"), stream.meta.get("raw")
    if isinstance(channel, Channel) and channel.encoding == encoding and raw is not None and not stream.seams:
        found = next(iter(types_for(stream, encoding)), None)
        if found is None:
            return None, [f"{stream.name} is not written: its type {channel.type} is not described"]
        return Outgoing(stream.name, *found, log_times(stream), lambda i: raw(names[i])), []
    if stream.type not in _TYPES:
        return None, [f"{stream.name} is not written: there is no message for a {stream.type.__name__}"]
    kind, make = _payload_maker(stream, recording, names, encoding)
    store = standard_store(encoding)
    message = make_serialiser(store, encoding, kind, make)
    rest = [name for name in stream.columns if name != PAYLOAD]
    notes = [f"{stream.name}: {kind} has no place for {', '.join(rest)}"] if rest else []
    return Outgoing(stream.name, kind, store, log_times(stream), message, labels=labels_of(stream)), notes


def _payload_maker(
    stream: Stream, recording: Recording, names: list[str], encoding: str
) -> tuple[str, Callable[[int], Any]]:
    maker, sources = _Maker(standard_store(encoding)), [recording.source_of(sample) for sample in stream]

    def header(i: int) -> Any:
        return maker.header(i, stream.t_ns[i], stream.frame)

    is_published = topic_of(stream, recording) != stream.name
    suffixes = {name[name.rfind(".") :].lower() for name in names}
    if (
        stream.type is Image
        and not is_published
        and suffixes <= set(_COMPRESSED)
        and all(s is not None and n in s for s, n in zip(sources, names, strict=True))
    ):
        files = [s for s in sources if s is not None]
        form = _compressed_format(stream, _COMPRESSED.get(next(iter(suffixes), ".png"), "png"))
        return _COMPRESSED_TYPE, lambda i: maker.compressed(header(i), form, files[i].read(names[i]))
    write = {
        Image: partial(maker.image, bgr=is_published),  # in the pixel order of camera drivers
        DepthMap: maker.image,
        PointCloud: maker.cloud,
        Trajectory: maker.path,
    }[stream.type]
    return _TYPES[stream.type], lambda i: write(header(i), stream[i].value)


def _compressed_format(stream: Stream, form: str) -> str:
    """Return a CompressedImage's format, with the Bayer pattern, which image files do not have."""
    _, image = next(good_payloads(stream, lambda sample: sample.value, []), (None, None))
    if image is None or not image.mode.startswith("bayer"):
        return form
    return f"{pixel_encoding(image)}; {form} compressed {pixel_encoding(image)}"


def camera_outgoing(camera: CameraModel, stream: Stream, encoding: str) -> Outgoing:
    """Return a camera as one CameraInfo message for each image of a stream, with its stamp and frame."""
    store = standard_store(encoding)
    maker, frame = _Maker(store), stream.frame or camera.frame

    def make(i: int) -> Any:
        return maker.camera(maker.header(i, stream.t_ns[i], frame), camera)

    message = make_serialiser(store, encoding, CAMERA_INFO, make)
    return Outgoing(f"/{stream.camera}/camera_info", CAMERA_INFO, store, log_times(stream), message)


def frames_outgoing(frames: FrameTree, t_ns: int, encoding: str) -> list[Outgoing]:
    """Return a frame tree as tf messages: static edges at `t_ns`, moving ones at their own times."""
    fixed = [(e.parent, e.child, t_ns, _pose(e.matrix)) for e in frames.edges if e.matrix is not None]
    moving = [
        (edge.parent, edge.child, time, pose)
        for edge in frames.edges
        if edge.motion is not None
        for time, pose in zip(edge.motion.t_ns.tolist(), edge.motion.poses, strict=True)
    ]
    moving.sort(key=lambda row: row[2])
    return [
        _tf_outgoing(f"/{name}", rows, encoding)
        for name, rows in (("tf_static", fixed), ("tf", moving))
        if rows
    ]


def _pose(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([matrix[:3, 3], rotations.quaternion_from_matrix(matrix[:3, :3])])


def _tf_outgoing(topic: str, rows: list[tuple[str, str, int, Any]], encoding: str) -> Outgoing:
    kind, store = "tf2_msgs/msg/TFMessage", standard_store(encoding)
    parents, children, times, poses = (list(column) for column in zip(*rows, strict=True))
    make = transform_maker(store.types, parents, children, times)
    message = make_serialiser(
        store, encoding, kind, lambda i: store.types[kind]([make(i, poses[i][:3], poses[i][3:])])
    )
    return Outgoing(topic, kind, store, np.array(times, dtype=np.int64), message)
