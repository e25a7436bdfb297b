"""Foxglove's schemas: fields and numbers of those that a recording can fill, and classes made of them.

https://docs.foxglove.dev/docs/sdk/schemas
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from transect.errors import MissingExtraError

PACKAGE = "foxglove"
_STAMP = "google.protobuf.Timestamp timestamp=1"
_PLACE = f"{_STAMP}, string frame_id=2"
_XYZ = "double x=1, double y=2, double z=3"
_FIELDS = {
    "Vector2": "double x=1, double y=2",
    "Vector3": _XYZ,
    "Quaternion": f"{_XYZ}, double w=4",
    "Pose": "Vector3 position=1, Quaternion orientation=2",
    "PackedElementField": "string name=1, fixed32 offset=2, PackedElementField.NumericType type=3",
    "LaserScan": f"{_PLACE}, Pose pose=3, double start_angle=4, double end_angle=5, double* ranges=6, "
    "double* intensities=7",
    "PointCloud": f"{_PLACE}, Pose pose=3, fixed32 point_stride=4, PackedElementField* fields=5, "
    "bytes data=6",
    "LocationFix": "double latitude=1, double longitude=2, double altitude=3, double* position_covariance=4, "
    "LocationFix.PositionCovarianceType position_covariance_type=5, google.protobuf.Timestamp timestamp=6, "
    "string frame_id=7",
    "PoseInFrame": f"{_PLACE}, Pose pose=3",
    "PosesInFrame": f"{_PLACE}, Pose* poses=3",
    "FrameTransform": f"{_STAMP}, string parent_frame_id=2, string child_frame_id=3, Vector3 translation=4, "
    "Quaternion rotation=5",
    "FrameTransforms": "FrameTransform* transforms=1",
    "CameraCalibration": f"{_STAMP}, fixed32 width=2, fixed32 height=3, string distortion_model=4, "
    "double* D=5, double* K=6, double* R=7, double* P=8, string frame_id=9",
    "CompressedImage": f"{_STAMP}, bytes data=2, string format=3, string frame_id=4",
    "RawImage": f"{_STAMP}, fixed32 width=2, fixed32 height=3, string encoding=4, fixed32 step=5, "
    "bytes data=6, string frame_id=7",
    "Grid": f"{_PLACE}, Pose pose=3, fixed32 column_count=4, Vector2 cell_size=5, fixed32 row_stride=6, "
    "fixed32 cell_stride=7, PackedElementField* fields=8, bytes data=9",
    "Log": f"{_STAMP}, Log.Level level=2, string message=3, string name=4, string file=5, fixed32 line=6",
}
"""`type name=number` of every field; `*` for a list."""
_ENUMS = {
    "PackedElementField.NumericType": "UNKNOWN UINT8 INT8 UINT16 INT16 UINT32 INT32 FLOAT32 FLOAT64",
    "LocationFix.PositionCovarianceType": "UNKNOWN APPROXIMATED DIAGONAL_KNOWN KNOWN",
    "Log.Level": "UNKNOWN DEBUG INFO WARNING ERROR FATAL",
}
"""Names of numbers from 0."""
_FIELD = re.compile(r"([\w.]+)(\*?) (\w+)=(\d+)")
NUMERIC_TYPES = {"u1": 1, "i1": 2, "u2": 3, "i2": 4, "u4": 5, "i4": 6, "f4": 7, "f8": 8}
"""numpy's names of PackedElementField's numeric types."""


def is_readable() -> bool:
    """Return whether the library is installed, without importing it."""
    try:
        return find_spec("google.protobuf") is not None
    except ModuleNotFoundError:
        return False


def import_protobuf() -> Any:
    """Return the protobuf package with its modules; raise an error with the extra to install."""
    try:
        import google.protobuf
        from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory, timestamp_pb2
    except ImportError as error:
        raise MissingExtraError("protobuf", "foxglove") from error
    assert all((descriptor_pb2, descriptor_pool, message, message_factory, timestamp_pb2))
    return google.protobuf


@cache
def descriptor_set() -> Any:
    """Return all schemas as a FileDescriptorSet for the channels."""
    pb = import_protobuf()
    file = pb.descriptor_pb2.FileDescriptorProto(
        name=f"{PACKAGE}.proto",
        package=PACKAGE,
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto"],
    )
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for kind, listed, field, number in _FIELD.findall(fields):
            _add_field(message, kind, bool(listed), field, int(number))
        for enum, values in _ENUMS.items():
            if enum.startswith(f"{name}."):
                described = message.enum_type.add(name=enum.partition(".")[2])
                for number, value in enumerate(values.split()):
                    described.value.add(name=value, number=number)
    stamps = pb.descriptor_pb2.FileDescriptorProto()
    pb.timestamp_pb2.DESCRIPTOR.CopyToProto(stamps)
    return pb.descriptor_pb2.FileDescriptorSet(file=[stamps, file])


def _add_field(message: Any, kind: str, listed: bool, name: str, number: int) -> None:
    field = message.field.add(name=name, number=number, json_name=name)
    field.label = field.LABEL_REPEATED if listed else field.LABEL_OPTIONAL
    plain = getattr(field, f"TYPE_{kind.upper()}", None)
    if plain is not None:
        field.type = plain
        return
    field.type = field.TYPE_ENUM if kind in _ENUMS else field.TYPE_MESSAGE
    field.type_name = f".{kind}" if kind.startswith("google.") else f".{PACKAGE}.{kind}"


@cache
def message_classes(descriptors: bytes) -> dict[str, Any]:
    """Return the classes of all messages in a serialised FileDescriptorSet, by their full names.

    Raises
    ------
    ValueError
        If it is invalid, or its files are inconsistent.
    """
    pb = import_protobuf()
    try:
        described = pb.descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        pool = pb.descriptor_pool.DescriptorPool()
        for file in described.file:
            pool.Add(file)
        names = [f"{file.package}.{m.name}".lstrip(".") for file in described.file for m in file.message_type]
        return {n: pb.message_factory.GetMessageClass(pool.FindMessageTypeByName(n)) for n in names}
    except (pb.message.DecodeError, TypeError, KeyError) as error:
        raise ValueError(f"its schema cannot be used ({error})") from error


def message_class(name: str) -> Any:
    """Return the class of one of Foxglove's messages: ``message_class("LaserScan")``."""
    return message_classes(descriptor_set().SerializeToString())[f"{PACKAGE}.{name}"]


