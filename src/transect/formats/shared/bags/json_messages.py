"""JSON messages as columns, and rows of a table as JSON messages.

A schema (JSON Schema) may say the `unit` and the numpy `dtype` of a property; our own do.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.files import reached
from transect.errors import ParseError, UnsupportedError
from transect.recording import Recording, Sample, Stream, arrow
from transect.recording.arrow import LOG_NS, T_NS
from transect.types import CameraModel, Image

from ..file_heads import suffix_of
from ..images import decode_image, encode_image
from ..payloads import PAYLOAD_ERRORS, LeftOut, source_file
from .ros_messages import NS

IMAGES = "foxglove.CompressedImage"
"""Name of the schema of image messages."""
Row = dict[str, Any]
_DTYPE = re.compile(r"float(32|64)|u?int(8|16|32|64)")
_JSON_TYPES = {"f": "number", "i": "integer", "u": "integer", "b": "boolean"}


def rows_of(raws: Sequence[bytes]) -> tuple[list[Row], list[int], dict[int, str]]:
    """Read messages: rows of values by dotted path, their indices, and the errors of the others."""
    rows: list[Row] = []
    kept: list[int] = []
    bad: dict[int, str] = {}
    for number, raw in enumerate(raws):
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError) as error:
            bad[number] = f"not JSON ({error})"
            continue
        rows.append(dict(_flat("", value)) if isinstance(value, dict) else {"value": value})
        kept.append(number)
    return rows, kept, bad


def _flat(prefix: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _flat(f"{prefix}{key}.", inner)
        else:
            yield f"{prefix}{key}", inner


def columns_of(rows: Sequence[Row], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return rows as columns: numbers, booleans, text, lists of them; anything else as JSON text."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    found = {name: _column([row.get(name) for row in rows], properties.get(name)) for name in names}
    return {name: column for name, column in found.items() if column is not None}


def _column(values: list[Any], described: Any) -> Any:
    dtype = _declared_dtype(described)
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {bool} and None not in values:
        return np.array(values, dtype=np.bool_)
    if _are_numbers(kinds, dtype):
        return _numbers(values, dtype)
    if kinds == {list}:
        return _lists([value or [] for value in values], dtype)
    if kinds == {str}:
        return arrow.strings([value or "" for value in values])
    return arrow.strings([json.dumps(value) for value in values])


def _declared_dtype(described: Any) -> np.dtype[Any] | None:
    text = described.get("dtype") if isinstance(described, dict) else None
    return np.dtype(text) if isinstance(text, str) and _DTYPE.fullmatch(text) else None


def _are_numbers(kinds: set[type], dtype: np.dtype[Any] | None) -> bool:
    """Return whether values are numbers; in float columns infinities are text, because JSON has none."""
    return kinds <= ({int, float, str} if dtype is not None and dtype.kind == "f" else {int, float})


def _numbers(values: list[Any], dtype: np.dtype[Any] | None) -> NDArray[Any]:
    whole = dtype if dtype is not None and dtype.kind in "iu" else np.dtype(np.int64)
    limits = np.iinfo(whole)
    if (dtype is None or dtype.kind != "f") and all(
        type(v) is int and limits.min <= v <= limits.max for v in values
    ):
        return np.array(values, dtype=whole)
    fractions = [np.nan if value is None else _fraction(value) for value in values]
    return np.array(fractions, dtype=dtype if dtype is not None and dtype.kind == "f" else np.float64)


def _fraction(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _lists(values: list[list[Any]], dtype: np.dtype[Any] | None) -> Any:
    flat = [item for value in values for item in value]
    offsets = arrow.offsets_of([len(value) for value in values])
    kinds = {type(item) for item in flat}
    if kinds == {str} and dtype is None:
        return pa.LargeListArray.from_arrays(arrow.from_numpy(offsets), arrow.strings(flat))
    if not flat:
        return None
    if not _are_numbers(kinds - {type(None)}, dtype):
        return arrow.strings([json.dumps(value) for value in values])
    numbers = _numbers(flat, dtype)
    lengths = np.diff(offsets)
    if bool((lengths == lengths[0]).all()):
        return numbers.reshape(len(values), -1)
    return arrow.ragged_from_offsets(numbers, offsets)


def schema_of(table: pa.Table, title: str) -> dict[str, Any]:
    """Return the JSON Schema of a table's rows, with units and dtypes."""
    properties = {f.name: _property(f) for f in table.schema if f.name not in (T_NS, LOG_NS)}
    return {"title": title, "type": "object", "properties": properties}


