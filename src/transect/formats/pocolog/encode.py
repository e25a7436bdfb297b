"""Samples written as the layout of their type wants them, in little-endian order."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transect.errors import UnsupportedError

from .layout import Layout, Place, Run, Vector

_COUNT = struct.Struct("<Q")
_FORMATS = {
    "i1": "b",
    "i2": "h",
    "i4": "i",
    "i8": "q",
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
    "f4": "f",
    "f8": "d",
}


class Encoder:
    """Writes values of one type; maps in maps, lists, and arrays of rows for structs of numbers alone."""

    def __init__(self, layout: Layout, inner: bool = False) -> None:
        last = layout.parts[-1]
        self._parts: list[_Run | _Vector] = [
            _Vector(part) if isinstance(part, Vector) else _Run(part, whole=inner or part is not last)
            for part in layout.parts
        ]

    def encode(self, value: Any) -> bytes:
        """Return one value; padding at its very end is left out."""
        try:
            return b"".join(part.encode(value) for part in self._parts)
        except (struct.error, ValueError, TypeError, OverflowError) as error:
            raise UnsupportedError("a sample cannot be written to a Rock log", why=str(error)) from error


def _found(value: Any, path: str) -> Any:
    """Return a field by its path; names of fields may have dots in them."""
    if not path:
        return value
    if path in value:
        return value[path]
    head, _, rest = path.partition(".")
    return _found(value[head], rest)


class _Run:
    """Numbers and the padding between them."""

    def __init__(self, run: Run, whole: bool) -> None:
        self._places = run.places
        self._codes = [_codes(place) for place in run.places]
        form, at = "<", 0
        for place in run.places:
            count = place.count or 1
            form += f"{place.offset - at}x{count}{_FORMATS[place.number.dtype.str[1:]]}"
            at = place.offset + count * place.number.size
        self._struct = struct.Struct(f"{form}{(run.size if whole else run.used) - at}x")

    def encode(self, value: Any) -> bytes:
        numbers: list[Any] = []
        for place, codes in zip(self._places, self._codes, strict=True):
            found = _found(value, place.path)
            if codes is not None:
                numbers.append(codes.get(found, 0))
            elif place.count is None:
                numbers.append(_number(found, place))
            else:
                numbers.extend(found)
        return self._struct.pack(*numbers)


def _codes(place: Place) -> Mapping[str, int] | None:
    names = place.number.names
    return None if names is None else {name: number for number, name in names.items()}


def _number(found: Any, place: Place) -> Any:
    return float("nan") if found is None and place.number.dtype.kind == "f" else found


class _Vector:
    """A container: the count of its elements, and the elements."""

    def __init__(self, vector: Vector) -> None:
        self._path, self._run = vector.path, vector.run
        self._element = Encoder(vector.element, inner=True)

    def encode(self, value: Any) -> bytes:
        content = _found(value, self._path)
        content = content.encode() if isinstance(content, str) else content
        return _COUNT.pack(len(content)) + self._elements(content)

    def _elements(self, content: Sequence[Any]) -> bytes:
        if isinstance(content, bytes):
            return content
        run = self._run
        if run is not None and len(run.places) == 1 and (run.places[0].path == "" or _are_rows(content)):
            kind = run.places[0].number.dtype.newbyteorder("<")
            return np.asarray(content, dtype=kind).tobytes()
        return b"".join(self._element.encode(element) for element in content)


def _are_rows(content: Any) -> bool:
    return isinstance(content, np.ndarray)
