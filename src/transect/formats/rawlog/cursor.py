"""A walk through the bytes of MRPT's objects.

An object is the length of its class's name (with the highest bit set) and that name, a byte that tells its
version, its fields, and 0x88. Nothing tells how long an object is: where the fields of a class are not known,
or are damaged, reading can go on at the next name of a known class. Numbers are little-endian; a text or a
list has its length before it as four bytes.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from transect.base.arrays import Floats
from transect.geometry import rotations

END = 0x88
_NAMED = 0x80
_MATRICES = {"CMatrix": "<f4", "CMatrixF": "<f4", "CMatrixD": "<f8"}
_CLASS = re.compile(rb"(?:\w+::)*C[A-Z0-9]\w*", re.ASCII)
LONGEST_TEXT = 1 << 16
UNIT = 0.01
"""How far the quaternion of a pose may be from length 1."""


class Broken(Exception):
    """The bytes end, or are no object of a version that is known; never leaves the reader."""


class Cursor:
    """Reads one field after another from a place in a buffer; every method raises Broken where it cannot."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def number(self, kind: str) -> Any:
        """Return a number of a kind of `struct`."""
        size = struct.calcsize(kind)
        self._require(size)
        [value] = struct.unpack_from(f"<{kind}", self.data, self.at)
        self.at += size
        return value

    def numbers(self, dtype: DTypeLike, count: int) -> NDArray[Any]:
        """Return (count,) numbers of one type."""
        size = np.dtype(dtype).itemsize * count
        self._require(size)
        values = np.frombuffer(self.data, dtype, count, self.at)
        self.at += size
        return values

    def array(self, dtype: DTypeLike) -> NDArray[Any]:
        """Return numbers of one type that have their count before them."""
        return self.numbers(dtype, self.number("I"))

    def text(self) -> str:
        """Return a text."""
        length = self.number("I")
        if length > LONGEST_TEXT:
            raise Broken("a text that is too long")
        return self.numbers(np.uint8, length).tobytes().decode("utf-8", "replace")

    def begin(self) -> tuple[str, int]:
        """Enter an object; return the name of its class, without its namespace, and its version."""
        length = self.number("B")
        if not length & _NAMED:
            raise Broken("no object begins here")
        name = self.numbers(np.uint8, length & ~_NAMED).tobytes()
        if not _CLASS.fullmatch(name):
            raise Broken("no object begins here")
        return name.decode().rpartition("::")[2], self.number("B")

    def begin_one_of(self, *names: str) -> tuple[str, int]:
        """Enter an object of some classes."""
        name, version = self.begin()
        if name not in names:
            raise Broken(f"a {name} instead of a {names[0]}")
        return name, version

    def end(self) -> None:
        """Leave an object."""
        if self.number("B") != END:
            raise Broken("an object does not end where it should")

    def matrix(self) -> Floats:
        """Return a matrix, an object of its own."""
        name, _ = self.begin_one_of(*_MATRICES)
        rows, columns = self.number("I"), self.number("I")
        values = self.numbers(_MATRICES[name], rows * columns).astype(np.float64)
        self.end()
        return values.reshape(rows, columns)

    def planar_pose(self) -> Floats:
        """Return x, y (m) and heading (rad) of a `CPose2D` (3,)."""
        _, version = self.begin_one_of("CPose2D")
        values = self.numbers("<f8" if version else "<f4", 3).astype(np.float64)
        self.end()
        return values

    def pose(self) -> Floats:
        """Return position (m) and quaternion x, y, z, w of a `CPose3D` (7,)."""
        _, version = self.begin_one_of("CPose3D")
        if version == 2:
            x, y, z, qw, qx, qy, qz = self.numbers("<f8", 7)
            found = _pose_of((qx, qy, qz, qw), (x, y, z))
        elif version == 3:
            values = self.numbers("<f8", 12)
            found = _pose_of(_quaternion_of(values[3:].reshape(3, 3)), values[:3])
        else:
            T = self.matrix()
            if T.shape != (4, 4):
                raise Broken("a pose that is no matrix of 4 x 4")
            found = _pose_of(_quaternion_of(T[:3, :3]), T[:3, 3])
        self.end()
        return found

    def _require(self, size: int) -> None:
        if size > len(self.data) - self.at:
            raise Broken("the file ends within an object")


def _quaternion_of(rotation: Floats) -> Floats:
    if not (np.abs(rotation) < 1 + UNIT).all():
        raise Broken("an attitude that is none")
    return rotations.quaternion_from_matrix(rotation)


def _pose_of(quaternion: ArrayLike, place: ArrayLike) -> Floats:
    found = np.concatenate([np.asarray(place, np.float64), np.asarray(quaternion, np.float64)])
    sound = np.isfinite(found).all() and (np.abs(found[3:]) < 1 + UNIT).all()
    if not sound or abs(np.linalg.norm(found[3:]) - 1) > UNIT:
        raise Broken("an attitude that is none")
    return found
