"""Messages in protobuf as rows of values by dotted path, whatever their schema."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from .schemas import import_protobuf, message_classes

Row = dict[str, Any]
_TIMES = ("google.protobuf.Timestamp", "google.protobuf.Duration")
MOST_LEVELS = 32
"""A message inside a message inside ... that is deeper is not looked into."""


def rows_of(
    raws: Sequence[bytes], definition: bytes, kind: str
) -> tuple[list[Row], list[int], dict[int, str]]:
    """Read messages: rows of values by dotted path, which messages those are, and why the others failed."""
    rows: list[Row] = []
    kept: list[int] = []
    bad: dict[int, str] = {}
    for number, raw in enumerate(raws):
        try:
            rows.append({path: _plain(value) for path, value in fields_of(raw, definition, kind).items()})
        except ValueError as error:
            bad[number] = str(error)
            continue
        kept.append(number)
    return rows, kept, bad


def fields_of(raw: bytes, definition: bytes, kind: str) -> Row:
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
        elif message.HasField(field.name) and level < MOST_LEVELS:
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
    return [dict(_flat("", item, level + 1)) for item in values] if level < MOST_LEVELS else []


def _plain(value: Any) -> Any:
    """Return a value as JSON could have it: bytes as base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value
