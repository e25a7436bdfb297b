"""How values of a C++ type are written in a Rock log.

Typelib writes memory as it lies, padding between fields included, but for containers, which are written as
the count of their elements (uint64) and the elements. Padding after a container is written only if something
else stands between the two, and padding at the very end not at all (typelib, `test_marshalling.cc`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .typelib import Array, Compound, Container, Number, Type, Unknown

MAX_FIELDS = 10_000
"""Fields of a type and of all that it is made of: definitions that double at every level never end."""


@dataclass(frozen=True)
class Place:
    """A number, or an array of them, at an offset of a run."""

    path: str
    offset: int
    number: Number
    count: int | None = None


@dataclass(frozen=True)
class Run:
    """Bytes without a container among them; `used` are those up to the end of the last field."""

    places: tuple[Place, ...]
    size: int
    used: int

    def dtype(self, order: str, size: int) -> np.dtype[Any]:
        """Return it as a numpy type of `size` bytes, fields named by path; `order` is `<` or `>`."""
        kinds = [place.number.dtype.newbyteorder(order) for place in self.places]  # pyright: ignore[reportArgumentType]
        formats = [
            kind if place.count is None else (kind, (place.count,))
            for kind, place in zip(kinds, self.places, strict=True)
        ]
        names, offsets = [place.path for place in self.places], [place.offset for place in self.places]
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


@dataclass(frozen=True)
class Vector:
    """A container: the layout of its elements; `text` is a string."""

    path: str
    element: Layout
    text: bool

    @cached_property
    def run(self) -> Run | None:
        """The layout of the elements, if they have no containers themselves."""
        parts = self.element.parts
        return parts[0] if len(parts) == 1 and isinstance(parts[0], Run) else None


@dataclass(frozen=True)
class Layout:
    """Runs and containers in the order in which they are written."""

    parts: tuple[Run | Vector, ...]


class _Builder:
    """Collects fields into runs until a container comes; `left` counts how many more there may be."""

    def __init__(self, left: list[int]) -> None:
        self.left = left
        self.parts: list[Run | Vector] = []
        self._places: list[Place] = []
        self._size = self._used = 0

    def add(self, kind: Type, path: str) -> None:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise Unknown(f"more than {MAX_FIELDS} fields")
        if isinstance(kind, Number):
            self._add_place(Place(path, self._size, kind), kind.size)
        elif isinstance(kind, Compound):
            self._compound(kind, path)
        elif isinstance(kind, Container):
            self.close()
            self.parts.append(Vector(path, _layout(kind.of, self.left), kind.text))
        else:
            self._array(kind, path)

    def _add_place(self, place: Place, size: int) -> None:
        self._places.append(place)
        self._size += size
        self._used = self._size

    def _compound(self, kind: Compound, path: str) -> None:
        at = 0
        for name, offset, of in kind.fields:
            if offset < at:
                raise Unknown("fields overlap")
            self._pad(offset - at)
            self.add(of, f"{path}.{name}" if path else name)
            at = offset + of.size
        if kind.size < at:
            raise Unknown("fields reach beyond their struct")
        self._pad(kind.size - at)

    def _array(self, kind: Array, path: str) -> None:
        number, count = kind.of, kind.count
        while isinstance(number, Array):
            number, count = number.of, count * number.count
        if isinstance(number, Number):
            self._add_place(Place(path, self._size, number, count), kind.size)
            return
        raise Unknown("an array of structs or containers")

    def _pad(self, count: int) -> None:
        if self._size:
            self._size += count

    def close(self) -> None:
        """End the run."""
        if self._size:
            self.parts.append(Run(tuple(self._places), self._size, self._used))
        self._places, self._size, self._used = [], 0, 0


def layout_of(kind: Type) -> Layout:
    """Return how values of a type are written; raise Unknown where that is not known."""
    return _layout(kind, [MAX_FIELDS])


def _layout(kind: Type, left: list[int]) -> Layout:
    builder = _Builder(left)
    builder.add(kind, "")
    builder.close()
    if not builder.parts:
        raise Unknown("a type without content")
    return Layout(tuple(builder.parts))
