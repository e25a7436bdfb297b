"""Message types: definitions of the bag, else the standard ones of ROS."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transect.recording.cache import cached_value

from .bag_file import Channel

BASE_NODE, NAME_NODE, ARRAY_NODE, SEQUENCE_NODE = range(1, 5)
"""Kinds of field descriptions, as in `rosbags.interfaces.Nodetype`."""

Types = Mapping[str, list[tuple[str, Any]]]
"""Type name to its fields: name and description, `(BASE, ("float64", 0))`, `(ARRAY, ((NAME, "..."), 9))`."""

_TYPE_NAME = re.compile(r"[A-Za-z]\w*(/[A-Za-z]\w*)+")
_FIELD_NAME = re.compile(r"[A-Za-z]\w*")
_TIME: list[tuple[str, Any]] = [("sec", (BASE_NODE, ("int32", 0))), ("nanosec", (BASE_NODE, ("uint32", 0)))]
_BUILTIN: Types = {"builtin_interfaces/msg/Time": _TIME, "builtin_interfaces/msg/Duration": _TIME}
_TF = "tf2_msgs/msg/TFMessage"
"""Not among the ROS 1 types that rosbags knows."""
_TYPE_SEPARATOR = "=" * 80 + "\n"


def candidates(channel: Channel) -> Iterator[tuple[Types, str]]:
    """Iterate over possible definitions of a type, the bag's own first, with their origin."""
    carried = _carry(channel.type, channel.definition, channel.definition_kind)
    if carried is not None:
        yield carried, "the bag's own definition"
    standard = standard_types(channel.encoding)
    if channel.type in standard:
        yield standard, "the definition that comes with ROS"


@cache
def _carry(kind: str, definition: str, language: str) -> Types | None:
    """Return the definition in a bag; None if it is missing or unusable."""
    if not definition.strip() and kind.rpartition("/")[2] != "Empty":
        return None
    if not _TYPE_NAME.fullmatch(kind):
        return None
    key = f"rosbag.carried/2|{_rosbags_version()}|{kind}|{language}|{definition}"
    known = cached_value(key, lambda: _parse(kind, definition, language))
    return None if known is None else _types_of(known)


def _parse(kind: str, definition: str, language: str) -> Types | None:
    from rosbags.typesys import TypesysError, get_types_from_idl, get_types_from_msg

    parsed: dict[str, Any] = {}
    try:
        if language in ("ros2idl", "omgidl"):
            for part in definition.split(_TYPE_SEPARATOR):
                parsed |= get_types_from_idl(part.partition("\n")[2] if part.startswith("IDL: ") else part)
        else:
            parsed = dict(get_types_from_msg(definition, kind))
    except (TypesysError, ValueError, KeyError, IndexError, AssertionError, RecursionError, TypeError):
        return None
    types: Types = {**_BUILTIN, **{name: fields for name, (_, fields) in parsed.items()}}
    return types if _is_sound(kind, types) else None


def _is_sound(kind: str, types: Types) -> bool:
    """Return whether names are valid and unique, and no type is missing or recursive."""
    names = all(_TYPE_NAME.fullmatch(name) for name in types)
    fields = all(_FIELD_NAME.fullmatch(name) for fields in types.values() for name, _ in fields)
    # rosbags makes Python names of fields, keywords with an underscore behind them
    once = all(len({name.rstrip("_") for name, _ in fields}) == len(fields) for fields in types.values())
    return names and fields and once and _is_closed(kind, types, ())


def _is_closed(kind: str, types: Types, inside: tuple[str, ...]) -> bool:
    if kind not in types or kind in inside or len(inside) > 32:
        return False
    used = [
        description[1][0] if description[0] in (ARRAY_NODE, SEQUENCE_NODE) else description
        for _, description in types[kind]
    ]
    return all(_is_closed(name, types, (*inside, kind)) for node, name in used if node == NAME_NODE)


def paths_of(kind: str, types: Types) -> set[str]:
    """Paths of all fields of a type, those of lists of structures with `[]`."""
    paths: set[str] = set()
    for name, (shape, inner) in types[kind]:
        listed = shape in (ARRAY_NODE, SEQUENCE_NODE)
        node, used = inner[0] if listed else (shape, inner)
        if node == NAME_NODE:
            paths |= {f"{name}{'[]' * listed}.{path}" for path in paths_of(used, types)}
        else:
            paths.add(name)
    return paths


@cache
def standard_types(encoding: str) -> Types:
    """Standard types of ROS for the encoding `ros1` (Noetic) or `cdr` (Humble)."""
    if encoding not in ("ros1", "cdr"):
        return {}
    key = f"rosbag.standard/1|{_rosbags_version()}|{encoding}"

    def all_types() -> Types:
        return {name: fields for name, (_, fields) in standard_store(encoding).fielddefs.items()}

    return _types_of(cached_value(key, all_types))


def _types_of(kept: Mapping[str, Any]) -> Types:
    """Return types that were kept as JSON, which has no tuples."""
    return {name: [_freeze(field) for field in fields] for name, fields in kept.items()}


def _freeze(value: Any) -> Any:
    return tuple(_freeze(item) for item in value) if isinstance(value, list | tuple) else value


@cache
def _rosbags_version() -> str:
    """Return a key that changes with the version of rosbags, without importing it."""
    found = find_spec("rosbags")
    folders = found.submodule_search_locations if found else None
    modules = sorted(Path(folders[0]).glob("typesys/**/*.py")) if folders else []
    return ",".join(f"{module.stat().st_size}.{module.stat().st_mtime_ns}" for module in modules)


@cache
def standard_store(encoding: str) -> Any:
    """Typestore of the types that ROS comes with.

    ROS 2 bags carry definitions since the release after Humble, so those that do not are of its types.
    """
    from rosbags.typesys import Stores, get_typestore

    store: Any = get_typestore(Stores.ROS1_NOETIC if encoding == "ros1" else Stores.ROS2_HUMBLE)
    if _TF not in store.fielddefs:
        transforms = (SEQUENCE_NODE, ((NAME_NODE, "geometry_msgs/msg/TransformStamped"), 0))
        store.register({_TF: ([], [("transforms", transforms)])})
    return store


def store_of(types: Types) -> Any:
    """Return a typestore that reads and writes the given types."""
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.EMPTY)
    store.register({name: ([], fields) for name, fields in types.items() if name not in _BUILTIN})
    return store