Row = dict[str, Any]
_TIMES = ("google.protobuf.Timestamp", "google.protobuf.Duration")
MAX_NESTING = 32
"""Maximum depth of nested messages."""


def decode_rows(
    raws: Sequence[bytes], definition: bytes, kind: str
) -> tuple[list[Row], list[int], dict[int, str]]:
    """Read messages: rows of values by dotted path, their indices, and the errors of the others."""
    rows: list[Row] = []
    kept: list[int] = []
    bad: dict[int, str] = {}
    for number, raw in enumerate(raws):
        try:
            rows.append({path: _plain(value) for path, value in decode_fields(raw, definition, kind).items()})
        except ValueError as error:
            bad[number] = str(error)
            continue
        kept.append(number)
    return rows, kept, bad


def decode_fields(raw: bytes, definition: bytes, kind: str) -> Row:
    """Return the values of a message by dotted path; bytes as bytes, times as `sec` and `nsec`."""
    pb = import_protobuf()
    made = message_classes(definition).get(kind)
    if made is None:
        raise ValueError(f"its schema does not describe {kind}")
    try:
        return dict(_flat("", made.FromString(raw), 0))
    except pb.message.DecodeError as error:
        raise ValueError(f"not protobuf ({error})") from error


def _flat(prefix: str, message: Any, level: int) -> Iterator[tuple[str, Any]]:
    for field in message.DESCRIPTOR.fields:
        path, value = f"{prefix}{field.name}", getattr(message, field.name)
        if field.is_repeated:
            yield path, _list(field, value, level)
        elif field.message_type is None:
            yield path, None if field.has_presence and not message.HasField(field.name) else value
        elif field.message_type.full_name in _TIMES:
            yield f"{path}.sec", value.seconds
            yield f"{path}.nsec", value.nanos
        elif message.HasField(field.name) and level < MAX_NESTING:
            yield from _flat(f"{path}.", value, level + 1)


def _list(field: Any, values: Any, level: int) -> list[Any]:
    if field.message_type is None:
        return list(values)
    if field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"].message_type
        return [
            {"key": key, "value": dict(_flat("", values[key], level + 1)) if inner else values[key]}
            for key in sorted(values)
        ]
    return [dict(_flat("", item, level + 1)) for item in values] if level < MAX_NESTING else []


def _plain(value: Any) -> Any:
    """Return a value as JSON could have it: bytes as base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value