def _property(column: pa.Field) -> dict[str, Any]:
    kind, unit = column.type, arrow.unit_of(column)
    listed = pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    kind = kind.value_type if listed else kind
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    name = (
        str(kind).replace("float", "float32")
        if str(kind) == "float"
        else str(kind).replace("double", "float64")
    )
    letter = "b" if pa.types.is_boolean(kind) else name[0]
    single: dict[str, Any] = {
        "type": _JSON_TYPES.get(letter, "string") if numeric or letter == "b" else "string"
    }
    described = {"type": "array", "items": single} if listed else single
    return described | ({"unit": unit} if unit else {}) | ({"dtype": name} if numeric else {})


def messages_of(table: pa.Table) -> Iterator[bytes]:
    """Iterate over the rows of a table as JSON objects, with null for NaN."""
    names = [name for name in table.column_names if name not in (T_NS, LOG_NS)]
    for batch in table.select(names).to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            yield message_of(row)


def message_of(row: Row) -> bytes:
    """Return a row as a JSON object; NaN as null, infinities as text, bytes in base64."""
    try:
        return json.dumps(row, allow_nan=False).encode()
    except (ValueError, TypeError):
        return json.dumps({name: _plain(value) for name, value in row.items()}).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else str(value) if math.isinf(value) else value
    if isinstance(value, bytes):  # JSON has no bytes: base64, as JSON schemas usually mean them
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


SCHEMA: dict[str, Any] = {
    "title": IMAGES,
    "description": "A compressed image",
    "type": "object",
    "properties": {
        "timestamp": {
            "type": "object",
            "title": "time",
            "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
        },
        "frame_id": {"type": "string"},
        "format": {"type": "string", "description": "jpeg or png"},
        "data": {"type": "string", "contentEncoding": "base64"},
    },
}
_FORMATS = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png"}
_STAMP = re.compile(rb'"timestamp"\s*:\s*\{\s*"sec"\s*:\s*(\d{1,10})\s*,\s*"nsec"\s*:\s*(\d{1,9})\s*\}')


def image_messages(recording: Recording, stream: Stream, left_out: LeftOut) -> Iterator[bytes | None]:
    """Yield the message of each image, None for one that cannot be loaded, which `left_out` counts."""
    for sample in stream:
        try:
            yield _message(recording, sample)
        except PAYLOAD_ERRORS as error:
            left_out.add(error)
            yield None


def _message(recording: Recording, sample: Sample) -> bytes:
    """Return the original file of an image if it is JPEG or PNG, else a PNG."""
    reached(sample.t_ns, sample.stream.clock)
    name, source = source_file(recording, sample), recording.source_of(sample)
    if name is not None and source is not None and suffix_of(name) in _FORMATS:
        kind, data = _FORMATS[suffix_of(name)], source.read(name)
    elif (image := sample.value).data.dtype in (np.uint8, np.uint16):
        kind, data = "png", encode_image(image, ".png")
    else:
        raise UnsupportedError(f"an image of {image.data.dtype} has no place in a PNG")
    return json.dumps(
        {
            "timestamp": {"sec": sample.t_ns // NS, "nsec": sample.t_ns % NS},
            "frame_id": sample.stream.frame,
            "format": kind,
            "data": base64.b64encode(data).decode("ascii"),
        }
    ).encode()


def mosaic_of(stream: Stream) -> str:
    """Return the Bayer pattern of images, such as bayer_rggb, which image files do not have; else ""."""
    try:
        mode = stream[0].value.mode if len(stream) else ""
    except PAYLOAD_ERRORS:
        return ""
    return mode if mode.startswith("bayer") else ""


def stamps_of(heads: Sequence[bytes]) -> Ints:
    """Return the times (n,) in ns in the first bytes of messages, 0 if missing."""
    found = (_STAMP.search(head) for head in heads)
    return np.array([int(m[1]) * NS + int(m[2]) if m else 0 for m in found], dtype=np.int64)


def frame_of(head: bytes | None) -> str:
    """Return the frame in the first bytes of a message, or ""."""
    match = re.search(rb'"frame_id"\s*:\s*("(?:[^"\\]|\\.)*")', head or b"")
    try:
        return str(json.loads(match[1])) if match else ""
    except ValueError:
        return ""


def read_image(
    raw: bytes, where: str, *, t_ns: int, frame: str, camera: CameraModel | None, mode: str
) -> Image:
    """Return the image of a message."""
    try:
        data = json.loads(raw)["data"]
        content = bytes(data) if isinstance(data, list) else base64.b64decode(data, validate=True)
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise ParseError("an image cannot be decoded", where=where, why=f"{error}") from error
    return decode_image(content, where, t_ns=t_ns, frame=frame, camera=camera, mode=mode or None)
