"""Typelib: the C++ types of a Rock log, read from and written to the XML of its stream declarations.

`read_registry` reads the XML of a log; `Definitions` makes that of the types which transect writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from transect.base.xml import load_xml
from transect.errors import ParseError

MAX_DEPTH = 32
MAX_VALUE_BYTES = 1 << 26
"""Limit for a value without its containers; larger ones are considered damaged."""
_ARRAY = re.compile(r"(.+)\[(\d+)\]")
_NUMERIC = {"sint": "i", "uint": "u", "float": "f"}
_SIZES = {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (4, 8)}
ENUM_DTYPE = np.dtype("i4")


class UnknownType(Exception):
    """A type that cannot be decoded: opaque, a pointer, undefined; internal to the readers."""


@dataclass(frozen=True)
class NumberType:
    """A number, or an enumeration with names."""

    dtype: np.dtype[Any]
    names: Mapping[int, str] | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return self.dtype.itemsize


@dataclass(frozen=True)
class ArrayType:
    """A fixed number of values of one type."""

    of: TypelibType
    count: int

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.count * self.of.size


@dataclass(frozen=True)
class ContainerType:
    """A `std::vector` or `std::string`; `size` is that in memory."""

    of: TypelibType
    size: int
    text: bool = False


@dataclass(frozen=True)
class StructType:
    """A struct: name, offset and type of each field."""

    fields: tuple[tuple[str, int, TypelibType], ...]
    size: int


TypelibType = NumberType | ArrayType | ContainerType | StructType


@dataclass
class Registry:
    """The definitions of one stream, by name."""

    elements: dict[str, Any] = field(default_factory=dict[str, Any])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    resolved: dict[str, TypelibType] = field(default_factory=dict[str, TypelibType])

    def resolve(self, name: str, depth: int = 0) -> TypelibType:
        """Return a type by name; raise UnknownType if it cannot be decoded."""
        if depth > MAX_DEPTH:
            raise UnknownType(f"{name} is nested too deeply")
        name = self.aliases.get(name, name)
        if name not in self.resolved:
            self.resolved[name] = _check(self._define(name, depth + 1), name)
        return self.resolved[name]

    def _define(self, name: str, depth: int) -> TypelibType:
        element, array = self.elements.get(name), _ARRAY.fullmatch(name)
        if element is None and array is not None:
            return ArrayType(self.resolve(array[1], depth), int(array[2]))
        if element is None:
            raise UnknownType(f"{name} is not defined")
        try:
            return self._build(element, depth)
        except (KeyError, ValueError) as error:
            raise UnknownType(f"the definition of {name} cannot be read ({error})") from error

    def _build(self, element: Any, depth: int) -> TypelibType:
        attributes = element.attrib
        if element.tag == "numeric":
            return _number(attributes)
        if element.tag == "enum":
            names = {int(v.attrib["value"]): v.attrib["symbol"] for v in element.findall("value")}
            return NumberType(ENUM_DTYPE, names)
        if element.tag == "array":
            return ArrayType(self.resolve(attributes["of"], depth), int(attributes["dimension"]))
        if element.tag == "container":
            of = self.resolve(attributes["of"], depth)
            return ContainerType(of, int(attributes["size"]), attributes.get("kind", "") == "/std/string")
        if element.tag == "compound":
            fields = [
                (f.attrib["name"], int(f.attrib["offset"]), f.attrib["type"])
                for f in element.findall("field")
            ]
            ordered = sorted(fields, key=lambda item: item[1])
            resolved = tuple((name, at, self.resolve(kind, depth)) for name, at, kind in ordered)
            return StructType(resolved, int(attributes["size"]))
        raise UnknownType(f"{attributes.get('name', '')} is {element.tag}")


def _number(attributes: Mapping[str, str]) -> NumberType:
    kind, size = _NUMERIC.get(attributes["category"], ""), int(attributes["size"])
    if size not in _SIZES.get(kind, ()):
        raise UnknownType(f"{attributes['name']} is a {attributes['category']} of {size} bytes")
    return NumberType(np.dtype(f"{kind}{size}"))


def _check(kind: TypelibType, name: str) -> TypelibType:
    if not 0 < kind.size <= MAX_VALUE_BYTES:
        raise UnknownType(f"{name} has {kind.size} bytes")
    return kind


def read_registry(xml: bytes) -> Registry:
    """Read the XML of a stream declaration; raise UnknownType if it is invalid.

    DTDs, entities and network access are disabled.
    """
    try:
        root = load_xml(xml, "its type definition")
    except ParseError as error:
        raise UnknownType(f"{error.what} ({error.why})") from error
    registry = Registry()
    for element in root.iterchildren("{*}*"):
        name = element.attrib.get("name", "")
        if element.tag == "alias":
            registry.aliases[name] = element.attrib.get("source", "")
        else:
            registry.elements[name] = element
    return registry


Fields = Mapping[str, str]
"""Type of each field of a struct, in order."""
_VECTOR = re.compile(r"/std/vector<(.+)>")
STRING = "/std/string"
_NUMBERS = {
    **{f"/{u}int{8 * n}_t": (f"{u or 's'}int", n) for u in ("", "u") for n in (1, 2, 4, 8)},
    "/float": ("float", 4),
    "/double": ("float", 8),
    "/bool": ("uint", 1),
}
ENUMS: dict[str, dict[str, int]] = {
    "/base/samples/frame/frame_mode_t": {
        "MODE_UNDEFINED": 0,
        "MODE_GRAYSCALE": 1,
        "MODE_RGB": 2,
        "MODE_UYVY": 3,
        "MODE_BAYER": 128,
        "MODE_BAYER_RGGB": 129,
        "MODE_BAYER_GRBG": 130,
        "MODE_BAYER_BGGR": 131,
        "MODE_BAYER_GBRG": 132,
    },
    "/base/samples/frame/frame_status_t": {"STATUS_EMPTY": 0, "STATUS_VALID": 1, "STATUS_INVALID": 2},
}
_V3, _V4, _M3 = (f"/wrappers/Matrix</double,{size}>" for size in ("3,1", "4,1", "3,3"))
STRUCTS: dict[str, Fields] = {
    "/base/Time": {"microseconds": "/int64_t"},
    _V3: {"data": "/double[3]"},
    _V4: {"data": "/double[4]"},
    _M3: {"data": "/double[9]"},
    "/wrappers/Quaternion</double>": {"im": "/double[3]", "re": "/double"},
    "/base/Pose_m": {"position": _V3, "orientation": "/wrappers/Quaternion</double>"},
    "/base/JointState": {
        "position": "/double",
        **dict.fromkeys(("speed", "effort", "raw", "acceleration"), "/float"),
    },
    "/base/samples/frame/frame_size_t": {"width": "/uint16_t", "height": "/uint16_t"},
    "/base/samples/frame/frame_attrib_t": {"data_": STRING, "name_": STRING},
    "/base/samples/IMUSensors_m": {"time": "/base/Time", **dict.fromkeys(("acc", "gyro", "mag"), _V3)},
    "/base/samples/RigidBodyState_m": {
        "time": "/base/Time",
        "sourceFrame": STRING,
        "targetFrame": STRING,
        "position": _V3,
        "cov_position": _M3,
        "orientation": "/wrappers/Quaternion</double>",
        "cov_orientation": _M3,
        "velocity": _V3,
        "cov_velocity": _M3,
        "angular_velocity": _V3,
        "cov_angular_velocity": _M3,
    },
    "/base/samples/Joints": {
        "names": f"/std/vector<{STRING}>",
        "elements": "/std/vector</base/JointState>",
        "time": "/base/Time",
    },
    "/base/samples/LaserScan": {
        "time": "/base/Time",
        **dict.fromkeys(("start_angle", "angular_resolution", "speed"), "/double"),
        "ranges": "/std/vector</uint32_t>",
        "minRange": "/uint32_t",
        "maxRange": "/uint32_t",
        "remission": "/std/vector</float>",
    },
    "/base/samples/Pointcloud_m": {
        "time": "/base/Time",
        "points": f"/std/vector<{_V3}>",
        "colors": f"/std/vector<{_V4}>",
    },
    "/base/samples/frame/Frame": {
        "time": "/base/Time",
        "received_time": "/base/Time",
        "image": "/std/vector</uint8_t>",
        "attributes": "/std/vector</base/samples/frame/frame_attrib_t>",
        "size": "/base/samples/frame/frame_size_t",
        **dict.fromkeys(("data_depth", "pixel_size", "row_size"), "/uint32_t"),
        "frame_mode": "/base/samples/frame/frame_mode_t",
        "frame_status": "/base/samples/frame/frame_status_t",
    },
}
"""Structs as defined in the declarations of real logs."""


class TypeDefinitions:
    """XML definitions of a type and of the types it contains, in order of dependency."""

    def __init__(self, structs: Mapping[str, Fields]) -> None:
        self.structs = {**STRUCTS, **structs}
        self._lines: dict[str, str] = {}

    def xml(self, name: str) -> bytes:
        """Return the registry of a type."""
        self._lines.clear()
        self._measure(name)
        body = "\n".join(line for line in self._lines.values() if line)
        return f'<?xml version="1.0"?>\n<typelib>\n{body}\n</typelib>\n'.encode()

    def _measure(self, name: str) -> tuple[int, int]:
        """Define a type and its fields; return its size and alignment on 64-bit machines."""
        quoted = quoteattr(name)
        if name in _NUMBERS:
            category, size = _NUMBERS[name]
            self._lines[name] = f'  <numeric name={quoted} category="{category}" size="{size}"/>'
            return size, size
        if name in ENUMS:
            values = "".join(f'<value symbol="{s}" value="{v}"/>' for s, v in ENUMS[name].items())
            self._lines[name] = f"  <enum name={quoted}>{values}</enum>"
            return 4, 4
        if name in self.structs:
            return self._struct(name, self.structs[name])
        if array := _ARRAY.fullmatch(name):
            size, alignment = self._measure(array[1])
            return size * int(array[2]), alignment
        vector = _VECTOR.fullmatch(name)
        of, size, kind = (vector[1], 24, "/std/vector") if vector else ("/int8_t", 32, STRING)
        self._measure(of)
        self._lines[name] = f'  <container name={quoted} of={quoteattr(of)} size="{size}" kind="{kind}"/>'
        return size, 8

    def _struct(self, name: str, fields: Fields) -> tuple[int, int]:
        at, widest = 0, 1
        lines: list[str] = []
        for path, kind in fields.items():
            size, alignment = self._measure(kind)
            at += -at % alignment
            lines.append(f'    <field name={quoteattr(path)} type={quoteattr(kind)} offset="{at}"/>')
            at, widest = at + size, max(widest, alignment)
        size = at + -at % widest
        self._lines[name] = "\n".join(
            [f'  <compound name={quoteattr(name)} size="{size}">', *lines, "  </compound>"]
        )
        return size, widest
