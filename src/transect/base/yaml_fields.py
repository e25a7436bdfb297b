"""Dataclasses from YAML files, whose fields define the file and its JSON Schema.

A field is text, a number, a boolean, one of several words (`Literal`), another dataclass, a list, a mapping
with text keys, or a union of these (`int | str`). A dataclass may have

- a class variable `short`, the field of a value without keys: if `short` is "column", ``time: stamp`` is
  ``time: {column: stamp}``,
- a method `check(part)` for conditions beyond types.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from transect.errors import did_you_mean

from .yaml_parts import YamlPart, is_number, shorten

T = TypeVar("T")

_PLAIN: dict[Any, tuple[str, str]] = {
    str: ("text", "string"),
    int: ("a whole number", "integer"),
    float: ("a number", "number"),
    bool: ("true or false", "boolean"),
}
"""Names of types in errors and in JSON Schema."""


def read(part: YamlPart, kind: type[T], called: str) -> T | None:
    """Return a part as a dataclass; None if there are problems, which are added to the part's.

    Parameters
    ----------
    part : Part
    kind : type
        A dataclass. Missing or empty keys have the field's default.
    called : str
        Name of the part in errors, e.g. "a stream".
    """
    before = len(part.problems)
    short: str = getattr(kind, "short", "")
    hints = _type_hints(kind)
    if short and not isinstance(part.data, Mapping):
        values = {short: _value(part, hints[short], called)}
    else:
        values = _values(part, kind, hints, called)
    if len(part.problems) > before:
        return None
    result = kind(**values)
    getattr(result, "check", lambda _: None)(part)
    return result if len(part.problems) == before else None


@functools.cache
def _type_hints(kind: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields, cached."""
    return get_type_hints(kind)


def _values(part: YamlPart, kind: type, hints: Mapping[str, Any], called: str) -> dict[str, Any]:
    known = fields(kind)
    if not part.is_mapping(called, *(field.name for field in known)):
        return {}
    for field in known:
        if part.child(field.name).data is None and _is_needed(field):
            part.lacks(field.name, called)
    given = [name for name in hints if part.child(name).data is not None]
    return {name: _value(part.child(name), hints[name], name) for name in given}


def _is_needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _value(part: YamlPart, hint: Any, called: str) -> Any:
    """Return a part as a value of a type; the result is not valid if there are problems."""
    choices = _alternatives(hint)
    if len(choices) > 1:
        return _one_of(part, choices, called)
    [hint] = choices
    origin, data = get_origin(hint), part.data
    if hint is Any:
        return data
    if is_dataclass(hint):
        return read(part, hint, called)  # pyright: ignore[reportArgumentType]
    if origin is list:
        return [_value(entry, get_args(hint)[0], f"an entry of {called}") for entry in part.entries(called)]
    if origin is dict:
        return {name: _value(entry, get_args(hint)[1], name) for name, entry in part.named(called)}
    if origin is Literal and data not in (words := get_args(hint)):
        listed = " or ".join([", ".join(words[:-1]), words[-1]])
        part.wrong(f"{called} should be {listed}, not {shorten(data)}", did_you_mean(str(data), words))
    elif origin is not Literal and not _is_a(data, hint):
        quoted = f'write "{data}"' if hint is str and is_number(data) else ""
        part.wrong(f"{called} should be {_PLAIN[hint][0]}, not {shorten(data)}", quoted)
    return data


def _alternatives(hint: Any) -> list[Any]:
    if get_origin(hint) in (Union, UnionType):
        return [kind for kind in get_args(hint) if kind is not NoneType]
    return [hint]


def _is_a(data: Any, kind: type) -> bool:
    if kind is float:
        return is_number(data)
    return isinstance(data, kind) and (kind is bool or not isinstance(data, bool))


def _one_of(part: YamlPart, choices: list[Any], called: str) -> Any:
    """Return a part as the first matching type."""
    for kind in choices:
        attempt = YamlPart(part.data, part.path, part.lines)
        value = _value(attempt, kind, called)
        if not attempt.problems:
            return value
        if isinstance(part.data, get_origin(kind) or ()):  # report the wrong entry of a list
            part.problems.extend(attempt.problems)
            return None
    part.wrong(f"{called} should be {' or '.join(map(_name, choices))}, not {shorten(part.data)}")
    return None


def _name(kind: Any) -> str:
    return _PLAIN[kind][0] if kind in _PLAIN else f"a {(get_origin(kind) or kind).__name__}"


def json_schema(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of files for a dataclass."""
    inner: dict[str, Any] = {}
    whole = _object_schema(kind, inner)
    return {**whole, "$defs": inner}


def _object_schema(kind: type, inner: dict[str, Any]) -> dict[str, Any]:
    hints = _type_hints(kind)
    known = fields(kind)  # pyright: ignore[reportArgumentType]
    properties = {field.name: _schema(hints[field.name], inner) for field in known}
    for field in known:
        if field.default is not MISSING:
            properties[field.name]["default"] = field.default
    return {
        "title": kind.__name__,
        "description": kind.__doc__ or "",
        "type": "object",
        "properties": properties,
        "required": [field.name for field in known if _is_needed(field)],
        "additionalProperties": False,
    }


def _schema(hint: Any, inner: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(kind, inner) for kind in arguments]}
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], inner)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], inner)}
    if is_dataclass(hint):
        return _refer_to_schema(hint, inner)  # pyright: ignore[reportArgumentType]
    return {"type": "null" if hint is NoneType else _PLAIN[hint][1]}


def _refer_to_schema(kind: type, inner: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to the schema of a dataclass, or to its short form."""
    if kind.__name__ not in inner:
        inner[kind.__name__] = {}  # it may be recursive
        inner[kind.__name__] = _object_schema(kind, inner)
    reference = {"$ref": f"#/$defs/{kind.__name__}"}
    short: str = getattr(kind, "short", "")
    return {"anyOf": [_schema(_type_hints(kind)[short], inner), reference]} if short else reference
